"""A client of the service, in ordinary and in asynchronous code.

A request that fails is sent again. For decisions and rewards that is safe: decisions carry the id of their event, which
the client makes where the caller has none, and the service counts every event and every reward once. Arms and promote
have no such ids. After a timeout it is not known whether they were changed, and somebody else may have changed them
since, so they are sent again only if the service has said that it could not do it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx

RETRIES = 7
"""How often a request is sent again before its error is raised: for three to six seconds, in which a server starts."""

AGAIN = (408, 502, 503, 504)
"""Statuses after which a request is sent again."""

TIMEOUT = 15.0
"""Seconds that an attempt may take: longer than the service waits for its store."""

LONGEST_PAUSE = 30.0
"""Seconds that the client waits at most where the service says when to ask again."""


class ServiceError(Exception):
    """The service refused a request; `status` and `problem` are its answer."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail', problem.get('title', 'no reason given'))}")
        self.status, self.problem = status, dict(problem)


class Decided(NamedTuple):
    """A decision, as the service answers it."""

    arm: str
    event_id: str
    propensity: float
    version: int


class _Request(NamedTuple):
    method: str
    path: str
    json: Any = None
    safe: bool = True
    """Whether it may be sent again though nobody knows what became of it."""


def _path(kind: str, its: str) -> str:
    return f"/v1/{kind}/{quote(its, safe='').replace('.', '%2E')}"  # /v1/arms/.. would be /v1


def _decision(user: Mapping[str, Any] | None, candidates: Sequence[str] | None, event_id: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "event_id": secrets.token_hex(12) if event_id is None else event_id,
        "user": dict(user or {}),
    }
    if candidates is not None:
        body["candidates"] = list(candidates)
    return body


def _decide(user: Mapping[str, Any] | None, candidates: Sequence[str] | None, event_id: str | None) -> _Request:
    return _Request("POST", "/v1/decisions", _decision(user, candidates, event_id))


def _decide_many(users: Sequence[Mapping[str, Any]], candidates: Sequence[str] | None) -> _Request:
    return _Request("POST", "/v1/decisions/batch", [_decision(user, candidates, None) for user in users])


def _reward(event_id: str, reward: float) -> _Request:
    return _Request("POST", "/v1/rewards", {"event_id": event_id, "reward": reward})


def _reward_many(rewards: Mapping[str, float]) -> _Request:
    items = [{"event_id": event_id, "reward": reward} for event_id, reward in rewards.items()]
    return _Request("POST", "/v1/rewards/batch", items)


def _put_arm(arm: str, features: Mapping[str, Any] | None) -> _Request:
    return _Request("PUT", _path("arms", arm), {"features": dict(features or {})}, safe=False)


def _retire_arm(arm: str) -> _Request:
    return _Request("DELETE", _path("arms", arm), safe=False)


def _promote(policy: str) -> _Request:
    return _Request("POST", "/v1/promote", {"policy": policy}, safe=False)


def _items(answers: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | ServiceError]:
    return [ServiceError(each["status"], each) if each["status"] >= 400 else each for each in answers]


def _decided_many(answers: Sequence[Mapping[str, Any]]) -> list[Decided | ServiceError]:
    return [each if isinstance(each, ServiceError) else _decided(each) for each in _items(answers)]


def _learned_many(answers: Sequence[Mapping[str, Any]]) -> list[bool | ServiceError]:
    return [each if isinstance(each, ServiceError) else bool(each["learned"]) for each in _items(answers)]


def _answer(response: httpx.Response) -> Any:
    """The JSON of an answer; raises if the request was refused, or if something else than the service answers."""
    try:
        body = response.json()
    except ValueError:
        if response.is_success:
            detail = f"the answer is not JSON but {response.text[:60]!r}. Is this the address of the service?"
            raise ServiceError(response.status_code, {"detail": detail}) from None
        body = {"title": response.text[:200]}
    if response.is_success:
        return body
    raise ServiceError(response.status_code, body if isinstance(body, Mapping) else {"title": str(body)})


def _decided(body: Mapping[str, Any]) -> Decided:
    return Decided(body["arm"], body["event_id"], body["propensity"], body["version"])


def _may_send_again(request: _Request, problem: httpx.TransportError) -> bool:
    """Whether a request that got no answer may be sent again."""
    if isinstance(problem, httpx.UnsupportedProtocol):
        return False
    return request.safe or isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _pause(attempt: int, response: httpx.Response | None = None) -> float:
    """Seconds before the next attempt: longer each time, not the same for all clients, and as long as they are told."""
    told = "" if response is None else response.headers.get("retry-after", "")
    if told.isdigit():
        return min(LONGEST_PAUSE, float(told)) + random.random() / 2
    return float(min(5.0, 0.05 * 2**attempt) * (0.5 + random.random() / 2))


def _settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return {"base_url": url, "headers": headers, "timeout": timeout}


