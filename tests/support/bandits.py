"""Small bandits, a clock that tests move, and services on a log in a folder."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from hybandits.service.access import Tokens
from hybandits.service.api import application
from hybandits.service.commands import Answer, Command, Control, Decide, GiveReward, Outcome, PutArm, PutArms, Retire
from hybandits.service.model_state import ModelState
from hybandits.service.rules import Controls
from hybandits.service.settings import Bandit, read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer

FILE: dict[str, Any] = {
    "name": "page",
    "rewards": "explicit",
    "seed": 7,
    "user": {"numeric": ["age"], "categorical": {"country": ["de", "fr"]}},
    "arm": {"numeric": ["price"]},
}
"""The content of a bandit's file."""

CLICKS = {**FILE, "rewards": "clicks", "window": "10s", "range": [0.0, 1.0]}
"""The same with a window, after which nothing counts as 0."""

USER = {"age": 0.3, "country": "de"}


class Clock:
    """Microseconds since 1970, as many as a test says."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * 1e6)


def bandit(content: dict[str, Any] = FILE, **changes: Any) -> Bandit:
    return read_bandit({**content, **changes})


def writer(
    path: Path, content: dict[str, Any] = FILE, *, clock: Callable[[], int] | None = None, **changes: Any
) -> Writer:
    return Writer(SqliteStore(path / "log.db"), bandit(content, **changes), clock=clock or Clock())


def put(writer: Writer, *arms: str) -> None:
    """Make arms with different prices."""
    for i, arm in enumerate(arms):
        assert ask(writer, putting(arm, {"price": i / 4})).status in (200, 201)


def putting(arm: str, features: dict[str, Any] | None = None) -> PutArms:
    """The command that adds one arm."""
    return PutArms([PutArm(arm=arm, features=features or {})])


def ask(writer: Writer, command: Command) -> Answer:
    """Serve one command that must be served."""
    outcome = outcome_of(writer, command)
    assert isinstance(outcome, Answer), outcome
    return outcome


def outcome_of(writer: Writer, command: Any) -> Outcome:
    (outcome,) = writer.serve([command])
    return outcome


def decide(writer: Writer, event: str | None = None, **request: Any) -> Answer:
    return ask(writer, Decide(user=request.pop("user", USER), event_id=event, **request))


def reward(writer: Writer, event: str, value: float) -> Answer:
    return ask(writer, GiveReward(event, value))


def retire(writer: Writer, arm: str) -> Answer:
    return ask(writer, Retire([arm]))


def models(writer: Writer) -> dict[str, bytes]:
    """All policies as bytes."""
    return {name: policy.to_bytes() for name, policy in writer.state.policies.items()}


@contextmanager
def served(*services: Writer, tokens: Tokens | None = None, most: int | None = None) -> Iterator[httpx.Client]:
    """Services on a real port, as uvicorn runs it, with so many connections at most, and a client of it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        app = application(*services, tokens=tokens)
        config = uvicorn.Config(app, log_level="error", loop="asyncio", http="zttp", ws="none", limit_concurrency=most)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            transport = httpx.HTTPTransport(retries=20)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, transport=transport) as client:
                client.get("/healthz")
                yield client
        finally:
            server.should_exit = True
            thread.join()


def control(service: Writer, **controls: Any) -> None:
    """Set controls of a bandit."""
    assert ask(service, Control(Controls(**controls))).status == 200


def recomputed(service: Writer) -> None:
    """The log gives the same model, and the same decisions, from its beginning and from a snapshot."""
    result = verify(service.store)
    assert (result.different, result.near_ties) == (0, 0), result.examples
    assert result.exact == result.decisions == service.state.summary.decisions
    service.keep_snapshot()
    again = ModelState.restored(service.store)
    assert again.resumed == service.state.row
    assert again.snapshot() == service.state.snapshot()
