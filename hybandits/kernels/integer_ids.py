"""Integer ids and the slots of their arms, in a table that kernels can read: hashing with open addressing.

`entries` has one row (id, slot, call) for each place and a power of two of places, at most half of them taken. An id is
at the place that its bits are mixed to, or at the first one after it that no other id has taken. `call` is the number
of the latest call that asked for the id, so that a call notices an id which it meets again.
"""

from __future__ import annotations

import numpy as np

from hybandits.foundation.compiling import kernel

ID, SLOT, CALL = range(3)
"""The columns of the table."""

NOT_LEARNED, FORGOTTEN, EMPTY = -1, -2, -3
"""Slots that are none: of an arm that has not learned, of one that is no longer known, and of a place without id."""

FOUND, TWICE, UNKNOWN = range(3)
"""What became of a lookup: all ids are known and distinct; all are known and one occurs twice; one is not known."""

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ONE = np.uint64(1)
MULTIPLIER_LOW = np.uint64(0x9E3779B1)
MULTIPLIER_HIGH = np.uint64(0x85EBCA77)


@kernel
def place_of(number, entries):
    """The place of an id, or the empty place where it belongs if it is not in the table.

    The search begins at the low bits of h ^ (h >> 32), where h = (low half) M0 ^ (high half) M1 with odd M0, M1 < 2^32.
    """
    last = np.uint64(entries.shape[0] - 1)
    bits = np.uint64(np.int64(number))
    mixed = (bits & LOW) * MULTIPLIER_LOW ^ (bits >> HALF) * MULTIPLIER_HIGH
    place = (mixed ^ (mixed >> HALF)) & last  # unsigned, because indices that may be negative take longer
    while entries[place, ID] != number and entries[place, SLOT] != EMPTY:
        place = (place + ONE) & last
    return place


@kernel
def look_up(ids, entries, call, slots):
    """slots[i]: the slot of ids[i], below -1 if it is not known; returns FOUND, TWICE or UNKNOWN.

    `call` is a number that no call before had.
    """
    outcome = FOUND
    for i in range(ids.shape[0]):
        place = place_of(ids[i], entries)
        slot = entries[place, SLOT]
        slots[i] = slot
        if slot < NOT_LEARNED:
            outcome = UNKNOWN
        elif entries[place, CALL] == call:
            outcome = max(outcome, TWICE)
        entries[place, CALL] = call
    return outcome


@kernel
def look_up_rows(ids, entries, call, slots):
    """Do the same for every row of ids, which are calls of their own; returns the worst that became of one."""
    outcome = FOUND
    for b in range(ids.shape[0]):
        outcome = max(outcome, look_up(ids[b], entries, call + b, slots[b]))
    return outcome


@kernel
def put(ids, slots, entries):
    """Give each id its slot; returns how many of them were not in the table. There must be room for them."""
    new = 0
    for i in range(ids.shape[0]):
        place = place_of(ids[i], entries)
        if entries[place, SLOT] == EMPTY:
            entries[place, ID] = ids[i]
            new += 1
        entries[place, SLOT] = slots[i]
    return new


@kernel
def change(number, slot, entries):
    """Give an id another slot if it is in the table."""
    place = place_of(number, entries)
    if entries[place, SLOT] != EMPTY:
        entries[place, SLOT] = slot
