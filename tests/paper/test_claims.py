"""Verdicts on made-up results with known answers, and how often they are wrong where there is nothing to find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pytest

from hybandits import paper
from hybandits.experiments import statistics
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Experiment, Unit, grid
from hybandits.experiments.results import Outcome, Results, Run, unit_table
from hybandits.foundation.checks import Doubles
from hybandits.paper.claims import FAILS, HOLDS, OPEN, Evidence, Verdict, judge, locate

HYRAN = paper.HYRAN_RELEASED

Curve = Callable[[str, int, int, int], Doubles]
"""Regret by policy, arms, environment and trial."""


def outcome(experiment: Experiment, curve: Curve, design: Callable[[Unit, str, int], Any] | None = None) -> Outcome:
    tables: dict[int, list[pa.Table]] = {}
    for unit in experiment.units():
        runs = [
            Run(
                policy=entry.name,
                trial=trial,
                regret=curve(entry.name, unit.arms, unit.environment, trial),
                design=None if design is None else design(unit, entry.name, trial),
            )
            for entry in experiment.policies
            for trial in range(unit.first, unit.last)
        ]
        tables.setdefault(unit.arms, []).append(unit_table(unit, runs))
    return Outcome(experiment=experiment, tables={arms: pa.concat_tables(t) for arms, t in tables.items()})


def results(*outcomes: Outcome) -> Results:
    named = {(o.experiment.name, str(o.experiment.protocol)): o for o in outcomes}
    return Results(folder=Path(), manifest={}, outcomes=named)


def only(verdicts: list[Verdict], claim: str) -> Verdict:
    (found,) = [verdict for verdict in verdicts if verdict.claim == claim]
    return found


def row(verdict: Verdict, what: str) -> Evidence:
    (found,) = [evidence for evidence in verdict.evidence if evidence.what == what]
    return found


def setting(name: str, **changes: Any) -> Experiment:
    """One of the paper's experiments, short, with the policies that its claim is about."""
    experiment = paper.experiment(name, "released").only([*paper.PAPER_POLICIES, "HyRan", HYRAN])
    horizon = 2_000
    points = grid(horizon, 40)
    return replace(experiment, **({"horizon": horizon, "points": points, "probes": (), "trials": 3} | changes))


def powers(
    experiment: Experiment, levels: dict[str, float], shapes: dict[str, float] | None = None, spread: float = 0.02
) -> Curve:
    """Curves level (t/T)^shape, varied by environment and trial but alike for the policies of a run."""
    t = np.array(experiment.points) / experiment.horizon

    def curve(policy: str, arms: int, environment: int, trial: int) -> Doubles:
        noise = np.random.default_rng([environment, trial, arms]).normal(1, spread)
        own = np.random.default_rng([environment, trial, arms, len(policy)]).normal(1, spread / 4)
        return levels[policy] * noise * own * t ** (shapes or {}).get(policy, 0.5)

    return curve


# ------------------------------------------------------------------ statistics


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.975, 1, 12.7062), (0.975, 4, 2.7764), (0.995, 4, 4.6041), (0.95, 10, 1.8125), (0.975, 24, 2.0639),
        (0.975, 99, 1.9842), (0.999, 2, 22.3271), (0.9995, 120, 3.3735), (0.5, 7, 0.0),
    ],
)  # fmt: skip
def test_student_quantiles_are_those_of_the_tables(probability: float, freedom: int, expected: float) -> None:
    assert statistics.student_quantile(probability, freedom) == pytest.approx(expected, abs=6e-5)
    assert statistics.student_quantile(1 - probability, freedom) == pytest.approx(-expected, abs=6e-5)


@pytest.mark.parametrize("a", [0.5, 2.0, 49.5, 300.0])
@pytest.mark.parametrize("b", [0.5, 1.0, 7.0, 120.0])
def test_the_incomplete_beta_function(a: float, b: float) -> None:
    for x in (0.0, 1e-6, 0.05, 0.3, 0.5, 0.9, 1 - 1e-9, 1.0):
        expected = float(mpmath.betainc(a, b, 0, x, regularized=True))
        assert statistics.incomplete_beta(a, b, x) == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize(("successes", "trials"), [(100, 100), (74, 74), (97, 100), (1, 10), (5, 5)])
