"""The routes, asked over HTTP without a network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hybandits.service.access import Tokens
from hybandits.service.api import LARGEST_BODY, application
from hybandits.service.log import StoreError
from hybandits.service.model_state import fingerprint
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, USER, Clock, decide, put, reward, served, writer

PROBLEM = "application/problem+json"


@pytest.fixture
def service(tmp_path: Path) -> Writer:
    return writer(tmp_path)


@contextmanager
def with_arms(service: Writer) -> Iterator[httpx.Client]:
    with served(service) as client:
        for i, arm in enumerate("abc"):
            assert client.put(f"/v1/arms/{arm}", json={"features": {"price": i / 2}}).status_code == 201
        yield client


@pytest.fixture
def web(service: Writer) -> Iterator[httpx.Client]:
    with with_arms(service) as client:
        yield client


@pytest.fixture(scope="module")
def shared_web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A service for requests that change nothing that others see."""
    with with_arms(writer(tmp_path_factory.mktemp("shared"))) as client:
        yield client


def test_decide_reward_look(web: httpx.Client) -> None:
    decided = web.post("/v1/decisions", json={"event_id": "e", "user": USER})
    assert decided.status_code == 201
    body = decided.json()
    assert body["arm"] in "abc"
    assert 0 < body["propensity"] <= 1
    assert web.post("/v1/rewards", json={"event_id": "e", "reward": 1}).status_code == 201
    recorded = web.get("/v1/decisions/e").json()
    assert recorded["reward"] == 1
    assert recorded["candidates"] == ["a", "b", "c"]
    assert recorded["arm"] == body["arm"]
    assert sum(recorded["probabilities"].values()) == pytest.approx(1)
    assert recorded["probabilities"][body["arm"]] == body["propensity"]
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
    ("method", "path", "body", "expected"),
    [
        ("POST", "/v1/decisions", {"event_id": 5}, (422, "event_id", 5, "Expected `str | null`, got `int`")),
        ("POST", "/v1/decisions", {"usr": {}}, (422, "usr", {}, "unknown field `usr`")),
        ("POST", "/v1/decisions", {"user": {**USER, "age": "old"}}, (422, "user.age", "old", "expected a number")),
        ("POST", "/v1/decisions", {"user": {"aeg": 1}}, (422, "user.aeg", 1, "(did you mean age?)")),
        ("POST", "/v1/decisions", {"user": USER, "candidates": ["a", 7]}, (422, "candidates", ["a", 7], "got `int`")),
        ("POST", "/v1/decisions", {"user": USER, "candidates": ["z"]}, (422, "candidates", "z", "PUT /v1/arms/{id}")),
        ("POST", "/v1/rewards", {"event_id": "e"}, (422, "reward", None, "missing required field `reward`")),
        ("POST", "/v1/rewards", {"event_id": "e", "reward": 1}, (404, "event_id", "e", "no decision with the event")),
        ("PUT", "/v1/arms/a", {"features": {"price": "x"}}, (422, "features.price", "x", "is 'x' (str)")),
        ("PUT", "/v1/arms/a", {}, (422, "features.price", None, "has no feature 'price'")),
        ("PUT", "/v1/arms/a", {"features": {"price": 1e60}}, (422, "features", {"price": 1e60}, "1e+60")),
        ("POST", "/v1/promote", {"policy": "bold"}, (404, "policy", "bold", "Choose from live.")),
        ("POST", "/v1/decisions/batch", [], (422, "body", [], "Expected `array` of length >= 1")),
        ("GET", "/v1/decisons", None, (404, "path", "/v1/decisons", "(did you mean /v1/decisions?)")),
        ("GET", "/v1/decisions/no", None, (404, "id", "no", "There is no decision with the event id 'no'.")),
        ("GET", "/v1/rewards", None, (405, "method", "GET", "takes POST, got GET")),
        ("DELETE", "/v1/arms/aa", None, (404, "id", "aa", "no arm 'aa' (did you mean a?). GET /v1/arms lists")),
        ("GET", "/v1/decisions/%ff", None, (422, "id", "/v1/decisions/%ff", "is not UTF-8")),
    ],
)  # fmt: skip
def test_problems_name_the_field_the_value_and_the_remedy(
    shared_web: httpx.Client, method: str, path: str, body: Any, expected: tuple[int, str, Any, str]
) -> None:
    status, field, value, words = expected
    answer = shared_web.request(method, path, content=None if body is None else json.dumps(body))
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    problem = answer.json()
    assert (problem["status"], problem["field"], problem["value"]) == (status, field, value)
    assert words in problem["detail"]
    assert problem["title"]


