"""A user's own experiment: settings to a record, and mistakes to one clear line."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybandits import paper
from hybandits.engines import SerialEngine
from hybandits.experiments.config import DEFAULTS, entry, experiment, to_toml, with_data_beside
from hybandits.experiments.record import Experiment
from hybandits.experiments.runner import run
from hybandits.foundation.files import read_toml, sha256
from hybandits.simulation.worlds import LAWS, OWN
from tests.support.own_classes import WRAPPERS, write_drifting, write_softmax

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
        ({"factor": -2.0}, "factor must be positive"),
        ({"world": "churn:evry=3"}, "a world of the kind churn has no setting 'evry'"),
        ({"world": "churn:every=often"}, "every must be a whole number, got 'often'"),
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
    assert (
        run([record], tmp_path / "out", engine=SerialEngine(), data=path)
        .outcome("simulation", "own")
        .final("LinUCB")
        .shape
    )
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


def test_the_factor_multiplies_the_noise_once() -> None:
    record = experiment({"d1": 2, "d2": 1, "arms": 3, "rounds": 10, "noise": 0.1, "factor": 1000.0})
    assert record.noise == 100.0
    assert record.world(3, 1).noise == pytest.approx(100.0)
    assert record.policies[0].settings == {"noise": 100.0}


def test_a_policy_may_be_named_in_its_text() -> None:
    named = entry('HyLinUCB:name="wide",ridge=2', noise=0.1)
    assert (named.name, named.settings) == ("wide", {"ridge": 2, "noise": 0.1})


def test_settings_of_a_world_may_follow_its_name() -> None:
    settings = {"rounds": 10, "policies": ["Greedy"]}
    assert experiment({"world": "clicks:rate=0.2", **settings}) == experiment(
        {"world": "clicks", "rate": 0.2, **settings}
    )
    with pytest.raises(ValueError, match="a world of the kind clicks has no setting 'walk'"):
        experiment({"world": "clicks:walk=3", **settings})
    with pytest.raises(ValueError, match="rate must be a number, got 'often'"):
        experiment({"world": "clicks:rate=often", **settings})
    with pytest.raises(ValueError, match="world_settings are for worlds of your own"):
        experiment({"world": "clicks", "world_settings": {"rate": 0.2}, **settings})


# ------------------------------------------------------------------ classes of one's own


@pytest.fixture
def own_modules(own_folder: Path) -> Path:
    write_softmax(own_folder)
    write_drifting(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)
    (own_folder / "fixed.py").write_text(FIXED)
    return own_folder


FIXED = """
from hybandits.simulation import Synthetic

class Fixed(Synthetic):
    def __init__(self, *, seed=0, delay=0):
        super().__init__(d1=3, d2=2, arms=4, noise=0.5, seed=seed)
        object.__setattr__(self, "delay", delay)

class Unnumbered:
    fresh_contexts, d1, d2, noise = False, 3, 2, 0.5
    def rounds(self, horizon, trial=0):
        return Synthetic(d1=3, d2=2, arms=6).rounds(horizon)
    def noise_stream(self, trial=0):
        return Synthetic(d1=3, d2=2, arms=6).noise_stream(trial)

class NoWorld:
    d1, d2 = 3, 2
