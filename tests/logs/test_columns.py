"""A user's own log: what the columns mean, what becomes of bad rows, and that CSV and Parquet give the same log."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybandits.logs import columns
from hybandits.logs import tables as table_files
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.report import ReadError
from hybandits.logs.store import NO_TIME, LogError
from tests.support.own_logs import FULL, LOG, SIMPLE, pools, read, write


def test_every_column_arrives(tmp_path: Path) -> None:
    log, batch, report = read(write(tmp_path / "x.csv", LOG), tmp_path, **FULL)
    assert report.skipped == 0
    assert log.about["kind"] == "columns"
    assert log.user == ["constant", "age", "country=fr", "country=it"]
    assert log.arm == ["constant"]
    assert batch.time.tolist() == [100, 101, 1577836800, NO_TIME]
    assert batch.reward.tolist() == [1, 0, 0, 1]
    assert batch.propensity.tolist() == [0.5, 0.5, 0.25, 1]
    assert [pools(log)[i] for i in batch.pool] == [["a", "b"], ["a", "b"], ["a", "b", "c"], ["c", "a"]]
    assert batch.chosen.tolist() == [0, 1, 2, 1]
    assert batch.user.tolist() == [[1, 31, 0, 0], [1, 22.5, 1, 0], [1, 10, 0, 0], [1, -4, 0, 1]]


def test_all_arms_seen_are_candidates_unless_listed(tmp_path: Path) -> None:
    text = "item,click\nx,1\ny,0\nbad,\nx,0\n"
    log, batch, report = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, uniform=True)
    assert pools(log) == [["x", "y"]]  # an arm of bad rows only is none
    assert batch.propensity.tolist() == [0.5] * 3
    assert report.reasons == {"missing value": 1}


def test_without_propensities_they_are_unknown(tmp_path: Path) -> None:
    _, batch, _ = read(write(tmp_path / "x.csv", "item,click\nx,1\n"), tmp_path, **SIMPLE)
    assert np.isnan(batch.propensity).all()
    assert batch.time.tolist() == [NO_TIME]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_arms_of_a_file(tmp_path: Path, kind: str) -> None:
    arms = tmp_path / f"arms.{kind}"
    if kind == "csv":
        write(arms, "name,w,h\na,1,2\nb,3,4\n")
    else:
        pq.write_table(pa.table({"name": ["a", "b"], "w": [1, 3], "h": [2.0, 4.0]}), arms)
    path = write(tmp_path / "x.csv", "item,click\nb,1\nc,1\n")
    log, batch, report = read(path, tmp_path, **SIMPLE, arms_file=arms, uniform=True)
    assert log.arm == ["constant", "w", "h"]
    assert log.vectors.tolist() == [[1, 1, 2], [1, 3, 4]]
    assert batch.chosen.tolist() == [1]
    assert batch.propensity.tolist() == [0.5]
    assert report.reasons == {"arm missing from the arms' file": 1}
    (example,) = report.examples.values()
    assert f"got 'c', which is not in {arms}" in example


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,w\n", "has no arms"),
        ("name,w\na,1\na,2\n", "has the arm 'a' twice"),
        ("name,w\na,1\nb,\n", r"line 3: missing value \(column 'w'"),
        ("name,w\na,1\nb\n", "line 3: wrong number of fields"),
        ("name,w\na,red\nb,blue\n", r"line 2: unparsable number .*'red'.*: give every arm numbers"),
        ("name,constant\na,1\n", "two arm features are called 'constant'"),
    ],
)
def test_a_bad_file_of_arms_is_refused(tmp_path: Path, text: str, message: str) -> None:
    arms = write(tmp_path / "arms.csv", text)
    path = write(tmp_path / "x.csv", "item,click\na,1\n")
    with pytest.raises(LogError, match=message):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, arms_file=arms))


BAD = [
    ("1,x,0.5,a|b,1", "unparsable number", "column 'click': got 'x'"),
    ("1,,0.5,a|b,1", "missing value", "column 'click'"),
    ("1,inf,0.5,a|b,1", "number beyond 1e+20", "column 'click': got inf"),
    ("1,1_0,0.5,a|b,1", "unparsable number", "'1_0'"),
    ("1,1,0,a|b,1", "propensity outside (0, 1]", "got 0.0"),
    ("1,1,-0.5,a|b,1", "propensity outside (0, 1]", "got -0.5"),
    ("1,1,,a|b,1", "missing value", "column 'p'"),
    ("1,1,0.5,b|c,1", "arm not among the candidates", "got 'a'"),
    ("1,1,0.5,a|zz,1", "arm missing from the arms' file", "candidate 'zz' is not in"),
    ("1,1,0.5,a|a,1", "unusable list of candidates", "expected different arms"),
    ("1,1,0.5,|,1", "missing value", "column 'shown': the list is empty or has an empty id in it"),
    ("1,1,0.5,a|b,", "missing value", "column 'age'"),
    ("1,1,0.5,a|b,old", "unparsable number", "column 'age': got 'old'"),
    ("soon,1,0.5,a|b,1", "unparsable time", "column 'time': got 'soon'"),
    ("1700000000000,1,0.5,a|b,1", "time out of range", "expected seconds"),
    ("1,1,0.5,a|b", "wrong number of fields", "got 5, the header has 6"),
    ("1,1,0.5,a|b,1,1", "wrong number of fields", "got 7, the header has 6"),
]


@pytest.mark.parametrize(("row", "kind", "detail"), BAD)
@pytest.mark.parametrize("block", [24, 1 << 20])
def test_a_bad_row_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, kind: str, detail: str, block: int
) -> None:
    monkeypatch.setattr(table_files, "BLOCK", block)
    good = "a,9,1,0.5,a|b,3\n"
    arms = write(tmp_path / "arms.csv", "name,w\na,1\nb,2\nc,3\n")
    text = "item,time,click,p,shown,age\n" + good * 3 + "\n" + f"a,{row}\n" + good * 2
    mapping = {**SIMPLE, "time": "time", "propensity": "p", "candidates": "shown", "user": ["age"], "arms_file": arms}
    path = write(tmp_path / "x.csv", text)
    _, batch, report = read(path, tmp_path, **mapping)
    assert batch.rounds == 5
    assert report.reasons == {kind: 1}
    assert report.examples[kind].startswith(f"x.csv, line 6: {kind} (")
    assert detail in report.examples[kind]
    with pytest.raises(ReadError, match=r"x\.csv, line 6"):
        read(path, tmp_path, strict=True, **mapping)


def test_a_row_is_counted_once_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    text = "item,click,p\n,x,7\na,1,1\n"
    _, _, report = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, propensity="p")
    assert report.reasons == {"missing value": 1}


@pytest.mark.parametrize("text", ["item,click", "item,click\n", "item,click\na,x\nb,\n"])
@pytest.mark.parametrize("more", [{}, {"uniform": True}])
def test_a_log_without_rounds_is_refused(tmp_path: Path, text: str, more: dict[str, Any]) -> None:
    with pytest.raises(LogError, match="no round could be read"):
        read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, **more)
    assert not list(tmp_path.glob("*log*"))


def test_several_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder / "2.csv", "item,click\nb,1\n,\n")
    write(folder / "1.csv", "click,item\n0,a\n")
    write(folder / "notes.txt", "nothing")
    log, batch, report = read(folder, tmp_path, **SIMPLE)
    assert pools(log) == [["a", "b"]]
    assert batch.reward.tolist() == [0, 1]
    assert report.sources == [
        {"file": "notes.txt", "lines": 0, "rounds": 0, "ignored": "not a log by its name"},
        {"file": "1.csv", "lines": 1, "rounds": 1},
        {"file": "2.csv", "lines": 2, "rounds": 1},
    ]
    assert log.source_starts == [0, 1]
    again = read([folder / "2.csv", folder / "1.csv"], tmp_path, **SIMPLE)[1]
    assert again.reward.tolist() == [1, 0]
    (tmp_path / "more").mkdir()
    other = write(tmp_path / "more" / "1.csv", "item,click\na,1\n")
    assert len(read([folder / "1.csv", other], tmp_path, **SIMPLE)[0].source_starts) == 2


def test_csv_and_parquet_give_the_same_log(tmp_path: Path) -> None:
    one, batch, _ = read(write(tmp_path / "x.csv", LOG), tmp_path, **FULL)
    rows = list(csv.DictReader(LOG.splitlines()))
    cells: dict[str, Any] = {name: [row[name] or None for row in rows] for name in ("item", "country")}
    cells |= {name: [float(row[name]) for row in rows] for name in ("click", "p", "age")}
    cells["time"] = pa.array([100, 101, 1577836800, None])
    cells["shown"] = [row["shown"].split("|") for row in rows]
    pq.write_table(pa.table(cells), tmp_path / "x.parquet")
    other, same, _ = read(tmp_path / "x.parquet", tmp_path, **FULL)
    assert other.about["content"] == one.about["content"]
    for mine, theirs in zip(batch, same, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def csv_of(ids: list[str], shown: list[str] | None = None) -> str:
    if shown is None:
        return "item,click\n" + "".join(f"{name},1\n" for name in ids)
    return "item,click,shown\n" + "".join(f"{name},1,{arms}\n" for name, arms in zip(ids, shown, strict=True))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["100", "7", "100"], [100, 7]),
        (["1.0", "2.0"], [1, 2]),
        (["1.0", "1.5"], ["1", "1.5"]),
        (["007", "8"], ["007", "8"]),
        (["7", "shoe"], ["7", "shoe"]),
    ],
)
def test_ids_of_a_csv_file_are_integers_if_all_are_whole(tmp_path: Path, ids: list[str], expected: list[Any]) -> None:
    log, _, _ = read(write(tmp_path / "x.csv", csv_of(ids)), tmp_path, **SIMPLE)
    assert log.names == expected


def test_an_unusable_row_does_not_decide_the_type_of_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", csv_of(["1.0", "x", "3"], ["1|2", "1|2", "3|2.0"]))
    log, batch, report = read(path, tmp_path, **SIMPLE, candidates="shown")
    assert pools(log) == [[1, 2], [3, 2]]
    assert batch.chosen.tolist() == [0, 0]
    assert report.reasons == {"arm not among the candidates": 1}


def test_a_candidate_that_is_no_number_makes_all_ids_strings(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", csv_of(["1.0", "2.0"], ["1.0|2.0", "2.0|hat"]))
    log, _, report = read(path, tmp_path, **SIMPLE, candidates="shown")
    assert pools(log) == [["1", "2"], ["2", "hat"]]
    assert report.skipped == 0


@pytest.mark.parametrize(
    ("items", "lists", "expected"),
    [
        (pa.array([3, 4], pa.int32()), [[3, 4], [4, 3]], [[3, 4], [4, 3]]),
        (pa.array([3.0, 1e10]), [[3.0, 1e10], [1e10, 5.0]], [[3, 10**10], [10**10, 5]]),
        (pa.array([3, 4], pa.uint8()).dictionary_encode(), [["3", "4"], ["4", "5"]], [[3, 4], [4, 5]]),
        (pa.array(["3", "4"]), [["3", "4"], ["4", "3"]], [["3", "4"], ["4", "3"]]),
        (pa.array(["3", "4"]).dictionary_encode(), [[3, 4], [4, 3]], [["3", "4"], ["4", "3"]]),
    ],
)
def test_ids_of_a_parquet_file_keep_their_type(tmp_path: Path, items: Any, lists: Any, expected: Any) -> None:
    pq.write_table(pa.table({"item": items, "click": [1, 0], "shown": lists}), tmp_path / "x.parquet")
    log, _, report = read(tmp_path / "x.parquet", tmp_path, **SIMPLE, candidates="shown")
    assert pools(log) == expected
    assert report.skipped == 0
    log, _, _ = read(tmp_path / "x.parquet", tmp_path, **SIMPLE)
    assert log.names == [pool[0] for pool in expected]


# ------------------------------------------------------------------ pair features

PAIRS = """item,click,shown,near_a,near_b,near_c
a,1,a|b,0.1,0.2,
b,0,b|c|a,0.3,0.4,0.5
c,1,c,,,0.6
"""
LISTED = {**SIMPLE, "candidates": "shown", "pair": {"near": "near_{arm}"}}


def test_pair_features_of_listed_candidates(tmp_path: Path) -> None:
    log, batch, report = read(write(tmp_path / "log.csv", PAIRS), tmp_path, **LISTED)
    assert report.skipped == 0
    assert log.pair == ["near"]
    assert batch.pair[:, :, 0].tolist() == [[0.1, 0.2, 0], [0.4, 0.5, 0.3], [0.6, 0, 0]]
    assert [each["name"] for each in log.about["columns"]["pair"]] == ["near"]


def test_pair_features_in_the_order_of_all_arms(tmp_path: Path) -> None:
    items = write(tmp_path / "items.csv", "item,size\nc,1\na,2\nb,3\n")
    text = "item,click,far_a,far_b,far_c,near_a,near_b,near_c\na,1,2,3,1,4,5,6\nc,0,8,9,7,10,11,12\n"
    pair = {"far": "far_{arm}", "near": "near_{arm}"}
    log, batch, _ = read(write(tmp_path / "log.csv", text), tmp_path, **SIMPLE, arms_file=items, pair=pair)
    assert log.names == ["c", "a", "b"]
    assert batch.pair.tolist() == [[[1, 6], [2, 4], [3, 5]], [[7, 12], [8, 10], [9, 11]]]
    # Without a file the arms are those of the log, in the order in which they appear; columns of others are left alone.
    log, batch, _ = read(tmp_path / "log.csv", tmp_path, **SIMPLE, pair={"near": "near_{arm}"})
    assert log.names == ["a", "c"]
    assert batch.pair.tolist() == [[[4], [6]], [[10], [12]]]


@pytest.mark.parametrize(
    ("row", "kind", "detail"),
    [
        ("a,1,a|b,0.1,,0.5", "missing value", "column 'near_b' is missing, empty or NaN"),
        ("a,1,a|b,0.1,far,0.5", "unparsable number", "column 'near_b': got 'far'"),
        ("a,1,a|b,0.1,inf,0.5", "number beyond 1e+20", "column 'near_b': got inf"),
        ("a,1,a|d,0.1,0.2,0.5", "missing value", "column 'near_d' is missing, empty or NaN"),
    ],
)
def test_pair_features_that_cannot_be_used(tmp_path: Path, row: str, kind: str, detail: str) -> None:
    log, batch, report = read(write(tmp_path / "log.csv", PAIRS + row + "\n"), tmp_path, **LISTED)
    assert report.reasons == {kind: 1}
    assert report.examples[kind] == f"log.csv, line 5: {kind} ({detail})"
    assert batch.rounds == 3
    assert len(log.pools.sizes) == 3, "pools of rows that are not used are not entered"


def test_pair_columns_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", PAIRS)
    with pytest.raises(LogError, match=r"has no column 'far_\{arm\}' for any arm"):
        ColumnsReader(path, mapping=Mapping(**{**LISTED, "pair": {"x": "far_{arm}"}}))
    text = PAIRS.replace("near_c", "far_c")
    with pytest.raises(LogError, match=r"no round .*missing value \(column 'near_c' is missing"):
        read(write(path, text), tmp_path, **SIMPLE, pair={"near": "near_{arm}"})
    write(tmp_path / "more.csv", PAIRS.replace("near_c", "far_c"))
    with pytest.raises(LogError, match=r"more\.csv has no column 'near_c'"):
        ColumnsReader([write(path, PAIRS), tmp_path / "more.csv"], mapping=Mapping(**LISTED))


# ------------------------------------------------------------------ mappings and categories


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arm": "item"}, "does not say which column is the reward"),
        ({"arm": "item", "rewards": "click"}, r"no setting 'rewards' \(did you mean reward\?\)"),
        ({"arm": "", "reward": "r"}, "arm must be a text, got ''"),
        ({"arm": "r", "reward": "r"}, "arm and reward are both the column 'r'"),
        ({**SIMPLE, "time": 3}, "time must be a text, got 3"),
        ({**SIMPLE, "arms_file": 5}, "arms_file must be a text"),
        ({**SIMPLE, "user": "age"}, "user must be a list of column names, got 'age'"),
        ({**SIMPLE, "categorical": 5}, "list of column names"),
        ({**SIMPLE, "user": ["age", "age"]}, "names a column twice"),
        ({**SIMPLE, "user": ["click"]}, "the feature 'click' is the reward"),
        ({**SIMPLE, "user": ["constant"]}, "a column is called 'constant'"),
        ({**SIMPLE, "uniform": True, "propensity": "p"}, "both given"),
        ({**SIMPLE, "uniform": "yes"}, "true or false"),
        ({**SIMPLE, "pair": ["prices"]}, r"pair must name features and columns, as .*, got \['prices'\]"),
        ({**SIMPLE, "pair": {"near": "{arm}_{arm}"}}, "pair must name features"),
        ({**SIMPLE, "pair": {"price": "prices"}}, "pair must name features"),
    ],
)
def test_bad_mappings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mapping.of(settings)


def test_too_many_categories_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "WIDEST", 3)
    path = write(tmp_path / "x.csv", "item,click,os\n" + "".join(f"a,1,{i}\n" for i in range(4)))
    with pytest.raises(LogError, match=r"more than 3 categories, most of them 'os'"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, categorical=["os"]))
