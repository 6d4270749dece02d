"""Measures of the design matrix behind the diversity assumption, and of how well confidence sets cover the truth.

The paper's guarantees need that M_t is close to its block diagonal U_t: U_t^-1/2 M_t U_t^-1/2 = I + A_t, where A_t has
the blocks Z_t = [V_t^-1/2 B_1,t W_1,t^-1/2 ..] off its diagonal and the eigenvalues +-sigma(Z_t). Measures:

- lambda_min_v: lambda_min(V_t), ridge included; NaN for `DisLinUCB`, which has one matrix M_i,t per arm;
- rho_x, rho_z: lambda_min of the mean of x x' and of z z' over all rows, the rho of the assumption;
- z_norm: sigma_max(Z_t); for `DisLinUCB` the largest over arms;
- mean_x, mean_z: norms of the means of x and z; mean_xz: sigma_max of the mean of x z' over all rows, whatever the arm;
- ellipsoid, outside: see `coverage`;
- for every arm: pulls, lambda_min_w = lambda_min(W_i,t), or of M_i,t, and the largest singular value and the Frobenius
  norm of B_i,t, sigma_max_b and frobenius_b.
"""

import math
from typing import Any

import numpy as np

from hybandits.estimators.eigenvalues import coupling, largest_ratio, smallest
from hybandits.estimators.exploration import Constant
from hybandits.estimators.learned import LearnedRidge
from hybandits.foundation.checks import FloatArray
from hybandits.policies.base import Policy, RidgePolicy
from hybandits.policies.ucb import DisLinUCB, UCBPolicy
from hybandits.simulation.loops import Picks
from hybandits.simulation.rounds import Block, Rounds


class DesignMatrix:
    """Sums of (x, z, 1) (x, z, 1)' over the rows that a policy plays, arm by arm; arms are numbered 0, 1, .."""

    def __init__(self, d1: int, d2: int, arms: int) -> None:
        self.d1 = d1
        self._sums = np.zeros((arms, d1 + d2 + 1, d1 + d2 + 1))

    def add(self, rounds: Rounds, picks: Picks) -> None:
        """Add the rows of some rounds; features must be stored, and the candidates' ids be the arms' numbers."""
        t = np.arange(len(picks))
        rows = np.concatenate((rounds.x[t, picks], rounds.z[t, picks], np.ones((len(t), 1))), axis=1)
        arms = rounds.index[t, picks]
        for arm in np.unique(arms):
            of_arm = rows[arms == arm]
            self._sums[arm] += of_arm.T @ of_arm

    def measures(self, ridge: float, *, disjoint: bool) -> dict[str, Any]:
        """Return all measures but those of `coverage`; the matrices of `DisLinUCB` are `disjoint`."""
        d1, rows, first, pulls = self.d1, self._sums[:, :-1, :-1], self._sums[:, -1, :-1], self._sums[:, -1, -1]
        t = max(pulls.sum(), 1.0)
        mean, second = first.sum(axis=0) / t, rows.sum(axis=0) / t
        if disjoint:
            spectrum = _disjoint_spectrum(rows + ridge * np.eye(rows.shape[1]), d1, ridge, t)
        else:
            v, b = t * second[:d1, :d1] + ridge * np.eye(d1), rows[:, :d1, d1:]
            w = rows[:, d1:, d1:] + ridge * np.eye(rows.shape[1] - d1)
            eliminated = (b @ np.linalg.solve(w, b.swapaxes(1, 2))).sum(axis=0)
            spectrum = _spectrum(v, b, w, eliminated, ridge, t)
        moments = {"mean_x": mean[:d1], "mean_z": mean[d1:], "mean_xz": second[:d1, d1:]}
        return {**spectrum, **{name: _largest(moment) for name, moment in moments.items()}, "pulls": pulls.astype(int)}


def known_ridge(policy: Policy) -> float | None:
    """Return the ridge of a policy's design matrix; None if it has no such matrix, or learns several ridges."""
    known = isinstance(policy, RidgePolicy) and not isinstance(policy.estimator, LearnedRidge)
    return policy.ridge if known else None  # type: ignore[attr-defined]


