"""Claim 8 on fabricated regrets: as if on Yahoo's log, and on a synthetic one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.foundation.checks import FloatArray
from hybandits.paper import HYRAN_RELEASED, HYTHOMPSON_TOLD
from hybandits.paper.claims import FAILS, HOLDS, OPEN, Verdict, judge
from hybandits.paper.claims.click_log import judge_claim_8
from tests.support.fabricated_outcomes import Curve, as_results, fabricated_outcome, judged

LEVELS = {
    "HyLinUCB": 1000.0, "LinUCB": 1100.0, "DisLinUCB": 1400.0, HYRAN_RELEASED: 2000.0, "HyRan": 1700.0,
    HYTHOMPSON_TOLD: 50.0, "HyThompson": 45.0, "HyIDS": 40.0,
}  # fmt: skip
"""Regret at T: LinUCB is 100 beyond HyLinUCB, DisLinUCB 400, HyRan as plotted 1,000."""


def on_a_log(
    *, protocol: Any = "released", synthetic: bool = False, arms: str = "articles", trials: int = 2,
    defect: bool = False, policies: tuple[str, ...] = paper.YAHOO_POLICIES, uniform_choice_regret: float = 2500.0,
) -> Experiment:  # fmt: skip
    """The record of an experiment on a click log of 200,000 rounds."""
    entries = [paper.yahoo_entry(name, protocol) for name in policies]
    if defect:
        plotted = [entry for entry in entries if entry.name in paper.YAHOO_ORDER]
        entries += [replace(entry, name=f"{entry.name}, defect") for entry in plotted]
    log = {
        "kind": "R6A",
        "synthetic": {"seed": 0} if synthetic else None,
        "uniform_choice_regret": uniform_choice_regret,
    }
    return Experiment(
        name="yahoo" if arms == "articles" else "yahoo-positions", protocol=protocol, d1=36, d2=6, arms=(22,),
        horizon=200_000, seeds=(0,), trials=trials, noise=0.01, law="log", policies=tuple(entries),
        points=(100_000, 200_000), log=log,
    )  # fmt: skip


def curves(levels: Mapping[str, float] = LEVELS, spread: float = 1.0) -> Curve:
    """Regret like a square root, trials about `spread` apart at T; a defect costs a tenth."""

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        name = policy.removesuffix(", defect")
        level = levels[name] * (1.0 if name == policy else 1.1)
        return (level + spread * (trial + 0.1 * len(policy) * (-1) ** trial)) * np.sqrt([0.5, 1.0])

    return curve


def verdict_on(experiment: Experiment, **curve: Any) -> Verdict:
    return judge_claim_8(judged(experiment, curves(**curve)))


def test_the_claim_holds_on_real_data_with_two_trials() -> None:
    verdict = verdict_on(on_a_log())
    assert (verdict.claim, verdict.verdict) == ("8", HOLDS)
    deciding = {finding.what: finding for finding in verdict.evidence if finding.verdict is not None}
    assert list(deciding) == [
        "HyLinUCB < LinUCB",
        "HyLinUCB < DisLinUCB",
        "HyLinUCB < HyRan (released)",
        "excess of LinUCB < 0.5 of DisLinUCB's",
        "excess of LinUCB < 0.5 of HyRan (released)'s",
    ]
    # Differences of -99.8 and -100.2: Student's t with one degree of freedom is 12.706.
    value = deciding["HyLinUCB < LinUCB"].value
    assert "difference -100, 95 % interval -103 to -97.5" in value
    assert "smaller in 2 of 2 runs" in value
    assert "environments" not in value, "there is one log"
    assert "about this log" in verdict.test


@pytest.mark.parametrize(
    ("changes", "answer", "part"),
    [
        ({"DisLinUCB": 950.0}, FAILS, "HyLinUCB < DisLinUCB"),
        ({"LinUCB": 1300.0}, FAILS, "excess of LinUCB < 0.5 of DisLinUCB's"),
        ({"LinUCB": 1000.0}, OPEN, "HyLinUCB < LinUCB"),
        ({"HyRan": 10.0, "HyIDS": 10.0}, HOLDS, ""),
    ],
)
def test_parts_of_the_claim(changes: dict[str, float], answer: str, part: str) -> None:
    verdict = verdict_on(on_a_log(), levels=LEVELS | changes)
    assert verdict.verdict == answer
    assert part in verdict.summary


def test_algorithms_that_still_explore_are_not_ranked() -> None:
    verdict = verdict_on(on_a_log(uniform_choice_regret=1050.0))
    assert verdict.verdict == OPEN
    assert verdict.summary.startswith("Too early to tell: after 200,000 rounds HyLinUCB has lost 95 % of what")
    assert {finding.verdict for finding in verdict.evidence} == {None}
    assert "so far: holds" in verdict.evidence[0].value


def test_one_trial_gives_numbers_and_no_verdict() -> None:
    verdict = verdict_on(on_a_log(trials=1), spread=0.0)
    assert verdict.verdict == OPEN
    assert verdict.summary == (
        "Not settled: one trial gives no interval (--trials 2 or more would). In that trial: HyLinUCB 1,000, LinUCB "
        "1,100, DisLinUCB 1,400, HyRan (released) 2,000."
    )
    assert {finding.verdict for finding in verdict.evidence} == {OPEN, None}
    assert "no interval: one trial only" in verdict.evidence[0].value


@pytest.mark.parametrize("levels", [LEVELS, {**LEVELS, "DisLinUCB": 10.0}])
@pytest.mark.parametrize("trials", [1, 3])
def test_a_synthetic_log_never_decides(levels: dict[str, float], trials: int) -> None:
    verdict = verdict_on(on_a_log(synthetic=True, trials=trials, defect=True), levels=levels)
    assert verdict.verdict == OPEN
    assert verdict.summary.startswith(
        "No real data: the log is synthetic, not Yahoo's, so nothing is known about the claim."
    )
    assert {finding.verdict for finding in verdict.evidence} == {None}
    for finding in verdict.evidence:
        assert finding.what.startswith("synthetic log: ")
        assert finding.what.endswith("(not deciding)")
    answers = [finding.value.rpartition("; in this synthetic log: ")[2] for finding in verdict.evidence[:5]]
    if trials == 1:
        assert answers == [OPEN] * 5
    else:
        assert set(answers) == ({HOLDS} if levels == LEVELS else {HOLDS, FAILS})


def test_missing_policies_are_named() -> None:
    verdict = verdict_on(on_a_log(policies=("HyLinUCB", "LinUCB", "HyRan")))
    assert (verdict.verdict, verdict.summary) == (OPEN, "No results for DisLinUCB and HyRan (released).")
    assert [finding.what for finding in verdict.evidence] == ["HyLinUCB < HyRan (not deciding)"]


def test_positions_as_arms_are_a_claim_of_their_own() -> None:
    records = [on_a_log(), on_a_log(arms="positions", defect=True), on_a_log(protocol="written")]
    verdicts = judge(as_results(*(fabricated_outcome(record, curves()) for record in records)))
    judged_claims = [(verdict.claim, verdict.protocol) for verdict in verdicts]
    assert judged_claims == [("8", "released"), ("8", "written"), ("8 (positions)", "released")]
    assert "positions" in verdicts[2].statement
    assert verdicts[2].evidence[-1].what == "HyLinUCB, defect < HyRan (released), defect (not deciding)"
    for verdict in verdicts:
        assert verdict.statement.endswith(".")
        assert verdict.test.endswith(".")
