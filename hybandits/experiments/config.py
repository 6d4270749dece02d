"""A user's own experiment: a record from a few numbers and policy names, given as flags or in a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybandits.experiments.record import Entry, Experiment, environment_seeds, grid
from hybandits.foundation.checks import nearest
from hybandits.foundation.files import sha256
from hybandits.policies.by_name import make_policy, parse_policy, proper_name, with_noise
from hybandits.simulation.classification import TERRAIN, Classification, read_table, terrain
from hybandits.simulation.clicks import Clicks
from hybandits.simulation.kinds import GAUSSIAN, KINDS, RELAY, split_settings
from hybandits.simulation.worlds import LAWS

DEFAULTS: dict[str, Any] = {
    "name": "simulation",
    "d1": 10,
    "d2": 5,
    "arms": [20],
    "rounds": 10_000,
    "environments": 5,
    "trials": 1,
    "noise": 0.1,
    "law": "ball",
    "theta_bound": 1.0,
    "beta_bound": 1.0,
    "world": "linear",
    "jumps": 0,
    "walk": 0.0,
    "own": "drawn",
    "constant": False,
    "heavy_tails": False,
    "rate": 0.05,
    "spread": 0.5,
    "every": 250,
    "data": TERRAIN,
    "factor": 1.0,
    "offset": 0.0,
    "delay": 0,
    "seed": 0,
    "policies": ["HyLinUCB", "LinUCB", "DisLinUCB"],
}
"""The settings of a simulation and their defaults."""

LINEAR_ONLY = ("law", "theta_bound", "beta_bound")
"""Settings that only linear worlds have, beside those of `hybandits.simulation.kinds.KINDS`."""


def experiment(settings: Mapping[str, Any]) -> Experiment:
    """The record of a simulation.

    Parameters
    ----------
    settings : mapping
        Values for some of the keys of `DEFAULTS`. An unknown key is an error that names the nearest known one.

    Returns
    -------
    Experiment
        With protocol "own". Its policies have been constructed once, so that wrong settings are noticed here.

    Examples
    --------
    >>> record = experiment({"d1": 3, "d2": 2, "arms": 4, "rounds": 100, "policies": ["HyLinUCB"]})
    >>> record.horizon, record.policies[0].settings
    (100, {'noise': 0.1})
    """
    for key in settings:
        if key not in DEFAULTS:
            raise ValueError(f"unknown setting {key!r}{nearest(key, DEFAULTS)}: the settings are {', '.join(DEFAULTS)}")
    values = {**DEFAULTS, **settings}
    for key, default in DEFAULTS.items():
        _check_kind(key, values[key], default)
    if values["law"] not in LAWS:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {values['law']!r}{nearest(values['law'], LAWS)}")
    for key in ("rounds", "environments", "trials"):
        if values[key] < 1:
            raise ValueError(f"{key} must be at least 1, got {values[key]}")
    world, noise = _world(values, settings)
    arms = values["arms"] if isinstance(values["arms"], list | tuple) else [values["arms"]]
    record = Experiment(
        name=values["name"],
        d1=values["d1"],
        d2=values["d2"],
        arms=tuple(dict.fromkeys(arms)),
        horizon=values["rounds"],
        seeds=environment_seeds(values["seed"], values["environments"]),
        trials=values["trials"],
        noise=noise,
        law=values["law"],
        theta_bound=float(values["theta_bound"]),
        beta_bound=float(values["beta_bound"]),
        policies=tuple(entry(policy, noise=noise) for policy in values["policies"]),
        points=grid(values["rounds"], 120),
        probes=(values["rounds"],),
        world_settings=world,
    )
    for number in record.arms:  # notice a wrong setting now, not in a worker
        record.world(number, record.seeds[0], values["data"])
    for policy in record.policies:
        for number in record.arms:
            shape = {"d1": record.d1, "d2": record.d2, "arms": number, "horizon": record.horizon}
            make_policy(policy.policy, policy.settings, **shape, seed=0)
    return record


def _world(values: dict[str, Any], given: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
    """The record's settings of the world, and the noise that policies are told; sets the shape of a data set."""
    kind = values["world"]
    world: dict[str, Any] = {} if kind == "linear" else {"kind": kind}
    split_settings(world)  # the kind must be known
    others = {name for _, names in KINDS.values() for name in names} | set(LINEAR_ONLY) | {"noise"}
    has = {*KINDS[kind][1], *(LINEAR_ONLY if kind == "linear" else ()), *(("noise",) if kind in GAUSSIAN else ())}
    for name in given:
        if name in others - has:
            raise ValueError(
                f"{name} does not matter in a world of the kind {kind}: leave it out, or take another kind"
            )
    for name in KINDS[kind][1]:  # the paper's world has the settings that are used, and so the records of before
        if name in values and (kind != "linear" or values[name] != DEFAULTS[name]):
            world[name] = values[name]
    world |= {name: values[name] for name in RELAY if values[name] != DEFAULTS[name]}
    if kind == "classification":
        if shape := [name for name in ("d1", "d2", "arms") if name in given]:
            raise ValueError(f"{', '.join(shape)} cannot be given: the data set decides")
        features, labels = terrain() if values["data"] == TERRAIN else read_table(values["data"])
        data_set = Classification(features=features, labels=labels)
        values |= {"d1": data_set.d1, "d2": data_set.d2, "arms": data_set.arms}
        if values["data"] != TERRAIN:
            world |= {"data": Path(values["data"]).name, "sha256": sha256(Path(values["data"]))}
        return world, values["factor"] * data_set.noise
    if kind in GAUSSIAN:
        return world, float(values["factor"] * values["noise"])
    return world, float(values["factor"] * Clicks(d1=1, d2=1, arms=1, rate=values["rate"]).noise)


