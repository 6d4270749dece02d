"""Worlds by name: the kind of a world and its settings, as a record keeps them, become a world.

A world of one's own is named ``package.module:Class``; its settings are the arguments of its constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from hybandits.foundation import own_classes
from hybandits.foundation.checks import nearest
from hybandits.foundation.own_classes import is_import_path, parameters_of
from hybandits.simulation.churn import Churn
from hybandits.simulation.classification import Classification, Table, terrain
from hybandits.simulation.clicks import Clicks, Products
from hybandits.simulation.worlds import Relayed, Synthetic, World

RELAY = ("factor", "offset", "delay")
"""Settings that every kind has (`Relayed`)."""

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("the paper's world", ("jumps", "walk", "own", "constant", "heavy_tails")),
    "clicks": ("rewards of 0 and 1", ("rate", "spread")),
    "products": ("clicks on products with features of their own", ("rate", "spread")),
    "churn": ("arms that come and go", ("every",)),
    "classification": ("a data set: the arms are the classes", ("data", "label", "sha256")),
}
"""The kinds of worlds: what they are, and their settings beside those of `RELAY`."""

GAUSSIAN = ("linear", "churn")
"""Kinds whose noise is given; the noise of the others follows from their settings."""

FROM_THE_EXPERIMENT = ("d1", "d2", "arms", "noise", "seed")
"""What a world of one's own is told by the experiment, as far as its constructor takes it; the rest are settings."""

PROMISED = ("d1", "d2", "noise", "fresh_contexts", "rounds", "noise_stream")
"""What every world has (`hybandits.simulation.World`)."""


def make_world(
    settings: Mapping[str, Any],
    *,
    d1: int,
    d2: int,
    arms: int,
    noise: float,
    seed: int,
    linear: Mapping[str, Any],
    table: Table | None = None,
) -> World:
    """The world of some settings.

    Parameters
    ----------
    settings : mapping
        The `kind`, one of `KINDS` ("linear" if it is not there), and settings of that kind; or as kind
        ``package.module:Class``, and the constructor's arguments as a mapping under `settings`.
    d1, d2, arms : int
        Its shape.
    noise : float
        Standard deviation of Gaussian noise; the other kinds have their own.
    seed : int
        What everything is drawn from.
    linear : mapping
        What "linear" is told beside all this: law, bounds, and whether contexts are fresh.
    table : (features, labels), optional
        The data set of "classification"; by default `terrain`.

    Returns
    -------
    World
        Ready to be played in.

    Examples
    --------
    >>> shape = {"d1": 2, "d2": 2, "arms": 3, "noise": 0.1, "seed": 0, "linear": {}}
    >>> make_world({"kind": "churn", "every": 100}, **shape)
    Churn(d1=2, d2=2, arms=3, noise=0.1, every=100, seed=0)
    """
    kind, own, relayed = split_settings(settings)
    shape: dict[str, Any] = {"d1": d1, "d2": d2, "arms": arms, "seed": seed}
    world: World
    if is_import_path(kind):
        world = _own_world(kind, own.get("settings", {}), {**shape, "noise": noise})
    elif kind == "classification":
        features, labels = usual_terrain() if table is None else table
        world = Classification(features=features, labels=labels, seed=seed)
        if (world.d1, world.d2) != (d1, d2):
            raise ValueError(f"the data set has d1={world.d1}, d2={world.d2}, not d1={d1}, d2={d2}: take its shape")
    else:
        classes: dict[str, Callable[..., World]] = {
            "linear": Synthetic, "clicks": Clicks, "products": Products, "churn": Churn,
        }  # fmt: skip
        told = {"noise": noise} if kind in GAUSSIAN else {}
        world = classes[kind](**shape, **own, **told, **(linear if kind == "linear" else {}))
    return Relayed(world=world, **relayed) if relayed else world


def split_settings(settings: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The kind, its own settings, and those of `RELAY`; an unknown one is an error that names the nearest known one."""
    own = dict(settings)
    kind = own.pop("kind", "linear")
    if kind not in KINDS and not is_import_path(kind):
        raise ValueError(
            f"world must be one of {', '.join(KINDS)}, or a class of your own as {own_classes.FORM}, got {kind!r}"
            f"{nearest(kind, KINDS)}"
        )
    known = (*(KINDS[kind][1] if kind in KINDS else ("settings",)), *RELAY)
    for name in own:
        if name not in known:
            raise ValueError(f"a world of the kind {kind} has no setting {name!r}: it has {', '.join(known)}")
    return kind, own, {name: own.pop(name) for name in RELAY if name in own}


def world_class(name: str) -> type:
    """The class of a world of one's own, which is imported."""
    return own_classes.import_class(name, object, "a world")


def _own_world(name: str, settings: Mapping[str, Any], told: Mapping[str, Any]) -> World:
    kind = world_class(name)
    own_classes.check_settings(name, kind, settings, FROM_THE_EXPERIMENT)
    known = parameters_of(kind)
    arguments = {key: value for key, value in told.items() if key in known} | dict(settings)
    world: World = own_classes.construct(name, kind, arguments)
    missing = [each for each in PROMISED if not hasattr(world, each)]
    if missing:
        raise ValueError(
            f"{name} is not a world, because it has no {', '.join(missing)}: a world has {', '.join(PROMISED)}, see "
            "docs/adding-a-world.md"
        )
    return world


@lru_cache(maxsize=1)
def usual_terrain() -> Table:
    """The data set that is made, drawn once; do not write to it."""
    return terrain()
