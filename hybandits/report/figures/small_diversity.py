"""The picture of the small diversity problem: the key lemma beyond its burn-in, with and without its assumption."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hybandits.experiments.results import Design, Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper.judging import DISJOINT, JudgedOutcome
from hybandits.paper.settings import UNIFORM
from hybandits.paper.theorems import COUPLING_LIMIT
from hybandits.paper.wording import number
from hybandits.report.figures.looks import (
    PANEL,
    Style,
    keys_of,
    make_logarithmic,
    put_legend,
    save_figure,
    stamp_protocol,
    styles_of,
)
from hybandits.report.figures.outcomes import Figure, lines_and_bands, name_of, under
from hybandits.report.figures.plotted import remember

_LIMIT_LINE: dict[str, Any] = {"color": "#444444", "linewidth": 1.1, "linestyle": (0, (4, 2))}
_BOUND_LINE: dict[str, Any] = {"color": "#000000", "linewidth": 1.6, "linestyle": (0, (1, 1))}
_BOUND = "the proof's bound, uniform choice"
_BURN_IN: dict[str, Any] = {"color": "#999933", "alpha": 0.3}


def draw_small_diversity(outcome: Outcome, out: Path) -> Figure:
    """sigma_max(Z_t), and the size of an arm's mean x z', against rounds: a row of two charts per number of arms."""
    e, judged = outcome.experiment, JudgedOutcome(outcome)
    canvas = Canvas(figsize=(2 * PANEL[0], len(outcome.arms) * PANEL[1]), layout="constrained")
    grid = canvas.subplots(len(outcome.arms), 2, squeeze=False, sharex=True, sharey="col")
    last: list[str] = []
    for (coupling, cross), arms in zip(grid, outcome.arms, strict=True):
        designs = {name: d for name in outcome.policies if (d := judged.design(name, arms)) is not None}
        _draw_row(coupling, cross, designs, judged, arms)
        coupling.set(ylabel=r"$\sigma_{\max}(Z_t)$", title=f"K = {arms}: coupling of shared and own parameters")
        cross.set(
            ylabel=r"$\sigma_{\max}(B_{i,t})\,/\,$pulls, mean over arms",
            title=rf"K = {arms}: an arm's mean $xz^{{\top}}$",
        )
        stamp_protocol(cross, e.protocol)
        values = ", ".join(f"{name} {np.median(d.z_norm[:, -1]):.2g}" for name, d in designs.items())
        last.append(f"with {arms} arms {values}")
    for axes in grid.ravel():  # the page shows each panel by itself
        axes.set_xlabel("rounds played, t")
        axes.tick_params(labelbottom=True)
    put_legend(canvas, [*keys_of(outcome.policies), *_keys()], 4)
    return save_figure(
        canvas, out, e.protocol, e.name,
        section="diversity", wide=True,
        title=f"{name_of(e.name)}: the key lemma beyond its burn-in, {under(e.protocol)}",
        caption=f"d₁ = {e.d1}, d₂ = {e.d2}, T = {e.horizon:,}. The lemma promises that Z is at most "
        f"1/2 after the burn-in (shaded: from uniform choice's T₀ to the last policy's). Under "
        "uniform choice, where its assumption is true, Z falls like one over the square root of t, far below the bound "
        "of the proof. Where arms are picked for their reward, the mean of x z' tends to a constant instead of 0, and "
        f"Z with it. {DISJOINT}'s Z is the largest of its arms' own. {lines_and_bands(outcome)}",
        alt=f"Charts on logarithmic axes. Median of the largest singular value of Z after {e.horizon:,} rounds: "
        f"{'; '.join(last)}.",
    )  # fmt: skip


def _draw_row(coupling: Axes, cross: Axes, designs: Mapping[str, Design], judged: JudgedOutcome, arms: int) -> None:
    """Both charts of one number of arms."""
    styles = styles_of(list(designs))
    for order, (name, design) in enumerate(designs.items()):
        assert design.pulls is not None
        assert design.sigma_max_b is not None
        size = (design.sigma_max_b / np.maximum(design.pulls, 1)).mean(axis=2)
        for axes, values in ((coupling, design.z_norm), (cross, size)):
            _draw_runs(axes, design.t, values, name, styles[name], order)
    coupling.axhline(COUPLING_LIMIT, **_LIMIT_LINE)
    if UNIFORM in designs and (bound := judged.lemma_bound(UNIFORM, arms)) is not None:
        known = np.isfinite(bound).all(axis=0)
        rounds, mean = designs[UNIFORM].t[known], bound.mean(axis=0)[known]
        remember(coupling, _BOUND, rounds, {"bound": mean}, coupling.plot(rounds, mean, **_BOUND_LINE))
    starts = [start for name in designs if name != DISJOINT and math.isfinite(start := judged.burn_in(name, arms))]
    for axes in (coupling, cross):
        if starts:
            axes.axvspan(min(starts), max(starts), **_BURN_IN, linewidth=0 if max(starts) > min(starts) else 2)
            axes.axvline(min(starts), color=_BURN_IN["color"], linewidth=1.0)
        make_logarithmic(axes)
    coupling.annotate(
        "1/2", (0.005, COUPLING_LIMIT), xycoords=("axes fraction", "data"), va="bottom",
        fontsize=9, color=_LIMIT_LINE["color"],
    )  # fmt: skip
    if starts:
        cross.annotate(
            f"T₀ = {number(min(starts))}", (min(starts), 0.99), xycoords=("data", "axes fraction"), va="top",
            ha="right", fontsize=8.5, color="#555500", xytext=(-3, 0), textcoords="offset points",
        )  # fmt: skip


def _draw_runs(axes: Axes, t: FloatArray, values: FloatArray, name: str, style: Style, order: int) -> None:
    """Mean and range over runs; markers of policies whose lines coincide stand side by side."""
    low, high, mean = values.min(axis=0), values.max(axis=0), values.mean(axis=0)
    band = axes.fill_between(t, low, high, color=style.colour, alpha=0.15, linewidth=0)
    every = max(1, len(t) // 6)
    line = axes.plot(
        t, mean, color=style.colour, linestyle=style.dash, linewidth=1.7, marker=style.marker,
        markersize=5, markevery=(min(order * every // 5, len(t) - 1), every),
    )  # fmt: skip
    remember(axes, name, t, {"mean": mean, "lowest": low, "highest": high}, [band, *line], band="lowest to highest run")


def _keys() -> list[Any]:
    limit = "1/2, what the lemma promises"
    return [
        Line2D([], [], **_LIMIT_LINE, label=limit),
        Line2D([], [], **_BOUND_LINE, label=_BOUND),
        Patch(**_BURN_IN, linewidth=0, label="burn-in T₀"),
    ]
