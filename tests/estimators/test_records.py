"""Tables and rows of any kind give the same columns; what is no table is refused in one line."""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from hybandits.estimators.feature_columns import is_missing
from hybandits.estimators.records import columns_of, entry_of, is_frame, is_record, listed, record_of

ROWS = [{"age": 31, "land": "de"}, {"age": 52, "land": "fr"}]


class ColumnNotFoundError(Exception):
    """The error of polars."""


class PolarsLike:
    """As much of a polars DataFrame as is used: names, columns with __array__, an error of its own."""

    columns = ("age", "land")

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise ColumnNotFoundError(name)
        return np.array([row[name] for row in ROWS], object if name == "land" else None)

    def __len__(self) -> int:
        return len(ROWS)


def tables() -> dict[str, Any]:
    row = namedtuple("row", ["age", "land"])
    made = {
        "dicts": ROWS,
        "a generator": (each for each in ROWS),
        "named tuples": [row(31, "de"), row(52, "fr")],
        "columns": {"land": ["de", "fr"], "age": np.array([31, 52])},
        "by id": {"a17": ROWS[0], 4: ROWS[1]},
        "like polars": PolarsLike(),
        "structured": np.array([(31, "de"), (52, "fr")], [("age", float), ("land", "U2")]),
    }
    made["rows of a structured array"] = list(made["structured"])
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    query = "select column1 as age, column2 as land from (values (31, 'de'), (52, 'fr'))"
    made["rows of a database"] = connection.execute(query).fetchall()
    connection.close()
    return made


@pytest.mark.parametrize("kind", tables())
def test_tables_of_every_kind(kind: str) -> None:
    columns = columns_of("user", tables()[kind], ["age", "land"])
    assert listed("land", columns["land"]) == ["de", "fr"]
    assert listed("age", columns["age"]) == [31, 52]
    with pytest.raises(ValueError, match=r"the user( 0)? has no feature 'agee' \(did you mean age\?\): it has \["):
        columns_of("user", tables()[kind], ["land", "agee"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_their_rows(library: str) -> None:
    frame: Any = {"pandas": pandas, "polars": polars}[library].DataFrame({"age": [31, 52], "land": ["de", "fr"]})
    assert is_frame(frame)
    assert listed("land", columns_of("user", frame, ["land"])["land"]) == ["de", "fr"]
    with pytest.raises(ValueError, match="the user has no feature 'agee'"):
        columns_of("user", frame, ["agee"])
    row = frame.row(1, named=True) if library == "polars" else frame.iloc[1]
    assert entry_of("user", record_of("user", row), "age") == 52
    with pytest.raises(ValueError, match="the user has no feature 'agee'"):
        entry_of("user", row, "agee")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_large_integers_beside_gaps_stay_what_they_are(library: str) -> None:
    column: Any
    if library == "pandas":
        column = pandas.Series([2**60 + 1, None], dtype="Int64")
    else:
        column = polars.Series([2**60 + 1, None])
    values = listed("code", column)
    assert values[0] == 2**60 + 1
    assert is_missing(values[1])


def test_times_are_refused() -> None:
    for column in (polars.Series([0]).cast(polars.Date), pandas.Series(pandas.to_datetime(["2026-01-01"]))):
        with pytest.raises(TypeError, match=r"age holds times .*: turn them into numbers, such as hours, or into text"):
            listed("age", column)


def test_lazy_frames_are_refused() -> None:
    frame = polars.DataFrame({"age": [31]}).lazy()
    for attempt in (is_frame, lambda data: columns_of("user", data, ["age"])):
        with pytest.raises(TypeError, match=r"got a LazyFrame, which holds no values yet: pass frame.collect\(\)"):
            attempt(frame)


def test_tables_of_pyarrow() -> None:
    table = pytest.importorskip("pyarrow").table({"age": [31, None], "land": ["de", None]})
    columns = columns_of("user", table, ["age", "land"])
    assert listed("land", columns["land"]) == ["de", None]
    assert listed("age", columns["age"]) == [31, None]


def test_records() -> None:
    assert is_record({"age": 1})
    for odd in ("de", 3, [31, "de"], (31, "de"), np.ones(2), None, SimpleNamespace(age=3)):
        assert not is_record(odd)
        with pytest.raises(TypeError, match=r"the user is .*: pass a dict, or a row of a DataFrame, with the features"):
            record_of("user", odd)


def test_what_is_no_table_is_refused() -> None:
    for odd in ("de", 3, None):
        with pytest.raises(TypeError, match="users must be a DataFrame or a list of dicts, got"):
            columns_of("user", odd, ["age"])
    with pytest.raises(TypeError, match=r"arm feature 'age' is 31 \(int\), expected one value per arm: for one arm"):
        columns_of("arm", ROWS[0], ["age"])
    with pytest.raises(TypeError, match="the arm 1 is 7"):
        columns_of("arm", [ROWS[0], 7], ["age"])
    with pytest.raises(TypeError, match=r"seen holds times \(datetime64\[s\]\): turn them into numbers"):
        listed("seen", np.array(["2020-01-01"], "datetime64[s]"))
    with pytest.raises(ValueError, match=r"age must have one value per row, got shape \(2, 2\)"):
        listed("age", np.ones((2, 2)))


def test_other_errors_of_a_table_come_through() -> None:
    class Broken:
        columns = ("age",)

        def __len__(self) -> int:
            return 1

        def __getitem__(self, name: str) -> None:
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        columns_of("user", Broken(), ["age"])
