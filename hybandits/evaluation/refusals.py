"""Every reason for which there is no estimate, or no interval, and every warning about an estimate.

`enter_refusals` decides what follows from the log alone. The intervals ask here when they are computed:
`without_bootstrap` and `without_sequence`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from hybandits.evaluation.parts import BlockLayout, Survey
from hybandits.evaluation.propensities import ROUNDING
from hybandits.evaluation.support import LogSupport
from hybandits.evaluation.terms import (
    CERTAIN,
    CLIPPED,
    LARGEST,
    MIXED,
    PADDED,
    SILENT,
    K,
    N,
    P,
    W,
)
from hybandits.evaluation.view import View

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

SURE = 0.99
"""Confidence of the upper limit of the share of a policy's choices that rejection leaves out."""

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
TILTED = (
    "No interval: the policy learned from rounds that are tilted (see the notes), and nothing tells how far off its "
    "value is."
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
    _judge_choices(policy, view, survey, estimators, layout)
    if policy.rejection.rejects:
        _judge_rejection(policy, survey, estimators, bounds or (survey.lowest, survey.highest))
    elif "replay" in estimators and "replay" not in policy.refusals and survey.longest > survey.shortest:
        policy.warnings.append(_lists_differ(survey))
    if unfitted:
        too_few = f"{layout.rounds:,} rounds are too few to fit a model for each of {layout.folds} folds. Give more."
        policy.refusals |= {name: too_few for name in estimators if name in MODELLED}
    if policy.learns:
        policy.refusals |= {name: LEARNS for name in estimators if name == "dm"}


def _judge_choices(policy: LogSupport, view: View, survey: Survey, estimators: list[str], layout: BlockLayout) -> None:
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
    replayed = policy.learns and not policy.rejection.rejects and reason is None
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
    if reason is None and (weighted or policy.rejection.rejects):
        _judge_mean_weight(policy, n)


def _judge_rejection(policy: LogSupport, survey: Survey, estimators: list[str], rewards: tuple[float, float]) -> None:
    """What to say of the rounds that are kept, whether they are too few, and what is left out."""
    judged = [name for name in estimators if name in ("replay", *WEIGHTED) and name not in policy.refusals]
    if "replay" in judged:
        _judge_kept(policy, survey)
    if policy.rejection.keep <= survey.smallest * (1 + ROUNDING):
        return
    share, policy.left_out = _left_out(policy)
    if policy.learns:
        policy.no_interval |= dict.fromkeys(judged, TILTED)
        for name in judged:
            policy.notes.setdefault(name, []).append(_rough(policy, survey, share))
    elif "replay" in judged:
        bias = policy.left_out * (rewards[1] - rewards[0])
        policy.notes["replay"].append(
            f"{_above(policy, survey)}, so choices that the log made less often than keep count too little: about "
            f"{share:.1%} of what the policy chooses is left out, and {policy.left_out:.1%} at most ({SURE:.0%} "
            f"confidence limit). That is a bias of at most {bias:.2g}, for rewards from {rewards[0]:g} to "
            f"{rewards[1]:g}, which the interval includes. Without bias: keep={survey.smallest:.4g}."
        )


def _judge_kept(policy: LogSupport, survey: Survey) -> None:
    """How many rounds replay rests on."""
    c, n, worth = policy.rejection.keep, survey.rounds, policy.replayed_rounds
    if policy.learns:
        told = f"{policy.total(P):,.0f} of the {n:,} rounds match and {worth:,.0f} are kept, with keep = {c:.3g}"
        how = (
            "A choice that the log made with probability p is kept with probability keep / p, or 1 if that is above 1."
        )
    else:
        told = (
            f"{policy.total(P):,.0f} of the {n:,} rounds match in expectation, and weighted they are worth {worth:,.0f}"
        )
        how = (
            "The policy does not learn, so nothing is drawn: a choice that the log made with probability p has the "
            f"weight keep / p, or 1 if that is above 1, with keep = {c:.3g}."
        )
    if not worth:
        policy.refusals["replay"] = f"{told}. Give more rounds, or a larger keep, which costs a bias."
        return
    if worth < SCARCE:
        policy.warnings.append(f"Only {told}. Do not rely on replay.")
        if worth < FEW:
            policy.no_interval["replay"] = f"No interval: {told}. Give more rounds."
    policy.notes["replay"] = [f"The log was {'not ' if survey.uneven else ''}uniform: {told}. {how}"]


def _left_out(policy: LogSupport) -> tuple[float, float]:
    """s = 1 - E[k] / c of `rejection`, estimated, and its upper confidence limit by the normal approximation."""
    k, rounds, c = policy.blocks(K), policy.blocks(N), policy.rejection.keep
    n = rounds.sum()
    mean = k.sum() / n
    error = math.sqrt(float(((k - mean * rounds) ** 2).sum())) / n
    limit = mean - NormalDist().inv_cdf(SURE) * error
    return max(0.0, 1 - mean / c), min(1.0, max(0.0, 1 - limit / c))


def _rough(policy: LogSupport, survey: Survey, share: float) -> str:
    """What a c above the smallest propensity means for a policy that learns."""
    return (
        f"A rough number. {_above(policy, survey)}, so choices that the log made less often than keep are kept too "
        f"seldom: about {share:.0%} of what the policy chose is left out. The policy learned from rounds that are "
        "tilted in this way and may have become another one, so nothing bounds how far off its value is, and there is "
        f"no interval. Exact: keep={survey.smallest:.4g}, which leaves about "
        f"{survey.rounds * survey.smallest:,.0f} rounds to learn from."
    )


def _above(policy: LogSupport, survey: Survey) -> str:
    return f"keep = {policy.rejection.keep:.3g} is above the smallest propensity, {survey.smallest:.3g}"


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
    if policy.learns and policy.left_out is not None:
        return TILTED
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
