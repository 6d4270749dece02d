"""The streams of the benchmark: fixed worlds, lengths and seeds, and a round as a library's user would see it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.paper.settings import RELEASED_BOUND, RELEASED_NOISE, SETTINGS, WRITTEN_NOISE
from hybandits.simulation.benchmark_worlds import Churn, Clicks, Products
from hybandits.simulation.worlds import Relayed, Synthetic, World, delay_of, draw_rewards
from library_benchmark.classification import Classification, terrain

SEEDS = (201, 202, 203, 204, 205)
"""One run of every method for each of them. Quick runs and trials while the benchmark was built have other seeds."""

QUICK_SEEDS, QUICK_ROUNDS = (1, 2), 80
"""Of a quick run."""

Items = Literal["none", "moving", "fixed"]
"""Features of a candidate besides the user's: none, other ones in every round, or always the same."""


class Round(NamedTuple):
    """A round as it is described to the methods.

    Attributes
    ----------
    arms : sequence of int
        The ids of the candidates.
    x, z : array of shape (n, d1), (n, d2)
        The features of the hybrid model.
    user : array, optional
        What is known of the round and shared by all candidates, a constant 1 first; None if there is no such thing.
    items : array of shape (n, k), optional
        The features of the candidates; None if there are none.
    """

    arms: Sequence[int]
    x: FloatArray
    z: FloatArray
    user: FloatArray | None
    items: FloatArray | None


