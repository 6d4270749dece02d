"""A log as rounds to play: which arms its candidates are, and their features."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hybandits.features import FeatureMap, split_name
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.features import fill
from hybandits.logs.store import Batch, Log, LogError
from hybandits.simulation.rounds import FeatureSource, Rounds
from hybandits.simulation.worlds import BLOCK_NUMBERS

ARMS = "articles", "positions"
"""Kinds of arms: see `View`."""

PLACES = 20
"""Places of a list when arms="positions"."""


def usual_map(log: Log) -> tuple[str, str]:
    """The feature map that suits a log, and why: "das" if arms differ in their features, otherwise "li", plus pairs."""
    name, why = "li", "the arms have no features that tell them apart, so each learns from the user's"
    if len(log.vectors) and (log.vectors != log.vectors[0]).any():
        name, why = "das", "the arms have features of their own"
    if not log.pair:
        return name, why
    named = ", ".join(log.pair[:3]) + (f" and {len(log.pair) - 3} more" if len(log.pair) > 3 else "")
    return f"{name}+pair", f"{why}; x ends with the pair features ({named})"


class Recipe(NamedTuple):
    """A view for workers, which open it with `view_of`."""

    path: str
    content: str
    features: str
    arms: str


class View:
    """A log with a feature map and a notion of arms.

    Parameters
    ----------
    log : Log
        The log.
    features : {"das", "li", "shared", "disjoint"}, perhaps followed by "+pair", "+pair:z" or "+pair:xz", optional
        How x and z are made from the vectors of a user, an arm and their pair; `usual_map` by default.
    arms : {"articles", "positions"}
        An arm is what the log shows, such as an article; or a place in the list of candidates, as in the paper's
        released code, which cuts lists to 20 and fills shorter ones up with arms of zero features.

    Attributes
    ----------
    names : list
        The arms.
    map : FeatureMap
        Makes features from vectors; `d1` and `d2` are the lengths of x and z.
    why : str or None
        Why this map was chosen; None if it was given.

    Notes
    -----
    Candidate k of pool p is entry e = offsets[p] + k: arm names[arm[e]] with the vector vectors[vector[e]]. Entries
    with the same arm and vector form a group, group[e]. Within a group, features are linear in (u, p, 1) with the
    user's vector u and the pair features p.
    """

    def __init__(self, log: Log, *, features: str | None = None, arms: str = "articles") -> None:
        if arms not in ARMS:
            raise ValueError(f"arms must be one of {', '.join(ARMS)}, got {arms!r}")
        self.log, self.arms_are = log, arms
        self.why: str | None = None
        if features is None:
            features, self.why = usual_map(log)
        base, pair_in = split_name(features)
        if pair_in and not log.pair:
            raise ValueError(f"the log has no pair features for the map {features}: use {base}")
        self.map = FeatureMap(features, len(log.user), len(log.arm), len(log.pair) if pair_in else 0)
        self.d1, self.d2 = self.map.d1, self.map.d2
        self.vectors: FloatArray = np.array(log.vectors)
        self.names: list[Hashable]
        if arms == "articles":
            self.offsets, self.vector = log.pools.offsets, log.pools.rows.astype(np.int64)
            index = {name: i for i, name in enumerate(dict.fromkeys(log.names))}
            self.names = list(index)
            self.arm = np.array([index[name] for name in log.names], np.int64)[self.vector]
        else:
            self.names = list(range(PLACES))
            self.vectors = np.vstack([log.vectors, np.zeros(len(log.arm))])
            pools = np.full((len(log.pools.sizes), PLACES), len(log.vectors), np.int64)
            for p, (start, stop) in enumerate(pairwise(log.pools.offsets.tolist())):
                listed = log.pools.rows[start : min(stop, start + PLACES)]
                pools[p, : len(listed)] = listed
            self.vector = pools.ravel()
            self.offsets = np.arange(len(pools) + 1) * PLACES
            self.arm = np.tile(np.arange(PLACES), len(pools))
        self.sizes = np.diff(self.offsets)
        pairs = self.arm * len(self.vectors) + self.vector
        _, first, self.group = np.unique(pairs, return_index=True, return_inverse=True)
        self.group_arm, self.group_vector = self.arm[first], self.vector[first]

    def recipe(self) -> Recipe:
        return Recipe(str(self.log.path.resolve()), self.log.about["content"], self.map.name, self.arms_are)

    def shown(self, batch: Batch) -> np.ndarray:
        """The entry shown in every round; -1 if the list was cut before it."""
        entries = self.offsets[batch.pool] + batch.chosen
        return np.where(batch.chosen < self.sizes[batch.pool], entries, -1)

    def rows(self, batch: Batch) -> tuple[list[Hashable], FloatArray, FloatArray]:
        """Arm, x and z of what was shown in every round. It must be among the candidates (see `shown`)."""
        entries = self.shown(batch)
        x, z = self.features(self.user_and_pair(batch), np.ones(batch.rounds), self.vector[entries])
        return [self.names[a] for a in self.arm[entries]], x, z

    def features(
        self, known: FloatArray, constant: FloatArray, vector: np.ndarray, vectors: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """x and z, linear in (u, p, 1), of rows of (u, p) and of the constant, for an arm's vector each."""
        x, z = np.empty((len(known), self.d1)), np.empty((len(known), self.d2))
        vectors = self.vectors if vectors is None else vectors
        arrays = np.ascontiguousarray(known), np.ascontiguousarray(constant), vector, vectors
        fill_rows(self.map.code, self.map.user, *arrays, x, z)
        return x, z

    def pair(self, batch: Batch) -> FloatArray:
        """The pair features (rounds, most candidates, map.pair) of the candidates of every round."""
        if not self.map.pair:
            return np.empty((batch.rounds, 0, 0))
        most = int(self.sizes[batch.pool].max(initial=0))
        given = batch.pair[:, :most]
        filled = np.zeros((batch.rounds, most, self.map.pair))  # lists may be filled up to PLACES
        filled[:, : given.shape[1]] = given
        return filled

    def user_and_pair(self, batch: Batch) -> FloatArray:
        """(u, p) of every round: the user's vector, then the pair features of the arm shown if the map has any."""
        if not self.map.pair:
            return batch.user
        return np.concatenate([batch.user, batch.pair[np.arange(batch.rounds), batch.chosen]], axis=1)


