"""Findings on diversity: the released experiment against a dense one, and what is said about fabricated results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import paper
from hybandits.experiments.record import Unit
from hybandits.experiments.runner import Job, run_unit
from hybandits.paper.claims import FAILS, HOLDS
from hybandits.paper.diversity import (
    chances,
    coverages,
    cross_growths,
    describe_coverage,
    describe_moments,
    describe_ridges,
    judge_the_root,
    moments,
)
from tests.support.fabricated_outcomes import (
    DesignOf,
    as_results,
    diversity,
    fabricated_outcome,
    measures,
    root_curves,
    small_measures,
    small_problem,
    split,
    three_runs,
)

# ------------------------------------------------------------------ the released code, redrawn

D1, D2, ARMS, ROUNDS = 4, 3, 3, 120


def dense_run(trial: int, learns: dict[str, list[str]]) -> dict[str, tuple[float, np.ndarray]]:
    """Regret, and every arm's sum of x z' over the rows played, of the released code's three algorithms.

    `learns` has the algorithms whose rewards each of them learns, for the row that it played itself.
    """
    random = np.random.default_rng(46568961)
    theta = random.uniform(-1, 1, D1) / math.sqrt(D1)
    beta = np.array([random.uniform(-1, 1, D2) / math.sqrt(D2) for _ in range(ARMS)])
    contexts, noise = np.random.default_rng(trial), np.random.default_rng(trial + 478959)
    names = ("HyLinUCB", "LinUCB", "DisLinUCB")
    whole, own = D1 + ARMS * D2, D1 + D2
    size = {"HyLinUCB": own, "LinUCB": whole, "DisLinUCB": own}
    norm = {"HyLinUCB": math.sqrt(2), "LinUCB": math.sqrt(1 + ARMS), "DisLinUCB": math.sqrt(2)}
    wide = {"HyLinUCB": whole, "LinUCB": whole, "DisLinUCB": ARMS * own}
    m = {name: 0.1 * np.eye(wide[name]) for name in names}
    u = {name: np.zeros(wide[name]) for name in names}
    count = {name: np.zeros(ARMS) for name in names}
    regret, b = dict.fromkeys(names, 0.0), {name: np.zeros((ARMS, D1, D2)) for name in names}
    for _ in range(ROUNDS):
        rows = [(contexts.uniform(-1, 1, D1) / math.sqrt(D1), contexts.uniform(-1, 1, D2) / math.sqrt(D2))
                for _ in range(ARMS)]  # fmt: skip
        means = [x @ theta + z @ beta[i] for i, (x, z) in enumerate(rows)]
        played, embedded = {}, {}
        for name in names:
            scores = []
            for i, (x, z) in enumerate(rows):
                phi = np.zeros(wide[name])
                if name == "DisLinUCB":
                    phi[i * own : (i + 1) * own] = *x, *z
                else:
                    phi[:D1], phi[D1 + i * D2 : D1 + (i + 1) * D2] = x, z
                t = count[name][i] if name == "DisLinUCB" else count[name].sum()
                gamma = norm[name] * math.sqrt(0.1) + 0.01 * math.sqrt(
                    2 * math.log(1 / 0.01) + size[name] * math.log(1 + 2 * t / (0.1 * size[name]))
                )
                inverse = np.linalg.inv(m[name])
                scores.append((phi @ inverse @ u[name] + gamma * math.sqrt(phi @ inverse @ phi), i, phi))
            _, played[name], embedded[name] = max(scores, key=lambda score: score[0])
        rewards = {name: means[played[name]] + 0.01 * noise.standard_normal() for name in names}
        for name in names:
            i = played[name]
            for other in learns[name]:
                m[name] += np.outer(embedded[name], embedded[name])
                u[name] += rewards[other] * embedded[name]
                count[name][i] += 1
            regret[name] += max(means) - means[i]
            b[name][i] += np.outer(*rows[i])
    return {name: (regret[name], b[name]) for name in names}


DEFECT = {"HyLinUCB": ["HyLinUCB", "LinUCB", "DisLinUCB"], "LinUCB": [], "DisLinUCB": []}


@pytest.mark.parametrize(
    ("name", "learns"), [("diversity", DEFECT), ("diversity-updated", {name: [name] for name in DEFECT})]
)
def test_the_released_experiments_are_those_of_a_dense_run(name: str, learns: dict[str, list[str]]) -> None:
    record = replace(
        paper.experiment(name, "released"), d1=D1, d2=D2, arms=(ARMS,), horizon=ROUNDS, points=(ROUNDS,),
        probes=(ROUNDS,), trials=2, trials_per_unit=0,
    )  # fmt: skip
    (unit,) = record.units()
    for run in run_unit(Job(unit)):
        regret, b = dense_run(run.trial, learns)[run.policy]
        assert_allclose(run.regret[-1], regret, rtol=1e-9, err_msg=run.policy)
        assert run.design is not None
        assert_allclose(run.design["sigma_max_b"][-1], np.linalg.norm(b, 2, axis=(1, 2)), atol=1e-9)
        assert_allclose(run.design["frobenius_b"][-1], np.linalg.norm(b, axis=(1, 2)), atol=1e-9)


# ------------------------------------------------------------------ the square root


@pytest.mark.parametrize(
    ("never", "ever", "word"),
    [(0.5, 1.0, "confirmed"), (1.0, 1.0, "refuted"), (0.5, 0.5, "refuted"), (0.68, 1.0, "undecided")],
)
def test_the_root_is_judged_by_both_runs_of_the_released_code(never: float, ever: float, word: str) -> None:
    e = diversity()
    growths = cross_growths(three_runs(split(e, never, 1.0), split(e, ever, 1.0), split(e, 0.5, 0.7)))
    root = judge_the_root(growths)
    assert root is not None
    assert root.word == word
    assert len(growths) == 6
    by_case = {(growth.run, growth.policy): growth for growth in growths}
    assert by_case["released code, bug for bug", "HyLinUCB"].answer == FAILS
    assert by_case["text", "LinUCB"].answer == HOLDS
    interval = by_case["released code, bug for bug", "LinUCB"].frobenius.interval
    assert interval is not None
    assert interval.mean == pytest.approx(never, abs=0.01)
    assert "with the text's parameters, where it is updated too, 0.5 / 0.5, and its regret grows" in root.reason
    assert "a square root is seen in 0 and contradicted in 2 of 3" in root.others


def test_without_both_runs_nothing_is_said() -> None:
    e = diversity()
    assert judge_the_root(cross_growths(three_runs(measures(e), None, measures(e)))) is None
    assert judge_the_root([]) is None


def test_both_ridges_are_compared_run_by_run() -> None:
    e = replace(paper.experiment("diversity", "written"), trials=6, trials_per_unit=0)
    curve = root_curves(e, 0.5)
    lower = fabricated_outcome(
        e, lambda name, *case: curve("HyLinUCB", *case) * (0.5 if name == paper.HYLINUCB_K else 1)
    )
    assert "smaller in 6 of 6 runs" in describe_ridges(as_results(lower))
    assert describe_ridges(as_results(fabricated_outcome(e.only(["HyLinUCB"]), curve))) == ""


# ------------------------------------------------------------------ the assumption


def test_chances_are_those_of_rows_without_a_direction() -> None:
    """Unit vectors in the plane: sqrt(n) |mean| is 1 in the root mean square, and of x z' it is simulated."""
    e = small_problem()
    x, z, xz = chances(e, 3)
    assert_allclose((x, z), 1.0)
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 300, 400, 2))
    a, b = (each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (a, b))
    norms = np.linalg.norm(np.einsum("bni,bnj->bij", a, b), 2, axis=(1, 2))
    assert_allclose(xz, math.sqrt((norms**2).mean() / 400), rtol=0.08)


