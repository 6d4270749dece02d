"""The view of a bandit: in the middle, with many arms, and with extreme rewards."""

from __future__ import annotations

import asyncio
import itertools
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

from hybandits.service import view as view_module
from hybandits.service.commands import Decide, GiveReward, Refused
from hybandits.service.log import StoreError
from hybandits.service.metrics import Metrics, text_of
from hybandits.service.page import page
from hybandits.service.sqlite import SqliteStore
from hybandits.service.view import ARMS, POINTS, View, Views, make_view
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, FILE, USER, Clock, decide, outcome_of, put, retire, reward, served, writer


def played(path: Path, *arms: str, rounds: int = 60, seconds: float = 0.5) -> Writer:
    """A service whose every second decision for its first arm, and no other, was rewarded."""
    clock = Clock()
    service = writer(
        path, CLICKS, clock=clock, challengers=[{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}]
    )
    put(service, *arms)
    for i in range(rounds):
        clock.advance(seconds)
        (answer,) = service.serve([Decide(USER, event_id=str(i))])
        if answer.body.arm == arms[0] and i % 2:  # type: ignore[union-attr]
            service.serve([GiveReward(str(i), 1.0)])
    clock.advance(20)
    service.serve([])
    return service


def test_in_the_middle(tmp_path: Path) -> None:
    service = played(tmp_path, "a", "b", "c")
    retire(service, "c")
    view = make_view(service)
    assert (view.decisions, view.rewards, view.open, view.behind) == (60, 60, 0, 0)
    assert (view.active_arms, view.known_arms) == (2, 3)
    assert sum(arm.decisions for arm in view.arms) == 60
    assert sum(arm.share for arm in view.arms) == pytest.approx(1)
    assert {arm.arm for arm in view.arms if not arm.active} == {"c"}
    assert [each.name for each in view.challengers] == ["bold"]
    assert view.reward.low < view.reward.mean < view.reward.high  # type: ignore[operator]
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view


@pytest.mark.slow
def test_of_many_arms_the_most_decided_are_seen(tmp_path: Path) -> None:
    view = make_view(played(tmp_path, *(f"arm {i}" for i in range(60)), rounds=200))
    counts = [arm.decisions for arm in view.arms]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == ARMS
    assert len(view.curves.ends) <= POINTS


def test_a_view_is_computed_once_for_all(tmp_path: Path) -> None:
    now = 0.0
    service = writer(tmp_path, CLICKS)

    async def work() -> None:
        nonlocal now
        views = Views(service, clock=lambda: now)
        first = await views.newest()
        put(service, "a")
        assert await views.newest() is first  # it is not old
        now += 2
        assert (await views.newest()).version == 2
        service.trouble, service.failures = "The disk is full.", 3
        now += 2
        assert ((await views.newest()).trouble, (await views.newest()).failures) == ("The disk is full.", 3)

    asyncio.run(work())


def test_refused_requests_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "OFTEN", 0.0)
    with served(writer(tmp_path, CLICKS)) as web:
        assert web.get("/v1/view").json()["refusals"] == {}
        for _ in range(2):
            web.post("/v1/decisions", json={"users": {}})
        web.get("/nowhere")
        assert web.get("/v1/view").json()["refusals"] == {"404": 1, "422": 2}


def test_what_other_servers_have_written_is_seen(tmp_path: Path) -> None:
    one, other = writer(tmp_path, CLICKS), writer(tmp_path, CLICKS)

    async def work() -> None:
        views = Views(other, clock=itertools.count(0, 100).__next__)
        assert (await views.newest()).version == 1
        put(one, "a")
        assert (await views.newest()).version == 2

    other.start()
    asyncio.run(work())
    other.stop()
    one.store.close()
    other.store.close()


def test_a_log_that_cannot_be_read_is_trouble_though_nobody_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = writer(tmp_path, CLICKS)

    def gone(*_: object) -> None:
        raise StoreError("The log is gone.")

    async def work() -> None:
        views = Views(service, clock=itertools.count(0, 100).__next__)
        assert (await views.newest()).trouble is None
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, "_fetch", gone)
            view = await views.newest()
            assert (view.behind, view.trouble) == (None, "The log is gone.")
            assert "Cannot write" in page(view)

    service.start()
    asyncio.run(work())
    service.stop()
    service.store.close()


