"""What counts as a uniform propensity."""

from __future__ import annotations

import numpy as np

from hybandits.evaluation.propensities import is_uniform


def test_uniform_up_to_the_digits_that_logs_give() -> None:
    candidates = np.array([20, 20, 3, 3, 34, 34])
    propensity = np.array([0.05, 0.051, 0.333, 0.334, 0.02941, 0.0294])
    assert is_uniform(propensity, candidates).tolist() == [True, False, True, False, True, True]


def test_a_missing_propensity_is_not_uniform() -> None:
    assert is_uniform(np.array([np.nan, 1.0, 0.0, np.inf]), np.ones(4, int)).tolist() == [False, True, False, False]
