"""Data sets in files: CSV and Parquet give the same, the class may be any column, and faults are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from hybandits.engines import SerialEngine
from hybandits.experiments.config import experiment
from hybandits.experiments.data_sets import read_table, recorded_table
from hybandits.experiments.runner import run
from hybandits.foundation.files import sha256

FLOWERS = {"kind": ["rose", "lily", "rose", "iris"], "length": [1.0, 2.0, 3.0, 2.5], "wet": [1, 0, 1, 1]}


def write(folder: Path, columns: dict[str, list[Any]], ending: str = "parquet") -> Path:
    path = folder / f"flowers.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def test_csv_and_parquet_give_the_same(tmp_path: Path) -> None:
    (features, labels), (others, other_labels) = (
        read_table(write(tmp_path, FLOWERS, ending), "kind") for ending in ("parquet", "csv")
    )
    assert_array_equal(features, [[1, 1], [2, 0], [3, 1], [2.5, 1]])
    assert labels == FLOWERS["kind"]
    assert_array_equal(features, others)
    assert labels == other_labels


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("relayed", [{}, {"factor": 100.0, "offset": -3.0}, {"delay": 2}])
def test_regret_does_not_depend_on_the_kind_of_file(ending: str, relayed: dict[str, Any], tmp_path: Path) -> None:
    path = write(tmp_path, FLOWERS, ending)
    settings = {"world": "classification", "data": str(path), "label": "kind", "rounds": 30, "environments": 2}
    record = experiment({**settings, **relayed, "policies": ["HyIDS", "Uniform"]})
    assert record.world_settings["label"] == "kind"
    assert (record.d1, record.d2, record.arms) == (0, 3, (3,))
    outcome = run([record], tmp_path / "out", engine=SerialEngine(), data=path).outcome("simulation", "own")
    assert outcome is not None
    unit = relayed.get("factor", 1.0)
    assert set((outcome.final("Uniform") / unit) % 1) == {0.0}, "a wrong answer costs one right one"
    assert (outcome.final("Uniform") > 0).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must have a header, rows"),
        ("a,b\n", "must have a header, rows"),
        ("a\n1\n", "must have a header, rows, and a column of features"),
        ("a,b\n1,x\n2\n", "line 3 has 1 cells and the header 2"),
        ("a,b\none,x\n", "line 2 has 'one' as a: all columns but that of the class must be finite numbers"),
        ("a,b\nnan,x\n", "line 2 has 'nan' as a"),
        ('a,b\n\n1,"x\ny"\n\ntwo,x\n', "line 6 has 'two' as a"),
        ("a,b\n1,x\n2,x\n", r"has only the class 'x' in b, so there is nothing to choose: give rows of two classes"),
    ],
)
def test_faults_of_a_csv_file_are_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "data.csv")


def test_a_mark_of_the_byte_order_is_no_part_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("kind,a\nx,1\ny,2\n", encoding="utf-8-sig")
    assert read_table(tmp_path / "data.csv", "kind")[1] == ["x", "y"]


def test_a_file_in_another_encoding_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,kind\n1,é\n2,y\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"data\.csv is not UTF-8 text \(it has the byte 0xe9\): save it as UTF-8"):
        read_table(tmp_path / "data.csv")


@pytest.mark.parametrize(
    ("columns", "label", "message"),
    [
        ({"a": [1.0, None], "b": ["x", "y"]}, None, "row 2 has None as a"),
        ({"a": [1.0, 2.0], "b": ["x", None]}, None, "row 2 has no class in b"),
        ({"a": ["x"], "b": ["y"]}, None, "row 1 has 'x' as a"),
        ({"a": [1.0], "kind": ["y"]}, "knd", r"has no column 'knd' \(did you mean kind\?\): it has a, kind"),
        ({"a": [1.0]}, None, "a column of features beside that of the class"),
    ],
)
def test_faults_of_a_parquet_file_are_named(
    columns: dict[str, list[Any]], label: str | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path, columns), label)


def test_what_is_not_parquet_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_text("a,b\n1,x\n")
    with pytest.raises(ValueError, match=r"data\.parquet is not a Parquet file"):
        read_table(tmp_path / "data.parquet")


def test_a_data_set_has_the_recorded_content(tmp_path: Path) -> None:
    path = write(tmp_path, FLOWERS)
    settings = {"kind": "classification", "data": "flowers.parquet", "label": "kind", "sha256": sha256(path)}
    table = recorded_table(settings, str(path))
    assert table is not None
    assert table[1] == FLOWERS["kind"]
    write(tmp_path, {**FLOWERS, "wet": [0, 0, 0, 1]})
    with pytest.raises(ValueError, match="is not the data set that was recorded"):
        recorded_table(settings, str(path))
    assert recorded_table({"kind": "classification", "data": "terrain"}, None) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"label": "kind"}, "label and sha256 are for a data set in a file"),
        (
            {"data": "flowers.parquet", "sha256": "0" * 64, "label": "kind"},
            r"flowers\.parquet has SHA-256 .*, not 0000",
        ),
    ],
)
def test_mistakes_in_an_experiment_are_named(
    settings: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, FLOWERS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        experiment({"world": "classification", **settings})
