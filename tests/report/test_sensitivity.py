"""Figures of variants: their numbers are those of the runs, and the order stands beside every combination."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hybandits.paper import PAPER_POLICIES
from hybandits.paper.sensitivity import VALUES, courses
from hybandits.report.figures.looks import write_figure
from hybandits.report.figures.sensitivity import factorial_figure, sensitivity_figure
from tests.support.fabricated_outcomes import as_results
from tests.support.fabricated_variants import of_combinations, of_one_setting

pytestmark = pytest.mark.slow


def test_every_variant_is_drawn_with_its_regret_and_coverage(tmp_path: Path) -> None:
    outcome = of_one_setting("written")
    figure = sensitivity_figure(as_results(outcome), "written")
    assert "HyLinUCB: least regret with 0.01 times gamma, covering from 0.1 times gamma on" in figure.alt
    rows = list(csv.DictReader(write_figure(figure, tmp_path, PAPER_POLICIES).files[-1].read_text().splitlines()))
    along = courses(outcome)
    assert len(rows) == sum(map(len, along.values()))
    for row in rows:
        (parameter,) = (name for name in VALUES if row["panel"].endswith(f": {name}"))
        (variant,) = (each for each in along[row["curve"], parameter] if each.value == float(row["x"]))
        assert float(row["mean"]) == pytest.approx(variant.mean, rel=1e-3)
        assert float(row["error / gamma"]) == pytest.approx(variant.ellipsoid, rel=1e-3)


def test_the_order_of_every_combination_is_drawn(tmp_path: Path) -> None:
    levels = {"HyLinUCB": 100.0, "LinUCB": 200.0, "DisLinUCB": 400.0}
    figure = factorial_figure(as_results(of_combinations("released", lambda combination, policy: levels[policy])))
    assert figure.alt.count("HyLinUCB < LinUCB < DisLinUCB") == 4
    rows = list(csv.DictReader(write_figure(figure, tmp_path, PAPER_POLICIES).files[-1].read_text().splitlines()))
    assert len(rows) == 12
    for row in rows:
        assert float(row["low"]) < float(row["regret"]) < float(row["high"])
