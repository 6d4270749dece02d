"""The client: what it sends, what it sends again, and what it raises."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from hybandits.service import client as clients
from hybandits.service.client import AsyncClient, Client, Decided, ServiceError
from tests.support.bandits import USER, served, writer


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "_pause", lambda attempt: 0.0)


@pytest.mark.slow
def test_a_round_with_a_real_service(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web:
        with Client(str(web.base_url)) as client:
            client.put_arm("a/ä", {"price": 1})
            client.put_arm("b", {"price": 2})
            decided = client.decide(USER)
            assert decided.arm in ("a/ä", "b")
            assert client.reward(decided.event_id, 1.0)
            assert client.decision(decided.event_id)["reward"] == 1.0
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
                assert (await client.decision(decided.event_id))["arm"] == "c"
                await client.retire_arm("c")
                assert len(await client.arms()) == 3

        asyncio.run(work())


@pytest.mark.slow
def test_ids_of_all_kinds_reach_the_service(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web, Client(str(web.base_url)) as client:
        for id in (".", "..", "a.b", "../arms", "?", "#"):
            client.put_arm(id, {"price": 1})
            assert client.decide(USER, [id], event_id=id).arm == id
            assert client.decision(id)["event_id"] == id
            client.retire_arm(id)
        assert not any(arm["active"] for arm in client.arms())
        with pytest.raises(ServiceError, match="length >= 1"):
            client.decide(USER, event_id="")


def test_batches_and_promote(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "bold", "policy": "HyThompson"}])
    with served(service) as web:
        with Client(str(web.base_url)) as client:
            client.put_arm("a", {"price": 1})
            first, second = client.decide_batch([USER, {}], event_ids=["first", "second"])
            assert isinstance(first, Decided)
            assert first.event_id == "first"
            assert isinstance(second, ServiceError)
            assert (second.status, second.problem["field"]) == (422, "user.age")
            learned, unknown = client.reward_batch({first.event_id: 1.0, "nobody": 0.0})
            assert learned is True
            assert isinstance(unknown, ServiceError)
            client.promote("bold")

        async def work() -> None:
            async with AsyncClient(str(web.base_url)) as client:
                (decided,) = await client.decide_batch([USER], ["a"])
                assert isinstance(decided, Decided)
                assert await client.reward_batch({decided.event_id: 1.0}) == [True]
                await client.promote("live")

        asyncio.run(work())
    assert service.state.live == "live"


def test_arms_are_not_sent_again_where_nobody_knows_what_became_of_them() -> None:
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.method)
        if len(seen) == 1:
            return httpx.Response(503, json={})  # the service says that it could not
        if len(seen) == 2:
            raise httpx.ConnectError("nobody listens", request=request)
        raise httpx.ReadTimeout("slow", request=request)

    with Client("http://service", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.put_arm("a")
        assert seen == ["PUT"] * 3
        with pytest.raises(httpx.ReadTimeout):
            client.promote("bold")
        assert seen[3:] == ["POST"]
    tried: list[str] = []

    def proxy(request: httpx.Request) -> httpx.Response:
        tried.append(request.method)
        return httpx.Response(502 if len(tried) % 2 else 504, json={})

    with Client("http://service", deadline=0.3, transport=httpx.MockTransport(proxy)) as client:
        for _ in range(2):
            with pytest.raises(ServiceError, match="no reason given"):
                client.retire_arm("a")
        assert tried == ["DELETE"] * 2
        with pytest.raises(ServiceError):
            client.decide(USER)
        assert len(tried) > 3
    with Client("htp://service") as client, pytest.raises(httpx.UnsupportedProtocol):
        client.decide(USER)


def test_what_is_no_service_is_said_plainly() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, text="<html>hello"))
    with (
        Client("http://service", transport=transport) as client,
        pytest.raises(ServiceError, match="the answer is '<html>hello', not JSON"),
    ):
        client.decide(USER)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_call_ends_by_its_deadline(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a socket that takes connections and never answers."""
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        client, began = kind(url, deadline=0.5), time.monotonic()
        with pytest.raises(httpx.TransportError):
            client.decide(USER) if kind is Client else asyncio.run(client.decide(USER))
        assert 0.5 <= time.monotonic() - began < 2
    with pytest.raises(ValueError, match="deadline must be positive, got 0"):
        kind(url, deadline=0)


def echo(seen: list[Any]) -> Client:
    """A client of a service that keeps what it was sent."""

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(json.loads(request.content))
        return httpx.Response(201, json={"arm": "a", "event_id": "e", "propensity": 1, "version": 1, "learned": True})

    return Client("http://service", transport=httpx.MockTransport(answer))


def test_numbers_of_numpy_are_numbers() -> None:
    seen: list[Any] = []
    user = {"i": np.int64(3), "f": np.float32(0.5), "b": np.bool_(True), "s": np.str_("x"), "z": np.array(2.0)}
    with echo(seen) as client:
        client.decide(user, np.array(["a", "b"]), event_id="e")  # type: ignore[arg-type]
        client.reward("e", np.float32(0.5))  # type: ignore[arg-type]
        client.put_arm("a", {"price": np.int32(7)})
    assert seen == [
        {"event_id": "e", "user": {"i": 3, "f": 0.5, "b": True, "s": "x", "z": 2.0}, "candidates": ["a", "b"]},
        {"event_id": "e", "reward": 0.5},
        {"features": {"price": 7}},
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (({"age": np.array([1, 2])},), TypeError, r"cannot send array\(\[1, 2\]\) \(ndarray\): convert it"),
        (({"age": float("nan")},), ValueError, "NaN or infinite, which JSON does not have"),
        (({}, "a"), TypeError, r"candidates must be a list of ids, got 'a': pass \['a'\]"),
    ],
)
def test_values_that_json_does_not_have_are_refused_before_sending(
    arguments: Any, error: type[Exception], words: str
) -> None:
    seen: list[Any] = []
    with echo(seen) as client, pytest.raises(error, match=words):
        client.decide(*arguments)
    assert seen == []


def test_a_token_may_end_with_a_line_break() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=[request.headers["authorization"]]))
    with Client("http://service", token="abc\n", transport=transport) as client:
        assert client.arms() == ["Bearer abc"]
