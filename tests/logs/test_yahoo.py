"""Yahoo's click logs: which files, what a line means and what is wrong with it, and the reader against the parser."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybandits.logs import yahoo
from hybandits.logs.report import ReadError, ReadReport
from hybandits.logs.store import LogError, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import R6A, R6B, Malformed, YahooReader, parse_line, parse_pool, parse_user
from tests.support.yahoo_logs import A_LINE, B_LINE, check, in_plain_python, read


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernels of the reader as they are, and as plain Python."""
    with in_plain_python() if request.param == "plain" else nullcontext():
        yield request.param


# ------------------------------------------------------------------ files


def test_gzip_or_not_whatever_the_name(tmp_path: Path) -> None:
    data = b"\n".join([A_LINE] * 10)
    packed = gzip.compress(data)
    twice = gzip.compress(data[:300]) + gzip.compress(data[300:]) + bytes(20)
    ways = []
    for name, content in {"a.gz": packed, "b": packed, "c.gz": data, "d": data, "e.gz": twice}.items():
        (tmp_path / name).write_bytes(content)
        ways.append(read(tmp_path / name)[0])
    assert all(rounds == ways[0] for rounds in ways)
    assert len(ways[0]) == 10


def test_folders_are_read_by_name(tmp_path: Path) -> None:
    names = ["v1_0.20090502.gz", "v1_0.20090501.gz", "a.log"]
    for i, name in enumerate(names):
        (tmp_path / name).write_bytes(A_LINE.replace(b"1241160900", b"%d" % i))
    others = (".hidden", "README", "readme.txt", "truth.json", "sums.md5", "x.part", "notes.md", "LICENSE.gz")
    for name in others:
        (tmp_path / name).write_bytes(b"nothing")
    (tmp_path / "folder").mkdir()
    assert set(YahooReader(tmp_path).ignored) == {str(tmp_path / name) for name in (*others, "folder")}
    rounds, report = read(tmp_path, strict=True)
    assert [each.time for each in rounds] == [2, 1, 0]
    assert [each["file"] for each in report.sources if "ignored" not in each] == [names[i] for i in (2, 1, 0)]
    assert {each["file"] for each in report.sources if "ignored" in each} == {*others, "folder"}
    subset, _ = read([tmp_path / names[0], str(tmp_path / names[1])])
    assert [each.time for each in subset] == [0, 1]
    with pytest.raises(LogError, match="a file is given twice"):
        YahooReader([tmp_path, tmp_path / names[0]])


def test_kinds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"junk\n" + A_LINE)
    (tmp_path / "b").write_bytes(B_LINE)
    one, other = YahooReader(tmp_path / "a"), YahooReader(tmp_path / "b")
    assert (one.kind, one.user, one.arm, one.binary_user) == (R6A, list("123456"), list("123456"), False)
    assert (other.kind, len(other.user), other.user[-1], other.arm) == (R6B, 136, "136", ["constant"])
    with pytest.raises(LogError, match=r"a is an R6A log, but .*b is an R6B log: read one kind at a time"):
        YahooReader(tmp_path)


# ------------------------------------------------------------------ lines


def test_a_line_of_r6a() -> None:
    line = parse_line(A_LINE, R6A)
    assert (line.time, line.article, line.click) == (1241160900, "100528", 1)
    assert line.user == [1.0, 0.101, 0.202, 0.05, 0.047, 0.6]
    assert parse_pool(line.pool, R6A) == [
        ("100120", [1.0, 0.3, 0.0005, 0.08, 0.23, 0.3895]),
        ("100528", [1.0, 0, 0, 0, 0, 0]),
    ]


def test_a_line_of_r6b() -> None:
    line = parse_line(B_LINE, R6B)
    assert (line.article, line.click, len(line.user)) == ("id-560620", 0, 136)
    assert np.flatnonzero(line.user).tolist() == [0, 8, 10, 12, 135]
    assert [name for name, _ in parse_pool(line.pool, R6B)] == ["id-552077", "id-560620", "id-9"]


