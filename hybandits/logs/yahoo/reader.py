"""Reads the click logs Yahoo! R6A and R6B, one visit a line, gzipped or plain:

    R6A: 1241160900 100123 0 |user 2:0.101 3:0.202 .. 6:0.6 1:1.0 |100120 2:0.3 .. 6:0.3895 1:1.0 |100123 2:0.25 ..
    R6B: 1317513291 id-560620 0 |user 1 9 11 13 23 |id-552077 |id-555224 |id-560620

A line has the time, the article shown, the click, the user's features, then the candidates with their features. The
article shown was drawn uniformly, so its propensity is 1 / number of candidates.

There are two parsers. `lines.parse_line` is plain Python: it says what a line means and, if the line is malformed, what
is wrong with it. `compiled.walk` takes ordinary lines only: a head and a user in the usual spelling, then candidates
that are, byte for byte, a list that has been read before. Most of a line is that list, and the same list lasts for
thousands of lines, so most of the work is to compare it with that of the line before. All other lines are handed over
to Python.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybandits.foundation.checks import short
from hybandits.logs.input_files import Paths, list_files, source_names
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
    find_newline,
    walk,
)
from hybandits.logs.yahoo.known_pools import KnownPool, KnownPools
from hybandits.logs.yahoo.lines import (
    ARM_NAMES,
    EMPTY,
    LONG,
    LONGEST,
    NOT_A_LOG,
    R6A,
    R6B,
    USER_SIZE,
    Head,
    Malformed,
    find_shown,
    kind_of,
    parse_head,
)

CHUNK = 1 << 18
"""Bytes of text taken at a time: few enough to stay in the processor's cache."""


# ------------------------------------------------------------------ which files

_NO_LOG = re.compile(
    r"readme|licen[cs]e|copying|changelog|index\.|md5|sha\d|.*\.(md|json|jsonl|html?|pdf|rst|rtf|docx?|csv|parquet|feather"
    r"|arrow|npz|npy|png|jpe?g|gif|svg|zip|tar|tgz|7z|rar|bz2|xz|zst|py|ipynb|sh|ya?ml|toml|xml|md5|sha\d+|part|tmp"
    r"|crdownload|asc|sig)(\.gz)?$|.*\.tar\.gz$|.*~$",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_]?([01]\d)[-_]?([0-3]\d)(?!\d)")


def _log_files(paths: Paths) -> tuple[list[Path], dict[str, str]]:
    """The files to read, each once and in the order of their dates, and what is ignored in folders."""
    files, ignored, _ = list_files(paths, lambda name: not _NO_LOG.match(name))
    distinct: dict[Path, Path] = {}
    for file in files:
        distinct.setdefault(file.resolve(), file)
    return sorted(distinct.values(), key=_by_date), ignored


def _by_date(path: Path) -> tuple[bool, str, str, str]:
    """Files with a date in their name come first, by date, then the others by name."""
    dates = _DATE.findall(path.name)
    return not dates, "".join(dates[-1]) if dates else "", path.name, str(path)


def _origin(folders: Iterable[Path]) -> dict[str, Any]:
    """What the header of a log says if it is synthetic, so that nobody takes it for Yahoo's."""
    for folder in sorted(folders):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            truth = json.loads((folder / TRUTH).read_text())
            return {"synthetic": dict(truth["synthetic" if "synthetic" in truth else "made"])}  # "made" in older logs
    return {}


# ------------------------------------------------------------------ the reader


