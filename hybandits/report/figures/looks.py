"""The look that all figures share: colours, lines and markers of policies, axes, legends, and how figures are written.

A `Figure` is words and a function that draws. It is drawn twice on a `Plot`, light and dark. Whatever draws a curve
gives its numbers to `Plot.record`, and they are written beside the figure.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from matplotlib import rcParams
from matplotlib import style as mplstyle
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from PIL import Image

from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import write_text
from hybandits.paper import HYLINUCB_K, HYRAN_RELEASED, HYTHOMPSON_TOLD
from hybandits.report import cases

UNSIGNED: dict[str, Any] = {"Date": None, "Creator": None}
"""Metadata that is left out of SVG files, so that the same figure gives the same bytes."""

Section = Literal["panels", "regret", "diversity", "beyond", "yahoo"]

BAND = "lowest to highest run"
READ_OFF = "published figure, read off"

LOOK = Path(__file__).with_name("figures.mplstyle")
SCHEMES = {"light": [LOOK], "dark": [LOOK, LOOK.with_name("dark.mplstyle")]}
"""The style files in which every figure is drawn."""


class Style(NamedTuple):
    """The look of a policy's line."""

    light: str
    dark: str
    dash: Any
    marker: str

    @property
    def colour(self) -> str:
        """The colour in the scheme that is being drawn."""
        return self.dark if is_dark() else self.light


STYLES = {
    "HyLinUCB": Style("#0072B2", "#4aa4e8", "-", "o"),
    HYLINUCB_K: Style("#004C7A", "#9ccdf3", (0, (4, 1)), "p"),
    "LinUCB": Style("#D55E00", "#e36b1e", (0, (6, 2)), "s"),
    "DisLinUCB": Style("#009E73", "#25ac80", (0, (6, 1.5, 1, 1.5)), "^"),
    HYRAN_RELEASED: Style("#56B4E9", "#8fd0ff", (0, (1.5, 1)), "D"),
    "HyRan": Style("#E69F00", "#d9a02a", (0, (3, 1)), "v"),
    "SupLinUCB": Style("#000000", "#f5f5f5", (0, (1, 2.5)), "X"),
    HYTHOMPSON_TOLD: Style("#CC79A7", "#d184af", (0, (10, 2, 2, 2, 2, 2)), "+"),
    "HyThompson": Style("#661959", "#e28dcf", (0, (10, 2, 2, 2)), "P"),
    "HyIDS": Style("#B00020", "#fe6d6b", (0, (9, 1)), "*"),
    "Greedy": Style("#777777", "#a0a0a0", (0, (2, 1.5)), "h"),
}
"""One look per policy in every figure; dashes and markers differ too, for readers who do not see all colours."""

SPARE_COLOURS = (
    ("#332288", "#a4a6fd"), ("#999933", "#b5b44d"), ("#44AA99", "#4fb8a7"), ("#882255", "#ec7ead"),
    ("#4477AA", "#6a9fd4"), ("#AA4499", "#d76ec3"), ("#8C564B", "#cc9084"), ("#117733", "#5db76f"),
)  # fmt: skip
_SPARE_DASHES = ((4, 2, 1, 2), (6, 2, 1, 2), (8, 2, 1, 2), (10, 2, 1, 2))


