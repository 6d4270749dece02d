"""A service's log as a log of this project: Parquet tables that describe, fit, evaluate and other tools read."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.logs.report import Fault, ReadReport
from hybandits.logs.store import NO_PAIRS, Batch, Log, LogError, Tables, convert
from hybandits.service.log import Decision, Row, Store, place_key
from hybandits.service.model_state import ModelState, Pool, places_of, walk

ROWS = 5_000
"""Rows that are read together."""

NO_REWARD = "without a reward"
OPEN = "still open"
EARLIER = "of the log before"


class Kept(NamedTuple):
    """A round that is written: a decision, or a place of a ranking, among the candidates that were left."""

    time: int
    decision: Decision
    pool: int
    chosen: int
    reward: float
    pairs: FloatArray | None


class ServiceReader:
    """Read the decisions of a service's log, each with the reward that was learned; `state` is its model."""

    kind = "service"
    binary_user = False

    def __init__(self, store: Store, state: ModelState) -> None:
        self._store = store
        self._state, self._bandit = state, state.bandit
        self._closed_before = ModelState.based(store).closed if state.base else 0
        self._features = state.features
        self.user, self.arm, self.pair = (
            getattr(self._features, f"{side}_columns") for side in ("user", "arm", "pair")
        )
        self.size = store.last()[0]
        columns = self._features.to_dict()
        self.about: dict[str, Any] = {
            "columns": {name: columns[name] for name in ("constant", "user", "arm", "pair") if name in columns}
        }

    def batches(
        self, tables: Tables, problems: ReadReport, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        """Yield the decisions in their order; see `hybandits.logs.store.Reader`."""

        @lru_cache
        def entered(pool: Pool) -> int:
            vectors = self._features.arm_vectors(pool.vectors)
            return tables.pool([tables.arm(arm, vector) for arm, vector in zip(pool.ids, vectors, strict=True)])

        source = self._bandit.name
        decisions = self._among()
        problems.begin(source)
        done = 0
        while chunk := list(itertools.islice(decisions, ROWS)):
            first, last = chunk[0][0].number, chunk[-1][0].number
            rewards = {(row.number, place): given for row, place, given in places_of(self._store, first - 1, last)}
            kept: list[Kept] = []
            faults: list[Fault] = []
            for row, pools in chunk:
                for place, (pool, pairs) in enumerate(pools, 1):
                    decision = row.decision.at(place)
                    reward, why = self._reward(row.number, place_key(decision.event, place), rewards[row.number, place])
                    if reward is None:
                        faults.append(Fault(row.number, why, f"event {row.event!r}"))
                    else:
                        chosen = pool.ids.index(decision.arm)
                        kept.append(Kept(row.time, decision, entered(pool), chosen, reward, pairs))
            problems.count(len(kept), faults)
            progress(last - done)
            done = last
            if kept:
                yield source, self._batch(kept)

    def _among(self) -> Iterator[tuple[Row, list[tuple[Pool, FloatArray | None]]]]:
        """Yield the decisions in their order, with the candidates of every place and their pair features."""
        for state, rows in walk(self._store, learning=False):
            for row in rows:
                arms = [row.decision.arm, *(each.arm for each in row.decision.more)]
                pools = [state.pool_of(row.decision, row.time, arms[:before]) for before in range(len(arms))]
                yield row, [(pool, state.pairs_at(pool, place)) for place, pool in enumerate(pools, 1)]

    def is_open(self, number: int) -> bool:
        """Return whether the decision in this row waits for the end of its window."""
        return self._bandit.window is not None and number > self._state.closed

    def _reward(self, number: int, key: str, given: Row | None) -> tuple[float | None, str]:
        """Return the reward that was learned for the decision in this row, or None and why there is none."""
        if self._bandit.window is not None:
            is_copied = number <= self._closed_before
        else:
            is_copied = given is not None and given.number < self._state.base
        if is_copied:
            return None, EARLIER
        if self.is_open(number):
            return None, OPEN
        return self._state.learned_reward(given, key), NO_REWARD

    def _batch(self, kept: Sequence[Kept]) -> Batch:
        return Batch(
            time=np.array([each.time // 1_000_000 for each in kept]),
            pool=np.array([each.pool for each in kept], np.int32),
            chosen=np.array([each.chosen for each in kept], np.int32),
            reward=np.array([each.reward for each in kept]),
            propensity=np.array([each.decision.chance for each in kept]),
            user=self._features.user_vectors([each.decision.user for each in kept]),
            pair=_padded([each.pairs for each in kept if each.pairs is not None]),
        )


def _padded(pairs: Sequence[FloatArray]) -> FloatArray:
    """Return pair features as one array, 0 beyond a round's last candidate."""
    if not pairs:
        return NO_PAIRS
    out = np.zeros((len(pairs), max(map(len, pairs)), pairs[0].shape[1]))
    for row, each in zip(out, pairs, strict=True):
        row[: len(each)] = each
    return out


def export(
    store: Store, out: Path | str, *, progress: Callable[[int], None] = lambda rows: None
) -> tuple[Log, ReadReport]:
    """Write the decisions of a service's log, with their rewards, as a log of this project."""
    problems = ReadReport()
    reader = ServiceReader(store, ModelState.restored(store))
    first = store.first_decisions(0, 1)
    if not first or reader.is_open(first[0][0]):
        raise LogError("There is nothing to export: the log has no decisions, or none whose window has passed.")
    return convert(reader, out, problems, progress), problems
