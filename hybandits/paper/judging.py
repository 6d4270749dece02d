"""The tests of the paper's claims: from results to verdicts. Nothing is run here.

docs/laboratory.md describes the intervals and how the answers on the parts of a claim are combined.

Exponents are least-squares slopes of log y against log t, one per run. For an arm's block, t is the number of its
pulls, and the arms of a run share one slope but have intercepts of their own. Smallest eigenvalues start to grow late,
by an offset that depends on the policy, so their exponents come from increments.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits import statistics
from hybandits.experiments.record import environment_seeds
from hybandits.experiments.results import Design, Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper import claims, settings, theorems
from hybandits.paper.claims import CLAIMS, CONFIDENCE, FAILS, HOLDS, OPEN, ORDERS, Answer, Basis, Finding, Verdict
from hybandits.paper.exponents import Growth, added_per_arm, local_exponents
from hybandits.paper.settings import (
    DIVERSITY_RUNS,
    DIVERSITY_UPDATED,
    FRESH_NAMES,
    HYLINUCB_K,
    HYRAN_RELEASED,
    SMALL_DIVERSITY,
    YAHOO_NAMES,
)
from hybandits.paper.theorems import COUPLING_LIMIT

YAHOO_CLAIMS = dict(zip(YAHOO_NAMES, ("8", "8 (positions)"), strict=True))
DISJOINT: theorems.Policy = "DisLinUCB"
"""Shares nothing between arms: its design matrix is one block per arm, and its burn-in counts pulls of an arm."""
_SHARING: tuple[theorems.Policy, ...] = ("LinUCB", "HyLinUCB")


def judge(results: Results) -> list[Verdict]:
    """Judge every claim of the paper whose experiment was run: claim by claim, and protocol by protocol for each.

    Claims 1 to 3 are judged on the paper's environments, and then on fresh ones if there are any.
    """
    verdicts: list[Verdict] = []
    for protocol in ("released", "written"):
        run = {name: JudgedOutcome(outcome) for (name, p), outcome in results.outcomes.items() if p == protocol}
        for claim, order in ORDERS.items():
            cases = (order.experiment, FRESH_NAMES[order.experiment])
            verdicts += [judge_order(claim, run[name]) for name in cases if name in run]
        for diversity in (run[name] for name in DIVERSITY_RUNS if name in run):
            verdicts += [test(diversity) for test in (judge_claim_4, judge_claim_5, judge_claim_6)]
        if SMALL_DIVERSITY in run:
            verdicts += judge_small_problem(run[SMALL_DIVERSITY])
        if bounded := [run[name] for name in settings.SETTINGS if name in run]:
            verdicts.append(judge_claim_7(bounded))
        verdicts += [judge_claim_8(run[name]) for name in YAHOO_CLAIMS if name in run]
    return sorted(verdicts, key=lambda verdict: verdict.claim)  # stable: protocols stay in order


class JudgedOutcome:
    """One experiment's results, with the quantities that several claims need."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.experiment = outcome.experiment
        self.protocol: str = outcome.experiment.protocol
        self.horizon = outcome.experiment.horizon
        self.fresh = outcome.experiment.name in FRESH_NAMES.values()
        self.updated = outcome.experiment.name == DIVERSITY_UPDATED
        self.design = cache(outcome.design)
        self.sharing = (*_SHARING, *({HYLINUCB_K} & set(outcome.policies)))
        self.algorithms = (*self.sharing, DISJOINT)
        """The paper's algorithms that share parameters, and all of them, in every version that was run."""

    def missing(self, policies: Sequence[str]) -> str:
        """A sentence that names the policies that were not run; empty if they all were."""
        names = [name for name in policies if name not in self.outcome.policies]
        return f"No results for {join_names(names)}." if names else ""

    @property
    def basis(self) -> str:
        """The runs that verdicts on this experiment rest on, in words."""
        e, count = self.experiment, len(self.experiment.seeds)
        if e.log is not None:
            return "one log" if settings.synthetic_log(e) is None else "one synthetic log"
        if self.outcome.has_independent_trials:
            words = f"{e.trials} trials of one draw" if count == 1 else f"{count} environments"
            if self.updated:
                return f"{words}, every algorithm updated"
            defect = any(entry.learns_from is not None for entry in e.policies)
            return f"{words}, HyLinUCB alone updated" if defect else words
        if self.fresh:
            return f"{count} fresh environments"
        # The environments of the text's protocol have the published seeds, but were never published.
        published = e.protocol == "released" and e.seeds == environment_seeds(settings.RELEASED_SEED, count)
        return f"the {count} published environments" if published else f"{count} environments"

    def verdict(
        self, claim: str, summary: str, findings: Sequence[Finding] = (), answer: Answer | None = None, *,
        other_test: bool = False, basis: str = "", early: bool = False,
    ) -> Verdict:  # fmt: skip
        """A verdict on a claim; the findings give the answer unless it is given, and the experiment its basis."""
        test = CLAIMS[claim].other_test if other_test else CLAIMS[claim].test
        return Verdict(
            claim=claim, protocol=self.protocol, test=test, verdict=answer or combine_answers(findings),
            summary=summary, evidence=tuple(findings), basis=basis or self.basis,
            aside=self.fresh or self.updated or bool(basis), early=early,
        )  # fmt: skip

    def parameters(self, policy: str) -> dict[str, Any]:
        """The settings of a policy in the record."""
        return next(dict(entry.settings) for entry in self.experiment.policies if entry.name == policy)

    def delta(self, policy: str) -> float:
        """The failure probability that a policy was run with."""
        return float(self.parameters(policy).get("exploration", {}).get("delta", settings.DELTA))

    def failure(self, policy: str) -> float:
        """delta of the theorems: on the small problem one for all policies, else that of the policy."""
        return settings.SMALL_DELTA if self.experiment.name == SMALL_DIVERSITY else self.delta(policy)

    def ridge(self, policy: str, arms: int) -> float:
        """lambda of the run: the record's, or the theorems' where the record leaves it to them."""
        return float(self.parameters(policy).get("ridge", theorems.prescribed_ridge(algorithm(policy), arms=arms)))

    def rho(self, policy: str, arms: int) -> float:
        """The largest diversity min(rho_x, rho_z) of any run at T; NaN if it was not measured or is 0.

        The largest gives the smallest burn-in and the smallest bound, hence the hardest test.
        """
        design = self.design(policy, arms)
        if design is None:
            return math.nan
        diversity = np.fmin(design.rho_x[:, -1], design.rho_z[:, -1])
        largest = float(np.max(diversity[np.isfinite(diversity)], initial=-math.inf))
        return min(largest, 1.0) if largest > 1e-12 else math.nan

    def problem(self, policy: str, arms: int) -> theorems.Problem | None:
        """The theorems' problem with the diversity that was measured; None without diversity."""
        rho, e = self.rho(policy, arms), self.experiment
        if math.isnan(rho):
            return None
        delta = self.failure(policy)
        return theorems.Problem(d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, delta=delta)

    def burn_in(self, policy: str, arms: int) -> float:
        """T_o, for DisLinUCB T'_o in pulls of an arm; infinite without diversity."""
        problem = self.problem(policy, arms)
        return math.inf if problem is None else theorems.burn_in(DISJOINT if policy == DISJOINT else "LinUCB", problem)

    def late(self, t: FloatArray, share: float = 0.5) -> NDArray[np.bool_]:
        """Select the rounds in the last half, or in the last `share`."""
        late: NDArray[np.bool_] = t >= (1 - share) * self.horizon
        return late

    def regret_exponents(self, policy: str) -> FloatArray:
        """The exponent of every run's regret over the last half of the rounds."""
        t = self.outcome.points
        return statistics.exponents(t, self.outcome.regret(policy), self.late(t))


