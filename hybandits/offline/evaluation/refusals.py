"""Every reason for which there is no estimate, or no interval, and every warning about an estimate.

`enter_refusals` decides what follows from the log alone. The intervals ask here when they are computed:
`without_bootstrap` and `without_sequence`.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.offline.evaluation.parts import BlockLayout, Survey
from hybandits.offline.evaluation.rejection import Rejection
from hybandits.offline.evaluation.support import LogSupport
from hybandits.offline.evaluation.terms import (
    CAPPED,
    CERTAIN,
    CLIPPED,
    LARGEST,
    MIXED,
    PADDED,
    SHORT,
    SILENT,
    K,
    N,
    P,
    W,
)
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

NOTABLE = 0.1
"""dm - dr in widths of the interval of dr, below which it does not matter."""

LEARNS = (
    "The model is fitted to all rounds and cannot say what a policy that learns would earn before it has. Use replay, "
    "snips or dr, or freeze the policy: save it and evaluate the file, or use Frozen in Python."
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
    policy: LogSupport,
    view: View,
    survey: Survey,
    estimators: list[str],
    layout: BlockLayout,
    rejection: Rejection,
    bounds: tuple[float, float] | None,
    *,
    unfitted: bool,
) -> None:
    """Note beside the sums what cannot be estimated, what has no interval, and what to warn of.

    `bounds` are the lowest and the highest reward possible, if they are known. `unfitted` says that the rounds were too
    few to fit a model for every fold.
    """
    if policy.logged:
        return  # its value is the mean reward, which needs neither weights nor a model
    if policy.tally[SILENT]:
        reason = (
            f"It has no candidate to show in {_rounds(policy.tally[SILENT], layout.rounds)}, so it has no value on "
            "this log."
        )
        policy.refusals |= dict.fromkeys(estimators, reason)
        return
    _judge_choices(policy, view, survey, estimators, layout, rejection)
    if "replay" in estimators and "replay" not in policy.refusals:
        _judge_replay(policy, survey, rejection, bounds or (survey.lowest, survey.highest))
    if unfitted:
        too_few = f"{layout.rounds:,} rounds are too few to fit a model for each of {layout.folds} folds. Give more."
        policy.refusals |= {name: too_few for name in estimators if name in MODELLED}
    if policy.learns:
        policy.refusals |= {name: LEARNS for name in estimators if name == "dm"}


def _judge_choices(
    policy: LogSupport, view: View, survey: Survey, estimators: list[str], layout: BlockLayout, rejection: Rejection
) -> None:
    """What follows from the arms that the policy shows and from the propensities of those that were shown."""
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
    # Plain replay of a policy that learns needs no overlap: it learns, and is judged by, the rounds that match.
    replayed = policy.learns and not rejection.rejects and reason is None
    if reason is None and (hopeless or missed > UNSEEN):
        reason = (
            f"There is no overlap: {never_shown}. Only dm gives an estimate, in which their rewards are guessed by the "
            "model."
        )
    if not policy.total(P):
        never = _never_matched(n)
        reason = reason or never
        if replayed:
            policy.refusals["replay"] = never
    if reason is not None:
        refused = WEIGHTED if replayed else (*WEIGHTED, "replay")
        policy.refusals |= {name: reason for name in estimators if name in refused}
    if policy.tally[CLIPPED]:
        policy.warnings.append(
            f"{policy.tally[CLIPPED]:,.0f} weights were clipped, so estimates that use them are biased."
        )
    weighted = bool(set(estimators) & set(WEIGHTED))
    if reason is None and weighted:
        _judge_effective_rounds(policy)
    if reason is None and (weighted or rejection.rejects):
        _judge_mean_weight(policy, n)


def _judge_replay(policy: LogSupport, survey: Survey, rejection: Rejection, rewards: tuple[float, float]) -> None:
    """What to say of the rounds that are kept, and whether they are too few."""
    if not rejection.rejects:
        if survey.longest > survey.shortest:
            policy.warnings.append(_lists_differ(survey))
        return
    c, kept, n = rejection.keep, policy.total(K), survey.rounds
    matched = f"{policy.total(P):,.0f} of the {n:,} rounds match and {kept:,.0f} are kept, with keep = {c:.3g}"
    if not kept:
        policy.refusals["replay"] = f"{matched}. Give more rounds, or a larger keep, which costs a bias."
        return
    if kept < SCARCE:
        policy.warnings.append(f"Only {matched}. Do not rely on replay.")
        if kept < FEW:
            policy.no_interval["replay"] = f"No interval: {matched}. Use dr, give more rounds, or a larger keep."
    notes = [
        f"The log was not uniform: {matched}. A choice that the log made with probability p is kept with probability "
        "keep / p, so that all choices count alike."
    ]
    if policy.tally[CAPPED]:
        short = policy.tally[SHORT] / (policy.tally[SHORT] + kept / c)
        bias = short * (rewards[1] - rewards[0])
        notes.append(
            f"{policy.tally[CAPPED]:,.0f} of the rounds that match have a propensity below keep. They cannot be kept "
            f"often enough, so about {short:.2%} of what the policy chooses is left out, and the estimate has a bias "
            f"of at most {bias:.2g} (rewards from {rewards[0]:g} to {rewards[1]:g}), which the interval does not "
            f"include. Without bias: keep={survey.smallest:.3g}."
        )
    elif c > survey.smallest:
        notes.append("No round that matches has a propensity below keep, so nothing hints at a bias.")
    policy.notes["replay"] = notes


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


def _judge_effective_rounds(policy: LogSupport) -> None:
    """Whether a few rounds carry all the weight."""
    effective = policy.effective_rounds
    if effective < SCARCE:
        share = policy.tally[LARGEST] / policy.total(W)
        worth = f"its weights are worth {effective:.1f} rounds, and a single round has {share:.0%} of the weight"
        if effective < FEW:
            policy.no_interval |= dict.fromkeys(WEIGHTED, f"No interval: {worth}. Only dm needs no weights.")
        policy.warnings.append(f"I{worth[1:]}. Do not rely on estimates that use weights.")


def _judge_mean_weight(policy: LogSupport, n: int) -> None:
    """Whether the weights average 1 as they should."""
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


def model_is_biased(
    gap: float, low: float | None, high: float | None, width: float, level: float, features: str
) -> list[str]:
    """What to say of dm if dm - dr = gap, with this interval, and dr has an interval of this width.

    Nothing if chance allows the gap, or if it is small beside the error of dr, as the bias of a ridge is.
    """
    if low is None or high is None or low <= 0.0 <= high or abs(gap) < NOTABLE * width:
        return []
    return [
        f"dm - dr = {gap:+.3g}, {100 * level:g} % interval {low:+.3g} to {high:+.3g}: more than chance allows. The "
        f"reward model, with the features {features}, is biased where this policy chooses. Trust dr, and try other "
        "features."
    ]


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


def _lists_differ(survey: Survey) -> str:
    return (
        f"Lists have {survey.shortest} to {survey.longest} candidates. Replay matches short lists more often, so they "
        f"count more. With keep={1 / survey.longest:.3g} all would count alike, and fewer rounds be left."
    )
