"""Policies by name: the text of a command line or a configuration file becomes a policy.

A policy is described by the name of its class and its settings, which are plain values as JSON and TOML hold them. What
depends on the problem (the shape, the number of arms, the number of rounds, the seed) is added when the policy is made.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from typing import Any

from hybandits import policies
from hybandits.foundation import checks
from hybandits.model import exploration
from hybandits.policies.base import Policy
from hybandits.policies.posterior import PosteriorPolicy

FROM_THE_PROBLEM = ("d1", "d2", "seed")
"""Arguments that are never settings: they come from the problem that the policy is made for."""


def policy_names() -> list[str]:
    """The names of all policies that can be made by name, sorted.

    A policy that wraps another one, such as `EpsilonGreedy`, is not among them: it has no shape of its own.

    >>> "HyLinUCB" in policy_names(), "EpsilonGreedy" in policy_names()
    (True, False)
    """
    kinds = {name: getattr(policies, name) for name in policies.__all__}
    return sorted(
        name
        for name, kind in kinds.items()
        if inspect.isclass(kind)
        and issubclass(kind, Policy)
        and not inspect.isabstract(kind)
        and "d1" in inspect.signature(kind).parameters
    )


def proper_name(name: str) -> str:
    """The name of a policy in its own spelling, whatever the capitals; the text as it is if there is no such policy.

    >>> proper_name("hylinucb"), proper_name("HyLinUBC")
    ('HyLinUCB', 'HyLinUBC')
    """
    return {known.lower(): known for known in policy_names()}.get(name.lower(), name)


def setting_names(name: str) -> list[str]:
    """The settings of the policy with this name, in the order of its constructor.

    >>> setting_names("HyThompson")
    ['noise', 'scale', 'memory', 'propensity_draws']
    """
    return [argument for argument in inspect.signature(_class(name)).parameters if argument not in FROM_THE_PROBLEM]


def proper_settings(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings with the kind of an exploration coefficient in its own spelling, whatever its capitals.

    >>> proper_settings({"exploration": {"kind": "constant", "alpha": 1.0}})
    {'exploration': {'kind': 'Constant', 'alpha': 1.0}}
    """
    table = settings.get("exploration")
    if not isinstance(table, Mapping) or "kind" not in table:
        return settings
    return {**settings, "exploration": {**table, "kind": exploration.proper_kind(table["kind"])}}


def parse_policy(spec: str) -> tuple[str, dict[str, Any]]:
    """Split text such as ``"HyThompson:scale=0.5"`` into the name of the policy and its settings.

    Parameters
    ----------
    spec : str
        A name, or a name, a colon and settings separated by commas. Capitals do not matter in the name. Values are
        written as in TOML; a word that is not valid TOML is taken as text. Neither the name nor the settings are
        checked here; `make_policy` does that.

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
    """
    name, _, rest = spec.partition(":")
    return proper_name(name), dict(_parse_setting(spec, part) for part in _split_settings(rest) if part)


def _split_settings(text: str) -> list[str]:
    """Split at the commas that stand outside braces, brackets and quotes: the others belong to a value."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if character == "," and not depth and not quote:
            parts.append("")
            continue
        parts[-1] += character
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "{[") - (character in "}]")
    return parts


def _parse_setting(spec: str, part: str) -> tuple[str, Any]:
    setting, equals, text = part.partition("=")
    if not equals:
        raise ValueError(f"policy {spec!r}: expected setting=value after the colon, got {part!r}")
    try:
        return setting, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    try:
        return setting, float(text)  # TOML does not allow .5
    except ValueError:
        return setting, text


def with_noise(name: str, settings: Mapping[str, Any], noise: float) -> dict[str, Any]:
    """The settings, with the noise level of the problem added where the policy takes one and nothing else sets it.

    An exploration coefficient carries its own noise level, so a policy with the setting `exploration` is left alone.
    So is a policy that learns the noise where it is not given (`HyThompson`, `HyIDS`).

    >>> with_noise("HyLinUCB", {"ridge": 2.0}, 0.1)
    {'ridge': 2.0, 'noise': 0.1}
    >>> with_noise("HyThompson", {"scale": 0.5}, 0.1)
    {'scale': 0.5}
    """
    learned = issubclass(_class(name), PosteriorPolicy)
    if learned or "noise" not in setting_names(name) or "exploration" in settings:
        return dict(settings)
    return {**settings, "noise": settings.get("noise", noise)}


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
        One of `policy_names`; capitals do not matter.
    settings : mapping
        Keyword arguments of the class as plain values. `exploration` is a table with the key `kind`, in which capitals
        do not matter either, for example ``{"kind": "Constant", "alpha": 1.0}``.
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    arms, horizon : int
        The number of arms and of rounds that will be played. They are passed on to policies and coefficients that need
        them, unless the settings say otherwise.
    seed : int, optional
        The seed of the policy's random draws.

    Returns
    -------
    Policy
        A new policy that has learned nothing yet.

    Examples
    --------
    >>> make_policy("HyLinUCB", {"exploration": {"kind": "AsWritten"}}, d1=2, d2=1, arms=5, horizon=100).ridge
    5.0
    """
    name = proper_name(name)
    known = setting_names(name)
    kind: Any = _class(name)
    values = dict(proper_settings(settings))
    unknown = sorted(set(values) - set(known))
    if unknown:
        near = checks.nearest(unknown[0], known)
        raise ValueError(f"{name} has no setting {unknown[0]!r}{near}: it has {', '.join(known)}")
    if "exploration" in values:
        values["exploration"] = _coefficient(values["exploration"], arms=arms, horizon=horizon)
    if "arm_count" in known:
        values.setdefault("arm_count", arms)
    if "horizon" in known:
        values.setdefault("horizon", max(horizon, 2))
    policy: Policy = kind(d1=d1, d2=d2, seed=seed, **values)
    return policy


def _class(name: str) -> type[Policy]:
    proper, names = proper_name(name), policy_names()
    if proper not in names:
        raise ValueError(f"there is no policy {name!r}{checks.nearest(name, names)}: choose from {', '.join(names)}")
    kind: type[Policy] = getattr(policies, proper)
    return kind


def _coefficient(table: Any, *, arms: int, horizon: int) -> exploration.Exploration:
    if not isinstance(table, Mapping):
        raise ValueError(f"exploration must be a table such as {{kind = 'Constant', alpha = 1.0}}, got {table!r}")
    plain = dict(table)
    if plain.get("kind") == "AsWritten":
        plain = {"horizon": horizon, "arms": arms, **plain}
    return exploration.from_plain(plain)
