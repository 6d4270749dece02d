"""What is in a log: rounds, arms over time, rewards, propensities, ranks, and whether diversity can hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.foundation.compiling import kernel
from hybandits.logs.store import NO_TIME, Batch
from hybandits.model.features import DAS, DISJOINT, SHARED
from hybandits.offline.evaluation.intervals import normal_quantile
from hybandits.offline.fit import RCOND
from hybandits.offline.view import View

SLICES = 10
"""Parts of the log shown one by one."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Consecutive rounds: when, how many, how they were rewarded, and the arms that were candidates."""

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
class Shown:
    """An arm: in how many rounds it was a candidate and was shown, and its mean reward then."""

    arm: str
    candidate: int
    shown: int
    reward: float | None


@dataclass(frozen=True, kw_only=True)
class Description:
    """Everything `hybandits describe` says."""

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
    """If uniform: the largest deviation over arms of how often it was shown from how often it should have been, in
    standard deviations; with a fair display it is below `display_limit` in 999 of 1,000 logs."""
    display_limit: float | None
    most_shown: list[Shown]
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
    """The largest canonical correlation of x and z over an arm's rounds: the assumption wants 0."""
    size: float
    """Root mean square of |(x, z)|."""
    mean_norm: float
    """|mean of (x, z)| relative to the root of its mean square: the assumption wants 0."""
    diverse: bool
    guarantee: str

    def plain(self) -> dict[str, Any]:
        """As JSON-able values."""
        return asdict(self)


