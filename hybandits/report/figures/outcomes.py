"""What is drawn of an outcome, as numbers, and what is said of it in titles and captions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from hybandits import paper
from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import DEFECT_SUFFIX, HYRAN_RELEASED
from hybandits.report.figures.plotted import Plotted

Published = Callable[[str, str, int | None], Mapping[int, float]]
"""(experiment, policy, arms) to the read-outs {rounds: regret} of the published figure; empty where there are none. In
experiments on a click log they are of the regret beyond HyLinUCB's."""

ReadOutError = Callable[[str], float]
"""Experiment to how far its read-outs may be off."""

Section = Literal["panels", "regret", "diversity", "hyran", "beyond", "yahoo"]

REPRODUCED = ("HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED)
"""The curves of the published figure."""
ASIDE = ("HyRan", "SupLinUCB")
"""Baselines that the published figure does not show: thinner."""
DEFECT = (HYRAN_RELEASED, "HyRan")
BEST = "HyLinUCB"
"""What regret on a click log is relative to."""
SYNTHETIC = "synthetic log, not Yahoo's data"
DISJOINT = "DisLinUCB"
"""Shares nothing between arms: its design matrix is one block per arm."""

MOST_POINTS = 400

_NAMES = {
    "setting-1": "Setting 1",
    "setting-2": "Setting 2",
    "setting-3": "Setting 3",
    "diversity": "Diversity",
    "setting-1-fresh": "Setting 1, fresh environments",
    "setting-2-fresh": "Setting 2, fresh environments",
    "setting-3-fresh": "Setting 3, fresh environments",
    "diversity-small": "Diversity, small problem",
    "yahoo": "Yahoo",
    "yahoo-positions": "Yahoo, positions as arms",
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture that was written, and the words that go with it."""

    name: str
    title: str
    caption: str
    alt: str
    """What is to be seen, for those who cannot see it."""
    files: tuple[Path, ...]
    """PNG, SVG and, where there are any, the numbers as CSV."""
    protocol: str
    section: Section
    wide: bool
    plotted: Plotted = field(default_factory=Plotted, compare=False, repr=False)
    """Its panels, curves and keys, which the page makes switches and read-outs of."""


class Curve(NamedTuple):
    """Mean, lowest and highest run at every x."""

    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray


# ------------------------------------------------------------------ what is drawn


def thin(points: FloatArray, most: int = MOST_POINTS) -> Any:
    """Indices of at most `most` of the points, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).round().astype(int))


def many_arms(outcome: Outcome) -> bool:
    """Whether the experiment has several numbers of arms."""
    return len(outcome.experiment.arms) > 1


def curve(outcome: Outcome, policy: str) -> Curve:
    """Regret against rounds or, where the experiment has several numbers of arms, regret at T against these."""
    if many_arms(outcome):
        last = [outcome.final(policy, arms) for arms in outcome.arms]
        x = np.array(outcome.arms, dtype=float)
        return Curve(x, *(np.array([f(runs) for runs in last]) for f in (np.mean, np.min, np.max)))
    return curve_over_rounds(outcome, policy)


def curve_over_rounds(outcome: Outcome, policy: str, arms: int | None = None) -> Curve:
    """Regret against rounds; without `arms`, of the smallest complete case."""
    return _over_rounds(outcome, outcome.regret(policy, arms))


def relative_curve(outcome: Outcome, policy: str) -> Curve:
    """What a policy loses beyond HyLinUCB in the same trial, against rounds."""
    return _over_rounds(outcome, outcome.regret(policy) - outcome.regret(BEST))


def _over_rounds(outcome: Outcome, runs: FloatArray) -> Curve:
    keep = thin(outcome.points)
    runs = runs[:, keep]
    return Curve(outcome.points[keep], runs.mean(axis=0), runs.min(axis=0), runs.max(axis=0))


def rivals(outcome: Outcome) -> list[str]:
    """The paper's algorithms to be held against HyLinUCB on a click log; none if that was not run."""
    names = [name for name in (*REPRODUCED, *DEFECT) if name != BEST]
    return present_in(outcome, list(dict.fromkeys(names))) if BEST in outcome.policies else []


def twins(outcome: Outcome) -> dict[str, str]:
    """Algorithms that were also run with the released code's defect on the click log, and what they are called then."""
    pairs = {name: f"{name}{DEFECT_SUFFIX}" for name in outcome.policies}
    return {name: twin for name, twin in pairs.items() if twin in outcome.policies}


def read_outs(outcome: Outcome, policy: str, published: Published) -> dict[int, float]:
    """Published dots on `curve`'s axes: {rounds or arms: regret}."""
    name, horizon = outcome.experiment.name, outcome.experiment.horizon
    if many_arms(outcome):
        at_horizon = {arms: published(name, policy, arms).get(horizon) for arms in outcome.arms}
        return {arms: value for arms, value in at_horizon.items() if value is not None}
    return {t: value for t, value in published(name, policy, outcome.arms[0]).items() if t <= horizon}


def last_read_out(outcome: Outcome, policy: str, arms: int, published: Published) -> tuple[int, float, float] | None:
    """(rounds, our mean, published) at the last read-out for which there is a point; None if there is none."""
    known = published(outcome.experiment.name, policy, arms)
    at = max((t for t in known if t in outcome.experiment.points), default=None)
    if at is None:
        return None
    column = outcome.experiment.points.index(at)
    return at, float(outcome.regret(policy, arms)[:, column].mean()), known[at]


