"""Targets of evaluation: frozen policies, rules, and policies of a user's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import DisLinUCB, EpsilonGreedy, Greedy, HyIDS, HyLinUCB, HyRan, HyThompson, Policy, SupLinUCB, Uniform
from hybandits.estimators.exploration import SelfNormalised
from hybandits.evaluation import Always, Frozen, Learning, Logged, UniformChoice, evaluate, fit
from hybandits.evaluation.targets import CLICK_NOISE, note_fit, policy_for, target_for, target_of
from hybandits.evaluation.view import Expander, View
from tests.support.evaluation import ARMS, SAME, Plain, Ranked, write_log
from tests.support.loglike import learn_log, little_log
from tests.support.own_classes import WRAPPERS, write_softmax

POLICIES: dict[str, Callable[[int, int], Policy]] = {
    "greedy": lambda d1, d2: Greedy(d1=d1, d2=d2, seed=0),
    "hylinucb": lambda d1, d2: HyLinUCB(d1=d1, d2=d2, seed=0),
    "dislinucb": lambda d1, d2: DisLinUCB(d1=d1, d2=d2, seed=0),
    "suplinucb": lambda d1, d2: SupLinUCB(d1=d1, d2=d2, horizon=1000, seed=0),
    "hyran": lambda d1, d2: HyRan(d1=d1, d2=d2, seed=0),
    "uniform": lambda d1, d2: Uniform(d1=d1, d2=d2, seed=0),
    "epsilon": lambda d1, d2: EpsilonGreedy(Greedy(d1=d1, d2=d2, seed=0), epsilon=0.3, seed=0),
    "nested": lambda d1, d2: EpsilonGreedy(Uniform(d1=d1, d2=d2), epsilon=0.3, seed=0),
}


@pytest.mark.parametrize("name", POLICIES)
def test_frozen_policies_choose_as_they_would_and_stay_as_they_are(name: str, tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", 40))
    policy = POLICIES[name](view.d1, view.d2)
    learn_log(policy, view, 0, 30)
    # Having met all arms, like the copy: gamma may depend on how many there are.
    policy.choose(np.zeros((ARMS, view.d1)), np.zeros((ARMS, view.d2)), view.names)
    policy.save(tmp_path / "before.npz")
    frozen = Frozen(policy)
    plain = Plain(view, policy.propensities)
    evaluation = evaluate(view, {"it": frozen}, estimators=["ips"])
    assert evaluation.of("it", "ips").value == pytest.approx((plain.weight * plain.reward).mean())
    policy.save(tmp_path / "after.npz")
    assert (tmp_path / "before.npz").read_bytes() == (tmp_path / "after.npz").read_bytes()


def matches(view: View, policy: Policy, start: int = 0) -> np.ndarray:
    """The probability with which the frozen policy shows what was shown in every round."""
    choices, expander, probabilities = Frozen(policy).prepared(view), Expander(view), []
    for batch in view.log.batches(start):
        for piece, rounds in expander(batch, start):
            probabilities.append(choices(piece, rounds)[np.arange(piece.rounds), piece.chosen])
            start += piece.rounds
    return np.concatenate(probabilities)


class ByHand(HyIDS):
    """HyIDS without its loop."""

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None, *, key: Any = None) -> np.ndarray:
        return super().propensities(x, z, arms, key=key)


def test_information_directed_choices_are_frozen_by_draws(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", 120))
    looped, by_hand = HyIDS(d1=view.d1, d2=view.d2, seed=0), ByHand(d1=view.d1, d2=view.d2, seed=0)
    for policy in (looped, by_hand):
        learn_log(policy, view, 0, 60)
    loop, hand = matches(view, looped), matches(view, by_hand)
    # Both are unbiased in every round, so the mean of their differences is 0. Every one of them is at most 1 in size,
    # and four standard errors are exceeded with a chance below 1e-4.
    difference = loop - hand
    assert len(np.unique(loop)) > 2
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(len(difference))


def test_the_draws_of_a_round_are_a_function_of_its_number(view: View) -> None:
    policy = HyThompson(d1=view.d1, d2=view.d2, propensity_draws=5, seed=0)
    learn_log(policy, view, 0, 200)
    full, later = matches(view, policy), matches(view, policy, 37)
    np.testing.assert_array_equal(full[37:], later)
    assert len(np.unique(full)) > 2


def test_always(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", pools=SAME[:1]))
    (batch,) = view.log.batches()
    evaluation = evaluate(view, {"it": "always:a1"}, estimators=["snips"])
    w = (batch.chosen == 1) / batch.propensity
    assert evaluation.of("it", "snips").value == pytest.approx((w * batch.reward).sum() / w.sum())


def test_what_values_of_targets_stand_for(view: View, trained: Greedy) -> None:
    assert target_of("uniform", view) == UniformChoice()
    assert target_of("logged", view) == Logged()
    assert target_of("always:a3", view) == Always("a3")
    assert isinstance(target_of(trained, view), Frozen)
    own = Ranked(0.5)
    assert target_of(own, view) is own
    places = View(view.log, arms="positions")
    assert target_of("always:3", places) == Always(3)


def test_an_arm_is_named_by_its_text_whatever_its_type(tmp_path: Path) -> None:
    view = View(little_log(tmp_path, ids=int))
    assert target_of("always:3", view) == Always(3)
    with pytest.raises(ValueError, match="the log has no arm '3' to show always"):
        target_of(Always("3"), view)


def test_saved_policies_are_copies(trained: Greedy) -> None:
    frozen = Frozen(trained)
    one, other = frozen.policy(), frozen.policy()
    assert one is not other
    assert one.rounds == trained.rounds == 150
    with pytest.raises(TypeError, match="Learning takes a policy, got 3"):
        Learning(3)  # type: ignore[arg-type]


def test_policies_with_features_of_their_own_are_evaluated_together(view: View) -> None:
    fitted = {}
    for name in ("das", "li", "disjoint"):
        own_view = View(view.log, features=name)
        policy = Greedy(d1=own_view.d1, d2=own_view.d2, seed=0)
        fit.warm_start(policy, fit.collect(own_view, 0, 150))
        note_fit(policy, own_view, 150)
        fitted[name] = policy
    together = evaluate(view, {"uniform": "uniform", **fitted})
    assert together.features == "das"
    for name, policy in fitted.items():
        alone = evaluate(view, {"uniform": "uniform", name: policy})
        own_view = View(view.log, features=name)
        plain = Plain(own_view, policy.propensities)
        assert together.of(name, "ips").value == pytest.approx((plain.weight * plain.reward).mean())
        for estimator in ("ips", "snips", "dm", "dr"):
            one, other = together.of(name, estimator), alone.of(name, estimator)
            assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), rel=1e-12)
        weights = evaluate(own_view, {"uniform": "uniform", name: policy}, estimators=["ips", "snips"])
        for estimator in ("ips", "snips"):
            assert weights.of(name, estimator).value == together.of(name, estimator).value


def test_learning_policies_with_features_of_their_own(uniform_view: View) -> None:
    li = View(uniform_view.log, features="li")
    policy = HyLinUCB(d1=li.d1, d2=li.d2, seed=0)
    policy.notes = {"features": "li"}
    one = evaluate(uniform_view, {"it": Learning(policy)}, estimators=["replay"]).of("it", "replay")
    other = evaluate(li, {"it": Learning(policy)}, estimators=["replay"]).of("it", "replay")
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
    policy.notes = {"features": "shared"}
    with pytest.raises(ValueError, match="d1 = 9, d2 = 0 by the map shared"):
        evaluate(uniform_view, {"it": Frozen(policy)})


# ------------------------------------------------------------------ on the command line


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> View:
    return View(little_log(tmp_path_factory.mktemp("logs"), clicks=True))


def test_a_policy_fits_the_log(clicks: View) -> None:
    policy = policy_for(clicks, "HyThompson:scale=2,noise=0.5", horizon=100, seed=3)
    assert isinstance(policy, HyThompson)
    assert (policy.d1, policy.d2, policy.scale) == (clicks.d1, clicks.d2, 2.0)
    with_noise = policy_for(clicks, "HyLinUCB", horizon=100)
    assert isinstance(with_noise, HyLinUCB)
    assert with_noise.exploration == SelfNormalised(noise=CLICK_NOISE)
    learned = policy_for(clicks, "HyIDS", horizon=100)
    assert isinstance(learned, HyIDS)
    assert learned.noise is learned.scale is None


def test_targets_of_the_command_line(clicks: View) -> None:
    def target(spec: str, **saved: Any) -> Any:
        return target_for(clicks, spec, saved=saved, horizon=100, seed=0)

    assert isinstance(target("old", old=Greedy(d1=clicks.d1, d2=clicks.d2)), Frozen)
    assert [target(spec) for spec in ("Uniform", "logged", "Always:a3")] == [UniformChoice(), Logged(), Always("a3")]
    assert isinstance(target("Greedy"), Learning)
    for spec, words in (("random", "'random'"), ("HyLinUBC:ridge=2", "HyLinUCB"), ("HyLinUCB:nose=1", "'nose'")):
        with pytest.raises(ValueError, match=words):
            target(spec)


def test_policies_of_ones_own_and_around_others_are_targets(clicks: View, own_folder: Path) -> None:
    write_softmax(own_folder)
    (own_folder / "wrappers.py").write_text(WRAPPERS)
    specs = ["softmax:Softmax:temperature=0.5", 'EpsilonGreedy:policy="HyLinUCB"', "wrappers:Cautious:policy=Greedy"]
    targets = {spec: target_for(clicks, spec, saved={}, horizon=100) for spec in specs}
    assert [each.kind for each in targets.values() if isinstance(each, Learning)] == [
        "Softmax", "EpsilonGreedy", "Cautious",
    ]  # fmt: skip
    evaluation = evaluate(clicks, targets, estimators=("replay",))
    assert all(estimate.value is not None for estimate in evaluation.estimates)
    with pytest.raises(ValueError, match="softmax:Sofmax cannot be imported"):
        target_for(clicks, "softmax:Sofmax", saved={}, horizon=100)
