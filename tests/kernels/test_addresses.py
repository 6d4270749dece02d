"""Tables of addresses: the arrays that a kernel makes of them, compiled and plain."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.foundation.compiling import kernel
from hybandits.kernels.addresses import array_at, table_of

RECORD = np.dtype((np.record, [("length", "f8"), ("count", "i8")]))


@kernel
def change(table: Any) -> Any:
    """Change every array of the second row; return what they hold and how long they are."""
    row = table[1]
    numbers, counts, records = array_at(row, 0, np.float64), array_at(row, 1, np.int64), array_at(row, 2, RECORD)
    numbers[1] += 0.5
    counts[-1] = 7
    records[1].length = 2.0 * records[1].count
    return numbers.sum(), counts.sum(), records[1].length, numbers.shape[0], array_at(row, 3, np.float64).shape[0]


@pytest.mark.parametrize("function", [change, change.py_func])
def test_a_kernel_reads_and_changes_the_arrays_of_a_row(function: Any) -> None:
    numbers, counts, records = np.arange(6.0).reshape(2, 3), np.arange(4), np.zeros(2, RECORD)
    records["count"] = 3, 5
    table = table_of([[np.zeros(1)] * 4, [numbers, counts, records, np.empty(0)]])
    assert tuple(function(table)) == (15.5, 10, 10.0, 6, 0)
    assert_array_equal(numbers, [[0, 1.5, 2], [3, 4, 5]])
    assert counts[-1] == 7
    assert records["length"].tolist() == [0, 10]


def test_a_table_keeps_its_arrays_alive() -> None:
    numbers = np.arange(3.0)
    alive = weakref.ref(numbers)
    table = table_of([[numbers]])
    view = table[0]
    del numbers, table
    gc.collect()
    assert alive() is not None
    assert_array_equal(array_at(view, 0, np.float64), [0, 1, 2])
    del view
    assert alive() is None


def test_arrays_that_are_not_contiguous_or_not_writeable_are_refused() -> None:
    constant = np.zeros(2)
    constant.flags.writeable = False
    for array in (np.zeros((3, 2))[:, 0], constant):
        with pytest.raises(ValueError, match="contiguous and writeable"):
            table_of([[array]])
