"""Whatever a log holds that was accepted, the page, the view and the metrics can be made from it."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybandits.service.commands import Decide, GiveReward
from hybandits.service.metrics import Metrics
from hybandits.service.page import page
from hybandits.service.view import View, make_view
from hybandits.service.writer import Writer
from tests.support.bandits import FILE, USER, Clock, put, writer

LAST_YEAR = 253_402_300_799_000_000
"""Microseconds from 1970 to the end of the year 9999."""

BOLD = {"name": "bold", "policy": "HyThompson:scale=1"}

ENDS = [-1e50, -1e16, -1.0, -1e-300, -5e-324, 0.0, 5e-324, 1e-300, 1e-9, 1.0, 1 + 2**-52, 1e9, 1e16, 1e50]


def played(path: Path, earned: list[float], start: int = 1_000_000_000, age: float = 0.3, **changes: Any) -> Writer:
    """A service that has learned these rewards, one a second."""
    clock = Clock()
    clock.now = start
    service = writer(path, {**FILE, "challengers": [BOLD]}, clock=clock, **changes)
    put(service, "a", "b")
    for i, value in enumerate(earned):
        clock.advance(1)
        outcomes = service.serve([Decide({**USER, "age": age}, event_id=str(i)), GiveReward(str(i), value)])
        assert [outcome.status for outcome in outcomes] == [201, 201]
    clock.advance(60)
    service.serve([])
    return service


def shown(service: Writer) -> str:
    """The page, after everything else that shows the log was made too."""
    view = make_view(service)
    assert view.rewards == view.decisions
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view
    assert b"hybandits_policy_reward_mean" in Metrics(service).text(view)
    html = page(view)
    assert not re.search(r"\b(nan|inf)\b", html)
    return html


def labels(html: str) -> list[str]:
    """What stands beside the axis of rewards."""
    found = re.search(r'<div class="values">(.*?)</div>', html)
    assert found is not None
    return re.findall("<span>([^<]*)</span>", found[1])


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[float], dict[str, Any]]:
    """Rewards and settings that are accepted."""
    low, high = sorted(draw(st.lists(st.sampled_from(ENDS), min_size=2, max_size=2, unique=True)))
    changes: dict[str, Any] = {"floor": draw(st.sampled_from([1e-6, 0.05, 1.0]))}
    if draw(st.booleans()):
        changes["rewards"] = [low, high]
    if draw(st.booleans()):
        changes |= {"window": draw(st.sampled_from([1e-3, 5.0])), "no_reward": draw(st.sampled_from([low, high]))}
    return draw(st.lists(st.sampled_from([low, high]) | st.floats(low, high), min_size=1, max_size=8)), changes


@settings(max_examples=30, deadline=None)
@given(
    logs(),
    st.sampled_from([-(10**17), 0, 1_000_000_000, LAST_YEAR - 30_000_000, 9 * 10**18]),
    st.sampled_from([0.3, *ENDS]),
)
def test_extreme_rewards_floors_clocks_and_features_are_shown(
    log: tuple[list[float], dict[str, Any]], start: int, age: float
) -> None:
    rewards, changes = log
    with TemporaryDirectory() as folder:
        service = played(Path(folder), rewards, start, age, **changes)
        ends = labels(shown(service))
        service.store.close()
    assert len(set(ends)) == len(ends) >= 3


@pytest.mark.parametrize("rewards", [[1e50], [1e50, -1e50], [1e-300], [5e-324, 0.0], [1e16]])
def test_many_extreme_rewards_are_shown(tmp_path: Path, rewards: list[float]) -> None:
    """So many that there are intervals without a range."""
    assert "no interval yet" not in shown(played(tmp_path, rewards * 120))


def test_labels_of_large_and_small_rewards_can_be_told_apart(tmp_path: Path) -> None:
    for name, rewards, expected in (
        ("large", [0.0, 1e50], ["1e+50", "7.5e+49", "5e+49", "2.5e+49", "0"]),
        ("usual", [0.0, 1.0], ["1", "0.75", "0.5", "0.25", "0"]),
        ("small", [0.0, 1e-20], ["1e\N{MINUS SIGN}20", "7.5e\N{MINUS SIGN}21", "5e\N{MINUS SIGN}21",
                                 "2.5e\N{MINUS SIGN}21", "0"]),
    ):  # fmt: skip
        (tmp_path / name).mkdir()
        assert labels(shown(played(tmp_path / name, rewards, rewards=rewards))) == expected
