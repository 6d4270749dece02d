"""CSV files (also gzipped) and Parquet files as blocks of rows, and their cells as text, numbers, seconds and lists.

A cell that cannot be used costs its own row alone; a file that is not a table is refused. Lines are numbered as in the
file, with the header as line 1; rows of Parquet files are numbered from 1.
"""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from hybandits.foundation.checks import FloatArray, nearest, short
from hybandits.logs.files import read_lines, read_start
from hybandits.logs.report import Fault
from hybandits.logs.store import LARGEST, NO_TIME, LogError, first_line

BLOCK = 1 << 22
"""Bytes of a CSV file that are parsed at a time."""

ROWS = 1 << 16
"""Rows of a Parquet file that are read at a time."""

LATEST = 253_402_300_799
"""The last second of the year 9999: a later time cannot be in seconds."""


class Rows:
    """Consecutive rows of a table by wanted column, whose cells are taken as text, numbers, seconds or lists.

    `lines` has the line of every row. Of every row the first cell that cannot be used is remembered.
    """

    def __init__(self, columns: dict[str, pa.Array], lines: np.ndarray, faults: Sequence[Fault] = ()) -> None:
        self.columns, self.lines, self.n = columns, lines, len(lines)
        self._between = list(faults)
        self._reason = np.full(self.n, -1, np.int16)
        self._reasons: list[tuple[str, Callable[[int], str]]] = []

    @property
    def good(self) -> np.ndarray:
        """Rows without a fault so far."""
        return np.asarray(self._reason < 0)

    def fault(self, mask: np.ndarray, reason: str, detail: Callable[[int], str]) -> None:
        """Mark these rows as unusable; a row that is marked already keeps its first reason."""
        new = mask & self.good
        if new.any():
            self._reason[new] = len(self._reasons)
            self._reasons.append((reason, detail))

    def faults(self) -> list[Fault]:
        """All lines that cannot be used in their order, those between the rows included."""
        faults = list(self._between)
        for i in np.flatnonzero(self._reason >= 0).tolist():
            reason, detail = self._reasons[self._reason[i]]
            faults.append(Fault(int(self.lines[i]), reason, detail(i)))
        return sorted(faults)

    def text(self, name: str, *, optional: bool = False) -> pa.Array:
        """A column as text without surrounding blanks; null where a cell is empty."""
        column = self.columns[name]
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())  # True is the category 1, as in Python
        elif pa.types.is_floating(kind):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        try:
            text = pc.utf8_trim_whitespace(column.cast(pa.string()))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise LogError(f"column {name!r} is of type {kind}: it should hold text in UTF-8 or numbers") from None
        text = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
        if not optional:
            self.fault(np.array(text.is_null()), "missing value", lambda i: f"column {name!r} is empty")
        return text

    def ids(self, name: str, *, integers: bool = True) -> pa.Array:
        """A column of ids as text; with `integers`, a whole float is written as an integer: 1.0 as 1."""
        column = self.columns[name]
        if integers and pa.types.is_floating(column.type):
            with contextlib.suppress(pa.ArrowInvalid):  # not all are whole
                gaps = pc.is_nan(column)
                self.columns[name] = pc.if_else(gaps, pa.scalar(None, column.type), column).cast(pa.int64())
        text = self.text(name)
        return pc.replace_substring_regex(text, r"^(-?[0-9]+)\.0+$", r"\1") if integers else text

    def numbers(self, name: str, *, optional: bool = False) -> FloatArray:
        """A column as numbers; NaN where a cell is empty."""
        column = self.columns[name]
        unparsable = np.zeros(self.n, bool)
        if is_text(column.type):
            text = self.text(name, optional=True)
            try:
                values = _floats(text.cast(pa.float64()))
            except pa.ArrowInvalid:
                values, unparsable = _each(text, _number)
            self.fault(unparsable, "unparsable number", lambda i: f"column {name!r}: got {short(text[i].as_py())}")
        else:
            try:
                values = _floats(column.cast(pa.float64(), safe=False))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise LogError(f"column {name!r} is of type {column.type}: it should hold numbers") from None
        if not optional:
            empty = np.isnan(values) & ~unparsable
            self.fault(empty, "missing value", lambda i: f"column {name!r} is empty or NaN")
        large = np.abs(np.nan_to_num(values, posinf=np.inf)) > LARGEST
        self.fault(large, f"number beyond {LARGEST:g}", lambda i: f"column {name!r}: got {values[i]}")
        return values

    def seconds(self, name: str) -> np.ndarray:
        """A column as seconds since 1970; NO_TIME where a cell is empty."""
        column = self.columns[name]
        if pa.types.is_temporal(column.type):
            microseconds = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).fill_null(0).to_numpy()
            values = np.where(np.array(column.is_null()), np.nan, np.floor_divide(microseconds, 10**6))
        elif is_text(column.type):
            text = self.text(name, optional=True)
            values, unparsable = _each(text, _moment)
            self.fault(unparsable, "unparsable time", lambda i: f"column {name!r}: got {short(text[i].as_py())}")
        else:
            values = self.numbers(name, optional=True)
        late = np.abs(np.nan_to_num(values)) > LATEST
        self.fault(late, "time out of range", lambda i: f"column {name!r}: got {values[i]:.0f}, expected seconds")
        return np.where(np.isnan(values) | late, NO_TIME, np.floor(np.nan_to_num(values))).astype(np.int64)

    def lists(self, name: str, *, integers: bool = True) -> list[list[str]]:
        """A column of lists of ids: a list column of Parquet, or text with | between the ids. See `ids`."""
        column = self.columns[name]
        if not isinstance(column.type, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
            column = pc.split_pattern(self.text(name), "|")
        flat = column.flatten()
        names = Rows({name: flat}, np.zeros(len(flat), np.int64)).ids(name, integers=integers).to_pylist()
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        parts = [names[end - size : end] for end, size in zip(np.cumsum(sizes).tolist(), sizes.tolist(), strict=True)]
        odd = np.array([not part or None in part for part in parts], bool)
        self.fault(odd, "missing value", lambda i: f"column {name!r}: the list is empty or has an empty id in it")
        return parts


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text, perhaps as categories."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _floats(column: pa.Array) -> FloatArray:
    return np.asarray(column.fill_null(math.nan).to_numpy(zero_copy_only=False), np.float64)


def _each(text: pa.Array, parse: Callable[[str], float | None]) -> tuple[FloatArray, np.ndarray]:
    """Every distinct cell parsed on its own: the values (NaN for empty cells), and where parsing failed."""
    coded = text.dictionary_encode()
    parsed = [parse(cell) for cell in coded.dictionary.to_pylist()]
    codes = coded.indices.fill_null(len(parsed)).to_numpy(zero_copy_only=False)
    values = np.array([*(math.nan if value is None else value for value in parsed), math.nan])
    failed = np.array([*(value is None for value in parsed), False])
    return values[codes], failed[codes]


def _number(text: str) -> float | None:
    """A number, or true or false as 1 or 0; None for anything else."""
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _moment(text: str) -> float | None:
    """A number of seconds or an ISO timestamp, in UTC unless it says otherwise, as seconds since 1970."""
    if (number := _number(text)) is not None:
        return number
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def open_table(path: Path | str) -> TableFile:
    """Open a CSV or Parquet file; its first bytes tell which."""
    path = Path(path)
    start = read_start(path)
    if not start:
        raise LogError(f"{path} is empty: it should have a header and rows")
    return ParquetTable(path) if start.startswith(b"PAR1") else CsvTable(path, start)


def listed(file: TableFile) -> str:
    """Return the names of a file's columns, not too many of them, in words."""
    return ", ".join(file.columns[:40]) + ", .." * (len(file.columns) > 40)


def require(file: TableFile, names: Iterable[str]) -> None:
    """Raise LogError unless the file has each of these columns once."""
    for name in names:
        copies = file.columns.count(name)
        if not copies:
            near = nearest(name, file.columns)
            raise LogError(f"{file.path} has no column {name!r}{near}: its columns are {listed(file)}")
        if copies > 1:
            raise LogError(f"{file.path} has {copies} columns called {name!r}: give each a name of its own")


class CsvTable:
    """A CSV file, gzipped or not. Its separator is the comma, semicolon or tab, whichever its header has most of."""

    def __init__(self, path: Path, start: bytes) -> None:
        self.path = path
        header = start.partition(b"\n")[0]
        try:
            text = header.decode().strip()
        except UnicodeDecodeError:
            text = ""
        if not text or "\0" in text:
            raise LogError(f"{path} has no header in UTF-8 in its first line: save it as CSV in UTF-8, with a header")
        self._delimiter = max(",;\t", key=text.count)
        self.columns = [name.strip() for name in next(csv.reader([text], delimiter=self._delimiter))]

    def type_of(self, column: str) -> None:
        """None: cells are text whatever they mean."""

    def blocks(self, wanted: Sequence[str], progress: Callable[[int], None] = lambda read: None) -> Iterator[Rows]:
        """Blocks of rows; cells are text."""
        first = 1
        for block in read_lines(self.path, progress, BLOCK):
            rows = block.partition(b"\n")[2] if first == 1 else block
            if rows:
                yield self._parse(rows, first + (first == 1), wanted)
            first += block.count(b"\n")

    def _parse(self, block: bytes, first: int, wanted: Sequence[str]) -> Rows:
        """Parse whole lines, the first of which is line `first` of the file."""
        block += b"\n" * (not block.endswith(b"\n"))
        data = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        starts = np.concatenate([[0], ends[:-1] + 1])
        blank = (ends == starts) | ((ends == starts + 1) & (data[starts] == ord("\r")))
        lines = first + np.flatnonzero(~blank)
        wrong: list[tuple[int, int]] = []

        def handle(row: Any) -> str:
            wrong.append((row.number - 1, row.actual_columns))
            return "skip"

        names = [str(i) for i in range(len(self.columns))]
        used = [names[self.columns.index(name)] for name in wanted]
        try:
            table = pa.csv.read_csv(
                pa.py_buffer(block),
                pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names),
                pa.csv.ParseOptions(delimiter=self._delimiter, invalid_row_handler=handle),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(used, pa.string()), include_columns=used, strings_can_be_null=False,
                    null_values=[],
                ),
            )  # fmt: skip
        except (pa.ArrowInvalid, UnicodeDecodeError):
            raise self._refused(block, first) from None
        if len(table) + len(wrong) != len(lines):
            raise self._refused(block, first)
        faults = [
            Fault(int(lines[i]), "wrong number of fields", f"got {fields}, the header has {len(self.columns)}")
            for i, fields in wrong
        ]
        columns = [table.column(name).combine_chunks() for name in used]
        kept = np.delete(lines, [i for i, _ in wrong])
        return Rows(dict(zip(wanted, columns, strict=True)), kept, faults)

    def _refused(self, block: bytes, first: int) -> LogError:
        """The error for a block that is not one record per line."""
        for line, text in enumerate(block.split(b"\n"), first):
            try:
                text.decode()
            except UnicodeDecodeError:
                return LogError(f"{self.path}, line {line:,}: {short(text)} is not UTF-8: save the file as UTF-8")
            if text.count(b'"') % 2:
                wrong = f"{self.path}, line {line:,}: a quote is not closed in {short(text.decode())}"
                return LogError(f"{wrong}: close it, and leave no line breaks within fields")
        return LogError(f"{self.path}, line {first:,} and after: the lines are not CSV: save the file again")


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
            raise LogError(f"{path} is damaged ({first_line(problem)}): write or copy it again") from None

    def type_of(self, column: str) -> pa.DataType:
        """The type of a column; for categories and lists, the type of their values."""
        kind = self._types[column]
        while hasattr(kind, "value_type"):
            kind = kind.value_type
        return kind

    def blocks(self, wanted: Sequence[str], progress: Callable[[int], None] = lambda read: None) -> Iterator[Rows]:
        """Blocks of rows; cells have the types of the file."""
        size = self.path.stat().st_size
        done = 0
        try:
            with pq.ParquetFile(self.path) as file:
                for batch in file.iter_batches(ROWS, columns=list(wanted)):
                    before, done = done, done + batch.num_rows
                    yield Rows({name: batch.column(name) for name in wanted}, np.arange(before + 1, done + 1))
                    progress(size * done // self._total - size * before // self._total)
        except (OSError, pa.ArrowException) as problem:
            raise LogError(f"{self.path} is damaged ({first_line(problem)}): write or copy it again") from None


TableFile = CsvTable | ParquetTable
