"""The four sentences of the opening, from fabricated results and verdicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hybandits.paper.claims import Verdict
from hybandits.report.opening import opening
from hybandits.report.tables import read_out_rows
from tests.support.fabricated_outcomes import as_results, fabricated_outcome, power_curves, short_setting
from tests.support.fabricated_results import fabricate, small_setting


def verdict_on(claim: str, answer: Any, protocol: str = "released", **more: Any) -> Verdict:
    return Verdict(**{"claim": claim, "protocol": protocol, "test": "", "verdict": answer, "summary": "", **more})


def test_claims_are_sorted_by_their_verdicts_and_reasons_are_given() -> None:
    fresh = {"basis": "100 fresh environments", "aside": True}
    verdicts = [
        verdict_on("1", "does not hold", summary="Contradicted: A < B. More."),
        verdict_on("1", "holds", **fresh),
        verdict_on("1", "does not hold", "written", summary="Contradicted: C < D; the order appears nowhere. More."),
        verdict_on("2", "undecided"),
        verdict_on("2", "undecided", "written"),
        verdict_on("4", "undecided", early=True),
        verdict_on("5", "does not hold", summary="Contradicted: E."),
        verdict_on("5", "holds", basis="small problem, uniform choice", aside=True),
        verdict_on("6", "assumption not met"),
        verdict_on("7", "does not hold", early=True, summary="2 of 30 regrets exceed their bound; more."),
    ]
    ((question, answer),) = opening(as_results(), verdicts, [])
    assert question == "Do the claims hold?"
    assert answer == (
        "Under the released protocol claim 1 holds, claims 5 (contradicted: E) and 7 (2 of 30 regrets exceed their "
        "bound) do not hold, claim 2 is undecided and claim 6 has an assumption that is not met; under the written "
        "protocol no claim holds, claim 1 (contradicted: C < D) does not hold and claim 2 is undecided; claim 4 is "
        "undecided, because T is before the burn-in."
    )


def test_the_figure_is_reproduced_as_far_as_its_numbers_agree(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1", policies=("HyLinUCB", "LinUCB")))
    rows = read_out_rows(results)
    agreeing = [replace(row, within=True) for row in rows]
    assert opening(results, [], agreeing)[0].answer.startswith(
        f"Yes: {len(rows)} of {len(rows)} numbers read off its panels"
    )
    agreeing[0] = replace(agreeing[0], within=False)
    assert opening(results, [], agreeing)[0].answer.startswith(f"In part: {len(rows) - 1} of {len(rows)}")


def test_the_policy_to_use_loses_least_beside_the_best_of_the_paper() -> None:
    e = replace(short_setting("setting-1"), policies=small_setting("setting-1").policies)
    levels = dict.fromkeys([entry.name for entry in e.policies], 500.0)
    released = fabricated_outcome(
        e, power_curves(e, levels | {"HyLinUCB": 200.0, "HyIDS": 20.0, "HyThompson": 30.0}, spread=0)
    )
    written = replace(e, protocol="written")
    outcome = fabricated_outcome(
        written, power_curves(written, levels | {"HyIDS": 100.0, "HyThompson": 90.0}, spread=0)
    )
    answers = {answered.question: answered.answer for answered in opening(as_results(released, outcome), [], [])}
    assert answers["What should one use instead?"] == (
        "HyIDS, which is given neither noise nor bounds: its regret at T is 0.1 times (released) and 0.2 times "
        "(written) that of the best of the paper's three algorithms, in all 2 cases of settings 1 to 3."
    )
    assert "(HyLinUCB's regret in setting 1 is 200 instead of 500)" in answers["What did the released code run?"]