def algorithm(policy: str) -> theorems.Policy:
    """The algorithm of the paper that one of `JudgedOutcome.algorithms` is, whatever its ridge."""
    return "HyLinUCB" if policy == HYLINUCB_K else policy  # type: ignore[return-value]


# ------------------------------------------------------------------ words


def number(value: float) -> str:
    """Format a number with as many digits as a reader needs.

    >>> number(0.12345), number(1234.5), number(8.43e8), number(math.inf), number(math.nan)
    ('0.123', '1,234', '8.4e8', 'infinite', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinite"
    if abs(value) >= 1e6:
        return f"{value:.2g}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def number_range(values: Sequence[float]) -> str:
    """Format the least and the largest of some numbers, as one where they look alike.

    >>> number_range([0.1, 3.0]), number_range([2.0])
    ('0.1 to 3', '2')
    """
    return " to ".join(dict.fromkeys(map(number, (min(values), max(values)))))


def mean(values: FloatArray) -> str:
    """Format the mean of the values that are finite."""
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if len(finite) else "unknown"


def join_names(names: Sequence[str]) -> str:
    """Join names as a list in a sentence."""
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def _name_a_few(names: Sequence[str]) -> str:
    return join_names(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def summarise(findings: Sequence[Finding], if_all_hold: str) -> str:
    """Name the parts of a claim that are contradicted, else those that are not settled."""
    contradicted = [finding.what for finding in findings if finding.verdict == FAILS]
    unsettled = [finding.what for finding in findings if finding.verdict == OPEN]
    if contradicted:
        return f"Contradicted: {_name_a_few(contradicted)}."
    return f"Not settled: {_name_a_few(unsettled)}." if unsettled else if_all_hold


# ------------------------------------------------------------------ parts that many claims have


def combine_answers(parts: Iterable[Finding | Answer]) -> Answer:
    """Combine the answers of a claim's parts: one contradicted part refutes it, and it holds if all parts do.

    Findings that do not decide are left out.

    >>> combine_answers([HOLDS, Finding("a < b", "1 against 2", HOLDS), Finding("c", "for information")])
    'holds'
    >>> combine_answers([HOLDS, OPEN]), combine_answers([OPEN, FAILS]), combine_answers([])
    ('undecided', 'does not hold', 'undecided')
    """
    answers = {part.verdict if isinstance(part, Finding) else part for part in parts} - {None}
    if FAILS in answers:
        return FAILS
    return HOLDS if answers == {HOLDS} else OPEN


class JudgedMean(NamedTuple):
    """The answer on where a mean lies, and its interval at the stated confidence, None if there is none."""

    answer: Answer
    interval: statistics.Interval | None

    def words(self, of: str = "") -> str:
        """Describe the interval of the quantity `of`."""
        if self.interval is None:
            return "no interval: fewer than two independent runs with a usable value"
        mean, low, high = (number(value) for value in self.interval[:3])
        return f"{of} {mean}, {claims.LEVEL} interval {low} to {high}".strip()

    def finding(self, what: str, of: str, *, lead: str = "", end: str = "") -> Finding:
        """The part of a claim that the answer is on, with the interval in words between others."""
        return Finding(what, f"{lead}{self.words(of)}{end}", self.answer)


def judge_mean(
    values: FloatArray, units: NDArray[Any], *, above: float = -math.inf, below: float = math.inf, margin: float = 0.0,
    parts: int = 1,
) -> JudgedMean:  # fmt: skip
    """Judge whether a mean lies between two limits.

    `units` has the independent unit of every run. To contradict the claim, the interval must lie more than `margin`
    outside, after Bonferroni's correction for so many `parts` of the claim.
    """
    usual, wide = (statistics.interval(values, units, level) for level in _levels(parts))
    return _judge_interval(usual, wide, above - margin, above, below, below + margin)


def judge_functions(
    statistic: Callable[[FloatArray], FloatArray], values: FloatArray, units: NDArray[Any], *, above: float = -math.inf,
    below: float = math.inf, parts: int = 1,
) -> list[JudgedMean]:  # fmt: skip
    """Judge whether functions of a mean lie between two limits, by the jackknife; see `judge_mean`."""
    intervals = (statistics.jackknife(statistic, values, units, level) for level in _levels(parts))
    return [_judge_interval(usual, wide, above, above, below, below) for usual, wide in zip(*intervals, strict=True)]


def _levels(parts: int) -> tuple[float, float]:
    """The levels at which a part of a claim holds, and at which it is contradicted."""
    return CONFIDENCE, 1 - (1 - CONFIDENCE) / parts


def _judge_interval(
    usual: statistics.Interval | None, wide: statistics.Interval | None, lowest: float, above: float, below: float,
    highest: float,
) -> JudgedMean:  # fmt: skip
    """Judge a value to lie between `above` and `below`, or outside of `lowest` to `highest`."""
    if usual is None or wide is None:
        return JudgedMean(OPEN, None)
    if above < usual.low and usual.high < below:
        return JudgedMean(HOLDS, usual)
    return JudgedMean(FAILS if wide.low > highest or wide.high < lowest else OPEN, usual)


def judge_growth(values: FloatArray, units: NDArray[Any], *, linear: bool, parts: int) -> JudgedMean:
    """Judge whether exponents are those of linear growth, or at most those of a square root."""
    if linear:
        limit = 1 - claims.GROWTH_TOLERANCE
        return judge_mean(values, units, above=limit, margin=limit - claims.BETWEEN, parts=parts)
    limit = 0.5 + claims.GROWTH_TOLERANCE
    return judge_mean(values, units, below=limit, margin=claims.BETWEEN - limit, parts=parts)


def judge_share(successes: int, trials: int, goal: float, *, parts: int) -> tuple[float, Answer]:
    """Judge whether a probability is at least `goal`; with its lower limit (Clopper and Pearson)."""
    floor = statistics.proportion_floor(successes, trials, CONFIDENCE)
    ceiling = 1 - statistics.proportion_floor(trials - successes, trials, 1 - (1 - CONFIDENCE) / parts)
    return floor, HOLDS if floor >= goal else FAILS if ceiling < goal else OPEN


def compare_regrets(
    judged: JudgedOutcome, smaller: str, larger: str, *, arms: int | None = None, parts: int = 1
) -> Finding:
    """Judge whether one policy's regret at T is below another's, compared run by run."""
    e = judged.experiment
    t = min(e.rounds_of(smaller), e.rounds_of(larger))
    a, b = judged.outcome.final(smaller, arms, t=t), judged.outcome.final(larger, arms, t=t)
    units = judged.outcome.independent_units(smaller, arms)
    end = f"; smaller in {int((a < b).sum())} of {len(a)} runs"
    if within := statistics.interval_within(a - b, units, CONFIDENCE):
        end += f"; in these {within.units} environments alone {number(within.low)} to {number(within.high)}"
    what = f"{smaller} < {larger}{'' if arms is None else f' at K = {arms}'}"
    what += f" after {t:,} rounds" if t < e.horizon else ""
    judgement = judge_mean(a - b, units, below=0.0, parts=parts)
    return judgement.finding(what, "difference", lead=f"{mean(a)} against {mean(b)}; ", end=end)


def judge_shape(judged: JudgedOutcome, policy: str, *, linear: bool, parts: int = 1) -> Finding:
    """Judge whether a policy's regret is linear, or sublinear, in the last half of the rounds.

    The exponent of the mean curve is that of the environments with the largest regrets, and the mean of the runs'
    exponents counts all alike; both must agree.
    """
    t, units = judged.outcome.points, judged.outcome.independent_units(policy)
    above, below = claims.LINEAR if linear else (-math.inf, claims.LINEAR[0])
    runs = judge_mean(judged.regret_exponents(policy), units, above=above, below=below, parts=parts)

    def exponent(curve: FloatArray) -> FloatArray:
        return statistics.exponents(t[None], curve[None], judged.late(t))

    (curve,) = judge_functions(exponent, judged.outcome.regret(policy), units, above=above, below=below, parts=parts)
    agree = runs.answer == curve.answer
    value = f"{curve.words('exponent of the mean curve')}; {runs.words('mean of the exponents of the runs')}"
    return Finding(
        f"{policy} {'linear' if linear else 'sublinear'}",
        value if agree else f"{value}; the first alone: {curve.answer}, the second: {runs.answer}",
        runs.answer if agree else OPEN,
    )


# ------------------------------------------------------------------ claims 1 to 3


def judge_order(claim: str, judged: JudgedOutcome) -> Verdict:
    """Judge an order of regrets at T, the shapes of the curves, or the growth with the number of arms."""
    order = ORDERS[claim]
    if missing := judged.missing(order.policies):
        return judged.verdict(claim, missing)
    complete = judged.outcome.arms
    several = order.growth and len(complete) > 1
    cases = complete if order.growth else [None]
    shaped = (*order.linear, *order.sublinear)
    parts = 3 * len(cases) + len(shaped) + (3 if several else 0)
    pairs = list(itertools.pairwise(order.policies))
    findings = [compare_regrets(judged, a, b, arms=arms, parts=parts) for arms in cases for a, b in pairs]
    findings += [judge_shape(judged, name, linear=name in order.linear, parts=parts) for name in shaped]
    if incomplete := ", ".join(str(arms) for arms in judged.experiment.arms if arms not in complete):
        findings.append(Finding(f"K = {incomplete}", "not complete", OPEN))
    summary, answer = summarise(findings, order.if_all_hold), combine_answers(findings)
    if several:
        first, *rivals = order.policies
        growth = Growth(judged.outcome, order.policies)
        compared = [compare_growth(growth, first, rival, parts) for rival in rivals]
        summary = _add_growth(summary, order.if_all_hold, compared, rivals)
        answer = combine_answers([answer, *(finding for finding, _ in compared)])
        findings += [*(finding for finding, _ in compared), *_describe_growth(growth)]
    elif order.growth:
        findings.append(Finding("growth in K", "needs two numbers of arms", OPEN))
        answer = combine_answers([answer, OPEN])
    always, counted = _count_environments(judged, order.policies)
    at_every_arms = " at every K" if len(complete) > 1 else ""
    count = len(judged.experiment.seeds)
    summary = f"{summary[:-1]}; the whole order appears in {always} of {count} environments{at_every_arms}."
    return judged.verdict(claim, summary, [*findings, counted], answer)


_MEASURES = {"local exponents": local_exponents, "regret added per arm": added_per_arm}


def compare_growth(growth: Growth, slower: str, faster: str, parts: int) -> tuple[Finding, str]:
    """Judge whether one policy's regret grows slower than another's, from each number of arms to the next.

    Both measures must agree. A policy near uniform choice's regret cannot grow as it would otherwise, so slow growth
    does not count in its favour. With the finding comes the reason if it is undecided.
    """
    both = np.stack([growth.regret[slower], growth.regret[faster]], axis=1)
    steps = len(growth.arms) - 1

    def answers(measure: Callable[[FloatArray, FloatArray], FloatArray]) -> list[Answer]:
        def difference(means: FloatArray) -> FloatArray:
            return measure(growth.arms, means[0]) - measure(growth.arms, means[1])

        judgements = judge_functions(difference, both, growth.units, below=0.0, parts=parts * steps)
        return [judgement.answer for judgement in judgements]

    by_measure = {name: answers(measure) for name, measure in _MEASURES.items()}
    pairs = list(zip(*by_measure.values(), strict=True))
    saturated = [
        a == b != OPEN and growth.share[faster if a == FAILS else slower][step + 1] > claims.SATURATED
        for step, (a, b) in enumerate(pairs)
    ]
    combined = [a if a == b and not near else OPEN for (a, b), near in zip(pairs, saturated, strict=True)]
    counts = [
        f"{name} lower in {each.count(HOLDS)} of {steps} steps, higher in {each.count(FAILS)}"
        for name, each in by_measure.items()
    ]
    shares = " against ".join(f"{100 * growth.share[name].max():.3g} %" for name in (slower, faster))
    value = f"{'; '.join(counts)}; up to {shares} of uniform choice's regret"
    finding = Finding(f"growth of {slower} < {faster}", value, combine_answers(combined))
    if any({HOLDS, FAILS} == {*pair} for pair in pairs):
        return finding, "local exponents and regret added per arm disagree"
    return finding, "regret is close to that of uniform choice" if any(saturated) else "intervals are too wide"


def _add_growth(summary: str, as_stated: str, growth: Sequence[tuple[Finding, str]], rivals: Sequence[str]) -> str:
    """Say in the summary if the first policy's regret grows slowest, or why that is open."""
    slowest = combine_answers(finding for finding, _ in growth)
    words = {HOLDS: "grows slowest", FAILS: "does not grow slowest", OPEN: "may or may not grow slowest"}
    reasons: dict[str, list[str]] = {}
    for rival, (finding, reason) in zip(rivals, growth, strict=True):
        if slowest == finding.verdict == OPEN:
            reasons.setdefault(reason, []).append(rival)
    why = ", ".join(f"against {join_names(names)} {reason}" for reason, names in reasons.items())
    reading = f"HyLinUCB's regret {words[slowest]} with K{f': {why}' if why else ''}."
    # One sentence where the growth alone keeps the claim from holding: some readers see the first one only.
    return f"{as_stated[:-1]}, but {reading}" if summary == as_stated and slowest != HOLDS else f"{summary} {reading}"


