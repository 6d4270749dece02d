"""The log in a SQLite file: files, faults and the WAL."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from hybandits.service import log as store_module
from hybandits.service import sqlite
from hybandits.service.log import StoreError
from hybandits.service.sqlite import SqliteStore
from tests.support.disks import Disk
from tests.support.log_rows import append, decision


def test_commits_are_synced(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.db")
    connection = apsw.Connection(str(tmp_path / "log.db"))
    assert connection.pragma("journal_mode") == "wal"
    connection.close()
    disk = Disk()
    store.close()
    store = SqliteStore(tmp_path / "log.db", vfs=disk.name)
    append(store, decision(1, "a"))
    assert all(not image.pending for image in disk.images.values())
    store.close()
    disk.unregister()


def test_a_log_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    SqliteStore(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE version SET schema = 99")
    connection.close()
    with pytest.raises(StoreError, match="has schema 99"):
        SqliteStore(path)


def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    path.write_bytes(b"no database at all " * 100)
    with pytest.raises(StoreError, match="is damaged or no log"):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"no database")


def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE log (line TEXT); CREATE TABLE users (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"other\.db belongs to another program: it has the table 'log'. Give"):
        SqliteStore(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_tables_are_made_at_once_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with some of them would be refused as that of another program."""
    path = tmp_path / "log.db"
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "TABLES", sqlite.TABLES + "CREATE TABLE log (row INTEGER)")
        with pytest.raises(StoreError, match="table log already exists"):
            SqliteStore(path)
    store = SqliteStore(path)
    append(store, decision(1, "a"))
    store.close()


def test_a_file_that_was_replaced_or_removed_is_not_written(tmp_path: Path) -> None:
    path, copy = tmp_path / "log.db", tmp_path / "copy.db"
    store = SqliteStore(path)
    append(store, decision(1, "a"))
    SqliteStore(copy).close()
    copy.replace(path)
    with pytest.raises(StoreError, match="was replaced by another file: restart all servers"):
        append(store, decision(2, "b"))
    path.unlink()
    with pytest.raises(StoreError, match=r"cannot be used \(.*No such file or directory"):
        append(store, decision(2, "b"))
    store.close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be used .*: check path and permissions"):
        SqliteStore(tmp_path / "nowhere" / "log.db")


@pytest.mark.slow
def test_the_wal_stays_short_under_steady_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 20)
    store = SqliteStore(tmp_path / "log.db")
    longest = 0
    for number in range(1, 401):
        append(store, decision(number, f"event {number}"))
        longest = max(longest, (tmp_path / "log.db-wal").stat().st_size // 4096)
    assert longest < 20 * sqlite.LONG_WAL * 3, "some pages more, until the thread has its turn"
    assert store.last()[0] == 400
    store.close()
    assert len(list(SqliteStore(tmp_path / "log.db").rows(0))) == 400


@pytest.mark.slow
def test_a_long_reader_does_not_keep_writers_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 5)
    monkeypatch.setattr(store_module, "PAGE", 10)
    monkeypatch.setattr(sqlite, "BUSY", 3_600_000)  # whoever waits for the reader does not come back
    store, reader, other = (SqliteStore(tmp_path / "log.db") for _ in range(3))
    for number in range(1, 51):
        append(store, decision(number, f"event {number}"))
    rows = reader.rows(0)
    seen = [next(rows).number]
    open_ = other._connect().execute("SELECT row FROM log")  # somebody who reads very slowly
    next(open_)

    def write() -> None:
        for number in range(51, 301):
            append(store, decision(number, f"event {number}"))

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive()
    assert seen + [row.number for row in rows] == list(range(1, 301))
    open_.close()
    for each in (store, reader, other):
        each.close()
