"""Categories to columns of 0 and 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybandits.features import COLUMN, ZERO, Category
from hybandits.foundation.checks import FloatArray
from hybandits.logs.ids import id_of

WIDEST = 200
"""Columns that all categorical columns of a log may become together."""


class OneHot:
    """The columns of 0 and 1 that a categorical column becomes: one per category, in the order of their names.

    Beside a constant the first category has no column, because all of them would add up to the constant. With `other`,
    a last column stands for all categories that are not kept.
    """

    def __init__(
        self, column: str, values: Sequence[str], *, other: bool, drop_first: bool, label: Callable[[str], str] = str
    ) -> None:
        self.column, self._drop, self._other = column, int(drop_first), other
        self._values = pa.array(values, pa.string())
        labels = [label(value) for value in values]
        if len(set(labels)) < len(labels):
            labels = list(values)
        if other:
            labels.append("other" if "other" not in labels else "(other)")
        self.names = [f"{column}={text}" for text in labels[self._drop :]]
        self._width = len(labels)

    def matrix(self, text: pa.Array) -> FloatArray:
        """The columns for these cells, one row per cell."""
        if not self._width:
            return np.zeros((len(text), 0))
        codes = pc.index_in(text, value_set=self._values).fill_null(self._width - 1).to_numpy(zero_copy_only=False)
        columns = np.zeros((len(codes), self._width))
        columns[np.arange(len(codes)), codes] = 1.0
        return columns[:, self._drop :]

    def feature(self, *, integers: bool) -> Category | None:
        """The same columns as a named feature, for use online; None if no category was kept.


        The dropped category is the base. With `integers`, categories are integers if all of them are whole numbers. One
        that the log does not have is what the log calls other or, if there is no such column, zeros.
        """
        values: list[str | int] = self._values.to_pylist()
        if not values:
            return None
        whole = [id_of(str(value)) for value in values]
        if integers and all(isinstance(value, int) for value in whole):
            values = whole
        base = values[0] if self._drop else None
        return Category(values=values[self._drop :], base=base, unknown=COLUMN if self._other else ZERO)


def one_hots(counts: dict[str, Counter[str]], *, drop_first: bool, label: Callable[[str], str] = str) -> list[OneHot]:
    """A `OneHot` for every column, from how often each category occurs.

    Beyond WIDEST categories in all, the most frequent are kept and the rest count as other.

    >>> [hot.names for hot in one_hots({"os": Counter("aab"), "tld": Counter("de")}, drop_first=True)]
    [['os=b'], ['tld=e']]
    """
    pairs = [(-n, column, value) for column, counter in counts.items() for value, n in counter.items()]
    kept = {(column, value) for _, column, value in sorted(pairs)[:WIDEST]}
    hots = []
    for column, counter in counts.items():
        values = sorted(value for value in counter if (column, value) in kept)
        other = len(values) < len(counter)
        hots.append(OneHot(column, values, other=other, drop_first=drop_first, label=label))
    return hots
