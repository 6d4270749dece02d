"""The rules of the policies: kernels that turn means and widths, or a posterior sample, into a choice."""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import add_shared_one, eliminate_rows, score_rows, transpose_times, usable, within_limit
from hybandits.kernels.empirical_bayes import COUNT, ROWS, SWEPT, TOLD, UNKNOWN, as_known, with_new_arms
from hybandits.kernels.evidence import PLAYED
from hybandits.kernels.gram import mean_of
from hybandits.kernels.information import chances_by_information, choose_by_information
from hybandits.kernels.random import DECIDE, MIX, fill_normals, place_among, uniform
from hybandits.kernels.simd import load1, load4, muladd4, splat4, store1, sum4

SAMPLING, INFORMATION = range(2)
"""Rules that choose from a posterior: Thompson sampling, and information-directed sampling."""


@kernel
def radius(coefficients, t):
    """gamma(t) = base + scale sqrt(log_term + dimension log(1 + t slope)): the form of exploration coefficients."""
    base = coefficients[0]
    scale = coefficients[1]
    if scale == 0.0:
        return base
    return base + scale * math.sqrt(coefficients[2] + coefficients[3] * math.log1p(t * coefficients[4]))


@kernel
def choose_uniform(x, z, key, keyed, decision):
    """One of the n candidates, each with probability 1/n, whatever its features; -1 if one of these is not usable.

    key, keyed and decision say which random number decides, see `hybandits.estimators.random_stream.RandomStream`.
    """
    if not usable(x, z):
        return -1
    return place_among(uniform(key, DECIDE + keyed, decision), x.shape[0])


@kernel
def choose_ucb(x, z, slots, arm_score, pulls, shared_score, ridge, coefficients, t):
    """argmax_i mean_i + gamma width_i (paper, Algorithm 1, step 5); of equal candidates the first.

    gamma is taken at t rounds or, if t < 0, at each arm's own pulls (the disjoint reduction). Returns index, mean,
    width and the propensity 1 of a deterministic rule; the index is -1 if a feature is not finite.
    """
    n = x.shape[0]
    mean = np.empty(n)
    width = np.empty(n)
    if not score_rows(x, z, slots, arm_score, shared_score, ridge, mean, width):
        return -1, 0.0, 0.0, 1.0
    best = highest_bound(mean, width, slots, pulls, coefficients, t)
    return best, mean[best], width[best], 1.0


@kernel
def highest_bound(mean, width, slots, pulls, coefficients, t):
    """argmax_i mean_i + gamma width_i, of equal candidates the first; t: see `choose_ucb`."""
    best = 0
    highest = -np.inf
    gamma = radius(coefficients, max(t, 0))
    for i in range(slots.shape[0]):
        if t < 0:
            gamma = radius(coefficients, pulls[slots[i]] if slots[i] >= 0 else 0)
        value = mean[i] + gamma * width[i]
        if value > highest:
            highest = value
            best = i
    return best


@kernel
def walk_level(s, x, z, slots, left, count, alpha, least, arm_score, shared_score, ridge):
    """One step of SupLinUCB (Chu et al. 2011) at level s over the candidates left[:count], with w = alpha width.

    - If all w <= least = 1/sqrt(T), choose the highest mean + w at level 0, which is not to be learned from.
    - Else, if some w > 2^-s, choose the widest at level s.
    - Else keep in left those within 2^(1-s) of the highest mean + w and go on to level s + 1.

    Returns index, level, mean, width and how many are left. The index is -1 in the last case, and -2 if a feature is
    not finite.
    """
    d1 = x.shape[1]
    d2 = z.shape[1]
    rows_x = np.empty((count, d1))
    rows_z = np.empty((count, d2))
    its = np.empty(count, np.int64)
    for a in range(count):
        i = left[a]
        its[a] = slots[i]
        for k in range(d1):
            rows_x[a, k] = x[i, k]
        for k in range(d2):
            rows_z[a, k] = z[i, k]
    mean = np.empty(count)
    width = np.empty(count)
    if not score_rows(rows_x, rows_z, its, arm_score, shared_score, ridge, mean, width):
        return -2, s, 0.0, 0.0, count
    best = 0
    widest = 0
    for a in range(1, count):
        if mean[a] + alpha * width[a] > mean[best] + alpha * width[best]:
            best = a
        if width[a] > width[widest]:
            widest = a
    if alpha * width[widest] <= least:
        return left[best], 0 * s, mean[best], width[best], count
    if alpha * width[widest] > 0.5**s:
        return left[widest], s, mean[widest], width[widest], count
    highest = mean[best] + alpha * width[best]
    kept = 0
    for a in range(count):
        if mean[a] + alpha * width[a] >= highest - 2.0 * 0.5**s:
            left[kept] = left[a]
            kept += 1
    return -1, s, 0.0, 0.0, kept


