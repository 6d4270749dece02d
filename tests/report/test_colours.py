"""Colours of figures on a dark page."""

from __future__ import annotations

import pytest

from hybandits.report.colours import contrast, dark_counterpart, darkened
from hybandits.report.figures import looks

DARK_PAGE = "#16181b"
"""--page of templates/page.css, dark."""


def test_what_is_dark_on_white_is_light_on_dark() -> None:
    colours = [*looks.COLOURS.values(), *looks._SPARE_COLOURS, "#000000", "#222222", "#444444", "#555555", "#8a1c12"]
    for colour in colours:
        assert contrast(dark_counterpart(colour), DARK_PAGE) >= 4.5
    assert len({dark_counterpart(colour) for colour in colours}) == len(set(colours)), "those that differ still do"


@pytest.mark.parametrize("colour", ["#000000", "#123456", "#ffffff", "#ff0000", "#00ff00"])
def test_every_colour_has_a_counterpart(colour: str) -> None:
    dark = dark_counterpart(colour)
    assert len(dark) == 7
    assert dark_counterpart(colour) == dark
    if len({colour[1:3], colour[3:5], colour[5:]}) == 1:
        assert dark[1:3] == dark[3:5] == dark[5:], "grey stays grey"


def test_darkened() -> None:
    assert darkened("#0072b2", 1.0) == "#000000"
    assert darkened("#0072b2", 0.0) == "#0072b2"
