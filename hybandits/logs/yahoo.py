"""The click logs Yahoo! R6A and R6B.

    1241160900 109513 0 |user 2:0.01 3:0.2 4:0 5:0.19 6:0.6 1:1 |109498 2:0.3 3:0.1 4:0.1 5:0.2 6:0.3 1:1 |109509 ...

A line has the time, the article shown and the click, then the user's features, then the candidates with theirs. The
same list of candidates lasts for thousands of lines, so lists are parsed once and found by their text. A kernel parses
the usual spelling of all else; every other line is parsed by `parse_line`, which says what is wrong with it.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import short
from hybandits.foundation.compiling import kernel
from hybandits.logs.files import Paths, list_files, read_lines, read_start, source_names
from hybandits.logs.report import Fault, ReadReport
from hybandits.logs.store import LARGEST, Batch, LogError, Tables, id_of
from hybandits.logs.synthetic import TRUTH

R6A, R6B = "R6A", "R6B"
USER_SIZE = {R6A: 6, R6B: 136}
ARM_NAMES = {R6A: [str(key) for key in range(1, 7)], R6B: ["constant"]}

ROWS = 1 << 11
"""Lines that are scanned at a time."""

KNOWN = 1 << 12
"""Lists of candidates that are remembered."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TENS = 10.0 ** np.arange(16)
_NO_LOG = re.compile(
    r"readme|licen[cs]e|copying|changelog|index\.|md5|sha\d|.*\.(md|json|jsonl|html?|pdf|rst|rtf|docx?|csv|parquet|feather"
    r"|arrow|npz|npy|png|jpe?g|gif|svg|zip|tar|tgz|7z|rar|bz2|xz|zst|py|ipynb|sh|ya?ml|toml|xml|md5|sha\d+|part|tmp"
    r"|crdownload|asc|sig)(\.gz)?$|.*\.tar\.gz$|.*~$",
    re.IGNORECASE,
)


