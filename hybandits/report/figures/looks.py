"""What all pictures share: colours, lines and markers of policies, axes, legends, and how a picture is saved."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from PIL import Image

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import Doubles
from hybandits.foundation.files import write_atomically
from hybandits.paper import HYRAN_RELEASED, HYTHOMPSON_TOLD
from hybandits.report.figures.outcomes import ASIDE, SYNTHETIC, Curve, Figure, is_synthetic, many_arms, under

COLOURS = {
    "HyLinUCB": "#0072B2",
    "LinUCB": "#D55E00",
    "DisLinUCB": "#009E73",
    HYRAN_RELEASED: "#56B4E9",
    "HyRan": "#E69F00",
    "SupLinUCB": "#000000",
    HYTHOMPSON_TOLD: "#CC79A7",
    "HyThompson": "#661959",
    "HyIDS": "#B00020",
    "Greedy": "#777777",
}
"""One colour per policy in every figure, told apart also by readers who do not see all colours."""

_SPARE_COLOURS = ("#332288", "#999933", "#44AA99", "#DDCC77")

_DASHES: dict[str, Any] = {
    "HyLinUCB": "-",
    "LinUCB": (0, (6, 2)),
    "DisLinUCB": (0, (6, 1.5, 1, 1.5)),
    HYRAN_RELEASED: (0, (1.5, 1)),
    "HyRan": (0, (3, 1)),
    "SupLinUCB": (0, (1, 2.5)),
    HYTHOMPSON_TOLD: (0, (10, 2, 2, 2, 2, 2)),
    "HyThompson": (0, (10, 2, 2, 2)),
    "HyIDS": (0, (9, 1)),
    "Greedy": (0, (2, 1.5)),
}
_MARKERS = {
    "HyLinUCB": "o",
    "LinUCB": "s",
    "DisLinUCB": "^",
    HYRAN_RELEASED: "D",
    "HyRan": "v",
    "SupLinUCB": "X",
    HYTHOMPSON_TOLD: "+",
    "HyThompson": "P",
    "HyIDS": "*",
    "Greedy": "h",
}
DOTS_PER_INCH = 160
WIDE, NARROW = (11.0, 4.9), (6.4, 4.7)
LOOK: dict[Any, Any] = {
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


class Style(NamedTuple):
    """How a policy's line is drawn."""

    colour: str
    dash: Any
    marker: str


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """The style of every policy: its own, or a spare one if it has none."""
    styles = {}
    unknown = [name for name in names if name not in COLOURS]
    for name in names:
        if name in COLOURS:
            styles[name] = Style(COLOURS[name], _DASHES[name], _MARKERS[name])
        else:
            spare = unknown.index(name)
            dash = (0, (4 + 2 * spare, 2, 1, 2))
            styles[name] = Style(_SPARE_COLOURS[spare % len(_SPARE_COLOURS)], dash, "<>pd"[spare % 4])
    return styles


def thousands(value: float, _: int | None = None) -> str:
    """A number on an axis, with its thousands separated and millions as M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"  # 10,000,000 and its neighbours would run into each other
    return f"{value:,.0f}" if abs(value - round(value)) <= 1e-9 * abs(value) else f"{value:g}"


def draw_curves(
    axes: Axes,
    curves: Mapping[str, Curve],
    dots: Mapping[str, Mapping[int, float]],
    *,
    logarithmic: bool = False,
) -> None:
    """Mean lines over their bands, published dots on top; lines without dots carry markers to be told apart by."""
    styles = styles_of(list(curves))
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
            linewidth=line_width(name),
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


def line_width(name: str) -> float:
    """The width of a policy's line; baselines that the published figure does not show are thinner."""
    return 1.2 if name in ASIDE else 1.9


def label_regret(axes: Axes, outcome: Outcome, *, logarithmic: bool = False) -> None:
    """Label the axes of a chart of regret, and choose their ticks."""
    many = many_arms(outcome)
    axes.set_xlabel("number of arms, K" if many else "rounds played, t")
    axes.set_ylabel(f"cumulative regret{' at T' if many else ''} (units of reward)")
    if logarithmic:
        make_logarithmic(axes)
        if many:
            axes.xaxis.set_major_locator(FixedLocator(outcome.arms))
            axes.xaxis.set_minor_locator(FixedLocator([]))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=True))
        from_zero(axes)


def from_zero(axes: Axes, *, below: bool = False) -> None:
    """Plain axes from 0 on; below: the ordinate may go below it."""
    axes.set_xlim(left=0)
    if not below:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))


def make_logarithmic(axes: Axes) -> None:
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
        axis.set_major_formatter(FuncFormatter(thousands))
        axis.set_minor_formatter(NullFormatter())


SLOPES: dict[float, Any] = {0.5: (0, (1, 2)), 1.0: (0, (5, 1.5, 1, 1.5, 1, 1.5))}


def draw_reference(axes: Axes, x: Doubles, at: tuple[float, float], power: float) -> None:
    """A thin grey line y ~ x^power through a point."""
    axes.plot(x, at[1] * (x / at[0]) ** power, color="#444444", linewidth=1.2, linestyle=SLOPES[power], zorder=2)


def slope_under(axes: Axes, curves: Mapping[str, Curve], power: float) -> None:
    """A reference below the last stretch of the lowest curve."""
    x = next(iter(curves.values())).x
    lowest = min(float(one.low[-1]) for one in curves.values())
    if lowest > 0:
        # One power of ten in height, whatever the slope, so that it does not stretch the axes.
        draw_reference(axes, x[x >= x[-1] / 10 ** (1 / power)], (float(x[-1]), 0.55 * lowest), power)


def slope_key(power: float, label: str) -> Any:
    """The legend entry of a reference line."""
    return Line2D([], [], color="#444444", linewidth=1.2, linestyle=SLOPES[power], label=label)


def keys_of(names: Sequence[str], *, dots: bool = False, bands: bool = True) -> list[Any]:
    """Legend entries of curves."""
    handles: list[Any] = []
    for name, style in styles_of(names).items():
        line: dict[str, Any] = {"color": style.colour, "linestyle": style.dash, "linewidth": line_width(name)}
        handles.append(Line2D([], [], marker=style.marker, markersize=5, label=name, **line))
    if dots:
        dot: dict[str, Any] = {"marker": "o", "markersize": 6.5, "color": "white", "markeredgecolor": "black"}
        handles.append(Line2D([], [], linestyle="none", label="published figure, read off", **dot))
    if bands:
        handles.append(Patch(color="grey", alpha=0.3, linewidth=0, label="lowest to highest run"))
    return handles


def stamp_protocol(axes: Axes, protocol: str) -> None:
    """The protocol in the corner: pictures are passed around without their captions."""
    axes.set_title(under(protocol), loc="right", fontsize=8.5, color="#555555")


def stamp_synthetic(axes: Axes, outcome: Outcome, rest: str = "") -> None:
    """That the log is synthetic, above `rest`, for the same reason: there it covers no curve."""
    if is_synthetic(outcome):
        axes.set_title(f"{SYNTHETIC}\n{rest}", loc="right", fontsize=8.5, color="#8a1c12")


def put_legend(canvas: Canvas, handles: Sequence[Any], columns: int) -> None:
    """Put the legend below the charts."""
    canvas.legend(handles=list(handles), loc="outside lower center", ncols=min(columns, len(handles)))


def save_figure(canvas: Canvas, out: Path, protocol: str, name: str, **about: Any) -> Figure:
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
