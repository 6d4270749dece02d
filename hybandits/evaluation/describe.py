"""A summary of a log: rounds and arms over time, rewards, propensities, and features."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from hybandits.estimators.eigenvalues import rank
from hybandits.evaluation.fit import RCOND
from hybandits.evaluation.parts import Survey
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import NO_TIME, Batch

SLICES = 10
"""Parts of equal length that the log is shown in, over time."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """Some consecutive rounds: first time in seconds since 1970, mean reward, candidates, and new ones among them."""

    start: int
    rounds: int
    time: int | None
    reward: float
    arms: int
    new_arms: int


@dataclass(frozen=True, kw_only=True)
class ArmCounts:
    """An arm: the rounds in which it was a candidate and in which it was shown, and its mean reward when shown."""

    arm: Hashable
    candidate: int
    shown: int
    reward: float | None


@dataclass(frozen=True, kw_only=True)
class Description:
    """The summary that `describe` makes of a log.

    `sources` counts files. Propensities are None where no round has one in (0, 1]; the log is `uniform` if all are
    1 / candidates, up to rounding. `user_rank` and `arm_rank` are the ranks of these vectors and their largest possible
    values, `size` the root mean square of |(x, z)| of the arms shown.
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
    slices: list[Slice]
    reward: float
    reward_error: float
    lowest_reward: float
    highest_reward: float
    without_propensity: int
    lowest_propensity: float | None
    highest_propensity: float | None
    uniform: bool
    most_shown: list[ArmCounts]
    features: str
    d1: int
    d2: int
    user_rank: tuple[int, int]
    arm_rank: tuple[int, int]
    size: float


class _Sums:
    """Sums over the rounds of a log."""

    def __init__(self, view: View) -> None:
        self.view, self.survey = view, Survey.of(view)
        rounds, pools = view.log.rounds, len(view.sizes)
        self.cuts = np.unique(np.linspace(0, rounds, SLICES + 1).round().astype(int))
        slices = len(self.cuts) - 1
        self.slice_pools = np.zeros((slices, pools), bool)
        self.slice_rewards = np.zeros(slices)
        self.times: list[int | None] = [None] * slices
        self.pool_counts = np.zeros(pools, np.int64)
        self.rewards_by_arm = np.zeros(len(view.names))
        self.rewards = np.zeros(2)
        self.users: FloatArray = np.zeros((view.map.user, view.map.user))
        self.squares = 0.0

    def add(self, batch: Batch, start: int) -> None:
        view = self.view
        self.survey.add(view, batch)
        self.rewards += [batch.reward.sum(), (batch.reward**2).sum()]
        self.users += batch.user.T @ batch.user
        part = np.searchsorted(self.cuts, np.arange(start, start + batch.rounds), side="right") - 1
        self.slice_pools[part, batch.pool] = True
        self.slice_rewards += np.bincount(part, batch.reward, len(self.slice_rewards))
        for i in np.unique(part[batch.time != NO_TIME]):
            if self.times[i] is None:
                self.times[i] = int(batch.time[(part == i) & (batch.time != NO_TIME)][0])
        self.pool_counts += np.bincount(batch.pool, minlength=len(self.pool_counts))
        self.rewards_by_arm += np.bincount(view.arm[view.shown(batch)], batch.reward, len(view.names))
        self.squares += sum(float((features**2).sum()) for features in view.rows(batch)[1:])

    def slices(self) -> list[Slice]:
        view, slices = self.view, []
        met = np.zeros(len(view.names), bool)
        for i, (start, stop) in enumerate(zip(self.cuts[:-1], self.cuts[1:], strict=True)):
            arms = np.unique(view.arm[np.repeat(self.slice_pools[i], view.sizes)])
            slices.append(
                Slice(
                    start=int(start), rounds=int(stop - start), time=self.times[i],
                    reward=float(self.slice_rewards[i] / (stop - start)), arms=len(arms),
                    new_arms=int((~met[arms]).sum()),
                )
            )  # fmt: skip
            met[arms] = True
        return slices

    def most_shown(self) -> list[ArmCounts]:
        view, shown = self.view, self.survey.shown
        candidate = np.bincount(view.arm, np.repeat(self.pool_counts, view.sizes), len(view.names))
        return [
            ArmCounts(
                arm=view.names[a], candidate=int(candidate[a]), shown=int(shown[a]),
                reward=float(self.rewards_by_arm[a] / shown[a]) if shown[a] else None,
            )
            for a in np.argsort(-shown, kind="stable")[:10]
        ]  # fmt: skip


def describe(view: View, *, progress: Callable[[int], None] = lambda rounds: None) -> Description:
    """Describe a log, in one pass over it; `progress` is called with the rounds read since the last call."""
    log, sums, start = view.log, _Sums(view), 0
    for batch in log.batches():
        sums.add(batch, start)
        start += batch.rounds
        progress(batch.rounds)
    survey, (mean, square) = sums.survey, sums.rewards / sums.survey.rounds
    reading = log.about.get("reading", {})
    return Description(
        path=log.path.name,
        kind=log.about["kind"],
        rounds=survey.rounds,
        sources=len(log.source_starts),
        lines=reading.get("lines", 0),
        skipped=reading.get("skipped", {}),
        arms=len(view.names),
        vectors=len(log.names),
        pools=len(log.pools.sizes),
        slices=sums.slices(),
        reward=float(mean),
        reward_error=float(np.sqrt(max(square - mean**2, 0.0) / survey.rounds)),
        lowest_reward=survey.lowest,
        highest_reward=survey.highest,
        without_propensity=survey.missing,
        lowest_propensity=survey.smallest if survey.largest else None,
        highest_propensity=survey.largest or None,
        uniform=not survey.uneven,
        most_shown=sums.most_shown(),
        features=view.map.name,
        d1=view.d1,
        d2=view.d2,
        user_rank=(rank(sums.users, rcond=RCOND), view.map.user),
        arm_rank=(rank(log.vectors.T @ log.vectors, rcond=RCOND), view.map.arm),
        size=float(np.sqrt(sums.squares / survey.shown.sum())),
    )
