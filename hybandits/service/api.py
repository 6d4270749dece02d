"""The routes: JSON in, JSON out; everything that writes goes through the writer."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from hybandits.service.commands import MOST, Answer, Command, Decide, GiveReward, OfArm, Promote, PutArm, Retire
from hybandits.service.gathering import Gathering
from hybandits.service.looking import Looking
from hybandits.service.metrics import Measured, Metrics
from hybandits.service.problems import TITLES, Refused
from hybandits.service.protocol import answer_at_once
from hybandits.service.rows import FEW, Arm, Decision, Retired, decode_ids
from hybandits.service.store import StoreError
from hybandits.service.writer import Outcome, Writer, answer_of

LARGEST_BODY = 4_000_000
"""Bytes of a request's body."""

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises where a body is not JSON of the expected form."""

_encoder = msgspec.json.Encoder()


class AnyId(StringConvertor):
    """Ids in paths: any text, line breaks and slashes included."""

    regex = r"[\s\S]*"


register_url_convertor("any", AnyId())


class Tokens(msgspec.Struct, frozen=True):
    """What requests must carry: a token for everything, and one for arms and promote, if they are given."""

    use: str | None = None
    manage: str | None = None


def application(writer: Writer, *, tokens: Tokens | None = None) -> Starlette:
    """The service as an ASGI application. It starts the writer when it starts, and stops it when it stops."""
    return Api(writer, tokens or Tokens()).application()


class Api:
    """The routes of one service."""

    def __init__(self, writer: Writer, tokens: Tokens) -> None:
        self.writer, self.tokens = writer, tokens
        self._manage = tokens.manage or tokens.use
        self._decide = msgspec.json.Decoder(Decide)
        self._reward = msgspec.json.Decoder(GiveReward)
        self._arm = msgspec.json.Decoder(PutArm)
        self._promote = msgspec.json.Decoder(Promote)
        self.gathering = Gathering(writer)
        self.looking = Looking(writer, self.gathering, lambda request: check_token(request.scope, tokens.use))

    def application(self) -> Starlette:
        """The ASGI application."""
        use, manage = self.tokens.use, self._manage
        metrics = self.looking.metrics
        posted = {
            "/v1/decisions": Posted(self.decide, use, metrics),
            "/v1/rewards": Posted(self.reward, use, metrics),
            "/v1/decisions/batch": Posted(self.decide_batch, use, metrics),
            "/v1/rewards/batch": Posted(self.reward_batch, use, metrics),
            "/v1/promote": Posted(self.promote, manage, metrics),
        }
        routes = [
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posted.items()),
            Route("/v1/decisions/{id:any}", self.look, methods=["GET"]),
            Route("/v1/arms", self.arms, methods=["GET"]),
            Route("/v1/arms/{id:any}", self.put_arm, methods=["PUT"]),
            Route("/v1/arms/{id:any}", self.retire_arm, methods=["DELETE"]),
            Route("/healthz", self.healthy, methods=["GET"]),
            Route("/readyz", self.ready, methods=["GET"]),
            *self.looking.routes(),
        ]

        @contextlib.asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
            self.gathering.start()
            yield {"live": self.looking.live_views}
            await asyncio.to_thread(self.writer.stop)

        return Application(
            posted,
            routes=routes,
            lifespan=lifespan,
            middleware=[Middleware(Measured, metrics=metrics)],
            exception_handlers={
                Refused: _refused,
                HTTPException: _not_found,
                StoreError: _no_store,
                **dict.fromkeys(UNREADABLE, _not_valid),
            },
        )

    # -------------------------------------------------------------- requests

    async def _one(self, command: Command) -> Answer:
        (outcome,) = await self.gathering.ask([command])
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    # -------------------------------------------------------------- decisions and rewards

    async def decide(self, body: bytes) -> Answer:
        """POST /v1/decisions."""
        return await self._one(self._decide.decode(body))

    async def reward(self, body: bytes) -> Answer:
        """POST /v1/rewards."""
        return await self._one(self._reward.decode(body))

    async def decide_batch(self, body: bytes) -> Answer:
        """POST /v1/decisions/batch: every item has a status of its own."""
        return await self._batch(body, Decide)

    async def reward_batch(self, body: bytes) -> Answer:
        """POST /v1/rewards/batch: every item has a status of its own."""
        return await self._batch(body, GiveReward)

    async def promote(self, body: bytes) -> Answer:
        """POST /v1/promote."""
        return await self._one(self._promote.decode(body))

    async def _batch(self, body: bytes, kind: Any) -> Answer:
        items = _items(body, kind)
        if not 1 <= len(items) <= MOST:
            raise _too_many(len(items))
        commands = [item for item in items if not isinstance(item, Refused)]
        served = iter(await self.gathering.ask(commands) if commands else [])
        return Answer(200, [_item(item if isinstance(item, Refused) else next(served)) for item in items])

    async def look(self, request: Request) -> Response:
        """GET /v1/decisions/{id}: what was decided, among whom, with which chances, and its reward."""
        check_token(request.scope, self.tokens.use)
        event = request.path_params["id"]
        found = (await asyncio.to_thread(self.writer.store.find, [event])).get(event)
        if found is None or found.decision is None:
            raise Refused(404, f"There is no decision with the event id {event!r}.", field="id", value=event)
        decision = found.decision.content
        assert isinstance(decision, Decision)
        ids = decode_ids(decision.candidates)
        if ids is None:
            ids = await asyncio.to_thread(self._active_at, decision.version)
        body = answer_of(decision) | {
            "row": found.decision.number,
            "time": found.decision.time / 1e6,
            "user": decision.user,
            "candidates": ids,
            "chances": chances_of(decision, ids),
            "policy": decision.policy,
            "challengers": decision.shadows,
            "arm_version": decision.arm_version,
            "reward": None if found.reward is None else found.reward.content.reward,  # type: ignore[union-attr]
        }
        return _json(body, 200)

    def _active_at(self, version: int) -> list[str]:
        """The arms that were active at a row, in the order of their first rows."""
        active: dict[str, bool] = {}
        for row in self.writer.store.rows(0, version, FEW):
            if isinstance(row.content, Arm | Retired):
                active[row.content.arm] = isinstance(row.content, Arm)
        return [arm for arm, there in active.items() if there]

    # -------------------------------------------------------------- arms

    async def put_arm(self, request: Request) -> Response:
        """PUT /v1/arms/{id}."""
        body = await read_body(request.scope, request.receive, self._manage)
        arm = _arm_id(request)
        return _answer(await self._one(OfArm(arm, self._arm.decode(body or b"{}"))))

    async def retire_arm(self, request: Request) -> Response:
        """DELETE /v1/arms/{id}."""
        check_token(request.scope, self._manage)
        return _answer(await self._one(OfArm(_arm_id(request), Retire())))

    async def arms(self, request: Request) -> Response:
        """GET /v1/arms."""
        check_token(request.scope, self.tokens.use)
        known = list(self.writer.fold.arms.items())
        return _json(
            [
                {"arm": arm, "active": each.active, "features": each.features, "version": each.version}
                for arm, each in known
            ],
            200,
        )

    # -------------------------------------------------------------- health

    async def healthy(self, request: Request) -> Response:
        """GET /healthz: the process answers."""
        return _json({"status": "ok"}, 200)

    async def ready(self, request: Request) -> Response:
        """GET /readyz: it can write."""
        if self.writer.trouble is not None:
            raise Refused(503, self.writer.trouble)
        return _json({"status": "ok", "version": self.writer.fold.row}, 200)


def chances_of(decision: Decision, ids: list[str]) -> dict[str, float]:
    """The chance of every candidate of a decision, from the policy's own lot and the floor."""
    even = decision.floor / decision.n
    own = dict(decision.lot)
    return {arm: (1 - decision.floor) * own.get(i, 0.0) + even for i, arm in enumerate(ids)}


