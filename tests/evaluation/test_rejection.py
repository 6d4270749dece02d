"""Replay of logs that were not uniform: which rounds are kept, what is learned, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import EpsilonGreedy, Greedy, HyLinUCB, HyThompson, Policy
from hybandits.evaluation import EvaluationPlan, Frozen, Learning, evaluate
from hybandits.evaluation.parts import Survey
from hybandits.evaluation.rejection import Rejection, draw_kept, rejection_for
from hybandits.evaluation.view import Expander, View
from tests.support.evaluation import SAME, D, write_log


def test_chances_are_their_formula() -> None:
    propensity = np.array([0.05, 0.1, 0.2, 1.0])
    np.testing.assert_allclose(Rejection(0.1).chance(propensity), [1.0, 1.0, 0.5, 0.1])
    assert not Rejection().rejects
    np.testing.assert_array_equal(Rejection().drawn(3, np.array([0.5, np.nan])), [1.0, 1.0])


def test_draws_are_a_function_of_the_seed_and_the_round() -> None:
    propensity = np.random.default_rng(0).uniform(0.1, 0.9, 20_000)
    rejection = Rejection(0.1, key=7)
    kept = rejection.drawn(0, propensity)
    np.testing.assert_array_equal(kept[37:60], rejection.drawn(37, propensity[37:60]))
    assert (kept[:5000] != Rejection(0.1, key=8).drawn(0, propensity[:5000])).any()
    chance = rejection.chance(propensity)
    # Four standard errors: exceeded with a chance of 6 in 100,000, and the seed is fixed.
    assert abs((kept - chance).mean()) < 4 * math.sqrt((chance * (1 - chance)).sum()) / len(chance)
    plain = chance[:200].copy()
    draw_kept.py_func(plain, 7, 0)
    np.testing.assert_array_equal(plain, kept[:200])


def test_how_much_is_kept() -> None:
    def keep(given: float | None, *, learns: bool = True, **counts: Any) -> float:
        survey = Survey(np.zeros(1, np.int64), rounds=20_000, smallest=0.0026, largest=0.3, **counts)
        return rejection_for(survey, given, 0, learns=learns).keep

    assert keep(None) == math.inf, "the log was uniform"
    assert keep(None, uneven=1) == 0.0026
    assert keep(0.2, uneven=1) == 0.2
    assert keep(0.2) == 0.2, "where lists differ in length"
    assert keep(1.0, uneven=1) == 0.3, "all that match are kept, as with the largest"
    assert keep(0.2, uneven=1, learns=False) == 0.0026, "nothing is drawn, so nothing is lost"
    assert keep(None, uneven=1, missing=1) == math.inf


@pytest.mark.parametrize(("kind", "pair"), [(HyLinUCB, 2), (HyThompson, 0)])
def test_rejection_replay_is_the_loop(view: View, pair_view: View, kind: Callable[..., Policy], pair: int) -> None:
    view = pair_view if pair else view
    policy = kind(d1=view.d1, d2=view.d2, noise=1.0, seed=0)
    targets = {"it": Learning(policy), "again": Learning(policy)}
    gathered = EvaluationPlan(view, targets, estimators=["replay", "ips", "snips"], keep=0.05, seed=3).gather()
    evaluation = gathered.evaluation()
    assert policy.rounds == 0
    assert not policy.arms
    (batch,) = view.log.batches()
    drawn = gathered.policies[0].rejection.drawn(0, batch.propensity)
    assert 0 < drawn.mean() < 1
    kept, weights, weighted = [], [], []
    for t in range(batch.rounds):
        entries = range(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])
        pairs = batch.pair[t, : len(entries)] if pair else None
        x, z = view.map(batch.user[t], view.vectors[view.vector[entries]], pairs)
        choice = policy.choose(x, z, [view.names[view.arm[e]] for e in entries])
        if choice.index == batch.chosen[t]:
            weights.append(1 / batch.propensity[t])
            weighted.append(batch.reward[t] / batch.propensity[t])
            if drawn[t]:
                policy.learn(choice.arm, x[choice.index], z[choice.index], batch.reward[t])
                kept.append(batch.reward[t])
    assert evaluation.of("it", "replay").value == pytest.approx(np.mean(kept))
    assert evaluation.of("it", "ips").value == pytest.approx(sum(weighted) / batch.rounds)
    assert evaluation.of("it", "snips").value == pytest.approx(sum(weighted) / sum(weights))
    diagnostics = evaluation.diagnostics["it"]
    assert (diagnostics.kept, diagnostics.keep) == (len(kept), 0.05)
    assert diagnostics.matched == len(weights) / batch.rounds
    assert diagnostics.effective == pytest.approx(sum(weights) ** 2 / sum(w * w for w in weights))
    same = evaluation.of("again", "replay").difference
    assert same is not None
    assert (same.value, same.low, same.high) == (0.0, 0.0, 0.0), "policies meet the same draws"


def test_fixed_policies_are_replayed_in_expectation(view: View, trained: Greedy) -> None:
    evaluation = evaluate(view, {"it": Frozen(trained), "logged": "logged"}, estimators=["replay"], keep=0.1)
    (batch,) = view.log.batches()
    pi = Frozen(trained).prepared(view)
    match = np.concatenate([pi(b, r)[np.arange(b.rounds), b.chosen] for b, r in Expander(view)(batch)])
    k = match / batch.propensity
    assert evaluation.of("it", "replay").value == pytest.approx((k * batch.reward).sum() / k.sum())
    assert evaluation.of("logged", "replay").value == pytest.approx(batch.reward.mean())
    assert evaluation.diagnostics["logged"].kept is None


# ------------------------------------------------------------------ against known truth


def law(user: np.ndarray, arm: int, random: np.random.Generator) -> float:
    return float((1.0, -1.0, 0.5, 0.0)[arm] * user[1] + 0.3 * arm + 0.5 * random.normal())


def even(users: np.ndarray, places: int) -> np.ndarray:
    return np.full((len(users), places), 1 / places)


def softmax(users: np.ndarray, places: int) -> np.ndarray:
    """Prefer arms of low reward, so that plain matching would be misleading."""
    score = np.exp(users[:, 1:2] * np.array([-1.0, 1.0, -0.5, 0.0])[:places])
    return np.asarray(0.3 / places + 0.7 * score / score.sum(axis=1, keepdims=True))


def logged_by(rule: Callable[[np.ndarray, int], np.ndarray], seed: tuple[int, ...]) -> Callable[[dict[str, Any]], None]:
    """Users, choices by this rule, and rewards of their own."""

    def change(columns: dict[str, Any]) -> None:
        random = np.random.default_rng(seed)
        n = len(columns["pool"])
        columns["user"] = np.column_stack([np.ones(n), random.normal(size=(n, D - 1))])
        shares = rule(columns["user"], 4)
        columns["chosen"] = np.minimum((np.cumsum(shares, axis=1) < random.random((n, 1))).sum(axis=1), 3)
        columns["propensity"] = shares[np.arange(n), columns["chosen"]]
        pairs = zip(columns["user"], columns["chosen"], strict=True)
        columns["reward"] = np.array([law(u, arm, random) for u, arm in pairs])

    return change


def shuns_the_best(users: np.ndarray, places: int) -> np.ndarray:
    """With 1,500 rounds the exact c leaves 60. With c = 0.2 a policy that likes arm 3 would hardly ever learn it."""
    return np.tile([0.32, 0.32, 0.32, 0.04], (len(users), 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "length", "kinds"),
    [(even, 120, ("ucb", "epsilon")), (softmax, 240, ("ucb", "epsilon")), (shuns_the_best, 1500, ("ucb",))],
)
def test_rejection_replay_is_the_mean_reward_of_the_policy(
    tmp_path: Path, rule: Callable[[np.ndarray, int], np.ndarray], length: int, kinds: tuple[str, ...]
) -> None:
    """The rounds kept are rounds of the policy's own, given how many they are, whatever the log's own policy was.

    100 logs against as many runs of the same lengths in the same world, for a policy that follows a rule
    and for one that draws: the difference is within 4 standard errors, but for a chance of 6 in 100,000. The seed is
    fixed.
    """
    differences: dict[str, list[float]] = {name: [] for name in kinds}
    for i in range(100):
        view = View(write_log(tmp_path / str(i), length, seed=1, pools=SAME[:1], change=logged_by(rule, (8, i))))
        policies: dict[str, Policy] = {
            "ucb": HyLinUCB(d1=view.d1, d2=view.d2, noise=0.5, seed=0),
            "epsilon": EpsilonGreedy(Greedy(d1=view.d1, d2=view.d2, seed=i), epsilon=0.3, seed=i),
        }
        targets = {name: Learning(policies[name]) for name in kinds}
        evaluation = evaluate(view, targets, estimators=["replay"], seed=i)
        for name in kinds:
            policy = policies[name]
            replayed = evaluation.of(name, "replay")
            assert replayed.value is not None
            kept = evaluation.diagnostics[name].kept
            rounds = round(kept if kept is not None else evaluation.diagnostics[name].matched * length)
            random = np.random.default_rng((9, i))
            total = 0.0
            for _ in range(rounds):
                u = np.array([1.0, *random.normal(size=D - 1)])
                pairs = [view.map(u, v) for v in view.log.vectors[:4]]
                x, z = np.array([x for x, _ in pairs]), np.array([z for _, z in pairs])
                choice = policy.choose(x, z, view.names[:4])
                reward = law(u, choice.index, random)
                policy.learn(choice.arm, x[choice.index], z[choice.index], reward)
                total += reward
            differences[name].append(rounds * replayed.value - total)
    for name, each in differences.items():
        assert abs(np.mean(each)) < 4 * np.std(each) / math.sqrt(len(each)), name


def test_a_policy_that_learned_from_tilted_rounds_has_no_interval(tmp_path: Path) -> None:
    """With 600 rounds the exact c leaves 24 rounds; at a larger one every estimate says that it is a rough number."""
    change = logged_by(shuns_the_best, (8, 3))
    view = View(write_log(tmp_path / "log", 600, seed=1, pools=SAME[:1], change=change))
    names = ["replay", "ips", "snips", "dr"]
    targets = {"it": Learning(HyLinUCB(d1=view.d1, d2=view.d2, noise=0.5, seed=0)), "fixed": "uniform"}
    for interval in ("bootstrap", "bernstein"):
        evaluation = evaluate(view, targets, estimators=names, interval=interval, reward_range=(-9.0, 9.0), keep=0.1)
        assert evaluation.diagnostics["it"].keep == 0.1
        assert evaluation.diagnostics["fixed"].keep == pytest.approx(0.04), "exact, as nothing is drawn"
        for name in names:
            estimate = evaluation.of("it", name)
            assert estimate.value is not None
            assert (estimate.low, estimate.high) == (None, None)
            assert "learned from tilted rounds" in str(estimate.refusal)
            assert "A rough number. keep = 0.1 is above the smallest propensity, 0.04" in estimate.notes[-1]
            assert "Exact: keep=0.04, which leaves about 24 rounds" in estimate.notes[-1]
            other = evaluation.of("fixed", name).difference
            assert other is None or (other.low, other.high) == (None, None)
    assert evaluation.of("fixed", "ips").low is not None
    (alone,) = evaluate(view, {"it": targets["it"]}, estimators=["snips"], keep=0.1).estimates
    assert alone.low is None
    assert len(alone.notes) == 1


def test_a_uniform_log_is_called_uniform(uniform_view: View) -> None:
    targets = {"it": Learning(Greedy(d1=9, d2=3)), "fixed": "uniform"}
    plain = evaluate(uniform_view, targets, estimators=["replay"])
    evaluation = evaluate(uniform_view, targets, estimators=["replay"], keep=1.0)
    for name in targets:
        one, other = plain.of(name, "replay"), evaluation.of(name, "replay")
        assert (one.value, one.low, one.high) == (other.value, other.low, other.high), "every match is kept"
    diagnostics = evaluation.diagnostics["it"]
    assert diagnostics.kept == diagnostics.effective == pytest.approx(diagnostics.matched * 400)
    assert diagnostics.keep == 0.25


def test_too_little_is_left(view: View) -> None:
    targets = {"it": Learning(Greedy(d1=9, d2=3)), "logged": "logged"}
    evaluation = evaluate(view, targets, estimators=["replay"], keep=0.008)
    estimate = evaluation.of("it", "replay")
    assert estimate.value is not None
    assert estimate.low is None
    assert "No interval" in str(estimate.refusal)
    assert any("Do not rely on replay" in warning for warning in evaluation.diagnostics["it"].warnings)
    evaluation = evaluate(view, targets, estimators=["replay"], keep=1e-6)
    assert "0 are kept, with keep = 1e-06" in str(evaluation.of("it", "replay").refusal)
