"""Pictures of the experiment on a click log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from hybandits.experiments.results import Outcome
from hybandits.report.figures.looks import (
    COLOURS,
    from_zero,
    keys_of,
    line_width,
    put_legend,
    save_figure,
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
from hybandits.report.figures.regret import draw_relative, draw_setting


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
    canvas = Canvas(figsize=(11.0, 5.6), layout="constrained")
    axes = canvas.subplots()
    known = draw_relative(axes, outcome, names, published)
    axes.set_title(shape_of(outcome))
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
        "Black-edged markers: the published figure, read off its pixels. Its arms are positions, its reward model was "
        "fitted otherwise and its algorithms learn from another arm's reward, so the curves need not meet it."
        if known else "",
    ]  # fmt: skip
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-relative",
        section="yahoo", wide=True,
        title=f"{name_of(e.name)}: regret relative to HyLinUCB, {under_and_log(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {final_excesses(outcome, names)}.",
    )  # fmt: skip


def _twins(outcome: Outcome, out: Path) -> Figure:
    """What learning from another arm's reward does, algorithm by algorithm."""
    e, pairs = outcome.experiment, twins(outcome)
    styles = styles_of(list(pairs))
    canvas = Canvas(figsize=(11.0, 4.3), layout="constrained")
    row = canvas.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    dash: Any = (0, (4, 2))
    for axes, (name, twin) in zip(row, pairs.items(), strict=True):
        # The twin in black on top: where the defect changes little, a dashed line of the same colour could not be seen.
        for policy, colour, width, line in ((name, styles[name].colour, 2.6, "-"), (twin, "black", 1.2, dash)):
            one = curve(outcome, policy)
            axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(one.x, one.mean, color=colour, linestyle=line, linewidth=width, zorder=3)
        axes.set_title(f"{name}: {_added(outcome, name, twin)}")
        axes.set_xlabel("rounds played, t")
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
    for axes in row:  # once all curves are there: the ordinate is shared
        from_zero(axes)
    row[0].set_ylabel("cumulative regret (units of reward)")
    canvas.suptitle(f"{shape_of(outcome)}; {under_and_log(outcome)}", x=0.01, ha="left", fontsize=10)
    right: dict[str, Any] = {"color": "#0072B2", "linewidth": 2.6, "label": "learns from the arm it chose"}
    wrong: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": dash}
    wrong["label"] = "defect: learns from another candidate's reward"
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
