"""Worlds to play in: contexts, rewards and the best arm, drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybandits import checks
from hybandits.checks import Doubles

BLOCK_NUMBERS = 4_000_000
"""Uniforms drawn at a time: memory does not grow with the number of rounds, and the draws do not depend on it."""


class Block(NamedTuple):
    """Some consecutive rounds: features (rounds, arms, d1) and (rounds, arms, d2), mean rewards (rounds, arms)."""

    x: Doubles
    z: Doubles
    means: Doubles


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """The paper's synthetic world as its released code draws it (directions of cube points, uniform radii).

    theta, each beta_i and every feature vector is the direction of a uniform point of a cube times a radius uniform
    in [0, bound]. Parameters and contexts are functions of the seed alone; the noise of trial j is drawn from seed + j.
    """

    d1: int
    d2: int
    arms: int
    noise: float = 0.01
    theta_bound: float = 0.8
    beta_bound: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        checks.count("arms", self.arms, least=1, why="a round needs a candidate")
        checks.non_negative("noise", self.noise, "it is a standard deviation")
        checks.seed(self.seed)

    def parameters(self) -> tuple[Doubles, Doubles]:
        """theta (d1,) and beta (arms, d2)."""
        return self._parameters(np.random.default_rng(self.seed))

    def _parameters(self, random: np.random.Generator) -> tuple[Doubles, Doubles]:
        theta = self.theta_bound * _point(random.random(self.d1 + 1))
        beta = self.beta_bound * _point(random.random((self.arms, self.d2 + 1)))
        return theta, beta

    def rounds(self, horizon: int) -> Iterator[Block]:
        """The first `horizon` rounds in blocks."""
        random = np.random.default_rng(self.seed)
        theta, beta = self._parameters(random)
        columns = self.d1 + self.d2 + 2
        size = max(1, BLOCK_NUMBERS // (self.arms * columns))
        for start in range(0, horizon, size):
            u = random.random((min(size, horizon - start), self.arms, columns))
            x = _scaled(u[..., : self.d1], u[..., -2])
            z = _scaled(u[..., self.d1 : -2], u[..., -1])
            yield Block(x, z, x @ theta + np.einsum("tad,ad->ta", z, beta))

    def noises(self, horizon: int, trial: int = 0) -> Doubles:
        """One noise per round, the same for every policy."""
        return self.noise * np.random.default_rng(self.seed + trial).standard_normal(horizon)


def _point(u: Doubles) -> Doubles:
    """Uniforms (.., d + 1) to points: the first d give the direction, the last the radius."""
    return _scaled(u[..., :-1], u[..., -1])


def _scaled(u: Doubles, radius: Doubles) -> Doubles:
    cube = 2.0 * u - 1.0
    norm = np.linalg.norm(cube, axis=-1, keepdims=True)
    return np.ascontiguousarray(cube * (radius[..., None] / np.where(norm == 0, 1.0, norm)))
