"""The dashboard: a view as HTML that needs no scripts, no network and no files from elsewhere.

The templates have its sentences; here numbers become words and lines. Text comes from strangers, so the templates
escape all of it, and a content security policy allows nothing but the page's own script and style, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import math
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import Response

from hybandits.service.view import ENOUGH, Comparison, Curves, View

NOTHING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

TEMPLATES = Path(__file__).parent / "templates"

NARROWEST, SMALLEST = 1e-6, 1e-300
"""Least width of an axis, relative to the numbers on it and absolute: nearer doubles have too few between them."""

NAME = 28
"""Characters of a name in a table; its tooltip has the others."""

WIDTH, HEIGHT = 1000, 300
"""Coordinates of figures."""


def page_response(view: View | None, *, refused: bool = False) -> Response:
    """Return the dashboard, or without a view the form for the token; `refused`: one was sent and is wrong."""
    if view is None:
        return Response(page(None, refused=refused), 401, {**headers(), "www-authenticate": "Bearer"}, "text/html")
    return Response(page(view), 200, headers(), "text/html")


def page(view: View | None, *, refused: bool = False) -> str:
    """Return the whole page; without a view it asks for the token."""
    return (
        _templates()
        .get_template("page.html")
        .render(
            title="A bandit" if view is None else view.name,
            content=None if view is None else Markup(content(view)),
            refused=refused,
            css=Markup(_text("page.css")),
            js=Markup(_text("page.js")),
        )
    )


def content(view: View) -> str:
    """Return the part of the page that changes."""
    axis, span = _axis(view.curves, view), _span(view)
    stretches = _stretches(view.curves, span)
    return (
        _templates()
        .get_template("view.html")
        .render(
            view=view,
            axis=axis,
            lines=_lines(view.curves, stretches, axis),
            shares=_shares(view.curves, stretches),
            times=_times(span),
            enough=ENOUGH,
            changed=datetime.fromtimestamp(view.time, UTC),
            digits=_digits(
                max((abs(x) for x in (view.reward.mean, view.uniform.value.mean) if x is not None), default=1)
            ),
        )
    )


def headers() -> dict[str, str]:
    """Return the headers of the page."""
    script, style = (_digest(_text(name)) for name in ("page.js", "page.css"))
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


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _templates() -> Environment:
    """Return the templates, which escape every text, invisible characters included."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=visible,
    )
    filters: dict[str, Any] = {"seconds": duration}
    for function in (number, count, share, verdict, short, brief):
        filters[function.__name__] = function
    templates.filters.update(filters)
    return templates


def visible(value: Any) -> Any:
    """Escape characters of a text that cannot be seen, or that change how others are read."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    hidden = ("Cc", "Cf", "Zl", "Zp")  # control, format, and separators of lines and paragraphs
    return "".join(
        each.encode("unicode_escape").decode() if unicodedata.category(each) in hidden else each for each in value
    )


def brief(name: str) -> str:
    """Leave out the middle of a long name: names often have the same beginning."""
    return name if len(name) <= NAME else f"{name[: NAME // 2]}…{name[1 - NAME // 2 :]}"


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """Format a number with so many digits behind the point."""
    if value is None:
        return NOTHING
    text = f"{value:{'+' if sign else ''},.{digits}f}" if abs(value) < 1e9 else f"{value:.{digits}e}"
    return text.replace("-", MINUS)


def short(value: float | None) -> str:
    """Format a number with three significant digits."""
    text = number(value, _digits(abs(value or 0.0)))
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int) -> str:
    """Format a count with separators of thousands."""
    return f"{value:,}"


def share(value: float) -> str:
    """Format a share in percent."""
    return "< 0.1 %" if 0 < value < 0.001 else f"{100 * value:.1f} %"


def duration(seconds: float) -> str:
    """Format a length of time in the largest unit that it fills twice."""
    unit, length = next(
        each for each in (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 0.0)) if seconds >= 2 * each[1]
    )
    value = seconds / (length or 1.0)
    return f"{value:.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}".replace(".0 ", " ")


def verdict(comparison: Comparison) -> tuple[str, str]:
    """Return the result of a comparison with the live policy, as a class for its colour and a sentence."""
    difference = comparison.difference
    if difference.low is None or difference.high is None:
        if difference.n == 0:
            return "open", "No estimate yet: no reward has been learned since the comparison began."
        return "open", f"No interval yet: it needs {ENOUGH} rewards, and there have been {count(difference.n)}."
    if difference.low > 0:
        return "more", "Its reward per decision is higher than that of the live policy."
    if difference.high < 0:
        return "less", "Its reward per decision is lower than that of the live policy."
    return "open", "It is not clear yet which one is better."


def _digits(scale: float) -> int:
    return min(max(2 - math.floor(math.log10(scale)), 0), 6) if 0 < scale < math.inf else 2


class Axis(NamedTuple):
    """A vertical axis: its ends, and the labels of evenly spaced lines from the highest to the lowest."""

    low: float
    high: float
    labels: list[str]

    def y(self, value: float) -> float:
        """Return the coordinate of a value; values beyond the axis are drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(HEIGHT * (1 - share), 1)


