"""Figures on diversity: the design matrix, the coupling, the key lemma, coverage, and worlds without diversity."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from hybandits.experiments.results import Design, Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper.diversity import Coverage
from hybandits.paper.judging import DISJOINT, JudgedOutcome, mean_cross_moment
from hybandits.paper.structured import COMPARED, Structured
from hybandits.paper.theorems import COUPLING_LIMIT
from hybandits.report import cases
from hybandits.report.figures.looks import BAND, Curve, Figure, Plot, Style, label_axes, make_logarithmic
from hybandits.report.figures.regret import lines_and_bands

MIDDLE, MOST, WHOLE = "median or mean", "5 to 95 %", "lowest to highest"
_FAN = "Over all arms and runs: lowest to highest (light band), 5 to 95 % (dark), median (line)."
_DASHED: Any = (0, (4, 2))
_ROUNDS, _PULLS = "rounds played, t", "pulls of the arm"


def diversity_figures(outcome: Outcome) -> Iterator[Figure]:
    """The figures of the design matrix, as far as it was measured."""
    designs = {name: design for name in outcome.policies if (design := outcome.design(name)) is not None}
    for name, design in designs.items():
        yield (_own_matrices if name == DISJOINT else _blocks)(outcome, name, design)
    if sharing := {name: design for name, design in designs.items() if name != DISJOINT}:
        yield _coupling(outcome, sharing)


def _fan(design: Design, measure: str, *, logarithmic: bool = False) -> tuple[FloatArray, FloatArray]:
    """A grid of pulls, and the lowest value there, the 5 % quantile, the median, the 95 % quantile, and the highest."""
    assert design.pulls is not None
    top = max(float(np.quantile(design.pulls[:, -1], 0.95)), 2.0)
    grid = np.geomspace(1, top, 60) if logarithmic else np.linspace(0, top, 60)
    return grid, by_pulls(design.pulls, getattr(design, measure), grid, (0, 0.05, 0.5, 0.95, 1))


def by_pulls(pulls: FloatArray, values: FloatArray, grid: FloatArray, levels: Sequence[float]) -> FloatArray:
    """Quantiles (levels, grid) of an arm's measure at equal numbers of pulls, over runs and arms.

    Every arm's course is interpolated between probes; where fewer than one in twenty has come this far: NaN.
    """
    x, y = (a.transpose(0, 2, 1).reshape(-1, a.shape[1]) for a in (pulls, values))
    measured = np.full((len(x), len(grid)), np.nan)
    for row, of_arm, course in zip(measured, x, y, strict=True):
        inside = (grid >= of_arm[0]) & (grid <= of_arm[-1])
        row[inside] = np.interp(grid[inside], of_arm, course)
    quantiles = np.full((len(levels), len(grid)), np.nan)
    enough = np.isfinite(measured).sum(axis=0) * 20 >= len(measured)
    if enough.any():
        quantiles[:, enough] = np.nanquantile(measured[:, enough], levels, axis=0)
    return quantiles


def _blocks(outcome: Outcome, name: str, design: Design) -> Figure:
    """Smallest eigenvalues of V and W_i and largest singular value of B_i, of a policy with shared parameters."""
    e, own = outcome.experiment, _fan(design, "lambda_min_w")
    cross = _fan(design, "sigma_max_b", logarithmic=True)

    def draw(plot: Plot) -> None:
        shared_axes, own_axes, cross_axes = plot.axes
        style = plot.styles[name]
        _draw_runs(plot, shared_axes, MIDDLE, design.t, design.lambda_min_v, style, legend=False)
        label_axes(shared_axes, _ROUNDS, r"$\lambda_{\min}(V_t)$")
        shared_axes.set_title(f"{name}: shared block")
        _draw_fan(plot, own_axes, own, style)
        label_axes(own_axes, _PULLS, r"$\lambda_{\min}(W_{i,t})$")
        own_axes.set_title("blocks of the arms")
        _draw_fan(plot, cross_axes, cross, style)
        _draw_both_slopes(plot, cross_axes, cross)
        median = cross[1][2][cross[1][2] > 0]
        cross_axes.set(xlim=(1, cross[0][-1]), ylim=(0.3 * median.min(), 4 * median.max()))
        label_axes(cross_axes, _PULLS, r"$\sigma_{\max}(B_{i,t})$", logarithmic=True)
        cross_axes.set_title("cross blocks")

    return Figure(
        name=f"{e.name}-{name}", protocol=e.protocol, section="diversity", draw=draw, columns=3,
        title=f"{name}: the blocks of the design matrix, {cases.under(e.protocol)}",
        caption=f"{cases.runs_in_words(outcome)}, K = {outcome.arms[0]}. An eigenvalue that grows linearly is a "
        "straight line once there are more rows than dimensions; a singular value that grows like √pulls has the "
        f"dotted slope. First panel: mean, lowest and highest run. {_FAN}",
        alt=f"Three charts. After {e.horizon:,} rounds, medians: smallest eigenvalue of the shared block "
        f"{np.median(design.lambda_min_v[:, -1]):.1f}, of the arms' blocks {_middle(design.lambda_min_w)}, largest "
        f"singular value of the cross blocks {_middle(design.sigma_max_b)}.",
    )  # fmt: skip


def _own_matrices(outcome: Outcome, name: str, design: Design) -> Figure:
    """Smallest eigenvalue of every arm's own matrix, of a policy that shares nothing."""
    e, fan = outcome.experiment, _fan(design, "lambda_min_w")

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        _draw_fan(plot, axes, fan, plot.styles[name])
        label_axes(axes, _PULLS, r"$\lambda_{\min}$ of the arm's matrix")
        axes.set_title(f"{name}: a matrix per arm")

    return Figure(
        name=f"{e.name}-{name}", protocol=e.protocol, section="diversity", draw=draw,
        title=f"{name}: the matrices of the arms, {cases.under(e.protocol)}",
        caption=f"Smallest eigenvalue of each arm's matrix of d₁ + d₂ = {e.d1 + e.d2} features. {_FAN}",
        alt=f"Chart. After {e.horizon:,} rounds the median over arms is {_middle(design.lambda_min_w)}.",
    )  # fmt: skip


