"""The hybrid model fitted to a log exactly, and policies taught what is in it.

`collect` sums up the rounds of a log; from these statistics come `least_squares`, `ridge_model` and `warm_start`. A
policy that cannot learn from sums learns the log round by round with `learn_log`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybandits.estimators.ridge import HybridRidge
from hybandits.evaluation.collect import Statistics, collect
from hybandits.evaluation.reward_model import RewardModel
from hybandits.evaluation.view import View
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Batch, LogError
from hybandits.policies.base import Policy
from hybandits.policies.ridge_policy import RidgePolicy

__all__ = [
    "RCOND",
    "Fitted",
    "Statistics",
    "collect",
    "learn_log",
    "least_squares",
    "ridge_model",
    "warm_start",
]

RCOND = 1e-5
"""Directions weaker than this, relative to the strongest one, count as absent. Click logs give features to six
decimals, so sums that should be exactly 1 are off by 1e-6, and a fit in such a direction would be a fit to rounding."""


# ------------------------------------------------------------------ models


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A least squares fit.

    Attributes
    ----------
    model : RewardModel
        The model.
    rounds : int
        Rounds that it was fitted to.
    parameters, rank : int
        Parameters of the model, and how many of them (or combinations of them) the rounds determine.
    residual : float
        The standard deviation of the residuals.
    """

    model: RewardModel
    rounds: int
    parameters: int
    rank: int
    residual: float


def least_squares(statistics: Statistics, *, rcond: float = RCOND) -> Fitted:
    """The hybrid model that minimises the sum of squares; of all such models the one of least norm.

    Parameters
    ----------
    statistics : Statistics
        The rounds, as collected by `collect`.
    rcond : float
        Directions weaker than this, relative to the strongest one, count as absent.

    Returns
    -------
    Fitted
        The model, and what is known of the fit.

    Notes
    -----
    Arm by arm, the singular value decomposition of its z-part splits the arm's rows into those that determine
    beta_i given theta, and the rest, which says nothing of beta_i and goes to the shared problem. With P_i = Z_i^+ T_i
    the solutions are theta = theta_0 + N a for any a, beta_i = beta_i(theta_0) - P_i N a, N spanning what nothing
    determines; a minimises |theta|^2 + sum |beta_i|^2, a problem of the size of N. Time and memory are linear in the
    number of arms.

    Examples
    --------
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     fitted = least_squares(collect(View(log)))
    >>> fitted.parameters, fitted.rank, round(fitted.residual, 2)
    (192, 50, 0.28)
    >>> fitted.model.theta.shape
    (36,)
    """
    rcond = checks.positive("rcond", rcond, "it is the relative size below which a direction counts as absent")
    if statistics.rounds == 0:
        raise LogError("There are no rounds to fit the model to. Collect statistics of at least one round.")
    view = statistics.view
    rows, noise = statistics.rows().explicable()
    d1, d2 = view.d1, view.d2
    order = np.argsort(rows.arm, kind="stable")
    arm, starts = np.unique(rows.arm[order], return_index=True)
    solved: list[tuple[int, FloatArray, FloatArray]] = []
    rest = np.zeros((0, d1 + 1))
    rank = 0
    for a, part in zip(arm, np.split(order, starts[1:])[: len(arm)], strict=True):
        own = np.column_stack([rows.z[part], rows.x[part], rows.reward[part]])
        if len(own) > own.shape[1]:
            own = _factor(own)
        if d2:
            left, values, right = np.linalg.svd(own[:, :d2], full_matrices=True)
            k = int((values > rcond * values[0]).sum()) if len(values) and values[0] > 0 else 0
            turned = left.T @ own[:, d2:]
            solve = right[:k].T / values[:k] @ turned[:k]  # Z^+ (T | q)
            solved.append((int(a), solve[:, :d1], solve[:, d1]))
            own, rank = turned[k:], rank + k
        rest = _compact(np.vstack([rest, own]), d1 + 1)
    theta, null = np.zeros(d1), np.zeros((d1, 0))
    missed = rest[:, d1]
    if d1:
        left, values, right = np.linalg.svd(rest[:, :d1], full_matrices=True)
        largest = math.sqrt(max(float(np.linalg.eigvalsh(rows.x.T @ rows.x)[-1]), 0.0))
        k = int((values > rcond * largest).sum())
        theta = right[:k].T @ (left.T[:k] @ rest[:, d1] / values[:k])
        null, rank = right[k:].T, rank + k
        missed = rest[:, d1] - rest[:, :d1] @ theta
    beta = np.zeros((len(view.names), d2))
    if null.shape[1]:
        normal = np.column_stack([null, -theta])
        for _, slope, constant in solved:
            normal = _compact(np.vstack([normal, np.column_stack([slope @ null, constant - slope @ theta])]),
                              null.shape[1] + 1)  # fmt: skip
        theta = theta + null @ np.linalg.lstsq(normal[:, :-1], normal[:, -1], rcond=None)[0]
    for a, slope, constant in solved:
        beta[a] = constant - slope @ theta
    squares = noise + float(missed @ missed)
    model = RewardModel(map=view.map, theta=theta, beta=beta, names=view.names)
    parameters = d1 + d2 * len(arm)
    degrees = max(statistics.rounds - rank, 1)
    return Fitted(
        model=model, rounds=statistics.rounds, parameters=parameters, rank=rank, residual=math.sqrt(squares / degrees)
    )


