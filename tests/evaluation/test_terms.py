"""The terms of a round, plain and compiled, against their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybandits.evaluation.terms import (
    CERTAIN,
    CLIPPED,
    COLUMNS,
    COUNTS,
    DM,
    DR,
    HIT,
    IPS,
    KEPT,
    KR,
    KRR,
    LARGEST,
    MATCH,
    MIXED,
    PADDED,
    PR,
    SILENT,
    SQUARES,
    TERMS,
    WEIGHT,
    WW,
    X0,
    XX,
    Y0,
    YY,
    D,
    K,
    N,
    P,
    W,
    X,
    Y,
    add_up,
    round_terms,
)

ROUNDS, MOST, FOLDS, GROUPS, ARMS = 7, 4, 2, 6, 3


class Problem:
    """Random rounds, with every argument of `round_terms`."""

    def __init__(
        self,
        *,
        clip: float = np.inf,
        low: float = -np.inf,
        high: float = np.inf,
        keep: float = np.inf,
        pair: int = 0,
    ) -> None:
        random = np.random.default_rng(0)
        self.counts = random.integers(2, MOST + 1, ROUNDS)
        self.pi = random.random((ROUNDS, MOST)) * (np.arange(MOST) < self.counts[:, None])
        self.pi /= self.pi.sum(axis=1, keepdims=True)
        self.real = self.counts.copy()
        self.shown = random.integers(0, self.counts)
        self.reward = random.normal(size=ROUNDS)
        self.propensity = random.uniform(0.1, 0.9, ROUNDS)
        self.user = random.normal(size=(ROUNDS, 2))
        self.first = np.arange(ROUNDS) * MOST
        self.group = random.integers(0, GROUPS, ROUNDS * MOST)
        self.arm = self.group % ARMS
        self.weights = random.normal(size=(FOLDS, GROUPS, 2 + pair))
        self.pair = random.normal(size=(ROUNDS, MOST, pair))
        self.constant = random.normal(size=(FOLDS, GROUPS))
        self.fold = np.arange(ROUNDS) % FOLDS
        self.clip, self.low, self.high, self.keep = clip, low, high, keep
        self.chance = np.minimum(1.0, keep / self.propensity)

    def run(self, function: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        out, mass = np.empty((ROUNDS, len(TERMS))), np.zeros(ARMS)
        eligible, tally = np.zeros(ARMS, np.int64), np.zeros(COUNTS)
        wrong = function(
            self.pi, self.counts, self.real, self.shown, self.reward, self.propensity, self.user, self.pair,
            self.first, self.group, self.arm, self.weights, self.constant, self.fold, True, self.low, self.high,
            self.clip, self.chance, out, mass, eligible, tally,
        )  # fmt: skip
        return wrong, out, mass, eligible, tally


@pytest.mark.parametrize("function", [round_terms, round_terms.py_func])
@pytest.mark.parametrize("options", [{}, {"clip": 0.5}, {"low": -0.3, "high": 0.4}, {"keep": 0.3}, {"pair": 3}])
def test_terms_are_their_formulas(function: Any, options: dict[str, Any]) -> None:
    problem = Problem(**options)
    wrong, out, mass, eligible, tally = problem.run(function)
    assert wrong == -1
    arm_mass = np.zeros(ARMS)
    clipped = 0
    for t in range(ROUNDS):
        entries = problem.first[t] + np.arange(problem.counts[t])
        f, pi, s = problem.fold[t], problem.pi[t, : problem.counts[t]], problem.shown[t]
        known = np.array([[*problem.user[t], *problem.pair[t, k]] for k in range(problem.counts[t])])
        group = problem.group[entries]
        q = (problem.weights[f, group] * known).sum(axis=1) + problem.constant[f, group]
        within = np.clip(q, problem.low, problem.high)
        w = pi[s] / problem.propensity[t]
        clipped += w > problem.clip
        w = min(w, problem.clip)
        r, p = problem.reward[t], problem.propensity[t]
        expected = [
            w,
            w * r,
            pi @ q,
            pi @ within + w * (r - within[s]),
            pi[s],
            pi[s] * r,
            pi[s] * min(1, problem.keep / p),
        ]
        np.testing.assert_allclose(out[t, [WEIGHT, IPS, DM, DR, MATCH, HIT, KEPT]], expected, rtol=1e-12)
        np.add.at(arm_mass, problem.arm[entries], pi)
    np.testing.assert_allclose(mass, arm_mass)
    assert eligible.sum() == problem.counts.sum()
    assert tally[LARGEST] == out[:, WEIGHT].max()
    assert tally[CLIPPED] == clipped
    assert tally[SQUARES] == pytest.approx((out[:, KEPT] ** 2).sum())
    assert tally[MIXED] == ROUNDS
    assert tally[SILENT] == tally[PADDED] == tally[CERTAIN] == 0


@pytest.mark.parametrize("function", [round_terms, round_terms.py_func])
def test_what_is_counted(function: Any) -> None:
    problem = Problem()
    problem.pi[0] = 0.0  # shows nothing
    problem.propensity[1] = 1.0  # the log's arm was certain
    problem.real[2] = 1  # all candidates but the first are filled up
    problem.propensity[3] = np.nan
    problem.shown[4] = -1  # what was shown was cut off
    problem.pi[5] = np.eye(MOST)[problem.shown[5]]
    wrong, out, _, _, tally = problem.run(function)
    assert wrong == -1
    assert tally[SILENT] == 1
    assert tally[CERTAIN] == pytest.approx(1 - problem.pi[1, problem.shown[1]])
    assert tally[PADDED] == pytest.approx(problem.pi[2, 1:].sum())
    assert out[3, WEIGHT] == 0.0
    assert out[4, MATCH] == out[4, WEIGHT] == 0.0
    assert out[5, MATCH] == 1.0
    assert tally[MIXED] == ROUNDS - 3


@pytest.mark.parametrize("function", [round_terms, round_terms.py_func])
@pytest.mark.parametrize("value", [-0.1, np.nan, 0.9])
def test_the_first_round_with_invalid_probabilities_is_named(function: Any, value: float) -> None:
    problem = Problem()
    problem.pi[3, 1] += value
    problem.pi[5] = np.nan
    assert problem.run(function)[0] == 3


@pytest.mark.parametrize("function", [add_up, add_up.py_func])
def test_sums_by_block_and_fold(function: Any) -> None:
    random = np.random.default_rng(1)
    terms, others, reward = random.normal(size=(10, 7)), random.normal(size=(10, 7)), random.normal(size=10)
    fold, start, size = np.arange(10) % 2, 2, 4
    sums = np.zeros((3, 2, COLUMNS))
    function(terms, others, reward, start, size, fold, sums)
    block = (start + np.arange(10)) // size
    columns = {
        N: np.ones(10), W: terms[:, WEIGHT], WW: terms[:, WEIGHT] ** 2, X: terms[:, IPS], XX: terms[:, IPS] ** 2,
        X0: terms[:, IPS] * others[:, IPS], D: terms[:, DM], Y: terms[:, DR], YY: terms[:, DR] ** 2,
        Y0: terms[:, DR] * others[:, DR], P: terms[:, MATCH], PR: terms[:, HIT], K: terms[:, KEPT],
        KR: terms[:, KEPT] * reward, KRR: terms[:, KEPT] * reward**2,
    }  # fmt: skip
    assert sorted(columns) == list(range(COLUMNS))
    for column, values in columns.items():
        for b in range(3):
            for f in range(2):
                expected = values[(block == b) & (fold == f)].sum()
                assert sums[b, f, column] == pytest.approx(expected)
