"""Models and policies fitted to a log exactly.

Given an arm and its vector, features are linear in (u, 1), or (u, p, 1) with pair features p of the arm shown. So the
rows of the triangular factor R of the rows (u, 1, r) of a group (see `View`) stand for all its rows. Rows are rotated
in, never squared, so no digits are lost. Policies that learn their settings also need counts of features that are not
0, and the mean and the spread of the rewards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from hybandits.engines import Engine, Report, SerialEngine
from hybandits.estimators.learned import Moments
from hybandits.estimators.ridge import HybridRidge
from hybandits.evaluation.log_world import RewardModel
from hybandits.evaluation.parts import Part, in_order, parts_of, round_range
from hybandits.evaluation.view import View, view_of
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.logs.store import Batch, LogError
from hybandits.policies.base import Policy, RidgePolicy

RCOND = 1e-5
"""Directions weaker than this, relative to the strongest one, count as absent. Click logs give features to six
decimals, so sums that should be exactly 1 are off by 1e-6, and a fit in such a direction would be a fit to rounding."""


class Statistics:
    """The rounds of a log summed up for the model, by group of the view.

    `seen` counts the rounds in which each feature of (u, p) was not 0. `reward_spread` is the sum of squared deviations
    of rewards from their mean, `left_out` counts rounds whose arm is not among the candidates as the view has them.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        size = view.map.user_and_pair + 2
        self.triangles: FloatArray = np.zeros((len(view.group_arm), size, size))
        self.counts = np.zeros(len(view.group_arm), np.int64)
        self.seen = np.zeros((len(view.group_arm), view.map.user_and_pair), np.int64)
        self.reward_mean = self.reward_spread = 0.0
        self.left_out = 0

    @property
    def rounds(self) -> int:
        return int(self.counts.sum())

    def add(self, batch: Batch) -> None:
        entries = self.view.shown(batch)
        groups = np.where(entries >= 0, self.view.group[entries], -1)
        self.left_out += int((entries < 0).sum())
        rewards = batch.reward[entries >= 0]
        if len(rewards):
            shifted = rewards - rewards[0]  # exactly 0 where all rewards are the same
            mean = float(shifted.mean())
            self._add_moments(len(rewards), float(rewards[0]) + mean, float(((shifted - mean) ** 2).sum()))
        rotate_rounds(self.view.user_and_pair(batch), batch.reward, groups, self.triangles, self.counts, self.seen)

    def _add_moments(self, more: int, mean: float, spread: float) -> None:
        """Update the mean and the spread of rewards; their rounds must not have been counted yet."""
        rounds = self.rounds
        difference = mean - self.reward_mean
        self.reward_mean += difference * more / (rounds + more)
        self.reward_spread += spread + difference**2 * rounds * more / (rounds + more)

    def merge(self, other: PackedStatistics) -> None:
        """Add the statistics of other rounds of the same view."""
        for g, triangle in zip(other.groups, other.triangles, strict=True):
            for row in triangle.copy():
                rotate(row, self.triangles[g])
        if len(other.groups):
            self._add_moments(int(other.counts.sum()), other.reward_mean, other.reward_spread)
        self.counts[other.groups] += other.counts
        self.seen[other.groups] += other.seen
        self.left_out += other.left_out

    def packed(self) -> PackedStatistics:
        """The statistics of the groups that have rounds, as `merge` takes them."""
        groups = np.flatnonzero(self.counts)
        return PackedStatistics(
            groups, self.triangles[groups], self.counts[groups], self.seen[groups], self.reward_mean,
            self.reward_spread, self.left_out,
        )  # fmt: skip

    def rows(self) -> Summary:
        """Rows with the same least squares problem as all rounds; their number does not grow with the rounds."""
        view, groups = self.view, np.flatnonzero(self.counts)
        size = view.map.user_and_pair + 2
        rows = self.triangles[groups].reshape(-1, size)
        x, z = view.features(rows[:, :-2], rows[:, -2], np.repeat(view.group_vector[groups], size))
        return Summary(np.repeat(view.group_arm[groups], size), x, z, rows[:, -1])

    def moments(self) -> Moments:
        """Counts and sums of features and moments of rewards, which do not follow from `rows`.

        Features of the counts of u and p and of v != 0 are the counts of x and z, and features of sums are their sums.
        """
        view, groups, m = self.view, np.flatnonzero(self.counts), self.view.map.user_and_pair

        def total(known: FloatArray, vectors: FloatArray) -> FloatArray:
            counts = self.counts[groups].astype(float)
            x, z = view.features(known, counts, view.group_vector[groups], vectors)
            return np.concatenate([x.sum(axis=0), z.sum(axis=0)])

        seen = total(self.seen[groups].astype(float), (view.vectors != 0).astype(float))
        # Sums of 1 (u, p): a column of R'R.
        columns = np.array([self.triangles[g, :, :m].T @ self.triangles[g, :, m] for g in groups]).reshape(-1, m)
        sums = total(columns, view.vectors)
        return Moments(np.rint(seen).astype(np.int64), sums, self.reward_mean, self.reward_spread)

    def pulls(self) -> dict[Hashable, int]:
        """The number of rounds of every arm that has any."""
        counts = np.bincount(self.view.group_arm, self.counts, len(self.view.names)).astype(int)
        return {self.view.names[a]: int(counts[a]) for a in np.flatnonzero(counts)}


