"""Decisions, rewards, arms and windows, as they come out of the writer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hybandits.service import model_state
from hybandits.service.commands import Answer, Decide, GiveReward, Promote, Refused
from hybandits.service.log import ALL, Decision, StoreError, encode_ids
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import (
    CLICKS,
    FILE,
    USER,
    Clock,
    bandit,
    decide,
    models,
    outcome_of,
    put,
    putting,
    reward,
    writer,
)


def refused(service: Writer, command: Any) -> Refused:
    outcome = outcome_of(service, command)
    assert isinstance(outcome, Refused)
    return outcome


# ------------------------------------------------------------------ decisions


def test_events_in_one_transaction_are_told_apart(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    commands = [Decide(USER, event_id="e"), Decide(USER, event_id="e"), GiveReward("e", 1.0), GiveReward("e", 1.0)]
    outcomes = service.serve([*commands, GiveReward("e", 0.5), GiveReward("f", 1.0)])
    assert [outcome.status for outcome in outcomes] == [201, 200, 201, 200, 409, 404]
    assert service.state.policies["live"].rounds == 1


@pytest.mark.slow
def test_chances_are_never_zero_and_those_that_are_drawn_from(tmp_path: Path) -> None:
    service = writer(tmp_path, floor=0.3)
    put(service, "a", "b", "c")
    chosen = []
    for i in range(160):
        answer = decide(service, f"e{i}")
        chosen.append(answer.body)
        assert answer.body.propensity > 0.0999
        reward(service, f"e{i}", 1.0 if answer.body.arm == "b" else 0.0)
    learned = chosen[60:]
    share = sum(body.arm == "b" for body in learned) / len(learned)
    expected = sum(body.propensity if body.arm == "b" else 0 for body in learned) / max(
        1, sum(body.arm == "b" for body in learned)
    )
    assert abs(share - expected) < 0.16  # 4 standard deviations at share 0.8


# ------------------------------------------------------------------ rewards


@pytest.mark.parametrize("value", [1.5, -0.1, float("nan"), float("inf")])
def test_rewards_beyond_the_range_are_refused(tmp_path: Path, value: float) -> None:
    service = writer(tmp_path, CLICKS)
    put(service, "a", "b")
    decide(service, "e")
    assert refused(service, GiveReward("e", value)).status == 422


def test_an_arm_that_has_changed_is_learned_as_it_was(tmp_path: Path) -> None:
    plain, other = (writer(tmp_path / name) for name in ("plain", "other") if (tmp_path / name).mkdir() is None)
    for service in (plain, other):
        put(service, "a", "b")
        for i in range(20):
            decide(service, f"e{i}")
    for arm in "ab":
        outcome_of(other, putting(arm, {"price": 9.0}))
    for service in (plain, other):
        for i in range(20):
            reward(service, f"e{i}", i % 3)
    assert models(plain) == models(other)


# ------------------------------------------------------------------ windows


def test_closing_is_the_same_whatever_the_order_of_clicks(tmp_path: Path) -> None:
    sums = []
    for name, order in (("forth", range(30)), ("back", reversed(range(30)))):
        (tmp_path / name).mkdir()
        clock = Clock()
        service = writer(tmp_path / name, CLICKS, clock=clock)
        put(service, "a", "b", "c")
        for i in range(30):
            decide(service, f"e{i}")
        for i in order:
            if i % 3 == 0:
                reward(service, f"e{i}", 1.0)
        clock.advance(11)
        service.serve([])
        sums.append(models(service))
    assert sums[0] == sums[1]


@pytest.mark.slow
def test_the_thread_closes_decisions_when_nobody_asks(tmp_path: Path) -> None:
    service = writer(tmp_path, {**CLICKS, "window": "1s"}, clock=lambda: time.time_ns() // 1_000)
    put(service, "a", "b")
    decide(service, "e")
    service.start()
    end = time.monotonic() + 60
    while service.state.policies["live"].rounds == 0:
        assert time.monotonic() < end
        time.sleep(0.01)
    service.stop()


def test_a_model_that_was_changed_in_part_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second policy fails to learn what the first has learned; the next start learns the log again."""
    content = {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}]}
    service = writer(tmp_path, content)
    put(service, "a", "b")
    for i in range(5):
        decide(service, f"e{i}")

    def fails(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(service.state.policies["bold"], "learn_batch", fails)
    for i in range(5):
        service.serve([GiveReward(f"e{i}", 1.0)])
        monkeypatch.undo()
    service.stop()
    assert {name: policy.rounds for name, policy in writer(tmp_path, content).state.policies.items()} == {
        "live": 5,
        "bold": 5,
    }


# ------------------------------------------------------------------ starting again


def play(service: Writer, first: int, last: int) -> None:
    for i in range(first, last):
        answer = decide(service, f"e{i}", user={"age": (i % 7) / 7, "country": "fr" if i % 2 else "de"})
        if i % 4:
            reward(service, f"e{i}", float((i * 7 + len(answer.body.arm)) % 5 == 0))


@pytest.mark.slow
def test_decisions_made_together_are_those_made_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is in the transaction: other candidates, users that cannot be used, an id that comes again."""
    content = {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}]}
    service = writer(tmp_path, content)
    put(service, "a", "b", "c")
    play(service, 0, 40)
    named = [ALL, *map(encode_ids, (["a", "c"], ["c", "b"], ["a", "nobody"]))]
    commands = [Decide({"age": i / 100, "country": "fr"}, named[i % 4], f"t{i}") for i in range(100)]
    commands[:0] = [Decide({"age": "old", "country": "fr"}, event_id="t1"), Decide({"age": 1.0}, event_id="x")]
    commands += [Decide(USER), Decide(USER)]
    with monkeypatch.context() as patch:
        patch.setattr(model_state, "TOGETHER", 9 * 3 * (service.state.features.d1 + service.state.features.d2))
        together = service.serve(commands)
    (tmp_path / "again").mkdir()
    again = writer(tmp_path / "again", content)
    put(again, "a", "b", "c")
    play(again, 0, 40)
    for command, outcome in zip(commands, together, strict=True):
        (alone,) = again.serve([command])
        if isinstance(outcome, Refused):
            assert isinstance(alone, Refused)
            assert (outcome.status, outcome.detail) == (alone.status, alone.detail)
            assert outcome.status == 422
        elif command.event_id is not None:
            assert isinstance(alone, Answer)
            assert replace(outcome.body, version=0) == replace(alone.body, version=0)
    assert sum(isinstance(outcome, Refused) for outcome in together) == 27
    assert together[3].body.event_id == "t1"
    assert together[0].status == 422, "the first command with its id"
    assert together[-1].body.event_id != together[-2].body.event_id
    assert verify(service.store).different == 0


# ------------------------------------------------------------------ changes


def test_what_may_change_is_changed_by_a_row_and_the_rest_is_refused(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS)
    put(service, "a", "b")
    changed = Writer(
        SqliteStore(tmp_path / "log.db"),
        bandit(CLICKS, window="20s", floor=0.1, challengers=[{"name": "bold", "policy": "HyThompson"}]),
    )
    assert (changed.state.bandit.window, changed.state.bandit.floor) == (20.0, 0.1)
    assert list(changed.state.policies) == ["live", "bold"]
    assert sorted(changed.state.policies["bold"].arms) == ["a", "b"]
    service.serve([])
    assert list(service.state.policies) == ["live", "bold"]
    with pytest.raises(ValueError, match=r"user is .*'categorical': {}} in the file but"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(CLICKS, user={"numeric": ["age"]}))
    with pytest.raises(ValueError, match="policy is 'LinUCB:noise=1' in the file but 'HyIDS' in the log"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(CLICKS, policy="LinUCB:noise=1"))
    with pytest.raises(ValueError, match="rewards is 'explicit' in the file but 'clicks' in the log"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(range=[0.0, 1.0]))


def test_a_challenger_is_promoted(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "even", "policy": "Uniform"}])
    put(service, "a", "b", "c", "d")
    assert refused(service, Promote("nobody")).status == 404
    play(service, 0, 10)
    assert service.serve([Promote("even")])[0].status == 200
    answers = [decide(service, f"later{i}").body for i in range(5)]
    assert {answer.propensity for answer in answers} == {0.25}
    decision = service.store.find(["later0"])["later0"].decision
    assert decision is not None
    assert isinstance(decision.content, Decision)
    assert decision.content.policy == "even"
    assert list(decision.content.shadows) == ["live"]
    assert verify(service.store).different == 0


def test_what_was_never_written_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision and its reward come together, and the disk does not take them: both are new when they come again."""
    service = writer(tmp_path)
    put(service, "a", "b")

    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", full)
        failed = service.serve([Decide(USER, event_id="e"), GiveReward("e", 1.0)])
    assert [outcome.status for outcome in failed] == [503, 503]
    assert refused(service, GiveReward("e", 1.0)).status == 404
    assert decide(service, "e").status == 201
    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", full)
        assert refused(service, GiveReward("e", 1.0)).status == 503
    assert reward(service, "e", 0.0).status == 201
    assert reward(service, "e", 0.0).status == 200
    assert refused(service, GiveReward("e", 1.0)).status == 409
