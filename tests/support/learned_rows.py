"""Estimators that learn their settings, taught rows one by one, and what they have learned."""

from __future__ import annotations

import numpy as np

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import empirical_bayes, evidence
from tests.support.learned_oracle import Rows, Scales


def taught(rows: Rows, **held: float | None) -> LearnedRidge:
    estimator = LearnedRidge(d1=rows.x.shape[1], d2=rows.z.shape[1], **held)
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        estimator.learn(arm, x, z, reward)
    return estimator


def scales_of(estimator: LearnedRidge) -> Scales:
    numbers = estimator.numbers
    s2 = numbers[evidence.HEAD : evidence.HEAD + estimator.d2].copy()
    return Scales(
        float(numbers[evidence.SIGMA2]), float(numbers[evidence.S1]) or 1.0, s2, float(numbers[evidence.SM]) or 1.0
    )


def settings(estimator: LearnedRidge) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in scales_of(estimator)] + [estimator.common_mean])


def remake(estimator: LearnedRidge) -> None:
    """Make the factors to play with from the data, at the ridges that they have now."""
    d1, d2 = estimator.d1, estimator.d2
    empirical_bayes.begin_sweep(d1, d2, estimator.arrays)
    estimator.state[[empirical_bayes.PHASE, empirical_bayes.CURSOR, empirical_bayes.END]] = (
        1,
        0,
        estimator.state[empirical_bayes.COUNT],
    )
    while estimator.state[empirical_bayes.PHASE]:
        empirical_bayes.advance(d1, d2, estimator.arrays, estimator.held, empirical_bayes.BUDGET)
