"""The evidence step and the rebuilding of posterior factors for models with many features, in short slices.

With more than `evidence.LARGE` features a refresh takes seconds, so every part of it is done in slices that take
milliseconds, over the rows that follow.

A step of `evidence` inverts a p x p factor, p = d1 + d2, which takes seconds where there are thousands of features.
Here it is solved in the rows instead, of which the factors hold at most d1, p of dropped arms, and a share of the arms'
own: with X the rows of theta, each over the root of its ridge (X = T A^-1/2), the triangle G of

    Q (I; X') = (G; 0)        has        G' G = I + X X' = C,

the variance of the rewards given m. With L = G'^-1, every column x of X, and every own parameter's column (rows of its
arm times b^-1/2), is solved for v = L x, and then

    effective parameters = |v|^2 - |L_m Z' v|^2,        estimate = v.(z - Z m),

where Z and z are L times the columns of m and the right-hand sides, and L_m = R_m^-T with R_m' R_m = diag(g) + Z' Z,
from which m follows. As in `evidence`, nothing is subtracted from a square on the way to G and R_m.

Rows are ordered by their first feature that is not 0, the last first, so that the triangles of the data stay triangles:
reflection t concerns only the features from the first one of row t on. Matrices are kept in blocks of eight columns,
row after row, so that a block stays in the cache and four rows of it fill the registers.

The state of a step is a `Step`, plain arrays, and `advance` continues it for some operations. It works on a copy of the
rows, so rows that are learned in the meantime make no difference to it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    SMALLEST,
    factor_size,
    invert_triangle,
    reflect_rows,
    rotate_inverse,
    rotate_row,
    unpacked,
)
from hybandits.kernels.evidence import begin_at_centres, dot, set_scales, weight_of, whitened_rows
from hybandits.kernels.simd import load4, muladd4, splat4, spread4, store4

WIDE = 8
"""Columns of a block."""
FAST = 0.2
"""The cost of a multiplication and addition here, in the operations that budgets are in."""
FILL, REFLECT, MIXED, FEATURES, OWN, DONE = range(6)
"""Stages of a step."""


class Rows(NamedTuple):
    """Rows (T | M | e): row t has the columns first[t] .. first[t] + length[t] - 1, at values[offset[t] :]."""

    values: Any
    offset: Any
    first: Any
    length: Any
    e: Any


class Step(NamedTuple):
    """A step in progress."""

    rows: Rows
    prior: Any
    """The ridges (a, g)."""
    b: Any
    edges: Any
    """The rows of arm i are edges[i] .. edges[i + 1] - 1, the last ones."""
    right: Any
    """X', in blocks of eight rows of X: [block][feature][row]."""
    triangle: Any
    """G, in blocks: [block][row][column]."""
    mixed: Any
    """(Z, z - Z m), in blocks; before they are solved for, the columns of m and e."""
    spread: Any
    """L_m, (d2, d2)."""
    estimate: Any
    """(theta, m)."""
    known: Any
    """Effective parameters of (theta, m), then those of the arms' own for every feature of z."""
    own_squares: Any
    """sum_i delta_ik^2."""
    at: Any
    """The stage, and the place in it."""
    sums: Any
    """The squares that are left over, the log determinant, sum_ik b_k delta_ik^2."""


