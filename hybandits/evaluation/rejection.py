"""Rejection: the rounds of a log that a replayed policy may learn from.

Replay (Li et al. 2011) plays a policy on logged rounds, and where it chooses what was shown, the reward is its reward.
Such a match has the probability p(a) of what it chooses. Rejection (Dudik, Erhan, Langford & Li 2012) keeps a match
with the probability c / p(a), and then every choice in every context is kept with the same probability c, if
c <= p(a): the rounds kept are rounds as the policy would have met them had it chosen itself. It learns these and no
others. Its probabilities need not be known.

Where p(a) < c, a match is always kept, which is too seldom. Let s be the mean of 1 - min(1, p(a) / c) over the policy's
choices. The rounds of the policy are a mixture of the rounds kept, with the share 1 - s, and of unknown ones. So for
rewards in low..high, m being the mean reward of the rounds kept,

    (1 - s) m + s low <= value <= (1 - s) m + s high

if the policy is fixed. If it learns, it has become another policy, and nothing bounds its value. s itself is
1 - E[k] / c, where k in 0..1 is the chance with which a round matches and is kept, so s has an upper confidence limit.

A policy that does not learn needs no draws: its rounds are weighted by k. Draws are a function of the seed and of the
number of the round in the log, and the same for all policies.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.evaluation.parts import Survey
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.random import DECIDE, uniform

ENOUGH = 50
"""Rounds that policies should learn; c is raised above the smallest propensity until so many are expected."""

RARE = 0.05
"""The share of rounds whose propensities may lie below c, unless the caller sets it."""


class Rejection(NamedTuple):
    """The c of the module, infinite if all rounds that match are kept, and the key of the random numbers."""

    keep: float = math.inf
    key: int = 0

    @property
    def rejects(self) -> bool:
        """True if any round may be rejected."""
        return self.keep < math.inf

    def chance(self, propensity: FloatArray) -> FloatArray:
        """min(1, c / p): the probability with which each round is kept if it matches."""
        if not self.rejects:
            return np.ones(len(propensity))
        chances: FloatArray = np.minimum(1.0, self.keep / propensity)
        return chances

    def drawn(self, first: int, propensity: FloatArray) -> FloatArray:
        """1 for every round that is kept if it matches, 0 for the others; `first` is the number of the first one."""
        kept = self.chance(propensity)
        if self.rejects:
            draw_kept(kept, self.key, first)
        return kept


@kernel
def draw_kept(chance, key, first):  # type: ignore[no-untyped-def]
    """Replace every chance by 1 with this probability and by 0 otherwise; round t has the number first + t."""
    for t in range(chance.shape[0]):
        if chance[t] < 1.0:
            chance[t] = 1.0 if uniform(key, DECIDE, first + t) < chance[t] else 0.0


def rejection_for(survey: Survey, keep: float | None, seed: int | None, *, learns: bool) -> Rejection:
    """The rejection for a policy, given a survey of the rounds.

    By default (`keep` is None), no round is rejected where choice was uniform. Elsewhere c is the smallest propensity,
    which is exact. Where a policy that learns would learn fewer than ENOUGH rounds with that, c is ENOUGH / rounds, or
    the propensity below which the share RARE of the rounds lies if that is smaller. c is at most the largest
    propensity, with which every match is kept.
    """
    if not survey.sound or (keep is None and not survey.uneven):
        return Rejection()
    if keep is None:
        keep = survey.smallest
        if learns:
            keep = max(keep, min(ENOUGH / survey.rounds, survey.quantile(RARE)))
    return Rejection(min(keep, survey.largest), key_of_seed(seed, stream_of("rejection")))
