"""A world whose arms come and go."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hybandits.foundation import checks
from hybandits.simulation.rounds import Block, Rounds
from hybandits.simulation.worlds import SharedRounds, check_world, every_arm


@dataclass(frozen=True, kw_only=True)
class Churn(SharedRounds):
    """A pool of arms of which a tenth is replaced by new ones every so many rounds.

    Rewards are x.theta + z.beta_arm + noise. The arms' parameters have a mean in common, so that much can be known of a
    new arm. The first feature of z is a 1.

    Parameters
    ----------
    d1, d2 : int
        Number of shared and of arm-specific features.
    arms : int
        How many arms are in the pool, all of them candidates. Arms are numbered as they come.
    noise : float
        Standard deviation of the Gaussian noise.
    every : int
        Rounds between two replacements.
    seed : int
        Decides parameters, contexts and arms; together with the trial, the noise.

    Examples
    --------
    >>> world = Churn(d1=3, d2=2, arms=10, every=100, seed=7)
    >>> [max(block.rounds.arms) for block in world.rounds(300)]
    [9, 10, 11]
    """

    d1: int
    d2: int
    arms: int
    noise: float = 0.1
    every: int = 250
    seed: int = 0

    def __post_init__(self) -> None:
        check_world(self.d1, self.d2, self.arms, self.seed)
        checks.count("every", self.every, least=1, why="it is the number of rounds between two replacements")
        checks.non_negative("noise", self.noise, "it is a standard deviation")

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial; a block ends where arms are replaced."""
        random = np.random.default_rng(self.seed)
        d1, d2, pool = self.d1, self.d2, self.arms
        theta, common = (0.3 * random.standard_normal(d) for d in (d1, d2))
        ids = list(range(pool))
        beta = common + 0.2 * random.standard_normal((pool, d2))
        new = pool
        for start in range(0, horizon, self.every):
            if start:
                for place in random.choice(pool, max(1, pool // 10), replace=False).tolist():
                    ids[place], new = new, new + 1
                    beta[place] = common + 0.2 * random.standard_normal(d2)
            n = min(self.every, horizon - start)
            x = random.standard_normal((self.every, pool, d1))[:n] / math.sqrt(max(d1, 1))
            z = random.standard_normal((self.every, pool, d2))[:n] / math.sqrt(max(d2, 1))
            z[..., :1] = 1.0
            means = x @ theta + np.einsum("tkd,kd->tk", z, beta)
            yield Block(Rounds(x, z, list(ids), *every_arm(n, pool)), means, means.max(axis=1))
