"""Growth of regret with the number of arms K, step by step.

One power law over all K misleads: no regret can exceed a multiple of that of uniform choice, which hardly grows with K,
so exponents fall as K grows, and those of the largest regrets fall first. Regret added per arm depends on the level
instead, by which a policy with a small regret has an advantage. Both are measured from each K to the next, and beside
them regret over that of uniform choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import bounds


def local_exponents(arms: FloatArray, regret: FloatArray) -> FloatArray:
    """Exponents of regret between neighbouring numbers of arms, log(R'/R) / log(K'/K).

    >>> local_exponents(np.array([10.0, 100.0, 400.0]), np.array([1.0, 10.0, 20.0])).tolist()
    [1.0, 0.5]
    """
    exponents: FloatArray = np.diff(np.log(regret)) / np.diff(np.log(arms))
    return exponents


def added_per_arm(arms: FloatArray, regret: FloatArray) -> FloatArray:
    """Regret added per arm between neighbouring numbers of arms, (R' - R) / (K' - K)."""
    added: FloatArray = np.diff(regret) / np.diff(arms)
    return added


class Growth:
    """Regret at T against the number of arms: of policies, and expected of uniform choice.

    Attributes
    ----------
    arms, uniform : array of shape (numbers of arms,)
        K and uniform choice's regret, sampled in the same environments.
    regret, share : dict of array
        Every policy's regret (runs, numbers of arms), and its mean over that of uniform choice (numbers of arms,).
    units : array of shape (runs,)
        The environment of every run.
    """

    def __init__(self, outcome: Outcome, policies: Sequence[str]) -> None:
        e, arms = outcome.experiment, outcome.arms
        self.arms = np.array(arms, dtype=float)
        self.uniform = np.array([e.horizon * bounds.uniform_regret(e, k).mean for k in arms])
        self.regret = {name: np.stack([outcome.final(name, k) for k in arms], axis=1) for name in policies}
        self.share = {name: regret.mean(axis=0) / self.uniform for name, regret in self.regret.items()}
        self.units = outcome.independent_units(policies[0], arms[0])
