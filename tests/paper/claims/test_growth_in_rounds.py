"""Claim 4 on regrets that grow with known exponents."""

from __future__ import annotations

import pytest

from hybandits.paper.claims import FAILS, HOLDS, OPEN
from hybandits.paper.claims.growth_in_rounds import judge_claim_4
from tests.support.fabricated_outcomes import diversity, judged, measures, root_curves


@pytest.mark.parametrize(
    ("shape", "answer", "words"),
    [
        (0.5, HOLDS, "alike"),
        (0.3, HOLDS, "slower"),
        (0.53, HOLDS, "faster"),
        (0.55, OPEN, "faster"),
        (0.8, FAILS, "faster"),
    ],
)
def test_claim_4(shape: float, answer: str, words: str) -> None:
    e = diversity()
    verdict = judge_claim_4(judged(e, root_curves(e, shape), measures(e)))
    assert verdict.verdict == answer
    assert f"LinUCB {words}" in verdict.summary
    assert "T = 5,000 is before it" in verdict.summary
