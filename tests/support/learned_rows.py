"""Estimators that learn their settings, taught rows one by one, and what they have learned."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import empirical_bayes
from tests.support.learned_oracle import Rows, Scales


def taught(rows: Rows, **fixed: Any) -> LearnedRidge:
    estimator = LearnedRidge(d1=rows.x.shape[1], d2=rows.z.shape[1], **fixed)
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        estimator.learn(arm, x, z, reward)
    return estimator


def learn_slowly(
    estimator: LearnedRidge, arm: Hashable, x: np.ndarray, z: np.ndarray, reward: float, budget: float = 1.0
) -> None:
    """Learn a row with a small budget: a refresh then advances by one step or one arm."""
    model = estimator.models[0]
    if empirical_bayes.learn_with_settings(estimator.slot_for(arm), x, z, reward, model.arrays) == 2:
        model.continue_refresh(budget)
    estimator.rounds += 1


def finish(estimator: LearnedRidge, budget: float = np.inf) -> None:
    """Bring a refresh that is under way to its end."""
    while state(estimator).phase:
        estimator.models[0].continue_refresh(budget)


def state(estimator: LearnedRidge) -> Any:
    return estimator.models[0].state


def saved(estimator: LearnedRidge) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in estimator.pack()[1].items()}


def scales_of(estimator: LearnedRidge) -> Scales:
    now, features = state(estimator), estimator.models[0].arrays.features
    known = np.where(features["scale"] > 0, features["scale"], 1.0)
    s1, sm = np.split(known, [estimator.d1])
    return Scales(float(now.sigma2), s1, np.array(features["s2"][estimator.d1 :]), sm)


def settings(estimator: LearnedRidge) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in scales_of(estimator)] + [estimator.models[0].common_mean])


def prior_of(estimator: LearnedRidge) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ridges of theta, the inverse covariance of an arm's parameters in units of sigma^2, and their mean."""
    model, d2 = estimator.models[0], estimator.d2
    triangle = np.zeros((d2, d2))
    triangle[np.triu_indices(d2)] = model.arrays.prior
    return model.arrays.features["ridge"][: estimator.d1].copy(), triangle.T @ triangle, model.common_mean


def rebuild(estimator: LearnedRidge) -> None:
    """Build the posterior factors from the data, at the ridges that they have now."""
    arrays = estimator.models[0].arrays
    empirical_bayes.begin_rebuilding(estimator.d1, estimator.d2, arrays)
    estimator.models[0].state.phase = 1
    finish(estimator)
