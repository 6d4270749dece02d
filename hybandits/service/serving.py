"""Running the service under uvicorn: one process or several, and where it listens."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from hybandits.foundation.files import read_toml
from hybandits.service.access import LOOPBACK, read_tokens
from hybandits.service.api import application
from hybandits.service.log import StoreError, open_store
from hybandits.service.settings import Bandit, read_bandit
from hybandits.service.writer import Writer

MOST_CONNECTIONS = 2_000
"""Connections and requests at a time, for each process. Beyond them the answer is 503."""

OTHER_FILES = 128
"""Files that a process has open beside its connections: those of the log, for each of its threads, and its own."""

SWITCH_SECONDS = 0.0005
"""Interval at which Python's threads take turns: the writer and the event loop do so often."""

GARBAGE = 50_000
"""New objects before Python collects garbage. A transaction makes thousands, and hardly any in cycles."""

_SERVING = "HYBANDITS_SERVICE"
"""The environment variable that tells worker processes what to serve."""


class Serving(msgspec.Struct, frozen=True):
    """Parameters of a server: paths of files, the address of the log, and where to listen.

    Without `bandit` the log must have begun.
    """

    bandit: str | None
    store: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    tokens: str | None = None


def serve(serving: Serving, listening: Callable[[str], object] = lambda url: None) -> None:
    """Serve until a signal ends it; `listening` is called with the address when requests may come."""
    set_up_logging()
    tokens = read_tokens(serving.tokens)
    if serving.host not in LOOPBACK and tokens.use is None:
        raise ValueError(f"--host {serving.host} lets other machines in, so a token is needed: give --token-file FILE")
    with bind(serving.host, serving.port) as bound:  # before the log gets its first row; requests wait from here on
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        url = f"http://{host}:{bound.getsockname()[1]}"
        settings = server_settings(serving)
        if serving.workers == 1:
            server = uvicorn.Server(uvicorn.Config(make_application(serving), **settings))
            listening(url)
            server.run([bound])
            return
        with contextlib.closing(open_store(serving.store)) as store:
            Writer(store, _bandit(serving)).keep_snapshot()  # so that workers find a log that has begun
        os.environ[_SERVING] = msgspec.json.encode(serving).decode()
        config = uvicorn.Config(f"{__name__}:worker", factory=True, workers=serving.workers, **settings)
        workers = Multiprocess(config, [bound])
        listening(url)
        workers.run()
    with contextlib.suppress(StoreError):  # two workers that closed a SQLite file at once have left its WAL
        open_store(serving.store).close()
    if any(process.exitcode == STARTUP_FAILURE for process in workers.processes):
        raise ValueError("a worker could not start, so all were stopped: the reason is above")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address; port 0 takes one that is free."""
    try:
        bound = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise ValueError(f"cannot listen at {host}, port {port} ({problem}): give another --port or --host") from None
    bound.set_inheritable(True)
    return bound


def most_connections() -> int:
    """Return how many connections a process may have; raise the limit on open files as far as it is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_CONNECTIONS + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        files = min(files, hard)
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - OTHER_FILES, files // 2)


def server_settings(serving: Serving) -> dict[str, Any]:
    """Return the settings of uvicorn.

    Its parser zttp serves requests that offer an upgrade to HTTP/2 and limits the size of heads, unlike httptools.
    """
    return {
        "host": serving.host,
        "port": serving.port,
        "http": "zttp",
        "ws": "none",
        "loop": "uvloop",
        "access_log": False,
        "log_config": None,
        "log_level": "error",
        "limit_concurrency": most_connections(),
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 30,
        "server_header": False,
        "proxy_headers": False,
    }


def set_up_logging() -> None:
    """Give log messages the form of other messages on the terminal."""
    if logging.lastResort is not None:  # the handler of programs that set none up
        logging.lastResort.setFormatter(logging.Formatter("hybandits: %(message)s"))


def worker() -> Starlette:
    """Return the application of a worker process; a failure ends all workers."""
    set_up_logging()
    try:
        return make_application(msgspec.json.decode(os.environ[_SERVING], type=Serving))
    except (StoreError, ValueError, TypeError, OSError) as problem:
        print(f"hybandits: {problem}", file=sys.stderr, flush=True)
        sys.exit(STARTUP_FAILURE)


def make_application(serving: Serving) -> Starlette:
    """Return the application, with its log open and its model up to date."""
    sys.setswitchinterval(SWITCH_SECONDS)
    store = open_store(serving.store)
    writer = Writer(store, _bandit(serving))
    compile_policies(writer.state.bandit)
    gc.collect()
    gc.freeze()  # objects that stay need not be searched for garbage again and again
    gc.set_threshold(GARBAGE, 20, 20)
    return application(writer, tokens=read_tokens(serving.tokens), stopped=store.close)


def _bandit(serving: Serving) -> Bandit | None:
    return None if serving.bandit is None else read_bandit(read_toml(Path(serving.bandit)))


def compile_policies(bandit: Bandit) -> None:
    """Let new policies of a bandit decide and learn, so that everything is compiled before requests come."""
    numbers = np.random.default_rng(0)
    arms, keys = ["a", "b"], ["first", "second"]
    for name in bandit.policies:
        policy = bandit.make(name)
        policy.admit(arms)
        for known in (1, None, None):  # at first not all features have been seen
            x, z = numbers.random((2, 2, policy.d1)), numbers.random((2, 2, policy.d2))
            policy.randomize_batch(x, z, arms, keys=keys)
            x, z = numbers.random((40, policy.d1)), numbers.random((40, policy.d2))
            if known is not None:
                x[:, known:], z[:, known:] = 0.0, 0.0
            policy.learn_batch(arms * 20, x, z, numbers.random(40))
