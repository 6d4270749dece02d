"""CSV (also gzipped) and Parquet files as blocks of columns, whatever those mean.

Lines are those of the file, the header being line 1; of Parquet it is rows that are numbered, from 1. A record whose
quoted field holds line breaks counts as one, at its first line. A line of which no row can be made costs itself only.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from hybandits.foundation.checks import nearest, short
from hybandits.logs.problems import CUT
from hybandits.logs.store import LogError
from hybandits.logs.unpacking import Stream

BLOCK = 1 << 22
"""Bytes of a CSV file that are parsed at a time."""

ROWS = 1 << 16
"""Rows of a Parquet file that are read at a time."""

LONGEST = 1 << 26
"""Bytes without a line end after which a file is taken not to be CSV."""

SPAN = 1000
"""Lines after which a quote that is still open is taken for a stray one."""

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
"""Files of a folder that are taken to be its log."""


class Fault(NamedTuple):
    """A line of which no row can be made."""

    line: int
    kind: str
    detail: str


class Rows(NamedTuple):
    """Consecutive rows: columns by name, the line of each row, the lines that are no rows, and bytes read for them."""

    columns: dict[str, pa.Array]
    lines: np.ndarray
    faults: list[Fault]
    read: int


class DamagedError(Exception):
    """The rest of a file cannot be read; cut: how the line begins that is lost by it."""

    def __init__(self, why: str, cut: bytes = b"") -> None:
        super().__init__(why)
        self.cut = cut


class TableFile(Protocol):
    """A file with columns."""

    path: Path
    columns: list[str]

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Blocks of rows with these columns; DamagedError when the rest cannot be read."""
        ...


def files_of(path: Path | str | Sequence[Path | str]) -> list[Path]:
    """The files meant: a folder stands for the logs in it, in the order of their names."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    out: list[Path] = []
    for one in paths:
        if one.is_dir():
            inside = [file for file in sorted(one.iterdir()) if _is_log(file)]
            if not inside:
                raise LogError(f"{one} has no log in it: files whose names end in {', '.join(SUFFIXES)} are looked for")
            out += inside
        else:
            out.append(one)
    if not out:
        raise LogError("no file is given: give a CSV or Parquet file")
    return out


def passed_over(path: Path | str | Sequence[Path | str]) -> list[Path]:
    """What lies in the folders meant and is not read."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    return [file for one in paths if one.is_dir() for file in sorted(one.iterdir()) if not _is_log(file)]


def _is_log(file: Path) -> bool:
    return file.is_file() and file.name.lower().endswith(SUFFIXES) and not file.name.startswith(".")