MALFORMED = [
    (b"", "blank line"),
    (A_LINE.replace(b"|user", b"|us\xc3\xa9r"), "bytes that are not plain text"),
    (A_LINE.replace(b" 1 ", b" 1\x00 "), "bytes that are not plain text"),
    (A_LINE.replace(b"|100528", b"|100528\x0b"), "bytes that are not plain text"),
    (b"time,article,click", "no |user"),
    (A_LINE.replace(b"|user", b"|users"), "no |user"),
    (b"1241160900 100528 |user 1:1 |100528", "wrong number of fields"),
    (b"1241160900 100528 0 0 |user 1:1 |100528", "wrong number of fields"),
    (A_LINE.replace(b"1241160900", b"12411x0900"), "unparsable number"),
    (A_LINE.replace(b"1241160900", b"1241160900000"), "unparsable number"),
    (A_LINE.replace(b"1241160900", b"9" * 5000), "unparsable number"),
    (A_LINE.replace(b" 1 |", b" 2 |"), "unparsable number"),
    (A_LINE.replace(b"0.101000", b"nan"), "unparsable number"),
    (A_LINE.replace(b"0.101000", b"1e999"), "unparsable number"),
    (A_LINE.replace(b"0.101000", b"0.10_1"), "unparsable number"),
    (A_LINE.replace(b"2:0.101000", b"2"), "unparsable number"),
    (A_LINE.replace(b"2:0.3", b"2:0.3.0"), "unparsable number"),
    (A_LINE.replace(b"2:0.101000", b"7:0.101000"), "feature out of range"),
    (A_LINE.replace(b"2:0.3", b"72:0.3"), "feature out of range"),
    (A_LINE.replace(b"2:0.101000", b"3:0.0"), "feature given twice"),
    (A_LINE.replace(b"2:0.300000", b"3:0.300000"), "feature given twice"),
    (b"1241160900 100528 1 |user 1:1", "no candidates"),
    (b"1241160900 100528 1 |user 1:1 |", "candidate without an id"),
    (A_LINE + b" |", "candidate without an id"),
    (A_LINE.replace(b"|100120 ", b"|"), "candidate without an id"),
    (A_LINE.replace(b"|100120", b"|100528"), "candidate listed twice"),
    (A_LINE.replace(b" 100528 1", b" 100529 1"), "article shown is not a candidate"),
]

MALFORMED_B = [
    (A_LINE, "feature out of range"),
    (B_LINE.replace(b" 9 ", b" 137 "), "feature out of range"),
    (B_LINE.replace(b" 9 ", b" 0 "), "feature out of range"),
    (B_LINE.replace(b" 9 ", b" 11 "), "feature given twice"),
    (B_LINE.replace(b"|id-9", b"|id-9 1:1"), "wrong number of fields"),
    (B_LINE.replace(b"|id-9", b"|id-552077"), "candidate listed twice"),
]


@pytest.mark.parametrize(
    ("kind", "line", "reason"), [*((R6A, *each) for each in MALFORMED), *((R6B, *each) for each in MALFORMED_B)]
)
def test_what_is_wrong_with_a_line(kind: str, line: bytes, reason: str, tmp_path: Path) -> None:
    good = A_LINE if kind == R6A else B_LINE
    report = check(tmp_path / "log", b"\n".join([good, good, good, line, line, good, line, good]), kind)
    assert report.reasons == {reason: 3}
    assert len(report.examples[reason]) < 200
    if reason != "article shown is not a candidate":
        with pytest.raises(Malformed):
            parse_pool(parse_line(line, kind).pool, kind)


@pytest.mark.parametrize("line", [
    A_LINE.replace(b"0.101000", b"1e-3"), A_LINE.replace(b"0.101000", b"-.5"), A_LINE.replace(b"0.101000", b"+1."),
    A_LINE.replace(b"0.101000", b"0.1234567890123456789"), A_LINE.replace(b"0.101000", b"123456789012345.6"),
    A_LINE.replace(b" ", b"  "), A_LINE.replace(b" ", b"\t"), A_LINE + b" ", b" " + A_LINE,
    A_LINE.replace(b"1 |user", b"1|user"), A_LINE.replace(b"1 |user", b"0 |user"), A_LINE.replace(b"1241160900", b"0"),
    A_LINE.replace(b"100528", b"a-long-id-with-more-than-14-letters"), A_LINE.replace(b" 2:0.101000", b""),
    A_LINE.replace(b"2:", b"02:"), b"1 a 0 |user |a", b"9999999999 a 0 |user 1:1 |b |a",
])  # fmt: skip
def test_lines_in_unusual_spelling(line: bytes, tmp_path: Path, mode: str) -> None:
    data = b"\n".join([A_LINE, line, line, A_LINE, line])
    assert not check(tmp_path / "log", data, R6A).skipped
    assert not check(tmp_path / "log", data.replace(b"\n", b"\r\n"), R6A).skipped


# ------------------------------------------------------------------ the kernels against the parser


@given(
    text=st.from_regex(r"[0-9]{1,16}(\.[0-9]{1,17})?", fullmatch=True) | st.from_regex(r"0\.[0-9]{6}", fullmatch=True)
)
@settings(max_examples=150, deadline=None)
def test_numbers_are_those_of_python_to_the_bit(text: str) -> None:
    line = np.frombuffer(f" 3:{text} |\n".encode(), np.uint8)
    for parse in (parse_user, parse_user.py_func):
        user = np.zeros(6)
        bar = parse(line, 0, False, user)
        if sum(letter.isdigit() for letter in text) <= 15:
            assert bar == len(line) - 2
            assert user[2].hex() == float(text).hex()
        else:
            assert bar == -1


