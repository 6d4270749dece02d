"""Rotation: the new log begins where the old one ended, and what is open goes over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import hybandits.service.model_state
from hybandits.service.api import _candidates_of
from hybandits.service.commands import Decide, GiveReward, Refused
from hybandits.service.export import EARLIER, NO_REWARD, OPEN, export
from hybandits.service.log import DECISION, FEW, Continued, Decision, Row, Store, StoreError, open_store
from hybandits.service.model_state import ModelState, walk
from hybandits.service.rotate import contradiction, rotate
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import (
    CLICKS,
    FILE,
    USER,
    Clock,
    ask,
    bandit,
    decide,
    models,
    outcome_of,
    put,
    putting,
    retire,
    reward,
    writer,
)

MODES = pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])


def play(service: Writer, first: int, last: int, clock: Clock) -> None:
    """Decisions, of which three in four get a reward; a second passes after each."""
    for i in range(first, last):
        decide(service, f"e{i}", user={"age": (i % 7) / 7, "country": "fr" if i % 2 else "de"})
        if i % 4:
            reward(service, f"e{i}", float(i % 3 == 0))
        clock.advance(1)


@pytest.fixture
def new(address: str, tmp_path: Path) -> Iterator[Store]:
    """A log that has not begun, in the same kind of store as `address`."""
    store = open_store(f"{address}-2" if "://" in address else str(tmp_path / "second.db"))
    yield store
    store.close()


@pytest.mark.slow
@MODES
def test_the_new_log_goes_on_where_the_old_one_ended(store: Store, new: Store, content: dict[str, Any]) -> None:
    clock = Clock()
    service = Writer(store, bandit(content), clock=clock)
    put(service, "a", "b", "c")
    play(service, 0, 60, clock)
    before, summary, last = models(service), service.state.summary, service.state.row
    done = rotate(store, new, since=clock.now - 4_000_000)
    assert done.row == last + 2
    assert done.copied == (10 if content is CLICKS else 4)
    assert contradiction(new, store) is None
    again = Writer(new, bandit(content), clock=clock)
    assert (models(again), again.state.summary) == (before, summary)
    assert again.store.last()[0] == done.row

    # what is open or recent is as it was, and what is older is unknown
    assert ask(again, GiveReward("e59", 0.0)).status == 200
    assert ask(again, GiveReward("e56", 1.0)).status == 201
    old = outcome_of(again, GiveReward("e40", 1.0))
    assert isinstance(old, Refused)
    assert old.status == 404
    assert "This log has no decision with the event id 'e40'." in old.detail

    # nobody writes to the old one any more
    outcome = outcome_of(service, Decide(USER, event_id="new"))
    assert isinstance(outcome, Refused)
    assert outcome.status == 503
    assert f"was rotated at row {last + 1} and goes on in {new.name}: start servers" in outcome.detail
    with pytest.raises(StoreError, match="was rotated at row"):
        Writer(store, bandit(content), clock=clock)

    # both can be recomputed, the new one with and without its snapshots
    play(again, 60, 80, clock)
    again.keep_snapshot()
    restored, replayed = ModelState.restored(new), ModelState.based(new)
    replayed.apply(new.rows(replayed.row), new)
    assert restored.snapshot() == replayed.snapshot()
    results = verify(store), verify(new)
    assert [(result.decisions, result.different, result.copied) for result in results] == [
        (60, 0, 0), (20, 0, done.copied),
    ]  # fmt: skip
    assert results[1].exact == 20


@MODES
def test_every_decision_is_exported_once(tmp_path: Path, content: dict[str, Any]) -> None:
    clock = Clock()
    first = writer(tmp_path, content, clock=clock)
    put(first, "a", "b", "c")
    play(first, 0, 40, clock)
    second = SqliteStore(tmp_path / "second.db")
    rotate(first.store, second, since=clock.now - 20_000_000)
    again = Writer(second, bandit(content), clock=clock)
    ask(again, GiveReward("e36", 1.0))
    play(again, 40, 50, clock)
    clock.advance(100)
    again.serve([])
    (one, early), (two, late) = (export(store, tmp_path / f"log {i}") for i, store in enumerate((first.store, second)))
    assert one.rounds + two.rounds == (50 if content is CLICKS else 37 + 1)
    assert (OPEN in early.reasons) == (content is CLICKS)
    assert (NO_REWARD in late.reasons) == (content is FILE)
    assert late.reasons[EARLIER] == (10 if content is CLICKS else 15)
    total = sum(batch.reward.sum() for log in (one, two) for batch in log.batches())
    assert total == again.state.summary.reward.total


@pytest.mark.parametrize("method", ["writing", "by_number"])
def test_a_rotation_that_was_killed_is_repeated(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    play(service, 0, 20, clock)
    before = service.state.snapshot()
    new = SqliteStore(tmp_path / "second.db")

    def killed(*_: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(new, "writing", killed)
        with pytest.raises(KeyboardInterrupt):
            rotate(service.store, new, since=clock.now)
    assert new.last() == (0, 0)
    assert outcome_of(service, Decide(USER)).status == 503
    with pytest.raises(StoreError, match=r"was rotated before and goes on in .*second\.db"):
        rotate(service.store, SqliteStore(tmp_path / "third.db"), since=clock.now)
    with monkeypatch.context() as patch:
        patch.setattr(hybandits.service.model_state, "fingerprint", lambda: "elsewhere")
        patch.setattr(ModelState, "snapshot", lambda state: before._replace(content=b"other", fingerprint="elsewhere"))
        with pytest.raises(StoreError, match="here it is elsewhere: rotate it where"):
            rotate(service.store, new, since=clock.now)
    done = rotate(service.store, new, since=clock.now)
    assert done.digest == before.digest
    with pytest.raises(StoreError, match=r"second\.db has rows already"):
        rotate(service.store, new, since=clock.now)
    assert models(Writer(new, bandit(CLICKS), clock=clock)) == models(service)


def tampered(store: SqliteStore, row: Row, content: Any) -> Callable[[], None]:
    """Change a row of a log; return what changes it back."""
    change = "UPDATE log SET content = ? WHERE row = ?"
    store._fetch(change, (msgspec.json.encode(content).decode(), row.number))
    return lambda: store._fetch(change, (msgspec.json.encode(row.content).decode(), row.number)) and None


def test_a_log_that_begins_elsewhere_is_found_out(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a", "b")
    play(service, 0, 20, clock)
    old, new = SqliteStore(tmp_path / "log.db"), SqliteStore(tmp_path / "second.db")
    assert contradiction(old, old) == f"{old.name} continues no other log"
    done = rotate(old, new, since=clock.now)
    assert contradiction(new, old) is None
    assert contradiction(new, new) == f"{new.name} has not ended"

    (copied,) = new.by_number([new.first_decisions(0, 1)[0][0]])
    back = tampered(new, copied, Decision(**{**_fields(copied.content), "chance": 0.123}))
    assert contradiction(new, old) == f"row {copied.number} of {new.name} is not that of {old.name}"
    back()

    (last,) = old.by_number([old.last()[0]])
    back = tampered(old, last, type(last.content)(**{**_fields(last.content), "digest": "0"}))
    assert f"begins at row {done.row} with the model {done.digest}" in str(contradiction(new, old))
    result = verify(old)
    assert (result.different, "the model is" in result.examples[0]) == (1, True)
    back()

    (first,) = new.by_number([done.row])
    tampered(new, first, type(first.content)(**{**_fields(first.content), "model": b"other"}))
    with pytest.raises(StoreError, match=r"second\.db is damaged: .* has the SHA-256 .* Restore it from a copy"):
        ModelState.restored(new)


def _fields(content: Any) -> dict[str, Any]:
    return {name: getattr(content, name) for name in content.__struct_fields__}


def test_bits_are_not_asked_for_if_the_log_begins_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    service = writer(tmp_path, clock=clock)
    put(service, "a", "b")
    play(service, 0, 20, clock)
    store = SqliteStore(tmp_path / "second.db")
    with monkeypatch.context() as patch:
        patch.setattr(hybandits.service.model_state, "fingerprint", lambda: "elsewhere")
        rotate(service.store, store, since=clock.now)
    again = Writer(store, bandit(), clock=clock)
    play(again, 20, 30, clock)
    result = verify(store)
    assert (result.decisions, result.exact, result.different, result.begins_elsewhere) == (10, 0, 0, True)
    row = [row for row in store.rows(0) if isinstance(row.content, Decision)][-1]
    for by, different in ((1e-12, 0), (1e-6, 1)):
        tampered(store, row, Decision(**{**_fields(row.content), "chance": row.content.chance + by}))
        assert verify(store).different == different
    rotate(store, SqliteStore(tmp_path / "third.db"), since=clock.now)


def candidates_of(store: SqliteStore) -> dict[int, Any]:
    """The candidates of the decisions of a log with their features, by the numbers of their rows."""
    known = {}
    for model, rows in walk(store, learning=False):
        for row in rows:
            assert isinstance(row.content, Decision)
            pool = model.pool_of(row.content, row.time)
            assert not isinstance(pool.vectors, int)
            known[row.number] = pool.ids, pool.vectors.tolist(), model.arms[row.content.arm].version
    return known


@pytest.mark.slow
@MODES
def test_rows_of_arms_stay_behind_unless_a_copied_decision_means_them(tmp_path: Path, content: dict[str, Any]) -> None:
    """An arm whose features change all the time must not make the log grow for ever."""
    clock = Clock()
    service = writer(tmp_path, content, clock=clock)
    for i in range(35):
        for arm in ("b", "a", "c"):
            ask(service, putting(arm, {"price": i / 7}))
        retire(service, "c")
        decide(service, f"e{i}")
        if i % 5:
            reward(service, f"e{i}", i / 50)
        clock.advance(1)
    retire(service, "b")
    put(service, "last")
    old, new = SqliteStore(tmp_path / "log.db"), SqliteStore(tmp_path / "second.db")
    candidates, total = candidates_of(old), len(list(old.rows(0)))
    rotate(old, new, since=clock.now - 3_000_000)
    copied = candidates_of(new)
    assert copied == {number: candidates[number] for number in copied}
    assert len(list(new.rows(0))) < total / 2
    first = next(new.rows(0, None, [DECISION])).content.version  # type: ignore[union-attr]
    assert len(list(new.rows(1, first, FEW))) == 2 * 3, "the first and the last row of each arm"
    again = Writer(new, bandit(content), clock=clock)
    for row in new.rows(0, None, [DECISION]):
        assert _candidates_of(again, row) == copied[row.number][0]
    assert again.state.arms == service.state.arms
    clock.advance(100)
    again.serve([])
    assert verify(new).different == 0
    third = SqliteStore(tmp_path / "third.db")
    rotate(new, third, since=clock.now)
    assert contradiction(third, new) is None
    assert [type(row.content) for row in third.rows(0, None, [DECISION, 9])] == [Continued]
    assert len(list(third.rows(0))) == 1 + 2 * 3 + 1 + 1
    assert ModelState.based(third).arms == service.state.arms
