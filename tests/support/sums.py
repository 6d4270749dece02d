"""Tables of running sums that have learned random rows."""

from __future__ import annotations

import numpy as np

from hybandits.estimators.sums import RunningSums
from hybandits.kernels import hyran

D1, D2, ARMS = 3, 2, ["a", "b", "c", "d", "e"]

Row = tuple[str, np.ndarray, np.ndarray, float]


def rows(seed: int, n: int = 25) -> list[Row]:
    """Rows of all arms but the last."""
    random = np.random.default_rng(seed)
    return [
        (ARMS[int(random.integers(0, 4))], random.normal(size=D1), random.normal(size=D2), float(random.normal()))
        for _ in range(n)
    ]


def summed(*batches: list[Row], cross: bool = True) -> RunningSums:
    table = RunningSums(D1, D2, cross=cross)
    for arm, x, z, reward in [row for batch in batches for row in batch]:
        table.admit([arm])
        slot = int(table.slots_of([arm])[0])
        hyran.add_row(slot, x, z, reward, table.shared, table.own)
        table.pulls[slot] += 1
        table.rounds += 1
    return table
