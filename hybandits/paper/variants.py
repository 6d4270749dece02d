"""Variants of the paper's algorithms: gamma, lambda and delta one at a time, and all combinations of the protocols.

All variants of a setting share contexts, parameters and noise. They are those of the published environments and of the
next ones that the same generator gives, each played once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hybandits.experiments.record import Entry, Experiment, Protocol, environment_seeds, grid
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
        by_arm=True,
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

    The coefficient is told the truth about the world: the released one the noise and both bounds on norms; the written
    one, which knows no noise and has one bound S, the larger of the two.
    """
    known, usual = WORLDS[world], entry(policy, gamma).settings
    bounds = [known.get("theta_bound", 1.0), known.get("beta_bound", 1.0)]
    truth = {"noise": known["noise"], "bound": bounds} if gamma == "released" else {"bound": max(bounds)}
    return {
        "exploration": {**usual["exploration"], **truth},
        "ridge": RELEASED_RIDGE if ridge == "released" else prescribed_ridge(policy, arms=arms),
    }
