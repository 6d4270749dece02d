"""The reader of Yahoo's click logs: which files, malformed lines, damage, and the whole way to a converted log."""

from __future__ import annotations

import gzip
import json
import math
import random
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hybandits.logs.yahoo.known_pools import KnownPools
from hybandits.logs.yahoo.lines import BLANK, EMPTY, LONG, NO_USER, NOT_A_LOG, NOT_SHOWN, R6A, R6B

from hybandits.logs import unpacking
from hybandits.logs.report import CUT, DAMAGED, ReadError, ReadReport
from hybandits.logs.store import LogError, Tables, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import YahooReader, lines, reader
from tests.support.yahoo_logs import A_LINE, B_LINE, check, expect, read

# ------------------------------------------------------------------ files


def test_gzip_or_not_whatever_the_name(tmp_path: Path) -> None:
    data = b"\n".join([A_LINE] * 10)
    packed = gzip.compress(data)
    twice = gzip.compress(data[:300]) + gzip.compress(data[300:]) + bytes(20)
    ways = []
    for name, content in {"a.gz": packed, "b": packed, "c.gz": data, "d": data, "e.gz": twice}.items():
        (tmp_path / name).write_bytes(content)
        rounds, problems = read(tmp_path / name)
        assert not problems.files
        ways.append(rounds)
    assert all(rounds == ways[0] for rounds in ways)
    assert len(ways[0]) == 10


def test_folders_in_the_order_of_dates(tmp_path: Path) -> None:
    names = ["v1_0.20090503.gz", "a-2009-05-02", "z.20090501.gz", "no-date-b", "no-date-a.log"]
    for i, name in enumerate(names):
        (tmp_path / name).write_bytes(A_LINE.replace(b"1241160900", b"%d" % i))
    others = (".hidden", "README", "readme.txt", "truth.json", "sums.md5", "x.part", "notes.md", "LICENSE.gz")
    for name in others:
        (tmp_path / name).write_bytes(b"nothing")
    (tmp_path / "folder").mkdir()
    reader = YahooReader(tmp_path)
    assert set(reader.ignored) == {str(tmp_path / name) for name in (*others, "folder")}
    rounds, problems = read(tmp_path, strict=True)
    assert [each.time for each in rounds] == [2, 1, 0, 4, 3]
    assert [each["file"] for each in problems.sources if "ignored" not in each] == [names[i] for i in (2, 1, 0, 4, 3)]
    assert [each["lines"] for each in problems.sources if "ignored" not in each] == [1] * 5
    assert {each["file"] for each in problems.sources if "ignored" in each} == {*others, "folder"}
    some, _ = read([tmp_path / names[0], str(tmp_path / names[1]), tmp_path / names[0]])
    assert [each.time for each in some] == [1, 0]  # a file given twice is read once


def test_files_of_the_same_name(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "log").write_bytes(A_LINE)
    _, problems = read([tmp_path / "a", tmp_path / "b"])
    assert [each["file"] for each in problems.sources] == [str(tmp_path / name / "log") for name in "ab"]


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"junk\n" + A_LINE)
    (tmp_path / "b").write_bytes(B_LINE)
    one, other = YahooReader(tmp_path / "a"), YahooReader(tmp_path / "b")
    assert (one.kind, one.user, one.arm, one.binary_user) == (R6A, list("123456"), list("123456"), False)
    assert (other.kind, len(other.user), other.user[-1], other.arm) == (R6B, 136, "136", ["constant"])
    assert other.binary_user
    with pytest.raises(LogError, match=r"a is an R6A log, but .*b is an R6B log: read one kind at a time"):
        YahooReader(tmp_path)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="does not exist: give"):
        YahooReader(tmp_path / "none")
    with pytest.raises(LogError, match=r"there is no log in .*: give files such as"):
        YahooReader(tmp_path)
    with pytest.raises(LogError, match="no log is given"):
        YahooReader([])
    with pytest.raises(ValueError, match="batch_rows"):
        YahooReader(tmp_path, batch_rows=0)


def test_an_empty_file_among_others(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"")
    (tmp_path / "2").write_bytes(gzip.compress(b""))
    (tmp_path / "3").write_bytes(A_LINE)
    rounds, problems = read(tmp_path)
    assert len(rounds) == 1
    assert problems.files == {EMPTY: 2}
    with pytest.raises(ReadError, match="1: empty file"):
        read(tmp_path, strict=True)


