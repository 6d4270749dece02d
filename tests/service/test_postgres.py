"""The log in PostgreSQL: connections, locks and settings."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from hybandits.service import postgres as postgres_module
from hybandits.service.commands import Decide, GiveReward, Refused
from hybandits.service.log import StoreError
from hybandits.service.model_state import ModelState
from hybandits.service.postgres import PostgresStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from soak.servers import Postgres
from tests.support.bandits import FILE, USER, Clock, ask, bandit, decide, models, outcome_of, put
from tests.support.log_rows import append, decision

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


@pytest.fixture
def address(postgres: Postgres) -> str:
    return postgres.address(f"test-{secrets.token_hex(8)}")


@pytest.fixture
def store(address: str) -> Iterator[PostgresStore]:
    opened = PostgresStore(address)
    yield opened
    opened.close()


def _server(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements as somebody else would; the rows of the last one."""
    with psycopg.connect(address.partition("&bandit=")[0], autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def test_bandits_of_one_database_know_nothing_of_each_other(store: PostgresStore, postgres: Postgres) -> None:
    other = PostgresStore(postgres.address('na"me%20%C3%BC%3F'))
    assert other.bandit == 'na"me ü?'
    with store.writing() as transaction:
        transaction.append([decision(1, "a")])
        append(other, decision(1, "b"))  # one does not wait for the other
    assert [row.event for row in store.rows(0)] == ["a"]
    assert [row.event for row in other.rows(0)] == ["b"]
    other.close()


def test_messages_hold_no_password() -> None:
    for address in (
        "postgresql://ann:secret@127.0.0.1:1/shop",
        "postgresql://ann:secret@127.0.0.1:1/shop?unknown=1",
        "postgresql://ann:sec/ret@127.0.0.1:1/shop",
    ):
        with pytest.raises(StoreError) as caught:
            PostgresStore(address)
        assert "sec" not in str(caught.value)
    with pytest.raises(StoreError, match=r"PostgreSQL \(127.0.0.1 shop, bandit hybandits\) cannot be used"):
        PostgresStore("postgresql://ann:secret@127.0.0.1:1/shop")


def test_where_there_is_no_log_nothing_is_created_unless_it_is_asked_for(postgres: Postgres) -> None:
    address = postgres.address(f"typo-{secrets.token_hex(4)}")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"There is no log in PostgreSQL \(.*, bandit typo-.* start it"):
            PostgresStore(address, create=False)
    PostgresStore(address).close()
    with pytest.raises(StoreError, match=r"The log PostgreSQL \(.*, bandit typo-.*\) is empty: start it"):
        PostgresStore(address, create=False)


@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync"])
def test_a_server_that_can_lose_commits_is_refused(store: PostgresStore, address: str, setting: str) -> None:
    append(store, decision(1, "a"))
    try:
        _server(address, f"ALTER SYSTEM SET {setting} = off", "SELECT pg_reload_conf()")
        with pytest.raises(StoreError, match=f"{setting} = off"):
            _wait_for(lambda: append(store, decision(store.last()[0] + 1, secrets.token_hex(4))))
        with pytest.raises(StoreError, match=f"{setting} = off"):
            PostgresStore(address)
    finally:
        _server(address, f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")
    _until(lambda: append(store, decision(store.last()[0] + 1, "z")))


def _wait_for(action: Any) -> None:
    """Act until it fails: a reload takes a moment to reach all sessions."""
    for _ in range(1_000):
        action()


def _until(action: Any) -> None:
    """Act until it succeeds."""
    for _ in range(1_000):
        try:
            return action()
        except StoreError:
            continue
    return action()


def test_a_session_that_does_not_wait_for_the_disk_is_refused(address: str) -> None:
    with pytest.raises(StoreError, match="synchronous_commit = off"):
        PostgresStore(f"{address}&options=-c%20synchronous_commit%3Doff")


def test_a_server_that_hangs_with_the_lock_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_module, "SESSION", postgres_module.SESSION.replace("'10s'", "'50ms'"))
    store = PostgresStore(address)
    with store.writing():
        failed: list[str] = []

        def wait() -> None:
            try:
                append(store, decision(1, "a"))
            except StoreError as problem:
                failed.append(str(problem))

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert "locked by another server" in failed[0]
    append(store, decision(1, "a"))
    store.close()


def test_an_error_that_was_passed_over_is_no_commit(store: PostgresStore) -> None:
    with pytest.raises(StoreError, match="has not written"), store.writing() as transaction:  # noqa: PT012
        transaction.append([decision(1, "a")])
        with pytest.raises(StoreError):
            transaction.append([decision(2, "a")])
    assert store.last() == (0, 0)


def test_reading_goes_on_when_the_server_is_back(store: PostgresStore, postgres: Postgres) -> None:
    append(store, decision(1, "a"))
    postgres.kill()
    with pytest.raises(StoreError, match="cannot be used"):
        store.last()
    with pytest.raises(StoreError, match="cannot be used"):
        append(store, decision(2, "b"))
    postgres.start()
    assert store.last() == (1, 1)
    append(store, decision(2, "b"))
    postgres.kill()
    postgres.start()
    assert store.last() == (2, 2), "a connection that was lost meanwhile is opened again"
    postgres.kill()
    postgres.start()
    append(store, decision(3, "c"))
    assert [row.event for row in store.rows(0)] == ["a", "b", "c"]


def test_a_transaction_that_loses_its_connection_leaves_nothing(store: PostgresStore, address: str) -> None:
    append(store, decision(1, "a"))
    with pytest.raises(StoreError), store.writing() as transaction:  # noqa: PT012
        transaction.append([decision(2, "b")])
        _server(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'hybandits'")
        transaction.append([decision(3, "c")])
    assert store.last() == (1, 1)
    append(store, decision(2, "d"))


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost(address: str, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    """The client is told to ask again, and the answer is right in both cases."""
    service = Writer(PostgresStore(address), bandit(FILE), clock=Clock())
    put(service, "a", "b", "c")
    decide(service, "first")
    execute = psycopg.Connection.execute

    def lossy(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        if query == "COMMIT":
            if committed:
                execute(self, query)
            self.close()
            raise psycopg.OperationalError("the connection is lost")
        return execute(self, query, *values, **options)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", lossy)
        (outcome, _) = service.serve([Decide(USER, event_id="e"), GiveReward("first", 1.0)])
        assert isinstance(outcome, Refused)
        assert outcome.status == 503
        assert "the connection is lost" in outcome.detail
    again = outcome_of(service, Decide(USER, event_id="e"))
    assert again.status == (200 if committed else 201)
    assert ask(service, GiveReward("first", 1.0)).status == (200 if committed else 201)
    assert [row.event for row in service.store.rows(0, None, [5])] == ["first", "e"]
    model = ModelState.based(service.store)
    model.apply(service.store.rows(model.row), service.store)
    assert models(service) == {name: policy.to_bytes() for name, policy in model.policies.items()}
    assert model.summary.reward.n == 1
    assert verify(service.store).different == 0
    service.store.close()


def test_two_servers_that_start_at_once_make_one_log(address: str) -> None:
    stores: list[PostgresStore] = []
    threads = [threading.Thread(target=lambda: stores.append(PostgresStore(address))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stores) == 4
    append(stores[0], decision(1, "a"))
    assert [store.last() for store in stores] == [(1, 1)] * 4
    for store in stores:
        store.close()
