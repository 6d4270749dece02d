"""Joint draws of the means of candidates that may be the best, and information-directed sampling from them.

The posterior knows the means of the candidates' mean rewards mu and the covariances
Cov(mu_i, mu_j) = sigma^2 (G_i.G_j + [i = j] |w_i|^2), with w = L_i z and G = L_0 y (`arrow`). Candidates that are some
standard deviations behind the one with the highest mean are left out; those that are left are the contenders. Where
there are so many of them that their G would cost more than drawing theta, they are scored at draws of theta instead.

Information-directed sampling weighs what a choice costs against what it teaches (after Russo & Van Roy 2018). Let g be
the arm with the highest mean, D_a the expected regret of arm a, and v_a the variance of its mean reward mu_a that
knowing the best arm would explain. The rule chooses another arm a with probability q and g otherwise, where a and q
make (D_g + q dD)^1.5 / (v_g + q dv) smallest, dD = D_a - D_g and dv = v_a - v_g. D and v are averages over joint draws.
"""

import math
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    add_shared_one,
    eliminate_arms,
    muladd_four,
    panel_times_four,
    same_four,
    spread_four,
    store_four,
    transpose_times,
    triangle_size,
    within_limit,
)
from hybandits.kernels.random import PLACE, fill_coarse_normals, fill_uniforms
from hybandits.kernels.simd import add4, div4, load4, mul4, muladd4, splat4, spread4, store4, sub4, sum4

PAIRS = 32
"""Antithetic pairs of draws that are made at a time; a multiple of eight."""

MANY = 2 * PAIRS
"""G of a contender costs d1^2/2 multiplications and scoring it at PAIRS draws of theta PAIRS d1: equal at d1 = MANY."""

TOGETHER = 16
"""Candidates that are taken through two steps together, so that the second finds them in the second cache."""

COLUMNS = 64
"""Columns that are multiplied by PAIRS numbers each at a time, so that these stay in the first cache."""

POINTS, MULTIPLIER, FIRST = 1021, 137, 631
"""The lattice of `lattice_normals`: coordinate j of point m is FIRST MULTIPLIER^j m / POINTS, modulo 1.

POINTS is prime and MULTIPLIER a primitive root, the one whose points fill 48 dimensions most evenly (P_2 with weights
0.05 0.9^j is smallest). FIRST / POINTS is close to the golden ratio, so that the first points are spread evenly too.
"""

LEVELS = np.array([NormalDist().inv_cdf((i + 0.5) / POINTS) for i in range(POINTS)])
LEVELS /= np.sqrt((LEVELS**2).mean())
"""The normal distribution in as many equally likely values, of mean 0 and variance 1."""


