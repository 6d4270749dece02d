"""What a log holds, and what an evaluation on it says, as tables for the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.console import Console

from hybandits.offline.describe import Description
from hybandits.offline.evaluation import Estimate, Evaluation
from hybandits.report.listings import Listing, show


def print_description(found: Description, console: Console | None = None) -> None:
    """The description as tables, with what to make of it."""
    show(_notes(found), _listings(found), console, [found.guarantee])


def _listings(found: Description) -> list[Listing]:
    skipped = ", ".join(f"{count:,} {kind}" for kind, count in found.skipped.items())
    facts = [
        ("rounds", f"{found.rounds:,} from {found.sources} {'file' if found.sources == 1 else 'files'}"),
        ("lines read", f"{found.lines:,}, {sum(found.skipped.values()):,} skipped{f' ({skipped})' if skipped else ''}"),
        ("arms", f"{found.arms:,}, with {found.vectors:,} feature vectors"),
        ("pools", f"{found.pools:,} different, {found.pool_changes:,} changes"),
        ("reward", f"{found.reward:.5g} +- {found.reward_error:.2g}, from {found.lowest_reward:g} to "
         f"{found.highest_reward:g}"),
        ("propensities", _propensities(found)),
        ("rank of user features", _of(found.user_rank)),
        ("rank of arm features", _of(found.arm_rank)),
        (f"rank of x ({found.features})", _of(found.x_rank)),
        (f"least rank of an arm's z ({found.features})", _of(found.smallest_z_rank)),
        ("lambda_min of E[x x']", _or_none(found.rho_x)),
        ("least lambda_min of an arm's E[z z']", _or_none(found.rho_z)),
        ("largest correlation of x and z", _or_none(found.correlation)),
        ("size of the mean of (x, z)", f"{found.mean_norm:.3g}"),
    ]  # fmt: skip
    time = [
        (
            f"{s.start:,}", f"{s.rounds:,}", _when(s.first_time), f"{s.reward:.5g}", str(s.arms), str(s.new_arms),
            str(s.smallest_pool) if s.smallest_pool == s.largest_pool else f"{s.smallest_pool}-{s.largest_pool}",
        )
        for s in found.slices
    ]  # fmt: skip
    arms = [
        (s.arm, f"{s.candidate:,}", f"{s.shown:,}", "" if s.reward is None else f"{s.reward:.5g}")
        for s in found.most_shown
    ]
    return [
        Listing(f"{found.path} ({found.kind})", ("what", "found"), facts),
        Listing(
            "Over time", ("from round", "rounds", "from (UTC)", "reward", "arms", "new", "candidates"), time,
            (0, 1, 3, 4, 5, 6),
        ),
        Listing("Arms shown most", ("arm", "candidate", "shown", "reward"), arms, (1, 2, 3)),
    ]  # fmt: skip


def _notes(found: Description) -> list[str]:
    notes = []
    if found.without_propensity:
        notes.append(
            f"{found.without_propensity:,} rounds have no propensity: only the direct method can use them."
        )  # fmt: skip
    if found.size > 3.0:
        notes.append(
            f"Features are large: |(x, z)| is {found.size:.3g} in the root mean square. Rescale them, or tell policies "
            f"(feature_bound), which take it to be about 1."
        )
    if found.display_bias is not None and found.display_limit is not None and found.display_bias > found.display_limit:
        notes.append(
            f"Arms were not shown as often as by uniform display: one is {found.display_bias:.1f} standard deviations "
            f"off (fair: below {found.display_limit:.1f}). Replay and inverse propensities would be biased."
        )
    return notes


def _propensities(found: Description) -> str:
    if found.lowest_propensity is None or found.highest_propensity is None:
        return "none"
    low, high = f"{found.lowest_propensity:.4g}", f"{found.highest_propensity:.4g}"
    words = low if low == high else f"{low} to {high}"
    if found.uniform:
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


# ------------------------------------------------------------------ evaluations


def print_evaluation(found: Evaluation, console: Console | None = None) -> None:
    """Estimates with their intervals, differences to the first policy, and how well the log supports them."""
    show(_warnings(found), _estimates(found), console)


def _estimates(found: Evaluation) -> list[Listing]:
    first = next(iter(found.diagnostics))
    within = f"{float(f'{100 * found.level:.6g}'):g} % interval"
    kind = "bootstrap" if found.interval == "bootstrap" else "empirical Bernstein, at any time"
    value_rows, difference_rows, refused = [], [], []
    for estimate in found.estimates:
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
    support = [
        (
            name, f"{d.rounds:,}", f"{d.matched:.2%}", "-" if d.effective is None else f"{d.effective:,.0f}",
            "-" if d.largest_weight is None else f"{d.largest_weight:.4g}",
            "-" if d.mean_weight is None else f"{d.mean_weight:.4g}",
        )
        for name, d in found.diagnostics.items()
    ]  # fmt: skip
    listings = [
        Listing(
            f"Value per round, {found.rounds:,} rounds ({kind})", ("policy", "by", "value", within), value_rows, (2,)
        ),
        Listing(
            "Support", ("policy", "rounds", "matched", "effective rounds", "largest weight", "mean weight"), support,
            (1, 2, 3, 4, 5),
        ),
    ]  # fmt: skip
    if difference_rows:
        head = ("policy", "by", "difference", within, "clear")
        listings.insert(1, Listing(f"Difference to {first}, on the same rounds", head, difference_rows, (2,)))
    if refused:
        listings.append(Listing("Refused", ("policy", "by", "because"), refused))
    return listings


def _value(value: float) -> str:
    return f"{value:.5f}"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.5f} to {estimate.high:.5f}"


def _warnings(found: Evaluation) -> list[str]:
    return [f"{name}: {warning}" for name, d in found.diagnostics.items() for warning in d.warnings]
