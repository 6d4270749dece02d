"""Corrections and erasures: the model becomes what it would have been, once, and verify knows it."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from hybandits.service.commands import Correct, Decide, Erase, GiveReward, Refused
from hybandits.service.export import export
from hybandits.service.log import Decision, Store, StoreError
from hybandits.service.model_state import ModelState
from hybandits.service.rotate import rotate
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import (
    CLICKS,
    FILE,
    Clock,
    ask,
    bandit,
    decide,
    models,
    outcome_of,
    put,
    reward,
    served,
    writer,
)

MODES = pytest.mark.parametrize("content", [FILE, CLICKS], ids=["explicit", "clicks"])
SECRET = 31415.9265


def played(path: Path, content: dict[str, Any], values: dict[int, float | None], *, left_out: str = "") -> Writer:
    """Decisions of ten users, whose rewards are those of their numbers, or `values`; None is no reward."""
    path.mkdir(exist_ok=True)
    clock = Clock()
    service = writer(path, content, clock=clock)
    put(service, "a", "b", "c")
    chance = random.Random(1)
    for i in range(100):
        user = {"age": SECRET if i % 10 == 3 else chance.gauss(0, 1), "country": chance.choice(["de", "fr"])}
        value = values.get(i, chance.random())
        if f"user {i % 10}" != left_out:
            decide(service, f"e{i}", user=user, user_key=f"user {i % 10}")
            if value is not None:
                reward(service, f"e{i}", value)
        clock.advance(1)
    clock.advance(20)
    service.serve([])
    return service


def learned_of(service: Writer) -> tuple[Any, ...]:
    """The rewards that the model has learned, whichever arms were decided."""
    summary = service.state.summary
    return service.state.policies["live"].rounds, summary.reward.n, pytest.approx(summary.reward.total)


def relearn(service: Writer) -> None:
    service.relearn()
    service.serve([])
    assert not service.state.pending


def same_everywhere(service: Writer, store: Store | None = None) -> None:
    """Servers that follow, that start from a snapshot, and from the log alone have the same model."""
    store = store or service.store
    result = verify(store)
    assert (result.different, result.near_ties) == (0, 0), result.examples
    for again in (ModelState.restored(store), ModelState.opened(store)):
        again.apply(store.rows(again.row), store)
        assert {name: policy.to_bytes() for name, policy in again.policies.items()} == models(service)
        assert again.summary == service.state.summary
        assert (again.amended, again.pending, again.erasing) == (
            service.state.amended, service.state.pending, service.state.erasing,
        )  # fmt: skip


@MODES
def test_the_model_becomes_what_it_would_have_been(tmp_path: Path, content: dict[str, Any]) -> None:
    corrected = {7: 0.25, 40: 1.0, 41: None, 90: None}
    service = played(tmp_path / "corrected", content, {})
    before = models(service)
    for i, value in corrected.items():
        answer = ask(service, Correct(f"e{i}", value, correction_id=f"c{i}"))
        assert (answer.status, answer.body.learned) == (201, True)
        assert ask(service, Correct(f"e{i}", value, correction_id=f"c{i}")).status == 200
        other = outcome_of(service, Correct(f"e{i}", 0.5, correction_id=f"c{i}"))
        assert isinstance(other, Refused)
        assert (other.status, other.field) == (409, "correction_id")
    assert (models(service), service.state.pending) == (before, True)
    relearn(service)
    rows = [row for row in service.store.rows(0) if isinstance(row.content, Decision)]
    rewards = {row.number: row for row in rows}
    assert len(rewards) == 100
    plain = played(tmp_path / "plain", content, {})
    values = _values(plain)
    values |= {f"e{i}": value for i, value in corrected.items()}
    expected = [0.0 if value is None else value for value in values.values() if value is not None or content is CLICKS]
    assert learned_of(service) == (len(expected), len(expected), pytest.approx(sum(expected)))
    # The decisions are the same, so a model that is taught the corrected rewards in the same order has the same bytes.
    taught = service.state.bandit.make("live")
    taught.admit(["a", "b", "c"])
    state = service.state
    known = [row.decision for row in rows if values[row.decision.event] is not None or content is CLICKS]
    x, z = state.features.rows([each.user for each in known], state._vectors_of(known))
    taught.learn_batch([each.arm for each in known], x, z, expected)
    assert taught.rounds == state.policies["live"].rounds
    assert state.policies["live"].to_bytes() == taught.to_bytes()
    same_everywhere(service)
    for i in range(20):
        decide(service, f"later{i}", user_key="x")
    same_everywhere(service)


def _values(service: Writer) -> dict[str, float | None]:
    found = service.store.find([f"e{i}" for i in range(100)])
    return {
        event: None if rows.reward is None else rows.reward.content.reward  # type: ignore[union-attr]
        for event, rows in sorted(found.items(), key=lambda each: int(each[0][1:]))
    }


def test_a_correction_before_a_decision_closes_counts_at_once(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    for event in ("more", "none", "added"):
        decide(service, event)
    reward(service, "more", 0.5)
    reward(service, "none", 1.0)
    for event, value in (("more", 0.75), ("none", None), ("added", 0.125)):
        assert not ask(service, Correct(event, value)).body.learned
    assert not service.state.pending
    clock.advance(20)
    service.serve([])
    assert (service.state.summary.reward.n, service.state.summary.reward.total) == (3, 0.875)
    ask(service, Correct("added", 1.0))  # a conversion after the window
    relearn(service)
    assert service.state.summary.reward.total == 1.75
    same_everywhere(service)


@pytest.mark.parametrize(
    ("command", "status", "field"),
    [
        (Correct("nobody", 0.5), 404, "event_id"),
        (Correct("e1", 1.5), 422, "reward"),
        (Correct("e1", float("nan")), 422, "reward"),
        (Correct("e1", 0.5, place=2), 422, "place"),
        (Correct("open", 0.5), 409, "event_id"),
    ],
)
def test_corrections_that_mean_nothing_are_refused(tmp_path: Path, command: Correct, status: int, field: str) -> None:
    service = writer(tmp_path, range=[0, 1])
    put(service, "a")
    decide(service, "e1")
    decide(service, "open")
    reward(service, "e1", 1.0)
    row = service.state.row
    outcome = outcome_of(service, command)
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.field) == (status, field)
    assert service.state.row == row


def erase(service: Writer, key: str) -> int:
    rows = [row.number for row in service.store.rows(0) if isinstance(row.content, Decision) and row.content.key == key]
    count: int = ask(service, Erase(key, rows, service.state.row)).body.decisions
    return count


@pytest.mark.slow
@MODES
def test_an_erased_user_is_gone_from_log_model_and_export(tmp_path: Path, content: dict[str, Any]) -> None:
    service = played(tmp_path / "all", content, {})
    ask(service, Correct("e13", 0.5, correction_id="of user 3"))
    service.keep_snapshot()
    decide(service, "open", user={"age": SECRET, "country": "de"}, user_key="user 3")
    assert erase(service, "user 3") == 11
    for command in (GiveReward("open", 1.0), Correct("e3", 0.5)):
        outcome = outcome_of(service, command)
        assert isinstance(outcome, Refused)
        assert (outcome.status, outcome.field) == (404, "event_id")
    assert verify(service.store).different == 0
    row = service.state.row
    assert (erase(service, "user 3"), service.state.row) == (11, row), "they wait already"
    relearn(service)
    assert erase(service, "user 3") == 0
    plain = played(tmp_path / "without", content, {}, left_out="user 3")
    assert learned_of(service) == learned_of(plain)
    result = verify(service.store)
    assert result.different == 0, result.examples
    assert 0 < result.erased < result.decisions == 90
    for i in range(30):
        decide(service, f"later{i}", user_key="x")
    assert verify(service.store).erased == result.erased
    same_everywhere(service)
    service.store.close()
    for file in (tmp_path / "all").iterdir():
        for secret in (b"31415", b"user 3", b'"e13"'):
            assert secret not in file.read_bytes(), (file.name, secret)
    again = Writer(SqliteStore(tmp_path / "all" / "log.db"), bandit(content), clock=Clock())
    assert decide(again, "e3", user_key="user 3").status == 201, "the id may be used again"
    log, _ = export(again.store, tmp_path / "out")
    assert log.rounds == 90
    assert all((batch.user < 1000).all() for batch in log.batches())


@pytest.mark.slow
def test_the_thread_learns_again_and_other_servers_follow(tmp_path: Path) -> None:
    service = played(tmp_path / "log", FILE, {})
    other = writer(tmp_path / "log", FILE)
    service.start()
    other.state.apply(other.store.rows(other.state.row), other.store)
    with served(other) as web:
        assert web.post("/v1/corrections", json={"event_id": "e5", "reward": None}).status_code == 201
        assert web.post("/v1/erasures", json={"user_key": "user 7"}).json() == {"decisions": 10}
        end = time.monotonic() + 60
        while (
            web.post("/v1/erasures", json={"user_key": "user 7"}).status_code != 200
            or web.get("/v1/view").json()["relearning"]
        ):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert web.get("/v1/decisions/e7").status_code == 404
        assert web.get("/v1/decisions/e5").json()["learned_reward"] is None
    service.stop()
    service.state.apply(service.store.rows(service.state.row), service.store)
    assert models(service) == models(other)
    assert service.state.policies["live"].rounds == 89
    same_everywhere(service)


def test_a_log_is_not_rotated_before_its_corrections_are_learned(tmp_path: Path) -> None:
    service = played(tmp_path / "log", FILE, {})
    ask(service, Correct("e5", 0.0))
    new = SqliteStore(tmp_path / "second.db")
    with pytest.raises(StoreError, match="has corrections or erasures that have not been learned"):
        rotate(service.store, new, since=0)
    relearn(service)
    rotate(service.store, new, since=0)
    again = Writer(new, bandit(FILE), clock=Clock())
    assert models(again) == models(service)
    outcome = outcome_of(again, Correct("e5", 1.0))
    assert isinstance(outcome, Refused)
    assert "learned in the log before" in outcome.detail
    assert outcome_of(again, Decide({"age": 0.0, "country": "de"}, event_id="new")).status == 201


@MODES
def test_what_comes_while_the_log_is_learned_again_waits_for_the_next_time(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    service = played(tmp_path / "log", content, {})
    other = writer(tmp_path / "log", content, clock=service.clock)
    assert erase(service, "user 3") == 10
    service.relearn()
    assert erase(other, "user 4") == 10
    ask(other, Correct("e5", 0.5))
    service.serve([])
    assert service.state.pending, "the later ones"
    for i in range(10):
        decide(service, f"between{i}", user_key="x")
    same_everywhere(service)
    relearn(service)
    for i in range(10):
        decide(service, f"later{i}", user_key="x")
    same_everywhere(service)
    rows = [row for row in service.store.rows(0) if isinstance(row.content, Decision)]
    assert {row.content.key for row in rows} & {"user 3", "user 4"} == set()  # type: ignore[union-attr]
    assert service.state.policies["live"].rounds == 80
    other.state.apply(other.store.rows(other.state.row), other.store)
    assert models(other) == models(service)


def test_rewards_around_the_row_from_which_the_model_is_another_are_learned(tmp_path: Path) -> None:
    """A server that starts applies them together; a row may be erased after it has read it."""
    service = writer(tmp_path)
    put(service, "a", "b")
    for i in range(6):
        decide(service, f"e{i}", user_key="kept")
    decide(service, "gone", user_key="gone")
    for event in ("e0", "gone"):
        reward(service, event, 1.0)
    rows = list(service.store.rows(0))
    ask(service, Correct("e0", 0.25))
    assert erase(service, "gone") == 1
    relearn(service)
    for i in range(1, 6):
        reward(service, f"e{i}", 1.0)
    assert service.state.summary.reward.total == 5.25
    same_everywhere(service)
    late = ModelState(service.state.bandit)
    late.apply([*rows, *service.store.rows(rows[-1].number)], service.store)
    assert late.summary == service.state.summary
