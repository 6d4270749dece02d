"""A client of the service, in ordinary and in asynchronous code.

A request that fails is sent again. For decisions and rewards that is safe: decisions carry the id of their event, which
the client makes where the caller has none, and the service counts every event and every reward once. Arms and promote
have no such ids. After a timeout it is not known whether they were changed, and somebody else may have changed them
since, so they are sent again only if the service has said that it could not do it.
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
"""How often a request is sent again before its error is raised. The pauses are 3 to 6 seconds in all, in which a server
starts, or 7 to 11 if the service says that it cannot write."""

AGAIN = (408, 502, 503, 504)
"""Statuses after which a request is sent again."""

TIMEOUT = 15.0
"""Seconds that an attempt may take: longer than the service waits for its store."""

LONGEST_PAUSE = 30.0
"""Seconds that the client waits at most where the service says when to ask again."""

T = TypeVar("T")
P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])


class ServiceError(Exception):
    """The service refused a request; `status` and `problem` are its answer."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {problem.get('detail') or problem.get('title') or 'no reason given'}")
        self.status, self.problem = status, dict(problem)

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, dict[str, Any]]]:
        return type(self), (self.status, self.problem)


class Decided(NamedTuple):
    """A decision, as the service answers it."""

    arm: str
    event_id: str
    propensity: float
    version: int


# ------------------------------------------------------------------ requests and their answers


class _Request(NamedTuple, Generic[T]):
    method: str
    path: str
    read: Callable[[Any], T]
    """What the caller gets, made from the JSON of the answer."""
    json: Any = None
    safe: bool = True
    """Whether it may be sent again though nobody knows what became of it."""


class _Requests:
    """Everything that can be asked, for both clients."""

    def decide(
        self,
        user: Mapping[str, Any] | None = None,
        candidates: Sequence[str] | None = None,
        *,
        event_id: str | None = None,
    ) -> _Request[Decided]:
        """Ask which arm to show this user, among these candidates or all active arms."""
        return _Request("POST", "/v1/decisions", _decided, _decision(user, candidates, event_id))

    def reward(self, event_id: str, reward: float) -> _Request[bool]:
        """Give the reward of a decision; returns whether it is learned, which it is not after the window."""
        return _Request("POST", "/v1/rewards", _learned, _reward(event_id, reward))

    def decide_batch(
        self,
        users: Sequence[Mapping[str, Any]],
        candidates: Sequence[str] | None = None,
        *,
        event_ids: Sequence[str] | None = None,
    ) -> _Request[list[Decided | ServiceError]]:
        """Make up to 1,000 decisions in one request, among the same candidates; those refused are `ServiceError`."""
        ids = [None] * len(users) if event_ids is None else event_ids
        if len(ids) != len(users):
            raise ValueError(f"event_ids are {len(ids)} for {len(users)} users: give every user one, or leave them out")
        items = [_decision(user, candidates, event_id) for user, event_id in zip(users, ids, strict=True)]
        return _Request("POST", "/v1/decisions/batch", _each(_decided), items)

    def reward_batch(self, rewards: Mapping[str, float]) -> _Request[list[bool | ServiceError]]:
        """Give up to 1,000 rewards by their event ids; for each whether it is learned, or why it is refused."""
        return _Request("POST", "/v1/rewards/batch", _each(_learned), [_reward(*each) for each in rewards.items()])

    def put_arm(self, arm: str, features: Mapping[str, Any] | None = None) -> _Request[None]:
        """Make an arm a candidate, or describe it anew."""
        return _Request("PUT", _path("arms", arm), _nothing, {"features": _features("features", features)}, safe=False)

    def retire_arm(self, arm: str) -> _Request[None]:
        """Let an arm be no longer a candidate."""
        return _Request("DELETE", _path("arms", arm), _nothing, safe=False)

    def promote(self, policy: str) -> _Request[None]:
        """Let a challenger decide from now on."""
        return _Request("POST", "/v1/promote", _nothing, {"policy": policy}, safe=False)

    def arms(self) -> _Request[list[dict[str, Any]]]:
        """All arms, with their features and whether they are active."""
        return _Request("GET", "/v1/arms", list)

    def look(self, event_id: str) -> _Request[dict[str, Any]]:
        """What was decided for an event: among whom, with which chances, its reward, and what was learned."""
        return _Request("GET", _path("decisions", event_id), dict)


def _path(kind: str, its: str) -> str:
    return f"/v1/{kind}/{quote(its, safe='').replace('.', '%2E')}"  # /v1/arms/.. would be /v1


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


