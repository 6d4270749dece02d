"""The queue of requests: those that come together share a transaction, and nobody waits for a writer that hangs."""

from __future__ import annotations

import asyncio
import fcntl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hybandits.service import writer as writing
from hybandits.service.commands import Answer, Command, Decide, Outcome, Refused
from hybandits.service.writer import Pending, Writer
from tests.support.bandits import USER, decide, put, writer


@pytest.fixture
def service(tmp_path: Path) -> Writer:
    service = writer(tmp_path)
    put(service, "a", "b")
    decide(service, "compiled")
    return service


def watched(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None) -> list[int]:
    """Record how many commands each transaction takes, and call `then` in it."""
    sizes: list[int] = []
    serve = Pending.serve

    def counted(pending: Pending, commands: Sequence[Command]) -> list[Outcome]:
        sizes.append(len(commands))
        then()
        return serve(pending, commands)

    monkeypatch.setattr(Pending, "serve", counted)
    return sizes


def test_requests_wait_for_a_busy_writer_together(service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    busy, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        busy.set()
        assert go_on.wait(20)

    sizes = watched(monkeypatch, slowly)

    async def work() -> list[list[Outcome]]:
        service.start()
        first = asyncio.create_task(service.request([Decide(USER, event_id="first")]))
        assert await asyncio.to_thread(busy.wait, 20)
        others = [asyncio.create_task(service.request([Decide(USER, event_id=f"e{i}")])) for i in range(5)]
        await asyncio.sleep(0.01)
        assert service.waiting == 5
        go_on.set()
        return await asyncio.gather(first, *others)

    outcomes = asyncio.run(work())
    service.stop()
    assert sizes == [1, 5]
    events = [outcome.body.event_id for (outcome,) in outcomes if isinstance(outcome, Answer)]
    assert events == ["first", *(f"e{i}" for i in range(5))]


def test_requests_that_come_while_a_transaction_waits_for_its_turn_are_in_it(
    service: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = watched(monkeypatch)

    async def work() -> None:
        service.start()
        with (tmp_path / "log.db.lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            tasks = []
            for i in range(6):
                tasks.append(asyncio.create_task(service.request([Decide(USER, event_id=f"e{i}")])))
                await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)

    asyncio.run(work())
    service.stop()
    assert sizes == [6]


def test_a_stopped_writer_refuses(service: Writer) -> None:
    async def work() -> list[Outcome]:
        service.start()
        await asyncio.to_thread(service.stop)
        return await service.request([Decide(USER), Decide(USER)])

    outcomes = asyncio.run(asyncio.wait_for(work(), 20))
    assert [outcome.status for outcome in outcomes] == [503, 503]


def test_nobody_waits_for_a_writer_that_hangs(service: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process holds the lock of the log: requests are refused, and served again afterwards."""
    monkeypatch.setattr(writing, "HANGING", 0.2)
    lock = open(tmp_path / "log.db.lock", "rb+")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)

    async def work() -> list[list[Outcome]]:
        service.start()
        answers = [await service.request([Decide(USER, event_id=event)]) for event in ("first", "second")]
        assert service.trouble is not None
        assert service.waiting == 0
        fcntl.flock(lock, fcntl.LOCK_UN)
        while service.trouble is not None:
            await asyncio.sleep(0.01)
        answers.append(await service.request([Decide(USER, event_id="second"), Decide(USER, event_id="first")]))
        return answers

    first, second, after = asyncio.run(work())
    service.stop()
    lock.close()
    for (outcome,) in (first, second):
        assert isinstance(outcome, Refused)
        assert (outcome.status, outcome.detail[:35]) == (503, "The log has not answered for 0.2 se")
    assert [outcome.status for outcome in after] == [201, 201]
