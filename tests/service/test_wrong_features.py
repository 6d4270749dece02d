"""What is said about features that cannot be used: the feature, its value, and a remedy in the words of bandit.toml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybandits.service import wrong_features as module
from hybandits.service.commands import Decide, OfArm, PutArm
from hybandits.service.problems import Refused
from hybandits.service.wrong_features import wrong_features
from tests.support.bandits import USER, bandit, put, writer

STRICT = {"country": {"values": ["de", "fr"], "unknown": "error"}, "zone": [1, 2]}
BANDIT = bandit(user={"numeric": ["age"], "categorical": STRICT})
GOOD = {"age": 31, "country": "de", "zone": 1}


@pytest.mark.parametrize(
    ("name", "value", "detail"),
    [
        ("age", "old", "is 'old', expected a number. Send a number."),
        ("age", 10**400, "numbers may not go beyond 1e+50. Send it in another unit."),
        ("age", None, "is missing. Send a number. (A bandit takes requests without it if its bandit.toml says numeric"),
        ("country", "dee", "is 'dee', which is none of its values (did you mean de?). Send one of 'de', 'fr'."),
        ("country", 1.5, "is 1.5, which is none of its values. Send one of 'de', 'fr'."),
        ("country", True, "is true, which is none of its values. Send one of 'de', 'fr'."),
        ("country", None, 'country = { values = [..], missing = "column" }'),
        ("zone", "1", "is '1', and its values are 1, 2. Send 1."),
    ],
)
def test_the_feature_is_named(name: str, value: Any, detail: str) -> None:
    refused = wrong_features("user", BANDIT.user, {**GOOD, name: value})
    assert (refused.status, refused.field, refused.value) == (422, f"user.{name}", value)
    assert f"The user feature {name!r} " in refused.detail
    assert detail in refused.detail
    assert "Number(" not in refused.detail
    assert "Category(" not in refused.detail


def test_products_that_are_too_large_name_the_largest() -> None:
    refused = wrong_features("user", BANDIT.user, {**GOOD, "age": 1e40})
    assert (refused.field, refused.value) == ("user.age", 1e40)
    assert "products of features may not go beyond 1e+50" in refused.detail
    assert wrong_features("arm", {}, {}).field == "features"


def test_the_largest_is_looked_for_among_numbers() -> None:
    """An integer may name a category, and then it may have any number of digits."""
    other = bandit(user={"numeric": ["age"], "categorical": {"zone": [1, 2]}})
    refused = wrong_features("user", other.user, {"age": 1e40, "zone": 10**400})
    assert (refused.status, refused.field) == (422, "user.age")


def test_requests_beside_one_that_cannot_be_explained_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(module, "_named", broken)
    service = writer(tmp_path)
    put(service, "a", "b")
    good, bad = service.serve([Decide(USER), Decide({"age": "old", "country": "de"})])
    (arm,) = service.serve([OfArm("c", PutArm({"price": "high"}))])
    assert (good.status, bad.status, arm.status) == (201, 422, 422)
    assert isinstance(bad, Refused)
    assert bad.detail == "The features of the user cannot be used. Compare them with bandit.toml."
    assert service.trouble is None
