"""The front door: which claims are judged, under which protocols, and what a verdict says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybandits.paper.claims import FAILS, HOLDS, OPEN, judge
from hybandits.paper.claims.regret_order import judge_claim_1
from tests.support.fabricated_outcomes import (
    ORDER_1,
    as_results,
    diversity,
    fabricated_outcome,
    judged,
    measures,
    power_curves,
    root_curves,
    short_setting,
)


def test_one_trial_per_environment_is_enough_and_one_environment_is_not() -> None:
    e = short_setting("setting-1", trials=1)
    assert judge_claim_1(judged(e, power_curves(e, ORDER_1))).verdict == HOLDS
    e = short_setting("setting-1", seeds=(1,))
    verdict = judge_claim_1(judged(e, power_curves(e, ORDER_1)))
    assert verdict.verdict == OPEN
    assert "one environment only" in verdict.evidence[0].value
    e = diversity(trials=1)
    verdicts = judge(as_results(fabricated_outcome(e, root_curves(e, 0.5), measures(e))))
    assert {v.verdict for v in verdicts} == {OPEN}
    assert "one trial only" in verdicts[0].evidence[0].value


def test_both_protocols_are_judged_and_absent_experiments_skipped() -> None:
    e = short_setting("setting-1")
    written = replace(e, protocol="written")
    reverse = ORDER_1 | {"HyLinUCB": 900.0}
    in_order = fabricated_outcome(e, power_curves(e, ORDER_1))
    verdicts = judge(as_results(in_order, fabricated_outcome(written, power_curves(e, reverse))))
    assert [(v.claim, v.protocol) for v in verdicts] == [(c, p) for c in "17" for p in ("released", "written")]
    assert [v.verdict for v in verdicts][:2] == [HOLDS, FAILS]


def test_fresh_environments_are_judged_beside_the_published_ones() -> None:
    e = short_setting("setting-1")
    fresh = replace(e, name="setting-1-fresh", seeds=tuple(range(30)), trials=1)
    written = replace(e, protocol="written")
    reverse = ORDER_1 | {"HyLinUCB": 900.0}
    outcomes = [
        fabricated_outcome(e, power_curves(e, ORDER_1)),
        fabricated_outcome(fresh, power_curves(e, reverse)),
        fabricated_outcome(written, power_curves(e, ORDER_1)),
    ]
    verdicts = [v for v in judge(as_results(*outcomes)) if v.claim == "1"]
    assert [(v.protocol, v.basis, v.aside, v.verdict) for v in verdicts] == [
        ("released", "the 5 published environments", False, HOLDS),
        ("released", "30 fresh environments", True, FAILS),
        ("written", "5 environments", False, HOLDS),
    ]
    (alone,) = judge(as_results(outcomes[1]))
    assert (alone.claim, alone.aside) == ("1", True), "no other claim rests on fresh environments"


def test_every_verdict_says_what_it_rests_on() -> None:
    e = diversity(trials=4)
    s = short_setting("setting-1", seeds=(1, 2))
    outcome = fabricated_outcome(e, root_curves(e, 0.5), measures(e))
    verdicts = judge(as_results(outcome, fabricated_outcome(s, power_curves(s, ORDER_1))))
    one_draw = "4 trials of one draw of the parameters"
    assert {v.claim: v.basis for v in verdicts} == {
        "1": "2 environments", "4": one_draw, "5": one_draw, "6": one_draw, "7": f"2 environments and {one_draw}",
    }  # fmt: skip


def test_every_claim_says_what_it_is_and_how_it_is_tested() -> None:
    e = diversity(trials=4)
    s = short_setting("setting-1")
    outcome = fabricated_outcome(e, root_curves(e, 0.5), measures(e))
    for verdict in judge(as_results(outcome, fabricated_outcome(s, power_curves(s, ORDER_1)))):
        assert verdict.title
        assert verdict.statement.endswith(".")
        assert verdict.test.endswith(".")
        assert verdict.summary.endswith(".")
        assert "nan" not in f"{verdict.summary} {' '.join(r.value for r in verdict.evidence)}"


def test_confidence_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match="confidence must lie in"):
        judge(as_results(), confidence=95)
    assert judge(as_results()) == []
