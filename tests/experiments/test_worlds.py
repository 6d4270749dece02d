"""Worlds by name: every kind, with its settings, keeps what worlds promise; and worlds of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.experiments.worlds import KINDS, make_world, world_class
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Relayed, World, delay_of, draw_rewards
from hybandits.testing import WorldConformance
from tests.support.own_classes import write_drifting

SETTINGS: list[dict[str, Any]] = [
    {},
    {"law": "cube-direction"},
    {"fresh_contexts": True},
    {"jumps": 2},
    {"walk": 100.0},
    {"own": "alike", "constant": True, "heavy_tails": True},
    {"kind": "clicks", "rate": 0.3},
    {"kind": "products"},
    {"kind": "churn", "every": 300},
    {"factor": 1000.0, "offset": 5.0},
    {"kind": "products", "delay": 7},
]


def make(settings: Mapping[str, Any], seed: int = 3) -> World:
    linear = {"law": "ball", "theta_bound": 1.0, "beta_bound": 1.0} if "kind" not in settings else {}
    return make_world({**linear, **settings}, d1=6, d2=3, arms=5, noise=0.2, seed=seed)


def drawn(world: World, horizon: int, trial: int = 0) -> list[tuple[Block, np.ndarray]]:
    stream = world.noise_stream(trial)
    return [(block, draw_rewards(world, block.means, stream)) for block in world.rounds(horizon, trial)]


def test_every_kind_is_tried() -> None:
    assert {settings.get("kind", "linear") for settings in SETTINGS} == set(KINDS)


@pytest.fixture(params=SETTINGS, ids=str)
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


@pytest.mark.slow
class TestEveryKind(WorldConformance):
    """Guarantees of all worlds, for every kind and settings."""

    @pytest.fixture(autouse=True)
    def _of_the_kind(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.same_for_any_horizon = "jumps" not in settings  # they are placed by the number of rounds
        kind = settings.get("kind", "linear")
        self.constant_noise = kind in ("linear", "churn") and "heavy_tails" not in settings

    def make(self, seed: int) -> World:
        return make(self.settings, seed)


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


def test_a_world_of_ones_own_is_given_what_it_takes(own_folder: Path) -> None:
    write_drifting(own_folder)
    shape: dict[str, Any] = {"d1": 2, "d2": 1, "arms": 3, "noise": 0.3, "seed": 5}
    world: Any = make_world({"kind": "drifting:Drifting", "speed": 0.5, "delay": 4}, **shape)
    assert (world.d1, world.world.arms, world.noise, world.world.speed, world.world.seed) == (2, 3, 0.3, 0.5, 5)
    assert delay_of(world) == 4


class TestTheDocumentedWorld(WorldConformance):
    @pytest.fixture(autouse=True)
    def _module(self, own_folder: Path) -> None:
        write_drifting(own_folder)

    def make(self, seed: int) -> World:
        kind: Any = world_class("drifting:Drifting")
        world: World = kind(d1=3, d2=2, arms=4, seed=seed)
        return world
