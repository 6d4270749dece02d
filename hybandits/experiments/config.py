"""A user's own experiment: a record from a few numbers and policy names, given as flags or in a TOML file, and back."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hybandits.experiments.data_sets import read_table
from hybandits.experiments.record import Entry, Experiment, environment_seeds, grid
from hybandits.foundation import checks
from hybandits.foundation.checks import nearest
from hybandits.foundation.files import sha256
from hybandits.foundation.own_classes import changed_origin, class_name, is_import_path, parameters_of, split_spec
from hybandits.policies.by_name import CLASS, is_wrapped, make_policy, of_table, parse_policy, parse_spec, with_noise
from hybandits.simulation.classification import TERRAIN, Classification, Table
from hybandits.simulation.clicks import Clicks
from hybandits.simulation.kinds import GAUSSIAN, KINDS, RELAY, make_world, split_settings, usual_terrain, world_class
from hybandits.simulation.worlds import LAWS, World

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
    "world_settings": {},
    "jumps": 0,
    "walk": 0.0,
    "own": "drawn",
    "constant": False,
    "heavy_tails": False,
    "rate": 0.05,
    "spread": 0.5,
    "every": 250,
    "data": TERRAIN,
    "label": "",
    "sha256": "",
    "factor": 1.0,
    "offset": 0.0,
    "delay": 0,
    "seed": 0,
    "seeds": [],
    "policies": ["HyLinUCB", "LinUCB", "DisLinUCB"],
    "origins": {},
}
"""The settings of a simulation and their defaults.

`world_settings` is for a world of one's own. `seeds`, one for each environment, stand for `seed` and `environments`.
`sha256`, of the data set, and `origins`, of classes of one's own, are checked against what is there: a file that
`to_toml` has written gives the same results or none.
"""

LINEAR_ONLY = ("law", "theta_bound", "beta_bound")
"""Settings that only linear worlds have, beside those of `hybandits.simulation.kinds.KINDS`."""


def experiment(settings: Mapping[str, Any]) -> Experiment:
    """The record of a simulation.

    Parameters
    ----------
    settings : mapping
        Values for some of the keys of `DEFAULTS`. An unknown key is an error that names the nearest known one. Settings
        in the text of `world`, as in "churn:every=100", count as settings of their own.

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
    settings = without_text(settings)
    values = {**DEFAULTS, **settings}
    for key, default in DEFAULTS.items():
        _check_kind(key, values[key], default)
    checks.positive("factor", values["factor"], "rewards are multiplied by it")
    if values["law"] not in LAWS:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {values['law']!r}{nearest(values['law'], LAWS)}")
    for key in ("rounds", "environments", "trials"):
        if values[key] < 1:
            raise ValueError(f"{key} must be at least 1, got {values[key]}")
    if values["seeds"] and (both := [key for key in ("seed", "environments") if key in settings]):
        raise ValueError(f"{' and '.join(both)} cannot be given beside seeds, one for each environment: leave one out")
    setup = _setup(values, settings)
    record = Experiment(
        name=values["name"],
        d1=setup.d1,
        d2=setup.d2,
        arms=setup.arms,
        horizon=values["rounds"],
        seeds=tuple(values["seeds"]) or environment_seeds(values["seed"], values["environments"]),
        trials=values["trials"],
        noise=setup.noise,
        law=values["law"],
        theta_bound=float(values["theta_bound"]),
        beta_bound=float(values["beta_bound"]),
        policies=tuple(entry(policy, noise=setup.told) for policy in values["policies"]),
        points=grid(values["rounds"], 120),
        probes=(values["rounds"],),
        world_settings=setup.world,
    )
    for name, recorded in values["origins"].items():
        if name not in record.origins:
            raise ValueError(f"origins has {name}, which takes no part in the experiment: leave it out")
        if words := changed_origin(name, recorded, record.origins[name]):
            raise ValueError(f"{words}. Bring the old file back, or leave origins out to run the present class.")
    for number in record.arms:  # notice a wrong setting now, not in a worker
        record.world(number, record.seeds[0], values["data"])
    for policy in record.policies:
        for number in record.arms:
            shape = {"d1": record.d1, "d2": record.d2, "arms": number, "horizon": record.horizon}
            make_policy(policy.policy, policy.settings, **shape, seed=0)
    return record


