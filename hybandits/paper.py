"""The paper (Das & Sinha 2024) as data: its experiments as records, its figure as numbers.

Two protocols. `released` is what the code published with the paper does and what produced its figure: environments that
can be drawn again exactly, noise 0.01, a coefficient scaled by the noise. `written` is what the paper's text says: unit
balls, noise variance 0.01, the ridge and gamma of the theorems. What the text leaves open (delta, HyRan's p, the
constants of SupLinUCB) is the same in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hybandits import checks
from hybandits.experiments import Entry, Experiment, Protocol

Scale = Literal["quick", "paper"]

RELEASED_SEED = 194821263
"""Seed of the generator that gave the released environments' seeds."""

SEED_RANGE = 1074926307

DELTA = 0.01
RELEASED_NOISE = 0.01
RELEASED_RIDGE = 0.1
RELEASED_BOUND = (0.8, 0.5)
"""Norm bounds of theta and of every beta_i, S1 and S2."""
WRITTEN_NOISE = 0.1
HYRAN_P = 0.5
THOMPSON_SCALE = 0.1
"""Prior standard deviation of every parameter in HyThompson, the same in all experiments."""

PAPER_POLICIES = ("HyLinUCB", "LinUCB", "DisLinUCB")
"""The three upper confidence bound algorithms of the paper."""
BASELINES = ("HyRan", "HyRan (released)", "SupLinUCB")
BEYOND = ("HyThompson", "Greedy")
"""Not in the paper: in figures of their own."""

READ_OUT_ERROR = 10.0
"""How far a published number may be off: it was read off the figure's pixels."""

# Cumulative regret read off the published figure. None: hidden behind another curve's marker.

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
    "HyLinUCB": {10: None, 25: None, 50: None, 100: None, 200: 646, 300: 889, 400: 1120},
    "LinUCB": {10: None, 25: 403, 50: 915, 100: 1913, 200: 3423, 300: 4524, 400: 5407},
    "DisLinUCB": {10: 45, 25: 134, 50: 275, 100: 557, 200: 1094, 300: 1593, 400: 2080},
    "HyRan": {10: 736, 25: 1913, 50: 2873, 100: 4165, 200: 6162, 300: 6699, 400: 7198},
}
"""By number of arms, at T = 30,000."""


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
"""Regret beyond HyLinUCB's, read off the published figure."""

YAHOO_TRAIN = 1_000_000
YAHOO_ROUNDS = 10_000_000
QUICK_YAHOO = (100_000, 200_000)
"""Rounds to fit on and to play, in the short version."""
YAHOO_NOISE = {"released": 1e-5, "written": 1e-2}
"""The text has variance 1e-4."""
YAHOO_SIGMA = 0.01
"""The noise that the released algorithms are told."""
YAHOO_RIDGE = {"LinUCB": 1e3, "DisLinUCB": 1e2, "HyLinUCB": 1e3}
YAHOO_BOUND, YAHOO_FEATURE_BOUND = (2.0, 1.0), (2.0, 1.0)
YAHOO_ORDER = ("LinUCB", "DisLinUCB", "HyLinUCB", "HyRan (released)")
"""The released code's list of algorithms: the one in place j learns from the reward of candidate j."""
YAHOO_POLICIES = (*PAPER_POLICIES, "HyRan", "HyRan (released)", "HyThompson")


def published(experiment: str, policy: str, arms: int | None = None) -> dict[int, float]:
    """Read-outs of a policy's curve that are not hidden: {rounds: regret}; in setting 3 of one number of arms.

    The published HyRan is the released variant.

    >>> published("setting-1", "HyLinUCB")[80_000], published("setting-3", "LinUCB", 400)
    (197, {30000: 5407})
    """
    name = {"HyRan (released)": "HyRan", "HyRan": ""}.get(policy, policy)
    if experiment == "setting-3":
        value = PUBLISHED_SETTING_3.get(name, {}).get(arms or 0)
        return {} if value is None else {30_000: value}
    table = {"setting-1": PUBLISHED_SETTING_1, "setting-2": PUBLISHED_SETTING_2}.get(experiment, {})
    return {t: value for t, value in table.get(name, {}).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Shape and length of one of the paper's experiments, and of its short version."""

    name: str
    about: str
    d1: int
    d2: int
    arms: tuple[int, ...]
    horizon: int
    environments: int
    trials: int
    quick_horizon: int
    quick_trials: int
    policies: tuple[str, ...]


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(
            name="setting-1",
            about="many shared features: regret against rounds",
            d1=40,
            d2=5,
            arms=(25,),
            horizon=80_000,
            environments=5,
            trials=5,
            quick_horizon=10_000,
            quick_trials=1,
            policies=(*PAPER_POLICIES, *BASELINES, *BEYOND),
        ),
        Setting(
            name="setting-2",
            about="many features of each arm's own: regret against rounds",
            d1=5,
            d2=40,
            arms=(25,),
            horizon=80_000,
            environments=5,
            trials=5,
            quick_horizon=10_000,
            quick_trials=1,
            policies=(*PAPER_POLICIES, *BASELINES, *BEYOND),
        ),
        Setting(
            name="setting-3",
            about="regret at T against the number of arms",
            d1=5,
            d2=5,
            arms=(10, 25, 50, 100, 200, 300, 400),
            horizon=30_000,
            environments=5,
            trials=5,
            quick_horizon=10_000,
            quick_trials=1,
            policies=(*PAPER_POLICIES, "HyRan", "HyRan (released)", *BEYOND),
        ),
        Setting(
            name="diversity",
            about="eigenvalues of the design matrix behind the diversity assumption",
            d1=10,
            d2=10,
            arms=(25,),
            horizon=5_000,
            environments=1,
            trials=100,
            quick_horizon=5_000,
            quick_trials=10,
            policies=PAPER_POLICIES,
        ),
    )
}


