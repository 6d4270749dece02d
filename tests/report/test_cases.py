"""Results in order and in words, and how much was run."""

from __future__ import annotations

from pathlib import Path

from hybandits.experiments.results import read_results
from hybandits.report import cases
from tests.support.fabricated_results import (
    fabricate,
    fabricate_both,
    on_a_log,
    small_setting,
)


def test_results_falling_short_of_the_paper(tmp_path: Path) -> None:
    results = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    assert cases.shortened(results) == [
        "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments",
        "Yahoo: 200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
    ]
    assert cases.of_the_paper(results)
    assert [o.experiment.name for o in cases.in_order(results)] == ["setting-1", "yahoo"]


def test_unfinished_cases_are_named(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3"), leave_out="K50")
    assert cases.unfinished(results) == ["Setting 3, released protocol, K = 50"]
    both = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    next(both.folder.glob("units/yahoo/released/*HyThompson*")).unlink()
    assert cases.unfinished(read_results(both.folder)) == ["Yahoo, released protocol"]
