"""The passes over a log: what it is like, the terms of fixed and of learning policies, and how much work that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hybandits.engines import Engine, Report
from hybandits.evaluation.crossfit import add_features, cross_fitted, influence_part, slopes_of, stacked
from hybandits.evaluation.parts import BlockLayout, BlockSums, LogPart, Survey
from hybandits.evaluation.rejection import rejection_for
from hybandits.evaluation.support import LogSupport
from hybandits.evaluation.targets import Learning, Logged, Target
from hybandits.evaluation.tasks import in_order, tasks_of, view_of
from hybandits.evaluation.terms import (
    COLUMNS,
    COUNTS,
    DM,
    DR,
    HIT,
    IPS,
    LARGEST,
    TERMS,
    add_up,
    round_terms,
)
from hybandits.evaluation.view import Expander, View
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Batch
from hybandits.policies.base import Policy
from hybandits.simulation.rounds import Rounds


class Walker:
    """Goes over rounds and computes the terms of policies. Those that learn need all rounds from the first one on."""

    def __init__(self, view: View, task: LogPart) -> None:
        self.view, self.task = view, task
        self._choices = [self._prepared(target) for target in task.targets]
        wanted = any(isinstance(target, Learning) or target.wants_features for target in task.targets)
        self._expander = Expander(view) if wanted else None
        arms, groups, known = len(view.names), len(view.group_arm), view.map.user_and_pair
        self.modelled = bool(task.models)
        # Without a model there is no need for folds, and a sum over all rounds of a block keeps its bits.
        self._alone = not self.modelled and any(isinstance(target, Learning) for target in task.targets)
        self._weights, self._constant = np.zeros((1, 1, known)), np.zeros((1, 1))
        if self.modelled:
            self._weights, self._constant = stacked(task.models, view)
        many = len(task.targets)
        self.mass, self.eligible = np.zeros((many, arms)), np.zeros((many, arms), np.int64)
        self.tally = np.zeros((many, COUNTS))
        shape = (many, task.layout.folds, groups, known + 1) if task.features else (many, 1, 1, 1)
        self.features = np.zeros(shape)

    def _prepared(self, target: Target | Learning) -> Callable[[Batch, Rounds | None, FloatArray], FloatArray]:
        """Choice probabilities from rounds, and, for a policy that learns, from which of them are kept."""
        if isinstance(target, Learning):
            playing: Callable[..., FloatArray] = target.playing(self.view)
            return playing
        fixed = target.prepared(self.view)
        return lambda batch, rounds, kept: fixed(batch, rounds)

    def _pieces(self, batch: Batch, start: int) -> Iterator[tuple[Batch, Rounds | None]]:
        if self._expander is not None:
            yield from self._expander(batch, start)
        else:
            for first in range(0, batch.rounds, 8192):
                yield batch.part(first, first + 8192), None

    def __call__(self, batch: Batch, start: int) -> Iterator[tuple[int, Batch, np.ndarray, list[FloatArray]]]:
        """Yield pieces of the batch: number of the first round, the rounds, their folds, the terms of every policy."""
        view, task = self.view, self.task
        for piece, rounds in self._pieces(batch, start):
            n = piece.rounds
            counts, first = view.sizes[piece.pool], view.offsets[piece.pool]
            real = view.log.pools.sizes[piece.pool]
            shown = np.where(piece.chosen < counts, piece.chosen, -1).astype(np.int64)
            fold = np.zeros(n, np.int64) if self._alone else task.layout.fold(start, n)
            chance = task.rejection.chance(piece.propensity)
            pair = view.pair(piece)
            every = []
            for j, target in enumerate(task.targets):
                if isinstance(target, Logged):
                    terms = np.ones((n, len(TERMS)))
                    terms[:, [IPS, DM, DR, HIT]] = piece.reward[:, None]
                    self.tally[j, LARGEST] = 1.0
                    every.append(terms)
                    continue
                kept = task.rejection.drawn(start, piece.propensity) if isinstance(target, Learning) else chance
                pi = np.ascontiguousarray(self._choices[j](piece, rounds, kept), dtype=np.float64)
                if pi.shape != (n, int(counts.max())):
                    raise ValueError(
                        f"{target} gives probabilities of shape {pi.shape} for {n} rounds of at most {counts.max()} "
                        "candidates: give one row per round and one column per candidate"
                    )
                terms = np.empty((n, len(TERMS)))
                wrong = round_terms(
                    pi, counts, real, shown, piece.reward, piece.propensity, piece.user, pair, first, view.group,
                    view.arm, self._weights, self._constant, fold if self.modelled else np.zeros(n, np.int64),
                    self.modelled, task.low, task.high, task.clip, kept, terms, self.mass[j], self.eligible[j],
                    self.tally[j],
                )  # fmt: skip
                if wrong >= 0:
                    raise ValueError(
                        f"{target} gives the candidates of round {start + wrong} the probabilities "
                        f"{checks.short(pi[wrong, : counts[wrong]].tolist())}: they must be at least 0 and sum up to 1"
                    )
                if task.features:
                    add_features(pi, counts, piece.user, pair, first, view.group, fold, self.features[j])
                every.append(terms)
            yield start, piece, fold, every
            start += n


def walk_part(task: LogPart, report: Report) -> tuple[Survey, list[BlockSums]]:
    """What the rounds are like, and the terms of all policies summed up by block."""
    view, layout = view_of(**task.view), task.layout
    walker = Walker(view, task)
    survey = Survey(np.zeros(len(view.names), np.int64))
    blocks = layout.touched(task.start, task.stop)
    sums = np.zeros((len(task.targets), len(blocks), layout.folds, COLUMNS))
    start = task.start
    for batch in view.log.batches(task.start, task.stop):
        survey.add(view, batch)
        for number, piece, fold, every in walker(batch, start):
            at = number - layout.first - blocks.start * layout.size
            for terms, total in zip(every, sums, strict=True):
                add_up(terms, every[0], piece.reward, at, layout.size, fold, total)
            report(piece.rounds)
        start += batch.rounds
    results = []
    for j in range(len(task.targets)):
        groups = np.flatnonzero(walker.features[j, :, :, -1].any(axis=0)) if task.features else np.zeros(0, np.int64)
        features = walker.features[j][:, groups]
        results.append(
            BlockSums(blocks.start, sums[j], walker.mass[j], walker.eligible[j], walker.tally[j], groups, features)
        )
    return survey, results


def survey_part(task: LogPart, report: Report) -> Survey:
    """What the rounds are like."""
    view = view_of(**task.view)
    survey = Survey(np.zeros(len(view.names), np.int64))
    for batch in view.log.batches(task.start, task.stop):
        survey.add(view, batch)
        report(batch.rounds)
    return survey


def read(
    view: View,
    policies: list[LogSupport],
    names: list[str],
    layout: BlockLayout,
    ridge: float,
    clip: float | None,
    bounds: tuple[float, float] | None,
    keep: float | None,
    seed: int | None,
    engine: Engine,
    progress: Callable[[int], None] | None,
) -> tuple[Survey, bool]:
    """Go over the log as often as it takes and add up what it says about the policies.

    Returns what the log is like, and whether its rounds were too few to fit the models that the estimators need.
    """
    progress = progress or (lambda rounds: None)
    learning = [(policy, policy.target) for policy in policies if isinstance(policy.target, Learning)]
    fixed = [(policy, policy.target) for policy in policies if not isinstance(policy.target, Learning)]
    moving = [policy for policy, _ in fixed if not policy.logged]
    modelled = ("dr" in names and bool(moving or learning)) or ("dm" in names and bool(moving))
    first, last = layout.first, layout.first + layout.rounds
    parts = [LogPart(task.view, task.start, task.stop, layout) for task in tasks_of(view, first, last)]
    survey = Survey(np.zeros(len(view.names), np.int64))
    surveyed = bool(learning) or "replay" in names
    if surveyed:
        for part_survey in in_order(engine, survey_part, parts, progress):
            survey.merge(part_survey)
        for policy in policies:
            policy.rejection = rejection_for(survey, keep, seed, learns=policy.learns)
    if names == ["dm"] or survey.missing or survey.wrong:
        learning = []  # nothing can be estimated for them
    fitted = cross_fitted(view, parts, ridge, engine, progress) if modelled else None
    direct = fitted is not None and "dm" in names and bool(moving)
    low, high = bounds or (-math.inf, math.inf)
    whole = LogPart(
        view.recipe(), first, last, layout, models=tuple(fitted[0]) if fitted else (),
        clip=math.inf if clip is None else clip, low=low, high=high,
    )  # fmt: skip
    # Learning policies come first: each takes as long as the whole log does.
    todo = [whole._replace(targets=(target,), rejection=policy.rejection) for policy, target in learning]
    if fixed:
        targets = tuple(target for _, target in fixed)
        share = whole._replace(targets=targets, features=direct, rejection=fixed[0][0].rejection)
        todo += [share._replace(start=part.start, stop=part.stop) for part in parts]
    features = np.zeros((len(fixed), layout.folds, len(view.group_arm) if direct else 0, view.map.user_and_pair + 1))
    for i, (part_survey, part_sums) in enumerate(in_order(engine, walk_part, todo, progress)):
        if i < len(learning):
            learning[i][0].add(part_sums[0])
            continue
        if not surveyed:
            survey.merge(part_survey)
        for (policy, _), sums, its in zip(fixed, part_sums, features, strict=True):
            policy.add(sums)
            its[:, sums.groups] += sums.features
    if fitted is not None and direct:
        slopes = tuple(
            slopes_of(view, fitted[1], its)
            for (policy, _), its in zip(fixed, features, strict=True)
            if not policy.logged
        )
        again = [part._replace(models=tuple(fitted[0]), slopes=slopes) for part in parts]
        for block, influences in in_order(engine, influence_part, again, progress):
            for policy, total in zip(moving, influences, strict=True):
                policy.influence[block : block + len(total)] += total
    return survey, modelled and fitted is None


def progress_total(
    view: View,
    targets: Mapping[str, Any],
    *,
    estimators: Sequence[str] = ("ips", "snips", "dm", "dr"),
    start: int = 0,
    stop: int | None = None,
) -> int:
    """How many rounds `evaluate` reports to `progress` in all: those of the log, times the passes over it."""
    rounds = (view.log.rounds if stop is None else min(stop, view.log.rounds)) - start
    names = list(estimators)
    learning = sum(isinstance(t, Learning) or (names == ["replay"] and isinstance(t, Policy)) for t in targets.values())
    fixed = len(targets) - learning
    moving = fixed > sum(t == "logged" or isinstance(t, Logged) for t in targets.values())
    passes = learning * (names != ["dm"]) + (fixed > 0)
    passes += bool(learning) or "replay" in names
    passes += ("dr" in names and (moving or learning > 0)) or ("dm" in names and moving)
    passes += "dm" in names and moving
    return rounds * passes
