"""Synthetic worlds are what they say, whatever the size of a block."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.simulation import worlds
from hybandits.simulation.worlds import LAWS, Synthetic

WORLD = Synthetic(d1=3, d2=2, arms=4, noise=0.1, seed=7)


def test_draws_follow_the_released_order() -> None:
    random = np.random.default_rng(7)

    def point(d: int, bound: float) -> np.ndarray:
        direction = random.uniform(-1, 1, d)
        return bound * random.uniform(0, 1) * direction / np.linalg.norm(direction)

    theta, beta = WORLD.parameters()
    assert_allclose(theta, point(3, 0.8))
    assert_allclose(beta, [point(2, 0.5) for _ in range(4)])
    (xs, zs, *_), means, _ = next(WORLD.rounds(2))
    for t in range(2):
        for arm in range(4):
            x, z = random.uniform(-1, 1, 3), random.uniform(-1, 1, 2)
            rx, rz = random.uniform(), random.uniform()
            assert_allclose(xs[t, arm], rx * x / np.linalg.norm(x))
            assert_allclose(zs[t, arm], rz * z / np.linalg.norm(z))
            assert_allclose(means[t, arm], xs[t, arm] @ theta + zs[t, arm] @ beta[arm])


def test_noise_differs_between_trials_only() -> None:
    first, second = (WORLD.noise_stream(trial).standard_normal(10) for trial in range(2))
    assert_array_equal(first, np.random.default_rng(7).standard_normal(10))
    assert_array_equal(first, WORLD.noise_stream().standard_normal(10))
    assert (first != second).all()


@pytest.mark.parametrize("change", [{}, {"jumps": 3}, {"walk": 100.0}], ids=["stays", "jumps", "walks"])
@pytest.mark.parametrize("law", LAWS)
def test_blocks_of_any_size_give_the_same_rounds(
    law: str, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = replace(WORLD, law=law, **change)
    monkeypatch.setattr(worlds, "WALK_STEP", 5)
    single = next(world.rounds(50))
    monkeypatch.setattr(worlds, "BLOCK_NUMBERS", 100)
    parts = list(world.rounds(50))
    assert len(parts) > 5
    for name in ("means", "best"):
        assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(single, name))
    for name in ("x", "z", "index", "counts"):
        assert_array_equal(np.concatenate([getattr(part.rounds, name) for part in parts]), getattr(single.rounds, name))
    assert_array_equal(single.best, single.means.max(axis=1))
    theta, beta = world.parameters()
    means = single.rounds.x @ theta + np.einsum("tad,ad->ta", single.rounds.z, beta)
    stays = 50 if not change else 12 if "jumps" in change else 5
    assert_allclose(single.means[:stays], means[:stays])
    assert change == {} or np.abs(single.means - means)[stays:].max(axis=1).min() > 1e-6


def _parameters(world: Synthetic, horizon: int) -> list[np.ndarray]:
    """(theta, beta) of every arm in stretches of 50 rounds, by least squares on the means."""
    rounds, means, _ = next(world.rounds(horizon))
    rows = np.concatenate((rounds.x, rounds.z), axis=2)
    return [
        np.array([np.linalg.lstsq(rows[t : t + 50, a], means[t : t + 50, a], rcond=None)[0] for a in range(world.arms)])
        for t in range(0, horizon, 50)
    ]


def test_jumps_redraw_all_parameters_at_even_distances() -> None:
    """Contexts and noise stay those of the world without jumps."""
    world = replace(WORLD, jumps=1)
    before, after = (_parameters(world, 200)[i : i + 2] for i in (0, 2))
    assert_allclose(before[0], before[1])
    assert_allclose(after[0], after[1])
    assert (np.abs(after[0] - before[0]) > 1e-3).all()
    assert_allclose(after[0][:, :3], np.broadcast_to(after[0][0, :3], (4, 3)))
    assert_array_equal(next(world.rounds(200)).rounds.x, next(WORLD.rounds(200)).rounds.x)
    assert_array_equal(world.noise_stream().random(5), WORLD.noise_stream().random(5))


def test_parameters_that_walk_keep_their_law() -> None:
    """Steps of 50 rounds correlate by exp(-50 / walk) and variances stay; seeded, within 5 standard errors of 1,600."""
    world = Synthetic(d1=1, d2=1, arms=1600, seed=3, law="sphere", walk=100.0)
    betas = np.array([stretch[:, 1] for stretch in _parameters(replace(world, theta_bound=0.0), 150)])
    variance = 0.5**2
    assert np.abs(betas.var(axis=1) / variance - 1).max() < 5 * np.sqrt(2 / 1600)
    for apart in (1, 2):
        correlation = np.corrcoef(betas[0], betas[apart])[0, 1]
        assert abs(correlation - np.exp(-50 * apart / 100)) < 5 / np.sqrt(1600)


def test_the_ball_is_filled_evenly() -> None:
    """|x|^d is uniform in [0, 1] and the direction has mean 0; seeded, 5 standard errors (1 in a million)."""
    rounds = next(Synthetic(d1=3, d2=2, arms=20, seed=1, law="ball").rounds(1000)).rounds
    for points, d in ((rounds.x, 3), (rounds.z, 2)):
        radius = np.linalg.norm(points, axis=2) ** d
        n = radius.size
        assert radius.max() <= 1
        assert abs(radius.mean() - 1 / 2) < 5 * np.sqrt(1 / 12 / n)
        assert abs((radius**2).mean() - 1 / 3) < 5 * np.sqrt(4 / 45 / n)
        assert (np.abs(points.mean(axis=(0, 1))) < 5 / np.sqrt((d + 2) * n)).all()
        assert_allclose(np.einsum("tad,tae->de", points, points) / n, np.eye(d) / (d + 2), atol=5 / np.sqrt(n))


def test_the_sphere_is_covered_evenly() -> None:
    """|x| = 1, mean 0 and second moments I/d; so are parameters, at their bounds. Seeded, 5 standard errors."""
    world = Synthetic(d1=3, d2=2, arms=20, seed=1, law="sphere", theta_bound=0.8, beta_bound=0.5)
    rounds = next(world.rounds(1000)).rounds
    for points, d in ((rounds.x, 3), (rounds.z, 2)):
        n = points.size // d
        assert_allclose(np.linalg.norm(points, axis=2), 1.0)
        assert (np.abs(points.mean(axis=(0, 1))) < 5 / np.sqrt(d * n)).all()
        assert_allclose(np.einsum("tad,tae->de", points, points) / n, np.eye(d) / d, atol=5 / np.sqrt(n))
    theta, beta = world.parameters()
    assert_allclose(np.linalg.norm(theta), 0.8)
    assert_allclose(np.linalg.norm(beta, axis=1), 0.5)
    assert_allclose(beta.mean(axis=0), 0.0, atol=5 * 0.5 / np.sqrt(2 * 20))


def test_the_released_diversity_experiment_is_drawn_again() -> None:
    """Draws as that code takes them: parameters from one seed, contexts and noise from the trial, in its order."""
    world = Synthetic(
        d1=4, d2=3, arms=2, seed=11, law="released-diversity", theta_bound=1.0, beta_bound=1.0, fresh_contexts=True
    )
    random = np.random.default_rng(11)
    theta = random.uniform(-1 / 2, 1 / 2, 4)
    betas = [random.uniform(-1 / np.sqrt(3), 1 / np.sqrt(3), 3) for _ in range(2)]
    assert_allclose(world.parameters()[0], theta)
    assert_allclose(world.parameters()[1], betas)
    random = np.random.default_rng(5)
    block = next(world.rounds(30, trial=5))
    for t in range(30):
        for arm in range(2):
            x, z = random.uniform(-1 / 2, 1 / 2, 4), random.uniform(-1 / np.sqrt(3), 1 / np.sqrt(3), 3)
            assert_allclose(block.rounds.x[t, arm], x, atol=1e-15)
            assert_allclose(block.rounds.z[t, arm], z, atol=1e-15)
            assert_allclose(block.means[t, arm], x @ theta + z @ betas[arm], atol=1e-15)
    assert_array_equal(world.noise_stream(5).normal(size=3), np.random.default_rng(5 + 478959).normal(size=3))


@pytest.mark.parametrize("own_features", ["fixed", "one-hot", "duplicated"])
def test_features_of_arms_may_fail_to_be_diverse(own_features: str) -> None:
    full, world = WORLD, replace(WORLD, own_features=own_features)
    drawn, block = next(full.rounds(50)), next(world.rounds(50))
    x, z = block.rounds.x, block.rounds.z
    assert_array_equal(x, drawn.rounds.x)
    expected = {
        "fixed": np.broadcast_to(drawn.rounds.z[0], z.shape),
        "one-hot": (drawn.rounds.z == drawn.rounds.z.max(axis=2, keepdims=True)).astype(float),
        "duplicated": np.concatenate((x, drawn.rounds.z), axis=2)[..., : z.shape[2]],
    }
    assert_array_equal(z, expected[own_features])
    theta, beta = world.parameters()
    means = [[x[t, i] @ theta + z[t, i] @ beta[i] for i in range(world.arms)] for t in range(50)]
    assert_allclose(block.means, means, atol=1e-14)
    assert_allclose(block.best, np.max(means, axis=1), atol=1e-14)


@pytest.mark.parametrize(
    "bad",
    [{"arms": 0}, {"d1": 0, "d2": 0}, {"noise": -1.0}, {"seed": -1}, {"jumps": -1}, {"jumps": 1.5}, {"walk": -1.0},
     {"walk": float("nan")}, {"law": "spheres"}, {"own_features": "few"}],
)  # fmt: skip
def test_bad_worlds_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        replace(WORLD, **bad)
