"""Verdicts on claims 1 to 4, 7 and 8 from fabricated regrets, and the parts that all claims share."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybandits import paper
from hybandits.experiments.record import Experiment, Unit
from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import HYRAN_RELEASED, theorems
from hybandits.paper.claims import FAILS, HOLDS, OPEN, Verdict
from hybandits.paper.exponents import Growth
from hybandits.paper.judging import (
    JudgedOutcome,
    judge,
    judge_claim_4,
    judge_claim_7,
    judge_claim_8,
    judge_mean,
    judge_order,
)
from tests.support.fabricated_outcomes import (
    ORDER_1,
    Curve,
    as_results,
    beyond_the_burn_in,
    diversity,
    fabricated_outcome,
    judged,
    measures,
    of_one_arm,
    power_curves,
    root_curves,
    short_setting,
    the_finding,
)
from tests.support.fabricated_results import LEVELS, on_a_log

# ------------------------------------------------------------------ parts


def test_a_mean_is_judged_by_its_interval() -> None:
    units = np.arange(5)
    values = np.array([-1.0, -1.1, -0.9, -1.05, -0.95])
    assert judge_mean(values, units, below=0.0).answer == HOLDS
    assert judge_mean(-values, units, below=0.0).answer == FAILS
    assert judge_mean(values - values, units, below=0.0).answer == OPEN
    assert judge_mean(values + 1, units, below=0.0).answer == OPEN
    # Significant alone, but no contradiction of a claim with a hundred parts.
    weak = np.array([1.0, 0.4, 0.9, 0.3, 0.8])
    assert judge_mean(weak, units, below=0.0).answer == FAILS
    assert judge_mean(weak, units, below=0.0, parts=100).answer == OPEN


@pytest.mark.slow
def test_false_alarms_under_no_difference() -> None:
    """Five environments, five trials each, no true difference: "A < B" is declared in 2.5 % of repetitions.

    Counted as 25 independent runs, the same data would cry wolf ten times as often.
    """
    random = np.random.default_rng(0)
    units, repetitions = np.repeat(np.arange(5), 5), 3000
    clustered = naive = 0
    for _ in range(repetitions):
        difference = np.repeat(random.normal(size=5), 5) + 0.3 * random.normal(size=25)
        clustered += judge_mean(difference, units, below=0.0).answer == HOLDS
        naive += judge_mean(difference, np.arange(25), below=0.0).answer == HOLDS
    # Binomial standard deviation at 2.5 % and 3000 repetitions: 0.29 %.
    assert 0.016 < clustered / repetitions < 0.034
    assert naive / repetitions > 0.15


# ------------------------------------------------------------------ an experiment's results


def test_parameters_come_from_the_record_or_from_the_theorems() -> None:
    e = short_setting("setting-1")
    released = judged(e, power_curves(e, ORDER_1))
    assert released.ridge("HyLinUCB", 25) == 0.1
    assert released.delta("HyLinUCB") == paper.DELTA
    assert released.parameters("HyLinUCB")["exploration"]["kind"] == "SelfNormalised"
    e = paper.experiment("setting-1", "written", scale="quick").only(["HyLinUCB", "LinUCB"])
    written = judged(e, power_curves(e, ORDER_1), lambda *_: None)
    assert (written.ridge("HyLinUCB", 25), written.ridge("LinUCB", 25)) == (25.0, 1.0)
    assert (written.protocol, written.delta("LinUCB")) == ("written", paper.DELTA)


def test_rho_is_the_largest_of_any_run_and_sets_the_burn_in() -> None:
    e = diversity(trials=4)
    outcome = judged(e, root_curves(e, 0.5), measures(e, rho=0.05))
    rho = outcome.rho("LinUCB", 25)
    assert 0.045 < rho <= 0.05
    problem = theorems.Problem(d1=10, d2=10, arms=25, horizon=5_000, rho=rho, delta=paper.DELTA)
    assert outcome.burn_in("LinUCB", 25) == theorems.burn_in("LinUCB", problem)


@pytest.mark.parametrize("rho", [0.0, math.nan])
def test_without_diversity_there_is_no_burn_in(rho: float) -> None:
    e = diversity(trials=2)
    measured = judged(e, root_curves(e, 0.5), measures(e, rho=rho))
    unmeasured = judged(e, root_curves(e, 0.5))
    for outcome in (measured, unmeasured):
        assert math.isnan(outcome.rho("LinUCB", 25))
        assert outcome.burn_in("LinUCB", 25) == math.inf


def test_exponents_are_those_of_late_rounds() -> None:
    e = diversity(trials=2)
    outcome = judged(e, root_curves(e, 0.5))
    t = np.array([1000.0, 2500.0, 3800.0, 5000.0])
    assert outcome.late(t).tolist() == [False, True, True, True]
    assert outcome.late(t, 0.25).tolist() == [False, False, True, True]
    assert outcome.regret_exponents("LinUCB") == pytest.approx(0.5, abs=0.1)


# ------------------------------------------------------------------ claims 1 to 3


ORDER_2 = {"DisLinUCB": 100.0, "HyLinUCB": 120.0, HYRAN_RELEASED: 200.0, "LinUCB": 400.0, "HyRan": 50.0}
LINEAR_HYRAN = {HYRAN_RELEASED: 0.97, "HyRan": 0.6}


def test_claim_1_holds_whatever_hyran_with_its_cross_blocks_does() -> None:
    """HyRan with its cross blocks has the smallest regret in `ORDER_1`."""
    e = short_setting("setting-1")
    verdict = judge_order("1", judged(e, power_curves(e, ORDER_1)))
    assert verdict.verdict == HOLDS
    assert (verdict.protocol, len(verdict.evidence)) == ("released", 4)
    assert "15 of 15 runs" in the_finding(verdict, "HyLinUCB < LinUCB").value


def test_claim_1_reversed_and_tied() -> None:
    e = short_setting("setting-1")
    swapped = judge_order("1", judged(e, power_curves(e, ORDER_1 | {"HyLinUCB": 310.0})))
    assert swapped.verdict == FAILS
    assert swapped.summary.startswith("Contradicted: HyLinUCB < LinUCB; the whole order appears in ")
    assert the_finding(swapped, "LinUCB < DisLinUCB").verdict == HOLDS
    tied = judge_order("1", judged(e, power_curves(e, ORDER_1 | {"HyLinUCB": 300.0})))
    assert tied.verdict == OPEN
    assert tied.summary.startswith("Not settled: HyLinUCB < LinUCB; ")


def test_a_missing_policy_leaves_a_claim_undecided() -> None:
    e = short_setting("setting-1").only(["LinUCB", "HyLinUCB", "DisLinUCB"])
    verdict = judge_order("1", judged(e, power_curves(e, ORDER_1)))
    assert (verdict.verdict, verdict.summary) == (OPEN, "No results for HyRan (released).")


def test_claim_2_holds() -> None:
    e = short_setting("setting-2")
    verdict = judge_order("2", judged(e, power_curves(e, ORDER_2, LINEAR_HYRAN)))
    assert verdict.verdict == HOLDS
    assert the_finding(verdict, f"{HYRAN_RELEASED} linear").value.startswith("exponent of the mean curve 0.97, 95 %")
    assert sum(r.verdict is None for r in verdict.evidence) == 1


@pytest.mark.parametrize(
    ("shapes", "part"),
    [
        (LINEAR_HYRAN | {HYRAN_RELEASED: 0.7}, f"{HYRAN_RELEASED} linear"),
        (LINEAR_HYRAN | {"LinUCB": 1.0}, "LinUCB sublinear"),
    ],
)
def test_claim_2_fails_by_shape(shapes: dict[str, float], part: str) -> None:
    e = short_setting("setting-2")
    verdict = judge_order("2", judged(e, power_curves(e, ORDER_2, shapes)))
    assert verdict.verdict == FAILS
    assert verdict.summary == f"Contradicted: {part}; the whole order appears in 5 of 5 environments."


def test_linear_is_undecided_where_the_mean_curve_and_the_runs_differ() -> None:
    """Three environments of five have a linear regret, 40 times as large as that of the other two."""
    e = short_setting("setting-2")

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        large = environment < 3 and policy == HYRAN_RELEASED
        levels = ORDER_2 | {HYRAN_RELEASED: 8000.0 if large else 200.0}
        shapes = LINEAR_HYRAN | {HYRAN_RELEASED: 1.0 if large else 0.6}
        return power_curves(e, levels, shapes, spread=0.0)(policy, arms, environment, trial)

    linear = the_finding(judge_order("2", judged(e, curve)), f"{HYRAN_RELEASED} linear")
    curve_part, runs, answers = linear.value.split("; ")
    assert curve_part.startswith("exponent of the mean curve 0.99")
    assert runs.startswith("mean of the exponents of the runs 0.84,"), "(3 + 2 * 0.6) / 5"
    assert (linear.verdict, answers) == (OPEN, "the first alone: holds, the second: undecided")


def test_zero_and_broken_regrets_are_undecided() -> None:
    e = short_setting("setting-2")
    for value in (0.0, math.nan):
        verdict = judge_order("2", judged(e, lambda *_, v=value: np.full(len(e.points), v)))
        assert verdict.verdict == OPEN
        assert "no interval" in the_finding(verdict, "LinUCB sublinear").value


def setting_3(exponents: dict[str, float], at_10: dict[str, float], **changes: Any) -> Outcome:
    e = short_setting("setting-3", arms=(10, 100, 400), **changes)

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        level = at_10[policy] * (arms / 10) ** exponents[policy]
        return power_curves(e, {policy: level})(policy, arms, environment, trial)

    return fabricated_outcome(e, curve)


LEVELS_3 = {"HyLinUCB": 20.0, "DisLinUCB": 40.0, "LinUCB": 90.0, HYRAN_RELEASED: 700.0, "HyRan": 10.0}
SLOWEST = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN_RELEASED: 0.7, "HyRan": 0.5}


def test_claim_3_holds() -> None:
    verdict = judge_order("3", JudgedOutcome(setting_3(SLOWEST, LEVELS_3)))
    assert verdict.verdict == HOLDS
    assert verdict.summary == (
        "The order is as stated at every K. HyLinUCB's regret grows slowest with K; the whole order appears in 5 of 5 "
        "environments at every K."
    )
    assert len(verdict.evidence) == 3 * 3 + 3 + 5 + 1
    growth = the_finding(verdict, "growth of HyLinUCB < DisLinUCB").value
    assert growth.startswith("local exponents lower in 2 of 2 steps, higher in 0; regret added per arm lower in 2 of 2")
    local = the_finding(verdict, "local exponents of DisLinUCB (not deciding)").value
    exponents = re.findall(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)", local)
    assert len(exponents) == 2
    for exponent, low, high in exponents:
        assert float(low) < float(exponent) < float(high)
        assert float(exponent) == pytest.approx(0.9, abs=0.01)
    assert ") from K = 10 to 100, 0.9" in local
    assert local.endswith("% of uniform choice's regret")


def test_environments_in_the_whole_order_are_counted() -> None:
    """Two of five environments have another order, at one number of arms only."""
    e = short_setting("setting-3", arms=(10, 400))

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        changed = LEVELS_3 | ({"DisLinUCB": 10.0} if environment < 2 and arms == 400 else {})
        return power_curves(e, changed)(policy, arms, environment, trial)

    verdict = judge_order("3", judged(e, curve))
    counted = the_finding(verdict, "environments in the whole stated order (not deciding)")
    assert (counted.value, counted.verdict) == ("5 of 5 at K = 10; 3 of 5 at K = 400; 3 of 5 at every K", None)
    assert verdict.summary.endswith("; the whole order appears in 3 of 5 environments at every K.")


def test_claim_3_where_the_two_measures_of_growth_differ() -> None:
    """A large regret that grows slowly as a power adds more per arm than a small one that grows fast."""
    growth = {"HyLinUCB": 0.9, "DisLinUCB": 1.0, "LinUCB": 1.1, HYRAN_RELEASED: 0.6, "HyRan": 0.5}
    low = {name: level / 4 for name, level in LEVELS_3.items()}
    for environments in (5, 10):
        seeds = tuple(range(environments))
        verdict = judge_order("3", JudgedOutcome(setting_3(growth, low, seeds=seeds)))
        assert verdict.verdict == OPEN
        assert verdict.summary.startswith(
            "The order is as stated at every K, but HyLinUCB's regret may or may not grow slowest with K: against "
            f"{HYRAN_RELEASED} local exponents and regret added per arm disagree; the whole order"
        )
        compared = the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED}")
        assert "local exponents lower in 0 of 2 steps, higher in 2; regret added per arm lower in 2" in compared.value
        assert the_finding(verdict, "growth of HyLinUCB < DisLinUCB").verdict == HOLDS


@pytest.mark.parametrize(("level", "answer"), [(0.01, FAILS), (0.6, OPEN)])
def test_slow_growth_near_uniform_choice_does_not_count(level: float, answer: str) -> None:
    """HyRan's regret is this share of uniform choice's and does not grow, so both measures say that HyLinUCB's does."""
    outcome = setting_3(SLOWEST, LEVELS_3)
    uniform = Growth(outcome, ["HyLinUCB"]).uniform[-1]
    flat = setting_3(SLOWEST | {HYRAN_RELEASED: 0.0}, LEVELS_3 | {HYRAN_RELEASED: level * uniform})
    verdict = judge_order("3", JudgedOutcome(flat))
    finding = the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED}")
    assert "local exponents lower in 0 of 2 steps, higher in 2; regret added per arm lower in 0" in finding.value
    assert finding.value.endswith("% of uniform choice's regret")
    assert finding.verdict == answer
    assert ("regret is close to that of uniform choice" in verdict.summary) == (answer == OPEN)


