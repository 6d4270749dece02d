"""Kernels that learn rows and, now and then, the settings: noise, scales and the common mean of arms.

The data are kept as factors without a ridge (`evidence.Data`). Beside them are the posterior factors used for scoring,
which include the prior. A refresh takes some steps of `evidence` and rebuilds the posterior factors arm by arm.

With a finite memory a row of age t (in rows) has the weight exp(-t / memory) in the data. A row of weight w is a row
times sqrt(w), so all that is needed is to multiply: factors by exp(-t / (2 memory)), sums by exp(-t / memory). The data
of an arm are multiplied when they are next used (`fade_arm`), those of theta and the sums with every row (`fade`).
The posterior factors take rows as they come; the next rebuilding, which is never far off, brings them up to date.

Kernels that learn only return that a refresh is to continue, and `estimators.learned` continues it.
"""

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    LIMIT,
    REFRESH,
    arm_parameters,
    factor_size,
    reflect_rows,
    refresh_block,
    rotate_inverse,
    rotate_row,
    score_rows,
    score_size,
    transpose_times,
    unpacked,
    update_cross,
    within_limit,
)
from hybandits.kernels.evidence import (
    LARGE,
    differs,
    gather_rows,
    rank_of,
    reflect_triangle,
    set_prior_triangle,
    set_ridges,
    weight_of,
    whiten_arm,
)
from hybandits.kernels.large import add_rows, begin_adding, begin_inverting, invert_next, use_next

TINY = 1e-50
"""Features and rewards below this count as 0, because their squares underflow."""
FAINT = 1e-150
"""Entries of a factor below this count as 0, and sums of squares below this fade no further."""
ALONE = 3000.0
"""The cost of fetching a small arm's block from memory, in operations."""
EARLY, FIRST = 1000, 64
"""Rows up to which refreshes are frequent, and up to which they take FIRST_STEPS."""
STEPS, FIRST_STEPS = 2, 4
"""Fixed-point steps of a refresh, and of the first ones."""


@kernel(inline=True)
def without_tiny(value):
    """The number, or 0 if it is smaller than TINY."""
    return value if abs(value) >= TINY else 0.0


@kernel
def count_row(row, d1, d2, reward, state, features):
    """Count a row (z, x | r): the rewards' moments (Welford) and the features' squares.

    True if a feature differs from the first row's for the first time.
    """
    new = False
    for k in range(d1 + d2):
        value = row[d2 + k] if k < d1 else row[k - d1]
        features[k].seen += value != 0.0
        features[k].squares += value * value
        if state.rows == 0:
            features[k].usual = value
        elif features[k].varied == 0 and differs(value, features[k].usual):
            features[k].varied = 1
            new = True
    difference = reward - state.mean_reward
    state.weight += 1.0
    state.mean_reward += difference / state.weight
    state.spread += difference * (reward - state.mean_reward)
    state.squares += reward * reward
    return new


@kernel
def fade_entries(factor, start, size, by):
    """Multiply entries of a factor; those below FAINT become 0."""
    for i in range(start, start + size):
        value = by * factor[i]
        factor[i] = value if abs(value) > FAINT else 0.0


@kernel
def fade(rows, d1, d2, model):
    """Age a model by so many rows: sums become g = exp(-rows / memory) times as large, theta's rows sqrt(g).

    The data of arms wait for `fade_arm`.
    """
    state, features, data = model.state[0], model.features, model.data
    elapsed = rows * state.rate
    state.clock += elapsed
    g = math.exp(-elapsed)
    root = math.exp(-elapsed / 2.0)
    state.weight = max(state.weight * g, min(state.weight, FAINT))
    state.residual *= g
    if state.squares * g > FAINT:
        state.squares *= g
        state.spread *= g
    for k in range(d1 + d2):
        if features[k].squares * g > FAINT and features[k].seen * g > FAINT:
            features[k].squares *= g
            features[k].seen *= g
    start = 0 * d1
    fade_entries(data.shared, start, data.shared.shape[0], root)
    fade_entries(data.shared_rhs, start, d1, root)
    if state.log_det_dropped > 0.0:
        state.log_det_dropped *= g
        for k in range(d1, d1 + d2):
            features[k].dropped_squares *= g
            features[k].dropped_count *= g
        fade_entries(data.dropped, start, data.dropped.shape[0], root)
        fade_entries(data.dropped_rhs, start, d1 + d2, root)


