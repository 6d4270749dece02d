"""What all pictures share: colours, lines and markers of policies, axes, legends, and how a picture is saved."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
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
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import write_atomically
from hybandits.paper import HYRAN_RELEASED, HYTHOMPSON_TOLD
from hybandits.report.figures.outcomes import ASIDE, SYNTHETIC, Curve, Figure, is_synthetic, many_arms, under
from hybandits.report.figures.plotted import numbers_csv, plotted_in, remember
from hybandits.report.figures.svg import lean_svg

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

_SPARE_COLOURS = ("#332288", "#999933", "#44AA99", "#882255", "#4477AA", "#AA4499", "#8C564B", "#117733")
_SPARE_MARKERS = "<>pd8H"

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
PANEL = (4.6, 3.55)
"""Width and height of one panel. The page shows panels by themselves, and on a phone their letters can be read."""
WIDE, NARROW = (2 * PANEL[0], PANEL[1]), PANEL
"""Two panels, or one; the legend makes a picture higher."""
LOOK: dict[Any, Any] = {
    "figure.dpi": DOTS_PER_INCH,
    "svg.hashsalt": "hybandits",
    "svg.fonttype": "none",  # text stays text: small files that can be searched and read aloud
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
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


_PAGE: ContextVar[tuple[str, ...]] = ContextVar("policies of the page", default=())


@contextmanager
def styles_for(names: Sequence[str]) -> Iterator[None]:
    """Within this, policies without a style of their own keep one and the same in all pictures."""
    token = _PAGE.set(tuple(names))
    try:
        yield
    finally:
        _PAGE.reset(token)


def styles_of(names: Sequence[str]) -> dict[str, Style]:
    """The style of every policy: its own, or a spare one if it has none. No two have colour and dash in common."""
    unknown = [name for name in dict.fromkeys((*_PAGE.get(), *names)) if name not in COLOURS]
    return {
        name: Style(COLOURS[name], _DASHES[name], _MARKERS[name])
        if name in COLOURS
        else spare_style(unknown.index(name))
        for name in names
    }


def spare_style(index: int) -> Style:
    """The style of the policy with this number among those that have none of their own."""
    again, colour = divmod(index, len(_SPARE_COLOURS))
    dash = (4 + 2 * ((colour + again) % 4), 2) + (1, 2) * (1 + again // 4)  # another one every time the colour returns
    return Style(_SPARE_COLOURS[colour], (0, dash), _SPARE_MARKERS[index % len(_SPARE_MARKERS)])


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
        band = axes.fill_between(x, one.low[shown], one.high[shown], color=style.colour, alpha=0.16, linewidth=0)
        every = max(1, len(x) // 7)
        lines = axes.plot(
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
        numbers = {"mean": one.mean, "lowest": one.low, "highest": one.high}
        remember(axes, name, one.x, numbers, [band, *lines], band="lowest to highest run")
    for name, values in dots.items():
        lines = axes.plot(
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
        remember(axes, name, list(values), {"published": list(values.values())}, lines, readable=False)


def line_width(name: str) -> float:
    """The width of a policy's line; baselines that the published figure does not show are thinner."""
    return 1.2 if name in ASIDE else 1.9


def label_regret(axes: Axes, outcome: Outcome, *, logarithmic: bool = False) -> None:
    """Label the axes of a chart of regret, and choose their ticks."""
    many = many_arms(outcome)
    axes.set_xlabel("number of arms, K" if many else "rounds played, t")
    axes.set_ylabel(f"cumulative regret{' at T' if many else ''}")
    if logarithmic:
        make_logarithmic(axes)
        if many:
            axes.xaxis.set_major_locator(FixedLocator(_spread_out(outcome.arms)))
            axes.xaxis.set_minor_locator(FixedLocator([]))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        from_zero(axes)


def _spread_out(values: Sequence[int]) -> list[int]:
    """Those of the increasing values that have room for their names on a logarithmic axis, the last among them."""
    kept: list[int] = []
    for value in reversed(values):
        if not kept or kept[-1] / value >= 1.45:
            kept.append(value)
    return kept


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


