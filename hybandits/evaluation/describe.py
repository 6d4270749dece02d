"""What is in a log: rounds, arms over time, rewards, propensities, ranks, and whether diversity can hold."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from hybandits.estimators.eigenvalues import canonical_correlation, rank, smallest_or_zero
from hybandits.evaluation.fit import RCOND
from hybandits.evaluation.propensities import is_uniform
from hybandits.evaluation.view import View
from hybandits.features import FeatureMap
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.features import fill
from hybandits.logs.store import NO_TIME, Batch

SLICES = 10
"""Parts of equal length that the log is shown in, over time."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Some consecutive rounds of a log.

    Attributes
    ----------
    start, rounds : int
        The first round, and how many there are.
    first_time, last_time : int or None
        When they were, in seconds since 1970, if the log says so.
    reward : float
        The mean reward.
    arms, new_arms : int
        Arms that were candidates, and those among them that had not been before.
    smallest_pool, largest_pool : int
        The extreme numbers of candidates.
    """

    start: int
    rounds: int
    first_time: int | None
    last_time: int | None
    reward: float
    arms: int
    new_arms: int
    smallest_pool: int
    largest_pool: int


@dataclass(frozen=True, kw_only=True)
class ArmCounts:
    """An arm: the rounds in which it was a candidate and in which it was shown, and its mean reward when shown."""

    arm: Hashable
    candidate: int
    shown: int
    reward: float | None


@dataclass(frozen=True, kw_only=True)
class PairFeature:
    """A feature of a user and a candidate together, over all candidates of all rounds.

    Attributes
    ----------
    name : str
        Its name in the log.
    mean, deviation, lowest, highest : float
        Its mean, its standard deviation and its extremes.
    size : float
        Its root mean square. Policies take features to be of a size of about 1.
    differs : float
        The share of rounds in which it is not the same for all candidates. Where it is, it cannot decide anything as
        part of x.
    """

    name: str
    mean: float
    deviation: float
    lowest: float
    highest: float
    size: float
    differs: float


@dataclass(frozen=True, kw_only=True)
class Description:
    """What `describe` says about a log.

    Attributes
    ----------
    path, kind : str
        The log's folder, and what it was converted from.
    rounds, sources, lines, skipped : int, int, int, dict
        Rounds, source files and lines that were read, and the lines that were skipped, by reason.
    arms, vectors, pools, pool_changes : int
        Arms, their feature vectors, different lists of candidates, and how often the list changes from one round to
        the next.
    slices : list of Slice
        The log over time.
    reward, reward_error, lowest_reward, highest_reward : float
        The mean reward with its standard error, and the extremes.
    without_propensity : int
        Rounds without a propensity.
    lowest_propensity, highest_propensity : float or None
        The extremes of the others.
    uniform : bool
        Whether every propensity is 1 / candidates, up to rounding. Then replay keeps all rounds that match.
    display_bias, display_limit : float or None
        For uniform logs: the largest deviation, over arms, of how often an arm was shown from how often it should have
        been, in standard deviations. If the display was fair, it is below the limit in 999 of 1,000 logs.
    most_shown : list of ArmCounts
        The ten arms shown most often.
    pair : list of PairFeature
        The pair features, if the feature map has any.
    features, d1, d2 : str, int, int
        The feature map, and the lengths of x and z.
    user_rank, arm_rank, x_rank, smallest_z_rank : (int, int)
        The rank of these vectors and its largest possible value; z has a rank for every arm.
    rho_x, rho_z : float or None
        lambda_min(E[x x']), and the least lambda_min(E[z z']) of an arm; None without x or z.
    correlation : float or None
        The largest canonical correlation of x and z over the rounds of an arm. The diversity assumption wants 0.
    size : float
        The root mean square of |(x, z)|.
    mean_norm : float
        |E[(x, z)]| relative to `size`. The diversity assumption wants 0.
    diverse : bool
        Whether nothing speaks against the diversity assumption.
    guarantee : str
        What this means for HyLinUCB's regret bound.
    """

    path: str
    kind: str
    rounds: int
    sources: int
    lines: int
    skipped: dict[str, int]
    arms: int
    vectors: int
    pools: int
    pool_changes: int
    slices: list[Slice]
    reward: float
    reward_error: float
    lowest_reward: float
    highest_reward: float
    without_propensity: int
    lowest_propensity: float | None
    highest_propensity: float | None
    uniform: bool
    display_bias: float | None
    display_limit: float | None
    most_shown: list[ArmCounts]
    pair: list[PairFeature]
    features: str
    d1: int
    d2: int
    user_rank: tuple[int, int]
    arm_rank: tuple[int, int]
    x_rank: tuple[int, int]
    smallest_z_rank: tuple[int, int]
    rho_x: float | None
    rho_z: float | None
    correlation: float | None
    size: float
    mean_norm: float
    diverse: bool
    guarantee: str

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return asdict(self)


class _Tally:
    """Sums over the rounds, batch by batch."""

    def __init__(self, view: View) -> None:
        self.view = view
        size, pairs = view.map.user + 1, view.map.pair
        self.moments: FloatArray = np.zeros((len(view.group_arm), size + pairs, size + pairs))
        """Sums of (u, 1, p)(u, 1, p)' over the rounds in which a group is a candidate."""
        self.pair_extremes = np.array([[np.inf], [-np.inf]]) * np.ones(pairs)
        self.pair_differs = np.zeros(pairs, np.int64)
        self.candidate = np.zeros(len(view.group_arm), np.int64)
        self.shown = np.zeros(len(view.names), np.int64)
        self.reward = np.zeros(len(view.names))
        self.fair = np.zeros(len(view.names))
        self.variance = np.zeros(len(view.names))
        self.met = np.zeros(len(view.names), bool)
        self.users: FloatArray = np.zeros((size, size))
        self.rewards = np.zeros(3)
        self.extremes = [np.inf, -np.inf]
        self.propensities: list[float] = [np.inf, -np.inf]
        self.unknown = 0
        self.uniform = True
        self.changes = 0
        self.last_pool = -1

    def add(self, batch: Batch) -> None:
        view = self.view
        add_moments(batch.user, batch.pool, view.offsets, view.group, self.users, self.moments, self.candidate)
        add_pair_moments(
            batch.user, view.pair(batch), batch.pool, view.offsets, view.group, self.moments, self.pair_extremes,
            self.pair_differs,
        )  # fmt: skip
        entries = view.shown(batch)
        inside = entries >= 0
        arms = view.arm[entries[inside]]
        self.shown += np.bincount(arms, minlength=len(view.names))
        self.reward += np.bincount(arms, batch.reward[inside], len(view.names))
        self.rewards += [batch.rounds, batch.reward.sum(), (batch.reward**2).sum()]
        self.extremes = [
            min(self.extremes[0], float(batch.reward.min())),
            max(self.extremes[1], float(batch.reward.max())),
        ]
        known = ~np.isnan(batch.propensity)
        self.unknown += int((~known).sum())
        if known.any():
            p = batch.propensity[known]
            self.propensities = [
                min(self.propensities[0], float(p.min())),
                max(self.propensities[1], float(p.max())),
            ]
        sizes = view.log.pools.sizes[batch.pool]
        self.uniform &= bool(is_uniform(batch.propensity, sizes).all())
        pools, times = np.unique(batch.pool, return_counts=True)
        for p, n in zip(pools, times, strict=True):
            listed = view.arm[view.offsets[p] : view.offsets[p + 1]]
            share = 1.0 / len(listed)
            self.fair[listed] += n * share
            self.variance[listed] += n * share * (1.0 - share)
        self.changes += int((np.diff(batch.pool, prepend=self.last_pool) != 0).sum())
        self.last_pool = int(batch.pool[-1])

    def slice(self, part: _Slicing, start: int) -> Slice:
        """The slice that ends here; notes the arms that it has met."""
        sizes = self.view.sizes[part.pools]
        arms = np.unique(self.view.arm[np.repeat(part.pools, self.view.sizes)])
        new = int((~self.met[arms]).sum())
        self.met[arms] = True
        return Slice(
            start=start, rounds=part.rounds, first_time=part.first_time, last_time=part.last_time,
            reward=part.reward / part.rounds, arms=len(arms), new_arms=new, smallest_pool=int(sizes.min()),
            largest_pool=int(sizes.max()),
        )  # fmt: skip


