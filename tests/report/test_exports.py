"""What programs get: all curves as CSV, tables and verdicts as JSON."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from numpy.testing import assert_allclose

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.judging import judge
from hybandits.report.exports import CSV_COLUMNS, regret_csv, summary_of
from hybandits.report.numbers import read_out_rows, regret_rows
from tests.support.fabricated_results import fabricate, fabricate_log, on_a_log, small_setting


def summary_about(results: Results) -> dict[str, Any]:
    summary = summary_of(results, judge(results), regret_rows(results), read_out_rows(results))
    return json.loads(json.dumps(summary, allow_nan=False))  # type: ignore[no-any-return]


def test_programs_get_the_numbers_of_the_page(tmp_path: Path) -> None:
    names = [("setting-1", "released"), ("setting-3", "released"), ("diversity", "released"), ("setting-1", "written")]
    results = fabricate(tmp_path, *(small_setting(*name) for name in names), scale="quick", seed=paper.RELEASED_SEED)
    summary = summary_about(results)
    assert summary["scale"] == "quick"
    rows = {(r["experiment"], r["protocol"], r["policy"], r["arms"]): r for r in summary["regret_at_T"]}
    linucb = rows["setting-1", "released", "LinUCB", 25]
    assert_allclose([linucb["mean"], linucb["published"], linucb["ratio"]], [243, 243, 1])
    assert_allclose([linucb["lowest"], linucb["highest"]], [243 * 0.895, 243 * 1.105])
    assert_allclose(linucb["sd"], 24.3)
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
    lines = list(csv.DictReader(io.StringIO(regret_csv(results))))
    assert tuple(lines[0]) == CSV_COLUMNS
    at_the_end = [x for x in lines if (x["experiment"], x["policy"], x["t"]) == ("setting-1", "LinUCB", "10000")]
    assert [x["protocol"] for x in at_the_end] == ["released", "written"]
    assert_allclose([float(at_the_end[0][name]) for name in ("mean", "sd_over_environments", "runs")], [243, 24.3, 6])


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


def test_settings_alone_have_nothing_of_a_log(tmp_path: Path) -> None:
    summary = summary_about(fabricate(tmp_path, small_setting("setting-1")))
    assert not {"logs", "regret_beyond_HyLinUCB_at_T"} & set(summary)


def test_one_environment_has_no_spread(tmp_path: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(regret_csv(fabricate_log(tmp_path, on_a_log())))))
    assert {line["sd_over_environments"] for line in lines} == {""}
    assert {line["runs"] for line in lines} == {"2"}
