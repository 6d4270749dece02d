"""Joint draws of the means of candidates that may be the best, and information-directed sampling from them.

The posterior knows the means of the candidates' mean rewards mu and the covariances
Cov(mu_i, mu_j) = sigma^2 (G_i.G_j + [i = j] |w_i|^2), with w = L_i z and G = L_0 y (`arrow`). Candidates that are some
standard deviations behind the one with the highest mean are left out; those that are left are the contenders.

Information-directed sampling weighs what a choice costs against what it teaches (after Russo & Van Roy 2018). Let g be
the arm with the highest mean, D_a the expected regret of arm a, and v_a the variance of its mean reward mu_a that
knowing the best arm would explain. The rule chooses another arm a with probability q and g otherwise, where a and q
make (D_g + q dD)^1.5 / (v_g + q dv) smallest, dD = D_a - D_g and dv = v_a - v_g. D and v are averages over joint draws.
"""

import math
from statistics import NormalDist

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    eliminated,
    panel_times_four,
    store_four,
    transpose_times,
    triangle_size,
    within_limit,
)
from hybandits.kernels.random import fill_coarse_normals, fill_uniforms
from hybandits.kernels.simd import load4, mul4, muladd4, splat4, spread4, store4, sub4, sum4

PAIRS = 32
"""Antithetic pairs of draws that are made at a time."""

POINTS, MULTIPLIER, FIRST = 1021, 137, 631
"""The lattice of `lattice_normals`: coordinate j of point m is FIRST MULTIPLIER^j m / POINTS, modulo 1.

POINTS is prime and MULTIPLIER a primitive root, the one whose points fill 48 dimensions most evenly (P_2 with weights
0.05 0.9^j is smallest). FIRST / POINTS is close to the golden ratio, so that the first points are spread evenly too.
"""

LEVELS = np.array([NormalDist().inv_cdf((i + 0.5) / POINTS) for i in range(POINTS)])
LEVELS /= np.sqrt((LEVELS**2).mean())
"""The normal distribution in as many equally likely values, of mean 0 and variance 1."""


@kernel
def times_shared(y, n, stride, shared_score, d1, g):
    """G = L_0 y of all n rows of y, padded with 0; four are taken together, at the end the last again."""
    for a in range(0, n, 4):
        rows = a * stride, min(a + 1, n - 1) * stride, min(a + 2, n - 1) * stride, min(a + 3, n - 1) * stride
        o = d1
        for b in range(stride // 4):
            cols = min(4 * b + 4, d1)
            store_four(g, rows, 4 * b, panel_times_four(shared_score, o, y, rows, cols))
            o += 4 * cols


@kernel
def within_reach(mean, square, v, greedy, scale, reach):
    """The i with gap^2 < reach (|w_i|^2 + |w_g|^2 + scale |v_i - v_g|^2), gap = mean_g - mean_i, and the place of g.

    square: the |w_i|^2; v: vectors padded to a multiple of four.
    """
    n, stride = v.shape
    flat = v.reshape(n * stride)
    left = np.empty(n, np.int64)
    count = 0 * n
    at = count
    for i in range(n):
        total = splat4(0.0)
        for k in range(0, stride, 4):
            difference = sub4(load4(flat, i * stride + k), load4(flat, greedy * stride + k))
            total = muladd4(difference, difference, total)
        gap = mean[greedy] - mean[i]
        if i == greedy:
            at = count
        elif gap * gap >= reach * (square[i] + square[greedy] + scale * sum4(total)) and gap != 0.0:
            continue
        left[count] = i
        count += 1
    return left[:count], at


@kernel
def contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, apart):
    """The candidates i with mean_g - mean_i < apart sigma sqrt(|G_i - G_g|^2 + |w_i|^2 + |w_g|^2), and g itself.

    g has the highest mean, of equal ones the first. extra: see `eliminated`. Returns the candidates in their order,
    their means, their G padded with 0, their |w|^2, and the place of g among them.
    """
    n, d1 = x.shape
    y, square, mean = eliminated(x, z, slots, arm_score, ridge, extra)
    stride = y.shape[1]
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
    squares = splat4(0.0)
    for j in range(d1, d1 + triangle_size(d1), 4):
        squares = muladd4(load4(shared_score, j), load4(shared_score, j), squares)
    reach = apart * apart * sigma * sigma
    left, at = within_reach(mean, square, y, greedy, sum4(squares), reach)
    near = y[left]
    g = np.empty_like(near)
    times_shared(near.reshape(near.size), left.shape[0], stride, shared_score, d1, g.reshape(g.size))
    mean, square = mean[left], square[left]
    kept, at = within_reach(mean, square, g, at, 1.0, reach)
    return left[kept], mean[kept], g[kept], square[kept], at


