"""SVG files made lean."""

from __future__ import annotations

from hybandits.report.figures.svg import coarse, lean_svg


def test_long_lines_lose_points_that_fall_together() -> None:
    points = " ".join(f"L {1 + i / 100:.6f} 2.000000" for i in range(100))
    assert coarse(f"M 1.000000 2.000000 \n{points} \nz") == (
        "M1.0 2.0 L1.1 2.0 1.2 2.0 1.3 2.0 1.4 2.0 1.5 2.0 1.6 2.0 1.7 2.0 1.8 2.0 1.9 2.0 2.0 2.0 z"
    )


def test_digits_comments_and_unused_ids_go() -> None:
    lean = lean_svg(
        '<svg><!-- words --><metadata>\nx</metadata>\n  <g id="figure_1"><path id="glyph" d="M 1.23456 2 L 3 4.5678" '
        'transform="scale(0.015625)"/><use href="#glyph" x="1.999999"/><g id="panel-0"/><g id="curve-3-12"/>'
        '<text transform="rotate(-90 12.345678 3.456789)">t</text></g></svg>'
    )
    assert lean == (
        '<svg>\n<g><path id="glyph" d="M 1.23 2 L 3 4.57" transform="scale(0.015625)"/><use href="#glyph" x="2"/>'
        '<g id="panel-0"/><g id="curve-3-12"/><text transform="rotate(-90 12.35 3.46)">t</text></g></svg>\n'
    )
