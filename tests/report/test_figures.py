"""Figures from fabricated results: which are drawn, what is in them, and that the same results give the same bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import __version__, paper
from hybandits.experiments.manifest import FORMAT
from hybandits.experiments.record import Experiment, Unit
from hybandits.experiments.results import Results, Run, read_results, write_unit
from hybandits.report import figures
from hybandits.report.figures import looks, outcomes

SMALL = {"setting-1": (25,), "setting-2": (25,), "setting-3": (10, 50), "diversity": (6,)}


def small(name: str, protocol: Any = "released", *, policies: tuple[str, ...] = (), **changes: Any) -> Experiment:
    """One of the paper's experiments with few environments and points."""
    record = paper.experiment(name, protocol, scale="paper" if name == "setting-3" else "quick")
    diversity = name == "diversity"
    record = replace(
        record,
        arms=SMALL[name],
        seeds=record.seeds[: 1 if diversity else 3],
        trials=4 if diversity else 2,
        trials_per_unit=0,
        points=tuple(t for t in record.points if t in (1000, 2500, 5000, 10_000, 30_000)),
        probes=(10, 100, 1000, 2500, 5000) if diversity else (record.horizon,),
        **changes,
    )
    return record.only(policies) if policies else record


def level(experiment: Experiment, policy: str, arms: int) -> float:
    """The mean regret at T that is fabricated: the published one where it is known."""
    known = paper.published(experiment.name, policy, arms).get(experiment.horizon)
    return 100.0 + 10 * len(policy) + arms if known is None else known


def runs_of(unit: Unit) -> list[Run]:
    """Regret like a square root, environments 10 % apart around the level; a plausible design."""
    e = unit.experiment
    t, runs = np.array(e.points) / e.horizon, []
    probes = np.array(e.probes, dtype=float)
    for entry in e.policies:
        for trial in range(unit.first, unit.last):
            factor = 1 + 0.1 * (unit.environment - (len(e.seeds) - 1) / 2) + 0.01 * (trial - (e.trials - 1) / 2)
            pulls = np.outer(probes, np.arange(1, unit.arms + 1)) // (unit.arms + 1)
            design = dict.fromkeys(("lambda_min_v", "rho_x", "rho_z"), 1 + 0.01 * probes)
            design["z_norm"] = 1 / np.sqrt(1 + probes / 100)
            if e.by_arm:
                design |= {"pulls": pulls, "lambda_min_w": 1 + pulls / 20, "sigma_max_b": np.sqrt(pulls)}
            if entry.name == "DisLinUCB":
                design["lambda_min_v"] = np.full(len(probes), np.nan)
            kept = entry.name in paper.PAPER_POLICIES
            regret = level(e, entry.name, unit.arms) * factor * np.sqrt(t)
            runs.append(Run(policy=entry.name, trial=trial, regret=regret, design=design if kept else None))
    return runs


def fabricate(folder: Path, *records: Experiment, leave_out: str = "", **about: Any) -> Results:
    """A results folder with these experiments; units whose path contains `leave_out` are missing."""
    for unit in (unit for record in records for unit in record.units()):
        if not leave_out or leave_out not in unit.path:
            write_unit(folder, unit, runs_of(unit))
    plain = [record.plain() for record in records]
    manifest = {"format": FORMAT, "version": __version__, "versions": {}, "experiments": plain, "units": {}, **about}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_results(folder)


POLICIES = ("HyLinUCB", "LinUCB", "HyRan", paper.HYRAN_RELEASED, "Greedy")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, figures.Figure]:
    folder = tmp_path_factory.mktemp("results")
    records = [
        small("setting-1", policies=POLICIES),
        small("setting-3", policies=("HyLinUCB", "LinUCB")),
        small("diversity", policies=("HyLinUCB", "DisLinUCB")),
        small("setting-1", "written", policies=("HyLinUCB",)),
    ]
    results = fabricate(folder, *records, leave_out="setting-3/released/K50")
    return {figure.name: figure for figure in figures.draw_all(results, folder / "figures", paper.published)}


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


def test_every_figure_is_a_png_and_an_svg_with_words(drawn: dict[str, figures.Figure]) -> None:
    for figure in drawn.values():
        png, svg = figure.files
        assert png.read_bytes().startswith(b"\x89PNG")
        assert ElementTree.parse(svg).getroot().tag.endswith("svg")
        assert figure.title
        assert figure.caption.endswith(".")
        assert figure.alt.endswith(".")
        assert figure.protocol in ("released", "written")
    leftovers = [path for path in figure.files[0].parent.iterdir() if path.suffix not in (".png", ".svg")]
    assert not leftovers, "temporary files are removed"