def test_claim_3_contradicted_by_order_and_by_growth() -> None:
    verdict = judge_order("3", JudgedOutcome(setting_3(SLOWEST, LEVELS_3 | {"DisLinUCB": 15.0})))
    assert verdict.verdict == FAILS
    assert verdict.summary.startswith("Contradicted: HyLinUCB < DisLinUCB at K = 10.")
    growth = {"HyLinUCB": 0.6, "DisLinUCB": 0.65, "LinUCB": 0.7, HYRAN_RELEASED: 0.0, "HyRan": 0.5}
    levels = {"HyLinUCB": 2.0, "DisLinUCB": 4.0, "LinUCB": 8.0, HYRAN_RELEASED: 300.0, "HyRan": 300.0}
    verdict = judge_order("3", JudgedOutcome(setting_3(growth, levels)))
    assert the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED}").verdict == FAILS
    assert verdict.summary.startswith("The order is as stated at every K, but HyLinUCB's regret does not grow slowest")


def test_claim_3_with_cases_missing() -> None:
    full = setting_3(SLOWEST, LEVELS_3)
    for kept in ([10, 400], [10]):
        part = replace(full, tables={arms: full.tables[arms] for arms in kept})
        verdict = judge_order("3", JudgedOutcome(part))
        assert verdict.verdict == OPEN
        assert "K = 100" in verdict.summary


