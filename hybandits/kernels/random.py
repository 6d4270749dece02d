"""Random numbers that are a function of a seed and a place: counter-based, so that nothing has to be remembered.

The generator is Philox 4x32-10 (Salmon, Moraes, Dror & Shaw 2011): ten rounds of multiplication turn a counter of four
32-bit words, under a key of two, into four words that pass every known test. Here

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

DECIDE, MIX, ESTIMATE, LEARN, MODEL = range(5)
"""Purposes of random numbers: a decision, the lot between two arms, the estimate of propensities, learning, and the lot
among models."""

KEYED = 16
"""Added to a purpose where the decision is named by the caller's key instead of counted."""

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

    Words of 32 bits in the low halves of 64-bit integers; the key grows by a constant after every round.
    """
    for _ in range(10):
        p0 = MULTIPLIER_0 * c0
        p1 = MULTIPLIER_1 * c2
        c0 = (p1 >> HALF) ^ c1 ^ k0
        c1 = p1 & LOW
        c2 = (p0 >> HALF) ^ c3 ^ k1
        c3 = p0 & LOW
        k0 = (k0 + WEYL_0) & LOW
        k1 = (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@kernel
def fill_uniforms(key, purpose, decision, out):
    """out: numbers uniform in (0, 1), never 0 nor 1: (the first 53 of 64 bits + 1/2) 2^-53."""
    k0 = np.uint64(key) & LOW
    k1 = np.uint64(key) >> HALF
    d0 = np.uint64(decision) & LOW
    d1 = np.uint64(decision) >> HALF
    n = out.shape[0]
    use = np.uint64(purpose)
    eleven = np.uint64(11)
    for i in range(0, n, 2):
        a, b, c, d = philox(np.uint64(i // 2), use, d0, d1, k0, k1)
        out[i] = (np.float64(((a << HALF) | b) >> eleven) + 0.5) * 2.0**-53
        if i + 1 < n:
            out[i + 1] = (np.float64(((c << HALF) | d) >> eleven) + 0.5) * 2.0**-53


@kernel
def normal_quantile(p):
    """Phi^-1(p) to 1e-15 relative (Wichura 1988, algorithm AS 241), p in (0, 1)."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        top = ((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
            + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r
            + 133.14166789178437745) * r + 3.387132872796366608  # fmt: skip
        bottom = ((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
            + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083) * r
            + 42.313330701600911252) * r + 1.0  # fmt: skip
        return q * top / bottom
    r = p if q < 0.0 else 1.0 - p
    r = math.sqrt(-math.log(r))
    if r <= 5.0:
        r -= 1.6
        top = ((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
            + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055) * r
            + 4.6303378461565452959) * r + 1.42343711074968357734  # fmt: skip
        bottom = ((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r
            + 0.14810397642748007459) * r + 0.68976733498510000455) * r + 1.6763848301838038494) * r
            + 2.05319162663775882187) * r + 1.0  # fmt: skip
    else:
        r -= 5.0
        top = ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 0.0012426609473880784386) * r
            + 0.026532189526576123093) * r + 0.29656057182850489123) * r + 1.7848265399172913358) * r
            + 5.4637849111641143699) * r + 6.6579046435011037772  # fmt: skip
        bottom = ((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r
            + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r
            + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1.0  # fmt: skip
    return -top / bottom if q < 0.0 else top / bottom


@kernel
def fill_normals(key, purpose, decision, out):
    """out: standard normals, the quantiles of `fill_uniforms`."""
    fill_uniforms(key, purpose, decision, out)
    for i in range(out.shape[0]):
        out[i] = normal_quantile(out[i])


@kernel
def uniform(key, purpose, decision):
    """One number uniform in (0, 1)."""
    out = np.empty(1)
    fill_uniforms(key, purpose, decision, out)
    return out[0]


@kernel
def fill_coarse_normals(key, purpose, decision, out):
    """out: draws from `COARSE`, twelve from a block: ten bits choose a value. For averages over many draws."""
    k0 = np.uint64(key) & LOW
    k1 = np.uint64(key) >> HALF
    d0 = np.uint64(decision) & LOW
    d1 = np.uint64(decision) >> HALF
    use = np.uint64(purpose)
    ten = np.uint64(10)
    twenty = np.uint64(20)
    mask = np.uint64(1023)
    n = out.shape[0]
    i = 0
    while i + 12 <= n:
        a, b, c, d = philox(np.uint64(i // 12), use, d0, d1, k0, k1)
        out[i] = COARSE[a & mask]
        out[i + 1] = COARSE[(a >> ten) & mask]
        out[i + 2] = COARSE[(a >> twenty) & mask]
        out[i + 3] = COARSE[b & mask]
        out[i + 4] = COARSE[(b >> ten) & mask]
        out[i + 5] = COARSE[(b >> twenty) & mask]
        out[i + 6] = COARSE[c & mask]
        out[i + 7] = COARSE[(c >> ten) & mask]
        out[i + 8] = COARSE[(c >> twenty) & mask]
        out[i + 9] = COARSE[d & mask]
        out[i + 10] = COARSE[(d >> ten) & mask]
        out[i + 11] = COARSE[(d >> twenty) & mask]
        i += 12
    if i < n:
        a, b, c, d = philox(np.uint64(i // 12), use, d0, d1, k0, k1)
        for j in range(n - i):
            word = a if j < 3 else (b if j < 6 else (c if j < 9 else d))
            out[i + j] = COARSE[(word >> (ten * np.uint64(j % 3))) & mask]
