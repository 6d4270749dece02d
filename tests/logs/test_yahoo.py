"""The reader of Yahoo click logs: the compiled walk against the plain parser, malformed lines, damaged files."""

from __future__ import annotations

import gzip
import math
import random
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybandits.logs import problems as reading
from hybandits.logs import unpacking
from hybandits.logs.problems import Problems, ReadError
from hybandits.logs.store import LogError, Tables, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import compiled as yahoo_walk
from hybandits.logs.yahoo import lines as yahoo_lines
from hybandits.logs.yahoo import reader as yahoo
from hybandits.logs.yahoo.lines import R6A, R6B, Malformed, parse_line
from hybandits.logs.yahoo.reader import YahooReader

A_POOL = b"|100120 2:0.300000 3:0.000500 4:0.080000 5:0.230000 6:0.389500 1:1.000000 |100528 1:1.000000"
A_LINE = (
    b"1241160900 100528 1 |user 2:0.101000 3:0.202000 4:0.050000 5:0.047000 6:0.600000 1:1.000000 " + A_POOL
)  # fmt: skip
B_LINE = b"1317513291 id-560620 0 |user 1 9 11 13 136 |id-552077 |id-560620 |id-9"


@contextmanager
def plain() -> Iterator[None]:
    """Within it the kernels are the plain Python functions."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (yahoo, yahoo_walk):
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with plain() if request.param == "plain" else nullcontext():
        yield request.param


class Round(NamedTuple):
    """A round with everything spelled out, to compare."""

    time: int
    pool: tuple[tuple[str, tuple[float, ...]], ...]
    chosen: int
    reward: float
    propensity: float
    user: tuple[float, ...]


class Found(NamedTuple):
    rounds: list[Round]
    kinds: Counter[str]
    lines: int


def read(paths: Any, *, strict: bool = False, **options: Any) -> tuple[list[Round], Problems]:
    reader = YahooReader(paths, **options)
    tables, problems = Tables(), Problems(strict=strict, shown=10**9)
    rounds = []
    told = 0

    def progress(read: int) -> None:
        nonlocal told
        assert read >= 0
        told += read

    for _, batch in reader.batches(tables, problems, progress):
        assert 0 < batch.rounds <= options.get("batch_rows", 65536)
        assert np.all(batch.place == -1)
        for i in range(batch.rounds):
            rows = np.split(tables.pools.rows, tables.pools.offsets[1:-1])[batch.pool[i]]
            pool = tuple((tables.names[row], tuple(tables.vectors[row].tolist())) for row in rows)
            rounds.append(
                Round(
                    int(batch.time[i]), pool, int(batch.chosen[i]), float(batch.reward[i]),
                    float(batch.propensity[i]), tuple(batch.user[i].tolist()),
                )
            )  # fmt: skip
    assert told == reader.size
    assert problems.lines == problems.rounds + problems.skipped
    assert problems.rounds == len(rounds)
    return rounds, problems


def expect(data: bytes, kind: str) -> tuple[list[Round], dict[int, str], int]:
    """Rounds, problems by line number, and lines, by the plain parser alone."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    rounds, wrong = [], {}
    for number, text in enumerate(lines, 1):
        try:
            line = parse_line(text, kind)
        except Malformed as problem:
            wrong[number] = problem.kind
        else:
            pool = tuple((article.id, tuple(article.vector)) for article in line.pool)
            rounds.append(Round(line.time, pool, line.shown, line.click, 1 / len(pool), tuple(line.user)))
    return rounds, wrong, len(lines)


