"""The compiled loop takes the decisions of the contract, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits import (
    AsWritten,
    DisLinUCB,
    Greedy,
    HyLinUCB,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SelfNormalised,
    environments,
    simulate,
)
from hybandits.environments import Block, Synthetic
from hybandits.simulate import cumulative_regret
from tests.plain import plain

WORLD = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)

MAKERS: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(d1=4, d2=3, noise=0.1),
    "LinUCB": lambda: LinUCB(d1=4, d2=3, exploration=SelfNormalised(noise=0.1, bound=(0.8, 0.5)), ridge=0.1),
    "DisLinUCB": lambda: DisLinUCB(d1=4, d2=3, noise=0.1),
    "LiHybrid": lambda: LiHybrid(d1=4, d2=3, alpha=0.3),
    "Greedy": lambda: Greedy(d1=4, d2=3),
    "as written": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_compiled_rounds_are_those_of_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK_NUMBERS", 9000)  # several blocks
    compiled, contract = MAKERS[name](), MAKERS[name]()
    regret = cumulative_regret(compiled, WORLD, 1300)
    instant: list[np.ndarray] = []
    noises = WORLD.noises(1300)
    for block in WORLD.rounds(1300):
        t = sum(map(len, instant))
        instant.append(np.empty(len(block.means)))
        simulate._play_by_contract(contract, block, noises[t : t + len(block.means)], instant[-1])
    assert_array_equal(regret, np.cumsum(np.concatenate(instant)))
    assert compiled.rounds == contract.rounds == 1300
    x, z = np.random.default_rng(0).normal(size=(2, 6, 4)), np.random.default_rng(1).normal(size=(2, 6, 3))
    for i in range(2):
        assert compiled.choose(x[i], z[i]) == contract.choose(x[i], z[i])
        assert_array_equal(compiled.predict(x[i], z[i]), contract.predict(x[i], z[i]))


def test_the_loop_is_the_same_compiled_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cumulative_regret(MAKERS["HyLinUCB"](), WORLD, 40)
    with plain():
        monkeypatch.setattr(simulate, "play_ucb", simulate.play_ucb.py_func)
        for kernel in ("choose_ucb", "learn_row", "refresh_due"):
            monkeypatch.setattr(simulate, kernel, getattr(simulate, kernel).py_func)
        interpreted = cumulative_regret(MAKERS["HyLinUCB"](), WORLD, 40)
    np.testing.assert_allclose(compiled, interpreted, rtol=1e-9)


def test_a_policy_goes_on_after_the_loop_with_arms_forgotten_and_new(tmp_path: Path) -> None:
    policy = HyLinUCB(d1=4, d2=3, noise=0.1)
    cumulative_regret(policy, WORLD, 50)
    policy.forget(2)
    policy.learn("new", np.ones(4), np.ones(3), 1.0)
    policy.forget(3)
    cumulative_regret(policy, WORLD, 50)
    assert policy.rounds == 101
    assert policy.estimator.sound()
    learned = policy.estimator.learned
    assert len(set(learned.values())) == len(learned)
    assert sum(policy.estimator.pulls_of(arm) for arm in policy.arms) <= 101
    policy.save(tmp_path / "p.npz")
    assert HyLinUCB.load(tmp_path / "p.npz").arms == policy.arms


def test_policies_that_draw_are_played_by_the_contract() -> None:
    policy = HyThompson(d1=4, d2=3, noise=0.1, seed=0)
    assert cumulative_regret(policy, WORLD, 30)[-1] > 0
    assert policy.rounds == 30


def test_a_world_with_features_beyond_bounds_is_refused_where_it_breaks() -> None:
    policy = HyLinUCB(d1=1, d2=1, noise=0.1)
    x = np.ones((3, 2, 1))
    x[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="round 1 are not finite"):
        simulate._play_compiled(policy, Block(x, np.ones((3, 2, 1)), np.ones((3, 2))), np.zeros(3), np.empty(3))
    assert policy.rounds == 1
