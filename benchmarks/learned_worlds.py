"""Worlds for policies that learn their settings: the paper's, other sizes, clicks, arms that come and go, real data."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.paper.settings import RELEASED_BOUND, RELEASED_NOISE, SETTINGS, WRITTEN_NOISE
from hybandits.simulation.rounds import Rounds
from hybandits.simulation.worlds import Synthetic

SIZES = ((12, 8, 15), (10, 1, 50), (1, 10, 20), (20, 20, 10), (30, 2, 5), (3, 3, 60))
"""(d1, d2, K) of worlds that are not the paper's."""
SIZE_HORIZON = 10_000

CLICK_ARMS, CLICK_SHARED, CLICK_USER, CLICK_SPREAD = 20, 8, 5, 0.5
"""Clicks: arms, shared features, features of the user, and the standard deviation of a candidate's log odds."""
CLICK_RATES = (0.02, 0.035, 0.5)
CLICK_HORIZON = 30_000

DATASETS = ("digits", "wine", "breast_cancer")
PASSES = 4
"""How often the rows of a data set are shown, each time in another order."""

BLOCK = 1000
"""Rounds that are made at a time, where the world is not one of `simulation`."""


class Played(NamedTuple):
    """Some rounds to play, the rewards of all candidates, their means and the best of them."""

    rounds: Rounds
    rewards: Doubles
    means: Doubles
    best: Doubles


Make = Callable[[int, int], Iterator[Played]]
"""make(seed, horizon): the rounds of one run."""


@dataclass(frozen=True)
class World:
    """A world, and what a policy that is told everything is told."""

    name: str
    d1: int
    d2: int
    horizon: int
    noise: float
    """The standard deviation of the rewards around their mean."""
    kind: str
    """paper, size, clicks, real or other."""
    make: Make
    released: bool = False
    """Whether it is a setting of the paper with the noise and the law of its released code."""


# ------------------------------------------------------------------ linear worlds


def linear(
    d1: int, d2: int, arms: int, noise: float, law: str, *, own: str = "", constant: bool = False, tails: bool = False
) -> Make:
    """The paper's world; `own` may be "zero" or "alike", `constant` makes the last feature of z a 1."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        world = Synthetic(
            d1=d1, d2=d2, arms=arms, noise=noise, theta_bound=RELEASED_BOUND[0], beta_bound=RELEASED_BOUND[1],
            seed=seed, law=law,
        )  # fmt: skip
        theta, beta = world.parameters()
        stream = world.noise_stream()
        for block in world.rounds(horizon):
            rounds, means, best = block
            n = len(best)
            if own or constant:
                if constant:
                    rounds.z[..., -1] = 1.0
                if own:
                    beta = np.zeros_like(beta) if own == "zero" else np.broadcast_to(beta[0], beta.shape)
                means = rounds.x @ theta + np.einsum("tkd,kd->tk", rounds.z, beta)
                best = means.max(axis=1)
            # Student's t with 3 degrees of freedom has a variance of 3
            drawn = stream.standard_t(3, n) / math.sqrt(3) if tails else stream.standard_normal(n)
            yield Played(rounds, means + noise * drawn[:, None], means, best)

    return make


def without_context(arms: int, noise: float) -> Make:
    """Arms that differ by their mean alone."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        random = np.random.default_rng(seed)
        of_arm = noise * random.standard_normal(arms)
        for n in _parts(horizon):
            means = np.tile(of_arm, (n, 1))
            rounds = Rounds(
                np.empty((n, arms, 0)), np.ones((n, arms, 1)), range(arms), np.tile(np.arange(arms), (n, 1)),
                np.full(n, arms),
            )  # fmt: skip
            yield Played(rounds, means + noise * random.standard_normal((n, 1)), means, means.max(axis=1))

    return make


def churn(d1: int, d2: int, pool: int, noise: float, every: int = 250) -> Make:
    """A pool of which a tenth is replaced by new arms every so many rounds; arms have a mean in common."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        random = np.random.default_rng(seed)
        theta, common = (0.3 * random.standard_normal(d) for d in (d1, d2))
        ids = list(range(pool))
        beta = common + 0.2 * random.standard_normal((pool, d2))
        new = pool
        for start in range(0, horizon, every):
            n = min(every, horizon - start)
            if start:
                for place in random.choice(pool, max(1, pool // 10), replace=False).tolist():
                    ids[place], new = new, new + 1
                    beta[place] = common + 0.2 * random.standard_normal(d2)
            x = random.standard_normal((n, pool, d1)) / math.sqrt(d1)
            z = random.standard_normal((n, pool, d2)) / math.sqrt(d2)
            z[..., 0] = 1.0
            means = x @ theta + np.einsum("tkd,kd->tk", z, beta)
            rounds = Rounds(x, z, list(ids), np.tile(np.arange(pool), (n, 1)), np.full(n, pool))
            yield Played(rounds, means + noise * random.standard_normal((n, 1)), means, means.max(axis=1))

    return make


# ------------------------------------------------------------------ clicks and real data


def clicks(rate: float) -> Make:
    """Rewards of 0 and 1 whose log odds are linear: shared features of a candidate, and a user seen by every arm."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        random = np.random.default_rng(seed)
        arms, d1, user = CLICK_ARMS, CLICK_SHARED, CLICK_USER
        part = CLICK_SPREAD / math.sqrt(2)
        theta = part / math.sqrt(d1) * random.standard_normal(d1)
        beta = part / math.sqrt(1 + user) * random.standard_normal((arms, 1 + user))
        for n in _parts(horizon):
            x = random.standard_normal((n, arms, d1))
            shown = np.concatenate((np.ones((n, 1)), random.standard_normal((n, user))), axis=1)
            z = np.repeat(shown[:, None, :], arms, axis=1)
            odds = math.log(rate / (1 - rate)) + x @ theta + shown @ beta.T
            means = 1 / (1 + np.exp(-odds))
            rewards = (random.random((n, 1)) < means).astype(float)
            rounds = Rounds(x, z, range(arms), np.tile(np.arange(arms), (n, 1)), np.full(n, arms))
            yield Played(rounds, rewards, means, means.max(axis=1))

    return make


