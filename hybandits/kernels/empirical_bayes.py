"""Kernels that learn rows and, now and then, the settings: noise, scales and what arms have in common.

The data are kept as factors without any ridge, rotated like those of `arrow` but from zero: [R_i T_i | q_i] per arm,
one triangle for theta, and one of (theta, m) for what arms that were dropped have left behind. Beside them are the
factors that decisions are made with, which include the prior. A refresh takes some steps of `evidence`, and then a
sweep makes the second kind from the first.

With a finite memory a row of age t (in rows) has the weight exp(-t / memory) in the data. A row of weight w is a row
times sqrt(w), so all that is needed is to multiply: factors by exp(-t / (2 memory)), sums by exp(-t / memory). The data
of an arm are multiplied when they are next used (`catch_up`), those of theta and the sums with every row (`let_pass`).
The factors to play with take rows as they come; a sweep, which is never far off, brings them up to date.

A kernel is compiled together with all kernels that it calls. What is rarely called is therefore not called by kernels:
`learn_tuned`, `advance` and the other functions without a formula are Python, and kernels that learn say when a refresh
is to go on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    LIMIT,
    REFRESH,
    arm_parameters,
    factor_size,
    reflect_rows,
    refresh_block,
    rotate_both,
    rotate_inverse,
    rotate_row,
    score_rows,
    score_size,
    transpose_times,
    update_cross,
    within_limit,
)
from hybandits.kernels.evidence import (
    CLOCK,
    HEAD,
    KEPT,
    MEAN,
    PLAYED,
    RATE,
    RELEASED,
    REST,
    S1,
    SIGMA2,
    SM,
    SPREAD,
    SQUARES,
    differences_of_dropped,
    differs,
    gather_rows,
    played_ridges,
    prior_triangle,
    rank_of,
    reflect_triangle,
    set_prior_triangle,
    set_ridges,
    spread_of_mean,
    step,
    usual_features,
    weight_of,
    whiten_arm,
)


class Arrays(NamedTuple):
    """Everything that an estimator with learned settings keeps in arrays."""

    arm_data: Any
    """[R_i | T_i] of every slot, without ridge."""
    arm_rhs: Any
    """q_i of every slot."""
    shared_data: Any
    """The triangle of theta, without ridge."""
    shared_rhs: Any
    released_data: Any
    """The triangle of (theta, m) that arms which were dropped have left behind."""
    released_rhs: Any
    numbers: Any
    """Scales, sums and what the last step found; see SIGMA2 and the names beside it."""
    seen: Any
    """How often each feature of x, then of z, was not 0, by weight."""
    varied: Any
    """Whether each of them has ever changed: 1 or 0."""
    unknown: Any
    """Of which features nothing is known at the settings played with, because they had not changed: 1 or 0."""
    state: Any
    """Counts, and how far a refresh has come; see ROWS and the names beside it."""
    order: Any
    """Slots in the order in which their arms first learned."""
    place: Any
    """Where in `order` a slot is, -1 if its arm has not learned."""
    rank: Any
    """How many rows of a slot's data factor are not 0."""
    pulls: Any
    arm_factor: Any
    """[R_i | T_i] with the prior's rows in: what is played with. Slot 0 is an arm before any data."""
    arm_score: Any
    shared_factor: Any
    shared_score: Any
    next_factor: Any
    """The R_0 that a sweep is making."""
    next_rhs: Any
    arm_clock: Any
    """How many memories had passed when a slot's data were last brought up to date; empty if nothing is forgotten."""
    arm_kept: Any
    """How many rows a slot's data hold, by weight; empty if nothing is forgotten."""


TINY = 1e-50
"""Features and rewards below this count as 0: their squares could not be told from 0."""


@kernel
def without_tiny(value):
    """The number, or 0 if it is smaller than TINY."""
    return value if abs(value) >= TINY else 0.0


