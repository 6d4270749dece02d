"""The exploration coefficient written out, to compare with."""

from __future__ import annotations

import math


def self_normalised_radius(
    t: int, *, size: float, ridge: float, noise: float, delta: float, dimension: int, length: float
) -> float:
    """S sqrt(lambda) + sigma sqrt(2 log(1/delta) + D log(1 + t L^2 / (lambda D))), see docs/notation.md."""
    growth = dimension * math.log(1 + t * length**2 / (ridge * dimension))
    return size * math.sqrt(ridge) + noise * math.sqrt(2 * math.log(1 / delta) + growth)