def draw_reference(axes: Axes, x: FloatArray, at: tuple[float, float], power: float) -> None:
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
    """The protocol above the picture, which is passed around without its caption."""
    _stamp(axes, under(protocol), "#555555")


def stamp_synthetic(axes: Axes, outcome: Outcome, rest: str = "") -> None:
    """That the log is synthetic, beside `rest`, for the same reason."""
    if is_synthetic(outcome):
        _stamp(axes, f"{SYNTHETIC}; {rest}" if rest else SYNTHETIC, "#8a1c12")


def _stamp(axes: Axes, text: str, colour: str) -> None:
    canvas = axes.get_figure()
    assert isinstance(canvas, Canvas)
    canvas.suptitle(text, x=0.99, ha="right", fontsize=8.5, color=colour)


def put_legend(canvas: Canvas, handles: Sequence[Any], columns: int) -> None:
    """Put the legend below the charts, in as many columns as there is room for; the picture grows by its rows."""
    widest = max(_HANDLE_WIDTH + _LETTER_WIDTH * len(str(handle.get_label())) for handle in handles)
    width, height = canvas.get_size_inches()
    columns = max(1, min(columns, len(handles), int((72 * width - 10) / widest)))
    canvas.set_size_inches(width, height + 0.15 + 0.2 * -(-len(handles) // columns))
    canvas.legend(handles=list(handles), loc="outside lower center", ncols=columns)


_HANDLE_WIDTH, _LETTER_WIDTH = 58.0, 5.3
"""Of a legend, in points: a line with the space around it, and a letter."""


def put_title(axes: Axes, text: str) -> None:
    """The title of a panel, on two lines where it would be wider than the panel."""
    head, colon, rest = text.partition(": ")
    axes.set_title(f"{head}:\n{rest}" if colon and len(text) > _LONGEST_TITLE else text)


_LONGEST_TITLE = 46


def share_limits(panels: Sequence[Axes]) -> None:
    """The same axes for panels that are to be compared."""
    low_x, high_x = zip(*(axes.get_xlim() for axes in panels), strict=True)
    low_y, high_y = zip(*(axes.get_ylim() for axes in panels), strict=True)
    for axes in panels:
        axes.set_xlim(min(low_x), max(high_x))
        axes.set_ylim(min(low_y), max(high_y))


def save_figure(canvas: Canvas, out: Path, protocol: str, name: str, **about: Any) -> Figure:
    """Write the picture as PNG and SVG and its numbers as CSV; `about`: the other fields of the Figure."""
    name = f"{protocol}-{name}"
    png, svg, numbers = (out / f"{name}.{kind}" for kind in ("png", "svg", "csv"))
    # Lay out once for both files, and write them past savefig, which would lay out and draw for each again.
    canvas.draw_without_rendering()
    canvas.set_layout_engine("none")
    plotted = plotted_in(canvas)
    write_atomically(png, lambda file: _picture(canvas).save(file, format="png", optimize=True))
    write_atomically(svg, lambda file: Path(file).write_text(_drawing(canvas), encoding="utf-8", newline="\n"))
    files: tuple[Path, ...] = (png, svg)
    if plotted.series:
        text = numbers_csv(plotted)
        write_atomically(numbers, lambda file: Path(file).write_text(text, encoding="utf-8", newline="\n"))
        files = (png, svg, numbers)
    return Figure(name=name, files=files, protocol=protocol, plotted=plotted, **about)


def _drawing(canvas: Canvas) -> str:
    """The figure as SVG, in fonts of like width where its own is missing, and without what nobody can see."""
    text = io.StringIO()
    FigureCanvasSVG(canvas).print_svg(text, metadata={"Date": None, "Creator": None})
    drawing = re.sub(r"(; )?font-family: 'DejaVu Sans'", "", text.getvalue())
    drawing = drawing.replace("<svg ", "<svg font-family=\"'DejaVu Sans', Verdana, sans-serif\" ", 1)
    return lean_svg(drawing)


def _picture(canvas: Canvas) -> Image.Image:
    """The figure drawn with a palette: flat colours need no more, and the file is a third of the size."""
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    return Image.fromarray(np.asarray(agg.buffer_rgba())[..., :3]).quantize(160, dither=Image.Dither.NONE)
