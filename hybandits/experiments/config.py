"""A user's own experiment: a record from a few settings, given as flags or in a TOML file.

`Simulation` is the one list of these settings: flags, keys of the file, defaults and help come from it. Nothing beyond
the standard library is imported at the top, so that the command line can read it for its help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybandits.experiments.record import Entry, Experiment

LINEAR = ("law", "theta_bound", "beta_bound", "fresh_contexts")
"""Settings of linear worlds for which a record has fields of its own."""

POINTS = 120
"""At about how many rounds the regret is kept."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The settings of a user's own experiment."""

    policies: tuple[Any, ...] = field(
        default=("HyLinUCB", "LinUCB", "DisLinUCB"),
        metadata={
            "help": "A policy, with settings after a colon: HyThompson:scale=0.5,noise=0.1. One of your own: "
            'package.module:Class:setting=value. One around another: EpsilonGreedy:policy="HyLinUCB:ridge=2". Repeat '
            "it for several.",
            "flag": "--policy",
            "type": list[str],
        },
    )
    world: Any = field(
        default="linear",
        metadata={
            "help": "Kind of world, with settings after a colon: linear, clicks, products, churn or classification, or "
            "one of your own: package.module:Class:setting=value.",
            "type": str,
        },
    )
    d1: int = field(default=10, metadata={"help": "Number of shared features."})
    d2: int = field(default=5, metadata={"help": "Number of features of each arm's own part."})
    arms: tuple[int, ...] = field(
        default=(20,), metadata={"help": "Number of arms K, or several: 10,100.", "type": str, "metavar": "K"}
    )
    rounds: int = field(default=10_000, metadata={"help": "Number of rounds T."})
    environments: int = field(default=5, metadata={"help": "Number of environments."})
    trials: int = field(default=1, metadata={"help": "Number of trials in each environment."})
    noise: float = field(default=0.1, metadata={"help": "Standard deviation of the reward's noise."})
    seed: int = field(default=0, metadata={"help": "Seed of the environments.", "min": 0})
    name: str = field(default="simulation", metadata={"help": "Name of the experiment."})

    def __post_init__(self) -> None:
        from hybandits.foundation import checks

        arms: Any = self.arms
        if isinstance(arms, str) and re.fullmatch(r"\d+(,\d+)*", arms):
            arms = [int(number) for number in arms.split(",")]
        arms = tuple(arms) if isinstance(arms, list | tuple) else (arms,)
        object.__setattr__(self, "arms", arms)
        if not isinstance(self.policies, tuple) or not self.policies or not arms:
            raise ValueError("policies and arms must be lists with an entry or more: leave them out for the defaults")
        for name, value in [
            *(("arms", each) for each in arms),
            ("rounds", self.rounds),
            ("trials", self.trials),
            ("environments", self.environments),
        ]:
            checks.count(name, value, least=1, why="leave it out for the default")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Simulation:
        """Read the settings of a file; an unknown one is an error that names the nearest known one."""
        from hybandits.foundation.checks import nearest

        known = [each.name for each in fields(cls)]
        for key in settings:
            if key not in known:
                raise ValueError(f"unknown setting {key!r}{nearest(key, known)}: the settings are {', '.join(known)}")
        values: dict[str, Any] = dict(settings)
        if isinstance(values.get("policies"), list):
            values["policies"] = tuple(values["policies"])
        return cls(**values)

    def world_settings(self) -> dict[str, Any]:
        """Return the kind of the world and its settings, from text or a table, as a record keeps them."""
        from hybandits.policies.by_name import read_spec

        if isinstance(self.world, str):
            kind, settings = read_spec(self.world)
            return {"kind": kind, **settings}
        if not isinstance(self.world, Mapping):
            raise ValueError(
                f'world must be text or a table such as {{kind = "churn", every = 100}}, got {self.world!r}'
            )
        return {"kind": "linear", **self.world}

    def experiment(self, beside: Path | None = None) -> Experiment:
        """Make the record of the simulation.

        Parameters
        ----------
        beside : Path, optional
            A folder in which a data set is looked for if it is not in the current one.

        Returns
        -------
        Experiment
            With protocol "own". Its policies have been constructed once, so that wrong settings are noticed here.
        """
        from hybandits.experiments.record import Experiment, environment_seeds, grid
        from hybandits.experiments.worlds import make_world, number_of_arms, world_class
        from hybandits.foundation.checks import parameters_of
        from hybandits.foundation.files import sha256
        from hybandits.policies.by_name import make_policy

        settings = self.world_settings()
        data = find_data(settings, beside)
        if data is not None:
            settings |= {"data": str(data), "sha256": settings.get("sha256") or sha256(data)}
        world = make_world(settings, d1=self.d1, d2=self.d2, arms=self.arms[0], noise=self.noise, seed=0)
        takes = parameters_of(world_class(settings["kind"]))
        arms = tuple(dict.fromkeys(self.arms)) if "arms" in takes else (number_of_arms(world),)
        for name, actual in (("d1", world.d1), ("d2", world.d2), ("arms", arms)):
            if getattr(self, name) not in (actual, getattr(type(self), name)):
                raise ValueError(f"{name} cannot be given: the world decides, and has {name} = {actual}")
        linear = {name: settings.pop(name) for name in LINEAR if settings["kind"] == "linear" and name in settings}
        if data is not None:
            settings["data"] = data.name
        record = Experiment(
            name=self.name,
            d1=int(world.d1),
            d2=int(world.d2),
            arms=arms,
            horizon=self.rounds,
            seeds=environment_seeds(self.seed, self.environments),
            trials=self.trials,
            noise=float(settings.get("factor", 1.0) * self.noise if "noise" in takes else world.noise),
            policies=tuple(entry(policy, noise=float(world.noise)) for policy in self.policies),
            points=grid(self.rounds, POINTS),
            probes=(self.rounds,),
            world_settings={} if settings == {"kind": "linear"} else settings,
            **linear,
        )
        for number in arms:  # notice a wrong setting now, not in a worker
            record.world(number, record.seeds[0], None if data is None else str(data))
            shape = {"d1": record.d1, "d2": record.d2, "arms": number, "horizon": record.horizon}
            for policy in record.policies:
                make_policy(policy.policy, policy.settings, **shape, seed=0)
        return record


