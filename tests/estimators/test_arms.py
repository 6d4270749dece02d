"""The table of arms: ids, slots, candidate sets, and what compiled loops set aside and settle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits import HybridRidge
from hybandits.estimators.arms import ArmTable
from hybandits.kernels import arrow


class Blocks(ArmTable):
    """A table whose blocks are one number each: how often the slot was cleared."""

    def __init__(self) -> None:
        super().__init__(2, 1)
        self.cleared = np.zeros(0, np.int64)

    def _reserve(self, capacity: int) -> None:
        self.cleared = np.append(self.cleared, np.zeros(capacity - len(self.cleared), np.int64))

    def _clear(self, slot: int) -> None:
        self.cleared[slot] += 1


def learned(*arms: Any) -> Blocks:
    """A table in which these arms have learned, in this order."""
    table = Blocks()
    for arm in arms:
        table._new_slot(arm)
    return table


def test_arms_are_known_once_admitted_and_until_forgotten() -> None:
    table = Blocks()
    assert table.unmet(["a", "b"]) == 2
    table.admit(["a", "b"])
    table.admit(["b", "c"])
    assert table.arms == ["a", "b", "c"]
    assert table.known == 3
    assert table.knows("c")
    assert table.unmet(["a", "d", "e"]) == 2
    assert table.learned == {}
    table._new_slot("b")
    assert table.learned == {"b": 0}
    assert table.known == 3
    table._new_slot("d")
    assert table.known == 4
    table.forget("a")
    table.forget("b")
    assert table.arms == ["c", "d"]
    assert table.known == 2
    assert not table.knows("b")


def test_slots_and_pulls_of_arms() -> None:
    table = learned("a", "b")
    table.admit(["c"])
    table.pulls[1] = 5
    assert [table.slot(arm) for arm in "abc"] == [0, 1, -1]
    assert [table.pulls_of(arm) for arm in "abc"] == [0, 5, 0]
    assert table.lookup(["c", "b", "unknown", "a"]).tolist() == [-1, 1, -1, 0]
    assert table.lookup(["b", "a"]).tolist() == [1, 0]
    with pytest.raises(KeyError, match=r"'d' is not known: it has not been passed to choose\(\) or learn\(\)"):
        table.pulls_of("d")
    with pytest.raises(TypeError, match=r"arm \['a'\] is not hashable: use str, int or tuples"):
        table.slot(["a"])  # type: ignore[arg-type]


def test_free_slots_are_used_again_and_cleared() -> None:
    table = learned(*"abcd")
    table.pulls[:4] = 7
    for arm in "bd":
        table.forget(arm)
    for arm, slot in (("e", 3), ("f", 1), ("g", 4)):
        assert table._new_slot(arm) == slot
        assert table.pulls_of(arm) == 0
    assert table.cleared[:5].tolist() == [1, 2, 1, 2, 1]


@pytest.mark.parametrize("order", ["", "c", "cd", "dc", "gcd"])
def test_what_a_loop_takes_is_where_learning_would_have_put_it(order: str) -> None:
    """Arms a, b and e have slots, b's and e's were freed; a loop then meets new arms in some order."""
    one, loop = learned(*"abe"), learned(*"abe")
    for table in (one, loop):
        table.forget("b")
        table.forget("e")
        table.admit("cdg")
    arms = list("acdg")
    slots, fresh = loop.set_aside(arms)
    assert slots.tolist() == [0, -1, -1, -1]
    assert len(fresh) == 3
    for taken, arm in enumerate(order):
        one._new_slot(arm)
        slots[arms.index(arm)] = fresh[taken]
    loop.settle(arms, slots, fresh, rows=9)
    assert loop.learned == one.learned
    assert loop.known == one.known == 4
    assert loop._used == one._used
    assert sorted(loop._free) == sorted(one._free)
    assert loop.rounds == 9
    assert loop._new_slot("z") == one._new_slot("z")


@pytest.mark.parametrize("n", [2, 20])
def test_the_fast_path_takes_what_is_ready_and_nothing_else(n: int) -> None:
    ids = [f"a{i}" for i in range(n)]
    table = learned(*ids)
    x, z = np.ones((n, 2)), np.ones((n, 1))
    for arms in (ids, tuple(ids)):
        candidates = table.checked_candidates(x, z, arms, False)
        assert candidates.x is x
        assert candidates.slots.tolist() == list(range(n))
    for other in (
        [*ids[:-1], "unknown"],
        [*ids[:-1], ids[0]],
        [*ids[:-1], []],
        [],
        range(n),
        iter(ids),
        None,
    ):
        assert table._known_slots(other) is None
    for features in ((x.tolist(), z), (x, z.astype(np.float32))):
        assert table.checked_candidates(*features, ids, False).x.tolist() == x.tolist()


def test_candidates_are_checked_and_admitted() -> None:
    table = learned("a")
    x, z = [[1, 2], [3, 4]], [[5], [6]]
    rows = table.checked_candidates(x, z, ["b", "a"], admit=False)
    assert rows.x.dtype == rows.z.dtype == np.float64
    assert list(rows.arms) == ["b", "a"]
    assert rows.slots.tolist() == [-1, 0]
    assert not table.knows("b")
    table.checked_candidates(x, z, None, admit=True)
    assert table.arms == ["a", 0, 1]
    with pytest.raises(ValueError, match="is nan"):
        table.checked_candidates([[1, np.nan]], [[1]], ["c"], admit=True)
    assert not table.knows("c")
    with pytest.raises(ValueError, match="arms is empty, got 0 candidates"):
        table.checked_candidates(np.ones((0, 2)), np.ones((0, 1)), [], admit=True)
    with pytest.raises(TypeError, match="arms is missing: pass a list of ids"):
        table.candidates(None)  # type: ignore[arg-type]


def test_candidate_sets_follow_what_happens_to_their_arms() -> None:
    estimator = HybridRidge(d1=2, d2=1)
    random = np.random.default_rng(5)
    x, z = random.normal(size=(3, 2)), random.normal(size=(3, 1))
    pool = estimator.candidates(["a", "b", "c"])
    assert len(pool) == 3
    assert "CandidateSet" in repr(pool)
    estimator.checked_candidates(x, z, pool, admit=True)
    for step in range(3):
        estimator.learn("abc"[step], x[step], z[step], 1.0)
        assert_array_equal(estimator.predict(x, z, pool), estimator.predict(x, z, ["a", "b", "c"]))
        estimator.checked_candidates(x, z, pool, admit=True)
    estimator.forget("b")
    assert_array_equal(estimator.predict(x, z, pool), estimator.predict(x, z, ["a", "b", "c"]))
    other = HybridRidge(d1=2, d2=1)
    assert_array_equal(other.predict(x, z, pool), other.predict(x, z, ["a", "b", "c"]))
    with pytest.raises(ValueError, match="3 arms but the features have 2 rows"):
        estimator.predict(x[:2], z[:2], pool)


def test_an_id_list_changed_in_place_is_seen() -> None:
    estimator = HybridRidge(d1=1, d2=1)
    estimator.learn("a", [1.0], [1.0], 1.0)
    estimator.learn("b", [1.0], [1.0], -1.0)
    ids = ["a", "b"]
    assert estimator._known_slots(ids) is not None  # remembers the ids
    ids[0], ids[1] = "b", "a"
    slots = estimator._known_slots(ids)
    assert slots is not None
    assert slots.tolist() == [estimator.slot("b"), estimator.slot("a")]


def test_growth_that_fails_leaves_no_slot_without_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = HybridRidge(d1=1, d2=1)
    for i in range(8):
        estimator.learn(i, [1.0], [1.0], 1.0)

    def out_of_memory(capacity: int) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(estimator, "_reserve", out_of_memory)
        for _ in range(2):
            with pytest.raises(MemoryError):
                estimator.learn(8, [1.0], [1.0], 1.0)
    estimator.learn(8, [1.0], [1.0], 1.0)
    assert len(estimator.arm_factor) >= 9 * arrow.factor_size(1, 1)