def _describe_growth(growth: Growth) -> list[Finding]:
    """For information: local exponents of every policy and of uniform choice, and regrets over uniform choice's."""
    steps = [f"from K = {growth.arms[0]:.0f} to {growth.arms[1]:.0f}", *(f"to {k:.0f}" for k in growth.arms[2:])]

    def row(what: str, exponents: Iterable[str], regrets: str) -> Finding:
        words = ", ".join(f"{exponent} {step}" for exponent, step in zip(exponents, steps, strict=True))
        return Finding(f"local exponents of {what}", f"{words}; {regrets}").informing()

    findings = []
    for name, regret in growth.regret.items():
        intervals = statistics.jackknife(partial(local_exponents, growth.arms), regret, growth.units, CONFIDENCE)
        shares = ", ".join(f"{100 * share:.3g} %" for share in growth.share[name])
        exponents = [f"{number(e.mean)} ({number(e.low)} to {number(e.high)})" if e else "unknown" for e in intervals]
        findings.append(row(name, exponents, f"{shares} of uniform choice's regret"))
    uniform = local_exponents(growth.arms, growth.uniform)
    return [*findings, row("uniform choice", map(number, uniform), f"regret {', '.join(map(number, growth.uniform))}")]


def _count_environments(judged: JudgedOutcome, order: Sequence[str]) -> tuple[int, Finding]:
    """Count the environments that are in the whole order at every K, and describe them K by K."""
    complete, count = judged.outcome.arms, len(judged.experiment.seeds)
    in_order = {arms: _in_whole_order(judged, order, arms) for arms in complete}
    always = int(np.all(list(in_order.values()), axis=0).sum())
    by_arms = "; ".join(f"{int(each.sum())} of {count} at K = {arms}" for arms, each in in_order.items())
    by_arms += f"; {always} of {count} at every K" if len(complete) > 1 else ""
    return always, Finding("environments in the whole stated order", by_arms).informing()


