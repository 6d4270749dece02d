"""The published figure as numbers, read off its pixels, and how near to them a rerun has to come."""

from __future__ import annotations

from hybandits.paper.settings import HYRAN_RELEASED, YAHOO_EXPERIMENTS

READ_OUT_ERRORS = {
    "setting-1": 10.0, "setting-2": 10.0, "setting-3": 15.0, **dict.fromkeys(YAHOO_EXPERIMENTS.values(), 200.0)
}  # fmt: skip
"""How far a published number may be off, panel by panel: it was read off the figure's pixels. A pixel of the panel of
setting 3 is 12.8 units high, and markers and grid lines are snapped to whole pixels there."""

TOLERANCE = 0.01
"""A mean agrees with a published read-out within this share of it, or within the error of its panel."""
HYRAN_TOLERANCE = 0.10
"""The same for HyRan, whose own randomness was not seeded when the figure was made."""

# Cumulative regret read off the published figure, None where it is hidden behind another curve's marker.

PUBLISHED_SETTING_1: dict[str, dict[int, float | None]] = {
    "HyLinUCB": {
        1_000: 49,
        2_500: 68,
        5_000: 84,
        10_000: 104,
        20_000: 129,
        30_000: 147,
        40_000: 161,
        50_000: 171,
        60_000: 180,
        70_000: 189,
        80_000: 197,
    },
    "LinUCB": {
        1_000: 76,
        2_500: 129,
        5_000: 178,
        10_000: 243,
        20_000: 329,
        30_000: 390,
        40_000: 435,
        50_000: 477,
        60_000: 509,
        70_000: 541,
        80_000: 570,
    },
    "DisLinUCB": {
        1_000: 128,
        2_500: 234,
        5_000: 326,
        10_000: 433,
        20_000: 570,
        30_000: 664,
        40_000: 738,
        50_000: 801,
        60_000: 854,
        70_000: 902,
        80_000: 941,
    },
    "HyRan": {
        1_000: 93,
        2_500: 206,
        5_000: 378,
        10_000: 677,
        20_000: 1220,
        30_000: 1706,
        40_000: 2156,
        50_000: 2568,
        60_000: 2956,
        70_000: 3321,
        80_000: 3660,
    },
}

PUBLISHED_SETTING_2: dict[str, dict[int, float | None]] = {
    "HyLinUCB": {
        1_000: 101,
        2_500: None,
        5_000: 288,
        10_000: 390,
        20_000: 519,
        30_000: 611,
        40_000: 682,
        50_000: 743,
        60_000: 796,
        70_000: 844,
        80_000: 887,
    },
    "LinUCB": {
        1_000: 162,
        2_500: 355,
        5_000: 573,
        10_000: 897,
        20_000: 1376,
        30_000: 1750,
        40_000: 2064,
        50_000: 2339,
        60_000: 2584,
        70_000: 2809,
        80_000: 3016,
    },
    "DisLinUCB": {
        1_000: 119,
        2_500: 203,
        5_000: 270,
        10_000: 349,
        20_000: 449,
        30_000: 516,
        40_000: 568,
        50_000: 617,
        60_000: 656,
        70_000: 690,
        80_000: 722,
    },
    "HyRan": {
        1_000: 20,
        2_500: 46,
        5_000: 83,
        10_000: 158,
        20_000: 301,
        30_000: 439,
        40_000: 580,
        50_000: 718,
        60_000: 855,
        70_000: 988,
        80_000: 1120,
    },
}

PUBLISHED_SETTING_3: dict[str, dict[int, float | None]] = {
    "HyLinUCB": {10: None, 25: None, 50: None, 100: None, 200: 648, 300: 891, 400: 1121},
    "LinUCB": {10: None, 25: 377, 50: 917, 100: 1914, 200: 3423, 300: 4523, 400: 5406},
    "DisLinUCB": {10: 48, 25: 137, 50: 277, 100: 559, 200: 1096, 300: 1594, 400: 2080},
    "HyRan": {10: 739, 25: 1914, 50: 2873, 100: 4164, 200: 6159, 300: 6697, 400: 7196},
}
"""By number of arms, at T = 30,000. LinUCB's marker at K = 25 is partly covered and was read from its visible upper
edge."""


PUBLISHED_YAHOO: dict[str, dict[int, float]] = {
    "LinUCB": {
        1_000_000: 400, 2_000_000: 700, 3_000_000: -600, 4_000_000: -2_500, 5_000_000: 7_200, 6_000_000: 7_900,
        7_000_000: 11_100, 8_000_000: 11_300, 9_000_000: 9_700, 10_000_000: 10_400,
    },
    "DisLinUCB": {
        1_000_000: 2_100, 2_000_000: 4_300, 3_000_000: 15_700, 4_000_000: 15_100, 5_000_000: 30_000, 6_000_000: 33_000,
        7_000_000: 38_800, 8_000_000: 42_000, 9_000_000: 41_900, 10_000_000: 41_500,
    },
    "HyRan": {
        1_000_000: 4_200, 2_000_000: 13_000, 3_000_000: 25_900, 4_000_000: 31_100, 5_000_000: 53_200,
        6_000_000: 66_400, 7_000_000: 79_500, 8_000_000: 89_600, 9_000_000: 92_400, 10_000_000: 97_200,
    },
}  # fmt: skip
"""Regret beyond HyLinUCB's."""


def published(experiment: str, policy: str, arms: int | None = None) -> dict[int, float]:
    """What was read off the published figure for one policy.

    Parameters
    ----------
    experiment : str
        The experiment's name, e.g. ``"setting-1"`` or ``"yahoo"``.
    policy : str
        The policy's name. The HyRan that was published is the released variant, so only that one has read-outs.
    arms : int, optional
        The number of arms, which setting 3 needs.

    Returns
    -------
    dict
        {rounds: regret}, in the experiments on a click log {rounds: regret beyond HyLinUCB's}. Empty if the figure does
        not show the policy, or hides it.

    Examples
    --------
    >>> published("setting-1", "HyLinUCB")[80_000], published("setting-3", "LinUCB", 400)
    (197, {30000: 5406})
    """
    name = {HYRAN_RELEASED: "HyRan", "HyRan": ""}.get(policy, policy)
    if experiment in YAHOO_EXPERIMENTS.values():
        return dict(PUBLISHED_YAHOO.get(name, {}))
    if experiment == "setting-3":
        value = PUBLISHED_SETTING_3.get(name, {}).get(arms or 0)
        return {} if value is None else {30_000: value}
    table = {"setting-1": PUBLISHED_SETTING_1, "setting-2": PUBLISHED_SETTING_2}.get(experiment, {})
    return {t: value for t, value in table.get(name, {}).items() if value is not None}


def agrees(experiment: str, policy: str, mean: float, published: float) -> bool:
    """Whether a mean is the published one, as far as that is known.

    >>> agrees("setting-2", "LinUCB", 3040.0, 3016.0), agrees("setting-2", "LinUCB", 3050.0, 3016.0)
    (True, False)
    """
    return abs(mean - published) <= tolerance(experiment, policy, published)


def tolerance(experiment: str, policy: str, published: float) -> float:
    """How far a mean may be from a published read-out."""
    share = HYRAN_TOLERANCE if policy == HYRAN_RELEASED else TOLERANCE
    return max(share * published, read_out_error(experiment))


def read_out_error(experiment: str) -> float:
    """How far the published numbers of an experiment may be off.

    >>> read_out_error("setting-1"), read_out_error("setting-3")
    (10.0, 15.0)
    """
    return READ_OUT_ERRORS[experiment]
