"""A world whose arms come and go."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.simulation.benchmark_worlds import Churn


def test_a_tenth_of_the_arms_is_replaced_by_new_ones() -> None:
    pools = [list(block.rounds.arms) for block in Churn(d1=3, d2=2, arms=20, every=50, seed=1).rounds(220)]
    assert [len(pool) for pool in pools] == [20] * 5
    for i, (before, after) in enumerate(itertools.pairwise(pools)):
        assert len(set(before) & set(after)) == 18
        assert max(after) == 20 + 2 * (i + 1) - 1


def test_an_arm_keeps_its_parameters_while_it_stays() -> None:
    rows: dict[Any, list[tuple[np.ndarray, np.ndarray]]] = {}
    for rounds, means, _ in Churn(d1=2, d2=2, arms=10, every=50, seed=1).rounds(150):
        assert (rounds.z[..., 0] == 1).all()
        for j, arm in enumerate(rounds.arms):
            rows.setdefault(arm, []).append((np.concatenate((rounds.x[:, j], rounds.z[:, j]), axis=1), means[:, j]))
    fitted = [
        np.linalg.lstsq(*(np.concatenate(each) for each in zip(*parts, strict=True)), rcond=None)[:2]
        for parts in rows.values()
    ]
    assert all(rest.max() < 1e-20 for _, rest in fitted)
    thetas = np.array([parameters[:2] for parameters, _ in fitted])
    assert_allclose(thetas, np.broadcast_to(thetas[0], thetas.shape))


@pytest.mark.parametrize("bad", [{"arms": 0}, {"every": 0}, {"noise": -1.0}, {"d1": 0, "d2": 0}])
def test_bad_worlds_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|both 0"):
        Churn(**{"d1": 3, "d2": 2, "arms": 4, **bad})
