"""Every reason for which there is no estimate, or no interval, and every warning about an estimate.

`enter_refusals` decides what follows from the log alone. The intervals ask here when they are computed:
`without_bootstrap` and `without_sequence`.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.offline.evaluation.parts import BlockLayout, Survey
from hybandits.offline.evaluation.support import LogSupport
from hybandits.offline.evaluation.terms import CERTAIN, CLIPPED, LARGEST, MIXED, PADDED, SILENT, N, P, W
from hybandits.offline.propensities import ROUNDING
from hybandits.offline.view import View

WEIGHTED = ("ips", "snips", "dr")
"""Estimators that weigh rounds by inverse propensities."""

MODELLED = ("dm", "dr")
"""Estimators that use a model of the rewards."""

GUESSED = 0.001
"""Share of a policy's choices on arms never shown, above which dm has no interval: nothing tells how wrong it is."""

UNSEEN = 0.05
"""Share of a policy's choices on arms never shown, above which weights say nothing about its value."""

FEW, SCARCE = 5, 30
"""Effective rounds below which weighted estimates have no interval, and below which there is a warning."""

LEARNS = (
    "A policy that learns has no fixed probabilities. Replay it, or freeze it: save it and evaluate the file, or use "
    "Frozen in Python."
)
TOO_LITTLE_SPREAD = (
    "No interval: almost all weighted rounds have the same reward, so their spread cannot be estimated. Give more "
    "rounds."
)
UNJUDGED_MODEL = (
    "No interval: almost all rounds in which the policy agrees with the log have the same reward, so the error of the "
    "model cannot be estimated. Give more rounds."
)


def enter_refusals(
    policy: LogSupport, view: View, survey: Survey, estimators: list[str], layout: BlockLayout, *, unfitted: bool
) -> None:
    """Note beside the sums what cannot be estimated, what has no interval, and what to warn of.

    `unfitted` says that the rounds were too few to fit a model for every fold.
    """
    if policy.learns:
        _judge_learning(policy, survey, estimators, layout.rounds)
    elif policy.logged:
        return  # its value is the mean reward, which needs neither weights nor a model
    elif policy.tally[SILENT]:
        reason = (
            f"It has no candidate to show in {_rounds(policy.tally[SILENT], layout.rounds)}, so it has no value on "
            "this log."
        )
        policy.refusals |= dict.fromkeys(estimators, reason)
    else:
        _judge_fixed(policy, view, survey, estimators, layout, unfitted)


def _judge_learning(policy: LogSupport, survey: Survey, estimators: list[str], n: int) -> None:
    policy.refusals |= {name: LEARNS for name in estimators if name != "replay"}
    if "replay" in estimators:
        if policy.replayed is not None and policy.replayed.uneven:
            policy.refusals["replay"] = _not_uniform(policy.replayed)
        elif not policy.total(P):
            policy.refusals["replay"] = _never_matched(n)
    if survey.longest > survey.shortest:
        policy.warnings.append(_lists_differ(survey))


def _judge_fixed(
    policy: LogSupport, view: View, survey: Survey, estimators: list[str], layout: BlockLayout, unfitted: bool
) -> None:
    n = layout.rounds
    unseen = np.flatnonzero((survey.shown == 0) & (policy.mass > 0))
    missed = float(policy.mass[unseen].sum()) / n
    examples = ", ".join(str(view.names[a]) for a in unseen[np.argsort(-policy.mass[unseen])][:3])
    never_shown = f"{missed:.2%} of its choices are arms that were never shown ({examples})"
    # Had an arm been shown with the smallest probability of the log whenever the policy may show it, the chance of
    # never seeing it would be below exp(-eligible rounds * smallest).
    hopeless = survey.smallest < math.inf and bool((policy.eligible[unseen] * survey.smallest > math.log(1000)).any())
    if unseen.size:
        policy.warnings.append(f"{never_shown}.")
    if missed > GUESSED:
        policy.no_interval["dm"] = f"No interval: {never_shown}, and the model can only guess their rewards."
    reason = _no_weights(policy, survey, n)
    if reason is None and (hopeless or missed > UNSEEN):
        reason = (
            f"There is no overlap: {never_shown}. Only dm gives an estimate, in which their rewards are guessed by the "
            "model."
        )
    elif reason is None and not policy.total(P):
        reason = _never_matched(n)
    if reason is not None:
        policy.refusals |= {name: reason for name in estimators if name in (*WEIGHTED, "replay")}
    if "replay" in estimators:
        if survey.uneven:
            policy.refusals["replay"] = _not_uniform(survey)
        elif reason is None and survey.longest > survey.shortest:
            policy.warnings.append(_lists_differ(survey))
    if unfitted:
        too_few = f"{n:,} rounds are too few to fit a model for each of {layout.folds} folds. Give more rounds."
        policy.refusals |= {name: too_few for name in estimators if name in MODELLED}
    if policy.tally[CLIPPED]:
        policy.warnings.append(
            f"{policy.tally[CLIPPED]:,.0f} weights were clipped, so estimates that use them are biased."
        )
    if set(estimators) & set(WEIGHTED) and reason is None:
        _judge_weights(policy, n)


