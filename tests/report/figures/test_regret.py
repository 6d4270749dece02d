"""Pictures of regret: which policies are in each, and what their words say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest

from hybandits import paper
from hybandits.experiments.results import Outcome
from hybandits.paper.published_numbers import READ_OUT_ERRORS, published
from hybandits.report.figures import regret
from hybandits.report.figures.looks import LOOK
from tests.support.fabricated_results import fabricate, small_setting

pytestmark = pytest.mark.slow  # drawing takes seconds


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    policies = ("HyLinUCB", "LinUCB", "HyRan", paper.HYRAN_RELEASED, *paper.BEYOND)
    results = fabricate(tmp_path_factory.mktemp("results"), small_setting("setting-1", policies=policies))
    return results.outcomes["setting-1", "released"]


@pytest.fixture(autouse=True)
def _look() -> object:
    with matplotlib.rc_context(LOOK):
        yield


def test_the_papers_policies_stand_apart_from_the_others(outcome: Outcome, tmp_path: Path) -> None:
    assert regret.beyond_names(outcome) == [paper.HYTHOMPSON_TOLD, "HyThompson", "HyIDS", "Greedy"]
    setting = regret.draw_setting(outcome, tmp_path, published)
    assert "HyRan" in setting.alt
    assert "Greedy" not in setting.alt
    beyond = regret.draw_beyond(outcome, tmp_path)
    assert all(name in beyond.alt for name in ("HyLinUCB", *paper.BEYOND))
    assert "LinUCB 243" not in beyond.alt


def test_the_defect_of_hyran_in_numbers(outcome: Outcome, tmp_path: Path) -> None:
    figure = regret.draw_hyran(outcome, tmp_path)
    # 677 is published for HyRan (released); the fabricated HyRan is at 100 + 10 letters + 25 arms.
    assert f"its regret is {677 / 175:.2f} times that of HyRan" in figure.caption


def test_panels_without_a_log_show_ratios(outcome: Outcome, tmp_path: Path) -> None:
    figure = regret.draw_panels({"setting-1": outcome}, "released", tmp_path, published, READ_OUT_ERRORS.__getitem__)
    svg = figure.files[1].read_text(encoding="utf-8")
    assert "(b) Setting 2: not in these results" in svg
    assert "(d) our regret at T divided by the published" in svg
    assert "bars show the ratio if the read-out is off by 10" in figure.caption


def test_panels_without_a_published_number_say_so(outcome: Outcome, tmp_path: Path) -> None:
    figure = regret.draw_panels({"setting-1": outcome}, "written", tmp_path, lambda *_: {}, READ_OUT_ERRORS.__getitem__)
    assert "no published read-out at these rounds" in figure.files[1].read_text(encoding="utf-8")
    assert "Edged markers" not in figure.caption


def test_no_regret_at_all_can_be_drawn(outcome: Outcome, tmp_path: Path) -> None:
    """Logarithmic axes have no place for 0."""
    nothing = replace(outcome, experiment=replace(outcome.experiment, protocol="own"))
    object.__setattr__(nothing, "regret", lambda policy, arms=None: 0.0 * outcome.regret(policy, arms))
    figure = regret.draw_setting(nothing, tmp_path, published)
    assert "Greedy 0" in figure.alt
