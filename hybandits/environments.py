"""Worlds to play in: candidates that may come and go, their contexts, mean rewards and the best of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hybandits import checks
from hybandits.checks import Doubles
from hybandits.compiling import kernel
from hybandits.features import GIVEN, FeatureMap, lay_out, room_for

BLOCK_NUMBERS = 1_000_000
"""Features drawn at a time: memory does not grow with the number of rounds, and the draws do not depend on it."""

LAWS = {
    "cube-direction": "the direction of a uniform point of a cube, times a radius uniform in [0, bound]",
    "ball": "uniform in the ball of radius bound",
    "inscribed-cube": "features uniform in the cube inscribed in the unit ball, parameters uniform in a ball",
}
"""How features and parameters are drawn; features have bound 1."""

_CUBE_DIRECTION, _BALL, _INSCRIBED = range(3)


class Made(NamedTuple):
    """What the features of rounds are made from as they are played, so that room for one round is enough.

    Those of candidate k of round t come from user[t] (rounds, du) and vectors[vector[t, k]], by the map.
    """

    map: FeatureMap
    user: Doubles
    vector: NDArray[np.int64]
    vectors: Doubles


class Rounds(NamedTuple):
    """Some consecutive rounds and their candidates, at most n in each.

    x (rounds, n, d1) and z (rounds, n, d2) are the features, doubles in C order; arms the ids of all candidates of
    these rounds, each once; index (rounds, n) says which of `arms` a candidate is. Round t has counts[t] candidates;
    what stands behind them is padding (in index: any arm). With `made`, x (0, n, d1) and z (0, n, d2) say no more than
    what shape the features have: ask `features` for them.
    """

    x: Doubles
    z: Doubles
    arms: Sequence[Hashable]
    index: NDArray[np.int64]  # type: ignore[assignment]  # not tuple.index
    counts: NDArray[np.int64]
    made: Made | None = None

    def part(self, first: int, last: int) -> Rounds:
        """The rounds first..last-1, without a copy."""
        x, z, made = self.x, self.z, self.made
        if made is None:
            x, z = x[first:last], z[first:last]
        else:
            made = made._replace(user=made.user[first:last], vector=made.vector[first:last])
        return Rounds(x, z, self.arms, self.index[first:last], self.counts[first:last], made)

    def features(self, t: int) -> tuple[Doubles, Doubles]:
        """x and z of the candidates of round t, not to be written to."""
        t = range(len(self.counts))[t]
        count = int(self.counts[t])
        if self.made is None:
            return self.x[t, :count], self.z[t, :count]
        made, x, z, _, _ = self.for_kernels
        x, z = room_for(made, x, z)
        lay_out(made, t, count, x, z)
        return x[0, :count], z[0, :count]

    @property
    def for_kernels(self) -> tuple[Any, Doubles, Doubles, NDArray[np.int64], NDArray[np.int64]]:
        """All but the ids: what `lay_out` makes features from, x, z, index and counts."""
        made: Any = GIVEN, np.empty((0, 0)), np.empty((0, 0), np.int64), np.empty((0, 0))
        if self.made is not None:
            made = self.made.map.code, self.made.user, self.made.vector, self.made.vectors
        return made, self.x, self.z, self.index, self.counts

    def check(self, d1: int, d2: int) -> None:
        """Raise unless the arrays fit together and every candidate is one of the arms, once per round."""
        if self.x.ndim != 3:
            raise ValueError(f"x must have shape (rounds, n, d1), got {self.x.shape}: pad all rounds to n candidates")
        laid_out, n, _ = self.x.shape
        rounds = laid_out
        if self.made is not None:
            rounds = self._check_made(self.made, laid_out, n)
            if (self.made.map.d1, self.made.map.d2) != (d1, d2):
                raise ValueError(f"{self.made.map} makes other features than d1 = {d1}, d2 = {d2}: take another map")
        wanted = {
            "x": (np.float64, (laid_out, n, d1)),
            "z": (np.float64, (laid_out, n, d2)),
            "index": (np.int64, (rounds, n)),
            "counts": (np.int64, (rounds,)),
        }
        for name, (dtype, shape) in wanted.items():
            check_array(name, getattr(self, name), dtype, shape)
        if len(set(self.arms)) != len(self.arms):
            raise ValueError(f"arms holds an id more than once, got {checks.short(self.arms)}: list each arm once")
        wrong = wrong_round(self.index, self.counts, len(self.arms))
        if wrong >= 0:
            raise ValueError(
                f"round {wrong} has counts {self.counts[wrong]} and index {checks.short(self.index[wrong].tolist())}: "
                f"give it 1 to {n} candidates, each another one of the {len(self.arms)} arms"
            )

    def _check_made(self, made: Made, laid_out: int, n: int) -> int:
        """The number of rounds."""
        if laid_out != 0:
            raise ValueError(f"x has features of {laid_out} rounds and there is `made` too: give one of the two")
        check_array("made.user", made.user, np.float64, (len(made.user), made.map.user))
        check_array("made.vector", made.vector, np.int64, (len(made.user), n))
        check_array("made.vectors", made.vectors, np.float64, (len(made.vectors), made.map.arm))
        if made.vector.size and not 0 <= made.vector.min() <= made.vector.max() < len(made.vectors):
            raise ValueError(
                f"made.vector has numbers from {made.vector.min()} to {made.vector.max()}, there are "
                f"{len(made.vectors)} vectors: they are rows of made.vectors, padding too"
            )
        return len(made.user)


class Block(NamedTuple):
    """Rounds with the mean reward of every candidate, (rounds, n) with padding, and the largest mean of each round."""

    rounds: Rounds
    means: Doubles
    best: Doubles


class World(Protocol):
    """What `simulate.play` plays in.

    A world promises that an arm which is in no earlier block is a candidate in the first round of its block. So a
    policy that counts the arms it has met (for gamma, the ridge, HyRan's schedule) counts as it would round by round.
    """

    @property
    def d1(self) -> int:
        """Shared features."""

    @property
    def d2(self) -> int:
        """Arm-specific features."""

    @property
    def noise(self) -> float:
        """Standard deviation of a reward around its mean."""

    @property
    def fresh_contexts(self) -> bool:
        """Whether every trial has rounds of its own."""

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks; `trial` matters only with fresh contexts."""

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """Where the noise of a trial comes from: one standard normal per round."""


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """The paper's synthetic world: features and parameters drawn by one of `LAWS`, Gaussian noise.

    Parameters and contexts are functions of the seed alone, the noise of the seed and the trial. With
    `fresh_contexts` every trial has contexts of its own. "cube-direction" is what the paper's released code does, drawn
    in the same order from the same generator: with its seeds it gives its environments.
    """

    d1: int
    d2: int
    arms: int
    noise: float = 0.01
    theta_bound: float = 0.8
    beta_bound: float = 0.5
    seed: int = 0
    law: str = "cube-direction"
    fresh_contexts: bool = False

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        checks.count("arms", self.arms, least=1, why="a round needs a candidate")
        checks.non_negative("noise", self.noise, "it is a standard deviation")
        checks.seed(self.seed)
        if self.law not in LAWS:
            raise ValueError(f"law must be one of {', '.join(LAWS)}, got {self.law!r}")

    def parameters(self) -> tuple[Doubles, Doubles]:
        """theta (d1,) and beta (arms, d2)."""
        theta, beta, _ = self._start()
        return theta, beta

    def _start(self) -> tuple[Doubles, Doubles, np.random.Generator]:
        """theta, beta, and the generator where the released code goes on to draw contexts."""
        random = np.random.default_rng(self.seed)
        if self.law == "cube-direction":
            theta = self.theta_bound * _cube_direction(random.random(self.d1 + 1))
            beta = self.beta_bound * _cube_direction(random.random((self.arms, self.d2 + 1)))
        else:
            theta = self.theta_bound * _ball(random, (self.d1,))
            beta = self.beta_bound * _ball(random, (self.arms, self.d2))
        return theta, beta, random

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks; `trial` matters only with fresh contexts."""
        theta, beta, random = self._start()
        if self.fresh_contexts:
            random = np.random.default_rng((self.seed, 1, trial))
        radii = np.random.default_rng((self.seed, 2, trial if self.fresh_contexts else 0))
        d1, d2, arms = self.d1, self.d2, self.arms
        size = max(1, BLOCK_NUMBERS // (arms * (d1 + d2 + 2)))
        laws = {"cube-direction": _CUBE_DIRECTION, "ball": _BALL, "inscribed-cube": _INSCRIBED}
        wide = min(size, horizon), arms, d1 + d2 + (2 if self.law == "cube-direction" else 0)
        room = np.empty(wide)
        index = np.tile(np.arange(arms), (wide[0], 1))
        counts = np.full(wide[0], arms)
        for start in range(0, horizon, size):
            n = min(size, horizon - start)
            x, z, means, best = np.empty((n, arms, d1)), np.empty((n, arms, d2)), np.empty((n, arms)), np.empty(n)
            raw = room[:n]
            lengths = raw[..., d1 + d2 :] if self.law == "cube-direction" else raw
            if self.law == "ball":
                random.standard_normal(out=raw)
                lengths = radii.random((n, arms, 2))
            else:
                random.random(out=raw)
            place(laws[self.law], raw, lengths, theta, beta, x, z, means, best)
            yield Block(Rounds(x, z, range(arms), index[:n], counts[:n]), means, best)

    def noises(self, horizon: int, trial: int = 0) -> Doubles:
        """One noise per round, the same for every policy."""
        return self.noise * self.noise_stream(trial).standard_normal(horizon)

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """Where the noise of a trial comes from, to be drawn piece by piece.

        The released code draws it from seed + trial, which for trial 0 is the stream that the world itself comes from:
        harmless there, where the world takes uniforms. Other laws take normals, so their noise has a stream of its own.
        """
        return np.random.default_rng(self.seed + trial if self.law == "cube-direction" else (self.seed, 3, trial))


def check_array(name: str, value: np.ndarray, dtype: type, shape: tuple[int, ...]) -> None:
    """Raise unless the array can go to the kernels as it is."""
    if value.dtype != dtype or value.shape != shape or not value.flags.carray:
        raise ValueError(
            f"{name} must be a writeable array of {dtype.__name__} in C order of shape {shape}, got {value.dtype} "
            f"{value.shape}: convert it with np.array(.., {dtype.__name__}, order='C')"
        )


@kernel
def wrong_round(index, counts, arms):  # type: ignore[no-untyped-def]
    """The first round with no candidate, one that is not among so many arms, or one that is there twice; -1: none."""
    seen = np.full(arms, -1)
    for t in range(index.shape[0]):
        if not 1 <= counts[t] <= index.shape[1]:
            return t
        for i in range(counts[t]):
            arm = index[t, i]
            if not 0 <= arm < arms or seen[arm] == t:
                return t
            seen[arm] = t
    return -1


@kernel
def place(law, raw, radii, theta, beta, x, z, means, best):  # type: ignore[no-untyped-def]
    """Raw draws (rounds, arms, d1 + d2 ..) to features, means x.theta + z.beta_i and the best mean of every round.

    With v = 2 raw - 1 (uniform draws) or v = raw (normals): v r / |v| for a direction and a radius r (uniform, or
    u^(1/d) in the ball), or v / sqrt(d) for the inscribed cube.
    """
    n, arms, d1 = x.shape
    d2 = z.shape[2]
    for t in range(n):
        highest = -np.inf
        for a in range(arms):
            sum_x = 0.0
            for k in range(d1):
                v = raw[t, a, k] if law == _BALL else 2.0 * raw[t, a, k] - 1.0
                x[t, a, k] = v
                sum_x += v * v
            sum_z = 0.0
            for k in range(d2):
                v = raw[t, a, d1 + k] if law == _BALL else 2.0 * raw[t, a, d1 + k] - 1.0
                z[t, a, k] = v
                sum_z += v * v
            scale_x = radius(law, radii[t, a, 0], sum_x, d1)
            scale_z = radius(law, radii[t, a, radii.shape[2] - 1], sum_z, d2)
            mean = 0.0
            for k in range(d1):
                x[t, a, k] *= scale_x
                mean += x[t, a, k] * theta[k]
            for k in range(d2):
                z[t, a, k] *= scale_z
                mean += z[t, a, k] * beta[a, k]
            means[t, a] = mean
            highest = max(highest, mean)
        best[t] = highest


@kernel
def radius(law, u, squares, d):  # type: ignore[no-untyped-def]
    """What to multiply v with, given |v|^2 and the draw of the radius."""
    if d == 0 or squares == 0.0:
        return 0.0
    if law == _INSCRIBED:
        return 1.0 / math.sqrt(d)
    if law == _BALL:
        u = u ** (1.0 / d)
    return u / math.sqrt(squares)


def _cube_direction(u: Doubles) -> Doubles:
    """Uniforms (.., d + 1) to points: the first d give the direction, the last the radius."""
    cube = 2.0 * u[..., :-1] - 1.0
    norm = np.linalg.norm(cube, axis=-1, keepdims=True)
    point: Doubles = cube * (u[..., -1:] / np.where(norm == 0, 1.0, norm))
    return point


def _ball(random: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
    """Uniform points of unit balls of dimension shape[-1]."""
    direction = random.standard_normal(shape)
    norm = np.linalg.norm(direction, axis=-1, keepdims=True)
    radius = random.random((*shape[:-1], 1)) ** (1.0 / max(shape[-1], 1))
    point: Doubles = direction * (radius / np.where(norm == 0, 1.0, norm))
    return point
