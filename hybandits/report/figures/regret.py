"""Pictures of regret: the published panels, each setting, HyRan with and without its defect, other policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from hybandits.experiments.results import Outcome
from hybandits.paper import HYRAN_RELEASED
from hybandits.report.figures.looks import (
    NARROW,
    PANEL,
    WIDE,
    draw_curves,
    from_zero,
    keys_of,
    label_regret,
    line_width,
    put_legend,
    put_title,
    save_figure,
    share_limits,
    slope_key,
    slope_under,
    stamp_protocol,
    stamp_synthetic,
    styles_of,
    thousands,
)
from hybandits.report.figures.outcomes import (
    ASIDE,
    BEST,
    DEFECT,
    REPRODUCED,
    SYNTHETIC,
    Figure,
    Published,
    ReadOutError,
    Section,
    curve,
    curve_over_rounds,
    dots_of,
    final_excesses,
    final_values,
    has_several_runs,
    is_synthetic,
    last_read_out,
    lines_and_bands,
    many_arms,
    name_of,
    present_in,
    relative_curve,
    rivals,
    runs_in_words,
    shape_of,
    twins,
    under,
    under_and_log,
)
from hybandits.report.figures.plotted import remember

PANELS = {"setting-1": "(a)", "setting-2": "(b)", "setting-3": "(c)"}
_CLICKS = ("yahoo", "yahoo-positions")
"""What the fourth panel may show."""


def _plotted(outcome: Outcome) -> list[str]:
    return [name for name in rivals(outcome) if name in REPRODUCED]


def draw_panels(
    outcomes: Mapping[str, Outcome], protocol: str, out: Path, published: Published, read_out_error: ReadOutError
) -> Figure:
    """The published figure reproduced: settings 1 to 3, and the click log or else the ratios to the read-outs."""
    canvas = Canvas(figsize=(2 * PANEL[0], 2 * PANEL[1]), layout="constrained")
    grid = canvas.subplots(2, 2).ravel()
    for axes, (name, letter) in zip(grid, PANELS.items(), strict=False):
        if (outcome := outcomes.get(name)) is None:
            axes.set_axis_off()
            axes.set_title(f"{letter} {name_of(name)}: not in these results")
            continue
        names = present_in(outcome, REPRODUCED)
        draw_curves(axes, {n: curve(outcome, n) for n in names}, dots_of(outcome, names, published))
        label_regret(axes, outcome)
        put_title(axes, f"{letter} {shape_of(outcome)}")
    drawn = [outcomes[name] for name in PANELS if name in outcomes]
    names = [name for name in REPRODUCED if any(name in outcome.policies for outcome in drawn)]
    released = protocol == "released"
    clicks = next((o for name in _CLICKS if (o := outcomes.get(name)) is not None and _plotted(o)), None)
    if clicks is None:
        _ratios(grid[3], drawn, names, published, read_out_error)
        fourth = (
            "The published fourth panel shows a Yahoo! click log that may not be passed on (hybandits reproduce yahoo "
            "runs that experiment). In its place, panel (d) divides our mean regret at T by the published one; its "
            f"bars show the ratio if the read-out is off by {_errors_in_words(drawn, read_out_error)}."
        )
    else:
        names = [name for name in REPRODUCED if name in names or name in clicks.policies]
        draw_relative(grid[3], clicks, _plotted(clicks), published)
        put_title(grid[3], f"(d) {shape_of(clicks)}")
        fourth = f"(d): regret minus HyLinUCB's, {runs_in_words(clicks)}."
        fourth += f" This is a {SYNTHETIC}." if is_synthetic(clicks) else ""
    stamp_protocol(grid[1], protocol)
    if clicks is not None:
        stamp_synthetic(grid[3], clicks, f"panel (d); {under(protocol)}")
    put_legend(canvas, keys_of(names, dots=released), 6)
    markers = "Edged markers: the published figure, read off its pixels."
    if not released:
        markers = "The published figure belongs to the released protocol"
        markers += "." if clicks else " and appears here in panel (d) only."
    final = [final_values(o, present_in(o, REPRODUCED)) for o in drawn]
    final += [] if clicks is None else [final_excesses(clicks, _plotted(clicks))]
    return save_figure(
        canvas, out, protocol, "panels",
        section="panels", wide=True,
        title=f"The published figure reproduced, {under(protocol)}",
        caption=f"{lines_and_bands(drawn[0])} {markers} {fourth}",
        alt=f"Four panels. {'; '.join(final)}.",
    )  # fmt: skip


def _ratios(
    axes: Axes, outcomes: Sequence[Outcome], names: Sequence[str], published: Published, read_out_error: ReadOutError
) -> None:
    """Our mean divided by the published read-out, one row per case."""
    axes.set_title("(d) our regret at T divided by the published")
    rows: dict[str, list[tuple[str, float, float, float]]] = {}
    for outcome in outcomes:
        for arms in outcome.arms:
            for name in present_in(outcome, names):
                if read_out := last_read_out(outcome, name, arms, published):
                    rounds, mean, known = read_out
                    case = f"K = {arms}" if many_arms(outcome) else f"t = {rounds:,}"
                    setting = name_of(outcome.experiment.name).removeprefix("Setting ")
                    error = read_out_error(outcome.experiment.name)
                    rows.setdefault(f"{setting}, {case}", []).append((name, mean, known, error))
    if not rows:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no published read-out at these rounds", ha="center", transform=axes.transAxes)
        return
    styles = styles_of(names)
    for row, entries in enumerate(rows.values()):
        for name, mean, known, error in entries:
            y = row + 0.2 * (names.index(name) - (len(names) - 1) / 2)
            ends = [mean / (known + error), mean / max(known - error, 1.0)]
            lines = axes.plot(ends, [y, y], color=styles[name].colour, linewidth=3, alpha=0.35, zorder=2)
            lines += axes.plot([mean / known], [y], color=styles[name].colour, marker=styles[name].marker, markersize=5)
            ratio = {"ratio": [mean / known], "ratio, lowest": ends[:1], "ratio, highest": ends[1:]}
            remember(axes, name, [list(rows)[row]], ratio, lines, readable=False)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.axvline(1, color="#444444", linewidth=0.9, zorder=1)
    axes.set_xlabel("ratio (1: the same)")
    axes.set_ylabel("setting")
    _ratio_axis(axes, [mean / known for entries in rows.values() for _, mean, known, _ in entries])


def _errors_in_words(outcomes: Sequence[Outcome], read_out_error: ReadOutError) -> str:
    """How far read-outs may be off, panel by panel where they differ."""
    names: dict[float, list[str]] = {}
    for outcome in outcomes:
        names.setdefault(read_out_error(outcome.experiment.name), []).append(name_of(outcome.experiment.name).lower())
    if len(names) == 1:
        return f"{next(iter(names)):g}"
    return ", ".join(f"{error:g} ({' and '.join(panels)})" for error, panels in names.items())


def _ratio_axis(axes: Axes, ratios: Sequence[float]) -> None:
    lowest, highest = min(1.0, *ratios), max(1.0, *ratios)
    if highest / lowest > 4:
        axes.set_xscale("log")
        axes.set_xlim(lowest / 1.6, highest * 1.6)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(thousands))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        margin = max(0.1, 1.25 * (highest - 1), 1.25 * (1 - lowest))
        axes.set_xlim(1 - margin, 1 + margin)


def draw_setting(outcome: Outcome, out: Path, published: Published) -> Figure:
    """One panel by itself, beside it the same on logarithmic axes, with the baselines that were not plotted."""
    e = outcome.experiment
    clicks = e.log is not None
    paper_only = present_in(outcome, (*REPRODUCED, *ASIDE)) if e.protocol != "own" and not clicks else []
    names = paper_only or [name for name in outcome.policies if name not in twins(outcome).values()]
    curves = {name: curve(outcome, name) for name in names}
    dots = {} if clicks else dots_of(outcome, names, published)
    canvas = Canvas(figsize=WIDE, layout="constrained")
    left, right = canvas.subplots(1, 2)
    draw_curves(left, curves, dots)
    label_regret(left, outcome)
    put_title(left, shape_of(outcome))
    draw_curves(right, curves, dots, logarithmic=True)
    power, slope = (1.0, "slope of K") if many_arms(outcome) else (0.5, "slope of √t")
    slope_under(right, curves, power)
    label_regret(right, outcome, logarithmic=True)
    right.set_title("the same, both axes logarithmic")
    stamp_protocol(right, e.protocol)
    stamp_synthetic(right, outcome, under(e.protocol))
    known = any(dots.values())
    put_legend(canvas, [*keys_of(names, dots=known, bands=has_several_runs(outcome)), slope_key(power, slope)], 5)
    caption = [
        lines_and_bands(outcome),
        f"This is a {SYNTHETIC}." if is_synthetic(outcome) else "",
        "Edged markers: the published figure." if known else "",
        "Thin lines: baselines that the published figure does not show." if any(n in ASIDE for n in names) else "",
        f"In the second panel the grey line has the {slope}.",
    ]
    return save_figure(
        canvas, out, e.protocol, e.name,
        section="yahoo" if clicks else "regret", wide=True,
        title=f"{shape_of(outcome)}, {under_and_log(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {final_values(outcome, names)}.",
    )  # fmt: skip


def draw_rounds(outcome: Outcome, out: Path) -> Figure:
    """Regret against rounds, a panel for every number of arms, all with the same axes."""
    e, names = outcome.experiment, outcome.policies
    columns = 3 if len(outcome.arms) > 4 else 2
    rows = -(-len(outcome.arms) // columns)
    canvas = Canvas(figsize=(columns * PANEL[0], rows * PANEL[1]), layout="constrained")
    grid = canvas.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(outcome.arms) :]:
        axes.remove()
    panels = list(grid[: len(outcome.arms)])
    for axes, arms in zip(panels, outcome.arms, strict=True):
        draw_curves(axes, {name: curve_over_rounds(outcome, name, arms) for name in names}, {})
        axes.set_xlabel("rounds played, t")
        axes.set_ylabel("cumulative regret")
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        from_zero(axes)
        axes.set_title(f"K = {arms}")
    share_limits(panels)
    stamp_protocol(panels[-1], e.protocol)
    put_legend(canvas, keys_of(names, bands=has_several_runs(outcome)), 5)
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-rounds",
        section="regret", wide=True,
        title=f"{name_of(e.name)}: regret against rounds for every K, {under(e.protocol)}",
        caption=f"{lines_and_bands(outcome)} All panels have the same axes.",
        alt=f"{len(panels)} line charts. {final_values(outcome, names)}.",
    )  # fmt: skip


def _few(
    outcome: Outcome, names: Sequence[str], out: Path, *, section: Section, logarithmic: bool = False, **words: str
) -> Figure:
    """Some policies on one pair of axes."""
    e = outcome.experiment
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    draw_curves(axes, {name: curve(outcome, name) for name in names}, {}, logarithmic=logarithmic)
    label_regret(axes, outcome, logarithmic=logarithmic)
    put_title(axes, shape_of(outcome))
    stamp_protocol(axes, e.protocol)
    put_legend(canvas, keys_of(names), 3 if len(names) > 3 else 2)
    alt = f"Line chart. {final_values(outcome, names)}."
    return save_figure(canvas, out, e.protocol, f"{e.name}-{section}", section=section, wide=False, alt=alt, **words)


def draw_hyran(outcome: Outcome, out: Path) -> Figure:
    """What the blocks that the released HyRan leaves out change."""
    e, arms = outcome.experiment, outcome.arms[-1]
    ratio = outcome.final(HYRAN_RELEASED, arms).mean() / max(outcome.final("HyRan", arms).mean(), 1e-12)
    return _few(
        outcome, DEFECT, out, section="hyran",
        title=f"HyRan with and without its cross blocks, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{HYRAN_RELEASED} leaves out the blocks that couple shared and own parameters. "
        f"At T with {arms} arms its regret is {ratio:.2f} times that of HyRan. {lines_and_bands(outcome)}",
    )  # fmt: skip


def beyond_names(outcome: Outcome) -> list[str]:
    """The policies that are not in the paper."""
    return [name for name in outcome.policies if name not in (*REPRODUCED, *ASIDE)]


def draw_beyond(outcome: Outcome, out: Path) -> Figure:
    """Policies that are not in the paper, beside the best of those that are."""
    e, arms = outcome.experiment, outcome.arms[-1]
    known = present_in(outcome, (*REPRODUCED, *ASIDE))
    best = sorted(known, key=lambda name: float(outcome.final(name, arms).mean()))[:1]
    beside = f"Of the published algorithms {best[0]} has the lowest regret at T with {arms} arms. " if best else ""
    return _few(
        outcome, [*best, *beyond_names(outcome)], out, section="beyond", logarithmic=True,
        title=f"Beyond the paper, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{beside}{lines_and_bands(outcome)} Both axes are logarithmic.",
    )  # fmt: skip


def draw_relative(axes: Axes, outcome: Outcome, names: Sequence[str], published: Published) -> bool:
    """Draw regret minus HyLinUCB's against rounds; return whether there are published dots."""
    dots = {name: values for name, values in dots_of(outcome, names, published).items() if values}
    style = styles_of([BEST])[BEST]
    zero = axes.axhline(0, color=style.colour, linewidth=line_width(BEST), zorder=2)
    draw_curves(axes, {name: relative_curve(outcome, name) for name in names}, dots)
    ends = [float(outcome.points[0]), float(outcome.points[-1])]
    remember(axes, BEST, ends, {"mean": [0.0, 0.0]}, [zero], readable=False)
    axes.set_xlabel("rounds played, t")
    axes.set_ylabel("regret minus HyLinUCB's")
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
    from_zero(axes, below=True)
    return bool(dots)
