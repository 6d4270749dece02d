"""A client of the service, for synchronous and asynchronous code.

A request that fails is sent again: the ids of events see to it that nothing counts twice. Changes of arms and
promotions have no ids, so they are sent again only if the service answered that it could not make them.
"""

from __future__ import annotations

import asyncio
import functools
import json
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from urllib.parse import quote

import httpx
from msgspec import convert

from hybandits.service.commands import Decided

NOT_DONE = (408, 503)
"""Statuses after which a request is sent again: the service could not serve it."""

UNKNOWN = (502, 504)
"""Answers of a proxy that got none from the service, which may have served the request."""

UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors of requests that the service has not received."""

DEADLINE = 15.0
"""Seconds that a call may take with all its attempts: longer than the service waits for its store."""

LONGEST_PAUSE = 2.0
"""Longest pause between two attempts, in seconds."""

T = TypeVar("T")
P = ParamSpec("P")


class ServiceError(Exception):
    """The service refused a request; `status` and `problem` are its answer."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(status, problem)
        self.status, self.problem = status, dict(problem)

    def __str__(self) -> str:
        return f"{self.status}: {self.problem.get('detail') or self.problem.get('title') or 'no reason given'}"


class AsyncClient:
    """The same as `Client` for asynchronous code."""

    _kind: type = httpx.AsyncClient

    def __init__(
        self, url: str, *, bandit: str | None = None, token: str | None = None, deadline: float = DEADLINE,
        transport: Any = None,
    ) -> None:  # fmt: skip
        self._root = "/v1" if bandit is None else _path("bandits", bandit)
        if not deadline > 0:
            raise ValueError(f"deadline must be positive, got {deadline!r}: it is how many seconds a call may take")
        self._deadline = deadline
        headers = {"content-type": "application/json"}
        if token is not None:
            headers["authorization"] = f"Bearer {token.strip()}"  # files end with a line break
        self._http = self._kind(base_url=url, headers=headers, transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, **request: Any) -> Any:
        return await self._http.request(**request)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _call(self, method: str, path: str, body: Any = None, *, safe: bool = True) -> Any:
        """Return the JSON of an answer; a request that is `safe` is sent again though its outcome is unknown."""
        content = None if body is None else _json(body)
        end, attempt = time.monotonic() + self._deadline, 0
        retried = (*NOT_DONE, *UNKNOWN) if safe else NOT_DONE
        while True:
            pause, timeout = _pause(attempt), max(0.001, end - time.monotonic())
            try:
                response = await self._send(method=method, url=self._root + path[3:], content=content, timeout=timeout)
                if response.status_code not in retried or time.monotonic() + pause >= end:
                    return _answer(response)
            except (httpx.UnsupportedProtocol, httpx.LocalProtocolError):
                raise
            except httpx.TransportError as problem:
                if not (safe or isinstance(problem, UNSENT)) or time.monotonic() + pause >= end:
                    raise
            await self._sleep(pause)
            attempt += 1

    async def decide(
        self,
        user: Mapping[str, Any] | None = None,
        candidates: Sequence[str | Mapping[str, Any]] | None = None,
        *,
        event_id: str | None = None,
        user_key: str | None = None,
        places: int = 1,
    ) -> Decided:
        """Choose an arm for this user, among these candidates or all active arms.

        A candidate is an id, or a dict of `arm`, `features` and `pair`. All events of a user have the same `user_key`.
        With `places` the decision is a ranking.
        """
        body = _decision(user, candidates, event_id, user_key) | ({"places": places} if places > 1 else {})
        return convert(await self._call("POST", "/v1/decisions", body), Decided)

    async def reward(self, event_id: str, reward: float, *, place: int = 1) -> bool:
        """Send the reward of a decision or a place; return whether it is learned, which it is not after the window."""
        body = {"event_id": event_id, "reward": reward} | ({"place": place} if place > 1 else {})
        return bool((await self._call("POST", "/v1/rewards", body))["learned"])

    async def correct(
        self, event_id: str, reward: float | None, *, place: int = 1, correction_id: str | None = None
    ) -> bool:
        """Correct the reward of a decision or a place, or withdraw it (None); return whether it was learned before."""
        id = secrets.token_hex(12) if correction_id is None else correction_id
        body = {"event_id": event_id, "reward": reward, "place": place, "correction_id": id}
        return bool((await self._call("POST", "/v1/corrections", body))["learned"])

    async def erase(self, user_key: str) -> int:
        """Erase all events of a user; return how many decisions still wait to be erased, 0 when it is done."""
        return int((await self._call("POST", "/v1/erasures", {"user_key": user_key}))["decisions"])

    async def decide_batch(
        self,
        users: Sequence[Mapping[str, Any]],
        candidates: Sequence[str | Mapping[str, Any]] | None = None,
        *,
        event_ids: Sequence[str] | None = None,
        user_keys: Sequence[str] | None = None,
    ) -> list[Decided | ServiceError]:
        """Make up to 1,000 decisions in one request, among the same candidates; refused ones are `ServiceError`."""
        ids, keys = ([None] * len(users) if given is None else given for given in (event_ids, user_keys))
        for name, given in (("event_ids", ids), ("user_keys", keys)):
            if len(given) != len(users):
                raise ValueError(
                    f"{name} are {len(given)} for {len(users)} users: give every user one, or leave them out"
                )
        items = [_decision(user, candidates, *each) for user, *each in zip(users, ids, keys, strict=True)]
        answers = await self._call("POST", "/v1/decisions/batch", items) if items else []
        return [_error(each) or convert(each, Decided) for each in answers]

    async def reward_batch(self, rewards: Mapping[str, float]) -> list[bool | ServiceError]:
        """Send up to 1,000 rewards by event id; return for each whether it is learned, or why it is refused."""
        items = [{"event_id": event_id, "reward": reward} for event_id, reward in rewards.items()]
        answers = await self._call("POST", "/v1/rewards/batch", items) if items else []
        return [_error(each) or bool(each["learned"]) for each in answers]

    async def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> None:
        """Add an arm, or replace its features."""
        await self._call("PUT", _path("arms", arm), {"features": dict(features or {})}, safe=False)

    async def retire_arm(self, arm: str) -> None:
        """Retire an arm: it is no longer a candidate."""
        await self._call("DELETE", _path("arms", arm), safe=False)

    async def put_arms(self, arms: Mapping[str, Mapping[str, Any]]) -> None:
        """Add or replace up to 1,000 arms, given their features by id: all of them, or none if one cannot be used."""
        items = [{"arm": arm, "features": dict(features)} for arm, features in arms.items()]
        await self._call("PUT", "/v1/arms", {"arms": items}, safe=False)

    async def retire_arms(self, arms: Sequence[str]) -> None:
        """Retire arms: all of them, or none if one is unknown."""
        await self._call("POST", "/v1/arms/retire", {"arms": list(arms)}, safe=False)

    async def controls(self) -> dict[str, Any]:
        """Return the guard rails."""
        return dict(await self._call("GET", "/v1/controls"))

    async def set_controls(
        self, *, pause: str | None = None, frozen: bool = False, arms: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Let these guard rails hold from now on, and no others."""
        await self._call(
            "PUT", "/v1/controls", {"pause": pause, "frozen": frozen, "arms": dict(arms or {})}, safe=False
        )

    async def promote(self, policy: str) -> None:
        """Let a challenger decide from now on."""
        await self._call("POST", "/v1/promote", {"policy": policy}, safe=False)

    async def arms(self) -> list[dict[str, Any]]:
        """List all arms, with their features and whether they are active."""
        return list(await self._call("GET", "/v1/arms"))

    async def decision(self, event_id: str) -> dict[str, Any]:
        """Return a recorded decision: candidates, probabilities, reward, and what was learned."""
        return dict(await self._call("GET", _path("decisions", event_id)))


class _Blocking(AsyncClient):
    """Calls that never suspend, because they send and wait synchronously."""

    _kind = httpx.Client

    async def _send(self, **request: Any) -> Any:
        return self._http.request(**request)

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)


def _sync(call: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(call)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            call(self._calls, *args, **kwargs).send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        raise RuntimeError("a synchronous call was suspended")

    return method


class Client:
    """Decide and reward from synchronous code; threads may share a client.

    `url` is the address of the service, for example "http://127.0.0.1:8000", `bandit` the name of one of several, and
    `token` the one that the service asks for.
    After `deadline` seconds a call ends and raises the last error. `transport` is one of httpx, for tests.
    """

    def __init__(
        self, url: str, *, bandit: str | None = None, token: str | None = None, deadline: float = DEADLINE,
        transport: Any = None,
    ) -> None:  # fmt: skip
        self._calls = _Blocking(url, bandit=bandit, token=token, deadline=deadline, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._calls._http.close()

    decide, reward = _sync(AsyncClient.decide), _sync(AsyncClient.reward)
    decide_batch, reward_batch = _sync(AsyncClient.decide_batch), _sync(AsyncClient.reward_batch)
    put_arm, retire_arm, promote = _sync(AsyncClient.put_arm), _sync(AsyncClient.retire_arm), _sync(AsyncClient.promote)
    correct, erase = _sync(AsyncClient.correct), _sync(AsyncClient.erase)
    put_arms, retire_arms = _sync(AsyncClient.put_arms), _sync(AsyncClient.retire_arms)
    controls, set_controls = _sync(AsyncClient.controls), _sync(AsyncClient.set_controls)
    arms, decision = _sync(AsyncClient.arms), _sync(AsyncClient.decision)


def _path(kind: str, name: str) -> str:
    return f"/v1/{kind}/{quote(name, safe='').replace('.', '%2E')}"  # /v1/arms/.. would be /v1


def _decision(
    user: Mapping[str, Any] | None, candidates: Sequence[Any] | None, event_id: str | None, user_key: str | None
) -> dict[str, Any]:
    if isinstance(candidates, str):
        raise TypeError(f"candidates must be a list of ids, got {candidates!r}: pass [{candidates!r}]")
    named: dict[str, Any] = {} if candidates is None else {"candidates": list(candidates)}
    named |= {} if user_key is None else {"user_key": user_key}
    return {"event_id": secrets.token_hex(12) if event_id is None else event_id, "user": dict(user or {}), **named}


def _json(body: Any) -> str:
    try:
        return json.dumps(body, allow_nan=False, default=_plain)
    except ValueError:
        raise ValueError("a value is NaN or infinite, which JSON does not have: pass a number or None") from None


def _plain(value: Any) -> Any:
    if getattr(value, "ndim", None) == 0:
        return value.item()
    raise TypeError(f"cannot send {value!r} ({type(value).__name__}): convert it to a text, a number or None")


def _error(item: Mapping[str, Any]) -> ServiceError | None:
    return ServiceError(item["status"], item) if item["status"] >= 400 else None


def _answer(response: httpx.Response) -> Any:
    """Return the JSON of an answer; raise `ServiceError` for a refusal, or for an answer of another program."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if response.is_success and body is not None:
        return body
    if not isinstance(body, Mapping):
        body = {"detail": f"the answer is {response.text[:60]!r}, not JSON. Is this the address of the service?"}
    raise ServiceError(response.status_code, body)


def _pause(attempt: int) -> float:
    """Return a random pause in seconds, which grows with the attempts."""
    return float(min(LONGEST_PAUSE, 0.05 * 2**attempt) * (0.5 + random.random() / 2))