def test_large_bodies_are_refused(web: httpx.Client) -> None:
    answer = web.post("/v1/rewards", content=b" " * (LARGEST_BODY + 1))
    assert (answer.status_code, answer.json()["field"], answer.json()["value"]) == (413, "body", LARGEST_BODY + 1)
    assert "Send smaller batches." in answer.json()["detail"]

    def parts() -> Iterator[bytes]:
        for _ in range(LARGEST_BODY // 100_000 + 2):
            yield b" " * 100_000

    assert web.post("/v1/rewards", content=parts()).status_code == 413


@pytest.mark.parametrize("arm", ["a b", "ä/ö", "<script>", "x" * 200, "日本", "a\x00b", "..", "%2F"])
def test_ids_are_any_text(shared_web: httpx.Client, arm: str) -> None:
    path = "/v1/arms/" + "".join(f"%{byte:02X}" for byte in arm.encode())
    assert shared_web.put(path, json={"features": {"price": 1}}).status_code == 201
    decided = shared_web.post("/v1/decisions", json={"event_id": arm, "user": USER, "candidates": [arm]}).json()
    assert decided["arm"] == arm
    recorded = shared_web.get("/v1/decisions/" + "".join(f"%{byte:02X}" for byte in arm.encode()))
    assert recorded.json()["candidates"] == [arm]
    assert shared_web.delete(path).status_code == 200


@pytest.mark.slow
def test_tokens(service: Writer) -> None:
    tokens = Tokens("token-for-everything", "token-for-the-arms")
    with served(service, tokens=tokens) as web:
        bearer = {
            name: {"authorization": f"Bearer {token}"} for name, token in (("use", tokens.use), ("arms", tokens.manage))
        }
        put = {"url": "/v1/arms/a", "json": {"features": {"price": 1}}}
        assert web.put(**put).status_code == 401
        refused = web.put(**put, headers=bearer["use"])
        assert (refused.status_code, refused.json()["field"]) == (403, "Authorization")
        assert "need the second token" in refused.json()["detail"]
        assert web.put(**put, headers=bearer["arms"]).status_code == 201
        decision = {"url": "/v1/decisions", "json": {"user": USER}}
        assert web.post(**decision).status_code == 401
        for token in bearer.values():
            assert web.post(**decision, headers=token).status_code == 201
            assert web.get("/v1/arms", headers=token).status_code == 200
        assert web.post(**decision, headers={"authorization": f"bEARER {tokens.use}"}).status_code == 201
        for wrong in ("Bearer x", "Basic abc", f"Basic {tokens.use}", "Bearer ä".encode().decode("latin-1")):
            refused = web.post(**decision, headers={"authorization": wrong.encode("latin-1")})
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        for path in ("/v1/arms", "/v1/decisions/x"):
            assert web.get(path).status_code == 401
        assert web.get("/healthz").status_code == 200


def broken() -> Any:
    raise StoreError("The disk is full.")


def test_without_the_token_readiness_has_no_reasons(service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(service, tokens=Tokens("token-for-everything")) as web:
        monkeypatch.setattr(service.store, "writing", broken)
        answer = web.get("/readyz")
        assert answer.status_code == 503
        assert "The disk" not in answer.json()["detail"]
        answer = web.get("/readyz", headers={"authorization": "Bearer token-for-everything"})
        assert (answer.status_code, answer.json()["detail"]) == (503, "The disk is full.")
        monkeypatch.undo()
        assert web.get("/readyz").status_code == 200


def test_arms_that_another_process_has_put_are_listed(web: httpx.Client, tmp_path: Path) -> None:
    other = writer(tmp_path)
    put(other, "from elsewhere")
    assert [arm["arm"] for arm in web.get("/v1/arms").json()] == ["a", "b", "c", "from elsewhere"]


def test_looking_says_whether_the_reward_is_learned(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a")
    for event in ("in time", "late", "none"):
        decide(service, event)
    reward(service, "in time", 1)
    clock.advance(60)
    reward(service, "late", 1)
    decide(service, "open")
    reward(service, "open", 1)
    with served(service) as web:
        recorded = [web.get(f"/v1/decisions/{event}").json() for event in ("in time", "late", "none", "open")]
    parts = ("reward", "learned", "closed", "learned_reward")
    assert [tuple(each[part] for part in parts) for each in recorded] == [
        (1, True, True, 1), (1, False, True, 0), (None, None, True, 0), (1, True, False, None),
    ]  # fmt: skip


@asynccontextmanager
async def running(service: Writer) -> AsyncIterator[httpx.AsyncClient]:
    app = application(service)
    web = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    async with app.router.lifespan_context(app), web as client:
        yield client


def test_stopping_answers_what_was_accepted(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS)

    async def work() -> None:
        async with running(service) as web:
            await web.put("/v1/arms/a", json={"features": {"price": 1}})
            asked = [asyncio.ensure_future(web.post("/v1/decisions", json={"user": USER})) for _ in range(20)]
            await asyncio.sleep(0)
            answers = await asyncio.gather(*asked)
            assert {answer.status_code for answer in answers} == {201}

    asyncio.run(work())
    assert service.store.snapshot(fingerprint()) is not None
