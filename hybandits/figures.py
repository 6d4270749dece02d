"""Results to pictures; runs nothing.

Every figure is written as PNG and as SVG, and the same results give the same bytes. Policies are told apart by colour,
line style and marker alike, so that pictures read without colour too.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from PIL import Image

from hybandits.checks import Doubles
from hybandits.engines import Engine, Here, Report
from hybandits.experiments import Design, Outcome, Results, write_atomically

Published = Callable[[str, str, int | None], Mapping[int, float]]
"""(experiment, policy, arms) to the read-outs {rounds: regret} of the published figure; empty where there are none. In
experiments on a click log they are of the regret beyond HyLinUCB's."""

Section = Literal["panels", "regret", "diversity", "hyran", "beyond", "yahoo"]

COLOURS = {
    "HyLinUCB": "#0072B2",
    "LinUCB": "#D55E00",
    "DisLinUCB": "#009E73",
    "HyRan (released)": "#56B4E9",
    "HyRan": "#E69F00",
    "SupLinUCB": "#000000",
    "HyThompson": "#CC79A7",
    "Greedy": "#777777",
}
"""One colour per policy in every figure, told apart also by readers who do not see all colours."""

_SPARE_COLOURS = ("#332288", "#882255", "#44AA99", "#999933")

_DASHES: dict[str, Any] = {
    "HyLinUCB": "-",
    "LinUCB": (0, (6, 2)),
    "DisLinUCB": (0, (6, 1.5, 1, 1.5)),
    "HyRan (released)": (0, (1.5, 1)),
    "HyRan": (0, (3, 1)),
    "SupLinUCB": (0, (1, 2.5)),
    "HyThompson": (0, (10, 2, 2, 2)),
    "Greedy": (0, (2, 1.5)),
}
_MARKERS = {
    "HyLinUCB": "o",
    "LinUCB": "s",
    "DisLinUCB": "^",
    "HyRan (released)": "D",
    "HyRan": "v",
    "SupLinUCB": "X",
    "HyThompson": "P",
    "Greedy": "h",
}

REPRODUCED = ("HyLinUCB", "LinUCB", "DisLinUCB", "HyRan (released)")
"""The curves of the published figure."""
ASIDE = ("HyRan", "SupLinUCB")
"""Baselines that the published figure does not show: thinner."""
DEFECT = ("HyRan (released)", "HyRan")
BEST = "HyLinUCB"
"""What regret on a click log is relative to."""
DEFECTIVE = ", defect"
"""How names of algorithms end that are fed as the released code does on the click log."""
MADE = "made log, not Yahoo's data"
DISJOINT = "DisLinUCB"
"""Shares nothing between arms: its design matrix is one block per arm."""

LIMIT = 0.5
"""What the proofs need sigma_max(Z_t) to stay below."""

MOST_POINTS = 400
DOTS_PER_INCH = 160
WIDE, NARROW = (11.0, 4.9), (6.4, 4.7)

_NAMES = {
    "setting-1": "Setting 1",
    "setting-2": "Setting 2",
    "setting-3": "Setting 3",
    "diversity": "Diversity",
    "yahoo": "Yahoo",
    "yahoo-positions": "Yahoo, positions as arms",
}
_LOOK: dict[Any, Any] = {
    "figure.dpi": DOTS_PER_INCH,
    "svg.hashsalt": "hybandits",
    "svg.fonttype": "none",  # text stays text: small files that can be searched and read aloud
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.handlelength": 3.2,
    "figure.constrained_layout.h_pad": 0.09,
    "figure.constrained_layout.w_pad": 0.09,
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
    """PNG and SVG."""
    protocol: str
    section: Section
    wide: bool


class Curve(NamedTuple):
    """Mean, lowest and highest run at every x."""

    x: Doubles
    mean: Doubles
    low: Doubles
    high: Doubles


class _Style(NamedTuple):
    colour: str
    dash: Any
    marker: str


def draw_all(
    results: Results, out: Path, published: Published, *, read_out_error: float = 10.0, engine: Engine | None = None
) -> list[Figure]:
    """Draw every figure that there are results for into the folder `out`.

    read_out_error: how far a published number may be off, drawn beside the ratios to it. engine: where to draw the
    protocols' figures; in this process if left out.
    """
    tasks = [(results, protocol, out, published, read_out_error) for protocol in results.protocols]
    drawn = dict((engine or Here()).map(_draw, tasks, lambda i, amount: None))
    return [figure for i in range(len(tasks)) for figure in drawn[i]]


def _draw(task: tuple[Results, str, Path, Published, float], report: Report) -> list[Figure]:
    with matplotlib.rc_context(_LOOK):
        return list(_of_protocol(*task))


def _of_protocol(
    results: Results, protocol: str, out: Path, published: Published, read_out_error: float
) -> Iterator[Figure]:
    outcomes = {name: outcome for (name, p), outcome in sorted(results.outcomes.items()) if p == protocol}
    if protocol == "own":
        for outcome in outcomes.values():
            yield _setting(outcome, out, published)
        return
    logged = [outcome for outcome in outcomes.values() if outcome.experiment.log is not None]
    regret = [outcome for name, outcome in outcomes.items() if name != "diversity" and outcome not in logged]
    if any(name in outcomes and _present(outcomes[name], REPRODUCED) for name in _PANELS):
        yield _panels(outcomes, protocol, out, published, read_out_error)
    for outcome in regret:
        yield _setting(outcome, out, published)
    if "diversity" in outcomes:
        yield from _diversity(outcomes["diversity"], out)
    for outcome in regret:
        if set(DEFECT) <= set(outcome.policies):
            yield _hyran(outcome, out)
    for outcome in regret:
        if _beyond_names(outcome):
            yield _beyond(outcome, out)
    for outcome in logged:
        yield from _click_log(outcome, out, published)


# ------------------------------------------------------------------ what is drawn


def thin(points: Doubles, most: int = MOST_POINTS) -> Any:
    """Indices of at most `most` of the points, evenly spaced, the first and the last among them."""
    return np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).round().astype(int))


