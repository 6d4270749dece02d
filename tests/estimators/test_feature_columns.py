"""Numbers and categories: which columns they become, what is fitted, and what missing and unknown values become."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.estimators.feature_columns import Category, Number, declared, from_plain, is_missing, kind_of


def columns(feature: Number | Category, values: Any) -> list[list[float]]:
    out = np.zeros((len(values), len(feature.labels("f"))))
    feature.fill("user feature 'f'", values, out)
    rows: list[list[float]] = out.tolist()
    return rows


@pytest.mark.parametrize(
    "values",
    [[1, 2.5, True], np.array([1, 2.5, 1]), np.array([1, 2.5, 1], np.float32), np.array([1, 2.5, True], object)],
)
def test_numbers_are_taken_as_they_are(values: Any) -> None:
    assert columns(Number(), values) == [[1.0], [2.5], [1.0]]


@pytest.mark.parametrize("values", [[2.0, None], [2.0, math.nan], np.array([2.0, np.nan]), [2.0, np.float32("nan")]])
def test_missing_numbers_follow_the_rule(values: Any) -> None:
    assert columns(Number(missing=7), values) == [[2.0], [7.0]]
    assert columns(Number(missing="column"), values) == [[2.0, 0.0], [0.0, 1.0]]
    assert Number(missing="column").labels("age") == ["age", "age=missing"]
    mean = Number(missing="mean")
    assert not mean.fitted
    fitted = mean.fit("age", [1.0, None, 4.0])
    assert fitted == Number(missing=2.5)
    assert fitted.fitted
    with pytest.raises(ValueError, match=r"user feature 'f' is missing in row 1, and there is no rule for that: pass"):
        columns(Number(), values)
    with pytest.raises(ValueError, match="user feature 'f' is missing, and there is no rule"):
        columns(Number(), values[1:])


def test_what_is_no_number_is_refused() -> None:
    for value, words in (("31", "'31' \\(str\\)"), (Decimal(1), "Decimal"), (1j, "complex"), ([1], "list")):
        with pytest.raises(TypeError, match=rf"user feature 'f' is .*{words}.*, expected a number: convert it, or"):
            columns(Number(), [1.0, value])
    for value in (math.inf, -math.inf, 10**400):
        with pytest.raises(ValueError, match=r"user feature 'f' is -?inf in row 1: pass a finite number"):
            columns(Number(missing=0.0), [1.0, value])
    with pytest.raises(ValueError, match="missing must be error, mean, column or a number, got 'zero'"):
        Number(missing="zero")
    with pytest.raises(ValueError, match="missing must be finite, got nan"):
        Number(missing=math.nan)
    with pytest.raises(ValueError, match="f has no mean, because all 2 values are missing: leave it out"):
        Number(missing="mean").fit("f", [None, None])


def test_every_category_becomes_a_column() -> None:
    category = Category(values=["de", "fr"])
    assert category.labels("land") == ["land=de", "land=fr", "land=other"]
    assert columns(category, ["fr", "de", "it", np.str_("de")]) == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert columns(Category(values=["de"], unknown="zero"), ["de", "it"]) == [[1], [0]]
    with pytest.raises(
        ValueError, match=r"'f' is 'pairs' in row 1, which is none of its 1 categories \(did you mean paris\?\): add it"
    ):
        columns(Category(values=["paris"], unknown="error"), ["paris", "pairs"])


@pytest.mark.parametrize("missing", [None, math.nan, np.nan])
def test_missing_categories_follow_the_rule(missing: Any) -> None:
    assert columns(Category(values=["de"], missing="zero"), [missing]) == [[0, 0]]
    assert columns(Category(values=["de"], missing="column"), [missing, "it"]) == [[0, 0, 1], [0, 1, 0]]
    assert columns(Category(values=["de"], missing="column", unknown="zero"), [missing, "it"]) == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="user feature 'f' is missing, and there is no rule for that: pass a category"):
        columns(Category(values=["de"]), [missing])


def test_categories_called_like_the_columns_of_other_values() -> None:
    category = Category(values=["other", "missing"], missing="column")
    assert category.labels("f") == ["f=other", "f=missing", "f=(other)", "f=(missing)"]


def test_numbers_as_categories() -> None:
    category = Category(values=[3, np.int64(1), 2.0])
    assert category.values == (3, 1, 2)
    assert columns(category, [1.0, np.int32(2), 9, True]) == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]
    with pytest.raises(TypeError, match=r"is '2' \(str\), but its categories are of type int, as 2: pass int\(value\)"):
        columns(category, ["2"])
    with pytest.raises(TypeError, match=r"is 2 \(int\) in row 1, but its categories are of type str, as '2'"):
        columns(Category(values=["2"]), ["2", 2])


def test_values_are_found_in_data() -> None:
    category = Category(missing="zero").fit("f", ["b", None, "a", "b", np.str_("c")])
    assert category.values == ("a", "b", "c")
    assert Category().fit("f", ["b", 10, 9.0]).values == (9, 10, "b")
    assert Category(most=2).fit("f", list("cabbc")) == Category(values=("b", "c"))
    assert len(Category().fit("f", range(200)).values or ()) == 200
    with pytest.raises(ValueError, match=r"f has 201 categories, and each would become a column: declare it as Cat"):
        Category().fit("f", range(201))
    assert len(Category(most=300).fit("f", range(250)).values or ()) == 250
    with pytest.raises(ValueError, match="f has no categories, because all 1 values are missing"):
        Category().fit("f", [None])


@pytest.mark.parametrize("value", [1.5, ("a", "b"), ["a"], b"de", datetime.date(2020, 1, 1)])
def test_what_is_no_category_is_refused(value: Any) -> None:
    for call in (lambda: columns(Category(values=["de"]), [value]), lambda: Category().fit("'f'", [value])):
        with pytest.raises(TypeError, match=r"'f' is .*, expected a category, which is a str or an int: convert it"):
            call()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"values": []}, "values is empty"),
        ({"values": ["a", "a"]}, "values holds 'a' twice"),
        ({"values": ["1", 1]}, "values holds '1' twice, perhaps as a str and as an int"),
        ({"unknown": "mean"}, "unknown must be column, zero or error, got 'mean'"),
        ({"missing": 0}, "missing must be column, zero or error, got 0"),
        ({"most": 0}, "most must be at least 1"),
        ({"most": 3, "unknown": "error"}, 'most makes rare values unknown, and unknown is "error"'),
        ({"most": 3, "values": ["a"]}, "values and most are both given"),
    ],
)
def test_what_a_category_cannot_be(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Category(**settings)


def test_text_is_no_list_of_values() -> None:
    with pytest.raises(TypeError, match="values must be a list of categories, got 'de'"):
        Category(values="de")


def test_features_are_declared_in_short() -> None:
    assert declared("f", None) is None
    assert declared("f", "number") == Number()
    assert declared("f", "category") == Category()
    assert declared("f", ["a", "b"]) == Category(values=("a", "b"))
    for odd in ("text", 3):
        with pytest.raises(TypeError, match=r"f is declared as .*: expected number, category, a list of categories"):
            declared("f", odd)


def test_what_is_only_named_is_what_its_values_are() -> None:
    assert kind_of("f", [1, None, np.float32(2), True]) == Number()
    assert kind_of("f", ["a", None]) == Category()
    with pytest.raises(ValueError, match="f is missing in all 2 rows"):
        kind_of("f", [None, math.nan])
    with pytest.raises(TypeError, match=r"f holds 1 \(int\) and is neither all numbers nor all text"):
        kind_of("f", ["a", 1])


@pytest.mark.parametrize("feature", [Number(missing=2.5), Number(), Category(values=("a", 3), missing="zero")])
def test_features_as_plain_values(feature: Number | Category) -> None:
    assert from_plain({"name": "f", **feature.plain()}) == feature


def test_missing_values_of_pandas_are_missing() -> None:
    pandas = pytest.importorskip("pandas")
    assert is_missing(pandas.NA)
    assert is_missing(pandas.NaT)
    assert not is_missing("")
    assert not is_missing(0.0)


def test_filling_leaves_zeros_alone() -> None:
    out = np.zeros((2, 3))
    Category(values=["a", "b"]).fill("f", ["b", "c"], out)
    assert_array_equal(out, [[0, 1, 0], [0, 0, 1]])


def test_a_base_has_no_column() -> None:
    feature = Category(values=["fr", "it"], base="de", missing="column")
    assert feature.labels("country") == ["country=fr", "country=it", "country=other", "country=missing"]
    out = np.zeros((5, 4))
    feature.fill("country", ["de", "it", "jp", None, "fr"], out)
    assert out.tolist() == [[0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert from_plain({"name": "country", **feature.plain()}) == feature
    assert Category(values=[], base=1, unknown="zero").labels("n") == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": "de"}, "base is given without values: give the other values too"),
        ({"values": ["de", "fr"], "base": "de"}, "values holds 'de' twice"),
        ({"values": ["1"], "base": 1}, "values holds '1' twice, perhaps as a str and as an int"),
        ({"values": []}, "values is empty"),
    ],
)
def test_a_base_that_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Category(**settings)
