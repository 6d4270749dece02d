"""The client: what it sends, what it sends again, and what it raises."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest

from hybandits.service import client as clients
from hybandits.service.client import AsyncClient, Client, ServiceError
from tests.support.bandits import USER, served, writer


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_pause", lambda attempt: 0.0)


def test_a_round_with_a_real_service(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web:
        with Client(str(web.base_url)) as client:
            client.put_arm("a/ä", {"price": 1})
            client.put_arm("b", {"price": 2})
            decided = client.decide(USER)
            assert decided.arm in ("a/ä", "b")
            assert client.reward(decided.event_id, 1.0)
            assert client.look(decided.event_id)["reward"] == 1.0
            client.retire_arm("b")
            assert [arm["active"] for arm in client.arms()] == [True, False]
            assert client.decide(USER, ["a/ä"], event_id="my own").event_id == "my own"
            with pytest.raises(ServiceError, match="409: The event 'my own' was decided for another user") as refused:
                client.decide(USER, event_id="my own")
            assert refused.value.status == 409

        async def work() -> None:
            async with AsyncClient(str(web.base_url)) as client:
                await client.put_arm("c", {"price": 3})
                decided = await client.decide(USER, ["c"])
                assert decided.arm == "c"
                assert await client.reward(decided.event_id, 0.0)
                assert (await client.look(decided.event_id))["arm"] == "c"
                await client.retire_arm("c")
                assert len(await client.arms()) == 3

        asyncio.run(work())


def failing(times: int, seen: list[dict[str, object]]) -> httpx.MockTransport:
    """A service that fails so many times in different ways before it answers."""

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        if len(seen) > times:
            body = {"arm": "a", "event_id": seen[-1]["event_id"], "propensity": 0.5, "version": 3}
            return httpx.Response(201, json=body)
        if len(seen) % 2:
            raise httpx.ReadTimeout("slow", request=request)
        return httpx.Response(503, json={"title": "not now"})

    return httpx.MockTransport(answer)


def test_what_failed_is_sent_again_with_the_same_id() -> None:
    seen: list[dict[str, object]] = []
    with Client("http://service", transport=failing(4, seen)) as client:
        assert client.decide(USER).arm == "a"
    assert len(seen) == 5
    assert len({json.dumps(body) for body in seen}) == 1

    async def work() -> None:
        again: list[dict[str, object]] = []
        async with AsyncClient("http://service", transport=failing(4, again)) as client:
            await client.decide(USER)
        assert len({str(body["event_id"]) for body in again}) == 1

    asyncio.run(work())


def test_it_gives_up_in_the_end() -> None:
    with (
        Client("http://service", transport=failing(100, [])) as client,
        pytest.raises((ServiceError, httpx.ReadTimeout)),
    ):
        client.decide(USER)


def test_the_token_is_sent() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer secret-of-the-house"
        return httpx.Response(200, json=[])

    with Client("http://service", token="secret-of-the-house", transport=httpx.MockTransport(answer)) as client:
        assert client.arms() == []
