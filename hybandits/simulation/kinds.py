"""Worlds by name: the kind of a world and its settings, as a record keeps them, become a world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hybandits.foundation.checks import nearest
from hybandits.foundation.files import sha256
from hybandits.simulation.churn import Churn
from hybandits.simulation.classification import TERRAIN, Classification, read_table, terrain
from hybandits.simulation.clicks import Clicks, Products
from hybandits.simulation.worlds import Relayed, Synthetic, World

RELAY = ("factor", "offset", "delay")
"""Settings that every kind has (`Relayed`)."""

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "linear": ("the paper's world", ("jumps", "walk", "own", "constant", "heavy_tails")),
    "clicks": ("rewards of 0 and 1", ("rate", "spread")),
    "products": ("clicks on products with features of their own", ("rate", "spread")),
    "churn": ("arms that come and go", ("every",)),
    "classification": ("a data set: the arms are the classes", ("data", "sha256")),
}
"""The kinds of worlds: what they are, and their settings beside those of `RELAY`."""

GAUSSIAN = ("linear", "churn")
"""Kinds whose noise is given; the noise of the others follows from their settings."""


def make_world(
    settings: Mapping[str, Any],
    *,
    d1: int,
    d2: int,
    arms: int,
    noise: float,
    seed: int,
    linear: Mapping[str, Any],
    data: str | None = None,
) -> World:
    """The world of some settings.

    Parameters
    ----------
    settings : mapping
        The `kind`, one of `KINDS` ("linear" if it is not there), and settings of that kind.
    d1, d2, arms : int
        Its shape.
    noise : float
        Standard deviation of Gaussian noise; the other kinds have their own.
    seed : int
        What everything is drawn from.
    linear : mapping
        What "linear" is told beside all this: law, bounds, and whether contexts are fresh.
    data : str, optional
        Where the file of a data set is, if it is not where the settings say.

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
    if kind == "classification":
        world: World = _classification(own, data, seed)
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
    if kind not in KINDS:
        raise ValueError(f"world must be one of {', '.join(KINDS)}, got {kind!r}{nearest(kind, KINDS)}")
    known = (*KINDS[kind][1], *RELAY)
    for name in own:
        if name not in known:
            raise ValueError(f"a world of the kind {kind} has no setting {name!r}: it has {', '.join(known)}")
    return kind, own, {name: own.pop(name) for name in RELAY if name in own}


def _classification(settings: Mapping[str, Any], data: str | None, seed: int) -> Classification:
    source = settings.get("data", TERRAIN)
    if source == TERRAIN:
        features, labels = _terrain()
    else:
        path = Path(data or source)
        if "sha256" in settings and sha256(path) != settings["sha256"]:
            raise ValueError(f"{path} is not the data set that was recorded: its content differs. Bring the old file.")
        features, labels = read_table(path)
    return Classification(features=features, labels=labels, seed=seed)


@lru_cache(maxsize=1)
def _terrain() -> tuple[Any, Any]:
    return terrain()
