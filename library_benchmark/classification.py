"""Data sets for classification as worlds: the arms are the classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.simulation.rounds import Block, Rounds
from hybandits.simulation.worlds import BLOCK, SharedRounds, every_arm


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