def check(path: Path, data: bytes, kind: str, **options: Any) -> Problems:
    """The reader finds in a file what the plain parser finds in its text."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(YahooReader, "_detect", lambda self, path: kind)
        rounds, problems = read(path, **options)
    good, wrong, lines = expect(data, kind)
    assert rounds == good
    assert problems.lines == lines
    assert problems.kinds == Counter(wrong.values())
    for example in problems.examples:
        if example.line:
            assert wrong[example.line] == example.kind
    return problems


# ------------------------------------------------------------------ what a line means


def test_a_line_of_r6a() -> None:
    line = parse_line(A_LINE, R6A)
    assert line.time == 1241160900
    assert (line.shown, line.click) == (1, 1)
    assert line.user == [1.0, 0.101, 0.202, 0.05, 0.047, 0.6]
    assert line.pool == [
        ("100120", [1.0, 0.3, 0.0005, 0.08, 0.23, 0.3895]),
        ("100528", [1.0, 0, 0, 0, 0, 0]),
    ]


def test_a_line_of_r6b() -> None:
    line = parse_line(B_LINE, R6B)
    assert (line.shown, line.click, len(line.user)) == (1, 0, 136)
    assert np.flatnonzero(line.user).tolist() == [0, 8, 10, 12, 135]
    assert line.pool == [("id-552077", [1.0]), ("id-560620", [1.0]), ("id-9", [1.0])]


MALFORMED = [
    (b"", yahoo_lines.BLANK, ""),
    (b"  \t ", yahoo_lines.BLANK, ""),
    (b"\r", yahoo_lines.BLANK, ""),
    (b"x" * (yahoo_lines.LONGEST + 1), yahoo_lines.LONG, "262,145 bytes"),
    (A_LINE.replace(b"|user", b"|us\xc3\xa9r"), yahoo_lines.NOT_TEXT, ""),
    (A_LINE.replace(b" 1 ", b" 1\x00 "), yahoo_lines.NOT_TEXT, "x00"),
    (A_LINE.replace(b" 1 ", b" 1\r "), yahoo_lines.NOT_TEXT, ""),
    (b"time,article,click", yahoo_lines.NO_USER, "time,article"),
    (A_LINE.replace(b"|user", b"|users"), yahoo_lines.NO_USER, ""),
    (A_LINE.replace(b"|user", b"| user"), yahoo_lines.NO_USER, ""),
    (b"1241160900 100528 |user 1:1 |100528", yahoo_lines.FIELDS, "1241160900 100528"),
    (b"1241160900 100528 0 0 |user 1:1 |100528", yahoo_lines.FIELDS, ""),
    (A_LINE.replace(b"1241160900", b"12411x0900"), yahoo_lines.UNPARSABLE, "12411x0900"),
    (A_LINE.replace(b"1241160900", b"-1241160900"), yahoo_lines.UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1241160900000"), yahoo_lines.UNPARSABLE, "seconds"),
    (A_LINE.replace(b"1241160900", b"9" * 5000), yahoo_lines.UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1241160900.5"), yahoo_lines.UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1_241"), yahoo_lines.UNPARSABLE, "time"),
    (A_LINE.replace(b" 1 |", b" 2 |"), yahoo_lines.UNPARSABLE, "click '2'"),
    (A_LINE.replace(b" 1 |", b" 1.0 |"), yahoo_lines.UNPARSABLE, "click"),
    (A_LINE.replace(b"0.101000", b"nan"), yahoo_lines.UNPARSABLE, "2:nan"),
    (A_LINE.replace(b"0.101000", b"inf"), yahoo_lines.UNPARSABLE, "2:inf"),
    (A_LINE.replace(b"0.101000", b"1e999"), yahoo_lines.UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"1e21"), yahoo_lines.UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"1" * 25), yahoo_lines.UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"x.101000"), yahoo_lines.UNPARSABLE, "2:x.101000"),
    (A_LINE.replace(b"0.101000", b"0.10_1"), yahoo_lines.UNPARSABLE, ""),
    (A_LINE.replace(b"0.101000", b""), yahoo_lines.UNPARSABLE, "'2:'"),
    (A_LINE.replace(b"2:0.101000", b"2"), yahoo_lines.UNPARSABLE, "'2'"),
    (A_LINE.replace(b"2:0.3", b"2:0.3.0"), yahoo_lines.UNPARSABLE, ""),
    (A_LINE.replace(b"2:0.101000", b"7:0.101000"), yahoo_lines.KEY, "7:0.101"),
    (A_LINE.replace(b"2:0.101000", b"0:0.101000"), yahoo_lines.KEY, ""),
    (A_LINE.replace(b"2:0.101000", b"-2:0.101000"), yahoo_lines.KEY, ""),
    (A_LINE.replace(b"2:0.3", b"72:0.3"), yahoo_lines.KEY, ""),
    (A_LINE.replace(b"2:0.101000", b"3:0.101000"), yahoo_lines.TWICE, "3:0.202"),
    (A_LINE.replace(b"2:0.300000", b"3:0.300000"), yahoo_lines.TWICE, ""),
    (b"1241160900 100528 1 |user 1:1", yahoo_lines.NO_POOL, ""),
    (b"1241160900 100528 1 |user 1:1 |", yahoo_lines.NO_ID, ""),
    (A_LINE + b" |", yahoo_lines.NO_ID, ""),
    (A_LINE.replace(b"|100120 ", b"|"), yahoo_lines.NO_ID, "|2:0.3"),
    (A_LINE.replace(b"|100120", b"|100528"), yahoo_lines.REPEATED, "100528"),
    (A_LINE.replace(b" 100528 1", b" 100529 1"), yahoo_lines.NOT_SHOWN, "100529"),
    (B_LINE, yahoo_lines.UNPARSABLE, "'1'"),
]
MALFORMED_B = [
    (A_LINE, yahoo_lines.KEY, "2:0.101"),
    (B_LINE.replace(b" 9 ", b" 137 "), yahoo_lines.KEY, "137"),
    (B_LINE.replace(b" 9 ", b" 0 "), yahoo_lines.KEY, "0"),
    (B_LINE.replace(b" 9 ", b" 11 "), yahoo_lines.TWICE, "11"),
    (B_LINE.replace(b"|id-9", b"|id-9 1:1"), yahoo_lines.FIELDS, "1:1"),
    (B_LINE.replace(b"|id-9", b"|id-552077"), yahoo_lines.REPEATED, "id-552077"),
]


@pytest.mark.parametrize(("kind", "line", "what", "detail"), [
    *((R6A, *each) for each in MALFORMED), *((R6B, *each) for each in MALFORMED_B),
])  # fmt: skip
def test_what_is_wrong_with_a_line(kind: str, line: bytes, what: str, detail: str, tmp_path: Path) -> None:
    with pytest.raises(Malformed) as caught:
        parse_line(line, kind)
    assert caught.value.kind == what
    assert detail in caught.value.detail
    assert len(caught.value.detail) < 160
    good = A_LINE if kind == R6A else B_LINE
    problems = check(tmp_path / "log", b"\n".join([good, good, good, line, line, good, line, good]), kind)
    assert problems.kinds == {what: 3}
    assert [example.line for example in problems.examples][-1] == 7


@pytest.mark.parametrize("line", [
    A_LINE.replace(b"0.101000", b"1e-3"), A_LINE.replace(b"0.101000", b"-.5"), A_LINE.replace(b"0.101000", b"+1."),
    A_LINE.replace(b"0.101000", b"0.1234567890123456789"), A_LINE.replace(b"0.101000", b"123456789012345.6"),
    A_LINE.replace(b" ", b"  "), A_LINE.replace(b" ", b"\t"), A_LINE + b" ", b" " + A_LINE,
    A_LINE.replace(b"1 |user", b"1|user"), A_LINE.replace(b"1 |user", b"0 |user"), A_LINE.replace(b"1241160900", b"0"),
    A_LINE.replace(b"100528", b"a-long-id-with-more-than-14-letters"), A_LINE.replace(b"100528", b"14-letters-id-"),
    A_LINE.replace(b"100528", b"15-letters-id--"), A_LINE.replace(b" 2:0.101000", b""), A_LINE.replace(b"2:", b"02:"),
    b"1 a 0 |user |a", b"4102444800 a 0 |user 1:1 |b |a", A_LINE.replace(b"1241160900", b"0000000000001"),
])  # fmt: skip
def test_lines_in_unusual_spelling(line: bytes, tmp_path: Path, mode: str) -> None:
    data = b"\n".join([A_LINE, line, line, line, line, A_LINE, line])
    assert not check(tmp_path / "log", data, R6A).skipped
    assert not check(tmp_path / "log", data.replace(b"\n", b"\r\n"), R6A).skipped


@given(
    text=st.from_regex(r"[0-9]{1,16}(\.[0-9]{1,17})?", fullmatch=True) | st.from_regex(r"0\.[0-9]{6}", fullmatch=True)
)
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_python_to_the_bit(text: str) -> None:
    buf = np.frombuffer(f" 3:{text} |\n".encode(), np.uint8)
    for parse in (yahoo_walk.parse_memberships, yahoo_walk.parse_memberships.py_func):
        user = np.zeros(6)
        bar = parse(buf, 0, user)
        if sum(letter.isdigit() for letter in text) <= 15:
            assert bar == len(buf) - 2
            assert user[2].hex() == float(text).hex()
        else:
            assert bar == -1


# ------------------------------------------------------------------ the walk against the plain parser

numbers = st.floats(0, 1).map(lambda x: f"{x:.6f}") | st.sampled_from(
    ["1", "0.5", "1e-3", ".5", "-0.25", "nan", "7" * 20]
)
spaces = st.sampled_from([" "] * 12 + ["  ", "\t"])


@st.composite
def articles(draw: Any, kind: str) -> str:
    name = draw(st.sampled_from(["11", "12", "13", "id-1", "id-2", "much-longer-than-most"]))
    return name if kind == R6B else name + draw(features())


@st.composite
def features(draw: Any) -> str:
    keys = draw(st.sampled_from(["234561", "1", "", "123456", "21"]) | st.text("01234567", max_size=7))
    return "".join(f" {key}:{draw(numbers)}" for key in keys)


@st.composite
def logs(draw: Any, kind: str) -> bytes:
    """Lines that share a few pools, most of them well-formed; some bytes of them changed."""
    listed = st.lists(articles(kind), min_size=1, max_size=4, unique_by=lambda text: text.split()[0])
    pools = draw(st.lists(listed.map(" |".join), min_size=1, max_size=3))
    user = features() if kind == R6A else st.lists(st.integers(0, 137), max_size=4).map(
        lambda ids: "".join(f" {one}" for one in ids)
    )  # fmt: skip
    users = draw(st.lists(user, min_size=1, max_size=3))
    lines = []
    for _ in range(draw(st.integers(1, 12))):
        pool = draw(st.sampled_from(pools))
        shown = draw(st.sampled_from([part.split()[0] for part in pool.split(" |")] * 4 + ["99"]))
        parts = [str(draw(st.integers(0, 5_000_000_000))), shown, draw(st.sampled_from("0001"))]
        lines.append(draw(spaces).join(parts) + f" |user{draw(st.sampled_from(users))} |{pool}")
    text = bytearray(draw(st.sampled_from(["\n"] * 3 + ["\r\n"])).join(lines).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text) - 1))
        do = draw(st.sampled_from("cid"))
        byte = draw(st.sampled_from(b"\n\n\r |:.0123456789u\x00\xff\t") | st.integers(0, 255))
        if do == "c":
            text[at] = byte
        elif do == "i":
            text.insert(at, byte)
        elif len(text) > 1:
            del text[at]
    return bytes(text) + draw(st.sampled_from([b"", b"\n", b"\n\n"]))


@pytest.mark.parametrize("kind", [R6A, R6B])
@given(data=st.data())
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_walk_agrees_with_the_plain_parser(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text = data.draw(logs(kind))
    chunk = data.draw(st.sampled_from([1, 7, 64, 100, 1000, 1 << 18]))
    rows = data.draw(st.sampled_from([1, 3, 65536]))
    check(tmp_path / "log", text, kind, chunk_bytes=chunk, batch_rows=rows)


@pytest.mark.parametrize("kind", [R6A, R6B])
@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_walk_in_python_agrees_with_the_plain_parser(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    text = data.draw(logs(kind))
    with plain(), pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            for module in (yahoo, yahoo_walk):
                patch.setattr(module, "hash_bytes", lambda buf, at, n: 7)
        patch.setattr(yahoo._Book, "POOLS", 2)
        patch.setattr(yahoo._Book, "BYTES", 150)
        patch.setattr(yahoo._Book, "IDS", 5)
        check(tmp_path / "log", text, kind, chunk_bytes=data.draw(st.sampled_from([5, 1000])))


@pytest.mark.parametrize("kind", [R6A, R6B])
def test_mutations_of_a_made_log(kind: str, tmp_path: Path) -> None:
    """Thousands of changed bytes: never a crash, and every line accounted for as the plain parser says."""
    (path,) = SyntheticLog(rounds=400, seed=3, kind=kind, pool=5, change_every=40).write(tmp_path / "made")
    text = gzip.decompress(path.read_bytes())
    some = random.Random(5)
    for _ in range(15):
        data = bytearray(text)
        for _ in range(some.choice([1, 20, 300])):
            at = some.randrange(len(data))
            data[at : at + some.choice([0, 1, 1, 2])] = bytes(
                some.choices(b"\n |:.019\r\x00\xffu", k=some.choice([0, 1, 1]))
            )
        check(tmp_path / "log", bytes(data), kind, chunk_bytes=some.choice([100, 5000, 1 << 18]))


def test_books_that_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yahoo._Book, "POOLS", 4)
    monkeypatch.setattr(yahoo._Book, "IDS", 20)
    some = random.Random(1)
    lines = []
    for _ in range(3000):
        pool = some.sample(range(10, 17), some.choice([1, 2, 3]))
        listed = " |".join(f"{name} 2:0.{name} 1:1.0" for name in pool)
        lines += [f"5 {some.choice(pool)} 0 |user 1:1 |{listed}"] * some.choice([1, 3])
    assert not check(tmp_path / "log", "\n".join(lines).encode(), R6A).skipped


def test_a_pool_that_is_forgotten_is_not_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the pool of the line before are overwritten by another that ends like the next line's."""
    monkeypatch.setattr(yahoo._Book, "BYTES", 15)
    pools = ["a 1:1.00"] * 3 + ["12 2:1"] * 3 + ["11 1:1 |12 1:1"] * 2 + ["12 1:1"]
    lines = [f"5 {pool.split()[0] if pool[0] == 'a' else 12} 0 |user 1:1 |{pool}" for pool in pools]
    assert not check(tmp_path / "log", "\n".join(lines).encode(), R6A, chunk_bytes=20).skipped


