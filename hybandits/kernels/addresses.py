"""Tables of addresses: many arrays as one argument of a kernel, because Numba takes 0.1 us to accept each.

A row of a table has the address and the size of one array after another. The table keeps these arrays alive. Code that
replaces one must make a new table.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

Table = NDArray[np.int64]


class _Arrays:
    """The memory of a table, and the arrays in it."""

    def __init__(self, rows: Sequence[Sequence[np.ndarray]]) -> None:
        self.rows = rows
        self.numbers = np.array([[number for a in row for number in (a.ctypes.data, a.size)] for row in rows], np.int64)
        self.__array_interface__ = self.numbers.__array_interface__


def table_of(rows: Sequence[Sequence[np.ndarray]]) -> Table:
    """Return the table of rows of arrays, each of them contiguous and writeable."""
    if not all(array.flags.carray for row in rows for array in row):
        raise ValueError("only contiguous and writeable arrays can be in a table")
    return np.asarray(_Arrays(rows))


def array_at(row: Any, k: int, dtype: Any) -> Any:
    """The k-th array in a row of a table, flat, with entries of this type."""
    kind = np.dtype(dtype)
    address, size = int(row[2 * k]), int(row[2 * k + 1])
    memory = (ctypes.c_char * (size * kind.itemsize)).from_address(address)
    return np.frombuffer(memory, kind) if size else np.empty(0, kind)


@type_callable(array_at)
def _type_of_array(context: Any) -> Any:
    def typer(row: Any, k: Any, dtype: Any) -> Any:
        return types.Array(dtype.dtype, 1, "C")

    return typer


@lower_builtin(array_at, types.Array, types.Integer, types.DTypeSpec)
def _emit_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    numbers = context.make_array(sig.args[0])(context, builder, args[0]).data
    first = builder.mul(context.cast(builder, args[1], sig.args[1], types.intp), context.get_constant(types.intp, 2))
    address = builder.load(builder.gep(numbers, [first]))
    size = builder.load(builder.gep(numbers, [builder.add(first, context.get_constant(types.intp, 1))]))
    entry = context.get_data_type(sig.return_type.dtype)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(entry))
    array = context.make_array(sig.return_type)(context, builder)
    populate_array(
        array, builder.inttoptr(address, entry.as_pointer()), cgutils.pack_array(builder, [size]),
        cgutils.pack_array(builder, [itemsize]), itemsize, None,
    )  # fmt: skip
    return array._getvalue()
