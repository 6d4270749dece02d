"""Topics beyond the paper: when they appear, and what their sentences say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybandits.paper import beyond
from hybandits.paper.beyond import Topic, forced_cases, topics_of
from tests.support.fabricated_outcomes import ORDER_1, as_results, fabricated_outcome, power_curves, short_setting


def test_topics_appear_with_their_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, other = (Topic(name, name, (name,), lambda results: "Yes.", name) for name in ("setting-1", "setting-2"))
    computed = Topic("computed", "Computed", (), lambda results: "Always.", "computed")
    monkeypatch.setattr(beyond, "TOPICS", [ran, other, computed])
    outcome = fabricated_outcome(e := short_setting("setting-1"), power_curves(e, ORDER_1))
    assert topics_of(as_results(outcome)) == [ran, computed]
    own = replace(outcome, experiment=replace(outcome.experiment, protocol="own"))
    assert topics_of(as_results(own)) == [], "simulations of one's own are not about the paper"


def test_sentences_on_the_theory_carry_the_numbers() -> None:
    """Regrets of setting 1 are 100 to 500 in 2,000 rounds, where E x = 0 forces about 26."""
    e = short_setting("setting-1", seeds=(1, 2))
    results = as_results(fabricated_outcome(e, power_curves(e, ORDER_1 | {"HyLinUCB": 5.0})))
    crossing, forced = (
        topic.sentences(results) for topic in topics_of(results) if topic.key in ("bounds", "forced-regret")
    )
    assert "LinUCB's after 3.2e91 rounds and DisLinUCB's after 3.9e12 rounds" in crossing
    assert "HyLinUCB's does not within 10^300 rounds, where it is 1,706 times as large" in crossing
    assert crossing.endswith("up to 2,000 rounds, 0 of 3 bounds are below the standard ones.")
    (case,) = forced_cases(results, "released")
    assert case.least < 2_000 * case.forced.mean
    assert f"that is {case.forced.mean:.3g} per round, and 1 of the 3 regrets" in forced
    assert forced_cases(results, "written") == []
