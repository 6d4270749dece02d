"""The experiment on a click log, from made-up results: figures and page; on a made log, and as if on Yahoo's."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from hybandits import __version__, paper, report
from hybandits.experiments.manifest import FORMAT
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Results, Run, read_results, write_unit
from hybandits.paper import claims
from hybandits.report import figures, terminal, words
from hybandits.report.figures import outcomes
from tests.report.test_figures import fabricate, small
from tests.report.test_report import Page

HYRAN = paper.HYRAN_RELEASED
SYNTHETIC = {"rounds": 300_000, "seed": 0, "pool": 20, "rate": 0.06}
LEVELS = {
    "HyLinUCB": 1000.0, "LinUCB": 1100.0, "DisLinUCB": 1400.0, HYRAN: 2000.0, "HyRan": 1700.0, "HyThompson": 50.0,
}  # fmt: skip
"""Regret at T: LinUCB is 100 beyond HyLinUCB, DisLinUCB 400, HyRan as plotted 1,000."""


def record(
    protocol: Any = "released", *, made: Mapping[str, Any] | None = SYNTHETIC, arms: str = "articles", trials: int = 2,
    rounds: int = 200_000, defect: bool = False, policies: tuple[str, ...] = paper.YAHOO_POLICIES, **changes: Any,
) -> Experiment:  # fmt: skip
    """What `yahoo.experiments` makes, without a log to read."""
    entries = [paper.yahoo_entry(name, protocol) for name in policies]
    if defect:
        entries += [
            replace(entry, name=f"{entry.name}, defect", learns_from=paper.YAHOO_ORDER.index(entry.name))
            for entry in entries
            if entry.name in paper.YAHOO_ORDER
        ]
    log = {
        "content": "0", "kind": "R6A", "made": made, "features": "das", "arms": arms, "train": 100_000,
        "start": 120_000, "rounds": rounds, "trained_arms": 20, "rank": 45, "parameters": 162, "residual": 0.2491,
        "left_out": 3, "chance_regret": 2500.0, "model": {},
    }  # fmt: skip
    return Experiment(
        name="yahoo" if arms == "articles" else "yahoo-positions", protocol=protocol, d1=36, d2=6, arms=(22,),
        horizon=rounds, seeds=(0,), trials=trials, noise=paper.YAHOO_NOISE[protocol], law="log",
        policies=tuple(entries), points=tuple(range(rounds // 100, rounds + 1, rounds // 100)), log={**log, **changes},
    )  # fmt: skip


def level(policy: str, levels: Mapping[str, float]) -> float:
    """At T; a defect costs a tenth."""
    name = policy.removesuffix(", defect")
    return levels[name] * (1.0 if name == policy else 1.1)


def click_log(
    folder: Path, *records: Experiment, levels: Mapping[str, float] = LEVELS, spread: float = 1.0, **about: Any
) -> Results:
    """A results folder: regret like a square root, trials `spread` apart at T, and a little by the policy's name."""
    for e in records:
        for unit in e.units():
            own = 0.1 * len(unit.policy) * (-1) ** unit.first
            last = level(unit.policy, levels) + spread * (unit.first + own)
            regret = last * np.sqrt(np.array(e.points) / e.horizon)
            write_unit(folder, unit, [Run(policy=unit.policy, trial=unit.first, regret=regret)])
    plain = [e.plain() for e in records]
    manifest = {"format": FORMAT, "version": __version__, "versions": {}, "experiments": plain, "units": {}, **about}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_results(folder)


# ------------------------------------------------------------------ figures


def draw(results: Results) -> dict[str, figures.Figure]:
    return {f.name: f for f in figures.draw_all(results, results.folder / "figures", paper.published)}


def svg(figure: figures.Figure) -> str:
    return figure.files[1].read_text(encoding="utf-8")


