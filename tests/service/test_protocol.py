"""HTTP below the application: slow clients, and answers that are written in one piece."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from hybandits.service import protocol
from tests.support.bandits import USER, put, served, writer


@contextmanager
def connected(web: httpx.Client) -> Iterator[socket.socket]:
    with socket.create_connection((web.base_url.host, web.base_url.port or 0), timeout=60) as connection:
        yield connection


def asked(event: str, version: str = "1.1", *headers: str) -> bytes:
    """A request for a decision, as bytes."""
    body = json.dumps({"event_id": event, "user": USER}).encode()
    lines = [f"POST /v1/decisions HTTP/{version}", "Host: 127.0.0.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def answers(connection: socket.socket, count: int) -> list[tuple[bytes, dict[str, object]]]:
    """So many answers, each with its head and its body."""
    file = connection.makefile("rb")
    found = []
    for _ in range(count):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += file.readline()
        length = next(int(line[15:]) for line in head.splitlines() if line.lower().startswith(b"content-length:"))
        found.append((head, json.loads(file.read(length))))
    return found


def test_a_client_that_sends_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.1)
    with served(writer(tmp_path)) as web, connected(web) as silent:
        assert silent.recv(100) == b""
        assert web.get("/healthz").status_code == 200


def test_a_client_that_stops_in_the_middle_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.2)
    service = writer(tmp_path)
    put(service, "a")
    with served(service) as web, connected(web) as slow:
        slow.sendall(asked("first"))
        assert answers(slow, 1)[0][1]["event_id"] == "first"
        slow.sendall(asked("second")[:-5])
        assert slow.recv(100) == b""


def test_requests_that_come_together_are_answered_in_their_order(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    with served(service) as web, connected(web) as client:
        client.sendall(b"".join(asked(f"e{i}") for i in range(5)))
        events = [body["event_id"] for _, body in answers(client, 5)]
        assert events == [f"e{i}" for i in range(5)]
        client.sendall(asked("e0"))
        ((head, body),) = answers(client, 1)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"content-type: application/json\r\n" in head
        assert body["event_id"] == "e0"


@pytest.mark.parametrize(("version", "headers"), [("1.1", ("Connection: close",)), ("1.0", ())])
def test_a_connection_that_the_client_does_not_keep_is_closed(
    tmp_path: Path, version: str, headers: tuple[str, ...]
) -> None:
    service = writer(tmp_path)
    put(service, "a")
    with served(service) as web, connected(web) as client:
        client.sendall(asked("e", version, *headers))
        ((head, body),) = answers(client, 1)
        assert head.startswith(b"HTTP/1.1 201 ")
        assert b"connection: close\r\n" in head
        assert body["event_id"] == "e"
        assert client.recv(100) == b""


def test_a_client_that_went_away_does_no_harm(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a")
    with served(service) as web:
        for i in range(20):
            with connected(web) as client:
                client.sendall(asked(f"gone{i}"))
        assert web.post("/v1/decisions", json={"event_id": "e", "user": USER}).status_code == 201


def test_a_head_without_end_is_refused(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web:
        for start in (b"GET /", b"GET / HTTP/1.1\r\nX-Long: "):
            with connected(web) as client:
                client.sendall(start)
                with contextlib.suppress(ConnectionError):  # the server does not read to the end
                    for _ in range(1000):
                        client.sendall(b"a" * 10_000)
                assert client.recv(100)[:12] in (b"HTTP/1.1 431", b"")
        assert web.get("/healthz").status_code == 200


def test_what_is_not_http_is_answered_with_a_problem_document(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web, connected(web) as client:
        client.sendall(b"this is no request\r\n\r\n")
        ((head, body),) = answers(client, 1)
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"content-type: application/problem+json\r\n" in head
        assert (body["status"], body["title"]) == (400, "This is not HTTP")
        assert "Send HTTP/1.1" in str(body["detail"])


def refusals(web: httpx.Client) -> dict[str, int]:
    counted: dict[str, int] = web.get("/v1/view").json()["refusals"]
    return counted


def test_beyond_the_limit_of_connections_all_are_asked_to_come_back(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a")
    with served(service, most=2) as web:
        with connected(web):
            while web.get("/healthz").status_code == 200:  # until the server has seen the other one
                pass
            for path in ("/healthz", "/v1/arms"):
                answer = web.get(path)
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
                assert answer.headers["content-type"] == "application/problem+json"
                assert "2 connections or requests" in answer.json()["detail"]
            assert web.post("/v1/decisions", json={"user": USER}).status_code == 503
        while web.get("/healthz").status_code == 503:  # until the server has seen that the other one has gone
            pass
        assert refusals(web)["503"] >= 3
        assert web.post("/v1/decisions", json={"user": USER}).status_code == 201


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ("GET /healthz HTTP/1.1", 400),
        ("GET /healthz HTTP/1.1|Host: localhost|Host: localhost", 400),
        ("GET /healthz HTTP/1.0|Host: localhost|host: localhost", 400),
        ("POST /v1/decisions HTTP/1.1|Content-Length: 2", 400),
        ("GET /healthz HTTP/1.0", 200),
        ("GET /healthz HTTP/1.1|Host: localhost", 200),
    ],
)
def test_a_request_has_one_host(tmp_path: Path, lines: str, status: int) -> None:
    with served(writer(tmp_path)) as web, connected(web) as client:
        client.sendall(lines.replace("|", "\r\n").encode() + b"\r\n\r\n" + b"{}" * lines.startswith("POST"))
        ((head, body),) = answers(client, 1)
        assert head.startswith(b"HTTP/1.1 %d " % status)
        if status == 400:
            assert body["field"] == "Host"
            assert b"connection: close\r\n" in head
            assert refusals(web) == {"400": 1}


def test_refusals_of_what_is_not_http_are_counted(tmp_path: Path) -> None:
    with served(writer(tmp_path)) as web:
        for sent in (b"this is no request\r\n\r\n", b"GET /" + b"a" * 70_000):
            with connected(web) as client:
                client.sendall(sent)
                answers(client, 1)
        assert refusals(web) == {"400": 1, "431": 1}


def test_a_connection_with_a_bare_line_break_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_SECONDS", 0.2)
    service = writer(tmp_path)
    put(service, "a")
    with served(service) as web, connected(web) as client:
        client.sendall(asked("e"))
        answers(client, 1)
        client.sendall(b"\r\n")
        assert client.recv(100) == b""


def test_a_request_that_arrives_while_the_server_stops_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "LAST_SECONDS", 5.0)
    stopping = threading.Event()
    shutdown = protocol.Protocol.shutdown

    def noted(self: protocol.Protocol) -> None:
        shutdown(self)
        stopping.set()

    monkeypatch.setattr(protocol.Protocol, "shutdown", noted)
    service = writer(tmp_path)
    put(service, "a")
    heads: list[bytes] = []

    def ask(client: socket.socket) -> None:
        assert stopping.wait(60)
        client.sendall(asked("during"))
        heads.extend(head for head, _ in answers(client, 1))
        assert client.recv(100) == b""
        client.close()

    with served(service) as web:
        client = socket.create_connection((web.base_url.host, web.base_url.port or 0), timeout=60)
        client.sendall(asked("before"))
        answers(client, 1)
        asking = threading.Thread(target=ask, args=(client,))
        asking.start()
        web.close()
    asking.join(60)
    assert heads[0].startswith(b"HTTP/1.1 201 ")
    assert b"connection: close\r\n" in heads[0]
