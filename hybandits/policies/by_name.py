"""Policies by name: text (``Name:setting=value,setting=value``) or a table with the key `class` becomes a policy.

A class of one's own is named ``package.module:Class``. `make_policy` adds the settings that depend on the problem.
"""

import importlib
import inspect
import os
import pkgutil
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hybandits import policies
from hybandits.estimators import exploration
from hybandits.foundation.checks import nearest, parameters_of
from hybandits.foundation.files import sha256
from hybandits.policies.base import Policy
from hybandits.policies.posterior import PosteriorPolicy

FROM_THE_PROBLEM = ("d1", "d2", "seed")
"""Arguments that are never settings."""

WRAPPED = "policy"
"""The setting whose text names a policy; in other settings, a wrapped policy is a table with the key `class`."""

CLASS = "class"
"""The key of a policy's table that names its class."""

FORM = "package.module:Class"

_SPEC = re.compile(r"(?P<name>[^:=]+(?::[A-Za-z_][\w.]*)?):?(?P<settings>(?<=:)[^:=]+=.*)?", re.DOTALL)


def is_import_path(name: object) -> bool:
    """Return whether a name is of the form ``package.module:Class``."""
    return isinstance(name, str) and ":" in name


def import_named(name: str) -> Any:
    """Import a module or ``package.module:Class`` that a user has named, also from the current folder."""
    if os.getcwd() not in map(os.path.abspath, sys.path):
        sys.path.append(os.getcwd())
    importlib.invalidate_caches()  # files may have been written a moment ago
    try:
        return pkgutil.resolve_name(name)
    except Exception as problem:  # whatever the module does when it is imported
        form = FORM if ":" in name else "a module of the current folder or of Python's path"
        raise ValueError(f"{name} cannot be imported ({type(problem).__name__}: {problem}): name {form}") from problem


def import_class(name: str) -> Any:
    """Import a class that can be constructed, named as ``package.module:Class``."""
    kind = import_named(name)
    if not inspect.isclass(kind) or inspect.isabstract(kind):
        raise ValueError(f"{name} is not a class that can be constructed: name one as {FORM}")
    return kind


def digest_of_class(name: str) -> str:
    """Return the SHA-256 of the file that defines a class of one's own."""
    return sha256(Path(inspect.getfile(import_class(name))))


def check_settings(name: str, kind: Any, settings: Mapping[str, Any], given: Iterable[str]) -> None:
    """Raise unless the constructor takes all settings and needs nothing beyond them and what is `given` anyway."""
    known = {argument: value for argument, value in parameters_of(kind).items() if argument not in set(given)}
    for wrong in settings:
        if wrong not in known:
            raise ValueError(f"{name} has no setting {wrong!r}{nearest(wrong, known)}: it has {', '.join(known)}")
    for argument, value in known.items():
        if value.default is inspect.Parameter.empty and argument not in settings:
            raise ValueError(f"{name} needs the setting {argument!r}: give it, as in {name}:{argument}=VALUE")


def construct(name: str, kind: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call the constructor; any error of a class of one's own becomes a ValueError that names the class."""
    try:
        return kind(**arguments)
    except Exception as problem:
        if not is_import_path(name):
            raise
        raise ValueError(f"{name} cannot be constructed ({type(problem).__name__}: {problem})") from problem


def policy_names() -> list[str]:
    """Return the names of all policies of hybandits that wrap no other, sorted."""
    return [name for name, kind in _built_in().items() if "d1" in parameters_of(kind)]


def _built_in() -> dict[str, type[Policy]]:
    kinds = {name: getattr(policies, name) for name in sorted(policies.__all__)}
    return {
        name: kind
        for name, kind in kinds.items()
        if inspect.isclass(kind) and issubclass(kind, Policy) and not inspect.isabstract(kind)
    }


def policy_class(name: str) -> type[Policy]:
    """Return the class of a name: one of hybandits, or ``package.module:Class``, which is imported."""
    if is_import_path(name):
        kind: type[Policy] = import_class(name)
        if not issubclass(kind, Policy):
            raise ValueError(f"{name} is not a policy: let the class be a subclass of hybandits.Policy")
        return kind
    built_in = _built_in()
    if name not in built_in:
        raise ValueError(
            f"unknown policy {name!r}{nearest(name, built_in)}: choose from {', '.join(built_in)}, or name a class "
            f"of your own as {FORM}"
        )
    return built_in[name]


def setting_names(name: str) -> list[str]:
    """Return the settings of the policy with this name, in the order of its constructor."""
    return [argument for argument in parameters_of(policy_class(name)) if argument not in FROM_THE_PROBLEM]


def read_spec(text: str) -> tuple[str, dict[str, Any]]:
    """Split ``Name:setting=value,..`` into the name of a class and its settings.

    Values are written as in TOML; a word that is not valid TOML is taken as text, up to the next comma.
    """
    match = _SPEC.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} must be a name, a colon and settings, as in HyLinUCB:noise=0.1,ridge=2")
    settings = match["settings"] or ""
    try:
        return match["name"], tomllib.loads(f"table = {{{settings}}}")["table"]
    except tomllib.TOMLDecodeError:
        return match["name"], dict(_setting(text, part) for part in settings.split(","))


