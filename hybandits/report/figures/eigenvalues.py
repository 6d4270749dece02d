"""Pictures of the diversity experiment: eigenvalues of what policies have seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from hybandits.experiments.results import Design, Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper.theorems import COUPLING_LIMIT
from hybandits.report.figures.looks import (
    NARROW,
    PANEL,
    SLOPES,
    Style,
    draw_curves,
    draw_reference,
    from_zero,
    keys_of,
    label_regret,
    make_logarithmic,
    put_legend,
    put_title,
    save_figure,
    share_limits,
    slope_key,
    slope_under,
    stamp_protocol,
    styles_of,
    thousands,
)
from hybandits.report.figures.outcomes import (
    DISJOINT,
    Figure,
    by_pulls,
    curve,
    final_values,
    lines_and_bands,
    runs_in_words,
    shape_of,
    under,
)
from hybandits.report.figures.plotted import remember


def draw_eigenvalues(outcome: Outcome, out: Path) -> Iterator[Figure]:
    """Draw the figures of the design matrix, as far as it was measured, and the growth of the regret."""
    designs = {name: design for name in outcome.policies if (design := outcome.design(name)) is not None}
    measured = {name: design for name, design in designs.items() if design.pulls is not None}
    drawn = {name: _draw_blocks(name, design) for name, design in measured.items() if name != DISJOINT}
    for alike in zip(*(panels for _, panels in drawn.values()), strict=True):
        share_limits(alike)  # of the same block under different policies
    for name, design in measured.items():
        if name in drawn:
            yield _blocks(outcome, name, design, *drawn[name], out)
        else:
            yield _own_matrices(outcome, name, design, out)
    shared = {name: d for name, d in designs.items() if name != DISJOINT and np.isfinite(d.z_norm).all()}
    if shared:
        yield _coupling(outcome, shared, out)
    yield _growth(outcome, out)


MIDDLE, MOST, WHOLE, HAIRS = "median or mean", "5 to 95 %", "lowest to highest", "arms of run 1"
_FAN = "Over all arms and runs: lowest to highest (light band), 5 to 95 % (dark), median (line); hairlines: run 1."


def _draw_blocks(name: str, design: Design) -> tuple[Canvas, Sequence[Axes]]:
    """Smallest eigenvalues of V and W_i and largest singular value of B_i, of a policy with shared parameters."""
    style = styles_of([name])[name]
    canvas = Canvas(figsize=(3 * PANEL[0], PANEL[1]), layout="constrained")
    shared, own, cross = canvas.subplots(1, 3)
    _over_runs(shared, MIDDLE, design.t, design.lambda_min_v, style)
    _straight(shared, design.t, design.lambda_min_v.mean(axis=0))
    from_zero(shared)
    shared.set(xlabel="rounds played, t", ylabel=r"$\lambda_{\min}(V_t)$", title=f"{name}: shared block")
    _over_pulls(own, design, "lambda_min_w", style)
    own.set(xlabel="pulls of the arm", ylabel=r"$\lambda_{\min}(W_{i,t})$", title="blocks of the arms")
    _over_pulls(cross, design, "sigma_max_b", style, logarithmic=True)
    cross.set(xlabel="pulls of the arm", ylabel=r"$\sigma_{\max}(B_{i,t})$", title="cross blocks")
    return canvas, (shared, own, cross)


def _blocks(outcome: Outcome, name: str, design: Design, canvas: Canvas, panels: Sequence[Axes], out: Path) -> Figure:
    """The picture of the blocks of a policy with shared parameters."""
    e, style = outcome.experiment, styles_of([name])[name]
    stamp_protocol(panels[-1], e.protocol)
    slopes = [slope_key(0.5, "slope of √pulls"), slope_key(1.0, "slope of linear growth")]
    put_legend(canvas, [*_fan_keys(style), *slopes], 4)
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-{name}",
        section="diversity", wide=True,
        title=f"{name}: the blocks of the design matrix, {under(e.protocol)}",
        caption=f"{runs_in_words(outcome)}, K = {outcome.arms[0]}. An eigenvalue that grows linearly follows the "
        "dashed line once there are more rows than dimensions; a singular value that grows like √pulls has the "
        f"dotted slope. First panel: mean, lowest and highest run. {_FAN} Other policies have the same axes.",
        alt=f"Three charts. After {e.horizon:,} rounds, medians: smallest eigenvalue of the shared block "
        f"{np.median(design.lambda_min_v[:, -1]):.1f}, of the arms' blocks {_middle(design.lambda_min_w)}, largest "
        f"singular value of the cross blocks {_middle(design.sigma_max_b)}.",
    )  # fmt: skip


def _own_matrices(outcome: Outcome, name: str, design: Design, out: Path) -> Figure:
    """Smallest eigenvalue of every arm's own matrix, of a policy that shares nothing."""
    e, style = outcome.experiment, styles_of([name])[name]
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    _over_pulls(axes, design, "lambda_min_w", style)
    axes.set(
        xlabel="pulls of the arm", ylabel=r"$\lambda_{\min}$ of the arm's matrix", title=f"{name}: a matrix per arm"
    )
    stamp_protocol(axes, e.protocol)
    put_legend(canvas, _fan_keys(style), 3)
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-{name}",
        section="diversity", wide=False,
        title=f"{name}: the matrices of the arms, {under(e.protocol)}",
        caption=f"Smallest eigenvalue of each arm's matrix of d₁ + d₂ = {e.d1 + e.d2} features. {_FAN}",
        alt=f"Chart. After {e.horizon:,} rounds the median over arms is {_middle(design.lambda_min_w)}.",
    )  # fmt: skip


