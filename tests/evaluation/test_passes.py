"""Replay against a plain loop, probabilities that are refused, and progress."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import EpsilonGreedy, Greedy, HyLinUCB
from hybandits.evaluation import ChoiceProbabilities, EvaluationPlan, Frozen, Learning, evaluate, fit
from hybandits.evaluation.view import View
from tests.support.evaluation import SAME, D, Plain, Ranked, write_log


@pytest.mark.parametrize("pair", [0, 2])
def test_replay_of_a_learning_policy_is_the_loop(tmp_path: Path, pair: int) -> None:
    view = View(write_log(tmp_path / "log", uniform=True, pools=SAME, pair=pair))
    policy = HyLinUCB(d1=view.d1, d2=view.d2, noise=1.0, seed=0)
    evaluation = evaluate(view, {"it": Learning(policy)}, estimators=["replay"])
    assert policy.rounds == 0
    assert not policy.arms
    plain = Plain(view, lambda x, z, arms: np.zeros(len(arms)))
    rewards = []
    (batch,) = view.log.batches()
    for t in range(plain.n):
        entries = range(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])
        pairs = batch.pair[t, : len(entries)] if pair else None
        x, z = view.map(batch.user[t], view.vectors[view.vector[entries]], pairs)
        choice = policy.choose(x, z, [view.names[view.arm[e]] for e in entries])
        if choice.index == batch.chosen[t]:
            policy.learn(choice.arm, x[choice.index], z[choice.index], batch.reward[t])
            rewards.append(batch.reward[t])
    estimate = evaluation.of("it", "replay")
    assert estimate.value == pytest.approx(np.mean(rewards))
    assert evaluation.diagnostics["it"].matched == len(rewards) / plain.n
    assert estimate.running is not None
    assert estimate.running.weight[-1] == len(rewards)


def test_replay_of_fixed_policies(uniform_view: View) -> None:
    view = uniform_view
    policy = Greedy(d1=view.d1, d2=view.d2)
    fit.warm_start(policy, fit.collect(view, 0, 150))
    for target in (policy, EpsilonGreedy(policy, epsilon=0.5, seed=0)):
        plain = Plain(view, target.propensities)
        evaluation = evaluate(view, {"it": Frozen(target)}, estimators=["replay", "snips"])
        assert evaluation.of("it", "replay").value == pytest.approx(
            (plain.match * plain.reward).sum() / plain.match.sum()
        )
        assert evaluation.of("it", "replay").value == pytest.approx(evaluation.of("it", "snips").value)


@pytest.mark.slow
def test_replay_is_what_the_policy_would_have_earned(tmp_path: Path) -> None:
    """Matched rounds of uniform logs are rounds of the policy's own, given how many they are (Li et al. 2011).

    150 logs of 120 rounds against as many runs of the same lengths with rewards from the same law: the difference is
    within 4 standard errors, but for a chance of 6 in 100,000. The seed is fixed.
    """
    differences = []
    for i in range(150):
        log = write_log(tmp_path / str(i), 120, seed=1, pools=SAME[:1], uniform=True, change=fresh(i))
        view = View(log)
        policy = HyLinUCB(d1=view.d1, d2=view.d2, noise=0.5, seed=0)
        replayed = evaluate(view, {"it": Learning(policy)}, estimators=["replay"]).of("it", "replay")
        assert replayed.value is not None
        assert replayed.running is not None
        rounds = int(replayed.running.weight[-1])
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
        differences.append(rounds * replayed.value - total)
    error = np.std(differences) / math.sqrt(len(differences))
    assert abs(np.mean(differences)) < 4 * error


def law(user: np.ndarray, arm: int, random: np.random.Generator) -> float:
    return float((1.0, -1.0, 0.5, 0.0)[arm] * user[1] + 0.3 * arm + 0.5 * random.normal())


def fresh(i: int) -> Callable[[dict[str, Any]], None]:
    """Users, choices and rewards of their own for log i."""

    def change(columns: dict[str, Any]) -> None:
        random = np.random.default_rng((8, i))
        n = len(columns["pool"])
        columns["user"] = np.column_stack([np.ones(n), random.normal(size=(n, D - 1))])
        columns["chosen"] = random.integers(0, 4, n)
        pairs = zip(columns["user"], columns["chosen"], strict=True)
        columns["reward"] = np.array([law(u, arm, random) for u, arm in pairs])

    return change


class Wrong(Ranked):
    def prepared(self, view: View) -> ChoiceProbabilities:
        good = super().prepared(view)
        return lambda batch, rounds: self.first * good(batch, rounds)


@pytest.mark.parametrize("factor", [0.9, -1.0, np.nan])
def test_probabilities_must_sum_up_to_1(view: View, factor: float) -> None:
    with pytest.raises(ValueError, match="sum up to 1"):
        evaluate(view, {"it": Wrong(factor)}, estimators=["ips"])


def test_plain_and_progress(view: View, trained: Greedy) -> None:
    for targets, estimators in (
        ({"a": "uniform", "b": trained}, ["ips", "snips", "dm", "dr"]),
        ({"a": "uniform"}, ["ips"]),
        ({"a": "uniform"}, ["dr"]),
        ({"a": "logged"}, ["dm", "ips"]),
    ):
        told: list[int] = []
        evaluation = evaluate(view, targets, estimators=estimators, progress=told.append)
        assert sum(told) == EvaluationPlan(view, targets, estimators=estimators).total
        assert json.loads(json.dumps(evaluation.plain(), allow_nan=False))["rounds"] == 400


def test_progress_of_replay(uniform_view: View) -> None:
    told: list[int] = []
    targets = {"a": Learning(HyLinUCB(d1=9, d2=3)), "b": Learning(HyLinUCB(d1=9, d2=3)), "c": "logged"}
    evaluate(uniform_view, targets, estimators=["replay"], progress=told.append)
    assert sum(told) == EvaluationPlan(uniform_view, targets, estimators=["replay"]).total == 1600
