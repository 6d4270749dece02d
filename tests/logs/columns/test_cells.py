"""Cells to values: times, types and lists of Parquet and CSV, and what becomes of cells that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hybandits.logs.columns.cells import Sheet, split_candidates
from hybandits.logs.columns.tabular import ColumnBlock

from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.store import NO_TIME, LogError
from tests.support.own_logs import SIMPLE, pools, read, write


def test_times_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    micros = np.array([-500_000, 1_999_999], "datetime64[us]")
    for i, (column, seconds) in enumerate(
        [
            (pa.array(micros), [-1, 1]),
            (pa.array(micros).cast(pa.timestamp("ns", "Europe/Berlin")), [-1, 1]),
            (pa.array([0, None], pa.date32()), [0, NO_TIME]),
            (pa.array([5, None], pa.int32()), [5, NO_TIME]),
            (pa.array([-0.5, 2.5]), [-1, 2]),
            (pa.array(["1970-01-01T00:00:00.123456789", "1970-01-01T01:00:01+01:00"]), [0, 1]),
            (pa.array(["7", "1970-01-02"]), [7, 86400]),
            (pa.nulls(2), [NO_TIME, NO_TIME]),
        ]
    ):
        pq.write_table(pa.table({"item": ["a", "a"], "click": [1, 0], "t": column}), path)
        assert read(path, tmp_path, **SIMPLE, time="t")[1].time.tolist() == seconds, i


def test_types_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table(
        {
            "item": pa.array([3.0, 4.0, None]),
            "click": pa.array([True, False, True]),
            "shown": pa.array([[3, 4], [4], [3]], pa.large_list(pa.int16())),
            "os": pa.array(["x", "y", "x"]).dictionary_encode(),
            "age": pa.array([1, 2, 3], pa.decimal128(5, 2)),
            "text": pa.array(["1", "2", "3"], pa.large_string()),
        }
    )
    pq.write_table(table, path)
    mapping = {**SIMPLE, "candidates": "shown", "user": ["age", "text", "os"], "categorical": ["os"]}
    log, batch, problems = read(path, tmp_path, **mapping)
    assert pools(log) == [[3, 4], [4]]
    assert batch.chosen.tolist() == [0, 0]
    assert batch.user.tolist() == [[1, 1, 1, 0], [1, 2, 2, 1]]
    assert batch.reward.tolist() == [1, 0]
    assert problems.examples[0].line == 3


def test_types_that_cannot_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    day = pa.array([0], pa.date32())
    pq.write_table(pa.table({"item": ["a"], "click": [1], "day": day, "many": [[1, 2]], "deep": [[["a"]]]}), path)
    for wrong in ({"user": ["day"]}, {"user": ["many"]}):
        with pytest.raises(LogError, match="should hold numbers"):
            ColumnsReader(path, mapping=Mapping(**SIMPLE, **wrong))
    for wrong in ({"arm": "many", "reward": "click"}, {**SIMPLE, "candidates": "deep"}):
        with pytest.raises(LogError, match="should hold text or numbers"):
            read(path, tmp_path, **wrong)


def test_lists_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    shown = [["red shoe"], [], None, ["red shoe", None], ["hat", "red shoe"]]
    pq.write_table(pa.table({"item": ["red shoe"] * 5, "click": [1] * 5, "shown": shown}), path)
    log, batch, problems = read(path, tmp_path, **SIMPLE, candidates="shown")
    assert pools(log) == [["red shoe"], ["hat", "red shoe"]]
    assert batch.chosen.tolist() == [0, 1]
    assert [example.line for example in problems.examples] == [2, 3, 4]


def test_places_are_small_whole_numbers(tmp_path: Path) -> None:
    text = "item,click,slot\na,1,0\na,1,127\na,1,128\na,1,1.5\na,1,-1\na,1,top\n"
    _, batch, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, place="slot")
    assert batch.place.tolist() == [0, 127]
    assert problems.kinds == {"unusable place": 3, "unparsable number": 1}


def test_a_number_that_no_log_can_hold_costs_its_row_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,click,age\na,1,30\nb,0,1e300\na,0,-2e20\nb,1,1e20\n")
    log, _, problems = read(path, tmp_path, arm="item", reward="click", user=["age"])
    assert problems.kinds == {"number beyond 1e+20": 2}
    assert log.rounds == 2
    assert sum(batch.rounds for batch in log.batches()) == 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_text_is_no_feature(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    table = pa.table({"item": ["a", "b"], "click": [1, 0], "os": ["mac", None], "n": ["?", "1"]})
    if kind == "csv":
        write(path, "item,click,os,n\na,1,mac,?\nb,0,,1\n")
    else:
        pq.write_table(table, path)
    with pytest.raises(LogError, match=r"user feature 'os' is not a column of numbers .*'mac'.* categorical"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, user=["os"]))
    assert read(path, tmp_path, **SIMPLE, user=["n"])[1].rounds == 1  # some are numbers: the others are bad cells


def sheet_of(**columns: Any) -> Sheet:
    block = {name: pa.array(cells) for name, cells in columns.items()}
    return Sheet(ColumnBlock(block, np.arange(2, 2 + len(next(iter(block.values())))), [], 0))


def test_the_first_fault_of_a_row_counts() -> None:
    sheet = sheet_of(a=["1", "x", "", "true"], b=["", "y", "2", " 3 "])
    assert sheet.numbers("a").tolist()[::3] == [1, 1]
    assert sheet.text("b").to_pylist() == [None, "y", "2", "3"]
    assert sheet.good.tolist() == [False, False, False, True]
    assert sheet.faults() == [
        (2, "missing value", "column 'b' is empty"),
        (3, "unparsable number", "column 'a': got 'x'"),
        (4, "missing value", "column 'a' is empty or NaN"),
    ]


def test_optional_cells_may_be_empty() -> None:
    sheet = sheet_of(a=["1", "", "null"], b=["2020-01-01", "", "7"])
    np.testing.assert_array_equal(sheet.numbers("a", optional=True), [1, np.nan, np.nan])
    assert sheet.seconds("b").tolist() == [1577836800, NO_TIME, 7]
    assert sheet.good.all()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a|b|c", ["a", "b", "c"]), ("a b", ["a", "b"]), ("a b|c", ["a b", "c"]), ('["a", 2, 3.0]', ["a", "2", "3"]),
        ("['a', 'b']", ["a", "b"]), ("a", ["a"]), (" a | b |", ["a", "b"]),
    ],
)  # fmt: skip
def test_lists_of_candidates(text: str, names: list[str]) -> None:
    assert split_candidates(text, "|") == names


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, ", "it starts like a list, but it is not one"), ("[1] or 2", "it is not one"),
        ("[]", "it has no candidates"), ("a|b|a", "it has 'a' twice"), ("[true]", "True is not the name of an arm"),
        ('[["a"]]', "is not the name of an arm"),
    ],
)  # fmt: skip
def test_what_is_not_a_list_of_candidates(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        split_candidates(text, "|")
