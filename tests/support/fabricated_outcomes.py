"""Results with known properties, fabricated without running anything, to judge claims by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hybandits import paper, statistics
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, MOMENTS, Experiment, Unit, grid
from hybandits.experiments.results import Outcome, Results, Run, unit_table
from hybandits.foundation.checks import FloatArray
from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.claims import Finding, Verdict
from hybandits.paper.judging import JudgedOutcome

Curve = Callable[[str, int, int, int], FloatArray]
"""Regret by policy, arms, environment and trial."""

DesignOf = Callable[[Unit, str, int], Any]
"""Measures of the design matrix by unit, policy and trial."""


def fabricated_outcome(experiment: Experiment, curve: Curve, design: DesignOf | None = None) -> Outcome:
    """The results that an experiment would have if its regrets and measures were these."""
    tables: dict[int, list[pa.Table]] = {}
    for unit in experiment.units():
        runs = [
            Run(
                policy=entry.name,
                trial=trial,
                regret=curve(entry.name, unit.arms, unit.environment, trial),
                design=None if design is None else design(unit, entry.name, trial),
            )
            for entry in unit.policies
            for trial in range(unit.first, unit.last)
        ]
        tables.setdefault(unit.arms, []).append(unit_table(unit, runs))
    return Outcome(experiment=experiment, tables={arms: pa.concat_tables(t) for arms, t in tables.items()})


def judged(experiment: Experiment, curve: Curve, design: DesignOf | None = None) -> JudgedOutcome:
    """Fabricated results, to be judged at the usual confidence."""
    return JudgedOutcome(fabricated_outcome(experiment, curve, design))


def as_results(*outcomes: Outcome) -> Results:
    """Outcomes as if they were read from a folder."""
    named = {(o.experiment.name, str(o.experiment.protocol)): o for o in outcomes}
    return Results(folder=Path(), manifest={}, outcomes=named)


def the_finding(verdict: Verdict, what: str) -> Finding:
    """The one finding about something."""
    (finding,) = [finding for finding in verdict.evidence if finding.what == what]
    return finding


# ------------------------------------------------------------------ settings 1 to 3

ORDER_1 = {"HyLinUCB": 100.0, "LinUCB": 300.0, "DisLinUCB": 500.0, HYRAN_RELEASED: 2000.0, "HyRan": 50.0}
"""Regrets at T that are in the order of claim 1."""


def short_setting(name: str, **changes: Any) -> Experiment:
    """One of the paper's experiments, short, with the policies that its claim is about."""
    experiment = paper.experiment(name, "released").only([*paper.PAPER_POLICIES, "HyRan", HYRAN_RELEASED])
    horizon = 2_000
    points = grid(horizon, 40)
    return replace(experiment, **({"horizon": horizon, "points": points, "probes": (), "trials": 3} | changes))


def power_curves(
    experiment: Experiment,
    levels: Mapping[str, float],
    shapes: Mapping[str, float] | None = None,
    spread: float = 0.02,
) -> Curve:
    """Curves level (t/T)^shape, varied by environment and trial but alike for the policies of a run."""
    t = np.array(experiment.points) / experiment.horizon

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        noise = np.random.default_rng([environment, trial, arms]).normal(1, spread)
        own = np.random.default_rng([environment, trial, arms, len(policy)]).normal(1, spread / 4)
        return levels[policy] * noise * own * t ** (shapes or {}).get(policy, 0.5)

    return curve


# ------------------------------------------------------------------ diversity


def diversity(**changes: Any) -> Experiment:
    """The diversity experiment of the text with fewer trials, as if it were the released one; ridge 1 for all."""
    record = replace(paper.experiment("diversity", "written").only(paper.PAPER_POLICIES), protocol="released")
    return replace(record, **({"trials": 80, "trials_per_unit": 0} | changes))


