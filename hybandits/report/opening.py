"""The opening of the page: what a reader wants to know first in four sentences, with numbers from the results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hybandits.experiments.results import Outcome, Results
from hybandits.paper import settings
from hybandits.paper.claims import FAILS, HOLDS, OPEN, UNMET, Verdict
from hybandits.paper.diversity import ROOT, cross_growths, judge_the_root
from hybandits.paper.judging import join_names, number, number_range
from hybandits.report import cases
from hybandits.report.tables import Row, agreement

_LEARNING = ("HyIDS", "HyThompson")
"""Policies that learn their settings, candidates for what to use instead."""

_VERBS: dict[str, tuple[str, str]] = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    OPEN: ("is undecided", "are undecided"),
    UNMET: ("has an assumption that is not met", "have assumptions that are not met"),
}
"""Of one claim and of several."""


class Answered(NamedTuple):
    """A question and its answer."""

    question: str
    answer: str


def opening(results: Results, verdicts: Sequence[Verdict], read_outs: Sequence[Row]) -> list[Answered]:
    """The questions that these results can answer: on the figure, the claims, the released code, and what to use."""
    answers = [
        Answered("Was the published figure reproduced?", _figure(read_outs)),
        Answered("Do the claims hold?", _claims(verdicts)),
        Answered("What did the released code run?", _released_code(results)),
        Answered("What should one use instead?", _instead(results)),
    ]
    return [answered for answered in answers if answered.answer]


def _figure(read_outs: Sequence[Row]) -> str:
    counted = agreement(read_outs)
    if counted is None:
        return ""
    matched, compared = counted["matched"], counted["compared"]
    answer = "Yes" if matched == compared else "In part" if matched else "No"
    return (
        f"{answer}: {matched} of {compared} numbers read off its panels on settings 1 to 3 agree with ours, within "
        "the tolerances stated below."
    )


def _claims(verdicts: Sequence[Verdict]) -> str:
    """Sort the claims by their verdicts, with the reason of those that do not hold."""
    judged = _on_most_runs(verdicts)
    protocols = list(dict.fromkeys(verdict.protocol for verdict in judged))
    waiting = {verdict.claim for verdict in judged if verdict.early and verdict.verdict == OPEN}
    early = [c for c in sorted(waiting) if all(v.early and v.verdict == OPEN for v in judged if v.claim == c)]
    clauses = []
    for protocol in protocols:
        alike: dict[str, list[Verdict]] = {HOLDS: [], FAILS: []}
        for verdict in judged:
            if verdict.protocol == protocol and verdict.claim not in early:
                alike.setdefault(verdict.verdict, []).append(verdict)
        words = []
        for answer, these in alike.items():
            names = f"claim{'s' * (len(these) > 1)} {join_names([_named(v) for v in these])}" if these else "no claim"
            words.append(f"{names} {_VERBS[answer][len(these) > 1]}")
        clauses.append(f"under the {protocol} protocol {join_names(words)}")
    if early:
        verb = _VERBS[OPEN][len(early) > 1]
        clauses.append(f"claim{'s' * (len(early) > 1)} {join_names(early)} {verb}, because T is before the burn-in")
    text = "; ".join(clauses)
    return f"{text[:1].upper()}{text[1:]}." if clauses else ""


def _named(verdict: Verdict) -> str:
    """The number of a claim, with the reason if it does not hold."""
    if verdict.verdict != FAILS:
        return verdict.claim
    reason = verdict.short.partition(";")[0].removesuffix(".")
    return f"{verdict.claim} ({reason[:1].lower()}{reason[1:]})"


def _on_most_runs(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """One verdict per claim and protocol: on the paper's problem, on fresh environments where there are any."""
    chosen: dict[tuple[str, str], Verdict] = {}
    for verdict in verdicts:
        if not verdict.aside or verdict.basis.endswith("fresh environments"):
            chosen[verdict.protocol, verdict.claim] = verdict
    return sorted(chosen.values(), key=lambda verdict: verdict.protocol)


def _released_code(results: Results) -> str:
    """Compare the released code with the text, with the effect on a regret and on the finding about diversity."""
    regrets = {}
    for protocol in ("released", "written"):
        outcome = results.outcome("setting-1", protocol)
        if outcome is not None and cases.BEST in outcome.policies:
            regrets[protocol] = number(float(outcome.final(cases.BEST).mean()))
    if len(regrets) < 2:
        return ""
    root = judge_the_root(cross_growths(results))
    return (
        f"Not what the text says: noise of {settings.RELEASED_NOISE} instead of {settings.WRITTEN_NOISE}, features and "
        f"parameters that are not uniform in balls, a ridge of {settings.RELEASED_RIDGE} instead of 1 or K and "
        f"exploration scaled by the noise (HyLinUCB's regret in setting 1 is {regrets['released']} instead of "
        f"{regrets['written']}), HyRan without its cross blocks, and a diversity experiment in which only HyLinUCB "
        f"learns{'' if root is None else f' (that {ROOT} is {root.word})'}."
    )


def _instead(results: Results) -> str:
    """Name the policy that learns its settings and loses least, beside the best of the paper's algorithms."""
    ratios: dict[str, dict[str, list[float]]] = {}
    for outcome, arms in _settings(results):
        best = min(
            float(outcome.final(name, arms).mean()) for name in cases.present_in(outcome, settings.PAPER_POLICIES)
        )
        for name in cases.present_in(outcome, _LEARNING):
            ratio = float(outcome.final(name, arms).mean()) / best
            ratios.setdefault(name, {}).setdefault(outcome.experiment.protocol, []).append(ratio)
    if not ratios:
        return ""
    name = min(ratios, key=lambda name: float(np.mean([np.log(r) for rs in ratios[name].values() for r in rs])))
    clauses = [f"{number_range(r)} times ({protocol})" for protocol, r in ratios[name].items()]
    count = sum(map(len, ratios[name].values()))
    return (
        f"{name}, which is given neither noise nor bounds: its regret at T is {join_names(clauses)} that of the "
        f"best of the paper's three algorithms, in all {count} cases of settings 1 to 3."
    )


def _settings(results: Results) -> Iterator[tuple[Outcome, int]]:
    """Settings 1 to 3 with every number of arms, where the paper's algorithms were run."""
    for outcome in cases.in_order(results):
        e = outcome.experiment
        known = e.name in ("setting-1", "setting-2", "setting-3") and e.protocol != "own"
        if known and cases.present_in(outcome, settings.PAPER_POLICIES):
            yield from ((outcome, arms) for arms in outcome.arms)
