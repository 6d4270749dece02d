"""What a line of Yahoo's click logs means, and what is wrong with a malformed one; the reader agrees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hybandits.logs.yahoo.lines import (
    BLANK,
    FIELDS,
    KEY,
    LONG,
    LONGEST,
    NO_ID,
    NO_POOL,
    NO_USER,
    NOT_SHOWN,
    NOT_TEXT,
    R6A,
    R6B,
    REPEATED,
    TWICE,
    UNPARSABLE,
    Malformed,
    kind_of,
    parse_line,
)  # fmt: skip

from tests.support.yahoo_logs import A_LINE, B_LINE, check


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
    (b"", BLANK, ""),
    (b"  \t ", BLANK, ""),
    (b"\r", BLANK, ""),
    (b"x" * (LONGEST + 1), LONG, "262,145 bytes"),
    (A_LINE.replace(b"|user", b"|us\xc3\xa9r"), NOT_TEXT, ""),
    (A_LINE.replace(b" 1 ", b" 1\x00 "), NOT_TEXT, "x00"),
    (A_LINE.replace(b" 1 ", b" 1\r "), NOT_TEXT, ""),
    (b"time,article,click", NO_USER, "time,article"),
    (A_LINE.replace(b"|user", b"|users"), NO_USER, ""),
    (A_LINE.replace(b"|user", b"| user"), NO_USER, ""),
    (b"1241160900 100528 |user 1:1 |100528", FIELDS, "1241160900 100528"),
    (b"1241160900 100528 0 0 |user 1:1 |100528", FIELDS, ""),
    (A_LINE.replace(b"1241160900", b"12411x0900"), UNPARSABLE, "12411x0900"),
    (A_LINE.replace(b"1241160900", b"-1241160900"), UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1241160900000"), UNPARSABLE, "seconds"),
    (A_LINE.replace(b"1241160900", b"9" * 5000), UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1241160900.5"), UNPARSABLE, "time"),
    (A_LINE.replace(b"1241160900", b"1_241"), UNPARSABLE, "time"),
    (A_LINE.replace(b" 1 |", b" 2 |"), UNPARSABLE, "click '2'"),
    (A_LINE.replace(b" 1 |", b" 1.0 |"), UNPARSABLE, "click"),
    (A_LINE.replace(b"0.101000", b"nan"), UNPARSABLE, "2:nan"),
    (A_LINE.replace(b"0.101000", b"inf"), UNPARSABLE, "2:inf"),
    (A_LINE.replace(b"0.101000", b"1e999"), UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"1e21"), UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"1" * 25), UNPARSABLE, "too large"),
    (A_LINE.replace(b"0.101000", b"x.101000"), UNPARSABLE, "2:x.101000"),
    (A_LINE.replace(b"0.101000", b"0.10_1"), UNPARSABLE, ""),
    (A_LINE.replace(b"0.101000", b""), UNPARSABLE, "'2:'"),
    (A_LINE.replace(b"2:0.101000", b"2"), UNPARSABLE, "'2'"),
    (A_LINE.replace(b"2:0.3", b"2:0.3.0"), UNPARSABLE, ""),
    (A_LINE.replace(b"2:0.101000", b"7:0.101000"), KEY, "7:0.101"),
    (A_LINE.replace(b"2:0.101000", b"0:0.101000"), KEY, ""),
    (A_LINE.replace(b"2:0.101000", b"-2:0.101000"), KEY, ""),
    (A_LINE.replace(b"2:0.3", b"72:0.3"), KEY, ""),
    (A_LINE.replace(b"2:0.101000", b"3:0.101000"), TWICE, "3:0.202"),
    (A_LINE.replace(b"2:0.300000", b"3:0.300000"), TWICE, ""),
    (b"1241160900 100528 1 |user 1:1", NO_POOL, ""),
    (b"1241160900 100528 1 |user 1:1 |", NO_ID, ""),
    (A_LINE + b" |", NO_ID, ""),
    (A_LINE.replace(b"|100120 ", b"|"), NO_ID, "|2:0.3"),
    (A_LINE.replace(b"|100120", b"|100528"), REPEATED, "100528"),
    (A_LINE.replace(b" 100528 1", b" 100529 1"), NOT_SHOWN, "100529"),
    (B_LINE, UNPARSABLE, "'1'"),
]

MALFORMED_B = [
    (A_LINE, KEY, "2:0.101"),
    (B_LINE.replace(b" 9 ", b" 137 "), KEY, "137"),
    (B_LINE.replace(b" 9 ", b" 0 "), KEY, "0"),
    (B_LINE.replace(b" 9 ", b" 11 "), TWICE, "11"),
    (B_LINE.replace(b"|id-9", b"|id-9 1:1"), FIELDS, "1:1"),
    (B_LINE.replace(b"|id-9", b"|id-552077"), REPEATED, "id-552077"),
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


@pytest.mark.parametrize(
    ("line", "kind"),
    [(A_LINE, R6A), (B_LINE, R6B), (b"5 a 0 |user |a", R6B), (b"5 a 0 |user 1:1 |a", R6A), (b"time,article", None)],
)
def test_the_kind_of_a_line(line: bytes, kind: str | None) -> None:
    assert kind_of(line) == kind