class _Slicing:
    """Sums of a slice while it is being read."""

    def __init__(self, pools: int) -> None:
        self.pools = np.zeros(pools, bool)
        self.rounds = 0
        self.reward = 0.0
        self.first_time: int | None = None
        self.last_time: int | None = None

    def add(self, part: Batch) -> None:
        self.pools[part.pool] = True
        self.rounds += part.rounds
        self.reward += float(part.reward.sum())
        times = part.time[part.time != NO_TIME]
        if len(times):
            self.first_time = int(times[0]) if self.first_time is None else self.first_time
            self.last_time = int(times[-1])


@kernel
def add_moments(user, pool, offsets, group, users, moments, counts):  # type: ignore[no-untyped-def]
    """Add (u, 1)(u, 1)' of every round to the sum over all users and to those of its candidates' groups.

    Consecutive rounds with the same pool are summed up first. Moments may have further rows and columns, which are left
    alone.
    """
    n, du = user.shape
    own = np.zeros((du + 1, du + 1))
    count = 0
    for t in range(n):
        for i in range(du):
            for j in range(du):
                own[i, j] += user[t, i] * user[t, j]
            own[i, du] += user[t, i]
        own[du, du] += 1.0
        count += 1
        if t + 1 == n or pool[t + 1] != pool[t]:
            for i in range(du):
                own[du, i] = own[i, du]
            for i in range(du + 1):
                for j in range(du + 1):
                    users[i, j] += own[i, j]
            for e in range(offsets[pool[t]], offsets[pool[t] + 1]):
                g = group[e]
                for i in range(du + 1):
                    for j in range(du + 1):
                        moments[g, i, j] += own[i, j]
                counts[g] += count
            for i in range(du + 1):
                for j in range(du + 1):
                    own[i, j] = 0.0
            count = 0


