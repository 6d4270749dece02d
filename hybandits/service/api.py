"""The routes: JSON in, JSON out; everything that writes goes through the writer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from hybandits.foundation.checks import nearest
from hybandits.kernels.decisions import with_floor
from hybandits.service.access import Access, Tokens, header
from hybandits.service.commands import Answer, Command, OfArm, Retire
from hybandits.service.dashboard.metrics import Measured, Metrics
from hybandits.service.dashboard.routes import Looking
from hybandits.service.log.rows import ARMS, Arm, Decision, Reward, decode_ids
from hybandits.service.log.store import Found, StoreError
from hybandits.service.problems import Refused
from hybandits.service.protocol import answer_at_once
from hybandits.service.reading import READ_ARM, READ_DECISION, READ_PROMOTE, READ_REWARD
from hybandits.service.request_batching import Gathering
from hybandits.service.writer import Outcome, Writer, answer_of

LARGEST_BODY = 4_000_000
"""Bytes of a request's body."""

RECENT = 3.0
"""Seconds for which something that was written shows that it can be written."""

_encoder = msgspec.json.Encoder()


class AnyId(StringConvertor):
    """Ids in paths: any text, line breaks and slashes included."""

    regex = r"[\s\S]*"


register_url_convertor("any", AnyId())


def application(
    writer: Writer, *, tokens: Tokens | None = None, stopped: Callable[[], object] = lambda: None
) -> Starlette:
    """The service as an ASGI application. It starts the writer when it starts, and stops it when it stops.

    `stopped` is called when nobody uses the log any more.
    """
    return Api(writer, tokens or Tokens()).application(stopped)


