"""Running the service under uvicorn."""

import gc
import logging
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette

from hybandits.foundation.files import read_toml
from hybandits.service.access import LOOPBACK, read_tokens
from hybandits.service.api import application
from hybandits.service.log import open_store
from hybandits.service.settings import Bandit, read_bandit
from hybandits.service.writer import Writer

MOST_CONNECTIONS = 900
"""Connections and requests at a time; beyond them the answer is 503. Processes may usually open 1,024 files."""

SWITCH_SECONDS = 0.0005
"""Interval at which Python's threads take turns: the writer and the event loop do so often."""

GARBAGE = 50_000
"""New objects before Python collects garbage. A transaction makes thousands, and hardly any in cycles."""


logger = logging.getLogger("hybandits.service")


class Serving(msgspec.Struct, frozen=True):
    """Parameters of a server: files of bandits or folders of them, the address of the log, and where to listen.

    Without `store` every log lies beside its file. With several bandits it is a folder, or a PostgreSQL database with a
    schema for each.
    """

    bandits: list[str]
    store: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: str | None = None


def serve(serving: Serving, listening: Callable[[str], object] = lambda url: None) -> None:
    """Serve until a signal ends it; `listening` is called with the address when requests may come."""
    if logging.lastResort is not None:  # the handler of programs that set none up
        logging.lastResort.setFormatter(logging.Formatter("hybandits: %(message)s"))
    if serving.host not in LOOPBACK and read_tokens(serving.tokens).use is None:
        raise ValueError(f"--host {serving.host} lets other machines in, so a token is needed: give --token-file FILE")
    with bind(serving.host, serving.port) as bound:  # before the log gets its first row; requests wait from here on
        server = uvicorn.Server(uvicorn.Config(make_application(serving), **server_settings(serving)))
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        listening(f"http://{host}:{bound.getsockname()[1]}")
        server.run([bound])


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address; port 0 takes one that is free."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as problem:
        raise ValueError(f"cannot listen at {host}, port {port} ({problem}): give another --port or --host") from None


def server_settings(serving: Serving) -> dict[str, Any]:
    """Return the settings of uvicorn. The parser zttp serves offers of HTTP/2 and limits heads, unlike httptools."""
    return {
        "host": serving.host,
        "port": serving.port,
        "http": "zttp",
        "ws": "none",
        "loop": "uvloop",
        "access_log": False,
        "log_config": None,
        "log_level": "error",
        "limit_concurrency": MOST_CONNECTIONS,
        "timeout_keep_alive": 30,
        "timeout_graceful_shutdown": 30,
        "server_header": False,
        "proxy_headers": False,
    }


def make_application(serving: Serving) -> Starlette:
    """Return the application, with its logs open and its models up to date."""
    sys.setswitchinterval(SWITCH_SECONDS)
    tokens, files = read_tokens(serving.tokens), list(_files(serving))
    bandits = [read_bandit(read_toml(file)) for file in files]  # logs begin only if all files can be used
    if not files:
        raise ValueError(f"there is no file *.toml in {', '.join(serving.bandits)}: write one, or name it")
    names = [bandit.name for bandit in bandits]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two bandits are called {twice[0]!r}: rename one")
    writers = [_open(serving, file, bandit) for file, bandit in zip(files, bandits, strict=True)]
    seen = set(files)

    def look() -> Iterator[Writer]:
        for file in _files(serving):
            if file not in seen:
                seen.add(file)
                try:
                    writer = _open(serving, file, read_bandit(read_toml(file)))
                except (OSError, TypeError, ValueError) as wrong:
                    logger.error("%s is not served: %s", file, wrong)
                else:
                    writers.append(writer)
                    yield writer

    def stopped() -> None:
        for writer in writers:
            writer.store.close()

    gc.collect()
    gc.freeze()  # objects that stay need not be searched for garbage again and again
    gc.set_threshold(GARBAGE, 20, 20)
    return application(*writers, tokens=tokens, look=look if _folders(serving) else None, stopped=stopped)


def _folders(serving: Serving) -> list[Path]:
    return [path for path in map(Path, serving.bandits) if path.is_dir()]


def _files(serving: Serving) -> Iterator[Path]:
    """Yield the files of all bandits; those of folders are found in the order of their names."""
    for path in map(Path, serving.bandits):
        yield from sorted(path.glob("*.toml")) if path.is_dir() else [path]


def _open(serving: Serving, file: Path, bandit: Bandit) -> Writer:
    """Return the writer of a bandit, with everything compiled that it needs."""
    writer = Writer(open_store(store_of(serving, file)), bandit)
    compile_policies(writer.state.bandit)
    return writer


def store_of(serving: Serving, file: Path) -> str:
    """Return the address of a bandit's log."""
    store = serving.store
    if store is None:
        return str(file.with_suffix(".db"))
    if len(serving.bandits) == 1 and not _folders(serving):
        return store
    if "://" in store:
        if "bandit=" in store:
            raise ValueError(
                "--store names a bandit, but there are several: leave bandit= out, so that each has its own"
            )
        return f"{store}{'&' if '?' in store else '?'}bandit={quote(file.stem)}"
    if not Path(store).is_dir():
        raise ValueError(f"--store {store} is no folder, and there are several bandits: give a folder or a database")
    return str(Path(store) / f"{file.stem}.db")


def compile_policies(bandit: Bandit) -> None:
    """Let new policies of a bandit decide and learn, so that everything is compiled before requests come."""
    numbers, features = np.random.default_rng(0), bandit.features
    user, arm, pair = (
        np.ones((n, len(names)))
        for n, names in ((1, features.user_columns), (2, features.arm_columns), (2, features.pair_columns))
    )
    features.computed(user, arm, pair if features.pair else None)
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
