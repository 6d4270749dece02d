"""The worlds without diversity: what fails in each, beside the same draws in the diverse one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.experiments.record import Experiment, Unit
from hybandits.foundation.checks import FloatArray
from hybandits.paper import structured
from hybandits.paper.structured import describe_structured, losses_of, structured_worlds
from tests.support.fabricated_outcomes import as_results, fabricated_outcome


@pytest.mark.parametrize("protocol", ["released", "written"])
def test_worlds_differ_in_z_alone(protocol: structured.Protocol) -> None:
    worlds = {r.name: r.world(25, r.seeds[0]) for r in structured.records(protocol)}
    blocks = {name: next(world.rounds(50)).rounds for name, world in worlds.items()}
    for block in blocks.values():
        assert_array_equal(block.x, blocks[structured.DIVERSE].x)
    z = {name.removeprefix("structured-"): block.z for name, block in blocks.items()}
    assert (z["fixed"] == z["diverse"][0]).all()
    assert_array_equal(np.sort(z["one-hot"], axis=2)[..., -2:], np.broadcast_to([0.0, 1.0], (50, 25, 2)))
    assert_array_equal(z["duplicated"], blocks[structured.DIVERSE].x)


def test_environments_are_fresh_and_the_short_version_begins_with_them() -> None:
    full, short = structured.records("written"), structured.records("written", scale="quick")
    assert {len(set(record.seeds)) for record in full} == {20}
    assert {record.seeds for record in short} == {full[0].seeds[:2]}


def fabricated(levels: dict[str, float]) -> Any:
    """Results in which uniform choice loses 1,000 and the others a share of it, by the name of the world."""
    outcomes = []
    for e in structured.records("written"):

        def curve(policy: str, arms: int, environment: int, trial: int, e: Experiment = e) -> FloatArray:
            share = 1.0 if policy == "Uniform" else levels.get(e.name, 0.5)
            return 1000 * share * (1 + 0.1 * environment) * np.array(e.points) / e.horizon

        def design(unit: Unit, policy: str, trial: int) -> Any:
            pulls = np.full((1, 25), 100)
            shared = dict.fromkeys(
                ("lambda_min_v", "rho_x", "rho_z", "z_norm", "mean_x", "mean_z", "mean_xz", "ellipsoid", "outside"),
                np.ones(1),
            )
            return {**shared, "pulls": pulls, "lambda_min_w": 1 + 0.05 * pulls, "sigma_max_b": 0.25 * pulls,
                    "frobenius_b": 0.5 * pulls}  # fmt: skip

        outcomes.append(fabricated_outcome(e, curve, design))
    return as_results(*outcomes)


@pytest.mark.slow
def test_losses_are_relative_to_uniform_choice_and_to_the_diverse_world() -> None:
    results = fabricated({"structured-fixed": 0.75, "structured-one-hot": 0.25})
    worlds = structured_worlds(results, "written")
    losses = {(loss.world.name, loss.policy): loss for loss in losses_of(worlds)}
    assert len(losses) == 3 * 3
    worse, better = losses["structured-fixed", "LinUCB"], losses["structured-one-hot", "LinUCB"]
    assert (worse.ratio, better.ratio) == (pytest.approx(1.5), pytest.approx(0.5))
    assert (worse.larger, better.larger) == (True, False)
    assert not losses["structured-duplicated", "LinUCB"].larger
    assert worlds[0].own_rho["HyLinUCB"] == pytest.approx(0.05, rel=1e-3)
    assert worlds[0].own_cross["HyLinUCB"] == pytest.approx(0.25, rel=1e-3)
    words = describe_structured(results)
    assert "HyLinUCB 0.5 to 1.5 times" in words
    assert "DisLinUCB with z constant per arm (written, 1.5 times). In HyLinUCB's rounds" in words
    assert "z equal to x 0.05 and 0.25" in words


def test_without_the_diverse_world_there_is_nothing_to_compare_with() -> None:
    results = fabricated({})
    worlds = [world for world in structured_worlds(results, "written") if world.name != structured.DIVERSE]
    assert losses_of(worlds) == []
    assert structured_worlds(results, "released") == []
