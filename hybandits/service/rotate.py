"""Rotation: a log ends, and a new one begins with a snapshot of its model and the decisions that are still open."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from hybandits.service import log
from hybandits.service.model_state import ModelState, continued

TOGETHER = 1_000
"""Rows that are read together."""


class Rotated(NamedTuple):
    """The row with which the new log continues the old one, the decisions copied, and the SHA-256 of its model."""

    row: int
    copied: int
    digest: str


def rotate(old: log.Store, new: log.Store, *, since: int) -> Rotated:
    """End a log and let a new one, which has no rows, continue it; if it is interrupted, call it again.

    Decisions of the time `since` (microseconds since 1970) or later, and those that are open, are copied.
    """
    if new.last()[0]:
        raise log.StoreError(f"The log {new.name} has rows already: give the name of a log that is not there yet.")
    state, ended = _end(old, new)
    snapshot = state.snapshot()
    if snapshot.digest != ended.digest:
        wrong = f"ended with a model of the fingerprint {ended.fingerprint}, and here it is {snapshot.fingerprint}"
        raise log.StoreError(f"The log {old.name} {wrong}: rotate it where it ended.")
    rows = list(_copied(old, state, since))
    number = state.row + 2
    begins = log.Continued(old.name, snapshot.fingerprint, snapshot.digest, snapshot.content)
    with new.writing() as transaction:
        transaction.append([*rows, log.Row(number, state.time, begins)], last=0)  # numbers have gaps
    return Rotated(number, sum(isinstance(row.content, log.Decision) for row in rows), snapshot.digest)


def _end(old: log.Store, new: log.Store) -> tuple[ModelState, log.Ended]:
    state = ModelState.restored(old)
    with old.writing() as transaction:
        state.apply(transaction.rows(state.row), transaction)
        if state.pending:
            wrong = f"The log {old.name} has corrections or erasures that have not been learned"
            raise log.StoreError(f"{wrong}: start a server with it until its page does not say so any more.")
        if state.ended is None:
            snapshot = state.snapshot()
            ended = log.Ended(new.name, snapshot.fingerprint, snapshot.digest)
            transaction.append([log.Row(state.row + 1, state.time, ended)])
            return state, ended
    if state.ended != new.name:
        raise log.StoreError(f"The log {old.name} was rotated before and goes on in {state.ended}.")
    (last,) = old.by_number([state.row])
    assert isinstance(last.content, log.Ended)
    return ModelState.restored(old, state.row - 1), last.content


def _copied(old: log.Store, state: ModelState, since: int) -> Iterator[log.Row]:
    """Yield the rows that the new log needs; of an arm's rows before the decisions the first and the last."""
    closed = state.row if state.bandit.window is None else state.closed
    decisions = [row for row in old.rows(0, state.row, [log.DECISION]) if row.number > closed or row.time >= since]
    meant = min((row.decision.version for row in decisions), default=state.row)
    rows: list[log.Row] = []
    first: dict[str, log.Row] = {}
    last: dict[str, log.Row] = {}
    for row in old.rows(0, state.row, log.FEW):
        if isinstance(row.content, log.Arm | log.Retired) and row.number <= meant:
            first.setdefault(row.content.arm, row)
            last[row.content.arm] = row
        else:
            rows.append(row)
    rows += {row.number: row for row in (*first.values(), *last.values())}.values()
    for start in range(0, len(decisions), TOGETHER):
        events = [key for row in decisions[start : start + TOGETHER] for key in log.keys_of(row.decision)]
        rows += [event.reward for event in old.find(events).values() if event.reward is not None]
    yield from sorted([*rows, *decisions], key=lambda row: row.number)


def contradiction(new: log.Store, old: log.Store) -> str | None:
    """Return in words why a log does not begin where another one ended; None if it does."""
    begins = continued(new)
    if begins is None:
        return f"{new.name} continues no other log"
    (last,) = old.by_number([old.last()[0]])
    first, end = begins.content, last.content
    assert isinstance(first, log.Continued)
    if not isinstance(end, log.Ended):
        return f"{old.name} has not ended"
    if (begins.number, first.digest) != (last.number + 1, end.digest):
        return (
            f"{new.name} begins at row {begins.number:,} with the model {first.digest}, but {old.name} ended at row "
            f"{last.number:,} with {end.digest}"
        )
    rows = new.rows(0, begins.number - 1)
    while chunk := list(itertools.islice(rows, TOGETHER)):
        for row, original in zip(chunk, old.by_number([row.number for row in chunk]), strict=True):
            if row != original:
                return f"row {row.number:,} of {new.name} is not that of {old.name}"
    return None
