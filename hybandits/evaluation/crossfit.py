"""The model of the rewards: hybrid ridge regression, cross-fitted, and what its errors do to dm.

Rounds are dealt to folds, consecutive rounds together, and q for a fold is fitted on the other folds. So in a dr term
the model is independent of the reward, and its errors cost no bias. A dm estimate has the model's errors in full, and
its interval accounts for them. Let phi_t = sum_a pi(a) x~(a), with x~ the features (x, z) placed where theta and the
arm's own beta stand, and M_-f the ridge matrix without fold f. Then

    dm = (1/n) sum_f Phi_f' (theta, beta)_-f,   Phi_f = sum_{t in f} phi_t,

and row s moves (theta, beta)_-f by M_-f^-1 x~_s e_s, to first order, where e_s = r_s - q(s) with q fitted on the other
folds. So round s counts with phi_s' (theta, beta)_-h + c_s - mean(c), where h is its fold and

    c_s = g_h' x~_s e_s,   g_h = sum_{f != h} M_-f^-1 Phi_f.

This is right if rewards are linear in the features, as the model assumes. If they are not, dm is biased, and no
interval computed from the model can know: compare dm with dr.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from hybandits.engines import Engine, Report
from hybandits.estimators.ridge import HybridRidge
from hybandits.evaluation.collect import PackedStatistics, Statistics
from hybandits.evaluation.fit import ridge_model
from hybandits.evaluation.parts import LogPart
from hybandits.evaluation.reward_model import RewardModel
from hybandits.evaluation.tasks import in_order, view_of
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.features import fill
from hybandits.logs.store import Batch


def fold_part(task: LogPart, report: Report) -> list[PackedStatistics]:
    """The statistics of every fold, for the rounds of a part."""
    view = view_of(**task.view)
    folds = [Statistics(view) for _ in range(task.layout.folds)]
    start = task.start
    for batch in view.log.batches(task.start, task.stop):
        fold = task.layout.fold(start, batch.rounds)
        for f, statistics in enumerate(folds):
            kept = fold == f
            statistics.add(Batch(*(column[kept] for column in batch)))
        start += batch.rounds
        report(batch.rounds)
    return [statistics.packed() for statistics in folds]


def cross_fitted(
    view: View, parts: list[LogPart], ridge: float, engine: Engine, progress: Callable[[int], None]
) -> tuple[list[RewardModel], list[HybridRidge]] | None:
    """For every fold the model fitted on the others, and its estimator; None if there are no rounds to fit one to."""
    layout = parts[0].layout
    folds = [Statistics(view) for _ in range(layout.folds)]
    for part in in_order(engine, fold_part, parts, progress):
        for statistics, packed in zip(folds, part, strict=True):
            statistics.merge(packed)
    models, estimators = [], []
    for f in range(layout.folds):
        others = Statistics(view)
        for h, statistics in enumerate(folds):
            if h != f:
                others.merge(statistics.packed())
        if not others.rounds:
            return None
        model, estimator = ridge_model(others, ridge=ridge)
        models.append(model)
        estimators.append(estimator)
    return models, estimators


def stacked(models: Sequence[RewardModel], view: View) -> tuple[FloatArray, FloatArray]:
    """`RewardModel.per_group` of several models: weights (models, groups, m) and constants (models, groups)."""
    per_model = [model.per_group(view) for model in models]
    return np.stack([weights for weights, _ in per_model]), np.stack([constant for _, constant in per_model])


# ------------------------------------------------------------------ the influence of a row on dm


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


@kernel
def add_influence(  # type: ignore[no-untyped-def]
    entry, reward, known, group, weights, constant, slopes, offsets, fold, start, size, sums
):  # fmt: skip
    """sums[policy, block] += c_s of every round (see the module); (slopes, offsets)[policy, fold] stand for g_fold.

    known: (u, p) of what was shown.
    """
    for t in range(entry.shape[0]):
        if entry[t] < 0:
            continue
        f, g = fold[t], group[entry[t]]
        error = reward[t] - constant[f, g]
        for i in range(known.shape[1]):
            error -= known[t, i] * weights[f, g, i]
        for j in range(slopes.shape[0]):
            slope = offsets[j, f, g]
            for i in range(known.shape[1]):
                slope += known[t, i] * slopes[j, f, g, i]
            sums[j, (start + t) // size] += slope * error


@kernel
def spread_features(code, du, sums, group_vector, group_arm, vectors, x, own):  # type: ignore[no-untyped-def]
    """Phi from the sums of (u, p, 1) by group: x (d1,), own (arms, d2)."""
    m = sums.shape[1] - 1
    some_x, some_z = np.zeros(x.shape[0]), np.zeros(own.shape[1])
    for g in range(sums.shape[0]):
        fill(code, sums[g, :du], sums[g, du:m], vectors[group_vector[g]], sums[g, m], some_x, some_z)
        for k in range(x.shape[0]):
            x[k] += some_x[k]
        for k in range(own.shape[1]):
            own[group_arm[g], k] += some_z[k]


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
    for f, estimator in enumerate(estimators):
        x, own = np.zeros(view.d1), np.zeros((len(view.names), view.d2))
        spread_features(
            view.map.code, view.map.user, features[f], view.group_vector, view.group_arm, view.vectors, x, own
        )
        moved.append(solve(estimator, x, own, view.names))
    slopes = []
    for h in range(len(estimators)):
        theta = sum((moved[f][0] for f in range(len(moved)) if f != h), np.zeros(view.d1))
        beta = sum((moved[f][1] for f in range(len(moved)) if f != h), np.zeros((len(view.names), view.d2)))
        slopes.append(RewardModel(map=view.map, theta=theta, beta=beta, names=view.names))
    return tuple(slopes)


def influence_part(task: LogPart, report: Report) -> tuple[int, FloatArray]:
    """The first block of a part, and the sums of c by block for every policy."""
    view, layout = view_of(**task.view), task.layout
    weights, constant = stacked(task.models, view)
    per_policy = [stacked(models, view) for models in task.slopes]
    slopes, offsets = np.stack([slope for slope, _ in per_policy]), np.stack([offset for _, offset in per_policy])
    blocks = layout.touched(task.start, task.stop)
    sums = np.zeros((len(task.slopes), len(blocks)))
    start = task.start
    for batch in view.log.batches(task.start, task.stop):
        at = start - layout.first - blocks.start * layout.size
        add_influence(
            view.shown(batch), batch.reward, view.user_and_pair(batch), view.group, weights, constant, slopes, offsets,
            layout.fold(start, batch.rounds), at, layout.size, sums,
        )  # fmt: skip
        start += batch.rounds
        report(batch.rounds)
    return blocks.start, sums