def _middle(measure: FloatArray | None) -> str:
    return "unknown" if measure is None else f"{np.nanmedian(measure[:, -1]):.1f}"


def _coupling(outcome: Outcome, designs: Mapping[str, Design]) -> Figure:
    """sigma_max(Z_t), how strongly shared and own parameters are coupled, against the bound of the proofs."""
    e = outcome.experiment
    last = ", ".join(f"{name} {design.z_norm[:, -1].mean():.2f}" for name, design in designs.items())

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        for name, design in designs.items():
            _draw_runs(plot, axes, name, design.t, design.z_norm, plot.styles[name])
        axes.axhline(COUPLING_LIMIT, color=plot.ink, linewidth=1.1, linestyle=_DASHED, label="1/2, used by the proofs")
        make_logarithmic(axes, only_x=True)
        axes.set_ylim(0, max(1.0, 1.05 * max(float(design.z_norm.max()) for design in designs.values())))
        axes.set(xlabel=_ROUNDS, ylabel=r"$\sigma_{\max}(Z_t)$", title="coupling of shared and own parameters")

    return Figure(
        name=f"{e.name}-coupling", protocol=e.protocol, section="diversity", draw=draw,
        title=f"Coupling of shared and own parameters, {cases.under(e.protocol)}",
        caption="Largest singular value of Z, the cross blocks when both parts are scaled to unit blocks: 0 if shared "
        f"and own parameters are learned independently, near 1 if hard to tell apart. {lines_and_bands(outcome)}",
        alt=f"Line chart. After {e.horizon:,} rounds: {last}; the proofs use {COUPLING_LIMIT:g}.",
    )  # fmt: skip


# ------------------------------------------------------------------ the small problem