def test_candidates_listed_twice_that_are_known_once(tmp_path: Path) -> None:
    pools = ["11 1:1 |12 1:1", "11 2:1 |12 1:1", "11 1:1|11 2:1", "11 1:1 |12 1:1|11 1:1 ", "11 1:1 |12 1:1"]
    lines = [f"5 11 0 |user 1:1 |{pool}" for pool in pools for _ in range(3)]
    problems = check(tmp_path / "log", "\n".join(lines).encode(), R6A)
    assert problems.kinds == {yahoo_lines.REPEATED: 6}


def test_a_list_is_taught_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taught = []
    teach = yahoo._Book.teach
    monkeypatch.setattr(yahoo._Book, "teach", lambda self, text, pool: (taught.append(text), teach(self, text, pool)))
    odd = A_LINE.replace(b"0.101000", b"1e-3")
    check(tmp_path / "log", b"\n".join([odd] * 50), R6A)
    assert len(taught) == 1


def test_over_long_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    for module in (yahoo, yahoo_lines):
        monkeypatch.setattr(module, "LONGEST", len(A_LINE) + 3)
    for extra in (2, 3, 4, 5, 300):
        long = A_LINE + b" " * extra
        for ending in (b"", b"\n", b"\n" + A_LINE):
            data = b"\n".join([A_LINE, A_LINE, A_LINE, long, A_LINE, long, long]) + ending
            for chunk in (10, 100, 10_000):
                problems = check(tmp_path / "log", data, R6A, chunk_bytes=chunk)
                assert problems.skipped == (3 if extra > 3 else 0)
    brief = A_LINE.replace(b" 3:0.202000", b"")
    for module in (yahoo, yahoo_lines):
        monkeypatch.setattr(module, "LONGEST", len(brief))
    problems = check(tmp_path / "log", b"\n".join([brief] * 3 + [A_LINE, brief, A_LINE]), R6A)
    assert problems.kinds == {yahoo_lines.LONG: 2}


