"""The terms of a round for every estimator, and their sums over blocks of rounds.

Let pi(a) be the probability with which the policy shows arm a in a round, p the probability with which the log's own
policy showed what it did (the propensity), r the reward, w = pi(shown) / p the weight, and q(a) the mean reward that a
model predicts for arm a. The terms of the round are

    ips     w r                                      mean over rounds
    snips   w r over w                               ratio of sums
    dm      D = sum_a pi(a) q(a)                     mean over rounds
    dr      D + w (r - q(shown))                     mean over rounds
    replay  k r over k                               ratio of sums; k = pi(shown) times the chance to be kept

A policy that learns has pi = 1 for what it chooses in the round, having learned the rounds kept before, and is kept or
not (`rejection`). So its ips, snips and dr are means over all rounds, each with the policy as it was then.
"""

from __future__ import annotations

from hybandits.foundation.compiling import kernel

WEIGHT, IPS, DM, DR, MATCH, HIT, KEPT = range(7)
"""The terms of a round: w, w r, D, dr, pi(shown), pi(shown) r, k."""

TERMS = ("weight", "ips", "dm", "dr", "match", "hit", "kept")

(N, W, WW, X, XX, X0, D, Y, YY, Y0, P, PR, K, KR, KRR) = range(15)
"""Sums over a block: rounds, w, w^2; ips, its square, and its product with the first policy's; D; the same three of dr;
pi(shown), pi(shown) r; k, k r, k r^2."""

COLUMNS = KRR + 1
"""How many sums a block has."""

LARGEST, SILENT, PADDED, CERTAIN, MIXED, CLIPPED, SQUARES = range(7)
"""What is counted for a policy: its largest weight; rounds in which it shows nothing; its probability on filled-up
places, and on other arms where the log's arm was certain; rounds with 0 < k < 1; clipped weights; the sum of k^2."""

COUNTS = SQUARES + 1
"""How many of these there are."""


@kernel
def round_terms(  # type: ignore[no-untyped-def]
    pi, counts, real, shown, reward, propensity, user, pair, first, group, arm, weights, constant, fold, modelled, low,
    high, clip, chance, out, mass, eligible, tally,
):  # fmt: skip
    """Write the TERMS of rounds. Returns the first round whose probabilities are invalid, -1 if there is none.

    counts: candidates; real: those that are not filled up; shown: the place of what was shown, -1 if it was cut off;
    first: entry of the first candidate. The model's mean of group g in fold f is (u, p).weights[f, g] + constant[f, g],
    p being the pair features, if there are any; for dr it is kept within low..high. chance: with which a match is kept
    in replay (`rejection`). Added to for every arm: mass, its probability, and eligible, the rounds with any.
    """
    du = user.shape[1]
    for t in range(pi.shape[0]):
        f = fold[t]
        total, direct, kept, mine = 0.0, 0.0, 0.0, 0.0
        for k in range(counts[t]):
            p = pi[t, k]
            if not p >= 0.0:
                return t
            e = first[t] + k
            if p > 0.0:
                total += p
                mass[arm[e]] += p
                eligible[arm[e]] += 1
                if k >= real[t]:
                    tally[PADDED] += p
            if modelled and (p > 0.0 or k == shown[t]):
                g = group[e]
                q = constant[f, g]
                for i in range(du):
                    q += user[t, i] * weights[f, g, i]
                for i in range(pair.shape[2]):
                    q += pair[t, k, i] * weights[f, g, du + i]
                within = min(max(q, low), high)
                direct += p * q
                kept += p * within
                if k == shown[t]:
                    mine = within
        if total == 0.0:
            tally[SILENT] += 1
        elif abs(total - 1.0) > 1e-6:
            return t
        match = pi[t, shown[t]] if shown[t] >= 0 else 0.0
        counted = match * chance[t]
        if 0.0 < counted < 1.0:
            tally[MIXED] += 1
        tally[SQUARES] += counted * counted
        w = 0.0
        b = propensity[t]
        if 0.0 < b <= 1.0:
            w = match / b
            if b == 1.0 and total - match > 1e-9:
                tally[CERTAIN] += total - match
        if w > clip:
            w = clip
            tally[CLIPPED] += 1
        tally[LARGEST] = max(tally[LARGEST], w)
        out[t, WEIGHT] = w
        out[t, IPS] = w * reward[t]
        out[t, DM] = direct
        out[t, DR] = kept + w * (reward[t] - mine)
        out[t, MATCH] = match
        out[t, HIT] = match * reward[t]
        out[t, KEPT] = counted
    return -1


@kernel
def add_up(terms, others, reward, start, size, fold, sums):  # type: ignore[no-untyped-def]
    """Add rounds to the sums (blocks, folds, 15); t is in block (start + t) // size; others: the first policy's."""
    for t in range(terms.shape[0]):
        row = sums[(start + t) // size, fold[t]]
        w, x, y, k = terms[t, WEIGHT], terms[t, IPS], terms[t, DR], terms[t, KEPT]
        row[N] += 1.0
        row[W] += w
        row[WW] += w * w
        row[X] += x
        row[XX] += x * x
        row[X0] += x * others[t, IPS]
        row[D] += terms[t, DM]
        row[Y] += y
        row[YY] += y * y
        row[Y0] += y * others[t, DR]
        row[P] += terms[t, MATCH]
        row[PR] += terms[t, HIT]
        row[K] += k
        row[KR] += k * reward[t]
        row[KRR] += k * reward[t] * reward[t]
