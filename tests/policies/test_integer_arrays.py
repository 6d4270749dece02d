"""Ids in an array of integers mean what the list of the same ids means, for every policy and every call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits import (
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyThompson,
    Policy,
    SupLinUCB,
    Uniform,
)
from hybandits.estimators.exploration import AsWritten
from hybandits.testing import fingerprint

SHAPE: dict[str, Any] = {"d1": 3, "d2": 2}
MAKERS: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(**SHAPE, seed=0),
    "HyLinUCB, ridge grows": lambda: HyLinUCB(**SHAPE, exploration=AsWritten(horizon=100), seed=0),
    "DisLinUCB": lambda: DisLinUCB(**SHAPE, seed=0),
    "HyThompson": lambda: HyThompson(**SHAPE, propensity_draws=5, seed=0),
    "HyThompson, told": lambda: HyThompson(**SHAPE, noise=0.1, scale=1.0, seed=0),
    "HyIDS": lambda: HyIDS(**SHAPE, seed=0),
    "EpsilonGreedy": lambda: EpsilonGreedy(Greedy(**SHAPE, seed=0), epsilon=0.5, seed=0),
    "EpsilonGreedy, HyRan": lambda: EpsilonGreedy(HyRan(**SHAPE, seed=0), epsilon=0.5, seed=0),
    "SupLinUCB": lambda: SupLinUCB(**SHAPE, horizon=100, seed=0),
    "HyRan": lambda: HyRan(**SHAPE, seed=0),
    "Uniform": lambda: Uniform(**SHAPE, seed=0),
}
EVERY = pytest.mark.parametrize("name", MAKERS)
POOL = np.array([7, -3, 0, 2**63 - 1, -(2**63), 109_512, 109_513, 2**40, -1])

FORMS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda ids: ids,
    "strided": lambda ids: np.repeat(ids, 2)[::2],
    "read-only": lambda ids: np.frombuffer(ids.tobytes(), np.int64),
    "big-endian": lambda ids: ids.astype(">i8"),
}


def same(one: Any, other: Any) -> bool:
    """Whether two choices are equal, receipts that hold arrays included."""
    return repr(one) == repr(other) and type(one.arm) is type(other.arm) is int


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_policies_live_the_same_life_with_arrays_and_with_lists(name: str, seed: int) -> None:
    """Rounds, late feedback, forgetting, merging and files in random order, also with arms whose ids are strings."""
    with_arrays, with_lists = MAKERS[name](), MAKERS[name]()
    draw = np.random.default_rng(seed)
    forms = list(FORMS.values())
    for _ in range(40):
        n = int(draw.integers(1, len(POOL) + 1))
        ids = draw.permutation(POOL)[:n]
        x, z = draw.standard_normal((n, 3)), draw.standard_normal((n, 2))
        form = forms[draw.integers(len(forms))]
        what = draw.choice(["round", "round", "round", "key", "learn many", "many", "forget", "merge", "file", "text"])
        both = (with_arrays, form(ids)), (with_lists, ids.tolist())
        if what in ("round", "key"):
            key = "event" if what == "key" else None
            chances = [policy.propensities(x, z, arms, key=key) for policy, arms in both]
            assert_array_equal(*chances)
            choices = [policy.choose(x, z, arms, key=key) for policy, arms in both]
            assert same(*choices)
            assert choices[0].arm == ids.tolist()[choices[0].index]
            if key is None:
                for (policy, _), choice in zip(both, choices, strict=True):
                    row = x[choice.index], z[choice.index]
                    policy.learn(choice.arm, *row, reward=float(x.sum()), receipt=choice.receipt)
        elif what == "learn many":
            rows = draw.integers(0, n, 5)
            rewards = draw.standard_normal(5)
            for policy, arms in both:
                own = arms[rows] if isinstance(arms, np.ndarray) else [arms[i] for i in rows]
                policy.learn_batch(own, x[rows], z[rows], rewards, receipts=[None] * 5 if seed else None)
        elif what == "many":
            more = [draw.permutation(ids) for _ in range(3)]
            xs, zs = draw.standard_normal((3, n, 3)), draw.standard_normal((3, n, 2))
            several = with_arrays.choose_batch(xs, zs, np.array(more))
            assert repr(several) == repr(with_lists.choose_batch(xs, zs, [each.tolist() for each in more]))
            assert {type(arm) for arm in several.arms} == {int}
        elif what == "forget":
            for policy, _ in both:
                for arm in ids[:2].tolist():
                    if arm in policy.arms:
                        policy.forget(arm)
        elif what == "merge":
            for policy, arms in both:
                other = policy.start_delta()
                other.learn_batch(arms, x, z, x[:, 0].copy())
                other.predict(x, z, arms)
                policy.merge(other)
        elif what == "file":
            with_arrays, with_lists = (type(each).from_bytes(each.to_bytes()) for each in (with_arrays, with_lists))
        else:
            for policy, _ in both:
                policy.learn("text", x[0], z[0], reward=1.0)
        for part in range(2):
            assert_array_equal(with_arrays.predict(x, z, form(ids))[part], with_lists.predict(x, z, ids.tolist())[part])
        assert with_arrays.arms == with_lists.arms
        assert fingerprint(with_arrays) == fingerprint(with_lists)


@EVERY
@pytest.mark.parametrize("kind", ["shared", "own", "masked", "masked and own"])
def test_many_decisions(name: str, kind: str) -> None:
    with_arrays, with_lists = MAKERS[name](), MAKERS[name]()
    draw = np.random.default_rng(0)
    for policy in (with_arrays, with_lists):
        policy.learn_batch(POOL, np.ones((9, 3)), np.ones((9, 2)), np.arange(9.0))
    x, z = draw.standard_normal((6, 5, 3)), draw.standard_normal((6, 5, 2))
    ids = np.array([draw.permutation([*POOL, 1, 2])[:5] for _ in range(6)])
    arms = ids if "own" in kind else ids[0]
    mask = None
    if "masked" in kind:
        mask = draw.random((6, 5)) < 0.6
        mask[:, 0] = True
    for _ in range(2):  # the second time, all arms are known
        several = with_arrays.choose_batch(x, z, arms, mask=mask)
        assert repr(several) == repr(with_lists.choose_batch(x, z, arms.tolist(), mask=mask))
        assert {type(arm) for arm in several.arms} == {int}
    assert fingerprint(with_arrays) == fingerprint(with_lists)


@EVERY
@pytest.mark.parametrize("known", [True, False])
def test_an_id_that_occurs_twice_is_refused_as_in_a_list(name: str, known: bool) -> None:
    policy = MAKERS[name]()
    x, z, ids = np.ones((3, 3)), np.ones((3, 2)), np.array([4, 5, 4])
    if known:
        policy.choose(x[:2], z[:2], ids[:2])
        policy.choose(x[:2], z[:2], ids[:2])
        policy.learn(5, x[0], z[0], reward=1.0)
    before = fingerprint(policy)
    for call in (policy.choose, policy.predict, policy.propensities):
        for arms in (ids, ids.tolist(), ids[::-1]):
            with pytest.raises(ValueError, match="arms holds 4 more than once: each candidate may appear once"):
                call(x, z, arms)
    for arms in (ids, ids.tolist()):
        with pytest.raises(ValueError, match=r"arms holds an id more than once: \[4, 5, 4\]; each candidate"):
            policy.choose_batch(x[None], z[None], arms)
    with pytest.raises(ValueError, match=r"arms holds an id more than once: \[4, 5, 4\]; each candidate"):
        policy.choose_batch(np.ones((2, 3, 3)), np.ones((2, 3, 2)), np.array([[4, 5, 6], [4, 5, 4]]))
    with pytest.raises(ValueError, match="arms holds 4 more than once"):
        policy.candidates(ids)
    assert fingerprint(policy) == before


@EVERY
def test_unknown_ids_are_admitted_unless_the_decision_has_a_key_or_is_refused(name: str) -> None:
    policy = MAKERS[name]()
    x, z, ids = np.ones((3, 3)), np.ones((3, 2)), np.array([4, 5, 6])
    bad = x.copy()
    bad[2, 2] = np.nan
    policy.choose(x, z, ids, key="event")
    policy.predict(x, z, ids)
    policy.propensities(x, z, ids)
    with pytest.raises(ValueError, match=r"x\[2, 2\] is nan"):
        policy.choose(bad, z, ids)
    with pytest.raises(ValueError, match="must be finite"):
        policy.choose_batch(bad[None], z[None], ids)
    assert policy.arms == []
    policy.choose(x[:2], z[:2], ids[:2])
    assert policy.arms == [4, 5]
    policy.choose_batch(x[None], z[None], ids[None])
    assert policy.arms == [4, 5, 6]
    policy.forget(5)
    assert policy.choose(x, z, ids, key="event").arm in (4, 5, 6)
    assert policy.arms == [4, 6]


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        (np.array([1, 2], np.int8), [1, 2]),
        (np.array([1, 2], np.uint64), [1, 2]),
        (np.array([1, 2**63], np.uint64), [1, 2**63]),
        (np.array([2**64 - 1, 1], np.uint64), [2**64 - 1, 1]),
        (np.array([1.0, 2.0]), [1.0, 2.0]),
        (np.array([True, False]), [True, False]),
        (np.array(["1", "2"]), ["1", "2"]),
        (np.array([2**70, 1], object), [2**70, 1]),
    ],
    ids=["int8", "uint64", "beyond int64", "the largest", "floats", "bools", "strings", "objects"],
)
def test_other_arrays_mean_what_their_lists_mean(arms: Any, expected: list[Any]) -> None:
    policy = HyLinUCB(**SHAPE)
    for _ in range(2):
        choice = policy.choose(np.ones((2, 3)), np.ones((2, 2)), arms)
        assert (choice.arm, type(choice.arm)) == (expected[0], type(expected[0]))
        policy.choose_batch(np.ones((2, 2, 3)), np.ones((2, 2, 2)), np.array([arms, arms]))
    assert policy.arms == expected
    policy.learn(-1, np.ones(3), np.ones(2), reward=1.0)
    assert policy.arms == [*expected, -1]


@pytest.mark.parametrize("number", [np.uint64(2**64 - 1), 2**64 - 1])
def test_large_unsigned_ids_do_not_wrap(number: Any) -> None:
    policy = HyLinUCB(**SHAPE)
    policy.learn(-1, np.ones(3), np.ones(2), reward=1.0)
    policy.predict(np.ones((1, 3)), np.ones((1, 2)), np.array([-1]))
    policy.learn(number, np.ones(3), np.ones(2), reward=5.0)
    one, other = (policy.predict(np.ones((1, 3)), np.ones((1, 2)), arms).mean for arms in (np.array([-1]), [-1]))
    assert_array_equal(one, other)
    assert policy.arms == [-1, 2**64 - 1]


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        (np.array([1, 2]), "arms has 2 ids but the features have 3 rows"),
        (np.empty(0, np.int64), "arms has 0 ids but the features have 3 rows"),
        (np.array([[1], [2], [3]]), "arms holds an id that is not hashable"),
        (np.array(3), "arms must be a list of ids"),
    ],
)
@pytest.mark.parametrize("name", ["HyLinUCB", "HyRan", "EpsilonGreedy"])
def test_arrays_that_do_not_fit_are_refused_in_the_same_words(name: str, arms: Any, words: str) -> None:
    policy = MAKERS[name]()
    policy.choose(np.ones((3, 3)), np.ones((3, 2)), np.array([1, 2, 3]))
    for _ in range(2):
        with pytest.raises((ValueError, TypeError), match=words):
            policy.choose(np.ones((3, 3)), np.ones((3, 2)), arms)


def test_none_at_all_is_refused() -> None:
    policy = HyLinUCB(**SHAPE)
    policy.choose(np.ones((1, 3)), np.ones((1, 2)), np.array([1]))
    with pytest.raises(ValueError, match="arms is empty, got 0 candidates"):
        policy.choose(np.ones((0, 3)), np.ones((0, 2)), np.empty(0, np.int64))


@pytest.mark.parametrize("shape", [(1, 3), (3, 2), (2, 4)])
def test_an_array_with_rows_for_other_decisions_is_refused(shape: tuple[int, int]) -> None:
    arms = np.arange(shape[0] * shape[1]).reshape(shape)
    with pytest.raises(ValueError, match=r"arms has shape .* but there are 2 decisions with 3 candidates: pass an"):
        HyLinUCB(**SHAPE).choose_batch(np.ones((2, 3, 3)), np.ones((2, 3, 2)), arms)


def test_no_decisions_at_all() -> None:
    choices = HyLinUCB(**SHAPE).choose_batch(np.ones((0, 3, 3)), np.ones((0, 3, 2)), np.empty((0, 3), np.int64))
    assert choices.arms == []


def test_candidate_sets_of_arrays_have_python_ints() -> None:
    assert {type(arm) for arm in HyLinUCB(**SHAPE).candidates(POOL).arms} == {int}


def test_hyran_goes_back_to_the_arms_before_a_batch_that_failed() -> None:
    policy = HyRan(d1=1, d2=1, p=0.99, seed=0)
    ids, one = np.array([1, 2]), np.ones((2, 1))
    policy.choose(one, one, ids)
    policy.choose(one, one, ids)
    receipt = policy.choose(one * 1e40, one * 1e40, ids).receipt
    before = fingerprint(policy)
    with pytest.raises(ValueError, match="no longer positive definite"):
        policy.learn_batch([1] * 9, np.full((9, 1), 1e40), np.full((9, 1), 1e40), np.ones(9), receipts=[receipt] * 9)
    assert fingerprint(policy) == before
    assert_array_equal(policy.predict(one, one, ids).mean, policy.predict(one, one, [1, 2]).mean)
