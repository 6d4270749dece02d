"""Results in order and in words, and how much was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hybandits.experiments.results import read_results
from hybandits.paper import HYRAN_RELEASED
from hybandits.report import outcomes
from tests.support.fabricated_results import (
    fabricate,
    fabricate_both,
    fabricate_log,
    fresh_setting,
    on_a_log,
    small_setting,
)


def test_runs_in_words(tmp_path: Path) -> None:
    setting = fabricate(tmp_path, small_setting("setting-1", policies=("Greedy",))).outcomes["setting-1", "released"]
    assert outcomes.runs_in_words(setting) == "6 runs (3 environments, 2 trials each)"
    log = fabricate_log(tmp_path, on_a_log(trials=1)).outcomes["yahoo", "released"]
    assert outcomes.runs_in_words(log) == "1 trial on one synthetic log"
    assert outcomes.under_and_log(log) == "released protocol (synthetic log, not Yahoo's data)"
    assert outcomes.under("own") == "own experiment"


def test_twins_and_rivals_on_a_log(tmp_path: Path) -> None:
    outcome = fabricate_log(tmp_path, on_a_log(defect=True, trials=1)).outcomes["yahoo", "released"]
    assert list(outcomes.twins(outcome)) == ["HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED]
    assert outcomes.rivals(outcome) == ["LinUCB", "DisLinUCB", HYRAN_RELEASED, "HyRan"]


def test_environment_means_are_over_trials(tmp_path: Path) -> None:
    outcome = fabricate(tmp_path, small_setting("setting-1")).outcomes["setting-1", "released"]
    assert outcomes.environment_means(outcome, "LinUCB", 25) == pytest.approx([243 * 0.9, 243, 243 * 1.1])


def test_results_falling_short_of_the_paper(tmp_path: Path) -> None:
    results = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    assert outcomes.shortened(results) == [
        "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments",
        "Yahoo: 200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
    ]
    assert outcomes.of_the_paper(results)
    assert [o.experiment.name for o in outcomes.in_order(results)] == ["setting-1", "yahoo"]


def test_fresh_environments_fall_short_in_rounds_only(tmp_path: Path) -> None:
    """They have one trial each, and there are as many as were asked for."""
    results = fabricate(tmp_path, fresh_setting("setting-1"))
    assert outcomes.shortened(results) == ["Setting 1, fresh environments: 10,000 of 80,000 rounds"]


def test_own_experiments_fall_short_of_nothing(tmp_path: Path) -> None:
    record = replace(small_setting("setting-1", policies=("Greedy",)), protocol="own")
    results = fabricate(tmp_path, record)
    assert outcomes.shortened(results) == []
    assert not outcomes.of_the_paper(results)


def test_unfinished_cases_are_named(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3"), leave_out="K50")
    assert outcomes.unfinished(results) == ["Setting 3, released protocol, K = 50"]
    both = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    next(both.folder.glob("units/yahoo/released/*HyThompson*")).unlink()
    assert outcomes.unfinished(read_results(both.folder)) == ["Yahoo, released protocol"]


def test_a_synthetic_log_is_noted(tmp_path: Path) -> None:
    assert "not on Yahoo's data" in outcomes.synthetic_note(fabricate_log(tmp_path, on_a_log()))
    (tmp_path / "real").mkdir()
    assert outcomes.synthetic_note(fabricate_log(tmp_path / "real", on_a_log(synthetic=False))) == ""
