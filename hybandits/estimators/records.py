"""Tables and rows of any kind, by name: dicts, DataFrames of pandas and polars, tables of pyarrow, structured arrays.

None of these libraries is imported: what has named columns, or entries by name, will do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hybandits.foundation import checks


def is_frame(data: Any) -> bool:
    """Return whether the data are a table with named columns: of pandas, polars or pyarrow, or a structured array."""
    return not isinstance(data, Mapping) and column_names(data) is not None and hasattr(data, "__len__")


def column_names(data: Any) -> list[Any] | None:
    """Return the names of the columns of a table; None if it is no table."""
    refuse_lazy(data)
    for names in (getattr(data, "column_names", None), getattr(data, "columns", None)):
        if names is not None:
            return list(names)
    return fields_of(data) if isinstance(data, np.ndarray) and data.ndim == 1 else None


def refuse_lazy(data: Any) -> None:
    """Raise if the data are a query of polars that has not been run."""
    if type(data).__name__ == "LazyFrame":
        raise TypeError("got a LazyFrame, which holds no values yet: pass frame.collect()")


def fields_of(data: np.ndarray | np.void) -> list[Any] | None:
    """Return the names of the fields of a structured array, or of a row of one."""
    return None if data.dtype.names is None else list(data.dtype.names)


def columns_of(what: str, data: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the named columns of a table, each as a list or as something that NumPy can turn into an array."""
    if isinstance(data, Mapping) and data and all(is_record(value) for value in data.values()):
        data = list(data.values())  # from ids to what is known about each
    if isinstance(data, Mapping) or is_frame(data):
        known = list(data) if isinstance(data, Mapping) else column_names(data) or []
        columns = {name: entry_of(what, data, name, known) for name in names}
        for name, column in columns.items():
            if isinstance(column, str) or not hasattr(column, "__len__") or np.ndim(column) == 0:
                raise TypeError(
                    f"{what} feature {name!r} is {checks.short(column)} ({type(column).__name__}), expected one value "
                    f"per {what}: for one {what} pass a list with one dict"
                )
        return columns
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise TypeError(
            f"{what}s must be a DataFrame or a list of dicts, got {checks.short(data)} ({type(data).__name__})"
        )
    data = list(data)
    if all(type(record) is dict for record in data):
        with contextlib.suppress(KeyError):
            return {name: [record[name] for record in data] for name in names}
    records = [record_of(f"{what} {i}", record) for i, record in enumerate(data)]
    return {name: [entry_of(f"{what} {i}", record, name) for i, record in enumerate(records)] for name in names}


def is_record(data: Any) -> bool:
    """Return whether one user or arm is given by name: a dict, a row of a DataFrame, or a named tuple."""
    if isinstance(data, Mapping):
        return True
    if isinstance(data, np.void):
        return fields_of(data) is not None
    return not isinstance(data, np.ndarray) and (
        hasattr(data, "_asdict") or (hasattr(data, "keys") and hasattr(data, "__getitem__"))
    )


def record_of(what: str, data: Any) -> Any:
    """Return what has entries by name; raise if the data are not one user or arm."""
    if not is_record(data):
        raise TypeError(
            f"the {what} is {checks.short(data)} ({type(data).__name__}): pass a dict, or a row of a DataFrame, with "
            "the features by name"
        )
    return data._asdict() if hasattr(data, "_asdict") else data


def entry_of(what: str, data: Any, name: str, known: Sequence[Any] | None = None) -> Any:
    """Return what a table or record holds under a name."""
    try:
        return data[name]
    except (KeyError, IndexError, ValueError):
        pass
    except Exception as problem:  # polars has errors of its own
        if "NotFound" not in type(problem).__name__:
            raise
    if known is None:
        known = (fields_of(data) or []) if isinstance(data, np.void) else list(data.keys())
    raise ValueError(
        f"the {what} has no feature {name!r}{checks.nearest(name, [str(one) for one in known])}: it has "
        f"{checks.short([str(one) for one in known])}; pass None where a value is missing"
    )


def listed(words: str, column: Any) -> list[Any]:
    """Return a column as a list of Python values.

    A column of integers with gaps becomes floats as an array of NumPy, and large integers others: pandas, polars and
    pyarrow make lists themselves.
    """
    if isinstance(column, list):
        return column
    array = np.asarray(column)
    if array.dtype.kind in "mM":
        raise TypeError(f"{words} holds times ({array.dtype}): turn them into numbers, such as hours, or into text")
    if array.ndim != 1:
        raise ValueError(f"{words} must have one value per row, got shape {array.shape}")
    for method in ("to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    values: list[Any] = array.tolist()
    return values