def environment_seeds(seed: int, count: int) -> tuple[int, ...]:
    """Seeds of the environments.

    >>> environment_seeds(RELEASED_SEED, 5)
    (999911575, 8638682, 747366245, 122115198, 832331496)
    """
    random = np.random.default_rng(checks.seed(seed))
    return tuple(int(random.integers(SEED_RANGE)) for _ in range(count))


def experiment(
    name: str, protocol: Protocol = "released", *, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> Experiment:
    """One of the paper's experiments as a record."""
    setting = SETTINGS[name]
    short = scale == "quick"
    horizon = setting.quick_horizon if short else setting.horizon
    diversity = name == "diversity"
    if protocol == "released":
        world: dict[str, Any] = {
            "noise": RELEASED_NOISE,
            "law": "inscribed-cube" if diversity else "cube-direction",
            "theta_bound": RELEASED_BOUND[0],
            "beta_bound": RELEASED_BOUND[1],
        }
    else:
        world = {"noise": WRITTEN_NOISE, "law": "ball"}
    trials = setting.quick_trials if short else setting.trials
    return Experiment(
        name=name,
        protocol=protocol,
        d1=setting.d1,
        d2=setting.d2,
        arms=setting.arms,
        horizon=horizon,
        seeds=environment_seeds(seed, setting.environments),
        trials=trials,
        fresh_contexts=diversity,
        policies=tuple(entry(policy, protocol, ridge=1.0 if diversity else None) for policy in setting.policies),
        points=grid(horizon, 120 if name in ("setting-1", "setting-2") else 40),
        probes=grid(horizon, 16, keep=()) if diversity else (horizon,),
        by_arm=diversity,
        trials_per_unit=min(25, trials) if diversity else 0,
        **world,
    )


def experiments(
    names: Sequence[str], protocols: Sequence[Protocol], *, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> list[Experiment]:
    """Several of them under several protocols."""
    return [experiment(name, protocol, scale=scale, seed=seed) for protocol in protocols for name in names]


def entry(name: str, protocol: Protocol, *, ridge: float | None = None) -> Entry:
    """A policy with the protocol's parameters; `ridge`: another one than the protocol's."""
    released = protocol == "released"
    noise = RELEASED_NOISE if released else WRITTEN_NOISE
    settings: dict[str, Any]
    if name in PAPER_POLICIES:
        if released:
            exploration = {
                "kind": "SelfNormalised", "noise": noise, "bound": list(RELEASED_BOUND), "feature_bound": 1.0,
                "delta": DELTA,
            }  # fmt: skip
            settings = {"exploration": exploration, "ridge": RELEASED_RIDGE if ridge is None else ridge}
        else:
            settings = {"exploration": {"kind": "AsWritten", "bound": 1.0, "delta": DELTA}}
            if ridge is not None:
                settings["ridge"] = ridge
        return Entry(name=name, policy=name, settings=settings)
    if name in ("HyRan", "HyRan (released)"):
        kind = "HyRan" if name == "HyRan" else "HyRanWithoutCrossBlocks"
        return Entry(name=name, policy=kind, settings={"p": HYRAN_P})
    if name == "SupLinUCB":
        return Entry(name=name, policy=name, settings={"delta": DELTA})
    if name == "HyThompson":
        return Entry(name=name, policy=name, settings={"noise": noise, "scale": THOMPSON_SCALE})
    return Entry(name=name, policy=name, settings={"ridge": RELEASED_RIDGE if released else 1.0})


def yahoo_entry(name: str, protocol: Protocol) -> Entry:
    """A policy with the protocol's parameters for the Yahoo experiment.

    Released: the anytime coefficient with the released bounds and ridges. Written: the theorems' coefficient and ridge;
    what the text leaves open (S, delta) as in the synthetic experiments.
    """
    if name in PAPER_POLICIES and protocol == "released":
        exploration = {
            "kind": "SelfNormalised", "noise": YAHOO_SIGMA, "bound": list(YAHOO_BOUND),
            "feature_bound": list(YAHOO_FEATURE_BOUND), "delta": DELTA,
        }  # fmt: skip
        return Entry(name=name, policy=name, settings={"exploration": exploration, "ridge": YAHOO_RIDGE[name]})
    if name == "HyThompson":
        return Entry(name=name, policy=name, settings={"noise": YAHOO_SIGMA, "scale": THOMPSON_SCALE})
    return entry(name, protocol)


def grid(horizon: int, size: int, keep: Sequence[int] = (1000, 2500, 5000, 10_000)) -> tuple[int, ...]:
    """Rounds at which to look: half of them evenly spaced, half by constant factors, and those of `keep`.

    >>> grid(80_000, 120)[-1], len(grid(80_000, 120)) <= 130
    (80000, True)
    """
    even = np.linspace(0, horizon, 1 + min(size // 2, horizon))[1:].round()
    factors = np.geomspace(min(10, horizon), horizon, size - size // 2).round()
    tens = list(range(10_000, horizon + 1, 10_000)) if keep else []
    rounds = {int(t) for t in (*even, *factors)} | {t for t in (*keep, *tens) if t <= horizon}
    return tuple(sorted(rounds))
