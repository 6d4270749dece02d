"""The routes, asked over HTTP without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from hybandits.service import api
from hybandits.service.api import LARGEST_BODY, Tokens, application
from hybandits.service.store import StoreError
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, USER, served, writer

PROBLEM = "application/problem+json"


@pytest.fixture
def service(tmp_path: Path) -> Writer:
    return writer(tmp_path)


@pytest.fixture
def web(service: Writer) -> Iterator[httpx.Client]:
    with served(service) as client:
        for i, arm in enumerate("abc"):
            assert client.put(f"/v1/arms/{arm}", json={"features": {"price": i / 2}}).status_code == 201
        yield client


def test_decide_reward_look(web: httpx.Client) -> None:
    decided = web.post("/v1/decisions", json={"event_id": "e", "user": USER})
    assert decided.status_code == 201
    body = decided.json()
    assert body["arm"] in "abc"
    assert 0 < body["propensity"] <= 1
    assert web.post("/v1/rewards", json={"event_id": "e", "reward": 1}).status_code == 201
    looked = web.get("/v1/decisions/e").json()
    assert looked["reward"] == 1
    assert looked["candidates"] == ["a", "b", "c"]
    assert looked["arm"] == body["arm"]
    assert sum(looked["chances"].values()) == pytest.approx(1)
    assert looked["chances"][body["arm"]] == body["propensity"]
    assert web.get("/v1/decisions/other").status_code == 404


def test_batches_have_a_status_for_every_item(web: httpx.Client) -> None:
    items = [{"event_id": f"e{i}", "user": USER} for i in range(3)] + [{"user": {}}, {"users": {}}, 7]
    answers = web.post("/v1/decisions/batch", json=items)
    assert answers.status_code == 200
    assert [answer["status"] for answer in answers.json()] == [201, 201, 201, 422, 422, 422]
    rewards = [{"event_id": "e0", "reward": 1}, {"event_id": "e0", "reward": 1}, {"event_id": "no", "reward": 1}]
    assert [answer["status"] for answer in web.post("/v1/rewards/batch", json=rewards).json()] == [201, 200, 404]
    assert web.post("/v1/decisions/batch", json=[]).status_code == 422
    assert web.post("/v1/decisions/batch", json=[{}] * 1001).status_code == 422


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b'{"event_id": "e", "reward": NaN}', 400),
        (b'{"event_id": "e", "reward": 1e400}', 400),
        (b'{"event_id": "\\ud800", "reward": 1}', 400),
        (b'{"event_id": "\xff", "reward": 1}', 400),
        (b'{"event_id": "e", "reward": "1"}', 422),
        (b'{"event_id": "e", "reward": true}', 422),
        (b'{"event_id": "e", "reward": 1, "more": 2}', 422),
        (b'{"event_id": "", "reward": 1}', 422),
        (json.dumps({"event_id": "e" * 201, "reward": 1}).encode(), 422),
        (b"[" * 100_000, 400),
        (b'{"event_id": "e", "reward": ' + b"1" * 400 + b"}", 400),
        (b'{"event_id": "e", "reward": 1, "reward": 2}', 404),
        (b'{"event_id": "e", "reward": 1}', 404),
    ],
)
def test_bodies_that_cannot_be_used(web: httpx.Client, body: bytes, status: int) -> None:
    answer = web.post("/v1/rewards", content=body)
    assert answer.status_code in (status, 422 if status == 400 else status)
    assert answer.headers["content-type"] == PROBLEM
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["title"]
    assert problem["detail"]


@pytest.mark.parametrize(
    ("age", "status"),
    [(10**18, 422), (10**30, 422), (10**400, 422), (-(10**15), 201), (True, 201), ([], 422), ({}, 422), (5e-324, 201)],
)
def test_numbers_of_all_sizes(web: httpx.Client, age: Any, status: int) -> None:
    answer = web.post("/v1/decisions", json={"user": {**USER, "age": age}})
    assert answer.status_code in (status, 201, 400, 422)
    assert web.post("/v1/decisions", json={"user": USER}).status_code == 201


def test_large_bodies_are_refused(web: httpx.Client) -> None:
    assert web.post("/v1/rewards", content=b" " * (LARGEST_BODY + 1)).status_code == 413

    def parts() -> Iterator[bytes]:
        for _ in range(LARGEST_BODY // 100_000 + 2):
            yield b" " * 100_000

    assert web.post("/v1/rewards", content=parts()).status_code == 413


@pytest.mark.parametrize("arm", ["a b", "ä/ö", "<script>", "x" * 200, "日本", "a\x00b", "..", "%2F"])
def test_ids_are_any_text(web: httpx.Client, arm: str) -> None:
    path = "/v1/arms/" + "".join(f"%{byte:02X}" for byte in arm.encode())
    assert web.put(path, json={"features": {"price": 1}}).status_code == 201
    decided = web.post("/v1/decisions", json={"event_id": arm, "user": USER, "candidates": [arm]}).json()
    assert decided["arm"] == arm
    looked = web.get("/v1/decisions/" + "".join(f"%{byte:02X}" for byte in arm.encode()))
    assert looked.json()["candidates"] == [arm]
    assert web.delete(path).status_code == 200


def test_unknown_paths_and_methods(web: httpx.Client) -> None:
    for method, path, status in (("GET", "/v1/nothing", 404), ("GET", "/v1/rewards", 405), ("PATCH", "/v1/arms", 405)):
        answer = web.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


def test_tokens(service: Writer) -> None:
    tokens = Tokens("token-for-everything", "token-for-the-arms")
    with served(service, tokens) as web:
        bearer = {
            name: {"authorization": f"Bearer {token}"} for name, token in (("use", tokens.use), ("arms", tokens.manage))
        }
        put = {"url": "/v1/arms/a", "json": {"features": {"price": 1}}}
        assert web.put(**put).status_code == 401
        assert web.put(**put, headers=bearer["use"]).status_code == 403
        assert web.put(**put, headers=bearer["arms"]).status_code == 201
        decision = {"url": "/v1/decisions", "json": {"user": USER}}
        assert web.post(**decision).status_code == 401
        assert web.post(**decision, headers=bearer["use"]).status_code == 201
        for wrong in ("Bearer x", "Basic abc", "Bearer ä".encode().decode("latin-1")):
            assert web.post(**decision, headers={"authorization": wrong.encode("latin-1")}).status_code == 403
        for path in ("/v1/arms", "/v1/decisions/x"):
            assert web.get(path).status_code == 401
        assert web.get("/healthz").status_code == 200


def test_the_store_fails_for_a_while(web: httpx.Client, service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise StoreError("The disk is full.")

    assert web.get("/readyz").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(service.store, "writing", broken)
        answer = web.post("/v1/decisions", json={"event_id": "e", "user": USER})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "The disk is full." in answer.json()["detail"]
        assert web.get("/readyz").status_code == 503
    assert web.post("/v1/decisions", json={"event_id": "e", "user": USER}).status_code == 201
    assert web.get("/readyz").status_code == 200


@asynccontextmanager
async def running(service: Writer) -> AsyncIterator[httpx.AsyncClient]:
    app = application(service)
    web = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service")
    async with app.router.lifespan_context(app), web as client:
        yield client


def in_a_loop(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]


def test_fifty_clients_ask_for_one_event(service: Writer) -> None:
    async def work() -> None:
        async with running(service) as web:
            for arm in "abc":
                await web.put(f"/v1/arms/{arm}", json={"features": {"price": 1}})
            ask = [web.post("/v1/decisions", json={"event_id": "e", "user": USER}) for _ in range(50)]
            answers = await asyncio.gather(*ask)
            assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]
            assert len({answer.text for answer in answers}) == 1
            give = [web.post("/v1/rewards", json={"event_id": "e", "reward": 1}) for _ in range(50)]
            assert sorted(answer.status_code for answer in await asyncio.gather(*give)) == [200] * 49 + [201]

    in_a_loop(work)
    assert service.fold.policies["live"].rounds == 1
    assert verify(service.store).decisions == 1


def test_stopping_answers_what_was_accepted(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS)

    async def work() -> None:
        async with running(service) as web:
            await web.put("/v1/arms/a", json={"features": {"price": 1}})
            asked = [asyncio.ensure_future(web.post("/v1/decisions", json={"user": USER})) for _ in range(20)]
            await asyncio.sleep(0)
            answers = await asyncio.gather(*asked)
            assert {answer.status_code for answer in answers} == {201}

    in_a_loop(work)
    assert service.store.snapshot() is not None


def test_ids_may_hold_any_text(web: httpx.Client) -> None:
    for text in ("a/b", "a\nb\n", "\n", "ä €\U0001f600", "..%2F", "?x=1#y"):
        path = f"/v1/arms/{quote(text, safe='')}"
        assert web.put(path, json={"features": {"price": 1}}).status_code == 201
        assert text in [arm["arm"] for arm in web.get("/v1/arms").json()]
        assert web.delete(path).json() == {"arm": text, "active": False}
        web.post("/v1/decisions", json={"event_id": text, "user": USER})
        assert web.get(f"/v1/decisions/{quote(text, safe='')}").json()["event_id"] == text


def test_a_method_that_is_not_there_is_told_which_are(web: httpx.Client) -> None:
    answer = web.post("/v1/arms/a")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, PUT")


def test_a_log_that_cannot_be_read_answers_503(
    web: httpx.Client, service: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("The disk is gone.")

    monkeypatch.setattr(service.store, "find", fail)
    answer = web.get("/v1/decisions/e")
    assert (answer.status_code, answer.json()["detail"]) == (503, "The disk is gone. Ask again.")


def test_a_batch_with_very_many_items_is_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "_invalid", lambda wrong: pytest.fail("an item was read"))
    with served(writer(tmp_path)) as web:
        answer = web.post("/v1/rewards/batch", content=b"[" + b"0," * 1_900_000 + b"0]")
    assert answer.status_code == 422
    assert "1,900,001" in answer.json()["detail"]
