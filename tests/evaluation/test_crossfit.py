"""The influence of single rewards on dm, and the parts of cross-fitting against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits.evaluation import EvaluationPlan, fit
from hybandits.evaluation.parts import BlockLayout
from hybandits.evaluation.passes import add_features, solve
from hybandits.evaluation.view import View
from tests.support.evaluation import Plain


def test_dm_moves_as_its_influence_says(view: View) -> None:
    """Shift one reward by a little: dm moves by c_s / e_s, exactly, the fit being linear in rewards."""
    plain = Plain(view, lambda x, z, arms: np.full(len(arms), 1 / len(arms)))
    n = plain.n
    fold = (np.arange(n) // BlockLayout.of(0, n, 2).fold_rounds) % 2

    def dm() -> float:
        models = plain.models(fold, 1.0)
        return float(np.mean([plain.mixed[t] @ models[fold[t]][1] for t in range(n)]))

    before, models = dm(), plain.models(fold, 1.0)
    gathered = EvaluationPlan(view, {"it": "uniform"}, estimators=["dm"]).gather()
    for s in (0, 123, n - 1):
        error = plain.reward[s] - plain.rows[s] @ models[fold[s]][1]
        plain.reward[s] += 1.0
        moved = dm() - before
        plain.reward[s] -= 1.0
        assert moved * n == pytest.approx(gathered.policies[0].influence[s] / error, rel=1e-6)


@pytest.mark.parametrize("features", ["das", "disjoint", "li+pair:xz"])
def test_solve_is_the_dense_solve(pair_view: View, features: str) -> None:
    view = View(pair_view.log, features=features)
    _, estimator = fit.ridge_model(fit.collect(view), ridge=0.7)
    plain = Plain(view, lambda x, z, arms: np.zeros(len(arms)))
    matrix = plain.rows.T @ plain.rows + 0.7 * np.eye(plain.rows.shape[1])
    random = np.random.default_rng(0)
    x, own = random.normal(size=view.d1), random.normal(size=(len(view.names), view.d2))
    theta, beta = solve(estimator, x, own, view.names)
    expected = np.linalg.solve(matrix, np.concatenate([x, own.ravel()]))
    np.testing.assert_allclose(np.concatenate([theta, beta.ravel()]), expected, rtol=1e-8, atol=1e-12)


def test_an_arm_without_rows_is_not_moved(view: View) -> None:
    statistics = fit.collect(view)
    _, estimator = fit.ridge_model(statistics)
    names = [*view.names, "new"]
    own = np.ones((len(names), view.d2))
    _, beta = solve(estimator, np.ones(view.d1), own, names)
    assert (beta[-1] == 0).all()
    assert (beta[:-1] != 0).all()


@pytest.mark.parametrize("features", ["das", "disjoint", "li+pair:xz"])
def test_features_of_a_policy_plain_and_compiled(pair_view: View, features: str) -> None:
    """Phi from sums of (u, p, 1) per group is the sum of the policy's mean features."""
    view = View(pair_view.log, features=features)
    plain = Plain(view, lambda x, z, arms: np.full(len(arms), 1 / len(arms)))
    (batch,) = view.log.batches()
    counts, first = view.sizes[batch.pool], view.offsets[batch.pool]
    pi = np.where(np.arange(counts.max()) < counts[:, None], 1 / counts[:, None], 0.0)
    for add in (add_features, add_features.py_func):
        sums = np.zeros((1, len(view.group_arm), view.map.user_and_pair + 1))
        add(pi, counts, batch.user, view.pair(batch), first, view.group, np.zeros(batch.rounds, int), sums)
        x, z = view.features(sums[0, :, :-1], sums[0, :, -1], view.group_vector)
        own = np.zeros((len(view.names), view.d2))
        np.add.at(own, view.group_arm, z)
        expected = plain.mixed.sum(axis=0)
        np.testing.assert_allclose(np.concatenate([x.sum(axis=0), own.ravel()]), expected, rtol=1e-9, atol=1e-9)
