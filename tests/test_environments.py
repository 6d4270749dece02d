"""Synthetic worlds are what they say, whatever the size of a block."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import Greedy, environments, paper
from hybandits.environments import Synthetic
from hybandits.simulate import cumulative_regret

WORLD = Synthetic(d1=3, d2=2, arms=4, noise=0.1, seed=7)


def test_draws_follow_the_released_order() -> None:
    random = np.random.default_rng(7)

    def point(d: int, bound: float) -> np.ndarray:
        direction = random.uniform(-1, 1, d)
        return bound * random.uniform(0, 1) * direction / np.linalg.norm(direction)

    theta, beta = WORLD.parameters()
    assert_allclose(theta, point(3, 0.8))
    assert_allclose(beta, [point(2, 0.5) for _ in range(4)])
    block = next(WORLD.rounds(2))
    for t in range(2):
        for arm in range(4):
            x, z = random.uniform(-1, 1, 3), random.uniform(-1, 1, 2)
            rx, rz = random.uniform(), random.uniform()
            assert_allclose(block.x[t, arm], rx * x / np.linalg.norm(x))
            assert_allclose(block.z[t, arm], rz * z / np.linalg.norm(z))
            assert_allclose(block.means[t, arm], block.x[t, arm] @ theta + block.z[t, arm] @ beta[arm])


def test_blocks_of_any_size_give_the_same_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = next(WORLD.rounds(50))
    monkeypatch.setattr(environments, "BLOCK_NUMBERS", 100)
    parts = list(WORLD.rounds(50))
    assert len(parts) > 5
    for name in ("x", "z", "means"):
        assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


def test_noise_differs_between_trials_only() -> None:
    assert_array_equal(WORLD.noises(10), 0.1 * np.random.default_rng(7).standard_normal(10))
    assert (WORLD.noises(10, trial=1) != WORLD.noises(10)).all()


def test_released_seeds_are_what_their_generator_gives() -> None:
    drawn = np.random.default_rng(194821263).integers(1074926307, size=5)
    assert tuple(drawn.tolist()) == paper.RELEASED_SEEDS


def test_regret_adds_up_and_progress_is_told() -> None:
    told: list[int] = []
    regret = cumulative_regret(Greedy(d1=3, d2=2), WORLD, 60, progress=told.append)
    assert (np.diff(regret) >= 0).all()
    assert told[-1] == 60


@pytest.mark.parametrize("bad", [{"arms": 0}, {"d1": 0, "d2": 0}, {"noise": -1.0}, {"seed": -1}])
def test_bad_worlds_are_refused(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"must|both 0"):
        Synthetic(**{"d1": 2, "d2": 2, "arms": 3, **bad})  # type: ignore[arg-type]
