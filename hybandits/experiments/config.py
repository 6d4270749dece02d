"""A user's own experiment: a record from a few numbers and policy names, given as flags or in a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybandits.experiments.record import Entry, Experiment, environment_seeds, grid
from hybandits.foundation.checks import nearest
from hybandits.policies.by_name import make_policy, parse_policy, proper_name, with_noise
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
    "jumps": 0,
    "walk": 0.0,
    "seed": 0,
    "policies": ["HyLinUCB", "LinUCB", "DisLinUCB"],
}
"""The settings of a simulation and their defaults."""

WORLD_SETTINGS = ("jumps", "walk")
"""Settings that a record keeps only if they are not the defaults."""


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
    arms = values["arms"] if isinstance(values["arms"], list | tuple) else [values["arms"]]
    noise = float(values["noise"])
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
        world_settings={key: values[key] for key in WORLD_SETTINGS if values[key] != DEFAULTS[key]},
    )
    record.world(record.arms[0], record.seeds[0])  # notice a wrong setting now, not in a worker
    for policy in record.policies:
        for number in record.arms:
            shape = {"d1": record.d1, "d2": record.d2, "arms": number, "horizon": record.horizon}
            make_policy(policy.policy, policy.settings, **shape, seed=0)
    return record


def _check_kind(key: str, value: Any, default: Any) -> None:
    """Raise unless the value is of the default's kind; a whole number may stand for a number, one number for a list."""
    kinds: dict[type, tuple[str, tuple[type, ...]]] = {
        int: ("a whole number", (int,)),
        float: ("a number", (int, float)),
        str: ("text", (str,)),
        list: ("a list", (list, tuple)),
    }
    words, allowed = kinds[type(default)]
    if key == "arms":
        words, allowed = "a whole number or a list of them", (list, tuple, int)
    if not isinstance(value, allowed) or isinstance(value, bool):
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
