"""Information-directed sampling: weigh what a choice costs against what it teaches."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hybandits.estimators.arms import Slots
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.random_stream import RandomStream
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import batches, decisions
from hybandits.policies.batch import NO_MASK, Batch, in_threads
from hybandits.policies.posterior import AUTO, Memory, PosteriorPolicy


class HyIDS(PosteriorPolicy):
    """Explore where it pays: weigh what a choice is expected to cost against what it teaches about the best arm.

    Most choices are the arm with the highest expected reward. Another arm is played, with a probability that the policy
    works out, only where its reward would help to tell which arm is best. There is nothing to tune: how noisy rewards
    are, how large parameters are and what arms have in common is learned from the rewards.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward. By default it is learned.
    scale : float, optional
        How large you expect the entries of theta and of every beta to be: their standard deviation before any reward
        has been seen. By default it is learned.
    memory : float or "auto", optional
        How many rounds the policy remembers, for worlds that change: a reward that came t rewards ago counts
        exp(-t / memory) as much as the latest. With "auto" the policy keeps three memories, one of them infinite, and
        trusts the one that predicts best. By default it never forgets.
    seed : int, optional
        The seed of the random draws. The default draws fresh entropy.

    Attributes
    ----------
    noise, scale, memory : float, "auto" or None
        As given.
    learned : LearnedSettings or None
        What the policy has learned about noise and scales.

    Notes
    -----
    Let D be the expected regret of a choice and v the variance of its mean reward that knowing the best arm would
    explain. The rule mixes the greedy arm and one other so that D^1.5 / v is smallest; [1]_ has D^2 and all mixtures of
    two arms. D and v are averages over 64 joint draws of the posterior means. The propensity of a choice is the
    probability of the lot that was really drawn, given those draws and, with ``memory="auto"``, the model that was
    drawn to decide. The posterior, its settings and its memory are those of `HyThompson`.

    References
    ----------
    .. [1] Russo & Van Roy, "Learning to Optimize via Information-Directed Sampling", 2018.

    Examples
    --------
    >>> policy = HyIDS(d1=1, d2=1, seed=0)
    >>> policy.learn("a", [1.0], [1.0], reward=1.0)
    >>> choice = policy.choose([[1.0], [1.0]], [[1.0], [1.0]], arms=["a", "b"])
    >>> 0 < choice.propensity <= 1
    True
    """

    rule = decisions.INFORMATION

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        scale: float | None = None,
        memory: Memory = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, noise=noise, scale=scale, memory=memory, seed=seed)

    def _order(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int
    ) -> tuple[Slots, FloatArray | None]:
        """The arm that the rule picks, then the others in the order of their means."""
        if self._undecided(lot):
            return super()._order(x, z, slots, lot, places)[0], None
        return self._led_by(self._pick(x, z, slots, lot)[0], x, z, slots, lot)[:places], None

    def _led_by(self, first: int, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream) -> Slots:
        order = np.argsort(-self._model(lot).score(x, z, slots).mean, kind="stable")
        return np.concatenate(([first], order[order != first]))

    def _place_chances(self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int) -> FloatArray:
        """Those of the two orders that the lot decides between."""
        if self._undecided(lot):
            return super()._place_chances(x, z, slots, lot, places)
        matrix = np.zeros((len(slots), places))
        chances = self._chances(_one(x, z), slots, [lot])[0]
        for first in np.flatnonzero(chances).tolist():
            order = self._led_by(first, x, z, slots, lot)[:places]
            matrix[order, np.arange(places)] += chances[first]
        return matrix

    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return the probabilities of the lot that the next `choose` will draw: at most two of them are not 0."""
        if self._inherits_at("_pick") < self._inherits_at("propensities"):
            raise NotImplementedError(
                f"{type(self).__name__} picks by a rule of its own: define its propensities as well"
            )
        rows = self._rows(x, z, arms)
        chances: FloatArray = self._chances(_one(rows.x, rows.z), rows.slots, [self._lot(key)])[0]
        return chances

    def _own_lots(
        self, batch: Batch, keys: Sequence[Hashable], lots: Sequence[RandomStream], threads: int
    ) -> FloatArray:
        if min(self._inherits_at("propensities"), self._inherits_at("_pick")) < self._inherits_at("_own_lots"):
            return super()._own_lots(batch, keys, lots, threads)
        slots = self._rows(batch.x[0], batch.z[0], batch.ids[0]).slots
        return self._chances(batch, slots, lots, threads)

    def _chances(self, batch: Batch, slots: Slots, lots: Sequence[RandomStream], threads: int = 1) -> FloatArray:
        """The probabilities of several decisions among the same arms."""
        chances = np.empty(batch.x.shape[:2])
        key, _, keyed = lots[0]
        numbers = np.array([lot.decision for lot in lots])

        def work(first: int, last: int) -> int:
            refused: int
            some = slice(first, last)
            x, z = batch.x[some], batch.z[some]
            model = self._model(lots[first])
            if self._learns:
                assert isinstance(model, LearnedRidge)
                refused = batches.chances_batch_tuned(
                    x, z, slots, model.arm_score, model.shared_score, model.numbers, model.unknown, model.state, key,
                    keyed, numbers[some], chances[some],
                )  # fmt: skip
            else:
                refused = batches.chances_batch_told(
                    x, z, slots, model.arm_score, model.shared_score, model.ridge, self.noise, key, keyed,
                    numbers[some], chances[some],
                )  # fmt: skip
            return refused

        if self.memory == AUTO:  # every decision draws its model
            in_threads(lambda first, last: max(work(b, b + 1) for b in range(first, last)), batch, 1)
        else:
            in_threads(work, batch, threads)
        return chances


def _one(x: FloatArray, z: FloatArray) -> Batch:
    """One decision as a batch."""
    return Batch(x[None], z[None], [], NO_MASK)
