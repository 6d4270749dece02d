"""Checks of arguments: what they accept, and what they say about the rest."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from scipy import sparse

from hybandits import Greedy
from hybandits.foundation import checks


def test_long_values_are_shortened() -> None:
    assert (checks.short("abc"), len(checks.short("a" * 100))) == ("'abc'", 60)


@pytest.mark.parametrize(
    ("wrong", "hint"), [("hylinucb", " (did you mean HyLinUCB?)"), ("LinUBC", " (did you mean LinUCB?)"), ("?", "")]
)
def test_the_nearest_name_is_suggested(wrong: str, hint: str) -> None:
    assert checks.nearest(wrong, ["HyLinUCB", "LinUCB"]) == hint


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), Fraction(2)])
def test_numbers_of_all_kinds_become_floats(value: Any) -> None:
    for number in (checks.real("n", value), checks.positive("n", value, "why"), checks.non_negative("n", value, "why")):
        assert type(number) is float
        assert number == 2.0


@pytest.mark.parametrize(
    ("check", "value", "error", "message"),
    [
        (checks.positive, 0, ValueError, "n must be positive, got 0: why"),
        (checks.positive, -1.5, ValueError, r"n must be positive, got -1\.5: why"),
        (checks.non_negative, -1, ValueError, "n must not be negative, got -1: why"),
        (checks.probability, 0, ValueError, r"n must lie in \(0, 1\), got 0: why"),
        (checks.probability, 1.0, ValueError, r"n must lie in \(0, 1\), got 1\.0: why"),
        (checks.positive, math.nan, ValueError, "n must be finite, got nan"),
        (checks.positive, math.inf, ValueError, "n must be finite, got inf"),
        (checks.positive, 10**400, ValueError, "n must be finite"),
        (checks.positive, True, TypeError, r"n must be a number, got True \(bool\): pass a float"),
        (checks.positive, "1", TypeError, r"n must be a number, got '1' \(str\): pass a float"),
        (checks.positive, None, TypeError, r"n must be a number, got None \(NoneType\)"),
        (checks.positive, 1j, TypeError, "n must be a number"),
    ],
)
def test_other_values_are_refused(check: Any, value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check("n", value, "why")


def test_counts() -> None:
    assert checks.count("n", np.int64(3), least=3, why="why") == 3
    assert type(checks.count("n", np.int64(3), least=3, why="why")) is int
    with pytest.raises(ValueError, match="n must be at least 4, got 3: why"):
        checks.count("n", 3, least=4, why="why")
    for value in (3.0, True, "3", None):
        with pytest.raises(TypeError, match=r"n must be a whole number, got .* pass an int"):
            checks.count("n", value, least=0, why="why")


def test_dimensions() -> None:
    assert checks.dimensions(np.int32(2), 0) == (2, 0)
    assert checks.dimensions(0, 1) == (0, 1)
    with pytest.raises(ValueError, match="d1 and d2 are both 0"):
        checks.dimensions(0, 0)
    with pytest.raises(ValueError, match="d2 must be at least 0, got -1"):
        checks.dimensions(1, -1)


def test_seeds() -> None:
    assert checks.seed(None) is None
    assert checks.seed(np.int64(7)) == 7
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        checks.seed(-1)


@pytest.mark.parametrize("value", [1e-21, 1e21])
def test_extreme_ridges_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="ridge must lie between 1e-20 and 1e20"):
        checks.ridge(value)


@pytest.mark.parametrize(
    "value", [[[1, 2], [3, 4]], ((1.0, 2.0), (3.0, 4.0)), np.array([[1, 2], [3, 4]], np.float32, order="F")]
)
def test_arrays_become_c_ordered_doubles(value: Any) -> None:
    array = checks.array("x", value, 2, 2, "shape (n, 2)")
    assert array.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert checks.ready(array, (2, 2))


@pytest.mark.parametrize(
    ("value", "ndim", "error", "message"),
    [
        (None, 2, TypeError, r"x is missing: expected shape \(n, 2\)"),
        ([[1.0], [1.0, 2.0]], 2, ValueError, "x is not a rectangular array"),
        (np.ma.masked_array([[1.0, 2.0]]), 2, TypeError, r"x is a masked array.*pass x\.filled"),
        ([1.0, 2.0], 2, ValueError, r"x must have 2 dimension\(s\), got shape \(2,\).*use x\[None, :\]"),
        (1.0, 1, ValueError, r"x must have 1 dimension\(s\), got shape \(\).*pass a list"),
        ([[1.0, 2.0]], 1, ValueError, r"x must have 1 dimension\(s\), got shape \(1, 2\).*pass one row"),
        ([[1.0, 2.0, 3.0]], 2, ValueError, r"x has 3 columns, expected 2 \(shape \(1, 3\)\)"),
        ([["1", "b"]], 2, TypeError, r"x has dtype <U1, expected numbers: encode .*\.astype\(float\)"),
        (np.array([[1.0, None]]), 2, TypeError, "x has dtype object, expected numbers: .* impute missing values"),
        ([[1j, 2j]], 2, TypeError, "x has dtype complex128, expected numbers"),
        (sparse.csr_matrix([[1.0, 2.0]]), 2, TypeError, r"x is a sparse csr_matrix, .* pass x\.toarray\(\)$"),
    ],
)
def test_other_arrays_are_refused(value: Any, ndim: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checks.array("x", value, ndim, 2, "shape (n, 2)")


def test_ready_arrays_are_those_that_kernels_take_as_they_are() -> None:
    array = np.ones((3, 2))
    assert checks.ready(array, (3, 2))
    frozen = array.copy()
    frozen.flags.writeable = False

    class Sub(np.ndarray):
        pass

    for other in (
        array.T,
        array.astype(np.float32),
        array.astype(">f8"),
        np.asfortranarray(array),
        frozen,
        array.view(Sub),
        array.tolist(),
        None,
    ):
        assert not checks.ready(other, (3, 2))


def test_numbers_out_of_bounds_are_refused_with_their_place() -> None:
    values = np.zeros((2, 3))
    checks.finite("x", values, 10.0)
    values[1, 2] = -10.5
    with pytest.raises(ValueError, match=r"x\[1, 2\] is -10\.5, beyond 10 in absolute value: rescale the data"):
        checks.finite("x", values, 10.0)
    values[0, 1] = np.nan
    with pytest.raises(ValueError, match=r"x\[0, 1\] is nan: x must be finite; drop or impute"):
        checks.finite("x", values, 10.0)
    with pytest.raises(ValueError, match="reward is inf: reward must be finite"):
        checks.finite("reward", np.asarray(np.inf), 10.0)


class Choice(NamedTuple):
    arm: str
    propensity: float


@pytest.mark.parametrize("arm", ["a", 0, ("a", 1), 2.0, np.str_("n"), True])
def test_ids_of_new_arms(arm: Any) -> None:
    checks.new_arm(arm)


@pytest.mark.parametrize(
    ("arm", "error", "message"),
    [
        (Choice("a", 1.0), TypeError, r"arm is a Choice.*pass choice\.arm"),
        (None, TypeError, "arm is None: pass the id of an arm"),
        (math.nan, ValueError, "arm is nan, which equals no id"),
        (np.float32("nan"), ValueError, "arm is nan"),
        (1.5, TypeError, r"arm id 1\.5 of type float cannot be saved: use str, int or .* for example str\(arm\)"),
        (b"a", TypeError, r"arm id b'a' of type bytes cannot be saved: .* for example arm\.decode\(\)"),
        (UUID(int=7), TypeError, r"arm id UUID\('0{8}-.* of type UUID cannot be saved"),
        (("a", 1.5), TypeError, r"arm id 1\.5 of type float cannot be saved"),
    ],
)
def test_ids_that_are_mistakes_or_cannot_be_saved_are_refused(arm: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checks.new_arm(arm)


@pytest.mark.parametrize("value", [1, 1.0, True, np.float32(1), np.int8(1), np.bool_(True), np.array(1.0), Fraction(1)])
def test_rewards_become_floats(value: Any) -> None:
    assert type(checks.reward(value)) is float
    assert checks.reward(value) == 1.0


def test_rewards_that_are_no_numbers_are_refused_and_huge_ones_are_infinite() -> None:
    assert checks.reward(10**400) == math.inf
    assert math.isnan(checks.reward(math.nan))
    for value in ("1", None, [1.0], np.ones(1), 1j):
        with pytest.raises(TypeError, match=r"reward must be a number, got .* pass a float"):
            checks.reward(value)


@pytest.mark.parametrize(("arm", "twin"), [(100, "100"), (np.int32(-7), "-7"), ("100", 100), ("-7", -7), ("1.0", 1)])
def test_twins_of_ids(arm: Any, twin: Any) -> None:
    assert checks.twin_of(arm) == twin


@pytest.mark.parametrize("arm", ["shoe", "007", "1.5", "", "1e3", "²", ("100",), 1.5, b"1", None])
def test_ids_without_twins(arm: Any) -> None:
    assert checks.twin_of(arm) is None


def test_warnings_point_at_the_caller_of_the_package() -> None:
    policy = Greedy(d1=1, d2=0)
    policy.learn(100, [1.0], reward=1.0)
    with pytest.warns(UserWarning, match="is not known") as warned:
        policy.choose([[1.0]], arms=["100"])
    assert [warning.filename for warning in warned] == [__file__]