def _many_arms(outcome: Outcome) -> bool:
    return len(outcome.experiment.arms) > 1


def curve(outcome: Outcome, policy: str) -> Curve:
    """Regret against rounds or, where the experiment has several numbers of arms, regret at T against these."""
    if _many_arms(outcome):
        last = [outcome.final(policy, arms) for arms in outcome.arms]
        x = np.array(outcome.arms, dtype=float)
        return Curve(x, *(np.array([f(runs) for runs in last]) for f in (np.mean, np.min, np.max)))
    return _over_rounds(outcome, outcome.regret(policy))


def relative_curve(outcome: Outcome, policy: str) -> Curve:
    """What a policy loses beyond HyLinUCB in the same trial, against rounds."""
    return _over_rounds(outcome, outcome.regret(policy) - outcome.regret(BEST))


def _over_rounds(outcome: Outcome, runs: Doubles) -> Curve:
    keep = thin(outcome.points)
    runs = runs[:, keep]
    return Curve(outcome.points[keep], runs.mean(axis=0), runs.min(axis=0), runs.max(axis=0))


def rivals(outcome: Outcome) -> list[str]:
    """The paper's algorithms to be held against HyLinUCB on a click log; none if that was not run."""
    names = [name for name in (*REPRODUCED, *DEFECT) if name != BEST]
    return _present(outcome, list(dict.fromkeys(names))) if BEST in outcome.policies else []


def twins(outcome: Outcome) -> dict[str, str]:
    """Algorithms that were also run with the released code's defect on the click log, and what they are called then."""
    pairs = {name: f"{name}{DEFECTIVE}" for name in outcome.policies}
    return {name: twin for name, twin in pairs.items() if twin in outcome.policies}


def read_outs(outcome: Outcome, policy: str, published: Published) -> dict[int, float]:
    """Published dots on `curve`'s axes: {rounds or arms: regret}."""
    name, horizon = outcome.experiment.name, outcome.experiment.horizon
    if _many_arms(outcome):
        found = {arms: published(name, policy, arms).get(horizon) for arms in outcome.arms}
        return {arms: value for arms, value in found.items() if value is not None}
    return {t: value for t, value in published(name, policy, outcome.arms[0]).items() if t <= horizon}


def last_read_out(outcome: Outcome, policy: str, arms: int, published: Published) -> tuple[int, float, float] | None:
    """(rounds, our mean, published) at the last read-out that we have a point for; None if there is none."""
    known = published(outcome.experiment.name, policy, arms)
    at = max((t for t in known if t in outcome.experiment.points), default=None)
    if at is None:
        return None
    column = outcome.experiment.points.index(at)
    return at, float(outcome.regret(policy, arms)[:, column].mean()), known[at]


def by_pulls(pulls: Doubles, values: Doubles, grid: Doubles, levels: Sequence[float]) -> Doubles:
    """Quantiles (levels, grid) of an arm's measure at equal numbers of pulls, over runs and arms.

    Every arm's course is interpolated between probes; where fewer than one in twenty has come this far: NaN.
    """
    found = np.full((pulls.shape[0] * pulls.shape[2], len(grid)), np.nan)
    for row, x, y in zip(found, _courses(pulls), _courses(values), strict=True):
        inside = (grid >= x[0]) & (grid <= x[-1])
        row[inside] = np.interp(grid[inside], x, y)
    quantiles = np.full((len(levels), len(grid)), np.nan)
    enough = np.isfinite(found).sum(axis=0) * 20 >= len(found)
    if enough.any():
        quantiles[:, enough] = np.nanquantile(found[:, enough], levels, axis=0)
    return quantiles


def _courses(values: Doubles) -> Doubles:
    """(runs, probes, arms) to (runs and arms, probes)."""
    return values.transpose(0, 2, 1).reshape(-1, values.shape[1])


# ------------------------------------------------------------------ words


def name_of(experiment: str) -> str:
    """An experiment's name for headings."""
    return _NAMES.get(experiment, experiment)


def under(protocol: str) -> str:
    """A protocol for headings."""
    return "own experiment" if protocol == "own" else f"{protocol} protocol"


def is_made(outcome: Outcome) -> bool:
    """Whether the experiment is on a made log."""
    return (outcome.experiment.log or {}).get("made") is not None


def _where(outcome: Outcome) -> str:
    """The protocol, and that the log is made if it is, for headings."""
    return under(outcome.experiment.protocol) + (f" ({MADE})" if is_made(outcome) else "")


def _shape(outcome: Outcome) -> str:
    e = outcome.experiment
    rest = f"T={e.horizon:,}" if _many_arms(outcome) else f"K={outcome.arms[0]}"
    return f"{name_of(e.name)}: d1={e.d1}, d2={e.d2}, {rest}"


def _runs(outcome: Outcome) -> str:
    e = outcome.experiment
    environments, trials = len(e.seeds), e.trials
    if e.log is not None:
        return f"{trials} {_plural('trial', trials)} on one {'made log' if is_made(outcome) else 'log'}"
    return (
        f"{environments * trials} {_plural('run', environments * trials)} "
        f"({environments} {_plural('environment', environments)}, {trials} {_plural('trial', trials)} each)"
    )


def _plural(word: str, count: int) -> str:
    return word if count == 1 else word + "s"


