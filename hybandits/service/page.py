"""The dashboard: a view as HTML that needs no scripts and no files from elsewhere."""

import base64
import hashlib
import math
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hybandits.service.view import ENOUGH, LEVEL, Curves, Estimate, View

TEMPLATES = Path(__file__).parent / "templates"

NARROWEST = 1e-6
"""Least width of an axis, relative to the numbers on it."""

WIDTH, HEIGHT, LINES = 1000, 300, 4
"""Coordinates of figures, and the number of horizontal lines above the lowest."""


def page(view: View | None, *, refused: bool = False) -> str:
    """Return the dashboard, or without a view the form for the token; `refused`: one was sent and is wrong."""
    return _templates.get_template("page.html").render(
        title="A bandit" if view is None else view.name,
        content=None if view is None else Markup(content(view)),
        refused=refused,
        css=Markup(_text("page.css")),
        js=Markup(_text("page.js")),
    )


def list_page(views: Sequence[View]) -> str:
    """Return the page that lists several bandits."""
    listed = _templates.get_template("list.html").render(views=views, quote=quote)
    return _templates.get_template("page.html").render(
        title="Bandits", content=Markup(listed), refused=False, css=Markup(_text("page.css")),
        js=Markup(_text("page.js")),
    )  # fmt: skip


def content(view: View) -> str:
    """Return the part of the page that changes."""
    curves = view.curves
    low, high = _axis(view)
    steps = [low + (high - low) * i / LINES for i in range(LINES, -1, -1)]
    means = [abs(mean) for mean in (view.reward.mean, view.uniform.value.mean) if mean is not None]
    return _templates.get_template("view.html").render(
        view=view,
        gain=view.uniform.difference.negated(),
        labels=[number(step, _digits(high - low)) for step in steps],
        uniform=_paths(curves, curves.uniform, low, high),
        live=_paths(curves, curves.live, low, high),
        moments=[datetime.fromtimestamp(at, UTC) for at in (curves.start, *curves.ends[-1:])],
        enough=ENOUGH,
        level=LEVEL,
        changed=datetime.fromtimestamp(view.time, UTC),
        digits=_digits(max(means, default=1)),
    )


def headers() -> dict[str, str]:
    """Return the headers of the page."""
    digests = (hashlib.sha256(_text(name).encode()).digest() for name in ("page.js", "page.css"))
    script, style = (f"sha256-{base64.b64encode(digest).decode()}" for digest in digests)
    return {
        "content-security-policy": (
            f"default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }


@cache
def _text(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def visible(value: Any) -> Any:
    """Escape characters of a text that cannot be seen, or that change how others are read."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    hidden = ("Cc", "Cf", "Zl", "Zp")  # control, format, and separators of lines and paragraphs
    return "".join(
        each.encode("unicode_escape").decode() if unicodedata.category(each) in hidden else each for each in value
    )


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """Format a number with so many digits behind the point."""
    if value is None:
        return "\N{EN DASH}"
    value = round(value, digits) + 0.0  # never -0
    text = f"{value:{'+' if sign else ''},.{digits}f}" if abs(value) < 1e9 else f"{value:.{digits}e}"
    return text.replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Format a time in the largest unit of which it is a multiple."""
    units = (("day", 86_400), ("hour", 3_600), ("minute", 60))
    unit, size = next((each for each in units if seconds % each[1] == 0), ("second", 1))
    return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"


_templates = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True, auto_reload=False, finalize=visible,
)  # fmt: skip
_templates.filters.update(number=number, duration=duration, count="{:,}".format, share="{:.1%}".format)


def _digits(scale: float) -> int:
    return min(max(2 - math.floor(math.log10(scale)), 0), 6) if 0 < scale < math.inf else 2


def _axis(view: View) -> tuple[float, float]:
    """Return the ends of the vertical axis; bounds of the first half, which are wide, may lie beyond."""
    half = len(view.curves.ends) // 2
    shown: list[float | None] = []
    for estimates in (view.curves.live, view.curves.uniform):
        shown += [each.mean for each in estimates]
        shown += [end for each in estimates[half:] for end in (each.low, each.high)]
    values = [value for value in shown if value is not None]
    low, high = (min(values), max(values)) if values else view.range or (0.0, 1.0)
    size = max(abs(low), abs(high))
    if high - low <= NARROWEST * max(size, 1e-300):
        margin = max(0.5, NARROWEST * size)
        low, high = low - margin, high + margin
    return low, high


def _paths(curves: Curves, estimates: Sequence[Estimate], low: float, high: float) -> dict[str, str]:
    """Return the curve of a mean and the outline of its bounds; values beyond the axis are drawn at its end."""
    length = curves.ends[-1] - curves.start if curves.ends else 1.0

    def points(part: str) -> list[str]:
        values = [(end, getattr(each, part)) for end, each in zip(curves.ends, estimates, strict=True)]
        shown = [(end, value) for end, value in values if value is not None]
        if shown and shown[0][0] == curves.ends[0]:
            shown.insert(0, (curves.start, shown[0][1]))
        return [
            f"{WIDTH * (end - curves.start) / length:.1f} "
            f"{HEIGHT * (high - min(max(value, low), high)) / (high - low):.1f}"
            for end, value in shown
        ]

    def path(corners: Sequence[str]) -> str:
        return f"M{'L'.join(corners)}" if corners else ""

    return {"mean": path(points("mean")), "bounds": path(points("high") + points("low")[::-1])}
