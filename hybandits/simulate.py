"""The round loop: a policy in a world, and the regret it runs up.

Policies that take the highest bound are played by one compiled loop from context to regret; it calls the kernels that
`choose` and `learn` call, so the decisions are the same to the bit. All others are played through the contract.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybandits.arrow import choose_ucb, learn_row, refresh_due
from hybandits.checks import Doubles
from hybandits.compiling import kernel
from hybandits.environments import Block, Synthetic
from hybandits.policies.base import Policy
from hybandits.policies.ucb import UCBPolicy


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
    compiled = isinstance(policy, UCBPolicy) and type(policy)._pick is UCBPolicy._pick
    t = 0
    for block in world.rounds(horizon):
        part = slice(t, t + len(block.means))
        if compiled:
            _play_compiled(policy, block, noises[part], instant[part])  # type: ignore[arg-type]
        else:
            _play_by_contract(policy, block, noises[part], instant[part])
        t = part.stop
        if progress is not None:
            progress(t)
    return np.cumsum(instant)


def _play_by_contract(policy: Policy, block: Block, noises: Doubles, instant: Doubles) -> None:
    pool = policy.candidates(range(block.means.shape[1]))
    best = block.means.max(axis=1)
    for t, (x, z, means) in enumerate(zip(block.x, block.z, block.means, strict=True)):
        choice = policy.choose(x, z, pool)
        i = choice.index
        policy.learn(choice.arm, x[i], z[i], float(means[i] + noises[t]), receipt=choice.receipt)
        instant[t] = best[t] - means[i]


def _play_compiled(policy: UCBPolicy, block: Block, noises: Doubles, instant: Doubles) -> None:
    x, z = block.x, block.z
    if policy.reduction == "disjoint":
        x, z = np.empty((*x.shape[:2], 0)), np.concatenate((x, z), axis=2)
    estimator = policy.estimator
    slots = policy.meet(range(block.means.shape[1]))
    played = play_ucb(
        x, z, block.means, noises, slots, estimator.arm_factor, estimator.arm_score, estimator.pulls,
        estimator.shared_factor, estimator.shared_score, estimator.ridge, policy.coefficients,
        policy.reduction == "disjoint", estimator.rounds, instant,
    )  # fmt: skip
    estimator.settle(range(len(slots)), slots, played)
    if played < len(instant):
        raise ValueError(f"the world's features in round {played} are not finite or too large: rescale them")


@kernel
def play_ucb(  # type: ignore[no-untyped-def]
    x, z, means, noises, slots, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge, coefficients, by_arm,
    rounds, instant,
):  # fmt: skip
    """Rounds of choose (`choose_ucb`) and learn (`learn_row`); instant[t] = max mean - mean of the arm played.

    slots[i] < -1: arm i has not learned, and -2 - slots[i] is the block that waits for it. Returns the rounds played:
    all of them, but where a feature is beyond bounds.
    """
    n, arms, d1 = x.shape
    d2 = z.shape[2]
    known = np.maximum(slots, -1)
    for t in range(n):
        i, _, _, _ = choose_ucb(
            x[t], z[t], known, arm_score, pulls, shared_score, ridge, coefficients, -1 if by_arm else rounds
        )
        if i < 0:
            return t
        if known[i] < 0:
            slots[i] = -2 - slots[i]
            known[i] = slots[i]
        reward = means[t, i] + noises[t]
        if learn_row(
            known[i], x[t, i], z[t, i], reward, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds
        ):
            refresh_due(known[i], d1, d2, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds)
        rounds += 1
        best = means[t, 0]
        for k in range(1, arms):
            best = max(best, means[t, k])
        instant[t] = best - means[t, i]
    return n