def _in_whole_order(judged: JudgedOutcome, order: Sequence[str], arms: int) -> NDArray[np.bool_]:
    """Check, environment by environment, that the mean regrets are in the stated order."""
    environments = judged.outcome.environments(order[0], arms)
    runs = np.stack([judged.outcome.final(policy, arms) for policy in order], axis=1)
    means = np.array([runs[environments == e].mean(axis=0) for e in np.unique(environments)])
    return np.asarray((np.diff(means) > 0).all(axis=1))


# ------------------------------------------------------------------ claim 4


def judge_claim_4(judged: JudgedOutcome) -> Verdict:
    """Judge the exponents of the regrets in the diversity experiment, of policies whose burn-in T exceeds."""
    limit = 0.5 + claims.ROOT_TOLERANCE
    if missing := judged.missing(theorems.POLICIES):
        return judged.verdict("4", missing)
    findings, exponents = [], []
    for policy in judged.algorithms:
        burn_in, values = judged.burn_in(policy, judged.outcome.arms[0]), judged.regret_exponents(policy)
        judgement = judge_mean(
            values, judged.outcome.independent_units(policy), below=limit, parts=len(judged.algorithms)
        )
        value = f"{judgement.words()}, allowed up to {limit:g}; {_against_burn_in(judged, policy, burn_in)}"
        answer = OPEN if judged.horizon <= burn_in else judgement.answer
        findings.append(Finding(f"{policy}: exponent of the regret", value, answer))
        exponents.append(f"{policy} {mean(values)}")
    summary = f"Exponents at this T: {join_names(exponents)}; sqrt(T) has 0.5."
    early = _before_burn_in(judged, judged.algorithms)
    return judged.verdict("4", early + summary, findings, early=bool(early))


