"""The rules of the policies: kernels that turn means and widths, or a posterior sample, into a choice.

`decide` is the choice of every rule that has one estimator. Policies, batches and compiled loops call it, with a table
of the estimator's arrays (`addresses`).

A batch has features x (B, n, d1) and z (B, n, d2). slots (B, n), or (1, n) if all decisions share their candidates, and
mask (B, n), or (0, 0) if every row is a candidate. Kernels decide for the rows first..last-1, so that threads can share
a batch, and return the first row whose numbers are not finite, -1 if there is none.
"""

import math
from typing import NamedTuple

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.addresses import Table, array_at
from hybandits.kernels.arrow import (
    ARM_SCORE,
    PULLS,
    RIDGE,
    SHARED_SCORE,
    add_shared,
    add_shared_one,
    eliminate_rows_of_arm,
    eliminated,
    score_rows,
    transpose_times,
    within_limit,
)
from hybandits.kernels.empirical_bayes import as_known
from hybandits.kernels.evidence import FEATURE, STATE
from hybandits.kernels.memories import FEATURES_AT, POSTERIOR, STATE_AT, WEIGHTS, draw_model
from hybandits.kernels.posterior_sampling import add_products, choose_by_information
from hybandits.kernels.random import DECIDE, MIX, fill_normals, place_among, uniform
from hybandits.kernels.simd import load1, store1

SAMPLING, INFORMATION, BOUNDS, OWN_BOUNDS, UNIFORM = range(5)
"""Thompson sampling, information-directed sampling, upper confidence bounds with gamma by all rewards or by those of
each arm (the disjoint reduction), and uniform choice."""

LEARNED = 8
"""Added to a rule that chooses from the posterior at learned settings."""

TOGETHER = 8
"""The number of arms, and of decisions, that are scored together."""


class Rule(NamedTuple):
    """A rule and the arrays from which it chooses."""

    code: int
    table: Table
    """One row for a `HybridRidge` (see `arrow`), or one for each model of a `LearnedRidge` (see `memories`)."""
    settings: FloatArray
    """The coefficients of gamma for bounds (see `radius`), else the noise, unless it is learned."""


@kernel(inline=True)
def radius(coefficients, t):
    """gamma(t) = base + scale sqrt(log_term + dimension log(1 + t slope)): the form of exploration coefficients."""
    base = coefficients[0]
    scale = coefficients[1]
    if scale == 0.0:
        return base
    return base + scale * math.sqrt(coefficients[2] + coefficients[3] * math.log1p(t * coefficients[4]))


@kernel
def choose_uniform(x, z, key, keyed, decision):
    """One of the n candidates, each with probability 1/n; -1 if a feature exceeds LIMIT.

    key, keyed and decision: see `hybandits.estimators.random_stream.RandomStream`.
    """
    if not (within_limit(x) and within_limit(z)):
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
    best = 0
    highest = -np.inf
    gamma = radius(coefficients, max(t, 0))
    for i in range(n):
        if t < 0:
            gamma = radius(coefficients, pulls[slots[i]] if slots[i] >= 0 else 0)
        value = mean[i] + gamma * width[i]
        if value > highest:
            highest = value
            best = i
    return best, mean[best], width[best], 1.0


@kernel
def walk_level(s, x, z, slots, left, count, alpha, least, arm_score, shared_score, ridge, first):
    """One step of SupLinUCB (Chu et al. 2011) at level s over the candidates left[:count], with w = alpha width.

    - If all w <= least = 1/sqrt(T), choose the highest mean + w at level 0, which is not to be learned from.
    - Else, if some w > 2^-s, choose the widest at level s, or with `first` the first of those with w > 2^-s.
    - Else keep in left those within 2^(1-s) of the highest mean + w and go on to level s + 1.

    Returns index, level, mean, width and how many are left. The index is -1 in the last case, and -2 if a feature is
    not finite.
    """
    rows = left[:count]
    mean = np.empty(count)
    width = np.empty(count)
    if not score_rows(x[rows], z[rows], slots[rows], arm_score, shared_score, ridge, mean, width):
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
        explored = widest
        if first:
            explored = 0
            while not alpha * width[explored] > 0.5**s:
                explored += 1
        return left[explored], s, mean[explored], width[explored], count
    highest = mean[best] + alpha * width[best]
    kept = 0
    for a in range(count):
        if mean[a] + alpha * width[a] >= highest - 2.0 * 0.5**s:
            left[kept] = left[a]
            kept += 1
    return -1, s, 0.0, 0.0, kept


