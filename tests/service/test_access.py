"""Requests that are served without a token: programs of this machine, and pages that the service itself has sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hybandits.service.access import Tokens
from tests.support.bandits import served, writer


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(writer(tmp_path_factory.mktemp("access"))) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"host": "evil.example"}, "Host"),
        ({"host": "evil.example:8000"}, "Host"),
        ({"host": "127.0.0.1.evil.example"}, "Host"),
        ({"host": "localhost", "origin": "http://evil.example"}, "Origin"),
        ({"host": "localhost:1", "origin": "http://localhost:2"}, "Origin"),
        ({"host": "localhost", "origin": "null"}, "Origin"),
        ({"sec-fetch-site": "cross-site"}, "Sec-Fetch-Site"),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, "Sec-Fetch-Site"),
    ],
)
def test_pages_from_elsewhere_are_refused(web: httpx.Client, headers: dict[str, str], field: str) -> None:
    for method, path in (
        ("POST", "/v1/decisions"), ("PUT", "/v1/arms/a"), ("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics"),
    ):  # fmt: skip
        answer = web.request(method, path, headers={**headers, "content-type": "text/plain"}, content=b"{}")
        assert (path, answer.status_code) == (path, 403)
        assert answer.json()["field"] == field
        assert "--token-file" in answer.json()["detail"]
    assert web.get("/v1/arms").json() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost"},
        {"host": "LOCALHOST:8000"},
        {"host": "[::1]:8000"},
        {"host": "[::1]"},
        {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none", "sec-fetch-mode": "navigate"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_programs_of_this_machine_and_its_own_page_are_served(web: httpx.Client, headers: dict[str, str]) -> None:
    assert web.get("/v1/arms", headers=headers).status_code == 200


@pytest.mark.slow
def test_with_a_token_names_do_not_matter(tmp_path: Path) -> None:
    with served(writer(tmp_path), tokens=Tokens("token-for-everything")) as web:
        headers = {"host": "page.example", "origin": "https://shop.example", "sec-fetch-site": "cross-site"}
        assert web.get("/healthz", headers=headers).status_code == 200
        assert web.get("/v1/arms", headers=headers).status_code == 401
        headers["authorization"] = "Bearer token-for-everything"
        assert web.get("/v1/arms", headers=headers).status_code == 200
