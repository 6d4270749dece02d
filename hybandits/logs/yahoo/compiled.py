"""Ordinary lines of Yahoo's click logs, compiled: heads and users are parsed, lists of candidates are recognised.

`lines` says in plain Python what a line means; here are only its usual spellings, for speed.
"""

from __future__ import annotations

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.logs.yahoo.lines import LATEST

NEW_POOL, OTHER, IS_LONG, IS_BLANK, IS_NOT_TEXT, IS_NO_USER = range(6)
"""Classes of lines that are handed over to Python: ordinary except for their candidates, in need of a closer look, and
malformed, where all lines of a class are malformed in the same way."""

NEED_MORE, ROWS_FULL, HANDED_FULL = range(3)
"""Why `walk` stopped."""

AT, ROW, LINE, HANDED, LAST = range(5)
"""Places in the state of `walk`: position in the buffer, rows filled, lines met, lines handed over, last pool."""

TENS = 10.0 ** np.arange(16)

WORD = 7
"""How many bytes of an id go into one integer of 64 bits, so that its sign bit stays 0."""


@kernel
def find_newline(buf, at, end):  # type: ignore[no-untyped-def]
    """The first newline from `at` on; `end` if there is none."""
    while at + 64 <= end:
        block = buf[at : at + 64]
        any_newline = np.uint8(0)
        for k in range(64):
            any_newline = np.uint8(any_newline | (block[k] == 10))
        if any_newline:
            break
        at += 64
    while at < end and buf[at] != 10:
        at += 1
    return at


@kernel
def same_bytes(a, i, b, j, n):  # type: ignore[no-untyped-def]
    """Whether a[i:i+n] and b[j:j+n] are equal.

    Written without a branch, on bytes and slices, it becomes vector instructions: thirty times as fast as a loop that
    leaves at the first difference.
    """
    x, y = a[i : i + n], b[j : j + n]
    differing = np.uint8(0)
    for k in range(n):
        differing = np.uint8(differing | (x[k] ^ y[k]))
    return differing == 0


