"""Logs for a `Bandit`: their columns by name, bandits to evaluate, and fitting one to a log."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from hybandits.bandit import NAMES, Bandit, Raw
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.targets import ChoiceProbabilities, Learning, Target, probabilities, target_of
from hybandits.evaluation.view import View
from hybandits.features import COLUMNS, CONSTANT, Category, Feature, Number
from hybandits.features.columns import from_plain
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Batch, Log
from hybandits.policies.base import Policy
from hybandits.simulation.rounds import Rounds

NUMBERS = 4_000_000
"""The most numbers of x and z that are computed at once."""


class LogColumns:
    """The vectors of a log as columns by name: what was encoded when it was converted is decoded."""

    def __init__(self, log: Log) -> None:
        noted = log.about.get(COLUMNS, {})
        self._sides: dict[str, dict[str, Feature]] = {}
        for what, names in zip(NAMES, (log.user, log.arm, log.pair), strict=True):
            bare = [name for name in names if name != CONSTANT]
            self._sides[what] = from_plain(noted[what]) if what in noted else dict.fromkeys(bare, Number())
        self._first = {"user": int(log.user[:1] == [CONSTANT]), "arm": int(log.arm[:1] == [CONSTANT]), "pair": 0}

    def declared(self) -> dict[str, Any]:
        """The kinds of the columns, as `Bandit` takes them."""
        kinds = {
            what: {name: "category" if isinstance(each, Category) else "number" for name, each in side.items()}
            for what, side in self._sides.items()
        }
        return {what: side for what, side in kinds.items() if side}

    def check(self, bandit: Bandit) -> None:
        """Raise unless the log has the columns that a bandit needs."""
        for what in NAMES:
            for name in getattr(bandit.features, what):
                if name not in self._sides[what]:
                    known = self._sides[what]
                    near = checks.nearest(name, known)
                    wrong = f"the log has no {what} column {name!r}{near}, which the bandit needs"
                    raise ValueError(f"{wrong}: its {what} columns are {checks.short(list(known))}")

    def raw(self, what: str, vectors: FloatArray, names: Mapping[str, Any]) -> dict[str, list[Any]]:
        """The columns with these names of vectors, one row each."""
        at, columns = self._first[what], {}
        for name, feature in self._sides[what].items():
            width = len(feature.labels(name))
            block = vectors[:, at : at + width]
            if name in names:
                columns[name] = _values(feature, block)
            at += width
        return columns


def _values(feature: Feature, block: FloatArray) -> list[Any]:
    """The values that were encoded in these columns."""
    if not isinstance(feature, Category):
        values: list[Any] = block[:, 0].tolist()
        if block.shape[1] > 1:
            values = [None if gone else value for value, gone in zip(values, block[:, 1], strict=True)]
        return values
    levels = [*(feature.values or ()), *[None] * block.shape[1]]
    return [levels[int(row.argmax())] if row.any() else feature.base for row in block]


class FrozenBandit:
    """A bandit as it is now, which learns nothing more; it itself is not changed."""

    def __init__(self, bandit: Bandit) -> None:
        self._bandit = bandit.copy()

    def prepared(self, view: View) -> ChoiceProbabilities:
        """The function that gives the choice probabilities."""
        columns, bandit = LogColumns(view.log), self._bandit.copy()
        columns.check(bandit)
        policy, features = bandit.policy, bandit.features
        policy.admit(view.names)
        arms = features.encoded("arm", columns.raw("arm", view.vectors, features.arm), len(view.vectors), [])

        def choice_probabilities(batch: Batch, rounds: Rounds) -> FloatArray:
            assert rounds.source is not None
            users = features.encoded("user", columns.raw("user", batch.user, features.user), batch.rounds, [])
            most = rounds.index.shape[1]
            step = max(1, NUMBERS // (most * (features.d1 + features.d2)))
            parts = []
            for start in range(0, batch.rounds, step):
                part = rounds.part(start, start + step)
                n = len(part.counts)
                flat = batch.pair[start : start + step, :most]
                given = columns.raw("pair", flat.reshape(n * most, flat.shape[2]), features.pair)
                pairs = features.encoded("pair", given, n * most, [])
                vectors = arms[rounds.source.vector[start : start + step].ravel()]
                x, z = features.of_rows(np.repeat(users[start : start + step], most, axis=0), vectors, pairs)
                part = part._replace(x=x.reshape(n, most, -1), z=z.reshape(n, most, -1), source=None)
                parts.append(probabilities(policy, part))
            return np.concatenate(parts)

        return choice_probabilities


class LearningBandit(Learning):
    """A bandit that learns as it goes, for replay. A copy plays and learns; the bandit itself is not changed."""

    def __init__(self, bandit: Bandit) -> None:
        super().__init__(bandit.policy)
        self._bandit = bandit.copy()

    def playing(self, view: View, rejection: Rejection) -> ChoiceProbabilities:
        """The function that plays rounds in order, learns those that are kept, and returns 1 for its choices."""
        columns, bandit = LogColumns(view.log), self._bandit.copy()
        columns.check(bandit)
        arms = _records(columns.raw("arm", view.vectors, bandit.features.arm), len(view.vectors))

        def choices(batch: Batch, rounds: Rounds) -> FloatArray:
            assert rounds.source is not None
            kept = rejection.drawn(rounds.first, batch.propensity)
            users = _records(columns.raw("user", batch.user, bandit.features.user), batch.rounds)
            chosen = np.zeros(rounds.index.shape)
            for t, count in enumerate(rounds.counts.tolist()):
                ids = [rounds.arms[i] for i in rounds.index[t, :count].tolist()]
                listed = dict(zip(ids, (arms[row] for row in rounds.source.vector[t, :count].tolist()), strict=True))
                pair = columns.raw("pair", batch.pair[t, :count], bandit.features.pair)
                choice = bandit.choose(users[t], listed, _records(pair, count) if pair else None)
                chosen[t, choice.index] = 1.0
                if choice.index == batch.chosen[t] and kept[t] > 0:
                    bandit.learn(choice.receipt, reward=batch.reward[t])
            return chosen

        return choices


def _records(raw: dict[str, list[Any]], n: int) -> list[dict[str, Any]]:
    return [dict(zip(raw, row, strict=True)) for row in zip(*raw.values(), strict=True)] if raw else [{}] * n


def target_or_bandit(given: Target | Learning | Policy | Bandit | str, view: View) -> Target | Learning:
    """The target that a value of `targets` stands for; a bare bandit or policy is frozen."""
    if isinstance(given, LearningBandit):
        return given
    return target_of(FrozenBandit(given) if isinstance(given, Bandit) else given, view)


def fit_bandit(bandit: Bandit, view: View, start: int = 0, stop: int | None = None) -> None:
    """Teach a bandit the rounds start..stop-1 of a log, as if it had learned them one by one."""
    columns = LogColumns(view.log)
    columns.check(bandit)
    arms = columns.raw("arm", view.vectors, bandit.features.arm)
    for part in view.log.batches(start, stop):
        entries = view.shown(part)
        ids: list[Hashable] = [view.names[a] for a in view.arm[entries]]
        rows = view.vector[entries].tolist()
        pair = part.pair[np.arange(part.rounds), part.chosen] if bandit.features.pair else np.empty((0, 0))
        raw: Raw = {
            "user": columns.raw("user", part.user, bandit.features.user),
            "columns": {name: [values[row] for row in rows] for name, values in arms.items()},
            "pairs": columns.raw("pair", pair, bandit.features.pair),
        }
        sides = {key: _records(each, part.rounds) if each else None for key, each in raw.items()}
        bandit.learn_batch(ids, sides["user"], part.reward, columns=sides["columns"], pairs=sides["pairs"])