def _against_burn_in(judged: JudgedOutcome, policy: str, burn_in: float) -> str:
    unit = " pulls of an arm" if policy == DISJOINT else ""
    return f"burn-in {number(burn_in)}{unit}, T = {judged.horizon:,}"


def _before_burn_in(judged: JudgedOutcome, policies: Sequence[str]) -> str:
    """Say which policies have not reached their burn-in, with its length; empty if all have."""
    burn_ins = {policy: judged.burn_in(policy, judged.outcome.arms[0]) for policy in policies}
    early = [
        f"{policy} {number(burn_in)} {'pulls of an arm' if policy == DISJOINT else 'rounds'}"
        for policy, burn_in in burn_ins.items()
        if judged.horizon <= burn_in
    ]
    return f"T = {judged.horizon:,} is before the burn-in ({', '.join(early)}), so nothing is claimed yet. " * bool(
        early
    )


# ------------------------------------------------------------------ claim 5


class _Measure(NamedTuple):
    """A measure of a policy's design matrix, of shape (runs, probes, blocks), and the rows behind it."""

    what: str
    rows: FloatArray
    value: FloatArray
    dimension: int
    linear: bool
    """Claimed to grow linearly; if not, at most like a square root."""

    @property
    def claim(self) -> str:
        """The claim about it, in words."""
        return f"{self.what} {'linear' if self.linear else 'like a square root'}"


def _measures(judged: JudgedOutcome, policy: str, design: Design) -> list[_Measure]:
    d1, d2 = judged.experiment.d1, judged.experiment.d2
    assert design.pulls is not None
    assert design.lambda_min_w is not None
    assert design.sigma_max_b is not None
    cross = _Measure("sigma_max(B_i)", design.pulls, design.sigma_max_b, max(d1, d2), False)
    if policy == DISJOINT:
        return [_Measure("lambda_min of the arms' matrices", design.pulls, design.lambda_min_w, d1 + d2, True), cross]
    t = np.broadcast_to(design.t[None, :, None], (*design.z_norm.shape, 1))
    return [
        _Measure("lambda_min(V)", t, design.lambda_min_v[..., None], d1, True),
        _Measure("lambda_min(W_i)", design.pulls, design.lambda_min_w, d2, True),
        cross,
    ]


def mean_cross_moment(design: Design) -> FloatArray:
    """sigma_max(B_i) / pulls, the size of an arm's mean of x z', which is 0 in the assumption."""
    assert design.pulls is not None
    assert design.sigma_max_b is not None
    size: FloatArray = design.sigma_max_b / np.maximum(design.pulls, 1)
    return size


def _summarise_growth(findings: Sequence[Finding], if_singular_values_fail: str) -> str:
    summary = summarise(findings, "Eigenvalues grow linearly, singular values no faster than a square root.")
    failed = any(finding.verdict == FAILS and "sigma_max" in finding.what for finding in findings)
    return f"{summary} {if_singular_values_fail}" if failed else summary


def judge_claim_5(judged: JudgedOutcome) -> Verdict:
    """Judge the exponents of the design matrix in the diversity experiment."""
    if missing := judged.missing(theorems.POLICIES):
        return judged.verdict("5", missing)
    findings = [finding for policy in judged.algorithms for finding in _judge_spectrum(judged, policy)]
    summary = _summarise_growth(
        findings,
        "The arm played is picked for its reward, so its features do not average out: the mean of x z' is 0 by "
        "the assumption, but not here.",
    )
    for policy in judged.sharing:
        if (design := judged.design(policy)) is not None:
            if design.frobenius_b is not None:
                what = f"{policy}: Frobenius norm of B_i, which the released code plots for its singular value"
                value = f"exponent {mean(cross_exponents(judged, policy, design.frobenius_b))}"
                findings.append(Finding(what, value).informing())
            size = mean_cross_moment(design)
            middle, last = (number(float(np.median(size[:, i]))) for i in (_late_quarters(judged, design.t)[0], -1))
            what = f"{policy}: sigma_max of an arm's mean x z', median (not deciding; 0 by the assumption)"
            findings.append(Finding(what, f"{middle} at T/2, {last} at T"))
    return judged.verdict("5", summary, findings)


