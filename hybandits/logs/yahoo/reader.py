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
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import short
from hybandits.logs.problems import CUT, DAMAGED, SALVAGED, Problems
from hybandits.logs.store import Batch, LogError, Tables, no_places
from hybandits.logs.synthetic import TRUTH
from hybandits.logs.unpacking import Stream
from hybandits.logs.yahoo.compiled import (
    AT,
    HANDED,
    HANDED_FULL,
    LAST,
    LINE,
    NEED_MORE,
    NEW_POOL,
    OTHER,
    ROW,
    ROWS_FULL,
    WORD,
    find_newline,
    hash_bytes,
    walk,
)
from hybandits.logs.yahoo.lines import (
    ARM_NAMES,
    EMPTY,
    LONG,
    LONGEST,
    NOT_A_LOG,
    NOT_TEXT,
    R6A,
    R6B,
    USER_SIZE,
    Head,
    Malformed,
    check_distinct,
    find_shown,
    is_plain,
    kind_of,
    parse_article,
    parse_head,
)

CHUNK = 1 << 18
"""Bytes of text taken at a time: few enough to stay in the processor's cache."""


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
            stream = Stream(path)
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
            stream = Stream(self.path)
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
                self.problems.spoil(DAMAGED, self.name, f"{stream.damage}; {SALVAGED}")
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
