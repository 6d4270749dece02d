"""Experiments in which one of K, d1 and d2 varies, and the exponents of regret in each of them and in T."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybandits import statistics
from hybandits.experiments.record import Experiment, Protocol, grid
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper import bounds, theorems
from hybandits.paper.claims import CONFIDENCE
from hybandits.paper.settings import DELTA, PAPER_POLICIES, RELEASED_SEED, WORLDS, Scale, entry, fresh_seeds
from hybandits.paper.theorems import Problem

ABOUT = "exponents of regret in K, d1, d2 and T: one of K, d1 and d2 varies at a time, in fresh environments"

BASE = "exponents-arms"
"""The experiment in which K varies; the others have K = BASE_ARMS and a larger d1 or d2."""
BASE_SHAPE, BASE_ARMS = {"d1": 5, "d2": 5}, 25
ARMS, QUICK_ARMS = (10, 25, 50, 100, 200), (10, 25, 50)
LARGER = (10, 20, 40)
SHAPES = {BASE: BASE_SHAPE} | {f"exponents-{name}-{d}": BASE_SHAPE | {name: d} for name in BASE_SHAPE for d in LARGER}
"""d1 and d2 by the names of the experiments."""

IN_WORDS = {name: f"d1 = {shape['d1']}, d2 = {shape['d2']}" for name, shape in SHAPES.items()}

POLICIES = (*PAPER_POLICIES, "HyIDS")
ENVIRONMENTS, QUICK_ENVIRONMENTS = 20, 4
HORIZON, QUICK_HORIZON = 80_000, 3_000


def records(protocol: Protocol, *, scale: Scale = "paper", seed: int = RELEASED_SEED) -> list[Experiment]:
    """The experiments of all shapes, in environments whose seeds are alike and none of the published ones.

    >>> [(record.name, record.d1, record.arms) for record in records("written")][:2]
    [('exponents-arms', 5, (10, 25, 50, 100, 200)), ('exponents-d1-10', 10, (25,))]
    """
    short = scale == "quick"
    horizon = QUICK_HORIZON if short else HORIZON
    count = QUICK_ENVIRONMENTS if short else ENVIRONMENTS
    return [
        Experiment(
            name=name,
            protocol=protocol,
            d1=shape["d1"],
            d2=shape["d2"],
            arms=(BASE_ARMS,) if name != BASE else QUICK_ARMS if short else ARMS,
            horizon=horizon,
            seeds=fresh_seeds(count, seed),
            trials=1,
            policies=tuple(entry(policy, protocol) for policy in POLICIES),
            points=grid(horizon, 40),
            **({"law": "cube-direction"} | WORLDS[protocol]),
        )
        for name, shape in SHAPES.items()
    ]


# ------------------------------------------------------------------ exponents


class Exponent(NamedTuple):
    """The exponent of a policy's regret in one factor, beside those of its theorem over the same range."""

    factor: str
    """``"K"``, ``"d1"``, ``"d2"`` or ``"T"``."""
    policy: str
    regret: statistics.Interval | None
    """Slope of log mean regret, with a jackknife interval over environments; None without an interval."""
    order: float
    """Of the order as the theorem states it; NaN for policies without a theorem."""
    bound: float
    """Of the proof's explicit right-hand side, with S = 1 and the largest rho that |x|, |z| <= 1 allow."""


def exponents(results: Results, protocol: str) -> list[Exponent]:
    """The exponents in every factor that was varied, for regret at T, and in T over the last half of the rounds.

    Those in T are for the smallest d1 and d2 and K = `BASE_ARMS`.
    """
    rows = []
    for factor, values, problems, regrets in _factors(results, protocol):
        for policy, regret in regrets.items():

            def slope(mean: FloatArray, values: FloatArray = values) -> FloatArray:
                return statistics.exponents(values[None], mean[None])

            (interval,) = statistics.jackknife(slope, regret, np.arange(len(regret)), CONFIDENCE)
            order = bound = np.nan
            if policy in theorems.POLICIES:
                order = slope(np.array([theorems.stated_order(policy, each) for each in problems])).item()
                bound = slope(np.array([bounds.proved_bound(policy, each) for each in problems])).item()
            rows.append(Exponent(factor, policy, interval, order, bound))
    return rows


def _factors(results: Results, protocol: str) -> Iterator[tuple[str, FloatArray, list[Problem], dict[str, FloatArray]]]:
    """Every factor with its values, the theorems' problems, and each policy's regret by (environment, value)."""
    base = results.outcome(BASE, protocol)
    if base is None:
        return
    outcomes = {name: results.outcome(name, protocol) for name in SHAPES}
    cases: dict[str, list[tuple[Outcome, int]]] = {"K": [(base, arms) for arms in base.arms]}
    for factor in BASE_SHAPE:
        varied = [outcome for name, outcome in outcomes.items() if name.startswith(f"exponents-{factor}")]
        cases[factor] = [(each, BASE_ARMS) for each in (base, *varied) if each and BASE_ARMS in each.arms]
    for factor, points in cases.items():
        problems = [bounds.most_diverse(outcome.experiment, arms, delta=DELTA) for outcome, arms in points]
        values = [arms if factor == "K" else getattr(outcome.experiment, factor) for outcome, arms in points]
        if len(points) > 1:
            regrets = {
                policy: np.stack([outcome.final(policy, arms) for outcome, arms in points], axis=1)
                for policy in base.policies
            }
            yield factor, np.array(values, dtype=float), problems, regrets
    if BASE_ARMS in base.arms:
        late = base.points >= base.experiment.horizon / 2
        at = bounds.most_diverse(base.experiment, BASE_ARMS, delta=DELTA)
        curves = {policy: base.regret(policy, BASE_ARMS)[:, late] for policy in base.policies}
        yield "T", base.points[late], [replace(at, horizon=round(t)) for t in base.points[late]], curves


def local_exponents(arms: FloatArray, regret: FloatArray) -> FloatArray:
    """Exponents of regret between neighbouring numbers of arms, log(R'/R) / log(K'/K).

    >>> local_exponents(np.array([10.0, 100.0, 400.0]), np.array([1.0, 10.0, 20.0])).tolist()
    [1.0, 0.5]
    """
    exponents: FloatArray = np.diff(np.log(regret)) / np.diff(np.log(arms))
    return exponents


def added_per_arm(arms: FloatArray, regret: FloatArray) -> FloatArray:
    """Regret added per arm between neighbouring numbers of arms, (R' - R) / (K' - K)."""
    added: FloatArray = np.diff(regret) / np.diff(arms)
    return added


class Growth:
    """Regret at T against the number of arms: of policies, and expected of uniform choice.

    Attributes
    ----------
    arms, uniform : array of shape (numbers of arms,)
        K and uniform choice's regret, sampled in the same environments.
    regret, share : dict of array
        Every policy's regret (runs, numbers of arms), and its mean over that of uniform choice (numbers of arms,).
    units : array of shape (runs,)
        The environment of every run.
    """

    def __init__(self, outcome: Outcome, policies: Sequence[str]) -> None:
        e, arms = outcome.experiment, outcome.arms
        self.arms = np.array(arms, dtype=float)
        self.uniform = np.array([e.horizon * bounds.uniform_regret(e, k).mean for k in arms])
        self.regret = {name: np.stack([outcome.final(name, k) for k in arms], axis=1) for name in policies}
        self.share = {name: regret.mean(axis=0) / self.uniform for name, regret in self.regret.items()}
        self.units = outcome.independent_units(policies[0], arms[0])