def test_the_floor_of_a_proportion_is_where_the_tail_has_the_error_left(successes: int, trials: int) -> None:
    p = statistics.proportion_floor(successes, trials, 0.95)
    tail = sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))
    assert tail == pytest.approx(0.05)
    assert statistics.proportion_floor(0, trials, 0.95) == 0


def test_an_interval_counts_environments_not_runs() -> None:
    values = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0])
    units = np.repeat([0, 1, 2], 3)
    found = statistics.interval(values, units, 0.95)
    assert found is not None
    half = 4.302653 * math.sqrt(7 / 3) / math.sqrt(3)
    assert found == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half, 3), rel=1e-6)
    assert statistics.interval(values, np.zeros(9), 0.95) is None
    assert statistics.interval(np.full(9, np.nan), units, 0.95) is None


def test_an_interval_within_environments_leaves_out_how_they_differ() -> None:
    values = np.array([1.0, 3.0, 12.0, 14.0, 20.0, 22.0])
    units = np.repeat([0, 1, 2], 2)
    found = statistics.interval_within(values, units, 0.95)
    assert found is not None
    half = 3.182446 * math.sqrt(2.0 / 6)  # variance 2 in each of three pairs, 3 degrees of freedom
    assert found == pytest.approx((12.0, 12.0 - half, 12.0 + half, 3), rel=1e-6)
    assert statistics.interval_within(values, np.arange(6), 0.95) is None
    assert statistics.interval_within(np.full(6, np.nan), units, 0.95) is None


def test_locating_a_mean() -> None:
    units = np.arange(5)
    values = np.array([-1.0, -1.1, -0.9, -1.05, -0.95])
    assert locate(values, units, most=0.0, confidence=0.95).answer == HOLDS
    assert locate(-values, units, most=0.0, confidence=0.95).answer == FAILS
    assert locate(values - values, units, most=0.0, confidence=0.95).answer == OPEN
    assert locate(values + 1, units, most=0.0, confidence=0.95).answer == OPEN
    # Significant alone, but no contradiction of a claim with a hundred parts.
    weak = np.array([1.0, 0.4, 0.9, 0.3, 0.8])
    assert locate(weak, units, most=0.0, confidence=0.95).answer == FAILS
    assert locate(weak, units, most=0.0, confidence=0.95, parts=100).answer == OPEN


def test_false_alarms_under_no_difference() -> None:
    """Five environments, five trials each, no true difference: "A < B" is declared in 2.5 % of repetitions.

    Counted as 25 independent runs, the same data would cry wolf ten times as often.
    """
    random = np.random.default_rng(0)
    units, repetitions = np.repeat(np.arange(5), 5), 3000
    clustered = naive = 0
    for _ in range(repetitions):
        difference = np.repeat(random.normal(size=5), 5) + 0.3 * random.normal(size=25)
        clustered += locate(difference, units, most=0.0, confidence=0.95).answer == HOLDS
        naive += locate(difference, np.arange(25), most=0.0, confidence=0.95).answer == HOLDS
    # Binomial standard deviation at 2.5 % and 3000 repetitions: 0.29 %.
    assert 0.016 < clustered / repetitions < 0.034
    assert naive / repetitions > 0.15


def test_exponents_of_power_laws() -> None:
    t = np.linspace(10, 1000, 30)
    curves = np.array([3 * t**0.5, 0.1 * t, 7 * t**-0.5])
    assert statistics.exponents(t[None, :], curves) == pytest.approx([0.5, 1.0, -0.5])
    # Series with levels of their own, at counts of their own, share a slope: a fit over all of them would not find it.
    counts = t[None, :, None] * np.array([1.0, 5.0])
    series = counts**0.5 * np.array([1.0, 0.2])
    assert statistics.exponents(counts, series) == pytest.approx([0.5])
    broken = np.array([np.zeros(30), np.full(30, np.nan), np.where(t == t[-1], 1.0, 0.0)])
    assert np.isnan(statistics.exponents(t[None, :], broken)).all()


def test_increments_see_through_an_offset() -> None:
    x = np.array([100.0, 150.0, 200.0])[None, :, None] * np.array([1.0, 1.0, 3.0])
    use = np.array([[True, True, True]])
    for p in (0.5, 0.8, 1.0, 1.2):
        y = 7.0 + 2 * x**p
        assert statistics.increment_exponents(x, y, use) == pytest.approx([p], abs=0.02)
    assert statistics.increment_exponents(x, -5 + 0.1 * x, use) == pytest.approx([1.0])
    for y in (np.zeros_like(x), np.full_like(x, np.nan)):
        assert np.isnan(statistics.increment_exponents(x, y, use)).all()
    assert np.isnan(statistics.increment_exponents(x, x, ~use)).all()


