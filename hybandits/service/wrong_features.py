"""What is wrong with the features of a request, in the words of bandit.toml."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np

from hybandits.features import Category, Feature, Number
from hybandits.foundation.checks import nearest, twin_of
from hybandits.kernels.arrow import LIMIT
from hybandits.service.log.rows import Value
from hybandits.service.problems import Refused, said

log = logging.getLogger("hybandits.service")


def wrong_features(side: str, declared: Mapping[str, Feature], given: Mapping[str, Value]) -> Refused:
    """The answer to features of a user or an arm that could not be used.

    If the reason cannot be found, the answer has none: requests that share a transaction must not fail with this one.
    """
    try:
        refused = _named(side, declared, given)
    except Exception:
        log.exception("cannot tell what is wrong with features")
        refused = None
    return refused or Refused(
        422, f"The features of the {side} cannot be used. Compare them with bandit.toml.", field=_field(side)
    )


def _named(side: str, declared: Mapping[str, Feature], given: Mapping[str, Value]) -> Refused | None:
    """What is wrong with the first feature that does not fit, or with the largest number if all of them fit."""
    numbers: dict[str, float] = {}
    for name, feature in declared.items():
        value = given.get(name)
        if not _fits(feature, value):
            wrong = _wrong_number(name, value) if isinstance(feature, Number) else _wrong_category(name, feature, value)
            return _refused(side, name, value, wrong)
        if isinstance(feature, Number) and isinstance(value, int | float):
            numbers[name] = float(value)
    if not numbers:
        return None
    largest = max(numbers, key=lambda name: abs(numbers[name]))
    wrong = f"is {numbers[largest]:g}, and products of features may not go beyond {LIMIT:g}. Send it in another unit."
    return _refused(side, largest, given[largest], wrong)


def _field(side: str) -> str:
    return "user" if side == "user" else "features"


def _refused(side: str, name: str, value: Value, wrong: str) -> Refused:
    return Refused(422, f"The {side} feature {name!r} {wrong}", field=f"{_field(side)}.{name}", value=value)


def _fits(feature: Feature, value: Value) -> bool:
    try:
        out = np.zeros((1, len(feature.labels("it"))))
        feature.fill("it", [value], out)
    except (TypeError, ValueError):
        return False
    return bool(np.abs(out).max() <= LIMIT)


def _wrong_number(name: str, value: Value) -> str:
    if value is None:
        return (
            "is missing. Send a number. (A bandit takes requests without it if its bandit.toml says numeric = "
            f'{{ {name} = {{ missing = "column" }} }}.)'
        )
    if isinstance(value, str):
        return f"is {said(value)}, expected a number. Send a number."
    return f"is {said(value)}, and numbers may not go beyond {LIMIT:g}. Send it in another unit."


def _wrong_category(name: str, feature: Category, value: Value) -> str:
    values = list(feature.values or ())
    some = ", ".join(map(said, values[:10])) + (", .." if len(values) > 10 else "")
    if value is None:
        return (
            f"is missing. Send one of {some}. (A bandit takes requests without it if its bandit.toml says "
            f'categorical = {{ {name} = {{ values = [..], missing = "column" }} }}.)'
        )
    twin = twin_of(value)
    if twin in values:
        return f"is {said(value)}, and its values are {some}. Send {said(twin)}."
    return f"is {said(value)}, which is none of its values{nearest(value, map(str, values))}. Send one of {some}."
