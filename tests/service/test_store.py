"""Behaviour of both stores."""

from __future__ import annotations

import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

import hybandits.service.log
from hybandits.service.log import (
    FEW,
    Arm,
    Closed,
    EventRows,
    Opened,
    Retired,
    Row,
    Snapshot,
    Store,
    StoreError,
    open_store,
)
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support import log_rows
from tests.support.bandits import CLICKS, Clock, bandit, decide, models, put
from tests.support.bandits import reward as reward_of
from tests.support.log_rows import append, decision, reward

IDS = (
    "plain",
    "\0",
    "a\0b",
    "a\0c",
    "😀👩‍👩‍👧",
    "שלום",
    unicodedata.normalize("NFC", "é"),
    unicodedata.normalize("NFD", "é"),
    "Case",
    "case",
    "space ",
    "space",
    "'; DROP TABLE log; --",
    "%s",
    "\\x00",
    "x" * 200,
    "𐍈" * 200,
)
"""Any Unicode may be an id; two that look alike are not the same."""


def test_an_empty_log(store: Store) -> None:
    assert store.last() == (0, 0)
    assert list(store.rows(0)) == []
    assert store.find(["e"]) == {}
    assert store.find([]) == {}
    assert store.by_number([]) == []
    assert store.first_decisions(0, 10) == []
    assert list(store.outcomes(0, 10)) == []
    assert store.snapshot("f") is None


def test_rows_come_back_as_they_were_and_in_order(store: Store) -> None:
    rows = [
        Row(1, 5, Opened(1, {"name": "page", "text": "\0"})),
        Row(2, 5, Arm("a\0", {"price": 1.5, "colour": "😀", "none": None, "yes": True, "n": 3})),
        decision(3, "e", time=6),
        Row(4, 7, Retired("a\0")),
        reward(5, "e", 3),
        Row(6, 2**53, Closed(3)),
    ]
    append(store, *rows[:2])
    append(store)
    append(store, *rows[2:])
    assert list(store.rows(0)) == rows
    assert list(store.rows(2)) == rows[2:]
    assert list(store.rows(2, 4)) == rows[2:4]
    assert list(store.rows(4, 2)) == []
    assert list(store.rows(0, None, FEW)) == [rows[0], rows[1], rows[3]]
    assert list(store.rows(1, 3, FEW)) == [rows[1]]
    assert list(store.rows(0, None, [5, 6])) == [rows[2], rows[4]]
    assert store.last() == (6, 2**53)


def test_many_rows_are_read_page_by_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hybandits.service.log, "PAGE", 3)
    for n in range(1, 11):
        append(store, decision(2 * n - 1, f"e{n}"), reward(2 * n, f"e{n}", 2 * n - 1, n))
    assert [row.number for row in store.rows(0)] == list(range(1, 21))
    assert [row.number for row in store.rows(5, 14)] == list(range(6, 15))
    assert [(d.number, r and r.content.reward) for d, r in store.outcomes(2, 19)] == [  # type: ignore[union-attr]
        (2 * n - 1, float(n)) for n in range(2, 11)
    ]


def test_events_are_found_whatever_their_ids_are(store: Store) -> None:
    append(store, *(decision(i, event) for i, event in enumerate(IDS, 1)))
    after = len(IDS)
    append(store, *(reward(after + i, event, i) for i, event in enumerate(IDS, 1)))
    known = store.find([*IDS, "nobody"])
    assert list(store.find(["nobody"])) == []
    assert sorted(known) == sorted(IDS)
    for i, event in enumerate(IDS, 1):
        assert known[event] == EventRows(decision(i, event), reward(after + i, event, i))
        assert store.find([event]) == {event: known[event]}


def test_decisions_and_what_came_of_them(store: Store) -> None:
    append(store, decision(1, "a"), decision(2, "b"), decision(3, "c"), decision(4, "d"))
    append(store, reward(5, "c", 3, 0.5), reward(6, "b", 2, 0.25, late=True))
    assert list(store.outcomes(1, 3)) == [
        (decision(2, "b"), reward(6, "b", 2, 0.25, late=True)),
        (decision(3, "c"), reward(5, "c", 3, 0.5)),
    ]
    assert next(given for _, given in store.outcomes(0, 9)) is None
    assert store.first_decisions(1, 2) == [(2, 2), (3, 3)]
    assert store.first_decisions(4, 2) == []


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    append(store, decision(1, "a"))
    with pytest.raises(RuntimeError, match="on purpose"), store.writing() as transaction:  # noqa: PT012
        transaction.append([decision(2, "b")])
        assert transaction.last() == (2, 2)
        assert list(transaction.find(["b"])) == ["b"]
        raise RuntimeError("on purpose")
    assert store.last() == (1, 1)
    append(store, decision(2, "c"))
    assert [row.event for row in store.rows(0)] == ["a", "c"]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_rows_that_do_not_follow_on_the_last_are_refused(store: Store, number: int) -> None:
    append(store, decision(1, "a"), decision(2, "b"))
    with pytest.raises(StoreError, match=f"ends with row 2, so that row {number} cannot come next"):
        append(store, decision(number, "c"))
    append(store, decision(3, "c"))
    assert store.last() == (3, 3)


