"""Figures on the theorems: their numbers are those of the formulas."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from hybandits.paper import PAPER_POLICIES, bounds
from hybandits.paper.beyond import compared_shapes, forced_cases
from hybandits.paper.exponents import exponents, records
from hybandits.report.figures.looks import Figure, write_figure
from hybandits.report.figures.theory import bounds_figure, exponents_figure, forced_regret_figure
from tests.support.fabricated_results import fabricate, level_of, small_setting

pytestmark = pytest.mark.slow


def numbers_of(figure: Figure, folder: Path) -> list[dict[str, str]]:
    drawn = write_figure(figure, folder, PAPER_POLICIES)
    return list(csv.DictReader(drawn.files[-1].read_text().splitlines()))


def test_ratios_of_bounds_are_drawn_as_they_are_computed(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1", policies=PAPER_POLICIES))
    ((_, problem),) = compared_shapes(results).items()
    rows = numbers_of(bounds_figure(results), tmp_path)
    assert {row["curve"] for row in rows} == set(PAPER_POLICIES)
    for row in rows[:: len(rows) // 20]:
        expected = bounds.ratio(row["curve"], replace(problem, horizon=round(float(row["x"]))))
        assert_allclose(float(row["ratio"]), expected, rtol=1e-3)


def test_forced_regret_stands_beside_the_measured_one(tmp_path: Path) -> None:
    results = fabricate(tmp_path, record := small_setting("setting-1", policies=PAPER_POLICIES))
    (case,) = forced_cases(results, "released")
    rows = {row["curve"]: row for row in numbers_of(forced_regret_figure(results, "released"), tmp_path)}
    (forced,) = (row for name, row in rows.items() if name not in PAPER_POLICIES)
    assert float(forced["regret"]) == pytest.approx(record.horizon * case.forced.mean, rel=1e-3)
    assert float(rows["LinUCB"]["regret"]) == pytest.approx(level_of(record, "LinUCB", 25), rel=1e-3)


def test_exponents_are_drawn_with_their_intervals(tmp_path: Path) -> None:
    results = fabricate(tmp_path, *records("written", scale="quick"))
    figure = exponents_figure(results, "written")
    drawn = {(row["curve"], row["x"]): row for row in numbers_of(figure, tmp_path)}
    symbols = {"d1": "d₁", "d2": "d₂"}
    rows = exponents(results, "written")
    assert len(rows) == 4 * 4
    for row in rows:
        assert row.regret is not None
        name = f"{symbols.get(row.factor, row.factor)}: {row.policy}"
        numbers = [float(drawn[row.policy, name][column]) for column in ("exponent", "lowest", "highest")]
        assert_allclose(numbers, row.regret[:3], rtol=1e-4, atol=1e-9)
        order = drawn["order stated in the theorem", name]["exponent"]
        assert order == "" if row.policy == "HyIDS" else float(order) == pytest.approx(row.order, rel=1e-4)
        assert f"{name} {row.regret.mean:.2f}" in figure.alt
    assert "over 4 fresh environments" in figure.caption
