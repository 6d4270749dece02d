"""How much was run, in phrases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hybandits.experiments.results import read_results
from hybandits.report import scope
from tests.support.fabricated_results import (
    fabricate,
    fabricate_both,
    fabricate_log,
    fresh_setting,
    on_a_log,
    small_setting,
)


def test_what_falls_short_of_the_paper(tmp_path: Path) -> None:
    results = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    assert scope.shortened(results) == [
        "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments",
        "Yahoo: 200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
    ]
    assert scope.of_the_paper(results)


def test_ones_own_experiments_fall_short_of_nothing(tmp_path: Path) -> None:
    record = replace(small_setting("setting-1", policies=("Greedy",)), protocol="own")
    results = fabricate(tmp_path, record)
    assert scope.shortened(results) == []
    assert not scope.of_the_paper(results)


def test_an_unfinished_log_is_said(tmp_path: Path) -> None:
    clicks = on_a_log(trials=1)
    results = fabricate_both(tmp_path / "out", small_setting("setting-1"), clicks)
    next(results.folder.glob("units/yahoo/released/*HyThompson*")).unlink()
    assert scope.unfinished(read_results(results.folder)) == ["Yahoo, released protocol"]


def test_cases_without_results_are_named(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3"), leave_out="K50")
    assert scope.unfinished(results) == ["Setting 3, released protocol, K = 50"]


def test_experiments_of_equal_length_go_together(tmp_path: Path) -> None:
    records = [small_setting("setting-1"), small_setting("setting-2"), small_setting("diversity")]
    records.append(small_setting("setting-1", "written"))
    lengths = scope.lengths(fabricate(tmp_path, *records))
    assert [(names, e.horizon, e.trials) for names, e in lengths] == [
        (["Setting 1", "Setting 2"], 10_000, 2), (["Diversity"], 5000, 4),
    ]  # fmt: skip


def test_a_synthetic_log_is_warned_of(tmp_path: Path) -> None:
    assert "not on Yahoo's data" in scope.synthetic_note(fabricate_log(tmp_path, on_a_log()))
    (tmp_path / "real").mkdir()
    assert scope.synthetic_note(fabricate_log(tmp_path / "real", on_a_log(synthetic=False))) == ""


def test_fresh_environments_fall_short_in_rounds_only(tmp_path: Path) -> None:
    """They have one trial each, and there are as many as were asked for."""
    results = fabricate(tmp_path, fresh_setting("setting-1"))
    assert scope.shortened(results) == ["Setting 1, fresh environments: 10,000 of 80,000 rounds"]
    ((names, experiment),) = scope.lengths(results)
    assert (names, len(experiment.seeds)) == (["Setting 1, fresh environments"], 6)