@kernel(inline=True)
def add_products(count, sign, a, ao, along, across, b, bo, c, co):
    """c[r] += sign sum_i a_ir b[i] for four rows r of eight columns; a_ir is a[ao + i along + r across]."""
    plus = splat4(0.0)
    c0, d0, c1, d1, c2, d2, c3, d3 = plus, plus, plus, plus, plus, plus, plus, plus
    for _ in range(count):
        left = load4(b, bo)
        right = load4(b, bo + 4)
        a0 = spread4(a, ao)
        a1 = spread4(a, ao + across)
        a2 = spread4(a, ao + 2 * across)
        a3 = spread4(a, ao + 3 * across)
        c0 = muladd4(a0, left, c0)
        d0 = muladd4(a0, right, d0)
        c1 = muladd4(a1, left, c1)
        d1 = muladd4(a1, right, d1)
        c2 = muladd4(a2, left, c2)
        d2 = muladd4(a2, right, d2)
        c3 = muladd4(a3, left, c3)
        d3 = muladd4(a3, right, d3)
        ao += along
        bo += 8
    plus = splat4(sign)
    store4(c, co, muladd4(plus, c0, load4(c, co)))
    store4(c, co + 4, muladd4(plus, d0, load4(c, co + 4)))
    store4(c, co + 8, muladd4(plus, c1, load4(c, co + 8)))
    store4(c, co + 12, muladd4(plus, d1, load4(c, co + 12)))
    store4(c, co + 16, muladd4(plus, c2, load4(c, co + 16)))
    store4(c, co + 20, muladd4(plus, d2, load4(c, co + 20)))
    store4(c, co + 24, muladd4(plus, c3, load4(c, co + 24)))
    store4(c, co + 28, muladd4(plus, d3, load4(c, co + 28)))


@kernel
def reflect_panel(k, blocks, features, first, right, triangle):
    """Reflections 8k .. 8k+7 of (I; X'): rows 8k .. 8k+7 of G, and the columns of X' behind them.

    features: the number of rows of X', a multiple of four; the reflections concern those from `first` on. The columns
    8k .. of X' then hold the v of the reflections I + scale (top, v) (top, v)'.
    """
    rows = WIDE * blocks
    here = k * features * WIDE
    tops = np.empty(WIDE)
    scales = np.zeros(WIDE)
    cross = np.zeros(WIDE * WIDE)
    product = np.zeros(WIDE)
    start = 0 * k
    for q in range(WIDE):
        low = splat4(0.0)
        high = low
        for j in range(here + WIDE * first, here + WIDE * features, WIDE):
            v = spread4(right, j + q)
            low = muladd4(v, load4(right, j), low)
            high = muladd4(v, load4(right, j + 4), high)
        store4(cross, q * WIDE, low)
        store4(cross, q * WIDE + 4, high)
        total = cross[q * WIDE + q]
        at = (k * rows + WIDE * k + q) * WIDE
        triangle[at + q] = 1.0
        if total > SMALLEST:
            r = math.sqrt(1.0 + total)
            tops[q] = -total / (1.0 + r)
            scales[q] = -2.0 / (tops[q] * tops[q] + total)
            triangle[at + q] = r
            for c in range(WIDE):
                product[c] = scales[q] * cross[q * WIDE + c] if c > q else 0.0
                if c > q:
                    triangle[at + c] = tops[q] * product[c]
            low = load4(product, start)
            high = load4(product, start + 4)
            for j in range(here + WIDE * first, here + WIDE * features, WIDE):
                v = spread4(right, j + q)
                store4(right, j, muladd4(v, low, load4(right, j)))
                store4(right, j + 4, muladd4(v, high, load4(right, j + 4)))
    products = np.empty(WIDE * WIDE)
    for c in range(k + 1, blocks):
        there = c * features * WIDE
        products[:] = 0.0
        for r in range(0, WIDE, 4):
            add_products(
                features - first, 1.0, right, here + WIDE * first + r, WIDE, 1, right, there + WIDE * first, products,
                WIDE * r,
            )  # fmt: skip
        for q in range(WIDE):
            for i in range(WIDE):
                value = products[q * WIDE + i]
                for u in range(q):
                    value += cross[q * WIDE + u] * products[u * WIDE + i]
                products[q * WIDE + i] = scales[q] * value
                triangle[(c * rows + WIDE * k + q) * WIDE + i] = (
                    tops[q] * products[q * WIDE + i] if scales[q] != 0.0 else 0.0
                )
        for j in range(first, features, 4):
            add_products(WIDE, 1.0, right, here + WIDE * j, 1, WIDE, products, start, right, there + WIDE * j)


