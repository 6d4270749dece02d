"""Burn-ins and bounds against numbers worked out by hand and against the proofs' other forms of the same thing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hybandits.estimators import exploration
from hybandits.paper import theorems
from hybandits.paper.theorems import (
    Policy,
    Problem,
    alpha,
    burn_in,
    eigenvalue_burn_in,
    gamma,
    regret_bound,
    root_potential,
)

WORLD: dict[str, Any] = {"d1": 5, "d2": 5, "arms": 10, "horizon": 30_000, "delta": 0.01}


def problem(rho: float = 0.1, **changes: Any) -> Problem:
    return Problem(**(WORLD | {"rho": rho} | changes))


@pytest.mark.parametrize(
    ("policy", "ridge", "expected"),
    [
        # log(T/delta) = 14.914123, log(K T/delta) = 17.216708
        ("LinUCB", 1.0, 2 * math.sqrt(10) + math.sqrt(2 * 55 * 14.914123)),
        ("HyLinUCB", 10.0, 2 * (math.sqrt(20) + math.sqrt(2 * 10 * 14.914123))),
        ("DisLinUCB", 1.0, 2 + math.sqrt(2 * 10 * 17.216708)),
    ],
)
def test_gamma_of_the_appendix(policy: Policy, ridge: float, expected: float) -> None:
    assert gamma(policy, problem(), ridge=ridge) == pytest.approx(expected, rel=1e-6)
    assert theorems.prescribed_ridge(policy, arms=10) == ridge


@pytest.mark.parametrize(
    ("policy", "reduction"), [("LinUCB", "shared"), ("HyLinUCB", "hybrid"), ("DisLinUCB", "disjoint")]
)
def test_body_and_appendix_differ_in_the_first_term_only(policy: Policy, reduction: exploration.Reduction) -> None:
    body = exploration.AsWritten(horizon=30_000, delta=0.01, arms=10).coefficients(reduction, 5, 5, 10, 1.0).base
    ridge = theorems.prescribed_ridge(policy, arms=10)
    more = {"LinUCB": math.sqrt(10), "HyLinUCB": 2 * (math.sqrt(20) - math.sqrt(10)), "DisLinUCB": 0.0}
    assert gamma(policy, problem(), ridge=ridge) - body == pytest.approx(more[policy], abs=1e-9)


def test_burn_ins_by_hand() -> None:
    # log(2 * 10 * 10 * 30000/0.01) = log 6e8 = 20.212441; log(10 * 10/0.01) = 9.210340
    least = (1600 + 80 / 3) * 20.212441
    assert eigenvalue_burn_in(problem()) == pytest.approx(least, rel=1e-6)
    for policy in ("LinUCB", "HyLinUCB"):
        assert burn_in(policy, problem()) == pytest.approx(4 * least * 100 * 9.210340, rel=1e-6)
    assert burn_in("DisLinUCB", problem()) == pytest.approx(12_800 * 9.210340, rel=1e-6)


def test_the_other_branch_of_each_burn_in() -> None:
    small = Problem(d1=1, d2=0, arms=1, horizon=1, delta=0.9, rho=0.5)
    assert burn_in("LinUCB", small) == pytest.approx(128 / 0.25 * math.log(1 / 0.9))
    assert burn_in("DisLinUCB", small) == eigenvalue_burn_in(small)


def test_alpha_is_the_proofs_second_form() -> None:
    for ridge in (10.0, 1.0, 0.1):
        rho, s = 0.05, 0.8
        least = eigenvalue_burn_in(problem(rho))
        c = 4 * s * math.sqrt(math.log(10 * 10 / 0.01))
        beta = 2 * s * math.sqrt(ridge * 10) + math.sqrt(2 * 55 * math.log(30_000 / 0.01))
        expected = c * beta * 10 * (math.sqrt(least) / (ridge * math.sqrt(rho)) + math.sqrt(2) / rho / math.sqrt(ridge))
        assert alpha(problem(rho), ridge=ridge, bound=s) == pytest.approx(expected)


def test_bounds_are_the_proofs_last_lines() -> None:
    rho, s, k, d, t = 0.05, 0.8, 10, 10, 30_000
    least = eigenvalue_burn_in(problem(rho))
    start = burn_in("LinUCB", problem(rho))

    g = gamma("LinUCB", problem(rho), ridge=1.0, bound=s)
    constant = 4 * math.sqrt(55 * start * math.log(start)) + 4 * k * math.sqrt(2 * 5 * least * math.log(least))
    expected = constant * g + 16 * math.sqrt(k / rho) * g * math.sqrt(t)
    assert regret_bound("LinUCB", problem(rho), ridge=1.0, bound=s) == pytest.approx(expected)

    g = gamma("HyLinUCB", problem(rho), ridge=10.0, bound=s)
    expected = 2 * start * s + 4 * alpha(problem(rho), ridge=10.0, bound=s) * math.sqrt(t)
    expected += g * (4 * k * math.sqrt(2 * 5 * least * math.log(least)) + 16 * math.sqrt(k * t / rho))
    assert regret_bound("HyLinUCB", problem(rho), ridge=10.0, bound=s) == pytest.approx(expected)

    own = burn_in("DisLinUCB", problem(rho))
    g = gamma("DisLinUCB", problem(rho), ridge=1.0, bound=s)
    expected = 2 * g * (k * math.sqrt(2 * d * own * math.log(own)) + math.sqrt(32 * k * t / rho))
    assert regret_bound("DisLinUCB", problem(rho), ridge=1.0, bound=s) == pytest.approx(expected)


def test_the_potential_with_the_factor_of_dislinucb_is_too_small() -> None:
    """d1 = d2 = 1, lambda = 1, rows (1, 1) and (1, -1): |x|, |z| <= 1, and the rows themselves have norm sqrt(2)."""
    matrix, total = np.eye(2), 0.0
    for row in np.array([[1.0, 1.0], [1.0, -1.0]]):
        total += math.sqrt(row @ np.linalg.solve(matrix, row))
        matrix += np.outer(row, row)
    assert math.sqrt(2) * root_potential(2, 2) < total < 2 * root_potential(2, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rho": 0.0}, "rho must lie between 1e-50 and 1, got 0.0"),
        ({"rho": 1.5}, "rho must lie between 1e-50 and 1, got 1.5"),
        ({"delta": 1.0}, r"delta must lie in \(0, 1\), got 1.0"),
        ({"arms": 0}, "arms must be at least 1, got 0"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"d1": 0, "d2": 0}, "d1 and d2 are both 0"),
    ],
)
def test_errors_say_what_was_wrong(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        problem(**change)


def test_a_ridge_and_a_bound_are_positive() -> None:
    with pytest.raises(ValueError, match="bound must be positive"):
        regret_bound("LinUCB", problem(), ridge=1.0, bound=-1.0)
    with pytest.raises(ValueError, match="ridge must be positive"):
        alpha(problem(), ridge=0.0)
