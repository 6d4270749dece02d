"""An experiment as a record, and its results as files: what was run, unit by unit, and how to read it back.

A record says everything that results depend on. Its units (one number of arms, one environment, some trials) are
independent of each other, so they may run anywhere and in any order; each becomes one Parquet file with one row per
policy and trial, named after the unit and carrying the record. Nothing here runs anything: see `runner`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from hybandits.foundation import checks
from hybandits.simulation.worlds import LAWS, Synthetic

Protocol = Literal["released", "written", "own"]

DESIGN = ("lambda_min_v", "rho_x", "rho_z", "z_norm")
"""Measures of the design matrix, one number per probe (see `diversity.measure`)."""

DESIGN_BY_ARM = ("pulls", "lambda_min_w", "sigma_max_b")
"""Measures of every arm's block, one number per probe and arm."""


class ResultsError(Exception):
    """Results that cannot be used: of another record or version, unreadable, or missing."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A policy in an experiment: the name results go by, its class, and the settings it is made with.

    `settings` are keyword arguments of the class as JSON-able values; the shape, the seed and, where the class asks for
    them, the number of arms and the horizon come from the unit. learns_from: see `simulate.Player`.
    """

    name: str
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    learns_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that the results of an experiment depend on.

    arms: the numbers of arms to run, each a case of its own. seeds: one per environment; contexts and parameters are
    functions of it, the noise of it and the trial; with `fresh_contexts` every trial has contexts of its
    own and only the parameters are fixed. points: the rounds after which the regret is kept. probes: the rounds after
    which the design matrix is measured, `by_arm`: every arm's block too. trials_per_unit: 0 for all in one unit.
    log: where contexts and means come from a log instead of a law (`semisynthetic.LogWorld`), which one and how it is
    used; then `seeds` is of the noise alone, and every policy and trial is a unit of its own.
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
    trials_per_unit: int = 0
    log: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        checks.count("horizon", self.horizon, least=1, why="it is the number of rounds T to be played")
        checks.count("trials", self.trials, least=1, why="every environment is played at least once")
        for name in ("arms", "seeds", "policies", "points"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, got (): give at least one")
        for arms in self.arms:
            checks.count("arms", arms, least=1, why="a round needs a candidate")
        for name in ("arms", "seeds"):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name} holds a number twice, got {getattr(self, name)}: give each once")
        checks.non_negative("noise", self.noise, "it is a standard deviation")
        checks.non_negative("theta_bound", self.theta_bound, "it bounds the norm of theta")
        checks.non_negative("beta_bound", self.beta_bound, "it bounds the norm of every beta_i")
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise ValueError(f"name must be letters, digits, - and _, got {self.name!r}: it names files")
        if self.law not in LAWS and self.log is None:
            raise ValueError(f"law must be one of {sorted(LAWS)}, got {self.law!r}")
        names = [entry.name for entry in self.policies]
        if len(set(names)) != len(names):
            raise ValueError(f"two policies have the same name, got {names}: give each its own")
        for what, rounds in (("points", self.points), ("probes", self.probes)):
            if list(rounds) != sorted(set(rounds)) or (rounds and not 1 <= rounds[0] <= rounds[-1] <= self.horizon):
                raise ValueError(f"{what} must be increasing rounds between 1 and {self.horizon}, got {rounds[:5]}..")
        if self.points[-1] != self.horizon:
            raise ValueError(f"points must end at the horizon {self.horizon}, got {self.points[-1]}: add it")

    @property
    def key(self) -> str:
        """How figures and folders call it, e.g. setting-1/released."""
        return f"{self.name}/{self.protocol}"

    def world(self, arms: int, seed: int) -> Synthetic:
        """The environment of one case and seed."""
        return Synthetic(
            d1=self.d1, d2=self.d2, arms=arms, noise=self.noise, theta_bound=self.theta_bound,
            beta_bound=self.beta_bound, seed=seed, law=self.law, fresh_contexts=self.fresh_contexts,
        )  # fmt: skip

    def units(self) -> Iterator[Unit]:
        """The pieces that can run on their own, the most expensive case first."""
        size = 1 if self.log is not None else self.trials_per_unit or self.trials
        policies = ("",) if self.log is None else tuple(entry.name for entry in self.policies)
        for arms in sorted(self.arms, reverse=True):
            for environment in range(len(self.seeds)):
                for first in range(0, self.trials, size):
                    for policy in policies:
                        yield Unit(self, arms, environment, first, min(first + size, self.trials), policy)

    def plain(self) -> dict[str, Any]:
        """The record as JSON-able values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=dict))
        # Fields younger than the format are written only where they say something.
        if self.log is None:
            del plain["log"]
        for entry in plain["policies"]:
            if entry["learns_from"] is None:
                del entry["learns_from"]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Experiment:
        """The inverse of `plain`."""
        known = {f.name for f in fields(cls)}
        if set(plain) | {"log"} != known:
            odd = sorted((set(plain) | {"log"}) ^ known)
            raise ResultsError(f"the record's fields are not those of this version (differing: {', '.join(odd)})")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        values["policies"] = tuple(Entry(**entry) for entry in plain["policies"])
        return cls(**values)

    def only(self, policies: Sequence[str]) -> Experiment:
        """The same with some of the policies."""
        return replace(self, policies=tuple(entry for entry in self.policies if entry.name in policies))


class Unit(NamedTuple):
    """One case, one environment, trials first..last-1 of an experiment, all policies ("") or one."""

    experiment: Experiment
    arms: int
    environment: int
    first: int
    last: int
    policy: str = ""

    @property
    def policies(self) -> tuple[Entry, ...]:
        """Those that play."""
        return tuple(entry for entry in self.experiment.policies if self.policy in ("", entry.name))

    @property
    def name(self) -> str:
        """Unique within its experiment."""
        part = f"-trials{self.first}-{self.last - 1}" if self.experiment.trials_per_unit else ""
        if self.policy:
            part = f"-trial{self.first}-" + re.sub(r"[^A-Za-z0-9]+", "-", self.policy).strip("-")
        return f"K{self.arms}-environment{self.environment + 1}{part}"

    @property
    def path(self) -> str:
        """Where its results lie within the folder."""
        return f"units/{self.experiment.name}/{self.experiment.protocol}/{self.name}.parquet"

    @property
    def rounds(self) -> int:
        """Rounds to be played, over all policies and trials."""
        return self.experiment.horizon * (self.last - self.first) * len(self.policies)

    @property
    def seed(self) -> int:
        """Of the environment."""
        return self.experiment.seeds[self.environment]

    def plain(self) -> dict[str, Any]:
        """Everything the unit's numbers depend on, as JSON-able values."""
        named = {"arms": self.arms, "environment": self.environment, "first": self.first, "last": self.last}
        if self.policy:
            named["policy"] = self.policy  # type: ignore[assignment]
        return {"experiment": self.experiment.plain(), **named}


SEED_RANGE = 1074926307


def environment_seeds(seed: int, count: int) -> tuple[int, ...]:
    """Seeds of the environments.

    >>> environment_seeds(RELEASED_SEED, 5)
    (999911575, 8638682, 747366245, 122115198, 832331496)
    """
    random = np.random.default_rng(checks.seed(seed))
    return tuple(int(random.integers(SEED_RANGE)) for _ in range(count))


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
