"""The log in a SQLite file, for one machine: several workers of it may share the file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from hybandits.service.log.rows import (
    DECISION,
    EVENTLESS,
    KINDS,
    REWARD,
    SCHEMA,
    Decision,
    Reward,
    Row,
    decode,
    decode_rows,
    encode,
)
from hybandits.service.log.store import SNAPSHOTS, Found, Snapshot, StoreError, behind, empty, not_empty

SAFE_VERSION = (3, 51, 3)
"""Earlier versions of SQLite can corrupt a WAL when it is reset."""

CHECKPOINT_PAGES = 1_000
"""So many further pages of the WAL are copied into the file at a time."""

PIECE = 64
"""Rows that one statement writes, or looks for."""

BUSY = 10_000
"""Milliseconds for which SQLite waits where another process uses the file."""

PAGE = 1_000
"""Rows that are read at a time."""

LONG_WAL = 8
"""A WAL of so many times these pages is begun anew, for which writers wait."""

TABLES = """
CREATE TABLE IF NOT EXISTS log (
  row INTEGER PRIMARY KEY, kind INTEGER NOT NULL, time INTEGER NOT NULL, event TEXT, content BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS of_event ON log (event, kind) WHERE event IS NOT NULL;
CREATE INDEX IF NOT EXISTS of_kind ON log (kind, row) WHERE event IS NULL;
CREATE TABLE IF NOT EXISTS snapshot (row INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, content BLOB NOT NULL) STRICT;
"""

NAMES = {"log", "snapshot"}
"""The tables that every log has."""


class SqliteStore:
    """A log in a SQLite file.

    Parameters
    ----------
    path : path
        The file.
    create : bool
        Whether to begin a log if there is none. Otherwise nothing is written where there is no log that has begun.
    vfs : str, optional
        The name of SQLite's layer below, for tests.

    Notes
    -----
    Rows are on disk when a transaction ends (WAL, synchronous FULL). Writers wait for each other at a lock file beside
    the log, which wakes them at once, where SQLite's own waiting would poll.
    """

    def __init__(self, path: Path | str, *, create: bool = True, vfs: str | None = None) -> None:
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if version < SAFE_VERSION:
            raise StoreError(
                f"SQLite {apsw.sqlite_lib_version()} can corrupt a log: install an apsw with SQLite "
                f"{'.'.join(map(str, SAFE_VERSION))} or newer"
            )
        self.path = Path(path)
        self._vfs = vfs
        self._local = threading.local()
        self._copier: threading.Thread | None = None
        self._copying = threading.Event()
        self._checkpoints = threading.Lock()  # SQLite refuses a second checkpoint at once, however long one would wait
        self._closed = False
        self._pages = 0  # of the WAL, when it was last copied
        self._connections: list[apsw.Connection] = []
        with _plainly(self.path):
            self._refuse_others(create)
            self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        self._mutex = threading.Lock()
        try:
            if create:
                self._check_schema()
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        return str(self.path)

    def _check_schema(self) -> None:
        with self.writing():
            self._connection.execute(TABLES)
            self._connection.pragma("user_version", SCHEMA)

    def _refuse_others(self, create: bool) -> None:
        """Raise if the file is there and no log of this version, and leave it as it is: `_connection` would not.

        Without `create` it must be there, and have begun.
        """
        if not self.path.exists():
            if create:
                return
            raise StoreError(
                f"There is no log {self.path}: start it with hybandits serve bandit.toml, or give another --store."
            )
        connection = apsw.Connection(str(self.path), apsw.SQLITE_OPEN_READWRITE, self._vfs)
        try:
            connection.set_busy_timeout(BUSY)
            with connection:  # the tables may be made meanwhile
                schema = connection.pragma("user_version")
                query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'"
                tables = {name for (name,) in connection.execute(query)}
                has_begun = tables >= NAMES and connection.execute("SELECT EXISTS (SELECT 1 FROM log)").get
        finally:
            _close(connection)
        if tables and not tables >= NAMES:
            raise StoreError(
                f"{self.path} belongs to another program: it has the table {min(tables)!r}. Give the path of a log, or "
                "of a file that is not there yet."
            )
        if schema != (SCHEMA if tables else 0):
            raise StoreError(f"{self.path} has schema {schema}, this version of hybandits reads {SCHEMA}")
        if not create and not has_begun:
            raise StoreError(empty(self.path))

    @property
    def _connection(self) -> apsw.Connection:
        """The connection of this thread."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = apsw.Connection(str(self.path), vfs=self._vfs)
            try:
                connection.set_busy_timeout(BUSY)
                connection.pragma("journal_mode", "wal")
                connection.pragma("synchronous", "full")
                connection.set_wal_hook(self._committed)
            except BaseException:
                _close(connection)
                raise
            self._local.connection = connection
            self._connections.append(connection)
        return connection

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        """SQLite tells how long its WAL is. A thread copies it into the file, so that no transaction waits for that."""
        if pages < self._pages:  # it was begun anew
            self._pages = 0
        if pages >= self._pages + CHECKPOINT_PAGES:
            if self._copier is None:
                self._copier = threading.Thread(target=self._copy, name="hybandits checkpoints", daemon=True)
                self._copier.start()
            self._pages = pages
            self._copying.set()
        return apsw.SQLITE_OK

    def _copy(self) -> None:
        while self._copying.wait() and not self._closed:
            self._copying.clear()
            with contextlib.suppress(apsw.Error, OSError), self._checkpoints:  # a later transaction tells again
                self._connection.set_busy_timeout(0)  # writers do not wait until somebody has read to the end
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if self._pages >= LONG_WAL * CHECKPOINT_PAGES:
                    # Copying holds nobody up, but a WAL that is written to all the time never becomes empty that way.
                    with self._locked():
                        self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._mutex:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    # -------------------------------------------------------------- reading

    def rows(self, after: int, upto: int | None = None, kinds: Sequence[int] | None = None) -> Iterator[Row]:
        where, values = "row > ? AND row <= ?", [2**62 if upto is None else upto]
        if kinds is not None:
            where += f" AND kind IN ({', '.join('?' * len(kinds))})"
            where += " AND event IS NULL" if set(kinds) <= set(EVENTLESS) else ""  # so that the index on kinds is used
            values += kinds
        query = f"SELECT row, time, content FROM log WHERE {where} ORDER BY row LIMIT {PAGE}"
        while True:  # page by page, because the WAL cannot begin anew while somebody reads
            with _plainly(self.path):
                page: list[Any] = self._connection.execute(query, [after, *values]).fetchall()
            for number, time, content in page:
                yield Row(number, time, decode(content))
            if len(page) < PAGE:
                return
            after = page[-1][0]

    def find(self, events: Sequence[str]) -> dict[str, Found]:
        decisions: dict[str, Row] = {}
        rewards: dict[str, Row] = {}
        for row in self._where("event", events):
            if isinstance(row.content, Decision):
                decisions[row.content.event] = row
            elif isinstance(row.content, Reward):
                rewards[row.content.event] = row
        return {event: Found(decisions.get(event), rewards.get(event)) for event in {**decisions, **rewards}}

    def _where(self, column: str, values: Sequence[Any]) -> Iterator[Row]:
        """The rows whose column has one of these values.

        The file is asked for many rows at once, as one text, because other threads have their turn at each answer.
        """
        for some in _pieces(values):
            query = (
                "SELECT '[' || group_concat('[' || row || ',' || time || ',' || CAST(content AS TEXT) || ']') || ']' "
                f"FROM log WHERE {column} IN ({', '.join('?' * len(some))})"
            )
            with _plainly(self.path):
                text: str | None = self._connection.execute(query, some).get
            if text is not None:
                yield from decode_rows(text)

    def outcomes(self, after: int, upto: int) -> Iterator[tuple[Row, Row | None]]:
        with _plainly(self.path):
            for number, time, content, *reward in self._connection.execute(
                "SELECT d.row, d.time, d.content, r.row, r.time, r.content FROM log d "
                "LEFT JOIN log r ON r.event = d.event AND r.kind = ? "
                "WHERE d.row > ? AND d.row <= ? AND d.kind = ? ORDER BY d.row",
                (REWARD, after, upto, DECISION),
            ):
                given = None if reward[0] is None else Row(reward[0], reward[1], decode(reward[2]))
                yield Row(number, time, decode(content)), given

    def by_number(self, numbers: Sequence[int]) -> list[Row]:
        found = {row.number: row for row in self._where("row", numbers)}
        if missing := [number for number in numbers if number not in found]:
            raise StoreError(f"{self.path} has no row {missing[0]}.")
        return [found[number] for number in numbers]

    def first_decisions(self, after: int, most: int) -> list[tuple[int, int]]:
        with _plainly(self.path):
            return list(
                self._connection.execute(
                    "SELECT row, time FROM log WHERE row > ? AND kind = ? ORDER BY row LIMIT ?", (after, DECISION, most)
                )
            )

    def last(self) -> tuple[int, int]:
        with _plainly(self.path):
            for number, time in self._connection.execute("SELECT row, time FROM log ORDER BY row DESC LIMIT 1"):
                return number, time
        return 0, 0

    # -------------------------------------------------------------- writing

    @contextlib.contextmanager
    def writing(self) -> Iterator[SqliteStore]:
        with _plainly(self.path), self._locked():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def _roll_back(self) -> None:
        """End the transaction, with its connection if the disk does not even allow that."""
        connection = self._connection
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            self._connections.remove(connection)
            self._local.connection = None
            _close(connection)

    def append(self, rows: Sequence[Row]) -> None:
        if rows and rows[0].number != self.last()[0] + 1:
            raise StoreError(behind(self.path, rows[0].number, self.last()[0]))
        self._insert(rows)

    def begin(self, rows: Sequence[Row]) -> None:
        if self.last()[0]:
            raise StoreError(not_empty(self.name))
        self._insert(rows)

    def _insert(self, rows: Sequence[Row]) -> None:
        for some in _pieces(rows):
            marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
            values: list[Any] = []
            for row in some:
                values += row.number, KINDS[type(row.content)], row.time, row.event, encode(row.content)
            self._connection.execute(f"INSERT INTO log (row, kind, time, event, content) VALUES {marks}", values)

    def touch(self) -> None:
        self._connection.pragma("user_version", SCHEMA)

    # -------------------------------------------------------------- snapshots

    def snapshot(self, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        with _plainly(self.path):
            for found in self._connection.execute(
                "SELECT row, fingerprint, content FROM snapshot WHERE fingerprint = ? AND row <= ? "
                "ORDER BY row DESC LIMIT 1",
                (fingerprint, 2**62 if upto is None else upto),
            ):
                return Snapshot(*found)
        return None

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        with _plainly(self.path), self._locked():
            connection = self._connection
            with connection:
                connection.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", tuple(snapshot))
                connection.execute(
                    "DELETE FROM snapshot WHERE row NOT IN "
                    "(SELECT max(row) FROM snapshot GROUP BY fingerprint ORDER BY max(row) DESC LIMIT ?)",
                    (SNAPSHOTS,),
                )

    def close(self) -> None:
        self._closed = True
        if self._copier is not None:
            self._copying.set()
            self._copier.join()
        for connection in self._connections:
            _close(connection)
        os.close(self._lock_file)


def _pieces(things: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """So many at a time as one statement takes: every statement lets other threads have their turn."""
    return (things[i : i + PIECE] for i in range(0, len(things), PIECE))


def _close(connection: apsw.Connection) -> None:
    with contextlib.suppress(apsw.Error):  # rows are on disk since their commit, whatever closing comes upon
        connection.close(True)


@contextlib.contextmanager
def _plainly(path: Path) -> Iterator[None]:
    """Let errors of SQLite and of the disk say which file they are about."""
    try:
        yield
    except apsw.FullError as problem:
        raise StoreError(f"The disk of {path} is full ({problem}): free some space.") from problem
    except apsw.ReadOnlyError as problem:
        raise StoreError(
            f"{path} cannot be written ({problem}): check its permissions and those of its folder."
        ) from problem
    except (apsw.CorruptError, apsw.NotADBError) as problem:
        raise StoreError(f"{path} is damaged or no log ({problem}): restore it from a copy.") from problem
    except (apsw.Error, OSError) as problem:
        raise StoreError(f"{path} cannot be used ({type(problem).__name__}: {problem}).") from problem