def with_moments(e: Any, size: float, own: float) -> DesignOf:
    """Moments of the arm played, and of every arm, as multiples of 1/sqrt(rows)."""

    def design(unit: Unit, policy: str, trial: int) -> Any:
        arrays = small_measures(e)(unit, policy, trial)
        factor = np.random.default_rng([trial, len(policy)]).uniform(0.9, 1.1)
        moment = size * factor / np.sqrt(np.array(e.probes))
        return {
            **arrays, "mean_x": moment, "mean_z": 0.1 * moment, "mean_xz": 0.1 * moment,
            "sigma_max_b": own * factor * np.sqrt(arrays["pulls"]),
        }  # fmt: skip

    return design


@pytest.mark.parametrize(
    ("size", "own", "met", "by_arms"), [(0.5, 0.5, True, True), (3.0, 0.5, False, True), (0.5, 3.0, True, False)]
)
def test_the_arm_played_and_every_arm_are_judged_apart(size: float, own: float, met: bool, by_arms: bool) -> None:
    e = small_problem(arms=(3,)).only(["Uniform", "LinUCB"])
    results = as_results(fabricated_outcome(e, root_curves(e, 0.5), with_moments(e, size, own)))
    rows = moments(results)
    assert [row.policy for row in rows] == ["Uniform", "LinUCB"]
    for row in rows:
        assert (row.met, row.met_by_arms) == (met, by_arms)
        assert row.played[0] == pytest.approx(size / math.sqrt(e.horizon), rel=0.1)
        assert row.chance[0] == pytest.approx(1 / math.sqrt(e.horizon))
        assert row.own[0] == pytest.approx(own / math.sqrt(e.horizon / 3), rel=0.1)
        assert row.own_chance == pytest.approx(chances(e, 3)[2] / math.sqrt(e.horizon / 3), rel=1e-3)
    words = describe_moments(rows)
    assert f"not met by the arm played in {2 * (not met)} and not by single arms in {2 * (not by_arms)}" in words
    assert f"LinUCB {int(met)} and {int(by_arms)} of 1" in words


