"""A client of the service, for synchronous and asynchronous code.

A request that fails is sent again. For decisions and rewards that is safe: decisions carry the id of their event, which
the client creates where the caller has none, and the service counts every event and every reward once. Changes of arms
and promotions have no ids. After a timeout their outcome is unknown, so they are sent again only if the service
answered that it could not make them.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar
from urllib.parse import quote

import httpx

RETRIES = 7
"""Further attempts before an error is raised. The pauses add up to 3 to 6 seconds, in which a server starts, or to 7 to
11 if the service answers that it cannot write."""

RETRIED = (408, 502, 503, 504)
"""Statuses after which a request is sent again."""

TIMEOUT = 15.0
"""Seconds that an attempt may take: longer than the service waits for its store."""

LONGEST_PAUSE = 30.0
"""Longest pause in seconds, whatever `Retry-After` asks for."""

T = TypeVar("T")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])

Result = httpx.Response | httpx.TransportError


class ServiceError(Exception):
    """The service refused a request; `status` and `problem` are its answer."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title') or 'no reason given'}")
        self.status, self.problem = status, dict(problem)

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, dict[str, Any]]]:
        return type(self), (self.status, self.problem)


class Decided(NamedTuple):
    """A decision as the service answers it."""

    arm: str
    event_id: str
    propensity: float
    version: int


# ------------------------------------------------------------------ requests and their answers


class _Request(NamedTuple, Generic[T]):
    """A request, the function that reads its answer, and whether it may be sent again after an unknown outcome."""

    method: str
    path: str
    read: Callable[[Any], T]
    json: Any = None
    safe: bool = True


class _Requests:
    """The requests of both clients."""

    def decide(
        self,
        user: Mapping[str, Any] | None = None,
        candidates: Sequence[str] | None = None,
        *,
        event_id: str | None = None,
    ) -> _Request[Decided]:
        """Choose an arm for this user, among these candidates or all active arms."""
        return _Request("POST", "/v1/decisions", _decided, _decision(user, candidates, event_id))

    def reward(self, event_id: str, reward: float) -> _Request[bool]:
        """Send the reward of a decision; returns whether it is learned, which it is not after the window."""
        return _Request("POST", "/v1/rewards", _learned, _reward(event_id, reward))

    def decide_batch(
        self,
        users: Sequence[Mapping[str, Any]],
        candidates: Sequence[str] | None = None,
        *,
        event_ids: Sequence[str] | None = None,
    ) -> _Request[list[Decided | ServiceError]]:
        """Make up to 1,000 decisions in one request, among the same candidates; refused ones are `ServiceError`."""
        ids = [None] * len(users) if event_ids is None else event_ids
        if len(ids) != len(users):
            raise ValueError(f"event_ids are {len(ids)} for {len(users)} users: give every user one, or leave them out")
        items = [_decision(user, candidates, event_id) for user, event_id in zip(users, ids, strict=True)]
        return _Request("POST", "/v1/decisions/batch", _each(_decided), items)

    def reward_batch(self, rewards: Mapping[str, float]) -> _Request[list[bool | ServiceError]]:
        """Send up to 1,000 rewards by event id; returns for each whether it is learned, or why it is refused."""
        return _Request("POST", "/v1/rewards/batch", _each(_learned), [_reward(*each) for each in rewards.items()])

    def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> _Request[None]:
        """Add an arm, or replace its features."""
        return _Request("PUT", _path("arms", arm), _nothing, {"features": _features("features", features)}, safe=False)

    def retire_arm(self, arm: str) -> _Request[None]:
        """Retire an arm: it is no longer a candidate."""
        return _Request("DELETE", _path("arms", arm), _nothing, safe=False)

    def promote(self, policy: str) -> _Request[None]:
        """Let a challenger decide from now on."""
        return _Request("POST", "/v1/promote", _nothing, {"policy": policy}, safe=False)

    def arms(self) -> _Request[list[dict[str, Any]]]:
        """List all arms, with their features and whether they are active."""
        return _Request("GET", "/v1/arms", list)

    def decision(self, event_id: str) -> _Request[dict[str, Any]]:
        """Return a recorded decision: candidates, probabilities, reward, and what was learned."""
        return _Request("GET", _path("decisions", event_id), dict)


