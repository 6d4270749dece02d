"""Policies by name: text becomes a name and settings, and those become a policy; mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hybandits import AsWritten, Constant, HyLinUCB, HyRan, HyThompson, LinUCB, SupLinUCB
from hybandits.policies.by_name import (
    class_names,
    make_policy,
    of_table,
    parse_policy,
    policy_names,
    setting_names,
    with_noise,
    wrapper_names,
)
from tests.support.own_classes import FAILING, WRAPPERS, write_softmax

SHAPE = {"d1": 3, "d2": 2, "arms": 5, "horizon": 100}


def test_every_policy_with_a_shape_of_its_own_has_a_name() -> None:
    assert policy_names() == [
        "DisLinUCB",
        "Greedy",
        "HyIDS",
        "HyLinUCB",
        "HyRan",
        "HyRanWithoutCrossBlocks",
        "HyThompson",
        "LiHybrid",
        "LinUCB",
        "SupLinUCB",
        "Uniform",
    ]


@pytest.mark.parametrize("name", policy_names())
def test_every_name_makes_its_policy_without_settings(name: str) -> None:
    policy = make_policy(name, {}, **SHAPE, seed=0)
    assert type(policy).__name__ == name
    assert (policy.d1, policy.d2) == (3, 2)
    assert not {"self", "d1", "d2", "seed"} & set(setting_names(name))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("HyLinUCB", ("HyLinUCB", {})),
        ("hyLINucb", ("HyLinUCB", {})),
        ("HyThompson:", ("HyThompson", {})),
        ("HyThompson:scale=0.5", ("HyThompson", {"scale": 0.5})),
        ("HyThompson:scale=.5,propensity_draws=10", ("HyThompson", {"scale": 0.5, "propensity_draws": 10})),
        ("HyIDS:memory=auto", ("HyIDS", {"memory": "auto"})),
        ("HyThompson:memory=5000", ("HyThompson", {"memory": 5000})),
        ("HyRan:ridge_schedule=theory", ("HyRan", {"ridge_schedule": "theory"})),
        ('HyRan:ridge_schedule="theory"', ("HyRan", {"ridge_schedule": "theory"})),
        (
            'LinUCB:exploration={kind="Constant", alpha=1.0},ridge=2.0',
            ("LinUCB", {"exploration": {"kind": "Constant", "alpha": 1.0}, "ridge": 2.0}),
        ),
        ("Nobody:a=1", ("Nobody", {"a": 1})),
        (
            "Nobody:a={b=[1, 2], c=3},d=[[4, 5], [6]],e=7",
            ("Nobody", {"a": {"b": [1, 2], "c": 3}, "d": [[4, 5], [6]], "e": 7}),
        ),
        ("Nobody:a={b=[1, 2], c={d=[3, 4], e=5}}", ("Nobody", {"a": {"b": [1, 2], "c": {"d": [3, 4], "e": 5}}})),
        ("Nobody:a=\"b, [c\",d='{e, f',g=1", ("Nobody", {"a": "b, [c", "d": "{e, f", "g": 1})),
        ("Nobody:a={b=1,c=2", ("Nobody", {"a": "{b=1,c=2"})),
    ],
)
def test_text_is_split_into_name_and_settings(spec: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert parse_policy(spec) == expected


def test_a_setting_without_value_is_refused() -> None:
    with pytest.raises(ValueError, match=r"policy 'HyThompson:scale': expected setting=value .* got 'scale'"):
        parse_policy("HyThompson:scale")


def test_settings_reach_the_policy() -> None:
    thompson = make_policy("HyThompson", {"noise": 0.2, "scale": 0.5}, **SHAPE)
    assert isinstance(thompson, HyThompson)
    assert (thompson.noise, thompson.scale) == (0.2, 0.5)
    constant = make_policy("LinUCB", {"exploration": {"kind": "Constant", "alpha": 2.0}, "ridge": 3.0}, **SHAPE)
    assert isinstance(constant, LinUCB)
    assert (constant.exploration, constant.ridge) == (Constant(alpha=2.0), 3.0)


def test_arms_and_horizon_come_from_the_problem_unless_the_settings_say_otherwise() -> None:
    suplinucb = make_policy("SupLinUCB", {}, **SHAPE)
    assert isinstance(suplinucb, SupLinUCB)
    assert (suplinucb.horizon, suplinucb.arm_count) == (100, 5)
    hyran = make_policy("HyRan", {"arm_count": 9}, **SHAPE)
    assert isinstance(hyran, HyRan)
    assert hyran.arm_count == 9
    written = make_policy("HyLinUCB", {"exploration": {"kind": "AsWritten", "horizon": 7}}, **SHAPE)
    assert isinstance(written, HyLinUCB)
    assert written.exploration == AsWritten(horizon=7, arms=5)


@pytest.mark.parametrize("kind", ["AsWritten", "aswritten", "ASWRITTEN"])
def test_capitals_do_not_matter_in_the_kind_of_a_coefficient(kind: str) -> None:
    policy = make_policy("hylinucb", {"exploration": {"kind": kind}}, **SHAPE)
    assert isinstance(policy, HyLinUCB)
    assert policy.exploration == AsWritten(horizon=SHAPE["horizon"], arms=SHAPE["arms"])


def test_one_round_is_enough_for_suplinucb_to_be_made() -> None:
    policy = make_policy("SupLinUCB", {}, **{**SHAPE, "horizon": 1})
    assert isinstance(policy, SupLinUCB)
    assert policy.horizon == 2


def test_the_same_seed_makes_the_same_policy() -> None:
    x, z = [[0.0] * 3] * 5, [[0.0] * 2] * 5
    runs = []
    for seed in (1, 1, 2):
        policy = make_policy("Uniform", {}, **SHAPE, seed=seed)
        runs.append([policy.choose(x, z).index for _ in range(30)])
    assert runs[0] == runs[1] != runs[2]


def test_the_noise_of_the_problem_is_told_to_policies_that_take_it() -> None:
    assert with_noise("HyLinUCB", {"ridge": 0.5}, 0.1) == {"ridge": 0.5, "noise": 0.1}
    assert with_noise("HyLinUCB", {"noise": 0.3}, 0.1) == {"noise": 0.3}
    assert with_noise("LinUCB", {"exploration": {"kind": "AsWritten"}}, 0.1) == {"exploration": {"kind": "AsWritten"}}
    assert with_noise("Greedy", {}, 0.1) == {}
    settings: dict[str, Any] = {}
    with_noise("HyLinUCB", settings, 0.1)
    assert settings == {}, "the settings given are not changed"


@pytest.mark.parametrize("name", ["HyThompson", "HyIDS"])
def test_policies_that_learn_the_noise_are_told_it_only_by_their_settings(name: str) -> None:
    assert with_noise(name, {}, 0.1) == {}
    assert with_noise(name, {"scale": 0.5}, 0.1) == {"scale": 0.5}
    assert with_noise(name, {"noise": 0.3}, 0.1) == {"noise": 0.3}


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("HyLinUBC", {}, r"there is no policy 'HyLinUBC' \(did you mean HyLinUCB\?\): choose from DisLinUCB, "),
        ("RidgePolicy", {}, "there is no policy 'RidgePolicy'"),
        ("EpsilonGreedy", {}, 'EpsilonGreedy wraps a policy: name it, as in EpsilonGreedy:policy="HyLinUCB:noise=0.1"'),
        ("HyLinUCB", {"ridgee": 1.0}, r"HyLinUCB has no setting 'ridgee' \(did you mean ridge\?\): it has noise, "),
        ("HyLinUCB", {"seed": 1}, "HyLinUCB has no setting 'seed'"),
        ("HyLinUCB", {"ridge": -1.0}, "ridge must be positive, got -1.0"),
        ("LinUCB", {"exploration": "Constant"}, "exploration must be a table such as .* got 'Constant'"),
        ("LinUCB", {"exploration": {"alpha": 1.0}}, "exploration needs a kind"),
    ],
)
def test_mistakes_are_named(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy(name, settings, **SHAPE)


def test_capitals_do_not_matter() -> None:
    assert repr(make_policy("hylinucb", {"ridge": 2.0}, **SHAPE, seed=0)) == repr(
        make_policy("HyLinUCB", {"ridge": 2.0}, **SHAPE, seed=0)
    )
    assert setting_names("HYTHOMPSON") == setting_names("HyThompson")
    with pytest.raises(ValueError, match="HyLinUCB has no setting 'nose'"):
        make_policy("hylinucb", {"nose": 1}, **SHAPE)


# ------------------------------------------------------------------ classes of one's own, and policies around others


@pytest.fixture
def own_policies(own_folder: Path) -> None:
    write_softmax(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)


@pytest.mark.usefixtures("own_policies")
def test_a_policy_of_ones_own_is_made_by_name() -> None:
    name, settings = parse_policy("softmax:Softmax:temperature=0.1")
    policy = make_policy(name, settings, **SHAPE, seed=1)
    assert repr(policy).startswith("Softmax(d1=3, d2=2, temperature=0.1")
    assert setting_names("softmax:Softmax") == ["temperature", "ridge"]
    assert with_noise("softmax:Softmax", {}, 0.1) == {}


NESTED: list[tuple[str, dict[str, Any]]] = [
    (
        'EpsilonGreedy:policy="HyLinUCB:noise=0.1",epsilon=0.2',
        {"class": "EpsilonGreedy", "policy": {"policy": "HyLinUCB", "noise": 0.1}, "epsilon": 0.2},
    ),
    (
        "epsilongreedy:policy='EpsilonGreedy:policy=\"hylinucb:noise=0.1\",epsilon=0.3'",
        {
            "class": "EpsilonGreedy",
            "policy": {"class": "EpsilonGreedy", "policy": "HyLinUCB:noise=0.1", "epsilon": 0.3},
        },
    ),
    (
        'EpsilonGreedy:policy={class="EpsilonGreedy", policy={policy="wrappers:Cautious", policy2=1}}',
        {
            "class": "EpsilonGreedy",
            "policy": {"class": "EpsilonGreedy", "policy": {"class": "wrappers:Cautious", "policy2": 1}},
        },
    ),
    ("wrappers:Inner:inner={class='Greedy'}", {"policy": "wrappers:Inner", "inner": {"policy": "Greedy"}}),
]


@pytest.mark.parametrize(("text", "table"), NESTED, ids=range(len(NESTED)))
def test_text_and_table_say_the_same(text: str, table: dict[str, Any]) -> None:
    assert parse_policy(text) == of_table(table)


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_quotes_within_quotes_are_escaped(levels: int) -> None:
    text, table = "HyLinUCB:noise=0.1,ridge=2", {"class": "HyLinUCB", "noise": 0.1, "ridge": 2}
    for level in range(levels):
        text = f"EpsilonGreedy:policy={json.dumps(text)},epsilon=0.{level + 1}"
        table = {"class": "EpsilonGreedy", "policy": table, "epsilon": float(f"0.{level + 1}")}
    name, settings = parse_policy(text)
    assert {"class": name, **settings} == table


def test_a_backslash_in_single_quotes_escapes_nothing() -> None:
    assert parse_policy("mine:Mine:a='x\\',b=2") == ("mine:Mine", {"a": "x\\", "b": 2})


def test_a_class_that_does_not_keep_its_settings_is_refused(own_folder: Path) -> None:
    (own_folder / "failing.py").write_text(FAILING)
    with pytest.raises(ValueError, match=r"failing:Careless: Careless has no attribute 'boldness'.* self\.boldness = "):
        make_policy("failing:Careless", {}, d1=1, d2=1, arms=2, horizon=10)


@pytest.mark.usefixtures("own_policies")
def test_wrapped_policies_to_any_depth() -> None:
    name, settings = parse_policy(
        'EpsilonGreedy:policy={class="wrappers:Cautious", policy={class="wrappers:Inner", inner="HyLinUCB"}}'
    )
    assert class_names(name, settings) == ["EpsilonGreedy", "wrappers:Cautious", "wrappers:Inner"]
    settings["policy"]["policy"]["inner"] = {"policy": "HyLinUCB"}
    assert class_names(name, settings) == ["EpsilonGreedy", "wrappers:Cautious", "wrappers:Inner", "HyLinUCB"]
    told = with_noise(name, settings, 0.3)
    policy: Any = make_policy(name, told, **SHAPE, seed=5)
    assert [type(each).__name__ for each in (policy, policy.policy, policy.policy.policy)] == [
        "EpsilonGreedy", "Cautious", "Inner",
    ]  # fmt: skip
    assert policy.policy.policy.policy.exploration.noise == 0.3
    assert (policy.d1, policy.d2) == (3, 2)
    x, z = [[0.0] * 3] * 5, [[0.0] * 2] * 5
    again: Any = make_policy(name, told, **SHAPE, seed=5)
    assert [policy.choose(x, z).index for _ in range(20)] == [again.choose(x, z).index for _ in range(20)]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("softmax:Softmx", r"has no class 'Softmx' \(did you mean Softmax\?\)"),
        ("softmax:Softmax:temp=1", r"softmax:Softmax has no setting 'temp': it has temperature, ridge"),
        ("wrappers:helper", "wrappers:helper is a function, not a class"),
        (
            "wrappers:Other",
            r"wrappers:Other is not a policy: let the class be a subclass of hybandits\.policies\.base\.Policy",
        ),
        ("wrappers:Unfinished", "wrappers:Unfinished is abstract: define .*choose"),
        ("wrappers:Shapeless", "wrappers:Shapeless takes height: its constructor must take d1 and d2"),
        ("wrappers:Demanding", r"needs the setting 'temperature': give it, as in wrappers:Demanding:temperature=VALUE"),
        (
            "wrappers:Demanding:temperature=1",
            r"cannot be constructed with d1=3, .*wrappers\.py, line \d+: ZeroDivisionError",
        ),
        ("wrappers:Cautious", 'wraps a policy: name it, as in wrappers:Cautious:policy="HyLinUCB:noise=0.1"'),
        ("EpsilonGreedy:policy=3", "must take d1 and d2, the numbers of features, or wrap a policy that does"),
        ('EpsilonGreedy:policy="HyLinUBC"', r"there is no policy 'HyLinUBC' \(did you mean HyLinUCB"),
        ('EpsilonGreedy:policy="Greedy",epsilon=2', r"epsilon must lie in \[0, 1\]"),
        (
            "EpsilonGreedy:policy=HyLinUCB:noise=0.1,ridge=2",
            "has no setting 'ridge'.* put a wrapped policy and its settings in quotes",
        ),
        ("HyThompson:scale", "expected setting=value after the colon, got 'scale'"),
        ("softmax:Softmax:temperature", "expected setting=value after the colon, got 'temperature'; quote a value"),
    ],
)
@pytest.mark.usefixtures("own_policies")
def test_mistakes_of_ones_own_are_named(spec: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make_policy(*parse_policy(spec), **SHAPE)


def test_a_table_without_a_class_is_refused() -> None:
    with pytest.raises(ValueError, match="a policy must be text or a table that names its class"):
        of_table({"noise": 0.1})


def test_wrappers_are_listed() -> None:
    assert wrapper_names() == ["EpsilonGreedy"]
