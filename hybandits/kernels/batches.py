"""Many decisions against one model: the rules of `decisions`, one after another or arm by arm.

A batch has features x (B, n, d1) and z (B, n, d2). slots (B, n), or (1, n) if all decisions share their candidates, and
mask (B, n), or (0, 0) if every row is a candidate. Kernels decide for the rows first..last-1, so that threads can share
a batch, and return the first row whose numbers are not finite, -1 if there is none.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import SHORT, add_shared, eliminate_rows_of_arm, score_rows, within_limit
from hybandits.kernels.decisions import chances_tuned, choose_posterior, highest_bound, radius
from hybandits.kernels.information import chances_by_information
from hybandits.kernels.memories import choose_mixed
from hybandits.kernels.random import DECIDE

TOGETHER = 8
"""How many arms are scored for how many decisions together."""


@kernel
def candidates_of(b, x, z, slots, mask, some_x, some_z, here, places):
    """The candidates of decision b, and how many there are; places says which rows they were.

    Without a mask they are all rows, and nothing is copied.
    """
    n = x.shape[1]
    row = b if slots.shape[0] > 1 else 0
    if mask.shape[0] == 0:
        return x[b], z[b], slots[row], n
    count = 0
    for i in range(n):
        if mask[b, i]:
            for k in range(x.shape[2]):
                some_x[count, k] = x[b, i, k]
            for k in range(z.shape[2]):
                some_z[count, k] = z[b, i, k]
            here[count] = slots[row, i]
            places[count] = i
            count += 1
    return some_x[:count], some_z[:count], here[:count], count


@kernel
def place_of(i, mask, places):
    """The row of candidate i."""
    return i if mask.shape[0] == 0 else places[i]


@kernel
def choose_batch_ucb(
    x, z, slots, mask, arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
):  # fmt: skip
    """`choose_ucb` for each of the rows; where decisions share their candidates and d2 is large, arm by arm."""
    _, n, d1 = x.shape
    d2 = z.shape[2]
    if mask.shape[0] == 0 and slots.shape[0] == 1 and d2 >= SHORT:
        return choose_together(
            x, z, slots[0], arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
        )
    some_x = np.empty((n, d1))
    some_z = np.empty((n, d2))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    means = np.empty(n)
    widths = np.empty(n)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        if not score_rows(xs, zs, its, arm_score, shared_score, ridge, means, widths):
            return b
        i = highest_bound(means, widths, its, pulls, coefficients, t)
        mean[b] = means[i]
        width[b] = widths[i]
        index[b] = place_of(i, mask, places)
    return -1


@kernel
def choose_together(
    x, z, slots, arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
):  # fmt: skip
    """`choose_ucb` for each of the rows, eight at a time: an arm's block is read once for all of them.

    Eight arms are scored for eight decisions, as 64 candidates, the arms' own ones side by side.
    """
    size, n, d1 = x.shape
    d2 = z.shape[2]
    flat_x = x.reshape(size * n * d1)
    flat_z = z.reshape(size * n * d2)
    stride = 4 * ((d1 + 3) // 4)
    most = TOGETHER * TOGETHER
    y = np.zeros(most * stride)
    means = np.empty(most)
    widths = np.empty(most)
    highest = np.empty(TOGETHER)
    gamma = radius(coefficients, max(t, 0))
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
                    flat_x, flat_z, start * n + i, n, d1, d2, slots[i], count, arm_score, ridge, y, rows, stride,
                    widths, means,
                )  # fmt: skip
                rows += count
            add_shared(y, stride, d1, 0 * n, rows, shared_score, widths, means)
            for i in range(arms):
                slot = slots[left + i]
                if t < 0:
                    gamma = radius(coefficients, pulls[slot] if slot >= 0 else 0)
                for b in range(count):
                    row = i * count + b
                    its = math.sqrt(widths[row])
                    value = means[row] + gamma * its
                    if value > highest[b]:
                        highest[b] = value
                        index[start + b] = left + i
                        mean[start + b] = means[row]
                        width[start + b] = its
    return -1


@kernel
def choose_batch_posterior(
    rule, x, z, slots, mask, arm_score, shared_score, ridge, noise, key, decision, first, last, index, mean, width,
    propensity,
):  # fmt: skip
    """`choose_posterior` for each of the rows; row b takes decision number decision + b."""
    _, n, d1 = x.shape
    unkeyed = 0 * n  # an int variable: for a literal 0 Numba would compile the callee a second time
    some_x = np.empty((n, d1))
    some_z = np.empty((n, z.shape[2]))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    nothing = np.empty(0)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        i, mean[b], width[b], propensity[b] = choose_posterior(
            rule, xs, zs, its, arm_score, shared_score, ridge, noise, nothing, key, unkeyed, decision + b
        )
        if i < 0:
            return b
        index[b] = place_of(i, mask, places)
    return -1


@kernel
def choose_batch_tuned(
    rule, x, z, slots, mask, models, weights, key, decision, first, last, index, mean, width, propensity
):  # fmt: skip
    """`choose_mixed` for each of the rows; row b takes decision number decision + b."""
    _, n, d1 = x.shape
    unkeyed = 0 * n
    some_x = np.empty((n, d1))
    some_z = np.empty((n, z.shape[2]))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        i, mean[b], width[b], propensity[b] = choose_mixed(
            rule, xs, zs, its, models, weights, key, unkeyed, decision + b
        )
        if i < 0:
            return b
        index[b] = place_of(i, mask, places)
    return -1


@kernel
def chances_batch_told(x, z, slots, arm_score, shared_score, ridge, noise, key, keyed, decisions, chances):
    """`chances_by_information` for each of the decisions, all among the arms in slots (n,); fills chances (B, n)."""
    nothing = np.empty(0)
    for b in range(x.shape[0]):
        if not chances_by_information(
            x[b], z[b], slots, arm_score, shared_score, ridge, noise, nothing, key, DECIDE + keyed, decisions[b],
            chances[b],
        ):  # fmt: skip
            return b
    return -1


@kernel
def chances_batch_tuned(
    x, z, slots, arm_score, shared_score, numbers, unknown, state, key, keyed, decisions, chances
):  # fmt: skip
    """`chances_tuned` for each of the decisions, all among the arms in slots (n,); fills chances (B, n)."""
    for b in range(x.shape[0]):
        if not chances_tuned(
            x[b], z[b], slots, arm_score, shared_score, numbers, unknown, state, key, keyed, decisions[b], chances[b]
        ):
            return b
    return -1
