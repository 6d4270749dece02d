"""Policies, targets and estimators as the command line names them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybandits import Greedy, HyLinUCB, HyThompson
from hybandits.estimators.exploration import SelfNormalised
from hybandits.evaluation import Evaluation, Frozen, Learning, by_name, evaluate
from hybandits.evaluation.view import View
from hybandits.policies.posterior import PosteriorPolicy
from tests.support.loglike import little_log
from tests.support.own_classes import WRAPPERS, write_softmax


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return View(little_log(tmp_path_factory.mktemp("logs"), clicks=True))


def test_a_policy_fits_the_log_whatever_its_capitals(view: View) -> None:
    policy = by_name.policy_for(view, "hythompson:scale=2", horizon=100, seed=3)
    assert isinstance(policy, HyThompson)
    assert (policy.d1, policy.d2, policy.scale) == (view.d1, view.d2, 2.0)
    told = by_name.policy_for(view, "HyLinUCB", horizon=100)
    assert isinstance(told, HyLinUCB)
    assert told.exploration == SelfNormalised(noise=by_name.CLICK_NOISE)
    with pytest.raises(ValueError, match="did you mean HyLinUCB"):
        by_name.policy_for(view, "HyLinUBC", horizon=100)


@pytest.mark.parametrize("name", ["HyThompson", "hyids"])
def test_policies_that_learn_their_settings_are_told_none(view: View, name: str) -> None:
    policy = by_name.policy_for(view, name, horizon=100)
    assert isinstance(policy, PosteriorPolicy)
    assert policy.noise is policy.scale is None


def target(view: View, spec: str, **saved: Any) -> Any:
    return by_name.target_for(view, spec, saved=saved, horizon=100, seed=0)


def test_targets(view: View) -> None:
    assert isinstance(target(view, "old", old=Greedy(d1=view.d1, d2=view.d2)), Frozen)
    assert target(view, "Uniform") == "uniform"
    assert target(view, "logged") == "logged"
    assert target(view, "always:a3") == target(view, "Always:a3") == "always:a3"
    assert target(view, "always:A3") == "always:A3", "the id of an arm keeps its capitals"
    assert isinstance(target(view, "greedy"), Learning)
    with pytest.raises(ValueError, match=r"no policy 'random': give uniform, logged, .* a saved policy \(a .npz"):
        target(view, "random")
    with pytest.raises(ValueError, match=r"no policy 'HyLinUBC' \(did you mean HyLinUCB\?\): give uniform"):
        target(view, "HyLinUBC:ridge=2")
    with pytest.raises(ValueError, match="no setting 'nose'"):
        target(view, "HyLinUCB:nose=1")


def test_estimators_suit_the_targets(view: View) -> None:
    learning, fixed = target(view, "greedy"), "uniform"
    assert by_name.usual_estimators({"a": learning}) == ("replay", "snips")
    assert by_name.usual_estimators({"a": fixed}) == ("ips", "snips", "dm", "dr")
    assert by_name.usual_estimators({"a": fixed, "b": learning}) == ("replay", "ips", "snips", "dm", "dr")


def test_refusals_that_are_only_of_kind_are_left_out(view: View) -> None:
    targets = {"uniform": "uniform", "greedy": target(view, "greedy")}
    everything = evaluate(view, targets, estimators=by_name.usual_estimators(targets))
    suited = by_name.only_suited(everything, targets)
    pairs = [(estimate.policy, estimate.estimator) for estimate in suited.estimates]
    assert [pair[1] for pair in pairs if pair[0] == "greedy"] == ["replay", "ips", "snips", "dr"]
    assert [pair[1] for pair in pairs if pair[0] == "uniform"] == ["replay", "ips", "snips", "dm", "dr"]


def test_other_refusals_stay() -> None:
    refused: Any = SimpleNamespace(policy="uniform", estimator="ips", value=None)
    evaluation = Evaluation(**dict.fromkeys(Evaluation.__dataclass_fields__) | {"estimates": [refused]})
    assert by_name.only_suited(evaluation, {"uniform": "uniform"}).estimates == [refused]


def test_policies_of_ones_own_and_around_others_are_targets(view: View, own_folder: Path) -> None:
    write_softmax(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)
    specs = ["softmax:Softmax:temperature=0.5", 'epsilongreedy:policy="hylinucb"', "wrappers:Cautious:policy=Greedy"]
    targets = {by_name.proper_spec(spec): target(view, spec) for spec in specs}
    assert list(targets) == [specs[0], 'EpsilonGreedy:policy="hylinucb"', specs[2]]
    assert [each.kind for each in targets.values()] == ["Softmax", "EpsilonGreedy", "Cautious"]
    told: Any = by_name.policy_for(view, specs[1], horizon=10)
    assert told.policy.exploration.noise == by_name.CLICK_NOISE
    evaluation = evaluate(view, targets, estimators=("replay",))
    assert all(estimate.value is not None for estimate in evaluation.estimates)
    with pytest.raises(ValueError, match="softmax:Sofmax cannot be imported"):
        target(view, "softmax:Sofmax")
    with pytest.raises(
        ValueError, match=r"there is no policy 'greddy' .*or a class of your own as package\.module:Class"
    ):
        target(view, "greddy")
