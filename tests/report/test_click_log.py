"""Regret on a click log, as texts: beside HyLinUCB's, beside uniform choice, with and without the defect."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybandits.report.click_log import UNIFORM_CHOICE, click_log, excess_text, regret_table, uniform_choice_excess
from hybandits.report.numbers import excess_rows, regret_rows
from tests.support.fabricated_results import fabricate, fabricate_log, on_a_log, small_setting


def test_the_table_of_one_trial_on_a_synthetic_log(tmp_path: Path) -> None:
    policies = ("HyLinUCB", "LinUCB")
    results = fabricate_log(tmp_path, on_a_log(trials=1, policies=policies), spread=0.0)
    (table,) = click_log(results)["tables"]
    assert table.head == ["policy", "mean", "beyond HyLinUCB"]
    assert table.groups == [
        [["HyLinUCB", "1,000", "0"], ["LinUCB", "1,100", "+100.0"], [UNIFORM_CHOICE, "2,500", "+1,500"]]
    ]
    assert table.caption.endswith("regret after 200,000 rounds; 1 run; synthetic log, not Yahoo's data")


def test_the_table_of_real_data_has_intervals_and_what_was_published(tmp_path: Path) -> None:
    results = fabricate_log(tmp_path, on_a_log(synthetic=False, rounds=10_000_000), spread=0.0)
    outcome = results.outcomes["yahoo", "released"]
    table = regret_table(outcome, regret_rows(results), excess_rows(results))
    assert table.head[-2:] == ["its 95 % interval", "published beyond it"]
    (body,) = table.groups
    rows = {row[0]: row[1:] for row in body}
    assert rows["HyRan (released)"] == ["2,000", "2,000 to 2,000", "+1,000", "1,000 to 1,000", "97,200"]
    assert rows["HyLinUCB"][2:] == ["0", "-", "-"]
    assert rows[UNIFORM_CHOICE] == ["2,500", "-", "+1,500", "-", "-"]


def test_what_uniform_choice_loses_and_what_the_defect_changes(tmp_path: Path) -> None:
    content = click_log(fabricate_log(tmp_path, on_a_log(defect=True, trials=1, arms="positions"), spread=0.0))
    assert content["positions"]
    ((_, loss, shares),) = content["uniform_choice"]
    assert loss == 2500
    assert shares["HyLinUCB"] == pytest.approx(0.4)
    ((_, changes),) = content["defect"]
    assert changes[0] == "HyLinUCB 1,100 instead of 1,000"


def test_nothing_is_relative_to_a_policy_that_was_not_run(tmp_path: Path) -> None:
    results = fabricate_log(tmp_path, on_a_log(policies=("LinUCB",), trials=1))
    assert uniform_choice_excess(results.outcomes["yahoo", "released"]) == "-"
    assert excess_text("LinUCB", None) == "-"


def test_settings_alone_have_no_tables(tmp_path: Path) -> None:
    assert click_log(fabricate(tmp_path, small_setting("setting-1", policies=("Greedy",))))["tables"] == []