def dots(figure: figures.Figure) -> int:
    """Published read-outs in a picture: markers with black edges, of a size that only they have."""
    return len(re.findall(r'<use [^>]*style="fill: #[0-9a-f]{6}; stroke: #000000; stroke-width: 0.8', svg(figure)))


def test_everything_from_a_made_log_says_so(tmp_path: Path) -> None:
    drawn = draw(click_log(tmp_path, record(defect=True), record(arms="positions", trials=1), record("written")))
    assert sorted(drawn) == [
        "released-yahoo", "released-yahoo-defect", "released-yahoo-positions", "released-yahoo-positions-relative",
        "released-yahoo-relative", "written-yahoo", "written-yahoo-relative",
    ]  # fmt: skip
    for figure in drawn.values():
        assert figure.section == "yahoo"
        for text in (svg(figure), figure.caption, figure.title, figure.alt):
            assert outcomes.SYNTHETIC in text.replace("&#39;", "'")
        assert dots(figure) == 0
        assert "Black-edged" not in figure.caption


def test_published_dots_are_of_yahoos_log_and_of_rounds_that_were_played(tmp_path: Path) -> None:
    record_ = record(made=None, rounds=3_000_000, defect=True)
    drawn = draw(click_log(tmp_path, record_, record("written", made=None, rounds=3_000_000)))
    relative = drawn["released-yahoo-relative"]
    assert dots(relative) == 9, "three algorithms at 1, 2 and 3 million rounds"
    assert "Black-edged" in relative.caption
    assert "need not meet it" in relative.caption
    assert [dots(figure) for figure in drawn.values()].count(0) == len(drawn) - 1
    for figure in drawn.values():
        for text in (svg(figure), figure.caption, figure.title, figure.alt):
            assert "made" not in text.replace("It was made with positions", "")
    assert ">3M<" in svg(relative), "3,000,000 would run into its neighbours"


def test_regret_relative_to_the_same_trial(tmp_path: Path) -> None:
    outcome = click_log(tmp_path, record(trials=3), spread=50.0).outcomes["yahoo", "released"]
    one = outcomes.relative_curve(outcome, "DisLinUCB")
    # 0.1 letters of the name, here one, times the spread; signs change from trial to trial.
    assert_allclose([one.mean[-1], one.low[-1], one.high[-1]], [400 + 5 / 3, 395, 405])
    assert outcomes.rivals(outcome) == ["LinUCB", "DisLinUCB", HYRAN, "HyRan"]


def test_the_defect_is_shown_beside_each_algorithm(tmp_path: Path) -> None:
    results = click_log(tmp_path, record(defect=True, trials=1), spread=0.0)
    figure = draw(results)["released-yahoo-defect"]
    assert "HyLinUCB 1,100 instead of 1,000" in figure.caption
    assert svg(figure).count("+10.0 %") == 4
    outcome = results.outcomes["yahoo", "released"]
    assert list(outcomes.twins(outcome)) == ["HyLinUCB", "LinUCB", "DisLinUCB", HYRAN]


def test_without_hylinucb_there_is_nothing_to_be_relative_to(tmp_path: Path) -> None:
    drawn = draw(click_log(tmp_path, record(policies=("LinUCB", "HyThompson"), trials=1), spread=0.0))
    assert list(drawn) == ["released-yahoo"]
    assert "HyThompson 50" in drawn["released-yahoo"].alt
    assert "lowest to highest" not in svg(drawn["released-yahoo"]), "one trial has no band"


