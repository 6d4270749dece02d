"""Requests that come together, while the writer is busy, and when it has stopped."""

from __future__ import annotations

import asyncio
import fcntl
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hybandits.service import request_batching as gathering_module
from hybandits.service import writer as writing
from hybandits.service.commands import Answer, Command, Decide
from hybandits.service.problems import Refused
from hybandits.service.request_batching import Gathering
from hybandits.service.writer import Outcome, Turn
from tests.support.bandits import USER, put, writer


def watched(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None) -> list[int]:
    """How many commands each transaction has taken; `then` is called in it."""
    sizes: list[int] = []
    serve = Turn.serve

    def counted(turn: Turn, commands: Sequence[Command]) -> list[Outcome]:
        sizes.append(len(commands))
        then()
        return serve(turn, commands)

    monkeypatch.setattr(Turn, "serve", counted)
    return sizes


def test_requests_that_come_together_share_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    sizes = watched(monkeypatch)

    async def ask() -> list[list[Outcome]]:
        gathering = Gathering(service)
        gathering.start()
        return await asyncio.gather(*(gathering.ask([Decide(USER, event_id=f"e{i}")]) for i in range(40)))

    outcomes = asyncio.run(ask())
    service.stop()
    assert sizes == [40]
    answers = [outcome for (outcome,) in outcomes if isinstance(outcome, Answer)]
    assert [answer.body["event_id"] for answer in answers] == [f"e{i}" for i in range(40)]


def test_requests_wait_for_a_busy_writer_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    busy, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        busy.set()
        assert go_on.wait(20)

    sizes = watched(monkeypatch, slowly)

    async def ask() -> None:
        gathering = Gathering(service)
        gathering.start()
        first = asyncio.create_task(gathering.ask([Decide(USER, event_id="first")]))
        assert await asyncio.to_thread(busy.wait, 20)
        others = []
        for i in range(5):
            others.append(asyncio.create_task(gathering.ask([Decide(USER, event_id=f"e{i}")])))
            await asyncio.sleep(0.01)
        assert gathering.waiting == 5
        go_on.set()
        await asyncio.gather(first, *others)
        assert gathering.waiting == 0

    asyncio.run(ask())
    service.stop()
    assert sizes == [1, 5]


def test_requests_that_come_while_a_transaction_waits_for_its_turn_are_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    sizes = watched(monkeypatch)

    async def ask() -> None:
        gathering = Gathering(service)
        gathering.start()
        with (tmp_path / "log.db.lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tasks = []
            for i in range(6):
                tasks.append(asyncio.create_task(gathering.ask([Decide(USER, event_id=f"e{i}")])))
                await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)

    asyncio.run(ask())
    service.stop()
    assert sizes == [6]


def test_a_batch_that_is_too_large_for_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    sizes = watched(monkeypatch)
    monkeypatch.setattr(writing, "MOST_TOGETHER", 10)

    async def ask() -> list[list[Outcome]]:
        gathering = Gathering(service)
        gathering.start()
        batches = [[Decide(USER, event_id=f"{i}-{j}") for j in range(4)] for i in range(5)]
        return await asyncio.gather(*map(gathering.ask, batches))

    outcomes = asyncio.run(ask())
    service.stop()
    assert sizes == [8, 8, 4]
    assert all(isinstance(outcome, Answer) for batch in outcomes for outcome in batch)


def test_a_writer_that_has_stopped_refuses(tmp_path: Path) -> None:
    service = writer(tmp_path)

    async def ask() -> list[list[Outcome]]:
        gathering = Gathering(service)
        gathering.start()
        await asyncio.to_thread(service.stop)
        return [await gathering.ask([Decide(USER)]), await gathering.ask([Decide(USER), Decide(USER)])]

    for outcomes in asyncio.run(asyncio.wait_for(ask(), 20)):
        for outcome in outcomes:
            assert isinstance(outcome, Refused)
            assert outcome.status == 503


def test_other_work_of_the_loop_does_not_keep_a_request_waiting(tmp_path: Path) -> None:
    """Many were answered together, one asks again, and the loop is never idle."""
    service = writer(tmp_path)
    put(service, "a", "b")

    async def ask() -> None:
        gathering = Gathering(service)
        gathering.start()
        await asyncio.gather(*(gathering.ask([Decide(USER)]) for _ in range(20)))
        loop, over = asyncio.get_running_loop(), False

        def work() -> None:
            time.sleep(0.0001)
            if not over:
                loop.call_soon(work)

        loop.call_soon(work)
        await asyncio.wait_for(gathering.ask([Decide(USER)]), 20)
        over = True

    asyncio.run(ask())
    service.stop()


def test_a_writer_that_hangs_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody holds the lock of the log and does not move: requests are refused, and served again afterwards."""
    monkeypatch.setattr(gathering_module, "HANGING", 0.2)
    service = writer(tmp_path)
    put(service, "a")
    lock = open(tmp_path / "log.db.lock", "rb+")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)

    async def ask() -> list[list[Outcome]]:
        gathering = Gathering(service)
        gathering.start()
        answers = [await gathering.ask([Decide(USER, event_id="first")])]
        answers.append(await gathering.ask([Decide(USER, event_id="second")]))
        assert service.trouble is not None
        fcntl.flock(lock, fcntl.LOCK_UN)
        while service.trouble is not None:
            await asyncio.sleep(0.01)
        answers.append(await gathering.ask([Decide(USER, event_id="second"), Decide(USER, event_id="first")]))
        return answers

    first, second, after = asyncio.run(ask())
    service.stop()
    lock.close()
    for (outcome,) in (first, second):
        assert isinstance(outcome, Refused)
        assert (outcome.status, outcome.detail[:35]) == (503, "The log has not answered for 0.2 se")
    assert [outcome.status for outcome in after] == [201, 201]
