"""What policies would have earned, from a log of another: replay, IPS, SNIPS, DM and DR, with intervals.

The estimators "replay", "ips", "snips", "dm" and "dr" are defined in `offline.terms`; the model behind dm and dr, and
what its errors do to the interval of dm, in `offline.crossfit`.

**What is covered.** The value of a fixed policy: its mean reward over the distribution that the log's rounds (users
and candidates) come from, not over these very rounds. Replay of a learning policy: its value averaged over the rounds
it learned from, each as it was then.

**Replay** (Li et al. 2011) needs uniformly logged data and takes the rounds in which the policy would have shown what
was shown. Where lists of candidates differ in length, short ones match more often and count more.

**Clipping** replaces w by min(w, clip): less noise, and an estimate of something else, lower for rewards of at least 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hybandits.engines import Engine, Here
from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.logs.store import LogError
from hybandits.offline.evaluation.estimates import Gathered, checked
from hybandits.offline.evaluation.evidence import LogEvidence, refuse
from hybandits.offline.evaluation.parts import BlockLayout, LogPart
from hybandits.offline.evaluation.passes import Walker, read
from hybandits.offline.evaluation.results import Evaluation
from hybandits.offline.evaluation.targets import (
    Learning,
    Target,
    target_of,
)
from hybandits.offline.evaluation.terms import TERMS
from hybandits.offline.reward_model import RewardModel
from hybandits.offline.view import View
from hybandits.policies.base import Policy

ESTIMATORS = {
    "replay": "mean reward of the rounds in which the policy would have shown what was shown",
    "ips": "inverse propensity scores",
    "snips": "self-normalised inverse propensity scores",
    "dm": "direct method: the model's mean rewards",
    "dr": "doubly robust: the model, corrected by weighted residuals",
}


def evaluate(
    view: View,
    targets: Mapping[str, Target | Learning | Policy | str],
    *,
    estimators: Sequence[str] = ("ips", "snips", "dm", "dr"),
    interval: str = "bootstrap",
    level: float = 0.95,
    seed: int | None = 0,
    engine: Engine | None = None,
    start: int = 0,
    stop: int | None = None,
    ridge: float = 1.0,
    folds: int = 2,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned in rounds start..stop-1 of a log; see `offline.terms` for the formulas.

    targets: by name, "uniform", "logged" (the log's own policy), "always ARM", a policy, Frozen(policy),
    Learning(policy), or a `Target`. A bare policy is frozen, but learns if replay is the only estimator; either way a
    copy is made of it. Differences are to the first of them, on the same resamples.

    interval: "bootstrap" or "bernstein" (see `offline.intervals`). The latter takes rewards in reward_range, (0, 1) if
    it is left out, and the smallest propensity of the log for the smallest that was possible. With a range, dr keeps
    the model's means in it; for bernstein each fold then has a sequence of its own.

    What cannot be estimated is refused, with the reason, one by one; LogError if that is everything. progress is called
    with rounds as they are worked off, `progress_total(..)` in all. Memory does not grow with the log. Results are the
    same to the bit on every engine.
    """
    level = checked(interval, level)
    seed = checks.seed(seed)
    if interval == "bernstein" and reward_range is None:
        reward_range = (0.0, 1.0)
    gathered = gather(
        view, targets, estimators=estimators, engine=engine, start=start, stop=stop, ridge=ridge, folds=folds,
        clip=clip, reward_range=reward_range, progress=progress,
    )  # fmt: skip
    return gathered.evaluation(interval=interval, level=level, seed=seed)