@kernel
def hash_bytes(buf, at, n):  # type: ignore[no-untyped-def]
    """A hash of n bytes with 31 bits: h <- (h xor two bytes) * odd number, in four lanes."""
    a, b, c, d = np.int64(n), np.int64(1), np.int64(2), np.int64(3)
    k = at
    while k + 8 <= at + n:
        a = ((a ^ (np.int64(buf[k]) << 8 | np.int64(buf[k + 1]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        b = ((b ^ (np.int64(buf[k + 2]) << 8 | np.int64(buf[k + 3]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        c = ((c ^ (np.int64(buf[k + 4]) << 8 | np.int64(buf[k + 5]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        d = ((d ^ (np.int64(buf[k + 6]) << 8 | np.int64(buf[k + 7]))) * 0x2545F491 + 1) & 0x7FFFFFFF
        k += 8
    while k < at + n:
        a = ((a ^ np.int64(buf[k])) * 0x2545F491 + 1) & 0x7FFFFFFF
        k += 1
    mixed = a ^ (b >> 3) ^ (c >> 7) ^ (d >> 11)
    return mixed ^ (mixed >> 15)


@kernel
def find_pool(buf, at, n, arena, spans, table):  # type: ignore[no-untyped-def]
    """The known list of candidates that equals buf[at:at+n]; -1 if there is none."""
    slot = hash_bytes(buf, at, n) % table.shape[0]
    while table[slot] >= 0:
        pool = table[slot]
        if spans[pool, 1] == n and same_bytes(buf, at, arena, spans[pool, 0], n):
            return pool
        slot = (slot + 1) % table.shape[0]
    return -1


@kernel
def classify(buf, at, end, longest):  # type: ignore[no-untyped-def]
    """The class of a line that is malformed at first sight; OTHER if it needs a closer look."""
    if end - at > longest:
        return IS_LONG
    if end > at and buf[end - 1] == 13:
        end -= 1
    blank = True
    user = False
    for k in range(at, end):
        byte = buf[k]
        if byte != 32 and byte != 9:
            blank = False
            if byte < 32 or byte > 126:
                return IS_NOT_TEXT
            if (
                byte == 124 and k + 4 < end and buf[k + 1] == 117 and buf[k + 2] == 115 and buf[k + 3] == 101
                and buf[k + 4] == 114
            ):  # fmt: skip
                user = True
    if blank:
        return IS_BLANK
    return OTHER if user else IS_NO_USER


@kernel
def parse_id(buf, at):  # type: ignore[no-untyped-def]
    """An id of up to 2 * WORD bytes as two integers, and where it ends; -1 if it is longer or empty."""
    first, second = np.int64(0), np.int64(0)
    k = 0
    while k <= 2 * WORD:
        byte = np.int64(buf[at + k])
        if byte <= 32 or byte > 126 or byte == 124:
            break
        if k < WORD:
            first |= byte << (8 * k)
        elif k < 2 * WORD:
            second |= byte << (8 * (k - WORD))
        k += 1
    if k == 0 or k > 2 * WORD:
        return first, second, -1
    return first, second, at + k


@kernel
def parse_memberships(buf, at, user):  # type: ignore[no-untyped-def]
    """Read user features " key:number" up to " |". Where the bar is; -1 if they are not in the usual spelling.

    For a number m / 10^k of up to 15 digits the division gives the nearest double: m and 10^k are exact doubles, and
    division rounds once.
    """
    seen = np.int64(0)
    while True:
        if buf[at] != 32:
            return -1
        key = np.int64(buf[at + 1]) - 48
        if key == 76:  # a bar
            return at + 1
        if key < 1 or key > user.shape[0] or buf[at + 2] != 58 or seen >> key & 1:
            return -1
        seen |= 1 << key
        at += 3
        mantissa = np.int64(0)
        digits = 0
        while 48 <= buf[at] <= 57 and digits < 16:
            mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
            digits += 1
            at += 1
        if digits == 0:
            return -1
        whole = digits
        if buf[at] == 46:
            at += 1
            while 48 <= buf[at] <= 57 and digits < 16:
                mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
                digits += 1
                at += 1
            if digits == whole:
                return -1
        if digits > 15:
            return -1
        user[key - 1] = mantissa / TENS[digits - whole]


@kernel
def parse_active(buf, at, user):  # type: ignore[no-untyped-def]
    """Read user features " number" up to " |". Where the bar is; -1 if they are not in the usual spelling."""
    while True:
        if buf[at] != 32:
            return -1
        at += 1
        if buf[at] == 124:
            return at
        number = np.int64(0)
        digits = 0
        while 48 <= buf[at] <= 57 and digits < 4:
            number = number * 10 + (np.int64(buf[at]) - 48)
            digits += 1
            at += 1
        if number < 1 or number > user.shape[0] or user[number - 1] != 0:
            return -1
        user[number - 1] = 1.0


@kernel
def walk(  # type: ignore[no-untyped-def]
    buf, end, binary, longest, arena, spans, ids, table, state, time, pools, chosen, clicks, propensity, users, handed
):  # fmt: skip
    """Read the ordinary lines of buf[state[AT]:end] into rows of the columns. Why it stopped; `state` says where.

    buf[end] must be a newline, so that nothing runs beyond the end. Of the i-th known list of candidates, the bytes are
    arena[spans[i, 0]:][:spans[i, 1]], the ids are ids[spans[i, 2]:][:spans[i, 3]], and the row is spans[i, 4]. A line
    that is not ordinary is handed over as (line number, start, end, row, class, start of the candidates). A row is kept
    for it unless it is malformed; for the class NEW_POOL all of the row is filled except pool, chosen and propensity.
    """
    at, n, line, last = state[AT], state[ROW], state[LINE], state[LAST]
    passed = 0
    why = NEED_MORE
    while at < end:
        if n == time.shape[0]:
            why = ROWS_FULL
            break
        if passed == handed.shape[0]:
            why = HANDED_FULL
            break
        stop = -1  # the end of the line, once it is known
        verdict = OTHER
        ordinary = False
        when = np.int64(0)
        p = at
        while 48 <= buf[p] <= 57 and p < at + 11:
            when = when * 10 + (np.int64(buf[p]) - 48)
            p += 1
        if 0 < p - at < 11 and when <= LATEST and buf[p] == 32:
            first, second, p = parse_id(buf, p + 1)
            if (
                p > 0 and buf[p] == 32 and (buf[p + 1] == 48 or buf[p + 1] == 49) and buf[p + 2] == 32
                and buf[p + 3] == 124 and buf[p + 4] == 117 and buf[p + 5] == 115 and buf[p + 6] == 101
                and buf[p + 7] == 114
            ):  # fmt: skip
                clicks[n] = np.int64(buf[p + 1]) - 48
                user = users[n]
                for k in range(user.shape[0]):
                    user[k] = 0.0
                p = parse_active(buf, p + 8, user) if binary else parse_memberships(buf, p + 8, user)
                if p > 0:
                    p += 1  # behind the bar
                    pool = -1
                    if last >= 0:
                        size = spans[last, 1]
                        tail = p + size
                        if tail < end and same_bytes(buf, p, arena, spans[last, 0], size):
                            if buf[tail] == 13 and tail + 1 < end:
                                tail += 1
                            if buf[tail] == 10:
                                pool, stop = last, tail
                    if pool < 0:
                        stop = find_newline(buf, p, end)
                        if stop == end:
                            break
                        size = stop - p - (1 if buf[stop - 1] == 13 else 0)
                        pool = find_pool(buf, p, size, arena, spans, table)
                    if pool < 0 and stop - at <= longest:
                        time[n] = when
                        verdict = NEW_POOL
                    elif stop - at <= longest:
                        last = pool
                        for k in range(spans[pool, 3]):
                            if ids[spans[pool, 2] + k, 0] == first and ids[spans[pool, 2] + k, 1] == second:
                                time[n] = when
                                pools[n] = spans[pool, 4]
                                chosen[n] = k
                                propensity[n] = 1.0 / spans[pool, 3]
                                ordinary = True
                                break
        if ordinary:
            n += 1
        else:
            if stop < 0:
                stop = find_newline(buf, at, end)
                if stop == end:
                    break
            if verdict == OTHER:
                verdict = classify(buf, at, stop, longest)
            handed[passed, 0] = line + 1
            handed[passed, 1] = at
            handed[passed, 2] = stop
            handed[passed, 3] = n
            handed[passed, 4] = verdict
            handed[passed, 5] = p
            passed += 1
            if verdict <= OTHER:
                pools[n] = -1
                n += 1
        line += 1
        at = stop + 1
    state[AT], state[ROW], state[LINE], state[HANDED], state[LAST] = at, n, line, passed, last
    return why
