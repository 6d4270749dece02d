"""The section on diversity: its tables, and its sentences on the page and in the opening."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybandits.experiments.results import Results
from hybandits.report.diversity import diversity_findings
from tests.support.fabricated_outcomes import diversity, split, three_runs
from tests.support.html_page import page_about


def results() -> Results:
    """LinUCB's cross blocks grow like a square root where it never learns, all others linearly."""
    e = diversity()
    fabricated = three_runs(split(e, 0.5, 1.0), split(e, 1.0, 1.0), None)
    return replace(fabricated, manifest={"version": "1", "versions": {}, "experiments": []})


def test_growth_is_shown_run_by_run() -> None:
    table = diversity_findings(results()).growth
    assert table is not None
    answers = [[(row[0], row[1], row[-1]) for row in group] for group in table.groups]
    bug, updated = "released code, bug for bug", "released code, every algorithm updated"
    assert answers == [
        [("LinUCB", bug, "yes"), ("HyLinUCB", bug, "no")],
        [("LinUCB", updated, "no"), ("HyLinUCB", updated, "no")],
    ]
    assert [row[2] for group in table.groups for row in group] == ["0.50", "1.00", "1.00", "1.00"]


def test_moments_stand_beside_those_of_independent_directions() -> None:
    """All moments of the arm played are fabricated as 0.25, in 5,000 rounds."""
    tables = diversity_findings(results()).moments
    assert [table.caption.partition(":")[0] for table in tables] == [
        "Diversity, released protocol",
        "Diversity, every algorithm updated, released protocol",
    ]
    (rows,) = tables[0].groups
    assert [row[0] for row in rows] == ["HyLinUCB", "LinUCB", "DisLinUCB"]
    assert {tuple(row[1:3]) for row in rows} == {("25", "0.25 (0.0141)")}, "the longest of 25 in the unit ball"
    assert [(row[5], row[8]) for row in rows] == [("no", "no"), ("no", "yes"), ("no", "no")]


@pytest.mark.slow
def test_the_page_has_the_verdict() -> None:
    page = page_about(results())
    assert "Confirmed: the square root with which, by the paper, the cross blocks B_i grow is that of" in page.text
    assert "of |E x|" not in page.text
    assert "not met by the arm played in 6 and not by single arms in 5" in page.text
    assert "|B_i| grows as the pulls to the power 0.5 / 0.5" in page.text


def test_without_diversity_experiments_nothing_is_shown() -> None:
    none = diversity_findings(replace(results(), outcomes={}))
    assert (none.root, none.growth, none.ridges, none.assumption, none.moments) == (None, None, "", "", [])
