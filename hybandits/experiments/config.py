"""A user's own experiment: a record from a few settings, given as flags or in a TOML file.

`Simulation` defines flags, keys of the file, defaults and help. Only the standard library is imported at the top, so
that the command line can read it for its help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybandits.experiments.record import Entry, Experiment

LINEAR = ("law", "theta_bound", "beta_bound", "fresh_contexts")
"""Settings of linear worlds that are fields of a record."""

POINTS = 120
"""Approximate number of rounds at which the regret is kept."""


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """The settings of a user's own experiment."""

    policies: tuple[Any, ...] = field(
        default=("HyLinUCB", "LinUCB", "DisLinUCB"),
        metadata={
            "help": "A policy with settings after a colon, HyThompson:scale=0.5,noise=0.1, or one of your own, "
            "package.module:Class:setting=value. Repeat it for several.",
            "flag": "--policy",
            "type": list[str],
        },
    )
    world: Any = field(
        default="linear",
        metadata={
            "help": "linear, clicks, products, churn or package.module:Class, with settings likewise.",
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
        if not isinstance(self.policies, tuple | list) or not self.policies or not arms:
            raise ValueError("policies and arms must be lists with an entry or more: leave them out for the defaults")
        counts = [("rounds", self.rounds), ("trials", self.trials), ("environments", self.environments)]
        for name, value in [*counts, *(("arms", number) for number in arms)]:
            checks.count(name, value, least=1, why="leave it out for the default")
        object.__setattr__(self, "arms", arms)


def experiment(settings: Mapping[str, Any]) -> Experiment:
    """Make the record of a simulation from values for some of the settings of `Simulation`; others are refused.

    Its world and policies are constructed once, which checks their settings.

    >>> record = experiment({"d1": 3, "d2": 2, "arms": 4, "rounds": 100, "policies": ["HyLinUCB"]})
    >>> record.horizon, record.policies[0].settings
    (100, {'noise': 0.1})
    """
    from hybandits.experiments.record import Experiment, environment_seeds, grid
    from hybandits.experiments.worlds import make_world, number_of_arms, world_class
    from hybandits.foundation.checks import nearest, parameters_of
    from hybandits.policies.by_name import make_policy

    known = [each.name for each in fields(Simulation)]
    for key in settings:
        if key not in known:
            raise ValueError(f"unknown setting {key!r}{nearest(key, known)}: the settings are {', '.join(known)}")
    given = Simulation(**settings)
    world_settings = _world_settings(given.world)
    kind = world_settings["kind"]
    world = make_world(world_settings, d1=given.d1, d2=given.d2, arms=given.arms[0], noise=given.noise, seed=0)
    takes = parameters_of(world_class(kind))
    arms = tuple(dict.fromkeys(given.arms)) if "arms" in takes else (number_of_arms(world),)
    for name, actual in (("d1", world.d1), ("d2", world.d2), ("arms", arms)):
        if getattr(given, name) not in (actual, getattr(Simulation, name)):
            raise ValueError(f"{name} cannot be given: the world decides, and has {name} = {actual}")
    linear = {name: world_settings.pop(name) for name in LINEAR if kind == "linear" and name in world_settings}
    record = Experiment(
        name=given.name,
        d1=int(world.d1),
        d2=int(world.d2),
        arms=arms,
        horizon=given.rounds,
        seeds=environment_seeds(given.seed, given.environments),
        trials=given.trials,
        noise=float(world_settings.get("factor", 1.0) * given.noise if "noise" in takes else world.noise),
        policies=tuple(entry(policy, noise=float(world.noise)) for policy in given.policies),
        points=grid(given.rounds, POINTS),
        probes=(given.rounds,),
        world_settings={} if world_settings == {"kind": "linear"} else world_settings,
        **linear,
    )
    for number in arms:  # a wrong setting fails now, not in a worker
        record.world(number, record.seeds[0])
        shape = {"d1": record.d1, "d2": record.d2, "arms": number, "horizon": record.horizon}
        for policy in record.policies:
            make_policy(policy.policy, policy.settings, **shape, seed=0)
    return record


def _world_settings(world: Any) -> dict[str, Any]:
    from hybandits.policies.by_name import read_spec

    if isinstance(world, str):
        kind, settings = read_spec(world)
        return {"kind": kind, **settings}
    if not isinstance(world, Mapping):
        raise ValueError(f'world must be text or a table such as {{kind = "churn", every = 100}}, got {world!r}')
    return {"kind": "linear", **world}


def entry(policy: str | Mapping[str, Any], *, noise: float) -> Entry:
    """Make the entry of a policy, from text or a table as `hybandits.policies.by_name.parse_policy` takes them.

    The setting `name` names it in the results. `hybandits.policies.by_name.with_noise` adds the noise level.

    >>> from hybandits.experiments.config import entry
    >>> policy = entry("HyLinUCB:ridge=0.5", noise=0.1)
    >>> policy.name, policy.policy, policy.settings
    ('HyLinUCB:ridge=0.5', 'HyLinUCB', {'ridge': 0.5, 'noise': 0.1})
    """
    from hybandits.experiments.record import Entry
    from hybandits.policies.by_name import parse_policy, read_spec, with_noise

    kind, settings = parse_policy(policy)
    name = kind.rpartition(":")[2]
    if isinstance(policy, str):
        name += policy.removeprefix(read_spec(policy)[0])
    return Entry(name=str(settings.pop("name", name)), policy=kind, settings=with_noise(kind, settings, noise))
