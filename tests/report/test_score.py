"""What the page says first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hybandits.paper.claims import Verdict
from hybandits.report.score import Count, counts, leaders
from tests.support.fabricated_results import fabricate, small_setting


def verdict(claim: str, answer: Any, protocol: str = "released", basis: str = "") -> Verdict:
    words = dict.fromkeys(("title", "statement", "test", "summary"), "")
    return Verdict(claim=claim, protocol=protocol, verdict=answer, evidence=(), basis=basis, **words)


def test_claims_are_counted_by_protocol_and_by_what_verdicts_rest_on() -> None:
    fresh = "100 fresh environments"
    judged = [
        verdict("1", "holds"), verdict("1", "undecided", basis=fresh), verdict("2", "undecided"),
        verdict("2", "does not hold", basis=fresh), verdict("4", "holds", basis="100 trials"),
        verdict("1", "does not hold", "written"),
    ]  # fmt: skip
    assert counts(judged) == [
        ("released", [Count("", 2, 0, 1), Count(fresh, 0, 1, 1)]),
        ("written", [Count("", 0, 1, 0)]),
    ], "the first verdict on a claim counts for its protocol, whatever it is called"
    assert counts([]) == []


def test_who_lost_least_and_by_how_much(tmp_path: Path) -> None:
    record = replace(
        small_setting("setting-3", policies=("HyLinUCB", "DisLinUCB")), name="mine", protocol="own", probes=()
    )
    few, many = leaders(fabricate(tmp_path, record))
    # The fabricated levels are 100 + 10 letters + K; environments are 10 % apart.
    assert (few.case, few.best.policy, few.best.mean) == ("mine, K = 10", "HyLinUCB", 190.0)
    assert (many.case, round(many.best.mean, 9)) == ("mine, K = 50", 230.0)
    assert few.second is not None
    assert few.behind is not None
    assert (few.second.policy, round(few.behind.mean, 9)) == ("DisLinUCB", 10.0)
    assert few.clear
    alone = leaders(fabricate(tmp_path / "alone", record.only(["HyLinUCB"])))[0]
    assert (alone.second, alone.behind, alone.clear) == (None, None, False)
