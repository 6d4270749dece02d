"""The description of the API that `/openapi.json` answers with, derived from the table of endpoints."""

from functools import cache
from http import HTTPStatus
from typing import Any, get_args

import msgspec

from hybandits.foundation import __version__
from hybandits.service.api import ENDPOINTS, Endpoint
from hybandits.service.commands import LONGEST, MOST

PROBLEM = "application/problem+json"


class Problem(msgspec.Struct):
    """A problem document (RFC 9457)."""

    title: str
    status: int
    detail: str
    field: str | None = None
    value: Any = None


@cache
def document() -> bytes:
    """Return the description as JSON."""
    endpoints = [each for each in ENDPOINTS if "text/html" not in each.answers.values() and each.name != "openapi"]
    kinds = {kind for each in endpoints for answer in each.answers.values() for kind in get_args(answer) or [answer]}
    kinds |= {each.body for each in endpoints}
    structs = sorted((kind for kind in kinds if isinstance(kind, type)), key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components([Problem, *structs], ref_template="#/components/schemas/{name}")
    paths: dict[str, dict[str, Any]] = {}
    for each in endpoints:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    body = {
        "openapi": "3.1.0",
        "info": {
            "title": "hybandits",
            "version": __version__,
            "description": "Decisions and rewards are answered when they are on disk. Ids make requests idempotent.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }
    return msgspec.json.encode(body)


def _operation(each: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": each.name, "summary": each.summary}
    problems = {403, 503, *each.problems}
    if each.token:
        problems.add(401)
    if "{id}" in each.path:
        schema = {"type": "string", "minLength": 1, "maxLength": LONGEST}
        operation["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": schema}]
        problems.add(422)
    if each.body is not None:
        schema = _schema(each.body)
        if each.batch:  # items of another form are refused alone
            schema = {"type": "array", "items": {"anyOf": [schema, {}]}, "minItems": 1, "maxItems": MOST}
        operation["requestBody"] = {"required": each.required, "content": {"application/json": {"schema": schema}}}
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
