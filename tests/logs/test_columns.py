"""A user's own log: what the columns mean, what becomes of bad rows, and that CSV and Parquet give the same log."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybandits.logs import unpacking
from hybandits.logs.columns import reader as columns
from hybandits.logs.columns import tabular as files
from hybandits.logs.columns.reader import ColumnsReader, Mapping
from hybandits.logs.problems import CUT, Problems, ReadError
from hybandits.logs.store import NO_PLACE, NO_TIME, Batch, Log, LogError, convert

LOG = """time,item,click,p,slot,shown,age,country
100,a,1,0.5,1,a|b,31,de
101.9,b,0,0.5,2,a|b,22.5,fr
2020-01-01T00:00:00Z,c,0,0.25,,"[""a"", ""b"", ""c""]",1e1,de
,a,1,1,3,c a,-4,it
"""

FULL = {
    "arm": "item", "reward": "click", "time": "time", "propensity": "p", "place": "slot", "candidates": "shown",
    "user": ["age", "country"], "categorical": ["country"],
}  # fmt: skip

SIMPLE = {"arm": "item", "reward": "click"}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(path: Any, tmp_path: Path, *, strict: bool = False, **mapping: Any) -> tuple[Log, Batch, Problems]:
    """Convert; check that the totals add up."""
    problems = Problems(strict=strict)
    seen: list[int] = []
    reader = ColumnsReader(path, mapping=Mapping(**mapping))
    out = tmp_path / f"log{len(list(tmp_path.glob('log*')))}"
    log = convert(reader, out, problems, seen.append)
    assert problems.lines == problems.rounds + problems.skipped
    assert problems.rounds == log.rounds
    assert sum(seen) == reader.size
    parts = list(log.batches())
    return log, Batch(*(np.concatenate(part) for part in zip(*parts, strict=True))), problems


def pools(log: Log) -> list[list[str]]:
    return [[log.names[i] for i in log.pools.rows[a:b]] for a, b in zip(*_bounds(log), strict=True)]


def _bounds(log: Log) -> tuple[np.ndarray, np.ndarray]:
    return log.pools.offsets[:-1], log.pools.offsets[1:]


def test_every_column_arrives(tmp_path: Path) -> None:
    log, batch, problems = read(write(tmp_path / "x.csv", LOG), tmp_path, **FULL)
    assert problems.skipped == 0
    assert log.about["kind"] == "columns"
    assert log.user == ["constant", "age", "country=fr", "country=it"]
    assert log.arm == ["constant"]
    assert batch.time.tolist() == [100, 101, 1577836800, NO_TIME]
    assert batch.reward.tolist() == [1, 0, 0, 1]
    assert batch.propensity.tolist() == [0.5, 0.5, 0.25, 1]
    assert batch.place.tolist() == [1, 2, NO_PLACE, 3]
    assert [pools(log)[i] for i in batch.pool] == [["a", "b"], ["a", "b"], ["a", "b", "c"], ["c", "a"]]
    assert batch.chosen.tolist() == [0, 1, 2, 1]
    assert batch.user.tolist() == [[1, 31, 0, 0], [1, 22.5, 1, 0], [1, 10, 0, 0], [1, -4, 0, 1]]


def test_all_arms_seen_are_candidates_unless_listed(tmp_path: Path) -> None:
    text = "item,click\nx,1\ny,0\nbad,\nx,0\n"
    log, batch, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, uniform=True)
    assert pools(log) == [["x", "y"]]  # an arm of bad rows only is none
    assert batch.propensity.tolist() == [0.5] * 3
    assert problems.kinds == {"missing value": 1}


def test_without_propensities_they_are_unknown(tmp_path: Path) -> None:
    _, batch, _ = read(write(tmp_path / "x.csv", "item,click\nx,1\n"), tmp_path, **SIMPLE)
    assert np.isnan(batch.propensity).all()
    assert batch.time.tolist() == [NO_TIME]
    assert batch.place.tolist() == [NO_PLACE]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_arms_of_a_file(tmp_path: Path, kind: str) -> None:
    arms = tmp_path / f"arms.{kind}"
    if kind == "csv":
        write(arms, "name,w,h\na,1,2\nb,3,4\n")
    else:
        pq.write_table(pa.table({"name": ["a", "b"], "w": [1, 3], "h": [2.0, 4.0]}), arms)
    path = write(tmp_path / "x.csv", "item,click\nb,1\nc,1\n")
    log, batch, problems = read(path, tmp_path, **SIMPLE, arms_file=arms, uniform=True)
    assert log.arm == ["constant", "w", "h"]
    assert log.vectors.tolist() == [[1, 1, 2], [1, 3, 4]]
    assert batch.chosen.tolist() == [1]
    assert batch.propensity.tolist() == [0.5]
    assert problems.kinds == {"arm not among the candidates": 1}


def test_some_features_of_the_arms_and_no_constant(tmp_path: Path) -> None:
    arms = write(tmp_path / "arms.csv", ",name,w,h\n0,a,x,2\n1,b,y,4\n")
    path = write(tmp_path / "x.csv", "item,click,age\nb,1,5\n")
    log, batch, _ = read(path, tmp_path, **SIMPLE, arms_file=arms, arm_features=["h"], user=["age"], constant=False)
    assert (log.arm, log.user) == (["h"], ["age"])
    assert log.vectors.tolist() == [[2], [4]]
    assert batch.user.tolist() == [[5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,w\n", "has no arms in it"),
        ("name,w\na,1\na,2\n", "has the arm 'a' twice"),
        ("name,w\na,1\nb,\n", r"line 3: missing value \(column 'w'"),
        ("name,w\na,1\nb\n", "line 3: wrong number of fields"),
        ("name,w\na,red\nb,blue\n", r"arm feature 'w' is not a column of numbers .*'red'.*arm_features"),
        ("name,constant\na,1\n", "two arm features are called 'constant'"),
    ],
)
def test_a_bad_file_of_arms_is_refused(tmp_path: Path, text: str, message: str) -> None:
    arms = write(tmp_path / "arms.csv", text)
    path = write(tmp_path / "x.csv", "item,click\na,1\n")
    with pytest.raises(LogError, match=message):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, arms_file=arms))


BAD = [
    ("1,x,0.5,a b,1", "unparsable number", "column 'click': got 'x'"),
    ("1,,0.5,a b,1", "missing value", "column 'click'"),
    ("1,nan,0.5,a b,1", "missing value", "column 'click'"),
    ("1,inf,0.5,a b,1", "number that is not finite", "column 'click': got inf"),
    ("1,1_0,0.5,a b,1", "unparsable number", "'1_0'"),
    ("1,1,0,a b,1", "propensity outside (0, 1]", "got 0.0"),
    ("1,1,1.01,a b,1", "propensity outside (0, 1]", "got 1.01"),
    ("1,1,-0.5,a b,1", "propensity outside (0, 1]", "got -0.5"),
    ("1,1,,a b,1", "missing value", "column 'p'"),
    ("1,1,0.5,b c,1", "arm not among the candidates", "got 'a'"),
    ("1,1,0.5,a zz,1", "candidate without features", "'zz' is not in"),
    ("1,1,0.5,a a,1", "unusable list of candidates", "twice"),
    ('1,1,0.5,"[1, ",1', "unusable list of candidates", "is none"),
    ("1,1,0.5,|,1", "unusable list of candidates", "no candidate"),
    ("1,1,0.5,,1", "missing value", "column 'shown'"),
    ("1,1,0.5,a b,", "missing value", "column 'age'"),
    ("1,1,0.5,a b,old", "unparsable number", "column 'age': got 'old'"),
    ("1,1,0.5,a b,-inf", "number that is not finite", "column 'age'"),
    ("soon,1,0.5,a b,1", "unparsable time", "column 'time': got 'soon'"),
    ("1700000000000,1,0.5,a b,1", "time out of range", "seconds are wanted"),
    ("1,1,0.5,a b", "wrong number of fields", "5 where the header has 6"),
    ("1,1,0.5,a b,1,1", "wrong number of fields", "7 where the header has 6"),
    ('1,1,0.5,"a b,1', "quote that is not closed", "got"),
]


@pytest.mark.parametrize(("row", "kind", "detail"), BAD)
@pytest.mark.parametrize("block", [24, 1 << 20])
def test_a_bad_row_costs_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, kind: str, detail: str, block: int
) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    good = "a,9,1,0.5,a b,3\n"
    arms = write(tmp_path / "arms.csv", "name,w\na,1\nb,2\nc,3\n")
    text = "item,time,click,p,shown,age\n" + good * 3 + "\n" + f"a,{row}\n" + good * 2
    mapping = {**SIMPLE, "time": "time", "propensity": "p", "candidates": "shown", "user": ["age"], "arms_file": arms}
    path = write(tmp_path / "x.csv", text)
    _, batch, problems = read(path, tmp_path, **mapping)
    assert batch.rounds == 5
    assert problems.kinds == {kind: 1}
    (example,) = problems.examples
    assert (example.file, example.line) == ("x.csv", 6)
    assert detail in example.detail
    with pytest.raises(ReadError, match=r"x\.csv, line 6"):
        read(path, tmp_path, strict=True, **mapping)


def test_places_are_small_whole_numbers(tmp_path: Path) -> None:
    text = "item,click,slot\na,1,0\na,1,127\na,1,128\na,1,1.5\na,1,-1\na,1,top\n"
    _, batch, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, place="slot")
    assert batch.place.tolist() == [0, 127]
    assert problems.kinds == {"unusable place": 3, "unparsable number": 1}


def test_a_row_is_counted_once_whatever_is_wrong_with_it(tmp_path: Path) -> None:
    text = "item,click,p\n,x,7\na,1,1\n"
    _, _, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, propensity="p")
    assert problems.kinds == {"missing value": 1}


def test_many_bad_rows_are_counted_by_kind(tmp_path: Path) -> None:
    text = "item,click\n" + "a,1\na,x\na,\n" * 50
    _, _, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert problems.kinds == {"unparsable number": 50, "missing value": 50}
    assert [example.line for example in problems.examples] == [3, 4, 6, 7, 9]


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
    monkeypatch.setattr(files, "BLOCK", block)
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
    monkeypatch.setattr(files, "BLOCK", block)
    text = 'item,note,click\na,"one\ntwo, ""three""\n\nfour",1\nb,x,?\n"c",y,0\n'
    log, batch, problems = read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE)
    assert pools(log) == [["a", "c"]]
    assert batch.reward.tolist() == [1, 0]
    assert [(example.line, example.kind) for example in problems.examples] == [(6, "unparsable number")]


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_stray_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(files, "BLOCK", block)
    monkeypatch.setattr(files, "SPAN", 3)
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


@pytest.mark.parametrize("text", ["item,click", "item,click\n", "item,click\na,x\nb,\n"])
@pytest.mark.parametrize("more", [{}, {"uniform": True}])
def test_a_log_without_rounds_is_refused(tmp_path: Path, text: str, more: dict[str, Any]) -> None:
    with pytest.raises(LogError, match="no round could be read"):
        read(write(tmp_path / "x.csv", text), tmp_path, **SIMPLE, **more)
    assert not list(tmp_path.glob("*log*"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        ColumnsReader(tmp_path / "x.csv", mapping=Mapping(**SIMPLE))
    with pytest.raises(LogError, match="has no log in it"):
        ColumnsReader(tmp_path, mapping=Mapping(**SIMPLE))
    with pytest.raises(LogError, match="no file is given"):
        ColumnsReader([], mapping=Mapping(**SIMPLE))


def test_a_damaged_gzip_file_is_used_up_to_the_damage(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = "".join(f"arm{random.integers(50)},{random.random()}\n" for _ in range(20_000))
    whole = gzip.compress(b"item,click\n" + rows.encode())
    path = write(tmp_path / "x.csv.gz", whole[: len(whole) // 2])
    problems = Problems()
    log = convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "log", problems)
    assert 5_000 < log.rounds < 15_000
    assert (problems.lines, problems.skipped) == (log.rounds + 1, 1)  # the line that is cut is not half read
    assert problems.kinds == {CUT: 1}
    assert problems.examples[0].line == log.rounds + 2
    assert problems.files == {"damaged file": 1}
    assert "it ends in the middle" in str(problems.examples[1])
    with pytest.raises(ReadError, match=f"line {log.rounds + 2:,}: {CUT}"):
        read(path, tmp_path, strict=True, **SIMPLE)
    hurt = bytearray(whole)
    hurt[len(whole) // 2] ^= 0xFF
    write(path, bytes(hurt))
    problems = Problems()
    convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "log2", problems)
    assert problems.files == {"damaged file": 1}


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
        problems = Problems()
        with contextlib.suppress(LogError):  # not even the header is left
            log = convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / f"log{i}", problems)
            assert problems.lines == log.rounds + problems.skipped
            assert problems.files == {"damaged file": 1}


def test_the_line_that_is_cut_has_its_number(tmp_path: Path) -> None:
    for text, line in (("item,click\na,1\nb,0", 3), ("item,click\na,1\n\nb,0", 4), ("item,click\nb,0", 2)):
        path = write(tmp_path / "x.csv.gz", gzip.compress(text.encode())[:-8])
        with pytest.raises(ReadError, match=rf"line {line}: {CUT} \('b,0'\)"):
            read(path, tmp_path, strict=True, **SIMPLE)


def test_a_number_that_no_log_can_hold_costs_its_row_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,click,age\na,1,30\nb,0,1e300\na,0,-2e20\nb,1,1e20\n")
    log, _, problems = read(path, tmp_path, arm="item", reward="click", user=["age"])
    assert problems.kinds == {"number beyond 1e+20": 2}
    assert log.rounds == 2
    assert sum(batch.rounds for batch in log.batches()) == 2


def test_members_of_a_gzip_file_behind_one_that_is_damaged(tmp_path: Path) -> None:
    first, second = gzip.compress(b"item,click\na,1\nb,0\n"), gzip.compress(b"a,0\nb,1\n")
    assert read(write(tmp_path / "x.csv.gz", first + second), tmp_path, **SIMPLE)[2].files == {}
    hurt = bytearray(first)
    hurt[-6] ^= 1
    problems = Problems()
    path = write(tmp_path / "x.csv.gz", bytes(hurt) + second)
    assert convert(ColumnsReader(path, mapping=Mapping(**SIMPLE)), tmp_path / "two", problems).rounds == 4
    assert "what could be unpacked was read" in str(problems.examples[0])


def test_damaged_arms_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "arms.csv.gz", gzip.compress(b"item,size\na,1\nb,2")[:-8])
    with pytest.raises(LogError, match=r"arms.csv.gz is damaged at line 3: make it again"):
        columns.arm_rows(files.open_table(path), "item", ["size"])


def test_a_damaged_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"item": ["a"] * 100, "click": [1.0] * 100}), path)
    write(path, path.read_bytes()[:-20])
    with pytest.raises(LogError, match="not a whole Parquet file"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))


def test_no_line_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 100)
    monkeypatch.setattr(files, "LONGEST", 1000)
    with pytest.raises(LogError, match="no line end within 1,000 bytes"):
        ColumnsReader(write(tmp_path / "x.csv", b"x" * 5000), mapping=Mapping(**SIMPLE))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"user": ["item"]}, "known before the arm is shown"),
        ({"arms_file": 5}, "name of a file"),
        ({"categorical": 5}, "list of names"),
        ({"constant": "no"}, "true or false"),
        ({"uniform": "yes"}, "true or false"),
    ],
)
def test_mappings_that_make_no_sense(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mapping.of({"arm": "item", "reward": "click", **wrong})


def test_several_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder / "2.csv", "item,click\nb,1\n,\n")
    write(folder / "1.csv", "click,item\n0,a\n")
    write(folder / "notes.txt", "nothing")
    log, batch, problems = read(folder, tmp_path, **SIMPLE)
    assert pools(log) == [["a", "b"]]
    assert batch.reward.tolist() == [0, 1]
    assert problems.sources == [
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arm": "item"}, "does not say which column is the reward"),
        ({"arm": "item", "rewards": "click"}, r"no 'rewards' \(did you mean reward\?\)"),
        ({"arm": "", "reward": "r"}, "arm must be the name of a column, got ''"),
        ({"arm": "r", "reward": "r"}, "arm and reward are both the column 'r'"),
        ({**SIMPLE, "user": "age"}, "user must be a list of names of columns, got 'age'"),
        ({**SIMPLE, "user": ["age", "age"]}, "names the column 'age' twice"),
        ({**SIMPLE, "user": ["click"]}, "names the reward 'click'"),
        ({**SIMPLE, "user": ["constant"]}, "a column is called 'constant'"),
        ({**SIMPLE, "constant": False}, "there are no user features"),
        ({**SIMPLE, "uniform": True, "propensity": "p"}, "both given"),
        ({**SIMPLE, "arm_id": "name"}, "arms_file, which is missing"),
        ({**SIMPLE, "separator": ""}, "separator must be"),
        ({**SIMPLE, "time": 3}, "time must be the name of a column, got 3"),
    ],
)
def test_bad_mappings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mapping.of(settings)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,Click,a,a\nx,1,2,3\n")
    with pytest.raises(
        LogError, match=r"'click', which .*x.csv has not \(did you mean Click\?\): its columns are 'item', "
    ):
        ColumnsReader(path, mapping=Mapping(**SIMPLE))
    with pytest.raises(LogError, match="has 2 columns called 'a'"):
        ColumnsReader(path, mapping=Mapping(arm="item", reward="Click", user=["a"]))


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


def test_types_that_cannot_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    day = pa.array([0], pa.date32())
    pq.write_table(pa.table({"item": ["a"], "click": [1], "day": day, "many": [[1, 2]], "deep": [[["a"]]]}), path)
    for wrong in ({"user": ["day"]}, {"user": ["many"]}):
        with pytest.raises(LogError, match="numbers are wanted"):
            ColumnsReader(path, mapping=Mapping(**SIMPLE, **wrong))
    for wrong in ({"arm": "many", "reward": "click"}, {**SIMPLE, "candidates": "deep"}):
        with pytest.raises(LogError, match="text or numbers are wanted"):
            read(path, tmp_path, **wrong)


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
    assert pools(log) == [["3", "4"], ["4"]]
    assert batch.chosen.tolist() == [0, 0]
    assert batch.user.tolist() == [[1, 1, 1, 0], [1, 2, 2, 1]]
    assert batch.reward.tolist() == [1, 0]
    assert problems.examples[0].line == 3


def test_lists_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    shown = [["red shoe"], [], None, ["red shoe", None], ["hat", "red shoe"]]
    pq.write_table(pa.table({"item": ["red shoe"] * 5, "click": [1] * 5, "shown": shown}), path)
    log, batch, problems = read(path, tmp_path, **SIMPLE, candidates="shown")
    assert pools(log) == [["red shoe"], ["hat", "red shoe"]]
    assert batch.chosen.tolist() == [0, 1]
    assert [example.line for example in problems.examples] == [2, 3, 4]


def test_rare_categories_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "WIDEST", 3)
    cells = ["x,1", "x,2", "y,1", "y,3", "z,1", "other,4"]
    path = write(tmp_path / "x.csv", "item,click,c,d\n" + "".join(f"a,1,{cell}\n" for cell in cells))
    log, batch, _ = read(path, tmp_path, **SIMPLE, categorical=["c", "d"])
    assert log.user == ["constant", "c=y", "c=other", "d=other"]
    assert batch.user[:, 1:].tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1]]
    monkeypatch.setattr(columns, "DISTINCT", 3)
    with pytest.raises(LogError, match="more than 3 different values"):
        ColumnsReader(path, mapping=Mapping(**SIMPLE, categorical=["d"]))


def test_without_a_constant_all_categories_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,click,c\na,1,x\na,1,y\n")
    reader = ColumnsReader(path, mapping=Mapping(**SIMPLE, categorical=["c"], constant=False))
    assert reader.user == ["c=x", "c=y"]
    assert reader.binary_user
    assert reader.arm == []


names = st.sampled_from(["a", "b", "c", "d d", "é", "7", 'q"t', "x,y"])
values = st.floats(-1e6, 1e6) | st.integers(-1000, 1000).map(float)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        shown = draw(st.lists(names, unique=True, min_size=1, max_size=5))
        rows.append(
            {
                "item": draw(st.sampled_from(shown) | names | st.none()),
                "click": draw(values | st.none() | st.just(float("inf"))),
                "p": draw(st.floats(0.01, 1) | st.sampled_from([0.0, 2.0, None])),
                "t": draw(st.integers(-(10**9), 10**10) | st.none()),
                "slot": draw(st.integers(-1, 130) | st.none()),
                "shown": draw(st.just(shown) | st.just(shown + shown[:1]) | st.none()),
                "age": draw(values | st.none()),
                "os": draw(names | st.none()),
            }
        )
    return rows


MAPPED = {
    "arm": "item", "reward": "click", "propensity": "p", "time": "t", "place": "slot", "user": ["age"],
    "categorical": ["os"],
}  # fmt: skip


@given(rows=tables(), listed=st.booleans(), block=st.sampled_from([16, 100, 1 << 20]), many=st.sampled_from([2, 1000]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_csv_and_parquet_give_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], listed: bool, block: int, many: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("same")
    mapping = {**MAPPED, "candidates": "shown"} if listed else MAPPED
    types = {
        "item": pa.string(),
        "os": pa.string(),
        "shown": pa.list_(pa.string()),
        "t": pa.int64(),
        "slot": pa.int16(),
    }
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "x.parquet")
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(rows[0])
        for row in rows:
            cells = {**row, "shown": None if row["shown"] is None else json.dumps(row["shown"])}
            writer.writerow("" if cell is None else cell for cell in cells.values())
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK", block)
        patch.setattr(files, "ROWS", many)
        for name in ("x.csv", "x.parquet"):
            if any(usable(row, listed) for row in rows):
                found.append(read(tmp_path / name, tmp_path, **mapping))
            else:
                with pytest.raises(LogError, match=r"no round|not a column of numbers"):
                    read(tmp_path / name, tmp_path, **mapping)
    if not found:
        return
    (log1, batch1, problems1), (log2, batch2, problems2) = found
    assert (log1.user, log1.arm, log1.names, pools(log1)) == (log2.user, log2.arm, log2.names, pools(log2))
    for mine, theirs in zip(batch1, batch2, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert problems1.kinds == problems2.kinds
    assert [example.line - 1 for example in problems1.examples] == [example.line for example in problems2.examples]
    good = [row for row in rows if usable(row, listed)]
    assert batch1.reward.tolist() == [row["click"] for row in good]
    rows_of = log1.pools.rows[log1.pools.offsets[batch1.pool] + batch1.chosen]
    assert [log1.names[i] for i in rows_of] == [row["item"] for row in good]


def usable(row: dict[str, Any], listed: bool) -> bool:
    """What a good row is, said plainly."""
    if None in (row["item"], row["click"], row["p"], row["age"], row["os"]) or row["click"] == float("inf"):
        return False
    if not 0 < row["p"] <= 1 or (row["slot"] is not None and not 0 <= row["slot"] <= 127):
        return False
    shown = row["shown"]
    return not listed or (shown is not None and len(set(shown)) == len(shown) and row["item"] in shown)


@given(data=st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_rubbish_is_refused_or_counted(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    tmp_path = tmp_path_factory.mktemp("rubbish")
    path = write(tmp_path / "x.csv", b"item,click,note\na,1,x\n" + data)
    read(path, tmp_path, **SIMPLE)


@given(text=st.text(alphabet='ab1,"\n\r ', max_size=80), block=st.sampled_from([16, 33, 1 << 20]))
@settings(max_examples=100, deadline=None)
def test_where_blocks_end_makes_no_difference(tmp_path_factory: pytest.TempPathFactory, text: str, block: int) -> None:
    tmp_path = tmp_path_factory.mktemp("blocks")
    path = write(tmp_path / "x.csv", "item,click\na,1\n" + text)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for size in (block, 1 << 22):
            patch.setattr(files, "BLOCK", size)
            log, batch, problems = read(path, tmp_path, **SIMPLE)
            rows = [column.tolist() for column in batch[1:4]]
            found.append((log.names, rows, problems.kinds, problems.examples, problems.lines))
    assert found[0] == found[1]