def _path(kind: str, name: str) -> str:
    return f"/v1/{kind}/{quote(name, safe='').replace('.', '%2E')}"  # /v1/arms/.. would be /v1


def _decision(user: Mapping[str, Any] | None, candidates: Sequence[str] | None, event_id: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "event_id": secrets.token_hex(12) if event_id is None else _plain("event_id", event_id),
        "user": _features("user", user),
    }
    if isinstance(candidates, str):
        raise TypeError(f"candidates must be a list of ids, got {candidates!r}: pass [{candidates!r}]")
    if candidates is not None:
        body["candidates"] = [_plain("candidates", arm) for arm in candidates]
    return body


def _reward(event_id: str, reward: float) -> dict[str, Any]:
    return {"event_id": _plain("event_id", event_id), "reward": _plain("reward", reward)}


def _features(name: str, features: Mapping[str, Any] | None) -> dict[str, Any]:
    if features is not None and not hasattr(features, "keys"):
        raise TypeError(f"{name} must be a dict of features, got {features!r}: pass names and values")
    return {key: _plain(f"{name}[{key!r}]", value) for key, value in dict(features or {}).items()}


def _plain(name: str, value: Any) -> Any:
    """Convert a value to one that JSON has: numbers of NumPy become those of Python."""
    if getattr(value, "ndim", None) == 0:
        value = value.item()
    if not isinstance(value, str | int | float | None):
        raise TypeError(f"{name} must be a text, a number or None, got {value!r} ({type(value).__name__}): convert it")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}, which JSON does not have: pass a number, or None if it is missing")
    return value


def _decided(body: Mapping[str, Any]) -> Decided:
    return Decided(body["arm"], body["event_id"], body["propensity"], body["version"])


def _learned(body: Mapping[str, Any]) -> bool:
    return bool(body["learned"])


def _nothing(body: Any) -> None:
    return None


def _each(read: Callable[[Any], T]) -> Callable[[Sequence[Mapping[str, Any]]], list[T | ServiceError]]:
    """Read the answers of a batch."""
    return lambda answers: [
        ServiceError(each["status"], each) if each["status"] >= 400 else read(each) for each in answers
    ]


def _answer(response: httpx.Response) -> Any:
    """Return the JSON of an answer; raise `ServiceError` for a refusal, or for an answer of another program."""
    try:
        body = response.json()
    except ValueError:
        if response.is_success:
            detail = f"the answer is not JSON but {response.text[:60]!r}. Is this the address of the service?"
            raise ServiceError(response.status_code, {"detail": detail}) from None
        body = {"title": response.text[:200] or response.reason_phrase}
    if response.is_success:
        return body
    raise ServiceError(response.status_code, body if isinstance(body, Mapping) else {"title": str(body)})


# ------------------------------------------------------------------ sending


