"""Sums of decisions and rewards: what they hold, how they are kept, and that they do not grow."""

from __future__ import annotations

import pytest

from hybandits.service.summary import BINS, Summary
from tests.support.service_rows import KnownArms, decision


def filled(seed: int = 0, rounds: int = 300, **settings: object) -> Summary:
    summary = Summary(**settings)  # type: ignore[arg-type]
    summary.compare("live", ["live", "bold"], row=1, unchanged=[])
    arms = KnownArms(seed)
    for t in range(rounds):
        drawn, reward, _ = arms.draw()
        summary.decided(0, drawn)
        summary.learned(t * 1_000_000, drawn, reward)
    return summary


@pytest.mark.parametrize("rewards", [None, (0.0, 1.0), (-1.0, 3.0)])
def test_sums_are_those_of_a_plain_recomputation(rewards: tuple[float, float] | None) -> None:
    summary = filled(range=rewards)
    arms = KnownArms(0)
    values: dict[str, list[float]] = {"reward": [], "uniform": [], "bold": [], "difference": []}
    for _ in range(300):
        drawn, reward, _ = arms.draw()
        if rewards is not None:
            reward = (reward - rewards[0]) / (rewards[1] - rewards[0])
        so_far = values["reward"]
        base = 0.0 if rewards is not None else sum(so_far) / len(so_far) if so_far else reward
        weight = drawn.shadows["bold"] / drawn.chance
        values["uniform"].append(base + (reward - base) / (drawn.n * drawn.chance))
        values["bold"].append(base + weight * (reward - base))
        values["difference"].append(values["bold"][-1] - (base + 1.0 * (reward - base)))
        so_far.append(reward)
    bold = summary.challengers["bold"]
    for name, terms in (
        ("reward", summary.reward), ("uniform", summary.uniform.value), ("bold", bold.value),
        ("difference", bold.difference),
    ):  # fmt: skip
        assert (terms.n, terms.total) == (300, pytest.approx(sum(values[name]))), name
        middle, low, high = (0.0, -1.0, 1.0) if name == "difference" else (0.5, 0.0, 1.0)
        spread = 0.0
        for i, value in enumerate(values[name]):
            before = sum(values[name][:i])
            if rewards is None:
                guess = before / i if i else value
            else:
                guess = min(max((middle + before) / (1 + i), low), high)
            spread += (value - guess) ** 2
        assert terms.spread == pytest.approx(spread), name


def test_stretches_of_time_add_up() -> None:
    summary = filled(rounds=1_000, range=(0.0, 1.0))
    assert len(summary.bins) <= BINS
    assert summary.width == 8_000_000
    for name, overall in (("reward", summary.reward), ("uniform", summary.uniform.value)):
        parts = [getattr(each, name) for each in summary.bins.values()]
        assert sum(part.n for part in parts) == overall.n == 1_000
        assert sum(part.total for part in parts) == pytest.approx(overall.total)
        assert sum(part.spread for part in parts) == pytest.approx(overall.spread)


def counted(summary: Summary) -> dict[str, int]:
    """The rewards that each challenger's sums are of."""
    return {name: sums.value.n for name, sums in summary.challengers.items()}


def test_an_unchanged_challenger_goes_on_and_others_begin_from_nothing() -> None:
    summary = filled()
    summary.compare("live", ["live", "bold", "new"], row=400, unchanged=["live", "bold"])
    assert counted(summary) == {"bold": 300, "new": 0}
    summary.learned(10**9, decision(version=399, shadows={"bold": 0.5, "new": 0.1}), 1.0)  # it was decided before
    assert counted(summary) == {"bold": 301, "new": 0}
    summary.learned(10**9, decision(version=400, shadows={"bold": 0.5, "new": 0.1}), 1.0)
    assert counted(summary) == {"bold": 302, "new": 1}
    summary.compare("live", ["live", "bold", "new"], row=500, unchanged=["live", "new"])  # bold is another policy now
    summary.learned(10**9, decision(version=499, shadows={"bold": 0.5, "new": 0.1}), 1.0)
    assert counted(summary) == {"bold": 0, "new": 2}


def test_all_challengers_begin_from_nothing_when_another_policy_is_live() -> None:
    summary, policies = filled(), ["live", "bold", "new"]
    summary.compare("bold", policies, row=400, unchanged=policies)
    assert counted(summary) == {"live": 0, "new": 0}
    assert summary.uniform.value.n == 300
    summary.learned(10**9, decision(version=399, shadows={"bold": 0.5, "new": 0.1}), 1.0)
    assert counted(summary) == {"live": 0, "new": 0}
    summary.learned(10**9, decision(version=400, policy="bold", shadows={"live": 0.5, "new": 0.1}), 1.0)
    assert counted(summary) == {"live": 1, "new": 1}
    summary.compare("live", policies, row=500, unchanged=policies)  # back again: what it once decided is over
    summary.learned(10**9, decision(version=399, shadows={"bold": 0.5, "new": 0.1}), 1.0)
    assert counted(summary) == {"bold": 0, "new": 0}