def open_table(path: Path | str) -> TableFile:
    """A CSV or Parquet file, told apart by how it begins."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as problem:
        raise LogError(f"{path} cannot be read ({problem.strerror}): give a CSV or Parquet file") from None
    if not start:
        raise LogError(f"{path} is empty: a log has a header and rows")
    return ParquetTable(path) if start == b"PAR1" else CsvTable(path)


def require(file: TableFile, names: Iterable[str], what: str) -> None:
    """An error if a column is not there, or there twice."""
    for name in names:
        found = file.columns.count(name)
        if not found:
            there = ", ".join(repr(column) for column in file.columns[:40])
            more = f" and {len(file.columns) - 40} more" if len(file.columns) > 40 else ""
            raise LogError(
                f"{what} names the column {name!r}, which {file.path} has not{nearest(name, file.columns)}: "
                f"its columns are {there}{more}"
            )
        if found > 1:
            raise LogError(f"{file.path} has {found} columns called {name!r}: give each a name of its own")


class CsvTable:
    """A CSV file, gzipped or not; separated by commas, semicolons or tabs, whichever the header has most of."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._above = 0
        header = b""
        try:
            for block in self._blocks(None):
                blank = len(block) - len(block.lstrip())
                begin = block.rfind(b"\n", 0, blank) + 1
                self._above += block.count(b"\n", 0, begin)
                header = block[begin:].partition(b"\n")[0]
                if header:
                    break
        except DamagedError as problem:
            raise LogError(f"{path} cannot be read ({problem}): is it whole?") from None
        if not header:
            raise LogError(f"{path} has no header: a log has a header and rows")
        if b"\x00" in header:
            raise LogError(f"{path} is not text in UTF-8 (zero bytes in the header): save it as CSV in UTF-8")
        text = header.decode("utf-8", "replace")
        self._delimiter = max(",;\t", key=text.count)
        self.columns = [name.strip() for name in next(csv.reader([text], delimiter=self._delimiter))]

    def _blocks(self, tell: Callable[[int], None] | None) -> Iterator[bytes]:
        """Whole lines, about BLOCK bytes at a time, all line ends made \\n; the last may lack its line end.

        What precedes damage is handed out before DamagedError is raised.
        """
        with contextlib.closing(Stream(self.path)) as stream:
            rest, start, at = b"", True, 0
            while True:
                some = _read(stream)
                problem = "" if some else stream.damage
                data = rest + some
                if start:
                    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
                        raise LogError(f"{self.path} is in UTF-16: save it as CSV in UTF-8")
                    data, start = data.removeprefix(b"\xef\xbb\xbf"), False
                ended = not some and not problem
                held = b""
                if data.endswith(b"\r") and not ended:  # perhaps the first half of \r\n
                    data, held = data[:-1], b"\r"
                if b"\r" in data:
                    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                cut = len(data) if ended else data.rfind(b"\n") + 1
                rest = data[cut:] + held
                if tell is not None:
                    tell(stream.file.tell() - at)
                    at = stream.file.tell()
                if cut:
                    yield data[:cut]
                if problem:
                    raise DamagedError(problem, rest)
                if ended:
                    return
                if len(rest) > LONGEST:
                    raise DamagedError(f"no line end within {LONGEST:,} bytes", rest)

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Blocks of rows, cells as bytes."""
        index = [self.columns.index(name) for name in wanted]
        read, line, left = 0, 1, b""

        def tell(some: int) -> None:
            nonlocal read
            read += some

        def parsed(block: bytes, *, last: bool) -> Rows:
            nonlocal read, line, left
            block = left + block
            if block and not block.endswith(b"\n"):
                block += b"\n"
            arrays, lines, faults, left = self._parse(block, line, index, last=last)
            line += block.count(b"\n") - left.count(b"\n")
            rows = Rows(dict(zip(wanted, arrays, strict=True)), lines, faults, read)
            read = 0
            return rows

        damage: DamagedError | None = None
        above = self._above + 1
        try:
            for block in self._blocks(tell):
                while above and block:
                    block = block.partition(b"\n")[2]
                    above -= 1
                    line += 1
                if block:
                    yield parsed(block, last=False)
        except DamagedError as problem:
            damage = problem
        if left or read:
            yield parsed(b"", last=True)
        if damage is not None:
            if damage.cut:
                fault = Fault(line, CUT, short(damage.cut[:20].decode("utf-8", "replace")))
                yield Rows({name: pa.array([], pa.binary()) for name in wanted}, np.empty(0, np.int64), [fault], 0)
            raise damage

    def _parse(
        self, block: bytes, line: int, index: list[int], *, last: bool
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault], bytes]:
        """Columns, lines, faults, and what must wait for the next block."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        lines = line + np.flatnonzero(ends > starts)
        # Arrow shows a bad row to its handler as text, which fails on the way if it is not UTF-8.
        if _is_utf8(block) and not (b'"' in block and np.bitwise_xor.reduceat(data == ord('"'), starts).any()):
            done = self._quickly(block, lines, index)
            if done is not None:
                return *done, b""
        return self._carefully(block, line, index, last=last)

    def _quickly(
        self, block: bytes, lines: np.ndarray, index: list[int]
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault]] | None:
        """By Arrow, if every line is a record of its own; None if it turns out that Arrow sees other records."""
        wrong: list[tuple[int | None, int]] = []

        def handle(row: Any) -> str:
            wrong.append((row.number, row.actual_columns))
            return "skip"

        names = [str(i) for i in range(len(self.columns))]
        used = [str(i) for i in index]
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(block),
                pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                pa.csv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=handle),
                pa.csv.ConvertOptions(
                    column_types={name: pa.binary() for name in used}, include_columns=used,
                    strings_can_be_null=False, null_values=[], check_utf8=False,
                ),
            )  # fmt: skip
        except pa.ArrowInvalid:
            return None
        if len(table) + len(wrong) != len(lines) or any(number is None for number, _ in wrong):
            return None
        places = np.array([number for number, _ in wrong], np.int64) - 1  # Arrow does not count blank lines
        faults = [self._miscounted(int(lines[i]), fields) for i, (_, fields) in zip(places, wrong, strict=True)]
        return [column.combine_chunks() for column in table.columns], np.delete(lines, places), faults

    def _carefully(
        self, block: bytes, line: int, index: list[int], *, last: bool
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault], bytes]:
        """Line by line, for quoted fields with line breaks and for stray quotes, which cost their line only."""
        texts = block.decode("utf-8", "surrogateescape").split("\n")[:-1]
        records: list[list[str]] = []
        lines: list[int] = []
        faults: list[Fault] = []
        i = 0
        while i < len(texts):
            taken = 1
            fields: list[str] | None = self._fields(texts[i])
            if texts[i].count('"') % 2 and (fields := self._closed(texts[i])) is None:
                stop = min(i + SPAN, len(texts))
                other = next((j for j in range(i + 1, stop) if texts[j].count('"') % 2), None)
                if other is not None:
                    merged = self._fields("\n".join(texts[i : other + 1]))
                    if len(merged) == len(self.columns):
                        taken, fields = other + 1 - i, merged
                elif stop - i < SPAN and not last:
                    left = "\n".join(texts[i:]) + "\n"
                    return *self._gather(records, index), np.array(lines, np.int64), faults, _bytes(left)
            if fields is None:
                faults.append(Fault(line + i, "quote that is not closed", f"got {short(texts[i])}"))
            elif fields and len(fields) != len(self.columns):
                faults.append(self._miscounted(line + i, len(fields)))
            elif fields:
                records.append(fields)
                lines.append(line + i)
            i += taken
        return *self._gather(records, index), np.array(lines, np.int64), faults, b""

    def _gather(self, records: list[list[str]], index: list[int]) -> tuple[list[pa.Array]]:
        return ([pa.array([_bytes(fields[i]) for fields in records], pa.binary()) for i in index],)

    def _fields(self, text: str) -> list[str]:
        try:
            return next(csv.reader([text], delimiter=self._delimiter), [])
        except csv.Error:  # a field beyond the module's limit
            return [text]

    def _closed(self, text: str) -> list[str] | None:
        """The fields of a line with an odd number of quotes, None unless all that are opened are closed."""
        try:
            return next(csv.reader([text], delimiter=self._delimiter, strict=True))
        except csv.Error:
            return None

    def _miscounted(self, line: int, fields: int) -> Fault:
        return Fault(line, "wrong number of fields", f"{fields} where the header has {len(self.columns)}")


