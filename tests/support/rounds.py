"""Policies with a compiled loop, and rounds whose candidates come and go."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.testing import assert_array_equal

from hybandits import (
    AsWritten,
    DisLinUCB,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyRanWithoutCrossBlocks,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SelfNormalised,
    SupLinUCB,
    Uniform,
)
from hybandits.simulation.rounds import Rounds

MAKERS: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(d1=4, d2=3, noise=0.1, seed=2),
    "LinUCB": lambda: LinUCB(d1=4, d2=3, exploration=SelfNormalised(noise=0.1, bound=(0.8, 0.5)), ridge=0.1, seed=2),
    "DisLinUCB": lambda: DisLinUCB(d1=4, d2=3, noise=0.1, seed=2),
    "LiHybrid": lambda: LiHybrid(d1=4, d2=3, alpha=0.3, seed=2),
    "Greedy": lambda: Greedy(d1=4, d2=3, seed=2),
    "as written": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "as written, arms told": lambda: HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500, arms=6), seed=2),
    "LinUCB as written": lambda: LinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "DisLinUCB as written": lambda: DisLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1500), seed=2),
    "HyThompson": lambda: HyThompson(d1=4, d2=3, seed=2),
    "HyThompson, told": lambda: HyThompson(d1=4, d2=3, noise=0.1, scale=1.0, seed=2),
    "HyIDS": lambda: HyIDS(d1=4, d2=3, seed=2),
    "HyThompson, memory": lambda: HyThompson(d1=4, d2=3, memory=90, seed=2),
    "HyThompson, memory auto": lambda: HyThompson(d1=4, d2=3, memory="auto", seed=2),
    "HyIDS, memory": lambda: HyIDS(d1=4, d2=3, noise=0.1, memory=90, seed=2),
    "HyIDS, memory auto": lambda: HyIDS(d1=4, d2=3, memory="auto", seed=2),
    "HyIDS, told the noise": lambda: HyIDS(d1=4, d2=3, noise=0.1, seed=2),
    "HyIDS, told": lambda: HyIDS(d1=4, d2=3, noise=0.1, scale=1.0, seed=2),
    "Uniform": lambda: Uniform(d1=4, d2=3, seed=2),
    "SupLinUCB": lambda: SupLinUCB(d1=4, d2=3, horizon=1300, alpha=0.3, seed=2),
    "SupLinUCB, arms counted": lambda: SupLinUCB(d1=4, d2=3, horizon=50, delta=0.9, seed=2),
    "SupLinUCB, first wide arm": lambda: SupLinUCB(d1=4, d2=3, horizon=1300, alpha=0.3, explore="first", seed=2),
    "HyRan": lambda: HyRan(d1=4, d2=3, arm_count=6, seed=3),
    "HyRan, theory": lambda: HyRan(d1=4, d2=3, p=0.8, ridge_schedule="theory", seed=3),
    "HyRanWithoutCrossBlocks": lambda: HyRanWithoutCrossBlocks(d1=4, d2=3, seed=3),
}
"""Policies of d1 = 4, d2 = 3, one for every compiled loop and every way into it."""


class Shown(NamedTuple):
    """One round: ids, features, the mean and the reward of every candidate (NaN: no answer)."""

    arms: list[Hashable]
    x: np.ndarray
    z: np.ndarray
    means: np.ndarray
    rewards: np.ndarray


IDS: tuple[Hashable, ...] = ("old", 3, ("a", 1), "new", 0, "b", 17, ("a", 2), "late")


def changing(seed: int, *, length: int = 120, unanswered: float = 0.5) -> list[Shown]:
    """Rounds whose candidates come and go: 1 to 6 of those that are there, in any order; some rewards are missing."""
    random = np.random.default_rng(seed)
    from_to = np.sort(random.integers(-length // 2, length, size=(len(IDS), 2)), axis=1)
    from_to[0] = 0, length
    rounds = []
    for t in range(length):
        there = [arm for arm, (first, last) in zip(IDS, from_to, strict=True) if first <= t <= last]
        n = int(random.integers(1, min(6, len(there)) + 1)) if random.random() < 0.8 else 1
        arms: list[Hashable] = [there[i] for i in random.permutation(len(there))[:n]]
        means = random.normal(size=n)
        rewards = np.where(random.random(n) < unanswered, np.nan, means + 0.1 * random.normal(size=n))
        rounds.append(Shown(arms, random.normal(size=(n, 4)), random.normal(size=(n, 3)), means, rewards))
    return rounds


def together(shown: Sequence[Shown], seed: int = 0) -> tuple[Rounds, np.ndarray, np.ndarray]:
    """Rounds with their means and rewards; the padding and the order of the arms are arbitrary."""
    met = list(dict.fromkeys(arm for each in shown for arm in each.arms))
    arms = [met[i] for i in np.random.default_rng(seed).permutation(len(met))]
    counts = np.array([len(each.arms) for each in shown])
    rows, n = len(shown), int(counts.max())
    x, z = np.full((rows, n, 4), np.nan), np.full((rows, n, 3), np.nan)
    index = np.zeros((rows, n), np.int64)
    means, rewards = np.full((rows, n), np.inf), np.full((rows, n), np.inf)
    for t, each in enumerate(shown):
        k = len(each.arms)
        index[t, :k] = [arms.index(arm) for arm in each.arms]
        x[t, :k], z[t, :k], means[t, :k], rewards[t, :k] = each.x, each.z, each.means, each.rewards
    return Rounds(x, z, arms, index, counts), means, rewards


def in_blocks(shown: Sequence[Shown], cuts: Sequence[int] = (), met: Sequence[Hashable] = ()) -> Iterator[list[Shown]]:
    """The rounds, cut there and where an arm enters."""
    block: list[Shown] = []
    known = set(met)
    for t, each in enumerate(shown):
        if block and (t in cuts or not known.issuperset(each.arms)):
            yield block
            block = []
        block.append(each)
        known.update(each.arms)
    yield block


def everyone(x: np.ndarray, z: np.ndarray) -> Rounds:
    """Rounds in which every arm is a candidate."""
    rows, n, _ = x.shape
    return Rounds(x, z, range(n), np.tile(np.arange(n), (rows, 1)), np.full(rows, n))


def assert_same_state(one: Policy, two: Policy) -> None:
    """Everything that is saved is equal to the bit."""
    (header, arrays), (other_header, other_arrays) = one._pack(), two._pack()
    assert header == other_header
    assert arrays.keys() == other_arrays.keys()
    for name in arrays:
        assert_array_equal(arrays[name], other_arrays[name], err_msg=name)
