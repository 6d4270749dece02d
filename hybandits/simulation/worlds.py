"""Worlds to play in: sources of rounds, mean rewards and noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.simulation.rounds import Block, Rounds

BLOCK_NUMBERS = 1_000_000
"""The number of features drawn at a time. Memory and draws stay the same for any number of rounds."""

BLOCK = 1000
"""Rounds that worlds other than `Synthetic` draw at a time, however many are played."""

LAWS = ("cube-direction", "ball", "released-diversity", "sphere")
"""Laws of features and parameters: see `Synthetic`."""

OWN = ("drawn", "zero", "alike")
"""Parameters of the arms: see `Synthetic`."""

OWN_FEATURES = ("drawn", "fixed", "one-hot", "duplicated")
"""Features of the arms: see `Synthetic`."""

_, _BALL, _CUBE, _SPHERE = range(len(LAWS))

DIVERSITY_NOISE_SEED = 478959
"""Added to the trial, it seeds the noise of the released diversity experiment."""

WALK_STEP = 50
"""Rounds between two steps of parameters that walk."""


class World(Protocol):
    """A source of rounds, their mean rewards, and noise; a world of your own is any class with these members.

    Notes
    -----
    An arm that was in no earlier block must be a candidate in the first round of its block. Then a policy whose
    exploration depends on how many arms it has met counts them as it would round by round.

    Three things are optional. A world whose noise is not Gaussian has a method ``rewards(means, stream)``, which
    returns the rewards of all candidates of some rounds (see `draw_rewards`). A world whose rewards come late has an
    attribute ``delay``: the reward of a round is learned that many rounds later (see `delay_of`). And where
    ``shares_noise`` is False, the players of a trial get noise of their own, in turns from the same generator.
    """

    @property
    def d1(self) -> int:
        """Number of shared features."""

    @property
    def d2(self) -> int:
        """Number of arm-specific features."""

    @property
    def noise(self) -> float:
        """Standard deviation of a reward around its mean."""

    @property
    def fresh_contexts(self) -> bool:
        """True if every trial has rounds of its own; otherwise trials differ by noise alone."""

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks; `trial` matters only with fresh contexts."""

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """The generator of a trial's noise, of which every round takes one standard normal."""


def draw_rewards(world: World, means: FloatArray, stream: np.random.Generator) -> FloatArray:
    """The rewards of all candidates of some rounds: means + noise, one normal per round, or those of world.rewards."""
    if hasattr(world, "rewards"):
        rewards: FloatArray = world.rewards(means, stream)
        return rewards
    return means + (world.noise * stream.standard_normal(len(means)))[:, None]


def delay_of(world: World) -> int:
    """Return the delay of rewards in rounds: the sum of the `delay` of the world and of those that it relays."""
    inner = getattr(world, "world", None)
    return int(getattr(world, "delay", 0)) + (0 if inner is None else delay_of(inner))