"""

OWN_SETTINGS: dict[str, Any] = {
    "world": "drifting:Drifting", "world_settings": {"speed": 0.5}, "d1": 2, "d2": 1, "arms": [3, 5], "rounds": 20,
    "environments": 2, "noise": 0.3, "factor": 10.0, "delay": 3,
    "policies": [
        "softmax:Softmax:temperature=0.2",
        {"class": "EpsilonGreedy", "name": "mix", "policy": {"policy": "softmax:Softmax", "temperature": 1}},
        "HyLinUCB",
    ],
}  # fmt: skip


def test_a_record_knows_where_classes_come_from(own_modules: Path) -> None:
    record = experiment(OWN_SETTINGS)
    assert record.world_settings == {
        "kind": "drifting:Drifting", "settings": {"speed": 0.5}, "factor": 10.0, "delay": 3,
    }  # fmt: skip
    assert record.origins == {
        f"{name}:{name.capitalize()}": {"file": f"{name}.py", "sha256": sha256(own_modules / f"{name}.py")}
        for name in ("drifting", "softmax")
    }
    assert [each.name for each in record.policies] == ["Softmax:temperature=0.2", "mix", "HyLinUCB"]
    assert record.noise == 3.0
    assert record.policies[2].settings == {"noise": 3.0}
    assert record.world_in_words == "drifting:Drifting (speed 0.5, factor 10.0, delay 3)"
    assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record
    assert record.only(["HyLinUCB"]).origins.keys() == {"drifting:Drifting"}


def test_reading_a_record_imports_nothing(own_modules: Path) -> None:
    plain = experiment(OWN_SETTINGS).plain()
    for name in ("drifting", "softmax"):
        (own_modules / f"{name}.py").write_text("raise RuntimeError('imported')")
    record = Experiment.from_plain(plain)
    assert "softmax:Softmax" in to_toml(record)
    with pytest.raises(ValueError, match="origins does not say where drifting:Drifting comes from"):
        Experiment.from_plain({name: value for name, value in plain.items() if name != "origins"})


def test_a_world_decides_on_what_its_constructor_does_not_take(own_modules: Path) -> None:
    record = experiment({"world": "fixed:Fixed:delay=2", "rounds": 10, "factor": 2.0})
    assert (record.d1, record.d2, record.arms, record.noise) == (3, 2, (4,), 1.0)
    assert record.policies[0].settings == {"noise": 1.0}
    assert record.world(4, 7).noise == 1.0
    assert experiment({"world": "fixed:Unnumbered", "rounds": 10}).arms == (6,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"world": "drifting:Drfting"}, r"has no class 'Drfting' \(did you mean Drifting\?\)"),
        ({"world": "nowhere:Drifting"}, "there is no module 'nowhere'"),
        ({"world": "drifting:Drifting:spede=1"}, r"has no setting 'spede' \(did you mean speed\?\): it has speed"),
        ({"world": "fixed:Fixed", "arms": 7}, "arms cannot be given: fixed:Fixed decides, and has arms = 4"),
        ({"world": "fixed:Fixed", "noise": 0.1}, "noise cannot be given: fixed:Fixed decides, and has noise = 0.5"),
        ({"world": "fixed:NoWorld"}, "fixed:NoWorld is not a world, because it has no noise, fresh_contexts, rounds"),
        ({"world": "drifting:Drifting", "rate": 0.1}, "rate does not matter in a world of the kind drifting:Drifting"),
        ({"world": "drifting:Drifting", "arms": []}, "arms is empty"),
        ({"world_settings": 3}, "world_settings must be a table, got 3"),
        ({"policies": ["softmax:Softmax:temperature=1", "softmax:Softmax:temperature=1"]}, "the same name"),
        ({"seeds": [1, 2], "environments": 2}, "environments cannot be given beside seeds"),
        (
            {"origins": {"softmax:Softmax": {"file": "softmax.py", "sha256": "0" * 64}}},
            "takes no part in the experiment",
        ),
    ],
)
def test_mistakes_in_worlds_and_policies_of_ones_own(settings: dict[str, Any], message: str, own_modules: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        experiment({"rounds": 200, **settings})


# ------------------------------------------------------------------ a record as TOML


def again(record: Experiment) -> Experiment:
    return experiment(tomllib.loads(to_toml(record)))


def test_a_record_of_ones_own_classes_survives_toml(own_modules: Path) -> None:
    record = experiment(OWN_SETTINGS)
    assert again(record) == record
    fixed = experiment({"world": "fixed:Fixed", "rounds": 10, "policies": ["wrappers:Cautious:policy='Greedy'"]})
    assert again(fixed) == fixed
    text = to_toml(record)
    (own_modules / "softmax.py").write_text((own_modules / "softmax.py").read_text() + "# changed\n")
    with pytest.raises(
        ValueError, match=r"the source of softmax:Softmax has changed: softmax\.py had SHA-256 .*leave orig"
    ):
        experiment(tomllib.loads(text))


def test_a_data_set_survives_toml(own_folder: Path) -> None:
    (own_folder / "flowers.csv").write_text("kind,length,width\nrose,1,2\nlily,2,2.5\nrose,3,1\n")
    record = experiment({"world": "classification", "data": "flowers.csv", "label": "kind", "rounds": 10, "delay": 2})
    assert again(record) == record
    text = to_toml(record)
    (own_folder / "flowers.csv").write_text("kind,length,width\nrose,1,2\nlily,2,2.5\n")
    with pytest.raises(ValueError, match=r"flowers\.csv has SHA-256 .*bring the file that was used"):
        experiment(tomllib.loads(text))


def test_a_data_set_may_be_named_in_the_text_of_the_world(own_folder: Path) -> None:
    (own_folder / "d.csv").write_text("length,kind\n1,rose\n2,lily\n3,rose\n")
    record = experiment({"world": "classification:data=d.csv", "rounds": 10})
    assert record == experiment({"world": "classification", "data": "d.csv", "rounds": 10})


def test_a_data_set_is_looked_for_beside_the_toml_file_too(own_folder: Path) -> None:
    (own_folder / "lab").mkdir()
    file = Path("lab/mine.toml")
    settings = {"world": "classification:data=d.csv", "label": "kind"}
    with pytest.raises(ValueError, match=r"no data set d\.csv in the current folder, nor beside lab.mine\.toml: bring"):
        with_data_beside(settings, file)
    (own_folder / "lab" / "d.csv").write_text("")
    assert with_data_beside(settings, file) == {
        "world": "classification",
        "data": str(Path("lab/d.csv")),
        "label": "kind",
    }
    (own_folder / "d.csv").write_text("")
    assert with_data_beside(settings, file)["data"] == "d.csv", "the current folder comes first, as it always did"
    assert with_data_beside({"world": "classification"}, file) == {"world": "classification"}


NUMPY_WORLD = """
import numpy as np
from hybandits.simulation.worlds import Synthetic