numbers = st.floats(0, 1).map(lambda x: f"{x:.6f}") | st.sampled_from(["1", "0.5", "1e-3", ".5", "nan", "7" * 20])
spaces = st.sampled_from([" "] * 12 + ["  ", "\t"])


@st.composite
def features(draw: Any) -> str:
    keys = draw(st.sampled_from(["234561", "1", "", "123456", "21"]) | st.text("01234567", max_size=7))
    return "".join(f" {key}:{draw(numbers)}" for key in keys)


@st.composite
def logs(draw: Any, kind: str) -> bytes:
    """Lines that share a few pools, most of them well-formed; some bytes of them changed."""
    names = st.sampled_from(["11", "12", "13", "id-1", "much-longer-than-most"])
    articles = names if kind == R6B else st.tuples(names, features()).map("".join)
    listed = st.lists(articles, min_size=1, max_size=4, unique_by=lambda text: text.split()[0])
    pools = draw(st.lists(listed.map(" |".join), min_size=1, max_size=3))
    user = features() if kind == R6A else st.lists(st.integers(0, 137), max_size=4).map(
        lambda ids: "".join(f" {one}" for one in ids)
    )  # fmt: skip
    users = draw(st.lists(user, min_size=1, max_size=3))
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        pool = draw(st.sampled_from(pools))
        shown = draw(st.sampled_from([part.split()[0] for part in pool.split(" |")] * 4 + ["99"]))
        parts = [str(draw(st.integers(0, 15_000_000_000))), shown, draw(st.sampled_from("0001"))]
        lines.append(draw(spaces).join(parts) + f" |user{draw(st.sampled_from(users))} |{pool}")
    text = bytearray(draw(st.sampled_from(["\n"] * 3 + ["\r\n"])).join(lines).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        byte = draw(st.sampled_from(b"\n\n\r |:.0123456789u\x00\xff\t") | st.integers(0, 255))
        text[at : at + draw(st.integers(0, 1))] = bytes([byte]) * draw(st.integers(0, 1))
        text = text or bytearray(b"x")
    return bytes(text) + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [R6A, R6B])
@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_reader_agrees_with_the_parser(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text = data.draw(logs(kind))
    with pytest.MonkeyPatch.context() as patch, nullcontext() if data.draw(st.booleans()) else in_plain_python():
        patch.setattr(yahoo, "ROWS", data.draw(st.sampled_from([1, 3, 2048])))
        patch.setattr(yahoo, "KNOWN", data.draw(st.sampled_from([1, 4096])))
        check(tmp_path / "log", text, kind, block=data.draw(st.sampled_from([1, 7, 64, 1000, 1 << 18])))


# ------------------------------------------------------------------ strict, and the whole way


def test_strict_stops_at_the_first_problem(tmp_path: Path) -> None:
    bad = A_LINE.replace(b" 1 |", b" 2 |")
    (tmp_path / "log").write_bytes(b"\n".join([A_LINE, A_LINE, A_LINE, b"", bad, A_LINE]))
    with pytest.raises(ReadError, match=r"log, line 4: blank line: leave out --strict"):
        read(tmp_path, strict=True)
    (tmp_path / "log").write_bytes(b"\n".join([A_LINE, A_LINE, bad, b"", A_LINE]))
    with pytest.raises(ReadError, match=r"log, line 3: unparsable number \(click '2', expected 0 or 1\)"):
        read(tmp_path, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [R6A, R6B])
def test_converted(kind: str, tmp_path: Path) -> None:
    synthetic = SyntheticLog(rounds=3000, seed=2, kind=kind)
    synthetic.write(tmp_path / "raw", files=3)
    report = ReadReport(strict=True)
    log = convert(YahooReader(tmp_path / "raw"), tmp_path / "log", report)
    assert log.rounds == report.lines == 3000
    assert log.source_starts == [0, 1000, 2000]
    assert len(log.pools.sizes) == len(synthetic.schedule)
    assert SyntheticLog(**log.about["synthetic"]) == synthetic
    rounds, _ = read(tmp_path / "raw")
    batch = next(log.batches())
    assert batch.user.tolist() == [list(each.user) for each in rounds[: batch.rounds]]
    assert [each.reward for each in rounds] == [r for b in log.batches() for r in b.reward.tolist()]
    for name, vector in zip(log.names, log.vectors, strict=True):
        assert vector.tolist() == synthetic.articles[str(name)].tolist()
    assert {type(name) for name in log.names} == {int if kind == "R6A" else str}