def _arm_id(request: Request) -> str:
    arm: str = request.path_params["id"]
    if not 1 <= len(arm) <= 200:
        raise Refused(422, f"The id of an arm has 1 to 200 characters, got {len(arm)}.", field="id", value=arm)
    return arm


class Posted:
    """A route whose body goes to the writer.

    It speaks ASGI itself: nearly all requests come here, and Starlette's `Request` and `Response` would cost them as
    much as their decision.
    """

    def __init__(self, answer: Callable[[bytes], Awaitable[Answer]], token: str | None, metrics: Metrics) -> None:
        self._answer, self._token, self._metrics = answer, token, metrics
        self.__name__: str = answer.__name__  # type: ignore[attr-defined]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.perf_counter(), 500
        try:
            try:
                answer = await self._answer(await read_body(scope, receive, self._token))
            except (Refused, *UNREADABLE) as wrong:
                refused = wrong if isinstance(wrong, Refused) else _invalid(wrong)
                status = refused.status
                await problem(refused)(scope, receive, send)
                return
            status, content = answer.status, _encoder.encode(answer.body)
            at_once = answer_at_once(scope)
            if at_once is None or not at_once(status, content):
                await Response(content, status, media_type="application/json")(scope, receive, send)
        finally:
            self._metrics.measured(self.__name__, status, time.perf_counter() - began)


