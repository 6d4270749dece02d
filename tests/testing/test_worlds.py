"""The conformance suite of worlds: it finds a world that breaks a promise, and skips what does not apply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hybandits.simulation import Block, Synthetic, World
from hybandits.testing import WorldConformance


@dataclass(frozen=True, kw_only=True)
class Good(Synthetic):
    d1: int = 3
    d2: int = 2
    arms: int = 4
    law: str = "ball"


class TooFew(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        yield from super().rounds(max(horizon - 1, 1), trial)


class Unseeded(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        for block in super().rounds(horizon, trial):
            yield block._replace(means=block.means + np.random.default_rng().normal())


class OneNoise(Good):
    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        return np.random.default_rng(self.seed)


class HiddenTrials(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        return Good(seed=self.seed + trial).rounds(horizon)


class ByHorizon(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        return Good(seed=self.seed + horizon).rounds(horizon)


class Louder(Good):
    def rewards(self, means: Any, stream: np.random.Generator) -> Any:
        return means + 2 * (super().rewards(means, stream) - means)


class Generous(Good):
    def rewards(self, means: Any, stream: np.random.Generator) -> Any:
        return super().rewards(means, stream) + 0.01


class Overwrites(Good):
    def rewards(self, means: Any, stream: np.random.Generator) -> Any:
        means += self.noise * stream.normal(size=(len(means), 1))
        return means


class LateArm(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        for block in super().rounds(horizon, trial):
            counts = block.rounds.counts.copy()
            counts[0] = 3
            best = block.best.copy()
            best[0] = block.means[0, :3].max()
            yield Block(block.rounds._replace(counts=counts), block.means, best)


class NotFinite(Good):
    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        for block in super().rounds(horizon, trial):
            block.rounds.x[-1, 0, 0] = np.nan
            yield block


FINITE = "test_numbers_are_finite_and_the_best_is_the_largest_mean_of_the_candidates"
TRIALS = "test_trials_share_their_rounds_unless_contexts_are_fresh_and_differ_by_noise"
IN_PARTS = "test_rewards_drawn_in_parts_are_those_drawn_at_once_and_leave_the_means_alone"


def broken(kind: type[Good], test: str) -> None:
    class Suite(WorldConformance):
        def make(self, seed: int) -> World:
            return kind(seed=seed)

    suite = Suite()
    getattr(suite, test)(suite.make(seed=3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "test"),
    [
        (TooFew, "test_blocks_fit_together_and_have_the_rounds_asked_for"),
        (Unseeded, "test_the_seed_decides_everything"),
        (OneNoise, TRIALS),
        (HiddenTrials, TRIALS),
        (ByHorizon, "test_a_shorter_run_is_the_beginning_of_a_longer_one"),
        (Louder, "test_rewards_have_the_standard_deviation_that_the_world_says"),
        (Generous, "test_rewards_have_the_means_of_the_world"),
        (Overwrites, IN_PARTS),
        (LateArm, "test_new_arms_are_candidates_in_the_first_round_of_their_block"),
        (NotFinite, FINITE),
    ],
)
def test_a_broken_promise_is_found(kind: type[Good], test: str) -> None:
    broken(Good, test)
    with pytest.raises(AssertionError):
        broken(kind, test)


def test_what_does_not_apply_is_skipped() -> None:
    suite = WorldConformance()
    suite.same_for_any_horizon = suite.constant_noise = False
    with pytest.raises(pytest.skip.Exception, match="depends on the horizon"):
        suite.test_a_shorter_run_is_the_beginning_of_a_longer_one(Good())
    with pytest.raises(pytest.skip.Exception, match="not the same in every round"):
        suite.test_rewards_have_the_standard_deviation_that_the_world_says(Good())
    with pytest.raises(pytest.skip.Exception, match="no noise"):
        getattr(suite, TRIALS)(Good(noise=0.0))
    with pytest.raises(NotImplementedError, match=r"define make\(self, seed\)"):
        suite.make(0)
