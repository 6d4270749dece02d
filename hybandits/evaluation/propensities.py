"""When a propensity counts as that of uniform choice."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-3
"""How far a propensity may be off, relatively: logs often give propensities with few digits."""


def is_uniform(propensity: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Whether each propensity is 1 / candidates, up to ROUNDING; False where the propensity is missing."""
    uniform: np.ndarray = np.abs(propensity * candidates - 1) <= ROUNDING
    return uniform