class Application(Starlette):
    """Starlette, but for requests that are posted: their routes are known without looking for them."""

    def __init__(self, posted: Mapping[str, Posted], **settings: Any) -> None:
        super().__init__(**settings)
        self._posted = posted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = self._posted.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if posted is not None:
            await posted(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def read_body(scope: Scope, receive: Receive, token: str | None) -> bytes:
    """The body, if the request carries the token and the body is small.

    How long it may take is the server's business: `protocol.Protocol`.
    """
    check_token(scope, token)
    length = _header(scope, b"content-length")
    if length is not None and length.isdigit() and int(length) > LARGEST_BODY:
        raise _too_large(int(length))
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(408, "The client went away before its body had arrived.")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST_BODY:
            raise _too_large(len(body))
    return bytes(body)


def check_token(scope: Scope, token: str | None) -> None:
    """Refuse a request that does not carry this token; None: none is needed."""
    if token is None:
        return
    given = _header(scope, b"authorization") or b""
    if not hmac.compare_digest(given, f"Bearer {token}".encode()):
        raise Refused(401 if not given else 403, "Send the token in the header Authorization: Bearer TOKEN.")


def _header(scope: Scope, name: bytes) -> bytes | None:
    value: bytes
    for its, value in scope["headers"]:
        if its == name:
            return value
    return None


def _json(body: Any, status: int) -> Response:
    return Response(_encoder.encode(body), status, media_type="application/json")


def _answer(answer: Answer) -> Response:
    return _json(answer.body, answer.status)


def _items(body: bytes, kind: Any) -> list[Command | Refused]:
    """The items of a batch; if not all can be read, one by one."""
    try:
        items: list[Command | Refused] = msgspec.json.decode(body, type=list[kind])
    except UNREADABLE:
        items = []
        each = msgspec.json.decode(body, type=list[msgspec.Raw])
        if len(each) > MOST:
            raise _too_many(len(each)) from None
        for item in each:
            try:
                items.append(msgspec.json.decode(item, type=kind))
            except UNREADABLE as wrong:
                items.append(_invalid(wrong))
    return items


def _item(outcome: Outcome) -> dict[str, Any]:
    """An item of a batch's answer."""
    if isinstance(outcome, Answer):
        return {"status": outcome.status, **outcome.body}
    problem_: dict[str, Any] = msgspec.json.decode(outcome.document())
    return problem_


def problem(refused: Refused) -> Response:
    """The answer to a request that is not served."""
    headers = {"retry-after": "1"} if refused.status == 503 else {}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Response(refused.document(), refused.status, headers, media_type="application/problem+json")


def _too_large(size: int) -> Refused:
    return Refused(413, f"The body has at least {size:,} bytes, at most {LARGEST_BODY:,} are accepted.")


def _too_many(items: int) -> Refused:
    return Refused(422, f"A batch has 1 to {MOST:,} items, got {items:,}.")


def _invalid(wrong: Exception) -> Refused:
    return Refused(422 if isinstance(wrong, msgspec.ValidationError) else 400, f"{wrong}.")


async def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return problem(refused)


async def _no_store(request: Request, wrong: Exception) -> Response:
    return problem(Refused(503, f"{wrong} Ask again."))


async def _not_valid(request: Request, wrong: Exception) -> Response:
    return problem(_invalid(wrong))


async def _not_found(request: Request, wrong: Exception) -> Response:
    assert isinstance(wrong, HTTPException)
    status = wrong.status_code if wrong.status_code in TITLES else 400
    answer = problem(Refused(status, f"{request.method} {request.url.path} is not a request of this service."))
    if status == 405:
        there = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
        answer.headers["allow"] = ", ".join(sorted({method for route in there for method in route.methods}))
    return answer