def test_an_event_has_one_decision(store: Store) -> None:
    append(store, decision(1, "a"))
    with pytest.raises(StoreError):
        append(store, decision(2, "a"))
    append(store, reward(2, "a", 1))
    assert store.last() == (2, 2)


def test_others_see_rows_when_they_are_committed(store: Store) -> None:
    seen = []

    def make_view() -> None:
        thread = threading.Thread(target=lambda: seen.append(store.last()[0]))
        thread.start()
        thread.join()

    with store.writing() as transaction:
        transaction.append([decision(1, "a")])
        make_view()
    make_view()
    assert seen == [0, 1]


def test_the_newest_snapshot_is_kept(store: Store) -> None:
    first, second = Snapshot(3, "f", b"\0first"), Snapshot(7, "f", bytes(range(256)))
    store.keep_snapshot(first)
    assert store.snapshot("f") == first
    assert store.snapshot("f", 2) is None
    store.keep_snapshot(second)
    assert store.snapshot("f") == second
    store.keep_snapshot(second._replace(content=b"again"))
    assert store.snapshot("f", 7) == second._replace(content=b"again")
    assert store.snapshot("f", 6) is None
    store.keep_snapshot(first)
    assert store.snapshot("f", 6) is None, "a slower server has kept an older one"


def test_servers_of_different_versions_keep_each_others_snapshots(store: Store) -> None:
    for row, version in enumerate("abababcd", 1):
        store.keep_snapshot(Snapshot(row, version, b"model"))
        known = {name: snapshot and snapshot.row for name in "abcd" if (snapshot := store.snapshot(name)) is not None}
        if row == 6:
            assert known == {"a": 5, "b": 6}
    assert known == {"b": 6, "c": 7, "d": 8}, "the three newest"


def test_a_log_begins_with_rows_that_have_gaps(store: Store, address: str) -> None:
    rows = [Row(1, 1, Opened(1, {})), decision(5, "open"), reward(8, "open", 5), Row(9, 9, Retired("a"))]
    with store.writing() as transaction:
        transaction.append(rows, last=0)
    assert list(store.rows(0)) == rows
    append(store, decision(10, "next"))
    other = open_store(address)
    with pytest.raises(StoreError, match="ends with row 10, so that row 1"), other.writing() as transaction:
        transaction.append([decision(11, "more")], last=0)
    with pytest.raises(StoreError, match="ends with row 10, so that row 12"):
        append(other, decision(12, "gap"))
    other.close()
    assert store.last() == (10, 10)


def test_services_on_one_log_have_one_model(address: str) -> None:
    """Whatever ids the clients use, and whichever service they ask."""
    clock = Clock()
    services = [Writer(open_store(address), bandit(CLICKS), clock=clock) for _ in range(2)]
    answers = {}
    for i, event in enumerate(IDS):
        one, other = services[i % 2], services[1 - i % 2]
        put(one, event, "b")
        answers[event] = decide(one, event).body
        assert decide(other, event).body == answers[event]
        assert reward_of(other, event, i / len(IDS)).status == 201
        assert reward_of(one, event, i / len(IDS)).status == 200
        clock.advance(2)
    clock.advance(10)
    for service in (*services, services[0]):
        service.serve([])
    assert services[0].state.summary.reward.n == len(IDS)
    services[0].keep_snapshot()
    services.append(Writer(open_store(address), bandit(CLICKS), clock=clock))
    assert models(services[0]) == models(services[1]) == models(services[2])
    assert list(services[2].state.arms) == list(dict.fromkeys(arm for event in IDS for arm in (event, "b")))
    assert verify(services[0].store).different == 0
    for service in services:
        service.store.close()


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", log_rows.__name__, *arguments],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_processes_append_at_once_and_no_reader_skips_a_row(store: Store, address: str) -> None:
    transactions = 150
    writers = [_start("append", address, name, str(transactions)) for name in ("one", "two")]
    seen: list[Row] = []
    while any(writer.poll() is None for writer in writers):
        seen += store.rows(seen[-1].number if seen else 0)
    seen += store.rows(seen[-1].number)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert [row.number for row in seen] == list(range(1, len(seen) + 1))
    assert seen == list(store.rows(0))
    wanted = {f"{name} {i} {j}" for name in ("one", "two") for i in range(transactions) for j in range(1 + i % 3)}
    assert sorted(row.event or "" for row in seen) == sorted(wanted)


@pytest.mark.slow
def test_the_lock_is_free_when_its_holder_was_killed(store: Store, address: str) -> None:
    append(store, decision(1, "a"))
    holder = _start("hold", address)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holding\n"
    assert store.last() == (1, 1)
    threading.Timer(0.3, holder.kill).start()
    append(store, decision(2, "b"))
    holder.communicate()
    assert [row.event for row in store.rows(0)] == ["a", "b"]


@pytest.mark.parametrize("scheme", ["mysql", "postgresql+psycopg", "sqlite"])
def test_other_databases_are_refused_without_their_passwords(scheme: str) -> None:
    with pytest.raises(ValueError, match=f"begins with {scheme}://".replace("+", "[+]")) as refused:
        open_store(f"{scheme}://ann:secret@host/shop")
    assert "secret" not in str(refused.value)
