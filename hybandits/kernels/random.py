"""Random numbers as a function of a seed and a counter, without state.

The generator is Philox 4x32-10 (Salmon, Moraes, Dror & Shaw 2011): ten rounds of multiplication turn a counter of four
32-bit words, under a key of two, into four words that pass every known test. Here

    key      = 64 bits made from the policy's seed,
    counter  = (number of the block, purpose, decision: 64 bits),

so the numbers of a decision depend on the seed, the decision and what they are for, and on nothing that came before. A
block of four words gives two numbers of 53 bits each.
"""

import math
from statistics import NormalDist

import numpy as np

from hybandits.foundation.compiling import kernel

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
ELEVEN = np.uint64(11)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
WEYL_0 = np.uint64(0x9E3779B9)
WEYL_1 = np.uint64(0xBB67AE85)


@kernel
def philox(key, purpose, decision, words):
    """Philox 4x32-10: fill words (4, blocks) with the words of one block in each column.

    Ten rounds (c0, c1, c2, c3) -> (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0)); the key (k0, k1)
    grows by a constant after each. Words of 32 bits are in the low halves of 64-bit integers.
    """
    for block in range(words.shape[1]):
        c0, c1, c2, c3 = np.uint64(block), np.uint64(purpose), np.uint64(decision) & LOW, np.uint64(decision) >> HALF
        k0, k1 = np.uint64(key) & LOW, np.uint64(key) >> HALF
        for _ in range(10):
            p0, p1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
            c0, c1, c2, c3 = (p1 >> HALF) ^ c1 ^ k0, p1 & LOW, (p0 >> HALF) ^ c3 ^ k1, p0 & LOW
            k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
        words[0, block], words[1, block], words[2, block], words[3, block] = c0, c1, c2, c3


@kernel
def fill_uniforms(key, purpose, decision, out):
    """out: numbers uniform in (0, 1), never 0 nor 1: (the first 53 of 64 bits + 1/2) 2^-53."""
    n = out.shape[0]
    words = np.empty((4, (n + 1) // 2), np.uint64)
    philox(key, purpose, decision, words)
    for i in range(n):
        first = 2 * (i % 2)
        bits = words[first, i // 2] << HALF | words[first + 1, i // 2]
        out[i] = (np.float64(bits >> ELEVEN) + 0.5) * 2.0**-53


CENTRE = 0.425
"""The largest distance of a probability from 1/2 for `central_quantile`."""
FAR = 5.0
"""The largest sqrt(-log p) for the first formula of `tail_quantile`; one p in 10^10 is beyond."""


@kernel(inline=True)
def horner(r, a7, a6, a5, a4, a3, a2, a1, a0):
    """a7 r^7 + .. + a1 r + a0."""
    return ((((((a7 * r + a6) * r + a5) * r + a4) * r + a3) * r + a2) * r + a1) * r + a0


@kernel(inline=True)
def central_quantile(p):
    """Phi^-1(p) for p within CENTRE of 1/2 (see `to_normals`)."""
    q = p - 0.5
    r = 0.180625 - q * q
    top = horner(
        r, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608,
    )  # fmt: skip
    bottom = horner(
        r, 5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0,
    )  # fmt: skip
    return q * top / bottom


@kernel(inline=True)
def tail_quantile(r):
    """|Phi^-1(p)| for p further than CENTRE from 1/2, given r = sqrt(-log of the smaller of p and 1 - p)."""
    if r <= FAR:
        r -= 1.6
        top = horner(
            r, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
            3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734,
        )  # fmt: skip
        bottom = horner(
            r, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
            0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0,
        )  # fmt: skip
    else:
        r -= FAR
        top = horner(
            r, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
            0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772,
        )  # fmt: skip
        bottom = horner(
            r, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
            0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0,
        )  # fmt: skip
    return top / bottom


@kernel
def to_normals(p):
    """Replace numbers p in (0, 1) by Phi^-1(p), to 1e-15 relative (Wichura 1988, algorithm AS 241).

    All get the formula for the centre; those in the tails, one in seven, are collected and get theirs, so that there is
    no branch to mispredict.
    """
    n = p.shape[0]
    tail = np.empty(n + 1)
    place = np.empty(n + 1, np.int64)
    tails = 0
    for i in range(n):
        tail[tails] = p[i]
        place[tails] = i
        tails += abs(p[i] - 0.5) > CENTRE
    for i in range(n):
        p[i] = central_quantile(p[i])
    for i in range(tails):
        u = tail[i]
        r = math.sqrt(-math.log(min(u, 1.0 - u)))
        p[place[i]] = math.copysign(tail_quantile(r), u - 0.5)


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


@kernel(inline=True)
def place_among(u, n):
    """One of the places 0..n-1 by a number u uniform in (0, 1): floor(u n)."""
    return min(int(u * n), n - 1)


@kernel
def fill_coarse_normals(key, purpose, decision, out):
    """out: draws from `COARSE`, twelve from a block: ten bits choose a value. For averages over many draws."""
    n = out.shape[0]
    ten, mask = np.uint64(10), np.uint64(1023)
    words = np.empty((4, (n + 11) // 12), np.uint64)
    philox(key, purpose, decision, words)
    whole = n // 12
    for block in range(whole):
        for j in range(4):
            word, first = words[j, block], 12 * block + 3 * j
            out[first] = COARSE[word & mask]
            out[first + 1] = COARSE[word >> ten & mask]
            out[first + 2] = COARSE[word >> ten >> ten & mask]
    for i in range(12 * whole, n):
        left = i - 12 * whole
        out[i] = COARSE[words[left // 3, whole] >> np.uint64(10 * (left % 3)) & mask]
