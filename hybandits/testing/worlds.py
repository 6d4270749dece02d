"""The conformance suite of worlds; docs/adding-a-world.md describes in words what these tests check."""

from abc import abstractmethod
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.policies import Greedy
from hybandits.simulation.play import cumulative_regret
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import World, delay_of, draw_rewards

TRIALS = 20
"""The number of trials in the tests of the noise."""


class Shown(NamedTuple):
    """One round of a world as it is played: the candidates, and the reward of each."""

    arms: list[Hashable]
    x: np.ndarray
    z: np.ndarray
    means: np.ndarray
    best: float
    rewards: np.ndarray


def candidates(block: Block, t: int) -> list[Hashable]:
    """The ids of the candidates of a round of a block."""
    return [block.rounds.arms[j] for j in block.rounds.index[t, : block.rounds.counts[t]].tolist()]


def shown(world: World, horizon: int, trial: int = 0) -> list[Shown]:
    """The first rounds of a world, one by one, without padding."""
    stream = world.noise_stream(trial)
    rounds = []
    for block in world.rounds(horizon, trial):
        rewards = draw_rewards(world, block.means, stream)
        for t, count in enumerate(block.rounds.counts.tolist()):
            x, z = (features.copy() for features in block.rounds.features(t))
            means = block.means[t, :count]
            rounds.append(Shown(candidates(block, t), x, z, means, float(block.best[t]), rewards[t, :count]))
    return rounds


def differing(first: list[Shown], second: list[Shown], fields: tuple[str, ...]) -> list[str]:
    """Return the fields that differ in any of the rounds that both have."""
    return [
        name
        for name in fields
        if not all(np.array_equal(getattr(a, name), getattr(b, name)) for a, b in zip(first, second, strict=False))
    ]


CONTEXTS = ("arms", "x", "z", "means", "best")
EVERYTHING = (*CONTEXTS, "rewards")


class WorldConformance:
    """Tests of what every world promises; subclass it, implement `make`, and let pytest collect the class.

    Everything is a function of seeds. For another seed of a correct world, the test of the noise's mean would fail with
    a probability of 2e-9, and that of its standard deviation with less than 1e-9 if the noise is Gaussian.
    """

    horizon = 1500
    """The number of rounds examined."""
    same_for_any_horizon = True
    """True if a shorter run is the beginning of a longer one."""
    constant_noise = True
    """False where the noise depends on the mean, where there is none, or where its tails are heavy."""

    @abstractmethod
    def make(self, seed: int) -> World:
        """Make a world; the same seed must give the same world."""
        raise NotImplementedError("define make(self, seed) so that it returns a world to be tested")

    @pytest.fixture
    def world(self) -> World:
        return self.make(seed=3)

    def test_attributes(self, world: World) -> None:
        assert all(isinstance(d, int) and d >= 0 for d in (world.d1, world.d2))
        assert world.d1 + world.d2 > 0, "there must be features"
        assert 0 <= world.noise < np.inf
        assert world.fresh_contexts in (True, False)

    def test_blocks_fit_together_and_have_the_rounds_asked_for(self, world: World) -> None:
        for horizon in (1, 7, self.horizon):
            rounds = 0
            for block in world.rounds(horizon):
                block.rounds.check(world.d1, world.d2)
                n, k = block.rounds.index.shape
                assert n > 0, "a block has at least one round"
                assert block.means.shape == (n, k)
                assert block.means.dtype == np.float64
                assert block.best.shape == (n,)
                rounds += n
            assert rounds == horizon

    def test_numbers_are_finite_and_the_best_is_the_largest_mean_of_the_candidates(self, world: World) -> None:
        for t, each in enumerate(shown(world, self.horizon)):
            for name in ("x", "z", "means", "rewards"):
                assert np.isfinite(getattr(each, name)).all(), f"{name} of round {t} is not finite"
            assert each.best == each.means.max(), f"round {t}: padding does not count, and nothing is better"

    def test_new_arms_are_candidates_in_the_first_round_of_their_block(self, world: World) -> None:
        met: set[Hashable] = set()
        for block in world.rounds(self.horizon):
            first = set(candidates(block, 0))
            everyone = {arm for t in range(len(block.best)) for arm in candidates(block, t)}
            late = everyone - met - first
            assert not late, f"{sorted(map(str, late))[:3]} are new: begin another block where they come in"
            met |= everyone

    def test_the_seed_decides_everything(self, world: World) -> None:
        first = shown(world, self.horizon)
        assert differing(first, shown(self.make(seed=3), self.horizon), EVERYTHING) == []
        assert differing(first, shown(world, self.horizon), EVERYTHING) == [], "a world can be played again"
        other = shown(self.make(seed=4), self.horizon)
        assert differing(first, other, EVERYTHING), "another seed gives another world, or other noise"

    def test_trials_share_their_rounds_unless_contexts_are_fresh_and_differ_by_noise(self, world: World) -> None:
        trial, another = (shown(world, self.horizon, trial) for trial in (0, 1))
        assert bool(differing(trial, another, CONTEXTS)) == world.fresh_contexts
        first, second = (np.concatenate([each.rewards - each.means for each in rounds]) for rounds in (trial, another))
        if not first.any():
            pytest.skip("the world has no noise")
        n = min(len(first), len(second))
        assert not np.array_equal(first[:n], second[:n])

    def test_a_shorter_run_is_the_beginning_of_a_longer_one(self, world: World) -> None:
        if not self.same_for_any_horizon:
            pytest.skip("what happens depends on the horizon")
        shorter = shown(world, self.horizon * 4 // 5 + 1)
        assert differing(shorter, shown(world, self.horizon), EVERYTHING) == []

    def test_rewards_drawn_in_parts_are_those_drawn_at_once_and_leave_the_means_alone(self, world: World) -> None:
        """Blocks are cut where something is measured."""
        block = next(iter(world.rounds(self.horizon)))
        before = block.means.copy()
        at_once = draw_rewards(world, block.means, world.noise_stream())
        stream, middle = world.noise_stream(), len(block.best) // 3
        parts = [draw_rewards(world, means, stream) for means in (block.means[:middle], block.means[middle:])]
        assert at_once.shape == block.means.shape
        assert_array_equal(np.concatenate(parts), at_once)
        assert_array_equal(block.means, before)

    def noise(self, world: World) -> np.ndarray:
        """Reward minus mean of the first candidate, in all rounds of all trials."""
        rounds = max(self.horizon, 500)
        return np.array(
            [each.rewards[0] - each.means[0] for trial in range(TRIALS) for each in shown(world, rounds, trial)]
        )

    def test_rewards_have_the_means_of_the_world(self, world: World) -> None:
        """Within 6 standard errors."""
        noise = self.noise(world)
        assert abs(noise.mean()) <= 6 * noise.std() / np.sqrt(len(noise)) + 1e-12 * max(1.0, abs(noise).max())

    def test_rewards_have_the_standard_deviation_that_the_world_says(self, world: World) -> None:
        """Within 5 %, which is 7 standard errors of 10,000 Gaussian rewards."""
        if not self.constant_noise:
            pytest.skip("the noise is not the same in every round")
        assert_allclose(self.noise(world).std(), world.noise, rtol=0.05)

    def test_rewards_come_as_late_as_the_world_says(self, world: World) -> None:
        delay = delay_of(world)
        assert isinstance(delay, int)
        assert delay >= 0
        policy = Greedy(d1=world.d1, d2=world.d2)
        rounds = min(self.horizon, 60 + delay)
        cumulative_regret(policy, world, rounds)
        assert policy.rounds == max(rounds - delay, 0)
