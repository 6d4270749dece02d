"""Verdicts from parts: which answers combine to which, and what the summary says."""

from __future__ import annotations

import pytest

from hybandits.paper.claims.verdicts import (
    CLAIMS,
    FAILS,
    HOLDS,
    OPEN,
    Answer,
    Finding,
    combine_answers,
    summarise,
    verdict_on,
)


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([HOLDS, HOLDS], HOLDS),
        ([HOLDS, None], HOLDS),
        ([HOLDS, OPEN], OPEN),
        ([OPEN, FAILS, HOLDS], FAILS),
        ([None], OPEN),
        ([], OPEN),
    ],
)
def test_answers_combine(parts: list[Answer | None], answer: Answer) -> None:
    assert combine_answers(Finding("part", "value", part) for part in parts) == answer


def test_a_summary_names_the_parts_that_decide() -> None:
    findings = [Finding(f"{name} < {name.upper()}", "", HOLDS) for name in "abcdef"]
    assert summarise(findings, "All hold.") == "All hold."
    unsettled = [finding._replace(verdict=OPEN) for finding in findings]
    assert summarise(unsettled, "All hold.") == "Not settled: a < A, b < B, c < C and 3 more."
    contradicted = [*unsettled, Finding("x < y", "", FAILS), Finding("z", "for information")]
    assert summarise(contradicted, "All hold.") == "Contradicted: x < y."


def test_a_verdict_carries_its_claim() -> None:
    finding = Finding("HyLinUCB < LinUCB", "1 against 2", HOLDS)
    verdict = verdict_on("1", "written", test="How.", answer=HOLDS, summary="Why.", findings=[finding])
    assert (verdict.claim, verdict.protocol, verdict.title) == ("1", "written", "Setting 1: order of regrets")
    assert verdict.statement == CLAIMS["1"].statement
    assert verdict.evidence == (finding,)
