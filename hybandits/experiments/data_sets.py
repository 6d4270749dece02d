"""Data sets for classification from files, CSV or Parquet: one column is the class, all others are numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hybandits.foundation.checks import FloatArray, nearest
from hybandits.foundation.files import sha256

PARQUET = (".parquet", ".pq")
"""How the names of Parquet files end; all other files are read as CSV."""


def read_table(path: Path | str, label: str | None = None) -> tuple[FloatArray, list[str]]:
    """Features and labels from a file.

    Parameters
    ----------
    path : path
        A Parquet file (.parquet), or a CSV file with a header.
    label : str, optional
        The column of the class; by default the last one. All other columns must be finite numbers.

    Returns
    -------
    features : array of shape (rows, number of other columns)
    labels : list of str
        The class of every row, as text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("length,width,kind\\n1.5,2,lily\\n3,1,rose\\n")
    ...     read_table(path)
    (array([[1.5, 2. ], [3. , 1. ]]), ['lily', 'rose'])
    """
    path = Path(path)
    names, columns, places = _parquet(path) if path.suffix.lower() in PARQUET else _csv(path)
    if len(names) < 2 or not columns[0]:
        raise ValueError(f"{path} must have a header, rows, and a column of features beside that of the class")
    if label is not None and label not in names:
        raise ValueError(f"{path} has no column {label!r}{nearest(label, names)}: it has {', '.join(names)}")
    at = len(names) - 1 if label is None else names.index(label)
    features = [list(_numbers(path, names[i], columns[i], places)) for i in range(len(names)) if i != at]
    if None in columns[at]:
        place = places[columns[at].index(None)]
        raise ValueError(f"{path}: {place} has no class in {names[at]}: leave the row out")
    labels = [str(value) for value in columns[at]]
    if len(set(labels)) == 1:
        raise ValueError(
            f"{path} has only the class {labels[0]!r} in {names[at]}, so there is nothing to choose: give rows of two "
            "classes or more, or name the column of the class with label"
        )
    return np.array(features, dtype=float).T.copy(), labels


def _numbers(path: Path, name: str, column: Sequence[Any], places: Sequence[str]) -> Iterator[float]:
    for place, cell in zip(places, column, strict=True):
        try:
            value = math.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"{path}: {place} has {cell!r} as {name}: all columns but that of the class must be finite "
                "numbers; if the class is another column than the last, name it with label"
            )
        yield value


def _csv(path: Path) -> tuple[list[str], list[list[Any]], list[str]]:
    """Names, columns, and the place of every row in the file, in words."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        try:
            numbered = [(reader.line_num, row) for row in reader if row]
        except UnicodeDecodeError as problem:
            byte = problem.object[problem.start]
            raise ValueError(
                f"{path} is not UTF-8 text (it has the byte 0x{byte:02x}): save it as UTF-8, or as Parquet"
            ) from None
        except csv.Error as problem:
            raise ValueError(f"{path}: line {reader.line_num} is not CSV ({problem}): mend the line") from None
    if not numbered:
        return [], [[]], []
    (_, header), *rows = numbered
    for number, row in rows:
        if len(row) != len(header):
            raise ValueError(f"{path}: line {number} has {len(row)} cells and the header {len(header)}: mend the line")
    return header, [[row[i] for _, row in rows] for i in range(len(header))], [f"line {number}" for number, _ in rows]


def _parquet(path: Path) -> tuple[list[str], list[list[Any]], list[str]]:
    try:
        table = pq.read_table(path)
    except pa.ArrowException as problem:
        raise ValueError(f"{path} is not a Parquet file that can be read ({problem}): give another") from None
    places = [f"row {number}" for number in range(1, table.num_rows + 1)]
    return table.column_names, [column.to_pylist() for column in table.columns] or [[]], places


def recorded_table(settings: Mapping[str, Any], data: str | None) -> tuple[FloatArray, list[str]] | None:
    """The data set of a record's settings of the world, if it has one in a file, which is `data`.

    ValueError if the file's content is not the recorded one.
    """
    if "sha256" not in settings:
        return None
    path = Path(data or settings["data"])
    if sha256(path) != settings["sha256"]:
        raise ValueError(f"{path} is not the data set that was recorded: its content differs. Bring the old file.")
    return _read_once(str(path.resolve()), settings.get("label"), settings["sha256"])


@lru_cache(maxsize=1)
def _read_once(path: str, label: str | None, digest: str) -> tuple[FloatArray, list[str]]:
    return read_table(path, label)
