"""Lists of candidates that have been read before, by their text: for Python, and as arrays for the compiled `walk`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybandits.foundation.checks import short
from hybandits.logs.ids import id_of
from hybandits.logs.store import Tables
from hybandits.logs.yahoo.compiled import WORD, hash_bytes
from hybandits.logs.yahoo.lines import NOT_TEXT, Malformed, check_distinct, is_plain, parse_article


class KnownPool(NamedTuple):
    """A list of candidates that has been read: its row of the tables, and its ids in order."""

    row: int
    ids: list[str]


class KnownPools:
    """The lists of candidates read so far; when there is no more room, all are forgotten.

    Python finds a list in a dictionary. `walk` finds it in a hash table over `arena`, `spans` and `ids`, whose layout
    its docstring describes.
    """

    POOLS, BYTES, IDS = 1 << 12, 1 << 22, 1 << 16

    def __init__(self, kind: str, tables: Tables) -> None:
        self.kind, self.tables = kind, tables
        self.arena = np.empty(self.BYTES, np.uint8)
        self.spans = np.empty((self.POOLS, 5), np.int64)
        self.ids = np.empty((self.IDS, 2), np.int64)
        self.table = np.empty(2 * self.POOLS, np.int64)
        self.rows: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Forget all lists."""
        self.pools: dict[str, KnownPool] = {}
        self.taught: set[str] = set()
        self.used = [0, 0, 0]
        self.table[:] = -1

    def pool(self, text: str) -> KnownPool:
        """The list of candidates with this text; `walk` knows it once it has come a second time."""
        known = self.pools.get(text)
        if known is not None:
            if text not in self.taught:
                self.teach(text, known)
            return known
        parts = text.split("|")
        try:
            rows = [self.rows[part] for part in parts]
        except KeyError:
            rows = self.enter(text, parts)
        ids = [str(self.tables.names[row]) for row in rows]
        check_distinct(ids)
        pool = KnownPool(self.tables.pool(rows), ids)
        if len(self.pools) == self.POOLS:
            self.forget()
        self.pools[text] = pool
        return pool

    def enter(self, text: str, parts: list[str]) -> list[int]:
        """The rows of candidates, some of which are new."""
        if not is_plain(text):
            raise Malformed(NOT_TEXT, short(text[:40]))
        articles = [parse_article(part, self.kind) for part in parts]
        check_distinct([article.id for article in articles])
        if len(self.rows) + len(parts) > self.IDS:
            self.rows.clear()
        rows = [self.tables.arm(id_of(article.id), np.array(article.vector)) for article in articles]
        self.rows.update(zip(parts, rows, strict=True))
        return rows

    def teach(self, text: str, pool: KnownPool) -> None:
        """Make a list known to `walk`."""
        self.taught.add(text)
        packed = np.frombuffer(text.encode("ascii"), np.uint8)
        pools, size, count = self.used
        if len(packed) > self.BYTES or len(pool.ids) > self.IDS:
            return
        if pools == self.POOLS or size + len(packed) > self.BYTES or count + len(pool.ids) > self.IDS:
            self.forget()
            self.pools[text] = pool
            self.taught.add(text)
            pools, size, count = self.used
        self.arena[size : size + len(packed)] = packed
        self.spans[pools] = size, len(packed), count, len(pool.ids), pool.row
        for k, name in enumerate(pool.ids):
            code = name.encode("ascii")
            # An id that is too long for `walk` gets numbers that no id has, so that its lines are handed over.
            short_enough = len(code) <= 2 * WORD
            self.ids[count + k, 0] = int.from_bytes(code[:WORD], "little") if short_enough else -1
            self.ids[count + k, 1] = int.from_bytes(code[WORD:], "little") if short_enough else -1
        slot = int(hash_bytes(packed, 0, len(packed))) % len(self.table)
        while self.table[slot] >= 0:
            slot = (slot + 1) % len(self.table)
        self.table[slot] = pools
        self.used = [pools + 1, size + len(packed), count + len(pool.ids)]
