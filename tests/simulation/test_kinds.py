"""Every kind of world keeps the promises of a world, whatever its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.simulation.kinds import KINDS, make_world
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Relayed, World, delay_of, draw_rewards

SETTINGS: list[dict[str, Any]] = [
    {},
    {"jumps": 2},
    {"walk": 100.0},
    {"own": "alike", "constant": True, "heavy_tails": True},
    {"kind": "clicks", "rate": 0.3},
    {"kind": "products"},
    {"kind": "churn", "every": 300},
    {"kind": "classification"},
    {"factor": 1000.0, "offset": 5.0},
    {"kind": "products", "delay": 7},
]


def make(settings: Mapping[str, Any], seed: int = 3) -> World:
    shape = {"d1": 0, "d2": 55} if settings.get("kind") == "classification" else {"d1": 6, "d2": 3}
    linear = {"law": "ball", "theta_bound": 1.0, "beta_bound": 1.0}
    return make_world(settings, **shape, arms=5, noise=0.2, seed=seed, linear=linear)


def drawn(world: World, horizon: int, trial: int = 0) -> list[tuple[Block, np.ndarray]]:
    stream = world.noise_stream(trial)
    return [(block, draw_rewards(world, block.means, stream)) for block in world.rounds(horizon, trial)]


def test_every_kind_is_tried() -> None:
    assert {settings.get("kind", "linear") for settings in SETTINGS} == set(KINDS)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_world_keeps_its_promises(settings: dict[str, Any]) -> None:
    """The seed decides everything, blocks fit, the best is the best, and arms enter with a block's first round."""
    world = make(settings)
    met: set[Any] = set()
    rounds = 0
    for (block, rewards), (again, rewards_again) in zip(drawn(world, 1500), drawn(make(settings), 1500), strict=True):
        block.rounds.check(world.d1, world.d2)
        first = {block.rounds.arms[j] for j in block.rounds.index[0, : block.rounds.counts[0]].tolist()}
        assert set(block.rounds.arms) - met <= first
        met |= first
        assert_array_equal(block.best, block.means.max(axis=1))
        assert_array_equal(block.means, again.means)
        assert_array_equal(block.rounds.z, again.rounds.z)
        assert_array_equal(rewards, rewards_again)
        assert rewards.shape == block.means.shape
        rounds += len(block.best)
    assert rounds == 1500
    other = next(make(settings, seed=4).rounds(1500))
    assert not np.array_equal(other.means, next(world.rounds(1500)).means)


@pytest.mark.parametrize("settings", [each for each in SETTINGS if "jumps" not in each], ids=str)
def test_a_shorter_run_is_the_beginning_of_a_longer_one(settings: dict[str, Any]) -> None:
    """Jumps are placed by the number of rounds, so they are left out here."""
    long, short = (
        [np.concatenate(parts) for parts in zip(*((block.means, rewards) for block, rewards in run), strict=True)]
        for run in (drawn(make(settings), 1500), drawn(make(settings), 1234))
    )
    for whole, beginning in zip(long, short, strict=True):
        assert_array_equal(whole[:1234], beginning)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_rewards_have_the_means_of_the_world(settings: dict[str, Any]) -> None:
    """Averages over 20 trials; seeded, within 6 standard errors, which fails for 1 seed in 50 million."""
    world = make(settings)
    errors = [
        np.mean([(rewards - block.means)[:, 0].mean() for block, rewards in drawn(world, 1000, trial)])
        for trial in range(20)
    ]
    largest = float(world.noise) * (np.sqrt(0.25 / 0.05 / 0.95) if settings.get("kind") == "products" else 1.1)
    assert abs(np.mean(errors)) <= 6 * largest / np.sqrt(20_000)


def test_relayed_rewards_are_those_of_the_world_times_a_factor_plus_an_offset() -> None:
    for settings in ({}, {"kind": "clicks"}):
        plain, relayed = make(settings), make({**settings, "factor": 1000.0, "offset": -5.0, "delay": 3})
        for (block, rewards), (other, others) in zip(drawn(plain, 50), drawn(relayed, 50), strict=True):
            assert_allclose(other.means, 1000 * block.means - 5)
            assert_allclose(other.best, 1000 * block.best - 5)
            assert_allclose(others, 1000 * rewards - 5, atol=1e-9)
        assert relayed.noise == 1000 * plain.noise
        assert (delay_of(plain), delay_of(relayed)) == (0, 3)


@pytest.mark.parametrize("bad", [{"factor": 0.0}, {"offset": float("nan")}, {"delay": -1}])
def test_bad_relays_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Relayed(world=make({}), **bad)


def test_unknown_kinds_and_settings_are_named() -> None:
    with pytest.raises(ValueError, match=r"world must be one of .*got 'click' \(did you mean clicks\?\)"):
        make({"kind": "click"})
    with pytest.raises(ValueError, match="a world of the kind churn has no setting 'rate': it has every, factor"):
        make({"kind": "churn", "rate": 0.5})


def test_a_data_set_decides_on_the_shape() -> None:
    shape: dict[str, Any] = {"d1": 0, "d2": 3, "arms": 2, "noise": 0.1, "seed": 0, "linear": {}}
    table = [[1.0, 2.0], [2.0, 2.5], [3.0, 1.0]], ["rose", "lily", "rose"]
    settings = {"kind": "classification", "data": "flowers.csv"}
    assert next(make_world(settings, **shape, table=table).rounds(3)).means.sum() == 3
    with pytest.raises(ValueError, match="the data set has d1=0, d2=3, not d1=0, d2=4"):
        make_world(settings, **{**shape, "d2": 4}, table=table)
