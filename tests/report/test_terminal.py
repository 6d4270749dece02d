"""The tables in the terminal: of experiments, of a log, of an evaluation."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hybandits.evaluation import Evaluation
from hybandits.evaluation.describe import Description, describe
from hybandits.evaluation.results import Diagnostics, Difference, Estimate
from hybandits.evaluation.view import View
from hybandits.experiments.results import Results
from hybandits.paper.judging import judge
from hybandits.report.tables import Table
from hybandits.report.terminal import print_description, print_evaluation, print_summary, show
from tests.support.fabricated_results import fabricate, small_setting
from tests.support.loglike import little_log


def lines_of(print_it: Callable[[Any, Console], None], content: Any) -> list[str]:
    file = io.StringIO()
    print_it(content, Console(file=file, width=60))
    return [line.rstrip() for line in file.getvalue().strip().splitlines()]


def summary_of(results: Results) -> list[str]:
    verdicts = judge(results)
    return lines_of(lambda content, console: print_summary(content, verdicts, console), results)


def test_in_files_lines_are_not_wrapped_and_in_a_terminal_they_fit() -> None:
    table = Table("A caption", ["what", "value"], [[["holds", "long " * 40]], [["x", "1"]]], (1,))
    lines = lines_of(lambda content, console: show(["A note."], [content], console), table)
    assert lines[:3] == ["A note.", "", "A caption"]
    assert lines[4].endswith("long long")
    terminal = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    with terminal.capture() as captured:
        show([], [table], console=terminal)
    assert max(len(line) for line in captured.get().splitlines()) <= 60


def test_the_summary_has_regrets_and_verdicts(tmp_path: Path) -> None:
    settings = small_setting("setting-1"), small_setting("diversity"), small_setting("setting-1", "written")
    results = fabricate(tmp_path, *settings)
    lines = summary_of(results)
    assert lines[0].startswith("The short version: Setting 1: 10,000 of 80,000 rounds")
    at = lines.index(
        "Setting 1, released protocol: regret after 10,000 rounds, K = 25; 6 runs, interval over environments"
    )
    assert lines[at + 1].split()[:2] == ["policy", "mean"]
    row = next(line for line in lines[at:] if line.startswith("LinUCB"))
    assert row.split() == ["LinUCB", "243.0", "182.6", "to", "303.4", "217.5", "268.5", "243", "1.000", "yes"]
    for verdict in judge(results):
        (line,) = [x for x in lines if x.startswith(f"{verdict.claim}  ") and f" {verdict.protocol} " in x]
        assert verdict.title in line
        assert verdict.verdict in line


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Description:
    return describe(View(little_log(tmp_path_factory.mktemp("logs"), clicks=True)))


def test_a_description_has_facts_slices_and_arms(description: Description) -> None:
    lines = lines_of(print_description, description)
    assert any(line.startswith("rounds") and "600 from 2 files" in line for line in lines)
    assert any(line.startswith("propensities") and "to" in line for line in lines)
    assert "Over time" in lines
    assert "Arms shown most" in lines
    assert any("2009-05-01T06:55" in line for line in lines), "times are shown as dates"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"without_propensity": 1200}, "1,200 rounds have no propensity: only the direct method can use them."),
        ({"size": 31.4}, "Features are large: |(x, z)| is 31.4"),
    ],
)
def test_what_to_beware_of_comes_first(description: Description, changes: dict[str, Any], note: str) -> None:
    assert note in lines_of(print_description, replace(description, **changes))[0]
    assert note not in "\n".join(lines_of(print_description, replace(description, without_propensity=0, size=1.0)))


def test_a_log_without_times_and_propensities(description: Description) -> None:
    slices = [replace(part, time=None) for part in description.slices]
    lines = lines_of(print_description, replace(description, slices=slices, lowest_propensity=None))
    assert any(line.split()[-1] == "none" for line in lines if line.startswith("propensities"))


def evaluation(**changes: Any) -> Evaluation:
    """Three policies: the first, one that is better, and one that is refused."""
    estimates = [
        Estimate(policy="uniform", estimator="ips", value=0.04, low=0.03, high=0.05),
        Estimate(
            policy="LinUCB", estimator="ips", value=0.06, low=0.05, high=0.07,
            difference=Difference(to="uniform", value=0.02, low=0.01, high=0.03),
        ),
        Estimate(policy="LinUCB", estimator="dm", value=0.05, refusal="there is no interval for it"),
        Estimate(policy="always a", estimator="ips", refusal="a was never shown"),
    ]  # fmt: skip
    diagnostics = {
        "uniform": Diagnostics(rounds=1000, matched=0.2, mean_weight=1.0, largest_weight=1.0, effective=1000.0),
        "LinUCB": Diagnostics(rounds=1000, matched=0.21, warnings=("Few rounds carry most of the weight.",)),
    }
    settings = {"rounds": 1000, "level": 0.95, "interval": "bootstrap", "features": "das", "estimates": estimates}
    return Evaluation(**{"diagnostics": diagnostics, **settings, **changes})


def test_an_evaluation_has_values_differences_support_and_refusals() -> None:
    lines = lines_of(print_evaluation, evaluation())
    assert lines[0] == "LinUCB: Few rounds carry most of the weight."
    assert "Value per round, 1,000 rounds (bootstrap)" in lines
    assert any(line.split() == ["LinUCB", "ips", "0.06000", "0.05000", "to", "0.07000"] for line in lines)
    at = lines.index("Difference to uniform, on the same rounds")
    assert lines[at + 2].split() == ["LinUCB", "ips", "+0.02000", "+0.01000", "to", "+0.03000", "yes"]
    at = lines.index("Refused")
    assert [line.split()[0] for line in lines[at + 2 :]] == ["LinUCB", "always"]
    assert "a was never shown" in lines[-1]


def test_rounds_kept_and_notes_are_shown_where_there_are_any() -> None:
    assert not any(line.startswith("Notes") or "kept" in line for line in lines_of(print_evaluation, evaluation()))
    noted = Estimate(
        policy="it", estimator="replay", value=0.04, low=0.03, high=0.05, notes=("Kept 120.", "And so on.")
    )
    diagnostics = {
        "it": Diagnostics(rounds=1000, matched=0.2, kept=120.0, keep=0.1),
        "logged": Diagnostics(rounds=1000, matched=1.0),
    }
    lines = lines_of(print_evaluation, evaluation(estimates=[noted], diagnostics=diagnostics))
    at = next(i for i, line in enumerate(lines) if line.startswith("Support"))
    assert lines[at + 1].split()[:4] == ["policy", "rounds", "matched", "kept"]
    assert lines[at + 2].split() == ["it", "1,000", "20.00%", "120", "-", "-", "-"]
    assert lines[at + 3].split() == ["logged", "1,000", "100.00%", "-", "-", "-", "-"]
    assert [line.split(maxsplit=2)[2] for line in lines[lines.index("Notes") + 2 :]] == ["Kept 120.", "And so on."]
