"""The tables by which kernels find an estimator's arrays: right however the arrays have come about."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge, Moments
from hybandits.estimators.ridge import HybridRidge
from hybandits.kernels import decisions

MAKERS: dict[str, Callable[[], HybridRidge | LearnedRidge]] = {
    "ridge": lambda: HybridRidge(d1=3, d2=2, ridge=0.5),
    "learned": lambda: LearnedRidge(d1=3, d2=2),
    "fading": lambda: LearnedRidge(d1=3, d2=2, memory=30.0),
    "auto": lambda: LearnedRidge(d1=3, d2=2, memory="auto"),
}

Rows = tuple[list[int], np.ndarray, np.ndarray, np.ndarray]


def rows(seed: int, n: int, arms: int) -> Rows:
    random = np.random.default_rng(seed)
    x, z = random.standard_normal((n, 3)), random.standard_normal((n, 2))
    return random.integers(0, arms, n).tolist(), x, z, x.sum(axis=1) + 0.1 * random.standard_normal(n)


def arrays_of(estimator: Any) -> list[list[np.ndarray]]:
    """Every array, as the methods in Python use them."""
    if isinstance(estimator, LearnedRidge):
        parts = [(*m.arrays.data, *m.arrays.arms, *m.arrays.posterior, *m.arrays[3:]) for m in estimator.models]
        return [[*part, estimator.weights] for part in parts]
    blocks = estimator.arm_factor, estimator.arm_score, estimator.pulls
    return [[*blocks, estimator.shared_factor, estimator.shared_score, estimator._ridge]]


def check(estimator: Any) -> None:
    """The table has the arrays' places, decisions by it are scored by them, and rows learned by it are in them."""
    wanted = [[number for a in row for number in (a.ctypes.data, a.size)] for row in arrays_of(estimator)]
    assert_array_equal(estimator.addresses, wanted)
    arms, x, z, rewards = rows(9, 6, 4)
    slots = estimator.lookup(list(range(6)))
    learned = isinstance(estimator, LearnedRidge)
    code = decisions.SAMPLING + decisions.LEARNED if learned else decisions.BOUNDS
    models = estimator.models if learned else (estimator,)
    index, mean, width, _ = decisions.decide(code, estimator.addresses, np.zeros(5), x, z, slots, 0, 1, 0, 5)
    scores = [model.score(x, z, slots) for model in models]
    assert any(np.allclose((score.mean[index], score.width[index]), (mean, width), rtol=1e-9) for score in scores)
    before = [model.score(x[:1], z[:1], slots[arms[0] : arms[0] + 1]) for model in models]
    pulls = estimator.pulls_of(arms[0]) if estimator.knows(arms[0]) else 0
    estimator.learn(arms[0], x[0], z[0], float(rewards[0]) + 1.0)
    assert estimator.pulls_of(arms[0]) == pulls + 1
    for model, score in zip(models, before, strict=True):
        assert model.score(x[:1], z[:1], np.array([estimator.slot(arms[0])])).width[0] != score.width[0]


def learn(estimator: Any, seed: int, n: int = 40, arms: int = 4) -> None:
    for arm, x, z, reward in zip(*rows(seed, n, arms), strict=True):
        estimator.learn(arm, x, z, float(reward))


def changed(estimator: Any, other: Any) -> Iterator[Any]:
    """An estimator after one change after another, in every way in which its arrays may be others than before."""
    yield estimator
    for arms in (9, 40, 130):  # it grows, in small steps and in large ones
        learn(estimator, arms, 60, arms)
        yield estimator
    estimator.learn_batch(*rows(5, 50, 300))
    yield estimator
    estimator.forget(next(iter(estimator.learned)))
    yield estimator
    slots, fresh = estimator.set_aside([*range(500, 700)])  # as a compiled loop does
    slots[:] = fresh
    estimator.admit(range(500, 700))
    estimator.settle([*range(500, 700)], slots, fresh, 0)
    yield estimator
    estimator.merge(other)
    yield estimator
    estimator.merge(estimator)
    yield estimator
    if isinstance(estimator, LearnedRidge):
        arms, x, z, rewards = rows(6, 60, 4)
        pulls = {arm: arms.count(arm) for arm in set(arms)}
        features = np.hstack((x, z))
        moments = Moments(np.full(5, 60), features.sum(axis=0), float(rewards.mean()), float(60 * rewards.var()))
        estimator.learn_summary(arms, x, z, rewards, pulls, moments)
        estimator.refresh()
        for model in estimator.models[1:]:
            estimator.models[0].continue_from(model)
    else:
        estimator.raise_ridge(7.0)
    yield estimator
    for copied in (estimator.copy(), deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        yield copied
        learn(copied, 8, 60, 200)
        yield copied
    yield type(estimator).unpack(*estimator.pack())
    yield estimator  # which has none of the copies' rows


@pytest.mark.parametrize("name", MAKERS)
def test_the_table_follows_the_arrays(name: str) -> None:
    estimator, other = MAKERS[name](), MAKERS[name]()
    learn(estimator, 1)
    learn(other, 2, arms=60)
    for each in changed(estimator, other):
        check(each)
    check(other)


@pytest.mark.parametrize("name", MAKERS)
def test_a_refused_merge_leaves_the_table(name: str) -> None:
    estimator = MAKERS[name]()
    learn(estimator, 1)
    kept, before = estimator.addresses, estimator.theta
    with pytest.raises(ValueError, match="cannot merge"):
        estimator.merge(type(estimator)(d1=2, d2=2))  # type: ignore[arg-type]
    assert estimator.addresses is kept
    assert_allclose(estimator.theta, before)
    check(estimator)
