"""An experiment as a record: everything that its results depend on, and nothing else.

A record splits into independent units: one number of arms, one environment, some trials. `runner` runs them, `results`
stores and reads them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from hybandits.experiments.worlds import make_world, split_settings
from hybandits.foundation import checks
from hybandits.policies.by_name import digest_of_class, is_import_path, nested_policies, proper_settings
from hybandits.simulation.play import LearnsFrom
from hybandits.simulation.worlds import LAWS, World

Protocol = Literal["released", "written", "own"]
"""Setup of the paper's released code, of the paper as written, or of the user."""

DESIGN = ("lambda_min_v", "rho_x", "rho_z", "z_norm")
"""Measures of the design matrix, one number per probe (see `design_matrix`)."""

MOMENTS = ("mean_x", "mean_z", "mean_xz", "ellipsoid", "outside")
"""Measures of the rows played and of confidence sets, one number per probe."""

DESIGN_BY_ARM = ("pulls", "lambda_min_w", "sigma_max_b", "frobenius_b")
"""Measures of every arm's block, one number per probe and arm."""
OPTIONAL = ("log", "world_settings", "design_ridge", "origins", "moments")
"""Fields of a record that files leave out unless they are used."""


class ResultsError(Exception):
    """Results are missing, damaged, or of another record or version."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A policy that takes part in an experiment: its name in the results, its class, and the settings of the class.

    `policy` is read by `hybandits.policies.by_name`. `settings` are JSON-able keyword arguments of the class; shape and
    seed come from the unit, and so do the number of arms and the horizon where the class takes them. `learns_from`
    repeats defects of the released code (`hybandits.simulation.play.Player`). On a log a slow policy may play the first
    `rounds` only.
    """

    name: str
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    learns_from: LearnsFrom = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", proper_settings(self.settings))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that the results of an experiment depend on.

    Parameters
    ----------
    name : str
        Names its folder: letters, digits, - and _. It may be run with several protocols.
    protocol : {"released", "written", "own"}
        Setup of the paper's released code, of the paper as written, or of the user.
    d1, d2, horizon : int
        Numbers of shared and of arm-specific features, and of rounds.
    arms : tuple of int
        Numbers of arms, each a case of its own.
    seeds : tuple of int
        One per environment. Contexts and parameters are functions of the seed; the noise is one of seed and trial.
    trials, trials_per_unit : int
        Number of trials in each environment and in each unit; 0 for all.
    noise, law, theta_bound, beta_bound, fresh_contexts
        See `hybandits.simulation.worlds.Synthetic`. The noise is that of the rewards as policies see them, after any
        factor; the law and the bounds are for linear worlds only.
    policies : tuple of Entry
        All play on the same contexts and noise.
    points, probes : tuple of int
        Rounds after which the regret is kept, up to the horizon, and after which the design matrix is measured.
    by_arm, moments : bool
        Measure the design matrix of the rows that policies play, and the `MOMENTS`; `by_arm` adds every arm's block.
    design_ridge : float, optional
        The ridge of that matrix instead of the policy's own, for policies that learn their ridges.
    world_settings : mapping
        Kind and settings of the world (`hybandits.experiments.worlds.make_world`). Empty for the paper's world.
    log : mapping, optional
        The log of contexts and means, and its settings (`evaluation.log_world.LogWorld`). The seeds are then those of
        the noise alone, and every policy and trial is a unit of its own.
    origins : mapping of str to str
        SHA-256 of the file of each class of one's own. By default the classes are imported to compute it.

    Examples
    --------
    >>> record = Experiment(
    ...     name="small", d1=3, d2=2, arms=(5, 10), horizon=100, seeds=(1, 2), trials=1, noise=0.1,
    ...     policies=(Entry(name="Greedy", policy="Greedy"),), points=(50, 100),
    ... )
    >>> [unit.name for unit in record.units()]
    ['K10-environment1', 'K10-environment2', 'K5-environment1', 'K5-environment2']
    """

    name: str
    protocol: Protocol = "own"
    d1: int
    d2: int
    arms: tuple[int, ...]
    horizon: int
    seeds: tuple[int, ...]
    trials: int
    noise: float
    law: str = "ball"
    theta_bound: float = 1.0
    beta_bound: float = 1.0
    fresh_contexts: bool = False
    policies: tuple[Entry, ...]
    points: tuple[int, ...]
    probes: tuple[int, ...] = ()
    by_arm: bool = False
    moments: bool = False
    design_ridge: float | None = None
    trials_per_unit: int = 0
    world_settings: Mapping[str, Any] = field(default_factory=dict)
    log: Mapping[str, Any] | None = None
    origins: Mapping[str, str] = None  # type: ignore[assignment]  # looked up

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        for name, value in (("horizon", self.horizon), ("trials", self.trials), *(("arms", k) for k in self.arms)):
            checks.count(name, value, least=1, why="nothing is played otherwise")
        for name in ("noise", "theta_bound", "beta_bound"):
            checks.non_negative(name, getattr(self, name), "it is a standard deviation or bounds a norm")
        if self.design_ridge is not None:
            checks.ridge(self.design_ridge)
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise ValueError(f"name must be letters, digits, - and _, got {self.name!r}: it names files")
        if self.law not in LAWS and self.log is None:
            raise ValueError(f"law must be one of {sorted(LAWS)}, got {self.law!r}")
        names = tuple(entry.name for entry in self.policies)
        unique: dict[str, Sequence[Any]] = {"arms": self.arms, "seeds": self.seeds, "names of policies": names}
        for name, values in unique.items():
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{name} must be different and at least one, got {values}")
        for name, rounds in (("points", self.points), ("probes", self.probes)):
            if list(rounds) != sorted(set(rounds)) or (rounds and not 1 <= rounds[0] <= rounds[-1] <= self.horizon):
                raise ValueError(f"{name} must be increasing rounds between 1 and {self.horizon}, got {rounds[:5]}..")
        if self.points[-1:] != (self.horizon,):
            raise ValueError(f"points must end at the horizon {self.horizon}, got {self.points[-1:]}: add it")
        for entry in self.policies:
            if entry.rounds is not None and (self.log is None or entry.rounds not in self.points):
                raise ValueError(
                    f"{entry.name} must play all rounds, or on a log as many as one of the points, got {entry.rounds}"
                )
        if self.origins is None:
            classes = [name for entry in self.policies for name, _ in nested_policies(entry.policy, entry.settings)]
            classes.append(self.world_settings.get("kind", ""))
            own = sorted({name for name in classes if is_import_path(name)})
            object.__setattr__(self, "origins", {name: digest_of_class(name) for name in own})

    def check_origins(self) -> None:
        """Raise ResultsError if the file of a class of one's own differs from the recorded one."""
        for name, digest in self.origins.items():
            if digest_of_class(name) != digest:
                raise ResultsError(
                    f"the source of {name} has changed since it was recorded: bring the old file back, or run into "
                    "another folder"
                )

    def rounds_of(self, policy: str) -> int:
        """Number of rounds that a policy plays: the horizon, or fewer on a log."""
        return next(entry.rounds or self.horizon for entry in self.policies if entry.name == policy)

    @property
    def digest(self) -> str:
        """SHA-256 of the record."""
        return hashlib.sha256(json.dumps(self.plain(), sort_keys=True).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Name and protocol, as in setting-1/released."""
        return f"{self.name}/{self.protocol}"

    def world(self, arms: int, seed: int) -> World:
        """Make the world of one number of arms and one seed."""
        kind, own, relayed = split_settings(self.world_settings)
        if kind == "linear":
            own |= {
                "theta_bound": self.theta_bound, "beta_bound": self.beta_bound, "law": self.law,
                "fresh_contexts": self.fresh_contexts,
            }  # fmt: skip
        factor = checks.positive("factor", relayed.get("factor", 1.0), "rewards are multiplied by it")
        settings = {"kind": kind, **own, **relayed}
        return make_world(settings, d1=self.d1, d2=self.d2, arms=arms, noise=self.noise / factor, seed=seed)

    @property
    def world_in_words(self) -> str:
        """Law of the features and settings of the world, unless they come from a log."""
        kind, own, relayed = split_settings(self.world_settings)
        values = ", ".join(f"{name} {value}" for name, value in (own | relayed).items())
        return (self.law if kind == "linear" else kind) + (f" ({values})" if values else "")

    def units(self) -> Iterator[Unit]:
        """Yield the units, with the largest number of arms first."""
        size = 1 if self.log is not None else self.trials_per_unit or self.trials
        policies = ("",) if self.log is None else tuple(entry.name for entry in self.policies)
        for arms in sorted(self.arms, reverse=True):
            for environment in range(len(self.seeds)):
                for first in range(0, self.trials, size):
                    for policy in policies:
                        yield Unit(self, arms, environment, first, min(first + size, self.trials), policy)

    def plain(self) -> dict[str, Any]:
        """Return the record as JSON-able values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=dict))
        for name in OPTIONAL:
            if not plain[name]:
                del plain[name]
        for entry in plain["policies"]:
            for name in ("learns_from", "rounds"):
                if entry[name] is None:
                    del entry[name]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Experiment:
        """Return the record that `plain` was called on."""
        differing = {each.name for each in fields(cls)} ^ {*plain, *OPTIONAL}
        if differing:
            words = ", ".join(sorted(differing))
            raise ResultsError(f"the record's fields are not those of this version (differing: {words})")
        values: dict[str, Any] = {"origins": {}, **plain}
        values |= {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        values["policies"] = tuple(Entry(**entry) for entry in plain["policies"])
        return cls(**values)

    def only(self, policies: Sequence[str]) -> Experiment:
        """Return the experiment with these policies only; capitals do not matter."""
        wanted = {name.lower() for name in policies}
        return replace(self, policies=tuple(entry for entry in self.policies if entry.name.lower() in wanted))


class Unit(NamedTuple):
    """A part of an experiment that can run on its own: the trials first..last-1 of an environment.

    With a `policy`, that one alone plays; otherwise all of the experiment do.
    """

    experiment: Experiment
    arms: int
    environment: int
    first: int
    last: int
    policy: str = ""

    @property
    def policies(self) -> tuple[Entry, ...]:
        """Entries of the policies that play."""
        return tuple(entry for entry in self.experiment.policies if self.policy in ("", entry.name))

    @property
    def name(self) -> str:
        """Name of the unit, unique within its experiment."""
        part = f"-trials{self.first}-{self.last - 1}" if self.experiment.trials_per_unit else ""
        if self.policy:
            part = f"-trial{self.first}-" + re.sub(r"[^A-Za-z0-9]+", "-", self.policy).strip("-")
        return f"K{self.arms}-environment{self.environment + 1}{part}"

    @property
    def path(self) -> str:
        """Path of its results within the folder."""
        return f"units/{self.experiment.name}/{self.experiment.protocol}/{self.name}.parquet"

    @property
    def rounds(self) -> int:
        """Number of rounds to play, over all policies and trials."""
        return (self.last - self.first) * sum(self.experiment.rounds_of(entry.name) for entry in self.policies)

    @property
    def seed(self) -> int:
        """Seed of the environment."""
        return self.experiment.seeds[self.environment]

    def plain(self) -> dict[str, Any]:
        """Return the unit as JSON-able values, with the SHA-256 of its record."""
        named = {"arms": self.arms, "environment": self.environment, "first": self.first, "last": self.last}
        return {"record": self.experiment.digest, **named, **({"policy": self.policy} if self.policy else {})}


SEED_RANGE = 1074926307
"""Seeds of environments lie below this number, as in the paper's released code."""


def environment_seeds(seed: int, count: int) -> tuple[int, ...]:
    """Draw seeds of `count` environments from one seed, as the paper's released code does.

    >>> environment_seeds(194821263, 5)
    (999911575, 8638682, 747366245, 122115198, 832331496)
    """
    random = np.random.default_rng(checks.seed(seed))
    return tuple(int(random.integers(SEED_RANGE)) for _ in range(count))


def grid(horizon: int, size: int, keep: Sequence[int] = (1000, 2500, 5000, 10_000)) -> tuple[int, ...]:
    """Return rounds at which to keep the regret: half evenly spaced, half by constant factors, and those of `keep`.

    >>> grid(80_000, 120)[-1], len(grid(80_000, 120)) <= 130
    (80000, True)
    """
    even = np.linspace(0, horizon, 1 + min(size // 2, horizon))[1:].round()
    factors = np.geomspace(min(10, horizon), horizon, size - size // 2).round()
    tens = list(range(10_000, horizon + 1, 10_000)) if keep else []
    rounds = {int(t) for t in (*even, *factors)} | {t for t in (*keep, *tens) if t <= horizon}
    return tuple(sorted(rounds))
