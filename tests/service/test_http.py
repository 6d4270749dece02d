"""The service over real sockets: upgrades, slow and broken clients, limits of connections and heads."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hybandits.service import api
from hybandits.service.writer import Writer
from tests.support.bandits import USER, put, served, writer


@contextmanager
def connected(web: httpx.Client) -> Iterator[socket.socket]:
    with socket.create_connection((web.base_url.host, web.base_url.port or 0), timeout=60) as connection:
        yield connection


@pytest.fixture
def service(tmp_path: Path) -> Writer:
    service = writer(tmp_path)
    put(service, "a", "b")
    return service


def request(event: str, version: str = "1.1", *headers: str) -> bytes:
    """Return a request for a decision, as bytes."""
    body = json.dumps({"event_id": event, "user": USER}).encode()
    lines = [f"POST /v1/decisions HTTP/{version}", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers(connection: socket.socket, count: int) -> list[tuple[bytes, dict[str, object]]]:
    """Read so many answers, each with its head and its body."""
    file = connection.makefile("rb")
    received = []
    for _ in range(count):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += file.readline()
        length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:"))
        received.append((head, json.loads(file.read(length))))
    return received


UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAA")
"""Headers that the HTTP client of Java sends with the first request of a connection."""


@pytest.mark.parametrize("split", [True, False])
def test_a_request_that_offers_an_upgrade_is_served(service: Writer, split: bool) -> None:
    """Body in the same packet or a later one, and further requests on the same connection."""
    with served(service) as web, connected(web) as client:
        first = request("first", "1.1", *UPGRADE)
        at = first.index(b"\r\n\r\n") + 4 if split else len(first)
        client.sendall(first[:at])
        client.sendall(first[at:])
        ((head, body),) = answers(client, 1)
        assert head.startswith(b"HTTP/1.1 201 ")
        assert body["event_id"] == "first"
        client.sendall(request("second"))
        ((head, body),) = answers(client, 1)
        assert (head[:13], body["event_id"]) == (b"HTTP/1.1 201 ", "second")


def test_a_body_that_does_not_arrive_is_refused(service: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "BODY_SECONDS", 0.2)
    with served(service) as web, connected(web) as slow:
        slow.sendall(request("e")[:-5])
        ((head, body),) = answers(slow, 1)
        assert (head[:13], body["status"]) == (b"HTTP/1.1 408 ", 408)
        assert slow.recv(100) == b""


def test_clients_that_disconnect_do_no_harm(service: Writer) -> None:
    with served(service) as web:
        for i in range(20):
            with connected(web) as client:
                client.sendall(request(f"gone{i}"))
        assert web.post("/v1/decisions", json={"event_id": "e", "user": USER}).status_code == 201


def test_what_is_not_http_and_heads_that_are_too_large_are_refused(service: Writer) -> None:
    with served(service) as web:
        for start in (b"no request\r\n\r\n", b"GET /", b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: "):
            with connected(web) as client, contextlib.suppress(ConnectionError):
                client.sendall(start)
                for _ in range(0 if start.startswith(b"no") else 1000):
                    client.sendall(b"a" * 10_000)
                assert client.recv(100)[:12] in (b"HTTP/1.1 400", b"")
        assert web.get("/healthz").status_code == 200


@pytest.mark.parametrize("hosts", ["", "Host: localhost\r\nHost: localhost\r\n"])
def test_a_request_needs_one_host(service: Writer, hosts: str) -> None:
    with served(service) as web, connected(web) as client:
        client.sendall(f"GET /healthz HTTP/1.1\r\n{hosts}\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 400 ")


def test_beyond_the_limit_of_connections_requests_are_refused(service: Writer) -> None:
    with served(service, most=2) as web:
        with connected(web):
            while web.get("/healthz").status_code == 200:  # until the server has seen the other connection
                pass
            assert web.post("/v1/decisions", json={"user": USER}).status_code == 503
        while web.get("/healthz").status_code == 503:  # until the server has seen that it is closed
            pass
        assert web.post("/v1/decisions", json={"user": USER}).status_code == 201