def _features(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not hasattr(given, "keys"):
        raise TypeError(f"{name} must be a dict of features, got {given!r}: pass names and values")
    return {key: _plain(f"{name}[{key!r}]", value) for key, value in dict(given or {}).items()}


def _plain(name: str, value: Any) -> Any:
    """A value as JSON has it: numbers of NumPy become those of Python."""
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
    """Reads the answers of a batch."""
    return lambda answers: [
        ServiceError(each["status"], each) if each["status"] >= 400 else read(each) for each in answers
    ]


def _answer(response: httpx.Response) -> Any:
    """The JSON of an answer; raises if the request was refused, or if something else than the service answers."""
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
    """The attempts at a request: how long each may take, whether there is another one, and what comes of the last."""

    def __init__(self, request: _Request[T], timeout: float, deadline: float | None) -> None:
        self._request, self._timeout, self._made = request, timeout, 0
        self._end = math.inf if deadline is None else time.monotonic() + deadline

    def next(self) -> dict[str, Any]:
        """What to send, and for how many seconds to wait."""
        method, path, _, json, _ = self._request
        left = max(0.001, self._end - time.monotonic())
        return {"method": method, "url": path, "json": json, "timeout": min(self._timeout, left)}

    def pause(self, outcome: httpx.Response | httpx.TransportError) -> float | None:
        """Seconds until the next attempt; None if this was the last, by its outcome, their number or the deadline."""
        if isinstance(outcome, httpx.Response):
            again, pause = outcome.status_code in AGAIN, _pause(self._made, outcome)
        else:
            again, pause = _may_send_again(self._request, outcome), _pause(self._made)
        self._made += 1
        return pause if again and self._made <= RETRIES and time.monotonic() + pause < self._end else None

    def result(self, outcome: httpx.Response | httpx.TransportError) -> T:
        """What the caller gets; raises if it is an error."""
        if isinstance(outcome, httpx.TransportError):
            raise outcome
        return self._request.read(_answer(outcome))


def _may_send_again(request: _Request[Any], problem: httpx.TransportError) -> bool:
    """Whether a request that got no answer may be sent again."""
    if isinstance(problem, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return False
    return request.safe or isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _pause(attempt: int, response: httpx.Response | None = None) -> float:
    """Seconds before the next attempt: longer each time, not the same for all clients, and as long as they are told."""
    told = "" if response is None else response.headers.get("retry-after", "")
    if told.isdigit():
        return min(LONGEST_PAUSE, float(told)) + random.random() / 2
    return float(min(5.0, 0.05 * 2**attempt) * (0.5 + random.random() / 2))


def _headers(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    token = token.strip()  # files end with a line break
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"token must be printable ASCII, got {len(token)} characters that are not: look at its file")
    return {"authorization": f"Bearer {token}"}


def _checked(deadline: float | None) -> float | None:
    if deadline is not None and not deadline > 0:
        raise ValueError(f"deadline must be positive, got {deadline!r}: it is how many seconds a call may take")
    return deadline


def _now(make: Callable[Concatenate[Any, P], _Request[T]]) -> Callable[Concatenate[Client, P], T]:
    """The method that sends what `make` makes, and waits."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._send(make(self, *args, **kwargs))

    return _like(make, method)


def _later(
    make: Callable[Concatenate[Any, P], _Request[T]],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """The same to be awaited."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._send(make(self, *args, **kwargs))

    return _like(make, method)


def _like(make: Callable[..., Any], method: F) -> F:
    """The method with the name, the parameters and the documentation that help shows."""
    functools.update_wrapper(method, make)
    parameters = inspect.signature(make).replace(return_annotation=inspect.Signature.empty)
    method.__signature__ = parameters  # type: ignore[attr-defined]
    return method


class Client:
    """Decide and reward from ordinary code; threads may share a client.

    Parameters
    ----------
    url : str
        Where the service is, for example ``"http://127.0.0.1:8000"``.
    token : str, optional
        The token that the service asks for.
    timeout : float
        Seconds that an attempt may wait: for the connection, and for every piece of the answer.
    deadline : float, optional
        Seconds after which a call ends, however many attempts it has made: then the last error is raised. Only an
        answer that has begun to arrive is still read. Without a deadline, a call ends after eight attempts. That takes
        3 to 6 seconds if nobody listens, and two minutes if a service listens and never answers.
    transport : httpx.BaseTransport, optional
        How requests are sent, for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        deadline: float | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._timeout, self._deadline = timeout, _checked(deadline)
        self._http = httpx.Client(base_url=url, headers=_headers(token), transport=transport)

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
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = self._http.request(**attempts.next())
            except httpx.TransportError as problem:
                outcome = problem
            pause = attempts.pause(outcome)
            if pause is None:
                return attempts.result(outcome)
            time.sleep(pause)

    decide, reward = _now(_Requests.decide), _now(_Requests.reward)
    decide_batch, reward_batch = _now(_Requests.decide_batch), _now(_Requests.reward_batch)
    put_arm, retire_arm, promote = _now(_Requests.put_arm), _now(_Requests.retire_arm), _now(_Requests.promote)
    arms, look = _now(_Requests.arms), _now(_Requests.look)


class AsyncClient:
    """The same from asynchronous code."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = TIMEOUT,
        deadline: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout, self._deadline = timeout, _checked(deadline)
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token), transport=transport)

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
            outcome: httpx.Response | httpx.TransportError
            try:
                outcome = await self._http.request(**attempts.next())
            except httpx.TransportError as problem:
                outcome = problem
            pause = attempts.pause(outcome)
            if pause is None:
                return attempts.result(outcome)
            await asyncio.sleep(pause)

    decide, reward = _later(_Requests.decide), _later(_Requests.reward)
    decide_batch, reward_batch = _later(_Requests.decide_batch), _later(_Requests.reward_batch)
    put_arm, retire_arm, promote = _later(_Requests.put_arm), _later(_Requests.retire_arm), _later(_Requests.promote)
    arms, look = _later(_Requests.arms), _later(_Requests.look)
