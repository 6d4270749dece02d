"""A user's own experiment: settings to a record, and mistakes to one clear line."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import ProcessEngine, Ray, SerialEngine
from hybandits.experiments.config import Simulation, experiment
from hybandits.experiments.record import Experiment, ResultsError
from hybandits.experiments.results import read_results
from hybandits.experiments.runner import Job, run, run_unit
from hybandits.foundation.files import read_toml, sha256
from tests.support.experiments import StopAfter, StopError, contents
from tests.support.own_classes import FAILING, WRAPPERS, write_drifting, write_softmax

TOML = """
d1 = 3
d2 = 2
arms = [4, 8]
rounds = 50
noise = 1
world = {law = "sphere", jumps = 2}
policies = ["LinUCB", {class = "HyThompson", name = "bold", memory = 500}]
"""


def test_a_file_becomes_a_record(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(TOML)
    record = experiment(read_toml(path))
    assert (record.d1, record.arms, record.horizon, record.noise, record.trials) == (3, (4, 8), 50, 1.0, 1)
    assert (record.law, record.world_settings) == ("sphere", {"kind": "linear", "jumps": 2})
    assert [each.name for each in record.policies] == ["LinUCB", "bold"]
    assert record.policies[0].settings == {"noise": 1.0}
    assert record.policies[1].settings == {"memory": 500}, "it learns the noise"
    assert record.protocol == "own"
    assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"round": 5}, r"unknown setting 'round' \(did you mean rounds\?\): the settings are policies, world"),
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"rounds": 1.5}, "rounds must be a whole number, got 1.5"),
        ({"arms": 0}, "arms must be at least 1"),
        ({"arms": "ten"}, "arms must be a whole number, got 'ten'"),
        ({"arms": []}, "arms must be lists with an entry or more"),
        ({"trials": 0}, "trials must be at least 1"),
        ({"environments": 0}, "environments must be at least 1"),
        ({"noise": -1}, "noise"),
        ({"noise": "loud"}, "noise must be a number"),
        ({"name": "a/b"}, "name must be letters"),
        ({"d1": -1}, "d1"),
        ({"seed": -1}, "seed"),
        ({"policies": ["HyLinUBC"]}, r"unknown policy 'HyLinUBC' \(did you mean HyLinUCB\?\)"),
        ({"policies": ["HyLinUCB", "HyLinUCB"]}, "names of policies must be different"),
        ({"policies": [3]}, "a policy must be text or a table"),
        ({"policies": []}, "policies and arms must be lists"),
        ({"policies": "HyIDS"}, "policies and arms must be lists"),
        ({"world": 3}, "world must be text or a table"),
        ({"world": "click"}, r"world must be one of .*did you mean clicks"),
        ({"world": "linear:law=bal"}, "law must be one of"),
        ({"world": "linear:walk=-1"}, "walk"),
        ({"world": "linear:own=none"}, "own must be one of drawn, zero, alike, got 'none'"),
        ({"world": "linear:rate=0.5"}, "linear has no setting 'rate'"),
        ({"world": "linear:factor=-2"}, "factor must be positive"),
        ({"world": "products", "d1": 7}, "d1 must be a multiple of d2 = 5"),
        ({"world": "churn:evry=3"}, r"churn has no setting 'evry' \(did you mean every\?\): it has every"),
        ({"world": "churn:every=often"}, "every must be a whole number, got 'often'"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        experiment(settings)


def test_settings_of_a_world_are_those_that_were_given() -> None:
    small = {"rounds": 10, "policies": ["Greedy"]}
    assert experiment(small).world_settings == {}
    assert experiment({**small, "world": "linear"}) == experiment({**small, "world": {"kind": "linear"}})
    record = experiment({"rounds": 10, "world": "clicks:rate=0.2,delay=30"})
    assert record.world_settings == {"kind": "clicks", "rate": 0.2, "delay": 30}
    assert record.noise == pytest.approx(0.4)
    assert record.policies[0].settings == {"noise": record.noise}, "policies are given the noise of the clicks"
    assert record.world_in_words == "clicks (rate 0.2, delay 30)"


def test_the_factor_multiplies_the_noise_once() -> None:
    record = experiment({"d1": 2, "d2": 1, "arms": "3", "rounds": 10, "noise": 0.1, "world": "linear:factor=1000"})
    assert record.noise == 100.0
    assert record.world(3, 1).noise == pytest.approx(100.0)
    assert record.policies[0].settings == {"noise": 100.0}


def test_every_setting_is_documented() -> None:
    laboratory = (Path(__file__).parents[2] / "docs" / "laboratory.md").read_text()
    for each in fields(Simulation):
        assert f"`{each.name}" in laboratory or f"\n{each.name} = " in laboratory, each.name


# ------------------------------------------------------------------ classes of one's own

FIXED = """
import numpy as np
from hybandits.simulation import Synthetic

