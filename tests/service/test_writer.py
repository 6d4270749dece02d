"""Decisions, rewards, arms and windows, as they come out of the writer."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hybandits.service import model_state
from hybandits.service.commands import Answer, Decide, GiveReward, OfArm, Promote, PutArm, Refused, Retire
from hybandits.service.fingerprint import fingerprint
from hybandits.service.log import ALL, Closed, Decision, StoreError, Transaction, encode_ids
from hybandits.service.log import Reward as RewardRow
from hybandits.service.model_state import ModelState
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
    retire,
    reward,
    writer,
)


def refused(service: Writer, command: Any) -> Refused:
    outcome = outcome_of(service, command)
    assert isinstance(outcome, Refused)
    return outcome


# ------------------------------------------------------------------ decisions


def test_the_same_event_gets_the_same_answer(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b", "c")
    first, again = decide(service, "e1"), decide(service, "e1")
    assert (first.status, again.status) == (201, 200)
    assert first.body == again.body
    assert refused(service, Decide({**USER, "age": 0.4}, event_id="e1")).status == 409
    assert refused(service, Decide(USER, encode_ids(["a", "b"]), "e1")).status == 409
    assert service.state.summary.decisions == 1


def test_events_in_one_transaction_are_told_apart(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    commands = [Decide(USER, event_id="e"), Decide(USER, event_id="e"), GiveReward("e", 1.0), GiveReward("e", 1.0)]
    outcomes = service.serve([*commands, GiveReward("e", 0.5), GiveReward("f", 1.0)])
    assert [outcome.status for outcome in outcomes] == [201, 200, 201, 200, 409, 404]
    assert service.state.policies["live"].rounds == 1


def test_chances_are_never_zero_and_those_that_are_drawn_from(tmp_path: Path) -> None:
    service = writer(tmp_path, floor=0.3)
    put(service, "a", "b", "c")
    chosen = []
    for i in range(300):
        answer = decide(service, f"e{i}")
        chosen.append(answer.body)
        assert answer.body["propensity"] > 0.0999
        reward(service, f"e{i}", 1.0 if answer.body["arm"] == "b" else 0.0)
    learned = chosen[100:]
    share = sum(body["arm"] == "b" for body in learned) / len(learned)
    expected = sum(body["propensity"] if body["arm"] == "b" else 0 for body in learned) / max(
        1, sum(body["arm"] == "b" for body in learned)
    )
    assert abs(share - expected) < 0.12  # 4 standard deviations at share 0.8


def test_default_candidates_are_the_active_arms(tmp_path: Path) -> None:
    service = writer(tmp_path)
    assert refused(service, Decide(USER)).status == 422
    put(service, "a", "b", "c")
    retire(service, "b")
    assert {decide(service, f"e{i}").body["arm"] for i in range(40)} == {"a", "c"}
    assert refused(service, Decide(USER, encode_ids(["a", "b"]))).detail.startswith("The arm 'b' is retired.")
    assert refused(service, Decide(USER, encode_ids(["a", "x"]))).detail.startswith("There is no arm 'x'.")
    assert refused(service, Decide(USER, encode_ids(["a", "a"]))).detail.startswith("The arm 'a' is named twice.")
    put(service, "b")
    assert "b" in {decide(service, f"f{i}").body["arm"] for i in range(40)}


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
        outcome_of(other, OfArm(arm, PutArm({"price": 9.0})))
    for service in (plain, other):
        for i in range(20):
            reward(service, f"e{i}", i % 3)
    assert models(plain) == models(other)


# ------------------------------------------------------------------ windows


def test_with_a_window_nothing_is_learned_before_the_decision_closes(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    for event in ("seen", "clicked"):
        decide(service, event)
    assert reward(service, "clicked", 1.0).status == 201
    assert service.state.policies["live"].rounds == 0
    clock.advance(10.5)
    service.serve([])
    assert service.state.policies["live"].rounds == 2
    assert service.state.summary.reward.total == 1.0
    late = reward(service, "seen", 1.0)
    assert (late.status, late.body["learned"]) == (202, False)
    assert reward(service, "seen", 1.0).status == 200
    assert service.state.policies["live"].rounds == 2
    closes = [row.content for row in service.store.rows(0) if isinstance(row.content, Closed)]
    assert len(closes) == 1


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


def test_a_clock_that_was_ahead_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a")
    clock.advance(4)
    decide(service)
    clock.advance(-4)
    decide(service)
    assert (service.clock_behind, caplog.messages) == (4, [])  # clocks of servers differ a little
    clock.advance(100)
    decide(service)
    clock.advance(-60)
    for _ in range(3):
        decide(service)
        clock.advance(1)
    assert service.clock_behind == 57
    (said,) = caplog.messages
    assert "the clock is 60 seconds behind the log's last row" in said
    clock.advance(57)
    decide(service)
    decide(service)
    assert caplog.messages[1:] == ["the clock has caught up with the log"]
    clock.advance(-60)
    decide(service)
    assert len(caplog.messages) == 3


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


def test_the_longest_window_does_not_end_the_thread(tmp_path: Path) -> None:
    service = writer(tmp_path, {**CLICKS, "window": "200000d"})
    put(service, "a")
    service.start()
    for event in ("first", "second"):
        asyncio.run(service.request([Decide(USER, event_id=event)]))
    service.stop()
    assert service.state.summary.decisions == 2


def test_a_model_that_was_changed_in_part_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second policy fails to learn what the first has learned: the log is right, and the next start folds it."""
    content = {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1"}]}
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


def test_another_seed_is_refused(tmp_path: Path) -> None:
    without = {key: value for key, value in FILE.items() if key != "seed"}
    seed = writer(tmp_path, without).state.bandit.seed
    assert writer(tmp_path, without).state.bandit.seed == seed
    with pytest.raises(ValueError, match="seed is 7 in the file"):
        writer(tmp_path, {**FILE, "seed": 7})


# ------------------------------------------------------------------ starting again


def play(service: Writer, first: int, last: int) -> None:
    for i in range(first, last):
        answer = decide(service, f"e{i}", user={"age": (i % 7) / 7, "country": "fr" if i % 2 else "de"})
        if i % 4:
            reward(service, f"e{i}", float((i * 7 + len(answer.body["arm"])) % 5 == 0))


def test_a_new_process_has_the_same_model(tmp_path: Path) -> None:
    content = {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1"}]}
    service = writer(tmp_path, content)
    put(service, "a", "b", "c")
    play(service, 0, 60)
    plain = ModelState.restored(service.store)
    service.keep_snapshot()
    play(service, 60, 90)
    again = Writer(SqliteStore(tmp_path / "log.db"), bandit(content))
    assert models(again) == models(service)
    assert again.state.summary == service.state.summary
    assert plain is not None
    play(again, 90, 100)
    service.serve([])
    assert models(again) == models(service)  # the first has folded what the second wrote
    result = verify(service.store)
    assert (result.decisions, result.exact, result.different, result.near_ties) == (100, 100, 0, 0)


def test_a_snapshot_of_another_fingerprint_is_not_used(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    play(service, 0, 20)
    snapshot = service.state.snapshot()
    service.store.keep_snapshot(snapshot._replace(fingerprint="elsewhere", content=b"not a model"))
    again = Writer(SqliteStore(tmp_path / "log.db"))
    assert models(again) == models(service)
    again.keep_snapshot()
    assert service.store.snapshot(fingerprint()) == snapshot, "the next start need not fold the log again"


def test_decisions_made_together_are_those_made_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is in the transaction: other candidates, users that cannot be used, an id that comes again."""
    content = {**FILE, "challengers": [{"name": "bold", "policy": "HyThompson:scale=1"}]}
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
            assert {**outcome.body, "version": 0} == {**alone.body, "version": 0}
    assert sum(isinstance(outcome, Refused) for outcome in together) == 27
    assert together[3].body["event_id"] == "t1"
    assert together[0].status == 422, "the first command with its id"
    assert together[-1].body["event_id"] != together[-2].body["event_id"]
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
    with pytest.raises(ValueError, match=r"user\.categorical\.country is given in the log only"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(CLICKS, user={"numeric": ["age"]}))
    with pytest.raises(ValueError, match="policy is 'LinUCB:noise=1' in the file but 'HyIDS' in the log"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(CLICKS, policy="LinUCB:noise=1"))
    with pytest.raises(ValueError, match="cannot get a window later, nor lose it"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit(rewards=[0.0, 1.0]))


def test_a_challenger_is_promoted(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "even", "policy": "Uniform"}])
    put(service, "a", "b", "c", "d")
    assert refused(service, Promote("nobody")).status == 404
    play(service, 0, 10)
    assert service.serve([Promote("even")])[0].status == 200
    answers = [decide(service, f"later{i}").body for i in range(5)]
    assert {answer["propensity"] for answer in answers} == {0.25}
    decision = service.store.find(["later0"])["later0"].decision
    assert decision is not None
    assert isinstance(decision.content, Decision)
    assert decision.content.policy == "even"
    assert list(decision.content.shadows) == ["live"]
    assert verify(service.store).different == 0


def test_a_challenger_that_is_described_anew_begins_anew(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "bold", "policy": "HyThompson:scale=1"}])
    put(service, "a", "b")
    play(service, 0, 10)
    learned = models(service)
    other = bandit(challengers=[{"name": "bold", "policy": "HyThompson:scale=2"}])
    again = Writer(SqliteStore(tmp_path / "log.db"), other)
    assert again.state.policies["bold"].rounds == 0
    assert models(again)["live"] == learned["live"]
    assert again.serve([Promote("bold")])[0].status == 200
    with pytest.raises(ValueError, match=r"the policy 'bold' \(HyThompson:scale=2\) is live in the log"):
        Writer(SqliteStore(tmp_path / "log.db"), bandit())


def test_two_services_on_one_log(tmp_path: Path) -> None:
    one = writer(tmp_path)
    put(one, "a", "b", "c")
    two = Writer(SqliteStore(tmp_path / "log.db"), bandit())
    failures: list[BaseException] = []

    def use(service: Writer, name: str) -> None:
        try:
            for i in range(60):
                answer = decide(service, f"{name}{i}")
                reward(service, f"{name}{i}", float(answer.body["arm"] == "b"))
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=use, args=pair) for pair in ((one, "one"), (two, "two"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    one.serve([])
    two.serve([])
    assert models(one) == models(two)
    assert one.state.summary.reward.n == 120
    assert verify(one.store).different == 0
    rewards = [row.content for row in one.store.rows(0) if isinstance(row.content, RewardRow)]
    assert len({content.event for content in rewards}) == 120


def test_retiring_and_putting_arms(tmp_path: Path) -> None:
    service = writer(tmp_path)
    assert refused(service, OfArm("a", Retire())).status == 404
    outcomes = service.serve(
        [
            OfArm("a", PutArm({"price": 1.0})), OfArm("a", PutArm({"price": 1.0})), OfArm("a", PutArm({"price": 2.0})),
            OfArm("a", Retire()), OfArm("a", Retire()), OfArm("a", PutArm({"price": 2.0})),
        ]
    )  # fmt: skip
    assert [outcome.status for outcome in outcomes] == [201, 200, 200, 200, 200, 200]
    assert service.store.last()[0] == 5  # the bandit, two versions, gone, there again
    assert refused(service, OfArm("b", PutArm({}))).status == 422
    assert refused(service, OfArm("b", PutArm({"price": 1.0, "colour": "red"}))).status == 422


def test_what_was_never_written_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision and its reward come together, and the disk does not take them: both are new when they come again."""
    service = writer(tmp_path)
    put(service, "a", "b")

    def full(*_: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "append", full)
        failed = service.serve([Decide(USER, event_id="e"), GiveReward("e", 1.0)])
    assert [outcome.status for outcome in failed] == [503, 503]
    assert refused(service, GiveReward("e", 1.0)).status == 404
    assert decide(service, "e").status == 201
    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "append", full)
        assert refused(service, GiveReward("e", 1.0)).status == 503
    assert reward(service, "e", 0.0).status == 201
    assert reward(service, "e", 0.0).status == 200
    assert refused(service, GiveReward("e", 1.0)).status == 409


def test_events_are_known_from_memory_and_from_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_state, "REMEMBERED", 2)
    service = writer(tmp_path)
    put(service, "a", "b")
    answers = [decide(service, f"e{i}").body for i in range(9)]
    for i in range(0, 9, 2):
        assert reward(service, f"e{i}", float(i)).status == 201
    for again in (service, writer(tmp_path)):  # which has folded everything, or restored a snapshot of it
        for i in range(9):
            assert decide(again, f"e{i}").body == answers[i]
            if i % 2 == 0:
                assert reward(again, f"e{i}", float(i)).status == 200
                assert refused(again, GiveReward(f"e{i}", -1.0)).status == 409
        assert len(again.state._recent) <= 4
        again.keep_snapshot()
