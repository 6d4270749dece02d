"""Findings on diversity: the experiments against dense runs, and what is said about fabricated results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import paper
from hybandits.experiments.record import Protocol, Unit
from hybandits.experiments.results import Run
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
from hybandits.simulation.worlds import Synthetic
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

# ------------------------------------------------------------------ dense runs

D1, D2, ARMS, ROUNDS = 4, 3, 3, 120
WHOLE, OWN = D1 + ARMS * D2, D1 + D2


@dataclass
class Dense:
    """An upper confidence bound algorithm with explicit matrices, as the paper writes it."""

    ridge: float
    gamma: Callable[[float], float]
    """Called with the rounds so far, or with the pulls of the arm where nothing is shared."""
    disjoint: bool = False
    regret: float = 0.0

    def __post_init__(self) -> None:
        size = ARMS * OWN if self.disjoint else WHOLE
        self.m, self.u, self.count = self.ridge * np.eye(size), np.zeros(size), np.zeros(ARMS)
        self.b = np.zeros((ARMS, D1, D2))

    def embed(self, arm: int, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        phi = np.zeros(len(self.u))
        if self.disjoint:
            phi[arm * OWN : (arm + 1) * OWN] = *x, *z
        else:
            phi[:D1], phi[D1 + arm * D2 : D1 + (arm + 1) * D2] = x, z
        return phi

    def play(self, x: np.ndarray, z: np.ndarray, means: np.ndarray) -> int:
        inverse, scores = np.linalg.inv(self.m), []
        for arm in range(ARMS):
            phi = self.embed(arm, x[arm], z[arm])
            gamma = self.gamma(self.count[arm] if self.disjoint else self.count.sum())
            scores.append(phi @ inverse @ self.u + gamma * math.sqrt(phi @ inverse @ phi))
        arm = int(np.argmax(scores))
        self.regret += means.max() - means[arm]
        self.b[arm] += np.outer(x[arm], z[arm])
        return arm

    def learn(self, arm: int, x: np.ndarray, z: np.ndarray, reward: float) -> None:
        phi = self.embed(arm, x[arm], z[arm])
        self.m += np.outer(phi, phi)
        self.u += reward * phi
        self.count[arm] += 1


def check_against(dense: dict[str, Dense], runs: list[Run]) -> None:
    for run in runs:
        expected = dense[run.policy]
        assert_allclose(run.regret[-1], expected.regret, rtol=1e-9, err_msg=run.policy)
        assert run.design is not None
        assert_allclose(run.design["sigma_max_b"][-1], np.linalg.norm(expected.b, 2, axis=(1, 2)), atol=1e-9)
        assert_allclose(run.design["frobenius_b"][-1], np.linalg.norm(expected.b, axis=(1, 2)), atol=1e-9)


def small_unit(name: str, protocol: Protocol) -> Unit:
    """The trials 0 and 1 of a diversity experiment of the paper's size, made small."""
    record = replace(
        paper.experiment(name, protocol), d1=D1, d2=D2, arms=(ARMS,), horizon=ROUNDS, points=(ROUNDS,),
        probes=(ROUNDS,), trials=2, trials_per_unit=0,
    )  # fmt: skip
    (unit,) = record.units()
    return unit


def released_run(trial: int, learns: dict[str, list[str]]) -> dict[str, Dense]:
    """The released code, drawn again; `learns` has the algorithms whose rewards each learns, for its own row."""
    random = np.random.default_rng(46568961)
    theta = random.uniform(-1, 1, D1) / math.sqrt(D1)
    beta = np.array([random.uniform(-1, 1, D2) / math.sqrt(D2) for _ in range(ARMS)])
    contexts, noise = np.random.default_rng(trial), np.random.default_rng(trial + 478959)

    def anytime(norm: float, size: int) -> Callable[[float], float]:
        return lambda t: (
            math.sqrt(0.1 * norm) + 0.01 * math.sqrt(2 * math.log(1 / 0.01) + size * math.log(1 + 2 * t / (0.1 * size)))
        )

    dense = {
        "HyLinUCB": Dense(0.1, anytime(2, OWN)),
        "LinUCB": Dense(0.1, anytime(1 + ARMS, WHOLE)),
        "DisLinUCB": Dense(0.1, anytime(2, OWN), disjoint=True),
    }
    for _ in range(ROUNDS):
        x, z = np.empty((ARMS, D1)), np.empty((ARMS, D2))
        for arm in range(ARMS):
            x[arm] = contexts.uniform(-1, 1, D1) / math.sqrt(D1)
            z[arm] = contexts.uniform(-1, 1, D2) / math.sqrt(D2)
        means = x @ theta + (z * beta).sum(axis=1)
        played = {name: each.play(x, z, means) for name, each in dense.items()}
        rewards = {name: means[arm] + 0.01 * noise.standard_normal() for name, arm in played.items()}
        for name, others in learns.items():
            for other in others:
                dense[name].learn(played[name], x, z, rewards[other])
    return dense


DEFECT = {"HyLinUCB": ["HyLinUCB", "LinUCB", "DisLinUCB"], "LinUCB": [], "DisLinUCB": []}


@pytest.mark.parametrize(
    ("name", "learns"), [("diversity", DEFECT), ("diversity-updated", {name: [name] for name in DEFECT})]
)
def test_the_released_experiments_are_those_of_a_dense_run(name: str, learns: dict[str, list[str]]) -> None:
    runs = run_unit(Job(small_unit(name, "released")))
    for trial in (0, 1):
        check_against(released_run(trial, learns), [run for run in runs if run.trial == trial])


def test_the_experiment_of_the_text_is_that_of_a_dense_run() -> None:
    """Contexts are those of the world; ridges, coefficients and the noise's deviation are the text's."""
    unit = small_unit("diversity", "written")
    world, runs = unit.experiment.world(ARMS, unit.seed), run_unit(Job(unit))
    assert isinstance(world, Synthetic)
    theta, beta = world.parameters()
    at_t, at_kt = math.log(ROUNDS / 0.01), math.log(ARMS * ROUNDS / 0.01)
    hybrid = 2 * (math.sqrt(ARMS) + math.sqrt(2 * OWN * at_t))
    for trial in (0, 1):
        dense = {
            "HyLinUCB": Dense(1.0, lambda t: hybrid),
            paper.HYLINUCB_K: Dense(float(ARMS), lambda t: hybrid),
            "LinUCB": Dense(1.0, lambda t: math.sqrt(ARMS) + math.sqrt(2 * WHOLE * at_t)),
            "DisLinUCB": Dense(1.0, lambda t: 2 + math.sqrt(2 * OWN * at_kt), disjoint=True),
        }
        noise = world.noise_stream(trial)
        for block in world.rounds(ROUNDS, trial):
            for x, z in zip(block.rounds.x, block.rounds.z, strict=True):
                assert max(*np.linalg.norm(x, axis=1), *np.linalg.norm(z, axis=1)) <= 1
                means, drawn = x @ theta + (z * beta).sum(axis=1), 0.1 * noise.standard_normal()
                for each in dense.values():
                    arm = each.play(x, z, means)
                    each.learn(arm, x, z, means[arm] + drawn)
        check_against(dense, [run for run in runs if run.trial == trial])


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