def experiment(settings: Mapping[str, Any]) -> Experiment:
    """Make the record of a simulation from values for some of the settings of `Simulation`.

    Examples
    --------
    >>> record = experiment({"d1": 3, "d2": 2, "arms": 4, "rounds": 100, "policies": ["HyLinUCB"]})
    >>> record.horizon, record.policies[0].settings
    (100, {'noise': 0.1})
    """
    return Simulation.of(settings).experiment()


def find_data(world_settings: Mapping[str, Any], beside: Path | None = None) -> Path | None:
    """Return the file of a world's data set, in the current folder or else `beside`; None if the world has no file."""
    name = str(world_settings.get("data", "terrain"))
    if world_settings.get("kind") != "classification" or name == "terrain":
        return None
    for path in (Path(name), *([] if beside is None else [beside / name])):
        if path.exists():
            return path
    raise ValueError(f"there is no data set {name} in the current folder{f' or in {beside}' if beside else ''}")


def entry(policy: str | Mapping[str, Any], *, noise: float) -> Entry:
    """Make the entry of a policy, from text or a table as `hybandits.policies.by_name.parse_policy` takes them.

    The settings may have a `name`, which results then go by. A policy that needs a noise level gets that of the world
    unless its settings contain one; `HyThompson` and `HyIDS` learn the noise by themselves.

    >>> from hybandits.experiments.config import entry
    >>> entry("HyLinUCB:ridge=0.5", noise=0.1)
    Entry(name='HyLinUCB:ridge=0.5', policy='HyLinUCB', settings={'ridge': 0.5, 'noise': 0.1}, learns_from=None)
    """
    from hybandits.experiments.record import Entry
    from hybandits.policies.by_name import parse_policy, read_spec, with_noise

    kind, settings = parse_policy(policy)
    name = kind.rpartition(":")[2]
    if isinstance(policy, str):
        name += policy.removeprefix(read_spec(policy)[0])
    return Entry(name=str(settings.pop("name", name)), policy=kind, settings=with_noise(kind, settings, noise))
