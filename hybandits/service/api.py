"""The endpoints of the service: functions under `endpoint`, from which routes, access rules and `openapi` derive.

Parameters of a function are named for what they take: `id` from the path, `body`, or the whole `scope`.
"""

import asyncio
import contextlib
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import cache
from http import HTTPStatus
from typing import Any, get_args
from urllib.parse import quote, unquote_to_bytes

import msgspec
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from hybandits.foundation import __version__
from hybandits.foundation.checks import nearest
from hybandits.kernels.decisions import with_floor
from hybandits.service import page as dashboard
from hybandits.service.access import Tokens
from hybandits.service.alerts import Alerts
from hybandits.service.commands import (
    LONGEST,
    MOST,
    Answer,
    ArmFeatures,
    ArmState,
    Command,
    Control,
    Correct,
    Corrections,
    Decide,
    Decided,
    Erase,
    ErasedUser,
    EraseUser,
    GiveReward,
    Promote,
    Promoted,
    PutArm,
    PutArms,
    Refused,
    Retire,
    Rewarded,
    decode,
    decode_batch,
)
from hybandits.service.log import DECISION, FEW, EventRows, Reward, Row, StoreError, Value, keys_of, place_key
from hybandits.service.metrics import Metrics, text_of
from hybandits.service.model_state import ModelState
from hybandits.service.rules import Controls
from hybandits.service.view import View, Views
from hybandits.service.writer import Writer, arm_state, decided_of

LARGEST_BODY = 4_000_000
"""Bytes of a request's body."""

BODY_SECONDS = 10.0
"""Seconds that a request's body may take to arrive."""

HEADERS = {401: {"www-authenticate": "Bearer"}, 408: {"connection": "close"}, 503: {"retry-after": "1"}}
"""Headers of refusals by status. After 408 the rest of the body is not waited for."""

PROBLEM = "application/problem+json"

LOOKING = 2.0
"""Seconds between two searches for new bandits."""

ROOT, NAMED = "/v1/", "/v1/bandits/{bandit}/"
"""Paths of the only bandit, and of each of several."""

logger = logging.getLogger("hybandits.service")


class AnyText(StringConvertor):
    """Ids in paths: any text, line breaks and slashes included."""

    regex = r"[\s\S]*"


register_url_convertor("any", AnyText())


class RecordedDecision(Decided, kw_only=True):
    """Everything that the log has about a decision; its time is in seconds since 1970.

    `learned` says whether the reward counts, and `learned_reward` is the value that has been learned, or null.
    """

    row: int
    time: float
    user: dict[str, Value]
    candidates: list[str]
    probabilities: dict[str, float]
    policy: str
    challengers: dict[str, float]
    arm_version: int
    reward: float | None
    learned: bool | None
    closed: bool
    learned_reward: float | None
    place_rewards: list[float | None]


class Health(msgspec.Struct):
    """The process works."""

    status: str
    version: int | msgspec.UnsetType = msgspec.UNSET


class Problem(msgspec.Struct):
    """A problem document (RFC 9457)."""

    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None


class BanditState(msgspec.Struct):
    """A bandit of this process, in brief."""

    name: str
    path: str
    decisions: int
    rewards: int
    live: str
    trouble: str | None
    warnings: list[str]


class Service:
    """A bandit: everything that its endpoints use."""

    def __init__(self, writer: Writer) -> None:
        self.name = writer.state.bandit.name
        self.writer = writer
        self.metrics = Metrics(writer)
        self.views = Views(writer, self.metrics.refusals)

    async def request(self, command: Command) -> Answer:
        """Hand one command to the writer and return its answer."""
        (outcome,) = await self.writer.request([command])
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    async def batch(self, items: Sequence[Command | Refused]) -> Answer:
        """Hand the usable items of a batch to the writer; every item has a status of its own."""
        usable = [item for item in items if not isinstance(item, Refused)]
        served = await self.writer.request(usable) if usable else []
        if served and isinstance(served[0], Refused) and served[0].status == 503:  # nothing could be written
            raise served[0]
        following, answers = iter(served), []
        for each in items:
            outcome = each if isinstance(each, Refused) else next(following)
            if isinstance(outcome, Answer):
                answers.append({"status": outcome.status, **msgspec.to_builtins(outcome.body)})
            else:
                self.metrics.refused(outcome.status)
                answers.append(outcome.document())
        return Answer(200, answers)

    async def probe(self) -> str | None:
        """Read what others have written, write an empty transaction, and return why that fails."""
        await self.writer.request([])
        return self.writer.trouble