class PackedStatistics(NamedTuple):
    """The attributes of `Statistics`, for the groups that have rounds."""

    groups: np.ndarray
    triangles: FloatArray
    counts: np.ndarray
    seen: np.ndarray
    reward_mean: float
    reward_spread: float
    left_out: int


class Summary(NamedTuple):
    """Rows that stand for many rounds: arm (index into the view's names), features and reward."""

    arm: np.ndarray
    x: FloatArray
    z: FloatArray
    reward: FloatArray

    def explicable(self) -> tuple[Summary, float]:
        """The rows that have features, and the part of sum r^2 that no feature can explain."""
        kept = self.x.any(axis=1) | self.z.any(axis=1)
        noise = self.reward[~kept]
        return Summary(*(column[kept] for column in self)), float(noise @ noise)


@kernel(inline=True)
def rotate(row, triangle):  # type: ignore[no-untyped-def]
    """Givens rotations that turn (R; row) into (R_new; 0), R_new'R_new = R'R + row row'."""
    m = row.shape[0]
    for k in range(m):
        b = row[k]
        if b == 0.0:
            continue
        a = triangle[k, k]
        h = math.sqrt(a * a + b * b)
        if h == 0.0:  # squares that underflow to 0
            continue
        c = a / h
        s = b / h
        triangle[k, k] = h
        for j in range(k + 1, m):
            t = triangle[k, j]
            triangle[k, j] = c * t + s * row[j]
            row[j] = c * row[j] - s * t


@kernel
def rotate_rounds(user, reward, groups, triangles, counts, seen):  # type: ignore[no-untyped-def]
    """Rotate (u, 1, r) of every round into the triangle of its group, and count; rounds of group -1 are left out."""
    n, du = user.shape
    row = np.empty(du + 2)
    for t in range(n):
        g = groups[t]
        if g >= 0:
            for i in range(du):
                row[i] = user[t, i]
                if row[i] != 0.0:
                    seen[g, i] += 1
            row[du] = 1.0
            row[du + 1] = reward[t]
            rotate(row, triangles[g])
            counts[g] += 1


def collect_part(task: Part, report: Report) -> PackedStatistics:
    view = view_of(task.view)
    statistics = Statistics(view)
    for batch in view.log.batches(task.start, task.stop):
        statistics.add(batch)
        report(batch.rounds)
    return statistics.packed()


def collect(
    view: View,
    start: int = 0,
    stop: int | None = None,
    *,
    engine: Engine | None = None,
    progress: Callable[[int], None] = lambda rounds: None,
) -> Statistics:
    """Statistics of rounds start..stop-1 for `least_squares`, `ridge_model` and `warm_start`, in one pass over them.

    Every engine gives the same bits. `progress` is called with the number of rounds done since the last call.
    """
    start, stop = round_range(view, start, stop)
    statistics = Statistics(view)
    for part in in_order(engine or SerialEngine(), collect_part, parts_of(view, start, stop), progress):
        statistics.merge(part)
    return statistics


