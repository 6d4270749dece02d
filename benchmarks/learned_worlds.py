"""Worlds for policies that learn their settings: the paper's, other sizes, clicks, arms that come and go, real data."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.paper.settings import RELEASED_BOUND, RELEASED_NOISE, SETTINGS, WRITTEN_NOISE
from hybandits.simulation import worlds as simulation
from hybandits.simulation.benchmark_worlds import Churn, Clicks
from hybandits.simulation.rounds import Rounds
from hybandits.simulation.worlds import BLOCK, Synthetic, draw_rewards, every_arm
from library_benchmark.classification import Classification

SIZES = ((12, 8, 15), (10, 1, 50), (1, 10, 20), (20, 20, 10), (30, 2, 5), (3, 3, 60))
"""(d1, d2, K) of worlds that are not the paper's."""
SIZE_HORIZON = 10_000

CLICK_ARMS, CLICK_SHARED, CLICK_USER, CLICK_SPREAD = 20, 8, 5, 0.5
"""Clicks: arms, shared features, features of the user, and the standard deviation of a candidate's log odds."""
CLICK_RATES = (0.02, 0.035, 0.5)
CLICK_HORIZON = 30_000

DATASETS = ("digits", "wine", "breast_cancer")
PASSES = 4
"""Number of passes over a data set, each in another order."""


class Played(NamedTuple):
    """Some rounds to play, the rewards of all candidates, their means and the best of them."""

    rounds: Rounds
    rewards: FloatArray
    means: FloatArray
    best: FloatArray


Make = Callable[[int, int], Iterator[Played]]
"""make(seed, horizon): the rounds of one run."""


@dataclass(frozen=True)
class World:
    """A world, and the settings given to policies that do not learn theirs."""

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
    """True if it is a setting of the paper with the noise and the law of its released code."""


# ------------------------------------------------------------------ from a world of `simulation` to rounds


def played(make: Callable[..., simulation.World]) -> Make:
    """The rounds of make(seed=seed), with the rewards of all candidates."""

    def rounds(seed: int, horizon: int) -> Iterator[Played]:
        world = make(seed=seed)
        stream = world.noise_stream()
        for block in world.rounds(horizon):
            yield Played(block.rounds, draw_rewards(world, block.means, stream), block.means, block.best)

    return rounds


def linear(d1: int, d2: int, arms: int, noise: float, law: str, **settings: Any) -> Make:
    """The paper's world, with its bounds; `settings` are others of `Synthetic`."""
    theta_bound, beta_bound = RELEASED_BOUND
    return played(
        partial(
            Synthetic,
            d1=d1,
            d2=d2,
            arms=arms,
            noise=noise,
            theta_bound=theta_bound,
            beta_bound=beta_bound,
            law=law,
            **settings,
        )
    )


def clicks(rate: float) -> Make:
    """Rewards of 0 and 1 whose log odds are linear."""
    return played(partial(Clicks, d1=CLICK_SHARED, d2=1 + CLICK_USER, arms=CLICK_ARMS, rate=rate, spread=CLICK_SPREAD))


def load(name: str) -> Any:
    """make(seed=) of a data set that scikit-learn ships; ImportError without scikit-learn."""
    datasets: Any = importlib.import_module("sklearn.datasets")
    features, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
    return partial(Classification, features=features, labels=labels)


def without_context(arms: int, noise: float) -> Make:
    """Arms that differ by their mean alone."""

    def make(seed: int, horizon: int) -> Iterator[Played]:
        random = np.random.default_rng(seed)
        of_arm = noise * random.standard_normal(arms)
        for start in range(0, horizon, BLOCK):
            n = min(BLOCK, horizon - start)
            means = np.tile(of_arm, (n, 1))
            rounds = Rounds(np.empty((n, arms, 0)), np.ones((n, arms, 1)), range(arms), *every_arm(n, arms))
            yield Played(rounds, means + noise * random.standard_normal((n, 1)), means, means.max(axis=1))

    return make


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
    make = played(partial(Churn, d1=10, d2=5, arms=20, noise=0.1))
    every.append(World("arms that come and go", 10, 5, CLICK_HORIZON, 0.1, "other", make))
    make = linear(d1, d2, arms, 0.1, "ball", heavy_tails=True)
    every.append(World("heavy tails", d1, d2, SIZE_HORIZON, 0.1, "other", make))
    remarks = []
    try:
        for name in DATASETS:
            make_world = load(name)
            world = make_world(seed=0)
            size = 0, world.d2, PASSES * len(world)
            every.append(World(name.replace("_", " "), *size, world.noise, "real", played(make_world)))
    except ImportError:
        remarks.append(f"{', '.join(DATASETS)}: left out, scikit-learn is not installed (make bench installs it)")
    return every, remarks
