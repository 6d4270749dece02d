"""The passes over a log: its survey, the model of its rewards, the terms of policies, and the influence of the fit.

The model of the rewards is hybrid ridge regression, cross-fitted: q for a fold of rounds is fitted on the other folds.
So in a dr term its errors cost no bias. A dm estimate has them in full, and its interval accounts for them. With x~(a)
the features (x, z) placed where theta and the arm's own beta stand, phi_t = sum_a pi(a) x~(a), Phi_f = sum_{t in f}
phi_t, and M_-f the ridge matrix without fold f,

    dm = (1/n) sum_f Phi_f' (theta, beta)_-f,

and row s of fold h moves (theta, beta)_-f by M_-f^-1 x~_s e_s, with e_s = r_s - q(s). So round s counts with
phi_s' (theta, beta)_-h + c_s - mean(c), where

    c_s = g_h' x~_s e_s,   g_h = sum_{f != h} M_-f^-1 Phi_f.

This is right if rewards are linear in the features. If they are not, dm is biased: compare dm with dr.
"""

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from hybandits.engines import Engine, Report
from hybandits.estimators.ridge import HybridRidge
from hybandits.evaluation.estimators import BlockSums, Tally, Terms, TermsOf, columns_of
from hybandits.evaluation.fit import PackedStatistics, Statistics, ridge_model
from hybandits.evaluation.log_world import RewardModel, mean_reward
from hybandits.evaluation.parts import BlockLayout, Part, Survey, in_order
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.targets import Learning, Logged, Target
from hybandits.evaluation.view import Expander, View, view_of
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.logs.store import Batch


class LogPart(NamedTuple):
    """A part of a log; targets and models are filled in for the terms, then slopes for the influence of the fit."""

    part: Part
    layout: BlockLayout
    terms: tuple[TermsOf, ...] = ()
    targets: tuple[Target | Learning, ...] = ()
    models: tuple[RewardModel, ...] = ()
    slopes: tuple[tuple[RewardModel, ...], ...] = ()
    clip: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    features: bool = False
    rejection: Rejection = Rejection()


def survey_part(task: LogPart, report: Report) -> Survey:
    view = view_of(task.part.view)
    survey = Survey.of(view)
    for batch in view.log.batches(task.part.start, task.part.stop):
        survey.add(view, batch)
        report(batch.rounds)
    return survey


ROUND = np.dtype([(name, float) for name in ("total", "match", "direct", "within", "shown")])
"""The output of `add_choices` per round: sum of pi, pi(shown), and means by the model."""


def terms_part(task: LogPart, report: Report) -> tuple[Survey, list[BlockSums]]:
    """The survey of a part, and the terms of all policies summed up by block."""
    view, layout, start = view_of(task.part.view), task.layout, task.part.start
    blocks = layout.touched(start, task.part.stop)
    shape = (len(view.group_arm), view.map.user_and_pair + 1) if task.features else (0, 0)
    size = blocks.stop - blocks.start, layout.folds, len(view.names), len(task.terms)
    sums = [BlockSums.empty(*size, shape) for _ in task.targets]
    choices = [
        target.playing(view, task.rejection) if isinstance(target, Learning) else target.prepared(view)
        for target in task.targets
    ]
    survey, expander, learns = Survey.of(view), Expander(view), isinstance(task.targets[0], Learning)
    model = stacked(task.models, view) if task.models else (np.zeros((1, 1, 1)), np.zeros((1, 1)))
    for batch in view.log.batches(start, task.part.stop):
        if not learns:
            survey.add(view, batch)
        for piece, rounds in expander(batch, start):
            # Without a model there is no need for folds.
            fold = layout.fold(start, piece.rounds) if task.models else np.zeros(piece.rounds, np.int64)
            block = layout.block(start, piece.rounds) - blocks.start
            for target, choose, each in zip(task.targets, choices, sums, strict=True):
                if isinstance(target, Logged):  # its value is the mean reward, whatever the estimator
                    ones = np.ones(piece.rounds)
                    each.tally = each.tally.plus(Tally(largest=1.0))
                    terms = Terms(piece.reward, ones, ones, ones, piece.reward, piece.reward, piece.reward)
                else:
                    pi = np.ascontiguousarray(choose(piece, rounds), dtype=np.float64)
                    terms = terms_of(task, view, target, pi, piece, start, fold, model, each)
                np.add.at(each.sums, (block, fold), columns_of(task.terms, terms))
            start += piece.rounds
            report(piece.rounds)
    return survey, sums


