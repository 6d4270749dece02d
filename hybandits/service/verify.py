"""Recompute every decision of a log and say where it comes out differently."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.service.commands import Decide, Refused
from hybandits.service.log import (
    DECISION,
    ERASING,
    RELEARNED,
    Continued,
    Decision,
    Ended,
    Erasing,
    Relearned,
    Row,
    Store,
)
from hybandits.service.model_state import ModelState, continued, fingerprint, key_at, walk
from hybandits.service.settings import HELD

TOLERANCE = 1e-9
"""Largest difference of probabilities of a decision that was made under another fingerprint."""

NUDGE, NUDGES = 1e-9, 64
"""Largest movement of features, and number of movements, that show whether a decision is a near tie."""

NUDGED_TOLERANCE = 1e-7
"""Largest difference of probabilities then: they move with the features."""

MOST_LISTED = 20
"""Differences that are kept one by one; the others are counted."""


@dataclass
class Verification:
    """The result of `verify`: `exact` decisions must be equal to the bit, `copied` ones are of the log before.
    `erased` were made by models that had learned something which was erased since, and cannot be recomputed.

    With `begins_elsewhere` the log begins with a model of another fingerprint, so nothing is compared to the bit.
    """

    decisions: int = 0
    exact: int = 0
    near_ties: int = 0
    different: int = 0
    copied: int = 0
    erased: int = 0
    begins_elsewhere: bool = False
    examples: list[str] = field(default_factory=list)


def verify(store: Store, progress: Callable[[int], None] = lambda rows: None) -> Verification:
    """Learn the log from its beginning, and make every decision again at its version."""
    result, begins, done, erased = Verification(), continued(store), 0, _erased(store)
    if begins is not None:
        assert isinstance(begins.content, Continued)
        result.begins_elsewhere = begins.content.fingerprint != fingerprint()
        result.copied = sum(1 for _ in store.rows(0, begins.number, [DECISION]))
    state = None
    for state, rows in walk(store):
        events = [_asked_by(row.decision) for row in rows]
        for row, again in zip(rows, state.decide_batch(events, rows[0].time), strict=True):
            if any(since <= row.decision.version < until for since, until in erased):
                result.decisions += 1
                result.erased += 1
            else:
                _compare(state, row, again, result)
        progress(rows[-1].number - done)
        done = rows[-1].number
    _check_end(store, state or ModelState.based(store), result)
    return result


def _erased(store: Store) -> list[tuple[int, int]]:
    """Return the versions, from one to before another, at which models had learned what was erased since."""
    open_: list[tuple[int, Erasing]] = []
    erased: list[tuple[int, int]] = []
    for row in store.rows(0, None, [ERASING, RELEARNED]):
        if isinstance(row.content, Erasing):
            open_.append((row.number, row.content))
        elif isinstance(row.content, Relearned):
            upto = row.content.upto
            erased += [(each.since, row.number) for number, each in open_ if number <= upto]
            open_ = [each for each in open_ if each[0] > upto]
    return erased


def _asked_by(logged: Decision) -> Decide:
    return Decide(logged.user, logged.candidates, logged.event, logged.key, logged.places)


def _check_end(store: Store, state: ModelState, result: Verification) -> None:
    (last,) = store.by_number([store.last()[0]])
    if isinstance(last.content, Ended) and last.content.fingerprint == fingerprint() and not result.begins_elsewhere:
        state.apply(store.rows(state.row, last.number - 1), store)
        if state.snapshot().digest != last.content.digest:
            _differs(result, last, f"the model is {state.snapshot().digest} and was {last.content.digest}")


def _compare(state: ModelState, row: Row, again: Decision | Refused, result: Verification) -> None:
    logged = row.decision
    result.decisions += 1
    if isinstance(again, Refused):
        _differs(result, row, f"it is refused now ({again.detail})")
    elif again.fingerprint == logged.fingerprint and not result.begins_elsewhere:
        result.exact += 1
        if again != logged:
            _differs(result, row, _words(logged, again))
    elif (place := _first_difference(logged, again)) is not None:
        if _is_near_tie(state, row, again, place):
            result.near_ties += 1
        else:
            _differs(result, row, f"{_words(logged, again)}, which is no near tie")


def _first_difference(logged: Decision, again: Decision) -> int | None:
    """Return the first place that is not the same, or the one after the last common one; None if all are the same."""
    most, fewest = (order(len(each.more) + 1 for each in (logged, again)) for order in (max, min))
    different = (place for place in range(1, fewest + 1) if not _is_same(logged.at(place), again.at(place)))
    return next(different, None if most == fewest else fewest)


def _is_same(logged: Decision, again: Decision) -> bool:
    return (
        _asked(logged) == _asked(again)
        and (logged.arm, logged.arm_version) == (again.arm, again.arm_version)
        and abs(logged.chance - again.chance) <= TOLERANCE
        and abs(logged.floor - again.floor) <= TOLERANCE
        and _furthest(dict(logged.distribution), dict(again.distribution)) <= TOLERANCE
        and _furthest(logged.shadows, again.shadows) <= TOLERANCE
    )


def _asked(decision: Decision) -> tuple[Any, ...]:
    """Return the parts that no rounding can change."""
    return decision.version, decision.n, decision.policy, decision.shadows.keys(), decision.features, decision.pair


def _furthest(one: dict[Any, float], other: dict[Any, float]) -> float:
    return max((abs(one.get(i, 0.0) - other.get(i, 0.0)) for i in one.keys() | other.keys()), default=0.0)


def _is_near_tie(state: ModelState, row: Row, again: Decision, at: int) -> bool:
    """Return whether a place is the logged one if features differ by up to 1e-9 of their size (at least 1)."""
    logged, held = row.decision.at(at), row.decision.policy == HELD
    again = again.at(at)
    before = [row.decision.at(place).arm for place in range(1, at)]
    pool = state.pool_of(row.decision, row.time, before)
    if _asked(logged) != _asked(again) or (logged.arm, logged.arm_version) not in zip(
        pool.ids, pool.versions, strict=True
    ):
        return False
    place = pool.ids.index(logged.arm)
    x, z = (_nudged(vectors) for vectors in state.crossed([logged.user], pool, at))
    drawn = state.draw(pool, x, z, [key_at(logged.event, at)] * NUDGES, held)
    return any(
        index == place
        and abs(logged.chance - chances[place]) <= NUDGED_TOLERANCE
        and abs(logged.floor - floor) <= NUDGED_TOLERANCE
        and _furthest(dict(logged.distribution), dict(enumerate(own))) <= NUDGED_TOLERANCE
        for index, floor, own, chances in zip(*drawn[:4], strict=True)
    ) and all(
        np.abs(logged.shadows[name] - each[:, place]).min() <= NUDGED_TOLERANCE for name, each in drawn.shadows.items()
    )


def _nudged(vectors: FloatArray) -> FloatArray:
    """Return the vectors as they are and moved a little, many times; every second time numbers that are 0 or 1 stay."""
    by = np.random.default_rng(0).uniform(-NUDGE, NUDGE, (NUDGES, *vectors.shape[1:]))
    by[::2] *= (vectors != 0) & (vectors != 1)
    by[0] = 0
    return vectors + by * np.maximum(1.0, np.abs(vectors))


def _words(logged: Decision, again: Decision) -> str:
    return ", ".join(
        f"{name} was {getattr(logged, name)!r} and is now {getattr(again, name)!r}"
        for name in Decision.__struct_fields__
        if name != "fingerprint" and getattr(logged, name) != getattr(again, name)
    )


def _differs(result: Verification, row: Row, words: str) -> None:
    result.different += 1
    if len(result.examples) < MOST_LISTED:
        result.examples.append(f"row {row.number}, event {row.event!r}: {words}")
