"""The picture of running estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits.evaluation import Evaluation
from hybandits.evaluation.results import Estimate, Running
from hybandits.report.figures.running_estimates import bands_in_words, draw_running


def evaluation(*pairs: tuple[str, str], interval: str = "bootstrap", follow: bool = True) -> Evaluation:
    """Estimates of these policies by these estimators, which come in like 1/t."""
    rounds = np.arange(1, 101)
    value = 0.05 + 0.1 / rounds
    running = Running(rounds=rounds, weight=rounds + 0.0, value=value, low=value - 0.01, high=value + 0.01)
    estimates = [
        Estimate(policy=policy, estimator=estimator, value=0.05, running=running if follow else None)
        for policy, estimator in pairs
    ]
    return Evaluation(rounds=100, level=0.95, interval=interval, features="das", estimates=estimates, diagnostics={})


@pytest.mark.slow
def test_a_panel_per_estimator_and_the_same_bytes_again(tmp_path: Path) -> None:
    estimated = evaluation(("uniform", "ips"), ("LinUCB", "ips"), ("uniform", "dr"), ("uniform", "dm"))
    (tmp_path / "again").mkdir()
    for png, svg in (draw_running(estimated, tmp_path), draw_running(estimated, tmp_path / "again")):
        assert png.read_bytes() == (tmp_path / "running.png").read_bytes()
        assert svg.read_bytes() == (tmp_path / "running.svg").read_bytes()
    text = (tmp_path / "running.svg").read_text(encoding="utf-8")
    for words in ("ips", "dr", "dm", "uniform", "LinUCB", "rounds evaluated", bands_in_words(estimated)):
        assert f">{words}<" in text
    assert {path.name for path in tmp_path.iterdir()} == {"running.png", "running.svg", "again"}


def test_nothing_to_draw_is_no_file(tmp_path: Path) -> None:
    assert draw_running(evaluation(("uniform", "ips"), follow=False), tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_what_the_bands_are() -> None:
    pair: Any = ("uniform", "ips")
    assert bands_in_words(evaluation(pair)) == "bands: 95 % at each round by itself, normal approximation"
    assert bands_in_words(evaluation(pair, ("uniform", "dm"))).endswith("none for dm, whose model has seen all rounds")
    assert bands_in_words(evaluation(pair, interval="bernstein")) == "bands: 95 %, at all rounds at once"
