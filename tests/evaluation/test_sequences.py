"""Which terms go into a confidence sequence, and the range they must lie in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybandits.evaluation.parts import BlockLayout
from hybandits.evaluation.sequences import sequence, sequence_of_difference
from hybandits.evaluation.support import LogSupport
from hybandits.evaluation.targets import Logged, UniformChoice
from hybandits.evaluation.terms import TERMS, add_up
from hybandits.statistics import bernstein

ROUNDS, SIZE, FOLDS = 600, 10, 2
BOUNDS, LARGEST = (0.0, 1.0), 5.0
AT = np.arange(ROUNDS // SIZE)


class Data:
    """Clicks, weights 0 or 5 by a policy that is shown in one round of five, and terms of two such policies."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.reward = (random.random(ROUNDS) < 0.4).astype(float)
        self.match = [(random.random(ROUNDS) < 0.2).astype(float) for _ in range(2)]
        self.fold = (np.arange(ROUNDS) // 25) % FOLDS

    def terms(self, i: int) -> np.ndarray:
        terms = np.zeros((ROUNDS, len(TERMS)))
        w = LARGEST * self.match[i]
        columns = {
            "weight": w, "ips": w * self.reward, "dm": np.full(ROUNDS, 0.4), "dr": 0.4 + w * (self.reward - 0.4),
            "match": self.match[i], "hit": self.match[i] * self.reward, "kept": self.match[i],
        }  # fmt: skip
        for k, name in enumerate(TERMS):
            terms[:, k] = columns[name]
        return terms

    def support(self, i: int, target: Any = None) -> LogSupport:
        layout = BlockLayout(first=0, rounds=ROUNDS, size=SIZE, deal=25, folds=FOLDS)
        policy = LogSupport.empty(str(i), target or UniformChoice(), layout, 1)
        add_up(self.terms(i), self.terms(0), self.reward, 0, SIZE, self.fold, policy.sums)
        return policy

    def by_block(self, x: np.ndarray) -> list[np.ndarray]:
        return [y.reshape(-1, SIZE).sum(axis=1) for y in (np.ones(ROUNDS), x, x**2)]


def test_ips_is_the_sequence_of_its_terms() -> None:
    data = Data()
    band = sequence(data.support(0), "ips", BOUNDS, LARGEST, 0.95, AT)
    low, high = bernstein(*data.by_block(data.terms(0)[:, 1]), low=0.0, high=LARGEST, mean=BOUNDS)
    np.testing.assert_allclose(band.low, low)
    np.testing.assert_allclose(band.high, high)
    logged = sequence(data.support(0, Logged()), "ips", BOUNDS, LARGEST, 0.95, AT)
    assert logged.high[-1] - logged.low[-1] < band.high[-1] - band.low[-1], "rewards have a smaller range than w r"


def test_replay_counts_matched_rounds() -> None:
    data = Data()
    band = sequence(data.support(0), "replay", BOUNDS, LARGEST, 0.95, AT)
    match, reward = (x.reshape(-1, SIZE) for x in (data.match[0], data.reward))
    sums = match.sum(axis=1), (match * reward).sum(axis=1), (match * reward**2).sum(axis=1)
    low, high = bernstein(*sums, low=0.0, high=1.0, mean=BOUNDS)
    np.testing.assert_allclose(band.low, low)
    np.testing.assert_allclose(band.high, high)


def test_dr_averages_the_folds_which_hold_at_once() -> None:
    data = Data()
    policy = data.support(0)
    band = sequence(policy, "dr", BOUNDS, LARGEST, 0.95, AT)
    lows, highs, counts = [], [], []
    for f in range(FOLDS):
        mine = data.fold == f
        n, x = mine.astype(float), np.where(mine, data.terms(0)[:, 3], 0.0)
        columns = [y.reshape(-1, SIZE).sum(axis=1) for y in (n, x, x**2)]
        low, high = bernstein(*columns, low=-LARGEST, high=1 + LARGEST, mean=BOUNDS, level=0.975)
        lows.append(low)
        highs.append(high)
        counts.append(np.cumsum(columns[0]))
    share = np.array(counts) / np.sum(counts, axis=0)
    np.testing.assert_allclose(band.low, (share * lows).sum(axis=0))
    np.testing.assert_allclose(band.high, (share * highs).sum(axis=0))


def test_differences_are_of_the_terms() -> None:
    data = Data()
    band = sequence_of_difference(data.support(1), data.support(0), "ips", BOUNDS, LARGEST, 0.95, AT)
    gap = data.terms(1)[:, 1] - data.terms(0)[:, 1]
    low, high = bernstein(*data.by_block(gap), low=-LARGEST, high=LARGEST, mean=(-1.0, 1.0))
    np.testing.assert_allclose(band.low, low)
    np.testing.assert_allclose(band.high, high)


def test_differences_by_replay_are_of_the_bounds() -> None:
    data = Data()
    band = sequence_of_difference(data.support(1), data.support(0), "replay", BOUNDS, LARGEST, 0.95, AT[-1:])
    one, other = (sequence(data.support(i), "replay", BOUNDS, LARGEST, 0.975, AT[-1:]) for i in (1, 0))
    assert band.low[0] == pytest.approx(one.low[0] - other.high[0])
    assert band.high[0] == pytest.approx(one.high[0] - other.low[0])
