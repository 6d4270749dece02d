"""Worlds by name: every kind, with its settings, keeps what worlds promise; and worlds of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.simulation.kinds import KINDS, make_world, world_class
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Relayed, Synthetic, World, delay_of, draw_rewards
from hybandits.testing import WorldConformance
from tests.support.own_classes import write_drifting

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


@pytest.fixture(params=SETTINGS, ids=str)
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


class TestEveryKind(WorldConformance):
    """What all worlds promise, whatever their kind and settings."""

    @pytest.fixture(autouse=True)
    def _of_the_kind(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.same_for_any_horizon = "jumps" not in settings  # they are placed by the number of rounds
        kind = settings.get("kind", "linear")
        self.constant_noise = kind in ("linear", "churn") and "heavy_tails" not in settings

    def make(self, seed: int) -> World:
        return make(self.settings, seed)


class TestFreshContexts(WorldConformance):
    def make(self, seed: int) -> World:
        return Synthetic(d1=3, d2=2, arms=4, noise=0.1, law="ball", fresh_contexts=True, seed=seed)


class TestTheReleasedWorld(WorldConformance):
    def make(self, seed: int) -> World:
        return Synthetic(d1=3, d2=2, arms=4, seed=seed)


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


def test_a_world_of_ones_own_is_told_what_it_takes(own_folder: Path) -> None:
    write_drifting(own_folder)
    shape: dict[str, Any] = {"d1": 2, "d2": 1, "arms": 3, "noise": 0.3, "seed": 5, "linear": {}}
    world: Any = make_world({"kind": "drifting:Drifting", "settings": {"speed": 0.5}, "delay": 4}, **shape)
    assert (world.d1, world.world.arms, world.noise, world.world.speed, world.world.seed) == (2, 3, 0.3, 0.5, 5)
    assert delay_of(world) == 4
    with pytest.raises(ValueError, match=r"has no setting 'speed'.*it has settings, factor, offset, delay"):
        make_world({"kind": "drifting:Drifting", "speed": 0.5}, **shape)


class TestTheDocumentedWorld(WorldConformance):
    @pytest.fixture(autouse=True)
    def _module(self, own_folder: Path) -> None:
        write_drifting(own_folder)

    def make(self, seed: int) -> World:
        kind: Any = world_class("drifting:Drifting")
        world: World = kind(d1=3, d2=2, arms=4, seed=seed)
        return world
