"""Numbers and names as verdicts write them."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits.paper.claims.wording import join_names, mean, name_a_few, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0512, "-0.0512"), (99.94, "99.9"), (100.4, "100"), (-123456.0, "-123,456"), (1e6, "1e6"),
     (2.51e12, "2.5e12"), (-np.inf, "infinite"), (np.nan, "unknown")],
)  # fmt: skip
def test_numbers_have_the_digits_that_matter(value: float, text: str) -> None:
    assert number(value) == text


def test_shares_are_percentages() -> None:
    assert [percent(share) for share in (0.0, 0.005, 1 / 3, 1.0)] == ["0 %", "0.5 %", "33.33 %", "100 %"]


def test_a_mean_leaves_out_what_is_not_finite() -> None:
    assert mean(np.array([1.0, np.nan, 3.0, np.inf])) == "2"
    assert mean(np.array([np.nan])) == "unknown"


def test_long_lists_of_names_are_cut() -> None:
    assert join_names(["a", "b"]) == "a and b"
    assert name_a_few(["a", "b", "c", "d"]) == "a, b, c and d"
    assert name_a_few(list("abcdef")) == "a, b, c and 3 more"