def test_the_fourth_panel_is_yahoos_when_there_is_one(tmp_path: Path) -> None:
    synthetic, clicks = small("setting-1", policies=("HyLinUCB", "LinUCB")), record(made=None, rounds=2_000_000)
    panels = draw(both(tmp_path / "one", synthetic, clicks))["released-panels"]
    assert "(d) Yahoo: d1=36, d2=6, K=22" in svg(panels)
    assert "mean regret at T beyond HyLinUCB's: LinUCB" in panels.alt
    assert dots(panels) == 2 * 4 + 3 * 2
    panels = draw(both(tmp_path / "two", synthetic, record()))["released-panels"]
    assert outcomes.SYNTHETIC in svg(panels).replace("&#39;", "'")
    assert outcomes.SYNTHETIC in panels.caption
    assert dots(panels) == 2 * 4
    panels = draw(both(tmp_path / "three", synthetic, record(policies=("LinUCB",))))["released-panels"]
    assert "(d) our regret at T divided by the published one" in svg(panels)


def both(folder: Path, synthetic: Experiment, clicks: Experiment, **about: Any) -> Results:
    """Results of a synthetic experiment and of a click log in one folder."""
    folder.mkdir()
    fabricate(folder, synthetic)
    click_log(folder, clicks)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["experiments"] = [synthetic.plain(), clicks.plain()]
    (folder / "manifest.json").write_text(json.dumps(manifest | about))
    return read_results(folder)


# ------------------------------------------------------------------ the page


@pytest.fixture
def _no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybandits.report.figures.draw_all", lambda *_, **__: [])


def page_of(results: Results) -> Page:
    return Page(report.write_report(results.folder, results=results).read_text(encoding="utf-8"))


@pytest.mark.usefixtures("_no_drawing")
def test_the_page_of_a_made_log(tmp_path: Path) -> None:
    records = [record(defect=True), record("written", defect=True)]
    page = page_of(click_log(tmp_path, *records, spread=0.0, scale="quick", seed=paper.RELEASED_SEED))
    assert len(set(page.ids)) == len(page.ids)
    assert "yahoo" in page.ids
    assert "regret" not in page.ids, "the table stands in the experiment's section"
    for said in (
        "The experiment on Yahoo's click log, on a made log",
        "says nothing about the paper's result",
        "their experiment on a click log was run",
        "made: 300,000 rounds from a known model, seed 0",
        "100,000, from the first on",
        "200,000, from round 120,001 on",
        "d1 = 36 shared, d2 = 6 of each arm's own",
        "22 articles",
        "20 articles; at least 2 of those played",
        "45 of 162 parameters; many fit alike",
        "standard deviation 0.2491",
        "3 of 100,000 rounds",
        "noise 1e-05; HyLinUCB SelfNormalised, ridge 1,000; LinUCB SelfNormalised, ridge 1,000; DisLinUCB "
        "SelfNormalised, ridge 100",
        "noise 0.01; HyLinUCB AsWritten, the ridge of the theorem",
        "What the defect does",
        "(made log, not Yahoo's data): even choice loses 2,500 in 200,000 rounds; of that, HyLinUCB 40 %",
        "HyThompson 2 %",
        "HyLinUCB 1,100 instead of 1,000",
        "interval over trials; made log, not Yahoo's data",
        "200,000 of 10,000,000 rounds, 100,000 of 1,000,000 rounds to fit on",
        "200,000 rounds, 2 trials on one log",
        "There is one log",
    ):
        assert said in page.text, said
    for not_said in ("Setting", "possible env", "is not reproduced here", "Five", "published beyond", "Positions as"):
        assert not_said not in page.text, not_said


@pytest.mark.usefixtures("_no_drawing")
def test_the_page_of_real_data(tmp_path: Path) -> None:
    full = record(made=None, rounds=10_000_000, train=1_000_000, unfitted_arms=7)
    positions = record(made=None, rounds=10_000_000, train=1_000_000, arms="positions", trials=1)
    page = page_of(click_log(tmp_path, full, positions, scale="paper", seed=paper.RELEASED_SEED))
    assert "made log" not in page.text.lower()
    assert "not Yahoo's data" not in page.text
    assert "at the paper's full length" in page.text
    assert "R6A, the user's copy of Yahoo's data" in page.text
    assert "7 of those played are not among them" in page.text
    assert "Positions as arms. An arm is a position" in page.text
    assert "published beyond it" in page.text
    assert "97,200" in page.text
    assert "What the defect does" not in page.text