class Malformed(ValueError):  # noqa: N818 (a verdict on a line that is counted, not an error)
    """Raised for a line that cannot be used: the reason, and the text in question."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


Article = tuple[str, list[float]]
"""The id and the features of a candidate."""


class Line(NamedTuple):
    """A visit; the candidates are still text."""

    time: int
    article: str
    click: float
    user: list[float]
    pool: bytes


def parse_line(line: bytes, kind: str) -> Line:
    """Parse a line without its newline; raises `Malformed`.

    >>> parse_line(b"1241160900 12 1 |user 2:0.25 1:1 |11 1:1 |12 2:0.5 1:1", "R6A").user
    [1.0, 0.25, 0.0, 0.0, 0.0, 0.0]
    """
    line = line.removesuffix(b"\r")
    text = line.decode("latin-1")
    if not text.strip(" \t"):
        raise Malformed("blank line")
    if not text.isascii() or not text.replace("\t", " ").isprintable():
        raise Malformed("bytes that are not plain text", short(line[:40]))
    fields, _, rest = text.partition("|")
    user, bar, pool = rest.partition("|")
    name, *features = user.split() or [""]
    if name != "user":
        raise Malformed("no |user", short(text[:40]))
    words = fields.split()
    if len(words) != 3:
        raise Malformed("wrong number of fields", f"{short(fields)} before |user, expected time, article and click")
    time, article, click = words
    if not time.isdigit() or len(time) > 10:
        raise Malformed("unparsable number", f"time {short(time)}, expected seconds since 1970")
    if click not in ("0", "1"):
        raise Malformed("unparsable number", f"click {short(click)}, expected 0 or 1")
    vector = _parse_features(features, kind)
    if not bar:
        raise Malformed("no candidates", short(text[-40:]))
    return Line(int(time), article, float(click), vector, pool.encode())


def parse_pool(pool: bytes, kind: str) -> list[Article]:
    """Parse the candidates, given the text after the bar before the first of them."""
    return _distinct([parse_article(text, kind) for text in pool.split(b"|")])


def parse_article(text: bytes, kind: str) -> Article:
    """Parse a candidate, given the text between two bars."""
    tokens = text.decode("latin-1").split()
    if not tokens or ":" in tokens[0]:
        raise Malformed("candidate without an id", f"got {short('|' + text.decode('latin-1'))}")
    if kind == R6B and len(tokens) > 1:
        raise Malformed("wrong number of fields", f"got {short('|' + text.decode('latin-1'))}, expected an id alone")
    return tokens[0], _parse_features(tokens[1:], kind) if kind == R6A else [1.0]


def _distinct(articles: list[Article]) -> list[Article]:
    ids = [name for name, _ in articles]
    if len(set(ids)) < len(ids):
        raise Malformed("candidate listed twice", next(name for i, name in enumerate(ids) if name in ids[:i]))
    return articles


def _parse_features(tokens: list[str], kind: str) -> list[float]:
    """The values by key, 0 where a key is missing: of key:value pairs in R6A; in R6B of keys, whose value is 1."""
    values = [0.0] * USER_SIZE[kind]
    given = set()
    for token in tokens:
        key, _, value = token.partition(":") if kind == R6A else (token, "", "1")
        if not _NUMBER.fullmatch(value) or not abs(float(value)) <= LARGEST:
            raise Malformed("unparsable number", f"feature {short(token)}, expected key:number")
        if not key.isdigit() or len(key) > 4 or not 1 <= int(key) <= len(values):
            raise Malformed("feature out of range", f"got {short(token)}, expected a number from 1 to {len(values)}")
        if int(key) in given:
            raise Malformed("feature given twice", f"got {short(token)}")
        given.add(int(key))
        values[int(key) - 1] = float(value)
    return values


def kind_of(line: bytes) -> str | None:
    """The kind of log that a line is from; None if it is malformed in both."""
    for kind in (R6B, R6A):  # a line without a single colon could be either, and is taken for R6B
        with contextlib.suppress(Malformed):
            parse_pool(parse_line(line, kind).pool, kind)
            return kind
    return None


START, END, TIME, ARTICLE, ARTICLE_END, CLICK, POOL, SAME = range(8)
"""Columns of the spans of `scan_lines`."""


@kernel
def same_bytes(text, i, j, n):  # type: ignore[no-untyped-def]
    """Compare text[i:i+n] with text[j:j+n]; without a branch on bytes and slices it becomes vector instructions."""
    x, y = text[i : i + n], text[j : j + n]
    differing = np.uint8(0)
    for k in range(n):
        differing = np.uint8(differing | (x[k] ^ y[k]))
    return differing == 0


@kernel
def parse_user(text, at, binary, user):  # type: ignore[no-untyped-def]
    """Parse " key:number ... |", or " key ... |" if binary, into zeros. Where the bar is; -1 if spelled differently.

    For a number m / 10^k of up to 15 digits the division gives the nearest double: m and 10^k are exact doubles, and
    division rounds once.
    """
    seen = np.int64(0)
    while text[at] == 32:
        at += 1
        if text[at] == 124:
            return at
        key = np.int64(0)
        stop = at + 4
        while 48 <= text[at] <= 57 and at < stop:
            key = key * 10 + (np.int64(text[at]) - 48)
            at += 1
        if key < 1 or key > user.shape[0] or user[key - 1] != 0.0:
            return -1
        if binary:
            user[key - 1] = 1.0
            continue
        if text[at] != 58 or (seen >> key) & 1:
            return -1
        seen |= 1 << key
        at += 1
        mantissa = np.int64(0)
        digits = point = 0
        while digits < 16 and (48 <= text[at] <= 57 or (text[at] == 46 and digits > 0 and point == 0)):
            if text[at] == 46:
                point = digits
            else:
                mantissa = mantissa * 10 + (np.int64(text[at]) - 48)
                digits += 1
            at += 1
        if not point < digits < 16:
            return -1
        user[key - 1] = mantissa / _TENS[digits - point if point > 0 else 0]
    return -1


@kernel
def scan_lines(text, at, binary, spans, users):  # type: ignore[no-untyped-def]
    """Scan whole lines from text[at:] on: parse times, clicks and users, find the articles and the lists of candidates.

    Returns how many lines there were, as many as `spans` has rows at most, and where the next one begins. The list of
    candidates is at text[POOL:END]; POOL is -1 if the line is not in the usual spelling. SAME tells whether the list is
    that of the last line that had one.
    """
    last = size = row = 0
    while at < text.shape[0] and row < spans.shape[0]:
        start = at
        users[row] = 0.0
        time = np.int64(0)
        while 48 <= text[at] <= 57 and at < start + 11:
            time = time * 10 + (np.int64(text[at]) - 48)
            at += 1
        pool = -1
        article = at + 1
        if 0 < at - start < 11 and text[at] == 32:
            at += 1
            while 32 < text[at] < 127 and text[at] != 124:
                at += 1
            if (
                text[at] == 32 and (text[at + 1] == 48 or text[at + 1] == 49) and text[at + 2] == 32
                and text[at + 3] == 124 and text[at + 4] == 117 and text[at + 5] == 115 and text[at + 6] == 101
                and text[at + 7] == 114
            ):  # fmt: skip
                spans[row, ARTICLE_END] = at
                spans[row, CLICK] = np.int64(text[at + 1]) - 48
                pool = parse_user(text, at + 8, binary, users[row])
        end = start
        same = False
        if pool >= 0:
            pool += 1  # behind the bar
            end = pool + size
            same = size > 0 and end < text.shape[0] and text[end] == 10 and same_bytes(text, pool, last, size)
            end = end if same else pool
        while text[end] != 10:
            end += 1
        if pool >= 0:
            last, size = pool, end - pool
        spans[row, START], spans[row, END], spans[row, TIME], spans[row, ARTICLE] = start, end, time, article
        spans[row, POOL], spans[row, SAME] = pool, same
        at = end + 1
        row += 1
    return row, at


class _Pool(NamedTuple):
    """A list of candidates that has been read: its row of the tables, and the place of every article in it."""

    row: int
    places: dict[bytes, int]


class _Pools:
    """The lists of candidates read so far, by their text, and the candidates by theirs; many are all forgotten."""

    def __init__(self, kind: str, tables: Tables) -> None:
        self.kind, self.tables = kind, tables
        self._pools: dict[bytes, _Pool] = {}
        self._articles: dict[bytes, Article] = {}
        self._rows: dict[bytes, int] = {}

    def __getitem__(self, text: bytes) -> _Pool:
        """The list of candidates with this text; raises `Malformed`."""
        if text not in self._pools:
            if len(self._pools) >= KNOWN:
                for known in (self._pools, self._articles, self._rows):
                    known.clear()
            self._pools[text] = self._enter(text)
        return self._pools[text]

    def _enter(self, text: bytes) -> _Pool:
        if not text.isascii() or not text.decode().replace("\t", " ").rstrip("\r").isprintable():
            raise Malformed("bytes that are not plain text", short(text[:40]))
        parts = text.split(b"|")
        self._articles.update((part, parse_article(part, self.kind)) for part in parts if part not in self._articles)
        articles = _distinct([self._articles[part] for part in parts])
        for part, (name, vector) in zip(parts, articles, strict=True):
            if part not in self._rows:
                self._rows[part] = self.tables.arm(id_of(name), np.array(vector))
        row = self.tables.pool([self._rows[part] for part in parts])
        return _Pool(row, {name.encode(): place for place, (name, _) in enumerate(articles)})


class YahooReader:
    """Reads R6A and R6B click logs, gzipped or not, in the order given; files of a folder by name, which is by date."""

    def __init__(self, paths: Paths) -> None:
        self.files, self.ignored = list_files(
            paths, lambda name: not _NO_LOG.match(name), "ydata-fp-td-clicks-v1_0.20090501.gz"
        )
        self._names = source_names(self.files)
        kinds: dict[str, Path] = {}
        for path in self.files:
            lines = read_start(path).split(b"\n")[:1000]
            kind = next(filter(None, map(kind_of, lines)), None)
            if kind is not None:
                kinds.setdefault(kind, path)
        if len(kinds) > 1:
            raise LogError(f"{kinds[R6A]} is an R6A log, but {kinds[R6B]} is an R6B log: read one kind at a time")
        self.kind = next(iter(kinds), R6A)
        self.user = [str(key) for key in range(1, USER_SIZE[self.kind] + 1)]
        self.arm = list(ARM_NAMES[self.kind])
        self.pair: list[str] = []
        self.binary_user = self.kind == R6B
        self.size = sum(path.stat().st_size for path in self.files)
        self.about = _origin({path.parent for path in self.files})

    @staticmethod
    def recognises(path: Path, start: bytes) -> bool:
        """Return whether a file begins like a click log."""
        return re.match(rb"\s*\d+\s+\S+\s+\S+\s*\|user\b", start) is not None

    def batches(
        self, tables: Tables, report: ReadReport, progress: Callable[[int], None] = lambda read: None
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds of each file in order; see `hybandits.logs.store.Reader`."""
        report.ignore_files(self.ignored)
        pools = _Pools(self.kind, tables)
        for path, name in zip(self.files, self._names, strict=True):
            report.begin(name)
            lines = 0
            for block in read_lines(path, progress):
                text, at = block if block.endswith(b"\n") else block + b"\n", 0
                while at < len(text):
                    batch, problems, at = self._parse(text, at, pools)
                    faults = [Fault(lines + i + 1, problem.reason, problem.detail) for i, problem in problems]
                    report.count(batch.rounds, faults)
                    lines += batch.rounds + len(faults)
                    if batch.rounds:
                        yield name, batch

    def _parse(self, text: bytes, at: int, pools: _Pools) -> tuple[Batch, list[tuple[int, Malformed]], int]:
        """The rounds in whole lines, the lines that cannot be used by their number, and where the next line begins."""
        spans, users = np.empty((ROWS, 8), np.int64), np.empty((ROWS, len(self.user)))
        n, at = scan_lines(np.frombuffer(text, np.uint8), at, self.binary_user, spans, users)
        spans, users = spans[:n], users[:n]
        time, reward, propensity = spans[:, TIME].copy(), spans[:, CLICK].astype(float), np.empty(n)
        rows, chosen = np.empty(n, np.int32), np.full(n, -1, np.int32)
        faults: list[tuple[int, Malformed]] = []
        ordinary = spans[:, POOL] >= 0
        begins = np.flatnonzero((spans[:, SAME] == 0) | np.append(True, ~ordinary[:-1]))
        for i, j in zip(begins.tolist(), np.append(begins[1:], n).tolist(), strict=True):
            with contextlib.suppress(Malformed):
                if ordinary[i]:
                    pool = pools[text[spans[i, POOL] : spans[i, END]]]
                    shown = spans[i:j, ARTICLE : ARTICLE_END + 1].tolist()
                    chosen[i:j] = [pool.places.get(text[start:end], -1) for start, end in shown]
                    rows[i:j], propensity[i:j] = pool.row, 1.0 / len(pool.places)
            for k in (i + np.flatnonzero(chosen[i:j] < 0)).tolist():
                try:
                    line = parse_line(text[spans[k, START] : spans[k, END]], self.kind)
                    pool = pools[line.pool]
                    if line.article.encode() not in pool.places:
                        detail = f"{short(line.article)} is not among the {len(pool.places)} candidates"
                        raise Malformed("article shown is not a candidate", detail)
                except Malformed as fault:
                    faults.append((k, fault))
                    continue
                time[k], reward[k], users[k] = line.time, line.click, line.user
                rows[k], chosen[k], propensity[k] = pool.row, pool.places[line.article.encode()], 1.0 / len(pool.places)
        batch = Batch(time, rows, chosen, reward, propensity, users)
        if faults:
            batch = Batch(*(column[chosen >= 0] for column in batch[:-1]))
        return batch, faults, at


def _origin(folders: Iterable[Path]) -> dict[str, Any]:
    """Mark the header of a log that is synthetic, so that it is not mistaken for one of Yahoo's."""
    for folder in sorted(folders):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            return {"synthetic": dict(json.loads((folder / TRUTH).read_text())["synthetic"])}
    return {}