class Fixed(Synthetic):
    def __init__(self, *, seed=0, delay=0):
        super().__init__(d1=np.int64(3), d2=np.int32(2), arms=np.int64(4), noise=0.5, seed=seed)

class Unnumbered:
    fresh_contexts, d1, d2, noise = False, 3, 2, 0.5
    def rounds(self, horizon, trial=0):
        return Synthetic(d1=3, d2=2, arms=6).rounds(horizon)
    def noise_stream(self, trial=0):
        return Synthetic(d1=3, d2=2, arms=6).noise_stream(trial)

class NoWorld:
    d1, d2 = 3, 2
"""

OWN: dict[str, Any] = {
    "world": "drifting:Drifting:speed=0.5,factor=10.0,delay=3", "d1": 2, "d2": 1, "arms": [3, 5], "rounds": 60,
    "environments": 2, "noise": 0.3,
    "policies": [
        "softmax:Softmax:temperature=0.2",
        {"class": "EpsilonGreedy", "name": "mix", "policy": {"class": "softmax:Softmax", "temperature": 1}},
        "HyLinUCB",
    ],
}  # fmt: skip


@pytest.fixture
def modules(own_folder: Path) -> Path:
    write_softmax(own_folder)
    write_drifting(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)
    (own_folder / "fixed.py").write_text(FIXED)
    (own_folder / "failing.py").write_text(FAILING)
    return own_folder


def test_a_record_knows_the_files_of_classes_and_is_read_without_them(modules: Path) -> None:
    record = experiment(OWN)
    assert record.world_settings == {"kind": "drifting:Drifting", "speed": 0.5, "factor": 10.0, "delay": 3}
    assert record.origins == {
        f"{name}:{name.capitalize()}": sha256(modules / f"{name}.py") for name in ("drifting", "softmax")
    }
    assert [each.name for each in record.policies] == ["Softmax:temperature=0.2", "mix", "HyLinUCB"]
    assert record.noise == 3.0
    assert record.policies[2].settings == {"noise": 3.0}
    assert record.world_in_words == "drifting:Drifting (speed 0.5, factor 10.0, delay 3)"
    plain = json.loads(json.dumps(record.plain()))
    for name in ("drifting", "softmax"):
        (modules / f"{name}.py").write_text("raise RuntimeError('imported')")
    assert Experiment.from_plain(plain) == record


def test_a_world_decides_on_what_its_constructor_does_not_take(modules: Path) -> None:
    record = experiment({"world": "fixed:Fixed:factor=2.0", "rounds": 10})
    assert (record.d1, record.d2, record.arms, record.noise) == (3, 2, (4,), 1.0)
    assert record.policies[0].settings == {"noise": 1.0}
    assert record.world(4, 7).noise == 1.0
    assert Experiment.from_plain(record.plain()) == record
    assert experiment({"world": "fixed:Unnumbered", "rounds": 10}).arms == (6,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "drifting:Drfting"}, "drifting:Drfting cannot be imported .*no attribute 'Drfting'"),
        ({"world": "drifting:Drifting:spede=1"}, r"has no setting 'spede' \(did you mean speed\?\): it has speed"),
        ({"world": "fixed:Fixed", "arms": 7}, r"arms cannot be given: the world decides, and has arms = \(4,\)"),
        ({"world": "fixed:NoWorld"}, "fixed:NoWorld is not a world, it has no noise, fresh_contexts, rounds"),
        (
            {"policies": ["softmax:Softmax:temperature=1", "softmax:Softmax:temperature=1"]},
            "names of policies must be different",
        ),
    ],
)
@pytest.mark.usefixtures("modules")
def test_mistakes_in_classes_of_ones_own(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        experiment({"rounds": 200, **settings})


RAY = pytest.param(Ray(2), marks=[pytest.mark.xdist_group("ray"), pytest.mark.slow], id="ray")
PROCESSES = pytest.param(ProcessEngine(2), marks=pytest.mark.slow, id="processes")


@pytest.mark.parametrize("engine", [PROCESSES, RAY])
def test_every_engine_plays_classes_of_ones_own(engine: ProcessEngine | Ray, modules: Path) -> None:
    record = experiment(OWN)
    run([record], modules / "here", engine=SerialEngine())
    run([record], modules / "there", engine=engine)
    assert contents(modules / "there") == contents(modules / "here")


def test_an_interrupted_run_goes_on_and_a_changed_source_is_refused(modules: Path) -> None:
    record = experiment(OWN)
    run([record], modules / "whole", engine=SerialEngine())
    with pytest.raises(StopError):
        run([record], modules / "out", engine=SerialEngine(), progress=StopAfter(200))
    before = contents(modules / "out")
    source = (modules / "softmax.py").read_text()
    (modules / "softmax.py").write_text(source + "\nX = 1\n")
    with pytest.raises(ResultsError, match="the source of softmax:Softmax has changed"):
        run_unit(Job(next(record.units())))
    with pytest.raises(ResultsError, match=r"a different simulation/own .different origins"):
        run([experiment(OWN)], modules / "out", engine=SerialEngine())
    assert contents(modules / "out") == before
    (modules / "softmax.py").write_text(source)
    run([record], modules / "out", engine=SerialEngine())
    assert contents(modules / "out") == contents(modules / "whole")
    (modules / "softmax.py").unlink()
    outcome = read_results(modules / "out").outcome("simulation", "own")
    assert outcome is not None
    assert outcome.final("Softmax:temperature=0.2").shape == (2,), "results are read without the class"


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"policies": ["failing:Cautious"]}, LookupError, "no such thing"),
        ({"world": "failing:Shut"}, IndexError, "nothing left"),
        ({"world": "failing:Short"}, ValueError, r"failing:Short gave 30 rounds of 60"),
        ({"world": "failing:Long"}, ValueError, r"failing:Long, in .* round 0: it gave more than 2 rounds"),
        ({"world": "failing:Holes"}, ValueError, r"failing:Holes, .* a mean of its round 1 is not finite"),
        ({"world": "failing:Modest"}, ValueError, r"failing:Modest, .* best of its round 0 is "),
        ({"world": "failing:Twice"}, ValueError, r"failing:Twice, in the block of round 0: round 0 has counts 3"),
    ],
)
def test_a_class_that_fails_while_it_plays_ends_the_run_and_nothing_is_written(
    settings: dict[str, Any], kind: type[Exception], message: str, modules: Path
) -> None:
    small = {"d1": 2, "d2": 1, "arms": 3, "rounds": 60, "environments": 1, "policies": ["Greedy"]}
    record = experiment({**small, **settings})
    with pytest.raises(kind, match=message):
        run([record], modules / "out", engine=SerialEngine())
    assert not list((modules / "out").rglob("*.parquet"))
