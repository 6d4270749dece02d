"""Policies by name: text and tables become a name and settings, and those become a policy; mistakes are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybandits import AsWritten, Constant, HyLinUCB, HyRan, LinUCB, SupLinUCB
from hybandits.policies.by_name import (
    digest_of_class,
    make_policy,
    nested_policies,
    parse_policy,
    policy_names,
    read_spec,
    setting_names,
    with_noise,
)
from tests.support.own_classes import WRAPPERS, write_softmax

SHAPE = {"d1": 3, "d2": 2, "arms": 5, "horizon": 100}


def test_every_policy_of_hybandits_has_a_name() -> None:
    assert {"DisLinUCB", "HyIDS", "HyRanWithoutCrossBlocks", "SupLinUCB", "Uniform"} < set(policy_names())


@pytest.mark.parametrize("name", policy_names())
def test_every_name_makes_its_policy_without_settings(name: str) -> None:
    policy = make_policy(name, {}, **SHAPE, seed=0)
    assert type(policy).__name__ == name
    assert (policy.d1, policy.d2) == (3, 2)
    assert not {"self", "d1", "d2", "seed"} & set(setting_names(name))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HyLinUCB", ("HyLinUCB", {})),
        ("HyThompson:", ("HyThompson", {})),
        ("HyThompson:scale=.5, propensity_draws=10", ("HyThompson", {"scale": 0.5, "propensity_draws": 10})),
        ("HyIDS:memory=auto", ("HyIDS", {"memory": "auto"})),
        ("HyRan:ridge_schedule=theory,p=0.5", ("HyRan", {"ridge_schedule": "theory", "p": 0.5})),
        (
            'LinUCB:exploration={kind="Constant", alpha=1.0},ridge=2.0',
            ("LinUCB", {"exploration": {"kind": "Constant", "alpha": 1.0}, "ridge": 2.0}),
        ),
        ("mine:Mine:a={b=[1, 2], c={d=3}},e=7", ("mine:Mine", {"a": {"b": [1, 2], "c": {"d": 3}}, "e": 7})),
        ("mine:Mine:a=\"b, [c\",d='{e, f\\',g=1", ("mine:Mine", {"a": "b, [c", "d": "{e, f\\", "g": 1})),
        ("mine:World:data=/data/a.csv,label=kind", ("mine:World", {"data": "/data/a.csv", "label": "kind"})),
    ],
)
def test_text_is_split_into_name_and_settings(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert read_spec(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HyThompson:scale=1,big", "must have setting=value, got 'big'"),
        ("a:b:c:d", "must be a name, a colon and settings"),
        ("HyThompson:scale", "HyThompson:scale cannot be imported"),
    ],
)
def test_text_that_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy(*parse_policy(text), **SHAPE)


def test_settings_reach_the_policy_and_the_rest_comes_from_the_problem() -> None:
    constant = make_policy("LinUCB", {"exploration": {"kind": "Constant", "alpha": 2.0}, "ridge": 3.0}, **SHAPE)
    assert isinstance(constant, LinUCB)
    assert (constant.exploration, constant.ridge) == (Constant(alpha=2.0), 3.0)
    suplinucb = make_policy("SupLinUCB", {}, **{**SHAPE, "horizon": 1})
    assert isinstance(suplinucb, SupLinUCB)
    assert (suplinucb.horizon, suplinucb.arm_count) == (2, 5)
    hyran = make_policy("HyRan", {"arm_count": 9}, **SHAPE)
    assert isinstance(hyran, HyRan)
    assert hyran.arm_count == 9
    written = make_policy("HyLinUCB", {"exploration": {"kind": "AsWritten", "horizon": 7}}, **SHAPE)
    assert isinstance(written, HyLinUCB)
    assert written.exploration == AsWritten(horizon=7, arms=5)


def test_the_noise_of_the_problem_is_given_to_policies_that_take_it() -> None:
    settings: dict[str, Any] = {"ridge": 0.5}
    assert with_noise("HyLinUCB", settings, 0.1) == {"ridge": 0.5, "noise": 0.1}
    assert settings == {"ridge": 0.5}, "the settings given are not changed"
    assert with_noise("HyLinUCB", {"noise": 0.3}, 0.1) == {"noise": 0.3}
    assert with_noise("LinUCB", {"exploration": {"kind": "AsWritten"}}, 0.1) == {"exploration": {"kind": "AsWritten"}}
    assert with_noise("Greedy", {}, 0.1) == {}
    for name in ("HyThompson", "HyIDS"):
        assert with_noise(name, {"scale": 0.5}, 0.1) == {"scale": 0.5}, "they learn the noise"


# ------------------------------------------------------------------ classes of one's own, and policies around others


@pytest.fixture
def own_policies(own_folder: Path) -> Path:
    write_softmax(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)
    (own_folder / "broken.py").write_text("1 / 0\n")
    return own_folder


def test_a_policy_of_ones_own_is_made_by_name(own_policies: Path) -> None:
    policy = make_policy(*parse_policy("softmax:Softmax:temperature=0.1"), **SHAPE, seed=1)
    assert repr(policy).startswith("Softmax(d1=3, d2=2, temperature=0.1")
    assert setting_names("softmax:Softmax") == ["temperature", "ridge"]
    assert with_noise("softmax:Softmax", {}, 0.1) == {}
    digest = digest_of_class("softmax:Softmax")
    source = own_policies / "softmax.py"
    source.write_text(source.read_text() + "\n")
    assert len(digest) == 64
    assert digest_of_class("softmax:Softmax") != digest


NESTED: list[tuple[str, dict[str, Any]]] = [
    (
        'EpsilonGreedy:policy="HyLinUCB:noise=0.1",epsilon=0.2',
        {"class": "EpsilonGreedy", "policy": {"class": "HyLinUCB", "noise": 0.1}, "epsilon": 0.2},
    ),
    (
        "EpsilonGreedy:policy='EpsilonGreedy:policy=\"HyLinUCB:noise=0.1\",epsilon=0.3'",
        {
            "class": "EpsilonGreedy",
            "policy": {"class": "EpsilonGreedy", "policy": "HyLinUCB:noise=0.1", "epsilon": 0.3},
        },
    ),
    ("EpsilonGreedy:policy=Greedy,epsilon=.2", {"class": "EpsilonGreedy", "policy": "Greedy", "epsilon": 0.2}),
    ("wrappers:Inner:inner={class='Greedy'}", {"class": "wrappers:Inner", "inner": {"class": "Greedy"}}),
]


@pytest.mark.parametrize(("text", "table"), NESTED, ids=range(len(NESTED)))
def test_text_and_table_say_the_same(text: str, table: dict[str, Any]) -> None:
    assert parse_policy(text) == parse_policy(table)


@pytest.mark.usefixtures("own_policies")
def test_wrapped_policies_to_any_depth() -> None:
    name, settings = parse_policy(
        'EpsilonGreedy:policy={class="wrappers:Cautious", policy={class="wrappers:Inner", inner={class="HyLinUCB"}}}'
    )
    assert [(each, len(own)) for each, own in nested_policies(name, settings)] == [
        ("EpsilonGreedy", 1), ("wrappers:Cautious", 1), ("wrappers:Inner", 1), ("HyLinUCB", 0),
    ]  # fmt: skip
    with_its_noise = with_noise(name, settings, 0.3)
    policy: Any = make_policy(name, with_its_noise, **SHAPE, seed=5)
    assert [type(each).__name__ for each in (policy, policy.policy, policy.policy.policy)] == [
        "EpsilonGreedy", "Cautious", "Inner",
    ]  # fmt: skip
    assert policy.policy.policy.policy.exploration.noise == 0.3
    assert (policy.d1, policy.d2) == (3, 2)
    x, z = [[0.0] * 3] * 5, [[0.0] * 2] * 5
    again: Any = make_policy(name, with_its_noise, **SHAPE, seed=5)
    other: Any = make_policy(name, with_its_noise, **SHAPE, seed=6)
    choices = [[each.choose(x, z).index for _ in range(20)] for each in (policy, again, other)]
    assert choices[0] == choices[1] != choices[2]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("HyLinUBC", r"unknown policy 'HyLinUBC' \(did you mean HyLinUCB\?\): choose from DisLinUCB, "),
        ("RidgePolicy", "unknown policy 'RidgePolicy'"),
        ("HyLinUCB:ridgee=1", r"HyLinUCB has no setting 'ridgee' \(did you mean ridge\?\): it has noise, "),
        ("HyLinUCB:seed=1", "HyLinUCB has no setting 'seed'"),
        ("HyLinUCB:ridge=-1.0", "ridge must be positive, got -1.0"),
        ("LinUCB:exploration=Constant", "exploration must be a table such as .* got 'Constant'"),
        ("LinUCB:exploration={alpha=1.0}", "exploration needs a kind"),
        ({"noise": 0.1}, "a policy must be text or a table such as"),
        ("EpsilonGreedy", "EpsilonGreedy needs the setting 'policy'"),
        ('EpsilonGreedy:policy="HyLinUBC"', r"unknown policy 'HyLinUBC' \(did you mean HyLinUCB"),
        ('EpsilonGreedy:policy="Greedy",epsilon=2', r"epsilon must lie in \[0, 1\]"),
        ("softmx:Softmax", "softmx:Softmax cannot be imported .*No module named 'softmx'"),
        ("softmax:Softmx", "softmax:Softmx cannot be imported .*no attribute 'Softmx'"),
        ("broken:Broken", "broken:Broken cannot be imported .ZeroDivisionError"),
        ("softmax:Softmax:temp=1", "softmax:Softmax has no setting 'temp'.*: it has temperature, ridge"),
        ("wrappers:helper", "wrappers:helper is not a class that can be constructed"),
        ("wrappers:Unfinished", "wrappers:Unfinished is not a class that can be constructed"),
        ("wrappers:Other", "wrappers:Other is not a policy"),
        ("wrappers:Demanding", r"needs the setting 'temperature': give it, as in wrappers:Demanding:temperature=VALUE"),
        ("wrappers:Demanding:temperature=1", "wrappers:Demanding cannot be constructed .ZeroDivisionError: too hot"),
        ("wrappers:Careless", r"wrappers:Careless: Careless has no attribute 'boldness'.* self\.boldness = "),
    ],
)
@pytest.mark.usefixtures("own_policies")
def test_mistakes_are_named(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_policy(*parse_policy(policy), **SHAPE)