# ------------------------------------------------------------------ files


def test_gzip_or_not_whatever_the_name(tmp_path: Path) -> None:
    data = b"\n".join([A_LINE] * 10)
    packed = gzip.compress(data)
    twice = gzip.compress(data[:300]) + gzip.compress(data[300:]) + bytes(20)
    found = []
    for name, content in {"a.gz": packed, "b": packed, "c.gz": data, "d": data, "e.gz": twice}.items():
        (tmp_path / name).write_bytes(content)
        rounds, problems = read(tmp_path / name)
        assert not problems.files
        found.append(rounds)
    assert all(rounds == found[0] for rounds in found)
    assert len(found[0]) == 10


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
    with pytest.raises(LogError, match=r"a is an R6A log and .*b an R6B log: read one kind at a time"):
        YahooReader(tmp_path)


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is not there: give"):
        YahooReader(tmp_path / "none")
    with pytest.raises(LogError, match=r"no log in .*: give files such as"):
        YahooReader(tmp_path)
    with pytest.raises(LogError, match="no log in an empty list"):
        YahooReader([])
    with pytest.raises(ValueError, match="batch_rows"):
        YahooReader(tmp_path, batch_rows=0)


def test_an_empty_file_among_others(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"")
    (tmp_path / "2").write_bytes(gzip.compress(b""))
    (tmp_path / "3").write_bytes(A_LINE)
    rounds, problems = read(tmp_path)
    assert len(rounds) == 1
    assert problems.files == {yahoo_lines.EMPTY: 2}
    with pytest.raises(ReadError, match="1: empty file"):
        read(tmp_path, strict=True)