@kernel
def first_changes(row, d1, d2, numbers, varied, rows):
    """Note which features of a row (z, x) differ from the first row's; True if one does for the first time."""
    usual = usual_features(numbers, d1, d2)
    new = False
    for k in range(d1 + d2):
        value = row[d2 + k] if k < d1 else row[k - d1]
        if rows == 0:
            usual[k] = value
        elif varied[k] == 0 and differs(value, usual[k]):
            varied[k] = 1
            new = True
    return new


@kernel
def take_note(row, d1, d2, reward, numbers, seen):
    """Count a row (z, x | r): the rewards' moments (Welford) and the features' squares."""
    sq1 = HEAD + 2 * d2
    sq2 = sq1 + d1
    for k in range(d1):
        value = row[d2 + k]
        seen[k] += value != 0.0
        numbers[sq1 + k] += value * value
    for k in range(d2):
        value = row[k]
        seen[d1 + k] += value != 0.0
        numbers[sq2 + k] += value * value
    difference = reward - numbers[MEAN]
    numbers[KEPT] += 1.0
    numbers[MEAN] += difference / numbers[KEPT]
    numbers[SPREAD] += difference * (reward - numbers[MEAN])
    numbers[SQUARES] += reward * reward


# ------------------------------------------------------------------ forgetting

FAINT = 1e-150
"""Entries of a factor below this count as 0, and sums of squares below this fade no further."""


@kernel
def fade(factor, start, size, by):
    """Multiply entries of a factor; what gets too small to be told from 0 is 0."""
    for i in range(start, start + size):
        value = by * factor[i]
        factor[i] = value if abs(value) > FAINT else 0.0


@kernel
def let_pass(rows, d1, d2, arrays):
    """Let the time of so many rows pass: sums become g = exp(-rows / memory) times as large, theta's rows sqrt(g).

    The data of arms wait for `catch_up`.
    """
    numbers = arrays.numbers
    elapsed = rows * numbers[RATE]
    numbers[CLOCK] += elapsed
    g = math.exp(-elapsed)
    root = math.exp(-elapsed / 2.0)
    numbers[KEPT] = max(numbers[KEPT] * g, min(numbers[KEPT], FAINT))
    numbers[REST] *= g
    if numbers[SQUARES] * g > FAINT:
        numbers[SQUARES] *= g
        numbers[SPREAD] *= g
    sq1 = HEAD + 2 * d2
    for k in range(d1 + d2):
        if numbers[sq1 + k] * g > FAINT and arrays.seen[k] * g > FAINT:
            numbers[sq1 + k] *= g
            arrays.seen[k] *= g
    start = 0 * d1
    fade(arrays.shared_data, start, arrays.shared_data.shape[0], root)
    fade(arrays.shared_rhs, start, d1, root)
    if numbers[RELEASED] > 0.0:
        numbers[RELEASED] *= g
        differed, counted = differences_of_dropped(numbers, d1, d2)
        for k in range(d2):
            differed[k] *= g
            counted[k] *= g
        fade(arrays.released_data, start, arrays.released_data.shape[0], root)
        fade(arrays.released_rhs, start, d1 + d2, root)


@kernel
def catch_up(slot, d1, d2, arrays):
    """Bring an arm's data up to date: R_i, T_i and q_i times exp(-memories since / 2)."""
    now = arrays.numbers[CLOCK]
    if now > 0.0:
        elapsed = now - arrays.arm_clock[slot]
        if elapsed > 0.0:
            root = math.exp(-elapsed / 2.0)
            f = factor_size(d2, d1)
            fade(arrays.arm_data, slot * f, f, root)
            fade(arrays.arm_rhs, slot * d2, d2, root)
            arrays.arm_kept[slot] *= math.exp(-elapsed)
            arrays.arm_clock[slot] = now


@kernel
def catch_up_some(slots, d1, d2, arrays):
    """`catch_up` of several arms."""
    for slot in slots:
        catch_up(slot, d1, d2, arrays)


def catch_up_all(d1: int, d2: int, arrays: Arrays) -> None:
    """`catch_up` of every arm that has learned."""
    catch_up_some(arrays.order[: arrays.state[COUNT]], d1, d2, arrays)


