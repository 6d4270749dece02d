"""Pictures of environments: every fresh one is a dot, the paper's own are marked."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest

from hybandits.paper.published_numbers import published
from hybandits.report.figures import draw_all
from hybandits.report.figures.environments import draw_environments, environment_means
from hybandits.report.figures.looks import LOOK
from tests.support.fabricated_results import fabricate, fresh_setting, small_setting

pytestmark = pytest.mark.slow  # drawing takes seconds


@pytest.fixture(autouse=True)
def _look() -> object:
    with matplotlib.rc_context(LOOK):
        yield


def test_fresh_environments_have_one_figure_and_none_of_the_others(tmp_path: Path) -> None:
    records = [fresh_setting("setting-1"), fresh_setting("setting-3"), small_setting("setting-1")]
    drawn = {figure.name: figure for figure in draw_all(fabricate(tmp_path, *records), tmp_path, published)}
    assert {name for name in drawn if "fresh" in name} == {
        "released-setting-1-fresh-environments", "released-setting-3-fresh-environments",
    }  # fmt: skip
    one = drawn["released-setting-1-fresh-environments"]
    assert one.section == "regret"
    assert one.caption.startswith("6 runs (6 environments, 1 trial each), 10,000 rounds.")
    assert "Diamonds: the 3 environments of setting 1, mean over trials." in one.caption
    assert "median regret at T with 25 arms, lowest to highest: HyLinUCB 205 (154 to 256)" in one.alt
    alone = drawn["released-setting-3-fresh-environments"]
    assert alone.wide, "three numbers of arms side by side"
    assert "Diamonds" not in alone.caption
    assert "K = 400" in alone.files[1].read_text(encoding="utf-8")


def test_regrets_of_nothing_can_be_drawn(tmp_path: Path) -> None:
    """Logarithmic axes have no place for 0."""
    outcome = fabricate(tmp_path, fresh_setting("setting-1")).outcomes["setting-1-fresh", "released"]
    object.__setattr__(outcome, "final", lambda policy, arms=None: np.zeros(6))
    assert "HyIDS 0 (0 to 0)" in draw_environments(outcome, None, tmp_path).alt


def test_means_of_environments_are_over_their_trials(tmp_path: Path) -> None:
    outcome = fabricate(tmp_path, small_setting("setting-1")).outcomes["setting-1", "released"]
    np.testing.assert_allclose(environment_means(outcome, "LinUCB", 25), [243 * 0.9, 243, 243 * 1.1])
