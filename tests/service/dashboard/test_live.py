"""Server-sent events: they come when something has changed, cost one look, and hold up nobody."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from hybandits.service.dashboard import live as module
from hybandits.service.dashboard import view as view_module
from hybandits.service.dashboard.live import Live
from hybandits.service.dashboard.view import View, Views, look
from hybandits.service.problems import Refused
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, put, served, writer


@pytest.fixture
def service(tmp_path: Path) -> Writer:
    return writer(tmp_path, CLICKS)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is shorter in these tests."""
    monkeypatch.setattr(module, "OFTEN", 0.01)
    monkeypatch.setattr(view_module, "OFTEN", 0.0)


async def soon(events: AsyncIterator[bytes]) -> bytes:
    async with asyncio.timeout(30):
        return await anext(events)


@pytest.mark.usefixtures("often")
def test_all_who_watch_are_told_of_changes_and_one_look_is_taken(
    service: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def watched() -> None:
        looks: list[View] = []
        monkeypatch.setattr(view_module, "look", lambda *asked: looks.append(look(*asked)) or looks[-1])
        live = Live(Views(service))
        watchers = [live.watch("view") for _ in range(20)]
        first = [json.loads((await soon(each))[6:]) for each in watchers]
        assert {view["version"] for view in first} == {1}
        put(service, "a")
        second = [json.loads((await soon(each))[6:]) for each in watchers]
        assert {view["version"] for view in second} == {2}
        assert len(looks) == 2
        page = live.watch("page")
        assert "The only arm is active." in json.loads((await soon(page))[6:])
        for each in (*watchers, page):
            await each.aclose()  # type: ignore[attr-defined]
        assert live._watchers == 0
        assert live._task is not None
        await live._task  # nobody watches, so nobody looks

    asyncio.run(watched())


@pytest.mark.usefixtures("often")
def test_those_who_watch_hear_that_it_is_still_there_and_when_it_ends(
    service: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HEARTBEAT", 0.02)

    async def watched() -> None:
        live = Live(Views(service))
        events = live.watch("view")
        heard = {(await soon(events))[:6] for _ in range(20)}  # a beat may come before the first look
        assert heard == {b"data: ", b": stil"}
        live.stop()
        async with asyncio.timeout(30):
            assert [event async for event in events if event.startswith(b"data")] == []

    asyncio.run(watched())


def test_too_many_are_refused(service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WATCHERS", 0)
    with pytest.raises(Refused, match="watch already"):
        Live(Views(service)).watch("view")


@pytest.mark.usefixtures("often")
def test_the_limit_holds_for_those_who_ask_at_the_same_time(service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WATCHERS", 1)

    async def watched() -> None:
        live = Live(Views(service))
        first, second = live.watch("view"), live.watch("view")
        assert (await soon(first)).startswith(b"data: ")
        assert [event async for event in second] == []
        await first.aclose()  # type: ignore[attr-defined]
        assert live._watchers == 0

    asyncio.run(watched())


def test_a_server_ends_though_somebody_watches(service: Writer) -> None:
    """Leaving `served` waits for the server, which waits for its connections."""
    chunks: list[bytes] = []
    begun = threading.Event()

    def read(address: str) -> None:
        with httpx.stream("GET", f"{address}/v1/live", timeout=60) as answer:
            for chunk in answer.iter_bytes():
                chunks.append(chunk)
                begun.set()

    with served(service) as web:
        reader = threading.Thread(target=read, args=(str(web.base_url).rstrip("/"),))
        reader.start()
        assert begun.wait(60)
    reader.join(60)
    assert not reader.is_alive()
    assert chunks[0].startswith(b"data: ")
