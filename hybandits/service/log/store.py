"""Where the log is kept: the interface of the two stores, and opening one by its address."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from hybandits.service.log.rows import Row

SNAPSHOTS = 3
"""Fingerprints of which a snapshot is kept: while servers are upgraded one by one, there are two."""


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

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.content).hexdigest()


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


class Transaction(Reading, Protocol):
    """A look at the log that nobody else writes to meanwhile."""

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows, whose numbers follow on the last. Others are refused."""

    def begin(self, rows: Sequence[Row]) -> None:
        """Add the first rows of a log, whose numbers are in order. A log that has rows is refused."""

    def touch(self) -> None:
        """Write something that changes nothing, so that the commit shows whether the disk takes it."""


class Store(Reading, Protocol):
    """A log on disk. All methods raise `StoreError` where the disk or the database fails.

    Attributes
    ----------
    name : str
        The name of the log in messages, without user and password.
    """

    @property
    def name(self) -> str: ...

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is the only one to write. When it ends without an error, its rows are on disk."""

    def snapshot(self, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """The newest snapshot of a fingerprint, or the newest up to a row."""

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, in place of another of the same row. Only the newest of each fingerprint stays.

        If there are more than `SNAPSHOTS` of them, the oldest are forgotten.
        """

    def close(self) -> None:
        """Let go of files and connections."""


def behind(name: object, first: int, last: int) -> str:
    """What is said when rows do not follow on the last one of a log."""
    return (
        f"{name} ends with row {last}, so that row {first} cannot come next: if the log was replaced by an earlier "
        "copy, restart all servers."
    )


def not_empty(name: object) -> str:
    """The message where a log begins that has rows already."""
    return f"The log {name} has rows already: give the name of a log that is not there yet."


def empty(name: object) -> str:
    """What is said when a log has no rows, and some are needed."""
    return f"The log {name} is empty: start it with hybandits serve bandit.toml."


def open_store(address: str, *, create: bool = True) -> Store:
    """Open the store with this address: a path for SQLite, or postgresql://.. for PostgreSQL.

    With `create`, a log begins if there is none. Otherwise nothing is written where there is no log that has begun.
    """
    if address.startswith(("postgresql://", "postgres://")):
        from hybandits.service.log.postgres import PostgresStore

        return PostgresStore(address, create=create)
    scheme, separator, _ = address.partition("://")
    if separator:  # the rest may hold a password, so it is not repeated
        raise ValueError(
            f"the store begins with {scheme}://, which is not known: give the path of a SQLite file, or "
            "postgresql://USER@HOST/DATABASE"
        )
    from hybandits.service.log.sqlite import SqliteStore

    return SqliteStore(address, create=create)
