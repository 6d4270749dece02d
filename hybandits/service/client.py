"""A client of the service, in ordinary and in asynchronous code.

Every request that is sent again is safe to be sent again: decisions carry the id of their event, which the client makes
where the caller has none, and the service counts every event and every reward once.
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

RETRIES = 5
"""How often a request is sent again before its error is raised."""

AGAIN = (408, 502, 503, 504)
"""Statuses after which a request is sent again."""


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


def _arm_path(arm: str) -> str:
    return f"/v1/arms/{quote(arm, safe='')}"


def _decide(user: Mapping[str, Any] | None, candidates: Sequence[str] | None, event_id: str | None) -> _Request:
    body: dict[str, Any] = {"event_id": event_id or secrets.token_hex(12), "user": dict(user or {})}
    if candidates is not None:
        body["candidates"] = list(candidates)
    return _Request("POST", "/v1/decisions", body)


def _answer(response: httpx.Response) -> Any:
    """The JSON of an answer; raises if the request was refused."""
    try:
        body = response.json()
    except ValueError:
        body = {"title": response.text[:200]}
    if response.is_success:
        return body
    raise ServiceError(response.status_code, body if isinstance(body, Mapping) else {"title": str(body)})


def _decided(body: Mapping[str, Any]) -> Decided:
    return Decided(body["arm"], body["event_id"], body["propensity"], body["version"])


def _pause(attempt: int) -> float:
    """Seconds before the next attempt: longer each time, and not the same for all clients."""
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
        self, url: str, *, token: str | None = None, timeout: float = 5.0, transport: httpx.BaseTransport | None = None
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
            last = attempt == RETRIES
            try:
                response = self._http.request(request.method, request.path, json=request.json)
            except httpx.TransportError:
                if last:
                    raise
            else:
                if last or response.status_code not in AGAIN:
                    return _answer(response)
            time.sleep(_pause(attempt))
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
        learned: bool = self._send(_Request("POST", "/v1/rewards", {"event_id": event_id, "reward": reward}))["learned"]
        return learned

    def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> None:
        """Make an arm a candidate, or describe it anew."""
        self._send(_Request("PUT", _arm_path(arm), {"features": dict(features or {})}))

    def retire_arm(self, arm: str) -> None:
        """Let an arm be no longer a candidate."""
        self._send(_Request("DELETE", _arm_path(arm)))

    def arms(self) -> list[dict[str, Any]]:
        """All arms, with their features and whether they are active."""
        answer: list[dict[str, Any]] = self._send(_Request("GET", "/v1/arms"))
        return answer

    def look(self, event_id: str) -> dict[str, Any]:
        """What was decided for an event: among whom, with which chances, and its reward."""
        answer: dict[str, Any] = self._send(_Request("GET", f"/v1/decisions/{quote(event_id, safe='')}"))
        return answer


class AsyncClient:
    """The same from asynchronous code."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 5.0,
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
            last = attempt == RETRIES
            try:
                response = await self._http.request(request.method, request.path, json=request.json)
            except httpx.TransportError:
                if last:
                    raise
            else:
                if last or response.status_code not in AGAIN:
                    return _answer(response)
            await asyncio.sleep(_pause(attempt))
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
        body = {"event_id": event_id, "reward": reward}
        learned: bool = (await self._send(_Request("POST", "/v1/rewards", body)))["learned"]
        return learned

    async def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> None:
        """Make an arm a candidate, or describe it anew."""
        await self._send(_Request("PUT", _arm_path(arm), {"features": dict(features or {})}))

    async def retire_arm(self, arm: str) -> None:
        """Let an arm be no longer a candidate."""
        await self._send(_Request("DELETE", _arm_path(arm)))

    async def arms(self) -> list[dict[str, Any]]:
        """All arms, with their features and whether they are active."""
        answer: list[dict[str, Any]] = await self._send(_Request("GET", "/v1/arms"))
        return answer

    async def look(self, event_id: str) -> dict[str, Any]:
        """What was decided for an event: among whom, with which chances, and its reward."""
        answer: dict[str, Any] = await self._send(_Request("GET", f"/v1/decisions/{quote(event_id, safe='')}"))
        return answer
