"""The commands of the decision service, as a user types them."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from hybandits.__main__ import app
from hybandits.service.client import Client
from hybandits.service.sqlite import SqliteStore
from tests.support.bandits import decide, put, reward, writer

BANDIT = """
name = "page"
rewards = "explicit"
[user]
numeric = ["age"]
[arm]
numeric = ["price"]
[[challengers]]
name = "even"
policy = "Uniform"
"""


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bandit.toml"
    path.write_text(BANDIT)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(file: Path, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server process that answers, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "hybandits", "serve", str(file), "--port", str(port), *options]
    process = subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env={**os.environ, "HYBANDITS_QUIET": "1"}, start_new_session=True
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            httpx.get(f"{url}/healthz")
            return process, url
        except httpx.TransportError:
            assert process.poll() is None
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


@pytest.mark.slow
def test_serve_and_everything_on_its_log(file: Path, tmp_path: Path) -> None:
    process, url = started(file)
    try:
        with Client(url) as client:
            for i in range(4):
                client.put_arm(f"arm {i}", {"price": i})
            for i in range(30):
                decided = client.decide({"age": i / 30})
                client.reward(decided.event_id, float(i % 3 == 0))
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bandit.db", "bandit.db.lock", "bandit.toml"]
    assert run("service", "verify", str(file)) == (
        0,
        "30 decisions: 30 same, 0 near ties, 0 different (30 compared to the bit)\n",
    )
    code, words = run("service", "export", str(file), str(tmp_path / "log"))
    assert (code, words) == (0, f"wrote 30 decisions to {tmp_path / 'log'}\n")
    assert run("describe", str(tmp_path / "log"))[0] == 0
    new = str(tmp_path / "second.db")
    code, words = run("service", "rotate", str(file), new)
    assert code == 0
    assert f"bandit.db has ended, and {new} goes on at row" in words
    assert run("service", "verify", str(file))[0] == 0
    code, words = run("service", "verify", str(file), "--store", new, "--previous", str(tmp_path / "bandit.db"))
    assert (code, words.startswith("0 decisions"), words.count("\n")) == (0, True, 3)
    assert f"The log begins where {tmp_path / 'bandit.db'} ended." in words
    assert run("service", "verify", str(file), "--previous", new)[0] == 1
    assert run("service", "rotate", str(file), new)[0] == 2
    code, words = run("serve", str(file), "--port", "0")
    assert (code, "goes on in" in words) == (2, True)


def outcome(port: int) -> str:
    """The outcome of a request on a connection of its own."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(100)[:12].decode()
    except ConnectionError as problem:
        return type(problem).__name__


@pytest.mark.slow
def test_requests_are_answered_or_refused_while_it_stops(file: Path) -> None:
    """A connection that was not accepted yet is reset; nobody waits or gets half an answer."""
    process, url = started(file)
    outcomes: Counter[str] = Counter()
    port = int(url.rpartition(":")[2])

    def ask() -> None:
        while process.poll() is None:
            outcomes[outcome(port)] += 1

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    for thread in threads:
        thread.join()
    assert outcomes["HTTP/1.1 200"] > 0
    assert set(outcomes) <= {"HTTP/1.1 200", "ConnectionRefusedError", "ConnectionResetError", ""}


INTERRUPTED = """
import os, signal
from hybandits.logs.store import LogWriter
LogWriter.write = lambda *_: os.kill(os.getpid(), signal.SIGINT)
from hybandits.__main__ import app
app()
"""


@pytest.mark.slow
def test_an_interrupted_export_writes_nothing(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    decide(service, "e")
    reward(service, "e", 1.0)
    service.store.close()
    (tmp_path / "program.py").write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, "-m", "program", "service", "export", "log.toml", str(tmp_path / "out")],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120,
        env={**os.environ, "HYBANDITS_QUIET": "1", "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "hybandits: interrupted\n")
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == {"log.db", "log.db.lock", "program.py"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("serve", "none.toml"), "none.toml"),
        (("serve", "wrong.toml"), "unknown key nmae"),
        (("serve", "bandit.toml", "--host", "0.0.0.0"), "a token is needed"),
        (("serve", "bandit.toml", "--token-file", "short"), "at least 16"),
        (("service", "verify", "bandit.toml"), "There is no log bandit.db: start it with hybandits serve"),
        (("service", "verify", "bandit.toml", "--store", "bandit.toml"), "damaged or no log"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    file: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(file.parent)
    Path("wrong.toml").write_text('nmae = "x"')
    Path("short").write_text("secret")
    code, output = run(*arguments)
    assert code == 2
    assert words in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("command", "store", "words"),
    [
        (("verify",), "other.db", "other.db belongs to another program: it has the table 'orders'"),
        (("verify",), "empty.db", "The log empty.db is empty: start it with hybandits serve bandit.toml"),
        (("export", "out"), "no-rows.db", "The log no-rows.db is empty: start it with hybandits serve bandit.toml"),
        (("export", "out"), ".", ". cannot be used"),
        (("rotate", "out.db"), "other.db", "other.db belongs to another program: it has the table 'orders'"),
    ],
)
def test_commands_write_nothing_where_there_is_no_log(
    file: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], store: str, words: str
) -> None:
    monkeypatch.chdir(file.parent)
    with contextlib.closing(sqlite3.connect("other.db")) as connection:
        connection.execute("CREATE TABLE orders (id)")
    Path("empty.db").touch()
    SqliteStore("no-rows.db").close()
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, said = run("service", command[0], "bandit.toml", *command[1:], "--store", store)
    assert (code, said.count("\n")) == (2, 1)
    assert words in said
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_port_in_use_is_said_in_a_line_before_the_log_begins(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        code, said = run("serve", str(file), "--port", port)
        assert code == 2
        assert said.startswith(f"hybandits: cannot listen at 127.0.0.1, port {port} (")
        assert said.count("\n") == 1
    assert not file.with_suffix(".db").exists()


def test_a_server_that_cannot_start_says_why_once(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("no log")
    code, said = run("serve", str(file), "--port", "0", "--store", str(tmp_path / "other.db"))
    assert code == 2
    assert "other.db is damaged or no log" in said
    assert said.count("\n") == 1
    writer(tmp_path)  # a log of another bandit
    code, said = run("serve", str(file), "--port", "0", "--store", str(tmp_path / "log.db"))
    assert code == 2
    assert "in the file but" in said
    assert said.count("\n") == 1


WEBSOCKET = (
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.slow
def test_the_address_is_said_when_it_answers_and_all_lines_have_one_form(file: Path) -> None:
    command = [sys.executable, "-m", "hybandits", "serve", str(file), "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "HYBANDITS_QUIET": "1"}, start_new_session=True
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            url = said.removeprefix(f"hybandits: serving {file} at ").removesuffix(" (Ctrl-C ends it)\n")
            assert httpx.get(f"{url}/healthz", timeout=120).status_code == 200
            for sent, status in ((WEBSOCKET, b"HTTP/1.1 200"), (b"no request\r\n\r\n", b"HTTP/1.1 400")):
                with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60) as connection:
                    connection.sendall(sent)
                    assert connection.recv(100).startswith(status)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == -signal.SIGTERM
        assert process.stderr.read() == ""
