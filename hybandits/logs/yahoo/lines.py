"""What a line of the click logs Yahoo! R6A and R6B means, or what is wrong with it."""

from __future__ import annotations

import re
from typing import NamedTuple

from hybandits.foundation.checks import short
from hybandits.logs.store import LARGEST

R6A, R6B = "R6A", "R6B"
USER_SIZE = {R6A: 6, R6B: 136}
ARM_NAMES = {R6A: [str(key) for key in range(1, 7)], R6B: ["constant"]}

LONGEST = 1 << 18
"""A line with more bytes is malformed and is not kept in memory."""

LATEST = 4_102_444_800
"""The largest time, in seconds since 1970: the year 2100."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

# What can be wrong with a line.
LONG = "over-long line"
BLANK = "blank line"
NOT_TEXT = "bytes that are not plain text"
NO_USER = "no |user"
FIELDS = "wrong number of fields"
UNPARSABLE = "unparsable number"
KEY = "feature out of range"
TWICE = "feature given twice"
NO_POOL = "no candidates"
NO_ID = "candidate without an id"
REPEATED = "candidate listed twice"
NOT_SHOWN = "article shown is not a candidate"

# What can be wrong with a file.
EMPTY = "empty file"
NOT_A_LOG = "not a click log"


class Malformed(Exception):  # noqa: N818 (a verdict on a line that is counted, not an error)
    """What is wrong with a line, and the text in question."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


class Article(NamedTuple):
    """A candidate with its features."""

    id: str
    vector: list[float]


class Line(NamedTuple):
    """A visit; `shown` is the place of the article shown in the pool."""

    time: int
    shown: int
    click: int
    user: list[float]
    pool: list[Article]


class Head(NamedTuple):
    """A line whose candidates have not been parsed yet."""

    time: int
    article: str
    click: int
    user: list[float]
    pool: str


def parse_line(line: bytes, kind: str) -> Line:
    """Parse a line without its newline; raises `Malformed`.

    >>> parse_line(b"1241160900 12 1 |user 2:0.25 1:1 |11 1:1 |12 2:0.5 1:1", "R6A").shown
    1
    """
    head = parse_head(line, kind)
    pool = parse_pool(head.pool, kind)
    return Line(head.time, find_shown(head.article, [article.id for article in pool]), head.click, head.user, pool)


def parse_head(line: bytes, kind: str) -> Head:
    """Parse all of a line except its candidates."""
    if len(line) > LONGEST:
        raise Malformed(LONG, f"{len(line):,} bytes, begins {short(line[:20])}")
    line = line.removesuffix(b"\r")
    if not line.strip(b" \t"):
        raise Malformed(BLANK)
    text = line.decode("latin-1")
    if not is_plain(text):
        raise Malformed(NOT_TEXT, short(line[:40]))
    fields, _, rest = text.partition("|")
    user, bar, pool = rest.partition("|")
    if user.replace("\t", " ").split(" ")[0] != "user":
        raise Malformed(NO_USER, short(text[:40]))
    words = fields.split()
    if len(words) != 3:
        raise Malformed(FIELDS, f"{short(fields)} before |user, expected time, article and click")
    time, article, click = words
    if not time.isdigit() or len(time) > 20 or int(time) > LATEST:
        raise Malformed(UNPARSABLE, f"time {short(time)}, expected seconds since 1970")
    if click not in ("0", "1"):
        raise Malformed(UNPARSABLE, f"click {short(click)}, expected 0 or 1")
    features = parse_ids(user.split()[1:]) if kind == R6B else parse_features(user.split()[1:])
    if not bar:
        raise Malformed(NO_POOL, short(text[-40:]))
    return Head(int(time), article, int(click), features, pool)


def is_plain(text: str) -> bool:
    """Whether a text is ASCII without control characters other than tabs."""
    return text.isascii() and text.replace("\t", " ").isprintable()


def parse_pool(pool: str, kind: str) -> list[Article]:
    """Parse the candidates, given the text after the bar before the first of them."""
    articles = [parse_article(text, kind) for text in pool.split("|")]
    check_distinct([article.id for article in articles])
    return articles


def parse_article(text: str, kind: str) -> Article:
    """Parse one candidate: its id and, in an R6A log, its features."""
    tokens = text.split()
    if not tokens or ":" in tokens[0]:
        raise Malformed(NO_ID, f"got {short('|' + text)}")
    if kind == R6A:
        return Article(tokens[0], parse_features(tokens[1:]))
    if len(tokens) > 1:
        raise Malformed(FIELDS, f"got {short('|' + text)}, expected an id alone")
    return Article(tokens[0], [1.0])


def parse_features(tokens: list[str]) -> list[float]:
    """The values of key:value pairs in the order of the keys 1 to 6; a missing key has the value 0."""
    vector: list[float | None] = [None] * USER_SIZE[R6A]
    for token in tokens:
        key, colon, value = token.partition(":")
        if not colon or not NUMBER.fullmatch(value):
            raise Malformed(UNPARSABLE, f"feature {short(token)}, expected key:number")
        number = float(value)
        if abs(number) > LARGEST:
            raise Malformed(UNPARSABLE, f"feature {short(token)} is too large")
        place = _key(key, USER_SIZE[R6A], token)
        if vector[place] is not None:
            raise Malformed(TWICE, f"got {short(token)}")
        vector[place] = number
    return [number or 0.0 for number in vector]


def parse_ids(tokens: list[str]) -> list[float]:
    """A vector of 0 and 1 from the numbers of the features that are on."""
    vector = [0.0] * USER_SIZE[R6B]
    for token in tokens:
        place = _key(token, USER_SIZE[R6B], token)
        if vector[place]:
            raise Malformed(TWICE, f"got {short(token)}")
        vector[place] = 1.0
    return vector


def _key(key: str, most: int, token: str) -> int:
    if not key.isdigit() or len(key) > 4 or not 1 <= int(key) <= most:
        raise Malformed(KEY, f"got {short(token)}, expected a number from 1 to {most}")
    return int(key) - 1


def check_distinct(ids: list[str]) -> None:
    """Raises `Malformed` if an article is listed twice."""
    if len(set(ids)) < len(ids):
        raise Malformed(REPEATED, next(name for i, name in enumerate(ids) if name in ids[:i]))


def find_shown(article: str, ids: list[str]) -> int:
    """The place of the article shown among the candidates."""
    if article not in ids:
        raise Malformed(NOT_SHOWN, f"{short(article)} is not among the {len(ids)} candidates")
    return ids.index(article)


def kind_of(line: bytes) -> str | None:
    """The kind of log that a line is from; None if it is malformed in both."""
    for kind in (R6B, R6A):  # a line without a single colon could be either, and is taken for R6B
        try:
            parse_line(line, kind)
        except Malformed:
            continue
        return kind
    return None