def _lines_and_bands(outcome: Outcome) -> str:
    if not _several(outcome) and outcome.experiment.log is not None:
        return f"{_runs(outcome)}."
    return f"Lines: mean of {_runs(outcome)}" + ("; bands: lowest to highest run." if _several(outcome) else ".")


def _several(outcome: Outcome) -> bool:
    return len(outcome.experiment.seeds) * outcome.experiment.trials > 1


def _final_values(outcome: Outcome, names: Sequence[str]) -> str:
    arms = outcome.arms[-1]
    values = ", ".join(f"{name} {outcome.final(name, arms).mean():,.0f}" for name in names)
    return f"{_called(outcome)}, mean regret at T with {arms} arms: {values}"


def _called(outcome: Outcome) -> str:
    return name_of(outcome.experiment.name) + (f" ({MADE})" if is_made(outcome) else "")


def _final_excesses(outcome: Outcome, names: Sequence[str]) -> str:
    excesses = {name: float((outcome.final(name) - outcome.final(BEST)).mean()) for name in names}
    values = ", ".join(f"{n} {f'{v:,.0f}' if abs(v) >= 100 else f'{v:.1f}'}" for n, v in excesses.items())
    return f"{_called(outcome)}, mean regret at T beyond HyLinUCB's: {values}"


# ------------------------------------------------------------------ parts of pictures


def _styles(names: Sequence[str]) -> dict[str, _Style]:
    styles = {}
    unknown = [name for name in names if name not in COLOURS]
    for name in names:
        if name in COLOURS:
            styles[name] = _Style(COLOURS[name], _DASHES[name], _MARKERS[name])
        else:
            spare = unknown.index(name)
            dash = (0, (4 + 2 * spare, 2, 1, 2))
            styles[name] = _Style(_SPARE_COLOURS[spare % len(_SPARE_COLOURS)], dash, "<>pd"[spare % 4])
    return styles


def _thousands(value: float, _: int | None = None) -> str:
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"  # 10,000,000 and its neighbours would run into each other
    return f"{value:,.0f}" if abs(value - round(value)) <= 1e-9 * abs(value) else f"{value:g}"


def _draw_curves(
    axes: Axes,
    curves: Mapping[str, Curve],
    dots: Mapping[str, Mapping[int, float]],
    *,
    logarithmic: bool = False,
) -> None:
    """Mean lines over their bands, published dots on top; lines without dots carry markers to be told apart by."""
    styles = _styles(list(curves))
    for order, (name, one) in enumerate(curves.items()):
        style = styles[name]
        shown = (one.x > 0) & (one.low > 0) if logarithmic else np.full(len(one.x), True)
        x = one.x[shown]
        axes.fill_between(x, one.low[shown], one.high[shown], color=style.colour, alpha=0.16, linewidth=0)
        every = max(1, len(x) // 7)
        axes.plot(
            x,
            one.mean[shown],
            color=style.colour,
            linestyle=style.dash,
            linewidth=_line_width(name),
            marker=None if dots.get(name) else style.marker,
            markersize=5,
            markevery=(min(order * every // len(curves), max(0, len(x) - 1)), every),
            zorder=3,
        )
    for name, values in dots.items():
        axes.plot(
            list(values),
            list(values.values()),
            linestyle="none",
            marker=styles[name].marker,
            color=styles[name].colour,
            markeredgecolor="black",
            markeredgewidth=0.8,
            markersize=6.5,
            zorder=4,
        )


def _line_width(name: str) -> float:
    return 1.2 if name in ASIDE else 1.9


def _label_regret(axes: Axes, outcome: Outcome, *, logarithmic: bool = False) -> None:
    many = _many_arms(outcome)
    axes.set_xlabel("number of arms, K" if many else "rounds played, t")
    axes.set_ylabel(f"cumulative regret{' at T' if many else ''} (units of reward)")
    if logarithmic:
        _logarithmic(axes)
        if many:
            axes.xaxis.set_major_locator(FixedLocator(outcome.arms))
            axes.xaxis.set_minor_locator(FixedLocator([]))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
        _from_zero(axes)


def _from_zero(axes: Axes, *, below: bool = False) -> None:
    """Plain axes from 0 on; below: the ordinate may go below it."""
    axes.set_xlim(left=0)
    if not below:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(_thousands))


def _logarithmic(axes: Axes) -> None:
    """Logarithmic axes, the limits being set; where they span little, more ticks than powers of ten."""
    lines = [line.get_ydata() for line in axes.get_lines()]
    if not any((np.asarray(y, float) > 0).any() for y in lines):
        return  # a regret of 0 throughout has no place on them
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if low > 0 and high / low < 100:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(_thousands))
        axis.set_minor_formatter(NullFormatter())


_SLOPES: dict[float, Any] = {0.5: (0, (1, 2)), 1.0: (0, (5, 1.5, 1, 1.5, 1, 1.5))}


def _reference(axes: Axes, x: Doubles, at: tuple[float, float], power: float) -> None:
    """A thin grey line y ~ x^power through a point."""
    axes.plot(x, at[1] * (x / at[0]) ** power, color="#444444", linewidth=1.2, linestyle=_SLOPES[power], zorder=2)


def _slope_under(axes: Axes, curves: Mapping[str, Curve], power: float) -> None:
    """A reference below the last stretch of the lowest curve."""
    x = next(iter(curves.values())).x
    lowest = min(float(one.low[-1]) for one in curves.values())
    if lowest > 0:
        # One power of ten in height, whatever the slope, so that it does not stretch the axes.
        _reference(axes, x[x >= x[-1] / 10 ** (1 / power)], (float(x[-1]), 0.55 * lowest), power)


def _slope_key(power: float, label: str) -> Any:
    return Line2D([], [], color="#444444", linewidth=1.2, linestyle=_SLOPES[power], label=label)


def _keys(names: Sequence[str], *, dots: bool = False, bands: bool = True) -> list[Any]:
    """Legend entries of curves."""
    handles: list[Any] = []
    for name, style in _styles(names).items():
        line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": _line_width(name)}
        handles.append(Line2D([], [], marker=style.marker, markersize=5, label=name, **line))
    if dots:
        dot: dict[str, Any] = {"marker": "o", "markersize": 6.5, "color": "white", "markeredgecolor": "black"}
        handles.append(Line2D([], [], linestyle="none", label="published figure, read off", **dot))
    if bands:
        handles.append(Patch(color="grey", alpha=0.3, linewidth=0, label="lowest to highest run"))
    return handles


def _stamp(axes: Axes, protocol: str) -> None:
    """The protocol in the corner: pictures are passed around without their captions."""
    axes.set_title(under(protocol), loc="right", fontsize=8.5, color="#555555")


def _stamp_made(axes: Axes, outcome: Outcome, rest: str = "") -> None:
    """That the log is made, above `rest`, for the same reason: there it covers no curve."""
    if is_made(outcome):
        axes.set_title(f"{MADE}\n{rest}", loc="right", fontsize=8.5, color="#8a1c12")


def _legend(canvas: Canvas, handles: Sequence[Any], columns: int) -> None:
    canvas.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))