@kernel
def add_pair_moments(user, pair, pool, offsets, group, moments, extremes, differs):  # type: ignore[no-untyped-def]
    """Add p (u, 1, p)' of every candidate to the moments of its group, where p stands behind (u, 1), and its mirror.

    Also: extremes (2, dp), the lowest and the highest of every pair feature, and differs (dp), the rounds in which it
    is not the same for all candidates.
    """
    n, du = user.shape
    dp = pair.shape[2]
    for t in range(n):
        first = offsets[pool[t]]
        count = offsets[pool[t] + 1] - first
        for a in range(dp):
            lowest = pair[t, 0, a]
            highest = lowest
            for k in range(count):
                p = pair[t, k, a]
                lowest = min(lowest, p)
                highest = max(highest, p)
                own = moments[group[first + k]]
                row = du + 1 + a
                for i in range(du):
                    own[row, i] += p * user[t, i]
                    own[i, row] = own[row, i]
                own[row, du] += p
                own[du, row] = own[row, du]
                for b in range(dp):
                    own[row, du + 1 + b] += p * pair[t, k, b]
            extremes[0, a] = min(extremes[0, a], lowest)
            extremes[1, a] = max(extremes[1, a], highest)
            if lowest < highest:
                differs[a] += 1


def describe(view: View, *, progress: Callable[[int], None] = lambda rounds: None) -> Description:
    """Describe a log, in one pass over it.

    Parameters
    ----------
    view : View
        The log with its features.
    progress : callable
        Called with the number of rounds read since the last call.

    Returns
    -------
    Description
        What is in the log. Ranks and moments of features are over all candidates, as if each were played in turn.

    Examples
    --------
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     description = describe(View(log))
    >>> description.rounds, description.arms, round(description.reward, 3), description.uniform
    (500, 27, 0.082, True)
    """
    log = view.log
    tally = _Tally(view)
    cuts = np.unique(np.linspace(0, log.rounds, SLICES + 1).round().astype(int))
    slices: list[Slice] = []
    now = _Slicing(len(view.sizes))
    start = 0
    for batch in log.batches():
        tally.add(batch)
        first = 0
        while first < batch.rounds:
            end = int(cuts[np.searchsorted(cuts, start, side="right")])
            part = batch.part(first, min(batch.rounds, first + end - start - now.rounds))
            now.add(part)
            first += part.rounds
            if start + now.rounds == end:
                slices.append(tally.slice(now, start))
                now, start = _Slicing(len(view.sizes)), end
        progress(batch.rounds)
    rounds, total, squares = tally.rewards
    mean = total / rounds
    reading = log.about.get("reading", {})
    order = np.argsort(-tally.shown, kind="stable")[:10]
    by_arm = np.bincount(view.group_arm, tally.candidate, len(view.names)).astype(int)
    shown = [
        ArmCounts(
            arm=view.names[a],
            candidate=int(by_arm[a]),
            shown=int(tally.shown[a]),
            reward=float(tally.reward[a] / tally.shown[a]) if tally.shown[a] else None,
        )
        for a in order
    ]
    used = tally.variance > 0
    bias = limit = None
    if tally.uniform and used.any() and view.arms_are == "articles":
        bias = float(np.abs((tally.shown - tally.fair)[used] / np.sqrt(tally.variance[used])).max())
        limit = -NormalDist().inv_cdf(1e-3 / int(used.sum()) / 2)
    return Description(
        path=log.path.name,
        kind=log.about["kind"],
        rounds=int(rounds),
        sources=len(log.source_starts),
        lines=reading.get("lines", 0),
        skipped=reading.get("skipped", {}),
        arms=len(view.names),
        vectors=len(log.names),
        pools=len(log.pools.sizes),
        pool_changes=tally.changes - 1,
        slices=slices,
        reward=float(mean),
        reward_error=float(np.sqrt(max(squares / rounds - mean**2, 0.0) / rounds)),
        lowest_reward=tally.extremes[0],
        highest_reward=tally.extremes[1],
        without_propensity=tally.unknown,
        lowest_propensity=tally.propensities[0] if np.isfinite(tally.propensities[0]) else None,
        highest_propensity=tally.propensities[1] if np.isfinite(tally.propensities[1]) else None,
        uniform=tally.uniform,
        display_bias=bias,
        display_limit=limit,
        most_shown=shown,
        pair=_pair_features(view, tally),
        features=view.map.name,
        d1=view.d1,
        d2=view.d2,
        **_diversity(view, tally),
    )


