"""Figures as elements of the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hybandits.report import pictures
from hybandits.report.colours import dark_counterpart
from hybandits.report.figures import Figure
from hybandits.report.figures.plotted import Key, Panel, Plotted, Series

SVG = """<?xml version="1.0"?><!DOCTYPE svg>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt" viewBox="0 0 9 9">
<metadata>x</metadata><defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
<g id="panel-0"><g><path d="M 0 0" style="fill: #ffffff"/></g>
<path id="glyph" d="M 1 2" style="stroke: #00ff7f; fill: none"/>
<g id="curve-1-3"><use xlink:href="#glyph" x="2" clip-path="url(#clip)"/></g></g>
<g id="panel-1"><text style="font-size: 10px; font-family: 'DejaVu Sans'; text-anchor: end">5</text></g>
<g id="key-0"><path d="M 3 4"/></g><clipPath id="clip"/></svg>"""

NUMBERS = {"mean": [10.123456, float("nan")], "lowest": [9.0, 1.0], "highest": [11.0, 2.0]}
PLOTTED = Plotted(
    panels=tuple(
        Panel(title, "rounds played, t", box, box, (False, 0.0, 9.0), (True, 1.0, 100.0))
        for title, box in (("left", (0.0, 0.0, 4.0, 3.0)), ("right", (4.0, 0.0, 9.0, 4.0)))
    ),
    keys=(Key("<b>", (1.0, 8.0, 3.0, 9.0)), Key("else", (4.0, 8.0, 5.0, 9.0))),
    names=("a", "<b>"),
    series=(
        Series(0, "<b>", [1.0, 2.0], NUMBERS, "runs", True),
        Series(1, "<b>", [1.0, 2.0], NUMBERS, "runs", True),
        Series(1, "a", [5.0], {"published": [7.0]}, "", False),
    ),
)  # fmt: skip


def test_panels_are_cut_out_with_ids_of_their_own() -> None:
    (left, right), (key, other) = pictures.cut(SVG, PLOTTED, "f7", "what it <shows>")
    assert left.startswith(
        '<svg class="panel" viewBox="-4.0 -4.0 11.0 10.0" role="img" aria-label="what it &lt;shows&gt;"'
    )
    assert right.startswith('<svg class="panel" viewBox="1.0 -3.0 11.0 10.0" role="img" aria-label="right"')
    assert 'id="f7-glyph"' in left
    assert 'href="#f7-glyph"' in left
    assert "url(#f7-clip)" in left
    assert '<clipPath id="f7-clip"' in left
    assert 'class="curve" data-curve="1"' in left
    assert 'style="stroke:var(--c00ff7f);fill:none"' in left
    assert "ffffff" not in left, "the page has a ground of its own"
    assert '<text style="font-size:10px;text-anchor:end">5</text>' in right, "the page's fonts"
    assert (key.label, key.curve) == ("<b>", 1)
    assert 'd="M 3 4"' in key.markup
    assert other.curve is None
    for gone in ("metadata", "xlink", "<style", "<?xml", "xmlns", "panel-0"):
        assert gone not in left + right
    assert pictures.colours_of(left) == {"00ff7f": dark_counterpart("#00ff7f")}


def test_a_file_without_known_panels_is_one() -> None:
    (whole,), keys = pictures.cut(SVG, Plotted(), "f7", "all")
    assert whole.startswith('<svg viewBox="0 0 9 9" role="img" aria-label="all"')
    assert keys == []
    assert 'd="M 3 4"' in whole


def test_curves_are_data_for_the_script() -> None:
    text = pictures._data(PLOTTED)
    assert "<" not in text, "no name can end the script"
    data = json.loads(text)
    assert data["names"] == ["a", "<b>"]
    assert data["series"] == [
        {"says": "mean", "band": "runs", "x": [1, 2], "y": [[10.123, None], [9, 1], [11, 2]]},
    ]
    assert [panel["curves"] for panel in data["panels"]] == [[[1, 0]], [[1, 0]]], "both panels show the same numbers"
    assert data["panels"][0]["y"] == [True, 1.0, 100.0]


def figure(folder: Path, name: str, *, wide: bool = True, protocol: str = "released") -> Figure:
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    png.write_bytes(b"\x89PNG")
    svg.write_text(SVG)
    return Figure(
        name=name, title="", caption="", alt="<x>", files=(png, svg), protocol=protocol, section="regret", wide=wide,
        plotted=PLOTTED,
    )  # fmt: skip


def test_a_large_picture_is_embedded_as_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = figure(tmp_path, "one")
    assert pictures.embedded(one, "f0").markup.startswith("<svg")
    monkeypatch.setattr(pictures, "LARGEST_SVG", 10)
    assert pictures.embedded(one, "f0").markup == '<img src="data:image/png;base64,iVBORw==" alt="&lt;x&gt;">'
    assert pictures.embedded(one, "f0").links == [("PNG", "one.png"), ("SVG", "one.svg")]


def test_narrow_pictures_stand_side_by_side_under_their_protocol(tmp_path: Path) -> None:
    drawn = [
        figure(tmp_path, "a"), figure(tmp_path, "b", wide=False), figure(tmp_path, "c", wide=False),
        figure(tmp_path, "d", protocol="written"),
    ]  # fmt: skip
    galleries = pictures.galleries(drawn)
    assert galleries["panels"] == []
    names = [
        (protocol, [(row.wide, [picture.figure.name for picture in row.pictures]) for row in rows])
        for protocol, rows in galleries["regret"]
    ]
    assert names == [("released", [(True, ["a"]), (False, ["b", "c"])]), ("written", [(True, ["d"])])]
    ids = [picture.markup for _, rows in galleries["regret"] for row in rows for picture in row.pictures]
    assert all(f'id="f{i}-glyph"' in markup for i, markup in enumerate(ids)), "ids of different pictures do not clash"


def test_the_page_begins_with_the_published_figure(tmp_path: Path) -> None:
    setting = figure(tmp_path, "a")
    panels = replace(figure(tmp_path, "b"), section="panels")
    first = pictures.first_picture([setting, panels])
    assert first is not None
    assert first.figure.name == "b"
    assert pictures.first_picture([]) is None