def _save(canvas: Canvas, out: Path, protocol: str, name: str, **about: Any) -> Figure:
    """Write both files; `about`: the other fields of the Figure."""
    name = f"{protocol}-{name}"
    png, svg = out / f"{name}.png", out / f"{name}.svg"
    # Lay out once for both files, and write them past savefig, which would lay out and draw for each again.
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    write_atomically(png, lambda file: _picture(canvas).save(file, format="png", optimize=True))
    write_atomically(svg, lambda file: Path(file).write_text(_drawing(canvas), encoding="utf-8", newline="\n"))
    return Figure(name=name, files=(png, svg), protocol=protocol, **about)


def _drawing(canvas: Canvas) -> str:
    """The figure as SVG, in fonts of like width where its own is missing."""
    text = io.StringIO()
    FigureCanvasSVG(canvas).print_svg(text, metadata={"Date": None, "Creator": None})
    return text.getvalue().replace("font-family: 'DejaVu Sans'", "font-family: 'DejaVu Sans', Verdana, sans-serif")


def _picture(canvas: Canvas) -> Image.Image:
    """The figure drawn with a palette: flat colours need no more, and the file is a third of the size."""
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    return Image.fromarray(np.asarray(agg.buffer_rgba())[..., :3]).quantize(160, dither=Image.Dither.NONE)


# ------------------------------------------------------------------ regret


def _dots(outcome: Outcome, names: Sequence[str], published: Published) -> dict[str, dict[int, float]]:
    """Read-outs to draw: the published figure is of the released protocol, on others it would say nothing; and of
    Yahoo's log, so that it says nothing of a made one."""
    if outcome.experiment.protocol != "released" or is_made(outcome):
        return {}
    return {name: read_outs(outcome, name, published) for name in names}


def _present(outcome: Outcome, names: Sequence[str]) -> list[str]:
    return [name for name in names if name in outcome.policies]


_PANELS = {"setting-1": "(a)", "setting-2": "(b)", "setting-3": "(c)"}
_CLICKS = ("yahoo", "yahoo-positions")
"""What the fourth panel may show."""


def _plotted(outcome: Outcome) -> list[str]:
    return [name for name in rivals(outcome) if name in REPRODUCED]


def _panels(
    outcomes: Mapping[str, Outcome], protocol: str, out: Path, published: Published, read_out_error: float
) -> Figure:
    """The published figure again: settings 1 to 3 and the click log, or without one the ratios to the read-outs."""
    canvas = Canvas(figsize=(11, 9.2), layout="constrained")
    grid = canvas.subplots(2, 2).ravel()
    for axes, (name, letter) in zip(grid, _PANELS.items(), strict=False):
        if (outcome := outcomes.get(name)) is None:
            axes.set_axis_off()
            axes.set_title(f"{letter} {name_of(name)}: not in these results")
            continue
        names = _present(outcome, REPRODUCED)
        _draw_curves(axes, {n: curve(outcome, n) for n in names}, _dots(outcome, names, published))
        _label_regret(axes, outcome)
        axes.set_title(f"{letter} {_shape(outcome)}")
    drawn = [outcomes[name] for name in _PANELS if name in outcomes]
    names = [name for name in REPRODUCED if any(name in outcome.policies for outcome in drawn)]
    released = protocol == "released"
    clicks = next((o for name in _CLICKS if (o := outcomes.get(name)) is not None and _plotted(o)), None)
    if clicks is None:
        _ratios(grid[3], drawn, names, published, read_out_error)
        fourth = (
            "The published fourth panel is of a Yahoo! click log that may not be passed on; it is a matter of "
            "experiments on logged data. In its place panel (d) divides our mean regret at T by the published one; "
            f"bars: the ratio if the read-out is off by {read_out_error:g}."
        )
    else:
        names = [name for name in REPRODUCED if name in names or name in clicks.policies]
        _draw_relative(grid[3], clicks, _plotted(clicks), published)
        grid[3].set_title(f"(d) {_shape(clicks)}")
        _stamp_made(grid[3], clicks)
        fourth = f"(d): regret minus HyLinUCB's, {_runs(clicks)}."
        fourth += f" It is a {MADE}." if is_made(clicks) else ""
    _stamp(grid[1], protocol)
    _legend(canvas, _keys(names, dots=released), 6)
    markers = "Black-edged markers: the published figure, read off its pixels."
    if not released:
        markers = "The published figure is of the released protocol"
        markers += "." if clicks else "; here it enters panel (d) only."
    final = [_final_values(o, _present(o, REPRODUCED)) for o in drawn]
    final += [] if clicks is None else [_final_excesses(clicks, _plotted(clicks))]
    return _save(
        canvas, out, protocol, "panels",
        section="panels", wide=True,
        title=f"The published figure redrawn, {under(protocol)}",
        caption=f"{_lines_and_bands(drawn[0])} {markers} {fourth}",
        alt=f"Four panels. {'; '.join(final)}.",
    )  # fmt: skip


