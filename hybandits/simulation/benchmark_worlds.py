"""Worlds of clicks, of arms that come and go, and of data sets for classification."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

    Examples
    --------
    >>> world = Clicks(d1=3, d2=2, arms=4, rate=0.1, seed=7)
    >>> block = next(world.rounds(500))
    >>> sorted(set(world.rewards(block.means, world.noise_stream()).ravel().tolist()))
    [0.0, 1.0]
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


class Classification(SharedRounds):
    """A data set as a world: a round shows one row, z = (1, the standardised features) for all arms, without x.

    Parameters
    ----------
    features : array of shape (rows, number of features)
        They are standardised here; columns that never change are left out.
    labels : array of shape (rows,)
        The class of every row; arm i is the i-th class in sorted order.
    seed : int
        The order of the rows. When all have been shown, they are shown again in another order.

    Attributes
    ----------
    noise : float
        Standard deviation of the reward of an arm that is drawn uniformly.

    Examples
    --------
    >>> world = Classification(features=[[0.0], [1.0], [3.0]], labels=["b", "a", "b"])
    >>> block = next(world.rounds(3))
    >>> block.rounds.z.shape, sorted(block.means[:, 1].tolist())
    ((3, 2, 2), [0.0, 1.0, 1.0])
    """

    def __init__(self, *, features: Any, labels: Any, seed: int = 0) -> None:
        raw = np.asarray(features, float)
        names, self._labels = np.unique(np.asarray(labels), return_inverse=True)
        if len(self._labels) != len(raw):
            raise ValueError(f"got {len(self._labels)} labels and {len(raw)} rows of features: give one label per row")
        spread = raw.std(axis=0)
        kept = spread > 0
        standardised = (raw[:, kept] - raw[:, kept].mean(axis=0)) / spread[kept]
        self._features = np.concatenate((np.ones((len(raw), 1)), standardised), axis=1)
        self.seed = seed
        self.d1, self.d2, self.arms = 0, self._features.shape[1], len(names)
        self.noise = math.sqrt((self.arms - 1) / self.arms**2)

    def __len__(self) -> int:
        return len(self._labels)

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial."""
        random = np.random.default_rng(self.seed)
        rows = len(self)
        order = np.concatenate([random.permutation(rows) for _ in range(-(-horizon // rows))])[:horizon]
        arms = self.arms
        for start in range(0, horizon, BLOCK):
            shown = order[start : start + BLOCK]
            n = len(shown)
            z = np.repeat(self._features[shown][:, None, :], arms, axis=1)
            means = (self._labels[shown][:, None] == np.arange(arms)).astype(float)
            yield Block(Rounds(np.empty((n, arms, 0)), z, range(arms), *every_arm(n, arms)), means, np.ones(n))

    def rewards(self, means: FloatArray, stream: np.random.Generator) -> FloatArray:
        """The means themselves: an answer is right or wrong, without noise."""
        return means.copy()


def terrain(rows: int = 20_000, seed: int = 0) -> tuple[FloatArray, np.ndarray]:
    """Features (rows, 54) and labels of a synthetic data set of the shape of a survey of forests.

    The features are ten numbers, one of 4 areas and one of 40 soils as 0 and 1. The seven classes depend on height,
    slope and moisture by curved, overlapping zones, which soils move; two of them make up most of the rows.
    """
    random = np.random.default_rng((seed, 54))
    numbers = random.standard_normal((rows, 10))
    height, slope, moisture = numbers[:, 0], numbers[:, 1], numbers[:, 2]
    numbers[:, 3] = 0.7 * height + 0.7 * numbers[:, 3]
    numbers[:, 4] = np.abs(slope) + 0.3 * numbers[:, 4]
    area = np.clip(np.floor(2 + 1.2 * height + 0.7 * random.standard_normal(rows)), 0, 3).astype(int)
    soil = np.clip(np.floor(20 + 7 * moisture + 4 * random.standard_normal(rows)), 0, 39).astype(int)
    of_soil = 0.6 * random.standard_normal((40, 7))
    zones = random.standard_normal((7, 3)) * (1.4, 1.0, 1.2)
    narrow = np.array([1.0, 0.4, 1.6, 2.5, 2.0, 1.5, 1.2])
    common = np.array([1.6, 1.2, 1.2, 1.0, 0.8, 1.0, 1.0])
    apart = np.stack((height, slope, moisture), axis=1)[:, None, :] - zones
    odds = common - narrow * (apart**2).sum(axis=2) + of_soil[soil] + 0.7 * np.sin(2 * numbers[:, 5:6] + np.arange(7))
    labels = (odds - 0.5 * np.log(random.standard_exponential((rows, 7)))).argmax(axis=1)
    return np.concatenate((numbers, np.eye(4)[area], np.eye(40)[soil]), axis=1), labels
