"""Reads the click logs Yahoo! R6A and R6B, one visit a line, gzipped or plain:

    R6A: 1241160900 100123 0 |user 2:0.101 3:0.202 .. 6:0.6 1:1.0 |100120 2:0.3 .. 6:0.3895 1:1.0 |100123 2:0.25 ..
    R6B: 1317513291 id-560620 0 |user 1 9 11 13 23 |id-552077 |id-555224 |id-560620

time, article shown, click, the user's features, then the candidates with theirs. The article shown was drawn uniformly,
so its propensity is 1 / number of candidates.

Two parsers. `parse_line` is plain Python: it says what a line means and, if it is malformed, what is wrong with it.
`walk` is compiled and takes ordinary lines only: a head and user in the usual spelling, then candidates that are, byte
for byte, a list that has been read before. Most of a line is that list, and it lasts for thousands of lines, so most of
the work is to compare it with the line before. What is not ordinary is handed over to Python.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from hybandits.checks import short
from hybandits.compiling import kernel
from hybandits.logs.made import TRUTH
from hybandits.logs.reading import Problems
from hybandits.logs.table import Batch, LogError, Tables, no_places

_unpack: Any = gzip
with contextlib.suppress(ImportError):  # without it reading takes twice as long
    from isal import igzip as _unpack

R6A, R6B = "R6A", "R6B"
USER_SIZE = {R6A: 6, R6B: 136}
ARM_NAMES = {R6A: [str(key) for key in range(1, 7)], R6B: ["constant"]}

CHUNK = 1 << 18
"""Bytes of text taken at a time: few enough to stay in the processor's cache."""

LONGEST = 1 << 18
"""A longer line is malformed; it is not kept in memory."""

LATEST = 4_102_444_800
"""Times are in seconds since 1970 and before the year 2100."""

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
CUT = "line cut off by damage to the file"

# What can be wrong with a file.
EMPTY = "empty file"
NOT_A_LOG = "not a click log"
DAMAGED = "damaged file"


class Malformed(Exception):  # noqa: N818 (a verdict on a line, which is counted, not an error)
    """What is wrong with a line, and the text in question."""

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


class Article(NamedTuple):
    """A candidate."""

    id: str
    vector: list[float]


class Line(NamedTuple):
    """A visit; `shown` is the place in the pool of the article shown."""

    time: int
    shown: int
    click: int
    user: list[float]
    pool: list[Article]


class Head(NamedTuple):
    """A line with its candidates still to be read."""

    time: int
    article: str
    click: int
    user: list[float]
    pool: str


# ------------------------------------------------------------------ what a line means


def parse_line(line: bytes, kind: str) -> Line:
    """A line without its newline; `Malformed` if it is.

    >>> parse_line(b"1241160900 12 1 |user 2:0.25 1:1 |11 1:1 |12 2:0.5 1:1", "R6A").shown
    1
    """
    head = parse_head(line, kind)
    pool = parse_pool(head.pool, kind)
    return Line(head.time, find_shown(head.article, [article.id for article in pool]), head.click, head.user, pool)


def parse_head(line: bytes, kind: str) -> Head:
    """All but the candidates."""
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
    listed = fields.split()
    if len(listed) != 3:
        raise Malformed(FIELDS, f"{short(fields)} before |user, expected time, article and click")
    time, article, click = listed
    if not time.isdigit() or len(time) > 20 or int(time) > LATEST:
        raise Malformed(UNPARSABLE, f"time {short(time)}, expected seconds since 1970")
    if click not in ("0", "1"):
        raise Malformed(UNPARSABLE, f"click {short(click)}, expected 0 or 1")
    features = parse_ids(user.split()[1:]) if kind == R6B else parse_features(user.split()[1:])
    if not bar:
        raise Malformed(NO_POOL, short(text[-40:]))
    return Head(int(time), article, int(click), features, pool)


def is_plain(text: str) -> bool:
    """ASCII without control characters other than tabs."""
    return text.isascii() and text.replace("\t", " ").isprintable()


def parse_pool(pool: str, kind: str) -> list[Article]:
    """The candidates, from behind the first bar on."""
    articles = [parse_article(text, kind) for text in pool.split("|")]
    check_distinct([article.id for article in articles])
    return articles