@pytest.mark.parametrize("content", [
    b"\x89PNG\r\n\x1a\n" + random.Random(0).randbytes(300_000), b"time,article,click\n" + b"1,2,0\n" * 100_000,
    b"\x00" * 2_000_000, b"\n" * 100_000, gzip.compress(gzip.compress(random.Random(0).randbytes(100_000))),
], ids=["picture", "table", "zeros", "newlines", "packed twice"])  # fmt: skip
def test_not_a_log_at_all(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    parse = lines.parse_head

    def counted(line: bytes, kind: str) -> Any:
        nonlocal judged
        judged += 1
        return parse(line, kind)

    monkeypatch.setattr(reader, "parse_head", counted)
    (tmp_path / "log").write_bytes(content)
    rounds, problems = read(tmp_path)
    assert not rounds
    assert problems.files == {NOT_A_LOG: 1}
    assert problems.examples[0].kind == NOT_A_LOG
    assert "it begins" in str(problems.examples[0])
    if content.count(b"\n") > 50_000:  # counted in bulk, not one by one
        assert judged < 10_000
    with pytest.raises(ReadError, match="not a click log"):
        read(tmp_path, strict=True)
    with pytest.raises(LogError, match=r"no round could be read .*not a click log"):
        convert(YahooReader(tmp_path), tmp_path / "out", ReadReport())


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 MB of a line without an end, and 50 MB of ordinary lines."""
    monkeypatch.setattr(KnownPools, "BYTES", 1 << 16)
    for content in (bytes(1 << 20), (A_LINE + b"\n") * 5000):
        (tmp_path / "log").write_bytes(gzip.compress(content, 1) * (50_000_000 // len(content)))
        reader = YahooReader(tmp_path / "log", batch_rows=1000)
        tracemalloc.start()
        for _ in reader.batches(Tables(), ReadReport(), lambda read: None):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8_000_000


def test_over_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    for module in (reader, lines):
        monkeypatch.setattr(module, "LONGEST", len(A_LINE) + 3)
    for extra in (2, 3, 4, 5, 300):
        long = A_LINE + b" " * extra
        for ending in (b"", b"\n", b"\n" + A_LINE):
            data = b"\n".join([A_LINE, A_LINE, A_LINE, long, A_LINE, long, long]) + ending
            for chunk in (10, 100, 10_000):
                problems = check(tmp_path / "log", data, R6A, chunk_bytes=chunk)
                assert problems.skipped == (3 if extra > 3 else 0)
    brief = A_LINE.replace(b" 3:0.202000", b"")
    for module in (reader, lines):
        monkeypatch.setattr(module, "LONGEST", len(brief))
    problems = check(tmp_path / "log", b"\n".join([brief] * 3 + [A_LINE, brief, A_LINE]), R6A)
    assert problems.kinds == {LONG: 2}


# ------------------------------------------------------------------ damage


@pytest.fixture(params=["isal", "gzip"])
def unpacker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_unpack", pytest.importorskip("isal.igzip") if request.param == "isal" else gzip)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    (path,) = SyntheticLog(rounds=700, seed=1).write(tmp_path_factory.mktemp("synthetic"))
    return gzip.decompress(path.read_bytes())


@pytest.mark.usefixtures("unpacker")
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.77, 0.9999])
def test_truncated_gzip(text: bytes, share: float, tmp_path: Path) -> None:
    whole = gzip.compress(text, 6)
    cut = whole[: 15 + int(share * (len(whole) - 16))]
    (tmp_path / "log.gz").write_bytes(cut)
    rounds, problems = read(tmp_path)
    left = zlib.decompressobj(31).decompress(cut)
    good, _, _ = expect(left[: left.rfind(b"\n") + 1], R6A)
    assert rounds == good
    assert problems.files == {DAMAGED: 1}
    assert "it is cut short; what could be unpacked was read" in str(problems.examples[-1])
    assert problems.kinds == ({CUT: 1} if left and not left.endswith(b"\n") else {})
    assert problems.lines == left.count(b"\n") + bool(problems.kinds)
    with pytest.raises(ReadError, match=r"cut off|damaged"):
        read(tmp_path, strict=True)


@pytest.mark.usefixtures("unpacker")
def test_wrong_check_sum(text: bytes, tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(text))
    whole[-6] ^= 1
    (tmp_path / "log.gz").write_bytes(whole)
    rounds, problems = read(tmp_path)
    assert len(rounds) == 700
    assert problems.files == {DAMAGED: 1}


@pytest.mark.usefixtures("unpacker")
def test_garbage_behind_the_end(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(text) + b"garbage behind the end")
    rounds, problems = read(tmp_path)
    assert len(rounds) == 700
    assert problems.files == {DAMAGED: 1}
    assert "copy the file again" in str(problems.examples[-1])


@pytest.mark.slow
@pytest.mark.usefixtures("unpacker")
def test_corrupt_gzip(text: bytes, tmp_path: Path) -> None:
    """Whatever byte is changed: what comes before it is read, and the damage is told."""
    whole = gzip.compress(text, 6)
    some = random.Random(2)
    good, _, _ = expect(text, R6A)
    for at in some.sample(range(12, len(whole)), 100):
        broken = bytearray(whole)
        broken[at] ^= 1 << some.randrange(8)
        (tmp_path / "log.gz").write_bytes(broken)
        rounds, problems = read(tmp_path)
        before = zlib.decompressobj(31).decompress(whole[: max(at - 300, 12)])
        sure = before.count(b"\n")
        assert rounds[:sure] == good[:sure]
        assert problems.files[DAMAGED] == 1


# ------------------------------------------------------------------ strict, and the whole way


def test_strict_stops_at_the_first_problem(tmp_path: Path, mode: str) -> None:
    bad = A_LINE.replace(b" 1 |", b" 2 |")
    (tmp_path / "log").write_bytes(b"\n".join([A_LINE, A_LINE, A_LINE, b"", bad, A_LINE]))
    with pytest.raises(ReadError, match=r"log, line 4: blank line: leave out --strict"):
        read(tmp_path, strict=True)
    (tmp_path / "log").write_bytes(b"\n".join([A_LINE, A_LINE, bad, b"", A_LINE]))
    with pytest.raises(ReadError, match=r"log, line 3: unparsable number \(click '2', expected 0 or 1\)"):
        read(tmp_path, strict=True)


def test_examples_have_the_right_lines(tmp_path: Path) -> None:
    lines = [A_LINE] * 5000
    lines[17] = b"x"
    lines[1000] = A_LINE.replace(b" 100528 1", b" 5 1")
    lines[4999] = b""
    path = tmp_path / "log"
    for chunk in (1 << 18, 1000):
        problems = check(path, b"\n".join(lines) + b"\n", R6A, chunk_bytes=chunk, batch_rows=999)
        assert [(each.kind, each.line) for each in problems.examples] == [
            (NO_USER, 18), (NOT_SHOWN, 1001), (BLANK, 5000)
        ]  # fmt: skip


@pytest.mark.parametrize("kind", [R6A, R6B])
def test_converted(kind: str, tmp_path: Path) -> None:
    synthetic = SyntheticLog(rounds=3000, seed=2, kind=kind)
    synthetic.write(tmp_path / "raw", files=3)
    problems = ReadReport(strict=True)
    log = convert(YahooReader(tmp_path / "raw", batch_rows=100), tmp_path / "log", problems)
    assert log.rounds == problems.lines == 3000
    assert log.source_starts == [0, 1000, 2000]
    assert len(log.pools.sizes) == len(synthetic.schedule)
    rounds, _ = read(tmp_path / "raw")
    batch = next(log.batches())
    assert batch.user.tolist() == [list(each.user) for each in rounds[: batch.rounds]]
    assert math.isclose(sum(b.reward.sum() for b in log.batches()), sum(each.reward for each in rounds))
    for name, vector in zip(log.names, log.vectors, strict=True):
        assert vector.tolist() == synthetic.articles[str(name)].tolist()
    assert {type(name) for name in log.names} == {int if kind == "R6A" else str}


def test_a_synthetic_log_says_so_also_if_an_earlier_version_wrote_it(tmp_path: Path) -> None:
    SyntheticLog(rounds=20, seed=2).write(tmp_path)
    settings = YahooReader(tmp_path).about["synthetic"]
    assert SyntheticLog(**settings) == SyntheticLog(rounds=20, seed=2)
    truth = json.loads((tmp_path / "truth.json").read_text())
    (tmp_path / "truth.json").write_text(json.dumps({"made": truth["synthetic"]}))
    assert YahooReader(tmp_path).about["synthetic"] == settings