class _Tally:
    """Sums over the rounds, taken in batch by batch."""

    def __init__(self, view: View) -> None:
        self.view = view
        size = view.map.user + 1
        self.moments: Doubles = np.zeros((len(view.group_arm), size, size))
        self.candidate = np.zeros(len(view.group_arm), np.int64)
        self.shown = np.zeros(len(view.names), np.int64)
        self.reward = np.zeros(len(view.names))
        self.fair = np.zeros(len(view.names))
        self.variance = np.zeros(len(view.names))
        self.met = np.zeros(len(view.names), bool)
        self.users: Doubles = np.zeros((size, size))
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
        # To three digits: propensities are often written with few.
        self.uniform &= bool(known.all() and np.allclose(batch.propensity * sizes, 1.0, rtol=1e-3))
        pools, times = np.unique(batch.pool, return_counts=True)
        for p, n in zip(pools, times, strict=True):
            listed = view.arm[view.offsets[p] : view.offsets[p + 1]]
            share = 1.0 / len(listed)
            self.fair[listed] += n * share
            self.variance[listed] += n * share * (1.0 - share)
        self.changes += int((np.diff(batch.pool, prepend=self.last_pool) != 0).sum())
        self.last_pool = int(batch.pool[-1])

    def slice(self, part: _Slicing, start: int) -> Slice:
        """One slice of the log, and note the arms met."""
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
    """What is kept of a slice while it is read."""

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
    """Add (u, 1)(u, 1)' of every round to the sum of all users and to those of its candidates' groups.

    Rounds with the same pool one after another are summed up first.
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
            users += own
            for e in range(offsets[pool[t]], offsets[pool[t] + 1]):
                moments[group[e]] += own
                counts[group[e]] += count
            own[:] = 0.0
            count = 0


def describe(view: View, *, progress: Callable[[int], None] = lambda rounds: None) -> Description:
    """One pass over the log. Features, ranks and diversity are of all candidates, as if each were played in turn."""
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
        Shown(
            arm=str(view.names[a]),
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
        limit = _normal_limit(1e-3 / int(used.sum()))
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
        features=view.map.name,
        d1=view.d1,
        d2=view.d2,
        **_diversity(view, tally),
    )


def _normal_limit(probability: float) -> float:
    """What a standard normal exceeds in absolute value with this probability."""
    return -normal_quantile(probability / 2)


def _diversity(view: View, tally: _Tally) -> dict[str, Any]:
    """Ranks and the eigenvalues behind the diversity assumption, with E over candidates.

    With S_g the sum of (u, 1)(u, 1)' over the rounds in which group g is a candidate: sum x x' = sum_g (v v') (x) S_g.
    """
    code, du = view.map.code, view.map.user
    d1, d2 = view.d1, view.d2
    v_sum, own = np.zeros((d1, d1)), np.zeros((len(view.names), d2, d2))
    cross = np.zeros((len(view.names), d1, d2))
    per_arm = np.zeros((len(view.names), d1, d1)) if d1 and d1 * d1 * len(view.names) <= 20_000_000 else None
    x_mean, z_mean = np.zeros(d1), np.zeros(d2)
    for g in np.flatnonzero(tally.candidate):
        a, v, s = view.group_arm[g], view.vectors[view.group_vector[g]], tally.moments[g]
        uu, u, n = s[:du, :du], s[:du, du], s[du, du]
        if code != DISJOINT:
            xx = np.kron(np.outer(v, v), uu)
            v_sum += xx
            x_mean += np.kron(v, u)
            if per_arm is not None:
                per_arm[a] += xx
        if code == DAS:
            own[a] += n * np.outer(v, v)
            z_mean += n * v
            cross[a] += np.outer(np.kron(v, u), v)
        elif code != SHARED:
            own[a] += uu
            z_mean += u
            if code != DISJOINT:
                cross[a] += np.kron(v[:, None], uu)
    total = tally.candidate.sum()
    counts = np.bincount(view.group_arm, tally.candidate, len(view.names))
    met = np.flatnonzero(counts)
    z_ranks = [_rank(own[a]) for a in met] if d2 else [0]
    rho_x = _smallest(v_sum / total) if d1 else None
    rho_z = min(_smallest(own[a] / counts[a]) for a in met) if d2 else None
    correlation = None
    if d1 and d2 and per_arm is not None:
        correlation = max(_correlation(per_arm[a], cross[a], own[a]) for a in met)
    square = (np.trace(v_sum) + sum(np.trace(own[a]) for a in met)) / total
    mean = float(np.sqrt(((x_mean / total) ** 2).sum() + ((z_mean / total) ** 2).sum()) / np.sqrt(square or 1.0))
    x_rank = _rank(v_sum) if d1 else 0
    reasons = _against(x_rank, d1, min(z_ranks), d2, correlation, mean)
    return {
        "user_rank": (_rank(tally.users[:du, :du]), du),
        "arm_rank": (_rank(view.log.vectors.T @ view.log.vectors), view.map.arm),
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


def _against(x_rank: int, d1: int, z_rank: int, d2: int, correlation: float | None, mean: float) -> list[str]:
    """What speaks against the diversity assumption."""
    reasons = []
    if x_rank < d1:
        reasons.append(f"x spans {x_rank} of {d1} dimensions, so lambda_min(E[x x']) = 0 whatever is played")
    if z_rank < d2:
        reasons.append(f"an arm's z spans {z_rank} of {d2} dimensions, so lambda_min(E[z z']) = 0 for it")
    if correlation is not None and correlation > 0.1:
        reasons.append(f"x and z of an arm are correlated (up to {correlation:.2f}), E[x z'] = 0 is asked for")
    if mean > 0.1:
        reasons.append("features have a mean, E[x] = E[z] = 0 is asked for (a constant feature alone does that)")
    return reasons


def _guarantee(reasons: list[str]) -> str:
    """What that means for HyLinUCB's theorem."""
    if not reasons:
        return (
            "Diversity holds for these candidates taken in turn. The assumption is about the arms that are played, so "
            "HyLinUCB's regret bound is plausible here, not proven."
        )
    listed = "; ".join(reasons)
    return (
        f"The diversity assumption does not hold: {listed}. HyLinUCB's regret bound says nothing about this log; the "
        "estimates and widths are exact all the same."
    )


def _rank(square: Doubles) -> int:
    """Rank of the rows behind a matrix of second moments: singular values above RCOND times the largest, every column
    in units of its own size."""
    if square.size == 0:
        return 0
    values = np.linalg.eigvalsh(square / np.outer(_sizes(square), _sizes(square)))
    return int((values > RCOND**2 * max(values[-1], 0.0)).sum()) if values[-1] > 0 else 0


def _sizes(square: Doubles) -> Doubles:
    """What to divide columns by, so that their units do not matter: roots of the diagonal, 1 for 0."""
    made: Doubles = np.sqrt(np.where(np.diag(square) > 0, np.diag(square), 1.0))
    return made


def _smallest(square: Doubles) -> float:
    """lambda_min, 0 where the rank says so."""
    return float(np.linalg.eigvalsh(square)[0]) if _rank(square) == len(square) else 0.0


def _correlation(xx: Doubles, xz: Doubles, zz: Doubles) -> float:
    """The largest singular value of V^-1/2 B W^-1/2, over the directions that are there."""
    if not xz.any():
        return 0.0
    x, z = _sizes(xx), _sizes(zz)
    roots = _inverse_root(xx / np.outer(x, x)), _inverse_root(zz / np.outer(z, z))
    return float(np.linalg.norm(roots[0] @ (xz / np.outer(x, z)) @ roots[1], 2))


def _inverse_root(square: Doubles) -> Doubles:
    values, vectors = np.linalg.eigh(square)
    kept = values > RCOND**2 * values[-1]
    made: Doubles = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
    return made
