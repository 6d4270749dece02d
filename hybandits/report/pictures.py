"""Figures within the page."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from itertools import groupby

from hybandits.report.figures.outcomes import Figure, under

LARGEST_SVG = 300_000
"""Figures with more bytes than this are embedded as PNG."""


def gallery_of(drawn: Sequence[Figure], section: str) -> str:
    """The section's figures by protocol, narrow ones side by side."""
    parts = []
    chosen = [(f"f{i}", figure) for i, figure in enumerate(drawn) if figure.section == section]
    for protocol, found in groupby(chosen, key=lambda entry: entry[1].protocol):
        parts.append(f"<h3>{escape(under(protocol).capitalize())}</h3>")
        for wide, group in groupby(found, key=lambda entry: entry[1].wide):
            inside = "\n".join(_figure(figure, prefix) for prefix, figure in group)
            parts.append(inside if wide else f'<div class="side">{inside}</div>')
    return "\n".join(parts)


def _figure(figure: Figure, prefix: str) -> str:
    wide = ' class="wide"' if figure.wide else ""
    return (
        f'<figure id="figure-{escape(figure.name)}"{wide}><div class="plot">{_picture(figure, prefix)}</div>\n'
        f"<figcaption><strong>{escape(figure.title)}.</strong> {escape(figure.caption)} "
        f"<small><code>figures/{escape(figure.name)}</code></small></figcaption></figure>"
    )


def _picture(figure: Figure, prefix: str) -> str:
    png, svg = figure.files
    inline = inline_svg(svg.read_text(encoding="utf-8"), prefix, figure.alt)
    if len(inline) <= LARGEST_SVG:
        return inline
    data = base64.b64encode(png.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(figure.alt)}">'


def inline_svg(text: str, prefix: str, alt: str) -> str:
    """An SVG file as an element for a page: its ids made unique, coordinates to the hundredth, and nothing unused."""
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
    """Path data with fewer digits; of long lines, points that fall together on a tenth of a point are drawn once."""
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
