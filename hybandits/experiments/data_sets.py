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

from hybandits.foundation.checks import Doubles, nearest
from hybandits.foundation.files import sha256

PARQUET = (".parquet", ".pq")
"""How the names of Parquet files end; all other files are read as CSV."""


def read_table(path: Path | str, label: str | None = None) -> tuple[Doubles, list[str]]:
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
    names, columns, first = _parquet(path) if path.suffix.lower() in PARQUET else _csv(path)
    if len(names) < 2 or not columns[0]:
        raise ValueError(f"{path} must have a header, rows, and a column of features beside that of the class")
    if label is not None and label not in names:
        raise ValueError(f"{path} has no column {label!r}{nearest(label, names)}: it has {', '.join(names)}")
    at = len(names) - 1 if label is None else names.index(label)
    features = [list(_numbers(path, names[i], columns[i], first)) for i in range(len(names)) if i != at]
    if None in columns[at]:
        raise ValueError(
            f"{path}: row {first + columns[at].index(None)} has no class in {names[at]}: leave the row out"
        )
    return np.array(features, dtype=float).T.copy(), [str(value) for value in columns[at]]


def _numbers(path: Path, name: str, column: Sequence[Any], first: int) -> Iterator[float]:
    for number, cell in enumerate(column, first):
        try:
            value = math.nan if cell is None else float(cell)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ValueError(
                f"{path}: row {number} has {cell!r} as {name}: all columns but that of the class must be finite "
                "numbers; if the class is another column than the last, name it with label"
            )
        yield value


def _csv(path: Path) -> tuple[list[str], list[list[Any]], int]:
    """Names, columns, and the number of the first row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        return [], [[]], 2
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise ValueError(f"{path}: row {number} has {len(row)} cells and the header {len(rows[0])}: mend the row")
    return rows[0], [[row[i] for row in rows[1:]] for i in range(len(rows[0]))], 2


def _parquet(path: Path) -> tuple[list[str], list[list[Any]], int]:
    try:
        table = pq.read_table(path)
    except pa.ArrowException as problem:
        raise ValueError(f"{path} is not a Parquet file that can be read ({problem}): give another") from None
    return table.column_names, [column.to_pylist() for column in table.columns] or [[]], 1


def recorded_table(settings: Mapping[str, Any], data: str | None) -> tuple[Doubles, list[str]] | None:
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
def _read_once(path: str, label: str | None, digest: str) -> tuple[Doubles, list[str]]:
    return read_table(path, label)