def test_the_smallest_eigenvalue_of_independent_rows() -> None:
    random = np.random.default_rng(0)
    for d, n in ((5, 50), (10, 50), (10, 200), (20, 200), (10, 2000)):
        x = random.normal(size=(60, n, d))
        mean = float(np.linalg.eigvalsh(x.transpose(0, 2, 1) @ x)[:, 0].mean())
        assert float(statistics.smallest_eigenvalue(d, np.array(float(n)))) == pytest.approx(mean, rel=0.08)


# ------------------------------------------------------------------ claims 1 to 3

ORDER_1 = {"HyLinUCB": 100.0, "LinUCB": 300.0, "DisLinUCB": 500.0, HYRAN: 2000.0, "HyRan": 50.0}
ORDER_2 = {"DisLinUCB": 100.0, "HyLinUCB": 120.0, HYRAN: 200.0, "LinUCB": 400.0, "HyRan": 50.0}
LINEAR_HYRAN = {HYRAN: 0.97, "HyRan": 0.6}


def test_claim_1_holds_whatever_hyran_proper_does() -> None:
    e = setting("setting-1")
    verdict = only(judge(results(outcome(e, powers(e, ORDER_1)))), "1")
    assert verdict.verdict == HOLDS
    assert (verdict.protocol, len(verdict.evidence)) == ("released", 4)
    assert "15 of 15 runs" in row(verdict, "HyLinUCB < LinUCB").value
    proper = verdict.evidence[-1]
    assert proper.verdict is None
    assert "not deciding" in proper.what
    assert "0 of 15 runs" in proper.value


def test_claim_1_reversed_and_tied() -> None:
    e = setting("setting-1")
    swapped = only(judge(results(outcome(e, powers(e, ORDER_1 | {"HyLinUCB": 310.0})))), "1")
    assert swapped.verdict == FAILS
    assert swapped.summary == "Contradicted: HyLinUCB < LinUCB."
    assert row(swapped, "LinUCB < DisLinUCB").verdict == HOLDS
    tied = only(judge(results(outcome(e, powers(e, ORDER_1 | {"HyLinUCB": 300.0})))), "1")
    assert tied.verdict == OPEN
    assert tied.summary == "Not settled: HyLinUCB < LinUCB."


def test_one_trial_per_environment_is_enough_and_one_environment_is_not() -> None:
    e = setting("setting-1", trials=1)
    assert only(judge(results(outcome(e, powers(e, ORDER_1)))), "1").verdict == HOLDS
    e = setting("setting-1", seeds=(1,))
    verdict = only(judge(results(outcome(e, powers(e, ORDER_1)))), "1")
    assert verdict.verdict == OPEN
    assert "one environment only" in verdict.evidence[0].value
    e = diversity(trials=1)
    verdicts = judge(results(outcome(e, curves(e, 0.5), measures(e))))
    assert {v.verdict for v in verdicts} == {OPEN}
    assert "one trial only" in verdicts[0].evidence[0].value


def test_both_protocols_are_judged_and_absent_experiments_skipped() -> None:
    e = setting("setting-1")
    written = replace(e, protocol="written")
    reverse = ORDER_1 | {"HyLinUCB": 900.0}
    verdicts = judge(results(outcome(e, powers(e, ORDER_1)), outcome(written, powers(e, reverse))))
    assert [(v.claim, v.protocol) for v in verdicts] == [(c, p) for c in "17" for p in ("released", "written")]
    assert [v.verdict for v in verdicts][:2] == [HOLDS, FAILS]


def test_a_missing_policy_leaves_a_claim_undecided() -> None:
    e = setting("setting-1").only(["LinUCB", "HyLinUCB", "DisLinUCB"])
    verdict = only(judge(results(outcome(e, powers(e, ORDER_1)))), "1")
    assert (verdict.verdict, verdict.summary) == (OPEN, "No results of HyRan (released).")


def test_claim_2_holds() -> None:
    e = setting("setting-2")
    verdict = only(judge(results(outcome(e, powers(e, ORDER_2, LINEAR_HYRAN)))), "2")
    assert verdict.verdict == HOLDS
    assert row(verdict, f"{HYRAN} linear").value.startswith("exponent 0.97")
    assert sum(r.verdict is None for r in verdict.evidence) == 3


