"""Scores: arithmetic on numbers that are known."""

from __future__ import annotations

import doctest
import math
from typing import Any

import pytest

from library_benchmark import report, scores
from library_benchmark.scores import results, score


def run(method: str, seed: int, reward: float, *, variant: str = "", reason: str = "") -> dict[str, Any]:
    return {
        "stream": "terrain", "method": method, "variant": variant, "seed": seed, "rounds": 100, "reward": reward,
        "uniform": 20.0, "best": 120.0, "seconds": 0.2, "reason": reason,
    }  # fmt: skip


@pytest.mark.parametrize("module", [scores, report])
def test_the_examples_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_score_is_the_share_of_what_is_possible_beyond_chance() -> None:
    assert score(120.0, 20.0, 120.0) == 1
    assert score(20.0, 20.0, 120.0) == 0
    assert score(10.0, 20.0, 120.0) == pytest.approx(-0.1)
    assert math.isnan(score(5.0, 5.0, 5.0))


def test_defaults_and_the_best_of_the_grid_are_kept_apart() -> None:
    runs = [run("HyLinUCB", seed, 50.0 + seed) for seed in (1, 2)]
    runs += [run("HyLinUCB", seed, 80.0, variant="alpha=0.1") for seed in (1, 2)]
    runs += [run("HyLinUCB", 1, 119.0, variant="alpha=1.0")]  # not played with every seed
    result = results(runs)["terrain", "HyLinUCB"]
    assert result.default is not None
    assert result.tuned is not None
    assert result.default.mean == pytest.approx(0.315)
    assert (result.tuned.mean, result.tuned_settings) == (pytest.approx(0.6), "alpha=0.1")
    assert result.milliseconds == pytest.approx(2.0)


def test_a_method_that_fails_once_has_no_score() -> None:
    runs = [run("HyLinUCB", 1, 90.0), run("HyLinUCB", 2, math.nan, reason="ValueError: no")]
    result = results(runs)["terrain", "HyLinUCB"]
    assert (result.default, result.reason) == (None, "ValueError: no")


def test_the_ranking_counts_missing_streams_as_chance() -> None:
    runs = [run("HyIDS", 1, 90.0), run("Greedy", 1, 100.0), run("Uniform", 1, math.nan, reason="no")]
    runs += [{**run("HyIDS", 1, 90.0), "stream": "wine"}]
    by_key = results(runs)
    assert report.ranking(by_key) == ["HyIDS", "Greedy", "Uniform"]
    assert report.mean_score(by_key, "Greedy", ["terrain", "wine"]) == pytest.approx(0.4)
    assert report.winner(by_key, "terrain") == "Greedy"


def test_a_method_for_some_streams_only_has_no_mean_of_all() -> None:
    """Streams of other kinds neither lower its score nor put it ahead."""
    name = "bayesianbandits empirical Bayes, forgetting"
    runs = [run("HyIDS", 1, 90.0), run("Uniform", 1, 20.0), run(name, 1, math.nan, reason="it is run only in ..")]
    runs += [{**each, "stream": "one jump", "reward": 119.0, "reason": ""} for each in runs]
    by_key = results(runs)
    assert report.ranking(by_key) == ["HyIDS", "Uniform", name]
    assert math.isnan(report.mean_score(by_key, name, ["terrain", "one jump"]))
    assert report.mean_score(by_key, name, ["one jump"]) == pytest.approx(0.99)
    assert f"| {name} | - | 99 | - |" in report.summary(by_key)
