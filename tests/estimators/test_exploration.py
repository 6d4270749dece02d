"""Exploration coefficients: the numbers of the paper's tables, settings that are refused, and their plain form."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from hybandits.estimators.exploration import (
    AsWritten,
    Coefficients,
    Constant,
    Exploration,
    Reduction,
    SelfNormalised,
    from_plain,
    to_plain,
)
from hybandits.kernels import decisions

T, DELTA, S, K, D1, D2 = 1000, 0.05, 1.7, 6, 4, 3


def gamma(coefficients: Coefficients, t: int) -> float:
    return float(decisions.radius(np.array(coefficients), t))


@pytest.mark.parametrize(
    ("reduction", "ridge", "expected"),
    [
        ("shared", 1.0, S * math.sqrt(K) + math.sqrt(2 * (D1 + D2 * K) * math.log(T / DELTA))),
        ("disjoint", 1.0, 2 * math.sqrt(S) + math.sqrt(2 * (D1 + D2) * math.log(K * T / DELTA))),
        ("hybrid", K, 2 * (S * math.sqrt(K) + math.sqrt(2 * (D1 + D2) * math.log(T / DELTA)))),
    ],
)
def test_as_written_in_the_paper(reduction: Reduction, ridge: float, expected: float) -> None:
    given = AsWritten(horizon=T, delta=DELTA, bound=S, arms=K)
    counted = AsWritten(horizon=T, delta=DELTA, bound=S)
    for coefficient, met in ((given, 2), (counted, K)):
        assert coefficient.ridge(reduction, met) == ridge
        numbers = coefficient.coefficients(reduction, D1, D2, met, ridge)
        assert gamma(numbers, 0) == gamma(numbers, T) == pytest.approx(expected, rel=1e-12)
    assert counted.ridge(reduction, 0) == 1.0


@pytest.mark.parametrize("reduction", ["shared", "hybrid", "disjoint"])
@pytest.mark.parametrize(("d1", "d2"), [(D1, D2), (D1, 0), (0, D2)])
def test_self_normalised_is_its_formula(reduction: Reduction, d1: int, d2: int) -> None:
    sigma, s1, s2, lx, lz, ridge, t = 0.3, 0.8, 0.5, 2.0, 3.0, 0.25, 50
    coefficient = SelfNormalised(noise=sigma, bound=(s1, s2), feature_bound=(lx, lz), delta=DELTA)
    if d1 == 0:
        s1 = lx = 0.0
    if d2 == 0:
        s2 = lz = 0.0
    k = K if reduction == "shared" else 1
    d = d1 + d2 * k
    expected = math.sqrt(s1**2 + k * s2**2) * math.sqrt(ridge) + sigma * math.sqrt(
        2 * math.log(1 / DELTA) + d * math.log(1 + t * (lx**2 + lz**2) / (ridge * d))
    )
    assert gamma(coefficient.coefficients(reduction, d1, d2, K, ridge), t) == pytest.approx(expected, rel=1e-12)
    assert coefficient.ridge(reduction, K) is None


@pytest.mark.parametrize("reduction", ["shared", "hybrid", "disjoint"])
@pytest.mark.parametrize("kind", [AsWritten, SelfNormalised])
def test_a_factor_multiplies_gamma_at_all_times_and_nothing_else(reduction: Any, kind: Any) -> None:
    settings = {"horizon": 1000} if kind is AsWritten else {"noise": 0.3, "bound": (0.8, 0.5)}
    usual, halved, same = kind(**settings), kind(**settings, factor=0.5), kind(**settings, factor=1.0)
    numbers = [each.coefficients(reduction, 3, 2, K, 2.0) for each in (usual, halved, same)]
    for t in (0, 1, 1000):
        assert gamma(numbers[1], t) == pytest.approx(gamma(numbers[0], t) / 2, rel=1e-15)
    assert numbers[2] == numbers[0], "to the bit"
    assert halved.ridge(reduction, K) == usual.ridge(reduction, K)
    assert "factor" not in to_plain(same), "files and records without a factor stay as they are"
    assert to_plain(halved)["factor"] == 0.5


@pytest.mark.parametrize(
    "coefficient",
    [
        AsWritten(horizon=10),
        AsWritten(horizon=10, factor=0.1),
        SelfNormalised(factor=3),
        AsWritten(horizon=np.int64(10), delta=np.float32(0.5), bound=2, arms=np.int8(3)),  # type: ignore[arg-type]
        SelfNormalised(),
        SelfNormalised(noise=np.float64(0.1), bound=[1, 2], feature_bound=(3.0, 4.0)),  # type: ignore[arg-type]
        Constant(alpha=0),
    ],
)
def test_the_plain_form_is_json_and_comes_back(coefficient: Exploration) -> None:
    assert isinstance(coefficient, Exploration)
    assert from_plain(json.loads(json.dumps(to_plain(coefficient)))) == coefficient


def test_plain_forms_that_are_refused() -> None:
    with pytest.raises(
        ValueError, match="exploration needs a kind, one of AsWritten, Constant, SelfNormalised; got 'X'"
    ):
        from_plain({"kind": "X"})
    with pytest.raises(ValueError, match="got None"):
        from_plain({})
    with pytest.raises(ValueError, match="Constant has no setting 'beta': it has alpha"):
        from_plain({"kind": "Constant", "alpha": 1.0, "beta": 2.0})

    class Constant2(Constant):
        pass

    Constant2.__name__ = "Constant"
    for other in (Constant2(alpha=1.0), 3):
        with pytest.raises(TypeError, match=r"cannot be saved: use AsWritten, SelfNormalised or Constant"):
            to_plain(other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: AsWritten(horizon=0), ValueError, "horizon must be at least 1, got 0"),
        (lambda: AsWritten(horizon=10**400), ValueError, "horizon must be finite"),
        (lambda: AsWritten(horizon=10, delta=1.0), ValueError, r"delta must lie in \(0, 1\), got 1\.0"),
        (lambda: AsWritten(horizon=10, arms=0), ValueError, "arms must be at least 1, got 0"),
        (lambda: AsWritten(horizon=10, bound=-1.0), ValueError, r"bound must be positive, got -1\.0"),
        (lambda: SelfNormalised(noise=0.0), ValueError, r"noise must be positive, got 0\.0"),
        (lambda: SelfNormalised(delta=0.0), ValueError, r"delta must lie in \(0, 1\), got 0\.0"),
        (lambda: SelfNormalised(bound=1e200), ValueError, r"bound must lie between 1e-50 and 1e50, got 1e\+200"),
        (lambda: SelfNormalised(bound=(1.0, 2.0, 3.0)), ValueError, "bound must be one number or a pair"),  # type: ignore[arg-type]
        (lambda: SelfNormalised(feature_bound=0.0), ValueError, r"feature_bound must be positive, got 0\.0"),
        (lambda: SelfNormalised(feature_bound=(1.0, "2")), TypeError, "feature_bound must be a number, got '2'"),  # type: ignore[arg-type]
        (lambda: SelfNormalised(factor=0.0), ValueError, r"factor must be positive, got 0\.0"),
        (lambda: AsWritten(horizon=10, factor=-1.0), ValueError, r"factor must be positive, got -1\.0"),
        (lambda: Constant(alpha=-0.1), ValueError, r"alpha must not be negative, got -0\.1"),
        (lambda: Constant(0.5), TypeError, "positional argument"),  # type: ignore[misc]
    ],
)
def test_bad_settings_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
