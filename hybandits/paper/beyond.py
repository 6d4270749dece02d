"""Topics that the paper leaves open and these results settle, each with its sentences; the page adds the figures.

A topic appears once any of its experiments has results; a topic without experiments is computed, not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hybandits.experiments.results import Outcome, Results
from hybandits.paper import bounds, exponents, theorems
from hybandits.paper.claims import LEVEL
from hybandits.paper.diversity import DIVERSITY_NAMES, describe_coverage
from hybandits.paper.judging import join_names, number, number_range
from hybandits.paper.sensitivity import FACTORIAL, IN_WORDS, SENSITIVITY, describe_factorial, describe_sensitivity
from hybandits.paper.settings import DELTA, PAPER_POLICIES
from hybandits.paper.structured import STRUCTURED_WORLDS, describe_structured
from hybandits.paper.theorems import Problem

_SETTINGS = ("setting-1", "setting-2", "setting-3")


class Topic(NamedTuple):
    """A question beyond the paper: the experiments that answer it, and the answer in about two sentences."""

    key: str
    title: str
    experiments: tuple[str, ...]
    """Names of experiments in `hybandits.paper.settings`; any of them is enough. Empty if nothing has to be run."""
    sentences: Callable[[Results], str]
    """The answer; all of its numbers come from the results. Greek letters and roots may be written as names."""
    figure: str
    """The beginning of the names of its figures, of which there may be one per protocol."""


# ------------------------------------------------------------------ do the improved bounds improve


def compared_shapes(results: Results) -> dict[str, Problem]:
    """The shapes of settings 1 to 3 that were played, with the fewest and the most arms, by name."""
    shapes = {}
    for outcome in _played(results):
        for arms in dict.fromkeys((outcome.arms[0], outcome.arms[-1])):
            e = outcome.experiment
            shapes[f"{e.name.replace('-', ' ')}, K = {arms}"] = bounds.most_diverse(e, arms, delta=DELTA)
    return shapes


def _played(results: Results, protocol: str = "") -> Iterator[Outcome]:
    """Settings 1 to 3 as far as they were played, under one protocol or both."""
    for name in _SETTINGS:
        for p in ("released", "written"):
            outcome = results.outcome(name, p)
            if outcome is not None and p.startswith(protocol):
                yield outcome


def _describe_bounds(results: Results) -> str:
    shapes = compared_shapes(results)
    falls, never = [], []
    for policy in theorems.POLICIES:
        crossings = [bounds.crossing(policy, problem) for problem in shapes.values()]
        if known := [crossing for crossing in crossings if crossing is not None]:
            falls.append(f"{policy}'s after {number_range(known)} rounds")
        if len(known) < len(crossings):
            last = (replace(problem, horizon=bounds.LONGEST) for problem in shapes.values())
            ratios = [bounds.ratio(policy, problem) for problem in last]
            never.append(f"{policy}'s does not within 10^300 rounds, where it is {number_range(ratios)} times as large")
    ratios = [bounds.ratio(policy, problem) for problem in shapes.values() for policy in theorems.POLICIES]
    better, longest = sum(ratio < 1 for ratio in ratios), max(problem.horizon for problem in shapes.values())
    return (
        "With the constants of the proofs and the largest rho that |x|, |z| <= 1 allow, the bounds fall below the "
        f"standard ones late: {join_names(falls)}, depending on the setting; {join_names(never)}. At the settings' own "
        f"lengths, up to {longest:,} rounds, {better} of {len(ratios)} bounds are below the standard ones."
    )


# ------------------------------------------------------------------ can the assumption hold


_COMPARED = (*PAPER_POLICIES, "HyIDS")


class ForcedCase(NamedTuple):
    """A setting with one number of arms: the regret that the assumption forces, and the regrets that were measured."""

    name: str
    horizon: int
    forced: bounds.RegretPerRound
    regrets: dict[str, float]
    """Mean regret at T by policy."""

    @property
    def least(self) -> float:
        """The forced regret at T, less 1.96 of its standard errors."""
        return self.horizon * (self.forced.mean - 1.96 * self.forced.error)


def forced_cases(results: Results, protocol: str) -> list[ForcedCase]:
    """Forced and measured regrets in settings 1 to 3 under one protocol."""
    cases = []
    for outcome in _played(results, protocol):
        e = outcome.experiment
        for arms in outcome.arms:
            regrets = {name: float(outcome.final(name, arms).mean()) for name in _COMPARED if name in outcome.policies}
            name = f"{e.name.removeprefix('setting-')}, K = {arms}"
            cases.append(ForcedCase(name, e.horizon, bounds.forced_regret(e, arms), regrets))
    return cases


def _describe_forced_regret(results: Results) -> str:
    clauses = []
    for protocol in ("released", "written"):
        cases = forced_cases(results, protocol)
        pairs = [(case, name) for case in cases for name in PAPER_POLICIES if name in case.regrets]
        if pairs:
            below = sum(case.regrets[name] < case.least for case, name in pairs)
            rates = number_range([case.forced.mean for case in cases])
            clauses.append(
                f"under the {protocol} protocol that is {rates} per round, and {below} of the {len(pairs)} regrets of "
                f"{join_names(PAPER_POLICIES)} are below it"
            )
    return (
        "The assumption asks for E x = 0 of the arm played; then x.theta adds nothing on average, and regret is at "
        "least T (E max_j (x_j.theta + z_j.beta_j) - E max_j z_j.beta_j), which is linear in T: "
        f"{'; '.join(clauses)}. A policy whose regret is lower does not meet the assumption, and none whose regret is "
        "sublinear meets it in the long run."
    )


# ------------------------------------------------------------------ exponents of regret


def _describe_exponents(results: Results) -> str:
    base, rows = None, []
    for protocol in ("released", "written"):
        base = results.outcome(exponents.BASE, protocol) or base
        rows += [(protocol, each, each.regret) for each in exponents.exponents(results, protocol)]
    known = [(p, each, regret) for p, each, regret in rows if each.policy in PAPER_POLICIES and regret]
    if base is None or not known:
        return "None of the paper's algorithms has exponents with intervals in these results."
    clauses = []
    for factor in dict.fromkeys(each.factor for _, each, _ in known):
        of_factor = [(p, each, regret) for p, each, regret in known if each.factor == factor]
        means = {q: [regret.mean for p, _, regret in of_factor if p == q] for q in dict.fromkeys(p for p, *_ in known)}
        measured = join_names([f"{number_range(values)} ({q})" for q, values in means.items() if values])
        orders, sides = [each.order for _, each, _ in of_factor], [each.bound for _, each, _ in of_factor]
        clauses.append(f"{measured} in {factor}, against {number_range(orders)} and {number_range(sides)}")
    above = Counter(each.factor for _, each, regret in known if regret.low > each.order)
    below = sum(regret.high < each.order for _, each, regret in known)
    where = f" ({join_names([f'{count} in {factor}' for factor, count in above.items()])})" if above else ""
    e, arms = base.experiment, exponents.BASE_ARMS
    burn_in = theorems.burn_in("LinUCB", bounds.most_diverse(e, arms, delta=DELTA))
    return (
        "Exponents of the paper's algorithms, against those of the orders that the theorems state and of the "
        f"right-hand sides that the proofs spell out: {'; '.join(clauses)}. Of {len(known)} exponents {below} are "
        f"below that of the order with their whole {LEVEL} interval and {above.total()} above it{where}, which "
        f"contradicts nothing at T = {e.horizon:,}: orders leave out constants, and with d1 = {e.d1}, d2 = {e.d2} and "
        f"K = {arms} the theorems on LinUCB and HyLinUCB begin after {number(burn_in)} rounds."
    )


TOPICS: list[Topic] = [
    Topic("bounds", "Do the improved bounds improve?", _SETTINGS, _describe_bounds, "bounds"),
    Topic("forced-regret", "Can the assumption hold?", _SETTINGS, _describe_forced_regret, "forced-regret"),
    Topic(
        "sensitivity",
        "Which of gamma, lambda and delta matters?",
        tuple(IN_WORDS[SENSITIVITY]),
        describe_sensitivity,
        "sensitivity",
    ),
    Topic(
        "factorial",
        "Which difference between the protocols reverses the order?",
        tuple(IN_WORDS[FACTORIAL]),
        describe_factorial,
        "factorial",
    ),
    Topic("coverage", "Do the confidence sets cover the truth?", DIVERSITY_NAMES, describe_coverage, "coverage"),
    Topic(
        "structured",
        "What is lost where diversity fails by construction?",
        tuple(STRUCTURED_WORLDS),
        describe_structured,
        "structured",
    ),
    Topic(
        "exponents",
        "How does regret grow with K, d1, d2 and T?",
        (exponents.BASE,),
        _describe_exponents,
        "exponents",
    ),
]


def topics_of(results: Results) -> list[Topic]:
    """The topics that these results can answer."""
    names = {name for name, protocol in results.outcomes if protocol != "own"}
    return [topic for topic in TOPICS if names and (not topic.experiments or names & set(topic.experiments))]
