"""Regrets as numbers, as tables for reading, and as a file for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import paper, statistics
from hybandits.experiments.results import Results, read_results
from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.judging import judge
from hybandits.report import cases, tables
from hybandits.report.figures.regret import setting_figure
from hybandits.report.tables import (
    click_log_table,
    excess_rows,
    read_out_rows,
    regret_rows,
    regret_tables,
    summary_of,
)
from tests.support.fabricated_results import fabricate, fabricate_log, fresh_setting, on_a_log, small_setting


def test_other_seeds_are_other_environments(tmp_path: Path) -> None:
    results = fabricate(tmp_path, replace(small_setting("setting-1"), seeds=(1, 2)))
    assert {row.within for row in regret_rows(results)} == {None}
    assert read_out_rows(results) == []


def test_excess_is_counted_in_the_same_trial(tmp_path: Path) -> None:
    rows = {
        x["policy"]: x for x in excess_rows(cases.on_logs(fabricate_log(tmp_path, on_a_log(trials=3), spread=50.0)))
    }
    # 0.1 letters of the name, here one, times the spread; signs change from trial to trial.
    disjoint = rows["DisLinUCB"]
    assert_allclose([disjoint[name] for name in ("mean", "lowest", "highest")], [400 + 5 / 3, 395, 405])
    assert "HyLinUCB" not in rows
    assert {x["published"] for x in rows.values()} == {None}, "the log is synthetic"


def test_published_numbers_are_not_compared_with_fresh_environments(tmp_path: Path) -> None:
    results = fabricate(tmp_path, fresh_setting("setting-1"), small_setting("setting-1"))
    rows = [row for row in regret_rows(results) if row.experiment == "setting-1-fresh"]
    assert {(row.published, row.ratio, row.within) for row in rows} == {(None, None, None)}
    assert {(row.runs, row.environments) for row in rows} == {(6, 6)}
    assert {row.experiment for row in read_out_rows(results)} == {"setting-1"}


@pytest.mark.slow
def test_the_results_of_this_repository_give_its_verdicts_and_read_outs() -> None:
    folder = Path(__file__).parents[2] / "results"
    summary = summary_about(read_results(folder))
    assert summary == json.loads((folder / "report" / "summary.json").read_text())
    assert len(summary["read_outs"]) == 110
    assert all(row["within"] for row in summary["read_outs"])


def test_intervals_of_regret_end_at_0() -> None:
    regrets, units = np.array([1.0, 2.0, 300.0]), np.arange(3)
    uncut = statistics.interval(regrets, units, 0.95)
    shown = tables.regret_interval(regrets, units)
    assert uncut is not None
    assert shown is not None
    assert uncut.low < 0
    assert shown == uncut._replace(low=0.0), "the rest is as it was"
    assert tables.regret_interval(regrets - 100, units) == statistics.interval(regrets - 100, units, 0.95), (
        "not a regret"
    )
    assert tables.regret_interval(regrets[:1], units[:1]) is None


def summary_about(results: Results) -> dict[str, Any]:
    summary = summary_of(results, judge(results), regret_rows(results), read_out_rows(results))
    return json.loads(json.dumps(summary, allow_nan=False))  # type: ignore[no-any-return]


@pytest.mark.slow
def test_programs_get_the_numbers_of_the_page(tmp_path: Path) -> None:
    names = [("setting-1", "released"), ("setting-3", "released"), ("diversity", "released"), ("setting-1", "written")]
    results = fabricate(tmp_path, *(small_setting(*name) for name in names), scale="quick", seed=paper.RELEASED_SEED)
    summary = summary_about(results)
    assert summary["scale"] == "quick"
    rows = {(r["experiment"], r["protocol"], r["policy"], r["arms"]): r for r in summary["regret_at_T"]}
    linucb = rows["setting-1", "released", "LinUCB", 25]
    assert_allclose([linucb["mean"], linucb["published"], linucb["ratio"]], [243, 243, 1])
    assert_allclose([linucb["lowest"], linucb["highest"]], [243 * 0.895, 243 * 1.105])
    assert_allclose(linucb["sd"], 24.3, rtol=1e-6)
    half = 4.30265 * 24.3 / 3**0.5  # Student's t, 2 degrees of freedom
    assert_allclose([linucb["low"], linucb["high"]], [243 - half, 243 + half], rtol=1e-5)
    assert linucb["within"] is True
    assert (linucb["runs"], linucb["environments"]) == (6, 3)
    assert rows["setting-1", "written", "LinUCB", 25]["within"] is None, "published under another protocol"
    assert rows["setting-3", "released", "LinUCB", 10]["published"] is None, "hidden in the figure"
    assert rows["diversity", "released", "LinUCB", 6]["low"] is not None, "one environment: over its trials"
    assert [v["claim"] for v in summary["verdicts"]] == [v.claim for v in judge(results)]
    assert {v["basis"] for v in summary["verdicts"] if v["claim"] == "1"} == {
        "the 3 published environments",
        "3 environments",
    }
    assert {(r["t"], r["published"]) for r in summary["read_outs"] if r["policy"] == "LinUCB" and r["arms"] == 25} == {
        (1000, 76), (2500, 129), (5000, 178), (10_000, 243),
    }  # fmt: skip


def test_programs_get_the_excess_and_the_log(tmp_path: Path) -> None:
    records = [on_a_log(synthetic=False, rounds=10_000_000), on_a_log("written", synthetic=False)]
    summary = summary_about(fabricate_log(tmp_path, *records, spread=0.0))
    rows = {(r["protocol"], r["policy"]): r for r in summary["regret_beyond_HyLinUCB_at_T"]}
    row = rows["released", HYRAN_RELEASED]
    assert [row[key] for key in ("mean", "low", "high", "published", "runs")] == [1000, 1000, 1000, 97_200, 2]
    assert rows["released", "HyRan"]["published"] is None
    assert rows["written", HYRAN_RELEASED]["published"] is None, "the published figure is of the released protocol"
    assert ("released", "HyLinUCB") not in rows
    assert [log["rank"] for log in summary["logs"]] == [45, 45]
    assert "model" not in summary["logs"][0]
    regrets = {(r["protocol"], r["policy"]): r for r in summary["regret_at_T"]}
    assert regrets["released", "LinUCB"]["published"] is None, "what is published is not the regret itself"
    assert summary["read_outs"] == []


def test_several_numbers_of_arms_are_set_apart(tmp_path: Path) -> None:
    record = small_setting("setting-3", policies=("HyLinUCB", "LinUCB"))
    (table,) = regret_tables(regret_rows(fabricate(tmp_path, record)))
    assert (table.head[:3], len(table.groups)) == (["policy", "K", "mean"], 2)
    assert table.groups[0][1][:4] == ["LinUCB", "10", "170.0", "127.8 to 212.2"]
    assert table.groups[1][1][-3:] == ["917", "1.000", "yes"]
    assert "Setting 3, released protocol: regret after 30,000 rounds; 6 runs, interval" in table.caption


def test_the_table_of_a_synthetic_log(tmp_path: Path) -> None:
    results = fabricate_log(tmp_path, on_a_log(trials=1, policies=("HyLinUCB", "LinUCB")), spread=0.0)
    table = click_log_table(results.outcomes["yahoo", "released"], regret_rows(results))
    uniform = ["uniform choice (expected)", "2,500", "-", "+1,500", "-", "-"]
    assert table.groups == [
        [["HyLinUCB", "1,000", "-", "0", "-", "-"], ["LinUCB", "1,100", "-", "+100.0", "-", "-"], uniform]
    ]
    assert table.caption.endswith("regret after 200,000 rounds; 1 run; synthetic log, not Yahoo's data")


def test_a_policy_that_stops_early_is_compared_where_it_stops(tmp_path: Path) -> None:
    record = on_a_log(trials=1)
    stops = tuple(replace(e, rounds=50_000 if e.name == HYRAN_RELEASED else None) for e in record.policies)
    results = fabricate_log(tmp_path, replace(record, policies=stops), spread=0.0)
    outcome = results.outcomes["yahoo", "released"]
    (rows,) = click_log_table(outcome, regret_rows(results)).groups
    assert rows[4][:4] == ["HyRan (released) after 50,000 rounds", "1,000", "-", "+500.0"], "half of that at T"
    (verdict,) = judge(results)
    assert verdict.evidence[2].what.startswith("HyLinUCB < HyRan (released) after 50,000 rounds")
    assert verdict.evidence[2].value.startswith("500 against 1,000")
    assert "only the first 50,000 of 200,000 rounds by HyRan (released) were" in cases.synthetic_note(results)
    alt = setting_figure(outcome).alt
    assert "HyRan (released) 1,000 after 50,000 rounds" in alt
    assert "HyRan (released) 500 after 50,000 rounds" in alt


def test_a_family_has_one_table_per_protocol_unless_it_has_none(tmp_path: Path) -> None:
    records = paper.records_of(["structured", "factorial"], ["released", "written"], scale="quick")
    results = fabricate(tmp_path, small_setting("setting-1"), *records)
    of_setting, *families = regret_tables(regret_rows(results))
    assert of_setting.caption.startswith("Setting 1, released protocol")
    assert [table.caption.partition(":")[0] for table in families] == [
        "Structured, released protocol",
        "Structured, written protocol",
    ]
    assert families[0].head[3:] == ("Uniform", *paper.PAPER_POLICIES, "HyIDS")
    assert [row[0] for row in families[0].groups[0]] == list(paper.FAMILIES["structured"].members.values())
    assert families[0].groups[0][1][1:5] == ["25", "2,000", "195.0", "205.0"], "100, 10 per letter, 25 arms"
    assert cases.shortened(results)[1:] == [
        "Structured: 2,000 of 20,000 rounds, 2 of 20 environments",
        "Factorial: 1,000 of 80,000 rounds, 2 of 10 environments",
        "Factorial: 1,000 of 30,000 rounds, 2 of 10 environments",
    ]
