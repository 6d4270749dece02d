"""The description of the API that `/openapi.json` answers with, made from the structs that requests are checked by."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from hybandits.foundation.version import __version__
from hybandits.service import commands
from hybandits.service.commands import MOST, GiveReward, Ids, Promote, PutArm
from hybandits.service.dashboard.view import View
from hybandits.service.log.rows import Value
from hybandits.service.problems import TITLES

JSON, PROBLEM = "application/json", "application/problem+json"

ALWAYS = (401, 403, 503)
WITH_BODY = (400, 413, 422, *ALWAYS)


class Problem(msgspec.Struct):
    """A problem document (RFC 9457)."""

    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None


class Decide(commands.Decide, frozen=True, forbid_unknown_fields=True):
    """Make a decision."""

    candidates: Ids | None = None  # type: ignore[assignment]


class Decided(msgspec.Struct):
    """A decision: its arm, the chance with which it was drawn, and the version of the model that decided."""

    event_id: str
    arm: str
    propensity: float
    version: int


class DecisionInFull(Decided):
    """Everything that the log knows about a decision; its time is in seconds since 1970.

    `learned` is whether the reward counts. `closed` is whether the window has passed, and `learned_reward` what has
    been learned by now: the reward, or what counts without one; null if nothing has.
    """

    row: int
    time: float
    user: dict[str, Value]
    candidates: list[str]
    chances: dict[str, float]
    policy: str
    challengers: dict[str, float]
    arm_version: int
    reward: float | None
    learned: bool | None
    closed: bool
    learned_reward: float | None


class Rewarded(msgspec.Struct, kw_only=True):
    """A reward that is on disk, and whether the model learns it."""

    event_id: str
    reward: float
    learned: bool
    why: str | msgspec.UnsetType = msgspec.UNSET


class ArmAnswer(msgspec.Struct):
    """An arm as it is now; the version is the row that described it."""

    arm: str
    active: bool
    features: dict[str, Value] | msgspec.UnsetType = msgspec.UNSET
    version: int | msgspec.UnsetType = msgspec.UNSET


class DecidedItem(Decided):
    """A decision of a batch, with its status."""

    status: int


class RewardedItem(Rewarded, kw_only=True):
    """A reward of a batch, with its status."""

    status: int


class Promoted(msgspec.Struct):
    """The policy that decides now."""

    live: str


class Health(msgspec.Struct):
    """It works."""

    status: str
    version: int | msgspec.UnsetType = msgspec.UNSET


STRUCTS = (
    Decide, GiveReward, PutArm, Promote, Problem, Decided, DecisionInFull, Rewarded, ArmAnswer, DecidedItem,
    RewardedItem, Promoted, Health, View,
)  # fmt: skip


@cache
def document() -> bytes:
    """The description as JSON."""
    _, components = msgspec.json.schema_components(STRUCTS, ref_template="#/components/schemas/{name}")
    body = {
        "openapi": "3.1.0",
        "info": {
            "title": "hybandits",
            "version": __version__,
            "description": "Decide, reward, look. A decision or a reward is answered when it is on disk. Ids make "
            "requests safe to repeat.",
        },
        "paths": _paths(),
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    return msgspec.json.encode(body)


def _paths() -> dict[str, Any]:
    # Left out on purpose: /live, which is for the page's own script, and /openapi.json itself.
    return {
        "/v1/decisions": {
            "post": _operation(
                "decide", "Make a decision. The same id and body again give the same answer.", "Decide",
                {201: "Decided", 200: "Decided"}, (409, *WITH_BODY),
            )
        },
        "/v1/decisions/batch": {
            "post": _operation(
                "decide_batch", "Make many decisions in one transaction; each has a status of its own.",
                _batch("Decide"), {200: _answers("DecidedItem")}, WITH_BODY,
            )
        },
        "/v1/decisions/{id}": {
            "get": _operation(
                "look", "What was decided, among whom, with which chances, and its reward.", None,
                {200: "DecisionInFull"}, (404, 422, *ALWAYS), identified=True,
            )
        },
        "/v1/rewards": {
            "post": _operation(
                "reward", "Give the reward of a decision. 202: it came too late, and is not learned.", "GiveReward",
                {201: "Rewarded", 200: "Rewarded", 202: "Rewarded"}, (404, 409, *WITH_BODY),
            )
        },
        "/v1/rewards/batch": {
            "post": _operation(
                "reward_batch", "Give many rewards in one transaction; each has a status of its own.",
                _batch("GiveReward"), {200: _answers("RewardedItem")}, WITH_BODY,
            )
        },
        "/v1/arms": {"get": _operation("arms", "All arms.", None, {200: _list("ArmAnswer")}, ALWAYS)},
        "/v1/arms/{id}": {
            "put": _operation(
                "put_arm", "Make an arm a candidate, or describe it anew.", "PutArm",
                {201: "ArmAnswer", 200: "ArmAnswer"}, WITH_BODY, identified=True, required=False,
            ),
            "delete": _operation(
                "retire_arm", "Let an arm be no longer a candidate.", None, {200: "ArmAnswer"}, (404, 422, *ALWAYS),
                identified=True,
            ),
        },
        "/v1/promote": {
            "post": _operation(
                "promote", "Let another policy decide.", "Promote", {200: "Promoted"}, (404, *WITH_BODY)
            )
        },
        "/v1/view": {"get": _operation("view", "What the page shows.", None, {200: "View"}, ALWAYS)},
        "/healthz": {"get": _operation("healthy", "Whether the process answers.", None, {200: "Health"}, (403,))},
        "/readyz": {"get": _operation("ready", "Whether it can write.", None, {200: "Health"}, (403, 503))},
        "/metrics": {"get": _plain("measurements", "Measurements for Prometheus.", "text/plain")},
        "/": {"get": _plain("page", "The page.", "text/html", "text/html")},
        "/v1/live": {"get": _plain("live_view", "The view, whenever it changes.", "text/event-stream")},
    }  # fmt: skip


def _operation(
    name: str, summary: str, body: str | dict[str, Any] | None, answers: dict[int, str | dict[str, Any]],
    problems: tuple[int, ...], *, identified: bool = False, required: bool = True,
) -> dict[str, Any]:  # fmt: skip
    operation: dict[str, Any] = {"operationId": name, "summary": summary}
    if identified:
        schema = {"type": "string", "minLength": 1, "maxLength": 200}
        operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": schema}]
    if body is not None:
        operation["requestBody"] = {"required": required, "content": {JSON: {"schema": _schema(body)}}}
    operation["responses"] = {
        **{str(status): _answer("As asked.", JSON, _schema(schema)) for status, schema in answers.items()},
        **_problems(problems),
    }
    return operation


def _plain(name: str, summary: str, kind: str, refused: str = PROBLEM) -> dict[str, Any]:
    text = {"type": "string"}
    problems = _problems(ALWAYS)
    if refused != PROBLEM:
        problems["401"] = _answer(TITLES[401], refused, text)
    return {"operationId": name, "summary": summary, "responses": {"200": _answer("As asked.", kind, text), **problems}}


def _problems(statuses: tuple[int, ...]) -> dict[str, Any]:
    return {str(status): _answer(TITLES[status], PROBLEM, _schema("Problem")) for status in sorted(statuses)}


def _answer(description: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _schema(schema: str | dict[str, Any]) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{schema}"} if isinstance(schema, str) else schema


def _list(name: str) -> dict[str, Any]:
    return {"type": "array", "items": _schema(name)}


def _answers(name: str) -> dict[str, Any]:
    """The answers of a batch: each is what a single request would have been answered with, and its status."""
    return {"type": "array", "items": {"anyOf": [_schema(name), _schema("Problem")]}}


def _batch(name: str) -> dict[str, Any]:
    """Items of another form are answered with a problem of their own, and do not spoil the others."""
    return {"type": "array", "items": {"anyOf": [_schema(name), {}]}, "minItems": 1, "maxItems": MOST}
