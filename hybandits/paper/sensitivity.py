"""Variants of the paper's algorithms: gamma, lambda and delta one at a time, and all combinations of the protocols.

All variants of a setting share contexts, parameters and noise. They are those of the published environments and of the
next ones that the same generator gives, each played once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hybandits import statistics
from hybandits.experiments.record import Entry, Experiment, Protocol, environment_seeds, grid
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import CONFIDENCE
from hybandits.paper.judging import join_names, number_range
from hybandits.paper.settings import (
    PAPER_POLICIES,
    RELEASED_RIDGE,
    RELEASED_SEED,
    WORLDS,
    Scale,
    entry,
    experiment,
)
from hybandits.paper.theorems import prescribed_ridge

SENSITIVITY, FACTORIAL = "sensitivity", "factorial"
ABOUT_SENSITIVITY = "regret and coverage with gamma times a factor, with other lambdas and with other deltas"
ABOUT_FACTORIAL = "gamma, lambda and the world as released or as written, in all eight combinations"

CASES: dict[str, dict[str, tuple[str, int]]] = {
    SENSITIVITY: {"sensitivity-1": ("setting-1", 25), "sensitivity-2": ("setting-2", 25)},
    FACTORIAL: {
        "factorial-1": ("setting-1", 25),
        "factorial-2": ("setting-2", 25),
        "factorial-3-K10": ("setting-3", 10),
        "factorial-3-K100": ("setting-3", 100),
    },
}
"""Setting and number of arms of every experiment."""
IN_WORDS = {
    family: {name: name.replace(f"{family}-", "setting ").replace("-K", ", K = ") for name in cases}
    for family, cases in CASES.items()
}
"""Words for every experiment, by family."""

VALUES: dict[str, tuple[float, ...]] = {
    "gamma": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0),
    "lambda": (0.01, 0.1, 1.0, 10.0, 100.0),
    "delta": (0.0001, 0.001, 0.01, 0.1),
}
"""Factors of gamma, ridges, and failure probabilities."""
QUICK_VALUES: dict[str, tuple[float, ...]] = {"gamma": (0.01, 0.1, 1.0), "lambda": (0.1, 1.0, 10.0), "delta": (0.1,)}
ENVIRONMENTS, QUICK_ENVIRONMENTS, QUICK_HORIZON = 10, 2, 1_000


class Settings(NamedTuple):
    """The factor of gamma, lambda and delta of an entry."""

    gamma: float
    ridge: float
    delta: float


def settings_of(one: Entry) -> Settings:
    """Read the three values from the settings of an entry of these experiments."""
    exploration = one.settings["exploration"]
    return Settings(exploration.get("factor", 1.0), one.settings["ridge"], exploration["delta"])


def sensitivity(protocol: Protocol, *, scale: Scale = "paper", seed: int = RELEASED_SEED) -> list[Experiment]:
    """Settings 1 and 2 with one of gamma, lambda and delta changed at a time.

    >>> [entry.name for entry in sensitivity("released")[0].policies[:3]]
    ['HyLinUCB', 'HyLinUCB, gamma x 0.01', 'HyLinUCB, gamma x 0.03']
    """
    values = QUICK_VALUES if scale == "quick" else VALUES
    return [
        _record(name, protocol, scale, seed, sensitivity_entries(protocol, arms, values))
        for name, (_, arms) in CASES[SENSITIVITY].items()
    ]


def factorial(protocol: Protocol, *, scale: Scale = "paper", seed: int = RELEASED_SEED) -> list[Experiment]:
    """Settings 1 to 3 with the coefficient and the ridge of either protocol; the world is that of `protocol`.

    >>> [record.name for record in factorial("written")]
    ['factorial-1', 'factorial-2', 'factorial-3-K10', 'factorial-3-K100']
    """
    return [
        _record(name, protocol, scale, seed, factorial_entries(protocol, arms))
        for name, (_, arms) in CASES[FACTORIAL].items()
    ]


def _record(name: str, protocol: Protocol, scale: Scale, seed: int, entries: Sequence[Entry]) -> Experiment:
    """One of the paper's settings with other entries, measured after T/100, T/10 and T rounds; if short, after T."""
    setting, arms = next(cases[name] for cases in CASES.values() if name in cases)
    usual, short = experiment(setting, protocol, seed=seed), scale == "quick"
    horizon = QUICK_HORIZON if short else usual.horizon
    return replace(
        usual,
        name=name,
        arms=(arms,),
        horizon=horizon,
        seeds=environment_seeds(seed, QUICK_ENVIRONMENTS if short else ENVIRONMENTS),
        trials=1,
        policies=tuple(entries),
        points=grid(horizon, 20),
        probes=(horizon,) if short else (horizon // 100, horizon // 10, horizon),
        moments=True,
    )


def sensitivity_entries(protocol: Protocol, arms: int, values: Mapping[str, Sequence[float]]) -> list[Entry]:
    """The paper's algorithms with the parameters of a protocol, and with one of the three changed at a time."""
    entries = []
    for policy in PAPER_POLICIES:
        usual = Entry(name=policy, policy=policy, settings=_combination(policy, protocol, protocol, protocol, arms))
        entries.append(usual)
        for (parameter, others), own in zip(values.items(), settings_of(usual), strict=True):
            entries += [_changed(usual, parameter, value) for value in others if value != own]
    return entries


def _changed(usual: Entry, parameter: str, value: float) -> Entry:
    """An entry with another gamma, lambda or delta."""
    change: dict[str, Any] = {"ridge": value}
    if parameter != "lambda":
        argument = "factor" if parameter == "gamma" else "delta"
        change = {"exploration": {**usual.settings["exploration"], argument: value}}
    name = f"{usual.name}, {parameter} {'x' if parameter == 'gamma' else '='} {value:g}"
    return replace(usual, name=name, settings={**usual.settings, **change})


def factorial_entries(world: Protocol, arms: int) -> list[Entry]:
    """The paper's algorithms with the coefficient and the ridge of either protocol, in the world of one of them."""
    protocols: tuple[Protocol, ...] = ("released", "written")
    return [
        Entry(
            name=combined_name(policy, gamma, ridge),
            policy=policy,
            settings=_combination(policy, gamma, ridge, world, arms),
        )
        for policy, gamma, ridge in itertools.product(PAPER_POLICIES, protocols, protocols)
    ]


def combined_name(policy: str, gamma: Protocol, ridge: Protocol) -> str:
    """The name of a policy with the coefficient and the ridge of either protocol."""
    return f"{policy}, {gamma} gamma, {ridge} lambda"


def _combination(policy: Any, gamma: Protocol, ridge: Protocol, world: Protocol, arms: int) -> dict[str, Any]:
    """The settings of a policy with the coefficient, the ridge and the world of either protocol.

    The coefficient gets the true values of the world: the released one the noise and both bounds on norms; the written
    one, which has no noise and one bound S, the larger of the two.
    """
    known, usual = WORLDS[world], entry(policy, gamma).settings
    bounds = [known.get("theta_bound", 1.0), known.get("beta_bound", 1.0)]
    truth = {"noise": known["noise"], "bound": bounds} if gamma == "released" else {"bound": max(bounds)}
    return {
        "exploration": {**usual["exploration"], **truth},
        "ridge": RELEASED_RIDGE if ridge == "released" else prescribed_ridge(policy, arms=arms),
    }


PROTOCOLS: tuple[Protocol, ...] = ("released", "written")


# ------------------------------------------------------------------ gamma, lambda and delta one at a time


class Variant(NamedTuple):
    """Regret at T and coverage of a policy with one value of a parameter, over all runs."""

    value: float
    mean: float
    lowest: float
    highest: float
    ellipsoid: float
    """The largest |phi^ - phi|_M / gamma of all runs and probes, phi being all parameters; of an arm for DisLinUCB."""
    outside: float
    """The share of the last candidates whose mean is beyond gamma widths of the estimate."""

    @property
    def covers(self) -> bool:
        """True if the confidence sets of all runs contained the true parameters at every probe."""
        return self.ellipsoid <= 1


Courses = dict[tuple[str, str], list[Variant]]
"""The variants in which a parameter alone differs, in the order of its values, by policy and parameter."""


def courses(outcome: Outcome) -> Courses:
    """The variants of every policy along every parameter."""
    usual = {each.name: settings_of(each) for each in outcome.experiment.policies}
    variants_of: Courses = {}
    for each in outcome.experiment.policies:
        settings, own = settings_of(each), usual[each.policy]
        design, final = outcome.design(each.name), outcome.final(each.name)
        assert design is not None
        assert design.ellipsoid is not None
        assert design.outside is not None
        numbers = (final.mean(), final.min(), final.max(), design.ellipsoid.max(), design.outside[:, -1].mean())
        for place, parameter in enumerate(VALUES):
            if all(settings[i] == own[i] for i in range(len(own)) if i != place):
                variant = Variant(settings[place], *map(float, numbers))
                variants_of.setdefault((each.policy, parameter), []).append(variant)
    return {key: sorted(variants) for key, variants in variants_of.items()}


def least(variants: Sequence[Variant]) -> Variant:
    """The variant with the least mean regret."""
    return min(variants, key=lambda variant: variant.mean)


def covers_from(variants: Sequence[Variant]) -> float | None:
    """The value from which on all variants cover; None if the last does not."""
    covering = list(itertools.takewhile(lambda variant: variant.covers, reversed(variants)))
    return covering[-1].value if covering else None


def sensitivity_outcomes(results: Results, protocol: str) -> list[Outcome]:
    """Results of the sensitivity experiments under one protocol."""
    outcomes = (results.outcome(name, protocol) for name in IN_WORDS[SENSITIVITY])
    return [outcome for outcome in outcomes if outcome is not None]


def describe_sensitivity(results: Results) -> str:
    """Compare the parameters' effects on regret, and the factors of gamma with least regret with those that cover."""
    every = {p: [courses(outcome) for outcome in sensitivity_outcomes(results, p)] for p in PROTOCOLS}
    effects = []
    for parameter in VALUES:
        along = [
            v for by_setting in every.values() for each in by_setting for (_, p), v in each.items() if p == parameter
        ]
        values = number_range([variant.value for variants in along for variant in variants])
        ratio = number_range([max(v.mean for v in variants) / least(variants).mean for variants in along])
        effects.append(f"{ratio} with {f'{values} times gamma' if parameter == 'gamma' else f'{parameter} = {values}'}")
    clauses = []
    for protocol, by_setting in every.items():
        if along := [v for each in by_setting for (_, parameter), v in each.items() if parameter == "gamma"]:
            best, starts = [least(variants).value for variants in along], [covers_from(variants) for variants in along]
            known = [start for start in starts if start is not None]
            share = "" if len(known) == len(starts) else f" in {len(known)} of {len(starts)} cases"
            covering = f"from {number_range(known)} times gamma on{share}" if known else "with none of these factors"
            below = sum(start is None or value < start for value, start in zip(best, starts, strict=True))
            clauses.append(
                f"under the {protocol} protocol regret is least with {number_range(best)} times gamma, and the "
                f"confidence sets contain the truth in all runs {covering}; the former is the smaller in {below} "
                f"of {len(starts)} cases"
            )
    last = "; ".join(clauses)
    return (
        f"Between the best and the worst value, regret at T differs by a factor of {join_names(effects)}, depending on "
        f"the algorithm, the setting and the protocol. {last[:1].upper()}{last[1:]}."
    )


# ------------------------------------------------------------------ all combinations of the two protocols


class Combination(NamedTuple):
    """The protocol that each part is of: the coefficient gamma, the ridge lambda, and the world."""

    gamma: Protocol
    ridge: Protocol
    world: Protocol

    def __str__(self) -> str:
        """The parts that are as written."""
        parts = [part for part, protocol in zip(PARTS, self, strict=True) if protocol == "written"]
        return {0: "released", len(PARTS): "written"}.get(len(parts), ", ".join(parts) + " written")


PARTS = ("gamma", "lambda", "world")
COMBINATIONS = [
    Combination(*("written" if part in parts else "released" for part in PARTS))
    for count in range(len(PARTS) + 1)
    for parts in itertools.combinations(PARTS, count)
]
"""From the released protocol to the written one."""


class Factorial:
    """Regret at T in one setting by combination and policy, as far as the worlds were run.

    `regrets` has an array over environments for every policy, the one with the least mean first.
    """

    def __init__(self, results: Results, name: str) -> None:
        self.name = IN_WORDS[FACTORIAL][name]
        self.horizon = 0
        self.regrets: dict[Combination, dict[str, FloatArray]] = {}
        for combination in COMBINATIONS:
            if (outcome := results.outcome(name, combination.world)) is not None:
                self.horizon = outcome.experiment.horizon
                entries = {p: combined_name(p, combination.gamma, combination.ridge) for p in PAPER_POLICIES}
                finals = {p: outcome.final(entry) for p, entry in entries.items() if entry in outcome.policies}
                self.regrets[combination] = dict(sorted(finals.items(), key=lambda item: float(item[1].mean())))

    def clearly_less(self, combination: Combination, policy: str, other: str) -> bool:
        """True if the interval of the difference of two policies' regrets, over environments, is below 0."""
        regrets = self.regrets[combination]
        difference = regrets[policy] - regrets[other]
        interval = statistics.interval(difference, np.arange(len(difference)), CONFIDENCE)
        return interval is not None and interval.high < 0

    def order(self, combination: Combination) -> str:
        """The policies by mean regret in words: < between two that differ clearly, ~ between others."""
        names = list(self.regrets[combination])
        signs = ["<" if self.clearly_less(combination, *pair) else "~" for pair in itertools.pairwise(names)]
        return names[0] + "".join(f" {sign} {name}" for sign, name in zip(signs, names[1:], strict=True))

    def reversed_pairs(self, start: Combination, part: str) -> list[str]:
        """Pairs of policies whose clear order turns into the clear opposite if one part is of the other protocol."""
        other = dict(zip(PROTOCOLS, reversed(PROTOCOLS), strict=True))
        end = Combination(*(other[p] if name == part else p for name, p in zip(PARTS, start, strict=True)))
        if start not in self.regrets or end not in self.regrets:
            return []
        return [
            f"{winner} before {loser}"
            for winner, loser in itertools.combinations(self.regrets[end], 2)
            if self.clearly_less(end, winner, loser) and self.clearly_less(start, loser, winner)
        ]


def factorials(results: Results) -> Iterator[Factorial]:
    """The settings of the factorial experiments that were run."""
    for name in IN_WORDS[FACTORIAL]:
        if (factorial := Factorial(results, name)).regrets:
            yield factorial


def describe_factorial(results: Results) -> str:
    """Name the combinations in which HyLinUCB is the best, and the single differences that reverse an order."""
    cases, wins, reversals = list(factorials(results)), [], []
    for case in cases:
        best = [str(combination) for combination, regrets in case.regrets.items() if next(iter(regrets)) == "HyLinUCB"]
        wins.append(f"in {case.name} in {len(best)} of {len(case.regrets)} ({'; '.join(best) or 'none'})")
    for start in (COMBINATIONS[0], COMBINATIONS[-1]):
        reversed_in = {part: [case.name for case in cases if case.reversed_pairs(start, part)] for part in PARTS}
        words = "; ".join(f"{part} in {join_names(names)}" for part, names in reversed_in.items() if names)
        reversals.append(f"from the {start} protocol: {words or 'none'}")
    return (
        f"Of the combinations HyLinUCB has the least mean regret of the three {join_names(wins)}. Single differences "
        f"that turn a clear order of two algorithms into the clear opposite, {'. And '.join(reversals)}."
    )
