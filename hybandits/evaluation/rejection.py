"""Rejection: the rounds of a log that a replayed policy may learn from.

Replay (Li et al. 2011) plays a policy on logged rounds and keeps those in which it chooses what was shown. Such a match
has the probability p(a). Rejection (Dudik, Erhan, Langford & Li 2012) keeps it with the probability c / p(a), so that
every choice in every context is kept with the probability c, if c <= p(a). The policy learns these rounds and no
others.

Where p(a) < c, a match is always kept, which is too seldom: the policy learns from tilted rounds, and nothing bounds
its value. So c is the smallest propensity, unless the caller sets it. A policy that does not learn needs no draws: its
rounds are weighted by the chance to be kept. Draws are a function of the seed and the round's number in the log.
"""

import math
from typing import NamedTuple

import numpy as np

from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.evaluation.parts import Survey
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.random import DECIDE, uniform


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
        return np.minimum(1.0, self.keep / propensity) if self.rejects else np.ones(len(propensity))

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
    as it always is for policies that do not learn. c is at most the largest propensity, with which every match is kept.
    """
    if not survey.sound or (keep is None and not survey.uneven):
        return Rejection()
    if keep is None or not learns:
        keep = survey.smallest
    return Rejection(min(keep, survey.largest), key_of_seed(seed, stream_of("rejection")))
