"""Segments, warnings that call for somebody, and the webhook that is told of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from msgspec.structs import replace

from hybandits.service.alerts import Alerts
from hybandits.service.model_state import ModelState
from hybandits.service.page import page
from hybandits.service.sqlite import SqliteStore
from hybandits.service.view import Warning, make_view
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, Clock, bandit, decide, put, reward, writer

SEGMENTED = {**CLICKS, "segments": ["country"]}


def codes(service: Writer) -> list[str]:
    return [each.code for each in make_view(service).warnings]


def visited(service: Writer, clock: Clock, rounds: int = 300, *, country: str = "", rate: float = 0.5) -> None:
    random = np.random.default_rng(2)
    for i in range(rounds):
        land = country or ["de", "fr", "it"][i % 3]
        event = f"{service.state.row} {i}"
        decided = decide(service, event, user={"age": 0.1, "country": land}).body
        if random.random() < (rate if land == "de" and decided.arm == "a" else rate / 5):
            reward(service, event, 1.0)
        clock.advance(1)
    clock.advance(20)
    service.serve([])


@pytest.mark.slow
def test_segments_add_up_and_say_how_many_are_compared(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, SEGMENTED, clock=clock)
    put(service, "a", "b", "c")
    visited(service, clock, 900)
    view = make_view(service)
    assert [(each.feature, each.value) for each in view.segments] == [
        ("country", "de"), ("country", "fr"), ("country", "other"),
    ]  # fmt: skip
    assert [each.decisions for each in view.segments] == [300] * 3
    assert sum(each.share for each in view.segments) == pytest.approx(1)
    means = [each.reward.mean * each.reward.n for each in view.segments]  # type: ignore[operator]
    assert sum(means) == pytest.approx(view.reward.mean * view.reward.n)  # type: ignore[operator]
    german = view.segments[0]
    assert german.gain.low < german.gain.mean < german.gain.high  # type: ignore[operator]
    assert german.reward.high - german.reward.low > view.reward.high - view.reward.low  # type: ignore[operator]
    assert "3 segments are compared" in page(view)
    assert ModelState.restored(service.store).summary == service.state.summary
    changed = Writer(SqliteStore(tmp_path / "log.db"), bandit(CLICKS), clock=clock)
    assert make_view(changed).segments == []
    with pytest.raises(ValueError, match=r"segments names 'contry', .* \(did you mean country\?\)"):
        bandit(CLICKS, segments=["contry"])


@pytest.mark.slow
def test_rewards_that_stay_away_are_noticed(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    visited(service, clock)
    assert "no_rewards" not in codes(service)
    visited(service, clock, rate=0.0)
    assert "no_rewards" in codes(service)
    visited(service, clock)
    assert "no_rewards" not in codes(service)


def test_unknown_values_are_noticed_when_they_are_many(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    visited(service, clock, 60)
    assert "unknown_values" not in codes(service)
    visited(service, clock, 300, country="it")
    assert "unknown_values" in codes(service)


def test_a_policy_that_loses_and_a_full_disk_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock, policy="EpsilonGreedy:policy=Greedy,epsilon=0.1", floor=0.5)
    put(service, "a", "b")
    for i in range(400):  # whatever the policy likes earns nothing, and what it seldom shows does
        decided = decide(service, f"e{i}").body
        if decided.propensity < 0.5:
            reward(service, f"e{i}", 1.0)
    clock.advance(20)
    service.serve([])
    assert "gain_below_zero" in codes(service)
    monkeypatch.setattr(SqliteStore, "free", lambda self: 10_000_000)
    assert "has 10 MB left" in make_view(service).warnings[-1].text


def test_a_webhook_is_told_once_and_again_if_it_did_not_answer(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS, webhook="https://example.org/alerts")
    got: list[Any] = []
    status = 500

    def answer(request: httpx.Request) -> httpx.Response:
        got.append((str(request.url), json.loads(request.content)))
        return httpx.Response(status)

    async def work() -> None:
        nonlocal status
        alerts, view = Alerts(), make_view(service)
        wrong = replace(view, warnings=[Warning("disk", "The disk is full.")])
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as web:
            await alerts.send([view], web)
            assert got == []
            await alerts.send([wrong], web)
            status = 204
            for each in (wrong, wrong, view, view):
                await alerts.send([each], web)

    asyncio.run(work())
    raised = {"bandit": "page", "raised": [{"code": "disk", "text": "The disk is full."}], "cleared": []}
    cleared = {"bandit": "page", "raised": [], "cleared": ["disk"]}
    assert got == [("https://example.org/alerts", each) for each in (raised, raised, cleared)]