def _ratios(
    axes: Axes, outcomes: Sequence[Outcome], names: Sequence[str], published: Published, read_out_error: float
) -> None:
    """Our mean divided by the published read-out, one row per case."""
    axes.set_title("(d) our regret at T divided by the published one")
    rows: dict[str, list[tuple[str, float, float]]] = {}
    for outcome in outcomes:
        for arms in outcome.arms:
            for name in _present(outcome, names):
                if found := last_read_out(outcome, name, arms, published):
                    rounds, mean, known = found
                    case = f"K = {arms}" if _many_arms(outcome) else f"t = {rounds:,}"
                    rows.setdefault(f"{name_of(outcome.experiment.name)}, {case}", []).append((name, mean, known))
    if not rows:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no published read-out at these rounds", ha="center", transform=axes.transAxes)
        return
    styles = _styles(names)
    for row, entries in enumerate(rows.values()):
        for name, mean, known in entries:
            y = row + 0.2 * (names.index(name) - (len(names) - 1) / 2)
            ends = [mean / (known + read_out_error), mean / max(known - read_out_error, 1.0)]
            axes.plot(ends, [y, y], color=styles[name].colour, linewidth=3, alpha=0.35, zorder=2)
            axes.plot([mean / known], [y], color=styles[name].colour, marker=styles[name].marker, markersize=5.5)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.axvline(1, color="#444444", linewidth=0.9, zorder=1)
    axes.set_xlabel("ratio (1: the same)\nThe published panel (d), Yahoo! clicks, needs logged data.")
    _ratio_axis(axes, [mean / known for entries in rows.values() for _, mean, known in entries])


def _ratio_axis(axes: Axes, ratios: Sequence[float]) -> None:
    lowest, highest = min(1.0, *ratios), max(1.0, *ratios)
    if highest / lowest > 4:
        axes.set_xscale("log")
        axes.set_xlim(lowest / 1.6, highest * 1.6)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        margin = max(0.1, 1.25 * (highest - 1), 1.25 * (1 - lowest))
        axes.set_xlim(1 - margin, 1 + margin)


def _setting(outcome: Outcome, out: Path, published: Published) -> Figure:
    """One panel by itself, beside it the same on logarithmic axes, with the baselines that were not plotted."""
    e = outcome.experiment
    clicks = e.log is not None
    paper_only = _present(outcome, (*REPRODUCED, *ASIDE)) if e.protocol != "own" and not clicks else []
    names = paper_only or [name for name in outcome.policies if name not in twins(outcome).values()]
    curves = {name: curve(outcome, name) for name in names}
    dots = {} if clicks else _dots(outcome, names, published)
    canvas = Canvas(figsize=WIDE, layout="constrained")
    left, right = canvas.subplots(1, 2)
    _draw_curves(left, curves, dots)
    _label_regret(left, outcome)
    left.set_title(_shape(outcome))
    _draw_curves(right, curves, dots, logarithmic=True)
    power, slope = (1.0, "slope of K") if _many_arms(outcome) else (0.5, "slope of the square root of t")
    _slope_under(right, curves, power)
    _label_regret(right, outcome, logarithmic=True)
    right.set_title("the same, both axes logarithmic")
    _stamp(right, e.protocol)
    _stamp_made(right, outcome, under(e.protocol))
    known = any(dots.values())
    _legend(canvas, [*_keys(names, dots=known, bands=_several(outcome)), _slope_key(power, slope)], 5)
    caption = [
        _lines_and_bands(outcome),
        f"It is a {MADE}." if is_made(outcome) else "",
        "Black-edged markers: the published figure." if known else "",
        "Thin lines: baselines that the published figure does not show." if any(n in ASIDE for n in names) else "",
        f"On the right the grey line has the {slope}.",
    ]
    return _save(
        canvas, out, e.protocol, e.name,
        section="yahoo" if clicks else "regret", wide=True,
        title=f"{_shape(outcome)}, {_where(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {_final_values(outcome, names)}.",
    )  # fmt: skip


def _few(outcome: Outcome, names: Sequence[str], out: Path, *, section: Section, **words: str) -> Figure:
    """Some policies on one pair of axes."""
    e = outcome.experiment
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    _draw_curves(axes, {name: curve(outcome, name) for name in names}, {})
    _label_regret(axes, outcome)
    axes.set_title(_shape(outcome))
    _stamp(axes, e.protocol)
    _legend(canvas, _keys(names), 2)
    alt = f"Line chart. {_final_values(outcome, names)}."
    return _save(canvas, out, e.protocol, f"{e.name}-{section}", section=section, wide=False, alt=alt, **words)


def _hyran(outcome: Outcome, out: Path) -> Figure:
    """What the blocks that the released HyRan leaves out change."""
    e, arms = outcome.experiment, outcome.arms[-1]
    ratio = outcome.final("HyRan (released)", arms).mean() / max(outcome.final("HyRan", arms).mean(), 1e-12)
    return _few(
        outcome, DEFECT, out, section="hyran",
        title=f"HyRan with and without its cross blocks, {name_of(e.name)}, {under(e.protocol)}",
        caption="HyRan (released) leaves out the blocks that couple shared and own parameters. "
        f"At T with {arms} arms its regret is {ratio:.2f} times that of HyRan. {_lines_and_bands(outcome)}",
    )  # fmt: skip