class _BatchInProgress:
    """The columns of the batch that is being filled."""

    def __init__(self, rows: int, user: int) -> None:
        self.time = np.empty(rows, np.int64)
        self.pool = np.empty(rows, np.int32)
        self.chosen = np.empty(rows, np.int32)
        self.reward, self.propensity = np.empty(rows), np.empty(rows)
        self.user = np.empty((rows, user))

    @property
    def all(self) -> tuple[np.ndarray, ...]:
        """The columns in the order in which `walk` takes them."""
        return self.time, self.pool, self.chosen, self.reward, self.propensity, self.user

    def put(self, row: int, head: Head, pool: KnownPool) -> None:
        """Fill a row."""
        self.put_pool(row, head.article, pool)
        self.time[row], self.reward[row], self.user[row] = head.time, head.click, head.user

    def put_pool(self, row: int, article: str, pool: KnownPool) -> None:
        """Fill the part of a row that depends on the candidates."""
        self.chosen[row] = find_shown(article, pool.ids)
        self.pool[row], self.propensity[row] = pool.row, 1.0 / len(pool.ids)

    def take(self, rows: int) -> Batch:
        """The first rows, without those of malformed lines."""
        kept: Any = self.pool[:rows] >= 0
        kept = slice(rows) if kept.all() else np.flatnonzero(kept)
        time, pool, chosen, reward, propensity, user = (np.array(column[kept]) for column in self.all)
        return Batch(time, pool, chosen, reward, propensity, no_places(len(pool)), user)


