"""What a log holds, what a policy learned from it, and what an evaluation on it says, as tables for the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from rich.console import Console

from hybandits.estimators.learned import LearnedSettings
from hybandits.evaluation import Estimate, Evaluation
from hybandits.evaluation.describe import Description
from hybandits.foundation.checks import FloatArray
from hybandits.report.listings import Listing, show


def print_description(description: Description, console: Console | None = None) -> None:
    """Print the description as tables, warnings first and what it means for HyLinUCB's guarantee last."""
    show(_notes(description), _listings(description), console, [description.guarantee])


def _listings(description: Description) -> list[Listing]:
    files = "1 file" if description.sources == 1 else f"{description.sources} files"
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in description.skipped.items())
    skipped = f"{sum(description.skipped.values()):,} skipped{f' ({kinds})' if kinds else ''}"
    facts = [
        ("rounds", f"{description.rounds:,} from {files}"),
        ("lines read", f"{description.lines:,}, {skipped}"),
        ("arms", f"{description.arms:,}, with {description.vectors:,} feature vectors"),
        ("pools", f"{description.pools:,} different, {description.pool_changes:,} changes"),
        ("reward", f"{description.reward:.5g} +- {description.reward_error:.2g}, from {description.lowest_reward:g} to "
         f"{description.highest_reward:g}"),
        ("propensities", _propensities(description)),
        ("rank of user features", _of(description.user_rank)),
        ("rank of arm features", _of(description.arm_rank)),
        (f"rank of x ({description.features})", _of(description.x_rank)),
        (f"least rank of an arm's z ({description.features})", _of(description.smallest_z_rank)),
        ("lambda_min of E[x x']", _or_none(description.rho_x)),
        ("least lambda_min of an arm's E[z z']", _or_none(description.rho_z)),
        ("largest correlation of x and z", _or_none(description.correlation)),
        ("size of the mean of (x, z)", f"{description.mean_norm:.3g}"),
    ]  # fmt: skip
    time = [
        (
            f"{s.start:,}", f"{s.rounds:,}", _when(s.first_time), f"{s.reward:.5g}", str(s.arms), str(s.new_arms),
            str(s.smallest_pool) if s.smallest_pool == s.largest_pool else f"{s.smallest_pool}-{s.largest_pool}",
        )
        for s in description.slices
    ]  # fmt: skip
    arms = [
        (str(s.arm), f"{s.candidate:,}", f"{s.shown:,}", "" if s.reward is None else f"{s.reward:.5g}")
        for s in description.most_shown
    ]
    pairs = [
        (
            p.name,
            f"{p.mean:.4g}",
            f"{p.deviation:.4g}",
            f"{p.lowest:.4g}",
            f"{p.highest:.4g}",
            f"{100 * p.differs:.3g} %",
        )
        for p in description.pair
    ]
    head = ("feature", "mean", "deviation", "lowest", "highest", "rounds in which it differs")
    return [
        Listing(f"{description.path} ({description.kind})", ("what", "value"), facts),
        *([Listing("Features of a user and an arm together", head, pairs, (1, 2, 3, 4, 5))] if pairs else []),
        Listing(
            "Over time", ("from round", "rounds", "from (UTC)", "reward", "arms", "new", "candidates"), time,
            (0, 1, 3, 4, 5, 6),
        ),
        Listing("Arms shown most", ("arm", "candidate", "shown", "reward"), arms, (1, 2, 3)),
    ]  # fmt: skip


def _notes(description: Description) -> list[str]:
    notes = []
    if description.without_propensity:
        rounds = f"{description.without_propensity:,} rounds"
        notes.append(f"{rounds} have no propensity: only the direct method can use them.")
    if description.size > 3.0:
        notes.append(
            f"Features are large: |(x, z)| is {description.size:.3g} in the root mean square. Policies take it to be "
            "about 1: rescale the features, or tell the policies (feature_bound)."
        )
    for pair in description.pair:
        if pair.size > 3.0:
            notes.append(
                f"The pair feature {pair.name} is large: {pair.size:.3g} in the root mean square. Policies take "
                "features to be about 1: rescale it, or use HyIDS or HyThompson, which learn their scales."
            )
        if pair.differs == 0.0:
            notes.append(
                f"The pair feature {pair.name} is the same for all candidates of every round, so it decides nothing: "
                "it belongs to the user's features."
            )
    if (
        description.display_bias is not None
        and description.display_limit is not None
        and description.display_bias > description.display_limit
    ):
        notes.append(
            f"The display was not uniform: one arm was shown {description.display_bias:.1f} standard deviations off "
            f"its fair share (uniform: below {description.display_limit:.1f}). Replay and inverse propensities would "
            "be biased."
        )
    return notes


