"""The experiments of the paper (Das & Sinha 2024) as records, with the parameters of their policies.

There are two protocols. `released` is what the code published with the paper does and what produced its figure:
environments that can be drawn again exactly, noise 0.01, a coefficient scaled by the noise. `written` is what the
paper's text says: unit balls, noise variance 0.01, the ridge and gamma of the theorems. What the text leaves open
(delta, HyRan's p, the constants of SupLinUCB) is the same in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hybandits.experiments.record import Entry, Experiment, Protocol, environment_seeds, grid
from hybandits.simulation.play import LearnsFrom

Scale = Literal["quick", "paper"]

RELEASED_SEED = 194821263
"""Seed of the generator that gave the released environments' seeds."""
ENVIRONMENTS = 5
"""Number of environments in each of the paper's settings."""

DELTA = 0.01
"""Failure probability of every policy that has one."""
RELEASED_NOISE = 0.01
WRITTEN_NOISE = 0.1
"""Standard deviation of the rewards' noise in the synthetic experiments; the text has a variance of 0.01."""
RELEASED_RIDGE = 0.1
RELEASED_BOUND = (0.8, 0.5)
"""Norm bounds of theta and of every beta_i, S1 and S2."""
RELEASED_SUPLINUCB: dict[str, Any] = {"ridge": RELEASED_RIDGE, "bound": list(RELEASED_BOUND), "explore": "first"}
"""SupLinUCB in the released code: its width factor needs the bounds, and it explores the first wide arm."""
HYRAN_P = 0.5
"""HyRan's parameter p, which the paper leaves open."""
WORLDS: dict[Protocol, dict[str, Any]] = {
    "released": {"noise": RELEASED_NOISE, "theta_bound": RELEASED_BOUND[0], "beta_bound": RELEASED_BOUND[1]},
    "written": {"noise": WRITTEN_NOISE, "law": "ball"},
}
THOMPSON_SCALE = 0.1
"""Prior standard deviation of every parameter that `HYTHOMPSON_TOLD` is given, the same in all experiments."""

HYRAN_RELEASED = "HyRan (released)"
"""HyRan as the paper's code runs it, behind the published curves: its matrix has no cross blocks."""
HYTHOMPSON_TOLD = "HyThompson (told)"
"""HyThompson with the noise and the scale of the parameters given. By its plain name it learns both."""

PAPER_POLICIES = ("HyLinUCB", "LinUCB", "DisLinUCB")
"""The three upper confidence bound algorithms of the paper."""
BASELINES = ("HyRan", HYRAN_RELEASED, "SupLinUCB")
"""Algorithms of others that the paper compares with, and HyRan with its cross blocks."""
BEYOND = (HYTHOMPSON_TOLD, "HyThompson", "HyIDS", "Greedy")
"""Policies that are not in the paper; they have figures of their own."""

FRESH_POLICIES = (*PAPER_POLICIES, HYRAN_RELEASED, "HyThompson", "HyIDS")
"""The policies of the fresh environments: those of claims 1 to 3, and the two that learn their settings."""
FRESH_ARMS = {"setting-1": (25,), "setting-2": (25,), "setting-3": (10, 100, 400)}
"""The settings that are also played in fresh environments, and the numbers of arms there."""
FRESH_NAMES = {name: f"{name}-fresh" for name in FRESH_ARMS}
"""Names of the experiments in fresh environments, by the name of the setting."""
SMALL_DIVERSITY = "diversity-small"
"""Name of the diversity experiment on a problem that is small enough to be played beyond the burn-in."""
DIVERSITY_UPDATED = "diversity-updated"
"""Name of the released diversity experiment with every algorithm updated by its own reward."""
DIVERSITY_RUNS = ("diversity", DIVERSITY_UPDATED)
"""Names of the diversity experiments of the paper's size."""
WRITTEN_DIVERSITY_TRIALS = 200
"""Trials of the diversity experiment as written: the paper's 100 leave claim 5 just undecided."""
DIVERSITY_SEED = 46568961
"""Seed of the parameters of the released diversity experiment."""
HYLINUCB_K = "HyLinUCB (lambda = K)"
"""HyLinUCB with the theorem's ridge, in the diversity experiment as written; the appendix has lambda = 1 there."""
UNIFORM = "Uniform"
"""Uniform choice, by which the features of the arm played are independent of the choice."""
SMALL_DELTA = 0.1
"""Failure probability there: 10 trials can show a probability of 1 - 4 delta = 0.6 at 95 % confidence."""
SMALL_RIDGE = 4.0
"""The ridge there, of every policy that is given one and of what is measured: the proof asks for at least 1/rho."""