def small_problem_figure(outcome: Outcome) -> Figure:
    """sigma_max(Z_t), and the size of an arm's mean x z', against rounds: a row of two charts per number of arms."""
    e, judged = outcome.experiment, JudgedOutcome(outcome)
    by_arms = {
        arms: {name: d for name in outcome.policies if (d := judged.design(name, arms)) is not None}
        for arms in outcome.arms
    }
    last = [
        f"with {arms} arms " + ", ".join(f"{name} {np.median(d.z_norm[:, -1]):.2g}" for name, d in designs.items())
        for arms, designs in by_arms.items()
    ]

    def draw(plot: Plot) -> None:
        for row, (arms, designs) in enumerate(by_arms.items()):
            coupling, cross = plot.axes[2 * row : 2 * row + 2]
            _draw_row(plot, coupling, cross, designs, judged, arms)
            coupling.set(ylabel=r"$\sigma_{\max}(Z_t)$", title=f"K = {arms}: coupling of shared and own parameters")
            ylabel = r"$\sigma_{\max}(B_{i,t})\,/\,$pulls, mean over arms"
            cross.set(ylabel=ylabel, title=rf"K = {arms}: an arm's mean $xz^{{\top}}$")
            coupling.set_xlabel(_ROUNDS)
            cross.set_xlabel(_ROUNDS)

    return Figure(
        name=e.name, protocol=e.protocol, section="diversity", draw=draw, rows=len(outcome.arms), columns=2,
        sharing={"sharex": True, "sharey": "col"},
        title=f"{cases.name_of(e.name)}: the key lemma beyond its burn-in, {cases.under(e.protocol)}",
        caption=f"d₁ = {e.d1}, d₂ = {e.d2}, T = {e.horizon:,}. The lemma promises that Z is at most 1/2 after the "
        "burn-in (shaded: from the first policy's T₀ to the last's). Its assumption, that x z' has mean 0, is true of "
        "uniform choice by construction; nothing makes it true of policies that pick arms for their reward. "
        f"{DISJOINT}'s Z is the largest of its arms' own. {lines_and_bands(outcome)}",
        alt=f"Charts on logarithmic axes. Median of the largest singular value of Z after {e.horizon:,} rounds: "
        f"{'; '.join(last)}.",
    )  # fmt: skip


def _draw_row(
    plot: Plot, coupling: Axes, cross: Axes, designs: Mapping[str, Design], judged: JudgedOutcome, arms: int
) -> None:
    """Draw both charts of one number of arms."""
    for order, (name, design) in enumerate(designs.items()):
        size = mean_cross_moment(design).mean(axis=2)
        for axes, values in ((coupling, design.z_norm), (cross, size)):
            _draw_runs(plot, axes, name, design.t, values, plot.styles[name], order=order)
    coupling.axhline(COUPLING_LIMIT, color=plot.ink, linewidth=1.1, linestyle=_DASHED, label="1/2, the lemma's promise")
    starts = [start for n in designs if n != DISJOINT and math.isfinite(start := judged.burn_in(n, arms))]
    for axes in (coupling, cross):
        if starts:
            axes.axvspan(min(starts), max(starts), color="#999933", alpha=0.3, linewidth=0, label="burn-in T₀")
        make_logarithmic(axes)


# ------------------------------------------------------------------ lines


