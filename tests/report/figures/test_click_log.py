"""Pictures of the experiment on a click log: on a synthetic one, and as if on Yahoo's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hybandits.experiments.results import Results
from hybandits.paper.published_numbers import published
from hybandits.report import figures
from hybandits.report.figures import outcomes
from tests.support.fabricated_results import fabricate_both, fabricate_log, on_a_log, small_setting


def draw(results: Results) -> dict[str, figures.Figure]:
    return {f.name: f for f in figures.draw_all(results, results.folder / "figures", published)}


def svg(figure: figures.Figure) -> str:
    return figure.files[1].read_text(encoding="utf-8")


def dots(figure: figures.Figure) -> int:
    """Published read-outs in a picture: markers with black edges, of a size that only they have."""
    return len(re.findall(r'<use [^>]*style="fill: #[0-9a-f]{6}; stroke: #000000; stroke-width: 0.8', svg(figure)))


@pytest.mark.slow
def test_everything_from_a_synthetic_log_says_so(tmp_path: Path) -> None:
    drawn = draw(
        fabricate_log(tmp_path, on_a_log(defect=True), on_a_log(arms="positions", trials=1), on_a_log("written"))
    )
    assert sorted(drawn) == [
        "released-yahoo", "released-yahoo-defect", "released-yahoo-positions", "released-yahoo-positions-relative",
        "released-yahoo-relative", "written-yahoo", "written-yahoo-relative",
    ]  # fmt: skip
    for figure in drawn.values():
        assert figure.section == "yahoo"
        for text in (svg(figure), figure.caption, figure.title, figure.alt):
            assert outcomes.SYNTHETIC in text.replace("&#39;", "'")
        assert dots(figure) == 0
        assert "Edged markers" not in figure.caption


@pytest.mark.slow
def test_published_dots_are_of_yahoos_log_and_of_rounds_that_were_played(tmp_path: Path) -> None:
    record_ = on_a_log(synthetic=False, rounds=3_000_000, defect=True)
    drawn = draw(fabricate_log(tmp_path, record_, on_a_log("written", synthetic=False, rounds=3_000_000)))
    relative = drawn["released-yahoo-relative"]
    assert dots(relative) == 9, "three algorithms at 1, 2 and 3 million rounds"
    assert "Edged markers" in relative.caption
    assert "need not meet it" in relative.caption
    assert [dots(figure) for figure in drawn.values()].count(0) == len(drawn) - 1
    for figure in drawn.values():
        for text in (svg(figure), figure.caption, figure.title, figure.alt):
            assert "synthetic" not in text
    assert ">3M<" in svg(relative), "3,000,000 would run into its neighbours"


@pytest.mark.slow
def test_the_defect_is_shown_beside_each_algorithm(tmp_path: Path) -> None:
    results = fabricate_log(tmp_path, on_a_log(defect=True, trials=1), spread=0.0)
    figure = draw(results)["released-yahoo-defect"]
    assert "HyLinUCB 1,100 instead of 1,000" in figure.caption
    assert svg(figure).count("+10.0 %") == 4


@pytest.mark.slow
def test_without_hylinucb_there_is_nothing_to_be_relative_to(tmp_path: Path) -> None:
    drawn = draw(fabricate_log(tmp_path, on_a_log(policies=("LinUCB", "HyThompson"), trials=1), spread=0.0))
    assert list(drawn) == ["released-yahoo"]
    assert "HyThompson 45" in drawn["released-yahoo"].alt
    assert "lowest to highest" not in svg(drawn["released-yahoo"]), "one trial has no band"


@pytest.mark.slow
def test_the_fourth_panel_is_yahoos_when_there_is_one(tmp_path: Path) -> None:
    setting = small_setting("setting-1", policies=("HyLinUCB", "LinUCB"))
    clicks = on_a_log(synthetic=False, rounds=2_000_000)
    panels = draw(fabricate_both(tmp_path / "one", setting, clicks))["released-panels"]
    assert "(d) Yahoo: d₁ = 36, d₂ = 6, K = 22" in svg(panels)
    assert "mean regret at T beyond HyLinUCB's: LinUCB" in panels.alt
    assert dots(panels) == 2 * 4 + 3 * 2
    panels = draw(fabricate_both(tmp_path / "two", setting, on_a_log()))["released-panels"]
    assert outcomes.SYNTHETIC in svg(panels).replace("&#39;", "'")
    assert outcomes.SYNTHETIC in panels.caption
    assert dots(panels) == 2 * 4
    panels = draw(fabricate_both(tmp_path / "three", setting, on_a_log(policies=("LinUCB",))))["released-panels"]
    assert "(d) our regret at T divided by the published" in svg(panels)
