"""Work of a refresh that is spread over rows: how it is copied, saved and put back. See `kernels/large.py`."""

from typing import Any, NamedTuple

import numpy as np

from hybandits.estimators.policy_file import FileError, put_back
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import evidence, large

START = "unfinished_"
"""The names of the arrays in files begin with this."""


class Unfinished(NamedTuple):
    """A step of the scales, which works on a copy of the data and of the settings, or rows still to be added to R_0."""

    rows: large.Rows | None = None
    """Rows to be added; None for a step."""
    at: Any = None
    step: large.Step | None = None
    state: Any = None
    features: Any = None
    mean_spread: FloatArray | None = None
    left_out: FloatArray | None = None
    """The number of parameters that the rows of arms which take no part determine, as an array of one."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in _flat(self).values())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by their names in files."""
        return {START + name: array.copy() for name, array in _flat(self).items()}


def _flat(part: Any) -> dict[str, np.ndarray]:
    named: dict[str, np.ndarray] = {}
    for name, value in part._asdict().items():
        if isinstance(value, tuple):
            named |= {f"{name}_{inner}": array for inner, array in _flat(value).items()}
        elif value is not None:
            named[name] = value
    return named


def put_together(saved: dict[str, np.ndarray], d1: int, d2: int) -> Unfinished | None:
    """Return what `Unfinished.arrays` returned, from all arrays of a file; raise FileError if they do not fit."""
    saved = {name[len(START) :]: array for name, array in saved.items() if name.startswith(START)}
    if not saved:
        return None
    if "step_sums" in saved:
        n, size, edges = (len(saved.get(f"step_{name}", ())) for name in ("rows_e", "rows_values", "edges"))
        blank = Unfinished(
            step=large.with_buffers(_blank_step(n, size, edges, d1, d2), d1), state=np.zeros(1, evidence.STATE),
            features=np.zeros(d1 + d2, evidence.FEATURE), mean_spread=np.zeros((d2, d2)), left_out=np.zeros(1),
        )  # fmt: skip
    else:
        n, size = (len(saved.get(f"rows_{name}", ())) for name in ("e", "values"))
        blank = Unfinished(rows=_blank_rows(n, size), at=np.zeros(2, np.int64))
    arrays = _flat(blank)
    if arrays.keys() != saved.keys():
        raise FileError("parts of an unfinished refresh are missing: the file is corrupt")
    for name, array in arrays.items():
        put_back(START + name, array, saved[name])
    if not (_rows_fit(blank, d1 + d2) and (blank.step is None or _step_fits(blank.step, d1, d2))):
        raise FileError("the parts of an unfinished refresh do not fit together: the file is corrupt")
    return blank


def _blank_rows(rows: int, size: int) -> large.Rows:
    offset, first, length = np.zeros((3, rows), np.int64)
    return large.Rows(np.zeros(size), offset, first, length, np.zeros(rows))


def _blank_step(rows: int, size: int, edges: int, d1: int, d2: int) -> large.Step:
    p, wide = d1 + d2, large.WIDE
    n = -(-rows // wide) * wide
    return large.Step(
        _blank_rows(rows, size), np.zeros(p), np.zeros(d2), np.zeros(edges, np.int64), np.zeros(0), np.zeros(0),
        np.zeros((d2 // wide + 1) * n * wide), np.zeros((d2, d2)), np.zeros(p), np.zeros(p + d2), np.zeros(d2),
        np.zeros(2, np.int64), np.zeros(3),
    )  # fmt: skip


def _rows_fit(part: Unfinished, p: int) -> bool:
    rows = part.rows if part.step is None else part.step.rows
    assert rows is not None
    first, length, offset = rows.first, rows.length, rows.offset
    inside = min(first.min(initial=0), length.min(initial=0), offset.min(initial=0)) >= 0
    inside = inside and bool((first + length <= p).all() and (offset + length <= len(rows.values)).all())
    ordered = bool((np.diff(first) <= 0).all())
    return inside and ordered and (part.step is not None or 0 <= part.at[0] <= part.at[1] <= len(rows.e))


def _step_fits(step: large.Step, d1: int, d2: int) -> bool:
    edges, (stage, place) = step.edges, step.at
    n = len(step.rows.e)
    whole = step.rows.length[edges[0] :] if len(edges) and 0 <= edges[0] <= n else np.zeros(1)
    return bool(
        len(edges)
        and (np.diff(edges) >= 0).all()
        and edges[0] >= 0
        and edges[-1] == n
        and (whole == d1 + d2).all()
        and 0 <= stage <= large.DONE
        and 0 <= place <= n + d1 + d2 + len(edges)
        and (step.prior > 0).all()
        and (step.b > 0).all()
    )