# ------------------------------------------------------------------ claim 4


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "answer"), [(0.5, HOLDS), (0.3, HOLDS), (0.55, OPEN), (0.8, FAILS)])
def test_claim_4_after_the_burn_in(shape: float, answer: str) -> None:
    e = beyond_the_burn_in()
    verdict = judge_claim_4(judged(e, root_curves(e, shape), of_one_arm(measures(e, rho=1.0))))
    assert verdict.verdict == answer
    assert verdict.summary.startswith("Exponents at this T: LinUCB 0.")


@pytest.mark.parametrize("shape", [0.3, 0.5, 0.8])
def test_claim_4_says_nothing_before_the_burn_in(shape: float) -> None:
    e = diversity()
    outcome = judged(e, root_curves(e, shape), measures(e))
    verdict = judge_claim_4(outcome)
    assert verdict.verdict == OPEN
    assert {finding.verdict for finding in verdict.evidence} == {OPEN}
    burn_in = outcome.burn_in("LinUCB", 25)
    assert verdict.summary.startswith(f"T = 5,000 is before the burn-in (LinUCB {burn_in:.1e}".replace("e+0", "e"))


# ------------------------------------------------------------------ claim 7


def verdict_at(rho: float, arms: int, level: float, *, first: float = 1.0) -> Verdict:
    """The verdict on regrets of one level, `first` times as large in environment 0, in 50,000 rounds."""
    rounds = (100, 50_000)
    e = replace(
        short_setting("setting-1"), arms=(arms,), d1=1, d2=1, horizon=50_000, points=rounds, probes=rounds[1:], trials=1
    )

    def design(unit: Unit, policy: str, trial: int) -> Any:
        if policy.startswith("HyRan"):
            return None
        return {"lambda_min_v": [1.0], "rho_x": [rho], "rho_z": [rho / 2 if unit.environment else rho], "z_norm": [0.1]}

    curve = power_curves(e, dict.fromkeys(ORDER_1, level))

    def scaled(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        return curve(policy, arms, environment, trial) * (1.0 if environment else first)

    return judge_claim_7([judged(e, scaled, design)])


@pytest.mark.parametrize(
    ("rho", "arms", "level", "answer", "words"),
    [
        (0.05, 25, 100.0, OPEN, "3 of 3 are vacuous, and T does not exceed the burn-in in 2 of 3"),
        (1.0, 1, 100.0, HOLDS, "T does not exceed the burn-in in 0 of 3"),
        (1.0, 1, 1e9, FAILS, "3 of 3 largest regrets exceed their bound"),
    ],
)
def test_claim_7(rho: float, arms: int, level: float, answer: str, words: str) -> None:
    verdict = verdict_at(rho, arms, level)
    assert verdict.verdict == answer
    assert len(verdict.evidence) == 3
    assert words in verdict.summary
    assert f"rho = {rho:g}" in verdict.evidence[0].value, "the largest of any run"
    assert "another lambda and gamma" in verdict.evidence[0].value


def test_a_bound_that_may_fail_with_a_small_probability_is_not_refuted_by_one_run_or_before_the_burn_in() -> None:
    verdict = verdict_at(1.0, 1, 100.0, first=1e7)
    assert verdict.summary.startswith("3 of 3 largest regrets exceed their bound")
    assert verdict.verdict == OPEN
    early = verdict_at(0.05, 25, 1e30)
    assert [finding.verdict for finding in early.evidence] == [OPEN, OPEN, FAILS], "DisLinUCB's has no burn-in"


# ------------------------------------------------------------------ claim 8


def on_real_data(protocol: Any = "released", *, synthetic: bool = False, **changes: Any) -> Experiment:
    return on_a_log(protocol, synthetic=synthetic, **changes)


def curves(levels: Mapping[str, float] = LEVELS, spread: float = 1.0) -> Curve:
    """Regret like a square root, trials about `spread` apart at T."""

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        return (levels[policy] + spread * (trial + 0.1 * len(policy) * (-1) ** trial)) * np.sqrt(
            np.arange(1, 101) / 100
        )

    return curve


def verdict_on(experiment: Experiment, **curve: Any) -> Verdict:
    return judge_claim_8(judged(experiment, curves(**curve)))


def test_the_claim_holds_on_real_data_with_two_trials() -> None:
    verdict = verdict_on(on_real_data())
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
    verdict = verdict_on(on_real_data(), levels=LEVELS | changes)
    assert verdict.verdict == answer
    assert part in verdict.summary


def test_algorithms_that_still_explore_are_not_ranked() -> None:
    verdict = verdict_on(on_real_data(uniform_choice_regret=1050.0))
    assert verdict.verdict == OPEN
    assert verdict.summary.startswith("Too early to tell: after 200,000 rounds HyLinUCB has lost 95 % of what")
    assert {finding.verdict for finding in verdict.evidence} == {None}
    assert "so far: holds" in verdict.evidence[0].value


def test_one_trial_gives_numbers_and_no_verdict() -> None:
    verdict = verdict_on(on_real_data(trials=1), spread=0.0)
    assert verdict.verdict == OPEN
    assert verdict.summary == "Not settled: one trial gives no interval (--trials 2 or more would)."
    assert verdict.evidence[0].value.startswith("1,000 against 1,100")
    assert {finding.verdict for finding in verdict.evidence} == {OPEN, None}
    assert "no interval" in verdict.evidence[0].value


@pytest.mark.parametrize("levels", [LEVELS, {**LEVELS, "DisLinUCB": 10.0}])
@pytest.mark.parametrize("trials", [1, 3])
def test_a_synthetic_log_never_decides(levels: dict[str, float], trials: int) -> None:
    verdict = verdict_on(on_real_data(synthetic=True, trials=trials), levels=levels)
    assert verdict.verdict == OPEN
    assert verdict.summary.startswith(
        "No real data: the log is synthetic, not Yahoo's, so nothing is known about the claim."
    )
    assert {finding.verdict for finding in verdict.evidence} == {None}
    assert all(finding.what.endswith("(not deciding)") for finding in verdict.evidence)
    answers = [finding.value.rpartition("; so far: ")[2] for finding in verdict.evidence[:5]]
    if trials == 1:
        assert answers == [OPEN] * 5
    else:
        assert set(answers) == ({HOLDS} if levels == LEVELS else {HOLDS, FAILS})


def test_positions_as_arms_are_a_claim_of_their_own() -> None:
    records = [on_real_data(), on_real_data(arms="positions"), on_real_data("written")]
    verdicts = judge(as_results(*(fabricated_outcome(record, curves()) for record in records)))
    judged_claims = [(verdict.claim, verdict.protocol) for verdict in verdicts]
    assert judged_claims == [("8", "released"), ("8", "written"), ("8 (positions)", "released")]
    assert "positions" in verdicts[2].statement
    for verdict in verdicts:
        assert verdict.statement.endswith(".")
        assert verdict.test.endswith(".")


# ------------------------------------------------------------------ all claims


def test_one_trial_per_environment_is_enough_and_one_environment_is_not() -> None:
    e = short_setting("setting-1", trials=1)
    assert judge_order("1", judged(e, power_curves(e, ORDER_1))).verdict == HOLDS
    e = short_setting("setting-1", seeds=(1,))
    verdict = judge_order("1", judged(e, power_curves(e, ORDER_1)))
    assert verdict.verdict == OPEN
    e = diversity(trials=1)
    verdicts = judge(as_results(fabricated_outcome(e, root_curves(e, 0.5), measures(e))))
    assert {v.verdict for v in verdicts} == {OPEN}


def test_both_protocols_are_judged_and_absent_experiments_skipped() -> None:
    e = short_setting("setting-1")
    written = replace(e, protocol="written")
    reverse = ORDER_1 | {"HyLinUCB": 900.0}
    in_order = fabricated_outcome(e, power_curves(e, ORDER_1))
    verdicts = judge(as_results(in_order, fabricated_outcome(written, power_curves(e, reverse))))
    assert [(v.claim, v.protocol) for v in verdicts] == [(c, p) for c in "17" for p in ("released", "written")]
    assert [v.verdict for v in verdicts][:2] == [HOLDS, FAILS]


def test_fresh_environments_are_judged_beside_the_published_ones() -> None:
    e = short_setting("setting-1")
    fresh = replace(e, name="setting-1-fresh", seeds=tuple(range(30)), trials=1)
    written = replace(e, protocol="written")
    reverse = ORDER_1 | {"HyLinUCB": 900.0}
    outcomes = [
        fabricated_outcome(e, power_curves(e, ORDER_1)),
        fabricated_outcome(fresh, power_curves(e, reverse)),
        fabricated_outcome(written, power_curves(e, ORDER_1)),
    ]
    verdicts = [v for v in judge(as_results(*outcomes)) if v.claim == "1"]
    assert [(v.protocol, v.basis, v.aside, v.verdict) for v in verdicts] == [
        ("released", "the 5 published environments", False, HOLDS),
        ("released", "30 fresh environments", True, FAILS),
        ("written", "5 environments", False, HOLDS),
    ]
    (alone,) = judge(as_results(outcomes[1]))
    assert (alone.claim, alone.aside) == ("1", True), "no other claim rests on fresh environments"


def test_every_claim_says_what_it_is_and_how_it_is_tested() -> None:
    e = diversity(trials=4)
    s = short_setting("setting-1")
    outcome = fabricated_outcome(e, root_curves(e, 0.5), measures(e))
    for verdict in judge(as_results(outcome, fabricated_outcome(s, power_curves(s, ORDER_1)))):
        assert verdict.title
        assert verdict.statement.endswith(".")
        assert verdict.test.endswith(".")
        assert verdict.summary.endswith(".")
        assert "nan" not in f"{verdict.summary} {' '.join(r.value for r in verdict.evidence)}"