def every_arm(rounds: int, arms: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`index` and `counts` of rounds in which all arms are candidates."""
    return np.tile(np.arange(arms), (rounds, 1)), np.full(rounds, arms)


class SharedRounds:
    """Base of worlds whose trials all see the same rounds and differ by their noise."""

    seed: int
    fresh_contexts = False

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """The generator of a trial's noise."""
        return np.random.default_rng((self.seed, 3, trial))


def check_world(d1: int, d2: int, arms: int, seed: int) -> None:
    """Raise unless numbers of features and arms and a seed can be those of a world."""
    checks.dimensions(d1, d2)
    checks.count("arms", arms, least=1, why="a round needs a candidate")
    checks.seed(seed)


@dataclass(frozen=True, kw_only=True)
class Relayed:
    """A world whose rewards reach the policies as factor times the reward plus an offset, and late.

    Parameters
    ----------
    world : World
        The world as it is.
    factor : float
        Positive. Mean rewards and regret are multiplied by it too.
    offset : float
        Added to all rewards; it makes no difference to regret.
    delay : int
        The reward of a round is learned after the choice so many rounds later.

    Examples
    --------
    >>> world = Synthetic(d1=3, d2=2, arms=4, seed=7)
    >>> large = Relayed(world=world, factor=1000.0, offset=5.0)
    >>> bool(np.allclose(next(large.rounds(10)).means, 1000 * next(world.rounds(10)).means + 5))
    True
    """

    world: World
    factor: float = 1.0
    offset: float = 0.0
    delay: int = 0

    def __post_init__(self) -> None:
        checks.positive("factor", self.factor, "rewards are multiplied by it")
        checks.real("offset", self.offset)
        checks.count("delay", self.delay, least=0, why="it is a number of rounds")

    @property
    def d1(self) -> int:
        return self.world.d1

    @property
    def d2(self) -> int:
        return self.world.d2

    @property
    def noise(self) -> float:
        return self.factor * self.world.noise

    @property
    def fresh_contexts(self) -> bool:
        return self.world.fresh_contexts

    @property
    def shares_noise(self) -> bool:
        return bool(getattr(self.world, "shares_noise", True))

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        for rounds, means, best in self.world.rounds(horizon, trial):
            yield Block(rounds, self.factor * means + self.offset, self.factor * best + self.offset)

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        return self.world.noise_stream(trial)

    def rewards(self, means: FloatArray, stream: np.random.Generator) -> FloatArray:
        return self.factor * draw_rewards(self.world, (means - self.offset) / self.factor, stream) + self.offset


@dataclass(frozen=True, kw_only=True)
class Synthetic:
    """The paper's synthetic world: reward = x.theta + z.beta_arm + noise, with everything drawn at random.

    Parameters
    ----------
    d1, d2 : int
        Number of shared and of arm-specific features; one of them may be 0.
    arms : int
        Number of arms K. All of them, 0..K-1, are candidates in every round.
    noise : float
        Standard deviation of the Gaussian noise.
    theta_bound, beta_bound : float
        Largest norm of theta and of every beta_arm.
    seed : int
        Decides parameters and contexts; together with the trial, the noise.
    law : str
        How features and parameters are drawn: "cube-direction", the direction of a uniform point of a cube, times a
        radius uniform in [0, bound]; "ball" and "sphere", uniform in the ball and on the sphere of radius bound; or
        "released-diversity", uniform in the cube with its corners on that sphere. The bound is 1 for features.
        "cube-direction" draws what the paper's released code draws, in the same order from the same generator: its
        seeds give its environments. So does "released-diversity" with fresh contexts for its diversity experiment:
        contexts come from the trial alone, and so does the noise, one normal per player and round.
    fresh_contexts : bool
        True if every trial has contexts of its own. Parameters are the same in all trials.
    jumps : int
        The number of times that theta and every beta_arm are redrawn: after T j / (jumps + 1) rounds, j = 1, 2, ..
        Contexts and noise stay those of the world without jumps.
    walk : float
        The memory, in rounds, of parameters that walk: after every 50 rounds each parameter vector
        p becomes rho p + sqrt(1 - rho^2) times a fresh draw, with rho = exp(-50 / walk). With 0 they stay.
    own : str
        The parameters of the arms: "drawn", every beta_arm for itself; "zero"; or "alike", all the same.
    own_features : str
        "drawn" by the law; "fixed", the z of an arm is that of the first round; "one-hot", the largest feature of z is
        replaced by 1 and the others by 0; or "duplicated", z repeats features of x as far as there are any.
    constant : bool
        True if the last feature of z is a 1.
    heavy_tails : bool
        True if the noise is Student's t with 3 degrees of freedom, at the same standard deviation.

    Examples
    --------
    >>> world = Synthetic(d1=3, d2=2, arms=4, seed=7)
    >>> block = next(world.rounds(10))
    >>> block.rounds.x.shape, block.means.shape
    ((10, 4, 3), (10, 4))
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
    jumps: int = 0
    walk: float = 0.0
    own: str = "drawn"
    own_features: str = "drawn"
    constant: bool = False
    heavy_tails: bool = False

    def __post_init__(self) -> None:
        check_world(self.d1, self.d2, self.arms, self.seed)
        checks.non_negative("noise", self.noise, "it is a standard deviation")
        checks.count("jumps", self.jumps, least=0, why="it is the number of times that all parameters are redrawn")
        checks.non_negative("walk", self.walk, "it is a number of rounds, or 0 for parameters that stay")
        for name, known in (("law", LAWS), ("own", OWN), ("own_features", OWN_FEATURES)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.constant and self.d2 == 0:
            raise ValueError("constant must be False if d2 is 0, got True: z has no feature that could be the constant")

    @property
    def shares_noise(self) -> bool:
        """True if all players of a trial get the same noise."""
        return self.law != "released-diversity" or not self.fresh_contexts

    def parameters(self) -> tuple[FloatArray, FloatArray]:
        """theta (d1,) and beta (arms, d2) of the first round."""
        return self._draw_parameters(np.random.default_rng(self.seed))

    def _draw_parameters(self, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        draw = _POINTS[self.law]
        theta = self.theta_bound * draw(random, (self.d1,))
        beta = self.beta_bound * draw(random, (self.arms, self.d2))
        if self.own != "drawn":
            beta[:] = beta[0] if self.own == "alike" else 0.0
        return theta, beta

    def _changes(self, horizon: int) -> dict[int, float]:
        """rho by the rounds before which parameters become rho p + sqrt(1 - rho^2) times a fresh draw."""
        steps = range(WALK_STEP, horizon, WALK_STEP) if self.walk else ()
        changes = dict.fromkeys(steps, math.exp(-WALK_STEP / self.walk) if self.walk else 1.0)
        jumps = {horizon * j // (self.jumps + 1): 0.0 for j in range(1, self.jumps + 1)}
        return dict(sorted((changes | jumps).items()))

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks; `trial` matters only with fresh contexts."""
        random = np.random.default_rng(self.seed)
        theta, beta = self._draw_parameters(random)  # the released code goes on to draw contexts
        if self.fresh_contexts:
            random = np.random.default_rng((self.seed, 1, trial) if self.shares_noise else trial)
        radii = np.random.default_rng((self.seed, 2, trial if self.fresh_contexts else 0))
        d1, d2, arms = self.d1, self.d2, self.arms
        size = max(1, BLOCK_NUMBERS // (arms * (d1 + d2 + 2)))
        wide = min(size, horizon), arms, d1 + d2 + (2 if self.law == "cube-direction" else 0)
        draws = np.empty(wide)
        index, counts = every_arm(wide[0], arms)
        changes = self._changes(horizon)
        fresh_parameters = np.random.default_rng((self.seed, 4))
        fixed: FloatArray | None = None
        for start in range(0, horizon, size):
            n = min(size, horizon - start)
            x, z, means, best = np.empty((n, arms, d1)), np.empty((n, arms, d2)), np.empty((n, arms)), np.empty(n)
            raw = draws[:n]
            lengths, first = raw, d1 + d2
            if self.law in ("ball", "sphere"):
                random.standard_normal(out=raw)
                if self.law == "ball":
                    lengths, first = radii.random((n, arms, 2)), 0
            else:
                random.random(out=raw)
            within = [t - start for t in changes if start <= t < start + n]
            for begin, last in itertools.pairwise([0, *within, n]):
                part = slice(begin, last)
                place(
                    LAWS.index(self.law), raw[part], lengths[part], first, theta, beta, self.constant, x[part], z[part],
                    means[part], best[part],
                )  # fmt: skip
                if self.own_features != "drawn":
                    fixed = z[0].copy() if fixed is None else fixed
                    self._replace_own(x[part], z[part], fixed)
                    means[part] = x[part] @ theta + np.einsum("tkd,kd->tk", z[part], beta)
                    best[part] = means[part].max(axis=1)
                if last in within:
                    rho = changes[start + last]
                    fresh = self._draw_parameters(fresh_parameters)
                    theta, beta = (
                        rho * p + math.sqrt(1 - rho * rho) * q for p, q in zip((theta, beta), fresh, strict=True)
                    )
            yield Block(Rounds(x, z, range(arms), index[:n], counts[:n]), means, best)

    def _replace_own(self, x: FloatArray, z: FloatArray, fixed: FloatArray) -> None:
        """Replace features of the arms as `own_features` says, in place."""
        if self.own_features == "fixed":
            z[:] = fixed
        elif self.own_features == "one-hot":
            z[:] = np.eye(self.d2)[z.argmax(axis=2)]
        else:
            both = min(self.d1, self.d2)
            z[..., :both] = x[..., :both]

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """The generator of a trial's noise, of which every round takes one standard normal; the same for every policy.

        The released code seeds it with seed + trial, which for trial 0 is the generator of the world itself. That does
        no harm there, because the world takes uniforms. Other laws take normals, so their noise has its own stream.
        """
        if not self.shares_noise:
            return np.random.default_rng(trial + DIVERSITY_NOISE_SEED)
        return np.random.default_rng(self.seed + trial if self.law == "cube-direction" else (self.seed, 3, trial))

    def rewards(self, means: FloatArray, stream: np.random.Generator) -> FloatArray:
        """The rewards of all candidates of some rounds: the same noise for all candidates of a round."""
        n = len(means)
        # Student's t with 3 degrees of freedom has a variance of 3
        noise = stream.standard_t(3, n) / math.sqrt(3) if self.heavy_tails else stream.standard_normal(n)
        rewards: FloatArray = means + (self.noise * noise)[:, None]
        return rewards


@kernel
def place(law, raw, radii, first, theta, beta, constant, x, z, means, best):  # type: ignore[no-untyped-def]
    """Turn raw draws (rounds, arms, d1 + d2 ..) into features, means x.theta + z.beta_i and every round's best mean.

    If `constant`, the last feature of z is 1, whatever was drawn for it.

    With v = 2 raw - 1 (uniform draws) or v = raw (normals): v r / |v| for a direction and a radius r (uniform, or
    u^(1/d) in the ball), v / |v| on the sphere, or v / sqrt(d) in the cube; the last two have no radii.
    Those of x and z are in radii, from column `first` on.
    """
    n, arms, d1 = x.shape
    d2 = z.shape[2]
    normal = law in (_BALL, _SPHERE)
    without_radii = law in (_CUBE, _SPHERE)
    for t in range(n):
        highest = -np.inf
        for a in range(arms):
            sum_x = 0.0
            for k in range(d1):
                v = raw[t, a, k] if normal else 2.0 * raw[t, a, k] - 1.0
                x[t, a, k] = v
                sum_x += v * v
            sum_z = 0.0
            for k in range(d2):
                v = raw[t, a, d1 + k] if normal else 2.0 * raw[t, a, d1 + k] - 1.0
                z[t, a, k] = v
                sum_z += v * v
            u_x, u_z = (0.0, 0.0) if without_radii else (radii[t, a, first], radii[t, a, first + 1])
            scale_x = scale_to_law(law, u_x, sum_x, d1)
            scale_z = scale_to_law(law, u_z, sum_z, d2)
            mean = 0.0
            for k in range(d1):
                x[t, a, k] *= scale_x
                mean += x[t, a, k] * theta[k]
            for k in range(d2):
                z[t, a, k] *= scale_z
                if constant and k == d2 - 1:
                    z[t, a, k] = 1.0
                mean += z[t, a, k] * beta[a, k]
            means[t, a] = mean
            highest = max(highest, mean)
        best[t] = highest


@kernel(inline=True)
def scale_to_law(law, u, squares, d):  # type: ignore[no-untyped-def]
    """The factor that turns v into a point of the law, given |v|^2 and the uniform draw u of the radius."""
    if d == 0 or squares == 0.0:
        return 0.0
    if law == _CUBE:
        return 1.0 / math.sqrt(d)
    if law == _SPHERE:
        return 1.0 / math.sqrt(squares)
    if law == _BALL:
        u = u ** (1.0 / d)
    return u / math.sqrt(squares)


def _cube_direction(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Directions of uniform points of a cube, times radii uniform in [0, 1]."""
    u = random.random((*shape[:-1], shape[-1] + 1))
    cube = 2.0 * u[..., :-1] - 1.0
    return cube * (u[..., -1:] / _norms(cube))


def _ball(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Points uniform in the unit ball of dimension shape[-1]."""
    direction = random.standard_normal(shape)
    radius = random.random((*shape[:-1], 1)) ** (1.0 / max(shape[-1], 1))
    return direction * (radius / _norms(direction))


def _cube(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Points uniform in the cube with its corners on the unit sphere."""
    return (2.0 * random.random(shape) - 1.0) / math.sqrt(max(shape[-1], 1))


def _sphere(random: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Points uniform on the unit sphere in dimension shape[-1]."""
    direction = random.standard_normal(shape)
    return direction / _norms(direction)


def _norms(points: FloatArray) -> FloatArray:
    """The norms of points, 1 for those at the origin."""
    norms = np.linalg.norm(points, axis=-1, keepdims=True)
    return np.where(norms == 0, 1.0, norms)


_POINTS = {"cube-direction": _cube_direction, "ball": _ball, "released-diversity": _cube, "sphere": _sphere}
