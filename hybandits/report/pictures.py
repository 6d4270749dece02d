"""Figures as elements of the page: their panels and keys cut out of the SVG file, and their curves as data."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby
from math import isfinite
from typing import Any, NamedTuple, get_args
from xml.etree import ElementTree

from hybandits.report.colours import dark_counterpart
from hybandits.report.figures.outcomes import Figure, Section, thin
from hybandits.report.figures.plotted import Box, Key, Plotted, distinct, same_numbers

LARGEST_SVG = 300_000
"""Figures with more bytes than this are embedded as PNG."""
MOST_READ_OUTS = 60
"""Points of a curve whose numbers the page tells; all of them are in the figure's file of numbers."""


class KeyMarkup(NamedTuple):
    """An entry of the legend: a piece of the line, its name, and which curve it switches, if any."""

    markup: str
    label: str
    curve: int | None


class Picture(NamedTuple):
    """A figure and the elements that show it."""

    figure: Figure
    panels: Sequence[str]
    """One element for every panel, or one for all."""
    keys: Sequence[KeyMarkup] = ()
    data: str = ""
    """What its curves show, as JSON for the page's script; empty if it has none."""

    @property
    def markup(self) -> str:
        """All panels."""
        return "\n".join(self.panels)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Kind and name of every file."""
        return [(file.suffix[1:].upper(), file.name) for file in self.figure.files]


class PictureRow(NamedTuple):
    """Pictures that are as wide as the page, one below the other, or narrow ones side by side."""

    wide: bool
    pictures: Sequence[Picture]


Gallery = Sequence[tuple[str, Sequence[PictureRow]]]
"""Protocols, and the rows of pictures of each."""

FIRST_SHOWN: tuple[Section, ...] = ("panels", "regret", "yahoo", "diversity")
"""Where to look for the one figure that the page begins with."""


def first_picture(drawn: Sequence[Figure]) -> Picture | None:
    """The figure that the page begins with: the published one reproduced, or else the first of a regret."""
    ordered = [figure for section in FIRST_SHOWN for figure in drawn if figure.section == section]
    return embedded(ordered[0], "f") if ordered else None


def galleries(drawn: Sequence[Figure]) -> dict[str, Gallery]:
    """The figures of every section of the page, empty where there are none."""
    sections: dict[str, list[tuple[str, list[PictureRow]]]] = {name: [] for name in get_args(Section)}
    for section, gallery in sections.items():
        chosen = [(f"f{i}", figure) for i, figure in enumerate(drawn) if figure.section == section]
        for protocol, of_protocol in groupby(chosen, key=lambda entry: entry[1].protocol):
            rows = [
                PictureRow(wide, [embedded(figure, prefix) for prefix, figure in row])
                for wide, row in groupby(of_protocol, key=lambda entry: entry[1].wide)
            ]
            gallery.append((protocol, rows))
    return dict(sections)


def embedded(figure: Figure, prefix: str) -> Picture:
    """A figure as elements of the page: the panels of its SVG, or its PNG where that would be too large."""
    png, svg = figure.files[:2]
    panels, keys = cut(svg.read_text(encoding="utf-8"), figure.plotted, prefix, figure.alt)
    if sum(map(len, panels)) <= LARGEST_SVG:
        return Picture(figure, panels, keys, _data(figure.plotted) if keys else "")
    data = base64.b64encode(png.read_bytes()).decode()
    return Picture(figure, [f'<img src="data:image/png;base64,{data}" alt="{escape(figure.alt)}">'])


# ------------------------------------------------------------------ cutting

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LOOK = 'stroke-linejoin="round" stroke-linecap="butt"'


def cut(text: str, plotted: Plotted, prefix: str, alt: str) -> tuple[list[str], list[KeyMarkup]]:
    """The panels of an SVG file and the keys of its legend as elements of the page, with ids of their own.

    A file whose panels are not known is one panel.
    """
    root = ElementTree.fromstring(text[text.index("<svg") :])
    for style in root.iter():
        _drop_children(style, (f"{_SVG}style", f"{_SVG}metadata"))
    groups = {group.get("id", ""): group for group in root.iter() if group.get("id")}
    _take_over(root, prefix)
    parts = [groups.get(f"panel-{i}") for i in range(len(plotted.panels))]
    if not parts or None in parts:
        shape = root.get("viewBox", "")
        return [f'<svg viewBox="{shape}" role="img" aria-label="{escape(alt)}" {_LOOK}>{_inside(root)}</svg>'], []
    clips = "".join(_serialised(clip) for clip in root.iter(f"{_SVG}clipPath"))
    panels = []
    for i, (panel, group) in enumerate(zip(plotted.panels, parts, strict=True)):
        assert group is not None
        _drop_background(group)
        words = f'role="img" aria-label="{escape(alt)}"' if i == 0 else f'role="img" aria-label="{escape(panel.title)}"'
        shape = _view(panel.box, [other.box for other in plotted.panels])
        definitions = f"<defs>{clips}</defs>" if i == 0 and clips else ""
        panels.append(f'<svg class="panel" viewBox="{shape}" {words} {_LOOK}>{definitions}{_serialised(group)}</svg>')
    return panels, [_key(key, i, groups, plotted) for i, key in enumerate(plotted.keys)]


def _key(key: Key, number: int, groups: Mapping[str, Any], plotted: Plotted) -> KeyMarkup:
    left, top, right, bottom = key.box
    middle = (top + bottom) / 2
    shape = f"{left - 2:.1f} {middle - 5:.1f} {right - left + 4:.1f} 10"
    inside = _serialised(groups[f"key-{number}"]) if f"key-{number}" in groups else ""
    markup = f'<svg class="key" viewBox="{shape}" aria-hidden="true" {_LOOK}>{inside}</svg>'
    curve = plotted.names.index(key.label) if key.label in plotted.names else None
    return KeyMarkup(markup, key.label, curve)


def _view(box: Box, boxes: Sequence[Box]) -> str:
    """The view of one panel: all of a figure's are equally large and lie with their right and lower edges alike."""
    width = max(b[2] - b[0] for b in boxes) + 2 * _MARGIN
    height = max(b[3] - b[1] for b in boxes) + 2 * _MARGIN
    return f"{box[2] + _MARGIN - width:.1f} {box[3] + _MARGIN - height:.1f} {width:.1f} {height:.1f}"


