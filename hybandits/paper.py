"""Numbers of the paper (Das & Sinha 2024) and of the code released with it: data only.

The synthetic experiments draw five environments; their seeds are five successive integers below 1074926307 from NumPy's
default_rng(194821263), the same for every setting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RELEASED_SEEDS = (999911575, 8638682, 747366245, 122115198, 832331496)

RELEASED_NOISE = 0.01
RELEASED_RIDGE = 0.1
RELEASED_DELTA = 0.01
RELEASED_BOUND = (0.8, 0.5)
"""Norm bounds of theta and of every beta_i, S1 and S2."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One synthetic setting and the regret read off the published figure (within about 10 units), by rounds."""

    name: str
    d1: int
    d2: int
    arms: int
    horizon: int
    published: dict[str, dict[int, float]] = field(default_factory=dict)


SETTING_1 = Setting(
    name="setting-1",
    d1=40,
    d2=5,
    arms=25,
    horizon=80_000,
    published={
        "HyLinUCB": {
            1000: 49,
            2500: 68,
            5000: 84,
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
            1000: 76,
            2500: 129,
            5000: 178,
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
            1000: 128,
            2500: 234,
            5000: 326,
            10_000: 433,
            20_000: 570,
            30_000: 664,
            40_000: 738,
            50_000: 801,
            60_000: 854,
            70_000: 902,
            80_000: 941,
        },
    },
)