@pytest.mark.parametrize("content", [
    b"\x89PNG\r\n\x1a\n" + random.Random(0).randbytes(300_000), b"time,article,click\n" + b"1,2,0\n" * 100_000,
    b"\x00" * 2_000_000, b"\n" * 100_000, gzip.compress(gzip.compress(random.Random(0).randbytes(100_000))),
])  # fmt: skip
def test_not_a_log_at_all(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    parse = yahoo_lines.parse_head

    def counted(line: bytes, kind: str) -> Any:
        nonlocal judged
        judged += 1
        return parse(line, kind)

    monkeypatch.setattr(yahoo, "parse_head", counted)
    (tmp_path / "log").write_bytes(content)
    rounds, problems = read(tmp_path)
    assert not rounds
    assert problems.files == {yahoo_lines.NOT_A_LOG: 1}
    assert problems.examples[0].kind == yahoo_lines.NOT_A_LOG
    assert "it begins" in str(problems.examples[0])
    if content.count(b"\n") > 50_000:  # counted in bulk, not one by one
        assert judged < 10_000
    with pytest.raises(ReadError, match="not a click log"):
        read(tmp_path, strict=True)
    with pytest.raises(LogError, match=r"no round could be read .*not a click log"):
        convert(YahooReader(tmp_path), tmp_path / "out", Problems())


def test_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 MB of a line without an end, and 50 MB of ordinary lines."""
    monkeypatch.setattr(yahoo._Book, "BYTES", 1 << 16)
    for content in (bytes(1 << 20), (A_LINE + b"\n") * 5000):
        (tmp_path / "log").write_bytes(gzip.compress(content, 1) * (50_000_000 // len(content)))
        reader = YahooReader(tmp_path / "log", batch_rows=1000)
        tracemalloc.start()
        for _ in reader.batches(Tables(), Problems(), lambda read: None):
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8_000_000


# ------------------------------------------------------------------ damage


@pytest.fixture(params=["isal", "gzip"])
def unpacker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_unpack", pytest.importorskip("isal.igzip") if request.param == "isal" else gzip)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    (path,) = SyntheticLog(rounds=700, seed=1).write(tmp_path_factory.mktemp("made"))
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
    assert problems.files == {reading.DAMAGED: 1}
    assert "it ends in the middle; what could be unpacked was read" in str(problems.examples[-1])
    assert problems.kinds == ({reading.CUT: 1} if left and not left.endswith(b"\n") else {})
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
    assert problems.files == {reading.DAMAGED: 1}


@pytest.mark.usefixtures("unpacker")
def test_garbage_behind_the_end(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(text) + b"garbage behind the end")
    rounds, problems = read(tmp_path)
    assert len(rounds) == 700
    assert problems.files == {reading.DAMAGED: 1}
    assert "copy it again" in str(problems.examples[-1])


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
        assert problems.files[reading.DAMAGED] == 1


def test_header_fields_of_gzip_are_skipped_by_the_salvage(text: bytes, tmp_path: Path) -> None:
    packed = gzip.compress(text)
    extra = b"\x03\x00abc" + b"name\x00" + b"comment\x00" + b"\x12\x34"
    whole = packed[:3] + bytes([2 | 4 | 8 | 16]) + packed[4:10] + extra + packed[10:]
    (tmp_path / "log.gz").write_bytes(whole)
    assert b"".join(unpacking._salvage(tmp_path / "log.gz", 5)) == text[5:]


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
            (yahoo_lines.NO_USER, 18), (yahoo_lines.NOT_SHOWN, 1001), (yahoo_lines.BLANK, 5000)
        ]  # fmt: skip


@pytest.mark.parametrize("kind", [R6A, R6B])
def test_converted(kind: str, tmp_path: Path) -> None:
    made = SyntheticLog(rounds=3000, seed=2, kind=kind)
    made.write(tmp_path / "raw", files=3)
    problems = Problems(strict=True)
    log = convert(YahooReader(tmp_path / "raw", batch_rows=100), tmp_path / "log", problems)
    assert log.rounds == problems.lines == 3000
    assert log.source_starts == [0, 1000, 2000]
    assert len(log.pools.sizes) == len(made.schedule)
    rounds, _ = read(tmp_path / "raw")
    batch = next(log.batches())
    assert batch.user.tolist() == [list(each.user) for each in rounds[: batch.rounds]]
    assert math.isclose(sum(b.reward.sum() for b in log.batches()), sum(each.reward for each in rounds))
    for name, vector in zip(log.names, log.vectors, strict=True):
        assert vector.tolist() == made.articles[name].tolist()