YAHOO_EXPERIMENTS = {"articles": "yahoo", "positions": "yahoo-positions"}
"""Names of the experiment on the click log, by what its arms are."""
YAHOO_NAMES = tuple(YAHOO_EXPERIMENTS.values())
YAHOO_TRAIN, YAHOO_ROUNDS = 1_000_000, 10_000_000
"""Rounds to fit on and to play."""
YAHOO_GRADIENT_LINES = 4_096
"""The first lines of the log, which the released code repeats in gradient descent to fit its reward model."""
QUICK_YAHOO = (100_000, 200_000)
"""Rounds to fit on and to play, in the short version."""
YAHOO_NOISE = {"released": 1e-5, "written": 1e-2}
"""Standard deviation of the rewards' noise; the text has a variance of 1e-4."""
YAHOO_SIGMA = 0.01
"""The noise level of the released algorithms."""
YAHOO_RIDGE = {"LinUCB": 1e3, "DisLinUCB": 1e2, "HyLinUCB": 1e3}
YAHOO_BOUND, YAHOO_FEATURE_BOUND = (2.0, 1.0), (2.0, 1.0)
"""Norm bounds of theta and beta, and of x and z, that the released algorithms assume."""
YAHOO_POLICIES = (*PAPER_POLICIES, "HyRan", HYRAN_RELEASED, HYTHOMPSON_TOLD, "HyThompson", "HyIDS")
YAHOO_HYRAN_ROUNDS = 200_000
"""The most rounds that HyRan plays on a synthetic log: a round takes it up to a hundred times as long as others."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Shape and length of one of the paper's experiments, and of its short version."""

    name: str
    about: str
    d1: int
    d2: int
    arms: tuple[int, ...]
    horizon: int
    environments: int = ENVIRONMENTS
    trials: int = 5
    quick_horizon: int = 10_000
    quick_trials: int = 1
    policies: tuple[str, ...]
    protocols: tuple[Protocol, ...] = ("released", "written")


_SETTING_1 = Setting(
    name="setting-1",
    about="many shared features: regret against rounds",
    d1=40,
    d2=5,
    arms=(25,),
    horizon=80_000,
    policies=(*PAPER_POLICIES, *BASELINES, *BEYOND),
)
_SETTING_2 = replace(
    _SETTING_1, name="setting-2", about="many features of each arm's own: regret against rounds", d1=5, d2=40
)
_SETTING_3 = replace(
    _SETTING_1,
    name="setting-3",
    about="regret at T against the number of arms",
    d1=5,
    arms=(10, 25, 50, 100, 200, 300, 400),
    horizon=30_000,
    policies=(*PAPER_POLICIES, "HyRan", HYRAN_RELEASED, *BEYOND),
)
_DIVERSITY = Setting(
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
)
_UPDATED = replace(
    _DIVERSITY,
    name=DIVERSITY_UPDATED,
    about="the same in the released code, where every algorithm learns its own rewards",
    protocols=("released",),
)
_SMALL = replace(
    _DIVERSITY,
    name=SMALL_DIVERSITY,
    about="the same on a small problem, beyond the burn-in; also with uniform choice",
    d1=2,
    d2=2,
    arms=(3, 6),
    horizon=2_500_000,
    trials=10,
    quick_horizon=100_000,
    quick_trials=6,
    policies=(UNIFORM, *PAPER_POLICIES, "HyIDS"),
)
SETTINGS = {setting.name: setting for setting in (_SETTING_1, _SETTING_2, _SETTING_3, _DIVERSITY, _UPDATED, _SMALL)}


