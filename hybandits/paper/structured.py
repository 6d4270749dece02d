"""Worlds in which diversity fails by construction, beside one of the same shape in which it does not.

The arm played cannot have diverse features where the features of its candidates are not diverse: where the z of an arm
never changes, as that of an article, where z is one-hot, and where z repeats x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hybandits import statistics
from hybandits.experiments.record import Experiment, Protocol, grid
from hybandits.experiments.results import Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import CONFIDENCE, LEVEL
from hybandits.paper.judging import join_names, mean_cross_moment, number, number_range
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
            seeds=fresh_seeds(count, seed),
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


COMPARED = (*PAPER_POLICIES, "HyIDS")


class Structured(NamedTuple):
    """Regret at T of the policies in one of these worlds, and how diverse the rows are that they play."""

    name: str
    protocol: str
    of_uniform: dict[str, FloatArray]
    """Regret over that of uniform choice, by policy and environment."""
    own_rho: dict[str, float]
    """lambda_min of the mean z z' of the median arm over its own rounds; of DisLinUCB that of (x, z)."""
    own_cross: dict[str, float]
    """sigma_max of the mean x z' of the median arm over its own rounds."""

    @property
    def words(self) -> str:
        """The world in words."""
        return IN_WORDS[self.name]


def structured_worlds(results: Results, protocol: str) -> list[Structured]:
    """The worlds that were played with uniform choice to compare with."""
    worlds = []
    for name in IN_WORDS:
        outcome = results.outcome(name, protocol)
        if outcome is None or UNIFORM not in outcome.policies:
            continue
        played = [policy for policy in COMPARED if policy in outcome.policies]
        world = Structured(name, protocol, {p: outcome.final(p) / outcome.final(UNIFORM) for p in played}, {}, {})
        worlds.append(world)
        for policy in played:
            design, ridge = outcome.design(policy), outcome.experiment.design_ridge or 0.0
            if design is None or design.pulls is None or design.lambda_min_w is None:
                continue
            per_pull = (design.lambda_min_w[:, -1] - ridge) / np.maximum(design.pulls[:, -1], 1)
            world.own_rho[policy] = max(float(np.median(per_pull)), 0.0)
            world.own_cross[policy] = float(np.median(mean_cross_moment(design)[:, -1]))
    return worlds


class Loss(NamedTuple):
    """Regret in a world over that in the diverse one, both as shares of uniform choice's, over the environments."""

    world: Structured
    policy: str
    ratio: float
    """The geometric mean."""
    larger: bool
    """True if the interval of the mean lies above 1."""


def losses_of(worlds: Sequence[Structured]) -> list[Loss]:
    """Losses of the paper's algorithms in the worlds beside the diverse one; environments have the same seeds."""
    diverse = next((world for world in worlds if world.name == DIVERSE), None)
    losses: list[Loss] = []
    if diverse is None:
        return losses
    for world in (world for world in worlds if world is not diverse):
        for name in (name for name in PAPER_POLICIES if name in world.of_uniform):
            logs = np.log(world.of_uniform[name] / diverse.of_uniform[name])
            interval = statistics.interval(logs, np.arange(len(logs)), CONFIDENCE)
            larger = interval is not None and interval.low > 0
            losses.append(Loss(world, name, float(np.exp(logs.mean())), larger))
    return losses


def describe_structured(results: Results) -> str:
    """Describe what the three algorithms lose, and how little diversity they see."""
    worlds = [world for protocol in ("released", "written") for world in structured_worlds(results, protocol)]
    losses = [loss for p in ("released", "written") for loss in losses_of([w for w in worlds if w.protocol == p])]
    ranges, seen = [], []
    for policy in PAPER_POLICIES:
        ratios = [loss.ratio for loss in losses if loss.policy == policy]
        ranges += [f"{policy} {number_range(ratios)} times"] if ratios else []
    more = [
        f"{loss.policy} with {loss.world.words} ({loss.world.protocol}, {number(loss.ratio)} times)"
        for loss in losses
        if loss.larger
    ]
    for name, words in IN_WORDS.items():
        alike = [world for world in worlds if world.name == name and "HyLinUCB" in world.own_rho]
        if alike:
            rho = number_range([world.own_rho["HyLinUCB"] for world in alike])
            seen.append(f"{words} {rho} and {number_range([world.own_cross['HyLinUCB'] for world in alike])}")
    return (
        f"Measured against uniform choice, regret at T is {join_names(ranges) if ranges else 'unknown'} that in a "
        "diverse world of the same shape, depending on the world and the protocol. It is larger ("
        f"{LEVEL}) for: {join_names(more) if more else 'none'}. In HyLinUCB's rounds with the median arm, "
        f"lambda_min of the mean z z' and sigma_max of the mean x z' are: {'; '.join(seen)}."
    )
