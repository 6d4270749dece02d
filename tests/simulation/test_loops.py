"""The compiled loops take the decisions of the contract, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import EpsilonGreedy, Greedy, HyLinUCB, HyRan, HyThompson, Policy, Uniform
from hybandits.simulation import loops, worlds
from hybandits.simulation.loops import compiled_loop, keeps_methods
from hybandits.simulation.play import cumulative_regret, play_by_contract, play_rounds
from hybandits.simulation.rounds import Rounds
from hybandits.simulation.worlds import Synthetic
from tests.support.plain import plain
from tests.support.rounds import MAKERS, assert_same_state, changing, everyone, in_blocks, together

WORLD = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)


VARIANTS = {name for name in MAKERS if "," in name or "written" in name or name in ("Greedy", "LiHybrid")}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in VARIANTS else ()) for name in MAKERS]
)
def test_compiled_rounds_are_those_of_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "BLOCK_NUMBERS", 4000)  # several blocks
    compiled, contract = MAKERS[name](), MAKERS[name]()
    regret = cumulative_regret(compiled, WORLD, 500)
    noises = iter(WORLD.noise * WORLD.noise_stream().standard_normal(500))
    instant: list[float] = []
    for rounds, means, best in WORLD.rounds(500):
        rewards = np.array([row + next(noises) for row in means])
        picks = np.empty(len(best), np.int64)
        play_by_contract(contract, rounds, rewards, picks)
        instant.extend(best - means[np.arange(len(best)), picks])
    assert_array_equal(regret, np.cumsum(instant))
    assert compiled.rounds == contract.rounds == 500
    x, z = np.random.default_rng(0).normal(size=(2, 6, 4)), np.random.default_rng(1).normal(size=(2, 6, 3))
    for i in range(2):
        assert compiled.choose(x[i], z[i])[:5] == contract.choose(x[i], z[i])[:5]
        assert_array_equal(compiled.predict(x[i], z[i]), contract.predict(x[i], z[i]))
    assert_same_state(compiled, contract)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    unanswered=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    cuts=st.lists(st.integers(1, 119), max_size=6),
    forgets=st.booleans(),
)
def test_candidates_that_come_and_go_and_rounds_without_an_answer(
    name: str, seed: int, unanswered: float, cuts: list[int], forgets: bool
) -> None:
    compiled, contract = MAKERS[name](), MAKERS[name]()
    if forgets:  # slots that are free and are used again
        before = changing(seed + 1, length=30, unanswered=0.0)
        for policy in (compiled, contract):
            play_by_contract(policy, *together(before)[::2], np.empty(30, np.int64))
            for arm in policy.arms[1::2]:
                policy.forget(arm)
    shown = changing(seed, unanswered=unanswered)
    wanted = np.empty(120, np.int64)
    complete, _, rewards = together(shown)
    play_by_contract(contract, complete, rewards, wanted)
    picks = []
    for i, block in enumerate(in_blocks(shown, cuts, compiled.arms)):
        rounds, _, rewards = together(block, seed=i)
        picks.append(np.full(len(block), -1))
        play_rounds(compiled, rounds, rewards, picks[-1])
    assert_array_equal(np.concatenate(picks), wanted)
    assert_same_state(compiled, contract)


@pytest.mark.parametrize("name", ["HyLinUCB", "DisLinUCB", "HyThompson", "HyIDS", "SupLinUCB", "HyRan"])
def test_the_loop_is_the_same_compiled_and_plain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cumulative_regret(MAKERS[name](), WORLD, 20)
    with plain():
        for kernel, value in list(vars(loops).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(loops, kernel, value.py_func)
        interpreted = cumulative_regret(MAKERS[name](), WORLD, 20)
    assert_allclose(compiled, interpreted, rtol=1e-9)


def test_hyran_stops_where_its_sums_fail() -> None:
    policy = HyRan(d1=3, d2=3, seed=0)
    x = np.random.default_rng(0).normal(size=(40, 4, 3)) * 1e8
    with pytest.raises(ValueError, match="rescale x and z"):
        play_rounds(policy, everyone(x, x), np.ones((40, 4)), np.empty(40, np.int64))


@pytest.mark.parametrize("name", ["HyLinUCB", "DisLinUCB", "HyThompson", "SupLinUCB", "HyRan"])
def test_numbers_beyond_bounds_are_refused_where_they_stand(name: str) -> None:
    x, z = np.ones((3, 2, 4)), np.ones((3, 2, 3))
    picks = np.empty(3, np.int64)
    policy = MAKERS[name]()
    x[1, 0, 0] = np.nan
    with pytest.raises(ValueError, match="round 1 are not finite"):
        play_rounds(policy, everyone(x, z), np.ones((3, 2)), picks)
    assert policy.rounds == 1
    x[1, 0, 0] = 1.0
    rewards = np.ones((3, 2))
    rewards[2] = np.inf
    policy = MAKERS[name]()
    with pytest.raises(ValueError, match=r"rewards\[2, .\] is inf"):
        play_rounds(policy, everyone(x, z), rewards, picks)
    assert policy.rounds == 2
    assert np.isfinite(policy.theta).all()


def test_an_arm_that_enters_late_is_refused() -> None:
    policy = HyLinUCB(d1=1, d2=1, noise=0.1)
    rounds = Rounds(np.ones((2, 1, 1)), np.ones((2, 1, 1)), ["a", "b"], np.array([[0], [1]]), np.ones(2, np.int64))
    picks = np.empty(2, np.int64)
    with pytest.raises(ValueError, match=r"1 arm\(s\) that the policy has not met .* start a new block of rounds"):
        play_rounds(policy, rounds, np.ones((2, 1)), picks)
    assert policy.arms == []
    policy.learn("b", [1.0], [1.0], 1.0)
    play_rounds(policy, rounds, np.ones((2, 1)), picks)
    assert policy.rounds == 3
    play_rounds(policy, rounds.part(0, 0), np.ones((0, 1)), picks[:0])
    with pytest.raises(TypeError, match="arm is None"):
        play_rounds(policy, rounds._replace(arms=[None, "b"]), np.ones((2, 1)), picks)


def test_a_subclass_keeps_the_loop_until_it_overrides_what_the_loop_stands_for() -> None:
    class Renamed(HyThompson):
        pass

    class OtherPropensities(HyThompson):
        def propensities(self, x: Any = None, z: Any = None, arms: Any = None, *, key: Any = None) -> Any:
            return super().propensities(x, z, arms, key=key)

    class OtherLearning(HyThompson):
        def learn(self, *args: Any, **kwargs: Any) -> None:
            super().learn(*args, **kwargs)

    rule = ("choose", "propensities", "_pick")
    renamed, propensities, learning = (
        kind(d1=1, d2=1, noise=0.1) for kind in (Renamed, OtherPropensities, OtherLearning)
    )
    assert compiled_loop(renamed) is compiled_loop(renamed, standing_for=rule) is not None
    assert compiled_loop(propensities) is not None
    assert compiled_loop(propensities, standing_for=rule) is None
    assert compiled_loop(learning) is None
    assert compiled_loop(learning, standing_for=rule) is not None
    assert not keeps_methods(renamed, HyRan, ())


def test_a_loop_is_registered_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in the table is enough for simulation, and for the probabilities that evaluation asks for."""
    from hybandits.evaluation.targets import probabilities

    played = []

    class Last(Uniform):
        _draws = False

        def choose(self, x: Any = None, z: Any = None, arms: Any = None) -> Any:
            raise AssertionError("the loop stands for this method")

    def play_last(policy: Policy, rounds: Rounds, rewards: np.ndarray, picks: np.ndarray) -> None:
        played.append(len(picks))
        picks[:] = rounds.counts - 1

    monkeypatch.setattr(loops, "COMPILED_LOOPS", {Last: play_last, **loops.COMPILED_LOOPS})
    policy, picks = Last(d1=4, d2=3), np.empty(20, np.int64)
    rounds, _, rewards = together(changing(0, length=20))
    play_rounds(policy, rounds, rewards, picks)
    assert_array_equal(picks, rounds.counts - 1)
    assert_array_equal(np.argmax(probabilities(policy, rounds), axis=1), rounds.counts - 1)
    assert played == [20, 20]


def test_every_loop_is_compared_with_the_contract() -> None:
    loop_of = {name: compiled_loop(maker()) for name, maker in MAKERS.items()}
    assert {*loop_of.values()} == {*loops.COMPILED_LOOPS.values()}, "add a policy to MAKERS for every compiled loop"
    assert compiled_loop(EpsilonGreedy(Greedy(d1=1, d2=1))) is None
