"""Colours of figures on a dark page: the same hue, as light there as it is dark on white."""

from __future__ import annotations

import math

DARKEST, LIGHTEST, LIGHTEST_COLOUR = 0.6, 0.97, 0.88
"""Lightness on a dark page of what is lightest on a light one, of black, and of what is as dark but full of colour. If
that were lighter still, nobody could tell what colour it is."""


def dark_counterpart(colour: str) -> str:
    """The colour, given as #rrggbb, that plays the same part on a dark page.

    The hue stays. The lightness, in Björn Ottosson's Oklab, is turned round, so that the darkest lines become the
    lightest and those that differ still do; where the screen cannot show the result, it is a little paler.

    >>> dark_counterpart("#000000"), dark_counterpart("#0072b2")
    ('#f5f5f5', '#4aa4e8')
    """
    lightness, a, b = _oklab(colour)
    fullness = min(1.0, math.hypot(a, b) / 0.1)
    lightest = LIGHTEST - fullness * (LIGHTEST - LIGHTEST_COLOUR)
    turned = lightest - (lightest - DARKEST) * min(1.0, lightness / 0.8)
    chroma = 1.0
    while not all(-1e-9 <= channel <= 1 + 1e-9 for channel in _linear(turned, chroma * a, chroma * b)):
        chroma -= 0.02
    return _hex(_linear(turned, chroma * a, chroma * b))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours by WCAG 2: 1 for equal ones, 21 for black and white.

    >>> round(contrast("#000000", "#ffffff"), 6)
    21.0
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def darkened(colour: str, share: float) -> str:
    """A colour mixed with this share of black.

    >>> darkened("#ff8000", 0.5)
    '#804000'
    """
    return "#" + "".join(f"{round((1 - share) * int(colour[i : i + 2], 16)):02x}" for i in (1, 3, 5))


def _channels(colour: str) -> list[float]:
    """Linear red, green and blue."""
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def _luminance(colour: str) -> float:
    red, green, blue = _channels(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _oklab(colour: str) -> tuple[float, float, float]:
    red, green, blue = _channels(colour)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    middle = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def _linear(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _hex(linear: tuple[float, float, float]) -> str:
    bounded = [min(1.0, max(0.0, v)) for v in linear]
    encoded = [12.92 * v if v <= 0.0031308 else 1.055 * v ** (1 / 2.4) - 0.055 for v in bounded]
    return "#" + "".join(f"{round(255 * v):02x}" for v in encoded)
