"""CSV files (also gzipped) and Parquet files as blocks of columns, whatever the columns mean.

Lines are numbered as in the file, with the header as line 1; in Parquet files rows are numbered from 1. A record with
line breaks in a quoted field counts as one line, its first. A line that is not a valid row is lost alone: the rows
around it are read.
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
from hybandits.logs.input_files import InputFiles, Paths, list_files
from hybandits.logs.problems import CUT
from hybandits.logs.store import LogError
from hybandits.logs.unpacking import Stream

BLOCK = 1 << 22
"""Bytes of a CSV file that are parsed at a time."""

ROWS = 1 << 16
"""Rows of a Parquet file that are read at a time."""

LONGEST = 1 << 26
"""A file with a longer line than this, in bytes, is not taken for CSV."""

SPAN = 1000
"""A quote that is still open after this many lines is taken for a stray one."""

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
"""The endings of the names of files that are read from a folder."""


class Fault(NamedTuple):
    """A line that cannot be used, and why."""

    line: int
    kind: str
    detail: str


class ColumnBlock(NamedTuple):
    """Consecutive rows of a file, column by column.

    Attributes
    ----------
    columns
        The wanted columns by name.
    lines
        The line number of each row.
    faults
        Lines between them that are not valid rows.
    read
        Bytes of the file that were read for this block.
    """

    columns: dict[str, pa.Array]
    lines: np.ndarray
    faults: list[Fault]
    read: int


class DamagedError(Exception):
    """Raised where the rest of a file cannot be read; `cut` is the beginning of the line that is lost."""

    def __init__(self, why: str, cut: bytes = b"") -> None:
        super().__init__(why)
        self.cut = cut


class TableFile(Protocol):
    """A file with columns."""

    path: Path
    columns: list[str]

    def type_of(self, column: str) -> pa.DataType | None:
        """The type of a column, or of the values in its lists; None if the file has no types."""
        ...

    def blocks(self, wanted: Sequence[str]) -> Iterator[ColumnBlock]:
        """Blocks of rows with the wanted columns; DamagedError when the rest cannot be read."""
        ...


def table_files(paths: Paths) -> InputFiles:
    """The CSV and Parquet files among some paths and in their folders; every folder must have at least one."""
    inputs = list_files(paths, lambda name: name.lower().endswith(SUFFIXES))
    if inputs.empty_folders:
        names = ", ".join(f"*{suffix}" for suffix in SUFFIXES)
        raise LogError(f"{inputs.empty_folders[0]} has no log in it: give a folder with files named {names}")
    return inputs


def open_table(path: Path | str) -> TableFile:
    """A CSV or Parquet file; its first bytes tell which."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as problem:
        raise LogError(f"{path} cannot be read ({problem.strerror}): give a CSV or Parquet file") from None
    if not start:
        raise LogError(f"{path} is empty: it should have a header and rows")
    return ParquetTable(path) if start == b"PAR1" else CsvTable(path)


def require(file: TableFile, names: Iterable[str], what: str) -> None:
    """Raise LogError unless the file has each of these columns once; `what` says who names them."""
    for name in names:
        copies = file.columns.count(name)
        if not copies:
            columns = ", ".join(repr(column) for column in file.columns[:40])
            more = f" and {len(file.columns) - 40} more" if len(file.columns) > 40 else ""
            raise LogError(
                f"{what} names the column {name!r}, but {file.path} has no such column{nearest(name, file.columns)}: "
                f"its columns are {columns}{more}"
            )
        if copies > 1:
            raise LogError(f"{file.path} has {copies} columns called {name!r}: give each a name of its own")


