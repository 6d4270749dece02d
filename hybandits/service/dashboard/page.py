"""The page: a view as HTML that needs no scripts, no network and no files from elsewhere.

What it says stands in the templates; here numbers become words and lines. Text comes from strangers, so the templates
escape all of it, and a content security policy allows nothing but the page's own script and style, known by their
digests.
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

from hybandits.service.dashboard.estimates import ENOUGH, Comparison, Estimate
from hybandits.service.dashboard.view import Band, Curves, Learned, View

NOTHING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

TEMPLATES = Path(__file__).parent / "templates"

DAY = 86400.0

NARROWEST, SMALLEST = 1e-6, 1e-300
"""How wide an axis is at least, compared with the numbers on it and by itself: computer numbers that are nearer to each
other have too few between them."""

NAME = 28
"""Characters of a name that are shown where there is little room; pointing at it shows the others."""

FEATURES = 12
"""Features of which it is shown what has been learned."""

WIDE, HIGH = 1000, 300
"""The coordinates of figures, which stretch to the room that there is."""

PAUSE = 100
"""How far apart stretches of time are, in these coordinates, before no line connects them."""

COLOURS = 14
"""Colours that arms have: twice as many as there are arms beside each other, so that few have to take another one."""


class Axis(NamedTuple):
    """A vertical axis: its ends, and the labels of evenly spaced lines from the highest to the lowest."""

    low: float
    high: float
    labels: list[str]

    def y(self, value: float) -> float:
        """Where a value is drawn; values beyond the axis are drawn at its end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(HIGH * (1 - share), 1)


def page(view: View | None, *, refused: bool = False) -> str:
    """The whole page; without a view it asks for the token."""
    return _templates().get_template("page.html").render(
        title="A bandit" if view is None else view.name, content=None if view is None else Markup(content(view)),
        refused=refused, css=Markup(_text("page.css")), js=Markup(_text("page.js")),
    )  # fmt: skip


def content(view: View) -> str:
    """What changes on the page, as HTML."""
    axis, span = _axis(view.curves, view), _span(view)
    stretches = _stretches(view.curves, span)
    return _templates().get_template("view.html").render(
        view=view, axis=axis, lines=_lines(view.curves, stretches, axis), shares=_shares(view.curves, stretches),
        colours=_colours(view.curves.places), times=_times(span, view.seen),
        intervals=_intervals([arm.reward for arm in view.arms]), enough=ENOUGH, when=_when(view.time),
        digits=_digits(_scale(view)), scales=_scales,
    )  # fmt: skip


