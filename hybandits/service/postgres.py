"""The log in a PostgreSQL database, for several servers."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from hybandits.service.log import SCHEMA, START, TABLES, Result, Store, StoreError, Values

BANDIT = "hybandits"
"""The schema of the tables where the address names no bandit."""

SESSION = """
SET search_path = {};
SET lock_timeout = '10s';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = '60s';
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off
"""
"""Settings of every connection. A server that hangs cannot hold the lock forever. Plans that were made when the table
was empty use indexes."""

DEFAULTS = {
    "connect_timeout": "5", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
    "tcp_user_timeout": "20000", "application_name": "hybandits", "client_encoding": "UTF8",
}  # fmt: skip
"""Settings of connections that the address does not mention: one that has died is noticed within half a minute."""

DURABLE = ("synchronous_commit", "fsync")
"""Settings of PostgreSQL without which a commit can be lost."""


class PostgresStore(Store):
    """A log in a PostgreSQL database.

    `?bandit=` in the address names the schema of the tables. Rows are numbered under an advisory lock, released when
    they can be seen, so that no reader skips one. A lost connection is replaced at the next call.
    """

    piece = 1_000

    def __init__(self, address: str, *, create: bool = True) -> None:
        super().__init__()
        self._connect_by, self.bandit = _parts(address)
        place = " ".join(str(self._connect_by[key]) for key in ("host", "dbname") if self._connect_by.get(key))
        self.name = f"PostgreSQL ({f'{place}, ' if place else ''}bandit {self.bandit})"
        self._lock = int.from_bytes(hashlib.sha256(f"hybandits {self.bandit}".encode()).digest()[:8], signed=True)
        try:
            if self._fetch("SELECT to_regclass('version')") == [(None,)]:
                if not create:
                    raise StoreError(f"There is no log in {self.name}: {START}")
                schema = sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.bandit)).as_string()
                tables = TABLES.format(integer="bigint", blob="bytea", table="", schema=SCHEMA)
                self._fetch(f"BEGIN; SELECT pg_advisory_xact_lock({self._lock}); {schema}; {tables} COMMIT")
            with self.writing():  # a server that can lose commits is refused
                self._check_version(create)
        except BaseException:
            self.close()
            raise

    def _among(self, values: Values) -> tuple[str, Values]:
        return "= ANY(?)", [list(values)]

    def _source(self, rows: Sequence[Values]) -> tuple[str, Values]:
        query = "unnest(?::bigint[], ?::bigint[], ?::bigint[], ?::bytea[], ?::text[])"
        return query, [list(column) for column in zip(*rows, strict=True)]

    def _connect(self) -> psycopg.Connection[Any]:
        with self._errors():
            connection = psycopg.connect(**self._connect_by, autocommit=True)
            connection.execute(sql.SQL(SESSION).format(sql.Identifier(self.bandit)))
        return connection

    def _is_lost(self, connection: psycopg.Connection[Any]) -> bool:
        return bool(connection.closed)

    def _ask(self, connection: psycopg.Connection[Any], query: str, values: Values = ()) -> Result:
        query = query.replace("?", "%b") if values else query  # where there are none, a bandit's name may have one
        with self._errors():
            cursor = connection.execute(query, values or None, binary=bool(values))  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description is not None else []

    def _begin(self, connection: psycopg.Connection[Any]) -> None:
        """Begin with one message; what follows is read after the lock was got."""
        settings = ", ".join(f"current_setting('{name}')" for name in DURABLE)
        query = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT {settings}, pg_advisory_xact_lock({self._lock})"
        )
        try:
            with self._errors():
                cursor = connection.execute(query)  # type: ignore[arg-type]
                cursor.nextset()
                (values,) = cursor.fetchall()
            for name, value in zip(DURABLE, values, strict=False):
                if value == "off":
                    raise StoreError(f"{self.name} has {name} = off, so that commits could be lost: set it to on.")
        except BaseException:
            if not connection.closed:
                self._ask(connection, "ROLLBACK")
            raise

    def _commit(self, connection: psycopg.Connection[Any]) -> None:
        with self._errors():
            ended = connection.execute("COMMIT").statusmessage
        if ended != "COMMIT":  # PostgreSQL answers ROLLBACK if an earlier error was passed over
            raise StoreError(f"{self.name} has not written the rows ({ended}).")

    def _abandon(self, connection: psycopg.Connection[Any]) -> None:
        connection.close()  # whatever has happened, the transaction ends with its connection

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.LockNotAvailable as problem:
            raise StoreError(f"{self.name} is locked by another server for too long: is one hanging?") from problem
        except (psycopg.Error, OSError) as problem:
            reason = " ".join(str(problem).split()) or "no reason given"
            raise StoreError(f"{self.name} cannot be used ({type(problem).__name__}: {reason}).") from problem


def _parts(address: str) -> tuple[dict[str, Any], str]:
    """Return how to connect, and the name of the bandit."""
    base, _, query = address.partition("?")
    keys = {name: unquote(value) for name, _, value in (key.partition("=") for key in query.split("&") if key)}
    bandit = keys.pop("bandit", BANDIT)
    if not bandit or "\0" in bandit or len(bandit.encode()) > 63:
        raise StoreError(f"bandit={bandit!r} in the address must have 1 to 63 bytes, because it names a schema.")
    try:
        given = conninfo_to_dict(base, **keys)
    except psycopg.Error:  # whose message could repeat a password
        form = "postgresql://user:password@host/database, with special characters as %40 and the like"
        raise StoreError(f"PostgreSQL does not understand the address: write {form}.") from None
    return {**DEFAULTS, **given}, bandit