def _draw_runs(
    plot: Plot, axes: Axes, name: str, t: FloatArray, values: FloatArray, style: Style, *, order: int = 0,
    legend: bool = True,
) -> None:  # fmt: skip
    """Draw mean and range over runs; markers of policies whose lines coincide stand side by side."""
    runs = Curve.of(t, values)
    plot.fill(axes, t, runs.low, runs.high, color=style.colour, label=BAND if legend and not order else None)
    every = max(1, len(t) // 6)
    axes.plot(
        t, runs.mean, color=style.colour, linestyle=style.dash, marker=style.marker, label=name if legend else None,
        markevery=(min(order * every // 5, len(t) - 1), every),
    )  # fmt: skip
    plot.record(axes, name, t, {"mean": runs.mean, "lowest": runs.low, "highest": runs.high})


def _draw_fan(plot: Plot, axes: Axes, fan: tuple[FloatArray, FloatArray], style: Style) -> None:
    """Draw a measure of every arm's block against the pulls of that arm."""
    grid, (lowest, low, median, high, highest) = fan
    axes.plot(grid, median, color=style.colour, linewidth=2.0, label=MIDDLE)
    plot.fill(axes, grid, low, high, color=style.colour, alpha=0.25, label=MOST)
    plot.fill(axes, grid, lowest, highest, color=style.colour, alpha=0.12, label=WHOLE)
    axes.set(xlim=(0, grid[-1]), ylim=(0, 1.05 * float(np.nanmax(highest))))
    columns = {"lowest": lowest, "5 %": low, "median": median, "95 %": high, "highest": highest}
    plot.record(axes, "all arms and runs", grid, columns)


def _draw_both_slopes(plot: Plot, axes: Axes, fan: tuple[FloatArray, FloatArray]) -> None:
    """Draw growth like the square root and linear growth, both from where an arm has been pulled a few times."""
    grid, median = fan[0], fan[1][2]
    later = np.isfinite(median) & (median > 0) & (grid >= 4)
    if later.any():
        x, at = grid[later], (float(grid[later][0]), float(median[later][0]))
        plot.draw_slope(axes, x, at, 0.5, "slope of √pulls")
        plot.draw_slope(axes, x, at, 1.0, "slope of linear growth")


def coverage_figure(rows: Sequence[Coverage], protocol: str) -> Figure:
    """|phi - phi*|_M / gamma of every policy with such a set, in every diversity experiment."""
    names = [
        f"{e.name}{f', K = {case.arms}' if len(e.arms) > 1 else ''}: {case.policy}"
        for case, e in ((case, case.judged.experiment) for case in rows)
    ]
    levels = np.array([np.quantile(case.ratio, (0, 0.5, 1)) for case in rows])

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        for place, (case, (low, middle, high)) in enumerate(zip(rows, levels, strict=True)):
            style = plot.styles[case.policy]
            axes.plot((low, high), (place, place), color=style.colour, linewidth=3, alpha=0.5)
            axes.plot(middle, place, marker=style.marker, color=style.colour, linestyle="none")
            shares = {"share of runs and probes": [case.share], "share of single arms": [case.outside.mean()]}
            values = {"lowest": [low], "median": [middle], "highest": [high]}
            plot.record(axes, case.policy, [names[place]], values | shares)
        axes.axvline(1, color=plot.ink, linewidth=1.1)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        make_logarithmic(axes, only_x=True)
        axes.set(xlabel=r"$|\hat\varphi - \varphi|_M\,/\,\gamma$", title="size of the error over that of the set")

    return Figure(
        name="coverage", protocol=protocol, section="beyond", draw=draw, size=(6.6, 1.4 + 0.28 * len(rows)),
        title=f"Coverage of the confidence sets, {cases.under(protocol)}",
        caption="Lines from the lowest to the highest of all runs and probes, marks at the median. Right of 1 the true "
        "parameters are outside the set. HyLinUCB's coefficient is not derived for all parameters at once.",
        alt="Chart. Medians: " + "; ".join(f"{n} {level[1]:.2g}" for n, level in zip(names, levels, strict=True)) + ".",
    )  # fmt: skip


def structured_figure(worlds: Sequence[Structured], protocol: str) -> Figure:
    """Regret at T over that of uniform choice, and the diversity of an arm's own rows, world by world."""
    names = [world.words for world in worlds]
    policies = [name for name in COMPARED if any(name in world.of_uniform for world in worlds)]

    def draw(plot: Plot) -> None:
        places = np.arange(len(worlds), dtype=float)
        shares = [{name: share.mean() for name, share in w.of_uniform.items()} for w in worlds]
        columns = (shares, [w.own_rho for w in worlds], [w.own_cross for w in worlds])
        heads = ("regret / that of uniform choice", "own rows: smallest eigenvalue", "own rows: mean of $xz'$")
        labels = ("regret at T", r"$\lambda_{\min}$ of the mean $zz'$", r"$\sigma_{\max}$ of the mean $xz'$")
        for axes, values, head, label in zip(plot.axes, columns, heads, labels, strict=True):
            for name in policies:
                style = plot.styles[name]
                x = np.array([of_world.get(name, np.nan) for of_world in values])
                axes.plot(x, places, linestyle="none", marker=style.marker, color=style.colour, label=name)
                plot.record(axes, name, names, {"value": x})
            axes.set_ylim(len(worlds) - 0.5, -0.5)
            axes.set_xlim(left=0)
            axes.grid(axis="y", visible=False)
            axes.set(xlabel=label, title=head)
        plot.axes[0].set_yticks(places, names)

    return Figure(
        name="structured", protocol=protocol, section="beyond", draw=draw, columns=3, size=(4.2, 2.6),
        sharing={"sharey": True},
        title=f"Worlds in which diversity fails by construction, {cases.under(protocol)}",
        caption="Left: mean regret at T. Middle and right: the median arm over its own rounds; an eigenvalue of 0 or a "
        "mean of xz' far from 0 is no diversity. DisLinUCB's eigenvalue is that of its matrices of (x, z).",
        alt="Charts. Regret over that of uniform choice: " + "; ".join(
            f"{world.words}: " + ", ".join(f"{name} {share.mean():.2g}" for name, share in world.of_uniform.items())
            for world in worlds
        ) + ".",
    )  # fmt: skip
