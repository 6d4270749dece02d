"""Many decisions against one model: the rules of `decisions`, one after another or arm by arm.

A batch has features x (B, n, d1) and z (B, n, d2). slots (B, n), or (1, n) if all decisions share their candidates, and
mask (B, n), or (0, 0) if every row is a candidate. Kernels decide for the rows first..last-1, so that threads can share
a batch, and return the first row whose numbers are not finite, -1 if there is none.
"""

from __future__ import annotations

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import FAR, score_rows, score_size
from hybandits.kernels.decisions import choose_posterior, choose_ucb, radius
from hybandits.kernels.memories import choose_mixed

TOGETHER = 8
"""Decisions that are scored arm by arm, where blocks of all arms do not fit into the cache."""


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
def choose_many_ucb(
    x, z, slots, mask, arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
):  # fmt: skip
    """`choose_ucb` for each of the rows.

    If they share their candidates and these do not fit into the cache, eight decisions are scored together, arm by arm.
    """
    _, n, d1 = x.shape
    d2 = z.shape[2]
    if mask.shape[0] == 0 and slots.shape[0] == 1 and n * score_size(d2, d1) > FAR:
        return choose_together(
            x, z, slots[0], arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
        )
    some_x = np.empty((n, d1))
    some_z = np.empty((n, d2))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        i, mean[b], width[b], _ = choose_ucb(xs, zs, its, arm_score, pulls, shared_score, ridge, coefficients, t)
        if i < 0:
            return b
        index[b] = place_of(i, mask, places)
    return -1


@kernel
def choose_together(
    x, z, slots, arm_score, pulls, shared_score, ridge, coefficients, t, first, last, index, mean, width
):  # fmt: skip
    """`choose_ucb` for each of the rows, eight at a time: an arm's block is read once for all of them.

    Eight arms are scored for eight decisions, as 64 candidates, the arms' own ones side by side.
    """
    _, n, d1 = x.shape
    d2 = z.shape[2]
    rows_x = np.empty((TOGETHER * TOGETHER, d1))
    rows_z = np.empty((TOGETHER * TOGETHER, d2))
    of_rows = np.empty(TOGETHER * TOGETHER, np.int64)
    means = np.empty(TOGETHER * TOGETHER)
    widths = np.empty(TOGETHER * TOGETHER)
    highest = np.empty(TOGETHER)
    gamma = radius(coefficients, max(t, 0))
    for start in range(first, last, TOGETHER):
        count = min(TOGETHER, last - start)
        highest[:] = -np.inf
        for left in range(0, n, TOGETHER):
            arms = min(TOGETHER, n - left)
            size = arms * count
            for i in range(arms):
                for b in range(count):
                    row = i * count + b
                    of_rows[row] = slots[left + i]
                    for k in range(d1):
                        rows_x[row, k] = x[start + b, left + i, k]
                    for k in range(d2):
                        rows_z[row, k] = z[start + b, left + i, k]
            if not score_rows(
                rows_x[:size], rows_z[:size], of_rows[:size], arm_score, shared_score, ridge, means[:size],
                widths[:size],
            ):  # fmt: skip
                return start
            for i in range(arms):
                slot = slots[left + i]
                if t < 0:
                    gamma = radius(coefficients, pulls[slot] if slot >= 0 else 0)
                for b in range(count):
                    row = i * count + b
                    value = means[row] + gamma * widths[row]
                    if value > highest[b]:
                        highest[b] = value
                        index[start + b] = left + i
                        mean[start + b] = means[row]
                        width[start + b] = widths[row]
    return -1


@kernel
def choose_many_posterior(
    rule, x, z, slots, mask, arm_score, shared_score, ridge, noise, key, decision, first, last, index, mean, width,
    propensity,
):  # fmt: skip
    """`choose_posterior` for each of the rows; row b takes decision number decision + b."""
    _, n, d1 = x.shape
    some_x = np.empty((n, d1))
    some_z = np.empty((n, z.shape[2]))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    nothing = np.empty(0)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        i, mean[b], width[b], propensity[b] = choose_posterior(
            rule, xs, zs, its, arm_score, shared_score, ridge, noise, nothing, key, 0, decision + b, -1.0
        )
        if i < 0:
            return b
        index[b] = place_of(i, mask, places)
    return -1


@kernel
def choose_many_tuned(
    rule, x, z, slots, mask, models, weights, key, decision, first, last, index, mean, width, propensity
):  # fmt: skip
    """`choose_mixed` for each of the rows; row b takes decision number decision + b."""
    _, n, d1 = x.shape
    some_x = np.empty((n, d1))
    some_z = np.empty((n, z.shape[2]))
    here = np.empty(n, np.int64)
    places = np.empty(n, np.int64)
    for b in range(first, last):
        xs, zs, its, _ = candidates_of(b, x, z, slots, mask, some_x, some_z, here, places)
        i, mean[b], width[b], propensity[b] = choose_mixed(
            rule, xs, zs, its, models, weights, key, 0, decision + b, -1.0
        )
        if i < 0:
            return b
        index[b] = place_of(i, mask, places)
    return -1