def measure_estimator(policy: Policy, arms: int) -> dict[str, Any] | None:
    """Measure the design matrix of a policy's estimator, without moments; None if it has none with one known ridge."""
    if not isinstance(policy, RidgePolicy) or known_ridge(policy) is None:
        return None
    estimator = policy.estimator
    v, b, w, eliminated = estimator.design(range(arms))
    t = max(estimator.rounds, 1)
    if isinstance(policy, DisLinUCB):
        return _disjoint_spectrum(w, policy.d1, estimator.ridge, t)
    return _spectrum(v, b, w, eliminated, estimator.ridge, t)


def _spectrum(
    v: FloatArray, b: FloatArray, w: FloatArray, eliminated: FloatArray, ridge: float, t: float
) -> dict[str, Any]:
    """Eigenvalues of V, W_i (ridge included) and B_i; `eliminated` is sum_i B_i W_i^-1 B_i'."""
    return {
        "lambda_min_v": float(smallest(v)),
        "rho_x": float(smallest(v - ridge * np.eye(len(v)))) / t,
        "rho_z": float(smallest((w - ridge * np.eye(w.shape[1])).sum(axis=0))) / t,
        "z_norm": math.sqrt(largest_ratio(eliminated, v)),
        "lambda_min_w": smallest(w),
        **_norms(b),
    }


def _disjoint_spectrum(matrices: FloatArray, d1: int, ridge: float, t: float) -> dict[str, Any]:
    """The same of every arm's own matrix, ridge included."""
    v, b, w = matrices[:, :d1, :d1], matrices[:, :d1, d1:], matrices[:, d1:, d1:]
    rows = (matrices - ridge * np.eye(matrices.shape[1])).sum(axis=0)
    return {
        "lambda_min_v": np.nan,
        "rho_x": float(smallest(rows[:d1, :d1])) / t,
        "rho_z": float(smallest(rows[d1:, d1:])) / t,
        "z_norm": float(max(map(coupling, v, b, w))),
        "lambda_min_w": smallest(matrices),
        **_norms(b),
    }


def _norms(b: FloatArray) -> dict[str, FloatArray]:
    return {
        "sigma_max_b": np.array([_largest(part) for part in b]),
        "frobenius_b": np.linalg.norm(b, axis=(1, 2)),
    }


def _largest(part: FloatArray) -> float:
    """The norm of a vector, or the largest singular value of a matrix; 0 for empty ones."""
    return float(np.linalg.norm(part, 2)) if part.size else 0.0


def coverage(policy: Policy, theta: FloatArray, beta: FloatArray, block: Block) -> dict[str, float]:
    """Compare a policy's confidence sets with the true parameters; NaN for policies without such sets.

    - ellipsoid: |phi - phi*|_M / gamma of all parameters phi, above 1 outside the set; for `DisLinUCB`, which has a set
      for every arm, the largest over arms;
    - outside: the share of the last round's candidates whose mean lies beyond gamma widths of the estimate.
    """
    if not isinstance(policy, UCBPolicy) or isinstance(policy.exploration, Constant):
        return {"ellipsoid": np.nan, "outside": np.nan}
    ids = range(len(beta))
    v, b, w, _ = policy.estimator.design(ids)
    own = np.array([policy.beta(i) for i in ids])
    gamma = policy.radii(policy.estimator.lookup(ids))
    if isinstance(policy, DisLinUCB):
        own -= np.concatenate((np.tile(theta, (len(beta), 1)), beta), axis=1)
        squares = np.einsum("ia,iab,ib->i", own, w, own) / gamma**2
    else:
        own, shared = own - beta, policy.theta - theta
        squares = np.einsum("ia,iab,ib->i", own, w, own) + 2 * np.einsum("a,iab,ib->i", shared, b, own)
        squares = (squares.sum() + shared @ v @ shared) / gamma**2
    rounds, means, _ = block
    x, z = rounds.features(-1)
    candidates = rounds.index[-1, : len(x)]
    mean, width = policy.predict(x, z, candidates.tolist())
    outside = np.abs(mean - means[-1, : len(x)]) > gamma[candidates] * width
    return {"ellipsoid": math.sqrt(max(float(squares.max()), 0.0)), "outside": float(outside.mean())}