def _setting(text: str, part: str) -> tuple[str, Any]:
    name, equals, value = part.partition("=")
    if not equals:
        raise ValueError(f"{text!r} must have setting=value, got {part!r}: quote a value that has commas")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return name.strip(), float(value)  # TOML does not allow .5
    except ValueError:
        return name.strip(), value.strip()


def parse_policy(policy: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Split a policy, as text or a table, into the name of its class and its settings; `make_policy` checks both.

    Wrapped policies become tables with the key `class`.

    >>> parse_policy('EpsilonGreedy:policy="HyLinUCB:noise=0.1",epsilon=0.2')
    ('EpsilonGreedy', {'policy': {'class': 'HyLinUCB', 'noise': 0.1}, 'epsilon': 0.2})
    """
    if isinstance(policy, str):
        name, settings = read_spec(policy)
    elif _is_policy(policy):
        settings = dict(policy)
        name = settings.pop(CLASS)
    else:
        raise ValueError(
            f'a policy must be text or a table such as {{class = "HyLinUCB", noise = 0.1}}, got {policy!r}'
        )
    return name, proper_settings(settings)


def _is_policy(value: Any) -> bool:
    """Return whether a value is the table of a policy."""
    return isinstance(value, Mapping) and isinstance(value.get(CLASS), str)


def proper_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in one form: wrapped policies as tables with the key `class`."""
    return _with_wrapped(settings, lambda name, own: {CLASS: name, **own})


def _with_wrapped(settings: Mapping[str, Any], change: Callable[[str, dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the settings, with what `change(name, settings)` returns in place of every wrapped policy."""
    return {
        key: change(*parse_policy(value)) if _is_policy(value) or (key == WRAPPED and isinstance(value, str)) else value
        for key, value in settings.items()
    }


def nested_policies(name: str, settings: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the name and settings of a policy, and those of all policies that it wraps, to any depth."""
    wrapped: list[tuple[str, dict[str, Any]]] = []
    _with_wrapped(settings, lambda inner, own: wrapped.append((inner, own)))
    return [(name, settings), *(each for inner in wrapped for each in nested_policies(*inner))]


def with_noise(name: str, settings: Mapping[str, Any], noise: float) -> dict[str, Any]:
    """Return the settings with the noise level of the problem, where the policy takes one and nothing else sets it.

    An exploration coefficient carries its own noise level, and `HyThompson` and `HyIDS` learn it where it is not given.
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
    """Make a policy from what `parse_policy` returns, for a problem of the given shape.

    The number of arms and of rounds are passed on to policies and coefficients that need them, unless the settings say
    otherwise; the seed to wrapped policies too. `exploration` is a table with the key `kind`.
    """
    kind = policy_class(name)
    known = parameters_of(kind)

    def make(inner: str, own: Mapping[str, Any]) -> Policy:
        return make_policy(inner, own, d1=d1, d2=d2, arms=arms, horizon=horizon, seed=seed)

    values = _with_wrapped(proper_settings(settings), make)
    if "exploration" in values:
        values["exploration"] = _coefficient(values["exploration"], arms=arms, horizon=horizon)
    for argument, value in (("arm_count", arms), ("horizon", max(horizon, 2))):
        if argument in known:
            values.setdefault(argument, value)
    check_settings(name, kind, values, FROM_THE_PROBLEM)
    given = {key: value for key, value in (("d1", d1), ("d2", d2), ("seed", seed)) if key in known}
    policy: Policy = construct(name, kind, {**given, **values})
    try:
        policy._settings()  # it cannot be copied or saved without them, which would show after the work
    except AttributeError as problem:
        raise ValueError(f"{name}: {problem}") from None
    return policy


def _coefficient(table: Any, *, arms: int, horizon: int) -> exploration.Exploration:
    if not isinstance(table, Mapping):
        raise ValueError(f"exploration must be a table such as {{kind = 'Constant', alpha = 1.0}}, got {table!r}")
    plain = dict(table)
    if plain.get("kind") == "AsWritten":
        plain = {"horizon": horizon, "arms": arms, **plain}
    return exploration.from_plain(plain)
