"""Rounds to play: the candidates and their features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.features import FeatureMap
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.features import GIVEN, buffers_for, lay_out

ROUNDING = 1e-9
"""The largest distance, in units of the largest mean of a block, of `best` from the largest mean of a round."""


class FeatureSource(NamedTuple):
    """Vectors from which the features of rounds are computed while they are played: memory for one round is enough.

    The features of candidate k of round t are those that `map` gives for user[t], vectors[vector[t, k]] and, if it has
    pair features, pair[t, k].
    """

    map: FeatureMap
    user: FloatArray
    """(rounds, map.user)"""
    vector: NDArray[np.int64]
    """(rounds, n): the row of `vectors` of every candidate; any row for padding."""
    vectors: FloatArray
    """(number of vectors, map.arm)"""
    pair: FloatArray | None = None
    """(rounds, n, map.pair)"""


class Rounds(NamedTuple):
    """Some consecutive rounds and their candidates, at most n in each.

    Attributes
    ----------
    x, z : arrays of shape (rounds, n, d1) and (rounds, n, d2)
        Features of every candidate, as doubles in C order.
    arms : sequence of hashable
        The ids of all candidates of these rounds, each once.
    index : int array of shape (rounds, n)
        Which of `arms` each candidate is.
    counts : int array of shape (rounds,)
        The number of candidates of each round. The entries of x, z and index beyond them are padding; in index, padding
        may be any arm.
    source : FeatureSource, optional
        The vectors that features are computed from, if these are not stored. Then x and z hold no rounds.
    first : int
        The number of the first round, where rounds are numbered, as those of a log are.

    Examples
    --------
    Two rounds with two candidates each, of three arms in all:

    >>> rounds = Rounds(
    ...     x=np.ones((2, 2, 4)), z=np.ones((2, 2, 1)), arms=["a", "b", "c"],
    ...     index=np.array([[0, 1], [2, 1]]), counts=np.array([2, 2]),
    ... )
    >>> rounds.check(d1=4, d2=1)
    >>> rounds.part(1, 2).index.tolist()
    [[2, 1]]
    """

    x: FloatArray
    z: FloatArray
    arms: Sequence[Hashable]
    index: NDArray[np.int64]  # type: ignore[assignment]  # not tuple.index
    counts: NDArray[np.int64]
    source: FeatureSource | None = None
    first: int = 0

    def part(self, first: int, last: int) -> Rounds:
        """The rounds first..last-1, without a copy."""
        x, z, source = self.x, self.z, self.source
        if source is None:
            x, z = x[first:last], z[first:last]
        else:
            pair = None if source.pair is None else source.pair[first:last]
            source = source._replace(user=source.user[first:last], vector=source.vector[first:last], pair=pair)
        return Rounds(x, z, self.arms, self.index[first:last], self.counts[first:last], source, self.first + first)

    def features(self, t: int) -> tuple[FloatArray, FloatArray]:
        """x and z of the candidates of round t; do not write to them."""
        t = range(len(self.counts))[t]
        count = int(self.counts[t])
        if self.source is None:
            return self.x[t, :count], self.z[t, :count]
        source, x, z, _, _ = self.for_kernels
        x, z = buffers_for(source, x, z)
        lay_out(source, t, count, x, z)
        return x[0, :count], z[0, :count]

    @property
    def for_kernels(self) -> tuple[Any, FloatArray, FloatArray, NDArray[np.int64], NDArray[np.int64]]:
        """The source as `lay_out` takes it, x, z, index and counts."""
        source: Any = GIVEN, np.empty((0, 0)), np.empty((0, 0), np.int64), np.empty((0, 0)), np.empty((0, 0, 0))
        if self.source is not None:
            feature_map, user, vector, vectors, pair = self.source
            source = feature_map.code, user, vector, vectors, source[4] if pair is None else pair
        return source, self.x, self.z, self.index, self.counts

    def check(self, d1: int, d2: int) -> None:
        """Raise unless the arrays fit together and the candidates of every round are different arms of `arms`.

        The arrays of `source` are not examined.
        """
        if self.x.ndim != 3:
            raise ValueError(f"x must have shape (rounds, n, d1), got {self.x.shape}: pad all rounds to n candidates")
        stored, n, _ = self.x.shape
        rounds = stored if self.source is None else len(self.source.user)
        wanted = {
            "x": (np.float64, (stored, n, d1)),
            "z": (np.float64, (stored, n, d2)),
            "index": (np.int64, (rounds, n)),
            "counts": (np.int64, (rounds,)),
        }
        for name, (dtype, shape) in wanted.items():
            check_array(name, getattr(self, name), dtype, shape)
        if len(set(self.arms)) != len(self.arms):
            raise ValueError(f"arms holds an id more than once, got {checks.short(self.arms)}: list each arm once")
        wrong = first_wrong_round(self.index, self.counts, len(self.arms))
        if wrong >= 0:
            raise ValueError(
                f"round {wrong} has counts {self.counts[wrong]} and index {checks.short(self.index[wrong].tolist())}: "
                f"give it 1 to {n} candidates, each a different one of the {len(self.arms)} arms"
            )


class Block(NamedTuple):
    """Rounds of a world, with the means that policies do not see.

    Attributes
    ----------
    rounds : Rounds
        The part that policies see.
    means : array of shape (rounds, n)
        The mean reward of every candidate; anything for padding.
    best : array of shape (rounds,)
        The largest mean of every round, which regret is measured against.
    """

    rounds: Rounds
    means: FloatArray
    best: FloatArray

    def check(self, d1: int, d2: int) -> None:
        """Raise unless the rounds are sound, all means are finite and `best` is the largest mean of every round."""
        rounds, means, best = self
        rounds.check(d1, d2)
        n = len(rounds.counts)
        if np.shape(means) != rounds.index.shape or np.shape(best) != (n,):
            raise ValueError(
                f"means has shape {np.shape(means)} and best has shape {np.shape(best)}: let them have the shapes "
                f"{rounds.index.shape} and {(n,)}"
            )
        candidate = np.arange(rounds.index.shape[1]) < rounds.counts[:, None]
        largest = np.where(candidate, means, -np.inf).max(axis=1)
        finite = (np.isfinite(means) | ~candidate).all(axis=1)
        equal = np.abs(best - largest) <= ROUNDING * np.abs(largest).max(initial=0.0)
        if not finite.all():
            t = int(np.argmin(finite))
            raise ValueError(f"a mean of its round {t} is not finite, got {checks.short(means[t].tolist())}")
        if not equal.all():
            t = int(np.argmin(equal))
            raise ValueError(
                f"best of its round {t} is {best[t]:g}, but the largest mean is {largest[t]:g}: let best be the "
                "largest mean of every round"
            )


def check_array(name: str, value: np.ndarray, dtype: type, shape: tuple[int, ...]) -> None:
    """Raise unless the array can go to the kernels as it is."""
    if value.dtype != dtype or value.shape != shape or not value.flags.carray:
        raise ValueError(
            f"{name} must be a writeable array of {dtype.__name__} in C order of shape {shape}, got {value.dtype} "
            f"{value.shape}: convert it with np.array({name}, np.{dtype.__name__}, order='C')"
        )


@kernel
def first_wrong_round(index, counts, arms):  # type: ignore[no-untyped-def]
    """The first round without candidates, with one beyond so many arms, or with one twice; -1 if all are right."""
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