def headers() -> dict[str, str]:
    """What the page is sent with."""
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
    """Every text is escaped, characters that cannot be seen included, and a name that is not there is an error."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, auto_reload=False, finalize=visible,
    )  # fmt: skip
    templates.filters.update(
        number=number, count=count, share=share, seconds=duration, pace=pace, apart=apart, than=than,
        verdict=verdict, short=short, brief=brief,
    )  # fmt: skip
    return templates


# ------------------------------------------------------------------ words


def visible(value: Any) -> Any:
    """The value, but for characters in texts that cannot be seen, or that change how others are read.

    >>> print(visible("a\u202eevil"))
    a\\u202eevil
    """
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    hidden = ("Cc", "Cf", "Zl", "Zp")  # control, format, and separators of lines and paragraphs
    return "".join(
        each.encode("unicode_escape").decode() if unicodedata.category(each) in hidden else each for each in value
    )


def brief(name: str) -> str:
    """A name without its middle if it is long: names often have the same beginning.

    >>> brief("article-about-something-really-new-17")
    'article-about-…really-new-17'
    """
    return name if len(name) <= NAME else f"{name[: NAME // 2]}…{name[1 - NAME // 2 :]}"


def number(value: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """A number with so many digits behind the point.

    >>> number(0.12345), number(-0.5, 1), number(0.5, 1, sign=True), number(None)
    ('0.123', '−0.5', '+0.5', '–')
    """
    if value is None:
        return NOTHING
    text = f"{value:{'+' if sign else ''},.{digits}f}" if abs(value) < 1e9 else f"{value:.{digits}e}"
    return text.replace("-", MINUS)


def short(value: float | None) -> str:
    """A number with three digits that count.

    >>> short(0.0012345), short(1234.5), short(5.0)
    ('0.00123', '1,234', '5')
    """
    text = number(value, _digits(abs(value or 0.0)))
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int) -> str:
    """A count, with its thousands apart."""
    return f"{value:,}"


def share(value: float) -> str:
    """A share in percent.

    >>> share(0.1234), share(0.0001)
    ('12.3 %', '< 0.1 %')
    """
    return "< 0.1 %" if 0 < value < 0.001 else f"{100 * value:.1f} %"


def duration(seconds: float) -> str:
    """A length of time in the largest unit that it fills twice.

    >>> duration(90), duration(1800), duration(2.5)
    ('90 s', '30 min', '2.5 s')
    """
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{_few(seconds / length)} {unit}"
    return f"{_few(seconds)} s"


def _few(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def pace(seconds: float) -> str:
    """How stretches of time follow on each other.

    >>> pace(1), pace(3600), pace(8)
    ('second by second', 'hour by hour', 'in steps of 8 s')
    """
    for unit, length in (("second", 1), ("minute", 60), ("hour", 3600), ("day", 86400)):
        if seconds == length:
            return f"{unit} by {unit}"
    return f"in steps of {duration(seconds)}"


def apart(difference: float, digits: int = 3) -> str:
    """A difference in words.

    >>> apart(-0.0271), apart(0.5, 1), apart(0.0001, 2)
    ('0.027 less', '0.5 more', '0.00 more')
    """
    return f"{number(abs(difference), digits)} {'less' if difference < 0 else 'more'}"


def than(difference: float, digits: int = 3) -> str:
    """A difference in words that what it is compared with follows on.

    >>> than(-0.0271), than(0.0), than(0.0001)
    ('0.027 less than', 'as much as', 'about as much as')
    """
    if difference == 0:
        return "as much as"
    return f"{apart(difference, digits)} than" if round(difference, digits) else "about as much as"


def verdict(comparison: Comparison) -> tuple[str, str]:
    """What a comparison with the live policy says, as a class for its colour and a sentence."""
    difference = comparison.difference
    if difference.low is None or difference.high is None:
        if difference.n == 0:
            return "open", "Nothing can be said yet: no reward has been learned since the comparison began."
        return "open", f"Nothing can be said yet: it takes {ENOUGH} rewards, and there have been {count(difference.n)}."
    if difference.low > 0:
        return "more", "It would have earned more than the live policy."
    if difference.high < 0:
        return "less", "It would have earned less than the live policy."
    unclear = "It is not clear yet which one is better."
    if comparison.more is None:
        return "open", unclear
    more = "About one more decision" if comparison.more == 1 else f"About {count(comparison.more)} more decisions"
    if comparison.to == "tell":
        needed = "is needed" if comparison.more == 1 else "are needed"
        return "open", f"{unclear} {more} {needed}, if the results go on as they have so far."
    return "open", f"{unclear} {more} will make the interval half as wide."


def _when(at: float) -> tuple[str, str]:
    """A time for programs and for people."""
    moment = _moment(at)
    return moment.isoformat(timespec="milliseconds"), moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def _moment(at: float) -> datetime:
    """Seconds since 1970 as a date, the first or the last one there is if a clock was further off."""
    first, last = (each.replace(tzinfo=UTC).timestamp() for each in (datetime.min, datetime.max))
    return datetime.fromtimestamp(min(max(at, first), last - 1), UTC)


def _scale(view: View) -> float:
    """The size of the numbers that are shown as rewards."""
    return max((abs(each) for each in (view.earned.mean, view.uniform.value.mean) if each is not None), default=1.0)


def _digits(scale: float) -> int:
    """Digits behind the point, so that three count."""
    return min(max(2 - math.floor(math.log10(scale)), 0), 6) if 0 < scale < math.inf else 2


def _scales(learned: Learned) -> list[dict[str, Any]]:
    """The features with the largest effects. Arms may differ in the effects of those that are their own."""
    rows = [
        *(
            {"name": name, "own": True, "common": None if mean is None else abs(mean), "differ": scale}
            for name, (scale, mean) in learned.own.items()
        ),
        *({"name": name, "own": False, "common": scale, "differ": None} for name, scale in learned.shared.items()),
    ]

    def size(row: dict[str, Any]) -> float:
        return max(float(row["common"] or 0.0), float(row["differ"] or 0.0))

    return sorted((row for row in rows if size(row) > 0), key=size, reverse=True)[:FEATURES]


# ------------------------------------------------------------------ lines


def _axis(curves: Curves, view: View) -> Axis:
    """An axis that shows the curves. The bounds of the first rewards are wide and may go beyond it."""
    first = len(curves.ends) // 4
    shown = [
        value
        for values in (curves.earned.mean, curves.uniform.mean, curves.earned.low[first:], curves.earned.high[first:],
                       curves.uniform.low[2 * first:], curves.uniform.high[2 * first:])
        for value in values
        if value is not None
    ]  # fmt: skip
    low, high = (min(shown), max(shown)) if shown else view.range or (0.0, 1.0)
    size = max(abs(low), abs(high))
    if high - low <= max(NARROWEST * size, SMALLEST):
        room = max(0.5, NARROWEST * size)
        low, high = low - room, high + room
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    start, end = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(start * step, end * step, _labels(range(end, start - 1, -1), step, halves=step == 2.5 * power))


def _labels(places: range, step: float, *, halves: bool) -> list[str]:
    """Multiples of a step with as many digits as differ, all of them in the same form."""
    values = [place * step for place in places]
    digits = halves - math.floor(math.log10(step) + 1e-9)
    size = max(map(abs, values))
    if size < 1e9 and digits <= 9:
        return [number(value, max(0, digits)) for value in values]
    digits += math.floor(math.log10(size) + 1e-9)
    return [f"{value:.{digits}e}".replace("-", MINUS) if value else "0" for value in values]


def _span(view: View) -> tuple[float, float]:
    """Where the axis of time begins and ends: at the present, unless nothing has happened for so long that what did
    would take less than half of it."""
    curves = view.curves
    if not curves.ends:
        return view.seen, view.seen
    begin, end = curves.ends[0] - curves.seconds, curves.ends[-1]
    return begin, min(max(view.seen, end), end + (end - begin))


def _stretches(curves: Curves, span: tuple[float, float]) -> list[tuple[float, float]]:
    """Where every stretch of time begins and ends."""
    begin, end = span

    def x(time: float) -> float:
        return round(WIDE * (time - begin) / (end - begin), 1)

    return [(x(each - curves.seconds), x(each)) for each in curves.ends]


def _lines(curves: Curves, stretches: Sequence[tuple[float, float]], axis: Axis) -> dict[str, Any]:
    """Paths of the curves and their bands, and what was earned in every stretch alone; whether some lie beyond."""
    alone = [
        (left, right, value)
        for (left, right), value in zip(stretches, curves.alone, strict=True)
        if value is not None
    ]  # fmt: skip
    return {
        "earned": _path(stretches, curves.earned.mean, axis),
        "earned_band": _area(stretches, curves.earned, axis),
        "uniform": _path(stretches, curves.uniform.mean, axis),
        "uniform_band": _area(stretches, curves.uniform, axis),
        "alone": "".join(f"M{left} {axis.y(value)}H{right}" for left, right, value in alone),
        "beyond": any(not axis.low <= value <= axis.high for _, _, value in alone),
    }


Point = tuple[float, float]


def _traces(stretches: Sequence[tuple[float, float]], values: Sequence[float | None], axis: Axis) -> list[list[Point]]:
    """Points of a curve, which is interrupted where nothing happened for long. In short pauses it stays as it was."""
    traces: list[list[Point]] = []
    before = -math.inf
    for (left, right), value in zip(stretches, values, strict=True):
        if value is None:
            continue
        y = axis.y(value)
        if left - before > PAUSE:
            traces.append([(left, y)])
        elif left > before:
            traces[-1].append((left, traces[-1][-1][1]))
        traces[-1].append((right, y))
        before = right
    return traces


def _path(stretches: Sequence[tuple[float, float]], values: Sequence[float | None], axis: Axis) -> str:
    return "".join(f"M{_joined(trace)}" for trace in _traces(stretches, values, axis))


def _area(stretches: Sequence[tuple[float, float]], band: Band, axis: Axis) -> str:
    upper, lower = (_traces(stretches, values, axis) for values in (band.high, band.low))
    return "".join(f"M{_joined(high + low[::-1])}Z" for high, low in zip(upper, lower, strict=True))


def _joined(points: Sequence[Point]) -> str:
    return "L".join(f"{x} {y}" for x, y in points)


def _shares(curves: Curves, stretches: Sequence[tuple[float, float]]) -> list[str]:
    """A path for every arm, and one for all others: a rectangle for each stretch of time."""
    paths: list[list[str]] = [[] for _ in range(len(curves.arms) + 1)]
    for (left, right), shares in zip(stretches, curves.shares, strict=True):
        below = 0.0
        for path, part in zip(paths, shares, strict=True):
            if part > 0:
                path.append(
                    f"M{left} {round(HIGH * (1 - below), 1)}V{round(HIGH * (1 - below - part), 1)}H{right}"
                    f"V{round(HIGH * (1 - below), 1)}Z"
                )
            below += part
    return ["".join(path) for path in paths]


def _colours(places: Sequence[int]) -> list[int]:
    """A colour for each of some arms, from their places in the order of first rows: an arm has the same one however its
    share changes. Where two would have the same, the older arm keeps it.

    >>> _colours([2, 15, 16])
    [2, 1, 3]
    """
    colours: list[int] = []
    for place in places:
        colours.append(next(each for i in range(COLOURS) if (each := (place + i) % COLOURS) not in colours))
    return colours


def _times(span: tuple[float, float], seen: float) -> list[dict[str, str]]:
    """Labels of the axis of time: for programs and for people, with the parts of the date and time that are needed."""
    begin, end = span
    parts = {
        "year": seen - begin > 300 * DAY, "day": seen - begin > 0.8 * DAY, "clock": end - begin < 4 * DAY,
        "seconds": end - begin < 600,
    }  # fmt: skip
    forms = {"day": "%d %b", "year": "%Y", "clock": "%H:%M:%S" if parts["seconds"] else "%H:%M"}
    form = " ".join(each for part, each in forms.items() if parts[part]) + " UTC"
    return [
        {
            "iso": _when(at)[0],
            "text": _moment(at).strftime(form),
            "parts": " ".join(part for part, needed in parts.items() if needed),
        }
        for at in (begin, (begin + end) / 2, end)
    ]


def _intervals(estimates: Sequence[Estimate]) -> list[dict[str, Any] | None]:
    """Where the bounds and the mean of every arm are on one line from 0 to 100."""
    known = [each for each in estimates if each.low is not None and each.high is not None]
    low = min((each.low for each in known if each.low is not None), default=0.0)
    high = max((each.high for each in known if each.high is not None), default=1.0)

    def at(value: float) -> float:
        return round(100 * ((value - low) / (high - low)), 1) if high > low else 0.0

    return [
        None
        if each.low is None or each.high is None or each.mean is None
        else {"low": at(each.low), "mean": at(each.mean), "wide": round(at(each.high) - at(each.low), 1)}
        for each in estimates
    ]
