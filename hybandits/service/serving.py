"""Running the service: one process or several, where it listens, and tokens."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette

from hybandits.foundation.files import read_toml
from hybandits.model.features import FeatureMap
from hybandits.service.access import LOOPBACK, Tokens
from hybandits.service.api import application
from hybandits.service.protocol import Protocol
from hybandits.service.settings import Bandit, read_bandit
from hybandits.service.store import open_store
from hybandits.service.writer import Writer

MOST_CONNECTIONS = 2_000
"""Connections and requests at a time, for each process. Beyond them the answer is 503."""

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


def serve(serving: Serving) -> None:
    """Serve until a signal ends it; requests that have been accepted are answered first."""
    tokens = read_tokens(serving.tokens)
    if serving.host not in LOOPBACK and tokens.use is None:
        raise ValueError(
            f"--host {serving.host} lets other machines in, so a token is needed: write one into a file and give "
            "--token-file FILE"
        )
    settings = server_settings(serving)
    if serving.workers == 1:
        uvicorn.Server(uvicorn.Config(make_application(serving), **settings)).run()
        return
    os.environ[_HANDED_ON] = msgspec.json.encode(serving).decode()
    uvicorn.run(f"{__name__}:worker", factory=True, workers=serving.workers, **settings)


def server_settings(serving: Serving) -> dict[str, Any]:
    """How uvicorn is to serve."""
    return {
        "host": serving.host, "port": serving.port, "http": Protocol, "loop": "uvloop", "access_log": False,
        "log_level": "warning", "limit_concurrency": MOST_CONNECTIONS, "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 30, "ws": "none", "server_header": False, "proxy_headers": False,
    }  # fmt: skip


def worker() -> Starlette:
    """The application of a worker process."""
    return make_application(msgspec.json.decode(os.environ[_HANDED_ON], type=Serving))


def make_application(serving: Serving) -> Starlette:
    """The application, with its log open and its model folded."""
    sys.setswitchinterval(SWITCH_SECONDS)
    bandit = None if serving.bandit is None else read_bandit(read_toml(Path(serving.bandit)))
    writer = Writer(open_store(serving.store), bandit)
    try_out(writer.fold.bandit)
    gc.collect()
    gc.freeze()  # what is there now stays: looking through it for garbage would hold up requests again and again
    gc.set_threshold(GARBAGE, 20, 20)
    return application(writer, tokens=read_tokens(serving.tokens))


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
            policy.learn_many(arms * 20, x, z, numbers.random(40))


def read_tokens(path: str | None) -> Tokens:
    """Tokens from a file: the first line is needed for all requests, a second one for arms and promote."""
    if path is None:
        return Tokens()
    lines = [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    if not 1 <= len(lines) <= 2:
        raise ValueError(
            f"{path} has {len(lines)} lines, expected one token, or two: the second is needed for arms and promote"
        )
    for line in lines:
        if len(line) < 16 or not line.isascii() or not line.isprintable():
            raise ValueError(f"{path} has a token of {len(line)} characters: use at least 16 printable ASCII ones")
    return Tokens(*lines)
