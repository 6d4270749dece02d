"""Running the service: one process or several, where it listens, and tokens."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import multiprocess

from hybandits.features import FeatureMap
from hybandits.foundation.files import read_toml
from hybandits.service.access import LOOPBACK, Tokens
from hybandits.service.api import application
from hybandits.service.log.store import StoreError, open_store
from hybandits.service.protocol import Protocol
from hybandits.service.settings import Bandit, read_bandit
from hybandits.service.writer import Writer

MOST_CONNECTIONS = 2_000
"""Connections and requests at a time, for each process. Beyond them the answer is 503."""

OTHER_FILES = 128
"""Files that a process has open beside its connections: those of the log, for each of its threads, and its own."""

SWITCH_SECONDS = 0.0005
"""How long one of Python's threads may keep the others waiting: the writer and the event loop take turns often."""

GARBAGE = 50_000
"""New objects from which on Python looks for garbage. A transaction makes thousands, and hardly any in cycles."""

_HANDED_ON = "HYBANDITS_SERVICE"
"""The environment variable by which worker processes are told what to serve."""


class Serving(msgspec.Struct, frozen=True):
    """What to serve, and where.

    Attributes
    ----------
    bandit : str or None
        The path of `bandit.toml`; None to go on with a log that has begun.
    store : str
        The log: the path of a SQLite file, or the address of a PostgreSQL database.
    host, port : str, int
        Where to listen.
    workers : int
        Processes that share the work.
    tokens : str or None
        The path of a file with the tokens, see `read_tokens`.
    """

    bandit: str | None
    store: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    tokens: str | None = None


def serve(serving: Serving, listening: Callable[[str], object] = lambda url: None) -> None:
    """Serve until a signal ends it; requests that have been accepted are answered first.

    `listening` is called with the address when requests are answered there.
    """
    log_in_one_form()
    tokens = read_tokens(serving.tokens)
    if serving.host not in LOOPBACK and tokens.use is None:
        raise ValueError(
            f"--host {serving.host} lets other machines in, so a token is needed: write one into a file and give "
            "--token-file FILE"
        )
    bound = bind(serving.host, serving.port)  # before the log gets its first row
    with bound:
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        url = f"http://{host}:{bound.getsockname()[1]}"
        settings = server_settings(serving)
        if serving.workers == 1:
            Server(uvicorn.Config(make_application(serving), **settings), lambda: listening(url)).run([bound])
            return
        _begin(serving)
        os.environ[_HANDED_ON] = msgspec.json.encode(serving).decode()
        config = uvicorn.Config(f"{__name__}:worker", factory=True, workers=serving.workers, **settings)
        workers = Workers(config, [bound], lambda: listening(url))
        workers.run()
    with contextlib.suppress(StoreError):  # two workers that closed a SQLite file at once have left its WAL
        open_store(serving.store).close()
    if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
        raise ValueError("a worker could not start, so all were stopped: the reason is above")


def bind(host: str, port: int) -> socket.socket:
    """A socket at this address, which does not listen yet."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must lie between 0 and 65535, got {port}: 0 takes one that is free")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
        bound = socket.socket(family)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as problem:
        raise ValueError(
            f"cannot listen at {host}, port {port} ({problem.strerror or problem}): give another --port or --host"
        ) from None
    bound.set_inheritable(True)
    return bound


def _begin(serving: Serving) -> None:
    """Begin the log, or notice here what is wrong with it; workers need not fold again what is folded here."""
    store = open_store(serving.store)
    try:
        Writer(store, _bandit(serving)).keep_snapshot()
    finally:
        store.close()


class Server(uvicorn.Server):
    """A server that says when it listens, and serves all who have connected when it stops."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[], object] = lambda: None) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop. Connections that nobody has accepted yet would be reset, and their clients not know what happened."""
        waiting = [connection for listener in sockets or [] for connection in _waiting_at(listener)]
        for server in self.servers:
            server.close()
        for connection in waiting:
            with contextlib.suppress(OSError):  # the client has gone
                await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        await super().shutdown(sockets)

    def _protocol(self) -> asyncio.Protocol:
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg, assignment]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made


def _waiting_at(listener: socket.socket) -> Iterator[socket.socket]:
    """Accept the connections that wait at a socket."""
    with contextlib.suppress(OSError):  # there are no more, or no more files may be open
        while True:
            yield listener.accept()[0]


