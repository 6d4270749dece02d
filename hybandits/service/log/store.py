"""Where the log is kept: the interface of the two stores, and opening one by its address."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeVar

from hybandits.service.log.rows import Row

ATTEMPTS = 5
"""How often a log is read anew if it is archived while it is read."""

SNAPSHOTS = 3
"""Fingerprints of which a snapshot is kept: while servers are upgraded one by one, there are two."""

T = TypeVar("T")


class StoreError(Exception):
    """The store cannot be used now. The message says why; the service answers 503 until it can be used again."""


class Disturbed(Exception):  # noqa: N818 (what has happened, not what is wrong)
    """The log was changed by an archive, or before one, so that what was read of it does not fit together."""


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

    def snapshot(self, fingerprint: str, upto: int | None = None) -> Snapshot | None:
        """The newest snapshot of a fingerprint, or the newest up to a row."""

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, in place of another of the same row. Only the newest of each fingerprint stays.

        If there are more than `SNAPSHOTS` of them, the oldest are forgotten.
        """

    def base(self) -> Snapshot | None:
        """The snapshot that stands for all rows that were archived; None if none were.

        It is all that is left of them, so `StoreError` is raised if it is not what was written.
        """

    def rebase(self, base: Snapshot, closed: int, *, after: int, removing: int, arms: Sequence[int] = ()) -> None:
        """Let a snapshot stand for closed decisions, their rewards, and what closed them; remove these rows.

        Decisions after the row `closed` stay, and so do those whose reward comes after the snapshot's row.

        Parameters
        ----------
        base : Snapshot
            The model after its row.
        closed : int
            The last decision that is closed.
        after : int
            The row of the base that this one follows on.
        removing : int
            How many rows there are to remove, those of arms included.
        arms : sequence of int
            Rows of arms to remove with them.

        Raises
        ------
        Disturbed
            If the log has another base by now, or if it is another number of rows, because a reward has come since
            they were counted. Nothing is changed then.
        """

    def tidy(self) -> str | None:
        """Wipe out what was removed, and give its room back; never raises `StoreError`.

        Returns
        -------
        str or None
            What could not be done, what that means and what to do, in words; None if everything was done.
        """

    def close(self) -> None:
        """Let go of files and connections."""


def checked_base(name: object, base: Snapshot, digest: str) -> Snapshot:
    """The base as it was read, if its content has the digest that was kept with it."""
    if base.digest != digest:
        raise StoreError(
            f"The base of {name} is damaged: its content has the SHA-256 {base.digest}, but {digest} was written. It "
            "stands for the rows that were archived, so restore the log from a copy."
        )
    return base


@contextlib.contextmanager
def same_base(reading: Reading, base: int) -> Iterator[None]:
    """Raise `Disturbed` at the end, or in place of another error, if the row of the base is no longer this one."""
    try:
        yield
    except Exception as problem:
        if reading.base_row() != base:
            raise Disturbed(ARCHIVED) from problem
        raise
    if reading.base_row() != base:
        raise Disturbed(ARCHIVED)


ARCHIVED = "The log was archived while it was read."


def undisturbed(read: Callable[[], T]) -> T:
    """What `read` returns. It is called again if it was disturbed, a few times."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return read()
        except Disturbed as problem:
            if attempt == ATTEMPTS:
                raise StoreError(f"{problem} This has happened {ATTEMPTS} times in a row: try again later.") from None
    raise AssertionError


def behind(name: object, first: int, last: int) -> str:
    """What is said when rows do not follow on the last one of a log."""
    return (
        f"{name} ends with row {last}, so that row {first} cannot come next: if the log was replaced by an earlier "
        "copy, restart all servers."
    )


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
