"""A service's log as a log of the project, and what is left when it was archived."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hybandits.evaluation import evaluate
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Id, LogError, Tables
from hybandits.service.admin.archive import archive
from hybandits.service.admin.export import NO_REWARD, OPEN, export
from hybandits.service.admin.verify import verify
from hybandits.service.commands import Decide, GiveReward
from hybandits.service.log.rows import Decision
from hybandits.service.log.sqlite import SqliteStore
from hybandits.service.log.store import StoreError
from hybandits.service.model_state import ModelState
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


def play(service: Writer, first: int, last: int, clock: Clock | None = None) -> None:
    for i in range(first, last):
        answer = decide(service, f"e{i}", user={"age": (i % 7) / 7, "country": "fr" if i % 2 else "de"})
        if i % 4:
            reward(service, f"e{i}", float((i * 7 + ord(answer.body["arm"])) % 5 == 0))
        if clock is not None:
            clock.advance(1)


def test_an_exported_log_can_be_evaluated(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b", "c")
    play(service, 0, 50)
    retire(service, "b")
    put(service, "d")
    play(service, 50, 200)
    log, problems = export(service.store, tmp_path / "log")
    assert (log.rounds, problems.skipped) == (150, 50)
    assert problems.kinds[NO_REWARD] == 50
    assert sum(batch.reward.sum() for batch in log.batches()) == service.fold.summary.reward.total
    evaluation = evaluate(View(log), {"logged": "logged", "uniform": "uniform"}, estimators=("ips",))
    assert evaluation.of("logged", "ips").value == pytest.approx(service.fold.summary.reward.total / 150)


def test_open_decisions_are_left_out(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b", "c")
    play(service, 0, 30, clock)
    service.serve([])
    log, problems = export(service.store, tmp_path / "log")
    assert (log.rounds, problems.kinds[OPEN]) == (21, 9)  # the first of the nine closes a second later
    rewards = np.concatenate([batch.reward for batch in log.batches()])
    assert rewards.sum() == service.fold.summary.reward.total


def test_what_counted_when_a_decision_was_closed_is_exported(tmp_path: Path) -> None:
    clock = Clock()
    content = {**FILE, "window": "10s", "no_reward": 0.0}
    service = writer(tmp_path, content, clock=clock)
    put(service, "a", "b")
    for value, events in ((0.0, 5), (-1.0, 3), (-2.0, 4)):
        service = writer(tmp_path, content, clock=clock, no_reward=value)
        for i in range(events):
            decide(service, f"{value} {i}")
        clock.advance(11)
        service.serve([])
    clock.advance(1)
    outcome_of(service, GiveReward("-1.0 0", 5.0))  # late, so that its decision stays in the log
    log, _ = export(service.store, tmp_path / "log")
    rewards = np.concatenate([batch.reward for batch in log.batches()])
    assert sorted(rewards) == [-2.0] * 4 + [-1.0] * 3 + [0.0] * 5
    assert rewards.sum() == service.fold.summary.reward.total
    archive(service.store, tmp_path / "old", before=clock.now)
    again = Writer(SqliteStore(tmp_path / "log.db"), bandit(content, no_reward=-3.0), clock=clock)
    log, _ = export(again.store, tmp_path / "log of the rest")
    assert [batch.reward.tolist() for batch in log.batches()] == [[-1.0]]


def test_candidates_are_entered_once_unless_an_arm_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = writer(tmp_path)
    put(service, "a", "b", "c")
    play(service, 0, 20)
    put(service, "b", "a", "c")
    play(service, 20, 40)
    entered: list[Id] = []
    arm = Tables.arm

    def noted(tables: Tables, name: Id, vector: FloatArray) -> int:
        entered.append(name)
        return arm(tables, name, vector)

    monkeypatch.setattr(Tables, "arm", noted)
    log, _ = export(service.store, tmp_path / "log")
    assert entered == ["a", "b", "c"] * 2
    assert log.names == ["a", "b", "c", "a", "b"], "c has not changed"
    assert [len(np.unique(batch.pool)) for batch in log.batches()] == [2]


@pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])
def test_an_archived_log_goes_on(tmp_path: Path, content: dict[str, object]) -> None:
    clock = Clock()
    service = writer(tmp_path, content, clock=clock)  # type: ignore[arg-type]
    put(service, "a", "b", "c")
    play(service, 0, 60, clock)
    outcome_of(service, GiveReward("e0", 1.0))  # late, or after the archive's last row
    before = models(service), service.fold.summary
    done = archive(service.store, tmp_path / "old", before=clock.now - 20_000_000)
    assert done.rounds > 0
    again = Writer(SqliteStore(tmp_path / "log.db"), bandit(content), clock=clock)  # type: ignore[arg-type]
    assert (models(again), again.fold.summary) == before
    assert again.store.last() == service.store.last()
    for each in (service, again):
        play(each, 60, 65, clock)
        assert decide(each, "same").body == decide(each, "same").body
    service.serve([])
    assert models(again) == models(service)
    result = verify(again.store)
    assert result.decisions > 20
    assert result.different == 0
    kept = sum(isinstance(row.content, Decision) for row in again.store.rows(0, done.row))
    assert result.archived_model == kept
    assert kept > 0
    based = ModelState.based(again.store)
    assert based.row == done.row
    assert len(list(again.store.rows(0, done.row))) < done.row
    assert outcome_of(again, GiveReward("e1", 1.0)).status == 404
    with pytest.raises(LogError, match="nothing to archive"):
        archive(service.store, tmp_path / "none", before=clock.now - 3600_000_000)
    clock.advance(3600)
    again.serve([])
    archive(again.store, tmp_path / "rest", before=clock.now)
    assert verify(again.store).decisions == 0
    decide(again, "the last")
    assert verify(again.store).decisions == 1


@pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])
def test_a_server_that_was_idle_while_everything_was_archived_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, object]
) -> None:
    def fail(words: str) -> None:
        raise StoreError(words)

    clock = Clock()
    service = writer(tmp_path, content, clock=clock)  # type: ignore[arg-type]
    put(service, "a", "b", "c")
    idle = Writer(SqliteStore(tmp_path / "log.db"), clock=clock)
    play(service, 0, 20, clock)
    clock.advance(3600)
    service.serve([])
    clock.advance(1)
    archive(service.store, tmp_path / "old", before=clock.now)
    with monkeypatch.context() as patch:
        patch.setattr(idle.store, "snapshot", lambda *_: fail("gone for a moment"))
        assert outcome_of(idle, Decide(USER, event_id="new")).status == 503
    assert decide(idle, "new").status == 201
    service.serve([])
    assert models(idle) == models(service)


def test_an_archive_while_rows_are_folded_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows have been read, and what they close is archived before it is looked up."""
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)  # type: ignore[arg-type]
    put(service, "a", "b", "c")
    idle = Writer(SqliteStore(tmp_path / "log.db"), clock=clock)
    play(service, 0, 20)
    clock.advance(3600)
    service.serve([])
    clock.advance(3600)
    decide(service, "later")
    outcomes, archived = idle.store.outcomes, []

    def interrupted(after: int, upto: int) -> object:
        if not archived:
            archived.append(archive(SqliteStore(tmp_path / "log.db"), tmp_path / "old", before=clock.now))
        return outcomes(after, upto)

    monkeypatch.setattr(idle.store, "outcomes", interrupted)
    play(idle, 100, 110)
    service.serve([])
    assert archived
    assert models(idle) == models(service)
    assert idle.fold.summary.reward.n == 20
    assert verify(idle.store).different == 0


def test_a_log_without_rounds_says_why(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    with pytest.raises(LogError, match="the log has no decisions"):
        export(service.store, tmp_path / "out")
    decide(service, "e")
    with pytest.raises(LogError, match="no decision is closed"):
        export(service.store, tmp_path / "out")
    clock.advance(11)
    service.serve([])
    assert export(service.store, tmp_path / "out")[0].rounds == 1