@kernel(inline=True)
def fade_arm(slot, d1, d2, model):
    """Bring an arm's data up to date: R_i, T_i and q_i times exp(-memories since / 2)."""
    arms = model.arms
    now = model.state[0].clock
    if now > 0.0:
        elapsed = now - arms.clock[slot]
        if elapsed > 0.0:
            root = math.exp(-elapsed / 2.0)
            f = factor_size(d2, d1)
            fade_entries(model.data.arm, slot * f, f, root)
            fade_entries(model.data.arm_rhs, slot * d2, d2, root)
            arms.weight[slot] *= math.exp(-elapsed)
            arms.clock[slot] = now


@kernel
def fade_arms(slots, d1, d2, model):
    """`fade_arm` of several arms."""
    for slot in slots:
        fade_arm(slot, d1, d2, model)


@kernel
def prior_rows(slot, d1, d2, model):
    """R, T and q of an arm before any data: R = R_p, T = 0, q = R_p m; L and C are left to `refresh_block`."""
    posterior = model.posterior
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    posterior.arm_factor[f : f + factor_size(d2, d1)] = 0.0
    o = 0
    for k in range(d2):
        total = 0.0
        for j in range(k, d2):
            posterior.arm_factor[f + j - k] = model.prior[o]
            total += model.prior[o] * model.features[d1 + j].m_in_use
            o += 1
        f += d2 - k + d1
        posterior.arm_score[h + k] = total


@kernel
def refresh_arm(slot, d1, d2, posterior):
    """`refresh_block` of an arm."""
    f = slot * factor_size(d2, d1)
    refresh_block(posterior.arm_factor, f, posterior.arm_score, slot * score_size(d2, d1), d2, d1)


@kernel
def prior_block(slot, d1, d2, model):
    """The whole block of an arm before any data."""
    prior_rows(slot, d1, d2, model)
    refresh_arm(slot, d1, d2, model.posterior)


@kernel
def rebuild_arm(slot, d1, d2, model):
    """The arm's block at the present settings: its data reflected into the prior, what is left into the next R_0."""
    data, posterior = model.data, model.posterior
    fade_arm(slot, d1, d2, model)
    prior_rows(slot, d1, d2, model)
    start = 0 * d1
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    rows = np.empty(d2 * (d1 + d2))
    q = np.empty(d2)
    count = gather_rows(data.arm, f, data.arm_rhs, slot * d2, d1, d2, rows, start, start, d2, q)
    reflect_rows(posterior.arm_factor, f, posterior.arm_score, h, d2, d1, rows, start, count, d1 + d2, q)
    add_rows(rows, d2, count, d1 + d2, d1, q, model)
    refresh_arm(slot, d1, d2, posterior)


@kernel
def begin_with_arms(d1, d2, model):
    """The block of new arms, and the place of the first arm to be rebuilt."""
    prior_block(0 * d1, d1, d2, model)
    state = model.state[0]
    state.cursor = 0
    state.end = state.arms


@kernel
def begin_rebuilding(d1, d2, model):
    """The next R_0: the data's own rows of theta, those of dropped arms with m put in, and the rows sqrt(a_k) e_k."""
    start = 0 * d1
    data = model.data
    next_factor, next_rhs = model.posterior.next_factor, model.posterior.next_rhs
    next_factor[:] = 0.0
    next_rhs[:] = 0.0
    o = 0
    for k in range(d1):
        next_factor[o] = math.sqrt(model.features[k].ridge)
        o += d1 - k
    reflect_triangle(next_factor, next_rhs, d1, data.shared, data.shared_rhs, d1)
    rows = unpacked(data.dropped, start, d1, d2, d1 + d2)
    left = np.empty(d1)
    for k in range(d1):
        left[k] = data.dropped_rhs[k]
        for j in range(d2):
            left[k] -= rows[k, d1 + j] * model.features[d1 + j].m_in_use
    flat = rows.reshape(d1 * (d1 + d2))
    reflect_rows(next_factor, start, next_rhs, start, d1, start, flat, start, d1, d1 + d2, left)
    begin_with_arms(d1, d2, model)


@kernel
def begin_rebuilding_large(d1, d2, model):
    """`begin_rebuilding` with the rows of theta left to be added in slices; returns them."""
    rebuilding = begin_adding(d1, d2, model)
    begin_with_arms(d1, d2, model)
    return rebuilding


