"""Disks and databases fail for a while, clocks go back: 503 with the reason, then on, and nothing is lost."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import httpx
import pytest

from hybandits.service.log import Closed, Decision, Store, StoreError, open_store
from hybandits.service.model_state import ModelState
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from soak.servers import Postgres
from tests.support.bandits import (
    CLICKS,
    FILE,
    USER,
    Clock,
    ask,
    bandit,
    decide,
    models,
    put,
    putting,
    reward,
    served,
    writer,
)
from tests.support.disks import Disk


@pytest.fixture
def disk() -> Iterator[Disk]:
    faulty = Disk()
    yield faulty
    faulty.unregister()


def _decide(web: httpx.Client, event: str) -> httpx.Response:
    return web.post("/v1/decisions", json={"event_id": event, "user": USER})


def _is_ready_again(web: httpx.Client) -> bool:
    """Return whether the service notices by itself that it can write again."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if web.get("/readyz").status_code == 200:
            return True
        time.sleep(0.05)
    return False


def _check(store: Store, service: Writer, events: set[str]) -> None:
    """The log has these decisions, each once, and the model is what the log says."""
    decisions = [row.event for row in store.rows(0) if isinstance(row.content, Decision)]
    assert sorted(event or "" for event in decisions) == sorted(events)
    times = [row.time for row in store.rows(0)]
    assert times == sorted(times)
    model = ModelState.based(store)
    model.apply(store.rows(model.row), store)
    assert models(service) == {name: policy.to_bytes() for name, policy in model.policies.items()}
    assert service.state.summary == model.summary
    assert verify(store).different == 0


def _refused(answer: httpx.Response, words: str) -> None:
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert answer.headers["retry-after"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [(apsw.FullError, "is full"), (apsw.ReadOnlyError, "check its permissions"), (apsw.IOError, "cannot be used")],
)
def test_a_disk_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: Disk, fault: type[apsw.Error], words: str
) -> None:
    monkeypatch.setattr("hybandits.service.writer.RETRY", 0.05)
    store = SqliteStore(tmp_path / "log.db", vfs=disk.name)
    service = Writer(store, bandit(FILE))
    put(service, "a", "b")
    with served(service) as web:
        assert _decide(web, "before").status_code == 201
        with disk.raising(fault):
            _refused(_decide(web, "during"), words)
            _refused(web.post("/v1/rewards", json={"event_id": "before", "reward": 1}), words)
            _refused(web.get("/v1/arms"), words)
            _refused(web.put("/v1/arms/c", json={"features": {"price": 1}}), words)
            _refused(web.post("/v1/decisions/batch", json=[{"event_id": "batch", "user": USER}] * 2), words)
            time.sleep(0.2)  # the service has tried again meanwhile
            _refused(web.get("/readyz"), words)
            assert web.get("/healthz").status_code == 200
            assert web.get("/v1/decisions/before").json()["reward"] is None
        assert _is_ready_again(web)
        assert web.post("/v1/rewards", json={"event_id": "before", "reward": 1}).status_code == 201
        assert _decide(web, "during").status_code == 201
        assert _decide(web, "before").status_code == 200
        _check(store, service, {"before", "during"})
    store.close()


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_postgresql_is_gone_and_back(postgres: Postgres) -> None:
    store = open_store(postgres.address(f"test-{secrets.token_hex(8)}"))
    service = Writer(store, bandit(FILE))
    put(service, "a", "b")
    with served(service) as web:
        assert _decide(web, "before").status_code == 201
        assert web.get("/v1/decisions/before").status_code == 200
        postgres.kill()
        try:
            _refused(_decide(web, "during"), "PostgreSQL")
            _refused(web.post("/v1/rewards", json={"event_id": "before", "reward": 1}), "PostgreSQL")
            _refused(web.get("/v1/decisions/before"), "PostgreSQL")
            _refused(web.get("/readyz"), "PostgreSQL")
            assert web.get("/healthz").status_code == 200
        finally:
            postgres.start()
        assert _is_ready_again(web)
        assert web.get("/v1/decisions/before").status_code == 200
        assert web.post("/v1/rewards", json={"event_id": "before", "reward": 1}).status_code == 201
        assert _decide(web, "during").status_code == 201
        assert _decide(web, "before").status_code == 200
        _check(store, service, {"before", "during"})
    store.close()


def test_a_clock_that_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    decide(service, "first")
    clock.advance(-3600)
    decide(service, "second")
    reward(service, "first", 1.0)
    again = writer(tmp_path, CLICKS, clock=clock)
    reward(again, "second", 0.5)
    decide(again, "third")
    clock.advance(3605)
    again.serve([])
    assert not any(isinstance(row.content, Closed) for row in again.store.rows(0))
    clock.advance(10)
    again.serve([])
    assert again.state.summary.reward.n == 3
    _check(again.store, again, {"first", "second", "third"})
    for each in (service, again):
        each.store.close()


@pytest.mark.slow
def test_a_fault_of_the_service_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    with served(service) as web:
        with monkeypatch.context() as patch:
            patch.setattr(ModelState, "decide_batch", lambda *_: 1 / 0)
            _refused(_decide(web, "e"), "ZeroDivisionError")
        assert _decide(web, "e").status_code == 201
        web.get("/v1/arms")  # the transaction of this comes after the row before was applied
        with monkeypatch.context() as patch:
            patch.setattr(ModelState, "remember", lambda *_: 1 / 0)
            assert _decide(web, "f").status_code == 201, "its row is on disk"
        assert web.post("/v1/rewards", json={"event_id": "f", "reward": 1}).status_code == 201
        web.get("/v1/arms")
        _check(service.store, service, {"e", "f"})
    service.store.close()


class Flaky:
    """A log that cannot be read for the n-th time."""

    def __init__(self, store: Store, fails: int) -> None:
        self.store, self.left = store, fails

    def __getattr__(self, name: str) -> object:
        self.left -= 1
        if self.left == 0:
            raise StoreError("gone for a moment")
        return getattr(self.store, name)


@pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])
def test_applying_rows_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: dict[str, object]
) -> None:
    clock = Clock()
    service = writer(tmp_path, content, clock=clock)
    for i in range(12):
        for arm in "ab":  # features change every time, so that learning looks up what they were
            ask(service, putting(arm, {"price": i / 8}))
        decide(service, f"e{i}")
        if i >= 4:
            reward(service, f"e{i - 4}", 1.0 if i % 2 else 0.5)
        clock.advance(6 if i == 5 else 1)
    clock.advance(20)
    service.serve([])
    monkeypatch.setattr("hybandits.service.model_state.REMEMBERED", 2)
    monkeypatch.setattr("hybandits.service.model_state.CHUNK", 3)
    fails, broken = 0, True
    while broken:
        fails, broken = fails + 1, False
        model = ModelState.opened(service.store)
        flaky = Flaky(service.store, fails)
        while model.row < service.state.row:
            try:
                model.apply(service.store.rows(model.row), flaky)  # type: ignore[arg-type]
            except StoreError:
                broken = True
        model.apply([], service.store)
        assert models(service) == {name: policy.to_bytes() for name, policy in model.policies.items()}
        assert model.summary == service.state.summary
        assert model.first_open == service.state.first_open
    assert fails > 5
    service.store.close()