class Play(NamedTuple):
    """A round, with the rewards and means hidden from the methods."""

    round: Round
    rewards: FloatArray
    means: FloatArray


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A world, its number of rounds, and the description of its rounds.

    Attributes
    ----------
    name, about : str
        Its name in tables, and a line on it.
    group : str
        Streams of one group are averaged in summaries.
    make : callable
        make(seed=seed) is the world.
    rounds : int
        Number of rounds T.
    d1, d2, arms : int
        Its shape; with arms that come and go, the number of candidates.
    user : bool
        Whether z is (1, the user), the same for all candidates.
    items : {"none", "moving", "fixed"}
        What x holds, or x and z if there is no user.
    binary : bool
        Whether rewards are 0 or 1.
    arms_change : bool
        Whether arms come and go.
    """

    name: str
    about: str
    group: str
    make: Callable[..., World]
    rounds: int
    d1: int
    d2: int
    arms: int
    user: bool = False
    items: Items = "moving"
    binary: bool = False
    arms_change: bool = False

    def play(self, seed: int, rounds: int) -> Iterator[Play]:
        """The first rounds of one seed, the same for every method."""
        world = self.make(seed=seed)
        stream = world.noise_stream()
        for block in world.rounds(rounds):
            rewards = draw_rewards(world, block.means, stream)
            for t in range(len(block.best)):
                x, z = block.rounds.features(t)
                candidates = block.rounds.index[t, : block.rounds.counts[t]].tolist()
                arms = [block.rounds.arms[j] for j in candidates]
                yield Play(self._described(arms, x, z), rewards[t], block.means[t])  # type: ignore[arg-type]

    def _described(self, arms: Sequence[int], x: FloatArray, z: FloatArray) -> Round:
        if not self.user:
            return Round(arms, x, z, None, np.concatenate((x, z), axis=1))
        items = {"none": None, "moving": x, "fixed": x[:, :: self.d2]}[self.items]  # x = vec(u v') and u starts with 1
        return Round(arms, x, z, z[0], items)

    @property
    def delay(self) -> int:
        """The delay of a reward in rounds."""
        return delay_of(self.make(seed=0))


# ------------------------------------------------------------------ all of them


def _paper(number: int, protocol: str, rounds: int, **change: Any) -> Stream:
    setting = SETTINGS[f"setting-{number}"]
    arms = 100 if number == 3 else setting.arms[0]
    released = protocol == "released"
    noise, law = (RELEASED_NOISE, "cube-direction") if released else (WRITTEN_NOISE, "ball")
    theta_bound, beta_bound = RELEASED_BOUND if released else (1.0, 1.0)
    shape: dict[str, Any] = {"d1": setting.d1, "d2": setting.d2, "arms": arms}
    what = {"jumps": "one jump", "walk": "slow walk"}.get(next(iter(change), ""))
    about = f"the paper's setting {number}, K = {arms}, noise {noise:g}"
    if what == "one jump":
        about += "; all parameters are resampled after half of the rounds"
    elif what == "slow walk":
        about += f"; parameters forget where they were in about {change['walk']:,.0f} rounds"
    return Stream(
        name=what or f"setting {number}, {protocol}", about=about, group="changing" if what else "paper", rounds=rounds,
        make=partial(
            Synthetic, **shape, noise=noise, law=law, theta_bound=theta_bound, beta_bound=beta_bound, **change
        ),
        **shape,
    )  # fmt: skip


def _clicks(rate: float, rounds: int) -> Stream:
    shape: dict[str, Any] = {"d1": 8, "d2": 6, "arms": 20}
    return Stream(
        name=f"clicks, {100 * rate:g} %", about=f"20 arms, 8 features of a candidate, 5 of the user, {rate:.1%} clicks",
        group="clicks", make=partial(Clicks, **shape, rate=rate), rounds=rounds, **shape, user=True, binary=True,
    )  # fmt: skip


def _products(rounds: int, delay: int) -> Stream:
    shape: dict[str, Any] = {"d1": 30, "d2": 6, "arms": 20}

    def make(*, seed: int) -> World:
        return Relayed(world=Products(**shape, rate=0.1, spread=1.0, seed=seed), delay=delay)

    return Stream(
        name="products, late clicks", group="clicks", make=make, rounds=rounds, **shape, user=True, items="fixed",
        about=f"20 products with 5 features each, 5 features of the user, clicks (10 %) known {delay} rounds later",
        binary=True,
    )  # fmt: skip


def _units(name: str, rounds: int, **change: float) -> Stream:
    shape: dict[str, Any] = {"d1": 12, "d2": 8, "arms": 15}

    def make(*, seed: int) -> World:
        return Relayed(world=Synthetic(**shape, noise=0.1, law="ball", constant=True, seed=seed), **change)  # type: ignore[arg-type]

    return Stream(
        name=name, about="12 shared features, 8 of the arm's own with a constant, 15 arms, noise 0.1", group="units",
        make=make, rounds=rounds, **shape,
    )  # fmt: skip


def _churn(rounds: int) -> Stream:
    shape: dict[str, Any] = {"d1": 10, "d2": 5, "arms": 20}
    return Stream(
        name="arms come and go", about="a tenth of 20 arms is replaced every 250 rounds; arms have a mean in common",
        group="changing", make=partial(Churn, **shape, noise=0.1, every=250), rounds=rounds, **shape, arms_change=True,
    )  # fmt: skip


def _data(name: str, rounds: int) -> Stream:
    make = partial(_data_set, name)
    rows, d2, arms = {
        "digits": (1797, 62, 10), "wine": (178, 14, 3), "breast cancer": (569, 31, 2), "iris": (150, 5, 3),
        "terrain": (20_000, 55, 7),
    }[name]  # fmt: skip
    generated = "generated: 7 unbalanced classes with curved borders, " if name == "terrain" else ""
    return Stream(
        name=name, about=f"{generated}{rows:,} rows, {arms} classes, {d2 - 1} features that change", group="data sets",
        make=make, rounds=rounds, d1=0, d2=d2, arms=arms, user=True, items="none", binary=True,
    )  # fmt: skip


def _data_set(name: str, *, seed: int) -> World:
    features, labels = _table(name)
    return Classification(features=features, labels=labels, seed=seed)


@cache
def _table(name: str) -> tuple[Any, Any]:
    if name == "terrain":
        return terrain()
    datasets: Any = importlib.import_module("sklearn.datasets")
    table: tuple[Any, Any] = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
    return table


STREAMS: dict[str, Stream] = {
    stream.name: stream
    for stream in (
        _paper(1, "released", 2_000),
        _paper(1, "written", 2_000),
        _paper(2, "released", 2_000),
        _paper(2, "written", 2_000),
        _paper(3, "released", 2_000),
        _paper(3, "written", 2_000),
        _clicks(0.02, 2_500),
        _clicks(0.035, 2_500),
        _clicks(0.5, 2_000),
        _products(2_500, delay=300),
        _units("rewards x 1000", 2_000, factor=1000.0),
        _units("rewards + 100", 2_000, offset=100.0),
        _churn(2_500),
        _paper(1, "written", 2_500, jumps=1),
        _paper(1, "written", 2_500, walk=2_500.0),
        _data("digits", 2_000),
        _data("wine", 2_000),
        _data("breast cancer", 2_276),
        _data("iris", 2_000),
        _data("terrain", 2_500),
    )
}
"""All streams by name, in the order of the tables."""
