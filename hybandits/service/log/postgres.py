"""The log in a PostgreSQL database, for several servers."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from hybandits.service.log.rows import DECISION, EVENTLESS, KINDS, REWARD, SCHEMA, Row, decode, encode
from hybandits.service.log.store import SNAPSHOTS, Found, Snapshot, StoreError, behind, empty, not_empty

BANDIT = "hybandits"
"""The schema of the tables where the address names no bandit."""

PAGE = 5_000
"""Rows that are fetched at a time."""

TABLES = """
CREATE TABLE version (schema integer NOT NULL);
CREATE TABLE log (
  row bigint PRIMARY KEY, kind smallint NOT NULL, time bigint NOT NULL, event bytea, content bytea NOT NULL
);
CREATE UNIQUE INDEX of_event ON log (event, kind);
CREATE INDEX of_kind ON log (kind, row) WHERE event IS NULL;
CREATE TABLE snapshot (row bigint PRIMARY KEY, fingerprint text NOT NULL, content bytea NOT NULL);
"""

SESSION = sql.SQL("""
SET search_path = {};
SET lock_timeout = '10s';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = '60s';
SET enable_seqscan = off
""")
"""What holds for every connection. A server that hangs cannot hold the lock for ever. Plans are kept, and use indexes
even if they were made when the table was empty."""

DEFAULTS = {
    "connect_timeout": "5", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
    "tcp_user_timeout": "20000", "application_name": "hybandits", "client_encoding": "UTF8",
}  # fmt: skip
"""Settings of connections that the address does not mention: one that has died is noticed within half a minute."""

DURABLE = ("synchronous_commit", "fsync")
"""Settings of PostgreSQL without which a commit can be lost."""


class PostgresStore:
    """A log in a PostgreSQL database.

    Parameters
    ----------
    address : str
        As PostgreSQL writes it, ``postgresql://user:password@host/database``. Several bandits can share a database: the
        key `bandit`, as in ``postgresql://host/database?bandit=front-page``, names the schema in which the tables of
        this one lie. Without it, it is ``hybandits``.
    create : bool
        Whether to begin a log if there is none. Otherwise nothing is written where there is no log that has begun.

    Notes
    -----
    Rows are numbered by whoever holds the log's lock (an advisory lock that ends with the transaction), and the lock is
    released only when the rows can be seen. So rows become visible in the order of their numbers, and no reader can
    skip one. A connection that was lost is made anew at the next call. If it is lost during a commit, the call fails,
    and the next transaction sees whether the rows were written: it gets the lock when the lost one has ended.

    Events and contents are bytes (UTF-8, JSON), because a text of PostgreSQL cannot hold every character.
    ``convert_from(content, 'UTF8')`` shows them.
    """

    def __init__(self, address: str, *, create: bool = True) -> None:
        self._connect_by, self.bandit = _parts(address)
        self._lock = int.from_bytes(hashlib.sha256(f"hybandits {self.bandit}".encode()).digest()[:8], signed=True)
        self._local = threading.local()
        self._connections: list[psycopg.Connection[Any]] = []
        self._mutex = threading.Lock()
        try:
            with self.writing():
                self._check_schema(create)
        except BaseException:
            self.close()
            raise

    def _check_schema(self, create: bool) -> None:
        connection = self._connection
        if self._fetch("SELECT to_regclass('version')") == [(None,)]:
            if not create:
                raise StoreError(
                    f"There is no log in {self.name}: start it with hybandits serve bandit.toml, or give another "
                    "--store."
                )
            if self._fetch("SELECT 1 FROM pg_namespace WHERE nspname = %s", self.bandit) == []:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.bandit)))
            connection.execute(TABLES)
            connection.execute("INSERT INTO version VALUES (%s)", (SCHEMA,))
        for (schema,) in self._fetch("SELECT schema FROM version"):
            if schema != SCHEMA:
                raise StoreError(f"{self.name} has schema {schema}, this version of hybandits reads {SCHEMA}")
        if not create and self.last()[0] == 0:
            raise StoreError(empty(self.name))

    # -------------------------------------------------------------- connections

    @property
    def name(self) -> str:
        place = " ".join(str(self._connect_by[key]) for key in ("host", "dbname") if self._connect_by.get(key))
        return f"PostgreSQL ({f'{place}, ' if place else ''}bandit {self.bandit})"

    @property
    def _connection(self) -> psycopg.Connection[Any]:
        """The connection of this thread: the one of its transaction, or one that works, as far as is known."""
        held: psycopg.Connection[Any] | None = getattr(self._local, "held", None)
        if held is not None:
            return held
        connection: psycopg.Connection[Any] | None = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            connection = psycopg.connect(**self._connect_by, autocommit=True)
            connection.execute(SESSION.format(sql.Identifier(self.bandit)))
            with self._mutex:
                self._connections = [each for each in self._connections if not each.closed] + [connection]
            self._local.connection = connection
        return connection

    def _fetch(self, query: Any, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query. Outside a transaction it is asked again if the connection was lost."""
        with self._plainly():
            connection = self._connection
            try:
                return self._ask(connection, query, values)
            except psycopg.OperationalError:
                if not connection.closed or getattr(self._local, "held", None) is not None:
                    raise
            return self._ask(self._connection, query, values)

    @staticmethod
    def _ask(connection: psycopg.Connection[Any], query: Any, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = connection.execute(query, values, binary=True)
        return cursor.fetchall() if cursor.description is not None else []

    @contextlib.contextmanager
    def _plainly(self) -> Iterator[None]:
        """Let errors say which store they are about."""
        try:
            yield
        except psycopg.errors.LockNotAvailable as problem:
            raise StoreError(
                f"{self.name} has been locked by another server for too long: is one hanging?"
            ) from problem
        except (psycopg.Error, OSError) as problem:
            reason = " ".join(str(problem).split()) or "no reason given"
            raise StoreError(f"{self.name} cannot be used ({type(problem).__name__}: {reason}).") from problem

    # -------------------------------------------------------------- reading

    def rows(self, after: int, upto: int | None = None, kinds: Sequence[int] | None = None) -> Iterator[Row]:
        query = "SELECT row, time, content FROM log WHERE row > %s AND row <= %s"
        values: list[Any] = [2**62 if upto is None else upto]
        if kinds is not None:
            query += " AND kind = ANY(%s)"
            query += " AND event IS NULL" if set(kinds) <= set(EVENTLESS) else ""  # so that the index on kinds is used
            values.append(list(kinds))
        for number, time, content in self._pages(query, after, values):
            yield Row(number, time, decode(content))

    def _pages(self, query: str, after: int, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query on the rows after one, fetched page by page."""
        while True:
            page = self._fetch(f"{query} ORDER BY row LIMIT {PAGE}", after, *values)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def find(self, events: Sequence[str]) -> dict[str, Found]:
        found: dict[str, Found] = {}
        for event, kind, number, time, content in self._fetch(
            "SELECT event, kind, row, time, content FROM log WHERE event = ANY(%b::bytea[])",
            [event.encode() for event in events],
        ):
            name = "decision" if kind == DECISION else "reward"
            text = bytes(event).decode()
            found[text] = found.get(text, Found())._replace(**{name: Row(number, time, decode(content))})
        return found

    def outcomes(self, after: int, upto: int) -> Iterator[tuple[Row, Row | None]]:
        while decisions := self._fetch(
            "SELECT row, time, content, event FROM log WHERE row > %s AND row <= %s AND kind = %s "
            f"ORDER BY row LIMIT {PAGE}",
            after, upto, DECISION,
        ):  # fmt: skip
            rewards = {
                event: Row(number, time, decode(content))
                for event, number, time, content in self._fetch(
                    "SELECT event, row, time, content FROM log WHERE event = ANY(%b::bytea[]) AND kind = %s",
                    [event for *_, event in decisions],
                    REWARD,
                )
            }
            for number, time, content, event in decisions:
                yield Row(number, time, decode(content)), rewards.get(event)
            after = decisions[-1][0]

    def by_number(self, numbers: Sequence[int]) -> list[Row]:
        found = {
            number: Row(number, time, decode(content))
            for number, time, content in self._fetch(
                "SELECT row, time, content FROM log WHERE row = ANY(%b::bigint[])", list(numbers)
            )
        }
        if missing := [number for number in numbers if number not in found]:
            raise StoreError(f"{self.name} has no row {missing[0]}.")
        return [found[number] for number in numbers]

    def first_decisions(self, after: int, most: int) -> list[tuple[int, int]]:
        return [
            (number, time)
            for number, time in self._fetch(
                "SELECT row, time FROM log WHERE row > %s AND kind = %s ORDER BY row LIMIT %s", after, DECISION, most
            )
        ]

    def last(self) -> tuple[int, int]:
        for number, time in self._fetch("SELECT row, time FROM log ORDER BY row DESC LIMIT 1"):
            return number, time
        return 0, 0

    # -------------------------------------------------------------- writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[PostgresStore]:
        with self._plainly():
            connection = self._local.held = self._begun()
            try:
                yield self
                ended = connection.execute("COMMIT").statusmessage
                if ended != "COMMIT":  # PostgreSQL answers ROLLBACK if an earlier error was passed over
                    raise StoreError(f"{self.name} has not written the rows ({ended}).")
            except BaseException:
                connection.close()  # whatever has happened, the transaction ends with its connection
                raise
            finally:
                self._local.held = None

    def _begun(self) -> psycopg.Connection[Any]:
        """A connection with a transaction that holds the lock; what it reads is read after the lock was got."""
        for last in (False, True):
            connection = self._connection
            try:
                self._begin(connection)
                break
            except (psycopg.Error, StoreError):
                lost = connection.closed  # since the last transaction
                connection.close()
                if last or not lost:
                    raise
        return connection

    def _begin(self, connection: psycopg.Connection[Any]) -> None:
        settings = ", ".join(f"current_setting('{name}')" for name in DURABLE)
        cursor = connection.execute(
            f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT {settings}, pg_advisory_xact_lock({self._lock})"  # type: ignore[arg-type]
        )
        cursor.nextset()
        for *values, _ in cursor:
            for name, value in zip(DURABLE, values, strict=True):
                if value == "off":
                    raise StoreError(
                        f"{self.name} has {name} = off, so that rows could be lost after they were acknowledged: "
                        "set it to on."
                    )

    def append(self, rows: Sequence[Row]) -> None:
        if rows and not self._insert(rows, after=rows[0].number - 1):
            raise StoreError(behind(self.name, rows[0].number, self.last()[0]))

    def begin(self, rows: Sequence[Row]) -> None:
        if not self._insert(rows, after=0):
            raise StoreError(not_empty(self.name))

    def _insert(self, rows: Sequence[Row], *, after: int) -> bool:
        """Add rows if the last one has a number; otherwise return False."""
        columns = [
            [row.number for row in rows],
            [KINDS[type(row.content)] for row in rows],
            [row.time for row in rows],
            [None if row.event is None else row.event.encode() for row in rows],
            [encode(row.content) for row in rows],
        ]
        written = self._fetch(
            "INSERT INTO log (row, kind, time, event, content) SELECT * FROM "
            "unnest(%b::bigint[], %b::smallint[], %b::bigint[], %b::bytea[], %b::bytea[]) "
            "WHERE coalesce((SELECT max(row) FROM log), 0) = %s RETURNING 1",
            *columns,
            after,
        )
        return bool(written)

    def touch(self) -> None:
        self._fetch("SELECT pg_current_xact_id()")  # a transaction that has an id is written when it commits

    # -------------------------------------------------------------- snapshots

    def snapshot(self, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        for found in self._fetch(
            "SELECT row, fingerprint, content FROM snapshot WHERE fingerprint = %s AND row <= %s "
            "ORDER BY row DESC LIMIT 1",
            fingerprint,
            2**62 if upto is None else upto,
        ):
            return Snapshot(*found)
        return None

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        self._fetch(
            "INSERT INTO snapshot VALUES (%s, %s, %s) ON CONFLICT (row) DO UPDATE "
            "SET fingerprint = excluded.fingerprint, content = excluded.content",
            *snapshot,
        )
        self._fetch(
            "DELETE FROM snapshot WHERE row NOT IN "
            "(SELECT max(row) FROM snapshot GROUP BY fingerprint ORDER BY max(row) DESC LIMIT %s)",
            SNAPSHOTS,
        )

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


def _parts(address: str) -> tuple[dict[str, Any], str]:
    """How to connect, and the name of the bandit.

    >>> _parts("postgresql://ann@db/shop?bandit=front-page")[1], _parts("postgresql://db/shop")[1]
    ('front-page', 'hybandits')
    """
    base, _, query = address.partition("?")
    keys = [key for key in query.split("&") if key]
    names = [unquote(key.removeprefix("bandit=")) for key in keys if key.startswith("bandit=")]
    bandit = names[-1] if names else BANDIT
    if not bandit or "\0" in bandit or len(bandit.encode()) > 63:
        raise StoreError(f"bandit={bandit!r} in the address must have 1 to 63 bytes, because it names a schema.")
    kept = [key for key in keys if not key.startswith("bandit=")]
    try:
        given = conninfo_to_dict(base + ("?" + "&".join(kept) if kept else ""))
    except psycopg.Error:  # whose message could repeat a password
        raise StoreError(
            "PostgreSQL does not understand the address: write postgresql://user:password@host/database, and special "
            "characters as %40 and the like."
        ) from None
    return {**DEFAULTS, **given}, bandit
