"""A service's log as a log of the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hybandits.evaluation import evaluate
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Id, LogError, Tables
from hybandits.service.commands import GiveReward
from hybandits.service.export import NO_REWARD, OPEN, export
from hybandits.service.writer import Writer
from tests.support.bandits import (
    CLICKS,
    FILE,
    Clock,
    decide,
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
            reward(service, f"e{i}", float((i * 7 + ord(answer.body.arm)) % 5 == 0))
        if clock is not None:
            clock.advance(1)


@pytest.mark.slow
def test_an_exported_log_can_be_evaluated(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b", "c")
    play(service, 0, 50)
    retire(service, "b")
    put(service, "d")
    play(service, 50, 200)
    log, problems = export(service.store, tmp_path / "log")
    assert (log.rounds, problems.skipped) == (150, 50)
    assert problems.reasons[NO_REWARD] == 50
    assert sum(batch.reward.sum() for batch in log.batches()) == service.state.summary.reward.total
    evaluation = evaluate(View(log), {"logged": "logged", "uniform": "uniform"}, estimators=("ips",))
    assert evaluation.of("logged", "ips").value == pytest.approx(service.state.summary.reward.total / 150)


def test_open_decisions_are_left_out(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b", "c")
    play(service, 0, 30, clock)
    service.serve([])
    log, problems = export(service.store, tmp_path / "log")
    assert (log.rounds, problems.reasons[OPEN]) == (21, 9)  # the first of the nine closes a second later
    rewards = np.concatenate([batch.reward for batch in log.batches()])
    assert rewards.sum() == service.state.summary.reward.total


def test_what_counted_when_a_decision_was_closed_is_exported(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, {**FILE, "rewards": "clicks", "window": "10s"}, clock=clock)
    put(service, "a", "b")
    for i in range(3):
        decide(service, f"e{i}")
    outcome_of(service, GiveReward("e0", 2.0))
    clock.advance(11)
    outcome_of(service, GiveReward("e1", 5.0))  # late
    log, _ = export(service.store, tmp_path / "log")
    rewards = np.concatenate([batch.reward for batch in log.batches()])
    assert sorted(rewards) == [0.0, 0.0, 2.0]
    assert rewards.sum() == service.state.summary.reward.total


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


def test_a_log_without_rounds_says_why(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    with pytest.raises(LogError, match="the log has no decisions"):
        export(service.store, tmp_path / "out")
    decide(service, "e")
    with pytest.raises(LogError, match="none whose window has passed"):
        export(service.store, tmp_path / "out")
    clock.advance(11)
    service.serve([])
    assert export(service.store, tmp_path / "out")[0].rounds == 1