def terms_of(
    task: LogPart, view: View, target: Target | Learning, pi: FloatArray, piece: Batch, start: int, fold: np.ndarray,
    model: tuple[FloatArray, FloatArray], sums: BlockSums,
) -> Terms:  # fmt: skip
    """The terms of a policy in some rounds from its choice probabilities; the rest is added to its sums."""
    n, counts, first = piece.rounds, view.sizes[piece.pool], view.offsets[piece.pool]
    if pi.shape != (n, int(counts.max())):
        expected = f"({n}, {counts.max()}), one row per round and one column per candidate"
        raise ValueError(f"{target} gives probabilities of shape {pi.shape}, expected {expected}")
    pair, out = view.pair(piece), np.zeros(n, ROUND)
    wrong = add_choices(
        pi, counts, piece.chosen, piece.user, pair, first, view.group, view.arm, *model, fold, bool(task.models),
        task.low, task.high, out, sums.mass, sums.eligible,
    )  # fmt: skip
    if wrong >= 0:
        given = f"the probabilities {checks.short(pi[wrong, : counts[wrong]].tolist())} in round {start + wrong}"
        raise ValueError(f"{target} gives {given}: they must be at least 0 and sum up to 1")
    if task.features:
        add_features(pi, counts, piece.user, pair, first, view.group, fold, sums.features)
    p, match, total = piece.propensity, out["match"], out["total"]
    weight = np.divide(match, p, out=np.zeros(n), where=(p > 0) & (p <= 1))
    clipped = weight > task.clip
    weight[clipped] = task.clip
    rejection = task.rejection
    kept = match * (rejection.drawn(start, p) if isinstance(target, Learning) else rejection.chance(p))
    others = np.where((p == 1.0) & (total - match > 1e-9), total - match, 0.0)
    tally = Tally(
        largest=weight.max(), silent=(total == 0.0).sum(), certain=others.sum(), clipped=clipped.sum(),
        squares=float(kept @ kept),
    )  # fmt: skip
    sums.tally = sums.tally.plus(Tally(*map(float, tally)))
    return Terms(piece.reward, match, weight, kept, out["direct"], out["within"], out["shown"])


@kernel
def add_choices(  # type: ignore[no-untyped-def]
    pi, counts, shown, user, pair, first, group, arm, weights, constant, fold, modelled, low, high, out, mass, eligible
):  # fmt: skip
    """Write a ROUND for every round. Returns the first round whose probabilities are invalid, -1 if there is none.

    shown: the place of what was shown; first: entry of the first candidate. The model's mean of group g in fold f is
    (u, p).weights[f, g] + constant[f, g]; `within` and `shown` have it within low..high. Added to for every arm: mass,
    its probability, and eligible, the rounds with any.
    """
    for t in range(pi.shape[0]):
        f = fold[t]
        total, direct, within = 0.0, 0.0, 0.0
        for k in range(counts[t]):
            p = pi[t, k]
            if not p >= 0.0:
                return t
            e = first[t] + k
            if p > 0.0:
                total += p
                mass[arm[e]] += p
                eligible[arm[e]] += 1
            if modelled and (p > 0.0 or k == shown[t]):
                q = mean_reward(user, pair, t, k, weights[f], constant[f], group[e])
                limited = min(max(q, low), high)
                direct += p * q
                within += p * limited
                if k == shown[t]:
                    out[t].shown = limited
        if total != 0.0 and abs(total - 1.0) > 1e-6:
            return t
        out[t].total = total
        out[t].direct = direct
        out[t].within = within
        out[t].match = pi[t, shown[t]]
    return -1


def fold_part(task: LogPart, report: Report) -> list[PackedStatistics]:
    """The statistics of every fold."""
    view, (_, start, stop) = view_of(task.part.view), task.part
    folds = [Statistics(view) for _ in range(task.layout.folds)]
    for batch in view.log.batches(start, stop):
        fold = task.layout.fold(start, batch.rounds)
        for f, statistics in enumerate(folds):
            statistics.add(Batch(*(column[fold == f] for column in batch)))
        start += batch.rounds
        report(batch.rounds)
    return [statistics.packed() for statistics in folds]


