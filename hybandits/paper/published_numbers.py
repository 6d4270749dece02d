"""The published figure as numbers, read off its pixels, and how near to them a rerun has to come."""

from __future__ import annotations

from hybandits.paper.settings import HYRAN_RELEASED, YAHOO_NAMES

READ_OUT_ERRORS = {"setting-1": 10.0, "setting-2": 10.0, "setting-3": 15.0, **dict.fromkeys(YAHOO_NAMES, 200.0)}
"""The error of a published number, panel by panel: it was read off the figure's pixels. A pixel of the panel of
setting 3 is 12.8 units high, and markers and grid lines are snapped to whole pixels there."""

TOLERANCE = 0.01
"""A mean agrees with a published read-out within this share of it, or within the error of its panel."""
HYRAN_TOLERANCE = 0.10
"""The same for HyRan, whose own randomness was not seeded when the figure was made."""

_Table = dict[str, tuple[float | None, ...]]

# Cumulative regret read off the published figure, None where it is hidden behind another curve's marker.

ROUNDS = (1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000, 70_000, 80_000)
"""The rounds of the read-outs of settings 1 and 2."""
SETTING_1: _Table = {
    "HyLinUCB": (49, 68, 84, 104, 129, 147, 161, 171, 180, 189, 197),
    "LinUCB": (76, 129, 178, 243, 329, 390, 435, 477, 509, 541, 570),
    "DisLinUCB": (128, 234, 326, 433, 570, 664, 738, 801, 854, 902, 941),
    HYRAN_RELEASED: (93, 206, 378, 677, 1220, 1706, 2156, 2568, 2956, 3321, 3660),
}
SETTING_2: _Table = {
    "HyLinUCB": (101, None, 288, 390, 519, 611, 682, 743, 796, 844, 887),
    "LinUCB": (162, 355, 573, 897, 1376, 1750, 2064, 2339, 2584, 2809, 3016),
    "DisLinUCB": (119, 203, 270, 349, 449, 516, 568, 617, 656, 690, 722),
    HYRAN_RELEASED: (20, 46, 83, 158, 301, 439, 580, 718, 855, 988, 1120),
}
ARMS = (10, 25, 50, 100, 200, 300, 400)
"""The numbers of arms of the read-outs of setting 3."""
SETTING_3: _Table = {
    "HyLinUCB": (None, None, None, None, 648, 891, 1121),
    "LinUCB": (None, 377, 917, 1914, 3423, 4523, 5406),
    "DisLinUCB": (48, 137, 277, 559, 1096, 1594, 2080),
    HYRAN_RELEASED: (739, 1914, 2873, 4164, 6159, 6697, 7196),
}
"""At T = 30,000. LinUCB's marker at K = 25 is partly covered and was read from its visible upper edge."""
MILLIONS = tuple(range(1_000_000, 10_000_001, 1_000_000))
"""The rounds of the read-outs of the click log."""
YAHOO: _Table = {
    "LinUCB": (400, 700, -600, -2_500, 7_200, 7_900, 11_100, 11_300, 9_700, 10_400),
    "DisLinUCB": (2_100, 4_300, 15_700, 15_100, 30_000, 33_000, 38_800, 42_000, 41_900, 41_500),
    HYRAN_RELEASED: (4_200, 13_000, 25_900, 31_100, 53_200, 66_400, 79_500, 89_600, 92_400, 97_200),
}
"""Regret beyond HyLinUCB's."""


def published(experiment: str, policy: str, arms: int | None = None) -> dict[int, float]:
    """Read-outs of the published figure for one policy: {rounds: regret}, on a click log beyond HyLinUCB's.

    Empty if the figure does not show the policy or hides it. The HyRan that was published is the released variant.
    Setting 3 needs the number of arms.

    Examples
    --------
    >>> published("setting-1", "HyLinUCB")[80_000], published("setting-3", "LinUCB", 400)
    (197, {30000: 5406})
    """
    if experiment == "setting-3":
        regret = dict(zip(ARMS, SETTING_3.get(policy, ()), strict=False)).get(arms or 0)
        return {} if regret is None else {30_000: regret}
    if experiment in YAHOO_NAMES:
        rounds, table = MILLIONS, YAHOO
    else:
        rounds, table = ROUNDS, {"setting-1": SETTING_1, "setting-2": SETTING_2}.get(experiment, {})
    curve = zip(rounds, table.get(policy, ()), strict=False)
    return {t: regret for t, regret in curve if regret is not None}


def agrees(experiment: str, policy: str, mean: float, published: float) -> bool:
    """Check whether a mean agrees with a published read-out."""
    return abs(mean - published) <= tolerance(experiment, policy, published)


def tolerance(experiment: str, policy: str, published: float) -> float:
    """Return how far a mean may be from a published read-out."""
    share = HYRAN_TOLERANCE if policy == HYRAN_RELEASED else TOLERANCE
    return max(share * published, READ_OUT_ERRORS[experiment])