def real(name: str) -> Make:
    """A data set for classification: the arms are the classes, and the reward is 1 for the right one."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        features, labels = load(name)
        random = np.random.default_rng(seed)
        order = np.concatenate([random.permutation(len(labels)) for _ in range(PASSES)])[:horizon]
        arms = int(labels.max()) + 1
        for start in range(0, len(order), BLOCK):
            rows = order[start : start + BLOCK]
            n = len(rows)
            z = np.repeat(features[rows][:, None, :], arms, axis=1)
            means = (labels[rows][:, None] == np.arange(arms)).astype(float)
            rounds = Rounds(np.empty((n, arms, 0)), z, range(arms), np.tile(np.arange(arms), (n, 1)), np.full(n, arms))
            yield Played(rounds, means, means, np.ones(n))

    return make


def load(name: str) -> tuple[Doubles, Any]:
    """A constant and standardised features, and the classes; ImportError without scikit-learn."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    raw, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    spread = raw.std(axis=0)
    kept = spread > 0
    features = (raw[:, kept] - raw[:, kept].mean(axis=0)) / spread[kept]
    return np.concatenate((np.ones((len(labels), 1)), features), axis=1), labels


def _parts(horizon: int) -> Iterator[int]:
    for start in range(0, horizon, BLOCK):
        yield min(BLOCK, horizon - start)


# ------------------------------------------------------------------ all of them


def worlds() -> tuple[list[World], list[str]]:
    """Every world, and a remark on those that cannot be made here."""
    every: list[World] = []
    protocols = (
        ("released", RELEASED_NOISE, "cube-direction", True),
        ("written", WRITTEN_NOISE, "ball", False),
    )
    for setting in (SETTINGS[f"setting-{number}"] for number in (1, 2, 3)):
        for arms in setting.arms:
            name = setting.name if len(setting.arms) == 1 else f"{setting.name}, K = {arms}"
            for protocol, noise, law, released in protocols:
                make = linear(setting.d1, setting.d2, arms, noise, law)
                size = setting.d1, setting.d2, setting.horizon
                every.append(World(f"{name}, {protocol}", *size, noise, "paper", make, released))
    for d1, d2, arms in SIZES:
        make = linear(d1, d2, arms, WRITTEN_NOISE, "ball")
        every.append(World(f"({d1}, {d2}, {arms})", d1, d2, SIZE_HORIZON, WRITTEN_NOISE, "size", make))
    for rate in CLICK_RATES:
        size = CLICK_SHARED, 1 + CLICK_USER, CLICK_HORIZON
        noise = math.sqrt(rate * (1 - rate))
        every.append(World(f"clicks, {100 * rate:g} %", *size, noise, "clicks", clicks(rate)))
    d1, d2, arms = SIZES[0]
    for name, own in (("all beta 0", "zero"), ("all beta alike", "alike")):
        make = linear(d1, d2, arms, 0.1, "ball", own=own)
        every.append(World(name, d1, d2, SIZE_HORIZON, 0.1, "other", make))
    every.append(World("ten arms without context", 0, 1, SIZE_HORIZON, 0.1, "other", without_context(10, 0.1)))
    every.append(World("arms that come and go", 10, 5, CLICK_HORIZON, 0.1, "other", churn(10, 5, 20, 0.1)))
    make = linear(d1, d2, arms, 0.1, "ball", tails=True)
    every.append(World("heavy tails", d1, d2, SIZE_HORIZON, 0.1, "other", make))
    remarks = []
    try:
        for name in DATASETS:
            features, labels = load(name)
            rate = 1 / (1 + int(labels.max()))
            noise = math.sqrt(rate * (1 - rate))
            horizon = PASSES * len(labels)
            every.append(World(name.replace("_", " "), 0, features.shape[1], horizon, noise, "real", real(name)))
    except ImportError:
        remarks.append(f"{', '.join(DATASETS)}: left out, scikit-learn is not installed (make bench installs it)")
    return every, remarks