class Client:
    """Decide and reward from ordinary code; threads may share a client.

    Parameters
    ----------
    url : str
        Where the service is, for example ``"http://127.0.0.1:8000"``.
    token : str, optional
        The token that the service asks for.
    timeout : float
        Seconds that an attempt may take.
    transport : httpx.BaseTransport, optional
        How requests are sent, for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(**_settings(url, token, timeout), transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, request: _Request) -> Any:
        for attempt in range(RETRIES + 1):
            last, response = attempt == RETRIES, None
            try:
                response = self._http.request(request.method, request.path, json=request.json)
            except httpx.TransportError as problem:
                if last or not _may_send_again(request, problem):
                    raise
            else:
                if last or response.status_code not in AGAIN:
                    return _answer(response)
            time.sleep(_pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    def decide(
        self,
        user: Mapping[str, Any] | None = None,
        candidates: Sequence[str] | None = None,
        *,
        event_id: str | None = None,
    ) -> Decided:
        """Ask which arm to show this user, among these candidates or all active arms."""
        return _decided(self._send(_decide(user, candidates, event_id)))

    def reward(self, event_id: str, reward: float) -> bool:
        """Give the reward of a decision; returns whether it is learned, which it is not after the window."""
        learned: bool = self._send(_reward(event_id, reward))["learned"]
        return learned

    def decide_many(
        self, users: Sequence[Mapping[str, Any]], candidates: Sequence[str] | None = None
    ) -> list[Decided | ServiceError]:
        """Make up to 1,000 decisions in one request, among the same candidates; those refused are `ServiceError`."""
        return _decided_many(self._send(_decide_many(users, candidates)))

    def reward_many(self, rewards: Mapping[str, float]) -> list[bool | ServiceError]:
        """Give up to 1,000 rewards by their event ids; for each whether it is learned, or why it is refused."""
        return _learned_many(self._send(_reward_many(rewards)))

    def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> None:
        """Make an arm a candidate, or describe it anew."""
        self._send(_put_arm(arm, features))

    def retire_arm(self, arm: str) -> None:
        """Let an arm be no longer a candidate."""
        self._send(_retire_arm(arm))

    def promote(self, policy: str) -> None:
        """Let a challenger decide from now on."""
        self._send(_promote(policy))

    def arms(self) -> list[dict[str, Any]]:
        """All arms, with their features and whether they are active."""
        answer: list[dict[str, Any]] = self._send(_Request("GET", "/v1/arms"))
        return answer

    def look(self, event_id: str) -> dict[str, Any]:
        """What was decided for an event: among whom, with which chances, and its reward."""
        answer: dict[str, Any] = self._send(_Request("GET", _path("decisions", event_id)))
        return answer


class AsyncClient:
    """The same from asynchronous code."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(**_settings(url, token, timeout), transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, request: _Request) -> Any:
        for attempt in range(RETRIES + 1):
            last, response = attempt == RETRIES, None
            try:
                response = await self._http.request(request.method, request.path, json=request.json)
            except httpx.TransportError as problem:
                if last or not _may_send_again(request, problem):
                    raise
            else:
                if last or response.status_code not in AGAIN:
                    return _answer(response)
            await asyncio.sleep(_pause(attempt, response))
        raise AssertionError("the last attempt returns or raises")

    async def decide(
        self,
        user: Mapping[str, Any] | None = None,
        candidates: Sequence[str] | None = None,
        *,
        event_id: str | None = None,
    ) -> Decided:
        """Ask which arm to show this user, among these candidates or all active arms."""
        return _decided(await self._send(_decide(user, candidates, event_id)))

    async def reward(self, event_id: str, reward: float) -> bool:
        """Give the reward of a decision; returns whether it is learned, which it is not after the window."""
        learned: bool = (await self._send(_reward(event_id, reward)))["learned"]
        return learned

    async def decide_many(
        self, users: Sequence[Mapping[str, Any]], candidates: Sequence[str] | None = None
    ) -> list[Decided | ServiceError]:
        """Make up to 1,000 decisions in one request, among the same candidates; those refused are `ServiceError`."""
        return _decided_many(await self._send(_decide_many(users, candidates)))

    async def reward_many(self, rewards: Mapping[str, float]) -> list[bool | ServiceError]:
        """Give up to 1,000 rewards by their event ids; for each whether it is learned, or why it is refused."""
        return _learned_many(await self._send(_reward_many(rewards)))

    async def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> None:
        """Make an arm a candidate, or describe it anew."""
        await self._send(_put_arm(arm, features))

    async def retire_arm(self, arm: str) -> None:
        """Let an arm be no longer a candidate."""
        await self._send(_retire_arm(arm))

    async def promote(self, policy: str) -> None:
        """Let a challenger decide from now on."""
        await self._send(_promote(policy))

    async def arms(self) -> list[dict[str, Any]]:
        """All arms, with their features and whether they are active."""
        answer: list[dict[str, Any]] = await self._send(_Request("GET", "/v1/arms"))
        return answer

    async def look(self, event_id: str) -> dict[str, Any]:
        """What was decided for an event: among whom, with which chances, and its reward."""
        answer: dict[str, Any] = await self._send(_Request("GET", _path("decisions", event_id)))
        return answer