def experiment(
    name: str, protocol: Protocol = "released", *, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> Experiment:
    """One of `SETTINGS` as a record, for `hybandits.experiments.runner.run`.

    The environments' seeds are drawn from `seed`; by default they are those of the published figure.

    Examples
    --------
    >>> record = experiment("setting-1")
    >>> record.d1, record.d2, record.arms, record.horizon, len(record.seeds), record.trials
    (40, 5, (25,), 80000, 5, 5)
    """
    setting, short, diversity = SETTINGS[name], scale == "quick", name in DIVERSITY_RUNS
    horizon = setting.quick_horizon if short else setting.horizon
    trials = setting.quick_trials if short else setting.trials
    record = Experiment(
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
        **({"law": "cube-direction"} | WORLDS[protocol]),
    )
    if name == SMALL_DIVERSITY:
        return _small_diversity(record, short)
    if diversity and protocol == "released":
        return _released_diversity(record, seed)
    if not diversity:
        return record
    theorem = replace(entry("HyLinUCB", "written"), name=HYLINUCB_K)
    first, *others = record.policies
    trials = trials if short else WRITTEN_DIVERSITY_TRIALS
    return replace(record, policies=(first, theorem, *others), trials=trials)


def _released_diversity(record: Experiment, seed: int) -> Experiment:
    """The diversity experiment of the released code, in which HyLinUCB alone learns, the rewards of all three.

    With every algorithm updated, each learns its own. Contexts and noise depend on the trial alone, and `seed` decides
    the parameters; all bounds on norms are 1.
    """
    exploration = _self_normalised(RELEASED_NOISE, (1.0, 1.0), 1.0)
    settings = {"exploration": exploration, "ridge": RELEASED_RIDGE}
    defect: dict[str, LearnsFrom] = {"HyLinUCB": "everybody", "LinUCB": "nobody", "DisLinUCB": "nobody"}
    learns_from = defect if record.name == "diversity" else {}
    return replace(
        record,
        seeds=(DIVERSITY_SEED,) if seed == RELEASED_SEED else record.seeds,
        law="released-diversity",
        theta_bound=1.0,
        beta_bound=1.0,
        policies=tuple(replace(e, settings=settings, learns_from=learns_from.get(e.name)) for e in record.policies),
    )


def _small_diversity(record: Experiment, short: bool) -> Experiment:
    """The diversity experiment where the burn-in can be reached.

    Features are unit vectors in all directions, under both protocols: rho = 1/d is the largest that |x|, |z| <= 1
    allows, hence the burn-in the smallest. Norms of parameters are at their bounds, so the draw of the parameters is a
    choice of coordinates and nothing else. Noise, bounds and gamma are those of the protocol.
    """
    probes = np.geomspace(100, record.horizon, 1 + round(20 * np.log10(record.horizon / 100))).round()
    return replace(
        record,
        law="sphere",
        fresh_contexts=True,
        policies=tuple(_small_entry(policy.name, record.protocol) for policy in record.policies),
        points=grid(record.horizon, 40, keep=()),
        probes=tuple(int(t) for t in probes),
        by_arm=True,
        design_ridge=SMALL_RIDGE,
        trials_per_unit=3 if short else 5,
    )


def _small_entry(name: str, protocol: Protocol) -> Entry:
    """A policy with the ridge and the delta of the small diversity experiment."""
    usual = entry(name, protocol, ridge=SMALL_RIDGE)
    if (exploration := usual.settings.get("exploration")) is None:
        return usual
    return replace(usual, settings={**usual.settings, "exploration": {**exploration, "delta": SMALL_DELTA}})


def experiments(
    names: Sequence[str], protocols: Sequence[Protocol], *, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> list[Experiment]:
    """Several of the paper's experiments, each under several protocols; see `experiment`."""
    return [
        experiment(name, protocol, scale=scale, seed=seed)
        for protocol in protocols
        for name in names
        if protocol in SETTINGS[name].protocols
    ]


def fresh_experiment(
    name: str, protocol: Protocol = "released", *, environments: int, scale: Scale = "paper", seed: int = RELEASED_SEED
) -> Experiment:
    """Setting 1, 2 or 3 in so many fresh environments, which are none of those of `experiment`.

    Each environment is played once, by `FRESH_POLICIES`. Their seeds are drawn from the seed after `seed`. The other
    parameters are those of `experiment`.

    Examples
    --------
    >>> record = fresh_experiment("setting-3", environments=100)
    >>> record.name, record.arms, len(record.seeds), record.trials
    ('setting-3-fresh', (10, 100, 400), 100, 1)
    >>> set(record.seeds) & set(experiment("setting-3").seeds)
    set()
    """
    published = experiment(name, protocol, scale=scale, seed=seed)
    return replace(
        published,
        name=FRESH_NAMES[name],
        arms=FRESH_ARMS[name],
        seeds=fresh_seeds(environments, seed),
        trials=1,
        policies=tuple(entry(policy, protocol) for policy in FRESH_POLICIES),
        points=grid(published.horizon, 40),
        probes=(),
    )


def fresh_seeds(count: int, seed: int) -> tuple[int, ...]:
    """Seeds of environments that are none of those of `experiment`; more environments begin with the same ones."""
    known = {*environment_seeds(seed, ENVIRONMENTS), *environment_seeds(RELEASED_SEED, ENVIRONMENTS)}
    drawn = environment_seeds(seed + 1, 2 * (count + len(known)))
    return tuple(new for new in dict.fromkeys(drawn) if new not in known)[:count]


def setting_of(name: str) -> Setting | None:
    """The setting that an experiment plays, in the published environments or in fresh ones; None if it is no setting.

    >>> setting_of("setting-3-fresh").horizon, setting_of("yahoo")
    (30000, None)
    """
    return SETTINGS.get(name.removesuffix("-fresh"))


def entry(name: str, protocol: Protocol, *, ridge: float | None = None) -> Entry:
    """A policy with the parameters that a protocol gives it; `ridge` replaces the protocol's.

    >>> released = entry("HyRan (released)", "released")
    >>> released.policy, released.settings
    ('HyRanWithoutCrossBlocks', {'p': 0.5})
    """
    released = protocol == "released"
    usual = {"ridge": (RELEASED_RIDGE if released else 1.0) if ridge is None else ridge}
    if name in PAPER_POLICIES and released:
        settings = {"exploration": _self_normalised(RELEASED_NOISE, RELEASED_BOUND, 1.0)} | usual
    elif name in PAPER_POLICIES:
        written = {"kind": "AsWritten", "bound": 1.0, "delta": DELTA}
        settings = {"exploration": written} | ({} if ridge is None else usual)
    else:
        noise = WORLDS[protocol]["noise"]
        settings = {
            "HyRan": {"p": HYRAN_P},
            HYRAN_RELEASED: {"p": HYRAN_P},
            "SupLinUCB": {"delta": DELTA} | (RELEASED_SUPLINUCB if released else {}),
            HYTHOMPSON_TOLD: {"noise": noise, "scale": THOMPSON_SCALE},
            "HyThompson": {},
            "HyIDS": {},
        }.get(name, usual)
    policy = {HYRAN_RELEASED: "HyRanWithoutCrossBlocks", HYTHOMPSON_TOLD: "HyThompson"}.get(name, name)
    return Entry(name=name, policy=policy, settings=settings)


def _self_normalised(noise: float, bound: Sequence[float], feature_bound: Any) -> dict[str, Any]:
    """The anytime coefficient of the released code."""
    bounds = {"bound": list(bound), "feature_bound": feature_bound}
    return {"kind": "SelfNormalised", "noise": noise, **bounds, "delta": DELTA}


def yahoo_entry(name: str, protocol: Protocol) -> Entry:
    """A policy with the parameters that a protocol gives it in the experiment on Yahoo's click log.

    The released protocol has the anytime coefficient with the released bounds and ridges. The written one has the
    theorems' coefficient and ridge; what the text leaves open (S, delta) is as in the synthetic experiments.
    """
    usual = entry(name, protocol)
    if name in PAPER_POLICIES and protocol == "released":
        exploration = _self_normalised(YAHOO_SIGMA, YAHOO_BOUND, list(YAHOO_FEATURE_BOUND))
        return replace(usual, settings={"exploration": exploration, "ridge": YAHOO_RIDGE[name]})
    if name == HYTHOMPSON_TOLD:
        return replace(usual, settings={"noise": YAHOO_SIGMA, "scale": THOMPSON_SCALE})
    return usual


def synthetic_log(record: Experiment) -> Mapping[str, Any] | None:
    """The settings of the synthetic log that an experiment plays on; None if its log is real or it has none."""
    return (record.log or {}).get("synthetic")


def uniform_choice_regret(record: Experiment) -> float | None:
    """Expected regret of choosing uniformly among the candidates of a click log; None if it is not known."""
    regret = (record.log or {}).get("uniform_choice_regret")
    return None if regret is None else float(regret)
