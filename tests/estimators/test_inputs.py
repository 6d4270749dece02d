"""Checks of features, ids and rewards that a call is passed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybandits.estimators.inputs import (
    check_finite,
    checked_feedback,
    checked_matrices,
    checked_vectors,
    id_list,
    not_finite,
)


def test_arrays_that_are_ready_are_passed_on_and_others_copied() -> None:
    x, z = np.ones((3, 2)), np.ones((3, 1))
    same = checked_matrices(x, z, 2, 1)
    assert same[0] is x
    assert same[1] is z
    other = checked_matrices(x.tolist(), np.asfortranarray(np.ones((3, 2)))[:, :1], 2, 1)
    assert [array.flags.carray and array.dtype == np.float64 for array in other] == [True, True]
    vectors = checked_vectors(x[0], z[0], 2, 1)
    assert vectors[0].base is x
    assert checked_vectors((1, 2), [3], 2, 1)[0].tolist() == [1.0, 2.0]


def test_features_without_columns_may_be_left_out() -> None:
    x, z = checked_matrices(np.ones((3, 2)), None, 2, 0)
    assert (x.shape, z.shape) == ((3, 2), (3, 0))
    x, z = checked_matrices(None, [[1.0], [2.0]], 0, 1)
    assert (x.shape, z.shape) == ((2, 0), (2, 1))
    x, z = checked_vectors(None, [1.0], 0, 1)
    assert (x.shape, z.shape) == ((0,), (1,))
    x, z = checked_vectors([1.0], None, 1, 0)
    assert (x.shape, z.shape) == ((1,), (0,))


@pytest.mark.parametrize(
    ("x", "z", "error", "message"),
    [
        (np.ones((3, 2)), np.ones((2, 1)), ValueError, "x has 3 rows and z has 2: pass one row of each per candidate"),
        (None, np.ones((2, 1)), TypeError, r"x is missing: expected shape \(n, d1\) with d1 = 2"),
        (np.ones((2, 2)), None, TypeError, r"z is missing: expected shape \(n, d2\) with d2 = 1"),
    ],
)
def test_matrices_of_other_shapes_are_refused(x: Any, z: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checked_matrices(x, z, 2, 1)


def test_what_a_kernel_refused_is_named() -> None:
    x, z = np.ones((2, 2)), np.ones((2, 1))
    check_finite(x, z)
    z[1, 0] = 1e60
    with pytest.raises(ValueError, match=r"z\[1, 0\] is 1e\+60, beyond 1e\+50 in absolute value"):
        check_finite(x, z)
    assert "z[1, 0]" in str(not_finite(x, z))
    z[1, 0] = 1.0
    assert str(not_finite(x, z, np.inf)).startswith("reward is inf")
    assert str(not_finite(x, z, np.array([1.0, np.nan]))).startswith("rewards[1] is nan")
    with pytest.raises(AssertionError, match="refused what the checks accept"):
        not_finite(x, z, 1.0)


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (("a", 1), ("a", 1)),
        (range(3), range(3)),
        (np.array([3, 4]), [3, 4]),
        (np.array(["a", "b"]), ["a", "b"]),
        (iter("ab"), ["a", "b"]),
    ],
)
def test_ids_in_any_order_that_lasts(arms: Any, expected: Any) -> None:
    ids = id_list(arms)
    assert len(ids) == len(expected)
    assert [*ids] == [ids[i] for i in range(len(ids))] == [*expected]
    assert all(type(arm) in (str, int) for arm in ids)


def test_batches() -> None:
    x, z = np.ones((3, 2)), np.ones((3, 1))
    ids, *features, rewards = checked_feedback(("a", "b", "a"), x, z, [1, 0, True], 2, 1)
    assert ids == ["a", "b", "a"]
    assert features[0] is x
    assert features[1] is z
    assert rewards.tolist() == [1.0, 0.0, 1.0]
    given = np.ones(3)
    assert checked_feedback(range(3), x, z, given, 2, 1)[3] is given


@pytest.mark.parametrize(
    ("arms", "rewards", "error", "message"),
    [
        (["a", "b"], [[1.0, 2.0]], ValueError, r"rewards must have 1 dimension.*pass one row"),
        (["a", "b"], None, TypeError, "rewards is missing"),
    ],
)
def test_batches_that_do_not_fit_are_refused(arms: Any, rewards: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checked_feedback(arms, np.ones((2, 1)), np.ones((2, 1)), rewards, 1, 1)