class _Attempts(Generic[T]):
    """The attempts at one request: their timeouts, the pauses between them, and the result of the last."""

    def __init__(self, request: _Request[T], timeout: float, deadline: float | None) -> None:
        self._request, self._timeout, self._count = request, timeout, 0
        self._end = math.inf if deadline is None else time.monotonic() + deadline

    def next(self) -> dict[str, Any]:
        """Return the arguments of httpx for the next attempt."""
        left = max(0.001, self._end - time.monotonic())
        return {
            "method": self._request.method,
            "url": self._request.path,
            "json": self._request.json,
            "timeout": min(self._timeout, left),
        }

    def pause(self, result: Result) -> float | None:
        """Return the seconds until the next attempt; None if this was the last."""
        if isinstance(result, httpx.Response):
            retry = result.status_code in RETRIED
        elif isinstance(result, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
            retry = False
        else:
            unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
            retry = self._request.safe or isinstance(result, unsent)
        pause = _pause(self._count, result if isinstance(result, httpx.Response) else None)
        self._count += 1
        return pause if retry and self._count <= RETRIES and time.monotonic() + pause < self._end else None

    def value(self, result: Result) -> T:
        """Return the value for the caller, or raise the error."""
        if isinstance(result, httpx.TransportError):
            raise result
        return self._request.read(_answer(result))


def _pause(attempt: int, response: httpx.Response | None = None) -> float:
    """Return a random pause that grows with the attempts, or the one that the service asks for."""
    retry_after = "" if response is None else response.headers.get("retry-after", "")
    if retry_after.isdigit():
        return min(LONGEST_PAUSE, float(retry_after)) + random.random() / 2
    return float(min(5.0, 0.05 * 2**attempt) * (0.5 + random.random() / 2))


def _headers(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    token = token.strip()  # files end with a line break
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"token must be printable ASCII, got {len(token)} characters that are not: check its file")
    return {"authorization": f"Bearer {token}"}


def _now(make: Callable[Concatenate[Any, P], _Request[T]]) -> Callable[Concatenate[Client, P], T]:
    """Return the method that sends the request of `make` and waits for its answer."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._send(make(self, *args, **kwargs))

    return _documented(make, method)


def _later(
    make: Callable[Concatenate[Any, P], _Request[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return the same method as a coroutine function."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(make(self, *args, **kwargs))

    return _documented(make, method)


def _documented(make: Callable[..., Any], method: F) -> F:
    """Give the method the name, parameters and docstring of `make`."""
    functools.update_wrapper(method, make)
    parameters = inspect.signature(make).replace(return_annotation=inspect.Signature.empty)
    method.__signature__ = parameters  # type: ignore[attr-defined]
    return method


class _Settings:
    """The constructor of both clients."""

    _kind: Any

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        deadline: float | None = None,
        transport: Any = None,
    ) -> None:
        if deadline is not None and not deadline > 0:
            raise ValueError(f"deadline must be positive, got {deadline!r}: it is how many seconds a call may take")
        self._timeout, self._deadline = timeout, deadline
        self._http = self._kind(base_url=url, headers=_headers(token), transport=transport)


class Client(_Settings):
    """Decide and reward from synchronous code; threads may share a client.

    Parameters
    ----------
    url : str
        Address of the service, for example ``"http://127.0.0.1:8000"``.
    token : str, optional
        The token that the service asks for.
    timeout : float
        Seconds that an attempt may wait: for the connection, and for every piece of the answer.
    deadline : float, optional
        Seconds after which a call ends, however many attempts it has made: then the last error is raised. Only an
        answer that has begun to arrive is still read. Without a deadline, a call ends after eight attempts. That takes
        3 to 6 seconds if nobody listens, and two minutes if a service listens and never answers.
    transport : httpx.BaseTransport, optional
        Transport of httpx, for tests.
    """

    _kind = httpx.Client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send(self, request: _Request[T]) -> T:
        if request.json == []:
            return request.read([])
        attempts = _Attempts(request, self._timeout, self._deadline)
        while True:
            result: Result
            try:
                result = self._http.request(**attempts.next())
            except httpx.TransportError as problem:
                result = problem
            pause = attempts.pause(result)
            if pause is None:
                return attempts.value(result)
            time.sleep(pause)

    decide, reward = _now(_Requests.decide), _now(_Requests.reward)
    decide_batch, reward_batch = _now(_Requests.decide_batch), _now(_Requests.reward_batch)
    put_arm, retire_arm, promote = _now(_Requests.put_arm), _now(_Requests.retire_arm), _now(_Requests.promote)
    arms, decision = _now(_Requests.arms), _now(_Requests.decision)


class AsyncClient(_Settings):
    """The same as `Client` for asynchronous code."""

    _kind = httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, request: _Request[T]) -> T:
        if request.json == []:
            return request.read([])
        attempts = _Attempts(request, self._timeout, self._deadline)
        while True:
            result: Result
            try:
                result = await self._http.request(**attempts.next())
            except httpx.TransportError as problem:
                result = problem
            pause = attempts.pause(result)
            if pause is None:
                return attempts.value(result)
            await asyncio.sleep(pause)

    decide, reward = _later(_Requests.decide), _later(_Requests.reward)
    decide_batch, reward_batch = _later(_Requests.decide_batch), _later(_Requests.reward_batch)
    put_arm, retire_arm, promote = _later(_Requests.put_arm), _later(_Requests.retire_arm), _later(_Requests.promote)
    arms, decision = _later(_Requests.arms), _later(_Requests.decision)