@pytest.mark.parametrize(
    ("shapes", "part"),
    [(LINEAR_HYRAN | {HYRAN: 0.7}, f"{HYRAN} linear"), (LINEAR_HYRAN | {"LinUCB": 1.0}, "LinUCB sublinear")],
)
def test_claim_2_fails_by_shape(shapes: dict[str, float], part: str) -> None:
    e = setting("setting-2")
    verdict = only(judge(results(outcome(e, powers(e, ORDER_2, shapes)))), "2")
    assert (verdict.verdict, verdict.summary) == (FAILS, f"Contradicted: {part}.")


def test_zero_and_broken_regrets_are_undecided() -> None:
    e = setting("setting-2")
    for value in (0.0, math.nan):
        verdicts = judge(results(outcome(e, lambda *_, v=value: np.full(len(e.points), v))))
        assert {v.verdict for v in verdicts} == {OPEN}
        assert "too few runs with a usable value" in row(only(verdicts, "2"), "LinUCB sublinear").value


def setting_3(exponents: dict[str, float], at_10: dict[str, float], **changes: Any) -> Outcome:
    e = setting("setting-3", arms=(10, 100, 400), **changes)

    def curve(policy: str, arms: int, environment: int, trial: int) -> Doubles:
        level = at_10[policy] * (arms / 10) ** exponents[policy]
        return powers(e, {policy: level})(policy, arms, environment, trial)

    return outcome(e, curve)


LEVELS_3 = {"HyLinUCB": 20.0, "DisLinUCB": 40.0, "LinUCB": 90.0, HYRAN: 700.0, "HyRan": 10.0}


def test_claim_3_holds() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN: 0.7, "HyRan": 0.5}
    verdict = only(judge(results(setting_3(growth, LEVELS_3))), "3")
    assert verdict.verdict == HOLDS
    assert verdict.summary == "The order is as stated at every K. HyLinUCB's regret grows slowest with K."
    assert len(verdict.evidence) == 3 * 3 + 2 * 3 + 1


def test_claim_3_where_the_two_measures_of_growth_differ() -> None:
    """A large regret that grows slowly as a power adds more per arm than a small one that grows fast."""
    growth = {"HyLinUCB": 0.9, "DisLinUCB": 1.0, "LinUCB": 1.1, HYRAN: 0.6, "HyRan": 0.5}
    verdict = only(judge(results(setting_3(growth, LEVELS_3))), "3")
    assert verdict.verdict == OPEN
    assert "depends on the measure" in verdict.summary
    assert row(verdict, f"growth of HyLinUCB < {HYRAN} as a power of K").verdict == FAILS
    assert row(verdict, f"growth of HyLinUCB < {HYRAN} per added arm").verdict == HOLDS


def test_claim_3_contradicted_by_order_and_by_growth() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN: 0.7, "HyRan": 0.5}
    verdict = only(judge(results(setting_3(growth, LEVELS_3 | {"DisLinUCB": 15.0}))), "3")
    assert verdict.verdict == FAILS
    assert verdict.summary.startswith("Contradicted: HyLinUCB < DisLinUCB at K = 10.")
    growth = {"HyLinUCB": 0.6, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN: 0.01, "HyRan": 0.5}
    verdict = only(judge(results(setting_3(growth, LEVELS_3 | {HYRAN: 9000.0}))), "3")
    assert row(verdict, f"growth of HyLinUCB < {HYRAN} as a power of K").verdict == FAILS


def test_claim_3_with_cases_missing() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN: 0.7, "HyRan": 0.5}
    whole = setting_3(growth, LEVELS_3)
    for kept in ([10, 400], [10]):
        part = replace(whole, tables={arms: whole.tables[arms] for arms in kept})
        verdict = only(judge(results(part)), "3")
        assert verdict.verdict == OPEN
        assert "K = 100" in verdict.summary


# ------------------------------------------------------------------ claims 4 to 6


def diversity(**changes: Any) -> Experiment:
    """The diversity experiment with fewer trials; ridge 1 for all."""
    return replace(paper.experiment("diversity", "released"), **({"trials": 80, "trials_per_unit": 0} | changes))