def test_words_carry_the_numbers(drawn: dict[str, figures.Figure]) -> None:
    level_1 = level(small("setting-1"), "HyLinUCB", 25)
    assert f"HyLinUCB {level_1:,.0f}" in drawn["released-setting-1"].alt
    assert "6 runs (3 environments, 2 trials each)" in drawn["released-setting-1"].caption
    assert "Of the published algorithms HyLinUCB has the lowest regret" in drawn["released-setting-1-beyond"].caption
    # 677 is published for HyRan (released); the fabricated HyRan is at 175.
    assert "3.87 times" in drawn["released-setting-1-hyran"].caption
    assert "the published figure" in drawn["released-setting-1"].caption
    assert "Black-edged" not in drawn["written-setting-1"].caption, "published dots are of the released protocol"


def test_same_results_same_bytes(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small("setting-3", policies=("HyLinUCB", "HyRan")))
    digests = []
    for name in ("one", "two"):
        written = figures.draw_all(results, tmp_path / name, paper.published)
        files = [path for figure in written for path in figure.files]
        digests.append([(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in files])
    assert digests[0] == digests[1]
    assert len(digests[0]) == 4


def test_own_experiments_get_one_figure_with_all_policies(tmp_path: Path) -> None:
    record = replace(small("setting-1", policies=("HyLinUCB", "Greedy")), name="mine", protocol="own", probes=())
    entries = tuple(replace(entry, name=f"{entry.name}:x") for entry in record.policies)
    record = replace(record, policies=(*record.policies, *entries), points=(1, 10_000))
    (figure,) = figures.draw_all(fabricate(tmp_path, record), tmp_path, paper.published)
    assert figure.name == "own-mine"
    assert "Greedy:x" in figure.alt
    assert "own experiment" in figure.title


def test_every_policy_looks_different() -> None:
    names = [*looks.COLOURS, "Someone", "Someone else"]
    chosen = looks.styles_of(names)
    for looked_at in (lambda s: s.colour, lambda s: str(s.dash), lambda s: s.marker):
        assert len({looked_at(style) for style in chosen.values()}) == len(names)
    for name in (*paper.PAPER_POLICIES, *paper.BASELINES, *paper.BEYOND):
        assert name in looks.COLOURS


def test_curve_is_mean_lowest_and_highest_run(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small("setting-1"), small("setting-3"))
    one = outcomes.curve(results.outcomes["setting-1", "released"], "LinUCB")
    assert_allclose([one.mean[-1], one.low[-1], one.high[-1]], 243 * np.array([1, 0.895, 1.105]))
    assert_allclose(one.x, [1000, 2500, 5000, 10_000])
    other = outcomes.curve(results.outcomes["setting-3", "released"], "DisLinUCB")
    assert_allclose(other.x, [10, 50])
    assert_allclose(other.mean, [45, 275])
    dots = outcomes.read_outs(results.outcomes["setting-1", "released"], "LinUCB", paper.published)
    assert dots == {1000: 76, 2500: 129, 5000: 178, 10_000: 243}, "no dots beyond our last round"
    dots = outcomes.read_outs(results.outcomes["setting-3", "released"], "LinUCB", paper.published)
    assert dots == {50: 915}, "hidden behind a marker at K = 10"
    assert outcomes.last_read_out(results.outcomes["setting-1", "released"], "HyRan", 25, paper.published) is None


def test_thinned_to_few_points() -> None:
    keep = outcomes.thin(np.arange(80_000.0))
    assert len(keep) == outcomes.MOST_POINTS
    assert keep[0] == 0
    assert keep[-1] == 79_999
    assert list(outcomes.thin(np.arange(3.0))) == [0, 1, 2]


def test_quantiles_at_equal_pulls() -> None:
    # Two arms of one run: values are twice and four times the pulls; the second arm is pulled up to 10 only.
    pulls = np.array([[[0.0, 0.0], [10.0, 5.0], [20.0, 10.0]]])
    values = pulls * np.array([2.0, 4.0])
    low, high = outcomes.by_pulls(pulls, values, np.array([0.0, 5.0, 10.0, 20.0, 30.0]), (0, 1))
    assert_allclose(low, [0, 10, 20, 40, np.nan])
    assert_allclose(high, [0, 20, 40, 40, np.nan])
