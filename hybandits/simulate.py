"""The round loop: a policy in a world, and the regret it runs up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybandits.checks import Doubles
from hybandits.environments import Synthetic
from hybandits.policies.base import Policy


def cumulative_regret(
    policy: Policy,
    world: Synthetic,
    horizon: int,
    *,
    trial: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Doubles:
    """Play `horizon` rounds; entry t is the regret (in mean reward) summed over rounds 0..t.

    >>> from hybandits import Greedy
    >>> regret = cumulative_regret(Greedy(d1=2, d2=1), Synthetic(d1=2, d2=1, arms=3), 100)
    >>> len(regret), bool(regret[-1] >= regret[0] >= 0)
    (100, True)
    """
    instant = np.empty(horizon)
    noises = world.noises(horizon, trial)
    pool = policy.candidates(range(world.arms))
    t = 0
    for block in world.rounds(horizon):
        best = block.means.max(axis=1)
        for x, z, means, highest in zip(block.x, block.z, block.means, best, strict=True):
            choice = policy.choose(x, z, pool)
            i = choice.index
            policy.learn(choice.arm, x[i], z[i], float(means[i] + noises[t]), receipt=choice.receipt)
            instant[t] = highest - means[i]
            t += 1
        if progress is not None:
            progress(t)
    return np.cumsum(instant)
