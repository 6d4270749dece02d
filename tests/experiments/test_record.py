"""Records: what they refuse, their units, and the way to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hybandits.experiments.record import Entry, Experiment, ResultsError, environment_seeds, grid
from hybandits.simulation.worlds import Synthetic
from tests.support.experiments import EIGEN, SMALL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizon": 0}, "horizon must be at least 1"),
        ({"arms": (0,)}, "arms must be at least 1"),
        ({"arms": ()}, "arms must be different and at least one"),
        ({"law": "cube"}, "law must be one of"),
        ({"points": (70,)}, "points must be increasing rounds between 1 and 60"),
        ({"points": (10,)}, "points must end at the horizon 60, got"),
        ({"arms": (3, 3)}, "arms must be different"),
        ({"noise": float("nan")}, "noise"),
        ({"theta_bound": -1.0}, "theta_bound"),
        ({"name": "a/b"}, "name must be letters"),
        ({"probes": (20, 10)}, "probes must be increasing"),
        ({"policies": (SMALL.policies[0],) * 2}, "names of policies must be different"),
        ({"policies": (Entry(name="A", policy="Greedy", rounds=60),)}, "A must play all rounds, or on a log"),
        ({"log": {}, "policies": (Entry(name="A", policy="Greedy", rounds=7),)}, "one of the points, got 7"),
    ],
)
def test_records_that_make_no_sense(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)  # type: ignore[arg-type]


def test_units_cover_every_case_environment_and_trial_once() -> None:
    assert [unit.name for unit in SMALL.units()] == [
        "K5-environment1", "K5-environment2", "K3-environment1", "K3-environment2",
    ]  # fmt: skip
    assert [unit.name for unit in EIGEN.units()] == ["K4-environment1-trials0-1", "K4-environment1-trials2-3"]
    unit = next(EIGEN.units())
    assert unit.path == "units/diversity/written/K4-environment1-trials0-1.parquet"
    assert unit.rounds == 40 * 2 * len(EIGEN.policies)
    assert unit.seed == EIGEN.seeds[0]
    assert unit.policies == EIGEN.policies


def test_on_a_log_every_policy_and_trial_is_a_unit_of_its_own() -> None:
    policies = (Entry(name="HyRan (released)", policy="HyRan"), Entry(name="Greedy", policy="Greedy"))
    record = replace(EIGEN, trials=2, policies=policies, log={"start": 7})
    assert [unit.name for unit in record.units()] == [
        "K4-environment1-trial0-HyRan-released", "K4-environment1-trial0-Greedy",
        "K4-environment1-trial1-HyRan-released", "K4-environment1-trial1-Greedy",
    ]  # fmt: skip
    unit = next(record.units())
    assert unit.policies == policies[:1]
    assert unit.plain()["policy"] == "HyRan (released)"


@pytest.mark.parametrize(
    "record",
    [
        SMALL,
        EIGEN,
        replace(EIGEN, log={"start": 7}),
        replace(SMALL, world_settings={"jumps": 1}),
        replace(EIGEN, design_ridge=4.0),
    ],
)
def test_a_record_goes_to_json_and_back(record: Experiment) -> None:
    assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record


def test_fields_that_are_not_used_are_not_written() -> None:
    """Records of the first version have neither, and must stay equal to those of this one."""
    plain = SMALL.plain()
    assert "log" not in plain
    assert "world_settings" not in plain
    assert "design_ridge" not in plain


def test_a_record_with_other_fields_is_refused() -> None:
    with pytest.raises(ResultsError, match=r"fields are not those of this version .differing: colour, noise"):
        Experiment.from_plain({**{k: v for k, v in SMALL.plain().items() if k != "noise"}, "colour": "red"})


def test_the_world_is_that_of_the_record() -> None:
    assert SMALL.world(5, 6) == Synthetic(
        d1=4, d2=3, arms=5, noise=SMALL.noise, theta_bound=SMALL.theta_bound, beta_bound=SMALL.beta_bound, seed=6,
        law=SMALL.law, fresh_contexts=False,
    )  # fmt: skip


def test_the_world_has_the_settings_of_the_record() -> None:
    world = replace(SMALL, world_settings={"jumps": 2, "walk": 30.0}).world(5, 6)
    assert world == replace(SMALL.world(5, 6), jumps=2, walk=30.0)


def test_environments_do_not_depend_on_how_many_there_are() -> None:
    seeds = environment_seeds(7, 6)
    assert len(set(seeds)) == 6
    assert environment_seeds(7, 3) == seeds[:3]
    with pytest.raises(ValueError, match="seed"):
        environment_seeds(-1, 3)


@pytest.mark.parametrize("horizon", [1, 7, 100, 10_000, 80_000, 1_234_567])
def test_a_grid_increases_to_the_horizon(horizon: int) -> None:
    points = grid(horizon, 120)
    assert list(points) == sorted(set(points))
    assert points[0] >= 1
    assert points[-1] == horizon
    assert {t for t in (1000, 2500, 5000, 10_000) if t <= horizon} <= set(points)
    assert len(grid(horizon, 120, keep=())) <= 120