def cross_exponents(judged: JudgedOutcome, policy: str, values: FloatArray, *, share: float = 0.5) -> FloatArray:
    """The exponent of a norm of B_i in the pulls of the arm, one per run, over the last rounds."""
    design = judged.design(policy)
    assert design is not None
    assert design.pulls is not None
    least = claims.PULLS_PER_DIMENSION * max(judged.experiment.d1, judged.experiment.d2)
    late = (design.pulls >= least) & judged.late(design.t, share)[:, None]
    return statistics.exponents(design.pulls, values, late)


def _judge_spectrum(judged: JudgedOutcome, policy: str) -> list[Finding]:
    design = judged.design(policy)
    if design is None:
        return [Finding(policy, "its design matrix was not measured", OPEN)]
    measures = _measures(judged, policy, design)
    return [
        (_judge_late_start if measure.linear else _judge_root)(judged, policy, measure, design.t)
        for measure in (measures[:1] if policy == DISJOINT else measures)
    ]


def _late_quarters(judged: JudgedOutcome, t: FloatArray) -> list[int]:
    """The probes nearest to T/2, 3T/4 and T."""
    return [int(np.argmin(np.abs(t - share * judged.horizon))) for share in (0.5, 0.75, 1.0)]


def _judge_late_start(judged: JudgedOutcome, policy: str, measure: _Measure, t: FloatArray) -> Finding:
    """Judge linear growth by increments: smallest eigenvalues start to grow late."""
    rows, y, dimension = measure.rows, measure.value, measure.dimension
    probes, enough = _late_quarters(judged, t), rows >= claims.PULLS_PER_DIMENSION * dimension
    use, three, units = enough[:, probes[0]], rows[:, probes], judged.outcome.independent_units(policy)
    judgement = judge_growth(
        statistics.increment_exponents(three, y[:, probes], use), units, linear=True, parts=1 + 3 * len(judged.sharing)
    )
    expected = statistics.expected_smallest_eigenvalue(dimension, three)
    late = enough & judged.late(t)[:, None]
    slopes = statistics.exponents(rows, y - judged.ridge(policy, judged.outcome.arms[0]), late)
    end = (
        f" (independent rows would show {mean(statistics.increment_exponents(three, expected, use))}); "
        f"log-log slope {mean(slopes)}{_share_of_arms(use)}"
    )
    return judgement.finding(f"{policy}: {measure.claim}", "exponent", end=end)


def _judge_root(judged: JudgedOutcome, policy: str, measure: _Measure, t: FloatArray) -> Finding:
    rows, y, dimension = measure.rows, measure.value, measure.dimension
    enough, units = rows >= claims.PULLS_PER_DIMENSION * dimension, judged.outcome.independent_units(policy)
    late = enough & judged.late(t)[:, None]
    judgement = judge_growth(
        statistics.exponents(rows, y, late), units, linear=False, parts=1 + 3 * len(judged.sharing)
    )
    last = statistics.exponents(rows, y, enough & judged.late(t, 0.25)[:, None])
    end = f"; over the last quarter {mean(last)}{_share_of_arms(late[:, -1])}"
    return judgement.finding(f"{policy}: {measure.claim}", "exponent", end=end)


def _share_of_arms(used: NDArray[np.bool_]) -> str:
    return "" if used.all() else f"; {100 * used.mean():.4g} % of arms had enough pulls"


# ------------------------------------------------------------------ claim 6


class _Case(NamedTuple):
    """A policy's design matrix with one number of arms."""

    arms: int
    policy: str
    design: Design
    decides: bool

    @property
    def name(self) -> str:
        return f"K = {self.arms}, {self.policy}"


def _cases(judged: JudgedOutcome, deciding: Sequence[str], informing: Sequence[str] = ()) -> list[_Case]:
    return [
        _Case(arms, policy, design, policy in deciding)
        for arms in judged.outcome.arms
        for policy in (*deciding, *informing)
        if policy in judged.outcome.policies and (design := judged.design(policy, arms)) is not None
    ]


def judge_claim_6(judged: JudgedOutcome) -> Verdict:
    """Judge the size of sigma_max(Z_t) in the diversity experiment; before the burn-in nothing is claimed."""
    if missing := judged.missing(_SHARING):
        return judged.verdict("6", missing)
    early = _before_burn_in(judged, judged.sharing)
    summary, findings = _judge_couplings(judged, _cases(judged, judged.sharing, [DISJOINT]))
    return judged.verdict("6", early + summary, findings, early=bool(early))


def _judge_couplings(judged: JudgedOutcome, cases: Sequence[_Case]) -> tuple[str, list[Finding]]:
    parts = sum(case.decides for case in cases)
    findings: list[Finding] = []
    clauses: dict[int, list[str]] = {}
    for case in cases:
        finding, clause = _judge_coupling(judged, case, max(parts, 1))
        findings.append(finding if case.decides else finding.informing())
        if case.decides:
            clauses.setdefault(case.arms, []).append(clause)
    summary = "; ".join(f"K = {arms}: Z <= 1/2 {join_names(of_arms)}" for arms, of_arms in clauses.items())
    summary = f"{summary}." if summary else "Z was not measured."
    return summary, [*findings, *(_describe_burn_in(judged, case) for case in cases)]


def _judge_coupling(judged: JudgedOutcome, case: _Case, parts: int) -> tuple[Finding, str]:
    """Judge whether sigma_max(Z_t) is at most 1/2 after the burn-in, with a clause for the summary."""
    policy, design, goal = case.policy, case.design, 1 - 4 * judged.failure(case.policy)
    z, trials, start = design.z_norm, len(design.z_norm), judged.burn_in(policy, case.arms)
    counts = np.broadcast_to(design.t >= start, z.shape)
    if policy == DISJOINT and design.pulls is not None:
        counts = design.pulls.min(axis=2) >= start
    reached = bool(counts[:, -1].all())
    if not reached:
        counts = np.broadcast_to(design.t >= design.t[-1], z.shape)
    small = int(((z <= COUPLING_LIMIT) | ~counts).all(axis=1).sum())
    floor, answer = judge_share(small, trials, goal, parts=parts)
    units = judged.outcome.independent_units(policy, case.arms)
    slope = judge_mean(statistics.exponents(design.t, z, _late(judged, design.t)), units)
    middle, least, largest = (number(float(value)) for value in (np.median(z[:, -1]), z[:, -1].min(), z[:, -1].max()))
    when = f"{'since T_o' if reached else 'at T'} in {small} of {trials} trials"
    value = f"median {middle} at T ({least} to {largest}); {slope.words('exponent')}; at most 1/2 {when}"
    value += f", hence with probability {floor:.3f} or more ({goal:g} is claimed)" if reached else ""
    clause = f"for {policy} {when} ({middle} at T)"
    return Finding(f"{case.name}: sigma_max(Z_t)", value, answer if reached else OPEN), clause


