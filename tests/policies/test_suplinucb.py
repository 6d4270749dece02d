"""SupLinUCB walks down its levels as Chu et al. describe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hybandits import HybridRidge, SupLinUCB
from hybandits.testing import ARMS, Page, fingerprint
from tests.support.oracle import Dense


@pytest.mark.parametrize("released", [False, True])
def test_suplinucb_walks_as_chu_et_al_say_or_as_the_released_code_does(released: bool) -> None:
    horizon, k, ridge = 300, 5, 0.5 if released else 1.0
    settings: Any = {"ridge": ridge, "bound": (0.1, 0.2), "explore": "first"} if released else {}
    policy = SupLinUCB(d1=1, d2=1, horizon=horizon, delta=0.05, arm_count=k, **settings)
    alpha = math.sqrt(math.log(2 * horizon * k / 0.05) / 2)
    if released:
        alpha = math.sqrt(0.5) * math.hypot(0.1, math.sqrt(5) * 0.2) + math.sqrt(2 * math.log(horizon * k / 0.05))
    assert len(policy.levels) == math.ceil(math.log(horizon))
    dense = [Dense(1, 1, ARMS, ridge) for _ in policy.levels]
    page = Page(1, 1)
    levels = set()
    for _ in range(290):
        x, z = page.features()
        choice = policy.choose(x, z, ARMS)
        left = list(range(k))
        for s, level in enumerate(dense, start=1):
            mean, width = level.score([ARMS[i] for i in left], x[left], z[left])
            w = alpha * width
            if (w <= 1 / math.sqrt(horizon)).all():
                expected = left[int(np.argmax(mean + w))], 0
                break
            if (w > 2.0**-s).any():
                expected = left[int(np.argmax(w > 2.0**-s) if released else np.argmax(w))], s
                break
            best = (mean + w).max()
            left = [i for i, value in zip(left, mean + w, strict=True) if value >= best - 2.0 ** (1 - s)]
        assert (choice.index, choice.receipt) == expected
        levels.add(choice.receipt)
        i = choice.index
        reward = page.reward(i, x[i], z[i])
        policy.learn(choice.arm, x[i], z[i], reward, receipt=choice.receipt)
        if choice.receipt:
            dense[choice.receipt - 1].learn(choice.arm, x[i], z[i], reward)
    assert len(levels) > 1


def test_suplinucb_learns_batches_one_by_one_also_while_it_counts_arms() -> None:
    for seed in range(10):
        page = Page(2, 1, seed)
        x, z = page.features(60)
        arms = [int(i) for i in np.random.default_rng(seed).integers(0, 25, 60)]
        single, batch = (SupLinUCB(d1=2, d2=1, horizon=400) for _ in range(2))
        for row in zip(arms, 3 * x, 3 * z, np.ones(60), strict=True):
            single.learn(*row)
        batch.learn_batch(arms, 3 * x, 3 * z, np.ones(60))
        assert [level.rounds for level in single.levels] == [level.rounds for level in batch.levels]


def test_suplinucb_does_not_learn_from_rounds_that_exploit() -> None:
    policy = SupLinUCB(d1=1, d2=1, horizon=50, alpha=0.001)
    x = np.ones((2, 1))
    choice = policy.choose(x, x, ["a", "b"])
    assert choice.receipt == 0
    policy.learn(choice.arm, x[0], x[0], 1.0, receipt=0)
    assert policy.rounds == 1
    assert all(level.rounds == 0 for level in policy.levels)
    with pytest.raises(ValueError, match="receipt must be at most"):
        policy.learn("a", x[0], x[0], 1.0, receipt=99)
    with pytest.raises(TypeError, match="receipt must be a whole number"):
        policy.learn("a", x[0], x[0], 1.0, receipt="level")


def test_a_merge_that_one_level_refuses_changes_no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = (SupLinUCB(d1=1, d2=1, horizon=50) for _ in range(2))
    for policy in (mine, other):
        for level in (1, 2):
            policy.learn("a", [1.0], [1.0], 1.0, receipt=level)
    before, refusing = fingerprint(mine), other.levels[1]
    take_in = HybridRidge._take_in

    def refuse(level: HybridRidge, theirs: HybridRidge) -> None:
        if theirs is refusing:
            raise ValueError("the two estimators cannot be merged")
        take_in(level, theirs)

    monkeypatch.setattr(HybridRidge, "_take_in", refuse)
    with pytest.raises(ValueError, match="cannot be merged"):
        mine.merge(other)
    assert fingerprint(mine) == before
