"""Kinds of columns: what they learn from rows, what they make of values, and what they refuse."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose

from hybandits import Boolean, Category, Features, Labels, Number, Vector
from hybandits.features.columns import inferred


def encoded(feature: Any, values: list[Any]) -> tuple[np.ndarray, list[str]]:
    """The columns for these values of a feature that knows everything, and the values that fell back."""
    width = len(feature.labels("f")) + feature.curves
    out, noted = np.zeros((len(values), width)), []
    feature.fill("f", values, out, lambda row, value: noted.append(value))
    return out, noted


def test_numbers_are_standardised_and_curves_whitened() -> None:
    values = np.random.default_rng(0).gamma(2.0, 3.0, 2000)
    number = Number().learn("f", values.tolist(), True)
    out, _ = encoded(number, values.tolist())
    assert out.shape == (2000, 5)
    assert_allclose(out.mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(out.T @ out / 2000, np.eye(5), atol=1e-9)
    smooth = np.sqrt(values)
    left = smooth - np.column_stack([np.ones(2000), out]) @ np.linalg.lstsq(
        np.column_stack([np.ones(2000), out]), smooth, rcond=None
    )[0]  # fmt: skip
    straight = smooth - np.polyval(np.polyfit(values, smooth, 1), values)
    assert left.var() < 0.1 * straight.var()
    assert Number().learn("f", [1.0, 2.0] * 50, True).curves == 0
    assert Number().learn("f", values.tolist(), False).curves == 0
    assert_allclose(encoded(number, values[:1].tolist())[0], out[:1], rtol=0, atol=0)


def test_what_is_missing_at_first_gets_a_column_and_what_is_missing_later_is_counted() -> None:
    first = Number().learn("f", [1.0, None, 3.0], False)
    assert first.labels("f") == ["f", "f=missing"]
    assert encoded(first, [None])[0].tolist() == [[0.0, 1.0]]
    later = Number().learn("f", [1.0, 3.0], False)
    assert encoded(later, [None, 3.0])[0].tolist() == [[0.0], [1.0]]
    assert encoded(later, [None, 3.0])[1] == ["missing"]
    assert Category().learn("f", ["a", None], False).labels("f") == ["f=a", "f=other", "f=missing"]
    level = Category().learn("f", ["a", "b"], False)
    assert encoded(level, [None, "c"])[0].tolist() == [[0, 0, 1], [0, 0, 1]]
    assert encoded(level, [None, "c"])[1] == ["missing", "c"]


def test_rare_values_share_a_column() -> None:
    values = ["often"] * 990 + ["rare", "rare"] + ["some"] * 8
    assert Category().learn("f", values, False).values == ("often", "some")
    assert Labels().learn("f", [["x", "y"], ["x"], []], False).values == ("x", "y")
    assert encoded(Labels(values=["x", "y"], missing="other"), [["y", "x"], [], ["z"]])[0].tolist() == [
        [1, 1, 0], [0, 0, 0], [0, 0, 1],
    ]  # fmt: skip


def test_booleans_and_vectors() -> None:
    boolean = Boolean().learn("f", [True, True, False, True], True)
    assert encoded(boolean, [True, False, np.True_])[0].tolist() == [[0.25], [-0.75], [0.25]]
    vector = Vector().learn("f", [[1.0, 2.0], np.array([3.0, 2.0])], False)
    assert encoded(vector, [[3.0, 3.0], None])[0].tolist() == [[1.0, 0.5], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], Number),
        ([True, False], Boolean),
        (["a", None], Category),
        ([[1.0, 2.0], (3, 4)], Vector),
        ([["a"], []], Labels),
        ([{"a", "b"}], Labels),
    ],
)
def test_kinds_are_inferred(values: list[Any], kind: type) -> None:
    assert type(inferred("f", values)) is kind


def test_numbers_as_text_are_noticed() -> None:
    with pytest.warns(UserWarning, match=r"f holds text that reads as numbers, such as '2.5', and is taken for"):
        assert type(inferred("f", ["2.5", "3"])) is Category


@pytest.mark.parametrize("values", [[None], [1, "a"], [datetime.date(2020, 1, 1)]])
def test_what_has_no_kind_is_refused(values: list[Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=r"f (is missing in all rows|holds)"):
        inferred("f", values)


@pytest.mark.parametrize(
    ("feature", "value", "message"),
    [
        (Boolean(), 2, "expected True or False"),
        (Boolean(), "yes", "expected True or False"),
        (Vector(), "abc", "expected a list of numbers"),
        (Vector(size=3), [1.0, 2.0], "has 2 entries, expected 3"),
        (Vector(), [1.0, np.inf], "inf: pass a finite number"),
        (Labels(), "abc", "expected a list of labels"),
        (Labels(), [1.5], "expected a category"),
        (Category(), b"x", "expected a category"),
        (Number(), 1j, "expected a number"),
    ],
)
def test_values_that_no_kind_takes_are_refused_while_learning(feature: Any, value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        feature.learn("f", [value], True)


def test_a_column_has_one_type() -> None:
    with pytest.raises(TypeError, match=r"f is both 'a' \(str\) and 1 \(int\): pass one type"):
        Category().learn("f", ["a", 1], False)
    level = Category().learn("f", ["a"], False)
    with pytest.raises(TypeError, match=r"f is 7 \(int\), but its categories are of type str"):
        encoded(level, [7])


# ------------------------------------------------------------------ refusals


def of(feature: Any, *values: Any) -> list[list[float]]:
    """The columns of a feature for these values."""
    vectors: list[list[float]] = (
        Features(user={"f": feature}, map="li").user_vectors([{"f": value} for value in values])[:, 1:].tolist()
    )
    return vectors


@pytest.mark.parametrize("gap", [None, np.nan, np.float32("nan"), pandas.NA, pandas.NaT])
def test_missing_values_follow_the_rule(gap: Any) -> None:
    assert of(Number(missing=7), 2.0, gap) == [[2.0], [7.0]]
    assert of(Number(missing="column"), 2.0, gap) == [[2.0, 0.0], [0.0, 1.0]]
    assert of(Category(values=["de"], missing="zero"), gap) == [[0, 0]]
    assert of(Category(values=["de"], missing="column"), gap, "it") == [[0, 0, 1], [0, 1, 0]]
    assert of(Category(values=["de"], missing="column", unknown="zero"), gap, "it") == [[0, 1], [0, 0]]
    for feature in (Number(), Category(values=["de"])):
        with pytest.raises(ValueError, match="user feature 'f' is missing, and there is no rule for that: pass a"):
            of(feature, gap)


@pytest.mark.parametrize(
    ("feature", "values", "kind", "words"),
    [
        *((Number(), [1.0, odd], TypeError, "in row 1 is .* expected a number") for odd in ("31", Decimal(1), 1j, [1])),
        *((Number(missing=0.0), [1, odd], ValueError, "in row 1 is -?inf: pass") for odd in (-np.inf, 10**400)),
        *(
            (Category(values=["de"]), [odd], TypeError, "'f' is .*, expected a category, which is a str or an int")
            for odd in (1.5, ("a", "b"), ["a"], b"de", datetime.date(2020, 1, 1))
        ),
        (Category(values=[3]), ["3"], TypeError, r"is '3' \(str\), but its categories are of type int: pass 3"),
        (Category(values=["2"]), ["2", 2], TypeError, r"in row 1 is 2 \(int\), but its categories are of type str"),
        (
            Category(values=["paris"], unknown="error"),
            ["paris", "pairs"],
            ValueError,
            r"in row 1 is 'pairs', which is none of its 1 categories \(did you mean paris\?\): add it",
        ),
    ],
)
def test_wrong_values_name_feature_row_and_remedy(
    feature: Any, values: list[Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        of(feature, *values)


def test_categories_are_columns() -> None:
    assert of(["de", "fr"], "fr", "de", "it", np.str_("de")) == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert of([3, np.int64(1), 2.0], 1.0, np.int32(2), 9, True) == [
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
        [0, 1, 0, 0],
    ]
    assert Features(user={"f": Category(values=["other", "missing"], missing="column")}, map="li").user_columns == [
        "constant", "f=other", "f=missing", "f=(other)", "f=(missing)",
    ]  # fmt: skip
    base = Category(values=["fr", "it"], base="de", missing="column")
    assert of(base, "de", "it", "jp", None) == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    features = Features(user={"f": base}, map="li")
    assert Features.from_dict(features.to_dict()).user == {"f": base}


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        (Number, {"missing": "zero"}, "missing must be error, column or a number, got 'zero'"),
        (Number, {"missing": np.nan}, "missing must be finite, got nan"),
        (Category, {"values": "de"}, "values must be a list of categories, got 'de'"),
        (Category, {"values": ["a", "a"]}, "values holds 'a' twice"),
        (Category, {"values": ["1", 1]}, "values holds '1' twice, perhaps as a str and as an int"),
        (Category, {"values": ["1"], "base": 1}, "values holds '1' twice"),
        (Category, {"values": ["a"], "unknown": "mean"}, "unknown must be column, zero or error, got 'mean'"),
        (Category, {"values": ["a"], "missing": 0}, "missing must be column, zero or error, got 0"),
    ],
)
def test_impossible_rules_are_refused(kind: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        kind(**settings)
