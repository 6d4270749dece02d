"""Results of a policy, and the checked candidates of many decisions."""

import itertools
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.arms import ArmTable, CandidateSet, Slots
from hybandits.estimators.inputs import check_finite, distinct, features, id_list
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

NO_MASK: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)


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
        The standard error of `mean` in units of the noise. Multiply it by the standard deviation of the
        noise to get the units of the reward. It shrinks as the policy learns about similar features.
    propensity : float or None
        The probability with which the policy chooses this arm in this situation, over everything that is random in the
        decision: 1.0 for a policy that does not draw random numbers, None if the probability is not known. Keep it if
        the choices are to be evaluated later.
    receipt : object
        What `learn` needs together with the reward, None for most policies. Pass it on unchanged, as
        ``policy.learn(..., receipt=choice.receipt)``.
    """

    arm: Hashable
    index: int  # type: ignore[assignment]  # the name users expect, not tuple.index
    mean: float
    width: float
    propensity: float | None
    receipt: Any = None


class Choices(NamedTuple):
    """The decisions of a batch (`Policy.choose_batch`), or the arms for the positions of a page (`Policy.rank`).

    Entry b is about decision or position b. The fields are those of `Choice`.

    Attributes
    ----------
    arms, receipts : list
    indices, means, widths : array of shape (B,)
    propensities : array of shape (B,)
        The probability of each choice, or of each arm in its position; NaN where it is not estimated.
    """

    arms: list[Hashable]
    indices: Slots
    means: FloatArray
    widths: FloatArray
    propensities: FloatArray
    receipts: list[Any]


class RandomizedChoices(NamedTuple):
    """Randomized choices, as `Policy.randomize_batch` returns them; entry b is about decision b."""

    indices: Slots
    """The rows of the arms that are drawn."""
    probabilities: FloatArray
    """(B, n): the probability of every candidate, (1 - floor) p + floor / n."""
    propensities: FloatArray
    """(B, n): the policy's own probabilities p."""


class Batch(NamedTuple):
    """Checked candidates of many decisions."""

    x: FloatArray
    z: FloatArray
    ids: Sequence[Sequence[Hashable]]
    """One list for all decisions, or one for each."""
    mask: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """The number of decisions."""
        return len(self.x)

    def candidates(self, b: int) -> tuple[FloatArray, FloatArray, list[Hashable], Slots]:
        """x, z and ids of the candidates of decision b, and their rows."""
        rows = np.flatnonzero(self.mask[b]) if len(self.mask) else np.arange(self.x.shape[1])
        ids = self.ids[b if len(self.ids) > 1 else 0]
        return self.x[b][rows], self.z[b][rows], [ids[i] for i in rows.tolist()], rows

    def check_finite(self) -> None:
        """Raise, saying where, if a number of a candidate is not finite; rows that the mask leaves out may hold any."""
        for b in range(self.size):
            check_finite(*self.candidates(b)[:2])


def checked_batch(x: Any, z: Any, arms: Any, mask: Any, threads: int, d1: int, d2: int) -> Batch:
    """Return the checked arguments of `choose_batch`, ready for the kernels."""
    checks.count("threads", threads, least=1, why="it is the number of threads")
    if x is None and z is None:
        raise TypeError("x and z are missing: pass features of shape (B, n, d1) and (B, n, d2)")
    words = "feature(s), one row per candidate of each decision"
    x = features("x", x, np.shape(z)[:2] if x is None else (0, 0), d1, f"shape (B, n, d1) with {d1} {words}")
    z = features("z", z, x.shape[:2], d2, f"shape (B, n, d2) with {d2} {words}")
    size, n = x.shape[:2]
    if z.shape[:2] != (size, n):
        raise ValueError(f"x is for {size} decisions with {n} candidates and z for {z.shape[0]} with {z.shape[1]}")
    if n == 0:
        raise ValueError("got 0 candidates: pass at least one row for each decision")
    shown = NO_MASK
    if mask is not None:
        shown = np.ascontiguousarray(mask)
        if shown.dtype != np.bool_ or shown.shape != (size, n):
            raise ValueError(f"mask must be a bool array of shape ({size}, {n}), got {shown.dtype} {shown.shape}")
        if not shown.any(axis=1).all():
            b = int(np.argmin(shown.any(axis=1)))
            raise ValueError(f"mask leaves no candidate in decision {b}: mark at least one row")
    if isinstance(arms, np.ndarray) and arms.ndim == 2:
        arms = arms.tolist()
    if isinstance(arms, list) and arms and all(isinstance(each, list | CandidateSet) for each in arms):
        if len(arms) != size:
            raise ValueError(
                f"arms has {len(arms)} lists but there are {size} decisions: pass one for each, or for all"
            )
        return Batch(x, z, [_ids(each, n, shown[b : b + 1]) for b, each in enumerate(arms)], shown)
    return Batch(x, z, [_ids(arms, n, NO_MASK)], shown)


def _ids(arms: Any, n: int, mask: NDArray[np.bool_]) -> Sequence[Hashable]:
    """The ids of n rows; those that a mask leaves out may repeat."""
    ids = arms.arms if isinstance(arms, CandidateSet) else range(n) if arms is None else id_list(arms)
    if len(ids) != n:
        raise ValueError(f"arms has {len(ids)} ids but the features have {n} rows: pass one row per candidate")
    shown = [arm for arm, is_shown in zip(ids, mask[0].tolist(), strict=True) if is_shown] if len(mask) else ids
    if len(distinct(shown)) != len(shown):
        twice = checks.short(list(shown))
        raise ValueError(f"arms holds an id more than once: {twice}; each candidate may appear once")
    for arm in ids:
        if type(arm) is not str and type(arm) is not int:
            checks.new_arm(arm)
    return ids


def look_up(batch: Batch, table: ArmTable) -> Slots:
    """The slots of all candidates, one row for all decisions or one for each; arms that are new are admitted."""
    if any(table.unmet(ids) for ids in batch.ids):
        batch.check_finite()  # before the arms are admitted: a call that is refused changes nothing
        for ids in batch.ids:
            table.check_new(ids)
        for b in range(batch.size):
            table.admit(batch.candidates(b)[2])
    return np.stack([table.lookup(ids) for ids in batch.ids])


def in_threads(work: Callable[[int, int], int], batch: Batch, threads: int) -> None:
    """Call work(first, last) for parts of a batch in threads; raise if it returns a row that is not finite, not -1."""
    size = batch.size
    threads = min(threads, max(size, 1))
    if threads == 1:
        refused = [work(0, size)]
    else:
        edges = np.linspace(0, size, threads + 1).astype(int).tolist()
        with ThreadPoolExecutor(threads) as pool:
            refused = list(pool.map(lambda part: work(*part), itertools.pairwise(edges)))
    if max(refused) >= 0:
        batch.check_finite()
        raise AssertionError("a kernel refused what the checks accept")