def _beyond_names(outcome: Outcome) -> list[str]:
    return [name for name in outcome.policies if name not in (*REPRODUCED, *ASIDE)]


def _beyond(outcome: Outcome, out: Path) -> Figure:
    """Policies that are not in the paper, beside the best of those that are."""
    e, arms = outcome.experiment, outcome.arms[-1]
    known = _present(outcome, (*REPRODUCED, *ASIDE))
    best = sorted(known, key=lambda name: float(outcome.final(name, arms).mean()))[:1]
    beside = f"Of the published algorithms {best[0]} has the lowest regret at T with {arms} arms. " if best else ""
    return _few(
        outcome, [*best, *_beyond_names(outcome)], out, section="beyond",
        title=f"Beyond the paper, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{beside}{_lines_and_bands(outcome)}",
    )  # fmt: skip


# ------------------------------------------------------------------ a click log


def _click_log(outcome: Outcome, out: Path, published: Published) -> Iterator[Figure]:
    if rivals(outcome):
        yield _relative(outcome, out, published)
    yield _setting(outcome, out, published)
    if twins(outcome):
        yield _twins(outcome, out)


def _draw_relative(axes: Axes, outcome: Outcome, names: Sequence[str], published: Published) -> bool:
    """Regret minus HyLinUCB's against rounds; returns whether published dots are among it."""
    dots = {name: found for name, found in _dots(outcome, names, published).items() if found}
    style = _styles([BEST])[BEST]
    axes.axhline(0, color=style.colour, linewidth=_line_width(BEST), zorder=2)
    _draw_curves(axes, {name: relative_curve(outcome, name) for name in names}, dots)
    axes.set_xlabel("rounds played, t")
    axes.set_ylabel("regret minus HyLinUCB's (units of reward)")
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
    _from_zero(axes, below=True)
    return bool(dots)


def _relative(outcome: Outcome, out: Path, published: Published) -> Figure:
    """The published panel again: what the others lose beyond HyLinUCB."""
    e, names = outcome.experiment, rivals(outcome)
    canvas = Canvas(figsize=(11.0, 5.6), layout="constrained")
    axes = canvas.subplots()
    known = _draw_relative(axes, outcome, names, published)
    axes.set_title(_shape(outcome))
    _stamp(axes, e.protocol)
    _stamp_made(axes, outcome, under(e.protocol))
    keys = _keys(names, dots=known, bands=_several(outcome))
    zero = Line2D([], [], color=COLOURS[BEST], linewidth=_line_width(BEST), label="HyLinUCB (0 by definition)")
    _legend(canvas, [zero, *keys], 4)
    caption = [
        "Above the line at 0 an algorithm has lost more than HyLinUCB in the same trial.",
        _lines_and_bands(outcome),
        f"It is a {MADE}: the published curves say nothing about it and are not shown." if is_made(outcome) else "",
        "Black-edged markers: the published figure, read off its pixels. It was made with positions as arms, another "
        "fit and algorithms that learn from another arm's reward, so curves need not meet it." if known else "",
    ]  # fmt: skip
    return _save(
        canvas, out, e.protocol, f"{e.name}-relative",
        section="yahoo", wide=True,
        title=f"{name_of(e.name)}: regret relative to HyLinUCB, {_where(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {_final_excesses(outcome, names)}.",
    )  # fmt: skip


def _twins(outcome: Outcome, out: Path) -> Figure:
    """What learning from another arm's reward does, algorithm by algorithm."""
    e, pairs = outcome.experiment, twins(outcome)
    styles = _styles(list(pairs))
    canvas = Canvas(figsize=(11.0, 4.3), layout="constrained")
    row = canvas.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    dash: Any = (0, (4, 2))
    for axes, (name, twin) in zip(row, pairs.items(), strict=True):
        # The twin in black on top: where the defect changes little, a dashed line of the same colour could not be seen.
        for policy, colour, width, line in ((name, styles[name].colour, 2.6, "-"), (twin, "black", 1.2, dash)):
            one = curve(outcome, policy)
            axes.fill_between(one.x, one.low, one.high, color=colour, alpha=0.16, linewidth=0)
            axes.plot(one.x, one.mean, color=colour, linestyle=line, linewidth=width, zorder=3)
        axes.set_title(f"{name}: {_change(outcome, name, twin)}")
        axes.set_xlabel("rounds played, t")
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
    for axes in row:  # once all curves are there: the ordinate is shared
        _from_zero(axes)
    row[0].set_ylabel("cumulative regret (units of reward)")
    canvas.suptitle(f"{_shape(outcome)}; {_where(outcome)}", x=0.01, ha="left", fontsize=10)
    right: dict[str, Any] = {"color": "#0072B2", "linewidth": 2.6, "label": "learns from the arm it chose"}
    wrong: dict[str, Any] = {"color": "black", "linewidth": 1.2, "linestyle": dash}
    wrong["label"] = "defect: learns from another candidate's reward"
    _legend(canvas, [Line2D([], [], **right), Line2D([], [], **wrong)], 2)
    changes = ", ".join(
        f"{name} {outcome.final(twin).mean():,.0f} instead of {outcome.final(name).mean():,.0f}"
        for name, twin in pairs.items()
    )
    made = f" It is a {MADE}." if is_made(outcome) else ""
    return _save(
        canvas, out, e.protocol, f"{e.name}-defect",
        section="yahoo", wide=True,
        title=f"{name_of(e.name)}: what the defect in the released code does, {_where(outcome)}",
        caption="Solid: the algorithm; dashed: the same with the defect; beside each name, what the defect adds to the "
        f"regret at T. Mean regret at T with it: {changes}. {_lines_and_bands(outcome)}{made}",
        alt=f"{len(pairs)} line charts. {_called(outcome)}, mean regret at T with the defect: {changes}.",
    )  # fmt: skip


