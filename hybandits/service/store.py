"""Where the log is kept: the interface of the two stores, and opening one by its address."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from hybandits.service.rows import Row


class StoreError(Exception):
    """The store cannot be used now. The message says why; the service answers 503 until it can be used again."""


class Found(NamedTuple):
    """What the log holds about an event."""

    decision: Row | None = None
    reward: Row | None = None


class Snapshot(NamedTuple):
    """The model after a row, as bytes. It is a cache: it can be folded again from the log."""

    row: int
    fingerprint: str
    content: bytes


class Reading(Protocol):
    """What can be read of a log, in or out of a transaction."""

    def rows(self, after: int, upto: int | None = None, kinds: Sequence[int] | None = None) -> Iterator[Row]:
        """The rows after..upto, in order; only some kinds if they are given."""

    def find(self, events: Sequence[str]) -> dict[str, Found]:
        """Decisions and rewards of events; those that have neither are left out."""

    def by_number(self, numbers: Sequence[int]) -> list[Row]:
        """The rows with these numbers, in this order."""

    def outcomes(self, after: int, upto: int) -> Iterator[tuple[Row, Row | None]]:
        """The decisions among the rows after..upto, each with its reward, which may be late; None if none has come."""

    def first_decisions(self, after: int, most: int) -> list[tuple[int, int]]:
        """Number and time of the first decisions after a row, at most so many."""

    def last(self) -> tuple[int, int]:
        """Number and time of the last row; (0, 0) if there is none."""

    def base_row(self) -> int:
        """The row of the snapshot that stands for all rows that were archived; 0 if none were."""


class Transaction(Reading, Protocol):
    """A look at the log that nobody else writes to meanwhile."""

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, whose numbers follow on the last. Others are refused."""

    def touch(self) -> None:
        """Write something that changes nothing, so that the commit shows whether the disk takes it."""


class Store(Reading, Protocol):
    """A log on disk. All methods raise `StoreError` where the disk or the database fails."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is the only one to write. When it ends without an error, its rows are on disk."""

    def snapshot(self, upto: int | None = None) -> Snapshot | None:
        """The newest snapshot, or the newest up to a row."""

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and forget older ones."""

    def base(self) -> Snapshot | None:
        """The snapshot that stands for all rows that were archived; None if none were."""

    def rebase(self, base: Snapshot, closed: int) -> None:
        """Let a snapshot stand for closed decisions, their rewards, and what closed them; remove these rows.

        Decisions after the row `closed` stay, and so do those whose reward comes after the snapshot's row.
        """

    def close(self) -> None:
        """Let go of files and connections."""


def behind(name: object, first: int, last: int) -> str:
    """What is said when rows do not follow on the last one of a log."""
    return (
        f"{name} ends with row {last}, so that row {first} cannot come next: if the log was replaced by an earlier "
        "copy, restart all servers."
    )


def open_store(address: str) -> Store:
    """Open the store with this address: a path for SQLite, or postgresql://.. for PostgreSQL."""
    if address.startswith(("postgresql://", "postgres://")):
        from hybandits.service.postgres import PostgresStore

        return PostgresStore(address)
    scheme, separator, _ = address.partition("://")
    if separator:  # the rest may hold a password, so it is not repeated
        raise ValueError(
            f"the store begins with {scheme}://, which is not known: give the path of a SQLite file, or "
            "postgresql://USER@HOST/DATABASE"
        )
    from hybandits.service.sqlite import SqliteStore

    return SqliteStore(address)
