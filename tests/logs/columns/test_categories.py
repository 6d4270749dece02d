"""Categories become columns of 0 and 1."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hybandits.logs.columns.categories import one_hots

from hybandits.logs.columns import ColumnsReader, Mapping, categories, reader
from hybandits.logs.store import LogError
from tests.support.own_logs import SIMPLE, read, write


def test_rare_categories_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(categories, "WIDEST", 3)
    cells = ["x,1", "x,2", "y,1", "y,3", "z,1", "other,4"]
    path = write(tmp_path / "x.csv", "item,click,c,d\n" + "".join(f"a,1,{cell}\n" for cell in cells))
    log, batch, _ = read(path, tmp_path, **SIMPLE, categorical=["c", "d"])
    assert log.user == ["constant", "c=y", "c=other", "d=other"]
    assert batch.user[:, 1:].tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]]
    monkeypatch.setattr(reader, "DISTINCT", 3)
    with pytest.raises(LogError, match="more than 3 distinct values"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, categorical=["d"]))


def test_without_a_constant_all_categories_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,click,c\na,1,x\na,1,y\n")
    reader = ColumnsReader(path, mapping=Mapping(**SIMPLE, categorical=["c"], constant=False))
    assert reader.user == ["c=x", "c=y"]
    assert reader.binary_user
    assert reader.arm == []


def test_columns_of_0_and_1() -> None:
    (hot,) = one_hots({"os": Counter("aabc")}, drop_first=False)
    assert hot.names == ["os=a", "os=b", "os=c"]
    assert hot.matrix(pa.array(["c", "a"])).tolist() == [[0, 0, 1], [1, 0, 0]]
    (hot,) = one_hots({"os": Counter()}, drop_first=True)
    assert hot.matrix(pa.array(["c"], pa.string())).shape == (1, 0)


def test_labels_are_used_unless_they_are_alike() -> None:
    counts = {"hash": Counter(["aaaa1", "bbbb1"])}
    assert one_hots(counts, drop_first=False, label=lambda text: text[:4])[0].names == ["hash=aaaa", "hash=bbbb"]
    assert one_hots(counts, drop_first=False, label=lambda text: text[4:])[0].names == ["hash=aaaa1", "hash=bbbb1"]