def _check_kind(key: str, value: Any, default: Any) -> None:
    """Raise unless the value is of the default's kind; a whole number may stand for a number, one number for a list."""
    kinds: dict[type, tuple[str, tuple[type, ...]]] = {
        bool: ("true or false", (bool,)),
        int: ("a whole number", (int,)),
        float: ("a number", (int, float)),
        str: ("text", (str,)),
        list: ("a list", (list, tuple)),
    }
    words, allowed = kinds[type(default)]
    if key == "arms":
        words, allowed = "a whole number or a list of them", (list, tuple, int)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ValueError(f"{key} must be {words}, got {value!r}")


def entry(policy: str | Mapping[str, Any], *, noise: float) -> Entry:
    """The entry of a policy: text ("HyLinUCB", "HyThompson:scale=0.5"), or a table with `policy` and its settings.

    Capitals do not matter in the name of a policy. A table may have a `name`, which results then go by. A policy that
    needs a noise level gets that of the world unless its settings contain one; `HyThompson` and `HyIDS` learn the noise
    by themselves.

    >>> entry("HyLinUCB:ridge=0.5", noise=0.1).settings
    {'ridge': 0.5, 'noise': 0.1}
    >>> entry("hythompson:scale=0.5", noise=0.1)
    Entry(name='HyThompson:scale=0.5', policy='HyThompson', settings={'scale': 0.5}, learns_from=None)
    """
    if isinstance(policy, str):
        kind, settings = parse_policy(policy)
        name = kind + policy[len(kind) :]  # in the policy's own spelling
    elif isinstance(policy, Mapping) and isinstance(policy.get("policy"), str):
        settings = {key: value for key, value in policy.items() if key not in ("policy", "name")}
        kind = proper_name(policy["policy"])
        name = str(policy.get("name", kind))
    else:
        raise ValueError(f"a policy must be a name or a table with the key policy, got {policy!r}: e.g. HyLinUCB")
    return Entry(name=name, policy=kind, settings=with_noise(kind, settings, noise))