class CsvTable:
    """A CSV file, gzipped or not. Its separator is the comma, semicolon or tab, whichever its header has most of."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._above = 0
        header = b""
        try:
            for block in self._lines(None):
                blank = len(block) - len(block.lstrip())
                begin = block.rfind(b"\n", 0, blank) + 1
                self._above += block.count(b"\n", 0, begin)
                header = block[begin:].partition(b"\n")[0]
                if header:
                    break
        except DamagedError as problem:
            raise LogError(f"{path} cannot be read ({problem}): copy it again") from None
        if not header:
            raise LogError(f"{path} has no header: it should have a header and rows")
        if b"\x00" in header:
            raise LogError(f"{path} is not text in UTF-8 (zero bytes in the header): save it as CSV in UTF-8")
        text = header.decode("utf-8", "replace")
        self._delimiter = max(",;\t", key=text.count)
        self.columns = [name.strip() for name in next(csv.reader([text], delimiter=self._delimiter))]

    def type_of(self, column: str) -> None:
        """None: cells are text whatever they mean."""
        return

    def _lines(self, tell: Callable[[int], None] | None) -> Iterator[bytes]:
        """Whole lines, about BLOCK bytes at a time, with \\n as line end; the last line may lack it.

        Everything before damage is handed out before DamagedError is raised. `tell` is told the bytes read.
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

    def blocks(self, wanted: Sequence[str]) -> Iterator[ColumnBlock]:
        """Blocks of rows; cells are bytes."""
        index = [self.columns.index(name) for name in wanted]
        read, line, left = 0, 1, b""

        def tell(some: int) -> None:
            nonlocal read
            read += some

        def parsed(block: bytes, *, last: bool) -> ColumnBlock:
            nonlocal read, line, left
            block = left + block
            if block and not block.endswith(b"\n"):
                block += b"\n"
            arrays, lines, faults, left = self._parse(block, line, index, last=last)
            line += block.count(b"\n") - left.count(b"\n")
            columns = ColumnBlock(dict(zip(wanted, arrays, strict=True)), lines, faults, read)
            read = 0
            return columns

        damage: DamagedError | None = None
        above = self._above + 1
        try:
            for block in self._lines(tell):
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
                empty = {name: pa.array([], pa.binary()) for name in wanted}
                yield ColumnBlock(empty, np.empty(0, np.int64), [fault], 0)
            raise damage

    def _parse(
        self, block: bytes, line: int, index: list[int], *, last: bool
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault], bytes]:
        """Columns, line numbers, faults, and the text that must wait for the next block."""
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        lines = line + np.flatnonzero(ends > starts)
        # Arrow shows a bad row to its handler as text, which fails on the way if it is not UTF-8.
        if _is_utf8(block) and not (b'"' in block and np.bitwise_xor.reduceat(data == ord('"'), starts).any()):
            parsed = self._parse_with_arrow(block, lines, index)
            if parsed is not None:
                return *parsed, b""
        return self._parse_line_by_line(block, line, index, last=last)

    def _parse_with_arrow(
        self, block: bytes, lines: np.ndarray, index: list[int]
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault]] | None:
        """Parse a block fast, if every line is a record of its own; None if Arrow finds other records than lines."""
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

    def _parse_line_by_line(
        self, block: bytes, line: int, index: list[int], *, last: bool
    ) -> tuple[list[pa.Array], np.ndarray, list[Fault], bytes]:
        """Parse a block slowly: quoted fields may have line breaks, and a stray quote costs only its own line."""
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
        """The fields of a line with an odd number of quotes; None unless every quoted field is closed."""
        try:
            return next(csv.reader([text], delimiter=self._delimiter, strict=True))
        except csv.Error:
            return None

    def _miscounted(self, line: int, fields: int) -> Fault:
        return Fault(line, "wrong number of fields", f"got {fields}, the header has {len(self.columns)}")


def _read(stream: Stream) -> bytes:
    """Read about BLOCK bytes; none at the end of the file or where the rest cannot be unpacked."""
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
    """A Parquet file; its rows are numbered from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                self.columns = list(schema.names)
                self._types = dict(zip(schema.names, schema.types, strict=True))
                self._total = file.metadata.num_rows
        except (OSError, pa.ArrowException) as problem:
            raise LogError(
                f"{path} is not a complete Parquet file ({_first_line(problem)}): write or copy it again"
            ) from None

    def type_of(self, column: str) -> pa.DataType:
        """The type of a column; for categories and lists, the type of their values."""
        kind = self._types[column]
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        return kind

    def blocks(self, wanted: Sequence[str]) -> Iterator[ColumnBlock]:
        """Blocks of rows; cells have the types of the file."""
        size = self.path.stat().st_size
        done = told = 0
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(ROWS, columns=list(wanted)):
                    lines = np.arange(done + 1, done + 1 + batch.num_rows)
                    done += batch.num_rows
                    read = size * done // self._total - told
                    told += read
                    yield ColumnBlock({name: batch.column(name) for name in wanted}, lines, [], read)
        except (OSError, pa.ArrowException) as problem:
            raise DamagedError(_first_line(problem)) from None


def _first_line(problem: Exception) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
