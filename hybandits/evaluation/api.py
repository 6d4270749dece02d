"""From a log and policies to estimates of the policies' values, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybandits import statistics
from hybandits.bandit import Bandit
from hybandits.engines import Engine, SerialEngine
from hybandits.evaluation.estimators import (
    ESTIMATORS,
    ROUGH,
    TILTED,
    BlockSums,
    Estimator,
    LogSupport,
    first_reason,
    records_of,
    warnings_of,
)
from hybandits.evaluation.named import target_or_bandit
from hybandits.evaluation.parts import BlockLayout, Survey, in_order, parts_of, round_range
from hybandits.evaluation.passes import (
    LogPart,
    cross_fitted,
    influence_part,
    slopes_of,
    survey_part,
    terms_part,
)
from hybandits.evaluation.rejection import rejection_for
from hybandits.evaluation.results import Diagnostics, Difference, Estimate, Evaluation
from hybandits.evaluation.targets import Learning, Target
from hybandits.evaluation.view import View
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import LogError
from hybandits.policies.base import Policy

INTERVALS = ("bootstrap", "bernstein")
"""The kinds of intervals; see `EvaluationPlan`."""

TOO_LITTLE_SPREAD = (
    "No interval: almost all weighted rounds have the same reward, so their spread cannot be estimated. Give more "
    "rounds."
)
UNJUDGED_MODEL = (
    "No interval: almost all rounds in which the policy agrees with the log have the same reward, so the error of the "
    "model cannot be estimated. Give more rounds."
)


def evaluate(
    view: View,
    targets: Mapping[str, Target | Learning | Policy | Bandit | str],
    *,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
    **settings: Any,
) -> Evaluation:
    """Estimate the mean rewards of policies per round, each with an interval, from a log of another policy.

    `view`, `targets` and the settings are those of `EvaluationPlan`. The work runs on `engine`, by default in this
    process; every engine gives the same bits. `progress` is called with the number of rounds done since the last call.

    An estimate that the log does not support is refused and says why. Raises LogError if nothing can be estimated, if
    there are no rounds, or if rewards lie beyond `reward_range`. The value of a policy that learns is an average over
    rounds, each as the policy was then: by replay over those that it learned, by the other estimators over all.

    Examples
    --------
    >>> from hybandits.logs.formats import reader_of
    >>> from hybandits.logs.report import ReadReport
    >>> from hybandits.logs.store import convert
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> log = convert(reader_of("clicks"), "log", ReadReport())
    >>> evaluation = evaluate(View(log), {"uniform": "uniform"}, estimators=("ips",))
    >>> estimate = evaluation.of("uniform", "ips")
    >>> round(estimate.value, 3), 0 < estimate.low < estimate.value < estimate.high
    (0.082, True)
    """
    return EvaluationPlan(view, targets, **settings).evaluate(engine, progress)


class EvaluationPlan:
    """A checked evaluation, whose amount of work is known before the log is read.

    Parameters
    ----------
    view : View
        The log, with its features and its notion of arms. Its feature map is that of the reward model behind dm and dr.
    targets : dict
        The policies by name. Each is "uniform", "logged" (the log's own policy), "always:ARM", a policy,
        `Frozen(policy)`, `Learning(policy)`, a `Bandit`, `LearningBandit(bandit)`, or a `Target` of your own. A bare
        policy or bandit is frozen. They are copied, never changed. The first one is what the others are compared with.
    estimators : sequence of str or Estimator, optional
        Some of "replay", "ips", "snips", "dm" and "dr", and records of your own. "dm" is for fixed policies only. By
        default replay and snips for policies that learn, and all but replay for fixed ones.
    interval : {"bootstrap", "bernstein"}
        A bootstrap over blocks of rounds, or a confidence sequence that holds at all rounds at once. The latter needs
        rewards in `reward_range`, and takes the smallest propensity of the log for the smallest that was possible.
    level : float
        The confidence level of the intervals.
    seed : int or None
        Seed of the bootstrap, and of the random numbers that decide which rounds are kept in replay.
    start, stop : int
        Evaluate rounds start..stop-1; all of them by default.
    ridge, folds : float, int
        Ridge of the reward model behind dm and dr, and the number of folds for its cross-fitting.
    clip : float, optional
        Replace weights w by min(w, clip), which means less noise and a bias.
    reward_range : (float, float), optional
        The lowest and highest reward possible; (0, 1) for "bernstein" if left out. With a range, dr keeps the model's
        means within it.
    keep : float, optional
        A round that matches is kept with the probability keep / propensity when a policy that learns is replayed (see
        `rejection`). By default every such round is kept if the log was uniform; otherwise `keep` is the smallest
        propensity. Above the smallest propensity the estimate is a rough number without an interval.

    Attributes
    ----------
    total : int
        Rounds reported to `progress` in all: those of the log, times the passes over it.
    """

    def __init__(
        self,
        view: View,
        targets: Mapping[str, Target | Learning | Policy | Bandit | str],
        *,
        estimators: Sequence[str | Estimator] | None = None,
        interval: str = "bootstrap",
        level: float = 0.95,
        seed: int | None = 0,
        start: int = 0,
        stop: int | None = None,
        ridge: float = 1.0,
        folds: int = 2,
        clip: float | None = None,
        reward_range: tuple[float, float] | None = None,
        keep: float | None = None,
    ) -> None:
        if not targets:
            raise ValueError("targets is empty: name at least one policy to evaluate, e.g. {'uniform': 'uniform'}")
        resolved = {name: target_or_bandit(given, view) for name, given in targets.items()}
        kinds = [isinstance(target, Learning) for target in resolved.values()]
        self.usual = estimators is None
        records = records_of(list(ESTIMATORS) if estimators is None else estimators)
        if self.usual:
            words = {"learning" if learns else "fixed" for learns in kinds}
            records = tuple(each for each in records if words & set(each.usual_for))
        elif any(each.replayed for each in records) and any(isinstance(given, Policy) for given in targets.values()):
            raise ValueError("a bare policy would be frozen in replay: give Learning(policy) or Frozen(policy)")
        self.view, self.records, self.interval = view, records, interval
        self.level, self.seed = _checked(interval, level), checks.seed(seed)
        self.folds = checks.count("folds", folds, least=2, why="the model for one is fitted on the others")
        self.ridge = checks.ridge(ridge)
        self.clip = None if clip is None else checks.positive("clip", clip, "it is the largest weight; None for none")
        if keep is not None and not 0 < (keep := checks.real("keep", keep)) <= 1:
            raise ValueError(f"keep must lie in (0, 1], got {keep!r}: rounds are kept with keep / propensity")
        self.keep = keep
        if reward_range is not None:
            low, high = (checks.real("reward_range", end) for end in reward_range)
            if not low < high:
                raise ValueError(f"reward_range must be (lowest, highest), got {reward_range!r}")
        self.reward_range = (0.0, 1.0) if interval == "bernstein" and reward_range is None else reward_range
        start, stop = round_range(view, start, stop)
        self.layout = BlockLayout.of(start, stop, self.folds)
        self.policies = [
            LogSupport(name=name, target=target, layout=self.layout, estimators=records, arms=view.names)
            for name, target in resolved.items()
        ]
        self._fixed = [policy for policy in self.policies if not policy.learns]
        self._moving = [policy for policy in self._fixed if not policy.logged]
        fixed_only = all(each.fitted_model for each in records)
        self._learning = [] if fixed_only else [policy for policy in self.policies if policy.learns]
        self._surveyed = any(kinds) or any(each.replayed for each in records)
        self._modelled = any(
            each.modelled and (self._moving or (self._learning and not each.fitted_model)) for each in records
        )
        self._direct = bool(self._moving) and any(each.fitted_model for each in records)
        passes = self._surveyed + self._modelled + len(self._learning) + bool(self._fixed) + self._direct
        self.total = self.layout.rounds * passes

    def evaluate(self, engine: Engine | None = None, progress: Callable[[int], None] | None = None) -> Evaluation:
        """Read the log and estimate."""
        return self.gather(engine, progress).evaluation(interval=self.interval, level=self.level, seed=self.seed)

    def gather(self, engine: Engine | None = None, progress: Callable[[int], None] | None = None) -> Gathered:
        """Read the log, and keep the sums from which estimates and intervals of any kind and level follow."""
        survey = self._read(engine or SerialEngine(), progress or (lambda rounds: None))
        bounds = self.reward_range
        if bounds is not None and not bounds[0] <= survey.lowest <= survey.highest <= bounds[1]:
            extent = f"The rewards of the log go from {survey.lowest:g} to {survey.highest:g}"
            raise LogError(f"{extent}, beyond reward_range={bounds}. Give the lowest and the highest possible reward.")
        gathered = Gathered(self, survey)
        if not gathered.ratios:
            reasons = " ".join(f"{policy} by {name}: {reason}" for (policy, name), reason in gathered.refusals.items())
            raise LogError(f"Nothing can be estimated from this log. {reasons}")
        return gathered

    def _read(self, engine: Engine, progress: Callable[[int], None]) -> Survey:
        view, layout = self.view, self.layout
        first, last = layout.first, layout.first + layout.rounds
        tasks = [
            LogPart(part, layout, terms=tuple(each.terms for each in self.records))
            for part in parts_of(view, first, last)
        ]
        survey = Survey.of(view)
        for policy in self.policies:
            policy.data = BlockSums.empty(layout.blocks, layout.folds, len(view.names), len(self.records))
            policy.influence = np.zeros(layout.blocks)
        if self._surveyed:
            for part_survey in in_order(engine, survey_part, tasks, progress):
                survey.merge(part_survey)
            for policy in self.policies:
                policy.rejection = rejection_for(survey, self.keep, self.seed, learns=policy.learns)
        fitted = cross_fitted(view, tasks, self.ridge, engine, progress) if self._modelled else None
        models, estimators = fitted or (None, [])
        low, high = self.reward_range or (-math.inf, math.inf)
        clip = math.inf if self.clip is None else self.clip
        tasks = [task._replace(models=models or (), clip=clip, low=low, high=high) for task in tasks]
        # Learning policies come first: each takes as long as the whole log does.
        entire = tasks[0]._replace(part=tasks[0].part._replace(stop=last))
        learning = self._learning if survey.sound else []
        todo = [entire._replace(targets=(policy.target,), rejection=policy.rejection) for policy in learning]
        direct = self._direct and models is not None
        if self._fixed:
            targets = tuple(policy.target for policy in self._fixed)
            rejection = self._fixed[0].rejection
            todo += [task._replace(targets=targets, features=direct, rejection=rejection) for task in tasks]
        playing = [[policy] for policy in learning] + [self._fixed] * (len(todo) - len(learning))
        results = in_order(engine, terms_part, todo, progress)
        for task, policies, (part_survey, sums) in zip(todo, playing, results, strict=True):
            if not self._surveyed:
                survey.merge(part_survey)
            for policy, part in zip(policies, sums, strict=True):
                policy.data.add(layout.touched(task.part.start, task.part.stop), part)
        if direct:
            slopes = tuple(slopes_of(view, estimators, policy.data.features) for policy in self._moving)
            tasks = [task._replace(slopes=slopes) for task in tasks]
            for task, influences in zip(tasks, in_order(engine, influence_part, tasks, progress), strict=True):
                for policy, total in zip(self._moving, influences, strict=True):
                    policy.influence[layout.touched(task.part.start, task.part.stop)] += total
        for policy in self.policies:
            policy.survey, policy.fitted = survey, models is not None
        return survey


def _checked(interval: str, level: float) -> float:
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    return checks.probability("level", level, "it is the share of intervals that hold the truth, e.g. 0.95")


Key = tuple[str, str]
"""The name of a policy and that of an estimator."""

Interval = tuple[float, float]


@dataclass
class Gathered:
    """Sums over the blocks of a log, from which estimates and intervals of any kind and level follow."""

    plan: EvaluationPlan
    survey: Survey

    def __post_init__(self) -> None:
        self.policies, self.refusals = self.plan.policies, dict[Key, str]()
        self.ratios: dict[Key, tuple[FloatArray, FloatArray]] = {}
        """Numerators and denominators by block of all estimates that are not refused."""
        for policy in self.policies:
            for each in self.plan.records:
                key = policy.name, each.name
                if (reason := each.refusal(policy)) is not None:
                    self.refusals[key] = reason
                else:
                    self.ratios[key] = policy.ratio(each)

    def value(self, key: Key) -> float:
        upper, lower = self.ratios[key]
        return float(upper.sum() / lower.sum())

    def evaluation(self, *, interval: str = "bootstrap", level: float = 0.95, seed: int | None = 0) -> Evaluation:
        """Estimates with intervals of one kind; for "bernstein", the plan must have a reward_range."""
        level = _checked(interval, level)
        intervals = Bootstrap(self, level, seed) if interval == "bootstrap" else Sequences(self, level)
        estimates = []
        for policy in self.policies:
            for each in self.plan.records:
                key = policy.name, each.name
                if key in self.ratios:
                    estimates.append(self._estimate(intervals, policy, each))
                elif not self.plan.usual or policy.kind in each.usual_for:
                    estimates.append(Estimate(*key, refusal=self.refusals[key]))
        return Evaluation(
            rounds=self.plan.layout.rounds, level=level, interval=interval, features=self.plan.view.map.name,
            estimates=estimates, diagnostics={policy.name: self._diagnostics(policy) for policy in self.policies},
        )  # fmt: skip

    def _estimate(self, intervals: Bootstrap | Sequences, policy: LogSupport, each: Estimator) -> Estimate:
        key, first = (policy.name, each.name), self.policies[0]
        refusal = intervals.refusal(policy, each)
        low, high = intervals.interval(policy, each) if refusal is None else (None, None)
        difference = None
        if policy is not first and (first.name, each.name) in self.ratios:
            gap = self.value(key) - self.value((first.name, each.name))
            # Where one side's spread is unknown, so is the difference's.
            known = refusal is None and intervals.refusal(first, each) is None
            bounds = intervals.difference(policy, first, each) if known else (None, None)
            difference = Difference(first.name, gap, *bounds)
        return Estimate(
            *key, value=self.value(key), low=low, high=high, refusal=refusal, difference=difference,
            notes=() if (rough := ROUGH.reason(policy)) is None else (rough,),
        )  # fmt: skip

    def _diagnostics(self, policy: LogSupport) -> Diagnostics:
        n = self.plan.layout.rounds
        rejected = policy.rejection.rejects and not policy.logged
        diagnostics = Diagnostics(
            rounds=n,
            matched=policy.total("match") / n,
            kept=policy.total("kept") if rejected and policy.learns else None,
            keep=policy.rejection.keep if rejected else None,
            effective=policy.replayed_rounds if rejected else None,
            warnings=warnings_of(policy),
        )
        if not any(each.weighted for each in self.plan.records) or not (self.survey.sound or policy.logged):
            return diagnostics
        return replace(
            diagnostics,
            mean_weight=policy.total("weight") / n,
            largest_weight=policy.data.tally.largest,
            effective=policy.effective_rounds,
            smallest_propensity=self.survey.smallest if self.survey.sound else None,
        )


class Bootstrap:
    """Bootstrap-t intervals of all ratios, and of their differences from the first policy's."""

    def __init__(self, gathered: Gathered, level: float, seed: int | None) -> None:
        self.gathered, self.level = gathered, level
        keys, first = list(gathered.ratios), gathered.policies[0].name
        upper, lower = (np.stack([ratio[i] for ratio in gathered.ratios.values()]) for i in (0, 1))
        compared = [key for key in keys if key[0] != first and (first, key[1]) in keys]
        pairs = [(keys.index(key), keys.index((first, key[1]))) for key in compared]
        bounds = statistics.resample(upper, lower, pairs=pairs, seed=seed).intervals(level)
        self._bounds = dict(zip(keys, zip(bounds.low.tolist(), bounds.high.tolist(), strict=True), strict=True))
        differences = zip(bounds.difference_low.tolist(), bounds.difference_high.tolist(), strict=True)
        self._differences = dict(zip(compared, differences, strict=True))
        modelled = any(each.modelled for each in gathered.plan.records)
        self._unjudged = self._few_matches() if modelled else set()

    def _few_matches(self) -> set[str]:
        """The policies that match some rounds, but too few for an interval that would show the error of a model."""
        matching = [policy for policy in self.gathered.policies if policy.total("match") > 0]
        if not matching:
            return set()
        upper, lower = (np.stack([p.blocks(name) for p in matching]) for name in ("match reward", "match"))
        low = statistics.resample(upper, lower).intervals(self.level).low
        return {policy.name for policy, bound in zip(matching, low, strict=True) if not math.isfinite(bound)}

    def refusal(self, policy: LogSupport, each: Estimator) -> str | None:
        if (reason := first_reason((TILTED, *each.no_interval), policy)) is not None:
            return reason
        if each.modelled and policy.name in self._unjudged and not policy.logged:
            return UNJUDGED_MODEL
        return None if math.isfinite(self._bounds[policy.name, each.name][0]) else TOO_LITTLE_SPREAD

    def interval(self, policy: LogSupport, each: Estimator) -> Interval:
        return self._bounds[policy.name, each.name]

    def difference(self, policy: LogSupport, first: LogSupport, each: Estimator) -> Interval:
        return self._differences[policy.name, each.name]


class Sequences:
    """Confidence sequences of estimates that are means of bounded terms."""

    def __init__(self, gathered: Gathered, level: float) -> None:
        plan, self.level = gathered.plan, level
        if plan.reward_range is None:
            raise ValueError("interval='bernstein' needs the range of the rewards: give reward_range=(lowest, highest)")
        self.rewards = plan.reward_range
        self.largest = min(math.inf if plan.clip is None else plan.clip, 1 / gathered.survey.smallest)

    def refusal(self, policy: LogSupport, each: Estimator) -> str | None:
        reason = first_reason((TILTED, *each.no_sequence), policy)
        if reason is None and each.bounds is None and not policy.logged:
            return f"No interval: {each.name} is not a mean of bounded terms. Use ips or dr, or interval='bootstrap'."
        return reason

    def interval(self, policy: LogSupport, each: Estimator) -> Interval:
        return self._sequence(policy, each, self.level)

    def difference(self, policy: LogSupport, first: LogSupport, each: Estimator) -> Interval:
        """Bounds of the difference from those of both estimates, which hold together at this level."""
        apart = 1 - (1 - self.level) / 2
        low, high = self._sequence(policy, each, apart)
        other_low, other_high = self._sequence(first, each, apart)
        return low - other_high, high - other_low

    def _sequence(self, policy: LogSupport, each: Estimator, level: float) -> Interval:
        """Bounds after all rounds by one sequence or, where a model is fitted, the average of one per fold.

        Given the other folds, which the model is fitted on, the terms of one fold are a sequence as `bernstein` needs
        it; the terms of all folds in turn are not. All folds' sequences hold at once.
        """
        a, b, squares = policy.columns(each)
        columns = [b, a, squares]
        if not each.modelled or policy.logged:
            columns = [column.sum(axis=1, keepdims=True) for column in columns]
        low, high = self.rewards
        if not policy.logged and each.bounds is not None:
            low, high = each.bounds(*self.rewards, self.largest)
        folds, last = columns[0].shape[1], np.array([len(b) - 1])
        bounds = [
            statistics.bernstein(
                *(column[:, f] for column in columns), low=low, high=high, mean=self.rewards,
                level=1 - (1 - level) / folds, at=last,
            )
            for f in range(folds)
        ]  # fmt: skip
        share = columns[0].sum(axis=0) / columns[0].sum()
        lower, upper = np.array(bounds)[:, :, 0].T
        return float((share * lower).sum()), float((share * upper).sum())
