"""Worlds of clicks, and of arms that come and go."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.simulation.rounds import Block, Rounds
from hybandits.simulation.worlds import BLOCK, SharedRounds, check_world, every_arm


@dataclass(frozen=True, kw_only=True)
class Clicks(SharedRounds):
    """Clicks: log odds = log(rate / (1 - rate)) + x.theta + z.beta_arm, where z = (1, user) is shared by all arms.

    Parameters
    ----------
    d1, d2, arms, seed
        As for `Synthetic`; d2 is at least 1.
    rate : float
        The share of clicks at log odds of theta = beta = 0.
    spread : float
        Standard deviation of a candidate's log odds, half of the variance from theta and half from beta.
    """

    d1: int
    d2: int
    arms: int
    rate: float = 0.05
    spread: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_world(self.d1, self.d2, self.arms, self.seed)
        checks.count("d2", self.d2, least=1, why="the first of the user's features is a 1")
        if not 0 < checks.real("rate", self.rate) < 1:
            raise ValueError(f"rate must lie in (0, 1), got {self.rate!r}: it is the share of clicks")
        checks.non_negative("spread", self.spread, "it is a standard deviation")

    @property
    def noise(self) -> float:
        """Standard deviation of a click at the world's rate."""
        return math.sqrt(self.rate * (1 - self.rate))

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial."""
        random = np.random.default_rng(self.seed)
        part = self.spread / math.sqrt(2)
        theta = part / math.sqrt(max(self.d1, 1)) * random.standard_normal(self.d1)
        beta = part / math.sqrt(self.d2) * random.standard_normal((self.arms, self.d2))
        products = self._products(random)
        for start in range(0, horizon, BLOCK):
            n = min(BLOCK, horizon - start)
            x, user = (each[:n] for each in self._contexts(random, products))
            z = np.repeat(user[:, None, :], self.arms, axis=1)
            odds = math.log(self.rate / (1 - self.rate)) + x @ theta + user @ beta.T
            means = 1 / (1 + np.exp(-odds))
            yield Block(Rounds(x, z, range(self.arms), *every_arm(n, self.arms)), means, means.max(axis=1))

    def _products(self, random: np.random.Generator) -> FloatArray:
        """Features of each arm, drawn once."""
        return np.empty((self.arms, 0))

    def _contexts(self, random: np.random.Generator, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x of every candidate, and (1, user), of a whole block."""
        return random.standard_normal((BLOCK, self.arms, self.d1)), self._users(random)

    def _users(self, random: np.random.Generator) -> FloatArray:
        return np.concatenate((np.ones((BLOCK, 1)), random.standard_normal((BLOCK, self.d2 - 1))), axis=1)

    def rewards(self, means: FloatArray, stream: np.random.Generator) -> FloatArray:
        """Clicks: the same uniform for all candidates of a round, so a likelier one is clicked whenever another is."""
        return (stream.random((len(means), 1)) < means).astype(float)


@dataclass(frozen=True, kw_only=True)
class Products(Clicks):
    """Clicks on products with features v of their own, the same in every round: x = vec(u v') and z = u = (1, user).

    x and z are those of the map "li" of `hybandits.features`: d2 is the length of u, and d1 is d2 times the number of
    features of a product. All parameters are those of `Clicks`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d1 % self.d2 or self.d1 == 0:
            raise ValueError(f"d1 must be a multiple of d2 = {self.d2}, got {self.d1}: x has products with all of z")

    def _products(self, random: np.random.Generator) -> FloatArray:
        return random.standard_normal((self.arms, self.d1 // self.d2))

    def _contexts(self, random: np.random.Generator, products: FloatArray) -> tuple[FloatArray, FloatArray]:
        user = self._users(random)
        x = products[None, :, :, None] * user[:, None, None, :]
        return np.ascontiguousarray(x.reshape(BLOCK, self.arms, self.d1)), user


@dataclass(frozen=True, kw_only=True)
class Churn(SharedRounds):
    """A pool of arms of which a tenth is replaced by new ones every so many rounds.

    Rewards are x.theta + z.beta_arm + noise. The arms' parameters have a mean in common, so that much can be known of a
    new arm. The first feature of z is a 1.

    Parameters
    ----------
    d1, d2, noise, seed
        As for `Synthetic`.
    arms : int
        The number of arms in the pool, all of them candidates. Arms are numbered as they come.
    every : int
        Rounds between two replacements.
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