def _compact(rows: FloatArray, columns: int) -> FloatArray:
    """The triangular factor of the rows, once it is much smaller than the rows."""
    return _factor(rows) if len(rows) > 4 * columns else rows


def _factor(rows: FloatArray) -> FloatArray:
    factor: FloatArray = np.asarray(np.linalg.qr(rows, mode="r"))
    return factor


def ridge_model(statistics: Statistics, *, ridge: float = 1.0) -> tuple[RewardModel, HybridRidge]:
    """The hybrid ridge model of some rounds, and the estimator behind it."""
    view = statistics.view
    rows, _ = statistics.rows().explicable()
    estimator = HybridRidge(d1=view.d1, d2=view.d2, ridge=ridge)
    names = [view.names[a] for a in rows.arm]
    estimator.learn_batch(names, rows.x, rows.z, rows.reward)
    beta = np.zeros((len(view.names), view.d2))
    known = estimator.learned
    for i, name in enumerate(view.names):
        if name in known:
            beta[i] = estimator.beta(name)
    return RewardModel(map=view.map, theta=estimator.theta, beta=beta, names=view.names), estimator


# ------------------------------------------------------------------ policies


def warm_start(policy: Policy, statistics: Statistics) -> None:
    """Teach a policy everything in the statistics, as if it had learned the rounds one by one (up to rounding).

    A policy that learns its settings ends up as if it had learned the rounds one by one and `refresh` had been called.

    Parameters
    ----------
    policy : Policy
        A policy with d1 and d2 of the view. It must learn from sums (`Policy.learns_from_sums`), as all policies do
        whose estimator is a ridge regression; for the others there is `learn_log`.
    statistics : Statistics
        The rounds, as collected by `collect`.

    Examples
    --------
    >>> from hybandits import HyIDS
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     view = View(log)
    ...     policy = HyIDS(d1=view.d1, d2=view.d2, seed=0)
    ...     warm_start(policy, collect(view))
    >>> policy.rounds
    500
    """
    view = statistics.view
    if (policy.d1, policy.d2) != (view.d1, view.d2):
        raise ValueError(
            f"the policy has d1 = {policy.d1}, d2 = {policy.d2}, but the features of the log have d1 = {view.d1}, "
            f"d2 = {view.d2}: construct the policy with d1={view.d1}, d2={view.d2}"
        )
    if not policy.learns_from_sums:
        raise TypeError(f"{type(policy).__name__} cannot learn from sums: use learn_log, which goes round by round")
    assert isinstance(policy, RidgePolicy)
    rows = statistics.rows()
    policy.learn_summary(
        [view.names[a] for a in rows.arm], rows.x, rows.z, rows.reward, pulls=statistics.pulls(),
        moments=statistics.moments(),
    )  # fmt: skip


def learn_log(
    policy: Policy, view: View, start: int = 0, stop: int | None = None, *,
    progress: Callable[[int], None] = lambda rounds: None,
) -> None:  # fmt: skip
    """Teach a policy the rounds start..stop-1 of a log one by one, for policies that cannot learn from sums."""
    for batch in view.log.batches(start, stop):
        for first in range(0, batch.rounds, 4096):
            piece = batch.part(first, first + 4096)
            inside = view.shown(piece) >= 0
            arms, x, z = view.rows(Batch(*(column[inside] for column in piece)))
            policy.learn_batch(arms, x, z, piece.reward[inside])
            progress(piece.rounds)
