"""From results to verdicts: which of the paper's claims hold in what was run, and on what evidence.

`judge` reads results and runs nothing. It judges every claim once per protocol: as the released code has it, and as the
text has it. Every kind of claim has a file of its own: `regret_order` (claims 1 to 3, with `growth_in_arms`),
`growth_in_rounds` (4), `design_matrix` (5), `key_lemma` (6), `regret_bounds` (7) and `click_log` (8).

**Intervals respect environments.** Policies are compared in pairs, since row i of both saw the same contexts and noise.
The trials of an environment share their contexts and parameters, so they say little more than one trial does; counted
as independent they would make intervals far too short. Runs are therefore averaged per environment, and the interval is
Student's on those means: 5 environments, 4 degrees of freedom. Where there is one environment but every trial draws
contexts of its own (`diversity`), trials are the units, and verdicts are about that one draw of the parameters.

Another question is whether the published means themselves come out again: in the same environments, where runs differ
only by noise. That interval is given beside the first and does not decide: few readers care about five draws of theta.

**Several parts.** A claim holds if each of its parts does, at the stated confidence each. That needs no correction: a
false claim has a false part, and that part passes with at most the error of a single test. A claim does not hold if one
of its parts is significantly contradicted; parts are then many chances for an accident, so each is tested with the
error divided by their number (Bonferroni). Otherwise the claim is undecided.

**Exponents** are least-squares slopes of log y against log t, over the rounds from T/2 to T, one per run. For an arm's
block, t is the number of its pulls, and all arms of a run share one slope but have intercepts of their own, since some
arms see more diverse features than others. Smallest eigenvalues start to grow late, by an offset that depends on the
policy (bounds that seek wide directions balance a matrix sooner than independent rows do), so their exponents come from
increments.

**One log** (claim 8). All trials play the same rounds of one log and differ by noise and the policies' own draws, so
intervals are over trials and verdicts are about that log. With one trial the comparison is exact for that trial, but
nothing tells how much of it is noise: the numbers are shown and the claim stays undecided, as it does wherever there is
no interval. A synthetic log has the format of Yahoo's and none of its content: whatever comes out there, the claim
stays undecided, and the findings inform without deciding.
"""

from __future__ import annotations

from collections.abc import Iterable

from hybandits.experiments.results import Results
from hybandits.foundation import checks
from hybandits.paper.claims.click_log import judge_claim_8
from hybandits.paper.claims.design_matrix import judge_claim_5
from hybandits.paper.claims.growth_in_rounds import judge_claim_4
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.key_lemma import judge_claim_6
from hybandits.paper.claims.regret_bounds import judge_claim_7
from hybandits.paper.claims.regret_order import judge_claim_1, judge_claim_2, judge_claim_3
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Answer, Finding, Verdict
from hybandits.paper.settings import SETTINGS, YAHOO_EXPERIMENTS

__all__ = ["FAILS", "HOLDS", "OPEN", "Answer", "Finding", "Verdict", "judge"]


def judge(results: Results, *, confidence: float = 0.95) -> list[Verdict]:
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
            others = [outcome for name, outcome in synthetic.items() if name != "diversity"]
            verdicts += [judge_claim_4(diversity), judge_claim_5(diversity), judge_claim_6(diversity, others)]
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
