"""Information-directed sampling: weigh what a choice costs against what it teaches (after Russo & Van Roy 2018).

Let g be the arm with the highest mean, D_a the expected regret of arm a, and v_a the variance of its mean reward mu_a
that knowing the best arm would explain. The rule plays another arm a with probability q and g otherwise, where a and q
make (D_g + q dD)^1.5 / (v_g + q dv) smallest, dD = D_a - D_g and dv = v_a - v_g. D and v are averages over joint draws
of the means of those candidates that may still be the best (`contenders`).
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import within_limit
from hybandits.kernels.posterior_sampling import PAIRS, contenders, draw_deviations, width_of, winners

APART = 4.0
"""Standard deviations of a difference beyond which an arm cannot be the best."""

EXPONENT = 1.5


@kernel
def mixture(d_greedy, d_other, v_greedy, v_other):
    """The probability q of playing the other arm that makes (D_g + q dD)^1.5 / (v_g + q dv) smallest.

    Setting its derivative to 0: q = (D_g / dD - 1.5 v_g / dv) / 0.5, cut to [0, 1].
    """
    cost = d_other - d_greedy
    gain = v_other - v_greedy
    if gain <= 0.0:
        return 0.0
    if cost <= 0.0:
        return 1.0
    q = (d_greedy / cost - EXPONENT * v_greedy / gain) / (EXPONENT - 1.0)
    return min(max(q, 0.0), 1.0)


@kernel
def best_mixture(deviations, means, best_at):
    """The arm to mix with and its probability, from draws of the deviations (arms, draws) from the means.

    best_at is the place of g. Returns (place of the other arm, q); q = 0 where g alone is played.
    """
    k, draws = deviations.shape
    won = np.zeros(k, np.int64)
    winner = np.empty(draws, np.int64)
    top = np.empty(draws, np.int64)
    highest = np.empty(draws)
    winners(deviations, means, top, highest)
    d_greedy = 0.0
    different = 0
    number = np.full(k, -1)  # winners are numbered, because few of many arms ever win
    for m in range(draws):
        if number[top[m]] < 0:
            number[top[m]] = different
            different += 1
        winner[m] = number[top[m]]
        won[winner[m]] += 1
        d_greedy += highest[m] - (means[best_at] + deviations[best_at, m])
    d_greedy /= draws
    if d_greedy <= 0.0:
        return best_at, 0.0
    explained = np.empty(k)
    sums = np.empty(draws)
    for a in range(k):
        for b in range(different):
            sums[b] = 0.0
        its = deviations[a]
        for m in range(draws):
            sums[winner[m]] += its[m]
        total = 0.0
        for b in range(different):
            total += sums[b] * sums[b] / won[b]
        explained[a] = total / draws
    v_greedy = explained[best_at]
    other = best_at
    chance = 0.0
    least = math.inf
    if v_greedy > 0.0:
        least = d_greedy**EXPONENT / v_greedy
    for a in range(k):
        if a == best_at:
            continue
        d_other = d_greedy + means[best_at] - means[a]
        q = mixture(d_greedy, d_other, v_greedy, explained[a])
        information = v_greedy + q * (explained[a] - v_greedy)
        if q > 0.0 and information > 0.0:
            ratio = (d_greedy + q * (d_other - d_greedy)) ** EXPONENT / information
            if ratio < least:
                least = ratio
                other = a
                chance = q
    return other, chance


@kernel
def mixed_contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision):
    """The two arms of the mixture: `contenders`, then the place of the other one among them, and its probability q.

    extra: what each candidate's variance has beyond its estimate's, in units of sigma^2; empty for nothing.
    """
    left, means, g, own, at = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, APART)
    other = at
    chance = 0.0
    if left.shape[0] > 1:
        deviations = np.empty((left.shape[0], 2 * PAIRS))
        draw_deviations(g, own, sigma, key, purpose, decision, deviations)
        other, chance = best_mixture(deviations, means, at)
    return left, means, g, own, at, other, chance


@kernel
def choose_by_information(x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, lot):
    """index, mean, width and propensity of the information-directed choice; index -1 if a feature exceeds LIMIT.

    lot: uniform in (0, 1), decides between the two arms of the mixture. The propensity is that of this lot.
    """
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, 1.0
    left, means, g, own, at, other, chance = mixed_contenders(
        x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision
    )
    if lot < chance:
        return left[other], means[other], width_of(g[other], own[other]), chance
    return left[at], means[at], width_of(g[at], own[at]), 1.0 - chance


@kernel
def chances_by_information(
    x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, chances
):  # fmt: skip
    """The probability of every candidate: q for the other arm of the mixture, 1 - q for the greedy one.

    Returns whether all features are within LIMIT; otherwise nothing is filled in.
    """
    if not (within_limit(x) and within_limit(z)):
        return False
    left, _, _, _, at, other, chance = mixed_contenders(
        x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision
    )
    chances[:] = 0.0
    chances[left[at]] = 1.0 - chance
    if chance > 0.0:
        chances[left[other]] = chance
    return True