def _read(stream: Stream) -> bytes:
    """About BLOCK bytes; none at the end, or where the rest cannot be unpacked."""
    room = memoryview(bytearray(BLOCK))
    size = 0
    while size < BLOCK and (n := stream.readinto(room[size:])):
        size += n
    return bytes(room[:size])


def _is_utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode())
    except UnicodeDecodeError:
        return False


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class ParquetTable:
    """A Parquet file; rows are numbered from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pq.ParquetFile(path) as file:
                self.columns = list(file.schema_arrow.names)
                self._total = file.metadata.num_rows
        except (OSError, pa.ArrowException) as problem:
            raise LogError(f"{path} is not a whole Parquet file ({_first(problem)}): make it again") from None

    def rows(self, wanted: Sequence[str]) -> Iterator[Rows]:
        """Blocks of rows, cells as they are."""
        size = self.path.stat().st_size
        done = told = 0
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(ROWS, columns=list(wanted)):
                    lines = np.arange(done + 1, done + 1 + batch.num_rows)
                    done += batch.num_rows
                    read = size * done // self._total - told
                    told += read
                    yield Rows({name: batch.column(name) for name in wanted}, lines, [], read)
        except (OSError, pa.ArrowException) as problem:
            raise DamagedError(_first(problem)) from None


def _first(problem: Exception) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