class Bandits:
    """The bandits of a process by name, each with a log, a writer and a thread of its own."""

    def __init__(self, writers: Iterable[Writer], tokens: Tokens) -> None:
        self.access = tokens
        self.services: dict[str, Service] = {}
        for writer in writers:
            self.add(writer)

    def add(self, writer: Writer) -> None:
        """Add a bandit; its requests are served from now on."""
        service = Service(writer)
        services = {**self.services, service.name: service}
        if len(services) == len(self.services):
            raise ValueError(f"two bandits are called {service.name!r}: rename one")
        if slashes := [name for name in services if "/" in name and len(services) > 1]:
            raise ValueError(f"the name {slashes[0]!r} has a slash, and cannot tell bandits apart in paths: rename it")
        self.services = services

    @property
    def first(self) -> Service:
        """The bandit with which requests are counted that name none."""
        return next(iter(self.services.values()))

    def looks(self) -> dict[str, Callable[[], Awaitable[View]]]:
        """Return how to look at the bandits that have a webhook."""
        return {
            name: each.views.newest
            for name, each in self.services.items()
            if each.writer.state.bandit.webhook is not None
        }

    def of(self, scope: Scope) -> Service:
        """Return the bandit that a request names, or the only one."""
        name = scope.get("path_params", {}).get("bandit")
        if name in self.services:
            return self.services[name]
        if name is not None:
            there = ", ".join(self.services)
            detail = f"There is no bandit {name!r}{nearest(name, self.services)}. There are {there}."
            raise Refused(404, detail, field="bandit", value=name)
        if len(self.services) > 1:
            detail = "There are several bandits here. Use /v1/bandits/{name}/.. ; GET /v1/bandits lists them."
            raise Refused(404, detail, field="path", value=scope["path"])
        return self.first


ENDPOINTS: list["Endpoint"] = []


