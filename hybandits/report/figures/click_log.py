"""Pictures of the experiment on a click log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from hybandits.experiments.results import Outcome
from hybandits.report.colours import darkened
from hybandits.report.figures.looks import (
    COLOURS,
    NARROW,
    PANEL,
    from_zero,
    keys_of,
    line_width,
    put_legend,
    put_title,
    save_figure,
    share_limits,
    stamp_protocol,
    stamp_synthetic,
    styles_of,
)
from hybandits.report.figures.outcomes import (
    BEST,
    SYNTHETIC,
    Figure,
    Published,
    change,
    curve,
    final_excesses,
    has_several_runs,
    is_synthetic,
    lines_and_bands,
    name_of,
    name_with_log,
    rivals,
    shape_of,
    twins,
    under,
    under_and_log,
)
from hybandits.report.figures.plotted import remember
from hybandits.report.figures.regret import draw_relative, draw_setting

RIGHT, WRONG = "learns from the arm it chose", "defect: learns from another candidate's reward"


def draw_click_log(outcome: Outcome, out: Path, published: Published) -> Iterator[Figure]:
    """Draw the figures of an experiment on a click log."""
    if rivals(outcome):
        yield _relative(outcome, out, published)
    yield draw_setting(outcome, out, published)
    if twins(outcome):
        yield _twins(outcome, out)


def _relative(outcome: Outcome, out: Path, published: Published) -> Figure:
    """The published panel reproduced: what the others lose beyond HyLinUCB."""
    e, names = outcome.experiment, rivals(outcome)
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    known = draw_relative(axes, outcome, names, published)
    put_title(axes, shape_of(outcome))
    stamp_protocol(axes, e.protocol)
    stamp_synthetic(axes, outcome, under(e.protocol))
    keys = keys_of(names, dots=known, bands=has_several_runs(outcome))
    zero = Line2D([], [], color=COLOURS[BEST], linewidth=line_width(BEST), label="HyLinUCB (0 by definition)")
    put_legend(canvas, [zero, *keys], 4)
    caption = [
        "Above the line at 0 an algorithm has lost more than HyLinUCB in the same trial.",
        lines_and_bands(outcome),
        f"This is a {SYNTHETIC}: the published curves say nothing about it and are not shown."
        if is_synthetic(outcome) else "",
        "Edged markers: the published figure, read off its pixels. Its arms are positions, its reward model was "
        "fitted otherwise and its algorithms learn from another arm's reward, so the curves need not meet it."
        if known else "",
    ]  # fmt: skip
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-relative",
        section="yahoo", wide=False,
        title=f"{name_of(e.name)}: regret relative to HyLinUCB, {under_and_log(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {final_excesses(outcome, names)}.",
    )  # fmt: skip


def _twins(outcome: Outcome, out: Path) -> Figure:
    """What learning from another arm's reward does, algorithm by algorithm."""
    e, pairs = outcome.experiment, twins(outcome)
    styles = styles_of(list(pairs))
    rows = -(-len(pairs) // 2)
    canvas = Canvas(figsize=(2 * PANEL[0], rows * PANEL[1]), layout="constrained")
    grid = canvas.subplots(rows, 2, squeeze=False).ravel()
    for axes in grid[len(pairs) :]:
        axes.remove()
    row = list(grid[: len(pairs)])
    dash: Any = (0, (4, 2))
    for axes, (name, twin) in zip(row, pairs.items(), strict=True):
        # The twin is dark and on top: where the defect changes little, the same colour could not be seen.
        dark = darkened(styles[name].colour, 0.65)
        for what, policy, colour, width, line in (
            (RIGHT, name, styles[name].colour, 2.6, "-"), (WRONG, twin, dark, 1.2, dash),
        ):  # fmt: skip
            one = curve(outcome, policy)
            band = axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
            lines = axes.plot(one.x, one.mean, color=colour, linestyle=line, linewidth=width, zorder=3)
            numbers = {"mean": one.mean, "lowest": one.low, "highest": one.high}
            remember(axes, what, one.x, numbers, [band, *lines], band="lowest to highest run")
        axes.set_title(f"{name}: {_added(outcome, name, twin)}")
        axes.set_xlabel("rounds played, t")
        axes.set_ylabel("cumulative regret")
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
        from_zero(axes)
    share_limits(row)
    canvas.suptitle(f"{shape_of(outcome)}; {under_and_log(outcome)}", x=0.01, ha="left", fontsize=10)
    right: dict[str, Any] = {"color": "#0072B2", "linewidth": 2.6, "label": RIGHT}
    wrong: dict[str, Any] = {"color": darkened("#0072B2", 0.65), "linewidth": 1.2, "linestyle": dash, "label": WRONG}
    put_legend(canvas, [Line2D([], [], **right), Line2D([], [], **wrong)], 2)
    changes = ", ".join(change(outcome, name, twin, lambda regret: f"{regret:,.0f}") for name, twin in pairs.items())
    kind = f" This is a {SYNTHETIC}." if is_synthetic(outcome) else ""
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-defect",
        section="yahoo", wide=True,
        title=f"{name_of(e.name)}: what the defect in the released code does, {under_and_log(outcome)}",
        caption="Solid: the algorithm; dashed: the same with the defect; beside each name, what the defect adds to the "
        f"regret at T. Mean regret at T with it: {changes}. {lines_and_bands(outcome)}{kind}",
        alt=f"{len(pairs)} line charts. {name_with_log(outcome)}, mean regret at T with the defect: {changes}.",
    )  # fmt: skip


def _added(outcome: Outcome, name: str, twin: str) -> str:
    """What the defect adds to the mean regret at T, in per cent."""
    before, after = float(outcome.final(name).mean()), float(outcome.final(twin).mean())
    if before <= 0:
        return "-"
    return f"{100 * (after / before - 1):+.1f} %".replace("-0.0", "+0.0")