@kernel
def learn_data(slot, x, z, reward, arrays):
    """Rotate (z, x | r) into the arm's factor without ridge, what is left of it into that of theta."""
    d1 = x.shape[0]
    d2 = z.shape[0]
    start = 0 * d1
    row = np.empty(d1 + d2)
    for k in range(d2):
        row[k] = z[k]
    for k in range(d1):
        row[d2 + k] = x[k]
    c = np.empty(d1 + d2)
    s = np.empty(d1 + d2)
    f = slot * factor_size(d2, d1)
    left = rotate_row(arrays.arm_data, f, arrays.arm_rhs, slot * d2, d2, d1, row, reward, c, s)
    arrays.rank[slot] = rank_of(slot, d1, d2, arrays.arm_data)
    left = rotate_row(arrays.shared_data, start, arrays.shared_rhs, start, d1, start, row[d2:], left, c, s)
    arrays.numbers[REST] += left * left


# ------------------------------------------------------------------ the factors to play with

ROWS, NEXT, DUE, PHASE, CURSOR, END, COUNT, REFRESHES, SWEPT, UNKNOWN, TOLD = range(11)
STATE = 11
"""Places in `state`: rows learned, the row of the next refresh, whether one is due (1 or 0), what a refresh is at (0:
none, 1: the sweep, more: steps that come before it), the place in `order` that the sweep has come to and the one it
ends at, arms in `order`, refreshes so far, whether a sweep at learned settings has ended (1 or 0), how many
features have never changed, as of the last refresh, and whether noise and scales are all told (1 or 0)."""

BUDGET = 20e6
"""Floating-point operations, roughly, that one row may spend on a refresh: some ten milliseconds."""

ALONE = 3000.0
"""Operations that would take as long as fetching a small arm's block from memory."""

EARLY, FIRST = 1000, 64
"""Rows up to which refreshes are frequent, because settings still move, and thorough, because they are cheap."""

STEPS, FIRST_STEPS = 2, 4
"""Fixed-point steps of a refresh, and of the first ones."""


@kernel
def prior_rows(slot, d1, d2, triangle, m, arm_factor, arm_score):
    """R, T and q of an arm before any data: R = R_p, T = 0, q = R_p m; L and C are left to `refresh_block`."""
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    for i in range(f, f + factor_size(d2, d1)):
        arm_factor[i] = 0.0
    o = 0
    for k in range(d2):
        total = 0.0
        for j in range(k, d2):
            arm_factor[f + j - k] = triangle[o]
            total += triangle[o] * m[j]
            o += 1
        f += d2 - k + d1
        arm_score[h + k] = total


@kernel
def prior_block(slot, d1, d2, triangle, m, arm_factor, arm_score):
    """The whole block of an arm before any data."""
    prior_rows(slot, d1, d2, triangle, m, arm_factor, arm_score)
    refresh_block(arm_factor, slot * factor_size(d2, d1), arm_score, slot * score_size(d2, d1), d2, d1)


@kernel
def remake_arm(slot, d1, d2, arrays):
    """The arm's block at the present settings: its data reflected into the prior, what is left into the next R_0."""
    numbers = arrays.numbers
    catch_up(slot, d1, d2, arrays)
    _, _, m = played_ridges(numbers, d1, d2)
    prior_rows(slot, d1, d2, prior_triangle(numbers, d1, d2), m, arrays.arm_factor, arrays.arm_score)
    start = 0 * d1
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    rows = np.empty(d2 * (d1 + d2))
    q = np.empty(d2)
    count = gather_rows(arrays.arm_data, f, arrays.arm_rhs, slot * d2, d1, d2, rows, start, start, d2, q)
    reflect_rows(arrays.arm_factor, f, arrays.arm_score, h, d2, d1, rows, start, count, d1 + d2, q)
    reflect_rows(arrays.next_factor, start, arrays.next_rhs, start, d1, start, rows, d2, count, d1 + d2, q)
    refresh_block(arrays.arm_factor, f, arrays.arm_score, h, d2, d1)