class YahooReader:
    """Reads R6A and R6B click logs.

    Parameters
    ----------
    paths : path or several paths
        Files, gzipped or not, and folders of them. They are read in the order of the dates in their names.
    batch_rows : int
        The most rounds a batch may have.
    chunk_bytes : int
        How much text to take at a time.

    Attributes
    ----------
    kind : str
        "R6A" or "R6B".
    user, arm : list of str
        The names of the users' and of the articles' features.
    files : list of Path
        The files to read.
    ignored : dict
        What is not read in the given folders: path to reason.

    Examples
    --------
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=100).write("clicks", files=2)
    >>> reader = YahooReader("clicks")
    >>> reader.kind, [file.name for file in reader.files] == [file.name for file in files]
    ('R6A', True)
    >>> reader.ignored
    {'clicks/truth.json': 'not a log by its name'}
    """

    def __init__(self, paths: Paths, *, batch_rows: int = 65536, chunk_bytes: int = CHUNK) -> None:
        if batch_rows < 1 or chunk_bytes < 1:
            raise ValueError(f"batch_rows and chunk_bytes must be at least 1, got {batch_rows} and {chunk_bytes}")
        paths = [paths] if isinstance(paths, str | Path) else list(paths)
        self.files, self.ignored = _log_files(paths)
        if not self.files:
            folders = ", ".join(map(str, paths))
            raise LogError(f"there is no log in {folders}: give files such as ydata-fp-td-clicks-v1_0.20090501.gz")
        self._names = source_names(self.files)
        self._doubts: dict[Path, str] = {}
        kinds = {path: kind for path in self.files if (kind := self._detect(path)) is not None}
        if len(set(kinds.values())) > 1:
            first = {kind: next(path for path in kinds if kinds[path] == kind) for kind in (R6A, R6B)}
            raise LogError(f"{first[R6A]} is an R6A log, but {first[R6B]} is an R6B log: read one kind at a time")
        self.kind = next(iter(kinds.values()), R6A)
        self.user = [str(key) for key in range(1, USER_SIZE[self.kind] + 1)]
        self.arm = list(ARM_NAMES[self.kind])
        self.binary_user = self.kind == R6B
        self.size = sum(path.stat().st_size for path in self.files)
        self.about = _origin({path.parent for path in self.files})
        self._rows = max(1, min(batch_rows, (1 << 19) // len(self.user)))  # 4 MB of user features at most
        self._chunk = chunk_bytes

    def _detect(self, path: Path) -> str | None:
        """The kind of a log file, by its first well-formed line; None, with a note, if it begins without one."""
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
        lines_are = f"none of its first {len(lines)} lines is" if len(lines) > 1 else "its first line is not"
        self._doubts[path] = f"{lines_are} in the format R6A or R6B; it begins with {short(bytes(text[:40]))}"
        return None

    def batches(
        self, tables: Tables, problems: Problems, progress: Callable[[int], None] = lambda read: None
    ) -> Iterator[tuple[str, Batch]]:
        """The rounds of each file in order; see `hybandits.logs.store.Reader`."""
        problems.ignore_files(self.ignored)
        pools = KnownPools(self.kind, tables)
        columns = _BatchInProgress(self._rows, len(self.user))
        for path, name in zip(self.files, self._names, strict=True):
            file = _FileReader(path, name, pools, columns, problems, self._chunk)
            for batch in file.batches(self._doubts.get(path), progress):
                yield name, batch


class _FileReader:
    """Reads one file into batches and counts its lines."""

    def __init__(
        self, path: Path, name: str, pools: KnownPools, columns: _BatchInProgress, problems: Problems, chunk: int
    ) -> None:
        self.path, self.name, self.pools, self.columns, self.problems = path, name, pools, columns, problems
        self.chunk = chunk
        self.buf = np.empty(LONGEST + chunk + 2, np.uint8)
        self.state = np.zeros(5, np.int64)
        self.state[LAST] = -1
        self.handed = np.empty((1 << 12, 6), np.int64)
        self.patience = 1
        self.rounds = 0

    def skip(self, kind: str, detail: str, count: int = 1) -> None:
        """Count lines that `walk` did not see."""
        self.state[LINE] += count
        self.problems.skip(kind, self.name, int(self.state[LINE]), detail, count=count)

    def batches(self, doubt: str | None, progress: Callable[[int], None]) -> Iterator[Batch]:
        """All rounds of the file; `doubt` says why it may not be a click log at all."""
        try:
            stream = Stream(self.path)
        except OSError as problem:
            self.problems.blame_file(DAMAGED, self.name, f"{problem.strerror}: check its permissions")
            return
        try:
            if doubt is not None:
                self.problems.blame_file(NOT_A_LOG, self.name, doubt)
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
            self.problems.count_file(self.name, lines=int(self.state[LINE]), rounds=self.rounds)
            if stream.damage:
                self.problems.blame_file(DAMAGED, self.name, f"{stream.damage}; {SALVAGED}")
            elif self.state[LINE] == 0:
                self.problems.blame_file(EMPTY, self.name)
        finally:
            stream.close()

    def take(self, end: int) -> Iterator[Batch]:
        """Read the whole lines up to `end`; hand out the batches that are full."""
        pools, state, columns = self.pools, self.state, self.columns
        why = -1
        while why != NEED_MORE:
            line = int(state[LINE])
            why = walk(
                self.buf, end, pools.kind == R6B, LONGEST, pools.arena, pools.spans, pools.ids, pools.table, state,
                *columns.all, self.handed[: self.patience],
            )  # fmt: skip
            passed = int(state[HANDED])
            if passed:
                self.judge(passed)
            # `walk` learns of a new list of candidates at once if it stops at once. That is of no use where most lines
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
        """Parse the lines that were handed over, in order."""
        listed = self.handed[:passed].tolist()
        self.state[LAST] = -1  # that list may be forgotten below
        i = 0
        while i < passed:
            line, start, stop, row, verdict, pool = listed[i]
            i += 1
            if verdict == NEW_POOL and self.fill_pool(row, start, stop, pool):
                continue
            try:
                head = parse_head(self.buf[start:stop].tobytes(), self.pools.kind)
                self.columns.put(row, head, self.pools.pool(head.pool))
            except Malformed as problem:
                first = i
                if verdict > OTHER:  # the lines of the same class that follow are malformed in the same way
                    while i < passed and listed[i][4] == verdict and listed[i][0] == line + i - first + 1:
                        i += 1
                self.problems.skip(problem.kind, self.name, line, problem.detail, count=1 + i - first)

    def fill_pool(self, row: int, start: int, stop: int, pool: int) -> bool:
        """Fill in the candidates of a row; False if they are malformed."""
        article = self.buf[start:pool].tobytes().split(b" ", 2)[1].decode("latin-1")
        text = self.buf[pool:stop].tobytes().removesuffix(b"\r").decode("latin-1")
        try:
            self.columns.put_pool(row, article, self.pools.pool(text))
        except Malformed:
            return False
        return True
