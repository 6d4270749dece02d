"""Figures as elements of the page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple, get_args

from hybandits.report.figures.outcomes import Figure, Section

LARGEST_SVG = 300_000
"""Figures with more bytes than this are embedded as PNG."""


class Picture(NamedTuple):
    """A figure and the element that shows it."""

    figure: Figure
    markup: str


class PictureRow(NamedTuple):
    """Pictures that are as wide as the page, one below the other, or narrow ones side by side."""

    wide: bool
    pictures: Sequence[Picture]


Gallery = Sequence[tuple[str, Sequence[PictureRow]]]
"""Protocols, and the rows of pictures of each."""


def galleries(drawn: Sequence[Figure]) -> dict[str, Gallery]:
    """The figures of every section of the page, empty where there are none."""
    sections: dict[str, list[tuple[str, list[PictureRow]]]] = {name: [] for name in get_args(Section)}
    for section, gallery in sections.items():
        chosen = [(f"f{i}", figure) for i, figure in enumerate(drawn) if figure.section == section]
        for protocol, of_protocol in groupby(chosen, key=lambda entry: entry[1].protocol):
            rows = [
                PictureRow(wide, [Picture(figure, embedded(figure, prefix)) for prefix, figure in row])
                for wide, row in groupby(of_protocol, key=lambda entry: entry[1].wide)
            ]
            gallery.append((protocol, rows))
    return dict(sections)


def embedded(figure: Figure, prefix: str) -> str:
    """A figure as an element of the page: its SVG, or its PNG where that would be too large."""
    png, svg = figure.files
    inline = inline_svg(svg.read_text(encoding="utf-8"), prefix, figure.alt)
    if len(inline) <= LARGEST_SVG:
        return inline
    data = base64.b64encode(png.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(figure.alt)}">'


def inline_svg(text: str, prefix: str, alt: str) -> str:
    """An SVG file as an element of the page: ids of its own, coordinates to the hundredth, and nothing unused."""
    text = text[text.index("<svg") :]
    box_ = re.search(r'viewBox="([^"]*)"', text)
    inside = text[text.index(">") + 1 : text.rindex("</svg>")]
    inside = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", inside, flags=re.DOTALL)
    inside = re.sub(r' d="([^"]*)"', lambda m: f' d="{_coarse(m[1])}"', inside)
    inside = re.sub(r' (x|y)="(-?[\d.]+)"', lambda m: f' {m[1]}="{_hundredth(m[2])}"', inside)
    used = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", inside))
    inside = re.sub(r' id="([^"]*)"', lambda m: f' id="{prefix}-{m[1]}"' if m[1] in used else "", inside)
    inside = re.sub(r'xlink:href="#', f'href="#{prefix}-', inside).replace("url(#", f"url(#{prefix}-")
    inside = re.sub(r"\s*\n\s*", "\n", inside).strip()
    shape = f' viewBox="{box_[1]}"' if box_ else ""
    look = 'stroke-linejoin="round" stroke-linecap="butt"'
    return f'<svg{shape} role="img" aria-label="{escape(alt)}" {look}>{inside}</svg>'


def _coarse(path: str) -> str:
    """Path data with fewer digits; of a long line, points that fall together on a tenth of a point are drawn once."""
    if re.search("[^MLz0-9eE.+ \n-]", path) or len(path) < _LONG_PATH:
        return re.sub(r"-?\d+\.\d+", lambda m: _hundredth(m[0]), " ".join(path.split()))
    kept: list[str] = []
    for command, x, y in re.findall(r"([MLz])(?:\s*([-\d.eE]+)\s+([-\d.eE]+))?", path):
        point = f"{float(x):.1f} {float(y):.1f}" if x else ""
        if command != "L":
            kept.append(f"{command}{point}")
        elif point != kept[-1].lstrip("ML"):
            # Further points of a line need no letter of their own.
            kept.append(point if kept[-1][0] not in "Mz" else f"L{point}")
    return " ".join(kept)


_LONG_PATH = 400


def _hundredth(value: str) -> str:
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
