"""From a log and policies to estimates of what the policies would have earned.

The estimators "replay", "ips", "snips", "dm" and "dr" are defined in `terms`; the model behind dm and dr, and what its
errors do to the interval of dm, in `crossfit`; the intervals in `intervals`; what is refused in `refusals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hybandits.engines import Engine, SerialEngine
from hybandits.evaluation.estimates import Gathered, checked
from hybandits.evaluation.parts import BlockLayout, LogPart
from hybandits.evaluation.passes import Walker, read
from hybandits.evaluation.refusals import enter_refusals
from hybandits.evaluation.results import Evaluation
from hybandits.evaluation.reward_model import RewardModel
from hybandits.evaluation.support import LogSupport
from hybandits.evaluation.targets import Learning, Target, target_of
from hybandits.evaluation.tasks import round_range
from hybandits.evaluation.terms import TERMS
from hybandits.evaluation.view import View
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import LogError
from hybandits.policies.base import Policy

ESTIMATORS = {
    "replay": "mean reward of the rounds in which the policy would have shown what was shown, and which are kept",
    "ips": "inverse propensity scores",
    "snips": "self-normalised inverse propensity scores",
    "dm": "direct method: the mean rewards that a model predicts",
    "dr": "doubly robust: the direct method, corrected by weighted residuals",
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
    keep: float | None = None,
    progress: Callable[[int], None] | None = None,
) -> Evaluation:
    """Estimate what policies would have earned per round on a log, each with an interval.

    Parameters
    ----------
    view : View
        The log, with its features and its notion of arms. Its feature map is that of the reward model behind dm and dr.
    targets : dict
        The policies by name. Each is "uniform", "logged" (the log's own policy), "always:ARM", a policy,
        `Frozen(policy)`, `Learning(policy)`, or a `Target` of your own. A bare policy is frozen, but learns if replay
        is the only estimator. Policies are copied, never changed. One that was fitted to a log has
        the feature map that it was fitted with (`features` of `Frozen` and `Learning`), others that of the view. The
        first policy is the one that the others are compared with.
    estimators : sequence of str
        Some of "replay", "ips", "snips", "dm" and "dr". "dm" is for fixed policies only.
    interval : {"bootstrap", "bernstein"}
        A bootstrap over blocks of rounds, or a confidence sequence that holds at all rounds at once. The latter needs
        rewards in `reward_range`, and takes the smallest propensity of the log for the smallest that was possible.
    level : float
        The confidence level of the intervals.
    seed : int or None
        Seed of the bootstrap, and of the random numbers that say which rounds are kept in replay.
    engine : Engine, optional
        Where the work runs; in this process if left out. Every engine gives the same bits.
    start, stop : int
        Evaluate rounds start..stop-1; all of them by default.
    ridge, folds : float, int
        Ridge of the reward model behind dm and dr, and the number of folds for its cross-fitting.
    clip : float, optional
        Replace weights w by min(w, clip). This takes noise away, at the price of a bias: the estimate is then of
        something else, which is lower if rewards are at least 0.
    reward_range : (float, float), optional
        The lowest and highest reward possible; (0, 1) for "bernstein" if left out. With a range, dr keeps the model's
        means within it.
    keep : float, optional
        The probability with which a choice of the policy is kept in replay, whatever the log's own policy did: a round
        that matches is kept with the probability keep / propensity. By default every round that matches is kept if the
        log was uniform. Otherwise it is the smallest propensity of these rounds, or more if a policy that learns
        would learn fewer than 50 rounds; see `rejection`. Above the smallest propensity the estimate is biased. The
        interval of a fixed policy then includes the bias, and a policy that learns has no interval.
    progress : callable, optional
        Called with the number of rounds done since the last call; they add up to `progress_total`.

    Returns
    -------
    Evaluation
        An estimate for every policy and estimator. What cannot be estimated is refused, and the estimate says why.

    Raises
    ------
    LogError
        If nothing can be estimated, if there are no rounds, or if rewards lie beyond `reward_range`.

    Notes
    -----
    The value of a fixed policy is its mean reward over the distribution that the log's users and candidates come from,
    not over these very rounds. The value of a learning policy by replay is its value averaged over the rounds that it
    learned from, each as the policy was then; by ips, snips and dr it is averaged over all rounds, each as the policy
    was then, and it learned the same rounds as in replay. On a uniform log these are the rounds that match (Li et al.
    2011); where lists of candidates differ in length, short lists match more often and count more. On other logs
    rounds that match are kept with the probability keep / propensity (Dudik et al. 2012), so that all count alike.

    Memory does not grow with the log.

    Examples
    --------
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     evaluation = evaluate(View(log), {"uniform": "uniform"}, estimators=("ips",))
    >>> estimate = evaluation.of("uniform", "ips")
    >>> round(estimate.value, 3), 0 < estimate.low < estimate.value < estimate.high
    (0.082, True)
    """
    level = checked(interval, level)
    seed = checks.seed(seed)
    if interval == "bernstein" and reward_range is None:
        reward_range = (0.0, 1.0)
    gathered = gather(
        view, targets, estimators=estimators, engine=engine, start=start, stop=stop, ridge=ridge, folds=folds,
        clip=clip, reward_range=reward_range, keep=keep, seed=seed, progress=progress,
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
    keep: float | None = None,
    seed: int | None = 0,
    progress: Callable[[int], None] | None = None,
) -> Gathered:
    """Read the log as `evaluate` does, and keep the sums from which estimates and intervals of any kind follow."""
    names = list(estimators)
    _check(names, targets, reward_range)
    folds = checks.count("folds", folds, least=2, why="the model for one is fitted on the others")
    ridge = checks.ridge(ridge)
    if clip is not None:
        clip = checks.positive("clip", clip, "it is the largest weight; leave it out for none")
    if keep is not None and not 0 < (keep := checks.real("keep", keep)) <= 1:
        raise ValueError(f"keep must lie in (0, 1], got {keep!r}: rounds are kept with probability keep / propensity")
    start, stop = round_range(view, start, stop)
    layout = BlockLayout.of(start, stop, folds)
    arms = len(view.names)
    policies = [
        LogSupport.empty(name, target_of(given, view, learns=names == ["replay"]), layout, arms)
        for name, given in targets.items()
    ]
    survey, unfitted = read(
        view, policies, names, layout, ridge, clip, reward_range, keep, seed, engine or SerialEngine(), progress
    )
    for policy in policies:
        enter_refusals(policy, view, survey, names, layout, reward_range, unfitted=unfitted)
    if reward_range is not None and not reward_range[0] <= survey.lowest <= survey.highest <= reward_range[1]:
        raise LogError(
            f"The rewards of the log go from {survey.lowest:g} to {survey.highest:g}, beyond "
            f"reward_range={reward_range}. Give the lowest and the highest reward that are possible."
        )
    refused = [(policy, name) for policy in policies for name in names if name in policy.refusals]
    if len(refused) == len(policies) * len(names):
        reasons = " ".join(f"{policy.name} by {name}: {policy.refusals[name]}" for policy, name in refused)
        raise LogError(f"Nothing can be estimated from this log. {reasons}")
    return Gathered(
        policies=policies, estimators=names, layout=layout, survey=survey, features=view.map.name, clip=clip,
        reward_range=reward_range,
    )  # fmt: skip


def _check(names: list[str], targets: Mapping[str, Any], reward_range: tuple[float, float] | None) -> None:
    wrong = [name for name in names if name not in ESTIMATORS]
    if wrong or not names or len(set(names)) < len(names):
        raise ValueError(f"estimators must be some of {', '.join(ESTIMATORS)}, each once, got {names!r}")
    if not targets:
        raise ValueError("targets is empty: name at least one policy to evaluate, e.g. {'uniform': 'uniform'}")
    if len(names) > 1 and "replay" in names and any(isinstance(given, Policy) for given in targets.values()):
        raise ValueError(
            "a bare policy learns in replay and is frozen for the other estimators: give Learning(policy) or "
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
) -> Iterator[tuple[int, dict[str, dict[str, FloatArray]]]]:
    """Yield the terms of fixed policies round by round, for estimators of your own.

    Parameters
    ----------
    view, targets, start, stop, clip
        As for `evaluate`, but no policy may learn.
    models : sequence of RewardModel
        The model behind dm and dr, or one per fold; without one, its means are 0.

    Yields
    ------
    (int, dict)
        The number of the first round of a piece of the log, and by policy and term ("weight", "ips", "dm", "dr",
        "match", "hit", "kept"; see `terms`) an array with one entry per round. Nothing is refused here: where a
        propensity is missing, the weight is 0.
    """
    start, stop = round_range(view, start, stop)
    meant = [target_of(given, view, learns=False) for given in targets.values()]
    fixed = tuple(target for target in meant if not isinstance(target, Learning))
    if len(fixed) < len(targets):
        raise ValueError(
            "a policy that learns has no fixed probabilities: evaluate it, or freeze it with Frozen(policy)"
        )
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
