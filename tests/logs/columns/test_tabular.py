"""CSV and Parquet files as blocks of columns: oddities of real files, stray quotes, damage."""

from __future__ import annotations

import contextlib
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

from hybandits.logs import unpacking
from hybandits.logs.columns import ColumnsReader, Mapping, tabular
from hybandits.logs.report import CUT, ReadError, ReadReport
from hybandits.logs.store import LogError, convert
from tests.support.own_logs import FULL, LOG, SIMPLE, pools, read, write

ODDITIES = {
    "CRLF": LOG.replace("\n", "\r\n"),
    "CR": LOG.replace("\n", "\r"),
    "BOM": "\ufeff" + LOG,
    "no last line end": LOG.rstrip("\n"),
    "blank lines": "\n\r\n" + LOG.replace("\n", "\n\n"),
    "all quoted": "\n".join(
        ",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in csv.reader(io.StringIO(LOG))
    ),
    "blanks around cells": "\n".join(line if '"' in line else line.replace(",", " ,  ") for line in LOG.split("\n")),
    "a Python list": LOG.replace('""', "'"),
}


@pytest.mark.parametrize("name", ODDITIES)
@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("block", [16, 1 << 20])
def test_oddities_of_real_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, zipped: bool, block: int
) -> None:
    _, plain, _ = read(write(tmp_path / "plain.csv", LOG), tmp_path, **FULL)
    monkeypatch.setattr(tabular, "BLOCK", block)
    data = ODDITIES[name].encode()
    path = write(tmp_path / ("x.csv.gz" if zipped else "x.csv"), gzip.compress(data) if zipped else data)
    _, batch, problems = read(path, tmp_path, **FULL)
    assert problems.skipped == 0, problems.examples
    for mine, theirs in zip(batch, plain, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    text = "item,click\na,1\nb,0\n".replace(",", delimiter)
    _, batch, _ = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert batch.rounds == 2


@pytest.mark.parametrize("block", [16, 40, 1 << 20])
def test_line_breaks_in_quoted_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(tabular, "BLOCK", block)
    text = 'item,note,click\na,"one\ntwo, ""three""\n\nfour",1\nb,x,?\n"c",y,0\n'
    log, batch, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert pools(log) == [["a", "c"]]
    assert batch.reward.tolist() == [1, 0]
    assert [(example.line, example.kind) for example in problems.examples] == [(6, "unparsable number")]


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_stray_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(tabular, "BLOCK", block)
    monkeypatch.setattr(tabular, "SPAN", 3)
    lines = ['a,5" pipe,1', 'b,"open,1', "c,x,1", "d,x,1", "e,x,1", 'f,m"n,"1', "g,x,1", 'h,"open,1', "i,x,0"]
    text = "item,note,click\n" + "\n".join(lines) + "\n"
    log, _, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert pools(log) == [["a", "c", "d", "e", "f", "g", "i"]]
    assert [(example.line, example.kind) for example in problems.examples] == [
        (3, "quote that is not closed"), (9, "quote that is not closed"),
    ]  # fmt: skip


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    text = "item,note,click\nübel,grün,1\na,grün,1\n".encode("latin-1")
    log, _, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert pools(log) == [["a"]]  # in a column that is not used it does not matter
    assert problems.kinds == {"not UTF-8": 1}
    assert problems.examples[0].line == 2
    short = b"item,note,click\n\xff\xfe\na,x,1\n"
    _, _, problems = read(write(tmp_path / "y.csv", short), tmp_path, **SIMPLE)
    assert problems.kinds == {"wrong number of fields": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_utf16_is_refused(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "x.csv", LOG.encode(encoding))
    with pytest.raises(LogError, match="UTF-8"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ("\n\n \n", "has no header"), (gzip.compress(b"", mtime=0), "has no header")],
)
def test_empty_files_are_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(LogError, match=message):
        ColumnsReader(write(tmp_path / "x.csv", text), mapping=Mapping(**SIMPLE))


def test_a_damaged_gzip_file_is_used_up_to_the_damage(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = "".join(f"arm{random.integers(50)},{random.random()}\n" for _ in range(20_000))
    whole = gzip.compress(b"item,click\n" + rows.encode())
    path = write(tmp_path / "x.csv.gz", whole[: len(whole) // 2])
    problems = ReadReport()
    log = convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "log", problems)
    assert 5_000 < log.rounds < 15_000
    assert (problems.lines, problems.skipped) == (log.rounds + 1, 1)  # the line that is cut is not half read
    assert problems.kinds == {CUT: 1}
    assert problems.examples[0].line == log.rounds + 2
    assert problems.files == {"damaged file": 1}
    assert "it is cut short" in str(problems.examples[1])
    with pytest.raises(ReadError, match=f"line {log.rounds + 2:,}: {CUT}"):
        read(path, tmp_path, strict=True, **SIMPLE)
    hurt = bytearray(whole)
    hurt[len(whole) // 2] ^= 0xFF
    write(path, bytes(hurt))
    problems = ReadReport()
    convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "log2", problems)
    assert problems.files == {"damaged file": 1}


@pytest.mark.slow
@pytest.mark.parametrize("unpacker", ["isal.igzip", "gzip"])
def test_whatever_byte_of_a_gzip_file_is_wrong(tmp_path: Path, unpacker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_unpack", pytest.importorskip(unpacker))
    random = np.random.default_rng(1)
    rows = "".join(f"arm{random.integers(50)},{random.random()}\n" for _ in range(500))
    whole = gzip.compress(b"item,click\n" + rows.encode())
    for i, at in enumerate(random.choice(np.arange(10, len(whole)), 60, replace=False)):
        hurt = bytearray(whole)
        hurt[at] ^= 1 << random.integers(8)
        path = write(tmp_path / "x.csv.gz", bytes(hurt))
        problems = ReadReport()
        with contextlib.suppress(LogError):  # not even the header is left
            log = convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / f"log{i}", problems)
            assert problems.lines == log.rounds + problems.skipped
            assert problems.files == {"damaged file": 1}


def test_the_line_that_is_cut_has_its_number(tmp_path: Path) -> None:
    for text, line in (("item,click\na,1\nb,0", 3), ("item,click\na,1\n\nb,0", 4), ("item,click\nb,0", 2)):
        path = write(tmp_path / "x.csv.gz", gzip.compress(text.encode())[:-8])
        with pytest.raises(ReadError, match=rf"line {line}: {CUT} \('b,0'\)"):
            read(path, tmp_path, strict=True, **SIMPLE)


def test_members_of_a_gzip_file_behind_one_that_is_damaged(tmp_path: Path) -> None:
    first, second = gzip.compress(b"item,click\na,1\nb,0\n"), gzip.compress(b"a,0\nb,1\n")
    assert read(write(tmp_path / "x.csv.gz", first + second), tmp_path, **SIMPLE)[2].files == {}
    hurt = bytearray(first)
    hurt[-6] ^= 1
    problems = ReadReport()
    path = write(tmp_path / "x.csv.gz", bytes(hurt) + second)
    assert convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "two", problems).rounds == 4
    assert "what could be unpacked was read" in str(problems.examples[0])


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"item": ["a"] * 100, "click": [1.0] * 100}), path)
    write(path, path.read_bytes()[:-20])
    with pytest.raises(LogError, match="not a complete Parquet file"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))


