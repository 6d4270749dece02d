"""The model of a log: the same bytes however its rows are split, and from snapshots."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from hybandits.service.commands import GiveReward, Promote
from hybandits.service.log import Row
from hybandits.service.model_state import ModelState, fingerprint
from hybandits.service.sqlite import SqliteStore
from hybandits.service.summary import FIRST_BIN
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, FILE, Clock, bandit, decide, outcome_of, put, putting, retire, writer

MODES = pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])
CHALLENGERS = [{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}]


def play(service: Writer, clock: Clock, first: int, last: int) -> None:
    """Decisions over some minutes, whose rewards come some rows later, some of them never."""
    chance = random.Random(first)
    for i in range(first, last):
        decide(service, f"e{i}", user={"age": chance.gauss(0, 1), "country": chance.choice(["de", "fr"])})
        clock.advance(chance.choice([0.1, 1, 15]))
        if i >= first + 3 and chance.random() < 0.8:
            outcome_of(service, GiveReward(f"e{i - 3}", chance.random()))


def played(path: Path, content: dict[str, Any]) -> Writer:
    """A service whose log has rows of all kinds."""
    clock = Clock()
    service = writer(path, content, challengers=CHALLENGERS, clock=clock)
    put(service, "a", "b", "c")
    play(service, clock, 0, 80)
    outcome_of(service, Promote("bold"))
    retire(service, "a")
    put(service, "d", "b")
    play(service, clock, 100, 180)
    changed = bandit(content, challengers=CHALLENGERS, floor=0.1)
    service = Writer(SqliteStore(path / "log.db"), changed, clock=clock)
    play(service, clock, 200, 240)
    return service


@pytest.mark.slow
@MODES
def test_a_log_gives_the_same_bytes_however_its_rows_are_split(tmp_path: Path, content: dict[str, Any]) -> None:
    """Servers apply the rows since their last transaction, which differ from server to server."""
    service, chance = played(tmp_path, content), random.Random(1)
    store, rows = service.store, list(service.store.rows(0))

    def learned(size: Callable[[], int]) -> bytes:
        model, start = ModelState(bandit(content, challengers=CHALLENGERS)), 0
        while start < len(rows):
            count = size()
            model.apply(rows[start : start + count], store)
            start += count
        return model.snapshot().content

    expected = learned(lambda: len(rows))
    assert service.state.summary.width >= 4 * FIRST_BIN, "stretches of time have become longer on the way"
    assert learned(lambda: 1) == expected
    assert learned(lambda: chance.randint(1, 90)) == expected
    assert service.state.snapshot().content == expected


@pytest.mark.slow
@MODES
def test_a_snapshot_goes_on_with_the_same_bytes(tmp_path: Path, content: dict[str, Any]) -> None:
    service = played(tmp_path, content)
    rows = list(service.store.rows(0))
    for upto in (1, 4, len(rows) // 2, len(rows) - 3):
        model = ModelState.restored(service.store, upto)
        service.store.keep_snapshot(model.snapshot())
        model = ModelState.restored(service.store)
        assert model.resumed == (upto if upto > 1 else 0)
        assert model.snapshot() == service.state.snapshot()
        assert (model.bandit, model.arms) == (service.state.bandit, service.state.arms)
        assert all(np.array_equal(model._vectors[arm], vector) for arm, vector in service.state._vectors.items())


def test_a_start_with_a_snapshot_reads_only_what_came_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arms whose features change all the time make a log long, too."""
    service = writer(tmp_path)
    for i in range(100):
        outcome_of(service, putting("a", {"price": 10**40 + i / 7 if i % 2 else 10**40 + i}))
    service.keep_snapshot()
    decide(service, "e")
    read: list[int] = []
    rows = SqliteStore.rows

    def noted(*given: Any) -> Iterator[Row]:
        for row in rows(*given):
            read.append(row.number)
            yield row

    monkeypatch.setattr(SqliteStore, "rows", noted)
    model = ModelState.restored(SqliteStore(tmp_path / "log.db"))
    assert model.arms == service.state.arms
    assert read == [1, 102], "what the log begins with, and what came after the snapshot"


def test_a_snapshot_of_another_fingerprint_is_not_used(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    decide(service, "e")
    snapshot = service.state.snapshot()
    service.store.keep_snapshot(snapshot._replace(fingerprint="elsewhere"))
    assert ModelState.restored(service.store).resumed == 0
    service.store.keep_snapshot(snapshot)
    assert ModelState.restored(service.store).resumed == snapshot.row


def test_a_reward_is_learned_though_its_decision_leaves_memory_among_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybandits.service.model_state.CHUNK", 2)
    monkeypatch.setattr("hybandits.service.model_state.REMEMBERED", 4)
    service = writer(tmp_path)
    put(service, "a", "b")
    for i in range(9):  # the ninth is one more than are kept, so that the first four are dropped
        decide(service, f"e{i}")
    outcome_of(service, GiveReward("e0", 1.0))
    model = ModelState.restored(service.store)
    assert model.summary.reward.n == 1
    assert model.snapshot() == service.state.snapshot()


@pytest.mark.slow
@pytest.mark.parametrize("damage", [b"", b"\0", b"{}", "half", "policy"], ids=str)
def test_a_damaged_snapshot_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes | str
) -> None:
    service = played(tmp_path, FILE)
    snapshot = service.state.snapshot()
    plain = msgspec.msgpack.decode(snapshot.content)
    if damage == "policy":
        plain["policies"]["bold"] = plain["policies"]["bold"][:-100]
    content = damage if isinstance(damage, bytes) else msgspec.msgpack.encode(plain)
    if damage == "half":
        content = content[: len(content) // 2]
    service.store.keep_snapshot(snapshot._replace(content=content))
    again = writer(tmp_path, challengers=CHALLENGERS, floor=0.1)
    assert again.state.snapshot() == snapshot
    (warning,) = [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]
    assert warning.startswith(f"the snapshot of row {snapshot.row} cannot be used, so the log is read: ")
    again.keep_snapshot()
    assert again.store.snapshot(fingerprint()) == snapshot
