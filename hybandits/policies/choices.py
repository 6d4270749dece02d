"""What a policy returns: one choice, the choices of a batch, a ranking, and randomized choices."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from hybandits.estimators.arms import Slots
from hybandits.foundation.checks import FloatArray


class Choice(NamedTuple):
    """One decision of a policy, as `Policy.choose` returns it.

    Attributes
    ----------
    arm : hashable
        The id of the arm to play.
    index : int
        The row of that arm among the candidates, so that its features are ``x[index]`` and ``z[index]``.
    mean : float
        The reward that the policy expects of the arm.
    width : float
        How uncertain `mean` is: its standard error in units of the noise. Multiply it by the standard deviation of the
        noise to get the units of the reward. It shrinks as the policy learns about similar features.
    propensity : float or None
        The probability with which the policy chooses this arm in this situation: 1.0 for a policy that does not draw
        random numbers, None if the probability is not estimated. Keep it if the choices are to be evaluated later.
    receipt : object
        What `learn` needs together with the reward, None for most policies. Pass it on unchanged, as
        ``policy.learn(..., receipt=choice.receipt)``.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> choice = Greedy(d1=1, d2=0).choose([[1.0], [2.0]], arms=["a", "b"])
    >>> choice.arm, choice.index, choice.mean, choice.width
    ('a', 0, 0.0, 1.0)
    """

    arm: Hashable
    index: int  # type: ignore[assignment]  # the name users expect, not tuple.index
    mean: float
    width: float
    propensity: float | None
    receipt: Any = None


class Choices(NamedTuple):
    """The decisions of a batch, as `Policy.choose_batch` returns them; entry b is about decision b.

    Attributes
    ----------
    arms : list of hashable
        The ids of the arms to play.
    indices : int array of shape (B,)
        The rows of these arms among the candidates.
    means, widths : array of shape (B,)
        The expected rewards of the arms and their standard errors, as in `Choice`.
    propensities : array of shape (B,)
        The probability of each choice; NaN where it is not estimated.
    receipts : list
        What `learn_batch` needs together with the rewards; None for most policies.

    Examples
    --------
    >>> import numpy as np
    >>> from hybandits import Greedy
    >>> choices = Greedy(d1=1, d2=0).choose_batch(np.ones((3, 2, 1)), arms=["a", "b"])
    >>> choices.arms, choices.indices.tolist()
    (['a', 'a', 'a'], [0, 0, 0])
    """

    arms: list[Hashable]
    indices: Slots
    means: FloatArray
    widths: FloatArray
    propensities: FloatArray
    receipts: list[Any]


class Ranking(NamedTuple):
    """The arms for the first positions of a page, as `Policy.rank` returns them; entry j is about position j.

    Attributes
    ----------
    arms : list of hashable
        The ids of the arms, the one for the first position first.
    indices : int array of shape (m,)
        The rows of these arms among the candidates.
    means, widths : array of shape (m,)
        The expected rewards of the arms and their standard errors, as in `Choice`.
    propensities : array of shape (m,)
        The probability with which the policy puts this arm into this position; NaN where it is not estimated.
    receipts : list
        What `learn` needs together with the rewards; None for most policies.

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


class RandomizedChoices(NamedTuple):
    """Randomized choices, as `Policy.randomize_batch` returns them; entry b is about decision b.

    Attributes
    ----------
    indices : int array of shape (B,)
        The rows of the arms that are drawn.
    probabilities : array of shape (B, n)
        The probability of every candidate: (1 - floor) p + floor / n.
    propensities : array of shape (B, n)
        The policy's own probabilities p.
    """

    indices: Slots
    probabilities: FloatArray
    propensities: FloatArray
