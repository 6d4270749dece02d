"""All claims at once: every claim whose experiment was run, judged under every protocol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

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
from hybandits.paper.claims.wording import join_names
from hybandits.paper.settings import FRESH_NAMES, SETTINGS, SMALL_DIVERSITY, YAHOO_EXPERIMENTS


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
        Claim by claim, and for each claim protocol by protocol. Claims 1 to 3 are judged on the paper's environments,
        and then on fresh ones if there are any.
    """
    checks.probability("confidence", confidence, "it is a confidence level, e.g. 0.95")
    verdicts: list[Verdict] = []
    for protocol in ("released", "written"):
        synthetic = _judged_outcomes(results, SETTINGS, protocol, confidence)
        fresh = _judged_outcomes(results, FRESH_NAMES.values(), protocol, confidence)
        for name, judge_claim in _OF_SETTINGS.items():
            verdicts += [_resting_on([synthetic[name]], judge_claim(synthetic[name]))] if name in synthetic else []
            if (other := fresh.get(FRESH_NAMES[name])) is not None:
                verdicts.append(replace(_resting_on([other], judge_claim(other)), aside=True))
        if "diversity" in synthetic:
            diversity = synthetic["diversity"]
            others = [outcome for name, outcome in synthetic.items() if name not in ("diversity", SMALL_DIVERSITY)]
            judged = [judge_claim_4(diversity), judge_claim_5(diversity), judge_claim_6(diversity, others)]
            verdicts += [_resting_on([diversity], verdict) for verdict in judged]
        if SMALL_DIVERSITY in synthetic:
            verdicts += [replace(verdict, aside=True) for verdict in judge_small_problem(synthetic[SMALL_DIVERSITY])]
        if synthetic:
            every = list(synthetic.values())
            verdicts.append(_resting_on(every, judge_claim_7(every, protocol)))
        on_logs = _judged_outcomes(results, YAHOO_EXPERIMENTS.values(), protocol, confidence)
        verdicts += [_resting_on([outcome], judge_claim_8(outcome)) for outcome in on_logs.values()]
    return sorted(verdicts, key=lambda verdict: verdict.claim)  # stable: protocols stay in order


_OF_SETTINGS = {"setting-1": judge_claim_1, "setting-2": judge_claim_2, "setting-3": judge_claim_3}


def _resting_on(outcomes: Sequence[JudgedOutcome], verdict: Verdict) -> Verdict:
    """The verdict, with what it rests on said."""
    return replace(verdict, basis=join_names(list(dict.fromkeys(outcome.basis for outcome in outcomes))))


def _judged_outcomes(
    results: Results, names: Iterable[str], protocol: str, confidence: float
) -> dict[str, JudgedOutcome]:
    """Those of the named experiments that were run, ready to be judged."""
    outcomes = {name: results.outcome(name, protocol) for name in names}
    return {name: JudgedOutcome(outcome, confidence) for name, outcome in outcomes.items() if outcome is not None}
