"""The rounds of a log summed up, in one pass and on any engine, for models and policies to be fitted to (`fit`).

Given an arm and its vector, features are linear in (u, 1), so all rows of a group (see `View`) are summed up by the
triangular factor R of their rows (u, 1, r): R'R = sum (u, 1, r)(u, 1, r)'. Rows are rotated in, never squared, so no
digits are lost, and factors of parts of a log are rotated into one another. The at most du + 2 rows of R stand for all
rows of the group, and the arrow structure does the rest. What policies that learn their settings need beyond that are
counts: how often each of the user's features was not 0, and the mean and the spread of the rewards. Where the map has
pair features, u stands for (u, p) in all this, with the p of the arm shown: features are linear in them too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np

from hybandits.engines import Engine, Report, SerialEngine
from hybandits.estimators.learned import Moments
from hybandits.evaluation.tasks import LogTask, in_order, round_range, tasks_of, view_of
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.features import fill
from hybandits.logs.store import Batch


class Statistics:
    """What the rounds of a log say about the model; its size does not grow with the rounds.

    Parameters
    ----------
    view : View
        The log with its features.

    Attributes
    ----------
    triangles : array of shape (groups, m + 2, m + 2)
        The triangular factor of every group of the view, m being the length of (u, p).
    counts : array of shape (groups,)
        Rounds of every group.
    seen : array of shape (groups, m)
        In how many of them each of the user's and of the pair's features was not 0.
    reward_mean, reward_spread : float
        The mean of all rewards, and the sum of their squared deviations from it.
    left_out : int
        Rounds that were left out, because the arm shown is not among the candidates as the view has them.
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
        """Rounds that have been added."""
        return int(self.counts.sum())

    def add(self, batch: Batch) -> None:
        """Add the rounds of a batch."""
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
        """Take so many further rewards into mean and spread; their rounds must not have been counted yet."""
        rounds = self.rounds
        difference = mean - self.reward_mean
        self.reward_mean += difference * more / (rounds + more)
        self.reward_spread += spread + difference**2 * rounds * more / (rounds + more)

    def merge(self, other: PackedStatistics) -> None:
        """Add the statistics of other rounds, as `packed` gives them."""
        groups = other.groups
        if len(groups) and not 0 <= groups.min() <= groups.max() < len(self.counts):
            raise ValueError(
                f"the view has {len(self.counts)} groups, got statistics of group {groups.max()}: merge only "
                "statistics of the same view"
            )
        fold_triangles(groups, other.triangles, self.triangles)
        more = int(other.counts.sum())
        if more:
            self._add_moments(more, other.reward_mean, other.reward_spread)
        self.counts[groups] += other.counts
        self.seen[groups] += other.seen
        self.left_out += other.left_out

    def packed(self) -> PackedStatistics:
        """The statistics of the groups that have rounds, as `merge` takes them."""
        groups = np.flatnonzero(self.counts)
        return PackedStatistics(
            groups, self.triangles[groups], self.counts[groups], self.seen[groups], self.reward_mean,
            self.reward_spread, self.left_out,
        )  # fmt: skip

    def rows(self) -> Summary:
        """Rows that stand for all rounds: the same least squares problem, whose size does not grow with the rounds."""
        view = self.view
        groups = np.flatnonzero(self.counts)
        size = view.map.user_and_pair + 2
        n = len(groups) * size
        x, z, reward = np.zeros((n, view.d1)), np.zeros((n, view.d2)), np.zeros(n)
        unfold(view.map.code, view.map.user, groups, self.triangles, view.group_vector, view.vectors, x, z, reward)
        return Summary(np.repeat(view.group_arm[groups], size), x, z, reward)

    def moments(self) -> Moments:
        """What the rows that stand for all rounds cannot say: counts and sums of features, and the rewards' moments.

        Feature vec(u v') is not 0 where u and v are not, so `fill` of the counts and of v != 0 gives the counts of x
        and z. Likewise `fill` of the sums of u and p and of v gives their sums.
        """
        view = self.view
        groups = np.flatnonzero(self.counts)
        x, z = np.zeros((len(groups), view.d1)), np.zeros((len(groups), view.d2))
        known, present = self.seen[groups].astype(float), (view.vectors != 0).astype(float)
        code, du, m = view.map.code, view.map.user, view.map.user_and_pair
        for i, g in enumerate(groups):
            v = present[view.group_vector[g]]
            fill(code, known[i, :du], known[i, du:], v, float(self.counts[g]), x[i], z[i])
        seen = np.concatenate([x.sum(axis=0), z.sum(axis=0)])
        for i, g in enumerate(groups):
            total = self.triangles[g, :, :m].T @ self.triangles[g, :, m]  # sum of 1 (u, p): a column of R'R
            v = view.vectors[view.group_vector[g]]
            fill(code, total[:du], total[du:], v, float(self.counts[g]), x[i], z[i])
        sums = np.concatenate([x.sum(axis=0), z.sum(axis=0)])
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


@kernel
def rotate(row, triangle):  # type: ignore[no-untyped-def]
    """Givens rotations that turn (R; row) into (R_new; 0), R_new'R_new = R'R + row row'."""
    m = row.shape[0]
    for k in range(m):
        b = row[k]
        if b == 0.0:
            continue
        a = triangle[k, k]
        h = math.sqrt(a * a + b * b)
        if h == 0.0:  # squares too small to be told from 0
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


@kernel
def fold_triangles(groups, others, triangles):  # type: ignore[no-untyped-def]
    """Rotate the rows of other triangles into those of the same groups."""
    m = triangles.shape[1]
    row = np.empty(m)
    for i in range(groups.shape[0]):
        for k in range(m):
            for j in range(m):
                row[j] = others[i, k, j]
            rotate(row, triangles[groups[i]])


@kernel
def unfold(code, du, groups, triangles, group_vector, vectors, x, z, reward):  # type: ignore[no-untyped-def]
    """Write row (u, p, c, r) of every triangle as a row of the model: features `fill`(u, p, v), c for the constant."""
    m = triangles.shape[1]
    for i in range(groups.shape[0]):
        triangle = triangles[groups[i]]
        v = vectors[group_vector[groups[i]]]
        for k in range(m):
            t = i * m + k
            fill(code, triangle[k, :du], triangle[k, du : m - 2], v, triangle[k, m - 2], x[t], z[t])
            reward[t] = triangle[k, m - 1]


# ------------------------------------------------------------------ collecting, on any engine


def collect_part(task: LogTask, report: Report) -> PackedStatistics:
    """The statistics of the rounds of a task."""
    view = view_of(**task.view)
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
    """Statistics of rounds start..stop-1, in one pass over them.

    Parameters
    ----------
    view : View
        The log with its features.
    start, stop : int
        The rounds; all of them by default.
    engine : Engine, optional
        Where the work runs; in this process if left out. Every engine gives the same bits, because parts are merged in
        the order of the log.
    progress : callable
        Called with the number of rounds done since the last call.

    Returns
    -------
    Statistics
        For `least_squares`, `ridge_model` and `warm_start`.

    Examples
    --------
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     statistics = collect(View(log), stop=400)
    >>> statistics.rounds
    400
    """
    start, stop = round_range(view, start, stop)
    whole = Statistics(view)
    for part in in_order(engine or SerialEngine(), collect_part, tasks_of(view, start, stop), progress):
        whole.merge(part)
    return whole