class Endpoint:
    """One method of one path, as an ASGI application, with the name and docstring of its handler.

    A handler takes one bandit as `service`, or all as `bandits`.

    `answers` are structs, lists of one, or media types by status. `body` is the command that is read, with `batch` a
    list of them. `token` and `manage` ask for a token, and for the second one, where there are any.
    """

    def __init__(
        self, handler: Callable[..., Awaitable[Answer | Response]], method: str, path: str, answers: dict[int, Any], *,
        body: Any = None, batch: bool = False, required: bool = True, problems: tuple[int, ...] = (),
        token: bool = True, manage: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.summary = handler.__name__, (inspect.getdoc(handler) or "").partition("\n")[0]
        self.method, self.path, self.answers, self.problems = method, path, answers, problems
        self.body, self.batch, self.required = body, batch, required
        self.token, self.manage = token, manage
        self._handler = handler
        self._parameters = inspect.signature(handler).parameters.keys()
        self.of_one = "service" in self._parameters
        self._decoder = None if body is None else msgspec.json.Decoder(body)
        ENDPOINTS.append(self)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        bandits: Bandits = scope["app"].state.bandits
        service: Service | None = None
        began, status = time.perf_counter(), 500
        try:
            try:
                service = bandits.of(scope) if self.of_one else None
            except Refused as refused:
                response = problem(refused)
            else:
                response = await self._response(bandits, service, scope, receive)
            status = response.status_code
            await response(scope, receive, send)
        finally:
            (service or bandits.first).metrics.observe(self.name, status, time.perf_counter() - began)

    async def _response(self, bandits: Bandits, service: Service | None, scope: Scope, receive: Receive) -> Response:
        try:
            bandits.access.check(scope, token=self.token, manage=self.manage)
            arguments: dict[str, Any] = {}
            if self._decoder is not None:
                body = await read_body(receive) or (b"" if self.required else b"{}")
                arguments["body"] = (decode_batch if self.batch else decode)(self._decoder, body)
            if "id" in self._parameters:
                arguments["id"] = _id(scope)
            if "scope" in self._parameters:
                arguments["scope"] = scope
            answer = await self._handler(service or bandits, **arguments)
        except Refused as refused:
            return problem(refused)
        except StoreError as wrong:
            return problem(Refused(503, f"{wrong} Ask again."))
        if isinstance(answer, Response):
            return answer
        return Response(msgspec.json.encode(answer.body), answer.status, media_type="application/json")


def endpoint(method: str, path: str, answers: dict[int, Any], **options: Any) -> Callable[[Any], Endpoint]:
    """Declare a function as an endpoint; see `Endpoint` for the options."""
    return lambda handler: Endpoint(handler, method, path, answers, **options)


@endpoint("POST", "/v1/decisions", {201: Decided, 200: Decided}, body=Decide, problems=(409,))
async def decide(service: Service, body: Decide) -> Answer:
    """Make a decision. The same id and body again give the same answer."""
    return await service.request(body)


@endpoint("POST", "/v1/rewards", {201: Rewarded, 200: Rewarded, 202: Rewarded}, body=GiveReward, problems=(404, 409))
async def reward(service: Service, body: GiveReward) -> Answer:
    """Record the reward of a decision. 202: it came too late, and is not learned."""
    return await service.request(body)


@endpoint("POST", "/v1/corrections", {201: Corrections, 200: Corrections}, body=Correct, problems=(404, 409))
async def correct(service: Service, body: Correct) -> Answer:
    """Correct a reward, or withdraw it (null): the model becomes what it would have been."""
    return await service.request(body)


@endpoint("POST", "/v1/erasures", {202: ErasedUser, 200: ErasedUser}, body=EraseUser, manage=True)
async def erase(service: Service, body: EraseUser) -> Answer:
    """Erase all events of a user: 202 as long as there are some."""
    writer = service.writer
    await writer.request([])
    upto = writer.state.row
    return await service.request(
        Erase(body.user_key, await asyncio.to_thread(_decisions_of, writer, body.user_key, upto), upto)
    )


def _decisions_of(writer: Writer, user_key: str, upto: int) -> list[int]:
    return [row.number for row in writer.store.rows(0, upto, [DECISION]) if row.decision.key == user_key]


@endpoint("POST", "/v1/decisions/batch", {200: list[Decided]}, body=Decide, batch=True)
async def decide_batch(service: Service, body: list[Decide | Refused]) -> Answer:
    """Make many decisions in one transaction; each has a status of its own."""
    return await service.batch(body)


@endpoint("POST", "/v1/rewards/batch", {200: list[Rewarded]}, body=GiveReward, batch=True)
async def reward_batch(service: Service, body: list[GiveReward | Refused]) -> Answer:
    """Record many rewards in one transaction; each has a status of its own."""
    return await service.batch(body)


@endpoint("GET", "/v1/decisions/{id}", {200: RecordedDecision}, problems=(404,))
async def decision(service: Service, id: str) -> Answer:
    """Return a recorded decision: its candidates, their probabilities, and its reward."""
    writer, state = service.writer, service.writer.state
    if (await asyncio.to_thread(writer.store.last))[0] > state.row:
        await writer.request([])  # another server may have closed the decision
    last_closed = state.closed  # read first, because a reward that came in time is in the log by then
    keys = [place_key(id, place) for place in range(1, state.bandit.places + 1)]
    found = await asyncio.to_thread(writer.store.find, keys)
    row, given, _ = found.get(id, EventRows())
    if row is None:
        detail = f"There is no decision with the event id {id!r}. Use the event_id that it was answered with."
        raise Refused(404, detail, field="id", value=id)
    content = row.decision
    reward = None if given is None else given.content
    assert reward is None or isinstance(reward, Reward)
    ids = await asyncio.to_thread(_candidates_of, writer, row)
    closed = row.number <= last_closed
    own, mixed = dict(content.distribution), with_floor.py_func  # a few numbers are not worth the time to compile
    rewards = [_value(found.get(key, EventRows()).reward) for key in keys_of(content)]
    recorded = RecordedDecision(
        event_id=id,
        arm=content.arm,
        propensity=content.chance,
        version=content.version,
        row=row.number,
        time=row.time / 1e6,
        user=content.user,
        candidates=ids,
        probabilities={arm: mixed(own.get(i, 0.0), content.floor, content.n) for i, arm in enumerate(ids)},
        policy=content.policy,
        challengers=content.shadows,
        arm_version=content.arm_version,
        reward=None if reward is None else reward.reward,
        learned=None if reward is None else not reward.late,
        closed=closed,
        learned_reward=state.learned_reward(given, id) if closed or state.bandit.window is None else None,
        places=decided_of(content).places,
        place_rewards=rewards,
    )
    return Answer(200, recorded)


def _value(given: Row | None) -> float | None:
    return given.content.reward if given is not None and isinstance(given.content, Reward) else None


def _candidates_of(writer: Writer, row: Row) -> list[str]:
    """Return the candidates of a decision, by the arms and guard rails of its version."""
    described = ModelState.opened(writer.store)
    for each in writer.store.rows(1, row.decision.version, FEW):
        described.describe(each)
    return described.pool_of(row.decision, row.time).ids


@endpoint("GET", "/v1/arms", {200: list[ArmState]})
async def arms(service: Service) -> Answer:
    """List all arms, those included that other servers have put."""
    if await service.probe() is not None:
        raise Refused(503, f"{service.writer.trouble} Ask again.")
    return Answer(200, [arm_state(arm, each) for arm, each in list(service.writer.state.arms.items())])


@endpoint("PUT", "/v1/arms", {201: list[ArmState], 200: list[ArmState]}, body=PutArms, manage=True)
async def put_arms(service: Service, body: PutArms) -> Answer:
    """Add or replace many arms: all of them, or none if one cannot be used."""
    return await service.request(body)


@endpoint("POST", "/v1/arms/retire", {200: list[ArmState]}, body=Retire, problems=(404,), manage=True)
async def retire_arms(service: Service, body: Retire) -> Answer:
    """Retire many arms: all of them, or none if one is unknown."""
    return await service.request(body)


@endpoint("PUT", "/v1/arms/{id}", {201: ArmState, 200: ArmState}, body=ArmFeatures, required=False, manage=True)
async def put_arm(service: Service, id: str, body: ArmFeatures) -> Answer:
    """Add an arm, or replace its features and times."""
    put = PutArm(arm=_arm_id(id), features=body.features, start=body.start, end=body.end)
    answer = await service.request(PutArms([put]))
    return Answer(answer.status, answer.body[0])


@endpoint("DELETE", "/v1/arms/{id}", {200: ArmState}, problems=(404,), manage=True)
async def retire_arm(service: Service, id: str) -> Answer:
    """Retire an arm: it is no longer a candidate."""
    answer = await service.request(Retire([_arm_id(id)]))
    return Answer(answer.status, answer.body[0])


@endpoint("GET", "/v1/controls", {200: Controls})
async def controls(service: Service) -> Answer:
    """Return the guard rails."""
    await service.writer.request([])  # another server may have changed them
    return Answer(200, service.writer.state.controls)


@endpoint("PUT", "/v1/controls", {200: Controls}, body=Controls, manage=True)
async def put_controls(service: Service, body: Controls) -> Answer:
    """Let these guard rails hold from now on, and no others."""
    return await service.request(Control(body))


def _arm_id(id: str) -> str:
    if not 1 <= len(id) <= LONGEST:
        detail = f"The id of an arm has 1 to {LONGEST} characters, got {len(id)}. Choose another."
        raise Refused(422, detail, field="id", value=id)
    return id


@endpoint("POST", "/v1/promote", {200: Promoted}, body=Promote, problems=(404,), manage=True)
async def promote(service: Service, body: Promote) -> Answer:
    """Let another policy decide."""
    return await service.request(body)


@endpoint("GET", "/", {200: "text/html"}, token=False)
async def page(bandits: Bandits, scope: Scope) -> Response:
    """Show the dashboard of the only bandit, or a list of all; or ask for the token."""
    if len(bandits.services) == 1:
        return await _page(bandits, scope, lambda: _dashboard(bandits.first))
    return await _page(bandits, scope, lambda: _list(bandits))


@endpoint("GET", "/bandits/{bandit}", {200: "text/html"}, token=False)
async def page_of_bandit(bandits: Bandits, scope: Scope) -> Response:
    """Show the dashboard of one of several bandits, or ask for the token."""
    return await _page(bandits, scope, lambda: _dashboard(bandits.of(scope)))


async def _page(bandits: Bandits, scope: Scope, shown: Callable[[], Awaitable[str]]) -> Response:
    try:
        bandits.access.check(scope)
    except Refused as refused:
        if refused.status != 401:
            raise
        asking = dashboard.page(None, refused="authorization" in Headers(scope=scope))
        return Response(asking, 401, {**dashboard.headers(), **HEADERS[401]}, "text/html")
    return Response(await shown(), 200, dashboard.headers(), "text/html")


async def _dashboard(service: Service) -> str:
    return dashboard.page(await service.views.newest())


async def _list(bandits: Bandits) -> str:
    return dashboard.list_page([await each.views.newest() for each in bandits.services.values()])


@endpoint("GET", "/v1/bandits", {200: list[BanditState]})
async def list_bandits(bandits: Bandits) -> Answer:
    """List the bandits of this process."""
    views = {name: await each.views.newest() for name, each in bandits.services.items()}
    states = [
        BanditState(
            name, f"/v1/bandits/{quote(name, safe='')}", view.decisions, view.rewards, view.live, view.trouble,
            [each.code for each in view.warnings],
        )
        for name, view in views.items()
    ]  # fmt: skip
    return Answer(200, states)


@endpoint("GET", "/v1/view", {200: View})
async def view(service: Service) -> Answer:
    """Return the values that the dashboard shows."""
    return Answer(200, await service.views.newest())


@endpoint("GET", "/metrics", {200: "text/plain"})
async def metrics(bandits: Bandits) -> Response:
    """Return measurements for Prometheus, those of every bandit with its name as a label."""
    all_ = {name: (each.metrics, await each.views.newest()) for name, each in bandits.services.items()}
    return Response(text_of(all_), media_type="text/plain; version=0.0.4; charset=utf-8")


@endpoint("GET", "/openapi.json", {200: "application/json"}, token=False)
async def openapi(bandits: Bandits) -> Response:
    """Describe the API for programs."""
    return Response(document(), media_type="application/json")


@endpoint("GET", "/healthz", {200: Health}, token=False)
async def healthy(bandits: Bandits) -> Answer:
    """Answer, which shows that the process runs."""
    return Answer(200, {"status": "ok"})


@endpoint("GET", "/readyz", {200: Health}, token=False)
async def ready(bandits: Bandits, scope: Scope) -> Answer:
    """Check that every bandit can write, by a write that changes nothing."""
    for service in bandits.services.values():
        trouble = await service.probe()
        if trouble is not None:
            try:
                bandits.access.check(scope)
            except Refused:  # reasons name files and hosts
                trouble = "The service cannot write now. Ask with the token for the reason."
            raise Refused(503, trouble)
    only = len(bandits.services) == 1
    return Answer(200, Health("ok", bandits.first.writer.state.row if only else msgspec.UNSET))


def application(
    *writers: Writer,
    tokens: Tokens | None = None,
    look: Callable[[], Iterable[Writer]] | None = None,
    stopped: Callable[[], object] = lambda: None,
) -> Starlette:
    """Return the service as an ASGI application.

    `look` returns bandits that are new, every other second, and `stopped` is called when nobody uses the logs any more.
    """
    bandits = Bandits(writers, tokens or Tokens())

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        for writer in writers:
            writer.start()
        tasks = [asyncio.create_task(Alerts().watch(bandits.looks))]
        tasks += [] if look is None else [asyncio.create_task(_look(bandits, look))]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for service in bandits.services.values():
            await asyncio.to_thread(service.writer.stop)
        await asyncio.get_running_loop().shutdown_default_executor()  # threads may still be reading a log
        stopped()

    several = [(each.path.replace(ROOT, NAMED, 1), each) for each in ENDPOINTS if each.of_one]
    routes = [(each.path, each) for each in ENDPOINTS] + several
    app = Starlette(
        routes=[Route(path.replace("{id}", "{id:any}"), each, methods=[each.method]) for path, each in routes],
        lifespan=lifespan,
        exception_handlers={HTTPException: _not_found},
    )
    app.router.redirect_slashes = False
    app.state.bandits = bandits
    return app


async def _look(bandits: Bandits, look: Callable[[], Iterable[Writer]]) -> None:
    """Add bandits that are new, again and again."""
    while True:
        await asyncio.sleep(LOOKING)
        for writer in await asyncio.to_thread(lambda: list(look())):
            try:
                bandits.add(writer)
            except ValueError as wrong:
                logger.error("a bandit is not served: %s", wrong)
                continue
            writer.start()
            logger.warning("serving one more bandit: %s", writer.state.bandit.name)


async def read_body(receive: Receive) -> bytes:
    """Read the body, if it is not too large and arrives in time."""
    body, more = b"", True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(408, "The client disconnected before its body had arrived.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > LARGEST_BODY:
                    detail = f"The body has more than {LARGEST_BODY:,} bytes. Send smaller batches."
                    raise Refused(413, detail, field="body", value=len(body))
    except TimeoutError:
        raise Refused(408, f"The body has not arrived within {BODY_SECONDS:g} seconds. Send it again.") from None
    return body


def _id(scope: Scope) -> str:
    """Return the id in a path; undecodable bytes would all become the same character."""
    path: bytes = scope["raw_path"]
    try:
        unquote_to_bytes(path).decode()
    except UnicodeDecodeError:
        text = path.decode("latin-1")
        detail = f"The path {text!r} is not UTF-8. Encode the id as UTF-8 before % is used."
        raise Refused(422, detail, field="id", value=text) from None
    id: str = scope["path_params"]["id"]
    return id


def problem(refused: Refused) -> Response:
    """Return a refusal as a response."""
    body = msgspec.json.encode(refused.document())
    return Response(body, refused.status, HEADERS.get(refused.status), media_type=PROBLEM)


async def _not_found(request: Request, wrong: Exception) -> Response:
    method, path = request.method, request.url.path
    matching = [each for each in request.app.routes if each.matches(request.scope)[0] is not Match.NONE]
    if allowed := ", ".join(sorted({method for each in matching for method in each.methods})):
        refused = Refused(405, f"{path!r} takes {allowed}, got {method}.", field="method", value=method)
    else:
        near = nearest(path, [each.path.partition("{")[0] for each in ENDPOINTS])
        detail = f"There is no {path!r}{near}. /openapi.json lists all paths."
        refused = Refused(404, detail, field="path", value=path)
    request.app.state.bandits.first.metrics.observe("unknown", refused.status, 0.0)
    response = problem(refused)
    if allowed:
        response.headers["allow"] = allowed
    return response


_USER = {"age": 31, "visits": 2, "country": "de"}

EXAMPLES: dict[str, Any] = {
    "put_arms": {"arms": [{"arm": "a17", "features": {"price": 2.5}}, {"arm": "b4", "features": {"price": 1.0}}]},
    "put_arm": {"features": {"price": 3.0}, "from": "2020-12-01T00:00:00Z"},
    "decide": {"event_id": "visit-1", "user": _USER, "user_key": "visitor-7", "candidates": ["a17", "b4"]},
    "decide_batch": [{"event_id": "visit-2", "user": _USER}, {"event_id": "visit-3", "user": _USER}],
    "reward": {"event_id": "visit-1", "reward": 1},
    "reward_batch": [{"event_id": "visit-2", "reward": 1}, {"event_id": "visit-3", "reward": 0}],
    "correct": {"correction_id": "refund-5", "event_id": "visit-1", "reward": None},
    "erase": {"user_key": "visitor-7"},
    "put_controls": {"pause": None, "arms": {"a17": {"most": 0.3}, "b4": {"least": 0.1}}},
    "promote": {"policy": "live"},
    "retire_arms": {"arms": ["a17"]},
}
"""Bodies of requests by their endpoints, in an order in which they can be sent to the bandit of the README."""


@cache
def document() -> bytes:
    """Return the description of the API (OpenAPI) as JSON."""
    endpoints = [each for each in ENDPOINTS if "text/html" not in each.answers.values() and each.name != "openapi"]
    kinds = {kind for each in endpoints for answer in each.answers.values() for kind in get_args(answer) or [answer]}
    kinds |= {each.body for each in endpoints}
    structs = sorted((kind for kind in kinds if isinstance(kind, type)), key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components([Problem, *structs], ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, each.path)
    for each in endpoints:
        if each.of_one:
            path = each.path.replace(ROOT, NAMED, 1)
            paths.setdefault(path, {})[each.method.lower()] = _operation(each, path)
    about = "Decisions and rewards are answered when they are on disk. Ids make requests idempotent."
    body = {
        "openapi": "3.1.0",
        "info": {"title": "hybandits", "version": __version__, "description": about},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }
    return msgspec.json.encode(body)


def _operation(each: Endpoint, path: str) -> dict[str, Any]:
    named = path != each.path
    operation: dict[str, Any] = {"operationId": f"{each.name}_of" if named else each.name, "summary": each.summary}
    problems = {403, 503, *each.problems} | ({401} if each.token else set()) | ({404} if each.of_one else set())
    names = [name for name in ("bandit", "id") if f"{{{name}}}" in path]
    if names:
        schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]
    if "id" in names:
        problems.add(422)
    if each.body is not None:
        schema = _schema(each.body)
        if each.batch:  # items of another form are refused alone
            schema = {"type": "array", "items": {"anyOf": [schema, {}]}, "minItems": 1, "maxItems": MOST}
        content = {"application/json": {"schema": schema, "example": EXAMPLES[each.name]}}
        operation["requestBody"] = {"required": each.required, "content": content}
        problems |= {400, 413, 422}
    operation["responses"] = {
        **{str(status): _answer(answer, each.batch) for status, answer in each.answers.items()},
        **{str(status): _content(HTTPStatus(status).phrase, PROBLEM, _schema(Problem)) for status in sorted(problems)},
    }
    return operation


def _answer(answer: Any, batch: bool) -> dict[str, Any]:
    if isinstance(answer, str):
        return _content("Success.", answer, {"type": "string"})
    schema = _schema(*(get_args(answer) or [answer]))
    if get_args(answer):
        status = {"type": "object", "properties": {"status": {"type": "integer"}}, "required": ["status"]}
        item = {"anyOf": [{"allOf": [schema, status]}, _schema(Problem)]}
        schema = {"type": "array", "items": item if batch else schema}
    return _content("Success.", "application/json", schema)


def _content(description: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def _schema(kind: type) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{kind.__name__}"}