def measures(
    experiment: Experiment,
    *,
    v: float = 1.0,
    w: float = 1.0,
    b: float = 0.5,
    z: float = 1.0,
    falls: float = 0.5,
    rho: float = 0.05,
    late: bool = True,
) -> Callable[[Unit, str, int], Any]:
    """A design whose eigenvalues, singular values and Z_t follow known powers; z is sigma_max(Z) at t = 100.

    With `late`, eigenvalues lag behind as those of independent rows do.
    """
    t = np.array(experiment.probes, dtype=float)
    share = np.linspace(0.5, 1.5, 25) / 25
    pulls = np.floor(t[:, None] * share)

    def grown(count: Doubles, power: float, d: int) -> Doubles:
        finite = statistics.smallest_eigenvalue(d, count) / count if late else 1.0
        value: Doubles = 1.0 + rho * finite * count**power
        return value

    def design(unit: Unit, policy: str, trial: int) -> dict[str, Any]:
        random = np.random.default_rng([trial, len(policy)])
        noise = np.exp(random.normal(0, 0.1, 25) + random.normal(0, 0.001, pulls.shape))
        whole = policy == "DisLinUCB"
        arrays = {
            "lambda_min_v": np.full(len(t), np.nan) if whole else grown(t, v, 10),
            "rho_x": np.full(len(t), np.nan) if whole else np.full(len(t), rho * random.uniform(0.9, 1)),
            "rho_z": np.full(len(t), 2 * rho if not whole else rho),
            "z_norm": z * (t / 100) ** -falls * random.uniform(0.9, 1),
            "pulls": pulls.astype(int),
            "lambda_min_w": grown(np.maximum(pulls, 1), w, 20 if whole else 10) * noise,
            "sigma_max_b": 0.3 * pulls**b * noise,
        }
        assert set(arrays) == {*DESIGN, *DESIGN_BY_ARM}
        return arrays

    return design


def curves(experiment: Experiment, shape: float) -> Curve:
    t = np.array(experiment.points, dtype=float)

    def curve(policy: str, arms: int, environment: int, trial: int) -> Doubles:
        return 10 * t ** (shape + np.random.default_rng([trial, len(policy)]).normal(0, 0.02))

    return curve


@pytest.mark.parametrize(
    ("shape", "answer", "words"),
    [
        (0.5, HOLDS, "like it"),
        (0.3, HOLDS, "slower"),
        (0.53, HOLDS, "faster"),
        (0.55, OPEN, "faster"),
        (0.8, FAILS, "faster"),
    ],
)
def test_claim_4(shape: float, answer: str, words: str) -> None:
    e = diversity()
    verdict = only(judge(results(outcome(e, curves(e, shape), measures(e)))), "4")
    assert verdict.verdict == answer
    assert f"LinUCB {words}" in verdict.summary
    assert "T = 5,000 is before it" in verdict.summary


def test_claim_5_holds_for_linear_growth_that_sets_out_late() -> None:
    e = diversity()
    verdict = only(judge(results(outcome(e, curves(e, 0.5), measures(e)))), "5")
    assert verdict.verdict == HOLDS
    assert sum(row.verdict is not None for row in verdict.evidence) == 7
    seen = row(verdict, "LinUCB: lambda_min(W_i)").value
    assert "exponent 1.1" in seen
    assert "(independent rows would show 1.1" in seen
    assert "log-log slope 1.3" in seen
    assert "log-log slope 1.05" in row(verdict, "HyLinUCB: lambda_min(V)").value
    assert "exponent 0.5" in row(verdict, "LinUCB: sigma_max(B_i)").value


def test_claim_5_between_linear_and_square_root_is_undecided() -> None:
    e = diversity(trials=10)
    verdict = only(judge(results(outcome(e, curves(e, 0.5), measures(e, v=0.8, b=0.68)))), "5")
    assert verdict.verdict == OPEN
    assert row(verdict, "LinUCB: lambda_min(V)").verdict == OPEN
    assert row(verdict, "LinUCB: sigma_max(B_i)").verdict == OPEN


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"v": 0.5}, "LinUCB: lambda_min(V)"),
        ({"w": 0.5}, "LinUCB: lambda_min(W_i)"),
        ({"w": 0.5}, "DisLinUCB: lambda_min of the arms' matrices"),
        ({"b": 1.0}, "HyLinUCB: sigma_max(B_i)"),
    ],
)
def test_claim_5_fails_by_each_part(changes: dict[str, Any], part: str) -> None:
    e = diversity(trials=10)
    verdict = only(judge(results(outcome(e, curves(e, 0.5), measures(e, late=False, **changes)))), "5")
    assert verdict.verdict == FAILS
    assert row(verdict, part).verdict == FAILS
    assert row(verdict, "LinUCB: sigma_max(B_i)").verdict == (FAILS if "b" in changes else HOLDS)


