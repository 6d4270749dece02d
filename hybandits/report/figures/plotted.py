"""What a picture shows, as data: its curves, its panels and the keys of its legend.

The page makes switches and read-outs of it, and every picture's numbers are written beside it. Whatever draws a curve
tells `remember`. A picture whose curves were not remembered has its labelled lines as data, if it has any.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.transforms import Bbox

Box = tuple[float, float, float, float]
"""Left, top, right and bottom in the units of the SVG file, of which an inch has 72."""


class Series(NamedTuple):
    """Numbers of one curve in one panel."""

    panel: int
    name: str
    x: Sequence[Any]
    columns: Mapping[str, Sequence[float]]
    """What there is at every x. The first is the line itself; two further ones are the edges of its band."""
    band: str
    """What the band is, in words; empty if there is none."""
    readable: bool
    """Whether the page tells its numbers on hovering; else they are in the file of numbers only."""


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    across: str
    """What the abscissa is."""
    box: Box
    """All of it, labels included."""
    plot: Box
    """What lies between the axes."""
    x: tuple[bool, float, float]
    y: tuple[bool, float, float]
    """Whether the axis is logarithmic, and where it begins and ends."""


class Key(NamedTuple):
    """An entry of the legend."""

    label: str
    box: Box


class Plotted(NamedTuple):
    """All that is known of a picture beside the picture."""

    panels: tuple[Panel, ...] = ()
    keys: tuple[Key, ...] = ()
    names: tuple[str, ...] = ()
    """Curves, numbered as in the groups `curve-...` of the SVG file."""
    series: tuple[Series, ...] = ()


_REMEMBERED: WeakKeyDictionary[Any, list[Series]] = WeakKeyDictionary()
_GROUPS: WeakKeyDictionary[Any, int] = WeakKeyDictionary()


def remember(
    axes: Axes,
    name: str,
    x: Sequence[Any] | np.ndarray[Any, Any],
    columns: Mapping[str, Any],
    artists: Sequence[Artist] = (),
    *,
    band: str = "",
    readable: bool = True,
) -> None:
    """Take note of a curve that is drawn, and mark what it is drawn with, so that the page can switch it off.

    Parameters
    ----------
    axes : Axes
        Where it is drawn.
    name : str
        The curve's name, which is that of its entry in the legend.
    x, columns : sequences
        The numbers: x, and by name what is drawn there; the line comes first, then the edges of its band.
    artists : sequence of Artist
        What the curve is drawn with.
    band : str
        What the band is, in words.
    readable : bool
        Whether the page tells the numbers on hovering.
    """
    canvas = axes.get_figure()
    panel = canvas.axes.index(axes)  # type: ignore[union-attr]
    drawn = _REMEMBERED.setdefault(canvas, [])
    plain = {key: [float(value) for value in values] for key, values in columns.items()}
    drawn.append(Series(panel, name, [v if isinstance(v, str) else float(v) for v in x], plain, band, readable))
    number = list(dict.fromkeys(series.name for series in drawn)).index(name)
    for artist in artists:
        _GROUPS[canvas] = _GROUPS.get(canvas, 0) + 1
        artist.set_gid(f"curve-{number}-{_GROUPS[canvas]}")


def plotted_in(canvas: Canvas) -> Plotted:
    """What a picture shows, once it is laid out; its panels and keys are marked in the SVG file from now on."""
    series = _REMEMBERED.get(canvas, [])
    if not series:
        _remember_lines(canvas)
        series = _REMEMBERED.get(canvas, [])
    panels = []
    for i, axes in enumerate(canvas.axes):
        axes.set_gid(f"panel-{i}")
        title = axes.get_title("left") or axes.get_title()
        tight = axes.get_tightbbox()
        panels.append(
            Panel(
                title.replace("$", ""), axes.get_xlabel().replace("$", "").split("\n")[0],
                _box(canvas, tight if tight is not None else axes.bbox), _box(canvas, axes.bbox),
                _axis(axes.get_xscale(), axes.get_xlim()),
                _axis(axes.get_yscale(), axes.get_ylim()),
            )
        )  # fmt: skip
    keys: list[Key] = []
    for legend in canvas.legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            if handle is not None:
                handle.set_gid(f"key-{len(keys)}")
                keys.append(Key(text.get_text(), _box(canvas, handle.get_window_extent())))
    return Plotted(
        tuple(panels), tuple(keys), tuple(dict.fromkeys(s.name for s in series)), tuple(series)
    )  # fmt: skip


def _remember_lines(canvas: Canvas) -> None:
    """Lines that have names are data, whoever drew them."""
    for axes in canvas.axes:
        for line in axes.get_lines():
            name = str(line.get_label())
            if not name.startswith("_") and line.get_transform() == axes.transData:
                x, y = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
                remember(axes, name, x, {"value": y}, [line])


def _axis(scale: str, limits: tuple[float, float]) -> tuple[bool, float, float]:
    return scale == "log", float(limits[0]), float(limits[1])


def _box(canvas: Canvas, box: Bbox) -> Box:
    unit, height = 72 / canvas.dpi, float(canvas.bbox.height)
    left, top, right, bottom = box.x0, height - box.y1, box.x1, height - box.y0
    return (round(left * unit, 2), round(top * unit, 2), round(right * unit, 2), round(bottom * unit, 2))


def numbers_csv(plotted: Plotted) -> str:
    """The numbers of a picture: a line per point, with the panel and the curve that it belongs to.

    What two panels show alike, e.g. on plain and on logarithmic axes, is there once.
    """
    series = distinct(plotted.series)
    columns = list(dict.fromkeys(column for one in series for column in one.columns))
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("panel", "curve", "x", *columns))
    for one in series:
        title = plotted.panels[one.panel].title.partition(": d₁")[0].replace("\n", " ")
        for i, x in enumerate(one.x):
            values = (one.columns[column][i] if column in one.columns else None for column in columns)
            lines.writerow((title, one.name, x if isinstance(x, str) else f"{x:.8g}", *map(_short, values)))
    return text.getvalue()


def _short(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.6g}"


def distinct(series: Sequence[Series]) -> list[Series]:
    """The series without those that an earlier panel shows as well."""
    kept: list[Series] = []
    for one in series:
        if not any(same_numbers(one, other) for other in kept):
            kept.append(one)
    return kept


def same_numbers(one: Series, other: Series) -> bool:
    """Whether two series are the same curve."""
    return one.name == other.name and one.x == other.x and _equal(one.columns, other.columns)


def _equal(one: Mapping[str, Sequence[float]], other: Mapping[str, Sequence[float]]) -> bool:
    return list(one) == list(other) and all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)