@kernel
def begin_sweep(d1, d2, arrays):
    """The next R_0: the data's own rows of theta, those of dropped arms with m put in, and the rows sqrt(a_k) e_k."""
    start = 0 * d1
    a, _, m = played_ridges(arrays.numbers, d1, d2)
    next_factor = arrays.next_factor
    next_rhs = arrays.next_rhs
    o = 0
    for k in range(d1):
        next_rhs[k] = 0.0
        next_factor[o] = math.sqrt(a[k])
        for j in range(o + 1, o + d1 - k):
            next_factor[j] = 0.0
        o += d1 - k
    reflect_triangle(next_factor, next_rhs, d1, arrays.shared_data, arrays.shared_rhs, d1)
    released = arrays.released_data
    rows = np.zeros(d1 * d1)
    left = np.empty(d1)
    o = 0
    for k in range(d1):
        for j in range(k, d1):
            rows[k * d1 + j] = released[o]
            o += 1
        left[k] = arrays.released_rhs[k]
        for j in range(d2):
            left[k] -= released[o] * m[j]
            o += 1
    reflect_rows(next_factor, start, next_rhs, start, d1, start, rows, start, d1, d1, left)


@kernel
def cost_of_step(rank, d1, d2):
    """Operations of a step for an arm with so many rows: whitening, folding, what its parameters know."""
    p = d1 + d2
    return ALONE + rank * (3.0 * rank * d2 + 1.0 * rank * p + 4.0 * p * p + 2.0 * d2 * p)


@kernel
def cost_of_sweep(rank, d1, d2):
    """Operations of remaking an arm's block."""
    return ALONE + rank * (3.0 * d2 * (d2 + 2.0 * d1) + 3.0 * d1 * d1) + 1.0 * d2 * d2 * (d2 + d1)


