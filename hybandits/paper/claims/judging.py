"""All claims at once: every claim whose experiment was run, judged under every protocol."""

from __future__ import annotations

from collections.abc import Iterable

from hybandits.experiments.results import Results
from hybandits.foundation import checks
from hybandits.paper.claims.beyond_burn_in import judge_small_problem
from hybandits.paper.claims.click_log import judge_claim_8
from hybandits.paper.claims.design_matrix import judge_claim_5
from hybandits.paper.claims.growth_in_rounds import judge_claim_4
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.key_lemma import judge_claim_6
from hybandits.paper.claims.regret_bounds import judge_claim_7
from hybandits.paper.claims.regret_order import judge_claim_1, judge_claim_2, judge_claim_3
from hybandits.paper.claims.verdicts import CONFIDENCE, Verdict
from hybandits.paper.settings import SETTINGS, SMALL_DIVERSITY, YAHOO_EXPERIMENTS


def judge(results: Results, *, confidence: float = CONFIDENCE) -> list[Verdict]:
    """Judge every claim of the paper whose experiment was run.

    Parameters
    ----------
    results : Results
        What `hybandits.experiments.results.read_results` returns.
    confidence : float, default 0.95
        The level of the intervals that verdicts rest on.

    Returns
    -------
    list of Verdict
        Claim by claim, and for each claim protocol by protocol.
    """
    checks.probability("confidence", confidence, "it is a confidence level, e.g. 0.95")
    verdicts: list[Verdict] = []
    for protocol in ("released", "written"):
        synthetic = _judged_outcomes(results, SETTINGS, protocol, confidence)
        verdicts += [judge_claim(synthetic[name]) for name, judge_claim in _OF_SETTINGS.items() if name in synthetic]
        if "diversity" in synthetic:
            diversity = synthetic["diversity"]
            others = [outcome for name, outcome in synthetic.items() if name not in ("diversity", SMALL_DIVERSITY)]
            verdicts += [judge_claim_4(diversity), judge_claim_5(diversity), judge_claim_6(diversity, others)]
        if SMALL_DIVERSITY in synthetic:
            verdicts += judge_small_problem(synthetic[SMALL_DIVERSITY])
        if synthetic:
            verdicts.append(judge_claim_7(list(synthetic.values()), protocol))
        on_logs = _judged_outcomes(results, YAHOO_EXPERIMENTS.values(), protocol, confidence)
        verdicts += [judge_claim_8(outcome) for outcome in on_logs.values()]
    return sorted(verdicts, key=lambda verdict: verdict.claim)  # stable: protocols stay in order


_OF_SETTINGS = {"setting-1": judge_claim_1, "setting-2": judge_claim_2, "setting-3": judge_claim_3}


def _judged_outcomes(
    results: Results, names: Iterable[str], protocol: str, confidence: float
) -> dict[str, JudgedOutcome]:
    """Those of the named experiments that were run, ready to be judged."""
    outcomes = {name: results.outcome(name, protocol) for name in names}
    return {name: JudgedOutcome(outcome, confidence) for name, outcome in outcomes.items() if outcome is not None}
