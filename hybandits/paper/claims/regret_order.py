"""Claims 1 to 3: whose regret is smallest in settings 1, 2 and 3."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hybandits.paper.claims.comparisons import LINEAR, compare_regrets, judge_shape
from hybandits.paper.claims.growth_in_arms import compare_growth
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Finding, Verdict, combine_answers, summarise, verdict_on
from hybandits.paper.claims.wording import mean, name_a_few, percent
from hybandits.paper.settings import HYRAN_RELEASED


def judge_claim_1(judged: JudgedOutcome) -> Verdict:
    """Setting 1: the order of the regrets."""
    order = ("HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED)
    test = _test_of_order(judged)
    if missing := judged.missing(order):
        return verdict_on("1", judged.protocol, test=test, answer=OPEN, summary=missing)
    findings = [compare_regrets(judged, a, b, parts=3) for a, b in itertools.pairwise(order)]
    answer, summary = combine_answers(findings), summarise(findings, "Every neighbouring pair is in the stated order.")
    summary, counted = _count_environments(judged, order, summary)
    findings += counted
    if not judged.missing(["HyRan"]):
        findings += _about_full_hyran([compare_regrets(judged, "DisLinUCB", "HyRan", decides=False)])
    return verdict_on("1", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def judge_claim_2(judged: JudgedOutcome) -> Verdict:
    """Setting 2: the order of the regrets, and which of them are linear in the rounds."""
    order = ("DisLinUCB", "HyLinUCB", HYRAN_RELEASED, "LinUCB")
    test = (
        f"{_test_of_order(judged)} Shape is the exponent of the regret over the last half of the rounds: linear if its "
        f"interval lies between {LINEAR[0]} and {LINEAR[1]}, sublinear if it lies below {LINEAR[0]}."
    )
    if missing := judged.missing(order):
        return verdict_on("2", judged.protocol, test=test, answer=OPEN, summary=missing)
    findings = [compare_regrets(judged, a, b, parts=7) for a, b in itertools.pairwise(order)]
    findings += [judge_shape(judged, name, linear=name == HYRAN_RELEASED, parts=7) for name in order]
    answer, summary = combine_answers(findings), summarise(findings, "Order and shapes are as stated.")
    summary, counted = _count_environments(judged, order, summary)
    findings += counted
    if not judged.missing(["HyRan"]):
        pairs = (("HyLinUCB", "HyRan"), ("HyRan", "LinUCB"))
        in_order = [compare_regrets(judged, a, b, decides=False) for a, b in pairs]
        findings += _about_full_hyran([*in_order, judge_shape(judged, "HyRan", linear=True, decides=False)])
    return verdict_on("2", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def judge_claim_3(judged: JudgedOutcome) -> Verdict:
    """Setting 3: the order of the regrets at every number of arms, and whose regret grows slowest with it."""
    order = ("HyLinUCB", "DisLinUCB", "LinUCB", HYRAN_RELEASED)
    test = (
        f"{_test_of_order(judged)} Growth with K is fitted per run and compared in the same way, both as a power of K "
        f"(the slope of log regret against log K) and as regret added per arm (the slope of regret against K). Where "
        f"the two measures disagree, it is undecided."
    )
    if missing := judged.missing(order):
        return verdict_on("3", judged.protocol, test=test, answer=OPEN, summary=missing)
    complete = judged.outcome.arms
    several = len(complete) > 1
    parts = 3 * len(complete) + (6 if several else 0)
    findings = [
        compare_regrets(judged, a, b, arms=arms, parts=parts) for arms in complete for a, b in itertools.pairwise(order)
    ]
    incomplete = ", ".join(str(arms) for arms in judged.experiment.arms if arms not in complete)
    if incomplete:
        findings.append(Finding(f"K = {incomplete}", "not complete", OPEN))
    pairs = [compare_growth(judged, "HyLinUCB", rival, parts) for rival in order[1:]] if several else []
    # Where one measure says yes and the other no, it is a matter of reading and not of data.
    grows_slowest = combine_answers(
        by_power if by_power.verdict == per_arm.verdict else OPEN for by_power, per_arm in pairs
    )
    growth = [finding for pair in pairs for finding in pair]
    as_stated = "The order is as stated at every K."
    summary = summarise(findings, as_stated)
    if not several:
        findings.append(Finding("growth in K", "needs two numbers of arms", OPEN))
    else:
        words = {HOLDS: "grows slowest", FAILS: "does not grow slowest", OPEN: "may or may not grow slowest"}
        reading = f"HyLinUCB's regret {words[grows_slowest]} with K."
        contradicted = [finding.what for finding in growth if finding.verdict == FAILS]
        if grows_slowest == OPEN and contradicted:
            reading = f"which regret grows slowest depends on the measure (contradicted: {name_a_few(contradicted)})."
        # One sentence where the growth alone keeps the claim from holding: some readers see the first one only.
        if summary == as_stated and grows_slowest != HOLDS:
            summary = f"{as_stated[:-1]}, but {reading}"
        else:
            summary += f" {reading[0].upper()}{reading[1:]}"
    answer = combine_answers([*findings, grows_slowest])
    summary, counted = _count_environments(judged, order, summary)
    findings += [*growth, *counted]
    if not judged.missing(["HyRan"]):
        means = ", ".join(f"{mean(judged.outcome.final('HyRan', arms))} at K = {arms}" for arms in complete)
        findings.append(Finding("HyRan with its cross blocks (not deciding)", f"regret {means}"))
    return verdict_on("3", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def _count_environments(judged: JudgedOutcome, order: Sequence[str], summary: str) -> tuple[str, list[Finding]]:
    """The summary with the number of environments in the whole order at every K; that number K by K, and how long the
    policies played in fresh environments."""
    complete, count = judged.outcome.arms, len(judged.experiment.seeds)
    in_order = {arms: _in_whole_order(judged, order, arms) for arms in complete}
    always = int(np.logical_and.reduce(list(in_order.values())).sum())
    by_arms = "; ".join(f"{int(whole.sum())} of {count} at K = {arms}" for arms, whole in in_order.items())
    findings = [
        Finding(
            "environments in the whole stated order (not deciding)",
            by_arms + (f"; {always} of {count} at every K" if len(complete) > 1 else ""),
        )
    ]
    if judged.fresh:
        played = f"all policies, HyRan too, play all {judged.horizon:,} rounds, {judged.experiment.trials} trial each"
        findings.append(Finding("what was played (not deciding)", f"{judged.basis}; {played}"))
    at_every_arms = " at every K" if len(complete) > 1 else ""
    return f"{summary} The whole order appears in {always} of {count} environments{at_every_arms}.", findings


def _in_whole_order(judged: JudgedOutcome, order: Sequence[str], arms: int) -> NDArray[np.bool_]:
    """Whether the mean regrets of an environment are in the stated order, environment by environment."""
    environments = judged.outcome.environments(order[0], arms)
    runs = np.stack([judged.outcome.final(policy, arms) for policy in order], axis=1)
    means = np.array([runs[environments == one].mean(axis=0) for one in np.unique(environments)])
    return np.array([bool((np.diff(one) > 0).all()) for one in means])


def _about_full_hyran(findings: Sequence[Finding]) -> list[Finding]:
    """Findings on HyRan with its cross blocks, beside those on the variant that the paper plotted."""
    return [
        finding._replace(what=f"{finding.what}, HyRan with its cross blocks (not deciding)") for finding in findings
    ]


def _test_of_order(judged: JudgedOutcome) -> str:
    return (
        f"The regrets of two policies at T are compared run by run and averaged per environment. A < B holds if the "
        f"{percent(judged.confidence)} interval of the mean difference (Student's t over environments) lies below 0. "
        f"It is contradicted if the interval lies above 0 even with its error divided by the number of parts. All "
        f"parts must hold. HyRan is the variant that the paper plotted. Where environments have several trials, a "
        f"second interval is for these environments alone, whose runs differ only by noise. It tells whether the "
        f"published means come out again, not whether other environments would agree, and does not decide."
    )