def _coupling(outcome: Outcome, designs: Mapping[str, Design], out: Path) -> Figure:
    """sigma_max(Z_t), how strongly shared and own parameters are coupled, against the bound of the proofs."""
    e, styles = outcome.experiment, styles_of(list(designs))
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    for name, design in designs.items():
        _over_runs(axes, name, design.t, design.z_norm, styles[name])
    axes.axhline(COUPLING_LIMIT, color="#444444", linewidth=1.1, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_ylim(0, max(1.0, 1.05 * max(float(design.z_norm.max()) for design in designs.values())))
    axes.set(xlabel="rounds played, t", ylabel=r"$\sigma_{\max}(Z_t)$", title="coupling of shared and own parameters")
    stamp_protocol(axes, e.protocol)
    bound = Line2D([], [], color="#444444", linewidth=1.1, linestyle=(0, (4, 2)))
    bound.set_label("1/2, what the proofs use")
    put_legend(canvas, [*keys_of(list(designs)), bound], 2)
    last = ", ".join(f"{name} {design.z_norm[:, -1].mean():.2f}" for name, design in designs.items())
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-coupling",
        section="diversity", wide=False,
        title=f"Coupling of shared and own parameters, {under(e.protocol)}",
        caption="Largest singular value of Z, the cross blocks when both parts are scaled to unit blocks: 0 if shared "
        f"and own parameters are learned independently, near 1 if hard to tell apart. {lines_and_bands(outcome)}",
        alt=f"Line chart. After {e.horizon:,} rounds: {last}; the proofs use {COUPLING_LIMIT:g}.",
    )  # fmt: skip


def _growth(outcome: Outcome, out: Path) -> Figure:
    """Regret on logarithmic axes with the slope of a square root."""
    e, names = outcome.experiment, outcome.policies
    curves = {name: curve(outcome, name) for name in names}
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    draw_curves(axes, curves, {}, logarithmic=True)
    slope_under(axes, curves, 0.5)
    label_regret(axes, outcome, logarithmic=True)
    put_title(axes, shape_of(outcome))
    stamp_protocol(axes, e.protocol)
    put_legend(canvas, [*keys_of(names), slope_key(0.5, "slope of √t")], 3)
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-regret",
        section="diversity", wide=False,
        title=f"Regret in the diversity experiment, {under(e.protocol)}",
        caption=f"{lines_and_bands(outcome)} The grey dotted line has the slope of √t.",
        alt=f"Line chart. {final_values(outcome, names)}.",
    )  # fmt: skip


def _middle(measure: FloatArray | None) -> str:
    return "unknown" if measure is None else f"{np.nanmedian(measure[:, -1]):.1f}"


