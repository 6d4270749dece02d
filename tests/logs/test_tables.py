"""CSV and Parquet files as blocks of rows: oddities of real files, and files that are refused."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybandits.logs import files, tables
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.store import LogError
from hybandits.logs.tables import Fault, Rows, open_table
from tests.support.own_logs import FULL, LOG, SIMPLE, read, write

ODDITIES = {
    "CRLF": LOG.replace("\n", "\r\n"),
    "BOM": "\ufeff" + LOG,
    "no last line end": LOG.rstrip("\n"),
    "blank lines": LOG.replace("\n", "\n\n"),
    "all quoted": "\n".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in csv.reader(io.StringIO(LOG))
    ),
    "blanks around cells": "\n".join(line if '"' in line else line.replace(",", " ,  ") for line in LOG.split("\n")),
    "tabs": "\n".join("\t".join(row) for row in csv.reader(io.StringIO(LOG))),
}


@pytest.mark.parametrize("name", ODDITIES)
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_oddities_of_real_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int) -> None:
    _, plain, _ = read(write(tmp_path / "plain.csv", LOG), tmp_path, **FULL)
    monkeypatch.setattr(tables, "BLOCK", block)
    _, batch, report = read(write(tmp_path / "x.csv.gz", gzip.compress(ODDITIES[name].encode())), tmp_path, **FULL)
    assert report.skipped == 0, report.examples
    for mine, theirs in zip(batch, plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n\n \n", "has no header in UTF-8"),
        (LOG.encode("utf-16"), "has no header in UTF-8"),
        (LOG.encode("utf-16-le"), "has no header in UTF-8"),
        (gzip.compress(b"item,click\n" + b"a,1\n" * 100)[:-9], "is damaged or cut short .*copy it again"),
        ("item,click\na,1\n\nübel,1\n".encode("latin-1"), r"line 4: b'.*' is not UTF-8: save the file as UTF-8"),
        (b'item,note,click\na,x,1\na,"one\ntwo",1\n', "line 3: a quote is not closed in .*: close it, and leave no"),
        (b'item,note,click\na,x,1\nb,"open,1\nc,y,1\nd,"shut,1\n', "line 3: a quote is not closed"),
        (b"item,click\na,1\rb,1\r", "line 2 and after: the lines are not CSV"),
        (b"PAR1 and more", "is damaged .*: write or copy it again"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(LogError, match=message):
        read(write(tmp_path / "x.csv", data), tmp_path, **SIMPLE)
    assert not list(tmp_path.glob("log*"))


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"item": ["a"] * 100, "click": [1.0] * 100}), path)
    write(path, path.read_bytes()[:-20])
    with pytest.raises(LogError, match=r"x.parquet is damaged .*: write or copy it again"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))


def test_no_line_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BLOCK", 100)
    monkeypatch.setattr(files, "LONGEST", 1000)
    with pytest.raises(LogError, match="no line end within 1,000 bytes"):
        read(write(tmp_path / "x.csv", b"item,click\n" + b"x" * 5000), tmp_path, **SIMPLE)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,Click,a,a\nx,1,2,3\n")
    with pytest.raises(LogError, match=r"x.csv has no column 'click' \(did you mean Click\?\): its columns are item, "):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))
    with pytest.raises(LogError, match="has 2 columns called 'a'"):
        ColumnsReader(path, mapping=Mapping(arm="item", reward="Click", user=["a"]))


@pytest.mark.slow
@given(text=st.text(alphabet='ab1,"\n\r ', max_size=80), block=st.sampled_from([16, 33]))
@settings(max_examples=50, deadline=None)
def test_where_blocks_end_makes_no_difference(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    """Also: whatever is in a file, it is refused or every line is counted."""
    tmp_path = tmp_path_factory.mktemp("blocks")
    path = write(tmp_path / "x.csv", "item,click\na,1\n" + text)
    outcomes: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        for size in (block, 1 << 22):
            patch.setattr(tables, "BLOCK", size)
            try:
                log, batch, report = read(path, tmp_path, **SIMPLE)
            except LogError:
                outcomes.append("refused")
            else:
                rows = [column.tolist() for column in batch[1:4]]
                outcomes.append((log.names, rows, report.reasons, report.examples, report.lines))
    assert outcomes[0] == outcomes[1] or "refused" in outcomes


def test_blocks_have_the_wanted_columns_and_the_lines_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b,c\n1,2,3\n\n4,5\n6,7,8\n")
    (rows,) = open_table(path).blocks(["c", "a"])
    assert {name: column.to_pylist() for name, column in rows.columns.items()} == {"c": ["3", "8"], "a": ["1", "6"]}
    assert rows.lines.tolist() == [2, 5]
    assert rows.faults() == [Fault(4, "wrong number of fields", "got 2, the header has 3")]
    pq.write_table(pa.table({"a": [1, 6], "c": [3, 8]}), tmp_path / "x.parquet")
    (rows,) = open_table(tmp_path / "x.parquet").blocks(["c"])
    assert rows.columns["c"].to_pylist() == [3, 8]
    assert rows.lines.tolist() == [1, 2]


# ------------------------------------------------------------------ cells


def rows_of(column: pa.Array) -> Rows:
    return Rows({"c": column}, np.arange(len(column)))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["1", " 2.5 ", "", "1e3", None]), [1, 2.5, np.nan, 1000, np.nan]),
        (pa.array(["True", "false", "nan", "+1"]), [1, 0, np.nan, 1]),
        (pa.array([True, None]), [1, np.nan]),
        (pa.array([1, None], pa.int8()), [1, np.nan]),
        (pa.array(["7"]).dictionary_encode(), [7]),
        (pa.array([1.5], pa.float32()), [1.5]),
    ],
)
def test_numbers(column: pa.Array, expected: list[float]) -> None:
    rows = rows_of(column)
    np.testing.assert_array_equal(rows.numbers("c", optional=True), expected)
    assert not rows.faults()
    assert len(rows_of(column).faults()) == 0
    with pytest.raises(LogError, match=r"column 'c' is of type .*: it should hold numbers"):
        rows_of(pa.array([[1.0]])).numbers("c")


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1577836800.9", "", "2020-01-01"]),
        pa.array(["2020-01-01T00:00:00Z", None, "2020-01-01 00:00:00.9+00:00"]),
        pa.array(["2020-01-01T01:00:00+01:00", None, "2020-01-01"]),
        pa.array([1577836800_900, None, 1577836800_000], pa.timestamp("ms")),
        pa.array([18262, None, 18262], pa.date32()),
        pa.array([1577836800.5, None, 1577836800]),
    ],
)
def test_seconds(column: pa.Array) -> None:
    rows = rows_of(column)
    assert rows.seconds("c").tolist() == [1577836800, tables.NO_TIME, 1577836800]
    assert not rows.faults()
