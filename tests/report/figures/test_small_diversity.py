"""The picture of the small diversity problem: that it is drawn, also from little, and what its words say."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

from hybandits.experiments.results import Outcome
from hybandits.report.figures.looks import LOOK
from hybandits.report.figures.outcomes import Figure
from hybandits.report.figures.small_diversity import draw_small_diversity
from tests.support.fabricated_outcomes import fabricated_outcome, root_curves, small_measures, small_problem

pytestmark = pytest.mark.slow


def drawn(outcome: Outcome, folder: Path) -> Figure:
    with matplotlib.rc_context(LOOK):
        return draw_small_diversity(outcome, folder)


def test_every_number_of_arms_has_a_row(tmp_path: Path) -> None:
    e = small_problem()
    figure = drawn(fabricated_outcome(e, root_curves(e, 0.5), small_measures(e, z=0.25)), tmp_path)
    assert figure.name == "released-diversity-small"
    assert (figure.section, figure.wide) == ("diversity", True)
    assert "with 3 arms Uniform 0.25" in figure.alt
    assert "with 6 arms Uniform 0.25" in figure.alt
    assert "d₁ = 2, d₂ = 2, T = 2,500,000" in figure.caption
    svg = figure.files[1].read_text(encoding="utf-8")
    for said in ("K = 3", "K = 6", "T₀ = ", "burn-in T₀", "1/2, what the lemma promises"):
        assert said in svg, said


@pytest.mark.parametrize("policies", [["Uniform"], ["DisLinUCB"], ["HyIDS", "LinUCB"]])
def test_some_policies_are_enough(policies: list[str], tmp_path: Path) -> None:
    e = small_problem(arms=(3,)).only(policies)
    figure = drawn(fabricated_outcome(e, root_curves(e, 0.5), small_measures(e)), tmp_path)
    assert "with 3 arms" in figure.alt
    assert "6 arms" not in figure.alt


def test_no_burn_in_is_drawn_where_there_is_no_diversity(tmp_path: Path) -> None:
    e = small_problem(arms=(3,))
    figure = drawn(fabricated_outcome(e, root_curves(e, 0.5), small_measures(e, rho=0.0)), tmp_path)
    assert "T₀ = " not in figure.files[1].read_text(encoding="utf-8")