def _propensities(description: Description) -> str:
    if description.lowest_propensity is None or description.highest_propensity is None:
        return "none"
    low, high = f"{description.lowest_propensity:.4g}", f"{description.highest_propensity:.4g}"
    words = low if low == high else f"{low} to {high}"
    if description.uniform:
        words += ", uniform: replay and inverse propensities apply"
    return words


def _of(rank: tuple[int, int]) -> str:
    return f"{rank[0]} of {rank[1]}"


def _or_none(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _when(time: int | None) -> str:
    if time is None:
        return ""
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return str(time)


# ------------------------------------------------------------------ settings


def print_learned(settings: LearnedSettings, console: Console | None = None) -> None:
    """Print the settings that a policy has learned."""
    facts = [
        ("noise", f"{settings.noise:.4g}"),
        ("scale of the shared parameters", _range(settings.shared_scale)),
        ("scale of the arms' own parameters", _range(settings.own_scale)),
        ("their mean, where new arms start", _range(settings.common_mean)),
        ("effective parameters", f"{settings.effective_parameters:,.1f}"),
        ("log evidence", f"{settings.evidence:,.1f}"),
    ]
    show([], [Listing("Learned from the rewards", ("what", "value"), facts)], console)


def _range(values: FloatArray) -> str:
    """The smallest and the largest of the values that are known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return "-"
    low, high = f"{known.min():.4g}", f"{known.max():.4g}"
    return low if low == high else f"{low} to {high}"


# ------------------------------------------------------------------ evaluations


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print estimates with their intervals, differences to the first policy, and how well the log supports them."""
    show(_warnings(evaluation), _estimates(evaluation), console)


def _estimates(evaluation: Evaluation) -> list[Listing]:
    first = next(iter(evaluation.diagnostics))
    within = f"{float(f'{100 * evaluation.level:.6g}'):g} % interval"
    kind = "bootstrap" if evaluation.interval == "bootstrap" else "empirical Bernstein, at any time"
    value_rows, difference_rows, refused, notes = [], [], [], []
    for estimate in evaluation.estimates:
        notes += [(estimate.policy, estimate.estimator, note) for note in estimate.notes]
        if estimate.value is None:
            refused.append((estimate.policy, estimate.estimator, estimate.refusal or ""))
            continue
        value_rows.append((estimate.policy, estimate.estimator, _value(estimate.value), _interval(estimate)))
        if estimate.low is None and estimate.refusal:
            refused.append((estimate.policy, estimate.estimator, estimate.refusal))
        other = estimate.difference
        if other is not None and estimate.policy != first:
            bounds = "-" if other.low is None or other.high is None else f"{other.low:+.5f} to {other.high:+.5f}"
            clear = "" if other.low is None or other.high is None else "no" if other.low <= 0 <= other.high else "yes"
            difference_rows.append((estimate.policy, estimate.estimator, f"{other.value:+.5f}", bounds, clear))
    rejected = any(d.kept is not None for d in evaluation.diagnostics.values())
    support = [
        (
            name, f"{d.rounds:,}", f"{d.matched:.2%}",
            *(["-" if d.kept is None else f"{d.kept:,.0f}"] if rejected else []),
            "-" if d.effective is None else f"{d.effective:,.0f}",
            "-" if d.largest_weight is None else f"{d.largest_weight:.4g}",
            "-" if d.mean_weight is None else f"{d.mean_weight:.4g}",
        )
        for name, d in evaluation.diagnostics.items()
    ]  # fmt: skip
    listings = [
        Listing(
            f"Value per round, {evaluation.rounds:,} rounds ({kind})", ("policy", "by", "value", within), value_rows,
            (2,),
        ),
        Listing(
            "Support",
            ("policy", "rounds", "matched", *(["kept"] if rejected else []), "effective rounds", "largest weight",
             "mean weight"),
            support, tuple(range(1, 6 + rejected)),
        ),
    ]  # fmt: skip
    if difference_rows:
        head = ("policy", "by", "difference", within, "clear")
        listings.insert(1, Listing(f"Difference to {first}, on the same rounds", head, difference_rows, (2,)))
    if notes:
        listings.append(Listing("Notes", ("policy", "by", "note"), notes))
    if refused:
        listings.append(Listing("Refused", ("policy", "by", "because"), refused))
    return listings


def _value(value: float) -> str:
    return f"{value:.5f}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.5f} to {estimate.high:.5f}"


def _warnings(evaluation: Evaluation) -> list[str]:
    return [f"{name}: {warning}" for name, d in evaluation.diagnostics.items() for warning in d.warnings]