def _change(outcome: Outcome, name: str, twin: str) -> str:
    """By how much the defect changes the mean regret at T."""
    before, after = float(outcome.final(name).mean()), float(outcome.final(twin).mean())
    return f"{100 * (after / before - 1):+.1f} %" if before > 0 else "-"


# ------------------------------------------------------------------ diversity


def _diversity(outcome: Outcome, out: Path) -> Iterator[Figure]:
    designs = {name: design for name in outcome.policies if (design := outcome.design(name)) is not None}
    for name, design in designs.items():
        if design.pulls is not None:
            yield (_own_matrices if name == DISJOINT else _blocks)(outcome, name, design, out)
    shared = {name: d for name, d in designs.items() if name != DISJOINT and np.isfinite(d.z_norm).all()}
    if shared:
        yield _coupling(outcome, shared, out)
    yield _growth(outcome, out)


_FAN = "Over all arms and runs: lowest to highest (light band), 5 to 95 % (dark), median (line); hairlines: run 1."


def _blocks(outcome: Outcome, name: str, design: Design, out: Path) -> Figure:
    """Smallest eigenvalues of V and W_i and largest singular value of B_i, of a policy with shared parameters."""
    e, style = outcome.experiment, _styles([name])[name]
    canvas = Canvas(figsize=(12.0, 4.8), layout="constrained")
    shared, own, cross = canvas.subplots(1, 3)
    _over_runs(shared, design.t, design.lambda_min_v, style)
    _straight(shared, design.t, design.lambda_min_v.mean(axis=0))
    _from_zero(shared)
    shared.set(xlabel="rounds played, t", ylabel=r"$\lambda_{\min}(V_t)$", title=f"{name}: shared block")
    _over_pulls(own, design, "lambda_min_w", style)
    own.set(xlabel="pulls of the arm", ylabel=r"$\lambda_{\min}(W_{i,t})$", title="blocks of the arms")
    _over_pulls(cross, design, "sigma_max_b", style, logarithmic=True)
    cross.set(xlabel="pulls of the arm", ylabel=r"$\sigma_{\max}(B_{i,t})$", title="cross blocks")
    _stamp(cross, e.protocol)
    slopes = [_slope_key(0.5, "slope of the square root"), _slope_key(1.0, "slope of linear growth")]
    _legend(canvas, [*_fan_keys(style, shared=True), *slopes], 4)
    return _save(
        canvas, out, e.protocol, f"{e.name}-{name}",
        section="diversity", wide=True,
        title=f"{name}: the blocks of the design matrix, {under(e.protocol)}",
        caption=f"{_runs(outcome)}, K = {outcome.arms[0]}. An eigenvalue that grows linearly follows the dashed line "
        "once there are more rows than dimensions; a singular value that grows like the square root of the pulls has "
        f"the dotted slope. On the left: mean, lowest and highest run. {_FAN}",
        alt=f"Three charts. After {e.horizon:,} rounds, medians: smallest eigenvalue of the shared block "
        f"{np.median(design.lambda_min_v[:, -1]):.1f}, of the arms' blocks {_middle(design.lambda_min_w)}, largest "
        f"singular value of the cross blocks {_middle(design.sigma_max_b)}.",
    )  # fmt: skip


def _own_matrices(outcome: Outcome, name: str, design: Design, out: Path) -> Figure:
    """Smallest eigenvalue of every arm's own matrix, of a policy that shares nothing."""
    e, style = outcome.experiment, _styles([name])[name]
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    _over_pulls(axes, design, "lambda_min_w", style)
    axes.set(
        xlabel="pulls of the arm", ylabel=r"$\lambda_{\min}$ of the arm's matrix", title=f"{name}: a matrix per arm"
    )
    _stamp(axes, e.protocol)
    _legend(canvas, _fan_keys(style, shared=False), 3)
    return _save(
        canvas, out, e.protocol, f"{e.name}-{name}",
        section="diversity", wide=False,
        title=f"{name}: the matrices of the arms, {under(e.protocol)}",
        caption=f"Smallest eigenvalue of each arm's matrix of d1 + d2 = {e.d1 + e.d2} features. {_FAN}",
        alt=f"Chart. After {e.horizon:,} rounds the median over arms is {_middle(design.lambda_min_w)}.",
    )  # fmt: skip


def _coupling(outcome: Outcome, designs: Mapping[str, Design], out: Path) -> Figure:
    """sigma_max(Z_t), how strongly shared and own parameters are coupled, against the bound of the proofs."""
    e, styles = outcome.experiment, _styles(list(designs))
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    for name, design in designs.items():
        _over_runs(axes, design.t, design.z_norm, styles[name])
    axes.axhline(LIMIT, color="#444444", linewidth=1.1, linestyle=(0, (4, 2)))
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(_thousands))
    axes.set_ylim(0, max(1.0, 1.05 * max(float(design.z_norm.max()) for design in designs.values())))
    axes.set(xlabel="rounds played, t", ylabel=r"$\sigma_{\max}(Z_t)$", title="coupling of shared and own parameters")
    _stamp(axes, e.protocol)
    bound = Line2D([], [], color="#444444", linewidth=1.1, linestyle=(0, (4, 2)), label="1/2, what the proofs use")
    _legend(canvas, [*_keys(list(designs)), bound], 2)
    last = ", ".join(f"{name} {design.z_norm[:, -1].mean():.2f}" for name, design in designs.items())
    return _save(
        canvas, out, e.protocol, f"{e.name}-coupling",
        section="diversity", wide=False,
        title=f"Coupling of shared and own parameters, {under(e.protocol)}",
        caption="Largest singular value of Z, the cross blocks when both parts are scaled to unit blocks: 0 if shared "
        f"and own parameters are learned independently, near 1 if hard to tell apart. {_lines_and_bands(outcome)}",
        alt=f"Line chart. After {e.horizon:,} rounds: {last}; the proofs use 0.5.",
    )  # fmt: skip


