"""Information-directed sampling: weigh what a choice costs against what it teaches (after Russo & Van Roy 2018).

The posterior knows the means of the candidates' mean rewards mu and the covariances
Cov(mu_i, mu_j) = sigma^2 (G_i.G_j + [i = j] |w_i|^2), with w = L_i z and G = L_0 y (`arrow`). Let g be the arm with the
highest mean, D_a the expected regret of arm a, and v_a the variance of mu_a that knowing the best arm would explain.
The rule plays another arm a with probability q and g otherwise, where a and q make (D_g + q dD)^1.5 / (v_g + q dv)
smallest, dD = D_a - D_g and dv = v_a - v_g. D and v are averages over joint draws of the means of those candidates that
may still be the best.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import eliminate_rows, panel_times, transpose_times, within_limit
from hybandits.kernels.random import fill_coarse_normals
from hybandits.kernels.simd import load4, mul4, muladd4, splat4, spread4, store4, sub4, sum4

PAIRS = 32
"""Antithetic pairs of draws."""

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
    top = np.zeros(draws, np.int64)
    highest = np.empty(draws)
    for m in range(draws):
        highest[m] = means[0] + deviations[0, m]
    for a in range(1, k):  # along memory: an arm's draws lie side by side
        mean = means[a]
        its = deviations[a]
        for m in range(draws):
            value = mean + its[m]
            better = value > highest[m]
            highest[m] = value if better else highest[m]
            top[m] = a if better else top[m]
    d_greedy = 0.0
    winners = 0
    number = np.full(k, -1)  # winners are numbered, because few of many arms ever win
    for m in range(draws):
        if number[top[m]] < 0:
            number[top[m]] = winners
            winners += 1
        winner[m] = number[top[m]]
        won[winner[m]] += 1
        d_greedy += highest[m] - (means[best_at] + deviations[best_at, m])
    d_greedy /= draws
    if d_greedy <= 0.0:
        return best_at, 0.0
    explained = np.empty(k)
    sums = np.empty(draws)
    for a in range(k):
        for b in range(winners):
            sums[b] = 0.0
        its = deviations[a]
        for m in range(draws):
            sums[winner[m]] += its[m]
        total = 0.0
        for b in range(winners):
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
def combine(weights, count, sigma, own, normals, at, out):
    """out[m] = sigma (sum of weights[j] normals[j, m] over j < count + own normals[at + m]), out[PAIRS + m] = -out[m].

    normals has PAIRS numbers in a row.
    """
    scale = splat4(sigma)
    root = splat4(own)
    m = 0
    while m < PAIRS:
        total = mul4(root, load4(normals, at + m))
        o = m
        for j in range(count):
            total = muladd4(spread4(weights, j), load4(normals, o), total)
            o += PAIRS
        total = mul4(scale, total)
        store4(out, m, total)
        store4(out, PAIRS + m, sub4(splat4(0.0), total))
        m += 4


@kernel
def draw_deviations(g, own, sigma, key, purpose, decision, deviations):
    """Joint draws of mu - mean in antithetic pairs: sigma (G_a.xi + |w_a| eta_a).

    g (k, stride) holds the G_a, padded with 0; own the |w_a|^2. While k is at most d1 + 1 the k means are drawn through
    the Cholesky factor of their covariance, beyond that through theta. Fills deviations (k, 2 PAIRS).
    """
    k, stride = g.shape
    start = 0 * k
    d1 = stride
    flat = g.reshape(k * stride)
    if k <= d1 + 1:
        factor = np.zeros((k, k))
        for a in range(k):
            for b in range(a + 1):
                total4 = splat4(0.0)
                for j in range(0, stride, 4):
                    total4 = muladd4(load4(flat, a * stride + j), load4(flat, b * stride + j), total4)
                total = sum4(total4)
                if a == b:
                    total += own[a]
                whole = total
                for j in range(b):
                    total -= factor[a, j] * factor[b, j]
                if a == b:
                    factor[a, a] = math.sqrt(total) if total > 1e-14 * whole else 0.0
                elif factor[b, b] > 0.0:
                    factor[a, b] = total / factor[b, b]
        normals = np.empty(PAIRS * k)
        fill_coarse_normals(key, purpose, decision, normals)
        for a in range(k):
            combine(factor[a], a + 1, sigma, 0.0, normals, start, deviations[a])
    else:
        normals = np.empty(PAIRS * (stride + k))
        fill_coarse_normals(key, purpose, decision, normals)
        for a in range(k):
            combine(g[a], stride, sigma, math.sqrt(own[a]), normals, (stride + a) * PAIRS, deviations[a])


@kernel
def choose_by_information(x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, lot):
    """index, mean, width and propensity of the information-directed choice; index -1 if a feature exceeds LIMIT.

    extra: what each candidate's variance has beyond its estimate's, in units of sigma^2; empty for nothing.
    lot: uniform in (0, 1), decides between the two arms of the mixture. The propensity is that of this lot.
    """
    n, d1 = x.shape
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, 1.0
    stride = 4 * ((d1 + 3) // 4)
    y = np.empty((n, stride))
    square = np.empty(n)
    mean = np.empty(n)
    eliminate_rows(x, z, slots, arm_score, ridge, y, square, mean)
    for i in range(extra.shape[0]):
        square[i] += extra[i]
    flat = y.reshape(n * stride)
    theta = np.zeros(stride)
    transpose_times(shared_score, 0 * n, d1, shared_score, theta)
    greedy = 0
    for i in range(n):
        total = splat4(0.0)
        for j in range(0, stride, 4):
            total = muladd4(load4(flat, i * stride + j), load4(theta, j), total)
        mean[i] += sum4(total)
        if mean[i] > mean[greedy]:
            greedy = i
    # |G_i - G_g|^2 <= |L_0|^2 |y_i - y_g|^2 with the Frobenius norm: who fails by this bound is surely out
    norm = 0.0
    for j in range(d1, shared_score.shape[0]):
        norm += shared_score[j] * shared_score[j]
    left = np.empty(n, np.int64)
    count = 0
    reach = APART * APART * sigma * sigma
    for i in range(n):
        gap = mean[greedy] - mean[i]
        if i != greedy:
            apart = 0.0
            for j in range(stride):
                difference = y[i, j] - y[greedy, j]
                apart += difference * difference
            if gap * gap >= reach * (norm * apart + square[i] + square[greedy]) and gap > 0.0:
                continue
        left[count] = i
        count += 1
    g = np.empty((count, stride))
    flat_g = g.reshape(count * stride)
    at = 0 * n
    for a in range(count):
        i = left[a]
        if i == greedy:
            at = a
        o = d1
        for b in range(stride // 4):
            cols = min(4 * b + 4, d1)
            store4(flat_g, a * stride + 4 * b, panel_times(shared_score, o, flat, i * stride, cols))
            o += 4 * cols
    width = square[greedy]
    for j in range(stride):
        width += g[at, j] * g[at, j]
    if count > 1:
        kept = 0
        place = at
        best = g[at].copy()
        for a in range(count):
            i = left[a]
            gap = mean[greedy] - mean[i]
            apart = square[i] + square[greedy]
            for j in range(stride):
                difference = g[a, j] - best[j]
                apart += difference * difference
            if a == at or not gap * gap >= reach * apart or gap == 0.0:
                if kept != a:
                    left[kept] = i
                    for j in range(stride):
                        g[kept, j] = g[a, j]
                if a == at:
                    place = kept
                kept += 1
        at = place
        count = kept
    if count > 1:
        means = np.empty(count)
        own = np.empty(count)
        for a in range(count):
            means[a] = mean[left[a]]
            own[a] = square[left[a]]
        deviations = np.empty((count, 2 * PAIRS))
        draw_deviations(g[:count], own, sigma, key, purpose, decision, deviations)
        other, chance = best_mixture(deviations, means, at)
        if lot < chance:
            i = left[other]
            width = square[i]
            for j in range(stride):
                width += g[other, j] * g[other, j]
            return i, mean[i], math.sqrt(width), chance
        return greedy, mean[greedy], math.sqrt(width), 1.0 - chance
    return greedy, mean[greedy], math.sqrt(width), 1.0