@pytest.mark.slow
@pytest.mark.parametrize("rewards", [[1e50, -1e50], [5e-324, 0.0], [1e16]])
def test_extreme_rewards_are_shown(tmp_path: Path, rewards: list[float]) -> None:
    service = writer(tmp_path, {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}]})
    put(service, "a", "b")
    for i, value in enumerate(rewards * 120):
        service.serve([Decide(USER, event_id=str(i)), GiveReward(str(i), value)])
    view = make_view(service)
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view
    assert b"hybandits_policy_reward_mean" in text_of({"page": (Metrics(service), view)})
    html = page(view)
    assert "no interval yet" not in html
    assert not re.search(r"\b(nan|inf)\b", html)


def clicked(service: Writer, rounds: int, *, zeros: bool) -> View:
    """The view after decisions between arms of which "a" is clicked more often; the others are reported or not."""
    random = np.random.default_rng(3)
    for i in range(rounds):
        answer = decide(service, str(i))
        click = random.random() < (0.6 if answer.body.arm == "a" else 0.1)
        if click or zeros:
            reward(service, str(i), float(click))
        service.clock.advance(1)  # type: ignore[attr-defined]
    return make_view(service)


@pytest.mark.slow
def test_a_client_that_only_reports_clicks_is_warned_and_sees_no_number(tmp_path: Path) -> None:
    service = writer(tmp_path, policy="EpsilonGreedy:policy=Greedy,epsilon=0.1", range=[0, 1])
    put(service, "a", "b", "c")
    view = clicked(service, 400, zeros=False)
    assert {each.code for each in view.warnings} >= {"equal_rewards", "missing_rewards"}
    assert view.uniform.difference.mean is None
    assert all(each.text in page(view) for each in view.warnings if '"' not in each.text)


@pytest.mark.slow
def test_the_gain_is_the_difference_of_the_numbers_beside_it(tmp_path: Path) -> None:
    service = writer(tmp_path, range=[0, 1])
    put(service, "a", "b", "c")
    view = clicked(service, 300, zeros=True)
    assert view.warnings == []
    value, difference = view.uniform.value, view.uniform.difference
    assert None not in (value.mean, difference.mean)
    assert difference.mean == pytest.approx(value.mean - view.reward.mean)  # type: ignore[operator]
    assert view.reward.n == value.n == difference.n == 300


def test_decisions_without_a_reward_are_noticed_once_they_are_old(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, clock=clock)
    put(service, "a", "b")
    for i in range(400):
        decide(service, str(i))
        clock.advance(1)
        if i % 3:
            reward(service, str(i), i / 7)
    for seconds, warned in ((0, True), (-300, False)):
        service.clock = lambda seconds=seconds: clock.now + seconds * 1_000_000  # type: ignore[misc]
        assert ["missing_rewards" in each.code for each in make_view(service).warnings] == [True] * warned


def test_values_without_a_column_are_counted_and_strict_refuses_them(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    for i, country in enumerate(["de", "4", "4", "it"]):
        decide(service, str(i), user={"age": 1.0, "country": country})
    counts = {(each.feature, each.value): each.count for each in make_view(service).fallbacks}
    assert counts == {("user.country", '"4"'): 2, ("user.country", '"it"'): 1}
    outcome = outcome_of(service, Decide({"age": 1.0, "country": 4}, event_id="number"))
    assert isinstance(outcome, Refused)
    assert "4 (int), but its categories are of type str" in outcome.detail
    assert "<bdi>user.country</bdi>" in page(make_view(service))
    strict = writer(tmp_path, strict=True)
    outcome = outcome_of(strict, Decide({"age": 1.0, "country": "dee"}, event_id="x"))
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.field, outcome.value) == (422, "user.country", "dee")
    assert "did you mean de" in outcome.detail
    assert decide(strict, "y").status == 201