@kernel(inline=True)
def width_of(g, own):
    """sqrt(|w|^2 + |G|^2): the width of a contender."""
    total = own
    for j in range(g.shape[0]):
        total += g[j] * g[j]
    return math.sqrt(total)


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


SINGULAR = 1e-14
"""The share of a variance that rounding errors may leave where the others determine it."""


@kernel
def repeat_twin(a, g, stride, own, factor):
    """Give contender a the row of an earlier one that is the same to the bit, so that they are equal in every draw."""
    for b in range(a):
        same = own[a] == 0.0 and own[b] == 0.0
        for j in range(stride):
            same = same and g[a * stride + j] == g[b * stride + j]
        if same:
            for j in range(a):
                factor[a, j] = factor[b, j]
            return


@kernel
def joint_factor(g, own):
    """Weights F and roots s such that F xi + s eta has the covariance G G' + diag(own), for standard normals xi, eta.

    While the k contenders are at most d1 + 1, F is the Cholesky factor of the covariance, and s is empty. Beyond that
    F = G and s = sqrt(own), which is to draw theta first.
    """
    k, stride = g.shape
    if k > stride + 1:
        return g, np.sqrt(own)
    flat = g.reshape(k * stride)
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
                factor[a, a] = math.sqrt(total) if total > SINGULAR * whole else 0.0
                if total <= SINGULAR * whole:
                    repeat_twin(a, flat, stride, own, factor)
            elif factor[b, b] > 0.0:
                factor[a, b] = total / factor[b, b]
    return factor, own[:0]


@kernel
def deviate(factor, roots, sigma, normals, deviations):
    """Fill deviations (k, 2 PAIRS) with sigma (F xi + s eta) and, behind them, their negatives.

    normals: PAIRS numbers for each column of F, then for each of the k contenders if there are roots.
    """
    k, columns = factor.shape
    start = 0 * k
    for a in range(k):
        if roots.shape[0] == 0:
            combine(factor[a], a + 1, sigma, 0.0, normals, start, deviations[a])
        else:
            combine(factor[a], columns, sigma, roots[a], normals, (columns + a) * PAIRS, deviations[a])


@kernel
def draw_deviations(g, own, sigma, key, purpose, decision, deviations):
    """Joint draws of mu - mean in antithetic pairs; fills deviations (k, 2 PAIRS). See `joint_factor`."""
    factor, roots = joint_factor(g, own)
    normals = np.empty(PAIRS * (factor.shape[1] + roots.shape[0]))
    fill_coarse_normals(key, purpose, decision, normals)
    deviate(factor, roots, sigma, normals, deviations)


@kernel
def winners(deviations, means, top, highest):
    """top[m], the place of the contender that is the best in draw m, of equal ones the first, and its value."""
    k, draws = deviations.shape
    for m in range(draws):
        top[m] = 0
        highest[m] = means[0] + deviations[0, m]
    for a in range(1, k):  # along memory: an arm's draws lie side by side
        mean = means[a]
        draw = deviations[a]
        for m in range(draws):
            value = mean + draw[m]
            better = value > highest[m]
            highest[m] = value if better else highest[m]
            top[m] = a if better else top[m]


@kernel
def shift_lattice(key, purpose, decision, repeat, places, steps):
    """The random start of each coordinate of the lattice, and its step from point to point."""
    dimensions = places.shape[0]
    uniforms = np.empty((repeat + 1) * dimensions)
    fill_uniforms(key, purpose, decision, uniforms)
    step = FIRST
    for j in range(dimensions):
        places[j] = int(uniforms[repeat * dimensions + j] * POINTS)
        steps[j] = step
        step = step * MULTIPLIER % POINTS