@kernel
def take_part(order, state, d1, d2, rank, arm_kept, most):
    """The arms that a step looks at: all, or evenly spaced ones if all would cost more than `most`.

    Returns their slots, how many parameters the rows of the others determine by themselves, at most as many as there
    are rows by weight, and what the step costs.
    """
    count = state[COUNT]
    total = 0.0
    for i in range(count):
        total += cost_of_step(rank[order[i]], d1, d2)
    stride = max(1, math.ceil(total / most))
    offset = state[REFRESHES] % stride
    chosen = np.empty(count // stride + 1, np.int64)
    taken = 0
    left_out = 0.0
    cost = 2.0 * (d1 + d2) ** 3
    for i in range(count):
        slot = order[i]
        if i % stride == offset:
            chosen[taken] = slot
            taken += 1
            cost += cost_of_step(rank[slot], d1, d2)
        else:
            left_out += rank[slot] if arm_kept.shape[0] == 0 else min(1.0 * rank[slot], arm_kept[slot])
    return chosen[:taken], left_out, cost


@kernel
def play_with_learned(d1, d2, arrays, hold_scale):
    """From now on play with the settings that the last step has found, and with the features known by now."""
    numbers = arrays.numbers
    state = arrays.state
    a, b, m = played_ridges(numbers, d1, d2)
    set_ridges(numbers, arrays.seen, arrays.varied, numbers[KEPT], d1, d2, hold_scale, a, b, np.empty(d2))
    state[UNKNOWN] = 0
    for k in range(d1 + d2):
        same = arrays.varied[k] == 0 if state[ROWS] > 1 else arrays.seen[k] == 0
        arrays.unknown[k] = same and not hold_scale
        state[UNKNOWN] += arrays.varied[k] == 0
    for k in range(d2):
        m[k] = numbers[HEAD + d2 + k]
    numbers[PLAYED] = numbers[SIGMA2]
    set_prior_triangle(b, spread_of_mean(numbers, d1, d2), prior_triangle(numbers, d1, d2))


def start_sweep(d1: int, d2: int, arrays: Arrays, held: tuple[bool, bool]) -> None:
    """New settings are there: begin the next R_0, and remake the block of new arms."""
    state = arrays.state
    if state[REFRESHES] > 0:
        play_with_learned(d1, d2, arrays, held[1])
    begin_sweep(d1, d2, arrays)
    _, _, m = played_ridges(arrays.numbers, d1, d2)
    prior_block(0, d1, d2, prior_triangle(arrays.numbers, d1, d2), m, arrays.arm_factor, arrays.arm_score)
    state[CURSOR] = 0
    state[END] = state[COUNT]


@kernel
def sweep(d1, d2, arrays, spent, budget):
    """Go on remaking arms, after so much was spent, until the budget is spent too or the last is done: then R_0."""
    state = arrays.state
    start = 0 * d1
    while state[CURSOR] < state[END]:
        if spent >= budget:
            return
        slot = arrays.order[state[CURSOR]]
        remake_arm(slot, d1, d2, arrays)
        spent += cost_of_sweep(arrays.rank[slot], d1, d2)
        state[CURSOR] += 1
    for i in range(factor_size(d1, start)):
        arrays.shared_factor[i] = arrays.next_factor[i]
    for k in range(d1):
        arrays.shared_score[k] = arrays.next_rhs[k]
    refresh_block(arrays.shared_factor, start, arrays.shared_score, start, d1, start)
    if state[REFRESHES] > 0:
        state[SWEPT] = 1
    state[PHASE] = 0


def advance(d1: int, d2: int, arrays: Arrays, held: tuple[bool, bool], budget: float) -> None:
    """Go on with a refresh until it is done or the budget of this row is spent: steps first, then arm by arm."""
    state = arrays.state
    spent = 0.0
    while state[PHASE] > 1:
        if held[0] and held[1]:  # there is nothing to learn but the data
            state[PHASE] = 1
            start_sweep(d1, d2, arrays, held)
            break
        slots, left_out, cost = take_part(arrays.order, state, d1, d2, arrays.rank, arrays.arm_kept, BUDGET)
        catch_up_some(slots, d1, d2, arrays)
        step(
            slots, d1, d2, arrays.arm_data, arrays.arm_rhs, arrays.shared_data, arrays.shared_rhs, arrays.released_data,
            arrays.released_rhs, arrays.numbers, arrays.seen, arrays.varied, float(arrays.numbers[KEPT]),
            left_out, held,
        )  # fmt: skip
        state[PHASE] -= 1
        spent += cost
        if state[PHASE] == 1:
            start_sweep(d1, d2, arrays, held)
        if 2.0 * spent >= budget:  # another step may cost as much
            return
    sweep(d1, d2, arrays, spent, budget)


@kernel
def rows_between(numbers):
    """How many rows to the next refresh: a quarter or half of those there are, and at most a quarter of the memory."""
    rows = int(numbers[KEPT])
    between = (rows + 3) // 4 if rows < EARLY else rows // 2
    if numbers[RATE] > 0.0:
        between = min(between, int(0.25 / numbers[RATE]))
    return max(between, 1)


@kernel
def enter(slot, state, order, place):
    """Note that an arm has learned its first row."""
    place[slot] = state[COUNT]
    order[state[COUNT]] = slot
    state[COUNT] += 1


@kernel
def learn_row_tuned(slot, x, z, reward, arrays):
    """Learn a row, into the data's factors and into those to play with.

    Returns 0, with nothing changed, if a number is not finite or beyond LIMIT; 2 if a refresh is to go on now, by
    `advance`; otherwise 1.
    """
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return 0
    numbers = arrays.numbers
    state = arrays.state
    place = arrays.place
    pulls = arrays.pulls
    arm_factor = arrays.arm_factor
    arm_score = arrays.arm_score
    shared_factor = arrays.shared_factor
    shared_score = arrays.shared_score
    d1 = x.shape[0]
    d2 = z.shape[0]
    p = d1 + d2
    start = 0 * d1
    if place[slot] < 0:
        enter(slot, state, arrays.order, place)
        _, _, m = played_ridges(numbers, d1, d2)
        prior_block(slot, d1, d2, prior_triangle(numbers, d1, d2), m, arm_factor, arm_score)
    work = np.empty((5, p))
    plain, row, c, s, e = work[0], work[1], work[2], work[3], work[4]
    reward = without_tiny(reward)
    for k in range(d2):
        row[k] = without_tiny(z[k])
        plain[k] = row[k]
        e[k] = 0.0
    for k in range(d1):
        row[d2 + k] = without_tiny(x[k])
        plain[d2 + k] = row[d2 + k]
    new = state[UNKNOWN] > 0 and first_changes(row, d1, d2, numbers, arrays.varied, state[ROWS])
    if numbers[RATE] > 0.0:
        let_pass(1.0, d1, d2, arrays)
    if arrays.arm_clock.shape[0] > 0:
        catch_up(slot, d1, d2, arrays)
        arrays.arm_kept[slot] += 1.0
    take_note(row, d1, d2, reward, numbers, arrays.seen)
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    left_plain, left = rotate_both(
        arrays.arm_data, arrays.arm_rhs, slot * d2, reward, arm_factor, arm_score, h, reward, f, d2, d1, plain, row, c,
        s,
    )  # fmt: skip
    rotate_inverse(arm_score, h, d2, c, s, e)
    update_cross(arm_score, h, d2, d1, row, e)
    if arrays.rank[slot] < d2:
        arrays.rank[slot] = rank_of(slot, d1, d2, arrays.arm_data)
    rest_plain = plain[d2:]
    rest = row[d2:]
    if state[PHASE] == 1:  # a sweep finds an arm's own rows when it comes to the arm, but not what is left of them
        swept = place[slot] < state[CURSOR] or place[slot] >= state[END]
        kept = rest.copy() if swept else rest_plain.copy()
        kept_left = left if swept else left_plain
        rotate_row(arrays.next_factor, start, arrays.next_rhs, start, d1, start, kept, kept_left, c, s)
    for k in range(d1):
        e[k] = 0.0
    unexplained, _ = rotate_both(
        arrays.shared_data, arrays.shared_rhs, start, left_plain, shared_factor, shared_score, start, left, start, d1,
        start, rest_plain, rest, c, s,
    )  # fmt: skip
    numbers[REST] += unexplained * unexplained
    rotate_inverse(shared_score, start, d1, c, s, e)
    pulls[slot] += 1
    state[ROWS] += 1
    rows = state[ROWS]
    if pulls[slot] % REFRESH == 0:
        refresh_block(arm_factor, f, arm_score, h, d2, d1)
    if rows % REFRESH == 0:
        refresh_block(shared_factor, start, shared_score, start, d1, start)
    if (new or rows >= state[NEXT]) and (numbers[SQUARES] > 0.0 or state[SWEPT] == 1):
        state[DUE] = 1
        if rows >= state[NEXT]:
            state[NEXT] = rows + rows_between(numbers)
    if state[DUE] == 1 and state[PHASE] == 0:  # one that is under way is not begun again
        state[DUE] = 0
        state[PHASE] = 1 + (FIRST_STEPS if rows < FIRST else STEPS)
        state[REFRESHES] += 1
    return 2 if state[PHASE] > 0 else 1


@kernel
def learn_until_refresh(first, slots, x, z, rewards, arrays):
    """`learn_row_tuned` for the rows from the first on, until a refresh is to go on; returns which row comes next."""
    for i in range(first, slots.shape[0]):
        if learn_row_tuned(slots[i], x[i], z[i], rewards[i], arrays) == 2:
            return i + 1
    return slots.shape[0]


# ------------------------------------------------------------------ whole estimators


@kernel
def fold_arm_data(slot, its_slot, d1, d2, its_data, its_rhs, arrays):
    """Rotate the rows of another estimator's arm into the data factors, as if they had been learned."""
    if arrays.place[slot] < 0:
        enter(slot, arrays.state, arrays.order, arrays.place)
    catch_up(slot, d1, d2, arrays)
    p = d1 + d2
    start = 0 * d1
    rows = np.empty(d2 * p)
    q = np.empty(d2)
    its_rows = its_slot * factor_size(d2, d1)
    count = gather_rows(its_data, its_rows, its_rhs, its_slot * d2, d1, d2, rows, start, start, d2, q)
    for k in range(count):
        row = rows[k * p : (k + 1) * p]
        learn_data(slot, row[d2:], row[:d2], q[k], arrays)


@kernel
def fold_rows(slots, x, z, rewards, arrays):
    """Rotate rows into the data factors; nothing else is noted of them."""
    for i in range(slots.shape[0]):
        slot = slots[i]
        if arrays.place[slot] < 0:
            enter(slot, arrays.state, arrays.order, arrays.place)
        learn_data(slot, x[i], z[i], rewards[i], arrays)


@kernel
def fold_shared_data(d1, d2, its_data, its_rhs, its_released, its_released_rhs, arrays):
    """Take another estimator's rows of theta, and those of (theta, m), into the data factors."""
    numbers = arrays.numbers
    numbers[REST] += reflect_triangle(arrays.shared_data, arrays.shared_rhs, d1, its_data, its_rhs, d1)
    p = d1 + d2
    numbers[REST] += reflect_triangle(arrays.released_data, arrays.released_rhs, p, its_released, its_released_rhs, p)


@kernel
def release_rows(slot, d1, d2, width, arrays):
    """Integrate an arm's own parameters out: its rows, whitened at the settings played with, become rows of (theta, m).

    How much the arm differed from the common mean is kept too, as it is estimated now. width: those of its parameters.
    """
    numbers = arrays.numbers
    catch_up(slot, d1, d2, arrays)
    _, b, m = played_ridges(numbers, d1, d2)
    p = d1 + d2
    start = 0 * d1
    differed, counted = differences_of_dropped(numbers, d1, d2)
    theta = np.zeros(4 * ((d1 + 3) // 4))
    transpose_times(arrays.shared_score, start, d1, arrays.shared_score, theta)
    beta = np.zeros(4 * ((d2 + 3) // 4))
    arm_parameters(arrays.arm_score, slot * score_size(d2, d1), d1, d2, theta, beta)
    for k in range(d2):
        w = weight_of(numbers[HEAD + 2 * d2 + d1 + k], arrays.seen[d1 + k])
        differed[k] += w * (beta[k] - m[k]) ** 2
        counted[k] += max(0.0, 1.0 - b[k] * width[k] * width[k])
    rows = np.empty(d2 * p)
    q = np.empty(d2)
    count = gather_rows(
        arrays.arm_data, slot * factor_size(d2, d1), arrays.arm_rhs, slot * d2, d1, d2, rows, start, d1, start, q
    )
    numbers[RELEASED] += whiten_arm(count, d1, d2, b, rows, start, q)
    reflect_rows(arrays.released_data, start, arrays.released_rhs, start, p, start, rows, start, count, p, q)
    for k in range(count):
        numbers[REST] += q[k] * q[k]


# ------------------------------------------------------------------ what policies call


def release_slot(slot: int, d1: int, d2: int, arrays: Arrays) -> None:
    """`release_rows` of an arm. Where a sweep has not come to the arm yet, it does so first."""
    state = arrays.state
    if state[PHASE] == 1 and state[CURSOR] <= arrays.place[slot] < state[END]:
        remake_arm(slot, d1, d2, arrays)
    mean, width = np.empty(d2), np.empty(d2)
    slots = np.full(d2, slot, np.int64)
    score_rows(np.zeros((d2, d1)), np.eye(d2), slots, arrays.arm_score, arrays.shared_score, 1.0, mean, width)
    release_rows(slot, d1, d2, width, arrays)


def learn_tuned(
    slot: int, x: Any, z: Any, reward: float, arrays: Arrays, held: tuple[bool, bool], budget: float = BUDGET
) -> bool:
    """Learn a row, and go on with a refresh where one is due; False, with nothing changed, if it is refused."""
    learned = learn_row_tuned(slot, x, z, reward, arrays)
    if learned == 2:
        advance(x.shape[0], z.shape[0], arrays, held, budget)
    return bool(learned)


def learn_rows_tuned(slots: Any, x: Any, z: Any, rewards: Any, arrays: Arrays, held: tuple[bool, bool]) -> None:
    """`learn_tuned` for rows that have been checked, in order."""
    learned = 0
    while learned < len(slots):
        learned = learn_until_refresh(learned, slots, x, z, rewards, arrays)
        if arrays.state[PHASE] > 0:
            advance(x.shape[1], z.shape[1], arrays, held, BUDGET)


@kernel
def any_unusual(values, first, unknown, usual):
    """Whether a candidate differs from all rows so far in a feature that never changed."""
    n, d = values.shape
    for k in range(d):
        if unknown[first + k] == 1:
            for i in range(n):
                if differs(values[i, k], usual[first + k]):
                    return True
    return False


@kernel
def make_usual(values, first, unknown, usual, variance, extra):
    """The features, with those that never changed as usual; extra_i += what is not known of candidate i by that.

    Of the parameter of such a feature nothing is known but that its like have this variance, for features of unit
    size. The size is that of the usual value or, where that is 0, of the candidate's own: so units do not matter.
    """
    known = values.copy()
    for k in range(values.shape[1]):
        c = usual[first + k]
        if unknown[first + k] == 1:
            for i in range(values.shape[0]):
                if differs(values[i, k], c):
                    ratio = (values[i, k] - c) / (c if c != 0.0 else values[i, k])
                    extra[i] += ratio * ratio * variance
                known[i, k] = c
    return known


@kernel
def as_known(x, z, unknown, numbers):
    """x and z as far as something is known of them, and what else there is to each candidate's variance.

    A feature that never changed is the same for all, as usual, so the level of the rewards stays the same; where a
    candidate differs in it, the variance of its mean grows by that of other parameters of the kind, s1 or s2 + s_m, or
    by the rewards' mean square if there are none. In units of sigma^2; empty where no candidate differs.
    """
    n, d1 = x.shape
    d2 = z.shape[1]
    usual = usual_features(numbers, d1, d2)
    start = 0 * d1
    if not (any_unusual(x, start, unknown, usual) or any_unusual(z, d1, unknown, usual)):
        return x, z, x.reshape(x.size)[:0]
    v = numbers[SQUARES] / numbers[KEPT]
    of_beta = numbers[SM]
    for k in range(d2):
        of_beta += numbers[HEAD + k] / d2
    extra = np.zeros(n)
    known_x = make_usual(x, start, unknown, usual, numbers[S1] if numbers[S1] > 0.0 else v, extra)
    known_z = make_usual(z, d1, unknown, usual, of_beta if of_beta > 0.0 else v, extra)
    for i in range(n):
        extra[i] = min(extra[i] / numbers[PLAYED], LIMIT)
    return known_x, known_z, extra


@kernel
def with_new_arms(slots):
    """Slots for scoring: arms that have not learned share the block at slot 0."""
    own = np.empty(slots.shape[0], np.int64)
    for i in range(slots.shape[0]):
        own[i] = max(slots[i], 0)
    return own


@kernel
def score_tuned(x, z, slots, arm_score, shared_score, numbers, unknown, state, mean, width):
    """`score_rows` of what is known, with what is not; the width is in units of the noise."""
    if state[UNKNOWN] == 0 or state[SWEPT] == 0:
        return score_rows(x, z, with_new_arms(slots), arm_score, shared_score, 1.0, mean, width)
    if not (within_limit(x) and within_limit(z)):
        return False
    known_x, known_z, extra = as_known(x, z, unknown, numbers)
    score_rows(known_x, known_z, with_new_arms(slots), arm_score, shared_score, 1.0, mean, width)
    for i in range(extra.shape[0]):
        width[i] = math.sqrt(width[i] * width[i] + extra[i])
    return True