@kernel
def rebuild(d1, d2, model, spent, budget):
    """Continue rebuilding arms, after so many operations, until the budget is spent or the last is done: then R_0."""
    state, posterior = model.state[0], model.posterior
    start = 0 * d1
    while state.cursor < state.end:
        if spent >= budget:
            return
        slot = model.arms.order[state.cursor]
        rebuild_arm(slot, d1, d2, model)
        rank = model.arms.rank[slot]
        spent += ALONE + rank * (3.0 * d2 * (d2 + 2.0 * d1) + 3.0 * d1 * d1) + 1.0 * d2 * d2 * (d2 + d1)
        state.cursor += 1
    if d1 + d2 > LARGE:
        spent += invert_next(d1, model, budget - spent)
        if state.inverted < d1 or spent >= budget:
            return
        use_next(d1, model)
    else:
        posterior.shared_factor[:] = posterior.next_factor
        posterior.shared_score[:d1] = posterior.next_rhs
        refresh_block(posterior.shared_factor, start, posterior.shared_score, start, d1, start)
    if state.refreshes > 0:
        state.ready = 1
    state.phase = 0


@kernel(inline=True)
def cost_of_step(rank, d1, d2):
    """Operations of a step for an arm with so many rows."""
    p = d1 + d2
    return ALONE + rank * (3.0 * rank * d2 + 1.0 * rank * p + 4.0 * p * p + 2.0 * d2 * p)