class Api:
    """The routes of one service."""

    def __init__(self, writer: Writer, tokens: Tokens) -> None:
        self.writer = writer
        self.access = Access(tokens)
        self.gathering = Gathering(writer)
        self.looking = Looking(writer, self.gathering, self.access)

    def application(self, stopped: Callable[[], object]) -> Starlette:
        """The ASGI application; see `application`."""
        access, metrics = self.access, self.looking.metrics
        posted = {
            "/v1/decisions": Posted(self.decide, access, metrics),
            "/v1/rewards": Posted(self.reward, access, metrics),
            "/v1/decisions/batch": Posted(self.decide_batch, access, metrics),
            "/v1/rewards/batch": Posted(self.reward_batch, access, metrics),
            "/v1/promote": Posted(self.promote, access, metrics, manage=True),
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
            yield {"live": self.looking.live_views, "refused": metrics.refused}
            await asyncio.to_thread(self.writer.stop)
            await asyncio.get_running_loop().shutdown_default_executor()  # somebody may still be reading there
            stopped()

        return Application(
            posted,
            routes=routes,
            lifespan=lifespan,
            middleware=[Middleware(Measured, metrics=metrics)],
            exception_handlers={Refused: _refused, HTTPException: _not_found, StoreError: _no_store},
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
        return await self._one(READ_DECISION.one(body))

    async def reward(self, body: bytes) -> Answer:
        """POST /v1/rewards."""
        return await self._one(READ_REWARD.one(body))

    async def decide_batch(self, body: bytes) -> Answer:
        """POST /v1/decisions/batch: every item has a status of its own."""
        return await self._batch(READ_DECISION.many(body))

    async def reward_batch(self, body: bytes) -> Answer:
        """POST /v1/rewards/batch: every item has a status of its own."""
        return await self._batch(READ_REWARD.many(body))

    async def promote(self, body: bytes) -> Answer:
        """POST /v1/promote."""
        return await self._one(READ_PROMOTE.one(body))

    async def _batch(self, items: Sequence[Command | Refused]) -> Answer:
        commands = [item for item in items if not isinstance(item, Refused)]
        served = await self.gathering.ask(commands) if commands else []
        for outcome in served[:1]:
            if isinstance(outcome, Refused) and outcome.status == 503:  # the transaction failed, and so all items
                raise outcome
        following = iter(served)
        outcomes = [item if isinstance(item, Refused) else next(following) for item in items]
        for outcome in outcomes:
            if isinstance(outcome, Refused):
                self.looking.metrics.refused(outcome.status)
        return Answer(200, [_item(outcome) for outcome in outcomes])

    async def look(self, request: Request) -> Response:
        """GET /v1/decisions/{id}: what was decided, among whom, with which chances, and its reward."""
        self.access.check(request.scope)
        event = _id(request)
        if (await asyncio.to_thread(self.writer.store.last))[0] > self.writer.fold.row:
            await self.gathering.ask([])  # another server may have closed the decision
        found, closed, learned_reward = await asyncio.to_thread(self._find, event)
        if found.decision is None:
            raise Refused(
                404,
                f"There is no decision with the event id {event!r}. Use the event_id that it was answered with.",
                field="id",
                value=event,
            )
        decision = found.decision.content
        assert isinstance(decision, Decision)
        given = None if found.reward is None else found.reward.content
        assert given is None or isinstance(given, Reward)
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
            "reward": None if given is None else given.reward,
            "learned": None if given is None else not given.late,
            "closed": closed,
            "learned_reward": learned_reward,
        }
        return _json(body, 200)

    def _find(self, event: str) -> tuple[Found, bool, float | None]:
        """What the log has of an event, whether its decision is closed, and what was learned of it."""
        fold = self.writer.fold
        last_closed = fold.closed  # looked up first, because a reward that came in time is in the log by then
        found = self.writer.store.find([event]).get(event, Found())
        if found.decision is None:
            return found, False, None
        closed = found.decision.number <= last_closed
        learns = closed or fold.bandit.window is None
        return found, closed, fold.learned_of(found.decision.number, found.reward) if learns else None

    def _active_at(self, version: int) -> list[str]:
        """The arms that were active at a row, in the order of their first rows."""
        active: dict[str, bool] = {}
        for row in self.writer.store.rows(0, version, ARMS):
            active[row.content.arm] = isinstance(row.content, Arm)  # type: ignore[union-attr]
        return [arm for arm, there in active.items() if there]

    # -------------------------------------------------------------- arms

    async def put_arm(self, request: Request) -> Response:
        """PUT /v1/arms/{id}."""
        self.access.check(request.scope, manage=True)
        body = await read_body(request.scope, request.receive)
        return _answer(await self._one(OfArm(_arm_id(request), READ_ARM.one(body or b"{}"))))

    async def retire_arm(self, request: Request) -> Response:
        """DELETE /v1/arms/{id}."""
        self.access.check(request.scope, manage=True)
        return _answer(await self._one(OfArm(_arm_id(request), Retire())))

    async def arms(self, request: Request) -> Response:
        """GET /v1/arms, those that other processes have put included."""
        self.access.check(request.scope)
        if await self._trouble() is not None:
            raise Refused(503, f"{self.writer.trouble} Ask again.")
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
        self.access.check_sender(request.scope)
        return _json({"status": "ok"}, 200)

    async def ready(self, request: Request) -> Response:
        """GET /readyz: it can write, which is tried if it has not been done for a while."""
        self.access.check_sender(request.scope)
        if time.monotonic() - self.writer.wrote > RECENT or self.writer.trouble is not None:
            trouble = await self._trouble()
            if trouble is not None:
                told = self.access.permits(request.scope)  # reasons name files and hosts
                raise Refused(
                    503, trouble if told else "The service cannot write now. Ask with the token for the reason."
                )
        return _json({"status": "ok", "version": self.writer.fold.row}, 200)

    async def _trouble(self) -> str | None:
        """Why an empty transaction fails, or None; it also folds what others have written."""
        await self.gathering.ask([])
        return self.writer.trouble


def chances_of(decision: Decision, ids: list[str]) -> dict[str, float]:
    """The chance of every candidate of a decision, from the policy's own lot and the floor."""
    own, chance = dict(decision.lot), with_floor.py_func  # a few numbers are not worth the time to compile
    return {arm: chance(own.get(i, 0.0), decision.floor, decision.n) for i, arm in enumerate(ids)}


def _id(request: Request) -> str:
    """The id in a path. Bytes that are not UTF-8 would all become the same character, and ids with them the same."""
    try:
        unquote_to_bytes(request.scope["raw_path"]).decode()
    except UnicodeDecodeError:
        path = request.scope["raw_path"].decode("latin-1")
        raise Refused(
            422, f"The path {path!r} is not UTF-8. Encode the id as UTF-8 before % is used.", field="id", value=path
        ) from None
    its: str = request.path_params["id"]
    return its


def _arm_id(request: Request) -> str:
    arm = _id(request)
    if not 1 <= len(arm) <= 200:
        raise Refused(
            422, f"The id of an arm has 1 to 200 characters, got {len(arm)}. Choose another.", field="id", value=arm
        )
    return arm


class Posted:
    """A route whose body goes to the writer.

    It speaks ASGI itself: nearly all requests come here, and Starlette's `Request` and `Response` would cost them as
    much as their decision.
    """

    def __init__(
        self, answer: Callable[[bytes], Awaitable[Answer]], access: Access, metrics: Metrics, *, manage: bool = False
    ) -> None:
        self._answer, self._access, self._metrics, self._manage = answer, access, metrics, manage
        self.__name__: str = answer.__name__  # type: ignore[attr-defined]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.perf_counter(), 500
        try:
            try:
                self._access.check(scope, manage=self._manage)
                answer = await self._answer(await read_body(scope, receive))
            except Refused as refused:
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
        self.router.redirect_slashes = False  # a path with one too many is not there
        self._posted = posted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        posted = self._posted.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if posted is not None:
            await posted(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The body, if it is not too large. How long it may take is the server's business: `protocol.Protocol`."""
    length = header(scope, b"content-length")
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


def _json(body: Any, status: int) -> Response:
    return Response(_encoder.encode(body), status, media_type="application/json")


def _answer(answer: Answer) -> Response:
    return _json(answer.body, answer.status)


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
    return Refused(
        413,
        f"The body has at least {size:,} bytes, and {LARGEST_BODY:,} are accepted. Send smaller batches.",
        field="body",
        value=size,
    )


async def _refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    return problem(refused)


async def _no_store(request: Request, wrong: Exception) -> Response:
    return problem(Refused(503, f"{wrong} Ask again."))


async def _not_found(request: Request, wrong: Exception) -> Response:
    assert isinstance(wrong, HTTPException)
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    method, path = request.method, request.url.path
    if not routes:
        paths = [route.path.partition("{")[0] for route in request.app.routes]
        detail = f"There is no {path!r} here{nearest(path, paths)}. /openapi.json lists what there is."
        return problem(Refused(404, detail, field="path", value=path))
    allowed = ", ".join(sorted({method for route in routes for method in route.methods}))
    answer = problem(Refused(405, f"{path!r} takes {allowed}, got {method}.", field="method", value=method))
    answer.headers["allow"] = allowed
    return answer