@pytest.mark.usefixtures("_no_drawing")
def test_the_page_of_both_kinds_of_experiment(tmp_path: Path) -> None:
    results = both(
        tmp_path / "out", small("setting-1"), record(trials=1), scale="quick", seed=paper.RELEASED_SEED
    )  # fmt: skip
    page = page_of(results)
    for said in (
        "their experiments were run",
        "Setting 1: 10,000 of 80,000 rounds",
        "Yahoo: 200,000 of 10,000,000 rounds",
        "On the click log: noise of standard deviation 1e-05",
        "Yahoo, released protocol: regret after 200,000 rounds; 1 run; made log, not Yahoo's data",
        "Five environments are few",
        "There is one log",
    ):
        assert said in " ".join(page.text.split()), said
    assert {"regret", "yahoo", "claim-1-released", "claim-8-released"} <= set(page.ids)
    assert [v.claim for v in claims.judge(results)] == ["1", "7", "8"]


@pytest.mark.usefixtures("_no_drawing")
def test_machines_get_the_excess_and_the_log(tmp_path: Path) -> None:
    page_of(click_log(tmp_path, record(made=None, rounds=10_000_000), record("written", made=None), spread=0.0))
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    rows = {(r["protocol"], r["policy"]): r for r in summary["regret_beyond_HyLinUCB_at_T"]}
    found = rows["released", HYRAN]
    assert [found[key] for key in ("mean", "low", "high", "published", "runs")] == [1000, 1000, 1000, 97_200, 2]
    assert rows["released", "HyRan"]["published"] is None
    assert rows["written", HYRAN]["published"] is None, "the published figure is of the released protocol"
    assert ("released", "HyLinUCB") not in rows
    assert [log["rank"] for log in summary["logs"]] == [45, 45]
    assert "model" not in summary["logs"][0]
    regrets = {(r["protocol"], r["policy"]): r for r in summary["regret_at_T"]}
    assert regrets["released", "LinUCB"]["published"] is None, "what is published is not the regret itself"
    assert summary["read_outs"] == []


@pytest.mark.usefixtures("_no_drawing")
def test_synthetic_results_alone_have_nothing_of_a_log(tmp_path: Path) -> None:
    page = page_of(fabricate(tmp_path, small("setting-1"), scale="quick", seed=paper.RELEASED_SEED))
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert not {"logs", "regret_beyond_HyLinUCB_at_T"} & set(summary)
    assert "click log" not in page.text
    assert "is not reproduced here: the log may not be passed on" in page.text


def test_the_terminal_says_what_it_is_about(tmp_path: Path) -> None:
    results = click_log(tmp_path, record(trials=1, policies=("HyLinUCB", "LinUCB")), spread=0.0)
    file = io.StringIO()
    terminal.print_summary(results, claims.judge(results), Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("The short version: Yahoo: 200,000 of 10,000,000 rounds")
    assert "on a made log" in lines[1]
    title = "Yahoo, released protocol: regret after 200,000 rounds (1 run), made log, not Yahoo's data"
    at = lines.index(title)
    assert lines[at + 1].endswith("beyond HyLinUCB")
    assert [line.split()[-1] for line in lines[at + 2 : at + 5]] == ["0", "+100.0", "+1,500"]
    assert lines[at + 4].startswith("even choice (expected)")
    (claim,) = [line for line in lines if line.startswith("8 ")]
    assert "undecided  No real data: the log is synthetic" in claim


def test_an_unfinished_log_is_said(tmp_path: Path) -> None:
    clicks = record(trials=1)
    results = both(tmp_path / "out", small("setting-1"), clicks)
    next(results.folder.glob("units/yahoo/released/*HyThompson*")).unlink()
    assert words.unfinished(read_results(results.folder)) == ["Yahoo, released protocol"]