def parse_article(text: str, kind: str) -> Article:
    """One candidate: its id, and in an R6A log its features."""
    tokens = text.split()
    if not tokens or ":" in tokens[0]:
        raise Malformed(NO_ID, f"got {short('|' + text)}")
    if kind == R6A:
        return Article(tokens[0], parse_features(tokens[1:]))
    if len(tokens) > 1:
        raise Malformed(FIELDS, f"got {short('|' + text)}, expected an id alone")
    return Article(tokens[0], [1.0])


def parse_features(tokens: list[str]) -> list[float]:
    """key:value pairs, in the order of the keys 1..6; what is missing is 0."""
    vector: list[float | None] = [None] * USER_SIZE[R6A]
    for token in tokens:
        key, colon, value = token.partition(":")
        if not colon or not NUMBER.fullmatch(value):
            raise Malformed(UNPARSABLE, f"feature {short(token)}, expected key:number")
        number = float(value)
        if abs(number) == float("inf"):
            raise Malformed(UNPARSABLE, f"feature {short(token)} is too large")
        place = _key(key, USER_SIZE[R6A], token)
        if vector[place] is not None:
            raise Malformed(TWICE, f"got {short(token)}")
        vector[place] = number
    return [number or 0.0 for number in vector]


def parse_ids(tokens: list[str]) -> list[float]:
    """Numbers of the features that are on."""
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
    """An article is a candidate once."""
    if len(set(ids)) < len(ids):
        raise Malformed(REPEATED, next(name for i, name in enumerate(ids) if name in ids[:i]))


def find_shown(article: str, ids: list[str]) -> int:
    """Where the article shown is among the candidates."""
    if article not in ids:
        raise Malformed(NOT_SHOWN, f"{short(article)} is not among the {len(ids)}")
    return ids.index(article)


def kind_of(line: bytes) -> str | None:
    """Which kind of log a line is from, None if it is malformed in both."""
    for kind in (R6B, R6A):  # a line without a single colon could be either, and is one of R6B
        try:
            parse_line(line, kind)
        except Malformed:
            continue
        return kind
    return None


# ------------------------------------------------------------------ ordinary lines, compiled

NEW_POOL, OTHER, IS_LONG, IS_BLANK, IS_NOT_TEXT, IS_NO_USER = range(6)
"""Classes of lines that are handed over: ordinary but for their candidates, to be looked at closely, and malformed, all
of a class in the same way."""

NEED_MORE, ROWS_FULL, HANDED_FULL = range(3)
"""Why `walk` stopped."""

AT, ROW, LINE, HANDED, LAST = range(5)
"""Places in its state: position in the buffer, rows filled, lines met, lines handed over, pool of the line before."""

TENS = 10.0 ** np.arange(16)

WORD = 7
"""Bytes of an id in one whole number of 64 bits, whatever its sign."""


@kernel
def find_newline(buf, at, end):  # type: ignore[no-untyped-def]
    """The next newline from `at` on, `end` if there is none."""
    while at + 64 <= end:
        block = buf[at : at + 64]
        found = np.uint8(0)
        for k in range(64):
            found = np.uint8(found | (block[k] == 10))
        if found:
            break
        at += 64
    while at < end and buf[at] != 10:
        at += 1
    return at


@kernel
def same_bytes(a, i, b, j, n):  # type: ignore[no-untyped-def]
    """Whether a[i:i+n] and b[j:j+n] are equal. Without a branch, in bytes and on slices: so it becomes vector
    instructions, thirty times as fast as leaving at the first difference."""
    x, y = a[i : i + n], b[j : j + n]
    differing = np.uint8(0)
    for k in range(n):
        differing = np.uint8(differing | (x[k] ^ y[k]))
    return differing == 0


