"""The routes for those who look: with and without a token."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from hybandits.service import openapi
from hybandits.service.access import Tokens
from hybandits.service.api import application
from hybandits.service.dashboard.view import View
from tests.support.bandits import CLICKS, put, served, writer

TOKEN = "a-token-for-everything"


def test_everything_there_is_to_look_at(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS)
    put(service, "a")
    with served(service) as web:
        assert web.get("/").headers["content-type"] == "text/html; charset=utf-8"
        assert msgspec.json.decode(web.get("/v1/view").content, type=View).active_arms == 1
        assert web.get("/metrics").text.startswith("# HELP")
        description = web.get("/openapi.json").json()
        assert description["openapi"] == "3.1.0"
        for path, form in (("/live", "page"), ("/v1/live", "view")):
            with web.stream("GET", path) as answer:
                first = json.loads(next(answer.iter_lines()).removeprefix("data: "))
                assert isinstance(first, str if form == "page" else dict)


def test_a_token_is_needed_where_there_is_one(tmp_path: Path) -> None:
    with served(writer(tmp_path, CLICKS), Tokens(TOKEN)) as web:
        for path in ("/v1/view", "/v1/live", "/live", "/metrics", "/"):
            assert web.get(path).status_code == 401
            assert web.get(path, headers={"authorization": "Bearer other"}).status_code == 401
            with web.stream("GET", path, headers={"authorization": f"Bearer {TOKEN}"}) as answer:
                assert answer.status_code == 200
        locked = web.get("/")
        assert "A token is needed" in locked.text
        assert "page" not in locked.text.split("<title>")[1].split("</title>")[0]  # not even the bandit's name
        assert "content-security-policy" in locked.headers


def test_the_description_names_every_route(tmp_path: Path) -> None:
    described = json.loads(openapi.document())
    routes = {
        (route.path.replace(":any", ""), method.lower())  # type: ignore[attr-defined]
        for route in application(writer(tmp_path)).routes
        for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
    }
    known = {(path, method) for path, methods in described["paths"].items() for method in methods}
    assert routes - known == {("/openapi.json", "get"), ("/live", "get")}
    assert known <= routes