@kernel
def choose_thompson(x, z, slots, arm_score, shared_score, ridge, noise, extra, key, purpose, decision):
    """The winner of one posterior sample (`sample_values`), its mean and width; index -1 if a feature is not finite.

    extra: what each candidate's variance has beyond its estimate's, in units of sigma^2; empty for nothing.
    """
    n, d1 = x.shape
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0
    stride = 4 * ((d1 + 3) // 4)
    y = np.empty((n, stride))
    square = np.empty(n)
    product = np.empty(n)
    eliminate_rows(x, z, slots, arm_score, ridge, y, square, product)
    for i in range(extra.shape[0]):
        square[i] += extra[i]
    values = np.empty(n)
    sample_values(y, d1, square, product, shared_score, noise, key, purpose, decision, values)
    best = highest_of(values)
    mean, variance = add_shared_one(y[best], d1, shared_score, product[best], square[best])
    return best, mean, math.sqrt(variance)


@kernel
def choose_posterior(rule, x, z, slots, arm_score, shared_score, ridge, noise, extra, key, keyed, decision):
    """index, mean, width and propensity (NaN: not known) by SAMPLING or by INFORMATION; index -1 if not finite.

    extra: see `choose_thompson`.
    """
    if rule == INFORMATION:
        lot = uniform(key, MIX + keyed, decision)
        return choose_by_information(
            x, z, slots, arm_score, shared_score, ridge, noise, extra, key, DECIDE + keyed, decision, lot
        )
    i, mean, width = choose_thompson(
        x, z, slots, arm_score, shared_score, ridge, noise, extra, key, DECIDE + keyed, decision
    )  # fmt: skip
    return i, mean, width, math.nan


NARROWED = 0.3
"""How much narrower the first posterior samples at learned settings are."""


@kernel
def noise_of_samples(rule, numbers, state, d1, d2):
    """The noise that scales posterior samples: sigma (1 - 0.3 exp(-n / P)) for SAMPLING after n rewards, else sigma.

    It is sigma too where all settings are told.

    While there are fewer rewards than parameters, P = d1 + d2 arms, every choice explores, and samples as wide as the
    posterior choose nearly evenly. That is more than is needed: narrower ones lose less and learn as much.
    """
    noise = math.sqrt(numbers[PLAYED])
    if rule == SAMPLING and state[TOLD] == 0:
        noise *= 1.0 - NARROWED * math.exp(-state[ROWS] / max(d1 + d2 * state[COUNT], 1))
    return noise


@kernel
def choose_tuned(rule, x, z, slots, arm_score, shared_score, numbers, unknown, state, key, keyed, decision):
    """`choose_posterior` at learned settings; by lot until there are any."""
    if (state[UNKNOWN] > 0 or state[SWEPT] == 0) and not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, math.nan  # otherwise `choose_posterior` looks at every number itself
    own = with_new_arms(slots)
    if state[SWEPT] == 1:
        extra = x.reshape(x.size)[:0]
        if state[UNKNOWN] > 0:
            x, z, extra = as_known(x, z, unknown, numbers)
        noise = noise_of_samples(rule, numbers, state, x.shape[1], z.shape[1])
        return choose_posterior(
            rule, x, z, own, arm_score, shared_score, 1.0, noise, extra, key, keyed, decision
        )  # fmt: skip
    n = slots.shape[0]
    i = min(int(n * uniform(key, MIX + keyed, decision)), n - 1)
    mean = np.empty(1)
    width = np.empty(1)
    score_rows(x[i : i + 1], z[i : i + 1], own[i : i + 1], arm_score, shared_score, 1.0, mean, width)
    return i, mean[0], width[0], 1.0 / n


@kernel
def chances_tuned(x, z, slots, arm_score, shared_score, numbers, unknown, state, key, keyed, decision, chances):
    """`chances_by_information` at learned settings; all equal until there are any."""
    if (state[UNKNOWN] > 0 or state[SWEPT] == 0) and not (within_limit(x) and within_limit(z)):
        return False
    if state[SWEPT] == 0:
        chances[:] = 1.0 / slots.shape[0]
        return True
    extra = x.reshape(x.size)[:0]
    own = with_new_arms(slots)
    if state[UNKNOWN] > 0:
        x, z, extra = as_known(x, z, unknown, numbers)
    noise = noise_of_samples(INFORMATION, numbers, state, x.shape[1], z.shape[1])
    return chances_by_information(
        x, z, own, arm_score, shared_score, 1.0, noise, extra, key, DECIDE + keyed, decision, chances
    )


@kernel
def sample_values(y, d1, square, product, shared_score, noise, key, purpose, decision, values):
    """One joint posterior sample of the mean rewards. Given theta~ = R_0^-1 (q_0 + sigma xi_0) arms are independent:

    value_i = y.theta~ + w.q_i + sigma |w| xi_i.
    """
    n = square.shape[0]
    stride = y.shape[1]
    flat = y.reshape(y.size)
    xi = np.empty(d1 + n)
    fill_normals(key, purpose, decision, xi)
    v = np.empty(stride)
    theta = np.zeros(stride)
    for k in range(d1):
        store1(v, k, load1(shared_score, k) + noise * load1(xi, k))
    transpose_times(shared_score, 0 * n, d1, v, theta)
    for i in range(n):
        total = splat4(0.0)
        for k in range(0, stride, 4):
            total = muladd4(load4(flat, i * stride + k), load4(theta, k), total)
        own = noise * math.sqrt(load1(square, i)) * load1(xi, d1 + i)
        store1(values, i, load1(product, i) + own + sum4(total))


@kernel
def sample_candidates(x, z, slots, arm_score, shared_score, ridge, noise, extra, key, purpose, decision, values):
    """`sample_values` of all candidates, whose numbers must be finite; extra: see `choose_thompson`."""
    n, d1 = x.shape
    y = np.empty((n, 4 * ((d1 + 3) // 4)))
    square = np.empty(n)
    product = np.empty(n)
    eliminate_rows(x, z, slots, arm_score, ridge, y, square, product)
    for i in range(extra.shape[0]):
        square[i] += extra[i]
    sample_values(y, d1, square, product, shared_score, noise, key, purpose, decision, values)


@kernel
def place_drawn(chances, uniform):
    """The place that a number u in (0, 1) draws: the first i with p_1 + .. + p_i > u (p_1 + .. + p_n)."""
    n = chances.shape[0]
    total = 0.0
    for i in range(n):
        total += chances[i]
    limit = uniform * total
    reached = 0.0
    for i in range(n):
        reached += chances[i]
        if reached > limit:
            return i
    return n - 1


@kernel
def with_floor(own, floor, n):
    """(1 - floor) p + floor / n: the chance of a candidate whose probability in a policy's own lot is p."""
    return (1.0 - floor) * own + floor / n


@kernel
def draw_places(own, floor, key, purpose, decisions, chances, places):
    """The chances `with_floor`, one row for each decision, and the place that each decision draws."""
    count, n = own.shape
    for b in range(count):
        for i in range(n):
            chances[b, i] = with_floor(own[b, i], floor, n)
        places[b] = place_drawn(chances[b], uniform(key, purpose, decisions[b]))


@kernel
def highest_of(values):
    """The place of the highest value, of equal ones the first."""
    best = 0
    for i in range(1, values.shape[0]):
        if values[i] > values[best]:
            best = i
    return best


@kernel
def best_mean(x, z, slots, theta, beta):
    """argmax_i x_i.theta + z_i.beta_i, of equal candidates the first, and its mean (HyRan's rule)."""
    best = 0
    highest = -np.inf
    for i in range(x.shape[0]):
        value = mean_of(x[i], z[i], slots[i], theta, beta)
        if value > highest:
            highest = value
            best = i
    return best, highest