def _over_runs(axes: Axes, name: str, t: FloatArray, values: FloatArray, style: Style) -> None:
    """A measure of the whole matrix: mean and range over runs against rounds."""
    low, high = values.min(axis=0), values.max(axis=0)
    band = axes.fill_between(t, low, high, color=style.colour, alpha=0.2, linewidth=0)
    lines = axes.plot(
        t,
        values.mean(axis=0),
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.9,
        marker=style.marker,
        markersize=5,
        markevery=max(1, len(t) // 7),
    )
    numbers = {"mean": values.mean(axis=0), "lowest": low, "highest": high}
    remember(axes, name, t, numbers, [band, *lines], band="lowest to highest run")


def _over_pulls(axes: Axes, design: Design, measure: str, style: Style, *, logarithmic: bool = False) -> None:
    """A measure of every arm's block against the pulls of that arm."""
    assert design.pulls is not None
    values: FloatArray = getattr(design, measure)
    top = max(float(np.quantile(design.pulls[:, -1], 0.95)), 2.0)
    grid = np.geomspace(1, top, 60) if logarithmic else np.linspace(0, top, 60)
    lowest, low, median, high, highest = by_pulls(design.pulls, values, grid, (0, 0.05, 0.5, 0.95, 1))
    whole = axes.fill_between(grid, lowest, highest, color=style.colour, alpha=0.12, linewidth=0)
    most = axes.fill_between(grid, low, high, color=style.colour, alpha=0.25, linewidth=0)
    hairs = axes.plot(design.pulls[0], values[0], color=style.colour, linewidth=0.4, alpha=0.5)
    line = axes.plot(grid, median, color=style.colour, linewidth=2.0)
    remember(axes, MIDDLE, grid, {"median": median, "5 %": low, "95 %": high}, line, band=MOST)
    remember(axes, MOST, grid, {"5 %": low, "95 %": high}, [most], readable=False)
    remember(axes, WHOLE, grid, {"lowest": lowest, "highest": highest}, [whole], readable=False)
    probes, arms = values[0].shape
    by_arm = {"value": values[0].T.ravel(), "arm": np.repeat(np.arange(1.0, arms + 1), probes)}
    remember(axes, HAIRS, design.pulls[0].T.ravel(), by_arm, hairs, readable=False)
    if logarithmic:
        axes.set_xlim(1, top)
        _both_slopes(axes, grid, median)
        make_logarithmic(axes)
    else:
        from_zero(axes)
        axes.set_xlim(0, top)
        known = np.isfinite(median)
        if known.any():
            axes.set_ylim(0, 1.05 * float(np.nanmax(highest)))
        _straight(axes, grid[known], median[known])


def _both_slopes(axes: Axes, x: FloatArray, y: FloatArray) -> None:
    """Growth like the square root and linear growth, both from where an arm has been pulled a few times."""
    positive = np.isfinite(y) & (y > 0)
    if not positive.any():
        return
    axes.set_ylim(0.3 * float(y[positive].min()), 4 * float(y[positive].max()))
    later = positive & (x >= 4)
    if later.any():
        for power in SLOPES:
            draw_reference(axes, x[later], (float(x[later][0]), float(y[later][0])), power)


def _straight(axes: Axes, x: FloatArray, y: FloatArray) -> None:
    """The straight line through the last half, down to where it is 0: what linear growth would look like."""
    half = int(np.searchsorted(x, x[-1] / 2)) if len(x) else 0
    if half < len(x) - 1:
        slope = (y[-1] - y[half]) / (x[-1] - x[half])
        start = max(0.0, float(x[-1] - y[-1] / slope)) if slope > 0 else 0.0
        ends = np.array([start, x[-1]])
        dash = (0, (4, 2))
        axes.plot(ends, y[-1] + slope * (ends - x[-1]), color="#222222", linewidth=1.1, linestyle=dash, zorder=3)


def _fan_keys(style: Style) -> list[Any]:
    return [
        Line2D([], [], color=style.colour, linewidth=2, label=MIDDLE),
        Patch(color=style.colour, alpha=0.4, linewidth=0, label=MOST),
        Patch(color=style.colour, alpha=0.15, linewidth=0, label=WHOLE),
        Line2D([], [], color=style.colour, linewidth=0.5, label=HAIRS),
        Line2D(
            [], [], color="#222222", linewidth=1.1, linestyle=(0, (4, 2)), label="straight line through the last half"
        ),
    ]
