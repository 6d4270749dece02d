"""The end of rows: moving old ones out of the log into Parquet, with a snapshot in their place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hybandits.logs.store import LogError
from hybandits.service.export import export
from hybandits.service.fold import Fold
from hybandits.service.store import Store


class Archived(NamedTuple):
    """What was archived.

    Attributes
    ----------
    row : int
        The last row that the snapshot stands for.
    rounds : int
        Decisions that were written.
    digest : str
        SHA-256 of the snapshot.
    """

    row: int
    rounds: int
    digest: str


def archive(
    store: Store, out: Path | str, *, before: int, progress: Callable[[int], None] = lambda rows: None
) -> Archived:
    """Move the decisions and rewards before a time out of the log.

    Parameters
    ----------
    store : Store
        The log. Servers may be running.
    out : path
        The folder of Parquet tables to write, which must not exist yet.
    before : int
        Microseconds since 1970: rows of this time and later stay. Where decisions have a window, so do those that are
        still open.
    progress : callable
        Called with the number of rows read since the last call.

    Raises
    ------
    LogError
        If there is nothing to archive.
    """
    fold = Fold.restored(store, last_row(store, before))
    assert fold is not None
    closed = fold.row if fold.bandit.window is None else fold.closed
    first = store.first_decisions(0, 1)
    if fold.row <= Fold.based(store).row or not first or first[0][0] > closed:
        raise LogError("There is nothing to archive: no closed decision is as old as that.")
    log, _ = export(store, out, upto=closed, rewarded_by=fold.row, progress=progress)
    snapshot = fold.snapshot()
    store.rebase(snapshot, closed)
    return Archived(fold.row, log.rounds, hashlib.sha256(snapshot.content).hexdigest())


def last_row(store: Store, before: int) -> int:
    """The last row that is older than a time."""
    low, high = Fold.based(store).row, store.last()[0]
    while low < high:  # times never go back, so this is a search in order
        middle = (low + high + 1) // 2
        (found,) = store.by_number([middle])
        low, high = (middle, high) if found.time < before else (low, middle - 1)
    return low