def _axis(curves: Curves, view: View) -> Axis:
    first = len(curves.ends) // 4
    live, uniform = curves.live, curves.uniform
    bounds = [*live.low[first:], *live.high[first:], *uniform.low[2 * first :], *uniform.high[2 * first :]]
    shown = [value for value in (*live.mean, *uniform.mean, *bounds) if value is not None]
    low, high = (min(shown), max(shown)) if shown else view.range or (0.0, 1.0)
    size = max(abs(low), abs(high))
    if high - low <= max(NARROWEST * size, SMALLEST):
        room = max(0.5, NARROWEST * size)
        low, high = low - room, high + room
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    start, end = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    labels = [f"{place * step:.9g}".replace("-", MINUS) for place in range(end, start - 1, -1)]
    return Axis(start * step, end * step, labels)


def _span(view: View) -> tuple[float, float]:
    """Return the ends of the axis of time: the present, unless what happened would take less than half of it."""
    curves = view.curves
    if not curves.ends:
        return view.seen, view.seen
    begin, end = curves.ends[0] - curves.seconds, curves.ends[-1]
    return begin, min(max(view.seen, end), end + (end - begin))


def _stretches(curves: Curves, span: tuple[float, float]) -> list[tuple[float, float]]:
    begin, end = span

    def x(time: float) -> float:
        return round(WIDTH * (time - begin) / (end - begin), 1)

    return [(x(each - curves.seconds), x(each)) for each in curves.ends]


Point = tuple[float, float]


def _lines(curves: Curves, stretches: Sequence[tuple[float, float]], axis: Axis) -> dict[str, str]:
    lines = {}
    for name, band in (("live", curves.live), ("uniform", curves.uniform)):
        mean, upper, lower = (_points(stretches, values, axis) for values in (band.mean, band.high, band.low))
        lines[name], lines[f"{name}_band"] = _path(mean), _path(upper + lower[::-1])
    return lines


def _points(stretches: Sequence[tuple[float, float]], values: Sequence[float | None], axis: Axis) -> list[Point]:
    """Return the points of a curve, which stays as it was where nothing happened."""
    points: list[Point] = []
    for (left, right), value in zip(stretches, values, strict=True):
        if value is not None:
            y = axis.y(value)
            points += [(left, points[-1][1] if points else y), (right, y)]
    return points


def _path(points: Sequence[Point]) -> str:
    return f"M{'L'.join(f'{x} {y}' for x, y in points)}" if points else ""


def _shares(curves: Curves, stretches: Sequence[tuple[float, float]]) -> list[str]:
    """Return a path for every arm, and one for all others: a rectangle for each stretch of time."""
    paths = ["" for _ in range(len(curves.arms) + 1)]
    for (left, right), shares in zip(stretches, curves.shares, strict=True):
        below = 0.0
        for i, part in enumerate(shares):
            low, high = (round(HEIGHT * (1 - each), 1) for each in (below, below + part))
            paths[i] += f"M{left} {low}V{high}H{right}V{low}Z" if part > 0 else ""
            below += part
    return paths


def _times(span: tuple[float, float]) -> list[dict[str, Any]]:
    """Return labels of the axis of time: for the script, and in UTC for browsers without one."""
    begin, end = span
    is_short = end - begin < 3600
    moments = [datetime.fromtimestamp(at, UTC) for at in (begin, (begin + end) / 2, end)]
    form = "%H:%M:%S UTC" if is_short else "%d %b %H:%M"
    return [{"iso": at.isoformat(), "text": at.strftime(form), "is_short": is_short} for at in moments]
