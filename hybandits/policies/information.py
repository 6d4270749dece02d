"""Information-directed sampling: weigh what a choice costs against what it teaches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybandits.estimators.arms import Candidates, Slots
from hybandits.estimators.random_stream import RandomStream
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions
from hybandits.policies.choices import NO_MASK, Batch, Choices, in_threads
from hybandits.policies.posterior import Memory, PosteriorPolicy


class HyIDS(PosteriorPolicy):
    """Explore where it pays: weigh what a choice is expected to cost against what it teaches about the best arm.

    Most choices are the arm with the highest expected reward. Another arm is played, with a probability that the policy
    works out, only where its reward would help to tell which arm is best. There is nothing to tune: how noisy rewards
    are, how large parameters are and what arms have in common is learned from the rewards.

    Parameters
    ----------
    d1, d2, noise, scale, memory, seed
        As for `HyThompson`.

    Attributes
    ----------
    noise, scale, memory, learned
        As for `HyThompson`.

    Notes
    -----
    Let D be the expected regret of a choice and v the variance of its mean reward that knowing the best arm would
    explain. The rule mixes the greedy arm and one other so that D^1.5 / v is smallest; [1]_ has D^2 and all mixtures of
    two arms. D and v are averages over 64 joint draws of the posterior means. The propensity of a choice is its
    probability in this mixture, given those draws and, with ``memory="auto"``, the model that was
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

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        """The arm that the rule picks, then the others in the order of their means."""
        if self._undecided(stream):
            return super()._rank(candidates, stream, m)
        indices = self._led_by(self._choice(candidates, stream).index, candidates, stream)[:m]
        propensities = self._rank_propensities(candidates, stream, m)[indices, np.arange(m)]
        return self._ranking(candidates, stream, indices, propensities)

    def _led_by(self, first: int, candidates: Candidates, stream: RandomStream) -> Slots:
        order = np.argsort(-self._score(candidates, stream).mean, kind="stable")
        return np.concatenate(([first], order[order != first]))

    def _rank_propensities(self, candidates: Candidates, stream: RandomStream, m: int) -> FloatArray:
        """The probabilities of the two orders that the draw decides between."""
        if self._undecided(stream):
            return super()._rank_propensities(candidates, stream, m)
        matrix = np.zeros((len(candidates.arms), m))
        chances = self._propensities(candidates, stream)
        for first in np.flatnonzero(chances).tolist():
            order = self._led_by(first, candidates, stream)[:m]
            matrix[order, np.arange(m)] += chances[first]
        return matrix

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        """Return the probabilities that the next `choose` will draw from: at most two of them are not 0."""
        batch = Batch(candidates.x[None], candidates.z[None], [candidates.arms], NO_MASK)
        propensities: FloatArray = self._propensities_batch(batch, [stream], 1)[0]
        return propensities

    def _propensities_batch(self, batch: Batch, streams: Sequence[RandomStream], threads: int) -> FloatArray:
        slots = self._table.lookup(batch.ids[0])
        chances = np.empty(batch.x.shape[:2])
        key, _, keyed = streams[0]
        numbers = np.array([stream.decision for stream in streams])

        rule = self.kernel_rule()

        def work(first: int, last: int) -> int:
            part = slice(first, last)
            refused: int = decisions.chances_batch(
                rule, batch.x[part], batch.z[part], slots, key, keyed, numbers[part], chances[part]
            )
            return refused

        in_threads(work, batch, threads)
        return chances
