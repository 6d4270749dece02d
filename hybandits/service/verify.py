"""Recompute every decision of a log and say where it comes out differently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.service.commands import Decide, Refused
from hybandits.service.fingerprint import fingerprint
from hybandits.service.log import DECISION, Continued, Decision, Ended, Row, Store
from hybandits.service.model_state import ModelState, continued, walk

TOLERANCE = 1e-9
"""How far chances may differ where decisions were made under another fingerprint."""

NUDGE, NUDGES = 1e-9, 64
"""How far features are moved, and how often, to see whether a decision is a near tie."""

NUDGED_TOLERANCE = 1e-7
"""How far chances may differ then: moving features also moves chances that do not jump."""

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
        Those that must be equal to the bit: they were made under this machine's fingerprint, and so was the model that
        the log begins with, if it continues another one.
    near_ties : int
        Those made elsewhere that come out differently, but would not if features differed by 1e-9; see `_is_near_tie`.
    different : int
        All others that differ.
    copied : int
        Decisions that were copied from the log before, where they can be recomputed.
    begins_elsewhere : bool
        The log begins with a model of another fingerprint, so that nothing can be compared to the bit.
    examples : list of str
        The first differences in words.
    """

    decisions: int = 0
    exact: int = 0
    near_ties: int = 0
    different: int = 0
    copied: int = 0
    begins_elsewhere: bool = False
    examples: list[str] = field(default_factory=list)


def verify(store: Store, progress: Callable[[int], None] = lambda row: None) -> Verification:
    """Learn the log from its beginning, and make every decision again at its version.

    Parameters
    ----------
    store : Store
        The log.
    progress : callable
        Called with the number of the row that has been reached, again and again.
    """
    result, begins = Verification(), continued(store)
    if begins is not None:
        assert isinstance(begins.content, Continued)
        result.begins_elsewhere = begins.content.fingerprint != fingerprint()
        result.copied = sum(1 for _ in store.rows(0, begins.number, [DECISION]))
    for state, rows in walk(store):
        events = [Decide(made.user, made.candidates, made.event) for made in map(_decision, rows)]
        for row, again in zip(rows, state.decide_batch(events), strict=True):
            _compare(state, row, again, result)
        progress(rows[-1].number)
    _check_end(store, result)
    return result


def _check_end(store: Store, result: Verification) -> None:
    """Compare the model with the one that the new log begins with, if the log was rotated."""
    (last,) = store.by_number([store.last()[0]])
    if isinstance(last.content, Ended) and last.content.fingerprint == fingerprint() and not result.begins_elsewhere:
        state = ModelState.based(store)
        state.apply(store.rows(state.row, last.number - 1), store)
        if state.snapshot().digest != last.content.digest:
            _differs(result, last, f"the model is {state.snapshot().digest} and was {last.content.digest}")


def _decision(row: Row) -> Decision:
    assert isinstance(row.content, Decision)
    return row.content


def _compare(state: ModelState, row: Row, again: Decision | Refused, result: Verification) -> None:
    made = _decision(row)
    result.decisions += 1
    if isinstance(again, Refused):
        _differs(result, row, f"it is refused now ({again.detail})")
    elif again.fingerprint == made.fingerprint and not result.begins_elsewhere:
        result.exact += 1
        if again != made:
            _differs(result, row, _words(made, again))
    elif not _is_same(made, again):
        if _is_near_tie(state, made, again):
            result.near_ties += 1
        else:
            _differs(result, row, f"{_words(made, again)}, which is no near tie")


def _is_same(made: Decision, again: Decision) -> bool:
    """Whether two decisions are the same up to rounding."""
    return (
        _asked(made) == _asked(again)
        and (made.arm, made.arm_version) == (again.arm, again.arm_version)
        and abs(made.chance - again.chance) <= TOLERANCE
        and _furthest(dict(made.lot), dict(again.lot)) <= TOLERANCE
        and _furthest(made.shadows, again.shadows) <= TOLERANCE
    )


def _asked(decision: Decision) -> tuple[Any, ...]:
    """What no rounding can change."""
    return decision.version, decision.n, decision.floor, decision.policy, decision.shadows.keys()


def _furthest(one: dict[Any, float], other: dict[Any, float]) -> float:
    """How far the chances of two lots are apart at most."""
    return max((abs(one.get(i, 0.0) - other.get(i, 0.0)) for i in one.keys() | other.keys()), default=0.0)


def _is_near_tie(state: ModelState, made: Decision, again: Decision) -> bool:
    """Whether the decision as it was made is what this model decides for features that hardly differ.

    Rounding can make a decision jump, and only the policy knows how far it was from a jump. So all vectors are moved by
    up to 1e-9 of their size (of 1, if they are smaller), many times, with the same draws. The decision is a near tie if
    the same arm with the same chances comes out once, and for each challenger once the same chance of that arm, because
    each may be at a tie of its own. A decision that was changed later passes only if it lies within 1e-9 of a jump.

    Every second time, numbers that are 0 or 1 stay: for a policy that learns its settings, a feature that has never
    changed, such as a constant, becomes another one as soon as it does.
    """
    if _asked(made) != _asked(again):
        return False
    pool = state.pool(made.candidates)
    if made.arm not in pool.ids or made.arm_version != state.arms[made.arm].version:
        return False
    place = pool.ids.index(made.arm)
    x, z = (_nudged(vectors) for vectors in state.features.crossed([made.user], pool.vectors))
    draws = {
        name: policy.randomize_batch(x, z, pool.ids, keys=[made.event] * NUDGES, floor=made.floor)
        for name, policy in state.policies.items()
    }
    drawn = draws.pop(state.live)
    return any(
        index == place
        and abs(made.chance - chances[place]) <= NUDGED_TOLERANCE
        and _furthest(dict(made.lot), dict(enumerate(own))) <= NUDGED_TOLERANCE
        for index, chances, own in zip(*drawn, strict=True)
    ) and all(
        np.abs(made.shadows[name] - each.probabilities[:, place]).min() <= NUDGED_TOLERANCE
        for name, each in draws.items()
    )


def _nudged(vectors: FloatArray) -> FloatArray:
    """The vectors of one decision's candidates, so many times: as they are, and then each time moved a little."""
    by = np.random.default_rng(0).uniform(-NUDGE, NUDGE, (NUDGES, *vectors.shape[1:]))
    by[::2] *= (vectors != 0) & (vectors != 1)
    by[0] = 0
    return vectors + by * np.maximum(1.0, np.abs(vectors))


def _words(made: Decision, again: Decision) -> str:
    """What differs; where a decision was made may differ in any case."""
    return ", ".join(
        f"{name} was {getattr(made, name)!r} and is now {getattr(again, name)!r}"
        for name in Decision.__struct_fields__
        if name != "fingerprint" and getattr(made, name) != getattr(again, name)
    )


def _differs(result: Verification, row: Row, words: str) -> None:
    result.different += 1
    if len(result.examples) < MOST_LISTED:
        result.examples.append(f"row {row.number}, event {row.event!r}: {words}")
