"""A user's own experiment: settings to a record, and mistakes to one clear line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import Here
from hybandits.experiments.config import entry, experiment
from hybandits.experiments.record import Experiment
from hybandits.experiments.runner import run
from hybandits.foundation.files import read_toml, sha256

TOML = """
d1 = 3
d2 = 2
arms = [4, 8]
rounds = 50
noise = 1
policies = ["LinUCB", {policy = "HyThompson", name = "bold", scale = 2.0}]
"""


def test_a_file_becomes_a_record(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(TOML)
    record = experiment(read_toml(path))
    assert (record.d1, record.arms, record.horizon, record.noise, record.trials) == (3, (4, 8), 50, 1.0, 1)
    assert [each.name for each in record.policies] == ["LinUCB", "bold"]
    assert record.policies[0].settings == {"noise": 1.0}
    assert record.policies[1].settings == {"scale": 2.0}, "it learns the noise"
    assert record.protocol == "own"


def test_a_policy_with_its_own_coefficient_is_not_told_the_noise() -> None:
    told = entry({"policy": "LinUCB", "exploration": {"kind": "AsWritten"}}, noise=0.1)
    assert "noise" not in told.settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"round": 5}, r"unknown setting 'round' \(did you mean rounds\?\): the settings are name, d1,"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"rounds": 1.5}, "rounds must be a whole number, got 1.5"),
        ({"arms": 0}, "arms must be at least 1"),
        ({"arms": "ten"}, "arms must be a whole number or a list"),
        ({"arms": []}, "arms is empty"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"environments": 0}, "environments must be at least 1"),
        ({"noise": -1}, "noise"),
        ({"noise": "loud"}, "noise must be a number"),
        ({"law": "bal"}, r"law must be one of .*did you mean ball"),
        ({"name": "a/b"}, "name must be letters"),
        ({"policies": ["HyLinUBC"]}, r"there is no policy 'HyLinUBC' \(did you mean HyLinUCB\?\)"),
        ({"policies": ["hylinucb", "HyLinUCB"]}, "two policies have the same name"),
        ({"policies": [3]}, "a policy must be a name or a table"),
        ({"policies": ["HyThompson:scale"]}, "expected setting=value"),
        ({"policies": ["HyThompson:scal=2"]}, "has no setting 'scal'"),
        ({"policies": ["HyThompson:scale=-2"]}, "scale must be"),
        ({"policies": ["HyThompson:scale=big"]}, "scale"),
        ({"policies": []}, "policies is empty"),
        ({"policies": ["Greedy", "Greedy"]}, "two policies have the same name"),
        ({"policies": ["HyThompson:seed=3"]}, "has no setting 'seed'"),
        ({"policies": ["LinUCB:exploration=foo"]}, "exploration must be a table"),
        ({"policies": [{"policy": "LinUCB", "exploration": {"kind": "Constant", "alpha": 1.0, "foo": 2}}]}, "'foo'"),
        ({"theta_bound": float("nan")}, "theta_bound"),
        ({"d1": -1}, "d1"),
        ({"seed": -1}, "seed"),
        ({"jumps": -1}, "jumps must be at least 0"),
        ({"walk": -1}, "walk"),
        ({"world": "click"}, r"world must be one of .*did you mean clicks"),
        ({"world": "clicks", "noise": 0.1}, "noise does not matter in a world of the kind clicks"),
        ({"world": "churn", "law": "ball"}, "law does not matter in a world of the kind churn"),
        ({"rate": 0.5}, "rate does not matter in a world of the kind linear"),
        ({"world": "products", "d1": 7}, "d1 must be a multiple of d2 = 5"),
        ({"world": "classification", "arms": 3}, "arms cannot be given: the data set decides"),
        ({"constant": 1}, "constant must be true or false, got 1"),
        ({"delay": -1}, "delay"),
        ({"factor": 0}, "factor"),
        ({"own": "none"}, "own must be one of drawn, zero, alike, got 'none'"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        experiment(settings)


def test_only_settings_of_the_world_that_are_used_are_kept() -> None:
    assert experiment({"jumps": 0, "rounds": 10}).world_settings == {}
    assert experiment({"jumps": 2, "rounds": 10}).world_settings == {"jumps": 2}
    assert experiment({"walk": 20_000, "rounds": 10}).world_settings == {"walk": 20_000}


def test_other_worlds_keep_all_their_settings() -> None:
    record = experiment({"world": "clicks", "rate": 0.2, "delay": 30, "rounds": 10})
    assert record.world_settings == {"kind": "clicks", "rate": 0.2, "spread": 0.5, "delay": 30}
    assert record.noise == pytest.approx(0.4)
    assert record.policies[0].settings == {"noise": record.noise}, "policies are told the noise of the clicks"
    assert record.world_in_words == "clicks (rate 0.2, spread 0.5, delay 30)"
    assert Experiment.from_plain(record.plain()) == record


def test_a_data_set_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "flowers.csv"
    path.write_text("length,width,kind\n1,2,rose\n2,2.5,lily\n3,1,rose\n")
    record = experiment({"world": "classification", "data": str(path), "rounds": 10})
    assert (record.d1, record.d2, record.arms) == (0, 3, (2,))
    assert record.world_settings == {"kind": "classification", "data": "flowers.csv", "sha256": sha256(path)}
    assert record.needs_data
    assert run([record], tmp_path / "out", engine=Here(), data=path).outcome("simulation", "own").final("LinUCB").shape
    made = experiment({"world": "classification", "rounds": 10})
    assert (made.d2, made.arms, made.needs_data) == (55, (7,), False)


def test_a_table_may_be_given_with_a_name() -> None:
    parsed = entry('LinUCB:exploration={kind="Constant", alpha=1.0},ridge=2.0', noise=0.1)
    assert parsed.settings == {"exploration": {"kind": "Constant", "alpha": 1.0}, "ridge": 2.0}


def test_capitals_of_policies_do_not_matter_and_are_not_shown() -> None:
    small = {"d1": 2, "d2": 1, "arms": 3, "rounds": 10}
    table = {"policy": "HYTHOMPSON", "scale": 0.5}
    record = experiment({**small, "policies": ["hylinucb:ridge=2", table]})
    assert [entry.name for entry in record.policies] == ["HyLinUCB:ridge=2", "HyThompson"]
    assert record == experiment({**small, "policies": ["HyLinUCB:ridge=2", {"policy": "HyThompson", "scale": 0.5}]})
