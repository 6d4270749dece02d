"""Policies by name: the text of a command line or a configuration file becomes a policy.

A policy is described by the name of its class and its settings, which are plain values as JSON and TOML hold them. What
depends on the problem (the shape, the number of arms, the number of rounds, the seed) is added when the policy is made.
A class of one's own is named ``package.module:Class``. A policy that wraps others has them among its settings, each as
a table with the key `class` (or `policy`) and the settings of the wrapped policy.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hybandits import policies
from hybandits.estimators import exploration
from hybandits.foundation import checks, own_classes
from hybandits.foundation.own_classes import is_import_path, parameters_of
from hybandits.policies.base import Policy
from hybandits.policies.posterior import PosteriorPolicy

FROM_THE_PROBLEM = ("d1", "d2", "seed")
"""Arguments that are never settings: they come from the problem that the policy is made for."""

WRAPPED = ("policy", "policies")
"""Settings whose texts name policies; in other settings, a wrapped policy is a table with the key `class`."""

CLASS = "class"
"""The key of a wrapped policy's table that names its class; `policy` may be written instead, if the class has no such
setting."""


def policy_names() -> list[str]:
    """The names of all policies of hybandits that can be made by name alone, sorted.

    A policy that wraps another one, such as `EpsilonGreedy`, is not among them (`wrapper_names`).

    >>> "HyLinUCB" in policy_names(), "EpsilonGreedy" in policy_names()
    (True, False)
    """
    return [name for name, kind in _built_in().items() if "d1" in parameters_of(kind)]


def wrapper_names() -> list[str]:
    """The names of the policies of hybandits that wrap another policy, sorted.

    >>> wrapper_names()
    ['EpsilonGreedy']
    """
    return [name for name, kind in _built_in().items() if "d1" not in parameters_of(kind)]


def _built_in() -> dict[str, type[Policy]]:
    kinds = {name: getattr(policies, name) for name in sorted(policies.__all__)}
    return {
        name: kind
        for name, kind in kinds.items()
        if inspect.isclass(kind) and issubclass(kind, Policy) and not inspect.isabstract(kind)
    }


def proper_name(name: str) -> str:
    """The name of a policy in its own spelling, whatever the capitals; the text as it is if there is no such policy.

    >>> proper_name("hylinucb"), proper_name("HyLinUBC"), proper_name("softmax:Softmax")
    ('HyLinUCB', 'HyLinUBC', 'softmax:Softmax')
    """
    return {known.lower(): known for known in _built_in()}.get(name.lower(), name)


def setting_names(name: str) -> list[str]:
    """The settings of the policy with this name, in the order of its constructor.

    >>> setting_names("HyThompson")
    ['noise', 'scale', 'memory', 'propensity_draws']
    """
    return [argument for argument in parameters_of(policy_class(name)) if argument not in FROM_THE_PROBLEM]


# ------------------------------------------------------------------ wrapped policies


def is_wrapped(value: Any) -> bool:
    """Whether a setting's value is the table of a wrapped policy."""
    return isinstance(value, Mapping) and isinstance(value.get(CLASS, value.get("policy")), str)