def test_claims_5_and_6_on_rows_that_are_truly_diverse() -> None:
    """Arms pulled at random, features uniform in the ball: everything the assumption asks for."""
    e = diversity(trials=8)
    k, d, t = 25, 10, np.array(e.probes)

    def design(unit: Unit, policy: str, trial: int) -> dict[str, Any]:
        random = np.random.default_rng([trial, len(policy)])
        x, z = random.normal(size=(2, e.horizon, d))
        for rows in (x, z):
            rows *= (random.random(e.horizon) ** (1 / d) / np.linalg.norm(rows, axis=1))[:, None]
        both = np.concatenate([x, z], axis=1)
        onto = np.eye(k)[random.integers(k, size=e.horizon)]
        whole = np.tile(np.eye(2 * d), (k, 1, 1))
        pulls, seen = np.zeros(k), 0
        found: dict[str, list[Any]] = {name: [] for name in (*DESIGN, *DESIGN_BY_ARM)}
        for n in t:
            rows, arms = both[seen:n], onto[seen:n]
            whole += (arms.T @ (rows[:, :, None] * rows[:, None, :]).reshape(n - seen, -1)).reshape(whole.shape)
            pulls, seen = pulls + arms.sum(axis=0), n
            b, w = whole[:, :d, d:], whole[:, d:, d:]
            lam, turn = np.linalg.eigh(whole[:, :d, :d].sum(axis=0) - (k - 1) * np.eye(d))
            root = turn / np.sqrt(lam)
            s = root.T @ (b @ np.linalg.solve(w, b.transpose(0, 2, 1))).sum(axis=0) @ root
            least = np.linalg.eigvalsh(whole if policy == "DisLinUCB" else w)[:, 0]
            found["lambda_min_v"].append(lam[0])
            found["rho_x"].append((lam[0] - 1) / n)
            found["rho_z"].append(float(((least - 1) / np.maximum(pulls, 1)).min()))
            found["z_norm"].append(math.sqrt(np.linalg.eigvalsh(s)[-1]))
            found["pulls"].append(pulls.astype(int))
            found["lambda_min_w"].append(least)
            found["sigma_max_b"].append(np.linalg.norm(b, 2, axis=(1, 2)))
        return found

    verdicts = judge(results(outcome(e, curves(e, 0.5), design)))
    assert only(verdicts, "5").verdict == HOLDS
    lemma = only(verdicts, "6")
    assert "Z is at most 1/2 in all 8 trials at T, too few to show a probability of 0.96" in lemma.summary
    assert lemma.verdict == OPEN


def test_claim_5_without_enough_pulls_or_measures() -> None:
    e = diversity(trials=4)

    def scarce(unit: Unit, policy: str, trial: int) -> Any:
        return measures(e)(unit, policy, trial) | {"pulls": np.ones((len(e.probes), 25), dtype=int)}

    verdict = only(judge(results(outcome(e, curves(e, 0.5), scarce))), "5")
    assert verdict.verdict == OPEN
    assert row(verdict, "LinUCB: lambda_min(W_i)").value == "no arm was pulled often enough"
    verdicts = judge(results(outcome(e, curves(e, 0.5))))
    assert only(verdicts, "5").verdict == OPEN
    assert "not measured arm by arm" in only(verdicts, "5").evidence[0].value
    assert only(verdicts, "6").summary.startswith("LinUCB's Z was not measured and HyLinUCB's Z was not measured.")
    assert only(verdicts, "7").summary == "No diversity was measured, so there is no bound to compare with."


@pytest.mark.parametrize(
    ("changes", "trials", "answer", "words"),
    [
        # The burn-in is far beyond T: the conclusion may be seen before.
        ({"z": 1.0}, 80, HOLDS, "is at most 1/2 in all 80 trials at T"),
        ({"z": 1.0}, 10, OPEN, "too few to show a probability of 0.96"),
        ({"z": 0.4, "falls": -0.01}, 80, OPEN, "at T but not falling"),
        ({"z": 9.0}, 80, OPEN, "exceeds 1/2 in 80 of 80 trials at T"),
    ],
)
def test_claim_6_before_the_burn_in(changes: dict[str, Any], trials: int, answer: str, words: str) -> None:
    e = diversity(trials=trials)
    verdict = only(judge(results(outcome(e, curves(e, 0.5), measures(e, **changes)))), "6")
    assert verdict.verdict == answer
    assert words in verdict.summary
    assert "T = 5,000 is before the burn-in" in verdict.summary