def _growth(outcome: Outcome, out: Path) -> Figure:
    """Regret on logarithmic axes with the slope of a square root."""
    e, names = outcome.experiment, outcome.policies
    curves = {name: curve(outcome, name) for name in names}
    canvas = Canvas(figsize=NARROW, layout="constrained")
    axes = canvas.subplots()
    _draw_curves(axes, curves, {}, logarithmic=True)
    _slope_under(axes, curves, 0.5)
    _label_regret(axes, outcome, logarithmic=True)
    axes.set_title(_shape(outcome))
    _stamp(axes, e.protocol)
    _legend(canvas, [*_keys(names), _slope_key(0.5, "slope of the square root")], 3)
    return _save(
        canvas, out, e.protocol, f"{e.name}-regret",
        section="diversity", wide=False,
        title=f"Regret in the diversity experiment, {under(e.protocol)}",
        caption=f"{_lines_and_bands(outcome)} The grey dotted line has the slope of the square root of t.",
        alt=f"Line chart. {_final_values(outcome, names)}.",
    )  # fmt: skip


def _middle(measure: Doubles | None) -> str:
    return "unknown" if measure is None else f"{np.nanmedian(measure[:, -1]):.1f}"


def _over_runs(axes: Axes, t: Doubles, values: Doubles, style: _Style) -> None:
    """A measure of the whole matrix: mean and range over runs against rounds."""
    axes.fill_between(t, values.min(axis=0), values.max(axis=0), color=style.colour, alpha=0.2, linewidth=0)
    axes.plot(
        t,
        values.mean(axis=0),
        color=style.colour,
        linestyle=style.dash,
        linewidth=1.9,
        marker=style.marker,
        markersize=5,
        markevery=max(1, len(t) // 7),
    )


def _over_pulls(axes: Axes, design: Design, measure: str, style: _Style, *, logarithmic: bool = False) -> None:
    """A measure of every arm's block against the pulls of that arm."""
    assert design.pulls is not None
    values: Doubles = getattr(design, measure)
    top = max(float(np.quantile(design.pulls[:, -1], 0.95)), 2.0)
    grid = np.geomspace(1, top, 60) if logarithmic else np.linspace(0, top, 60)
    lowest, low, median, high, highest = by_pulls(design.pulls, values, grid, (0, 0.05, 0.5, 0.95, 1))
    axes.fill_between(grid, lowest, highest, color=style.colour, alpha=0.12, linewidth=0)
    axes.fill_between(grid, low, high, color=style.colour, alpha=0.25, linewidth=0)
    for x, y in zip(design.pulls[0].T, values[0].T, strict=True):
        axes.plot(x, y, color=style.colour, linewidth=0.4, alpha=0.5)
    axes.plot(grid, median, color=style.colour, linewidth=2.0)
    if logarithmic:
        axes.set_xlim(1, top)
        _both_slopes(axes, grid, median)
        _logarithmic(axes)
    else:
        _from_zero(axes)
        axes.set_xlim(0, top)
        known = np.isfinite(median)
        if known.any():
            axes.set_ylim(0, 1.05 * float(np.nanmax(highest)))
        _straight(axes, grid[known], median[known])


def _both_slopes(axes: Axes, x: Doubles, y: Doubles) -> None:
    """Growth like the square root and linear growth, both from where an arm has been pulled a few times."""
    positive = np.isfinite(y) & (y > 0)
    if not positive.any():
        return
    axes.set_ylim(0.3 * float(y[positive].min()), 4 * float(y[positive].max()))
    later = positive & (x >= 4)
    if later.any():
        for power in _SLOPES:
            _reference(axes, x[later], (float(x[later][0]), float(y[later][0])), power)


def _straight(axes: Axes, x: Doubles, y: Doubles) -> None:
    """The straight line through the last half, down to where it is 0: what linear growth would look like."""
    half = int(np.searchsorted(x, x[-1] / 2)) if len(x) else 0
    if half < len(x) - 1:
        slope = (y[-1] - y[half]) / (x[-1] - x[half])
        start = max(0.0, float(x[-1] - y[-1] / slope)) if slope > 0 else 0.0
        ends = np.array([start, x[-1]])
        dash = (0, (4, 2))
        axes.plot(ends, y[-1] + slope * (ends - x[-1]), color="#222222", linewidth=1.1, linestyle=dash, zorder=3)


def _fan_keys(style: _Style, *, shared: bool) -> list[Any]:
    return [
        Line2D([], [], color=style.colour, linewidth=2, label="median (shared block: mean)" if shared else "median"),
        Patch(color=style.colour, alpha=0.4, linewidth=0, label="5 to 95 %"),
        Patch(color=style.colour, alpha=0.15, linewidth=0, label="lowest to highest"),
        Line2D([], [], color=style.colour, linewidth=0.5, label="arms of run 1"),
        Line2D(
            [], [], color="#222222", linewidth=1.1, linestyle=(0, (4, 2)), label="straight line through the last half"
        ),
    ]