class Fitted(NamedTuple):
    """A least squares fit."""

    model: RewardModel
    rounds: int
    parameters: int
    rank: int  # the number of parameters, or combinations of them, that the rounds determine
    residual: float  # the standard deviation of the residuals


def least_squares(statistics: Statistics) -> Fitted:
    """The hybrid model that minimises the sum of squares; of all such models the one of least norm.

    Directions weaker than RCOND, relative to the strongest one, count as absent.

    Notes
    -----
    Arm by arm, the singular value decomposition of its z-part splits the arm's rows into those that determine
    beta_i given theta, and the rest, which is free of beta_i and goes to the shared problem. With P_i = Z_i^+ T_i
    the solutions are theta = theta_0 + N a for any a, beta_i = beta_i(theta_0) - P_i N a, N spanning what nothing
    determines; a minimises |theta|^2 + sum |beta_i|^2. Time and memory are linear in the number of arms.
    """
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
            k = int((values > RCOND * values[0]).sum()) if len(values) and values[0] > 0 else 0
            turned = left.T @ own[:, d2:]
            solve = right[:k].T / values[:k] @ turned[:k]  # Z^+ (T | q)
            solved.append((int(a), solve[:, :d1], solve[:, d1]))
            own, rank = turned[k:], rank + k
        rest = _compact(np.vstack([rest, own]), d1 + 1)
    theta, null = np.zeros(d1), np.zeros((d1, 0))
    if d1:
        left, values, right = np.linalg.svd(rest[:, :d1], full_matrices=True)
        largest = math.sqrt(max(float(np.linalg.eigvalsh(rows.x.T @ rows.x)[-1]), 0.0))
        k = int((values > RCOND * largest).sum())
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
    residual = math.sqrt(squares / max(statistics.rounds - rank, 1))
    return Fitted(model, statistics.rounds, parameters=d1 + d2 * len(arm), rank=rank, residual=residual)


def _compact(rows: FloatArray, columns: int) -> FloatArray:
    """The triangular factor of the rows, once it is much smaller than the rows."""
    return _factor(rows) if len(rows) > 4 * columns else rows


def _factor(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(rows, mode="r"))


def ridge_model(statistics: Statistics, *, ridge: float = 1.0) -> tuple[RewardModel, HybridRidge]:
    """The hybrid ridge model of some rounds, and the estimator behind it."""
    view = statistics.view
    rows, _ = statistics.rows().explicable()
    estimator = HybridRidge(d1=view.d1, d2=view.d2, ridge=ridge)
    names = [view.names[a] for a in rows.arm]
    estimator.learn_batch(names, rows.x, rows.z, rows.reward)
    beta = np.zeros((len(view.names), view.d2))
    for a in np.unique(rows.arm):
        beta[a] = estimator.beta(view.names[a])
    return RewardModel(map=view.map, theta=estimator.theta, beta=beta, names=view.names), estimator


def warm_start(policy: Policy, statistics: Statistics) -> None:
    """Teach a policy everything in the statistics, as if it had learned the rounds one by one (up to rounding).

    The policy must learn from sums (`Policy.learns_from_sums`). One that learns its settings ends up as if `refresh`
    had been called, too.
    """
    view = statistics.view
    if (policy.d1, policy.d2) != (view.d1, view.d2):
        wrong = f"the policy has d1 = {policy.d1}, d2 = {policy.d2}, which the features of the log do not"
        raise ValueError(f"{wrong}: construct the policy with d1={view.d1}, d2={view.d2}")
    if not policy.learns_from_sums:
        raise TypeError(f"{type(policy).__name__} learns from its own choices, not from a log: use another policy")
    assert isinstance(policy, RidgePolicy)
    rows = statistics.rows()
    policy.learn_summary(
        [view.names[a] for a in rows.arm], rows.x, rows.z, rows.reward, pulls=statistics.pulls(),
        moments=statistics.moments(),
    )  # fmt: skip
