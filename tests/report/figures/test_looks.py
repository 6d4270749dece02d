"""What all pictures share."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from hybandits import paper
from hybandits.report.figures import looks


def test_every_policy_looks_different() -> None:
    names = [*looks.COLOURS, "Someone", "Someone else"]
    chosen = looks.styles_of(names)
    for looked_at in (lambda s: s.colour, lambda s: str(s.dash), lambda s: s.marker):
        assert len({looked_at(style) for style in chosen.values()}) == len(names)
    for name in (*paper.PAPER_POLICIES, *paper.BASELINES, *paper.BEYOND):
        assert name in looks.COLOURS


def test_any_number_of_policies_can_be_told_apart() -> None:
    """No two share colour and dash, and one keeps its style wherever it is shown."""
    names = [*looks.COLOURS, *(f"policy {i}" for i in range(100))]
    with looks.styles_for(names):
        chosen = looks.styles_of(names)
        alone = looks.styles_of(["policy 41"])
    assert len({(style.colour, str(style.dash)) for style in chosen.values()}) == len(names)
    assert alone["policy 41"] == chosen["policy 41"]
    assert looks.styles_of(["policy 41"])["policy 41"] == looks.spare_style(0), (
        "outside, there is nobody to differ from"
    )


def test_axes_that_are_to_be_compared_are_shared() -> None:
    one, two = Figure().subplots(1, 2)
    one.set(xlim=(0, 5), ylim=(1, 9))
    two.set(xlim=(1, 8), ylim=(0, 2))
    looks.share_limits([one, two])
    assert one.get_xlim() == two.get_xlim() == (0, 8)
    assert one.get_ylim() == two.get_ylim() == (0, 9)


def test_names_on_a_logarithmic_axis_have_room() -> None:
    assert looks._spread_out([10, 25, 50, 100, 200, 300, 400]) == [400, 200, 100, 50, 25, 10]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (20_000, "20,000"), (3_000_000, "3M"), (2_500_000, "2.5M"), (0.5, "0.5")]
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert looks.thousands(value) == text