def styles_of(policies: Sequence[str]) -> dict[str, Style]:
    """The look of every policy: its own, or a spare one if it has none."""
    spare = [name for name in policies if name not in STYLES]
    styles = dict(STYLES)
    for i, name in enumerate(spare):
        dash = _SPARE_DASHES[(i + i // len(SPARE_COLOURS)) % len(_SPARE_DASHES)]
        styles[name] = Style(*SPARE_COLOURS[i % len(SPARE_COLOURS)], (0, dash), "<>pd8H"[i % 6])
    return styles


def is_dark() -> bool:
    """True while the dark scheme is being drawn."""
    return bool(rcParams["figure.facecolor"] != "white")


class Curve(NamedTuple):
    """Mean, lowest and highest run at every x."""

    x: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, x: FloatArray, runs: FloatArray) -> Curve:
        """The curve of runs, (runs, x)."""
        return cls(x, runs.mean(axis=0), runs.min(axis=0), runs.max(axis=0))


class Plot:
    """A figure while it is drawn: its axes, the looks of policies, and the numbers that it shows."""

    def __init__(self, figure: Figure, policies: Sequence[str]) -> None:
        width, height = figure.size
        self.canvas = Canvas(figsize=(figure.columns * width, figure.rows * height), layout="constrained")
        grid = self.canvas.subplots(figure.rows, figure.columns, squeeze=False, **figure.sharing)
        self.axes: list[Axes] = list(grid.ravel())
        self.styles = styles_of(policies)
        self.ink = rcParams["axes.labelcolor"]
        # The figure is passed around without its caption: the protocol, or a warning, stands above it.
        stamp = figure.stamp or cases.under(figure.protocol)
        colour = ("#f88271" if is_dark() else "#8a1c12") if cases.SYNTHETIC in stamp else self.ink
        self.canvas.suptitle(stamp, x=0.99, ha="right", fontsize=8.5, color=colour)
        self._series: list[tuple[Axes, str, list[str], dict[str, list[str]]]] = []

    def record(self, axes: Axes, name: str, x: Sequence[Any] | FloatArray, columns: Mapping[str, Any]) -> None:
        """Keep the numbers of a curve for the file beside the figure."""
        texts = {key: [f"{value:.6g}" if np.isfinite(value) else "" for value in of] for key, of in columns.items()}
        self._series.append((axes, name, [v if isinstance(v, str) else f"{v:.8g}" for v in x], texts))

    def draw_curves(
        self, axes: Axes, curves: Mapping[str, Curve], dots: Mapping[str, Mapping[int, float]] | None = None, *,
        bands: bool = True, logarithmic: bool = False,
    ) -> None:  # fmt: skip
        """Draw mean lines over their bands and published dots on top; lines without dots carry markers."""
        dots = dots or {}
        for order, (name, curve) in enumerate(curves.items()):
            style = self.styles[name]
            shown = (curve.x > 0) & (curve.low > 0) if logarithmic else np.full(len(curve.x), True)
            x = curve.x[shown]
            self.fill(axes, x, curve.low[shown], curve.high[shown], color=style.colour)
            every = max(1, len(x) // 7)
            axes.plot(
                x, curve.mean[shown], label=name, color=style.colour, linestyle=style.dash,
                linewidth=1.2 if name in cases.ASIDE else 1.9, marker=None if dots.get(name) else style.marker,
                markevery=(min(order * every // len(curves), max(0, len(x) - 1)), every), zorder=3,
            )  # fmt: skip
            self.record(axes, name, curve.x, {"mean": curve.mean, "lowest": curve.low, "highest": curve.high})
        for name, values in dots.items():
            if values:
                axes.plot(
                    list(values), list(values.values()), linestyle="none", marker=self.styles[name].marker,
                    color=self.styles[name].colour, markeredgecolor=self.ink, markeredgewidth=0.8, markersize=6.5,
                    zorder=4,
                )  # fmt: skip
            self.record(axes, name, list(values), {"published": list(values.values())})
        if any(dots.values()):
            axes.plot([], [], "o", color="none", markeredgecolor=self.ink, markersize=6.5, label=READ_OFF)
        if bands:
            axes.fill_between([], [], [], color="grey", alpha=0.3, linewidth=0, label=BAND)

    def fill(self, axes: Axes, x: FloatArray, low: FloatArray, high: FloatArray, **look: Any) -> None:
        """Draw a band."""
        axes.fill_between(x, low, high, **({"alpha": 0.16, "linewidth": 0} | look))

    def slope_under(self, axes: Axes, curves: Mapping[str, Curve], power: float, label: str) -> None:
        """Draw a reference y ~ x^power below the last stretch of the lowest curve."""
        x = next(iter(curves.values())).x
        lowest = min(float(curve.low[-1]) for curve in curves.values())
        if lowest > 0:
            # One power of ten in height, whatever the slope, so that it does not stretch the axes.
            self.draw_slope(axes, x[x >= x[-1] / 10 ** (1 / power)], (float(x[-1]), 0.55 * lowest), power, label)

    def draw_slope(self, axes: Axes, x: FloatArray, at: tuple[float, float], power: float, label: str) -> None:
        """Draw a thin line y ~ x^power through a point."""
        dash: Any = (0, (1, 2)) if power == 0.5 else (0, (5, 1.5, 1, 1.5, 1, 1.5))
        y = at[1] * (x / at[0]) ** power
        axes.plot(x, y, color=self.ink, linewidth=1.2, linestyle=dash, zorder=2, label=label)

    def add_legend(self) -> None:
        """Put one legend of everything that has a label below the panels; the figure grows by its rows."""
        keys: dict[str, Any] = {}
        for axes in self.axes:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                keys.setdefault(label, handle)
        if not keys:
            return
        last = [label for label in keys if label in (READ_OFF, BAND)]
        keys = {label: keys[label] for label in (*(k for k in keys if k not in last), *last)}
        width, height = self.canvas.get_size_inches()
        columns = max(1, min(len(keys), 5, int((72 * width - 10) / (58 + 5.3 * max(map(len, keys))))))
        self.canvas.set_size_inches(width, height + 0.15 + 0.2 * -(-len(keys) // columns))
        self.canvas.legend(keys.values(), keys, loc="outside lower center", ncols=columns)

    def numbers(self) -> str:
        """The recorded numbers as CSV; curves that a second panel shows again, on other axes, are there once."""
        columns = list(dict.fromkeys(column for *_, numbers in self._series for column in numbers))
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(("panel", "curve", "x", *columns))
        written: list[Any] = []
        for axes, name, x, texts in self._series:
            if (name, x, texts) in written:
                continue
            written.append((name, x, texts))
            title = re.sub(r": d₁.*", "", axes.get_title("left").replace("$", "").replace("\n", " "))
            for i, at in enumerate(x):
                lines.writerow((title, name, at, *(texts[column][i] if column in texts else "" for column in columns)))
        return text.getvalue()


# ------------------------------------------------------------------ axes


def thousands(value: float, _: int | None = None) -> str:
    """Format a number on an axis, with its thousands separated and millions as M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"  # 10,000,000 and its neighbours would run into each other
    return f"{value:,.0f}" if abs(value - round(value)) <= 1e-9 * abs(value) else f"{value:g}"


def label_axes(axes: Axes, across: str, upwards: str, *, logarithmic: bool = False, below: bool = False) -> None:
    """Label axes, and let them start at 0 or be logarithmic; `below`: the ordinate may go below 0."""
    axes.set(xlabel=across, ylabel=upwards)
    if logarithmic:
        make_logarithmic(axes)
        return
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
    axes.set_xlim(left=0)
    if not below:
        axes.set_ylim(bottom=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))


def make_logarithmic(axes: Axes, *, only_x: bool = False) -> None:
    """Make axes logarithmic, the limits being set; where they span little, with more ticks than powers of ten."""
    if not any((np.asarray(line.get_ydata(), float) > 0).any() for line in axes.get_lines()):
        return  # a regret of 0 throughout has no place on them
    axes.set_xscale("log")
    if not only_x:
        axes.set_yscale("log")
    for axis in (axes.xaxis,) if only_x else (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if low > 0 and high / low < 100:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(thousands))
        axis.set_minor_formatter(NullFormatter())


def put_title(axes: Axes, text: str) -> None:
    """Set the title of a panel, on two lines where it would be wider than the panel."""
    axes.set_title(text.replace(": ", ":\n", 1) if len(text) > 46 else text)


# ------------------------------------------------------------------ files


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure before it is drawn: its place on the page, its words, its panels, and the function that draws them."""

    name: str
    protocol: str
    """Empty if it is about no protocol or about several; then it has a stamp."""
    section: Section
    title: str
    caption: str
    alt: str
    """A description for those who cannot see it."""
    draw: Callable[[Plot], None]
    stamp: str = ""
    """The words above the figure if the protocol alone would not do."""
    rows: int = 1
    columns: int = 1
    size: tuple[float, float] = (4.6, 3.55)
    """Width and height of one panel in inches: on a phone its letters can be read."""
    sharing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name of its files and its place on the page."""
        return re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(filter(None, (self.protocol, self.name)))).strip("-")


class Drawn(NamedTuple):
    """A figure that was written."""

    figure: Figure
    files: tuple[Path, ...]
    """The figure as SVG, and its numbers as CSV."""
    pictures: Mapping[str, bytes]
    """WebP by scheme."""


def write_figure(figure: Figure, out: Path, policies: Sequence[str]) -> Drawn:
    """Draw a figure in both schemes, and write it as SVG and its numbers as CSV."""
    svg, numbers = (out / f"{figure.key}.{kind}" for kind in ("svg", "csv"))
    pictures = {}
    for scheme, settings in SCHEMES.items():
        with mplstyle.context(settings):
            plot = Plot(figure, policies)
            figure.draw(plot)
            plot.add_legend()
            plot.canvas.draw_without_rendering()  # once for all files: savefig would lay out for each again
            plot.canvas.set_layout_engine("none")
            buffer = io.BytesIO()
            _picture(plot.canvas).save(buffer, format="webp", lossless=True, method=6)
            pictures[scheme] = buffer.getvalue()
            if scheme == "light":
                write_text(svg, _vector_graphic(plot))
                write_text(numbers, plot.numbers())
    # Another process may have drawn it, and functions within functions cannot be sent back.
    return Drawn(replace(figure, draw=_draw_nothing), (svg, numbers), pictures)


def _draw_nothing(plot: Plot) -> None:
    """Leave the axes empty."""


def _vector_graphic(plot: Plot) -> str:
    """The figure as SVG to a tenth of a point, every path on one line and without repeated points: half of the size."""
    buffer = io.StringIO()
    plot.canvas.savefig(buffer, format="svg", metadata=UNSIGNED)
    text = re.sub(r" ?\n([A-Zz]) ?", r"\1", re.sub(r"(\.\d)\d+", r"\1", buffer.getvalue()))
    return re.sub(r"(L[-.\d]+ [-.\d]+)\1+(?=[A-Zz\s\"])", r"\1", text)


def _picture(canvas: Canvas) -> Image.Image:
    """The figure drawn with a palette: flat colours need no more, and the file is a third of the size.

    An octree keeps rare colours, such as those of small markers, apart; a median cut would merge them.
    """
    agg = FigureCanvasAgg(canvas)
    agg.draw()
    return (
        Image.fromarray(np.asarray(agg.buffer_rgba())[..., :3])
        .quantize(128, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        .convert("RGB")
    )