@kernel
def choose_posterior(rule, x, z, slots, arm_score, shared_score, ridge, noise, extra, key, keyed, decision):
    """index, mean, width and propensity (NaN: not known) by SAMPLING or by INFORMATION; index -1 if not finite.

    extra: see `eliminated`.
    """
    if rule == INFORMATION:
        best, mean, width = choose_by_information(
            x, z, slots, arm_score, shared_score, ridge, noise, extra, key, DECIDE + keyed, decision,
            uniform(key, MIX + keyed, decision),
        )  # fmt: skip
        return best, mean, width, math.nan
    if not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, math.nan
    d1 = x.shape[1]
    y, square, product = eliminated(x, z, slots, arm_score, ridge, extra)
    best = sample_values(y, d1, square, product, shared_score, noise, key, DECIDE + keyed, decision).argmax()
    mean, variance = add_shared_one(y[best], d1, shared_score, product[best], square[best])
    return best, mean, math.sqrt(variance), math.nan


NARROWED = 0.3
"""The share by which the first posterior samples at learned settings are narrower."""


@kernel
def noise_of_samples(rule, state, d1, d2):
    """The noise of posterior samples: sigma (1 - 0.3 exp(-n / P)) for SAMPLING, else sigma.

    While there are fewer rewards n than parameters, P = d1 + d2 arms, every choice explores, and samples as wide as the
    posterior choose nearly evenly. Narrower ones lose less and learn as much.
    """
    noise = math.sqrt(state.sigma2_in_use)
    if rule == SAMPLING:
        noise *= 1.0 - NARROWED * math.exp(-state.rows / max(d1 + d2 * state.arms, 1))
    return noise


@kernel
def choose_learned(rule, x, z, slots, arm_score, shared_score, states, features, key, keyed, decision):
    """`choose_posterior` at learned settings; uniform until there are any."""
    state = states[0]
    if (state.constant > 0 or state.ready == 0) and not (within_limit(x) and within_limit(z)):
        return -1, 0.0, 0.0, math.nan  # otherwise `choose_posterior` checks every number itself
    own = np.maximum(slots, 0)  # arms that have not learned share the block at slot 0
    if state.ready == 1:
        extra = shared_score[:0]
        if state.constant > 0:
            x, z, extra = as_known(x, z, state, features)
        noise = noise_of_samples(rule, state, x.shape[1], z.shape[1])
        return choose_posterior(rule, x, z, own, arm_score, shared_score, 1.0, noise, extra, key, keyed, decision)
    n = slots.shape[0]
    i = place_among(uniform(key, MIX + keyed, decision), n)
    mean = np.empty(1)
    width = np.empty(1)
    score_rows(x[i : i + 1], z[i : i + 1], own[i : i + 1], arm_score, shared_score, 1.0, mean, width)
    return i, mean[0], width[0], 1.0 / n


@kernel
def sample_values(y, d1, square, product, shared_score, noise, key, purpose, decision):
    """One joint posterior sample of the mean rewards. Given theta~ = R_0^-1 (q_0 + sigma xi_0) arms are independent:

    value_i = y.theta~ + w.q_i + sigma |w| xi_i.
    """
    n = square.shape[0]
    stride = y.shape[1]
    flat = y.reshape(y.size)
    values = np.empty(n)
    xi = np.empty(d1 + n)
    fill_normals(key, purpose, decision, xi)
    v = np.empty(stride)
    theta = np.zeros(stride)
    for k in range(d1):
        store1(v, k, load1(shared_score, k) + noise * load1(xi, k))
    transpose_times(shared_score, 0 * n, d1, v, theta)
    for i in range(n):
        own = noise * math.sqrt(load1(square, i)) * load1(xi, d1 + i)
        store1(values, i, load1(product, i) + own)
    add_products(flat, 0 * n, n, stride, theta, values)
    return values


@kernel
def sample_candidates(x, z, slots, arm_score, shared_score, ridge, noise, extra, key, purpose, decision):
    """`sample_values` of all candidates, whose numbers must be finite; extra: see `eliminated`."""
    y, square, product = eliminated(x, z, slots, arm_score, ridge, extra)
    return sample_values(y, x.shape[1], square, product, shared_score, noise, key, purpose, decision)


@kernel
def place_drawn(chances, uniform):
    """The place drawn by a number u in (0, 1): the first i with p_1 + .. + p_i > u (p_1 + .. + p_n)."""
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