@lru_cache(maxsize=2)
def view_of(recipe: Recipe) -> View:
    """The view of a recipe, opened once per process; LogError if the log has been replaced since."""
    log = Log(Path(recipe.path))
    if log.about["content"] != recipe.content:
        raise LogError(f"{log.path} now holds another log than when the view was opened. Open the view again.")
    return View(log, features=recipe.features, arms=recipe.arms)


@kernel
def fill_rows(code, du, known, constant, vector, vectors, x, z):  # type: ignore[no-untyped-def]
    """`fill` the features of every row, with its (u, p) in `known`."""
    for t in range(known.shape[0]):
        fill(code, known[t, :du], known[t, du:], vectors[vector[t]], constant[t], x[t], z[t])


class Expander:
    """Turns the batches of a log, in order, into rounds to play, in blocks of at most `numbers` features.

    An arm that is new to the log is a candidate in the first round of a block, as worlds promise.
    """

    def __init__(self, view: View, *, numbers: int = BLOCK_NUMBERS) -> None:
        self.view = view
        self._numbers = numbers
        self._met = np.zeros(len(view.names), bool)

    def __call__(self, batch: Batch, first: int = 0) -> Iterator[tuple[Batch, Rounds]]:
        """Yield the batch in pieces, each with its rounds; `first` is the number of the batch's first round."""
        view = self.view
        start = 0
        while start < batch.rounds:
            each = view.d1 + view.d2 + 1
            pool = batch.pool[start : start + max(1, self._numbers // (int(view.sizes[batch.pool[start]]) * each))]
            # Every round takes the space of the round with the most candidates.
            pool = pool[: max(1, self._numbers // (int(view.sizes[pool].max()) * each))]
            self._met[self._arms(pool[0])] = True
            first_rounds = np.unique(pool, return_index=True)[1]
            fresh = [t for t in first_rounds if not self._met[self._arms(pool[t])].all()]
            pool = pool[: min(fresh, default=len(pool))]
            piece = batch.part(start, start + len(pool))
            yield piece, self._rounds(piece, first + start)
            start += len(pool)

    def _arms(self, pool: int) -> np.ndarray:
        return np.asarray(self.view.arm[self.view.offsets[pool] : self.view.offsets[pool + 1]])

    def _rounds(self, batch: Batch, number: int) -> Rounds:
        view = self.view
        pools = dict.fromkeys(batch.pool[np.flatnonzero(np.diff(batch.pool, prepend=-1))].tolist())
        entries = np.concatenate([self._arms(p) for p in pools])
        arms = list(dict.fromkeys(entries.tolist()))
        local = np.zeros(len(view.names), np.int64)
        local[arms] = np.arange(len(arms))
        counts = view.sizes[batch.pool]
        most = int(counts.max())
        used = np.array(sorted(pools))
        places = np.arange(most)
        inside = places < view.sizes[used][:, None]
        listed = np.where(inside, view.offsets[used][:, None] + places, 0)
        row = np.searchsorted(used, batch.pool)
        index = np.where(inside, local[view.arm[listed]], 0)[row]
        vector = np.where(inside, view.vector[listed], 0)[row]
        x, z = np.empty((0, most, view.d1)), np.empty((0, most, view.d2))
        pair = view.pair(batch) if view.map.pair else None
        source = FeatureSource(view.map, np.ascontiguousarray(batch.user), vector, view.vectors, pair)
        return Rounds(x, z, [view.names[a] for a in arms], index, counts, source, number)
