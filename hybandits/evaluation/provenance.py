"""What a policy was fitted to: noted when it is fitted, saved with it, and checked before it is evaluated.

The notes of a fitted policy (`Policy.notes`) hold the map of its features, the names of the columns behind them, which
log it has learned and how much of it and, for logs of one's own, the named features that `Features.of` makes from them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Literal

from hybandits.evaluation.view import View
from hybandits.features import COLUMNS
from hybandits.foundation.checks import twin_of
from hybandits.logs.store import Log
from hybandits.policies.base import Policy


def note_fit(policy: Policy, view: View, rounds: int) -> None:
    """Note in a policy that it has learned the first `rounds` rounds of a log."""
    policy.notes = {
        "features": view.map.name, "user": view.log.user, "arm": view.log.arm,
        "fitted_to": {"content": view.log.about["content"], "rounds": rounds},
    }  # fmt: skip
    if view.map.pair:
        policy.notes["pair"] = view.log.pair
    if COLUMNS in view.log.about:
        named = {what: each for what, each in view.log.about[COLUMNS].items() if what != "pair" or view.map.pair}
        policy.notes[COLUMNS] = {"map": view.map.name, "interactions": "all", **named}


def noted_features(policies: Mapping[str, Policy]) -> dict[str, str]:
    """The map of features that each of these policies was fitted with; those that do not say are left out."""
    return {name: policy.notes["features"] for name, policy in policies.items() if "features" in policy.notes}


def common_features(policies: Mapping[str, Policy]) -> str | None:
    """The map of features that all these policies were fitted with; None if they differ or none of them says."""
    maps = set(noted_features(policies).values())
    return maps.pop() if len(maps) == 1 else None


def check_columns(policies: Mapping[str, Policy], view: View) -> None:
    """Raise if a policy was fitted to other columns than the log has: it would take one for another."""
    for name, policy in policies.items():
        for what, columns in (("user", view.log.user), ("arm", view.log.arm), ("pair", view.log.pair)):
            fitted = policy.notes.get(what, columns)
            if fitted != columns:
                differing = [column for column in (*fitted, *columns) if (column in fitted) != (column in columns)]
                words = f"differing: {', '.join(differing[:3])}" if differing else "in another order"
                raise ValueError(
                    f"{name} was fitted to a log with other {what} features ({words}): evaluate it on a log with the "
                    "same features"
                )


def common_ids(policies: Mapping[str, Policy], log: Log) -> Literal["integers", "strings"] | None:
    """The type under which policies know the arms of a log, for `View`; None if it is that of the log.

    Logs that earlier versions converted have strings where there are integers now, and so have policies fitted to them.

    Raises
    ------
    ValueError
        If one policy knows the arms as integers and another one as strings.
    """
    names: set[Hashable] = set(log.names)
    twins = {twin for name in log.names if (twin := twin_of(name)) is not None}
    other: Literal["integers", "strings"] = "strings" if log.integer_ids else "integers"
    same, differing = "", ""
    for name, policy in policies.items():
        known = set(policy.arms)
        if known & names:
            same = name
        elif known & twins:
            differing = name
    if same and differing:
        raise ValueError(
            f"{differing} knows the arms of the log as {other}, but {same} does not: evaluate them in runs of their own"
        )
    return other if differing else None


def rounds_learned(policy: Policy, view: View) -> int:
    """How many rounds at the start of this very log the policy was fitted to; 0 if it was fitted to another."""
    fitted_to = policy.notes.get("fitted_to", {})
    return int(fitted_to.get("rounds", 0)) if fitted_to.get("content") == view.log.about["content"] else 0
