"""What is drawn of an outcome, as numbers and in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose

from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.published_numbers import published
from hybandits.report.figures import outcomes
from tests.support.fabricated_results import fabricate, fabricate_log, on_a_log, small_setting


def test_curve_is_mean_lowest_and_highest_run(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), small_setting("setting-3"))
    one = outcomes.curve(results.outcomes["setting-1", "released"], "LinUCB")
    assert_allclose([one.mean[-1], one.low[-1], one.high[-1]], 243 * np.array([1, 0.895, 1.105]))
    assert_allclose(one.x, [1000, 2500, 5000, 10_000])
    other = outcomes.curve(results.outcomes["setting-3", "released"], "DisLinUCB")
    assert_allclose(other.x, [10, 50])
    assert_allclose(other.mean, [48, 277])
    dots = outcomes.read_outs(results.outcomes["setting-1", "released"], "LinUCB", published)
    assert dots == {1000: 76, 2500: 129, 5000: 178, 10_000: 243}, "no dots beyond our last round"
    dots = outcomes.read_outs(results.outcomes["setting-3", "released"], "LinUCB", published)
    assert dots == {50: 917}, "hidden behind a marker at K = 10"
    assert outcomes.last_read_out(results.outcomes["setting-1", "released"], "HyRan", 25, published) is None


def test_thinned_to_few_points() -> None:
    keep = outcomes.thin(np.arange(80_000.0))
    assert len(keep) == outcomes.MOST_POINTS
    assert keep[0] == 0
    assert keep[-1] == 79_999
    assert list(outcomes.thin(np.arange(3.0))) == [0, 1, 2]


def test_quantiles_at_equal_pulls() -> None:
    # Two arms of one run: values are twice and four times the pulls; the second arm is pulled up to 10 only.
    pulls = np.array([[[0.0, 0.0], [10.0, 5.0], [20.0, 10.0]]])
    values = pulls * np.array([2.0, 4.0])
    low, high = outcomes.by_pulls(pulls, values, np.array([0.0, 5.0, 10.0, 20.0, 30.0]), (0, 1))
    assert_allclose(low, [0, 10, 20, 40, np.nan])
    assert_allclose(high, [0, 20, 40, 40, np.nan])


def test_regret_relative_to_the_same_trial(tmp_path: Path) -> None:
    outcome = fabricate_log(tmp_path, on_a_log(trials=3), spread=50.0).outcomes["yahoo", "released"]
    one = outcomes.relative_curve(outcome, "DisLinUCB")
    # 0.1 letters of the name, here one, times the spread; signs change from trial to trial.
    assert_allclose([one.mean[-1], one.low[-1], one.high[-1]], [400 + 5 / 3, 395, 405])
    assert outcomes.rivals(outcome) == ["LinUCB", "DisLinUCB", HYRAN_RELEASED, "HyRan"]


def test_twins_and_what_the_defect_changes(tmp_path: Path) -> None:
    outcome = fabricate_log(tmp_path, on_a_log(defect=True, trials=1), spread=0.0).outcomes["yahoo", "released"]
    assert list(outcomes.twins(outcome)) == ["HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED]
    said = outcomes.change(outcome, "HyLinUCB", "HyLinUCB, defect", lambda regret: f"{regret:.0f}")
    assert said == "HyLinUCB 1100 instead of 1000"
    said = outcomes.change(outcome, "HyLinUCB", "HyLinUCB, defect", lambda regret: "much")
    assert said == "HyLinUCB much with and without it"


def test_runs_in_words(tmp_path: Path) -> None:
    setting = fabricate(tmp_path, small_setting("setting-1", policies=("Greedy",))).outcomes["setting-1", "released"]
    assert outcomes.runs_in_words(setting) == "6 runs (3 environments, 2 trials each)"
    log = fabricate_log(tmp_path, on_a_log(trials=1)).outcomes["yahoo", "released"]
    assert outcomes.runs_in_words(log) == "1 trial on one synthetic log"
    assert outcomes.under_and_log(log) == "released protocol (synthetic log, not Yahoo's data)"
    assert outcomes.under("own") == "own experiment"
