"""Every estimator has the members of the interface that policies use."""

from __future__ import annotations

import pytest

from hybandits import HybridRidge
from hybandits.estimators.interface import Estimator
from hybandits.estimators.learned import LearnedRidge

MEMBERS = {*Estimator.__annotations__, *(name for name in vars(Estimator) if not name.startswith("_"))}


@pytest.mark.parametrize("kind", [HybridRidge, LearnedRidge])
def test_an_estimator_has_every_member(kind: type[HybridRidge] | type[LearnedRidge]) -> None:
    estimator = kind(d1=2, d2=1)
    assert {"d1", "rounds", "score", "learn_batch", "merge"} <= MEMBERS
    assert {name for name in MEMBERS if not hasattr(estimator, name)} == set()
