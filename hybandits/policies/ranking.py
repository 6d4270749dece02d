"""Several places to fill at once: what `Policy.rank` and `Policy.rank_batch` return."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybandits.estimators.arms import Slots
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray


class Ranking(NamedTuple):
    """The arms for the first places of a page, as `Policy.rank` returns them; entry j is about place j.

    Attributes
    ----------
    arms : list of hashable
        The ids of the arms, the one for the first place first.
    indices : int array of shape (m,)
        The rows of these arms among the candidates.
    means, widths : array of shape (m,)
        What the policy expects of the arms, and how uncertain that is, as in `Choice`.
    propensities : array of shape (m,)
        The probability with which the policy puts this arm into this place; NaN where it is not estimated.
    receipts : list
        What the policy wants back together with the rewards; None for most policies.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> ranking = Greedy(d1=1, d2=0).rank([[1.0], [2.0], [3.0]], None, ["a", "b", "c"], 2)
    >>> ranking.arms, ranking.propensities.tolist()
    (['a', 'b'], [1.0, 1.0])
    """

    arms: list[Hashable]
    indices: Slots
    means: FloatArray
    widths: FloatArray
    propensities: FloatArray
    receipts: list[Any]


class Rankings(NamedTuple):
    """The rankings of many decisions, as `Policy.rank_batch` returns them; row b is about decision b.

    A decision with fewer candidates than places leaves the last ones empty: the index is -1, the numbers are NaN, and
    the lists are shorter.

    Attributes
    ----------
    arms : list of list of hashable
        The ids of the arms.
    indices : int array of shape (B, m)
        The rows of these arms among the candidates.
    means, widths, propensities : array of shape (B, m)
        As in `Ranking`.
    receipts : list of list
        What the policy wants back together with the rewards.
    """

    arms: list[list[Hashable]]
    indices: Slots
    means: FloatArray
    widths: FloatArray
    propensities: FloatArray
    receipts: list[list[Any]]


def number_of_places(m: object, n: int) -> int:
    """How many of n candidates get a place: m of them, all if m is None or more than there are."""
    if m is None:
        return n
    return min(checks.count("m", m, least=1, why="it is the number of places; leave it out to rank all"), n)


def put_together(rankings: Sequence[Ranking], candidates: Sequence[Slots], m: int) -> Rankings:
    """The rankings of many decisions as one; candidates says which row each decision's candidates were."""
    size = len(rankings)
    indices = np.full((size, m), -1, np.int64)
    numbers = np.full((3, size, m), np.nan)
    for b, (ranking, rows) in enumerate(zip(rankings, candidates, strict=True)):
        k = len(ranking.arms)
        indices[b, :k] = rows[ranking.indices]
        numbers[:, b, :k] = ranking.means, ranking.widths, ranking.propensities
    arms, receipts = [ranking.arms for ranking in rankings], [ranking.receipts for ranking in rankings]
    return Rankings(arms, indices, numbers[0], numbers[1], numbers[2], receipts)
