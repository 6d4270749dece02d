"""The eigenvalues behind the diversity assumption, measured on a policy's design matrix.

The paper's guarantees rest on lambda_min(V_t) growing like t, lambda_min(W_i,t) like the pulls of arm i, and
sigma_max(B_i,t) like their square root. Then M_t is close to its block diagonal U_t: U_t^-1/2 M_t U_t^-1/2 = I + A_t,
where A_t has the blocks Z_t = [V_t^-1/2 B_1,t W_1,t^-1/2 ..] off its diagonal and the eigenvalues +-sigma(Z_t).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.estimators.eigenvalues import coupling, largest_ratio, smallest
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.memories import MemoryMixture
from hybandits.policies.base import Policy
from hybandits.policies.ridge_policy import RidgePolicy
from hybandits.policies.ucb import DisLinUCB


def measure(policy: Policy, arms: int, ridge: float | None = None) -> dict[str, Any] | None:
    """Measure the design matrix of a policy.

    Parameters
    ----------
    policy : Policy
        It has played arms 0..arms-1.
    arms : int
        The number of arms.
    ridge : float, optional
        The ridge to measure with, whatever the policy's own. Policies that learn their ridges need it.

    Returns
    -------
    dict or None
        None if the policy keeps no design matrix, or one whose ridge differs from feature to feature because it is
        learned and no ridge is given, or if it forgets. Otherwise numbers:

        - lambda_min_v: lambda_min(V_t), ridge included;
        - rho_x, rho_z: lambda_min of the mean of x x' and of z z' over all rows learned, which is the rho of the
          diversity assumption as the run shows it;
        - z_norm: sigma_max(Z_t), how much the arms' blocks are coupled with the shared one;

        and arrays with one entry per arm: pulls, lambda_min_w = lambda_min(W_i,t), sigma_max_b = sigma_max(B_i,t).

    Notes
    -----
    `DisLinUCB` keeps one matrix M_i,t per arm. For it lambda_min_v is NaN, lambda_min_w is lambda_min(M_i,t), and
    z_norm is the largest over arms.
    """
    if not isinstance(policy, RidgePolicy) or isinstance(policy.estimator, MemoryMixture):
        return None
    estimator = policy.estimator
    if isinstance(estimator, LearnedRidge) and (ridge is None or estimator.memory is not None):
        return None
    ids = range(arms)
    t = max(estimator.rounds, 1)
    if ridge is None:
        ridge = estimator.ridge
        v, b, w, eliminated = estimator.design(ids)
    else:
        v, b, w = estimator.second_moments(ids)
        v, w = v + ridge * np.eye(len(v)), w + ridge * np.eye(w.shape[1])
        eliminated = (b @ np.linalg.solve(w, b.swapaxes(1, 2))).sum(axis=0)
    pulls = np.array([estimator.pulls_of(i) if estimator.knows(i) else 0 for i in ids])
    if isinstance(policy, DisLinUCB):
        d1 = policy.d1
        whole = w
        v, b, w = whole[:, :d1, :d1], whole[:, :d1, d1:], whole[:, d1:, d1:]
        rows = (whole - ridge * np.eye(whole.shape[1])).sum(axis=0)
        shared, own = rows[:d1, :d1], rows[d1:, d1:]
        lambda_min_v, lambda_min_w = np.nan, smallest(whole)
        z_norm = max(coupling(v[i], b[i], w[i]) for i in ids)
    else:
        shared = v - ridge * np.eye(len(v))
        own = (w - ridge * np.eye(w.shape[1])).sum(axis=0)
        lambda_min_v, lambda_min_w = float(smallest(v)), smallest(w)
        z_norm = np.sqrt(largest_ratio(eliminated, v))
    return {
        "lambda_min_v": lambda_min_v,
        "rho_x": float(smallest(shared)) / t,
        "rho_z": float(smallest(own)) / t,
        "z_norm": float(z_norm),
        "pulls": pulls,
        "lambda_min_w": lambda_min_w,
        "sigma_max_b": np.linalg.norm(b, 2, axis=(1, 2)) if b.shape[1] and b.shape[2] else np.zeros(arms),
    }