def test_claim_6_names_the_round_from_which_on_it_is_seen() -> None:
    e = diversity()
    verdict = only(judge(results(outcome(e, curves(e, 0.5), measures(e, z=1.0)))), "6")
    # 1.0 (t/100)^-1/2 is 1/2 at t = 400, the largest of 80 trials a little below 1.0.
    first = next(t for t in e.probes if t >= 390)
    assert f"in all trials from t = {first:,} on" in row(verdict, "LinUCB: sigma_max(Z_t)").value
    assert row(verdict, "LinUCB: ridge (not deciding)").value.startswith("1; the proof asks for at least 1/rho = 20")
    assert "pulls of an arm" in verdict.evidence[-1].value


@pytest.mark.parametrize(("z", "answer"), [(1.0, HOLDS), (9.0, FAILS)])
def test_claim_6_after_the_burn_in(z: float, answer: str) -> None:
    """One arm and rho = 1 (no features have that, but made-up ones do): T_o is about 10,000 rounds."""
    rounds = grid(20_000, 24, keep=())
    e = diversity(arms=(1,), horizon=20_000, points=rounds, probes=rounds)

    def design(unit: Unit, policy: str, trial: int) -> Any:
        arrays = measures(e, z=z, rho=1.0)(unit, policy, trial)
        return {name: a[:, :1] if name in DESIGN_BY_ARM else a for name, a in arrays.items()}

    verdict = only(judge(results(outcome(e, curves(e, 0.5), design))), "6")
    assert verdict.verdict == answer
    assert "since T_o" in verdict.summary


# ------------------------------------------------------------------ claim 7


def bounded(rho: float, arms: int, level: float) -> Verdict:
    rounds = (100, 50_000)
    e = replace(
        setting("setting-1"), arms=(arms,), d1=1, d2=1, horizon=50_000, points=rounds, probes=rounds[1:], trials=1
    )

    def design(unit: Unit, policy: str, trial: int) -> Any:
        if policy.startswith("HyRan"):
            return None
        return {"lambda_min_v": [1.0], "rho_x": [rho], "rho_z": [rho / 2 if unit.environment else rho], "z_norm": [0.1]}

    return only(judge(results(outcome(e, powers(e, dict.fromkeys(ORDER_1, level)), design))), "7")


def test_claim_7_says_nothing_before_the_burn_in() -> None:
    verdict = bounded(0.05, 25, 100.0)
    assert verdict.verdict == OPEN
    assert len(verdict.evidence) == 3
    assert verdict.summary.startswith("No regret exceeds its bound")
    assert "3 of 3 are vacuous, and T does not exceed the burn-in in 2 of 3" in verdict.summary
    assert "rho = 0.05" in verdict.evidence[0].value  # the largest of any run
    assert "another lambda and gamma" in verdict.evidence[0].value


def test_claim_7_holds_after_the_burn_in() -> None:
    verdict = bounded(1.0, 1, 100.0)
    assert verdict.verdict == HOLDS
    assert "T does not exceed the burn-in in 0 of 3" in verdict.summary


def test_claim_7_is_contradicted_by_a_regret_above() -> None:
    verdict = bounded(1.0, 1, 1e9)
    assert verdict.verdict == FAILS
    assert verdict.summary.startswith("3 of 3 regrets exceed their bound")


def test_claim_7_without_diversity() -> None:
    verdict = bounded(0.0, 25, 100.0)
    assert verdict.verdict == OPEN
    assert "no diversity was measured" in verdict.evidence[0].value


def test_every_claim_says_what_it_is_and_how_it_is_tested() -> None:
    e = diversity(trials=4)
    s = setting("setting-1")
    for verdict in judge(results(outcome(e, curves(e, 0.5), measures(e)), outcome(s, powers(s, ORDER_1)))):
        assert verdict.title
        assert verdict.statement.endswith(".")
        assert verdict.test.endswith(".")
        assert verdict.summary.endswith(".")
        assert "nan" not in f"{verdict.summary} {' '.join(r.value for r in verdict.evidence)}"


def test_confidence_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match="confidence must lie in"):
        judge(results(), confidence=95)
    assert judge(results()) == []