@kernel
def times_shared(y, rows, stride, shared_score, d1, g):
    """G = L_0 y of these rows of y, padded with 0; four are taken together, at the end the last again."""
    n = rows.shape[0]
    for a in range(0, n, 4):
        a1, a2, a3 = min(a + 1, n - 1), min(a + 2, n - 1), min(a + 3, n - 1)
        of_y = rows[a] * stride, rows[a1] * stride, rows[a2] * stride, rows[a3] * stride
        of_g = a * stride, a1 * stride, a2 * stride, a3 * stride
        o = d1
        for b in range(stride // 4):
            cols = min(4 * b + 4, d1)
            store_four(g, of_g, 4 * b, panel_times_four(shared_score, o, y, of_y, cols))
            o += 4 * cols


@kernel(inline=True)
def load_four(a, rows, k):
    """a[rows[r] + k : rows[r] + k + 4] for four vectors r."""
    return load4(a, rows[0] + k), load4(a, rows[1] + k), load4(a, rows[2] + k), load4(a, rows[3] + k)


@kernel
def add_products(y, first, last, stride, v, out):
    """out[i] += y_i . v for the rows first..last-1 of y; four are taken together, at the end the last again."""
    for i in range(first, last, 4):
        i1, i2, i3 = min(i + 1, last - 1), min(i + 2, last - 1), min(i + 3, last - 1)
        rows = i * stride, i1 * stride, i2 * stride, i3 * stride
        totals = same_four(splat4(0.0))
        for j in range(0, stride, 4):
            totals = muladd_four(load_four(y, rows, j), same_four(load4(v, j)), totals)
        out[i] += sum4(totals[0])
        for r in range(1, min(4, last - i)):
            out[i + r] += sum4(totals[r])


@kernel
def sum_of_squares(a, first, last):
    """The sum of a[j]^2 over first <= j < last, a multiple of four numbers."""
    rows = first, first + 4, first + 8, first + 12
    totals = same_four(splat4(0.0))
    whole = (last - first) // 16 * 16
    for j in range(0, whole, 16):
        values = load_four(a, rows, j)
        totals = muladd_four(values, values, totals)
    total = add4(add4(totals[0], totals[1]), add4(totals[2], totals[3]))
    for j in range(first + whole, last, 4):
        total = muladd4(load4(a, j), load4(a, j), total)
    return sum4(total)


@kernel
def within_reach(mean, square, v, greedy, scale, reach):
    """The i with gap^2 < reach (|w_i|^2 + |w_g|^2 + scale |v_i - v_g|^2), gap = mean_g - mean_i, and the place of g.

    square: the |w_i|^2; v: vectors padded to a multiple of four, read as far as is needed to know that i is left.
    """
    n, stride = v.shape
    flat = v.reshape(n * stride)
    left = np.empty(n, np.int64)
    count = 0 * n
    at = count
    for i in range(n):
        gap = mean[greedy] - mean[i]
        own = square[i] + square[greedy]
        total = splat4(0.0)
        out = i != greedy and gap != 0.0 and gap * gap >= reach * own
        first = 0 * n
        while out and first < stride:
            for k in range(first, min(first + COLUMNS, stride), 4):
                difference = sub4(load4(flat, i * stride + k), load4(flat, greedy * stride + k))
                total = muladd4(difference, difference, total)
            out = gap * gap >= reach * (own + scale * sum4(total))
            first += COLUMNS
        if i == greedy:
            at = count
        left[count] = i
        count += not out
    return left[:count], at


class Contenders(NamedTuple):
    """Candidates that may be the best, and a factor of their joint posterior.

    Deviations from the means are sigma (F xi + s eta) for standard normals xi and eta, or sigma (F L_0' xi + s eta)
    where theta is drawn first: then F holds the y of all candidates.
    """

    left: Any
    """Their places among the candidates, in order."""
    at: Any
    """The place in `left` of g, who has the highest mean, of equal ones the first."""
    means: Any
    y: Any
    """The y of all candidates, padded with 0."""
    squares: Any
    """|w|^2 of the contenders."""
    factor: Any
    """F."""
    rows: Any
    """The row of F that belongs to each contender."""
    roots: Any
    """s; empty if it is 0."""
    by_theta: Any
    """True if theta is drawn first."""
    buffer: Any
    """Space for normals and deviations."""


@kernel
def contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, apart):
    """The candidates i with mean_g - mean_i < apart sigma sqrt(|G_i - G_g|^2 + |w_i|^2 + |w_g|^2), and g itself.

    g has the highest mean, of equal ones the first. extra: see `eliminated`. If more than MANY satisfy a cheaper bound
    and G has more than MANY columns, all of these are contenders, and theta is drawn first.
    """
    n, d1 = x.shape
    stride = 4 * ((d1 + 3) // 4)
    # all in one array: the C library would return several large ones to the system after every call, which costs more
    space = np.empty(n * stride + (stride + 3 * n) * PAIRS)
    flat, buffer = space[: n * stride], space[n * stride :]
    y, square, mean = flat.reshape((n, stride)), np.empty(n), np.empty(n)
    theta = np.zeros(stride)
    transpose_times(shared_score, 0 * n, d1, shared_score, theta)
    greedy = 0 * n
    for first in range(0, n, TOGETHER):
        last = min(first + TOGETHER, n)
        eliminate_arms(x, z, slots, first, last, arm_score, ridge, y[first:last], square, mean)
        add_products(flat, first, last, stride, theta, mean)
    for i in range(n):
        if mean[i] > mean[greedy]:
            greedy = i
    for i in range(extra.shape[0]):
        square[i] += extra[i]
    # |G_i - G_g|^2 <= |L_0|^2 |y_i - y_g|^2 with the Frobenius norm: who fails by this bound is surely out
    reach = apart * apart * sigma * sigma
    left, at = within_reach(mean, square, y, greedy, sum_of_squares(shared_score, d1, d1 + triangle_size(d1)), reach)
    mean, square = mean[left], square[left]
    if left.shape[0] > MANY and d1 > MANY:
        return Contenders(left, at, mean, y, square, y, left, np.sqrt(square), True, buffer)
    g = np.empty((left.shape[0], stride))
    times_shared(flat, left, stride, shared_score, d1, g.reshape(g.size))
    kept, at = within_reach(mean, square, g, at, 1.0, reach)
    left, mean, square = left[kept], mean[kept], square[kept]
    if kept.shape[0] > stride + 1:
        return Contenders(left, at, mean, y, square, g, kept, np.sqrt(square), False, buffer)
    factor = joint_factor(g[kept], square)
    return Contenders(left, at, mean, y, square, factor, np.arange(kept.shape[0]), square[:0], False, buffer)


@kernel(inline=True)
def width_of(among, place, d1, shared_score):
    """sqrt(|w|^2 + |G|^2): the width of a contender."""
    y = among.y[among.left[place]]
    return math.sqrt(add_shared_one(y, d1, shared_score, 0.0, among.squares[place])[1])


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
    """The Cholesky factor of G G' + diag(own); less work than F = G and s = sqrt(own) for at most d1 + 1 contenders."""
    k, stride = g.shape
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
    return factor


@kernel
def draw_theta(shared_score, d1, normals):
    """Replace the first d1 rows of PAIRS normals xi by L_0' xi, which is a draw of (theta - its mean) / sigma.

    Rows and columns of L_0 are taken in blocks. Rows of xi that a block of rows reads are not needed later.
    """
    xi = np.empty(COLUMNS * PAIRS)
    for first in range(0, d1, COLUMNS):
        last = min(first + COLUMNS, d1)
        for j in range(0, 4 * ((last - first + 3) // 4) * PAIRS, 4):
            store4(xi, j, load4(normals, first * PAIRS + j))
        for j in range(first * PAIRS, last * PAIRS, 4):
            store4(normals, j, splat4(0.0))
        for left in range(0, last, COLUMNS):
            o = d1 + triangle_size(first)
            for b in range(first // 4, (last + 3) // 4):
                cols = min(4 * b + 4, d1)
                add_panel(shared_score, o + 4 * left, min(cols - left, COLUMNS), xi, 4 * b - first, normals, left)
                o += 4 * cols


@kernel
def add_panel(score, o, cols, xi, row, out, first):
    """out[first + k] += sum over i < 4 of P[i, k] xi[row + i], for the columns k of a part of a panel, at score[o:]."""
    for m in range(0, PAIRS, 8):
        at = row * PAIRS + m
        a0, b0 = load4(xi, at), load4(xi, at + 4)
        a1, b1 = load4(xi, at + PAIRS), load4(xi, at + PAIRS + 4)
        a2, b2 = load4(xi, at + 2 * PAIRS), load4(xi, at + 2 * PAIRS + 4)
        a3, b3 = load4(xi, at + 3 * PAIRS), load4(xi, at + 3 * PAIRS + 4)
        for k in range(cols):
            place = (first + k) * PAIRS + m
            p0, p1 = spread4(score, o + 4 * k), spread4(score, o + 4 * k + 1)
            p2, p3 = spread4(score, o + 4 * k + 2), spread4(score, o + 4 * k + 3)
            a = muladd4(p1, a1, muladd4(p0, a0, load4(out, place)))
            b = muladd4(p1, b1, muladd4(p0, b0, load4(out, place + 4)))
            store4(out, place, muladd4(p3, a3, muladd4(p2, a2, a)))
            store4(out, place + 4, muladd4(p3, b3, muladd4(p2, b2, b)))


@kernel
def deviate(factor, rows, roots, sigma, normals, deviations):
    """Fill deviations (k, 2 PAIRS) with sigma (F xi + s eta) and, behind them, their negatives.

    rows: the row of F of each contender. normals: PAIRS numbers for each column of F, then for each of the k contenders
    if there are roots. Four contenders are taken together, at the end the last again.
    """
    k, columns = rows.shape[0], factor.shape[1]
    flat = factor.reshape(factor.size)
    out = deviations.reshape(deviations.size)
    for a in range(k):
        root = splat4(roots[a] if roots.shape[0] > 0 else 0.0)
        at = (columns + a) * PAIRS if roots.shape[0] > 0 else 0
        for m in range(0, PAIRS, 4):
            store4(out, 2 * a * PAIRS + m, mul4(root, load4(normals, at + m)))
    for start in range(0, k, TOGETHER):
        for first in range(0, columns, COLUMNS):
            last = min(first + COLUMNS, columns)
            for a in range(start, min(start + TOGETHER, k), 4):
                a1, a2, a3 = min(a + 1, k - 1), min(a + 2, k - 1), min(a + 3, k - 1)
                of_f = rows[a] * columns, rows[a1] * columns, rows[a2] * columns, rows[a3] * columns
                of_out = 2 * a * PAIRS, 2 * a1 * PAIRS, 2 * a2 * PAIRS, 2 * a3 * PAIRS
                for m in range(0, PAIRS, 8):
                    left, right = load_four(out, of_out, m), load_four(out, of_out, m + 4)
                    for j in range(first, last):
                        weights = spread_four(flat, of_f, j)
                        left = muladd_four(weights, same_four(load4(normals, j * PAIRS + m)), left)
                        right = muladd_four(weights, same_four(load4(normals, j * PAIRS + m + 4)), right)
                    store_four(out, of_out, m, left)
                    store_four(out, of_out, m + 4, right)
    scale = splat4(sigma)
    for a in range(0, 2 * k * PAIRS, 2 * PAIRS):
        for m in range(a, a + PAIRS, 4):
            total = mul4(scale, load4(out, m))
            store4(out, m, total)
            store4(out, PAIRS + m, sub4(splat4(0.0), total))


@kernel(inline=True)
def buffers_for_draws(among):
    """Arrays for the normals and the deviations of `draw_deviations`."""
    k = among.left.shape[0]
    size = PAIRS * (among.factor.shape[1] + among.roots.shape[0])
    return among.buffer[:size], among.buffer[size : size + 2 * k * PAIRS].reshape((k, 2 * PAIRS))


@kernel
def draw_deviations(among, d1, shared_score, sigma, normals, deviations):
    """Joint draws of mu - mean of contenders in antithetic pairs, from standard normals, which change."""
    if among.by_theta:
        draw_theta(shared_score, d1, normals)
    deviate(among.factor, among.rows, among.roots, sigma, normals, deviations)


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
    among = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, apart)
    left, means = among.left, among.means
    k = left.shape[0]
    places = counts.shape[1]
    if k == 1:
        counts[left[0], 0] = 2.0 * pairs
        return
    normals, deviations = buffers_for_draws(among)
    dimensions = normals.shape[0] // PAIRS
    where = np.empty(dimensions, np.int64)
    steps = np.empty(dimensions, np.int64)
    top = np.empty(2 * PAIRS, np.int64)
    highest = np.empty(2 * PAIRS)
    for repeat in range((pairs + POINTS - 1) // POINTS):
        shift_lattice(key, purpose, decision, repeat, where, steps)
        todo = min(POINTS, pairs - repeat * POINTS)
        while todo > 0:
            lattice_normals(where, steps, normals)
            draw_deviations(among, x.shape[1], shared_score, sigma, normals, deviations)
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
def explain(deviations, winner, won, explained):
    """The v_a: (sum over b of (sum of a's deviations in the draws that b wins)^2 / won_b) / draws.

    winner[m] is the number of who wins draw m, and won the numbers of draws won. Four contenders are taken together.
    """
    k, draws = deviations.shape
    order, ends = np.empty(draws, np.int64), np.cumsum(won)
    starts = ends - won
    for m in range(draws):
        order[starts[winner[m]]] = m
        starts[winner[m]] += 1
    four, sums = np.empty(4 * draws), np.empty(4)
    for a in range(0, k, 4):
        for r in range(4):
            draw = deviations[min(a + r, k - 1)]
            for m in range(draws):
                four[4 * m + r] = draw[order[m]]
        total = splat4(0.0)
        m = 0 * k
        for b in range(won.shape[0]):
            part = splat4(0.0)
            while m < ends[b]:
                part = add4(part, load4(four, 4 * m))
                m += 1
            part = mul4(part, part)
            if won[b] > 1:
                part = div4(part, splat4(float(won[b])))
            total = add4(total, part)
        store4(sums, 0 * k, total)
        for r in range(min(4, k - a)):
            explained[a + r] = sums[r] / draws


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
    explain(deviations, winner, won[:different], explained)
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


@kernel(inline=True)
def mixture_among(among, d1, shared_score, sigma, key, purpose, decision):
    """`best_mixture` by 2 PAIRS joint draws."""
    if among.left.shape[0] == 1:
        return among.at, 0.0
    normals, deviations = buffers_for_draws(among)
    fill_coarse_normals(key, purpose, decision, normals)
    draw_deviations(among, d1, shared_score, sigma, normals, deviations)
    return best_mixture(deviations, among.means, among.at)


@kernel
def choose_by_information(
    x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, number
):  # fmt: skip
    """index, mean and width of the information-directed choice; index -1 if a feature exceeds LIMIT.

    number: uniform in (0, 1), decides between the two arms of the mixture.
    """
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0
    d1 = x.shape[1]
    among = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, APART)
    other, chance = mixture_among(among, d1, shared_score, sigma, key, purpose, decision)
    place = other if number < chance else among.at
    return among.left[place], among.means[place], width_of(among, place, d1, shared_score)


@kernel
def average_mixture(
    x, z, slots, arm_score, shared_score, ridge, sigma, extra, key, purpose, decision, sets, chances
):  # fmt: skip
    """The probabilities of all candidates in the mixture, averaged over sets of 2 PAIRS joint draws; fills chances.

    The first set is that of `choose_by_information` with this purpose, the others are independent of it.
    """
    d1 = x.shape[1]
    among = contenders(x, z, slots, arm_score, shared_score, ridge, sigma, extra, APART)
    chances[:] = 0.0
    for s in range(sets):
        other, chance = mixture_among(among, d1, shared_score, sigma, key, purpose + PLACE * s, decision)
        chances[among.left[among.at]] += (1.0 - chance) / sets
        chances[among.left[other]] += chance / sets
