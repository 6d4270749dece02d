"""Random numbers as a function of a seed and a counter, without state.

The generator is Philox 4x32-10 (Salmon, Moraes, Dror & Shaw 2011): ten rounds of multiplication turn a counter of four
32-bit words, under a key of two, into four words that pass every known test. Four counters go side by side. Here

    key      = 64 bits made from the policy's seed,
    counter  = (number of the block, purpose, decision: 64 bits),

so the numbers of a decision depend on the seed, the decision and what they are for, and on nothing that came before. A
block of four words gives two numbers of 53 bits each.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import (
    add4,
    div4,
    high4,
    load1,
    load4,
    low4,
    mul4,
    product4,
    splat4,
    spread4,
    store1,
    store4,
    store_pairs4,
    store_words4,
    sub4,
    unit4,
    words4,
    xor4,
)

DECIDE, MIX, ESTIMATE, LEARN, RANDOMIZE, MODEL = range(6)
"""Purposes: a decision, the draw between two arms, estimates of propensities, learning, randomized choices, and the
draw of a model."""

KEYED = 16
"""Added to a purpose where the decision is named by the caller's key instead of counted."""

PLACE = 32
"""Added to a purpose for every place of a ranking after the first."""

COARSE = np.array([NormalDist().inv_cdf((i + 0.5) / 1024) for i in range(1024)])
COARSE /= np.sqrt((COARSE**2).mean())
"""The normal distribution in 1,024 equally likely values of mean 0 and variance 1."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)


@kernel
def philox(c0, c1, c2, c3, k0, k1):
    """Philox 4x32-10: ten rounds (c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0)).

    Four counters at a time (`simd.words4`), their words of 32 bits in the low halves of 64-bit integers. The key is the
    same for all and grows by a constant after every round.
    """
    zero = LOW ^ LOW
    m0 = words4(MULTIPLIER_0, zero)
    m1 = words4(MULTIPLIER_1, zero)
    for _ in range(10):
        p0 = product4(m0, c0)
        p1 = product4(m1, c2)
        c0 = xor4(xor4(high4(p1), c1), words4(k0, zero))
        c1 = low4(p1)
        c2 = xor4(xor4(high4(p0), c3), words4(k1, zero))
        c3 = low4(p0)
        k0 = (k0 + WEYL_0) & LOW
        k1 = (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@kernel
def blocks(first, key, purpose, decision):
    """The four blocks from this one on: four vectors of words, one lane for each block."""
    zero = LOW ^ LOW
    decision = np.uint64(decision)
    return philox(
        words4(np.uint64(first), np.uint64(1)), words4(np.uint64(purpose), zero), words4(decision & LOW, zero),
        words4(decision >> HALF, zero), np.uint64(key) & LOW, np.uint64(key) >> HALF,
    )  # fmt: skip


@kernel
def fill_uniforms(key, purpose, decision, out):
    """out: numbers uniform in (0, 1), never 0 nor 1: (the first 53 of 64 bits + 1/2) 2^-53."""
    n = out.shape[0]
    i = 0
    while i + 8 <= n:
        a, b, c, d = blocks(i // 2, key, purpose, decision)
        store_pairs4(out, i, unit4(a, b), unit4(c, d))
        i += 8
    if i < n:
        rest = np.empty(8)
        a, b, c, d = blocks(i // 2, key, purpose, decision)
        store_pairs4(rest, 0 * n, unit4(a, b), unit4(c, d))
        for j in range(n - i):
            store1(out, i + j, load1(rest, j))


CENTRE = 0.425
"""The largest distance of a probability from 1/2 for `central_quantiles`."""
FAR = 5.0
"""The largest sqrt(-log p) for `tail_quantiles`."""


@kernel
def horner4(r, a7, a6, a5, a4, a3, a2, a1, a0):
    """(((((((a7 r + a6) r + a5) r + a4) r + a3) r + a2) r + a1) r + a0 for four r."""
    total = add4(mul4(splat4(a7), r), splat4(a6))
    total = add4(mul4(total, r), splat4(a5))
    total = add4(mul4(total, r), splat4(a4))
    total = add4(mul4(total, r), splat4(a3))
    total = add4(mul4(total, r), splat4(a2))
    total = add4(mul4(total, r), splat4(a1))
    return add4(mul4(total, r), splat4(a0))


@kernel
def central_quantiles(p):
    """Phi^-1(p) of four p within CENTRE of 1/2 (see `to_normals`)."""
    q = sub4(p, splat4(0.5))
    r = sub4(splat4(0.180625), mul4(q, q))
    top = horner4(
        r, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    )  # fmt: skip
    bottom = horner4(
        r, 5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
    )  # fmt: skip
    return div4(mul4(q, top), bottom)


@kernel
def tail_quantiles(r):
    """|Phi^-1(p)| of four p further than CENTRE from 1/2, given r = sqrt(-log of the smaller of p and 1 - p) <= FAR."""
    r = sub4(r, splat4(1.6))
    top = horner4(
        r, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
        3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
    )  # fmt: skip
    bottom = horner4(
        r, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
        0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0,
    )  # fmt: skip
    return div4(top, bottom)


@kernel
def far_quantiles(r):
    """The same for r > FAR, which happens to one p in 10^10."""
    r = sub4(r, splat4(FAR))
    top = horner4(
        r, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
        0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772,
    )  # fmt: skip
    bottom = horner4(
        r, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
        0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0,
    )  # fmt: skip
    return div4(top, bottom)


@kernel
def to_normals(p):
    """Replace numbers p in (0, 1) by Phi^-1(p), to 1e-15 relative (Wichura 1988, algorithm AS 241).

    All get the formula for the centre; those in the tails, one in seven, are collected and get theirs, so that there is
    no branch to mispredict.
    """
    n = p.shape[0]
    start = 0 * n
    tail = np.empty(n + 1)
    place = np.empty(n + 1, np.int64)
    tails = 0
    for i in range(n):
        u = load1(p, i)
        store1(tail, tails, u)
        place[tails] = i
        tails += abs(u - 0.5) > CENTRE
    root = np.empty(n + 4)
    furthest = 0.0
    for i in range(tails):
        u = load1(tail, i)
        r = math.sqrt(-math.log(min(u, 1.0 - u)))
        store1(root, i, r)
        furthest = max(furthest, r)
    whole = n - n % 4
    for i in range(0, whole, 4):
        store4(p, i, central_quantiles(load4(p, i)))
    if whole < n:
        rest = np.empty(4)
        for i in range(whole, n):
            store1(rest, i - whole, load1(p, i))
        store4(rest, start, central_quantiles(load4(rest, start)))
        for i in range(whole, n):
            store1(p, i, load1(rest, i - whole))
    quantile = np.empty(n + 4)
    for i in range(0, tails, 4):
        store4(quantile, i, tail_quantiles(load4(root, i)))
    for i in range(tails):
        store1(p, place[i], math.copysign(load1(quantile, i), load1(tail, i) - 0.5))
    if furthest > FAR:
        for i in range(tails):
            if load1(root, i) > FAR:
                store4(quantile, start, far_quantiles(spread4(root, i)))
                store1(p, place[i], math.copysign(load1(quantile, start), load1(tail, i) - 0.5))


@kernel
def fill_normals(key, purpose, decision, out):
    """out: standard normals, the quantiles of `fill_uniforms`."""
    fill_uniforms(key, purpose, decision, out)
    to_normals(out)


@kernel
def uniform(key, purpose, decision):
    """One number uniform in (0, 1)."""
    out = np.empty(1)
    fill_uniforms(key, purpose, decision, out)
    return out[0]


@kernel
def place_among(u, n):
    """One of the places 0..n-1 by a number u uniform in (0, 1): floor(u n)."""
    return min(int(u * n), n - 1)


@kernel
def fill_coarse_normals(key, purpose, decision, out):
    """out: draws from `COARSE`, twelve from a block: ten bits choose a value. For averages over many draws."""
    ten = np.uint64(10)
    mask = np.uint64(1023)
    words = np.empty(16, np.uint64)
    n = out.shape[0]
    start = 0 * n
    for i in range(0, n, 48):
        a, b, c, d = blocks(i // 12, key, purpose, decision)
        store_words4(words, start, a)
        store_words4(words, start + 4, b)
        store_words4(words, start + 8, c)
        store_words4(words, start + 12, d)
        for block in range(4):
            o = i + 12 * block
            for j in range(min(12, n - o)):
                word = words[4 * (j // 3) + block]
                out[o + j] = COARSE[(word >> (ten * np.uint64(j % 3))) & mask]