def cross_fitted(
    view: View, tasks: list[LogPart], ridge: float, engine: Engine, progress: Callable[[int], None]
) -> tuple[tuple[RewardModel, ...], list[HybridRidge]] | None:
    """For every fold the model fitted on the others, and its estimator; None if there are no rounds to fit one to."""
    folds = [Statistics(view) for _ in range(tasks[0].layout.folds)]
    for part in in_order(engine, fold_part, tasks, progress):
        for statistics, packed in zip(folds, part, strict=True):
            statistics.merge(packed)
    fitted = []
    for f in range(len(folds)):
        others = Statistics(view)
        for statistics in (*folds[:f], *folds[f + 1 :]):
            others.merge(statistics.packed())
        if not others.rounds:
            return None
        fitted.append(ridge_model(others, ridge=ridge))
    return tuple(model for model, _ in fitted), [estimator for _, estimator in fitted]


def stacked(models: Sequence[RewardModel], view: View) -> tuple[FloatArray, FloatArray]:
    """`RewardModel.per_group` of several models: weights (models, groups, m) and constants (models, groups)."""
    per_model = [model.per_group(view) for model in models]
    return np.stack([weights for weights, _ in per_model]), np.stack([constant for _, constant in per_model])


@kernel
def add_features(pi, counts, user, pair, first, group, fold, sums):  # type: ignore[no-untyped-def]
    """sums[fold, group] += pi (u, p, 1): all there is to know of Phi, features being linear in it within a group."""
    du, dp = user.shape[1], pair.shape[2]
    for t in range(pi.shape[0]):
        for k in range(counts[t]):
            p = pi[t, k]
            if p > 0.0:
                row = sums[fold[t], group[first[t] + k]]
                for i in range(du):
                    row[i] += p * user[t, i]
                for i in range(dp):
                    row[du + i] += p * pair[t, k, i]
                row[du + dp] += p


def solve(
    estimator: HybridRidge, x: FloatArray, own: FloatArray, names: Sequence[Hashable]
) -> tuple[FloatArray, FloatArray]:
    """M^-1 b for b = (x, own), own (names, d2); 0 for arms without rows in the fit, which no row of it moves.

    With the blocks V, B_i, W_i of M: (V - sum B_i W_i^-1 B_i') y = x - sum B_i W_i^-1 b_i, then W_i^-1 (b_i - B_i' y).
    """
    known = [i for i, name in enumerate(names) if name in estimator.learned]
    v, b, w, eliminated = estimator.design([names[i] for i in known])
    inner = np.linalg.solve(w, own[known][:, :, None])[:, :, 0]
    theta = np.linalg.solve(v - eliminated, x - np.einsum("aij,aj->i", b, inner))
    beta = np.zeros_like(own)
    beta[known] = np.linalg.solve(w, (own[known] - np.einsum("aij,i->aj", b, theta))[:, :, None])[:, :, 0]
    return theta, beta


def slopes_of(view: View, estimators: list[HybridRidge], features: FloatArray) -> tuple[RewardModel, ...]:
    """g_h for every fold h: sum over f != h of M_-f^-1 Phi_f."""
    moved = []
    for sums, estimator in zip(features, estimators, strict=True):
        x, z = view.features(sums[:, :-1], sums[:, -1], view.group_vector)
        own = np.zeros((len(view.names), view.d2))
        np.add.at(own, view.group_arm, z)
        moved.append(solve(estimator, x.sum(axis=0), own, view.names))
    slopes = []
    for h in range(len(moved)):
        theta, beta = (sum(parts) for parts in zip(*moved[:h], *moved[h + 1 :], strict=True))
        slopes.append(RewardModel(map=view.map, theta=theta, beta=beta, names=view.names))
    return tuple(slopes)


def influence_part(task: LogPart, report: Report) -> FloatArray:
    """The sums of c by block, for the blocks of a part and every policy; slopes stand for g."""
    view, layout, (_, start, stop) = view_of(task.part.view), task.layout, task.part
    weights, constant = stacked(task.models, view)
    per_policy = [stacked(models, view) for models in task.slopes]
    slopes, offsets = np.stack([slope for slope, _ in per_policy]), np.stack([offset for _, offset in per_policy])
    blocks = layout.touched(start, stop)
    sums = np.zeros((len(task.slopes), blocks.stop - blocks.start))
    for batch in view.log.batches(start, stop):
        fold, group = layout.fold(start, batch.rounds), view.group[view.shown(batch)]
        error, slope = batch.reward - constant[fold, group], offsets[:, fold, group]
        for i, column in enumerate(view.user_and_pair(batch).T):
            error -= column * weights[fold, group, i]
            slope += column * slopes[:, fold, group, i]
        block = layout.block(start, batch.rounds) - blocks.start
        for total, terms in zip(sums, slope * error, strict=True):
            np.add.at(total, block, terms)
        start += batch.rounds
        report(batch.rounds)
    return sums