def _late(judged: JudgedOutcome, t: FloatArray) -> NDArray[np.bool_]:
    """Select the last half of the rounds, on the small problem the last powers of ten."""
    share = 1 - 10.0**-claims.DECADES if judged.experiment.name == SMALL_DIVERSITY else 0.5
    return judged.late(t, share)


def _describe_burn_in(judged: JudgedOutcome, case: _Case) -> Finding:
    """The burn-in as printed, with the diversity and the ridge that it rests on."""
    ridge = judged.experiment.design_ridge
    ridge = judged.ridge(case.policy, case.arms) if ridge is None else ridge
    rho = judged.rho(case.policy, case.arms)
    value = _against_burn_in(judged, case.policy, judged.burn_in(case.policy, case.arms))
    value += f"; rho = {number(rho)}, ridge {ridge:g}, and the proof asks for at least 1/rho = {number(1 / rho)}"
    return Finding(f"{case.name}: burn-in", value).informing()


# ------------------------------------------------------------------ claims 5 and 6 beyond the burn-in


def judge_small_problem(judged: JudgedOutcome) -> list[Verdict]:
    """Judge claims 5 and 6 where the burn-in is reached, with and without their assumption, as far as both were run.

    Of uniform choice the diversity assumption is true by construction: the arm played has nothing to do with its
    features. Policies pick the arm for its reward, hence for its features, and nothing makes the assumption true.
    """
    verdicts = []
    for basis in (claims.UNIFORM_CHOICE, claims.PICKED_ARMS):
        if not any(name in judged.outcome.policies for name in (*basis.deciding, *basis.informing)):
            continue
        missing = judged.missing(basis.deciding)
        growth, spectrum = (missing, []) if missing else _judge_small_spectrum(judged, basis)
        # DisLinUCB's lemma is another one: it bounds every arm's own Z_i,t, after so many pulls of the arm.
        cases = _cases(judged, basis.deciding, basis.informing)
        cases = [case._replace(decides=case.decides and case.policy != DISJOINT) for case in cases]
        bounded, coupling = (missing, []) if missing else _judge_couplings(judged, cases)
        verdicts.append(judged.verdict("5", growth, spectrum, other_test=True, basis=basis.words))
        unmet = claims.UNMET if any(f.verdict == FAILS and "sigma_max" in f.what for f in spectrum) else None
        if unmet:
            bounded = f"The mean of x z' over an arm's rounds does not vanish (claim 5). {bounded}"
        early = bool(cases) and all(judged.horizon <= judged.burn_in(case.policy, case.arms) for case in cases)
        verdicts.append(judged.verdict("6", bounded, coupling, unmet, other_test=True, basis=basis.words, early=early))
    return verdicts


def _judge_small_spectrum(judged: JudgedOutcome, basis: Basis) -> tuple[str, list[Finding]]:
    cases = _cases(judged, basis.deciding, basis.informing)
    parts = sum(1 if case.policy == DISJOINT else 3 for case in cases if case.decides)
    ridge = judged.experiment.design_ridge or 0.0
    findings = []
    for case in cases:
        units = judged.outcome.independent_units(case.policy, case.arms)
        late = _late(judged, case.design.t)[:, None]
        for measure in _measures(judged, case.policy, case.design):
            linear, y = measure.linear, measure.value
            exponents = statistics.exponents(measure.rows, y - ridge if linear else y, late)
            judgement = judge_growth(exponents, units, linear=linear, parts=parts)
            finding = judgement.finding(f"{case.name}: {measure.claim}", "exponent")
            # The paper says nothing of DisLinUCB's cross blocks, though its proof rests on them as well.
            decides = case.decides and (linear or case.policy != DISJOINT)
            findings.append(finding if decides else finding.informing())
    summary = _summarise_growth(
        findings, "B_i grows faster than x z' of mean 0 would make it, so the assumption is not met for every arm."
    )
    for case in cases:
        last = mean_cross_moment(case.design)[:, -1]
        value = f"median {number(float(np.median(last)))}, {number(float(last.min()))} to {number(float(last.max()))}"
        what = f"{case.name}: sigma_max of an arm's mean x z' at T (not deciding; 0 by the assumption)"
        findings.append(Finding(what, value))
    return summary, findings


# ------------------------------------------------------------------ claim 7


def judge_claim_7(outcomes: Sequence[JudgedOutcome]) -> Verdict:
    """Judge the largest regrets of all experiments of one protocol against the bounds."""
    cases = [
        (judged, policy, arms)
        for judged in outcomes
        for arms in judged.outcome.arms
        for policy in judged.algorithms
        if not judged.missing([policy])
    ]
    comparisons = [_compare_with_bound(*case, parts=len(cases)) for case in cases]
    findings = [finding for finding, *_ in comparisons]
    ratios = [ratio for _, ratio, *_ in comparisons if not math.isnan(ratio)]
    summary = "No diversity was measured, so there is no bound to compare with."
    if ratios:
        total, above = len(findings), sum(ratio < 1 for ratio in ratios)
        summary = (
            f"{f'{above} of {total} largest regrets exceed their' if above else 'No regret exceeds its'} bound; bounds "
            f"are {number(min(ratios))} to {number(max(ratios))} times the largest regret, "
            f"{sum(vacuous for *_, vacuous, _ in comparisons)} of {total} are vacuous, and T does not exceed "
            f"the burn-in in {sum(early for *_, early in comparisons)} of {total}."
        )
    early = any(early for *_, early in comparisons)
    return replace(outcomes[0].verdict("7", summary, findings, early=early), basis="all settings that were run")