_MARGIN = 3.0


def _take_over(root: ElementTree.Element, prefix: str) -> None:
    """Ids of the page's own, curves marked as such, and colours that the page can turn round."""
    for element in root.iter():
        name = element.get("id")
        if name is not None:
            curve = re.match(r"curve-(\d+)-", name)
            if curve:
                element.set("class", "curve")
                element.set("data-curve", curve[1])
            if curve or name.startswith(("panel-", "key-")):
                del element.attrib["id"]
            else:
                element.set("id", f"{prefix}-{name}")
        if _HREF in element.attrib:
            element.set("href", f"#{prefix}-{element.attrib.pop(_HREF)[1:]}")
        for attribute in ("clip-path", "style"):
            if attribute in element.attrib:
                element.set(attribute, _restyled(element.attrib[attribute], prefix))


def _restyled(style: str, prefix: str) -> str:
    style = style.replace("url(#", f"url(#{prefix}-")
    style = re.sub(r"font-family: [^;]*(; )?", "", style).rstrip("; ")
    return re.sub(r"#([0-9a-f]{6})\b", r"var(--c\1)", style).replace(": ", ":").replace("; ", ";")


def _drop_children(element: ElementTree.Element, kinds: Sequence[str]) -> None:
    for child in [child for child in element if child.tag in kinds]:
        element.remove(child)


def _drop_background(panel: ElementTree.Element) -> None:
    """The white behind a panel: the page has a ground of its own."""
    for group in list(panel)[:1]:
        if len(group) and all("--cffffff" in path.get("style", "") for path in group):
            panel.remove(group)


def _inside(element: ElementTree.Element) -> str:
    return "".join(_serialised(child) for child in element)


def _serialised(element: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG[1:-1])
    text = ElementTree.tostring(element, encoding="unicode", short_empty_elements=True)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text).replace(" />", "/>")
    return re.sub(r"\s*\n\s*", "\n", text).strip()


def colours_of(markup: str) -> dict[str, str]:
    """Every colour that figures use, as #rrggbb, and its counterpart on a dark page."""
    used = sorted(set(re.findall(r"var\(--c([0-9a-f]{6})\)", markup)))
    return {colour: dark_counterpart(f"#{colour}") for colour in used}


# ------------------------------------------------------------------ numbers


def _data(plotted: Plotted) -> str:
    """The curves as JSON: the places of the panels, and the numbers of every curve, of long ones some."""
    readable = [series for series in plotted.series if series.readable]
    if not readable:
        return ""
    kept = distinct(readable)
    panels = []
    for i, panel in enumerate(plotted.panels):
        curves = [
            [plotted.names.index(one.name), next(k for k, other in enumerate(kept) if same_numbers(one, other))]
            for one in readable
            if one.panel == i
        ]
        panels.append({"across": panel.across, "plot": panel.plot, "x": panel.x, "y": panel.y, "curves": curves})
    series = []
    for one in kept:
        keep = thin(one.x, MOST_READ_OUTS)  # type: ignore[arg-type]
        x, *values = (_rounded([column[k] for k in keep]) for column in (one.x, *one.columns.values()))
        series.append({"says": next(iter(one.columns)), "band": one.band, "x": x, "y": values})
    text = json.dumps({"names": plotted.names, "panels": panels, "series": series}, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _rounded(values: Sequence[float]) -> list[float | int | None]:
    """Five digits, and whole numbers without a decimal; None where there is no number."""
    short = [float(f"{value:.5g}") if isfinite(value) else None for value in values]
    return [int(v) if v is not None and v == int(v) else v for v in short]