def without_text(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with those in the text of `world` as settings of their own.

    >>> without_text({"world": "churn:every=100", "arms": 5})
    {'world': 'churn', 'arms': 5, 'every': 100}
    >>> without_text({"world": "drifting:Drifting:speed=0.5"})
    {'world': 'drifting:Drifting', 'world_settings': {'speed': 0.5}}
    """
    for key in ("world", "world_settings"):
        _check_kind(key, settings.get(key, DEFAULTS[key]), DEFAULTS[key])
    kind, in_text = parse_spec(settings.get("world", DEFAULTS["world"]), "world", KINDS)
    split_settings({"kind": kind})  # the kind must be known, or a class of one's own
    if not in_text:
        return dict(settings)
    if is_import_path(kind):
        return {**settings, "world": kind, "world_settings": {**settings.get("world_settings", {}), **in_text}}
    for name in in_text:
        if name not in (*KINDS[kind][1], *RELAY):
            split_settings({"kind": kind, name: None})  # says which there are
    return {**settings, "world": kind, **in_text}


def with_data_beside(settings: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """The settings of a TOML file, whose data set is looked for in the current folder and then beside the file."""
    settings = without_text(settings)
    data = settings.get("data", TERRAIN)
    if data == TERRAIN or not isinstance(data, str) or Path(data).exists():
        return settings
    beside = file.parent / data
    if not beside.exists():
        raise ValueError(
            f"there is no data set {data} in the current folder, nor beside {file}: bring it there, or say where it is "
            "with --data"
        )
    return {**settings, "data": str(beside)}


class _Setup(NamedTuple):
    """What the record says of the world."""

    d1: int
    d2: int
    arms: tuple[int, ...]
    noise: float
    """What the world is made with, times the factor."""
    told: float
    """The noise that policies are told."""
    world: dict[str, Any]


def _setup(values: dict[str, Any], given: Mapping[str, Any]) -> _Setup:
    kind = values["world"]
    own = is_import_path(kind)
    world: dict[str, Any] = {} if kind == "linear" else {"kind": kind}
    if own:
        world["settings"] = dict(values["world_settings"])
    elif values["world_settings"]:
        raise ValueError(f"world_settings are for worlds of your own: leave them out in a world of the kind {kind}")
    settings_of_kind = () if own else KINDS[kind][1]
    others = {name for _, names in KINDS.values() for name in names} | set(LINEAR_ONLY) | {"noise"}
    has = {*settings_of_kind, *(LINEAR_ONLY if kind == "linear" else ())}
    has |= {"noise"} if kind in GAUSSIAN or own else set()
    for name in given:
        if name in others - has:
            raise ValueError(
                f"{name} does not matter in a world of the kind {kind}: leave it out, or take another kind"
            )
    for name in settings_of_kind:  # the paper's world has the settings that are used, and so the records of before
        if name in values and (kind not in ("linear", "classification") or values[name] != DEFAULTS[name]):
            world[name] = values[name]
    world |= {name: values[name] for name in RELAY if values[name] != DEFAULTS[name]}
    arms = values["arms"] if isinstance(values["arms"], list | tuple) else [values["arms"]]
    arms = tuple(dict.fromkeys(arms))
    if own:
        return _own_setup(kind, world, values, given, arms)
    if kind == "classification":
        return _data_set_setup(world, values, given)
    if kind in GAUSSIAN:
        noise = float(values["factor"] * values["noise"])
    else:
        noise = float(values["factor"] * Clicks(d1=1, d2=1, arms=1, rate=values["rate"]).noise)
    return _Setup(values["d1"], values["d2"], arms, noise, noise, world)


def _data_set_setup(world: dict[str, Any], values: Mapping[str, Any], given: Mapping[str, Any]) -> _Setup:
    """The data set decides on the shape."""
    if shape := [name for name in ("d1", "d2", "arms") if name in given]:
        raise ValueError(f"{', '.join(shape)} cannot be given: the data set decides")
    file = values["data"]
    if file == TERRAIN:
        if values["label"] or values["sha256"]:
            raise ValueError(f"label and sha256 are for a data set in a file: leave them out, or give data, not {file}")
        table: Table = usual_terrain()
        world["data"] = TERRAIN
    else:
        digest = sha256(Path(file))
        if values["sha256"] not in ("", digest):
            raise ValueError(
                f"{file} has SHA-256 {digest[:12]}.., not {values['sha256'][:12]}..: bring the file that was used, or "
                "leave sha256 out"
            )
        table = read_table(file, values["label"] or None)
        world |= {"data": Path(file).name, "sha256": digest}
    data_set = Classification(features=table[0], labels=table[1])
    noise = values["factor"] * data_set.noise
    return _Setup(data_set.d1, data_set.d2, (data_set.arms,), noise, noise, world)


def _own_setup(
    kind: str, world: dict[str, Any], values: Mapping[str, Any], given: Mapping[str, Any], arms: tuple[int, ...]
) -> _Setup:
    """The class decides on what its constructor does not take."""
    if not arms:
        raise ValueError("arms is empty, got (): give at least one")
    shape = {"d1": values["d1"], "d2": values["d2"], "arms": arms[0], "noise": float(values["noise"])}
    plain = {"kind": kind, "settings": world["settings"]}
    made = make_world(plain, **shape, seed=0, linear={})
    takes = parameters_of(world_class(kind))
    d1, d2 = (_whole(kind, name, getattr(made, name)) for name in ("d1", "d2"))
    has: dict[str, Any] = {"d1": d1, "d2": d2, "arms": _number_of_arms(made), "noise": made.noise}
    factor = values["factor"]
    for name in shape:
        if name in takes or name not in given:
            continue
        wanted = arms[0] if name == "arms" and len(arms) == 1 else values[name]
        if (factor * wanted != factor * has[name]) if name == "noise" else (wanted != has[name]):
            raise ValueError(f"{name} cannot be given: {kind} decides, and has {name} = {has[name]}")
    noise = shape["noise"] if "noise" in takes else made.noise
    return _Setup(
        d1, d2, arms if "arms" in takes else (has["arms"],), float(factor * noise),
        float(factor * made.noise), world,
    )  # fmt: skip


def _number_of_arms(world: World) -> int:
    """How many arms a world has: its attribute `arms`, or the candidates of its first block."""
    arms: Any = getattr(world, "arms", None)
    if arms is None:
        arms = next(iter(world.rounds(1))).rounds.arms
    try:
        return operator.index(arms)
    except TypeError:
        return len(arms)


def _whole(kind: str, name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{kind} has {name} = {value!r}: let it be a whole number, the number of features") from None


def _check_kind(key: str, value: Any, default: Any) -> None:
    """Raise unless the value is of the default's kind; a whole number may stand for a number, one number for a list."""
    kinds: dict[type, tuple[str, tuple[type, ...]]] = {
        bool: ("true or false", (bool,)),
        int: ("a whole number", (int,)),
        float: ("a number", (int, float)),
        str: ("text", (str,)),
        list: ("a list", (list, tuple)),
        dict: ("a table", (Mapping,)),  # type: ignore[type-abstract]
    }
    words, allowed = kinds[type(default)]
    if key == "arms":
        words, allowed = "a whole number or a list of them", (list, tuple, int)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ValueError(f"{key} must be {words}, got {value!r}")


def entry(policy: str | Mapping[str, Any], *, noise: float) -> Entry:
    """The entry of a policy: text ("HyLinUCB", "HyThompson:scale=0.5"), or a table with `policy` and its settings.

    Capitals do not matter in the name of a policy of hybandits; a class of one's own is ``package.module:Class``. A
    table may have a `name`, which results then go by, and so may the settings of a text. A policy that
    needs a noise level gets that of the world unless its settings contain one; `HyThompson` and `HyIDS` learn the noise
    by themselves. A policy that wraps another has it as the setting `policy`; in a table, `class` then names the
    wrapper.

    >>> entry("HyLinUCB:ridge=0.5", noise=0.1).settings
    {'ridge': 0.5, 'noise': 0.1}
    >>> entry("hythompson:scale=0.5", noise=0.1)
    Entry(name='HyThompson:scale=0.5', policy='HyThompson', settings={'scale': 0.5}, learns_from=None)
    >>> entry({"class": "EpsilonGreedy", "policy": {"policy": "Greedy"}}, noise=0.1).settings
    {'policy': {'class': 'Greedy'}}
    """
    if isinstance(policy, str):
        kind, settings = parse_policy(policy)
        text = split_spec(policy)[1]
        name = class_name(kind) + (f":{text}" if text else "")  # in the policy's own spelling
    elif is_wrapped(policy):
        kind, settings = of_table(policy)
        name = class_name(kind)
    else:
        raise ValueError(f"a policy must be a name or a table with the key policy, got {policy!r}: e.g. HyLinUCB")
    name = str(settings.pop("name", name))
    return Entry(name=name, policy=kind, settings=with_noise(kind, settings, noise))


# ------------------------------------------------------------------ and back


def to_toml(record: Experiment) -> str:
    """The TOML file that gives a record again, with `experiment` or ``hybandits simulate FILE.toml``.

    Seeds, the digest of a data set and the origins of classes of one's own are in it, so that it gives the same results
    or says what has changed.

    Parameters
    ----------
    record : Experiment
        An experiment of the user's own.

    Returns
    -------
    str
        The text of the file.

    Raises
    ------
    ValueError
        If the record has something that such a file cannot say, because it was made in Python or is of the paper.

    Examples
    --------
    >>> record = experiment({"d1": 3, "d2": 2, "arms": 4, "rounds": 100, "environments": 1, "policies": ["Greedy"]})
    >>> import tomllib
    >>> experiment(tomllib.loads(to_toml(record))) == record
    True
    """
    _must_be_plain(record)
    kind, own, relayed = split_settings(record.world_settings)
    values: dict[str, Any] = {"name": record.name, "world": kind}
    if kind != "classification":
        values |= {"d1": record.d1, "d2": record.d2, "arms": list(record.arms)}
    values |= {"rounds": record.horizon, "trials": record.trials, "seeds": list(record.seeds)}
    if kind in GAUSSIAN or is_import_path(kind):
        values["noise"] = _unscaled(record.noise, relayed.get("factor", 1.0))
    if kind == "linear":
        values |= {"law": record.law, "theta_bound": record.theta_bound, "beta_bound": record.beta_bound}
    tables = {"world_settings": own.pop("settings", {}), "origins": record.origins}
    values |= own | relayed
    lines = [f"# Run this experiment with: hybandits simulate {record.name}.toml"]
    lines += [f"{key} = {_value(value)}" for key, value in values.items()]
    for key, table in tables.items():
        if table:
            lines += ["", f"[{key}]", *(f"{_key(name)} = {_value(value)}" for name, value in table.items())]
    for each in record.policies:
        named = CLASS if "policy" in each.settings else "policy"
        table = {named: each.policy, "name": each.name, **each.settings}
        lines += ["", "[[policies]]", *(f"{_key(name)} = {_value(value)}" for name, value in table.items())]
    return "\n".join(lines) + "\n"


def _must_be_plain(record: Experiment) -> None:
    """Raise for the first field that differs from what `experiment` gives."""
    usual: dict[str, Any] = {
        "protocol": "own", "points": grid(record.horizon, 120), "probes": (record.horizon,), "by_arm": False,
        "fresh_contexts": False, "trials_per_unit": 0, "log": None,
    }  # fmt: skip
    kind = split_settings(record.world_settings)[0]
    if kind != "linear":
        usual |= {name: DEFAULTS[name] for name in LINEAR_ONLY}
    for name, value in usual.items():
        if getattr(record, name) != value:
            raise ValueError(f"{record.key} cannot be written as TOML, because its {name} is not the usual one")
    for each in record.policies:
        reserved = {"name", CLASS} & set(each.settings)
        told = {} if record.origins else with_noise(each.policy, each.settings, record.noise)
        if each.learns_from is not None or reserved or (told and told != each.settings):
            raise ValueError(f"{record.key} cannot be written as TOML, because of the settings of {each.name}")


def _unscaled(noise: float, factor: float) -> float:
    """The number that gives the noise when it is multiplied by the factor, to the bit if there is one."""
    near = noise / factor
    return next(
        (value for value in (near, math.nextafter(near, math.inf), math.nextafter(near, 0)) if factor * value == noise),
        near,
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    """A value as TOML writes it, on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(name))} = {_value(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int):
        return json.dumps(value)
    raise ValueError(f"{value!r} cannot be written as TOML: use numbers, texts, true, false, lists and tables")
