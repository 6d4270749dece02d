"""Lists of candidates that are known by their text: none is mistaken for another, and forgetting them does no harm."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hybandits.logs.yahoo.known_pools import KnownPools
from hybandits.logs.yahoo.lines import R6A, REPEATED, Malformed

from hybandits.logs.store import Tables
from tests.support.yahoo_logs import A_LINE, check


@pytest.mark.slow
def test_more_lists_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KnownPools, "POOLS", 4)
    monkeypatch.setattr(KnownPools, "IDS", 20)
    some = random.Random(1)
    lines = []
    for _ in range(3000):
        pool = some.sample(range(10, 17), some.choice([1, 2, 3]))
        listed = " |".join(f"{name} 2:0.{name} 1:1.0" for name in pool)
        lines += [f"5 {some.choice(pool)} 0 |user 1:1 |{listed}"] * some.choice([1, 3])
    assert not check(tmp_path / "log", "\n".join(lines).encode(), R6A).skipped


def test_a_pool_that_is_forgotten_is_not_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of the pool of the line before are overwritten by another that ends like the next line's."""
    monkeypatch.setattr(KnownPools, "BYTES", 15)
    pools = ["a 1:1.00"] * 3 + ["12 2:1"] * 3 + ["11 1:1 |12 1:1"] * 2 + ["12 1:1"]
    lines = [f"5 {pool.split()[0] if pool[0] == 'a' else 12} 0 |user 1:1 |{pool}" for pool in pools]
    assert not check(tmp_path / "log", "\n".join(lines).encode(), R6A, chunk_bytes=20).skipped


def test_candidates_listed_twice_that_are_known_once(tmp_path: Path) -> None:
    pools = ["11 1:1 |12 1:1", "11 2:1 |12 1:1", "11 1:1|11 2:1", "11 1:1 |12 1:1|11 1:1 ", "11 1:1 |12 1:1"]
    lines = [f"5 11 0 |user 1:1 |{pool}" for pool in pools for _ in range(3)]
    problems = check(tmp_path / "log", "\n".join(lines).encode(), R6A)
    assert problems.kinds == {REPEATED: 6}


def test_a_list_is_taught_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taught = []
    teach = KnownPools.teach
    monkeypatch.setattr(KnownPools, "teach", lambda self, text, pool: (taught.append(text), teach(self, text, pool)))
    odd = A_LINE.replace(b"0.101000", b"1e-3")
    check(tmp_path / "log", b"\n".join([odd] * 50), R6A)
    assert len(taught) == 1


def test_a_list_is_known_by_its_text() -> None:
    tables = Tables()
    pools = KnownPools(R6A, tables)
    one = pools.pool("11 1:1 |12 2:0.5 1:1")
    assert one == (0, ["11", "12"])
    assert pools.pool("11 1:1 |12 2:0.5 1:1") is one
    assert pools.pool("12 2:0.5 1:1|11 1:1 ") == (1, ["12", "11"])
    assert pools.pool("11 1:1 |12 1:1") == (2, ["11", "12"]), "with another vector it is another row"
    np.testing.assert_array_equal(tables.vectors[1], [1, 0.5, 0, 0, 0, 0])
    assert tables.names == [11, 12, 12]
    with pytest.raises(Malformed):
        pools.pool("11 1:1 |11 2:1")
    assert len(tables.pools.sizes) == 3