def _compare_with_bound(
    judged: JudgedOutcome, policy: str, arms: int, *, parts: int
) -> tuple[Finding, float, bool, bool]:
    """Compare a regret with its bound: a finding, their ratio, whether no regret can exceed it, and if T is early."""
    e, kind = judged.experiment, algorithm(policy)
    what = f"{e.name}{f', K = {arms}' if len(e.arms) > 1 else ''}: {policy}"
    regret, problem = judged.outcome.final(policy, arms), judged.problem(policy, arms)
    largest = float(regret.max())
    if problem is None:
        unknown = Finding(what, "no diversity was measured (rho is 0 or unknown), hence no bound", OPEN)
        return unknown, math.nan, False, True
    ridge, burn_in = theorems.prescribed_ridge(kind, arms=arms), judged.burn_in(policy, arms)
    bound = theorems.regret_bound(kind, problem, ridge=ridge, bound=max(e.theta_bound, e.beta_bound))
    limit = 2 * (e.theta_bound + e.beta_bound) * e.horizon  # |x.theta + z.beta_i| <= S1 + S2
    # DisLinUCB's bound is derived for every T: its T'_o counts pulls of an arm, and stands in the bound.
    early, vacuous = policy != DISJOINT and e.horizon <= burn_in, bound > limit
    ratio = bound / largest if largest > 0 else math.nan
    value = f"largest regret {number(largest)} in {len(regret)} runs, bound {number(bound)}"
    value += "" if math.isnan(ratio) else f", {number(ratio)} times as large"
    unit = "pulls of an arm" if policy == DISJOINT else f"against T = {e.horizon:,}"
    value += f"{', vacuous' if vacuous else ''}; rho = {number(problem.rho)}, burn-in {number(burn_in)} {unit}"
    different = [] if judged.ridge(policy, arms) == ridge else ["lambda"]
    different += [] if judged.parameters(policy)["exploration"]["kind"] == "AsWritten" else ["gamma"]
    value += f"; run with another {join_names(different)} than the theorem's" if different else ""
    _, share = judge_share(int((regret <= bound).sum()), len(regret), 1 - 4 * problem.delta, parts=parts)
    answer = OPEN if early else HOLDS if largest <= bound else share
    return Finding(what, value, answer), ratio, vacuous, early


# ------------------------------------------------------------------ claim 8

_RIVALS = ("LinUCB", "DisLinUCB", HYRAN_RELEASED)


def judge_claim_8(judged: JudgedOutcome) -> Verdict:
    """Judge on a click log who has the smallest regret, and who comes close."""
    claim = YAHOO_CLAIMS[judged.experiment.name]
    synthetic = settings.synthetic_log(judged.experiment) is not None
    missing = judged.missing(("HyLinUCB", *_RIVALS))
    findings = [] if missing else _judge_click_log(judged)
    words = "HyLinUCB has the smallest regret, LinUCB's is close and the others' are much larger."
    answer, summary = combine_answers(findings), missing or summarise(findings, words)
    if not missing and judged.experiment.trials == 1:
        summary = "Not settled: one trial gives no interval (--trials 2 or more would)."
    early = _reason_it_is_too_early(judged) if findings else ""
    if synthetic:
        early = (
            "No real data: the log is synthetic, not Yahoo's, so nothing is known about the claim. What the synthetic "
            f"log shows: {summary}"
        )
    if early:
        findings = [Finding(f.what, f"{f.value}; so far: {f.verdict}").informing() for f in findings]
        answer, summary = OPEN, early
    if not judged.missing(["HyLinUCB", "HyRan"]):
        findings.append(compare_regrets(judged, "HyLinUCB", "HyRan").informing())
    return judged.verdict(claim, summary, findings, answer, other_test=synthetic)


def _judge_click_log(judged: JudgedOutcome) -> list[Finding]:
    """The parts of the claim: HyLinUCB before every rival, and LinUCB closer than the others."""
    parts = 2 * len(_RIVALS) - 1
    findings = [compare_regrets(judged, "HyLinUCB", rival, parts=parts) for rival in _RIVALS]
    units = judged.outcome.independent_units("HyLinUCB")
    for rival in _RIVALS[1:]:
        t = judged.experiment.rounds_of(rival)
        best, near, far = (judged.outcome.final(name, t=t) for name in ("HyLinUCB", "LinUCB", rival))
        judgement = judge_mean((near - best) - claims.CLOSE * (far - best), units, below=0.0, parts=parts)
        what, of = f"excess of LinUCB < {claims.CLOSE:g} of {rival}'s", f"first less {claims.CLOSE:g} of the second"
        lead = f"{mean(near - best)} against {mean(far - best)} more than HyLinUCB; "
        findings.append(judgement.finding(what, of, lead=lead))
    return findings


def _reason_it_is_too_early(judged: JudgedOutcome) -> str:
    """Explain why algorithms that have hardly begun to exploit are not ranked; empty if they have."""
    uniform = settings.uniform_choice_regret(judged.experiment)
    lost = float(judged.outcome.final("HyLinUCB").mean())
    if uniform is None or lost < claims.EARLY * uniform:
        return ""
    return (
        f"Too early to tell: after {judged.horizon:,} rounds HyLinUCB has lost {100 * lost / uniform:.0f} % of "
        "what choosing uniformly among the candidates would lose, so it has gained hardly anything from learning yet."
    )
