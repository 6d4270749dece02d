"""Figures as elements of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybandits.report import pictures
from hybandits.report.figures import Figure

SVG = """<?xml version="1.0"?><!DOCTYPE svg>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt" viewBox="0 0 9 9"><metadata>x</metadata>
<defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
<g id="figure_1"><path id="glyph" d="M 1.23456 2 L 3 4.5678" transform="scale(0.015625)"/>
<use xlink:href="#glyph" x="1.999999" y="0" clip-path="url(#clip)"/><clipPath id="clip"/></g></svg>"""


def test_pictures_are_embedded_lean_and_with_ids_of_their_own() -> None:
    inline = pictures.inline_svg(SVG, "f7", "what it shows")
    assert inline.startswith('<svg viewBox="0 0 9 9" role="img" aria-label="what it shows"')
    assert 'id="f7-glyph" d="M 1.23 2 L 3 4.57" transform="scale(0.015625)"' in inline
    assert 'href="#f7-glyph" x="2"' in inline
    assert "url(#f7-clip)" in inline
    assert 'id="f7-clip"' in inline
    assert "figure_1" not in inline, "ids that nobody refers to are dropped"
    for gone in ("metadata", "xlink", "<style", "<?xml"):
        assert gone not in inline


def test_long_lines_lose_points_that_fall_together() -> None:
    points = " ".join(f"L {1 + i / 100:.6f} 2.000000" for i in range(100))
    assert pictures._coarse(f"M 1.000000 2.000000 \n{points} \nz") == (
        "M1.0 2.0 L1.1 2.0 1.2 2.0 1.3 2.0 1.4 2.0 1.5 2.0 1.6 2.0 1.7 2.0 1.8 2.0 1.9 2.0 2.0 2.0 z"
    )


def figure(folder: Path, name: str, *, wide: bool = True, protocol: str = "released") -> Figure:
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    png.write_bytes(b"\x89PNG")
    svg.write_text(SVG)
    return Figure(
        name=name, title="", caption="", alt="<x>", files=(png, svg), protocol=protocol, section="regret", wide=wide
    )


def test_a_large_picture_is_embedded_as_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = figure(tmp_path, "one")
    assert pictures.embedded(one, "f0").startswith("<svg")
    monkeypatch.setattr(pictures, "LARGEST_SVG", 10)
    assert pictures.embedded(one, "f0") == '<img src="data:image/png;base64,iVBORw==" alt="&lt;x&gt;">'


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