@kernel
def arms_of_step(d1, d2, arms, state, most):
    """The arms of a step: all, or evenly spaced ones if all would cost more than `most`.

    Returns their slots, the number of parameters that the rows of the others determine by themselves, and the cost.
    """
    count = state.arms
    total = 0.0
    for i in range(count):
        total += cost_of_step(arms.rank[arms.order[i]], d1, d2)
    stride = max(1, math.ceil(total / most))
    offset = state.refreshes % stride
    chosen = np.empty(count // stride + 1, np.int64)
    taken = 0
    left_out = 0.0
    cost = 2.0 * (d1 + d2) ** 3
    for i in range(count):
        slot = arms.order[i]
        if i % stride == offset:
            chosen[taken] = slot
            taken += 1
            cost += cost_of_step(arms.rank[slot], d1, d2)
        else:
            left_out += min(1.0 * arms.rank[slot], arms.weight[slot])
    return chosen[:taken], left_out, cost


@kernel
def apply_settings(d1, d2, model):
    """Apply the settings of the last step, and note which features are known."""
    state, features = model.state[0], model.features
    ridge = np.empty(d1 + d2)
    set_ridges(state, features, d1, ridge, np.empty(d2))
    state.constant = 0
    for k in range(d1 + d2):
        feature = features[k]
        feature.unknown = feature.varied == 0 if state.rows > 1 else feature.seen == 0
        state.constant += feature.varied == 0
        feature.ridge = ridge[k]
        feature.m_in_use = feature.m
    state.sigma2_in_use = state.sigma2
    set_prior_triangle(ridge[d1:], model.mean_spread, model.prior)


@kernel(inline=True)
def rows_between(state):
    """Rows until the next refresh: a quarter or half of those learned, and at most a quarter of the memory."""
    rows = int(state.weight)
    between = (rows + 3) // 4 if rows < EARLY else rows // 2
    if state.rate > 0.0:
        between = min(between, int(0.25 / state.rate))
    return max(between, 1)


@kernel(inline=True)
def add_arm(slot, model):
    """Note that an arm has learned its first row."""
    state = model.state[0]
    model.arms.place[slot] = state.arms
    model.arms.order[state.arms] = slot
    state.arms += 1


@kernel(inline=True)
def schedule_refresh(new, state):
    """Begin a refresh if features are new or there are enough rows, unless one is under way."""
    rows = state.rows
    if (new or rows >= state.next) and (state.squares > 0.0 or state.ready == 1):
        state.due = 1
        if rows >= state.next:
            state.next = rows + rows_between(state)
    if state.due == 1 and state.phase == 0:
        state.due = 0
        state.phase = 1 + (FIRST_STEPS if rows < FIRST else STEPS)
        state.refreshes += 1


@kernel(inline=True)
def learn_with_settings(slot, x, z, reward, model):
    """Learn a row, into the data's factors and into those of the posterior.

    Returns 0, with nothing changed, if a number is not finite or beyond LIMIT; 2 if a refresh is to continue now;
    otherwise 1.
    """
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return 0
    data, arms, posterior, state = model.data, model.arms, model.posterior, model.state[0]
    d1 = x.shape[0]
    d2 = z.shape[0]
    start = 0 * d1
    if arms.place[slot] < 0:
        add_arm(slot, model)
        prior_block(slot, d1, d2, model)
    work = np.empty((5, d1 + d2))
    plain, row, c, s, e = work[0], work[1], work[2], work[3], work[4]
    reward = without_tiny(reward)
    for k in range(d1 + d2):
        row[k] = without_tiny(z[k] if k < d2 else x[k - d2])
        plain[k] = row[k]
        e[k] = 0.0
    if state.rate > 0.0:
        fade(1.0, d1, d2, model)
    fade_arm(slot, d1, d2, model)
    arms.weight[slot] += 1.0
    new = count_row(row, d1, d2, reward, state, model.features)
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    left_plain = rotate_row(data.arm, f, data.arm_rhs, slot * d2, d2, d1, plain, reward, c, s)
    left = rotate_row(posterior.arm_factor, f, posterior.arm_score, h, d2, d1, row, reward, c, s)
    rotate_inverse(posterior.arm_score, h, d2, c, s, e)
    update_cross(posterior.arm_score, h, d2, d1, row, e)
    if arms.rank[slot] < d2:
        arms.rank[slot] = rank_of(slot, d1, d2, data.arm)
    rest_plain = plain[d2:]
    rest = row[d2:]
    if state.phase == 1:  # rebuilding finds an arm's own rows when it comes to the arm, but not what is left of them
        rebuilt = arms.place[slot] < state.cursor or arms.place[slot] >= state.end
        kept = rest.copy() if rebuilt else rest_plain.copy()
        kept_left = left if rebuilt else left_plain
        rotate_row(posterior.next_factor, start, posterior.next_rhs, start, d1, start, kept, kept_left, c, s)
        if state.inverted > 0:
            e[:] = 0.0
            behind = factor_size(d1, start) - state.inverted
            rotate_inverse(posterior.next_factor, behind, state.inverted, c, s, e)
    for k in range(d1):
        e[k] = 0.0
    unexplained = rotate_row(data.shared, start, data.shared_rhs, start, d1, start, rest_plain, left_plain, c, s)
    rotate_row(posterior.shared_factor, start, posterior.shared_score, start, d1, start, rest, left, c, s)
    state.residual += unexplained * unexplained
    rotate_inverse(posterior.shared_score, start, d1, c, s, e)
    arms.pulls[slot] += 1
    state.rows += 1
    if arms.pulls[slot] % REFRESH == 0:
        refresh_arm(slot, d1, d2, posterior)
    if state.rows % REFRESH == 0 and d1 + d2 <= LARGE:
        refresh_block(posterior.shared_factor, start, posterior.shared_score, start, d1, start)
    schedule_refresh(new, state)
    if state.rows % REFRESH == 0 and d1 + d2 > LARGE and state.phase == 0:
        begin_inverting(d1, model)
    return 2 if state.phase > 0 else 1


@kernel
def add_data(slots, x, z, rewards, model):
    """Rotate rows into the data factors, and nothing else."""
    data, arms, state = model.data, model.arms, model.state[0]
    n, d1 = x.shape
    d2 = z.shape[1]
    start = 0 * d1
    row = np.empty(d1 + d2)
    c = np.empty(d1 + d2)
    s = np.empty(d1 + d2)
    for i in range(n):
        slot = slots[i]
        if arms.place[slot] < 0:
            add_arm(slot, model)
        row[:d2] = z[i]
        row[d2:] = x[i]
        f = slot * factor_size(d2, d1)
        left = rotate_row(data.arm, f, data.arm_rhs, slot * d2, d2, d1, row, rewards[i], c, s)
        arms.rank[slot] = rank_of(slot, d1, d2, data.arm)
        left = rotate_row(data.shared, start, data.shared_rhs, start, d1, start, row[d2:], left, c, s)
        state.residual += left * left


@kernel
def add_arm_of(slot, source, d1, d2, other, model):
    """Rotate the rows of another model's arm into the data factors, as if they had been learned."""
    fade_arm(slot, d1, d2, model)
    p = d1 + d2
    start = 0 * d1
    rows = np.empty(d2 * p)
    q = np.empty(d2)
    f = source * factor_size(d2, d1)
    count = gather_rows(other.arm, f, other.arm_rhs, source * d2, d1, d2, rows, start, start, d2, q)
    whole = rows.reshape((d2, p))[:count]
    slots = np.full(count, slot)
    add_data(slots, whole[:, d2:].copy(), whole[:, :d2].copy(), q, model)
    if model.arms.place[slot] < 0:
        add_arm(slot, model)


@kernel
def marginalise(slot, d1, d2, model):
    """Integrate an arm's own parameters out: its rows, whitened at the settings in use, become rows of (theta, m).

    How much the arm differed from the common mean is kept too, as it is estimated now.
    """
    data, posterior, features, state = model.data, model.posterior, model.features, model.state[0]
    p = d1 + d2
    start = 0 * d1
    mean = np.empty(d2)
    width = np.empty(d2)
    slots = np.full(d2, slot)
    score_rows(np.zeros((d2, d1)), np.eye(d2), slots, posterior.arm_score, posterior.shared_score, 1.0, mean, width)
    fade_arm(slot, d1, d2, model)
    theta = np.zeros(4 * ((d1 + 3) // 4))
    transpose_times(posterior.shared_score, start, d1, posterior.shared_score, theta)
    beta = np.zeros(4 * ((d2 + 3) // 4))
    arm_parameters(posterior.arm_score, slot * score_size(d2, d1), d1, d2, theta, beta)
    b = np.empty(d2)
    for k in range(d2):
        feature = features[d1 + k]
        b[k] = feature.ridge
        feature.dropped_squares += weight_of(feature) * (beta[k] - feature.m_in_use) ** 2
        feature.dropped_count += max(0.0, 1.0 - b[k] * width[k] * width[k])
    rows = np.empty(d2 * p)
    q = np.empty(d2)
    f = slot * factor_size(d2, d1)
    count = gather_rows(data.arm, f, data.arm_rhs, slot * d2, d1, d2, rows, start, d1, start, q)
    state.log_det_dropped += whiten_arm(count, d1, d2, b, rows, start, q)
    reflect_rows(data.dropped, start, data.dropped_rhs, start, p, start, rows, start, count, p, q)
    for k in range(count):
        state.residual += q[k] * q[k]


@kernel
def variance_of_unknown(k, d1, state, features):
    """The prior variance of a parameter of which nothing is known, for a feature of unit size.

    That of others of the group, s1 or s2 + s_m, or the rewards' mean square if there are none.
    """
    total = features[k].scale
    if k >= d1:
        count = 0.0
        for j in range(d1, features.shape[0]):
            count += features[j].group == features[k].group
        for j in range(d1, features.shape[0]):
            if features[j].group == features[k].group:
                total += features[j].s2 / count
    return total if total > 0.0 else state.squares / state.weight


@kernel
def make_usual(values, first, d1, state, features, extra):
    """The features, with those that never changed as usual; extra_i += the variance that this adds for candidate i.

    The size of such a feature is that of the usual value or, where that is 0, of the candidate's own: so units do not
    matter.
    """
    known = values.copy()
    for k in range(values.shape[1]):
        c = features[first + k].usual
        if features[first + k].unknown == 1:
            variance = -1.0
            for i in range(values.shape[0]):
                if differs(values[i, k], c):
                    if variance < 0.0:
                        variance = variance_of_unknown(first + k, d1, state, features)
                    ratio = (values[i, k] - c) / (c if c != 0.0 else values[i, k])
                    extra[i] += ratio * ratio * variance
                known[i, k] = c
    return known


@kernel
def as_known(x, z, state, features):
    """x and z with features that never changed as usual, and each candidate's additional variance in units of sigma^2.

    Where a candidate differs in such a feature, the variance of its mean grows by `variance_of_unknown`.
    """
    n, d1 = x.shape
    extra = np.zeros(n)
    known_x = make_usual(x, 0 * d1, d1, state, features, extra)
    known_z = make_usual(z, d1, d1, state, features, extra)
    for i in range(n):
        extra[i] = min(extra[i] / state.sigma2_in_use, LIMIT)
    return known_x, known_z, extra


@kernel
def score_at_learned(x, z, slots, arm_score, shared_score, states, features, mean, width):
    """`score_rows` at learned settings; widths are in units of the noise.

    Arms that have not learned share the block at slot 0.
    """
    state = states[0]  # an array, because Python passes it faster than a record
    slots = np.maximum(slots, 0)
    if state.constant == 0 or state.ready == 0:
        return score_rows(x, z, slots, arm_score, shared_score, 1.0, mean, width)
    if not (within_limit(x) and within_limit(z)):
        return False
    known_x, known_z, extra = as_known(x, z, state, features)
    score_rows(known_x, known_z, slots, arm_score, shared_score, 1.0, mean, width)
    for i in range(extra.shape[0]):
        width[i] = math.sqrt(width[i] * width[i] + extra[i])
    return True
