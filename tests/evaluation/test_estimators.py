"""Terms of rounds and their sums, plain and compiled, against their formulas; records of estimators and their rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybandits import Greedy
from hybandits.evaluation import ESTIMATORS, Estimator, EvaluationPlan, Learning, Terms, evaluate
from hybandits.evaluation.api import Gathered, Sequences
from hybandits.evaluation.estimators import SUMS, Rule, columns_of, records_of
from hybandits.evaluation.passes import ROUND, add_choices
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.statistics import bernstein
from tests.support.evaluation import Plain, Ranked, ranked

ROUNDS, MOST, FOLDS, GROUPS, ARMS = 7, 4, 2, 6, 3


class Problem:
    """Random rounds, with every argument of `add_choices`."""

    def __init__(self, *, low: float = -np.inf, high: float = np.inf, pair: int = 0) -> None:
        random = np.random.default_rng(0)
        self.counts = random.integers(2, MOST + 1, ROUNDS)
        self.pi = random.random((ROUNDS, MOST)) * (np.arange(MOST) < self.counts[:, None])
        self.pi /= self.pi.sum(axis=1, keepdims=True)
        self.shown = random.integers(0, self.counts)
        self.user = random.normal(size=(ROUNDS, 2))
        self.first = np.arange(ROUNDS) * MOST
        self.group = random.integers(0, GROUPS, ROUNDS * MOST)
        self.arm = self.group % ARMS
        self.weights = random.normal(size=(FOLDS, GROUPS, 2 + pair))
        self.pair = random.normal(size=(ROUNDS, MOST, pair))
        self.constant = random.normal(size=(FOLDS, GROUPS))
        self.fold = np.arange(ROUNDS) % FOLDS
        self.low, self.high = low, high

    def run(self, function: Any) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
        out, mass, eligible = np.zeros(ROUNDS, ROUND), np.zeros(ARMS), np.zeros(ARMS, np.int64)
        if function is add_choices.py_func:
            out = out.view(np.recarray)
        wrong = function(
            self.pi, self.counts, self.shown, self.user, self.pair, self.first, self.group, self.arm,
            self.weights, self.constant, self.fold, True, self.low, self.high, out, mass, eligible,
        )  # fmt: skip
        return wrong, out, mass, eligible


@pytest.mark.slow
@pytest.mark.parametrize("function", [add_choices, add_choices.py_func])
@pytest.mark.parametrize("options", [{}, {"low": -0.3, "high": 0.4}, {"pair": 3}])
def test_choices_against_their_formulas(function: Any, options: dict[str, Any]) -> None:
    problem = Problem(**options)
    problem.pi[5] = 0.0  # shows nothing
    wrong, out, mass, eligible = problem.run(function)
    assert wrong == -1
    arm_mass, candidates = np.zeros(ARMS), 0
    for t in range(ROUNDS):
        n, f, s = problem.counts[t], problem.fold[t], problem.shown[t]
        group, pi = problem.group[problem.first[t] + np.arange(n)], problem.pi[t, :n]
        known = np.column_stack([np.tile(problem.user[t], (n, 1)), problem.pair[t, :n]])
        q = (problem.weights[f, group] * known).sum(axis=1) + problem.constant[f, group]
        within = np.clip(q, problem.low, problem.high)
        np.testing.assert_allclose(list(out[t]), [pi.sum(), pi[s], pi @ q, pi @ within, within[s]], rtol=1e-12)
        np.add.at(arm_mass, group % ARMS, pi)
        candidates += int((pi > 0).sum())
    np.testing.assert_allclose(mass, arm_mass)
    assert eligible.sum() == candidates


@pytest.mark.parametrize("function", [add_choices, add_choices.py_func])
@pytest.mark.parametrize("value", [-0.1, np.nan, 0.9])
def test_the_first_round_with_invalid_probabilities_is_returned(function: Any, value: float) -> None:
    problem = Problem()
    problem.pi[3, 1] += value
    problem.pi[5] = np.nan
    assert problem.run(function)[0] == 3


def random_terms(rounds: int) -> Terms:
    random = np.random.default_rng(1)
    return Terms(*random.normal(size=(len(Terms._fields), rounds)))


def test_columns_are_numerators_and_denominators() -> None:
    t = random_terms(5)
    columns = columns_of([ESTIMATORS["dr"].terms, ESTIMATORS["replay"].terms], t)
    dr = t.within + t.weight * (t.reward - t.shown)
    k = len(SUMS)
    np.testing.assert_allclose(columns[:, 1:6].T, [t.weight, t.weight**2, t.match, t.match * t.reward, t.kept])
    np.testing.assert_allclose(columns[:, k : k + 3].T, [dr, np.ones(5), dr**2])
    np.testing.assert_allclose(columns[:, k + 3 : k + 5].T, [t.kept * t.reward, t.kept])


# ------------------------------------------------------------------ records


def half_weight(t: Terms) -> tuple[FloatArray, FloatArray]:
    return np.sqrt(t.weight) * t.reward, np.sqrt(t.weight)


@pytest.mark.slow
def test_an_estimator_of_ones_own(view: View) -> None:
    never = Rule(lambda p: p.learns, "Not of {p.name}.")
    own = Estimator(name="half", terms=half_weight, refused=(never,))
    targets = {"logged": "logged", "it": Ranked(0.4), "learning": Learning(Greedy(d1=view.d1, d2=view.d2))}
    evaluation = evaluate(view, targets, estimators=["ips", own])
    plain = Plain(view, lambda x, z, arms: ranked(0.4, len(arms)))
    w = np.sqrt(plain.weight)
    estimate = evaluation.of("it", "half")
    assert estimate.value == pytest.approx((w * plain.reward).sum() / w.sum())
    assert estimate.low < estimate.value < estimate.high
    assert estimate.difference is not None
    assert evaluation.of("logged", "half").value == pytest.approx(plain.reward.mean())
    assert evaluation.of("learning", "half").refusal == "Not of learning."
    anytime = evaluate(view, targets, estimators=[own], interval="bernstein", reward_range=(-30, 30)).of("it", "half")
    assert "half is not a mean of bounded terms" in str(anytime.refusal)


def test_records_by_name() -> None:
    assert records_of(["dr", "ips"]) == (ESTIMATORS["dr"], ESTIMATORS["ips"])
    for wrong in (["magic"], [], ["ips", "ips"], ["ips", ESTIMATORS["ips"]]):
        with pytest.raises(ValueError, match="estimators must be some of replay, ips, snips, dm, dr, each once"):
            records_of(wrong)
    for name in ESTIMATORS:
        assert name in str(EvaluationPlan.__doc__)


def test_estimators_suit_the_policies_by_default(uniform_view: View) -> None:
    learning = Learning(Greedy(d1=uniform_view.d1, d2=uniform_view.d2))

    def names(targets: Any) -> list[str]:
        return [each.name for each in EvaluationPlan(uniform_view, targets).records]

    assert names({"a": learning}) == ["replay", "snips"]
    assert names({"a": "uniform"}) == ["ips", "snips", "dm", "dr"]
    assert names({"a": "uniform", "b": learning}) == ["replay", "ips", "snips", "dm", "dr"]
    evaluation = evaluate(uniform_view, {"a": "uniform", "b": learning})
    assert "dm" not in [each.estimator for each in evaluation.estimates if each.policy == "b"]
    explicit = evaluate(uniform_view, {"a": "uniform", "b": learning}, estimators=["snips", "dm"])
    assert explicit.of("b", "dm").refusal is not None, "what is asked for and refused is not left out"


# ------------------------------------------------------------------ confidence sequences


@pytest.fixture(scope="module")
def gathered(view: View) -> Gathered:
    targets = {"uniform": "uniform", "own": Ranked(0.4), "logged": "logged"}
    return EvaluationPlan(view, targets, estimators=["ips", "replay", "dr"], reward_range=(-30.0, 30.0)).gather()


def test_ips_is_the_sequence_of_its_terms(view: View, gathered: Gathered) -> None:
    plain = Plain(view, lambda x, z, arms: ranked(0.4, len(arms)))
    terms, largest = plain.weight * plain.reward, 1 / plain.propensity.min()
    sequences, ips = Sequences(gathered, 0.95), ESTIMATORS["ips"]
    uniform, own, logged = gathered.policies
    sums = np.ones(len(terms)), terms, terms**2
    low, high = bernstein(*sums, low=-30 * largest, high=30 * largest, mean=(-30, 30))
    assert sequences.interval(own, ips) == pytest.approx((low[-1], high[-1]))
    of_rewards = sequences.interval(logged, ips)
    assert of_rewards[1] - of_rewards[0] < high[-1] - low[-1], "rewards have a smaller range than w r"
    one, other = (Sequences(gathered, 0.975).interval(policy, ips) for policy in (own, uniform))
    assert sequences.difference(own, uniform, ips) == pytest.approx((one[0] - other[1], one[1] - other[0]))


def test_dr_averages_the_folds_which_hold_at_once(gathered: Gathered) -> None:
    policy, at, sequences = gathered.policies[1], np.array([399]), Sequences(gathered, 0.95)
    b, a, squares = (policy.columns(ESTIMATORS["dr"])[i] for i in (1, 0, 2))
    low, high = ESTIMATORS["dr"].bounds(-30.0, 30.0, sequences.largest)  # type: ignore[misc]
    each = [
        bernstein(b[:, f], a[:, f], squares[:, f], low=low, high=high, mean=(-30, 30), level=0.975, at=at)
        for f in range(2)
    ]
    share = b.sum(axis=0) / b.sum()
    expected = (share[:, None] * np.array(each)[:, :, 0]).sum(axis=0)
    np.testing.assert_allclose(sequences.interval(policy, ESTIMATORS["dr"]), expected)