def of_table(table: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of the class and the settings in the table of a policy.

    >>> of_table({"policy": "hylinucb", "noise": 0.1})
    ('HyLinUCB', {'noise': 0.1})
    >>> of_table({"class": "EpsilonGreedy", "policy": "Greedy"})
    ('EpsilonGreedy', {'policy': {'class': 'Greedy'}})
    """
    key = CLASS if CLASS in table else "policy"
    if not isinstance(table.get(key), str):
        raise ValueError(
            f"a policy must be text or a table that names its class, got {dict(table)!r}: write e.g. "
            '{class = "EpsilonGreedy", epsilon = 0.1, policy = {class = "HyLinUCB", noise = 0.1}}'
        )
    name, settings = parse_policy(table[key])
    return name, {**settings, **proper_settings({k: value for k, value in table.items() if k != key})}


def proper_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings in one form: wrapped policies as tables with the key `class`, and everything in its own spelling.

    >>> proper_settings({"exploration": {"kind": "constant", "alpha": 1.0}})
    {'exploration': {'kind': 'Constant', 'alpha': 1.0}}
    >>> proper_settings({"policy": "hylinucb:noise=0.1", "epsilon": 0.2})
    {'policy': {'class': 'HyLinUCB', 'noise': 0.1}, 'epsilon': 0.2}
    """
    values = {key: _proper(key, value) for key, value in settings.items()}
    table = values.get("exploration")
    if isinstance(table, Mapping) and "kind" in table:
        values["exploration"] = {**table, "kind": exploration.proper_kind(table["kind"])}
    return settings if values == settings else values


def _proper(key: str, value: Any) -> Any:
    if isinstance(value, str) and key in WRAPPED:
        name, settings = parse_policy(value)
        return {CLASS: name, **settings}
    if is_wrapped(value):
        name, settings = of_table(value)
        return {CLASS: name, **settings}
    if isinstance(value, list | tuple):
        return [_proper(key, each) for each in value]
    return value


def class_names(name: str, settings: Mapping[str, Any]) -> list[str]:
    """The name of a policy's class, and those of all policies that it wraps, to any depth, each once.

    >>> class_names("EpsilonGreedy", {"policy": "lab.softmax:Softmax"})
    ['EpsilonGreedy', 'lab.softmax:Softmax']
    """

    def names(value: Any) -> Iterator[str]:
        if is_wrapped(value):
            inner, own = of_table(value)
            yield from class_names(inner, own)
        elif isinstance(value, list | tuple):
            for each in value:
                yield from names(each)

    inner = [each for value in proper_settings(settings).values() for each in names(value)]
    return list(dict.fromkeys([proper_name(name), *inner]))


def _with_wrapped(settings: Mapping[str, Any], change: Callable[[str, dict[str, Any]], Any]) -> dict[str, Any]:
    """The settings, with what `change(name, settings)` returns in place of every wrapped policy."""

    def changed(value: Any) -> Any:
        if is_wrapped(value):
            return change(*of_table(value))
        return [changed(each) for each in value] if isinstance(value, list | tuple) else value

    return {key: changed(value) for key, value in proper_settings(settings).items()}


# ------------------------------------------------------------------ text


def parse_policy(spec: str) -> tuple[str, dict[str, Any]]:
    """Split text such as ``"HyThompson:scale=0.5"`` into the name of the policy and its settings.

    Parameters
    ----------
    spec : str
        A name, or a name, a colon and settings separated by commas. The name is that of a policy of hybandits, in which
        capitals do not matter, or ``package.module:Class``. Values are written as in TOML; a word that is not valid
        TOML is taken as text. A wrapped policy is such a text itself, in quotes, or a table with the key `class`.
        Neither the name nor the settings are checked here; `make_policy` does that.

    Returns
    -------
    tuple of str and dict
        The name, in its own spelling if there is such a policy, and the settings.

    Examples
    --------
    >>> parse_policy("hylinucb")
    ('HyLinUCB', {})
    >>> parse_policy('LinUCB:exploration={kind="Constant", alpha=1.0},ridge=2')
    ('LinUCB', {'exploration': {'kind': 'Constant', 'alpha': 1.0}, 'ridge': 2})
    >>> parse_policy("lab.softmax:Softmax:temperature=0.1")
    ('lab.softmax:Softmax', {'temperature': 0.1})
    >>> parse_policy('EpsilonGreedy:policy="HyLinUCB:noise=0.1",epsilon=0.2')
    ('EpsilonGreedy', {'policy': {'class': 'HyLinUCB', 'noise': 0.1}, 'epsilon': 0.2})
    """
    name, settings = parse_spec(spec, "policy", _built_in())
    return proper_name(name), dict(proper_settings(settings))


def parse_spec(spec: str, what: str, known: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Split ``Name:setting=value,...`` into the name, one of `known` or ``package.module:Class``, and the settings."""
    name, rest = own_classes.split_spec(spec)
    first, _, others = spec.partition(":")
    if is_import_path(name) and first.lower() in {each.lower() for each in known}:
        name, rest = first, others  # a name that is known, and then something that is not setting=value
    return name, dict(_parse_setting(spec, what, part) for part in _split_settings(rest) if part)


def _split_settings(text: str) -> list[str]:
    """Split at the commas that stand outside braces, brackets and quotes: the others belong to a value."""
    parts, depth, quote = [""], 0, ""
    escaped = False
    for character in text:
        if character == "," and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += character
        if escaped:
            escaped = False
        elif quote:
            escaped = quote == '"' and character == "\\"
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "{[") - (character in "}]")
    return parts


def _parse_setting(spec: str, what: str, part: str) -> tuple[str, Any]:
    setting, equals, text = part.partition("=")
    if not equals:
        raise ValueError(
            f"{what} {spec!r}: expected setting=value after the colon, got {part!r}; quote a value that has commas"
        )
    setting = setting.strip()
    try:
        return setting, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return setting, float(text)  # TOML does not allow .5
    except ValueError:
        return setting, text


# ------------------------------------------------------------------ making policies


def with_noise(name: str, settings: Mapping[str, Any], noise: float) -> dict[str, Any]:
    """The settings, with the noise level of the problem added where the policy takes one and nothing else sets it.

    An exploration coefficient carries its own noise level, so a policy with the setting `exploration` is left alone.
    So is a policy that learns the noise where it is not given (`HyThompson`, `HyIDS`). Wrapped policies are told the
    noise in the same way.

    >>> with_noise("HyLinUCB", {"ridge": 2.0}, 0.1)
    {'ridge': 2.0, 'noise': 0.1}
    >>> with_noise("HyThompson", {"scale": 0.5}, 0.1)
    {'scale': 0.5}
    >>> with_noise("EpsilonGreedy", {"policy": "HyLinUCB"}, 0.1)
    {'policy': {'class': 'HyLinUCB', 'noise': 0.1}}
    """
    values = _with_wrapped(settings, lambda inner, own: {CLASS: inner, **with_noise(inner, own, noise)})
    learned = issubclass(policy_class(name), PosteriorPolicy)
    if learned or "noise" not in setting_names(name) or "exploration" in values:
        return values
    return {**values, "noise": values.get("noise", noise)}


def make_policy(
    name: str,
    settings: Mapping[str, Any],
    *,
    d1: int,
    d2: int,
    arms: int,
    horizon: int,
    seed: int | None = None,
) -> Policy:
    """Make a policy from its name and its settings, for a problem of the given shape.

    Parameters
    ----------
    name : str
        One of `policy_names` or `wrapper_names`, in which capitals do not matter, or ``package.module:Class``, which is
        imported.
    settings : mapping
        Keyword arguments of the class as plain values. `exploration` is a table with the key `kind`, in which capitals
        do not matter either, for example ``{"kind": "Constant", "alpha": 1.0}``. A wrapped policy is a table with the
        key `class` and its settings, or text as `parse_policy` takes it.
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    arms, horizon : int
        The number of arms and of rounds that will be played. They are passed on to policies and coefficients that need
        them, unless the settings say otherwise.
    seed : int, optional
        The seed of the policy's random draws, and of those of the policies that it wraps.

    Returns
    -------
    Policy
        A new policy that has learned nothing yet.

    Examples
    --------
    >>> make_policy("HyLinUCB", {"exploration": {"kind": "AsWritten"}}, d1=2, d2=1, arms=5, horizon=100).ridge
    5.0
    >>> make_policy("EpsilonGreedy", {"policy": "Greedy", "epsilon": 0.2}, d1=2, d2=1, arms=5, horizon=100).policy
    Greedy(d1=2, d2=1, ridge=1.0): 0 arms known, 0 rewards learned
    """
    name = proper_name(name)
    kind = policy_class(name)
    known = parameters_of(kind)

    def make(inner: str, own: Mapping[str, Any]) -> Policy:
        return make_policy(inner, own, d1=d1, d2=d2, arms=arms, horizon=horizon, seed=seed)

    values = _with_wrapped(settings, make)
    if "exploration" in values:
        values["exploration"] = _coefficient(values["exploration"], arms=arms, horizon=horizon)
    for argument, value in (("arm_count", arms), ("horizon", max(horizon, 2))):
        if argument in known:
            values.setdefault(argument, value)
    given = {key: value for key, value in (("d1", d1), ("d2", d2), ("seed", seed)) if key in known}
    if "policy" in known and "policy" not in values and known["policy"].default is inspect.Parameter.empty:
        raise ValueError(f'{name} wraps a policy: name it, as in {name}:policy="HyLinUCB:noise=0.1"')
    try:
        own_classes.check_settings(name, kind, values, FROM_THE_PROBLEM)
    except ValueError as problem:
        if "policy" not in known:
            raise
        words = f'put a wrapped policy and its settings in quotes, as in {name}:policy="HyLinUCB:noise=0.1,ridge=2"'
        raise ValueError(f"{problem}; {words}") from None
    if "d1" not in given or "d2" not in given:
        _must_wrap(name, values, [argument for argument in known if argument != "seed"])
    policy: Policy = own_classes.construct(name, kind, {**given, **values})
    if is_import_path(name):
        try:
            policy._settings()  # it cannot be copied or saved without them, which would show after the work
        except AttributeError as problem:
            raise ValueError(f"{name}: {problem}") from None
    return policy


def _must_wrap(name: str, values: Mapping[str, Any], arguments: list[str]) -> None:
    """Raise unless a policy whose constructor does not take d1 and d2 wraps one that does."""
    wrapped = [v for value in values.values() for v in (value if isinstance(value, list) else [value])]
    if any(isinstance(value, Policy) for value in wrapped):
        return
    takes = ", ".join(arguments) or "nothing"
    raise ValueError(
        f"{name} takes {takes}: its constructor must take d1 and d2, the numbers of features, or wrap a policy that "
        f'does, as in EpsilonGreedy:policy="HyLinUCB:noise=0.1",epsilon=0.1'
    )


def policy_class(name: str) -> type[Policy]:
    """The class of a name: one of hybandits, or ``package.module:Class``, which is imported."""
    if is_import_path(name):
        kind: type[Policy] = own_classes.import_class(name, Policy, "a policy")
        return kind
    proper, built_in = proper_name(name), _built_in()
    if proper not in built_in:
        names = ", ".join(built_in)
        raise ValueError(
            f"there is no policy {name!r}{checks.nearest(name, built_in)}: choose from {names}, or name a class of "
            f"your own as {own_classes.FORM}"
        )
    return built_in[proper]


def _coefficient(table: Any, *, arms: int, horizon: int) -> exploration.Exploration:
    if not isinstance(table, Mapping):
        raise ValueError(f"exploration must be a table such as {{kind = 'Constant', alpha = 1.0}}, got {table!r}")
    plain = dict(table)
    if plain.get("kind") == "AsWritten":
        plain = {"horizon": horizon, "arms": arms, **plain}
    return exploration.from_plain(plain)