@kernel
def lattice_normals(places, steps, normals):
    """PAIRS normals for every coordinate: `LEVELS` at the next points of the lattice. places moves on."""
    for j in range(places.shape[0]):
        at = places[j]
        step = steps[j]
        for m in range(j * PAIRS, (j + 1) * PAIRS):
            normals[m] = LEVELS[at]
            at += step
            if at >= POINTS:
                at -= POINTS
        places[j] = at


@kernel
def count_places(
    x, z, slots, arm_score, shared_score, ridge, sigma, extra, apart, key, purpose, decision, pairs, counts
):  # fmt: skip
    """Count the first places that each candidate takes in 2 pairs joint draws; fills counts (n, places).

    Draws are antithetic pairs at the points of a lattice that is shifted at random, which is equal in expectation to
    independent draws and closer to the true probabilities. After POINTS pairs there is another shift. Candidates
    that are `apart` or more behind never take a place; with more than one place none should be left out.
    """
    counts[:] = 0.0
    left, means, g, own, _ = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, apart)
    k = left.shape[0]
    places = counts.shape[1]
    if k == 1:
        counts[left[0], 0] = 2.0 * pairs
        return
    factor, roots = joint_factor(g, own)
    dimensions = factor.shape[1] + roots.shape[0]
    normals = np.empty(PAIRS * dimensions)
    deviations = np.empty((k, 2 * PAIRS))
    where = np.empty(dimensions, np.int64)
    steps = np.empty(dimensions, np.int64)
    top = np.empty(2 * PAIRS, np.int64)
    highest = np.empty(2 * PAIRS)
    for repeat in range((pairs + POINTS - 1) // POINTS):
        shift_lattice(key, purpose, decision, repeat, where, steps)
        todo = min(POINTS, pairs - repeat * POINTS)
        while todo > 0:
            lattice_normals(where, steps, normals)
            deviate(factor, roots, sigma, normals, deviations)
            for place in range(places):
                winners(deviations, means, top, highest)
                for m in range(min(PAIRS, todo)):
                    counts[left[top[m]], place] += 1.0
                    counts[left[top[PAIRS + m]], place] += 1.0
                if place + 1 < places:
                    for m in range(2 * PAIRS):
                        deviations[top[m], m] = -np.inf  # out of the next places
            todo -= PAIRS


APART = 4.0
"""Standard deviations of a difference beyond which an arm cannot be the best."""

EXPONENT = 1.5


@kernel(inline=True)
def mixture(d_greedy, d_other, v_greedy, v_other):
    """The probability q of the other arm that makes (D_g + q dD)^1.5 / (v_g + q dv) smallest.

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

    best_at is the place of g. Returns (place of the other arm, q); q = 0 where g alone is chosen.
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
        draw = deviations[a]
        for m in range(draws):
            sums[winner[m]] += draw[m]
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
def choose_by_information(
    x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, number, chances
):  # fmt: skip
    """index, mean, width and propensity of the information-directed choice; index -1 if a feature exceeds LIMIT.

    number: uniform in (0, 1), decides between the two arms of the mixture. chances: filled with the probabilities of
    all candidates (q for the other arm, 1 - q for the greedy one) unless it is empty.
    """
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, 1.0
    left, means, g, own, at = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, APART)
    other = at
    chance = 0.0
    if left.shape[0] > 1:
        deviations = np.empty((left.shape[0], 2 * PAIRS))
        draw_deviations(g, own, sigma, key, purpose, decision, deviations)
        other, chance = best_mixture(deviations, means, at)
    if chances.shape[0] > 0:
        chances[:] = 0.0
        chances[left[at]] = 1.0 - chance
        if chance > 0.0:
            chances[left[other]] = chance
    if number < chance:
        return left[other], means[other], width_of(g[other], own[other]), chance
    return left[at], means[at], width_of(g[at], own[at]), 1.0 - chance