def _no_weights(policy: LogSupport, survey: Survey, n: int) -> str | None:
    """Why rounds cannot be weighted by inverse propensities, as far as these and the lists tell."""
    if survey.missing:
        return f"Propensities are missing in {_rounds(survey.missing, n)}. Only dm needs no propensities."
    if survey.wrong:
        return f"Propensities are not in (0, 1] in {_rounds(survey.wrong, n)}. Correct the log."
    if policy.tally[CERTAIN]:
        return (
            f"There is no overlap: in {_rounds(policy.tally[CERTAIN], n)} the log's arm was certain (propensity 1), "
            "and this policy shows others. Only dm needs no overlap."
        )
    if policy.tally[PADDED]:
        return (
            f"There is no overlap: in {_rounds(policy.tally[PADDED], n)} it picks a place beyond the end of the list, "
            "where places are filled up with zero features. Use arms='articles'."
        )
    return None


def _judge_weights(policy: LogSupport, n: int) -> None:
    """Whether a few rounds carry all the weight, and whether the weights average 1 as they should."""
    effective = policy.effective_rounds
    if effective < SCARCE:
        share = policy.tally[LARGEST] / policy.total(W)
        worth = f"its weights are worth {effective:.1f} rounds, and a single round has {share:.0%} of the weight"
        if effective < FEW:
            policy.no_interval |= dict.fromkeys(WEIGHTED, f"No interval: {worth}. Only dm needs no weights.")
        policy.warnings.append(f"I{worth[1:]}. Do not rely on estimates that use weights.")
    w, rounds = policy.blocks(W), policy.blocks(N)
    mean = w.sum() / n
    error = math.sqrt(float(((w - mean * rounds) ** 2).sum())) / n
    if abs(mean - 1) > max(4 * error, ROUNDING) and not policy.tally[CLIPPED]:
        policy.warnings.append(
            f"Its weights average {mean:.3f}. Up to chance (here +-{2 * error:.3f}) they should average 1, so the "
            "propensities are wrong, or the log never shows what the policy would."
        )


# ------------------------------------------------------------------ intervals


def without_bootstrap(policy: LogSupport, estimator: str, *, unjudged: bool) -> str | None:
    """Why an estimate has no bootstrap interval, before one is computed; None if there is no reason.

    `unjudged` says that the policy's matched rounds alone have no interval, so nothing tells how wrong a model is.
    """
    if estimator in policy.no_interval:
        return policy.no_interval[estimator]
    return UNJUDGED_MODEL if unjudged and estimator in MODELLED and not policy.logged else None


def without_sequence(policy: LogSupport, estimator: str) -> str | None:
    """Why an estimate has no confidence sequence; None if it has one."""
    if estimator in ("snips", "dm") and not policy.logged:
        what = "a ratio of weighted sums" if estimator == "snips" else "the estimate of a model"
        return f"No interval: {what} is not a mean of bounded terms. Use ips or dr, or interval='bootstrap'."
    if estimator == "replay" and policy.tally[MIXED]:
        return (
            "No interval: a policy that chooses at random has no fixed set of matched rounds. Use ips, or "
            "interval='bootstrap'."
        )
    return None


# ------------------------------------------------------------------ words


def _rounds(part: float, whole: float) -> str:
    return f"{part:,.0f} of {whole:,.0f} rounds"


def _never_matched(n: int) -> str:
    return f"In none of the {n:,} rounds would the policy have shown the arm that was shown. Give more rounds."


def _not_uniform(survey: Survey) -> str:
    if survey.missing:
        return (
            f"Replay needs uniformly logged rounds, but {survey.missing:,} of the first {survey.rounds:,} have no "
            "propensity. Convert the log with its propensities."
        )
    return (
        f"Replay needs uniformly logged rounds, but {survey.uneven:,} of the first {survey.rounds:,} have a propensity "
        "other than 1 / candidates. Freeze the policy and use ips, snips or dr."
    )


def _lists_differ(survey: Survey) -> str:
    return (
        f"Lists have {survey.shortest} to {survey.longest} candidates. Replay matches short lists more often, so they "
        "count more."
    )
