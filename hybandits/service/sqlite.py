"""The log in a SQLite file, for one machine: several servers of it may share the file."""

import contextlib
import fcntl
import itertools
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

from hybandits.service.log import SCHEMA, START, TABLES, Result, Store, StoreError, Values

CHECKPOINT_PAGES = 1_000
"""So many further pages of the WAL are copied into the file at a time."""

LONG_WAL = 8
"""A WAL of so many times these pages is reset, for which writers wait."""

BUSY = 10_000
"""Milliseconds for which SQLite waits where another process uses the file."""

NAMES = {"version", "log", "snapshot"}
"""The tables that every log has."""


class SqliteStore(Store):
    """A log in a SQLite file.

    Rows are on disk when a transaction ends (WAL, synchronous FULL). Writers wait for each other at a lock file, which
    wakes them at once, where SQLite would poll. `vfs` is SQLite's layer below, for tests.
    """

    piece = 64  # every statement lets other threads run

    def __init__(self, path: Path | str, *, create: bool = True, vfs: str | None = None) -> None:
        super().__init__()
        self.path, self.name = Path(path), str(path)
        self._vfs = vfs
        self._mutex = threading.Lock()
        self._copier: threading.Thread | None = None
        self._copying = threading.Event()
        self._pages = 0  # of the WAL, when it was last copied
        self._closed = False
        with self._errors():
            self._refuse_others(create)
            self._lock_file = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if create:
                with self._turn():
                    tables = TABLES.format(integer="INTEGER", blob="BLOB", table=" STRICT", schema=SCHEMA)
                    self._fetch(f"BEGIN IMMEDIATE; {tables} COMMIT")
            self._check_version(create)
            self._file = os.stat(self.path)
        except BaseException:
            self.close()
            raise

    def _refuse_others(self, create: bool) -> None:
        """Raise if the file is no log, and leave it as it is, which `_connect` would not."""
        if not self.path.exists():
            if create:
                return
            raise StoreError(f"There is no log {self.path}: {START}")
        connection = apsw.Connection(str(self.path), apsw.SQLITE_OPEN_READWRITE, self._vfs)
        try:
            connection.set_busy_timeout(BUSY)
            with connection:  # the tables may be made meanwhile
                query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite#_%' ESCAPE '#'"
                tables = {name for (name,) in connection.execute(query)}
                has_rows = tables >= NAMES and connection.execute("SELECT EXISTS (SELECT 1 FROM log)").get
        finally:
            _close(connection)
        if tables and not tables >= NAMES:
            wrong = f"{self.path} belongs to another program: it has the table {min(tables)!r}"
            raise StoreError(f"{wrong}. Give the path of a log or of a new file.")
        if not create and not has_rows:
            raise StoreError(f"The log {self.name} is empty: {START}")

    def _connect(self) -> apsw.Connection:
        with self._errors():
            connection = apsw.Connection(str(self.path), vfs=self._vfs)
            try:
                connection.set_busy_timeout(BUSY)
                connection.pragma("journal_mode", "wal")
                connection.pragma("synchronous", "full")
                connection.pragma("secure_delete", True)  # what is erased is overwritten
                connection.set_wal_hook(self._committed)
            except BaseException:
                _close(connection)
                raise
            return connection

    def _is_lost(self, connection: apsw.Connection) -> bool:
        return connection not in self._connections

    def _ask(self, connection: apsw.Connection, query: str, values: Values = ()) -> Result:
        with self._errors():
            return connection.execute(query, values).fetchall()

    def _among(self, values: Values) -> tuple[str, Values]:
        return f"IN ({', '.join('?' * len(values))})", values

    def _source(self, rows: Sequence[Values]) -> tuple[str, Values]:
        return f"(VALUES {', '.join(['(?, ?, ?, ?, ?)'] * len(rows))})", [*itertools.chain(*rows)]

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        with self._mutex:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    def _begin(self, connection: apsw.Connection) -> None:
        with self._errors():
            if not os.path.samestat(os.stat(self.path), self._file):  # SQLite would go on with the file that was there
                raise StoreError(f"{self.path} was replaced by another file: restart all servers.")
        self._ask(connection, "BEGIN IMMEDIATE")

    def _abandon(self, connection: apsw.Connection) -> None:
        """Roll back, and close the connection if the disk does not even allow that."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except apsw.Error:
            self._connections.remove(connection)
            _close(connection)

    def _committed(self, connection: apsw.Connection, database: str, pages: int) -> int:
        """Have another thread copy the WAL into the file when it has grown, so that no transaction waits for that."""
        if pages < self._pages:  # it was reset
            self._pages = 0
        if pages >= self._pages + CHECKPOINT_PAGES:
            if self._copier is None or not self._copier.is_alive():  # it ends if the disk fails as it connects
                self._copier = threading.Thread(target=self._copy, name="hybandits checkpoints", daemon=True)
                self._copier.start()
            self._pages = pages
            self._copying.set()
        return apsw.SQLITE_OK

    def _copy(self) -> None:
        connection = self._connect()
        self._connections.append(connection)
        connection.set_busy_timeout(0)  # writers do not wait until somebody has read to the end
        while self._copying.wait() and not self._closed:
            self._copying.clear()
            with contextlib.suppress(apsw.Error, OSError):  # a later transaction tries again
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
                if self._pages >= LONG_WAL * CHECKPOINT_PAGES:
                    # Copying holds nobody up, but a WAL that is written to all the time never becomes empty that way.
                    with self._turn():
                        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)

    def free(self) -> int | None:
        try:
            return shutil.disk_usage(self.path.parent).free
        except OSError:
            return None

    def close(self) -> None:
        self._closed = True
        if self._copier is not None:
            self._copying.set()
            self._copier.join()
        for connection in self._connections:
            _close(connection)
        os.close(self._lock_file)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.FullError as problem:
            raise StoreError(f"The disk of {self.path} is full ({problem}): free some space.") from problem
        except apsw.ReadOnlyError as problem:
            raise StoreError(f"{self.path} cannot be written ({problem}): check its permissions.") from problem
        except (apsw.CorruptError, apsw.NotADBError) as problem:
            raise StoreError(f"{self.path} is damaged or no log ({problem}): restore it from a copy.") from problem
        except (apsw.CantOpenError, OSError) as problem:
            raise StoreError(f"{self.path} cannot be used ({problem}): check path and permissions.") from problem
        except apsw.Error as problem:
            raise StoreError(f"{self.path} cannot be used ({type(problem).__name__}: {problem}).") from problem


def _close(connection: apsw.Connection) -> None:
    with contextlib.suppress(apsw.Error):  # rows are on disk since their commit, whatever closing comes upon
        connection.close(True)