@kernel
def hash_bytes(buf, at, n):  # type: ignore[no-untyped-def]
    """A number of 31 bits made of n bytes, by h <- (h xor two bytes) * odd number in four lanes."""
    a, b, c, d = np.int64(n), np.int64(1), np.int64(2), np.int64(3)
    k = at
    while k + 8 <= at + n:
        a = ((a ^ (np.int64(buf[k]) << 8 | np.int64(buf[k + 1]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        b = ((b ^ (np.int64(buf[k + 2]) << 8 | np.int64(buf[k + 3]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        c = ((c ^ (np.int64(buf[k + 4]) << 8 | np.int64(buf[k + 5]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        d = ((d ^ (np.int64(buf[k + 6]) << 8 | np.int64(buf[k + 7]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        k += 8
    while k < at + n:
        a = ((a ^ np.int64(buf[k])) * 0x2545F491 + 1) & 0x7FFFFFFF
        k += 1
    mixed = a ^ (b >> 3) ^ (c >> 7) ^ (d >> 11)
    return mixed ^ (mixed >> 15)


@kernel
def find_pool(buf, at, n, arena, spans, table):  # type: ignore[no-untyped-def]
    """The known list of candidates that is buf[at:at+n], -1 if there is none."""
    slot = hash_bytes(buf, at, n) % table.shape[0]
    while table[slot] >= 0:
        pool = table[slot]
        if spans[pool, 1] == n and same_bytes(buf, at, arena, spans[pool, 0], n):
            return pool
        slot = (slot + 1) % table.shape[0]
    return -1


@kernel
def classify(buf, at, end, longest):  # type: ignore[no-untyped-def]
    """What makes a line malformed, as far as a glance tells; OTHER if it takes a closer look."""
    if end - at > longest:
        return IS_LONG
    if end > at and buf[end - 1] == 13:
        end -= 1
    blank = True
    user = False
    for k in range(at, end):
        byte = buf[k]
        if byte != 32 and byte != 9:
            blank = False
            if byte < 32 or byte > 126:
                return IS_NOT_TEXT
            if (
                byte == 124 and k + 4 < end and buf[k + 1] == 117 and buf[k + 2] == 115 and buf[k + 3] == 101
                and buf[k + 4] == 114
            ):  # fmt: skip
                user = True
    if blank:
        return IS_BLANK
    return OTHER if user else IS_NO_USER


@kernel
def parse_id(buf, at):  # type: ignore[no-untyped-def]
    """An id of up to 2 * WORD bytes as two numbers, and where it ends: -1 if it is longer or empty."""
    first, second = np.int64(0), np.int64(0)
    k = 0
    while k <= 2 * WORD:
        byte = np.int64(buf[at + k])
        if byte <= 32 or byte > 126 or byte == 124:
            break
        if k < WORD:
            first |= byte << (8 * k)
        elif k < 2 * WORD:
            second |= byte << (8 * (k - WORD))
        k += 1
    if k == 0 or k > 2 * WORD:
        return first, second, -1
    return first, second, at + k


@kernel
def parse_memberships(buf, at, user):  # type: ignore[no-untyped-def]
    """User features " key:number" up to " |"; where the bar is, -1 if they are not in the usual spelling.

    A number m / 10^k of up to 15 digits is the double nearest to it: m and 10^k are doubles, and division rounds once.
    """
    seen = np.int64(0)
    while True:
        if buf[at] != 32:
            return -1
        key = np.int64(buf[at + 1]) - 48
        if key == 76:  # a bar
            return at + 1
        if key < 1 or key > user.shape[0] or buf[at + 2] != 58 or seen >> key & 1:
            return -1
        seen |= 1 << key
        at += 3
        mantissa = np.int64(0)
        digits = 0
        while 48 <= buf[at] <= 57 and digits < 16:
            mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
            digits += 1
            at += 1
        if digits == 0:
            return -1
        whole = digits
        if buf[at] == 46:
            at += 1
            while 48 <= buf[at] <= 57 and digits < 16:
                mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
                digits += 1
                at += 1
            if digits == whole:
                return -1
        if digits > 15:
            return -1
        user[key - 1] = mantissa / TENS[digits - whole]


@kernel
def parse_active(buf, at, user):  # type: ignore[no-untyped-def]
    """User features " number" up to " |"; where the bar is, -1 if they are not in the usual spelling."""
    while True:
        if buf[at] != 32:
            return -1
        at += 1
        if buf[at] == 124:
            return at
        number = np.int64(0)
        digits = 0
        while 48 <= buf[at] <= 57 and digits < 4:
            number = number * 10 + (np.int64(buf[at]) - 48)
            digits += 1
            at += 1
        if number < 1 or number > user.shape[0] or user[number - 1] != 0:
            return -1
        user[number - 1] = 1.0


@kernel
def walk(  # type: ignore[no-untyped-def]
    buf, end, binary, longest, arena, spans, ids, table, state, time, pools, chosen, clicks, propensity, users, handed
):  # fmt: skip
    """Ordinary lines of buf[state[AT]:end] to rows of the columns; why it stopped, and where: see `state`.

    buf[end] must be a newline, so that nothing runs beyond the end. Known lists of candidates: their bytes are
    arena[spans[i, 0]:][:spans[i, 1]], their ids ids[spans[i, 2]:][:spans[i, 3]], their row spans[i, 4]. A line that is
    not ordinary is handed over as (line number, start, end, row, class, start of the candidates). A row is kept for it
    unless it is malformed; with the class NEW_POOL, all of the row but pool, chosen and propensity is filled.
    """
    at, n, line, last = state[AT], state[ROW], state[LINE], state[LAST]
    passed = 0
    why = NEED_MORE
    while at < end:
        if n == time.shape[0]:
            why = ROWS_FULL
            break
        if passed == handed.shape[0]:
            why = HANDED_FULL
            break
        stop = -1  # where the line ends, once it is known
        found = OTHER
        ordinary = False
        when = np.int64(0)
        p = at
        while 48 <= buf[p] <= 57 and p < at + 11:
            when = when * 10 + (np.int64(buf[p]) - 48)
            p += 1
        if 0 < p - at < 11 and when <= LATEST and buf[p] == 32:
            first, second, p = parse_id(buf, p + 1)
            if (
                p > 0 and buf[p] == 32 and (buf[p + 1] == 48 or buf[p + 1] == 49) and buf[p + 2] == 32
                and buf[p + 3] == 124 and buf[p + 4] == 117 and buf[p + 5] == 115 and buf[p + 6] == 101
                and buf[p + 7] == 114
            ):  # fmt: skip
                clicks[n] = np.int64(buf[p + 1]) - 48
                user = users[n]
                user[:] = 0.0
                p = parse_active(buf, p + 8, user) if binary else parse_memberships(buf, p + 8, user)
                if p > 0:
                    p += 1  # behind the bar
                    pool = -1
                    if last >= 0:
                        size = spans[last, 1]
                        tail = p + size
                        if tail < end and same_bytes(buf, p, arena, spans[last, 0], size):
                            if buf[tail] == 13 and tail + 1 < end:
                                tail += 1
                            if buf[tail] == 10:
                                pool, stop = last, tail
                    if pool < 0:
                        stop = find_newline(buf, p, end)
                        if stop == end:
                            break
                        size = stop - p - (1 if buf[stop - 1] == 13 else 0)
                        pool = find_pool(buf, p, size, arena, spans, table)
                    if pool < 0 and stop - at <= longest:
                        time[n] = when
                        found = NEW_POOL
                    elif stop - at <= longest:
                        last = pool
                        for k in range(spans[pool, 3]):
                            if ids[spans[pool, 2] + k, 0] == first and ids[spans[pool, 2] + k, 1] == second:
                                time[n] = when
                                pools[n] = spans[pool, 4]
                                chosen[n] = k
                                propensity[n] = 1.0 / spans[pool, 3]
                                ordinary = True
                                break
        if ordinary:
            n += 1
        else:
            if stop < 0:
                stop = find_newline(buf, at, end)
                if stop == end:
                    break
            if found == OTHER:
                found = classify(buf, at, stop, longest)
            handed[passed, 0] = line + 1
            handed[passed, 1] = at
            handed[passed, 2] = stop
            handed[passed, 3] = n
            handed[passed, 4] = found
            handed[passed, 5] = p
            passed += 1
            if found <= OTHER:
                pools[n] = -1
                n += 1
        line += 1
        at = stop + 1
    state[AT], state[ROW], state[LINE], state[HANDED], state[LAST] = at, n, line, passed, last
    return why


# ------------------------------------------------------------------ known candidates


class _Pool(NamedTuple):
    """A list of candidates that has been read: its row of the tables, and its ids in order."""

    row: int
    ids: list[str]


class _Book:
    """Lists of candidates by their text, for Python and for `walk`; forgets all when it is full, and begins again."""

    POOLS, BYTES, IDS = 1 << 12, 1 << 22, 1 << 16

    def __init__(self, kind: str, tables: Tables) -> None:
        self.kind, self.tables = kind, tables
        self.arena = np.empty(self.BYTES, np.uint8)
        self.spans = np.empty((self.POOLS, 5), np.int64)
        self.ids = np.empty((self.IDS, 2), np.int64)
        self.table = np.empty(2 * self.POOLS, np.int64)
        self.rows: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        self.pools: dict[str, _Pool] = {}
        self.taught: set[str] = set()
        self.used = [0, 0, 0]
        self.table[:] = -1

    def pool(self, text: str) -> _Pool:
        """The list of candidates with this text; `walk` knows it from the second time on."""
        known = self.pools.get(text)
        if known is not None:
            if text not in self.taught:
                self.teach(text, known)
            return known
        parts = text.split("|")
        try:
            rows = [self.rows[part] for part in parts]
        except KeyError:
            rows = self.enter(text, parts)
        ids = [self.tables.names[row] for row in rows]
        check_distinct(ids)
        made = _Pool(self.tables.pool(rows), ids)
        if len(self.pools) == self.POOLS:
            self.forget()
        self.pools[text] = made
        return made

    def enter(self, text: str, parts: list[str]) -> list[int]:
        """Rows of candidates some of which are new."""
        if not is_plain(text):
            raise Malformed(NOT_TEXT, short(text[:40]))
        articles = [parse_article(part, self.kind) for part in parts]
        check_distinct([article.id for article in articles])
        if len(self.rows) + len(parts) > self.IDS:
            self.rows.clear()
        rows = [self.tables.arm(article.id, np.array(article.vector)) for article in articles]
        self.rows.update(zip(parts, rows, strict=True))
        return rows

    def teach(self, text: str, pool: _Pool) -> None:
        """Make the list known to `walk`."""
        self.taught.add(text)
        packed = np.frombuffer(text.encode("ascii"), np.uint8)
        pools, size, count = self.used
        if len(packed) > self.BYTES or len(pool.ids) > self.IDS:
            return
        if pools == self.POOLS or size + len(packed) > self.BYTES or count + len(pool.ids) > self.IDS:
            self.forget()
            self.pools[text] = pool
            self.taught.add(text)
            pools, size, count = self.used
        self.arena[size : size + len(packed)] = packed
        self.spans[pools] = size, len(packed), count, len(pool.ids), pool.row
        for k, name in enumerate(pool.ids):
            code = name.encode("ascii")
            # An id that is too long for `walk` gets numbers that none has: such a line is handed over.
            short_enough = len(code) <= 2 * WORD
            self.ids[count + k, 0] = int.from_bytes(code[:WORD], "little") if short_enough else -1
            self.ids[count + k, 1] = int.from_bytes(code[WORD:], "little") if short_enough else -1
        slot = int(hash_bytes(packed, 0, len(packed))) % len(self.table)
        while self.table[slot] >= 0:
            slot = (slot + 1) % len(self.table)
        self.table[slot] = pools
        self.used = [pools + 1, size + len(packed), count + len(pool.ids)]


# ------------------------------------------------------------------ bytes of a file


class _Stream:
    """The text of a file, unpacked if it is gzip; `damage` says why it ended before its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO = path.open("rb")
        packed = self.file.read(2) == b"\x1f\x8b"
        self.file.seek(0)
        self.text: Any = _unpack.open(self.file, "rb") if packed else self.file
        self.packed, self.read, self.damage = packed, 0, ""
        self.rest: Iterator[bytes] | None = None
        self.left = b""

    def close(self) -> None:
        self.text.close()
        self.file.close()

    def readinto(self, view: memoryview) -> int:
        """As of a file; after damage to what is packed, all that comes before the damage."""
        if self.rest is None:
            try:
                n = int(self.text.readinto(view))
            except (EOFError, OSError, zlib.error) as problem:
                cut = isinstance(problem, EOFError)
                self.damage = "it ends in the middle: was it copied whole?" if cut else f"{problem}: copy it again"
                self.rest = _salvage(self.path, self.read) if self.packed else iter(())
            else:
                self.read += n
                return n
        while not self.left:
            try:
                self.left = next(self.rest)
            except StopIteration:
                return 0
        part = self.left[: len(view)]
        view[: len(part)] = part
        self.left = self.left[len(part) :]
        return len(part)


def _salvage(path: Path, skip: int) -> Iterator[bytes]:
    """What can be unpacked of a damaged gzip file, without its first `skip` bytes.

    Readers of gzip give nothing of the piece that the damage is in. Here the piece is unpacked byte by byte, and check
    sums are not looked at: a damaged line is found to be malformed.
    """
    for out in _inflate(path):
        if skip < len(out):
            yield out[skip:]
        skip = max(0, skip - len(out))


def _inflate(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while _skip_header(file):
            engine = zlib.decompressobj(-15)
            while not engine.eof:
                data = engine.unconsumed_tail or file.read(4096)
                if not data:
                    yield engine.flush()
                    return
                before = engine.copy()
                try:
                    out = engine.decompress(data, 1 << 16)
                except zlib.error:
                    yield from _bytewise(before, data)
                    return
                yield out
            file.seek(8 - len(engine.unused_data), 1)


def _bytewise(engine: Any, data: bytes) -> Iterator[bytes]:
    """All that comes before the error."""
    try:
        while True:
            out = engine.decompress(data, 1)
            data = engine.unconsumed_tail
            yield out
    except zlib.error:
        return


def _skip_header(file: BinaryIO) -> bool:
    """Go to the data of the next member of a gzip file; False if there is none."""
    header = file.read(10)
    if len(header) < 10 or header[:2] != b"\x1f\x8b":
        return False
    flags = header[3]
    if flags & 4:
        file.seek(int.from_bytes(file.read(2), "little"), 1)
    for flag in (8, 16):  # name, comment
        if flags & flag:
            while file.read(1) not in (b"\0", b""):
                pass
    if flags & 2:
        file.seek(2, 1)
    return True


# ------------------------------------------------------------------ which files

_NO_LOGS = re.compile(
    r"readme|licen[cs]e|copying|changelog|index\.|md5|sha\d|.*\.(md|json|jsonl|html?|pdf|rst|rtf|docx?|csv|parquet|feather"
    r"|arrow|npz|npy|png|jpe?g|gif|svg|zip|tar|tgz|7z|rar|bz2|xz|zst|py|ipynb|sh|ya?ml|toml|xml|md5|sha\d+|part|tmp"
    r"|crdownload|asc|sig)(\.gz)?$|.*\.tar\.gz$|.*~$",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_]?([01]\d)[-_]?([0-3]\d)(?!\d)")


def _in_order(path: Path) -> tuple[bool, str, str, str]:
    """Files with a date in their name by date, then the others by name."""
    dates = _DATE.findall(path.name)
    return not dates, "".join(dates[-1]) if dates else "", path.name, str(path)


def _list_files(paths: Iterable[Path | str]) -> tuple[list[Path], dict[str, str]]:
    """Files to read, in order, and those passed over with the reason."""
    found: dict[Path, Path] = {}
    passed: dict[str, str] = {}
    for path in map(Path, paths):
        if path.is_dir():
            for each in sorted(path.iterdir()):
                if each.name.startswith("."):
                    passed[str(each)] = "hidden"
                elif not each.is_file():
                    passed[str(each)] = "not a file"
                elif _NO_LOGS.match(each.name):
                    passed[str(each)] = "not a log by its name"
                else:
                    found.setdefault(each.resolve(), each)
        elif path.exists():
            found.setdefault(path.resolve(), path)
        else:
            raise LogError(f"{path} is not there: give the files of the log, or the folder they are in")
    return sorted(found.values(), key=_in_order), passed


def _made_by(folders: Iterable[Path]) -> dict[str, Any]:
    """What a log's header says of one that was made (`logs.made`): nobody should take it for Yahoo's."""
    for folder in sorted(folders):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return {"made": dict(json.loads((folder / TRUTH).read_text())["made"])}
    return {}


# ------------------------------------------------------------------ the reader


class _Columns:
    """Rows of the batch that is being filled."""

    def __init__(self, rows: int, user: int) -> None:
        self.time = np.empty(rows, np.int64)
        self.pool = np.empty(rows, np.int32)
        self.chosen = np.empty(rows, np.int32)
        self.reward, self.propensity = np.empty(rows), np.empty(rows)
        self.user = np.empty((rows, user))

    @property
    def all(self) -> tuple[np.ndarray, ...]:
        return self.time, self.pool, self.chosen, self.reward, self.propensity, self.user

    def put(self, row: int, head: Head, pool: _Pool) -> None:
        self.put_pool(row, head.article, pool)
        self.time[row], self.reward[row], self.user[row] = head.time, head.click, head.user

    def put_pool(self, row: int, article: str, pool: _Pool) -> None:
        self.chosen[row] = find_shown(article, pool.ids)
        self.pool[row], self.propensity[row] = pool.row, 1.0 / len(pool.ids)

    def take(self, rows: int) -> Batch:
        """The first rows, but for those of malformed lines."""
        kept: Any = self.pool[:rows] >= 0
        kept = slice(rows) if kept.all() else np.flatnonzero(kept)
        time, pool, chosen, reward, propensity, user = (np.array(column[kept]) for column in self.all)
        return Batch(time, pool, chosen, reward, propensity, no_places(len(pool)), user)


class YahooReader:
    """Reads R6A and R6B click logs; see `hybandits.logs.table.Reader`.

    paths: files, gzipped or not, and folders of them; they are read in the order of the dates in their names. What is
    passed over in a folder is in `ignored` (name: reason). batch_rows: rounds of a batch at most; chunk_bytes: text
    taken at a time.
    """

    def __init__(
        self, paths: Path | str | Iterable[Path | str], *, batch_rows: int = 65536, chunk_bytes: int = CHUNK
    ) -> None:
        if batch_rows < 1 or chunk_bytes < 1:
            raise ValueError(f"batch_rows and chunk_bytes must be at least 1, got {batch_rows} and {chunk_bytes}")
        given = [paths] if isinstance(paths, str | Path) else list(paths)
        self.files, self.ignored = _list_files(given)
        if not self.files:
            listed = ", ".join(map(str, given)) or "an empty list"
            raise LogError(f"no log in {listed}: give files such as ydata-fp-td-clicks-v1_0.20090501.gz")
        names = [path.name for path in self.files]
        self._names = [path.name if names.count(path.name) == 1 else str(path) for path in self.files]
        self._strange: dict[Path, str] = {}
        found = {path: kind for path in self.files if (kind := self._detect(path)) is not None}
        if len(set(found.values())) > 1:
            first = {kind: next(path for path in found if found[path] == kind) for kind in (R6A, R6B)}
            raise LogError(f"{first[R6A]} is an R6A log and {first[R6B]} an R6B log: read one kind at a time")
        self.kind = next(iter(found.values()), R6A)
        self.user = [str(key) for key in range(1, USER_SIZE[self.kind] + 1)]
        self.arm = list(ARM_NAMES[self.kind])
        self.binary_user = self.kind == R6B
        self.size = sum(path.stat().st_size for path in self.files)
        self.about = _made_by({path.parent for path in self.files})
        self._rows = max(1, min(batch_rows, (1 << 19) // len(self.user)))  # 4 MB of user features at most
        self._chunk = chunk_bytes

    def _detect(self, path: Path) -> str | None:
        """The kind of log a file is, by the first line that is well-formed; notes if there is none in its beginning."""
        try:
            stream = _Stream(path)
        except OSError as problem:
            raise LogError(f"{path} cannot be read ({problem.strerror}): check the name and its permissions") from None
        piece, text = bytearray(CHUNK), b""
        try:
            while len(text) < CHUNK and (n := stream.readinto(memoryview(piece))):
                text += piece[:n]
        finally:
            stream.close()
        if not text:
            return None
        lines = text.split(b"\n")[:1000]
        for line in lines:
            kind = kind_of(line)
            if kind is not None:
                return kind
        some = f"none of its first {len(lines)} lines is" if len(lines) > 1 else "its first line is not"
        self._strange[path] = f"{some} one of R6A or R6B; it begins {short(bytes(text[:40]))}"
        return None

    def batches(
        self, tables: Tables, problems: Problems, progress: Callable[[int], None] = lambda read: None
    ) -> Iterator[tuple[str, Batch]]:
        """(source file, rounds) in order, see `Reader`."""
        problems.pass_over(self.ignored)
        book = _Book(self.kind, tables)
        columns = _Columns(self._rows, len(self.user))
        for path, name in zip(self.files, self._names, strict=True):
            for batch in _FileReader(path, name, book, columns, problems, self._chunk).batches(
                self._strange.get(path), progress
            ):
                yield name, batch


class _FileReader:
    """One file to batches; keeps count of its lines."""

    def __init__(self, path: Path, name: str, book: _Book, columns: _Columns, problems: Problems, chunk: int) -> None:
        self.path, self.name, self.book, self.columns, self.problems = path, name, book, columns, problems
        self.chunk = chunk
        self.buf = np.empty(LONGEST + chunk + 2, np.uint8)
        self.state = np.zeros(5, np.int64)
        self.state[LAST] = -1
        self.handed = np.empty((1 << 12, 6), np.int64)
        self.patience = 1
        self.rounds = 0

    def skip(self, kind: str, detail: str, count: int = 1) -> None:
        """Lines that `walk` did not see."""
        self.state[LINE] += count
        self.problems.skip(kind, self.name, int(self.state[LINE]), detail, count=count)

    def batches(self, strange: str | None, progress: Callable[[int], None]) -> Iterator[Batch]:
        """All rounds of the file."""
        try:
            stream = _Stream(self.path)
        except OSError as problem:
            self.problems.spoil(DAMAGED, self.name, f"{problem.strerror}: check its permissions")
            return
        try:
            if strange is not None:
                self.problems.spoil(NOT_A_LOG, self.name, strange)
            view = memoryview(self.buf)  # type: ignore[arg-type]
            have, told, dropping = 0, 0, False
            while n := stream.readinto(view[have : have + self.chunk]):
                now = stream.file.tell()
                progress(now - told)
                told = now
                end = have + n
                self.buf[end] = 10
                self.state[AT] = 0
                if dropping:
                    self.state[AT] = int(find_newline(self.buf, 0, end)) + 1
                    dropping = self.state[AT] > end
                if not dropping:
                    yield from self.take(end)
                start = min(int(self.state[AT]), end)
                have = end - start
                if have > LONGEST:
                    begins = short(self.buf[start : start + 20].tobytes())
                    self.skip(LONG, f"more than {LONGEST:,} bytes, begins {begins}")
                    have, dropping = 0, True
                self.buf[:have] = self.buf[end - have : end]
            progress(self.path.stat().st_size - told)
            if have and stream.damage:
                self.skip(CUT, short(self.buf[:20].tobytes()))
            elif have:
                self.buf[have : have + 2] = 10
                self.state[AT] = 0
                yield from self.take(have + 1)
            if self.state[ROW]:
                batch = self.columns.take(int(self.state[ROW]))
                self.rounds += batch.rounds
                if batch.rounds:
                    yield batch
            self.problems.read(self.name, lines=int(self.state[LINE]), rounds=self.rounds)
            if stream.damage:
                words = f"{stream.damage}; what could be unpacked was read, and not every wrong byte shows"
                self.problems.spoil(DAMAGED, self.name, words)
            elif self.state[LINE] == 0:
                self.problems.spoil(EMPTY, self.name)
        finally:
            stream.close()

    def take(self, end: int) -> Iterator[Batch]:
        """The whole lines up to `end`; batches that are full."""
        book, state, columns = self.book, self.state, self.columns
        why = -1
        while why != NEED_MORE:
            line = int(state[LINE])
            why = walk(
                self.buf, end, book.kind == R6B, LONGEST, book.arena, book.spans, book.ids, book.table, state,
                *columns.all, self.handed[: self.patience],
            )  # fmt: skip
            passed = int(state[HANDED])
            if passed:
                self.judge(passed)
            # Stopping at once makes a new list of candidates known to `walk` at once. It is of no use where most lines
            # are handed over anyway.
            if why == HANDED_FULL and state[LINE] - line < 4 * passed:
                self.patience = min(2 * self.patience, len(self.handed))
            else:
                self.patience = max(1, self.patience // 2)
            if why == ROWS_FULL:
                batch = columns.take(int(state[ROW]))
                state[ROW] = 0
                self.rounds += batch.rounds
                if batch.rounds:
                    yield batch

    def judge(self, passed: int) -> None:
        """Lines that were handed over, in order."""
        listed = self.handed[:passed].tolist()
        self.state[LAST] = -1  # the book may forget it below
        i = 0
        while i < passed:
            line, start, stop, row, found, pool = listed[i]
            i += 1
            if found == NEW_POOL and self.complete(row, start, stop, pool):
                continue
            try:
                head = parse_head(self.buf[start:stop].tobytes(), self.book.kind)
                self.columns.put(row, head, self.book.pool(head.pool))
            except Malformed as problem:
                first = i
                if found > OTHER:  # what follows of the same class is malformed in the same way
                    while i < passed and listed[i][4] == found and listed[i][0] == line + i - first + 1:
                        i += 1
                self.problems.skip(problem.kind, self.name, line, problem.detail, count=1 + i - first)

    def complete(self, row: int, start: int, stop: int, pool: int) -> bool:
        """Fill in the candidates of a row; False if something is wrong with them."""
        article = self.buf[start:pool].tobytes().split(b" ", 2)[1].decode("latin-1")
        text = self.buf[pool:stop].tobytes().removesuffix(b"\r").decode("latin-1")
        try:
            self.columns.put_pool(row, article, self.book.pool(text))
        except Malformed:
            return False
        return True