@kernel
def solve_block(blocks, first, triangle, columns, o):
    """columns = L columns for eight columns, whose rows before the block `first` are 0: G' is lower triangular."""
    rows = WIDE * blocks
    for t in range(first, blocks):
        g = t * rows * WIDE
        for r in range(0, WIDE, 4):
            add_products(
                WIDE * (t - first), -1.0, triangle, g + WIDE * WIDE * first + r, WIDE, 1, columns,
                o + WIDE * WIDE * first, columns, o + WIDE * (WIDE * t + r),
            )  # fmt: skip
        for q in range(WIDE):
            at = o + WIDE * (WIDE * t + q)
            pivot = g + WIDE * (WIDE * t)
            for u in range(q):
                factor = triangle[pivot + WIDE * u + q]
                for c in range(WIDE):
                    columns[at + c] -= factor * columns[o + WIDE * (WIDE * t + u) + c]
            for c in range(WIDE):
                columns[at + c] /= triangle[pivot + WIDE * q + q]


@kernel
def known_of_block(blocks, first, d2, columns, mixed, spread, known, estimate):
    """Effective parameters and estimates of eight columns that `solve_block` has solved for."""
    rows = WIDE * blocks
    known[:] = 0.0
    crossed = np.zeros((d2 // WIDE + 1) * WIDE * WIDE)
    for t in range(WIDE * WIDE * first, WIDE * rows):
        known[t % WIDE] += columns[t] * columns[t]
    for m in range(d2 // WIDE + 1):
        for r in range(0, WIDE, 4):
            add_products(
                rows - WIDE * first, 1.0, columns, WIDE * WIDE * first + r, WIDE, 1, mixed,
                m * rows * WIDE + WIDE * WIDE * first, crossed, m * WIDE * WIDE + WIDE * r,
            )  # fmt: skip
    for c in range(WIDE):
        estimate[c] = crossed[(d2 // WIDE) * WIDE * WIDE + c * WIDE + d2 % WIDE]
        for i in range(d2):
            total = 0.0
            for j in range(i + 1):
                total += spread[i, j] * crossed[(j // WIDE) * WIDE * WIDE + c * WIDE + j % WIDE]
            known[c] -= total * total
        known[c] = max(0.0, known[c])


@kernel
def start_of_row(k, d):
    """The place of row k in a packed triangle of dimension d."""
    return k * d - k * (k - 1) // 2


@kernel
def copied_rows(d1, d2, data, more):
    """The rows of theta and of dropped arms that are not 0, those that begin last first; space for more whole rows."""
    p = d1 + d2
    count = 0
    size = 0
    for k in range(p):
        if k < d1 and data.shared[start_of_row(k, d1)] != 0.0:
            count += 1
            size += d1 - k
        if data.dropped[start_of_row(k, p)] != 0.0:
            count += 1
            size += p - k
    n = count + more
    rows = Rows(
        np.empty(size + more * p), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    )
    t = 0
    o = 0
    for k in range(p - 1, -1, -1):
        for triangle, rhs, d in ((data.dropped, data.dropped_rhs, p), (data.shared, data.shared_rhs, d1)):
            if k < d and triangle[start_of_row(k, d)] != 0.0:
                s = start_of_row(k, d)
                rows.values[o : o + d - k] = triangle[s : s + d - k]
                rows.offset[t] = o
                rows.first[t] = k
                rows.length[t] = d - k
                rows.e[t] = rhs[k]
                o += d - k
                t += 1
    return rows, t, o


@kernel
def begin_step(slots, d1, d2, model):
    """A `Step` at the scales of a model, for these arms; X' and G are left to `with_buffers`."""
    state, data = model.state[0], model.data
    p = d1 + d2
    prior = np.empty(p)
    b = begin_at_centres(d1, model, prior)
    own, e, edges, log_dets = whitened_rows(slots, d1, d2, data, b)
    rows, count, size = copied_rows(d1, d2, data, edges[-1])
    edges += count
    rows.values[size:] = own
    for t in range(count, rows.e.shape[0]):
        rows.offset[t] = size + (t - count) * p
        rows.first[t] = 0
        rows.length[t] = p
        rows.e[t] = e[t - count]
    blocks = (rows.e.shape[0] + WIDE - 1) // WIDE
    mixed = np.zeros((d2 // WIDE + 1) * blocks * WIDE * WIDE)
    for t in range(rows.e.shape[0]):
        last = rows.first[t] + rows.length[t]
        for k in range(max(d1, rows.first[t]), last):
            place = (k - d1) // WIDE * blocks * WIDE + t
            mixed[place * WIDE + (k - d1) % WIDE] = rows.values[rows.offset[t] + k - rows.first[t]]
        mixed[(d2 // WIDE * blocks * WIDE + t) * WIDE + d2 % WIDE] = rows.e[t]
    sums = np.zeros(3)
    sums[0] = state.residual
    sums[1] = state.log_det_dropped + log_dets.sum()
    return Step(
        rows, prior, b, edges, np.empty(0), np.empty(0), mixed, np.zeros((d2, d2)), np.zeros(p), np.zeros(p + d2),
        np.zeros(d2), np.zeros(2, np.int64), sums,
    )  # fmt: skip


def with_buffers(step: Step, d1: int) -> Step:
    """The step with X' and G, zeros for now. NumPy's zeros cost no time until they are used, those of kernels do."""
    n = -(-len(step.rows.e) // WIDE) * WIDE
    return step._replace(right=np.zeros(n * (-(-d1 // 4) * 4)), triangle=np.zeros(n * n))


@kernel
def fill_block(k, d1, step):
    """Eight rows of X, each over the roots of the ridges, as columns of X'.

    A block of G is written too: its memory is new, and to touch all of it in one slice would take tens of milliseconds.
    """
    rows = step.rows
    features = (d1 + 3) // 4 * 4
    size = WIDE * ((rows.e.shape[0] + WIDE - 1) // WIDE * WIDE)
    step.triangle[k * size : (k + 1) * size] = 0.0
    for t in range(WIDE * k, min(WIDE * (k + 1), rows.e.shape[0])):
        first = rows.first[t]
        for j in range(first, min(d1, first + rows.length[t])):
            value = rows.values[rows.offset[t] + j - first] / math.sqrt(step.prior[j])
            step.right[(k * features + j) * WIDE + t - WIDE * k] = value


@kernel
def solve_for_mean(blocks, d1, d2, step):
    """m, with the posterior factor R_m of m, from the rows whose variance without m is now I."""
    rows = WIDE * blocks
    start = 0 * d1
    mixed = step.mixed
    factor = np.zeros(factor_size(d2, start))
    q = np.zeros(d2)
    o = 0
    for k in range(d2):
        factor[o] = math.sqrt(step.prior[d1 + k])
        o += d2 - k
    dense = np.empty(rows * d2)
    left = np.empty(rows)
    last = d2 // WIDE * rows * WIDE + d2 % WIDE
    for t in range(rows):
        for k in range(d2):
            dense[t * d2 + k] = mixed[(k // WIDE * rows + t) * WIDE + k % WIDE]
        left[t] = mixed[last + t * WIDE]
    reflect_rows(factor, start, q, start, d2, start, dense, start, rows, d2, left)
    step.sums[0] += dot(left, start, left, start, rows)
    triangle = unpacked(factor, start, d2, start, d2)
    invert_triangle(triangle, step.spread)
    for k in range(d2):
        prior = step.prior[d1 + k]
        width = 0.0
        step.sums[1] += 2.0 * math.log(triangle[k, k]) - math.log(prior)
        for i in range(k, d2):
            width += step.spread[i, k] * step.spread[i, k]
            step.estimate[d1 + k] += step.spread[i, k] * q[i]
        step.known[d1 + k] = max(0.0, 1.0 - prior * width)
        for t in range(rows):
            mixed[last + t * WIDE] -= mixed[(k // WIDE * rows + t) * WIDE + k % WIDE] * step.estimate[d1 + k]


@kernel
def first_row_of(j, rows):
    """The first row that may have an entry for a feature up to j."""
    low = 0
    high = rows.first.shape[0]
    while low < high:
        middle = (low + high) // 2
        if rows.first[middle] <= j:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def know_features(k, blocks, d1, d2, step):
    """Effective parameters and estimates of eight entries of theta; returns the first block of rows that they need."""
    rows = step.rows
    last = min(WIDE * (k + 1), d1)
    begin = first_row_of(last - 1, rows)
    columns = np.zeros(blocks * WIDE * WIDE)
    root = np.empty(WIDE)
    for j in range(WIDE * k, last):
        root[j - WIDE * k] = 1.0 / math.sqrt(step.prior[j])
    for t in range(begin, rows.e.shape[0]):
        first = rows.first[t]
        for j in range(max(first, WIDE * k), last):
            columns[t * WIDE + j - WIDE * k] = rows.values[rows.offset[t] + j - first] * root[j - WIDE * k]
    begin //= WIDE
    known, estimate = np.empty(WIDE), np.empty(WIDE)
    solve_block(blocks, begin, step.triangle, columns, 0 * k)
    known_of_block(blocks, begin, d2, columns, step.mixed, step.spread, known, estimate)
    for j in range(WIDE * k, last):
        step.known[j] = known[j - WIDE * k]
        step.estimate[j] = root[j - WIDE * k] * estimate[j - WIDE * k]
    return begin


@kernel
def know_own(i, blocks, d1, d2, step):
    """Add the effective parameters and the squares of an arm's own parameters; returns its first block of rows."""
    rows = step.rows
    begin = step.edges[i] // WIDE
    known, estimate = np.empty(WIDE), np.empty(WIDE)
    for k in range(0, d2, WIDE):
        columns = np.zeros(blocks * WIDE * WIDE)
        for t in range(step.edges[i], step.edges[i + 1]):
            for f in range(k, min(k + WIDE, d2)):
                columns[t * WIDE + f - k] = rows.values[rows.offset[t] + d1 + f] / math.sqrt(step.b[f])
        solve_block(blocks, begin, step.triangle, columns, 0 * k)
        known_of_block(blocks, begin, d2, columns, step.mixed, step.spread, known, estimate)
        for f in range(k, min(k + WIDE, d2)):
            step.known[d1 + d2 + f] += known[f - k]
            step.own_squares[f] += estimate[f - k] * estimate[f - k] / step.b[f]
            step.sums[2] += estimate[f - k] * estimate[f - k]
    return begin


@kernel
def advance(step, d1, d2, budget):
    """Continue a step until so many operations are spent or it is done; returns how many were spent."""
    rows = step.rows
    blocks = (rows.e.shape[0] + WIDE - 1) // WIDE
    features = (d1 + 3) // 4 * 4
    lengths = np.array([blocks, blocks, d2 // WIDE + 1, (d1 + WIDE - 1) // WIDE, step.edges.shape[0] - 1])
    groups = d2 // WIDE + 1
    at = step.at
    spent = 0.0
    while at[0] < DONE:
        k = at[1]
        if k >= lengths[at[0]]:
            if at[0] == MIXED:
                solve_for_mean(blocks, d1, d2, step)
                spent += 2.0 * WIDE * blocks * d2 * d2
            at[0] += 1
            at[1] = 0
            continue
        if spent >= budget:
            return spent
        if at[0] == FILL:
            fill_block(k, d1, step)
            spent += 60.0 * WIDE * (d1 + WIDE * blocks)
        elif at[0] == REFLECT:
            first = min(rows.first[min(WIDE * (k + 1), rows.e.shape[0]) - 1], d1) // 4 * 4
            reflect_panel(k, blocks, features, first, step.right, step.triangle)
            for q in range(WIDE):
                t = WIDE * k + q
                step.sums[1] += 2.0 * math.log(step.triangle[(k * WIDE * blocks + t) * WIDE + q])
            spent += FAST * 2.0 * WIDE * WIDE * (features - first) * (blocks - k + 2.0)
        elif at[0] == MIXED:
            solve_block(blocks, 0 * k, step.triangle, step.mixed, k * blocks * WIDE * WIDE)
            spent += FAST * WIDE * (WIDE * blocks) * (WIDE * blocks) / 2.0
        else:
            if at[0] == FEATURES:
                first = know_features(k, blocks, d1, d2, step)
                times = 1
            else:
                first = know_own(k, blocks, d1, d2, step)
                times = (d2 + WIDE - 1) // WIDE
            n = 1.0 * WIDE * (blocks - first)
            spent += times * FAST * WIDE * (n * (n / 2.0 + WIDE * (groups + 2.0)) + d2 * d2)
        at[1] += 1
    return spent


@kernel
def finish_step(step, d1, d2, model, left_out, fixed_noise):
    """Change the scales and m of a model to those after a step that is done; returns what `evidence.step` returns."""
    features = model.features
    p = d1 + d2
    u = step.estimate
    errors = step.sums[0] - step.sums[2]
    for k in range(p):
        errors -= step.prior[k] * u[k] * u[k]
    own_squares = step.own_squares.copy()
    for k in range(d2):
        own_squares[k] *= weight_of(features[d1 + k])
        features[d1 + k].m = u[d1 + k]
        for j in range(d2):
            model.mean_spread[k, j] = 0.0
            for i in range(max(k, j), d2):
                model.mean_spread[k, j] += step.spread[i, k] * step.spread[i, j]
    known, own_known = step.known[:p].copy(), step.known[p:].copy()
    return set_scales(
        d1, model, u, known, own_known, own_squares, step.sums[0], step.sums[1], max(errors, 0.0), left_out, fixed_noise
    )


# ------------------------------------------------------------------ rebuilding

FEW = 32
"""Up to d1 / FEW rows are rotated into R_0 and L_0 one by one; if there are more, L_0 is computed from R_0."""


class Rebuilding(NamedTuple):
    """Rows that are yet to become part of the next R_0."""

    rows: Rows
    at: Any
    """The place in them."""


@kernel
def begin_adding(d1, d2, model):
    """The next R_0 of the prior alone; returns the rows to be added, with m put in for arms that were dropped."""
    state, posterior, features = model.state[0], model.posterior, model.features
    rows, count, _ = copied_rows(d1, d2, model.data, 0 * d1)
    begin = 0
    while begin < count and rows.first[begin] >= d1:
        begin += 1
    for t in range(begin, count):
        for k in range(d1, rows.first[t] + rows.length[t]):
            rows.e[t] -= rows.values[rows.offset[t] + k - rows.first[t]] * features[k].m_in_use
    ranks = 0
    for i in range(state.arms):
        ranks += model.arms.rank[model.arms.order[i]]
    start = 0 * d1
    few = FEW * (count - begin + ranks) <= d1
    panel = factor_size(d1, start)
    posterior.next_factor[: posterior.next_factor.shape[0] if few else panel] = 0.0
    posterior.next_rhs[:] = 0.0
    state.inverted = d1 if few else 0
    o = 0
    for k in range(d1):
        root = math.sqrt(features[k].ridge)
        posterior.next_factor[o] = root
        o += d1 - k
        columns = min(k // 4 * 4 + 4, d1)
        if few:
            posterior.next_factor[panel + 4 * k + k % 4] = 1.0 / root
        if k % 4 == 3:
            panel += 4 * columns
    return Rebuilding(rows, np.array([begin, count]))


@kernel
def add_row(row, left, d1, model):
    """Rotate a row of theta into the next R_0, and into the rows of its L_0 that there are."""
    state, posterior = model.state[0], model.posterior
    start = 0 * d1
    c, s = np.empty(d1), np.empty(d1)
    rotate_row(posterior.next_factor, start, posterior.next_rhs, start, d1, start, row, left, c, s)
    if state.inverted > 0:
        behind = factor_size(d1, start) - state.inverted
        rotate_inverse(posterior.next_factor, behind, state.inverted, c, s, np.zeros(d1))


@kernel
def add_rows(rows, g, count, stride, d1, left, model):
    """`add_row` of several rows; rows[g + i stride :] is row i. They are reflected together if there is no L_0 yet."""
    start = 0 * d1
    posterior = model.posterior
    if model.state[0].inverted == 0:
        reflect_rows(posterior.next_factor, start, posterior.next_rhs, start, d1, start, rows, g, count, stride, left)
        return
    for i in range(count):
        add_row(rows[g + i * stride : g + i * stride + d1].copy(), left[i], d1, model)


@kernel
def add_copied_rows(rebuilding, d1, model, budget):
    """Add rows of a `Rebuilding` until so many operations are spent; returns how many were spent."""
    rows, at = rebuilding.rows, rebuilding.at
    start = 0 * d1
    spent = 0.0
    few = model.state[0].inverted > 0
    while at[0] < at[1] and spent < budget:
        n = 1 if few else min(WIDE, at[1] - at[0])
        together = np.zeros(n * d1)
        for i in range(n):
            t = at[0] + i
            for k in range(rows.first[t], min(d1, rows.first[t] + rows.length[t])):
                together[i * d1 + k] = rows.values[rows.offset[t] + k - rows.first[t]]
        left = rows.e[at[0] : at[0] + n].copy()
        add_rows(together, start, n, d1, d1, left, model)
        columns = 1.0 * (d1 - rows.first[at[0] + n - 1])
        spent += 3.0 * d1 * d1 if few else 0.3 * n * columns * columns + 10.0 * d1
        at[0] += n
    return spent


@kernel
def invert_panel(b, d, factor, inverse):
    """Rows 4b .. 4b+3 of L = R^-T, in panels from factor[inverse] on, from the rows before: R' L = I."""
    rows = min(4, d - 4 * b)
    here = inverse + 8 * b * (b + 1)
    columns = min(4 * b + 4, d)
    factor[here : here + 4 * columns] = 0.0
    upper = np.zeros(16)
    for a in range(b):
        for i in range(4):
            k = 4 * a + i
            o = k * d - k * (k - 1) // 2 + 4 * b - k
            for r in range(rows):
                upper[4 * i + r] = -factor[o + r]
        start = 0 * d
        r0, r1, r2, r3 = load4(upper, start), load4(upper, start + 4), load4(upper, start + 8), load4(upper, start + 12)
        there = inverse + 8 * a * (a + 1)
        for k in range(4 * a + 4):
            total = muladd4(spread4(factor, there), r0, load4(factor, here + 4 * k))
            total = muladd4(spread4(factor, there + 1), r1, total)
            total = muladd4(spread4(factor, there + 2), r2, total)
            store4(factor, here + 4 * k, muladd4(spread4(factor, there + 3), r3, total))
            there += 4
    for i in range(rows):
        k = 4 * b + i
        o = k * d - k * (k - 1) // 2
        factor[here + 4 * k + i] += 1.0
        for c in range(k + 1):
            factor[here + 4 * c + i] /= factor[o]
        for j in range(i + 1, rows):
            for c in range(k + 1):
                factor[here + 4 * c + j] -= factor[o + j - i] * factor[here + 4 * c + i]


@kernel
def invert_next(d1, model, budget):
    """Compute rows of the next L_0 until so many operations are spent; returns how many were spent."""
    state, posterior = model.state[0], model.posterior
    spent = 0.0
    while state.inverted < d1 and spent < budget:
        b = state.inverted // 4
        invert_panel(b, d1, posterior.next_factor, factor_size(d1, 0 * d1))
        state.inverted = min(d1, 4 * b + 4)
        spent += FAST * 32.0 * b * b + 100.0
    return spent


@kernel
def begin_inverting(d1, model):
    """Compute L_0 again from R_0, both of which stay in use meanwhile."""
    state, posterior = model.state[0], model.posterior
    posterior.next_factor[: posterior.shared_factor.shape[0]] = posterior.shared_factor
    posterior.next_rhs[:] = posterior.shared_score[:d1]
    state.inverted = 0
    state.cursor = state.arms
    state.end = state.arms
    state.phase = 1


@kernel
def use_next(d1, model):
    """Let the next R_0 and L_0 be those in use."""
    posterior = model.posterior
    size = posterior.shared_factor.shape[0]
    posterior.shared_factor[:] = posterior.next_factor[:size]
    posterior.shared_score[:d1] = posterior.next_rhs
    posterior.shared_score[d1:] = posterior.next_factor[size:]
    model.state[0].inverted = 0