def gather(
    view: View,
    targets: Mapping[str, Target | Learning | Policy | str],
    *,
    estimators: Sequence[str] = ("ips", "snips", "dm", "dr"),
    engine: Engine | None = None,
    start: int = 0,
    stop: int | None = None,
    ridge: float = 1.0,
    folds: int = 2,
    clip: float | None = None,
    reward_range: tuple[float, float] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Gathered:
    """The part of `evaluate` that reads the log."""
    names = list(estimators)
    _check(names, targets, reward_range)
    folds = checks.count("folds", folds, least=2, why="the model for one is fitted on the others")
    ridge = checks.ridge(ridge)
    if clip is not None:
        clip = checks.positive("clip", clip, "it is the largest weight; leave it out for none")
    start = checks.count("start", start, least=0, why="it is the first round")
    if stop is not None:
        checks.count("stop", stop, least=1, why="it is the round before which to end")
    stop = view.log.rounds if stop is None else min(stop, view.log.rounds)
    if start >= stop:
        raise LogError(f"there is no round from {start:,} on: the log has {view.log.rounds:,}")
    layout = BlockLayout.of(start, stop, folds)
    arms = len(view.names)
    policies = [
        LogEvidence.none(name, target_of(given, view, learns=names == ["replay"]), layout, arms)
        for name, given in targets.items()
    ]
    survey, unfitted = read(view, policies, names, layout, ridge, clip, reward_range, engine or Here(), progress)
    for policy in policies:
        refuse(policy, view, survey, names, unfitted, layout)
    if reward_range is not None and not reward_range[0] <= survey.lowest <= survey.highest <= reward_range[1]:
        raise LogError(
            f"rewards go from {survey.lowest:g} to {survey.highest:g}, beyond the range {reward_range}: "
            "give reward_range=(lowest, highest) that are possible"
        )
    if all(name in policy.why for policy in policies for name in names):
        reasons = "; ".join(f"{policy.name} by {name}: {policy.why[name]}" for policy in policies for name in names)
        raise LogError(f"nothing can be estimated from this log: {reasons}")
    return Gathered(
        policies=policies, estimators=names, layout=layout, survey=survey, clip=clip, reward_range=reward_range
    )


def _check(names: list[str], targets: Mapping[str, Any], reward_range: tuple[float, float] | None) -> None:
    wrong = [name for name in names if name not in ESTIMATORS]
    if wrong or not names or len(set(names)) < len(names):
        raise ValueError(f"estimators must be some of {', '.join(ESTIMATORS)}, each once, got {names!r}")
    if not targets:
        raise ValueError("targets is empty: name at least one policy to evaluate, e.g. {'uniform': 'uniform'}")
    if len(names) > 1 and "replay" in names and any(isinstance(given, Policy) for given in targets.values()):
        raise ValueError(
            "a bare policy learns in replay and is frozen for the other estimators: say Learning(policy) or "
            "Frozen(policy), or evaluate twice"
        )
    if reward_range is not None:
        low, high = (checks.real("reward_range", end) for end in reward_range)
        if not low < high:
            raise ValueError(f"reward_range must be (lowest, highest), got {reward_range!r}")


def terms_by_round(
    view: View,
    targets: Mapping[str, Target | Policy | str],
    *,
    models: Sequence[RewardModel] = (),
    start: int = 0,
    stop: int | None = None,
    clip: float | None = None,
) -> Iterator[tuple[int, dict[str, dict[str, Doubles]]]]:
    """(number of the first round, terms by policy and TERMS), a piece of the log at a time, for work of one's own.

    models: one, or one per fold as dealt by `BlockLayout`; without, dm and dr have q = 0. Weights are 0 where
    propensities are missing: nothing is refused here.
    """
    stop = view.log.rounds if stop is None else min(stop, view.log.rounds)
    meant = [target_of(given, view, learns=False) for given in targets.values()]
    fixed = tuple(target for target in meant if not isinstance(target, Learning))
    if len(fixed) < len(targets):
        raise ValueError("a policy that learns has no fixed probabilities: give Frozen(policy)")
    layout = BlockLayout.of(start, stop, max(1, len(models)))
    part = LogPart(
        view.recipe(), start, stop, layout, targets=fixed, models=tuple(models),
        clip=math.inf if clip is None else checks.positive("clip", clip, "it is the largest weight"),
    )  # fmt: skip
    walker = Walker(view, part)
    number = start
    for batch in view.log.batches(start, stop):
        for at, _, _, terms in walker(batch, number):
            yield (
                at,
                {
                    name: {term: array[:, i] for i, term in enumerate(TERMS)}
                    for name, array in zip(targets, terms, strict=True)
                },
            )
        number += batch.rounds
