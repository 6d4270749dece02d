"""Worlds in which diversity fails by construction, beside one of the same shape in which it does not.

The arm played cannot have diverse features where the features of its candidates are not diverse: where the z of an arm
never changes, as that of an article, where z is one-hot, and where z repeats x.
"""

from __future__ import annotations

from typing import Any

from hybandits.experiments.record import Experiment, Protocol, environment_seeds, grid
from hybandits.paper.settings import (
    PAPER_POLICIES,
    RELEASED_SEED,
    UNIFORM,
    WORLDS,
    Scale,
    entry,
    fresh_seeds,
)

ABOUT = "worlds in which diversity fails by construction: z constant per arm, one-hot, or equal to x"

DIVERSE = "structured-diverse"
"""The world that the others are compared with."""

STRUCTURED_WORLDS: dict[str, dict[str, Any]] = {
    DIVERSE: {},
    "structured-fixed": {"own_features": "fixed"},
    "structured-one-hot": {"own_features": "one-hot"},
    "structured-duplicated": {"own_features": "duplicated"},
}
"""Settings of the worlds by the names of their experiments."""

IN_WORDS = {
    DIVERSE: "diverse",
    "structured-fixed": "z constant per arm",
    "structured-one-hot": "z one-hot",
    "structured-duplicated": "z equal to x",
}

POLICIES = (UNIFORM, *PAPER_POLICIES, "HyIDS")
ENVIRONMENTS, QUICK_ENVIRONMENTS = 20, 2
HORIZON, QUICK_HORIZON = 20_000, 2_000


def records(protocol: Protocol, *, scale: Scale = "paper", seed: int = RELEASED_SEED) -> list[Experiment]:
    """The experiments of all worlds, in environments whose seeds are alike and none of the published ones.

    >>> {record.name: dict(record.world_settings) for record in records("written")}["structured-fixed"]
    {'own_features': 'fixed'}
    """
    horizon = QUICK_HORIZON if scale == "quick" else HORIZON
    count = QUICK_ENVIRONMENTS if scale == "quick" else ENVIRONMENTS
    return [
        Experiment(
            name=name,
            protocol=protocol,
            d1=10,
            d2=10,
            arms=(25,),
            horizon=horizon,
            seeds=fresh_seeds(count, {*environment_seeds(seed, 5), *environment_seeds(RELEASED_SEED, 5)}, seed),
            trials=1,
            policies=tuple(entry(policy, protocol) for policy in POLICIES),
            points=grid(horizon, 20),
            probes=(horizon,),
            by_arm=True,
            design_ridge=1.0,
            world_settings=world,
            **({"law": "cube-direction"} | WORLDS[protocol]),
        )
        for name, world in STRUCTURED_WORLDS.items()
    ]