def test_no_line_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "BLOCK", 100)
    monkeypatch.setattr(tabular, "LONGEST", 1000)
    with pytest.raises(LogError, match="no line end within 1,000 bytes"):
        ColumnsReader(write(tmp_path / "x.csv", b"x" * 5000), mapping=Mapping(**SIMPLE))


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,Click,a,a\nx,1,2,3\n")
    with pytest.raises(
        LogError, match=r"'click', but .*x.csv has no such column \(did you mean Click\?\): its columns are 'item', "
    ):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))
    with pytest.raises(LogError, match="has 2 columns called 'a'"):
        ColumnsReader(path, mapping=Mapping(arm="item", reward="Click", user=["a"]))


@pytest.mark.slow
@given(data=st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_rubbish_is_refused_or_counted(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    tmp_path = tmp_path_factory.mktemp("rubbish")
    path = write(tmp_path / "x.csv", b"item,click,note\na,1,x\n" + data)
    read(path, tmp_path, **SIMPLE)


@pytest.mark.slow
@given(text=st.text(alphabet='ab1,"\n\r ', max_size=80), block=st.sampled_from([16, 33, 1 << 20]))
@settings(max_examples=100, deadline=None)
def test_where_blocks_end_makes_no_difference(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    tmp_path = tmp_path_factory.mktemp("blocks")
    path = write(tmp_path / "x.csv", "item,click\na,1\n" + text)
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        for size in (block, 1 << 22):
            patch.setattr(tabular, "BLOCK", size)
            log, batch, problems = read(path, tmp_path, **SIMPLE)
            rows = [column.tolist() for column in batch[1:4]]
            outcomes.append((log.names, rows, problems.kinds, problems.examples, problems.lines))
    assert outcomes[0] == outcomes[1]


def test_blocks_have_the_wanted_columns_and_the_lines_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "a,b,c\n1,2,3\n\n4,5\n6,7,8\n")
    table = tabular.open_table(path)
    assert table.columns == ["a", "b", "c"]
    (block,) = table.blocks(["c", "a"])
    assert {name: column.to_pylist() for name, column in block.columns.items()} == {
        "c": [b"3", b"8"],
        "a": [b"1", b"6"],
    }
    assert block.lines.tolist() == [2, 5]
    assert block.faults == [(4, "wrong number of fields", "got 2, the header has 3")]
    assert block.read == path.stat().st_size
    pq.write_table(pa.table({"a": [1, 6], "c": [3, 8]}), tmp_path / "x.parquet")
    (block,) = tabular.open_table(tmp_path / "x.parquet").blocks(["c"])
    assert block.columns["c"].to_pylist() == [3, 8]
    assert block.lines.tolist() == [1, 2]


def test_tables_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.CSV", "a.parquet", "c.tsv.gz", "d.txt"):
        write(tmp_path / name, "x")
    assert [file.name for file in tabular.table_files(tmp_path).files] == ["a.parquet", "b.CSV", "c.tsv.gz"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(LogError, match=r"empty has no log in it: give a folder with files named \*.csv, "):
        tabular.table_files([tmp_path, tmp_path / "empty"])
