"""Figures from fabricated results: which are drawn, and that the same results give the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hybandits import paper
from hybandits.paper.published_numbers import published
from hybandits.report import figures
from hybandits.report.figures import looks
from tests.support.fabricated_results import fabricate, level_of, small_setting

POLICIES = ("HyLinUCB", "LinUCB", "HyRan", paper.HYRAN_RELEASED, "Greedy")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("figures")]  # figures that several tests look at are drawn once


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, figures.Figure]:
    folder = tmp_path_factory.mktemp("results")
    records = [
        small_setting("setting-1", policies=POLICIES),
        small_setting("setting-3", policies=("HyLinUCB", "LinUCB")),
        small_setting("diversity", policies=("HyLinUCB", "DisLinUCB")),
        small_setting("setting-1", "written", policies=("HyLinUCB",)),
    ]
    results = fabricate(folder, *records, leave_out="setting-3/released/K50")
    return {figure.name: figure for figure in figures.draw_all(results, folder / "figures", published)}


def test_what_there_are_results_for_is_drawn_and_nothing_else(drawn: dict[str, figures.Figure]) -> None:
    assert sorted(drawn) == [
        "released-diversity-DisLinUCB",
        "released-diversity-HyLinUCB",
        "released-diversity-coupling",
        "released-diversity-regret",
        "released-panels",
        "released-setting-1",
        "released-setting-1-beyond",
        "released-setting-1-hyran",
        "released-setting-3",
        "written-panels",
        "written-setting-1",
    ]


def test_every_figure_is_a_png_and_an_svg_with_words_and_numbers(drawn: dict[str, figures.Figure]) -> None:
    for figure in drawn.values():
        png, svg, numbers = figure.files
        assert numbers.read_text(encoding="utf-8").startswith("panel,curve,x,")
        assert png.read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(svg).getroot().tag.endswith("svg")
        assert figure.title
        assert figure.caption.endswith(".")
        assert figure.alt.endswith(".")
        assert figure.protocol in ("released", "written")
    leftovers = [path for path in figure.files[0].parent.iterdir() if path.suffix not in (".png", ".svg", ".csv")]
    assert not leftovers, "temporary files are removed"


def test_words_carry_the_numbers(drawn: dict[str, figures.Figure]) -> None:
    level_1 = level_of(small_setting("setting-1"), "HyLinUCB", 25)
    assert f"HyLinUCB {level_1:,.0f}" in drawn["released-setting-1"].alt
    assert "6 runs (3 environments, 2 trials each)" in drawn["released-setting-1"].caption
    assert "Of the published algorithms HyLinUCB has the lowest regret" in drawn["released-setting-1-beyond"].caption
    # 677 is published for HyRan (released); the fabricated HyRan is at 175.
    assert "3.87 times" in drawn["released-setting-1-hyran"].caption
    assert "the published figure" in drawn["released-setting-1"].caption
    assert "Edged markers" not in drawn["written-setting-1"].caption, "published dots are of the released protocol"


def test_same_results_same_bytes(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3", policies=("HyLinUCB", "HyRan")))
    digests = []
    for name in ("one", "two"):
        written = figures.draw_all(results, tmp_path / name, published)
        files = [path for figure in written for path in figure.files]
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])
    assert digests[0] == digests[1]
    assert len(digests[0]) == 6


def test_own_experiments_get_one_figure_with_all_policies(tmp_path: Path) -> None:
    record = replace(
        small_setting("setting-1", policies=("HyLinUCB", "Greedy")), name="mine", protocol="own", probes=()
    )
    entries = tuple(replace(entry, name=f"{entry.name}:x") for entry in record.policies)
    record = replace(record, policies=(*record.policies, *entries), points=(1, 10_000))
    (figure,) = figures.draw_all(fabricate(tmp_path, record), tmp_path, published)
    assert figure.name == "own-mine"
    assert "Greedy:x" in figure.alt
    assert "own experiment" in figure.title


def test_own_experiments_with_several_numbers_of_arms_have_curves_over_rounds(tmp_path: Path) -> None:
    record = small_setting("setting-3", policies=("HyLinUCB", "Greedy"))
    record = replace(record, name="mine", protocol="own", probes=(), points=(1, 10_000, 30_000))
    against_arms, over_rounds = figures.draw_all(fabricate(tmp_path, record), tmp_path, published)
    assert [figure.name for figure in (against_arms, over_rounds)] == ["own-mine", "own-mine-rounds"]
    panels = over_rounds.plotted.panels
    assert [panel.title for panel in panels] == ["K = 10", "K = 50"]
    assert len({(panel.x, panel.y) for panel in panels}) == 1, "they are to be compared: the axes are the same"
    assert over_rounds.files[2].read_text(encoding="utf-8").count("\nK = 50,Greedy,") == 3


def test_a_policy_looks_alike_in_all_figures_of_a_page(tmp_path: Path) -> None:
    """Those that have no style of their own too, whatever other policies a figure shows."""
    record = small_setting("setting-1", policies=("Greedy",))
    one, two = (replace(record.policies[0], name=name) for name in ("first", "second"))
    records = [
        replace(record, name="a", protocol="own", probes=(), policies=(one, two)),
        replace(record, name="b", protocol="own", probes=(), policies=(two,)),
    ]
    both, alone = figures.draw_all(fabricate(tmp_path, *records), tmp_path, published)
    colour = looks.spare_style(1).colour.lower()
    for figure in (both, alone):
        assert colour in figure.files[1].read_text(encoding="utf-8")
    assert looks.spare_style(0).colour.lower() not in alone.files[1].read_text(encoding="utf-8")
