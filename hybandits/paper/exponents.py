"""Experiments in which one of K, d1 and d2 varies, for the exponents of regret in each of them and in T."""

from __future__ import annotations

from hybandits.experiments.record import Experiment, Protocol, environment_seeds, grid
from hybandits.paper.settings import PAPER_POLICIES, RELEASED_SEED, WORLDS, Scale, entry, fresh_seeds

ABOUT = "exponents of regret in K, d1, d2 and T: one of K, d1 and d2 varies at a time, in fresh environments"

BASE = "exponents-arms"
"""The experiment in which K varies; the others have K = BASE_ARMS and a larger d1 or d2."""
BASE_SHAPE, BASE_ARMS = {"d1": 5, "d2": 5}, 25
ARMS, QUICK_ARMS = (10, 25, 50, 100, 200), (10, 25, 50)
LARGER = (10, 20, 40)
SHAPES = {BASE: BASE_SHAPE} | {f"exponents-{name}-{d}": BASE_SHAPE | {name: d} for name in BASE_SHAPE for d in LARGER}
"""d1 and d2 by the names of the experiments."""

IN_WORDS = {name: f"d1 = {shape['d1']}, d2 = {shape['d2']}" for name, shape in SHAPES.items()}

POLICIES = (*PAPER_POLICIES, "HyIDS")
ENVIRONMENTS, QUICK_ENVIRONMENTS = 20, 4
HORIZON, QUICK_HORIZON = 80_000, 3_000


def records(protocol: Protocol, *, scale: Scale = "paper", seed: int = RELEASED_SEED) -> list[Experiment]:
    """The experiments of all shapes, in environments whose seeds are alike and none of the published ones.

    >>> [(record.name, record.d1, record.arms) for record in records("written")][:2]
    [('exponents-arms', 5, (10, 25, 50, 100, 200)), ('exponents-d1-10', 10, (25,))]
    """
    short = scale == "quick"
    horizon = QUICK_HORIZON if short else HORIZON
    count = QUICK_ENVIRONMENTS if short else ENVIRONMENTS
    return [
        Experiment(
            name=name,
            protocol=protocol,
            d1=shape["d1"],
            d2=shape["d2"],
            arms=(BASE_ARMS,) if name != BASE else QUICK_ARMS if short else ARMS,
            horizon=horizon,
            seeds=fresh_seeds(count, {*environment_seeds(seed, 5), *environment_seeds(RELEASED_SEED, 5)}, seed),
            trials=1,
            policies=tuple(entry(policy, protocol) for policy in POLICIES),
            points=grid(horizon, 40),
            **({"law": "cube-direction"} | WORLDS[protocol]),
        )
        for name, shape in SHAPES.items()
    ]
