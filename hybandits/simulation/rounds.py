"""Rounds to play: candidates that may come and go, and their features."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.foundation.compiling import kernel
from hybandits.model.features import GIVEN, FeatureMap, lay_out, room_for


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
