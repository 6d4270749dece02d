"""The compiled loop takes the decisions of the contract, to the bit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
)
from hybandits.simulation import loops
from hybandits.simulation import worlds as environments
from hybandits.simulation.play import Player, _play_by_contract, cumulative_regret, play, play_rounds
from hybandits.simulation.rounds import Block, Rounds
from hybandits.simulation.worlds import Synthetic
from tests.support.plain import plain

WORLD = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)

MAKERS: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(d1=4, d2=3, noise=0.1, seed=2),
    "LinUCB": lambda: LinUCB(d1=4, d2=3, exploration=SelfNormalised(noise=0.1, bound=(0.8, 0.5)), ridge=0.1, seed=2),
    "DisLinUCB": lambda: DisLinUCB(d1=4, d2=3, noise=0.1, seed=2),
    "LiHybrid": lambda: LiHybrid(d1=4, d2=3, alpha=0.3, seed=2),
    "Greedy": lambda: Greedy(d1=4, d2=3, seed=2),
    "as written": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "as written, arms told": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500, arms=6), seed=2),
    "LinUCB as written": lambda: LinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "DisLinUCB as written": lambda: DisLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "HyThompson": lambda: HyThompson(d1=4, d2=3, noise=0.1, seed=2),
    "SupLinUCB": lambda: SupLinUCB(d1=4, d2=3, horizon=1300, alpha=0.3, seed=2),
    "SupLinUCB, arms counted": lambda: SupLinUCB(d1=4, d2=3, horizon=50, delta=0.9, seed=2),
    "HyRan": lambda: HyRan(d1=4, d2=3, arm_count=6, seed=3),
    "HyRan, theory": lambda: HyRan(d1=4, d2=3, p=0.8, ridge_schedule="theory", seed=3),
    "HyRanWithoutCrossBlocks": lambda: HyRanWithoutCrossBlocks(d1=4, d2=3, seed=3),
}


class Shown(NamedTuple):
    """One round: ids, features, the mean and the reward of every candidate (NaN: no answer)."""

    arms: list[Hashable]
    x: np.ndarray
    z: np.ndarray
    means: np.ndarray
    rewards: np.ndarray


IDS: tuple[Hashable, ...] = ("old", 3, ("a", 1), "new", 0, "b", 17, ("a", 2), "late")


def changing(seed: int, *, length: int = 120, unanswered: float = 0.5) -> list[Shown]:
    """Rounds whose candidates come and go: 1 to 6 of those that are there, in any order; some rewards are missing."""
    random = np.random.default_rng(seed)
    from_to = np.sort(random.integers(-length // 2, length, size=(len(IDS), 2)), axis=1)
    from_to[0] = 0, length
    rounds = []
    for t in range(length):
        there = [arm for arm, (first, last) in zip(IDS, from_to, strict=True) if first <= t <= last]
        n = int(random.integers(1, min(6, len(there)) + 1)) if random.random() < 0.8 else 1
        arms: list[Hashable] = [there[i] for i in random.permutation(len(there))[:n]]
        means = random.normal(size=n)
        rewards = np.where(random.random(n) < unanswered, np.nan, means + 0.1 * random.normal(size=n))
        rounds.append(Shown(arms, random.normal(size=(n, 4)), random.normal(size=(n, 3)), means, rewards))
    return rounds


def together(shown: Sequence[Shown], seed: int = 0) -> tuple[Rounds, np.ndarray, np.ndarray]:
    """Rounds with their means and rewards; the padding and the order of the arms are arbitrary."""
    met = list(dict.fromkeys(arm for one in shown for arm in one.arms))
    arms = [met[i] for i in np.random.default_rng(seed).permutation(len(met))]
    counts = np.array([len(one.arms) for one in shown])
    rows, n = len(shown), int(counts.max())
    x, z = np.full((rows, n, 4), np.nan), np.full((rows, n, 3), np.nan)
    index = np.zeros((rows, n), np.int64)
    means, rewards = np.full((rows, n), np.inf), np.full((rows, n), np.inf)
    for t, one in enumerate(shown):
        k = len(one.arms)
        index[t, :k] = [arms.index(arm) for arm in one.arms]
        x[t, :k], z[t, :k], means[t, :k], rewards[t, :k] = one.x, one.z, one.means, one.rewards
    return Rounds(x, z, arms, index, counts), means, rewards


def in_blocks(shown: Sequence[Shown], cuts: Sequence[int] = (), met: Sequence[Hashable] = ()) -> Iterator[list[Shown]]:
    """The rounds, cut there and where an arm enters."""
    block: list[Shown] = []
    known = set(met)
    for t, one in enumerate(shown):
        if block and (t in cuts or not known.issuperset(one.arms)):
            yield block
            block = []
        block.append(one)
        known.update(one.arms)
    yield block


def assert_same_state(one: Policy, two: Policy) -> None:
    """Everything that is saved is equal to the bit; the normals, which are drawn in other portions, from here on."""
    (header, arrays), (other_header, other_arrays) = one._pack(), two._pack()
    if isinstance(one, HyThompson) and isinstance(two, HyThompson):
        assert_array_equal(one.take_normals(5000), two.take_normals(5000))
        one._used, two._used = one._used - 5000, two._used - 5000
        header["random"] = other_header["random"] = None
        arrays["normals.left"] = other_arrays["normals.left"]
    assert header == other_header
    assert arrays.keys() == other_arrays.keys()
    for name in arrays:
        assert_array_equal(arrays[name], other_arrays[name], err_msg=name)


@pytest.mark.parametrize("name", MAKERS)
def test_compiled_rounds_are_those_of_the_contract(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "BLOCK_NUMBERS", 9000)  # several blocks
    compiled, contract = MAKERS[name](), MAKERS[name]()
    regret = cumulative_regret(compiled, WORLD, 1300)
    noises = iter(WORLD.noises(1300))
    instant: list[float] = []
    for rounds, means, best in WORLD.rounds(1300):
        rewards = np.array([row + next(noises) for row in means])
        picks = np.empty(len(best), np.int64)
        _play_by_contract(contract, rounds, rewards, picks)
        instant.extend(best - means[np.arange(len(best)), picks])
    assert_array_equal(regret, np.cumsum(instant))
    assert compiled.rounds == contract.rounds == 1300
    x, z = np.random.default_rng(0).normal(size=(2, 6, 4)), np.random.default_rng(1).normal(size=(2, 6, 3))
    for i in range(2):
        assert compiled.choose(x[i], z[i])[:5] == contract.choose(x[i], z[i])[:5]
        assert_array_equal(compiled.predict(x[i], z[i]), contract.predict(x[i], z[i]))
    assert_same_state(compiled, contract)


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
            _play_by_contract(policy, *together(before)[::2], np.empty(30, np.int64))
            for arm in policy.arms[1::2]:
                policy.forget(arm)
    shown = changing(seed, unanswered=unanswered)
    wanted = np.empty(120, np.int64)
    whole, _, rewards = together(shown)
    _play_by_contract(contract, whole, rewards, wanted)
    got = []
    for i, block in enumerate(in_blocks(shown, cuts, compiled.arms)):
        rounds, _, rewards = together(block, seed=i)
        got.append(np.full(len(block), -1))
        play_rounds(compiled, rounds, rewards, got[-1])
    assert_array_equal(np.concatenate(got), wanted)
    assert_same_state(compiled, contract)


class Coming:
    """A world of `changing` rounds."""

    d1, d2, noise, fresh_contexts = 4, 3, 0.1, False

    def __init__(self, seed: int, cuts: Sequence[int] = ()) -> None:
        self.shown = changing(seed)
        self.cuts = cuts

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        for block in in_blocks(self.shown[:horizon], self.cuts):
            rounds, means, _ = together(block)
            yield Block(rounds, means, np.array([one.means.max() for one in block]))

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        return np.random.default_rng(trial)


@pytest.mark.parametrize("learns_from", [None, 0, 2])
@pytest.mark.parametrize("name", ["HyLinUCB", "as written", "HyThompson", "SupLinUCB", "HyRan"])
def test_a_player_may_learn_from_the_reward_of_another_candidate(name: str, learns_from: int | None) -> None:
    policy, world = MAKERS[name](), Coming(3)
    noises = 0.1 * world.noise_stream(1).standard_normal(120)
    regret = [0.0]
    for one, noise in zip(world.shown, noises, strict=True):
        choice = policy.choose(one.x, one.z, one.arms)
        i = choice.index
        j = i if learns_from is None else min(learns_from, len(one.arms) - 1)
        policy.learn(choice.arm, one.x[i], one.z[i], float(one.means[j] + noise), receipt=choice.receipt)
        regret.append(regret[-1] + (one.means.max() - one.means[i]))
    points = [1, 50, 120]
    for cuts in ((), (10, 11, 90)):
        player = Player(MAKERS[name](), 1, learns_from)
        assert_array_equal(play([player], Coming(3, cuts), points, probes=(7,))[0], np.array(regret)[points])
        assert_same_state(player.policy, policy)


def test_a_place_to_learn_from_is_a_whole_number() -> None:
    with pytest.raises(ValueError, match="learns_from must be at least 0, got -1"):
        play([Player(MAKERS["Greedy"](), 0, -1)], WORLD, [5])


@pytest.mark.parametrize(
    "name", ["HyLinUCB", "DisLinUCB", "HyThompson", "SupLinUCB", "HyRan", "HyRanWithoutCrossBlocks"]
)
def test_the_loop_is_the_same_compiled_and_plain(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = cumulative_regret(MAKERS[name](), WORLD, 40)
    with plain():
        for kernel, value in list(vars(loops).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(loops, kernel, value.py_func)
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


def everyone(x: np.ndarray, z: np.ndarray) -> Rounds:
    """Rounds in which every arm is a candidate."""
    rows, n, _ = x.shape
    return Rounds(x, z, range(n), np.tile(np.arange(n), (rows, 1)), np.full(rows, n))


def test_hyran_stops_where_its_sums_fail() -> None:
    policy = HyRan(d1=3, d2=3, seed=0)
    x = np.random.default_rng(0).normal(size=(40, 4, 3)) * 1e8
    with pytest.raises(ValueError, match="rescale x and z"):
        play_rounds(policy, everyone(x, x), np.ones((40, 4)), np.empty(40, np.int64))


def test_an_arm_that_hyran_forgets_is_out_of_its_sums() -> None:
    policy = HyRan(d1=4, d2=3, arm_count=9, seed=3)
    rounds, _, rewards = together(changing(0, length=60, unanswered=0.0))
    _play_by_contract(policy, rounds, rewards, np.empty(60, np.int64))
    x, z = np.ones((1, 4)), np.ones((1, 3))
    before = policy.predict(x, z, ["old"])
    policy.forget(next(arm for arm in policy.arms if arm != "old"))
    assert_allclose(policy.predict(x, z, ["old"]), before, rtol=1e-9)


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


def test_rounds_that_do_not_fit_are_refused_before_anything_is_played() -> None:
    policy = MAKERS["as written"]()
    good, _, rewards = together(changing(0, length=10))
    picks = np.empty(10, np.int64)

    def refused(message: str, **changed: Any) -> None:
        values = {"rewards": rewards, "picks": picks, **changed}
        given = (values.pop("rewards"), values.pop("picks"))
        with pytest.raises(ValueError, match=message):
            play_rounds(policy, good._replace(**{k: v for k, v in values.items() if k in good._fields}), *given)

    refused("the policy has d1=4, d2=3 and the rounds d1=3, d2=3", x=good.x[:, :, :3])
    refused("x must be a writeable array of float64 in C order", x=np.asfortranarray(good.x))
    refused(r"x must have shape \(rounds, n, d1\), got \(3, 4\)", x=good.x[0])
    refused(r"z must be .* got float32", z=good.z.astype(np.float32))
    refused("counts must be .* of shape", counts=good.counts[:5])
    refused("index must be", index=good.index[0])
    refused("rewards must be", rewards=rewards[:5])
    refused("picks must be .*int64.* got float64", picks=np.empty(10))
    refused("more than once", arms=[*good.arms[1:], good.arms[1]])
    refused("round 0 has counts 0", counts=0 * good.counts)
    refused("give it 1 to", counts=good.counts + good.index.shape[1])
    refused("each another one of", index=good.index - 1)
    refused("each another one of", index=good.index + 9)
    wide = int(np.argmax(good.counts))
    assert good.counts[wide] > 1
    refused(f"round {wide} has", index=np.where(np.arange(10)[:, None] == wide, 0, good.index))
    assert policy.arms == []


def test_an_arm_that_enters_late_is_refused() -> None:
    policy = HyLinUCB(d1=1, d2=1, noise=0.1)
    rounds = Rounds(np.ones((2, 1, 1)), np.ones((2, 1, 1)), ["a", "b"], np.array([[0], [1]]), np.ones(2, np.int64))
    picks = np.empty(2, np.int64)
    with pytest.raises(ValueError, match=r"1 arm\(s\) that the policy has not met .* start new rounds"):
        play_rounds(policy, rounds, np.ones((2, 1)), picks)
    assert policy.arms == []
    policy.learn("b", [1.0], [1.0], 1.0)
    play_rounds(policy, rounds, np.ones((2, 1)), picks)
    assert policy.rounds == 3
    play_rounds(policy, rounds.part(0, 0), np.ones((0, 1)), picks[:0])
    with pytest.raises(TypeError, match="arm is None"):
        play_rounds(policy, rounds._replace(arms=[None, "b"]), np.ones((2, 1)), picks)
