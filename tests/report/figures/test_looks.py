"""What all pictures share."""

from __future__ import annotations

import pytest

from hybandits import paper
from hybandits.report.figures import looks


def test_every_policy_looks_different() -> None:
    names = [*looks.COLOURS, "Someone", "Someone else"]
    chosen = looks.styles_of(names)
    for looked_at in (lambda s: s.colour, lambda s: str(s.dash), lambda s: s.marker):
        assert len({looked_at(style) for style in chosen.values()}) == len(names)
    for name in (*paper.PAPER_POLICIES, *paper.BASELINES, *paper.BEYOND):
        assert name in looks.COLOURS


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (20_000, "20,000"), (3_000_000, "3M"), (2_500_000, "2.5M"), (0.5, "0.5")]
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert looks.thousands(value) == text