class Worker(multiprocess.Process):
    """A worker process with a server of this kind."""

    @property
    def server(self) -> Server:
        """The server, in the worker process."""
        if self._server is None:
            self._server = Server(self.config)
        assert isinstance(self._server, Server)
        return self._server


multiprocess.Process = Worker  # type: ignore[misc]  # uvicorn has no other way to say so


class Workers(multiprocess.Multiprocess):
    """Worker processes, which are started again if they die, and all stopped if one cannot start."""

    def __init__(self, config: uvicorn.Config, sockets: list[socket.socket], listening: Callable[[], object]) -> None:
        super().__init__(config, sockets)
        self._listening: Callable[[], object] | None = listening

    def terminate_all(self) -> None:
        """Stop all workers. As long as this process kept the socket, connections would wait at it for nobody."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        """Look after the workers, twice a second."""
        super().keep_subprocess_alive()
        if self._listening is not None and all(process.is_ready() for process in self.processes):
            self._listening()
            self._listening = None


def most_connections() -> int:
    """How many connections a process may have; the limit on open files is raised for them as far as it is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_CONNECTIONS + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - OTHER_FILES, files // 2)


def server_settings(serving: Serving) -> dict[str, Any]:
    """How uvicorn is to serve."""
    return {
        "host": serving.host, "port": serving.port, "http": Protocol, "loop": "uvloop", "access_log": False,
        "log_config": None, "log_level": "warning", "limit_concurrency": most_connections(), "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 30, "ws": "none", "server_header": False, "proxy_headers": False,
    }  # fmt: skip


def log_in_one_form() -> None:
    """Give what is logged the form of everything else that is said; uvicorn's own settings must be off."""
    if logging.lastResort is not None:  # the handler of all who have set none up
        logging.lastResort.setFormatter(logging.Formatter("hybandits: %(message)s"))


def worker() -> Starlette:
    """The application of a worker process; one that cannot be made ends all workers."""
    log_in_one_form()
    try:
        return make_application(msgspec.json.decode(os.environ[_HANDED_ON], type=Serving))
    except (StoreError, ValueError, TypeError, OSError) as problem:
        print(f"hybandits: {problem}", file=sys.stderr, flush=True)
        sys.exit(STARTUP_FAILURE)


def make_application(serving: Serving) -> Starlette:
    """The application, with its log open and its model folded."""
    sys.setswitchinterval(SWITCH_SECONDS)
    store = open_store(serving.store)
    writer = Writer(store, _bandit(serving))
    try_out(writer.fold.bandit)
    gc.collect()
    gc.freeze()  # what is there now stays: looking through it for garbage would hold up requests again and again
    gc.set_threshold(GARBAGE, 20, 20)
    return application(writer, tokens=read_tokens(serving.tokens), stopped=store.close)


def _bandit(serving: Serving) -> Bandit | None:
    return None if serving.bandit is None else read_bandit(read_toml(Path(serving.bandit)))


def try_out(bandit: Bandit) -> None:
    """Let new policies of a bandit decide and learn, so that what must be compiled is compiled before requests come."""
    numbers = np.random.default_rng(0)
    arms, keys = ["a", "b"], ["first", "second"]
    FeatureMap("das", 1, 1).crossed(np.ones((1, 1)), np.ones((1, 1)))
    for name in bandit.policies:
        policy = bandit.make(name)
        policy.admit(arms)
        for known in (1, None, None):  # at first not all features have been seen
            x, z = numbers.random((2, 2, policy.d1)), numbers.random((2, 2, policy.d2))
            policy.draw_lots(x, z, arms, keys=keys)
            x, z = numbers.random((40, policy.d1)), numbers.random((40, policy.d2))
            if known is not None:
                x[:, known:], z[:, known:] = 0.0, 0.0
            policy.learn_batch(arms * 20, x, z, numbers.random(40))


def read_tokens(path: str | None) -> Tokens:
    """Tokens from a file: the first line is needed for all requests, a second one for arms and promote."""
    if path is None:
        return Tokens()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ValueError(
            f"{path} is not UTF-8 (byte {problem.start} is {problem.object[problem.start]:#04x}): write the token as "
            "plain text, in ASCII characters"
        ) from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= 2:
        raise ValueError(
            f"{path} has {len(lines)} lines, expected one token, or two: the second is needed for arms and promote"
        )
    for line in lines:
        if len(line) < 16 or not line.isascii() or not line.isprintable():
            raise ValueError(f"{path} has a token of {len(line)} characters: use at least 16 printable ASCII ones")
    return Tokens(*lines)
