"""Estimates: the bounds are those of the offline evaluation, and they hold at all times."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hybandits.service import view as estimates
from hybandits.service.summary import Compared, Largest, Summary, Terms
from hybandits.service.view import Estimate, compared, estimate_rewards, so_far
from hybandits.statistics import bernstein
from tests.support.service_rows import KnownArms, decision


def live_reward(summary: Summary) -> Estimate:
    return estimate_rewards(summary, [summary.reward])[0]


def of(terms: list[float], ends: tuple[float, float] | None = (0.0, 1.0)) -> Terms:
    sums = Terms()
    for term in terms:
        sums.add(term, ends)
    return sums


def test_bounds_of_what_was_earned_are_those_of_evaluate() -> None:
    rewards = np.random.default_rng(1).random(400)
    summary = Summary(range=(0.0, 1.0), reward=of(rewards.tolist()))
    low, high = bernstein(np.ones(400), rewards, rewards**2, low=0, high=1, mean=(0, 1))
    estimate = live_reward(summary)
    assert (estimate.n, estimate.mean) == (400, pytest.approx(rewards.mean()))
    assert (estimate.low, estimate.high) == (pytest.approx(low[-1]), pytest.approx(high[-1]))


def test_bounds_of_a_challenger_are_those_of_evaluate_at_the_tails_used() -> None:
    """Both sides: the lower one at the usual tail, the upper one at half of it as long as the weights do not grow."""
    random = np.random.default_rng(2)
    terms = random.choice([0.0, 1.0, 7.0], 500, p=[0.8, 0.17, 0.03])
    summary = Summary(range=(0.0, 1.0))
    comparison = compared(summary, Compared(value=of(terms.tolist())), Largest(first=8.0, ever=8.0))
    low, _ = bernstein(np.ones(500), terms, terms**2, low=0, high=8, mean=(0, 1), level=0.95)
    _, high = bernstein(np.ones(500), terms, terms**2, low=0, high=8, mean=(0, 1), level=0.975)
    assert (comparison.value.low, comparison.value.high) == (pytest.approx(low[-1]), pytest.approx(high[-1]))


def test_a_range_of_rewards_moves_and_stretches_everything() -> None:
    plain, moved = Summary(range=(0.0, 1.0)), Summary(range=(10.0, 30.0))
    arms = KnownArms(3)
    for summary in (plain, moved):
        summary.compare("live", ["bold"], row=1, unchanged=[])
    for _ in range(200):
        drawn, reward, _ = arms.draw()
        for summary, value in ((plain, reward), (moved, 10 + 20 * reward)):
            summary.decided(0, drawn)
            summary.learned(0, drawn, value)
    for of_plain, of_moved, start in (
        (live_reward(plain), live_reward(moved), 10),
        (compared(plain, plain.uniform, plain.weights).value, compared(moved, moved.uniform, moved.weights).value, 10),
    ):
        for name in ("mean", "low", "high"):
            assert getattr(of_moved, name) == pytest.approx(start + 20 * getattr(of_plain, name))
    few, many = (compared(each, each.challengers["bold"], each.weights) for each in (plain, moved))
    assert many.difference.low == pytest.approx(20 * few.difference.low)  # type: ignore[operator]


def history(seed: int, rounds: int, *, ranged: bool, arms: int = 5) -> dict[str, np.ndarray]:
    """For live, uniform choice, bold and their differences: whether bounds held after every 20th of so many rounds."""
    summary = Summary(range=(0.0, 1.0) if ranged else None)
    summary.compare("live", ["bold"], row=1, unchanged=[])
    arms = KnownArms(seed, arms=arms)
    truth = {"live": 0.0, "bold": 0.0, "uniform": 0.0}
    covered: dict[str, list[bool]] = {name: [] for name in (*truth, "bold - live", "uniform - live")}
    for t in range(1, rounds + 1):
        drawn, reward, expected = arms.draw()
        summary.decided(0, drawn)
        summary.learned(0, drawn, reward)
        for name in truth:
            truth[name] += float(expected[name])
        if t % 20:
            continue
        uniform = compared(summary, summary.uniform, summary.uniform_weights)
        bold = compared(summary, summary.challengers["bold"], summary.weights)
        for name, estimate, right in (
            ("live", live_reward(summary), truth["live"]), ("uniform", uniform.value, truth["uniform"]),
            ("bold", bold.value, truth["bold"]), ("bold - live", bold.difference, truth["bold"] - truth["live"]),
            ("uniform - live", uniform.difference, truth["uniform"] - truth["live"]),
        ):  # fmt: skip
            if estimate.low is not None and estimate.high is not None:
                covered[name].append(estimate.low <= right / t <= estimate.high)
    return {name: np.array(each) for name, each in covered.items()}


@pytest.mark.slow
@pytest.mark.parametrize("ranged", [True, False], ids=["range", "no range"])
def test_bounds_hold_at_all_times(ranged: bool) -> None:
    """A sequence that fails in 1 of 20 histories passes but for 1 in 10,000 times; five of them: 1 in 2,000."""
    histories = [history(seed, 600, ranged=ranged) for seed in range(100)]
    most = stats.binom.isf(1e-4, len(histories), 0.05)
    for name in histories[0]:
        missed = sum(not each[name].all() for each in histories)
        assert missed <= most, f"{name}: {missed} of {len(histories)} failed"


def test_stretches_of_time_are_estimated_as_sums_so_far() -> None:
    random = np.random.default_rng(4)
    summary = Summary(range=(0.0, 1.0))
    for t in range(60):
        drawn = decision(event=str(t))
        summary.decided(0, drawn)
        summary.learned(t * 500_000, drawn, float(random.random() < 0.3))
    curve = estimate_rewards(summary, so_far([each.reward for each in summary.bins.values()]))
    assert curve[-1].n == 60
    assert curve[-1].low == pytest.approx(live_reward(summary).low)
    uniform = estimate_rewards(
        summary, so_far([each.uniform for each in summary.bins.values()]), summary.uniform_weights
    )
    assert uniform[-1].high == pytest.approx(compared(summary, summary.uniform, summary.uniform_weights).value.high)


def test_nothing_is_said_where_nothing_is_known() -> None:
    for summary in (Summary(), Summary(range=(0.0, 1.0))):
        assert live_reward(summary) == estimates.Estimate(0, None, None, None)
        comparison = compared(summary, summary.uniform, summary.uniform_weights)
        assert comparison.difference.low is None
        assert estimate_rewards(summary, so_far([])) == []
    few = Summary(reward=of([1.0, 2.0, 4.0], None))
    assert (live_reward(few).mean, live_reward(few).low) == (pytest.approx(7 / 3), None)
