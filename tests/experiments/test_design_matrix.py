"""Measures of the design matrix and of coverage against matrices summed up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import DisLinUCB, Greedy, HyIDS, HyLinUCB, HyRan, HyThompson, LinUCB, Policy
from hybandits.estimators.exploration import AsWritten
from hybandits.experiments.design_matrix import DesignMatrix, coverage, known_ridge, measure_estimator
from hybandits.simulation.rounds import Rounds
from hybandits.simulation.worlds import Synthetic, every_arm

D1, D2, ARMS, N, RIDGE = 4, 3, 5, 60, 0.7


class Data:
    """Rows of arms 0..3 (arm 4 is never played), as rounds and as the blocks of their design matrix."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.arms = random.integers(0, ARMS - 1, N)
        x, z = random.normal(0.2, 1.0, size=(N, ARMS, D1)), random.normal(size=(N, ARMS, D2))
        self.rounds = Rounds(x, z, range(ARMS), *every_arm(N, ARMS))
        self.x, self.z = x[np.arange(N), self.arms], z[np.arange(N), self.arms]

    def blocks(self) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        own = [self.arms == i for i in range(ARMS)]
        b = [self.x[mine].T @ self.z[mine] for mine in own]
        w = [RIDGE * np.eye(D2) + self.z[mine].T @ self.z[mine] for mine in own]
        return RIDGE * np.eye(D1) + self.x.T @ self.x, b, w


def root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(values) @ vectors.T


def of_the_rows(data: Data, *, disjoint: bool) -> dict[str, Any]:
    design = DesignMatrix(D1, D2, ARMS)
    design.add(data.rounds.part(0, 20), data.arms[:20])
    design.add(data.rounds.part(20, N), data.arms[20:])
    return design.measures(RIDGE, disjoint=disjoint)


def of_an_estimator(data: Data, *, disjoint: bool) -> dict[str, Any]:
    policy = (DisLinUCB if disjoint else HyLinUCB)(d1=D1, d2=D2, ridge=RIDGE)
    policy.learn_batch(data.arms, data.x, data.z, np.zeros(N))
    measures = measure_estimator(policy, ARMS)
    assert measures is not None
    return measures


@pytest.mark.parametrize("measure", [of_the_rows, of_an_estimator])
def test_measures_are_those_of_the_summed_matrices(measure: Any) -> None:
    data = Data()
    measures = measure(data, disjoint=False)
    v, b, w = data.blocks()
    z = np.hstack([root(v) @ b[i] @ root(w[i]) for i in range(ARMS)])
    assert_allclose(measures["lambda_min_v"], np.linalg.eigvalsh(v)[0])
    assert_allclose(measures["lambda_min_w"], [np.linalg.eigvalsh(part)[0] for part in w])
    assert_allclose(measures["sigma_max_b"], [np.linalg.norm(part, 2) for part in b], atol=1e-12)
    assert_allclose(measures["frobenius_b"], [np.linalg.norm(part) for part in b], atol=1e-12)
    assert_allclose(measures["z_norm"], np.linalg.norm(z, 2))
    assert_allclose(measures["rho_x"], np.linalg.eigvalsh(data.x.T @ data.x)[0] / N)
    assert_allclose(measures["rho_z"], np.linalg.eigvalsh(data.z.T @ data.z)[0] / N)


@pytest.mark.parametrize("measure", [of_the_rows, of_an_estimator])
def test_the_disjoint_reduction_is_measured_by_arm(measure: Any) -> None:
    data = Data()
    measures = measure(data, disjoint=True)
    both = np.hstack((data.x, data.z))
    matrices = [RIDGE * np.eye(D1 + D2) + both[data.arms == i].T @ both[data.arms == i] for i in range(ARMS)]
    assert np.isnan(measures["lambda_min_v"])
    assert_allclose(measures["lambda_min_w"], [np.linalg.eigvalsh(part)[0] for part in matrices])
    assert_allclose(measures["sigma_max_b"], [np.linalg.norm(part[:D1, D1:], 2) for part in matrices], atol=1e-12)
    coupling = [root(part[:D1, :D1]) @ part[:D1, D1:] @ root(part[D1:, D1:]) for part in matrices]
    assert_allclose(measures["z_norm"], max(np.linalg.norm(part, 2) for part in coupling))
    assert_allclose(measures["rho_x"], np.linalg.eigvalsh(data.x.T @ data.x)[0] / N)
    assert_allclose(measures["rho_z"], np.linalg.eigvalsh(data.z.T @ data.z)[0] / N)


def test_moments_are_those_of_the_arm_played_whatever_its_number() -> None:
    data = Data()
    for disjoint in (False, True):
        measures = of_the_rows(data, disjoint=disjoint)
        assert_allclose(measures["mean_x"], np.linalg.norm(data.x.mean(axis=0)))
        assert_allclose(measures["mean_z"], np.linalg.norm(data.z.mean(axis=0)))
        assert_allclose(measures["mean_xz"], np.linalg.norm(data.x.T @ data.z / N, 2))
        assert measures["pulls"].tolist() == np.bincount(data.arms, minlength=ARMS).tolist()