@kernel(inline=True)
def with_floor(own, floor, n):
    """(1 - floor) p + floor / n: the probability of a candidate to which the policy gives p."""
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
def decide(rule, table, settings, x, z, slots, rounds, key, keyed, decision):
    """index, mean, width and propensity (NaN: not known) of a rule's choice; index -1 if a feature exceeds LIMIT.

    rule, table and settings: see `Rule`. rounds: rewards learned so far. key, keyed and decision: see `choose_uniform`.
    """
    if rule >= LEARNED:
        row = table[draw_model(array_at(table[0], WEIGHTS, np.float64), key, keyed, decision)]
        return choose_learned(
            rule - LEARNED, x, z, slots, array_at(row, POSTERIOR + 1, np.float64),
            array_at(row, POSTERIOR + 3, np.float64), array_at(row, STATE_AT, STATE),
            array_at(row, FEATURES_AT, FEATURE), key, keyed, decision,
        )  # fmt: skip
    if rule == UNIFORM:
        return choose_uniform(x, z, key, keyed, decision), 0.0, 0.0, 1.0 / x.shape[0]
    row = table[0]
    arm_score, shared_score = array_at(row, ARM_SCORE, np.float64), array_at(row, SHARED_SCORE, np.float64)
    ridge = array_at(row, RIDGE, np.float64)[0]
    if rule in (BOUNDS, OWN_BOUNDS):
        t = -1 if rule == OWN_BOUNDS else rounds
        return choose_ucb(x, z, slots, arm_score, array_at(row, PULLS, np.int64), shared_score, ridge, settings, t)
    return choose_posterior(
        rule, x, z, slots, arm_score, shared_score, ridge, settings[0], settings[:0], key, keyed, decision
    )


@kernel
def choose_batch(rule, x, z, slots, mask, rounds, key, decision, first, last, index, mean, width, propensity):
    """`decide` for each of the rows; row b takes decision number decision + b."""
    code, table, settings = rule
    unkeyed = 0 * first  # an int variable: for a literal 0 Numba would compile the callee a second time
    places = np.arange(x.shape[1])
    for b in range(first, last):
        xs, zs, own = x[b], z[b], slots[b if slots.shape[0] > 1 else 0]
        if mask.shape[0] > 0:
            places = np.flatnonzero(mask[b])
            xs, zs, own = xs[places], zs[places], own[places]
        i, mean[b], width[b], propensity[b] = decide(
            code, table, settings, xs, zs, own, rounds, key, unkeyed, decision + b
        )  # fmt: skip
        if i < 0:
            return b
        index[b] = places[i]
    return -1


@kernel
def choose_together(rule, x, z, slots, rounds, first, last, index, mean, width):
    """`choose_ucb` for each of the rows, all among the arms in slots (n,), where d2 is at least SHORT.

    Eight arms are scored for eight decisions at a time, as 64 candidates: an arm's block is read once for all of them.
    """
    size, n, d1 = x.shape
    d2 = z.shape[2]
    row = rule.table[0]
    arm_score, shared_score = array_at(row, ARM_SCORE, np.float64), array_at(row, SHARED_SCORE, np.float64)
    pulls, ridge = array_at(row, PULLS, np.int64), array_at(row, RIDGE, np.float64)[0]
    flat_x = x.reshape(size * n * d1)
    flat_z = z.reshape(size * n * d2)
    stride = 4 * ((d1 + 3) // 4)
    most = TOGETHER * TOGETHER
    y = np.zeros(most * stride)
    means = np.empty(most)
    widths = np.empty(most)
    highest = np.empty(TOGETHER)
    gamma = radius(rule.settings, rounds)
    for start in range(first, last, TOGETHER):
        count = min(TOGETHER, last - start)
        if not (within_limit(x[start : start + count]) and within_limit(z[start : start + count])):
            return start
        for b in range(count):
            highest[b] = -np.inf
        for left in range(0, n, TOGETHER):
            arms = min(TOGETHER, n - left)
            rows = 0 * n
            for i in range(left, left + arms):
                eliminate_rows_of_arm(
                    flat_x, flat_z, start * n + i, n, d1, d2, slots[i], count, arm_score, ridge, y, rows,
                    stride, widths, means,
                )  # fmt: skip
                rows += count
            add_shared(y, stride, d1, 0 * n, rows, shared_score, widths, means)
            for i in range(arms):
                slot = slots[left + i]
                if rule.code == OWN_BOUNDS:
                    gamma = radius(rule.settings, pulls[slot] if slot >= 0 else 0)
                for b in range(count):
                    at = i * count + b
                    root = math.sqrt(widths[at])
                    value = means[at] + gamma * root
                    if value > highest[b]:
                        highest[b] = value
                        index[start + b] = left + i
                        mean[start + b] = means[at]
                        width[start + b] = root
    return -1