def measures(
    experiment: Experiment,
    *,
    v: float = 1.0,
    w: float = 1.0,
    b: float = 0.5,
    z: float = 1.0,
    falls: float = 0.5,
    rho: float = 0.05,
    late: bool = True,
) -> DesignOf:
    """A design whose eigenvalues, singular values and Z_t follow known powers; z is sigma_max(Z) at t = 100.

    With `late`, eigenvalues lag behind as those of independent rows do.
    """
    t = np.array(experiment.probes, dtype=float)
    share = np.linspace(0.5, 1.5, 25) / 25
    pulls = np.floor(t[:, None] * share)

    def grown(count: FloatArray, power: float, d: int) -> FloatArray:
        finite = statistics.expected_smallest_eigenvalue(d, count) / count if late else 1.0
        value: FloatArray = 1.0 + rho * finite * count**power
        return value

    def design(unit: Unit, policy: str, trial: int) -> dict[str, Any]:
        random = np.random.default_rng([trial, len(policy)])
        noise = np.exp(random.normal(0, 0.1, 25) + random.normal(0, 0.001, pulls.shape))
        whole = policy == "DisLinUCB"
        arrays = {
            "lambda_min_v": np.full(len(t), np.nan) if whole else grown(t, v, 10),
            "rho_x": np.full(len(t), np.nan) if whole else np.full(len(t), rho * random.uniform(0.9, 1)),
            "rho_z": np.full(len(t), 2 * rho if not whole else rho),
            "z_norm": z * (t / 100) ** -falls * random.uniform(0.9, 1),
            "pulls": pulls.astype(int),
            "lambda_min_w": grown(np.maximum(pulls, 1), w, 20 if whole else 10) * noise,
            "sigma_max_b": 0.3 * pulls**b * noise,
            "frobenius_b": 0.5 * pulls**b * noise,
            **dict.fromkeys(MOMENTS, np.full(len(t), 0.25)),
        }
        assert set(arrays) == {*DESIGN, *MOMENTS, *DESIGN_BY_ARM}
        return arrays

    return design


def beyond_the_burn_in(**changes: Any) -> Experiment:
    """The diversity experiment with one arm: if rho were 1, the burn-in would be about 10,000 of its 20,000 rounds."""
    rounds = grid(20_000, 24, keep=())
    return diversity(arms=(1,), horizon=20_000, points=rounds, probes=rounds, **changes)


def of_one_arm(design: DesignOf) -> DesignOf:
    """The measures of the first arm alone."""

    def first(unit: Unit, policy: str, trial: int) -> Any:
        arrays = design(unit, policy, trial)
        return {name: array[:, :1] if name in DESIGN_BY_ARM else array for name, array in arrays.items()}

    return first


def root_curves(experiment: Experiment, shape: float) -> Curve:
    """Curves t^shape, with a little noise in the exponent of every trial."""
    t = np.array(experiment.points, dtype=float)

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        return 10 * t ** (shape + np.random.default_rng([trial, len(policy)]).normal(0, 0.02))

    return curve


def three_runs(released: DesignOf | None, updated: DesignOf | None, written: DesignOf | None) -> Results:
    """Results of the diversity experiments as released, updated and written, with these measures."""
    e = diversity(trials=6)
    records = (e, replace(e, name="diversity-updated"), replace(e, protocol="written"))
    given = zip(records, (released, updated, written), strict=True)
    return as_results(*(fabricated_outcome(r, root_curves(r, 0.5), d) for r, d in given if d is not None))


def split(e: Experiment, linucb: float, others: float) -> DesignOf:
    """Cross blocks with one exponent for LinUCB and another for the others."""
    return lambda unit, policy, trial: measures(e, b=linucb if policy == "LinUCB" else others)(unit, policy, trial)


# ------------------------------------------------------------------ the small diversity problem


def small_problem(**changes: Any) -> Experiment:
    """The small diversity problem at full length, in one unit per number of arms."""
    return replace(paper.experiment("diversity-small", "released"), **({"trials_per_unit": 0} | changes))


def small_measures(
    experiment: Experiment, *, w: float = 1.0, b: float = 0.5, z: float = 0.01, falls: float = 0.5, rho: float = 0.5
) -> DesignOf:
    """Blocks that follow known powers from the first round on; z is the median of sigma_max(Z_T).

    Arms are pulled alike. For DisLinUCB nothing is shared.
    """
    t = np.array(experiment.probes, dtype=float)

    def design(unit: Unit, policy: str, trial: int) -> dict[str, Any]:
        random = np.random.default_rng([trial, len(policy), unit.arms])
        pulls = np.floor(t[:, None] / unit.arms) * np.ones(unit.arms)
        noise = np.exp(random.normal(0, 0.1, unit.arms) + random.normal(0, 0.001, pulls.shape))
        shared = np.nan if policy == "DisLinUCB" else 1.0
        return {
            "lambda_min_v": shared * (4.0 + rho * t),
            "rho_x": np.full(len(t), rho * random.uniform(0.99, 1)),
            "rho_z": np.full(len(t), rho),
            "z_norm": z * (t / t[-1]) ** -falls * np.exp(random.normal(0, 0.01)),
            "pulls": pulls.astype(int),
            "lambda_min_w": 4.0 + rho * pulls**w * noise,
            "sigma_max_b": 0.3 * pulls**b * noise,
            "frobenius_b": 0.5 * pulls**b * noise,
            **dict.fromkeys(MOMENTS, np.full(len(t), 0.25)),
        }

    return design
