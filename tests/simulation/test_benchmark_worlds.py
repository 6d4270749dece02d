"""Worlds of clicks, of arms that come and go, and of data sets."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.features import FeatureMap
from hybandits.simulation.benchmark_worlds import Churn, Clicks, Products


@pytest.mark.parametrize("kind", [Clicks, Products])
def test_log_odds_are_linear(kind: type[Clicks]) -> None:
    """x.theta + z.beta_arm + a constant fits the log odds of every arm."""
    rounds, means, _ = next(kind(d1=6, d2=3, arms=4, rate=0.2, seed=1).rounds(400))
    rows = np.zeros((400, 4, 6 + 4 * 3))
    rows[..., :6] = rounds.x
    for arm in range(4):
        rows[:, arm, 6 + 3 * arm : 9 + 3 * arm] = rounds.z[:, arm]
    odds = np.log(means / (1 - means))
    fitted = np.linalg.lstsq(rows.reshape(1600, -1), odds.ravel(), rcond=None)[0]
    assert_allclose(rows @ fitted, odds, atol=1e-8)


def test_rate_and_spread_are_those_of_the_log_odds() -> None:
    """Over 40 worlds; seeded, within 5 standard errors of the average of worlds, as estimated from them."""
    odds = []
    for seed in range(40):
        means = next(Clicks(d1=8, d2=6, arms=20, rate=0.035, spread=0.5, seed=seed).rounds(500)).means
        odds.append(np.log(means / (1 - means)))
    centre, spread = (np.array([getattr(each, name)() for each in odds]) for name in ("mean", "var"))
    for numbers, expected in ((centre, np.log(0.035 / 0.965)), (spread, 0.25)):
        assert abs(numbers.mean() - expected) < 5 * numbers.std() / np.sqrt(40)


def test_products_have_the_features_of_the_map_li() -> None:
    rounds = next(Products(d1=6, d2=3, arms=4, seed=2).rounds(5)).rounds
    products = rounds.x[0, :, ::3]  # the first of u is 1
    for t in range(5):
        x, z = FeatureMap("li", 3, 2)(rounds.z[t, 0], products)
        assert_allclose(rounds.x[t], x)
        assert_allclose(rounds.z[t], z)


@pytest.mark.parametrize(
    ("kind", "bad", "message"),
    [
        (Clicks, {"rate": 0.0}, "rate must lie in"),
        (Clicks, {"rate": 1.0}, "rate must lie in"),
        (Clicks, {"d2": 0}, "d2 must be at least 1"),
        (Clicks, {"arms": 0}, "arms"),
        (Clicks, {"spread": -1.0}, "spread"),
        (Products, {"d1": 5}, "d1 must be a multiple of d2 = 3, got 5"),
        (Products, {"d1": 0}, "d1 must be a multiple"),
    ],
)
def test_bad_clicks_worlds_are_refused(kind: type[Clicks], bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{"d1": 6, "d2": 3, "arms": 4, **bad})


def test_a_tenth_of_the_arms_is_replaced_by_new_ones() -> None:
    pools = [list(block.rounds.arms) for block in Churn(d1=3, d2=2, arms=20, every=50, seed=1).rounds(220)]
    assert [len(pool) for pool in pools] == [20] * 5
    for i, (before, after) in enumerate(itertools.pairwise(pools)):
        assert len(set(before) & set(after)) == 18
        assert max(after) == 20 + 2 * (i + 1) - 1


def test_an_arm_keeps_its_parameters_while_it_stays() -> None:
    rows: dict[Any, list[tuple[np.ndarray, np.ndarray]]] = {}
    for rounds, means, _ in Churn(d1=2, d2=2, arms=10, every=50, seed=1).rounds(150):
        assert (rounds.z[..., 0] == 1).all()
        for j, arm in enumerate(rounds.arms):
            rows.setdefault(arm, []).append((np.concatenate((rounds.x[:, j], rounds.z[:, j]), axis=1), means[:, j]))
    fitted = [
        np.linalg.lstsq(*(np.concatenate(each) for each in zip(*parts, strict=True)), rcond=None)[:2]
        for parts in rows.values()
    ]
    assert all(rest.max() < 1e-20 for _, rest in fitted)
    thetas = np.array([parameters[:2] for parameters, _ in fitted])
    assert_allclose(thetas, np.broadcast_to(thetas[0], thetas.shape))


@pytest.mark.parametrize("bad", [{"arms": 0}, {"every": 0}, {"noise": -1.0}, {"d1": 0, "d2": 0}])
def test_bad_churn_worlds_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|both 0"):
        Churn(**{"d1": 3, "d2": 2, "arms": 4, **bad})