def _pair_features(view: View, tally: _Tally) -> list[PairFeature]:
    first = view.map.user + 1
    total, rounds = tally.candidate.sum(), tally.rewards[0]
    features = []
    for i, name in enumerate(view.log.pair[: view.map.pair]):
        mean = tally.moments[:, first + i, first - 1].sum() / total
        square = tally.moments[:, first + i, first + i].sum() / total
        features.append(
            PairFeature(
                name=name,
                mean=float(mean),
                deviation=float(np.sqrt(max(square - mean**2, 0.0))),
                lowest=float(tally.pair_extremes[0, i]),
                highest=float(tally.pair_extremes[1, i]),
                size=float(np.sqrt(square)),
                differs=float(tally.pair_differs[i] / rounds),
            )
        )
    return features


def _diversity(view: View, tally: _Tally) -> dict[str, Any]:
    """Ranks, and the eigenvalues behind the diversity assumption, with E over candidates.

    Within group g, x = A_g w and z = B_g w with w = (u, 1, p). With S_g the sum of w w' over the rounds in which the
    group is a candidate, sum x x' = sum_g A_g S_g A_g', and likewise for z.
    """
    du = view.map.user
    d1, d2 = view.d1, view.d2
    v_sum, own = np.zeros((d1, d1)), np.zeros((len(view.names), d2, d2))
    cross = np.zeros((len(view.names), d1, d2))
    per_arm = np.zeros((len(view.names), d1, d1)) if d1 and d1 * d1 * len(view.names) <= 20_000_000 else None
    x_mean, z_mean = np.zeros(d1), np.zeros(d2)
    for g in np.flatnonzero(tally.candidate):
        a, s = view.group_arm[g], tally.moments[g]
        of_x, of_z = _linear_maps(view.map, view.vectors[view.group_vector[g]])
        xx = of_x @ s @ of_x.T
        v_sum += xx
        if per_arm is not None:
            per_arm[a] += xx
        own[a] += of_z @ s @ of_z.T
        cross[a] += of_x @ s @ of_z.T
        x_mean += of_x @ s[:, du]
        z_mean += of_z @ s[:, du]
    total = tally.candidate.sum()
    counts = np.bincount(view.group_arm, tally.candidate, len(view.names))
    met = np.flatnonzero(counts)
    z_ranks = [rank(own[a], rcond=RCOND) for a in met] if d2 else [0]
    rho_x = smallest_or_zero(v_sum / total, rcond=RCOND) if d1 else None
    rho_z = min(smallest_or_zero(own[a] / counts[a], rcond=RCOND) for a in met) if d2 else None
    correlation = None
    if d1 and d2 and per_arm is not None:
        correlation = max(canonical_correlation(per_arm[a], cross[a], own[a], rcond=RCOND) for a in met)
    square = (np.trace(v_sum) + sum(np.trace(own[a]) for a in met)) / total
    mean = float(np.sqrt(((x_mean / total) ** 2).sum() + ((z_mean / total) ** 2).sum()) / np.sqrt(square or 1.0))
    x_rank = rank(v_sum, rcond=RCOND) if d1 else 0
    reasons = _against(x_rank, d1, min(z_ranks), d2, correlation, mean)
    return {
        "user_rank": (rank(tally.users[:du, :du], rcond=RCOND), du),
        "arm_rank": (rank(view.log.vectors.T @ view.log.vectors, rcond=RCOND), view.map.arm),
        "x_rank": (x_rank, d1),
        "smallest_z_rank": (min(z_ranks), d2),
        "rho_x": rho_x,
        "rho_z": rho_z,
        "correlation": correlation,
        "size": float(np.sqrt(square)),
        "mean_norm": mean,
        "diverse": not reasons,
        "guarantee": _guarantee(reasons),
    }


