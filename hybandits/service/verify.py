"""Recompute every decision of a log and say where it comes out differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hybandits.service.fold import Event, Fold, walk
from hybandits.service.problems import Refused
from hybandits.service.rows import Decision, Row
from hybandits.service.store import Store

TOLERANCE = 1e-9
"""How far chances may differ where decisions were made under another fingerprint."""

MOST_LISTED = 20
"""Differences that are kept one by one; the others are counted."""


@dataclass
class Verification:
    """What came out.

    Attributes
    ----------
    decisions : int
        Decisions recomputed.
    exact : int
        Those that were made under this machine's fingerprint, and so must be equal to the bit.
    near_ties : int
        Those made elsewhere whose arm differs because its draw fell within rounding of a limit.
    different : int
        All others that differ.
    examples : list of str
        The first of them in words.
    """

    decisions: int = 0
    exact: int = 0
    near_ties: int = 0
    different: int = 0
    examples: list[str] = field(default_factory=list)


def verify(store: Store, progress: Callable[[int], None] = lambda row: None) -> Verification:
    """Fold the log from its beginning, or where it was archived, and make every decision again at its version.

    Parameters
    ----------
    store : Store
        The log.
    progress : callable
        Called with the number of the row that has been reached, again and again.
    """
    result = Verification()
    for fold, rows in walk(store):
        events = [Event(made.event, made.user, made.candidates) for made in map(_decision, rows)]
        for row, again in zip(rows, fold.decide_many(events), strict=True):
            _compare(fold, row, again, result)
        progress(rows[-1].number)
    return result


def _decision(row: Row) -> Decision:
    assert isinstance(row.content, Decision)
    return row.content


def _compare(fold: Fold, row: Row, again: Decision | Refused, result: Verification) -> None:
    made = _decision(row)
    result.decisions += 1
    if isinstance(again, Refused):
        _differs(result, row, f"it is refused now ({again.detail})")
    elif again.fingerprint == made.fingerprint:
        result.exact += 1
        if again != made:
            _differs(result, row, f"made {_words(made)}, recomputed {_words(again)}")
    elif not _close(made, again):
        _differs(result, row, f"made {_words(made)}, recomputed {_words(again)}, under another fingerprint")
    elif again.arm != made.arm:
        if _is_near_tie(fold, made, again):
            result.near_ties += 1
        else:
            _differs(result, row, f"made {_words(made)}, recomputed {_words(again)}, which is no near tie")


def _close(made: Decision, again: Decision) -> bool:
    """Whether two decisions rest on the same chances, up to rounding."""
    lots = dict(made.lot), dict(again.lot)
    places = set(lots[0]) | set(lots[1])
    if any(abs(lots[0].get(i, 0.0) - lots[1].get(i, 0.0)) > TOLERANCE for i in places):
        return False
    return again.arm != made.arm or abs(again.chance - made.chance) <= TOLERANCE


def _is_near_tie(fold: Fold, made: Decision, again: Decision) -> bool:
    """Whether another arm was drawn from the same chances because the draw fell on the limit between two neighbours."""
    ids = fold.pool(made.candidates).ids
    if made.arm not in ids or abs(ids.index(made.arm) - ids.index(again.arm)) != 1:
        return False
    own = dict(again.lot).get(ids.index(made.arm), 0.0)
    return abs((1 - again.floor) * own + again.floor / again.n - made.chance) <= TOLERANCE


def _words(decision: Decision) -> str:
    return f"{decision.arm!r} with chance {decision.chance!r} at version {decision.version}"


def _differs(result: Verification, row: Row, words: str) -> None:
    result.different += 1
    if len(result.examples) < MOST_LISTED:
        result.examples.append(f"row {row.number}, event {row.event!r}: {words}")
