"""The end of rows: moving old ones out of the log into Parquet, with a snapshot in their place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hybandits.foundation.files import discard, naming, sync_folder
from hybandits.logs.problems import Problems
from hybandits.logs.store import LogError, convert
from hybandits.service.admin.export import ServiceReader
from hybandits.service.log.rows import (
    ARMS,
    CLOSE,
    DECISION,
    KINDS,
    REWARD,
    Arm,
    Closed,
    Decision,
    Retired,
    Reward,
    Row,
    encode,
)
from hybandits.service.log.store import Disturbed, Snapshot, Store, StoreError, same_base, undisturbed
from hybandits.service.model_state import ModelState

ROWS = "rows.parquet"
"""The file of an archived folder that has the rows as they were."""

TOGETHER = 5_000
"""Rows that are read and written together."""

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False), pa.field("time", pa.int64(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False), pa.field("event", pa.string()),
        pa.field("content", pa.string(), nullable=False),
    ]
)  # fmt: skip

NOTHING = "There is nothing to archive: no closed decision is as old as that."


class Archived(NamedTuple):
    """What was archived.

    Attributes
    ----------
    row : int
        The last row that the snapshot stands for.
    decisions, rewarded : int
        Decisions that were moved, and how many of them had a reward.
    rounds : int
        Decisions that can be read as rounds of a log: those with a reward, or all where there is a window.
    digest : str
        SHA-256 of the snapshot.
    warning : str or None
        What could not be tidied up in the log, in words.
    """

    row: int
    decisions: int
    rewarded: int
    rounds: int
    digest: str
    warning: str | None = None


def archive(
    store: Store,
    out: Path | str,
    *,
    before: int,
    progress: Callable[[int], None] = lambda rows: None,
    moved: Callable[[Archived], object] = lambda archived: None,
) -> Archived:
    """Move the decisions and rewards before a time out of the log.

    Parameters
    ----------
    store : Store
        The log. Servers may be running.
    out : path
        The folder to write, which must not exist yet: a log of this project, and `ROWS` with all rows that are removed.
    before : int
        Microseconds since 1970: rows of this time and later stay. Where decisions have a window, so do those that are
        still open.
    progress : callable
        Called with the number of rows read since the last call.
    moved : callable
        Called when the rows are no longer in the log, before it is tidied up, which can take a while.

    Raises
    ------
    LogError
        If there is nothing to archive, or the folder exists.
    StoreError
        If the log cannot be used. The message says so if it is not known whether rows were removed.

    Notes
    -----
    The folder is complete and on disk before a row is removed. All rows are removed in one transaction, and only if
    they are exactly those of the folder: if a reward has come for one of them since, or if somebody else has archived
    the log, everything begins anew. If this is broken off before that transaction, the log is as it was, and the
    folder, if there is one, holds copies.
    """
    return undisturbed(lambda: _archive(store, Path(out), before, progress, moved))


def _archive(
    store: Store, out: Path, before: int, progress: Callable[[int], None], moved: Callable[[Archived], object]
) -> Archived:
    base, log = store.base_row(), None
    try:
        with same_base(store, base):
            fold = ModelState.restored(store, _last_row(store, base, before))
            if fold is None or fold.row <= base:
                raise LogError(NOTHING)
            windowed = fold.bandit.window is not None
            removal = _Removal(store, out, fold.row, closed=fold.closed if windowed else fold.row)
            reader = ServiceReader(store, fold, removal.closed, fold.row)
            log = convert(
                reader, out, Problems(), progress, lambda folder: removal.write(folder / ROWS, windowed=windowed)
            )
        sync_folder(out)
        snapshot = fold.snapshot()
        _rebase(store, snapshot, removal, base, out)
    except Disturbed:
        if log is not None:  # then the folder is ours, and the log still has all of its rows
            discard(out)
        raise
    archived = Archived(fold.row, removal.decisions, removal.rewards, log.rounds, snapshot.digest)
    moved(archived)
    return archived._replace(warning=store.tidy())


def _last_row(store: Store, base: int, before: int) -> int:
    """The last row that is older than a time, or the base."""
    low, high = base, store.last()[0]
    while low < high:  # times never go back, so this is a search in order
        middle = (low + high + 1) // 2
        (found,) = store.by_number([middle])
        low, high = (middle, high) if found.time < before else (low, middle - 1)
    return low


@dataclass
class _Removal:
    """The rows that a snapshot at a row will stand for, written to a file and counted.

    They are the decisions up to `closed`, without those whose reward comes after the snapshot, with their rewards,
    and the rows that closed them. With them go rows of arms that no decision which stays can mean: `meant` is the
    lowest version that such a decision names.
    """

    store: Store
    out: Path
    row: int
    closed: int
    decisions: int = 0
    rewards: int = 0
    closings: int = 0
    arms: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.meant = self.row

    @property
    def count(self) -> int:
        return self.decisions + self.rewards + self.closings + len(self.arms)

    def write(self, path: Path, *, windowed: bool) -> None:
        """Write the rows; LogError if there are no decisions, or none that a log could have."""
        with naming(self.out), pq.ParquetWriter(path, SCHEMA, compression="zstd", write_page_checksum=True) as file:
            rows = itertools.chain(self._rows(), self._rows_of_arms())
            while some := list(itertools.islice(rows, TOGETHER)):
                file.write_table(_table(some))
        if not self.decisions:
            raise LogError(NOTHING)
        if not windowed and not self.rewards:
            raise LogError(
                f"None of the {self.decisions:,} decisions that are as old as that has a reward, so that they make no "
                "log: archive later ones with them."
            )

    def _rows(self) -> Iterator[Row]:
        rows = self.store.rows(0, self.row, [DECISION, REWARD, CLOSE])
        while some := list(itertools.islice(rows, TOGETHER)):
            decided = [row.content.event for row in some if isinstance(row.content, Decision)]
            found = self.store.find(decided) if decided else {}
            for row in some:
                content = row.content
                if isinstance(content, Decision):
                    reward = found[content.event].reward
                    if row.number > self.closed or (reward is not None and reward.number > self.row):
                        self.meant = min(self.meant, content.version)
                        continue
                    self.decisions += 1
                elif isinstance(content, Reward):
                    if content.decision > self.closed:
                        continue
                    self.rewards += 1
                else:
                    assert isinstance(content, Closed)
                    self.closings += 1
                yield row

    def _rows_of_arms(self) -> Iterator[Row]:
        """What was said of each arm up to the row `meant`, but for the last, and the first: it says in which order."""
        last: dict[str, Row | None] = {}
        for row in self.store.rows(0, self.meant, ARMS):
            assert isinstance(row.content, Arm | Retired)
            arm = row.content.arm
            if (before := last.get(arm)) is not None:
                self.arms.append(before.number)
                yield before
            last[arm] = row if arm in last else None


def _table(rows: list[Row]) -> pa.Table:
    columns = [
        [row.number for row in rows], [row.time for row in rows], [KINDS[type(row.content)] for row in rows],
        [row.event for row in rows], [encode(row.content).decode() for row in rows],
    ]  # fmt: skip
    return pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _rebase(store: Store, snapshot: Snapshot, removal: _Removal, base: int, out: Path) -> None:
    """Remove the rows from the log. The folder goes only if it is certain that they stay there."""
    try:
        store.rebase(snapshot, removal.closed, after=base, removing=removal.count, arms=removal.arms)
    except StoreError as problem:  # a connection can be lost during the commit
        try:
            with store.writing() as transaction:
                now = transaction.base_row()
        except StoreError:
            now = None
        if now == snapshot.row:
            return
        if now == base:
            discard(out)
            raise
        raise StoreError(
            f"{problem} It is not known whether the rows were removed from the log, so keep {out}. If they were, the "
            f"log begins at row {snapshot.row + 1:,} or later, and archiving again finds nothing that old. Otherwise "
            "remove the folder and archive again."
        ) from problem
