"""Cells to checked values: text, numbers, seconds, lists of names. A cell that cannot be read is a fault of its row."""

from __future__ import annotations

import ast
import json
import math
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybandits.foundation.checks import FloatArray, short
from hybandits.logs.columns.tabular import ColumnBlock, Fault
from hybandits.logs.ids import without_point
from hybandits.logs.store import LARGEST, NO_TIME, LogError

LATEST = 253_402_300_799
"""The last second of the year 9999: a later time cannot be in seconds."""

_ABSENT = frozenset(("", "na", "n/a", "nan", "null", "none"))
_JOINT = "\x1f"  # between the candidates of a Parquet list when they are joined as text
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Sheet:
    """A block of rows whose cells are taken as text, numbers or seconds; of a row, the first bad cell is remembered."""

    def __init__(self, block: ColumnBlock) -> None:
        self.columns, self.lines = block.columns, block.lines
        self.n = len(block.lines)
        self._reason = np.full(self.n, -1, np.int16)
        self._reasons: list[tuple[str, Callable[[int], str]]] = []

    @property
    def good(self) -> np.ndarray:
        """Rows without a fault so far."""
        good: np.ndarray = self._reason < 0
        return good

    def fault(self, mask: np.ndarray, kind: str, detail: Callable[[int], str]) -> None:
        """Mark these rows as unusable; a row that is marked already keeps its first reason."""
        new = mask & self.good
        if new.any():
            self._reason[new] = len(self._reasons)
            self._reasons.append((kind, detail))

    def faults(self) -> list[Fault]:
        """All faults in the order of their lines."""
        out = []
        for i in np.flatnonzero(self._reason >= 0).tolist():
            kind, detail = self._reasons[self._reason[i]]
            out.append(Fault(int(self.lines[i]), kind, detail(i)))
        return out

    def text(self, name: str, *, optional: bool = False) -> pa.Array:
        """A column as text without blanks around it; null where a cell is empty."""
        text = self._text(name)
        if not optional:
            self.fault(_nulls(text), "missing value", lambda i: f"column {name!r} is empty")
        return text

    def ids(self, name: str, *, integers: bool, optional: bool = False) -> pa.Array:
        """A column of ids as text; with `integers`, a whole float is written as an integer: 1.0 as 1."""
        column = self.columns[name]
        if integers and pa.types.is_floating(column.type):
            values = _doubles(column)
            with np.errstate(invalid="ignore"):
                whole = (values == np.floor(values)) & (np.abs(values) < 2**53)
            if whole.any():
                numbers = pa.array(np.where(whole, values, 0.0).astype(np.int64)).cast(pa.string())
                return pc.if_else(pa.array(whole), numbers, self.text(name, optional=optional))
        text = self.text(name, optional=optional)
        return pc.replace_substring_regex(text, r"^(-?[0-9]+)\.0+$", r"\1") if integers else text

    def numbers(self, name: str, *, optional: bool = False) -> FloatArray:
        """A column as numbers; NaN where a cell is empty."""
        column = self.columns[name]
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        unparsable = np.zeros(self.n, bool)
        if is_text(kind):
            text = self._text(name)
            try:
                values = _doubles(text.cast(pa.float64()))
            except pa.ArrowInvalid:
                values, unparsable = _each(text, _number)
            self.fault(unparsable, "unparsable number", lambda i: f"column {name!r}: got {short(text[i].as_py())}")
        else:
            try:
                values = _doubles(column.cast(kind).cast(pa.float64(), safe=False))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise LogError(f"column {name!r} is of type {kind}: it should hold numbers") from None
        if not optional:
            empty = np.isnan(values) & ~unparsable
            self.fault(empty, "missing value", lambda i: f"column {name!r} is empty or NaN")
        self.fault(np.isinf(values), "number that is not finite", lambda i: f"column {name!r}: got {values[i]}")
        with np.errstate(invalid="ignore"):
            large = np.abs(values) > LARGEST
        self.fault(
            large & ~np.isinf(values), f"number beyond {LARGEST:g}", lambda i: f"column {name!r}: got {values[i]}"
        )
        return values

    def number_lists(self, name: str, separator: str) -> tuple[FloatArray, np.ndarray]:
        """A column of lists of numbers: all numbers one after the other, and how many each row has.

        Text may be a JSON list, or numbers with the separator or else with spaces between them.
        """
        column = self.columns[name]
        if not is_list(column.type):
            text = pc.fill_null(self.text(name), "")
            escaped = separator.replace("\\", "\\\\")
            bracketed = pc.match_substring_regex(text, r"^\[.*\]$")
            inside = pc.replace_substring(pc.replace_substring_regex(text, r"^\[(.*)\]$", r"\1"), ",", separator)
            spaced = pc.if_else(
                pc.match_substring(text, separator), text, pc.replace_substring_regex(text, r"\s+", escaped)
            )
            column = pc.split_pattern(pc.if_else(bracketed, inside, spaced), separator)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = column.flatten()
        inner = Sheet(ColumnBlock({name: flat}, np.zeros(len(flat), np.int64), [], 0))
        numbers = inner.numbers(name)
        row = np.repeat(np.arange(self.n), lengths)
        for code, (kind, detail) in enumerate(inner._reasons):
            wrong = np.flatnonzero(inner._reason == code)
            at = np.full(self.n, -1)
            at[row[wrong[::-1]]] = wrong[::-1]  # the first of each row
            self.fault(at >= 0, kind, lambda i, at=at, detail=detail: detail(int(at[i])))  # type: ignore[misc]
        return numbers, lengths

    def seconds(self, name: str) -> np.ndarray:
        """A column as seconds since 1970; NO_TIME where a cell is empty."""
        column = self.columns[name]
        kind = column.type
        unparsable = np.zeros(self.n, bool)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            if pa.types.is_date(kind):
                column = column.cast(pa.timestamp("ms"))
            per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
            values = _floor(column.cast(pa.int64()), per)
        elif is_text(kind):
            text = self._text(name)
            times = _timestamps(text)
            if times is None:
                values, unparsable = _each(text, _moment)
            else:
                values = times
            self.fault(unparsable, "unparsable time", lambda i: f"column {name!r}: got {short(text[i].as_py())}")
        else:
            values = np.floor(self.numbers(name, optional=True))
        known = ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            late = np.abs(values) > LATEST
        self.fault(
            late, "time out of range", lambda i: f"column {name!r}: got {values[i]:.0f}, expected seconds since 1970"
        )
        out = np.full(self.n, NO_TIME, np.int64)
        known &= ~late
        out[known] = values[known].astype(np.int64)
        return out

    def _text(self, name: str) -> pa.Array:
        column = self.columns[name]
        kind = column.type
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_boolean(kind):
            column = column.cast(pa.int8())  # True is the category 1, as in Python
        elif pa.types.is_floating(kind):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        elif pa.types.is_nested(kind):
            raise LogError(f"column {name!r} is of type {kind}: it should hold text or numbers")
        try:
            text = column.cast(pa.string())
        except pa.ArrowInvalid:
            text, wrong = _decoded(column)
            self.fault(wrong, "not UTF-8", lambda i: f"column {name!r}: got {short(column[i].as_py())}")
        except pa.ArrowNotImplementedError:
            raise LogError(f"column {name!r} is of type {kind}: it should hold text or numbers") from None
        text = pc.utf8_trim_whitespace(text)
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(check(kind) for check in text) or str(kind) in ("string_view", "binary_view")


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists."""
    return any(check(kind) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def _nulls(column: pa.Array) -> np.ndarray:
    return np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), bool)


def _doubles(column: pa.Array) -> FloatArray:
    return np.asarray(column.fill_null(math.nan).to_numpy(zero_copy_only=False), np.float64)


def _floor(column: pa.Array, per: int) -> FloatArray:
    whole = column.fill_null(0).to_numpy(zero_copy_only=False) // per
    return np.where(_nulls(column), np.nan, whole.astype(np.float64))


def _decoded(column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """Bytes as text, and where they are not UTF-8; the text is null there."""
    texts: list[str | None] = []
    wrong = np.zeros(len(column), bool)
    for i, value in enumerate(column.to_pylist()):
        try:
            texts.append(value if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            wrong[i] = True
    return pa.array(texts, pa.string()), wrong


def _each(text: pa.Array, parse: Callable[[str], float | None]) -> tuple[FloatArray, np.ndarray]:
    """Every distinct cell parsed on its own: the values (NaN for empty cells), and where parsing failed."""
    coded = text.dictionary_encode()
    parsed = [parse(cell) for cell in coded.dictionary.to_pylist()]
    codes = coded.indices.fill_null(len(parsed)).to_numpy(zero_copy_only=False)
    values = np.array([*(math.nan if value is None else value for value in parsed), math.nan])
    failed = np.array([*(value is None for value in parsed), False])
    return values[codes], failed[codes]


def _number(text: str) -> float | None:
    """A number, or true or false as 1 or 0; NaN for words such as "null"; None for anything else."""
    lower = text.lower()
    if lower in _ABSENT:
        return math.nan
    if lower in ("true", "false"):
        return float(lower == "true")
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _timestamps(text: pa.Array) -> FloatArray | None:
    """A column that is all numbers or all timestamps, fast; None if it is neither."""
    try:
        return np.floor(_doubles(text.cast(pa.float64())))
    except pa.ArrowInvalid:
        pass
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return _floor(text.cast(kind).cast(pa.int64()), 10**6)
        except pa.ArrowInvalid:
            continue
    return None


def _moment(text: str) -> float | None:
    number = _number(text)
    if number is not None:
        return math.floor(number) if math.isfinite(number) else number
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
        return (moment - _EPOCH) // timedelta(seconds=1)
    except (ValueError, OverflowError):
        return None


# ------------------------------------------------------------------ lists of candidates


def candidate_texts(sheet: Sheet, name: str, *, integers: bool = False) -> pa.Array:
    """The lists of candidates in a column, each as text; null where there is none. For `integers` see `Sheet.ids`."""
    column = sheet.columns[name]
    if not is_list(column.type):
        return sheet.text(name)
    inner = ColumnBlock({name: column.flatten()}, np.zeros(len(column.flatten()), np.int64), [], 0)
    names = Sheet(inner).ids(name, integers=integers, optional=True)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, names), _JOINT)
    # A joint at the end too, so that the name of a single candidate is not split at its blanks.
    text = pc.binary_join_element_wise(joined, "", _JOINT)
    text = pc.if_else(pa.array(lengths == 0), pa.scalar(None, pa.string()), text)
    sheet.fault(_nulls(text), "missing value", lambda i: f"column {name!r}: the list is empty or has a null in it")
    return text


def split_candidates(text: str, separator: str, *, integers: bool = False) -> list[str]:
    """The names in a list of candidates; ValueError if the text is not such a list. For `integers` see `Sheet.ids`.

    >>> split_candidates("a|b|c", "|"), split_candidates('["a", "b"]', "|"), split_candidates("a b", "|")
    (['a', 'b', 'c'], ['a', 'b'], ['a', 'b'])
    """
    if _JOINT in text:
        names: list[Any] = text.split(_JOINT)
    elif text.startswith("["):
        try:
            names = json.loads(text)
        except (ValueError, RecursionError):
            try:
                names = ast.literal_eval(text)  # how Python prints a list
            except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                raise ValueError("it starts like a list, but it is not one") from None
        if not isinstance(names, list):
            raise ValueError("it starts like a list, but it is not one")
    elif separator in text:
        names = text.split(separator)
    else:
        names = text.split()
    candidates = [name for name in map(_name, names) if name]
    if integers:
        candidates = list(map(without_point, candidates))
    if not candidates:
        raise ValueError("it has no candidates")
    if len(set(candidates)) < len(candidates):
        twice = next(name for name, n in Counter(candidates).items() if n > 1)
        raise ValueError(f"it has {twice!r} twice")
    return candidates


def _name(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{short(value)} is not the name of an arm")
    return str(value).strip()
