"""Claim 8: the regrets of bandits that play on the contexts of Yahoo's click log."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybandits.paper.claims.comparisons import compare_regrets, judge_mean
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import OPEN, Finding, Verdict, combine_answers, summarise, verdict_on
from hybandits.paper.claims.wording import mean, number, percent
from hybandits.paper.settings import (
    DEFECT_SUFFIX,
    HYRAN_RELEASED,
    YAHOO_EXPERIMENTS,
    synthetic_log,
    uniform_choice_regret,
)

EARLY = 0.9
"""Share of uniform choice's regret on a click log from which on HyLinUCB is taken to be still exploring."""

CLOSE = 0.5
"""LinUCB's regret is close to HyLinUCB's, and another's much larger, if LinUCB's exceeds HyLinUCB's by less than this
share of what the other's does. The published curves end at 0.25 (DisLinUCB) and 0.11 (HyRan)."""

_CLAIM_BY_EXPERIMENT = {YAHOO_EXPERIMENTS["articles"]: "8", YAHOO_EXPERIMENTS["positions"]: "8 (positions)"}

_RIVALS = ("LinUCB", "DisLinUCB", HYRAN_RELEASED)


def judge_claim_8(judged: JudgedOutcome) -> Verdict:
    """A click log: who has the smallest regret, and who comes close."""
    synthetic = synthetic_log(judged.experiment) is not None
    test = (
        f"The regrets of two policies at T are compared trial by trial. A < B holds if the "
        f"{percent(judged.confidence)} interval of the mean difference (Student's t over trials) lies below 0. It is "
        f"contradicted if the interval lies above 0 even with its error divided by the number of parts. LinUCB is "
        f"close, and another policy's regret much larger, if LinUCB's regret exceeds HyLinUCB's by less than {CLOSE:g} "
        f"of what the other's does. All parts must hold. HyRan is the variant that the paper plotted. Trials play the "
        f"same log and differ by noise, so the verdict is about this log. With one trial there is no interval and the "
        f"claim is undecided; so it is as long as HyLinUCB has lost {percent(EARLY)} or more of what choosing "
        f"uniformly among the candidates would lose."
        f"{' This log is synthetic, so the claim is undecided whatever comes out.' if synthetic else ''}"
    )
    missing = judged.missing(("HyLinUCB", *_RIVALS))
    findings = [] if missing else _judge_parts(judged)
    answer, summary = combine_answers(findings), missing or _summarise(judged, findings)
    if synthetic:
        findings, answer = [_as_information(finding) for finding in findings], OPEN
        summary = (
            "No real data: the log is synthetic, not Yahoo's, so nothing is known about the claim. What the synthetic "
            f"log shows: {re.sub('^(Contradicted|Not settled)', lambda match: match[0].lower(), summary)}"
        )
    elif findings and (reason := _reason_it_is_too_early(judged)):
        findings = [
            Finding(f"{finding.what} (not deciding)", f"{finding.value}; so far: {finding.verdict}")
            for finding in findings
        ]
        answer, summary = OPEN, reason
    findings += _compare_variants(judged, "synthetic log: " if synthetic else "")
    claim = _CLAIM_BY_EXPERIMENT[judged.experiment.name]
    return verdict_on(claim, judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def _reason_it_is_too_early(judged: JudgedOutcome) -> str:
    """Why algorithms that have hardly begun to exploit are not ranked; empty if they have."""
    uniform = uniform_choice_regret(judged.experiment)
    lost = float(judged.outcome.final("HyLinUCB").mean())
    if uniform is None or lost < EARLY * uniform:
        return ""
    return (
        f"Too early to tell: after {judged.horizon:,} rounds HyLinUCB has lost {100 * lost / uniform:.0f} % of "
        "what choosing uniformly among the candidates would lose, so it is still exploring."
    )


def _summarise(judged: JudgedOutcome, findings: Sequence[Finding]) -> str:
    names = ("HyLinUCB", *_RIVALS)
    if judged.experiment.trials > 1:
        return summarise(
            findings, "HyLinUCB has the smallest regret, LinUCB's is close and the others' are much larger."
        )
    final = {name: float(judged.outcome.final(name)[0]) for name in names}
    regrets = ", ".join(f"{name} {number(final[name])}" for name in sorted(names, key=lambda name: final[name]))
    return f"Not settled: one trial gives no interval (--trials 2 or more would). In that trial: {regrets}."


def _judge_parts(judged: JudgedOutcome) -> list[Finding]:
    parts = 2 * len(_RIVALS) - 1
    order = [compare_regrets(judged, "HyLinUCB", rival, parts=parts) for rival in _RIVALS]
    return order + [_judge_closeness(judged, rival, parts) for rival in _RIVALS[1:]]


def _judge_closeness(judged: JudgedOutcome, rival: str, parts: int) -> Finding:
    """Whether LinUCB's excess over HyLinUCB is less than the share CLOSE of another's."""
    best, near, far = (judged.outcome.final(name) for name in ("HyLinUCB", "LinUCB", rival))
    units = judged.outcome.independent_units("HyLinUCB")
    answer, difference = judge_mean(
        (near - best) - CLOSE * (far - best), units, below=0.0, confidence=judged.confidence, parts=parts
    )
    value = (
        f"{mean(near - best)} against {mean(far - best)} more than HyLinUCB; "
        f"{judged.describe_interval(difference, units, of=f'first less {CLOSE:g} of the second')}"
    )
    return Finding(f"excess of LinUCB < {CLOSE:g} of {rival}'s", value, answer)


def _as_information(finding: Finding) -> Finding:
    """A part as information: what it would say of the synthetic log."""
    return Finding(
        f"synthetic log: {finding.what} (not deciding)", f"{finding.value}; in this synthetic log: {finding.verdict}"
    )


def _compare_variants(judged: JudgedOutcome, lead: str) -> list[Finding]:
    """For information: HyRan with its cross blocks, and the order among algorithms with the released code's defect."""
    pairs = [("HyLinUCB", "HyRan")] + [(f"HyLinUCB{DEFECT_SUFFIX}", f"{rival}{DEFECT_SUFFIX}") for rival in _RIVALS]
    findings = [compare_regrets(judged, a, b, decides=False) for a, b in pairs if not judged.missing([a, b])]
    return [finding._replace(what=f"{lead}{finding.what} (not deciding)") for finding in findings]