class Counted(Synthetic):
    def __init__(self, *, seed=0):
        super().__init__(d1=np.int64(2), d2=np.int32(1), arms=np.int64(3), seed=seed)


class Half(Counted):
    d1 = property(lambda self: 2.5)

    def __init__(self, *, seed=0):
        pass

    d2, noise, fresh_contexts, noise_stream = 1, 0.1, False, None
"""


def test_the_numbers_of_a_world_of_ones_own_may_be_numpy_s(own_folder: Path) -> None:
    (own_folder / "counted.py").write_text(NUMPY_WORLD)
    record = experiment({"world": "counted:Counted", "rounds": 10, "policies": ["Greedy"]})
    assert (record.d1, record.d2, record.arms) == (2, 1, (3,))
    assert Experiment.from_plain(record.plain()) == record
    with pytest.raises(ValueError, match=r"counted:Half has d1 = 2\.5: let it be a whole number"):
        experiment({"world": "counted:Half", "rounds": 10, "policies": ["Greedy"]})


numbers = st.floats(1e-3, 1e3)
WORLDS: dict[str, Any] = {
    "linear": {
        "jumps": st.integers(0, 3), "walk": st.just(0.0) | numbers, "own": st.sampled_from(list(OWN)),
        "constant": st.booleans(), "heavy_tails": st.booleans(), "noise": numbers, "law": st.sampled_from(list(LAWS)),
        "theta_bound": numbers, "beta_bound": numbers,
    },
    "clicks": {"rate": st.floats(0.01, 0.9), "spread": numbers},
    "products": {"rate": st.floats(0.01, 0.9), "spread": numbers},
    "churn": {"every": st.integers(1, 50), "noise": numbers},
    "classification": {},
}  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=8)
INNERMOST = st.fixed_dictionaries(
    {"policy": st.sampled_from(["HyLinUCB", "Greedy", "hythompson", "HyRan", "SupLinUCB"])}
) | numbers.map(lambda alpha: {"policy": "LinUCB", "exploration": {"kind": "constant", "alpha": alpha}})
POLICIES = st.recursive(
    INNERMOST,
    lambda inner: st.fixed_dictionaries(
        {"class": st.just("EpsilonGreedy"), "policy": inner, "epsilon": st.floats(0, 1)}
    ),
    max_leaves=3,
)


@st.composite
def experiments(draw: st.DrawFn) -> dict[str, Any]:
    """Settings of any kind of world and of any policies."""
    kind = draw(st.sampled_from(list(WORLDS)))
    values: dict[str, Any] = {"world": kind, "rounds": draw(st.integers(1, 40)), "trials": draw(st.integers(1, 3))}
    if kind != "classification":
        arms = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True))
        values |= {"d1": 4, "d2": draw(st.sampled_from([1, 2])), "arms": arms}
    optional = {**WORLDS[kind], "factor": numbers, "offset": numbers, "delay": st.integers(0, 9)}
    values |= draw(st.fixed_dictionaries({}, optional=optional))
    names = draw(st.lists(TEXTS, min_size=1, max_size=3, unique=True))
    values["policies"] = [{**draw(POLICIES), "name": name} for name in names]
    seeds = st.fixed_dictionaries({"seed": st.integers(0, 99), "environments": st.integers(1, 3)})
    return values | draw(seeds | st.just({"seeds": [7, 5]}))


@settings(deadline=None, max_examples=60)
@given(values=experiments())
def test_every_record_survives_toml(values: dict[str, Any]) -> None:
    record = experiment(values)
    assert again(record) == record


def test_what_a_file_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be written as TOML, because its protocol is not the usual one"):
        to_toml(paper.experiment("setting-1", "released"))
    plain = experiment({"rounds": 10, "policies": ["Greedy", "HyLinUCB"]})
    with pytest.raises(ValueError, match="because its points is not the usual one"):
        to_toml(replace(plain, points=(10,)))
    with pytest.raises(ValueError, match="because of the settings of Greedy"):
        to_toml(replace(plain, policies=(replace(plain.policies[0], learns_from=1),)))
    with pytest.raises(ValueError, match="None cannot be written as TOML"):
        to_toml(replace(plain, policies=(replace(plain.policies[0], settings={"ridge": None}),)))


def test_every_setting_is_documented() -> None:
    laboratory = (Path(__file__).parents[2] / "docs" / "laboratory.md").read_text()
    for name in DEFAULTS:
        assert f"`{name}" in laboratory or f"\n{name} = " in laboratory, name