def _linear_maps(feature_map: FeatureMap, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A (d1, m) and B (d2, m) with x = A (u, 1, p) and z = B (u, 1, p) for an arm with this v."""
    du, size = feature_map.user, feature_map.user_and_pair + 1
    of_x, of_z = np.zeros((size, feature_map.d1)), np.zeros((size, feature_map.d2))
    for i, unit in enumerate(np.eye(size)):
        fill(feature_map.code, unit[:du], unit[du + 1 :], v, unit[du], of_x[i], of_z[i])
    return of_x.T, of_z.T


def _against(x_rank: int, d1: int, z_rank: int, d2: int, correlation: float | None, mean: float) -> list[str]:
    """What speaks against the diversity assumption."""
    reasons = []
    if x_rank < d1:
        reasons.append(f"x spans {x_rank} of {d1} dimensions, so lambda_min(E[x x']) = 0 whatever is played")
    if z_rank < d2:
        reasons.append(f"an arm's z spans {z_rank} of {d2} dimensions, so lambda_min(E[z z']) = 0 for that arm")
    if correlation is not None and correlation > 0.1:
        reasons.append(f"x and z of an arm are correlated (up to {correlation:.2f}), but E[x z'] should be 0")
    if mean > 0.1:
        reasons.append("E[x] and E[z] should be 0, but are not (a constant feature is enough for that)")
    return reasons


def _guarantee(reasons: list[str]) -> str:
    """What this means for HyLinUCB's theorem."""
    if not reasons:
        return (
            "The diversity assumption holds for these candidates, each played in turn. It is about the arms that are "
            "played, so HyLinUCB's regret bound is plausible here, but not proven."
        )
    listed = "; ".join(reasons)
    return (
        f"The diversity assumption does not hold: {listed}. HyLinUCB's regret bound says nothing about this log. "
        "Estimates and widths are exact all the same."
    )
