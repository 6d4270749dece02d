"""The compiled loop takes the decisions of the contract, to the bit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import (
    AsWritten,
    DisLinUCB,
    Greedy,
    HyLinUCB,
    HyRan,
    HyRanWithoutCrossBlocks,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SelfNormalised,
    SupLinUCB,
    Uniform,
    environments,
    simulate,
)
from hybandits.environments import Block, Synthetic
from hybandits.simulate import Player, cumulative_regret, play
from tests.plain import plain

WORLD = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)

MAKERS: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(d1=4, d2=3, noise=0.1),
    "LinUCB": lambda: LinUCB(d1=4, d2=3, exploration=SelfNormalised(noise=0.1, bound=(0.8, 0.5)), ridge=0.1),
    "DisLinUCB": lambda: DisLinUCB(d1=4, d2=3, noise=0.1),
    "LiHybrid": lambda: LiHybrid(d1=4, d2=3, alpha=0.3),
    "Greedy": lambda: Greedy(d1=4, d2=3),
    "as written": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500)),
    "HyThompson": lambda: HyThompson(d1=4, d2=3, noise=0.1, seed=2),
    "SupLinUCB": lambda: SupLinUCB(d1=4, d2=3, horizon=1300, alpha=0.3),
    "HyRan": lambda: HyRan(d1=4, d2=3, arm_count=6, seed=3),
    "HyRan, theory": lambda: HyRan(d1=4, d2=3, p=0.8, ridge_schedule="theory", seed=3),
    "HyRanWithoutCrossBlocks": lambda: HyRanWithoutCrossBlocks(d1=4, d2=3, seed=3),
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
        assert compiled.choose(x[i], z[i])[:5] == contract.choose(x[i], z[i])[:5]
        # SupLinUCB predicts from all levels merged, arm by arm in the order of their blocks.
        tolerance = 1e-10 if name == "SupLinUCB" else 0
        assert_allclose(compiled.predict(x[i], z[i]), contract.predict(x[i], z[i]), rtol=tolerance)


@pytest.mark.parametrize(
    "name", ["HyLinUCB", "DisLinUCB", "HyThompson", "SupLinUCB", "HyRan", "HyRanWithoutCrossBlocks"]
)
def test_the_loop_is_the_same_compiled_and_plain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cumulative_regret(MAKERS[name](), WORLD, 40)
    with plain():
        for kernel, value in list(vars(simulate).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(simulate, kernel, value.py_func)
        interpreted = cumulative_regret(MAKERS[name](), WORLD, 40)
    assert_allclose(compiled, interpreted, rtol=1e-9)


def test_players_together_are_players_alone_and_probes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK_NUMBERS", 9000)
    names = ("HyLinUCB", "HyThompson", "HyRan", "SupLinUCB")
    players = [Player(MAKERS[name](), trial) for name in names for trial in (0, 2)]
    points = [1, 7, 166, 167, 168, 400]
    seen: list[tuple[int, int, int]] = []
    together = play(
        players, WORLD, points, probes=(7, 250, 400), probe=lambda i, t, policy: seen.append((i, t, policy.rounds))
    )
    assert together.shape == (8, 6)
    for i, name in enumerate(names):
        for j, trial in enumerate((0, 2)):
            alone = cumulative_regret(MAKERS[name](), WORLD, 400, trial=trial)
            assert_array_equal(together[2 * i + j], alone[np.array(points) - 1])
    assert seen == [(i, t, t) for t in (7, 250, 400) for i in range(8)]


def test_players_of_several_trials_cannot_share_fresh_contexts() -> None:
    world = replace(WORLD, fresh_contexts=True)
    players = [Player(MAKERS["HyLinUCB"](), trial) for trial in (0, 1)]
    with pytest.raises(ValueError, match=r"players of trials \[0, 1\] do not share contexts"):
        play(players, world, [5])


def test_a_subclass_with_another_rule_is_played_by_the_contract() -> None:
    class Second(HyLinUCB):
        def choose(self, x: Any = None, z: Any = None, arms: Any = None) -> Any:
            return super().choose(x, z, arms)._replace(arm=1, index=1)

    policy = Second(d1=4, d2=3)
    cumulative_regret(policy, WORLD, 20)
    assert policy.estimator.pulls_of(1) == 20


def test_memory_does_not_grow_with_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK_NUMBERS", 9000)

    def peak(rounds: int) -> int:
        tracemalloc.start()
        play([Player(MAKERS["HyLinUCB"]())], WORLD, [rounds])
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(1000)
    assert peak(20_000) < peak(1000) + 20_000


def test_hyran_stops_where_its_sums_fail() -> None:
    policy = HyRan(d1=3, d2=3, seed=0)
    x = np.random.default_rng(0).normal(size=(40, 4, 3)) * 1e8
    with pytest.raises(ValueError, match="rescale x and z"):
        simulate.play_block(policy, Block(x, x, np.ones((40, 4)), np.ones(40)), np.zeros(40), np.empty(40))


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


def test_other_policies_are_played_by_the_contract() -> None:
    policy = Uniform(d1=4, d2=3, seed=0)
    assert cumulative_regret(policy, WORLD, 30)[-1] > 0
    assert policy.rounds == 30


def test_a_world_with_features_beyond_bounds_is_refused_where_it_breaks() -> None:
    policy = HyLinUCB(d1=1, d2=1, noise=0.1)
    x = np.ones((3, 2, 1))
    x[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="round 1 are not finite"):
        simulate.play_block(policy, Block(x, np.ones((3, 2, 1)), np.ones((3, 2)), np.ones(3)), np.zeros(3), np.empty(3))
    assert policy.rounds == 1
