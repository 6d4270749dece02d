"""Measures of the design matrix against matrices summed up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import DisLinUCB, HyIDS, HyLinUCB, HyRan, HyThompson, Policy, Uniform
from hybandits.experiments.runner import measure

D1, D2, ARMS, N = 4, 3, 5, 60


class Data:
    """Rows of arms 0..3 (arm 4 never learns) and the blocks of their design matrix."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.arms = random.integers(0, ARMS - 1, N)
        self.x, self.z = random.normal(size=(N, D1)), random.normal(size=(N, D2))

    def blocks(self, ridge: float) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        own = [self.arms == i for i in range(ARMS)]
        b = [self.x[mine].T @ self.z[mine] for mine in own]
        w = [ridge * np.eye(D2) + self.z[mine].T @ self.z[mine] for mine in own]
        return ridge * np.eye(D1) + self.x.T @ self.x, b, w


def root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return vectors / np.sqrt(values) @ vectors.T


@pytest.mark.parametrize(
    "make", [lambda: HyLinUCB(d1=D1, d2=D2, ridge=0.7), lambda: HyThompson(d1=D1, d2=D2, noise=0.5, scale=1.0)]
)
def test_measures_are_those_of_the_summed_matrices(make: object) -> None:
    data, policy = Data(), make()  # type: ignore[operator]
    policy.learn_batch(data.arms, data.x, data.z, np.zeros(N))
    measures = measure(policy, ARMS)
    assert measures is not None
    v, b, w = data.blocks(policy.ridge)
    z = np.hstack([root(v) @ b[i] @ root(w[i]) for i in range(ARMS)])
    assert_allclose(measures["lambda_min_v"], np.linalg.eigvalsh(v)[0])
    assert_allclose(measures["lambda_min_w"], [np.linalg.eigvalsh(part)[0] for part in w])
    assert_allclose(measures["sigma_max_b"], [np.linalg.norm(part, 2) for part in b], atol=1e-12)
    assert_allclose(measures["z_norm"], np.linalg.norm(z, 2))
    assert_allclose(measures["rho_x"], np.linalg.eigvalsh(data.x.T @ data.x)[0] / N)
    assert_allclose(measures["rho_z"], np.linalg.eigvalsh(data.z.T @ data.z)[0] / N)
    assert measures["pulls"].tolist() == [int((data.arms == i).sum()) for i in range(ARMS)]


def test_the_disjoint_reduction_is_measured_by_arm() -> None:
    data, policy = Data(), DisLinUCB(d1=D1, d2=D2, ridge=0.7)
    policy.learn_batch(data.arms, data.x, data.z, np.zeros(N))
    measures = measure(policy, ARMS)
    assert measures is not None
    both = np.hstack((data.x, data.z))
    matrices = [0.7 * np.eye(D1 + D2) + both[data.arms == i].T @ both[data.arms == i] for i in range(ARMS)]
    assert np.isnan(measures["lambda_min_v"])
    assert_allclose(measures["lambda_min_w"], [np.linalg.eigvalsh(part)[0] for part in matrices])
    assert_allclose(measures["sigma_max_b"], [np.linalg.norm(part[:D1, D1:], 2) for part in matrices], atol=1e-12)
    coupling = [root(part[:D1, :D1]) @ part[:D1, D1:] @ root(part[D1:, D1:]) for part in matrices]
    assert_allclose(measures["z_norm"], max(np.linalg.norm(part, 2) for part in coupling))
    assert_allclose(measures["rho_x"], np.linalg.eigvalsh(data.x.T @ data.x)[0] / N)
    assert_allclose(measures["rho_z"], np.linalg.eigvalsh(data.z.T @ data.z)[0] / N)


def test_a_policy_that_has_not_learned_and_one_without_a_design_matrix() -> None:
    measures = measure(HyLinUCB(d1=2, d2=1, ridge=2.0), 3)
    assert measures is not None
    assert_allclose((measures["lambda_min_v"], measures["z_norm"], measures["rho_x"]), (2.0, 0.0, 0.0), atol=1e-12)
    assert_allclose(measures["lambda_min_w"], 2.0)
    assert measure(HyRan(d1=2, d2=1), 3) is None


@pytest.mark.parametrize(
    "policy", [HyThompson(d1=D1, d2=D2), HyThompson(d1=D1, d2=D2, noise=0.5), HyIDS(d1=D1, d2=D2)], ids=repr
)
def test_a_matrix_whose_ridges_are_learned_is_not_measured(policy: Policy) -> None:
    data = Data()
    assert measure(policy, ARMS) is None
    policy.learn_batch(data.arms, data.x, data.z, data.x.sum(axis=1))
    assert measure(policy, ARMS) is None


@pytest.mark.parametrize(
    "policy",
    [HyIDS(d1=D1, d2=D2), HyThompson(d1=D1, d2=D2, noise=0.5), Uniform(d1=D1, d2=D2), HyLinUCB(d1=D1, d2=D2, ridge=9),
     DisLinUCB(d1=D1, d2=D2, ridge=9)],
    ids=repr,
)  # fmt: skip
def test_every_matrix_can_be_measured_with_a_ridge_that_is_given(policy: Policy) -> None:
    data = Data()
    policy.learn_batch(data.arms, data.x, data.z, data.x.sum(axis=1))
    usual = (DisLinUCB if isinstance(policy, DisLinUCB) else HyLinUCB)(d1=D1, d2=D2, ridge=0.7)
    measures = measure(policy, ARMS, 0.7)
    usual.learn_batch(data.arms, data.x, data.z, np.zeros(N))
    expected = measure(usual, ARMS)
    assert measures is not None
    assert expected is not None
    for name, value in expected.items():
        assert_allclose(measures[name], value, atol=1e-10)


@pytest.mark.parametrize("memory", [50, "auto"])
def test_a_policy_that_forgets_is_not_measured(memory: Any) -> None:
    assert measure(HyIDS(d1=D1, d2=D2, memory=memory), ARMS, 0.7) is None


@pytest.mark.parametrize(("d1", "d2"), [(0, 2), (2, 0)])
def test_one_half_of_the_model_may_be_missing(d1: int, d2: int) -> None:
    for policy in (HyLinUCB(d1=d1, d2=d2), DisLinUCB(d1=d1, d2=d2)):
        policy.learn("a", np.ones(d1), np.ones(d2), 1.0)
        for measures in (measure(policy, 2), measure(policy, 2, 1.0)):
            assert measures is not None
            assert measures["z_norm"] == 0
