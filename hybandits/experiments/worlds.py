"""Worlds by name and settings, as a record keeps them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from hybandits.foundation.checks import nearest, parameters_of
from hybandits.policies.by_name import FORM, check_settings, construct, import_class, is_import_path
from hybandits.simulation.benchmark_worlds import Churn, Clicks, Products
from hybandits.simulation.worlds import Relayed, Synthetic, World

RELAY = ("factor", "offset", "delay")
"""Settings that every kind has (`Relayed`)."""

FROM_THE_EXPERIMENT = ("d1", "d2", "arms", "noise", "seed")
"""Arguments of constructors that come from the experiment; all others are settings."""

PROMISED = ("d1", "d2", "noise", "fresh_contexts", "rounds", "noise_stream")
"""Attributes of every world (`hybandits.simulation.World`)."""


KINDS = {
    "linear": (Synthetic, "the paper's world"),
    "clicks": (Clicks, "rewards of 0 and 1"),
    "products": (Products, "clicks on products with features of their own"),
    "churn": (Churn, "arms that come and go"),
}
"""Kinds of worlds: the constructor and a description. Settings are its arguments and those of `RELAY`."""


def split_settings(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Split the settings of a world into its kind, the kind's own settings, and those of `RELAY`."""
    own = dict(settings)
    kind = own.pop("kind", "linear")
    return kind, own, {name: own.pop(name) for name in RELAY if name in own}


def world_class(name: str) -> Any:
    """Return the constructor of a kind of world, or a class of one's own, which is imported."""
    if is_import_path(name):
        return import_class(name)
    if name not in KINDS:
        raise ValueError(
            f"world must be one of {', '.join(KINDS)}, or a class of your own as {FORM}, got {name!r}"
            f"{nearest(name, KINDS)}"
        )
    return KINDS[name][0]


def make_world(settings: Mapping[str, Any], *, d1: int, d2: int, arms: int, noise: float, seed: int) -> World:
    """Make the world of some settings: the `kind`, one of `KINDS` or ``package.module:Class``, and its own.

    The other arguments come from the experiment, for worlds that take them.

    >>> make_world({"kind": "churn", "every": 100}, d1=2, d2=2, arms=3, noise=0.1, seed=0)
    Churn(d1=2, d2=2, arms=3, noise=0.1, every=100, seed=0)
    """
    name, own, relayed = split_settings(settings)
    kind = world_class(name)
    check_settings(name, kind, own, FROM_THE_EXPERIMENT)
    offered: dict[str, Any] = {"d1": d1, "d2": d2, "arms": arms, "noise": noise, "seed": seed}
    given = {key: offered[key] for key in parameters_of(kind) if key in offered}
    world: World = construct(name, kind, given | own)
    if missing := [each for each in PROMISED if not hasattr(world, each)]:
        raise ValueError(f"{name} is not a world, it has no {', '.join(missing)}: see docs/adding-a-world.md")
    return Relayed(world=world, **relayed) if relayed else world


def number_of_arms(world: World) -> int:
    """Return how many arms a world has: its attribute `arms`, or the candidates of its first block."""
    inner: Any = getattr(world, "world", world)
    arms = getattr(inner, "arms", None)
    if arms is None:
        arms = next(iter(inner.rounds(1))).rounds.arms
    return len(arms) if hasattr(arms, "__len__") else operator.index(arms)
