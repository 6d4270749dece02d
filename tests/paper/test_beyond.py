"""Topics beyond the paper: when they appear, and what their sentences say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybandits.paper import beyond
from hybandits.paper.beyond import Topic, topics_of
from tests.support.fabricated_outcomes import ORDER_1, as_results, fabricated_outcome, power_curves, short_setting


def test_topics_appear_with_their_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, other = (Topic(name, name, (name,), lambda results: "Yes.", name) for name in ("setting-1", "setting-2"))
    computed = Topic("computed", "Computed", (), lambda results: "Always.", "computed")
    monkeypatch.setattr(beyond, "TOPICS", [ran, other, computed])
    outcome = fabricated_outcome(e := short_setting("setting-1"), power_curves(e, ORDER_1))
    assert topics_of(as_results(outcome)) == [ran, computed]
    own = replace(outcome, experiment=replace(outcome.experiment, protocol="own"))
    assert topics_of(as_results(own)) == [], "simulations of one's own are not about the paper"