def by_pulls(pulls: FloatArray, values: FloatArray, grid: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Quantiles (levels, grid) of an arm's measure at equal numbers of pulls, over runs and arms.

    Every arm's course is interpolated between probes; where fewer than one in twenty has come this far: NaN.
    """
    measured = np.full((pulls.shape[0] * pulls.shape[2], len(grid)), np.nan)
    for row, x, y in zip(measured, _courses(pulls), _courses(values), strict=True):
        inside = (grid >= x[0]) & (grid <= x[-1])
        row[inside] = np.interp(grid[inside], x, y)
    quantiles = np.full((len(levels), len(grid)), np.nan)
    enough = np.isfinite(measured).sum(axis=0) * 20 >= len(measured)
    if enough.any():
        quantiles[:, enough] = np.nanquantile(measured[:, enough], levels, axis=0)
    return quantiles


def _courses(values: FloatArray) -> FloatArray:
    """(runs, probes, arms) to (runs and arms, probes)."""
    return values.transpose(0, 2, 1).reshape(-1, values.shape[1])


# ------------------------------------------------------------------ words


def name_of(experiment: str) -> str:
    """An experiment's name for headings."""
    return _NAMES.get(experiment, experiment)


def under(protocol: str) -> str:
    """A protocol for headings."""
    return "own experiment" if protocol == "own" else f"{protocol} protocol"


def is_synthetic(outcome: Outcome) -> bool:
    """Whether the experiment is on a synthetic log."""
    return paper.synthetic_log(outcome.experiment) is not None


def under_and_log(outcome: Outcome) -> str:
    """The protocol, and that the log is synthetic if it is, for headings."""
    return under(outcome.experiment.protocol) + (f" ({SYNTHETIC})" if is_synthetic(outcome) else "")


def shape_of(outcome: Outcome) -> str:
    """The experiment's name and size, for titles."""
    e = outcome.experiment
    rest = f"T = {e.horizon:,}" if many_arms(outcome) else f"K = {outcome.arms[0]}"
    return f"{name_of(e.name)}: d₁ = {e.d1}, d₂ = {e.d2}, {rest}"


def runs_in_words(outcome: Outcome) -> str:
    """How many runs there are, for captions."""
    e = outcome.experiment
    environments, trials = len(e.seeds), e.trials
    if e.log is not None:
        return f"{trials} {_plural('trial', trials)} on one {'synthetic log' if is_synthetic(outcome) else 'log'}"
    return (
        f"{environments * trials} {_plural('run', environments * trials)} "
        f"({environments} {_plural('environment', environments)}, {trials} {_plural('trial', trials)} each)"
    )


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


def lines_and_bands(outcome: Outcome) -> str:
    """What the lines and bands of a chart show, for captions."""
    if not has_several_runs(outcome) and outcome.experiment.log is not None:
        return f"{runs_in_words(outcome)}."
    bands = "; bands: lowest to highest run" if has_several_runs(outcome) else ""
    return f"Lines: mean of {runs_in_words(outcome)}{bands}."


def has_several_runs(outcome: Outcome) -> bool:
    """Whether there is more than one run, so that bands can be drawn."""
    return len(outcome.experiment.seeds) * outcome.experiment.trials > 1


def final_values(outcome: Outcome, names: Sequence[str]) -> str:
    """The mean regret of every policy at T, as text for those who cannot see the chart."""
    arms = outcome.arms[-1]
    values = ", ".join(f"{name} {outcome.final(name, arms).mean():,.0f}" for name in names)
    return f"{name_with_log(outcome)}, mean regret at T with {arms} arms: {values}"


def name_with_log(outcome: Outcome) -> str:
    """The experiment's name, with a remark if its log is synthetic."""
    return name_of(outcome.experiment.name) + (f" ({SYNTHETIC})" if is_synthetic(outcome) else "")


def uniform_choice_regret(outcome: Outcome) -> float | None:
    """Expected regret of choosing uniformly among the candidates of a click log; None if it is not known."""
    return paper.uniform_choice_regret(outcome.experiment)


def change(outcome: Outcome, name: str, twin: str, written: Callable[[float], str]) -> str:
    """Mean regret at T of a twin beside its original's, in words; written: how a regret is."""
    before, after = written(float(outcome.final(name).mean())), written(float(outcome.final(twin).mean()))
    return f"{name} {after} instead of {before}" if after != before else f"{name} {before} with and without it"


def final_excesses(outcome: Outcome, names: Sequence[str]) -> str:
    """What every policy has lost beyond HyLinUCB at T, as text for those who cannot see the chart."""
    excesses = {name: float((outcome.final(name) - outcome.final(BEST)).mean()) for name in names}
    values = ", ".join(f"{n} {f'{v:,.0f}' if abs(v) >= 100 else f'{v:.1f}'}" for n, v in excesses.items())
    return f"{name_with_log(outcome)}, mean regret at T beyond HyLinUCB's: {values}"


def dots_of(outcome: Outcome, names: Sequence[str], published: Published) -> dict[str, dict[int, float]]:
    """Read-outs to draw: the published figure is of the released protocol and of Yahoo's log, so there are none under
    another protocol or on a synthetic log."""
    if outcome.experiment.protocol != "released" or is_synthetic(outcome):
        return {}
    return {name: read_outs(outcome, name, published) for name in names}


def present_in(outcome: Outcome, names: Sequence[str]) -> list[str]:
    """Those of the policies that were run."""
    return [name for name in names if name in outcome.policies]
