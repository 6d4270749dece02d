"""Regret at T and at the read-outs, beside the published numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose

from hybandits import statistics
from hybandits.experiments.results import read_results
from hybandits.report import numbers
from tests.support.fabricated_results import (
    fabricate,
    fabricate_both,
    fabricate_log,
    fresh_setting,
    on_a_log,
    small_setting,
)


def test_other_seeds_are_other_environments(tmp_path: Path) -> None:
    results = fabricate(tmp_path, replace(small_setting("setting-1"), seeds=(1, 2)))
    assert {row.within for row in numbers.regret_rows(results)} == {None}
    assert numbers.read_out_rows(results) == []


def test_intervals_are_over_what_is_independent(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), small_setting("diversity"))
    rows = {(row.experiment, row.policy): row for row in numbers.regret_rows(results)}
    linucb = rows["setting-1", "LinUCB"]
    half = 4.30265 * 24.3 / 3**0.5  # Student's t, 2 degrees of freedom: three environments
    assert_allclose([linucb.low, linucb.high], [243 - half, 243 + half], rtol=1e-5)
    one = rows["diversity", "LinUCB"]
    assert one.environments == 1
    assert one.sd is None
    assert one.low is not None, "trials with contexts of their own"


def test_excess_is_counted_in_the_same_trial(tmp_path: Path) -> None:
    rows = {x.policy: x for x in numbers.excess_rows(fabricate_log(tmp_path, on_a_log(trials=3), spread=50.0))}
    # 0.1 letters of the name, here one, times the spread; signs change from trial to trial.
    disjoint = rows["DisLinUCB"]
    assert_allclose([disjoint.mean, disjoint.lowest, disjoint.highest], [400 + 5 / 3, 395, 405])
    assert "HyLinUCB" not in rows
    assert {x.published for x in rows.values()} == {None}, "the log is synthetic"


def test_without_hylinucb_there_is_no_excess(tmp_path: Path) -> None:
    assert numbers.excess_rows(fabricate_log(tmp_path, on_a_log(policies=("LinUCB",)))) == []


def test_the_papers_order_and_the_two_kinds_of_world(tmp_path: Path) -> None:
    results = fabricate_both(tmp_path / "out", small_setting("setting-1"), on_a_log(trials=1))
    assert [o.experiment.name for o in numbers.in_order(results)] == ["setting-1", "yahoo"]
    assert [o.experiment.name for o in numbers.in_worlds(results)] == ["setting-1"]
    assert [o.experiment.name for o in numbers.on_logs(results)] == ["yahoo"]


def test_published_numbers_are_not_compared_with_fresh_environments(tmp_path: Path) -> None:
    results = fabricate(tmp_path, fresh_setting("setting-1"), small_setting("setting-1"))
    rows = [row for row in numbers.regret_rows(results) if row.experiment == "setting-1-fresh"]
    assert {(row.published, row.ratio, row.within) for row in rows} == {(None, None, None)}
    assert {(row.runs, row.environments) for row in rows} == {(6, 6)}
    assert {row.experiment for row in numbers.read_out_rows(results)} == {"setting-1"}
    assert [o.experiment.name for o in numbers.in_order(results)] == ["setting-1", "setting-1-fresh"]


def test_all_read_outs_come_out_again_in_the_results_of_this_repository() -> None:
    rows = numbers.read_out_rows(read_results(Path(__file__).parents[2] / "results"))
    assert len(rows) == 110
    assert [row for row in rows if not row.within] == []


def test_intervals_of_regret_end_at_0() -> None:
    regrets, units = np.array([1.0, 2.0, 300.0]), np.arange(3)
    whole = statistics.interval(regrets, units, 0.95)
    shown = numbers.regret_interval(regrets, units)
    assert whole is not None
    assert shown is not None
    assert whole.low < 0
    assert shown == whole._replace(low=0.0), "the rest is as it was"
    assert numbers.regret_interval(regrets - 100, units) == statistics.interval(regrets - 100, units, 0.95), (
        "not a regret"
    )
    assert numbers.regret_interval(regrets[:1], units[:1]) is None