def test_one_run_settles_nothing() -> None:
    e = small_problem(arms=(3,), trials=1).only(["LinUCB"])
    (row,) = moments(as_results(fabricated_outcome(e, root_curves(e, 0.5), with_moments(e, 9.0, 9.0))))
    assert row.met is row.met_by_arms is None


# ------------------------------------------------------------------ coverage


def test_coverage_counts_runs_and_probes_and_names_policies_without_sets() -> None:
    e = small_problem(arms=(3,), trials=4).only(["Uniform", "LinUCB", "HyLinUCB"])
    probes = len(e.probes)

    def design(unit: Unit, policy: str, trial: int) -> Any:
        ratio, outside = np.full(probes, 0.5), np.zeros(probes)
        if policy == "HyLinUCB" and trial == 0:
            ratio[: probes // 2], outside[:] = 2.0, 1 / 3
        if policy == "Uniform":
            ratio[:] = outside[:] = np.nan
        return {**small_measures(e)(unit, policy, trial), "ellipsoid": ratio, "outside": outside}

    results = as_results(fabricated_outcome(e, root_curves(e, 0.5), design))
    cases = {case.policy: case for case in coverages(results)}
    assert set(cases) == {"LinUCB", "HyLinUCB"}
    assert cases["HyLinUCB"].share == pytest.approx((probes // 2) / (4 * probes))
    words = describe_coverage(results)
    assert "gamma in 1 of 2 cases: HyLinUCB (diversity-small, released, K = 3) in " in words
    assert "(single arms 8.33 %)" in words
    assert "in the other 1 it is at most 0.5 gamma" in words
    assert words.endswith("Uniform has no such set and cannot be judged.")
    alone = as_results(fabricated_outcome(e.only(["LinUCB"]), root_curves(e, 0.5), design))
    assert describe_coverage(alone).endswith("and no single arm leaves the interval.")