def test_a_policy_that_has_not_learned_and_those_without_one_known_ridge() -> None:
    measures = measure_estimator(HyLinUCB(d1=2, d2=1, ridge=2.0), 3)
    assert measures is not None
    assert_allclose((measures["lambda_min_v"], measures["z_norm"], measures["rho_x"]), (2.0, 0.0, 0.0), atol=1e-12)
    assert_allclose(measures["lambda_min_w"], 2.0)
    nothing = DesignMatrix(2, 1, 3).measures(2.0, disjoint=False)
    for name, value in measures.items():
        assert_allclose(nothing[name], value, atol=1e-12)
    for policy in (HyRan(d1=2, d2=1), HyThompson(d1=2, d2=1), HyIDS(d1=2, d2=1)):
        assert known_ridge(policy) is measure_estimator(policy, 3) is None
    assert known_ridge(HyThompson(d1=2, d2=1, noise=0.5, scale=1.0)) == 0.25


@pytest.mark.parametrize(("d1", "d2"), [(0, 2), (2, 0)])
def test_one_half_of_the_model_may_be_missing(d1: int, d2: int) -> None:
    rounds = Rounds(np.ones((1, 2, d1)), np.ones((1, 2, d2)), range(2), *every_arm(1, 2))
    for policy in (HyLinUCB(d1=d1, d2=d2), DisLinUCB(d1=d1, d2=d2)):
        policy.learn(0, np.ones(d1), np.ones(d2), 1.0)
        design = DesignMatrix(d1, d2, 2)
        design.add(rounds, np.zeros(1, int))
        for measures in (measure_estimator(policy, 2), design.measures(1.0, disjoint=isinstance(policy, DisLinUCB))):
            assert measures is not None
            assert measures["z_norm"] == 0


@pytest.mark.parametrize("kind", [HyLinUCB, LinUCB, DisLinUCB])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_coverage_against_the_dense_solution(kind: Any, noise: float) -> None:
    world = Synthetic(d1=D1, d2=D2, arms=ARMS, noise=0.1, seed=2)
    theta, beta = world.parameters()
    block, data = next(world.rounds(N)), Data()
    policy = kind(d1=D1, d2=D2, noise=noise, ridge=RIDGE)
    truth = np.concatenate((theta, beta.ravel()))
    rows = np.zeros((N, D1 + ARMS * D2))
    for row, i, x, z in zip(rows, data.arms, data.x, data.z, strict=True):
        row[:D1], row[D1 + i * D2 : D1 + (i + 1) * D2] = x, z
    rewards = rows @ truth + np.random.default_rng(1).normal(0, 0.1, N)
    policy.admit(range(ARMS))
    policy.learn_batch(data.arms, data.x, data.z, rewards)
    x, z = block.rounds.x[-1], block.rounds.z[-1]
    ratios, outside = [], []
    if kind is DisLinUCB:
        both = np.hstack((data.x, data.z))
        for i in range(ARMS):
            mine = data.arms == i
            m = RIDGE * np.eye(D1 + D2) + both[mine].T @ both[mine]
            error = np.linalg.solve(m, both[mine].T @ rewards[mine]) - np.concatenate((theta, beta[i]))
            gamma = np.sqrt(RIDGE * 2) + noise * np.sqrt(
                2 * np.log(100) + (D1 + D2) * np.log(1 + 2 * mine.sum() / (RIDGE * (D1 + D2)))
            )
            ratios.append(np.sqrt(error @ m @ error) / gamma)
            row = np.concatenate((x[i], z[i]))
            outside.append(abs(row @ error) > gamma * np.sqrt(row @ np.linalg.solve(m, row)))
    else:
        m = RIDGE * np.eye(rows.shape[1]) + rows.T @ rows
        error = np.linalg.solve(m, rows.T @ rewards) - truth
        ratios.append(np.sqrt(error @ m @ error) / policy.radius)
        for i in range(ARMS):
            row = np.zeros(rows.shape[1])
            row[:D1], row[D1 + i * D2 : D1 + (i + 1) * D2] = x[i], z[i]
            outside.append(abs(row @ error) > policy.radius * np.sqrt(row @ np.linalg.solve(m, row)))
    covered = coverage(policy, theta, beta, block)
    assert_allclose(covered["ellipsoid"], max(ratios))
    assert covered["outside"] == np.mean(outside)


def test_the_coverage_of_a_coefficient_that_grows_with_the_arms_and_of_policies_without_one() -> None:
    world = Synthetic(d1=D1, d2=D2, arms=ARMS, noise=0.1, seed=2)
    block, (theta, beta) = next(world.rounds(3)), world.parameters()
    policy: Policy = HyLinUCB(d1=D1, d2=D2, exploration=AsWritten(horizon=100, arms=ARMS))
    policy.admit(range(ARMS))
    error = np.sqrt(ARMS * (theta @ theta + (beta**2).sum()))  # nothing is learned: M = K I and all estimates are 0
    assert_allclose(coverage(policy, theta, beta, block)["ellipsoid"], error / policy.radius)  # type: ignore[attr-defined]
    for policy in (Greedy(d1=D1, d2=D2), HyRan(d1=D1, d2=D2)):
        assert all(np.isnan(value) for value in coverage(policy, theta, beta, block).values())
