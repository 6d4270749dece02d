"""Fabricated results of the variants of the paper's algorithms in setting 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hybandits import paper
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, MOMENTS, Experiment, Protocol
from hybandits.experiments.results import Outcome
from hybandits.paper import sensitivity
from hybandits.paper.sensitivity import COMBINATIONS, Combination
from tests.support.fabricated_outcomes import fabricated_outcome


def _fabricated(record: Experiment, regret: Callable[[str, int], float], ellipsoid: Mapping[str, float]) -> Outcome:
    """An outcome with these regrets at T, by entry and environment, and these ratios of error and gamma, else 0.5."""

    def curve(policy: str, arms: int, environment: int, trial: int) -> Any:
        return np.linspace(0, regret(policy, environment), len(record.points) + 1)[1:]

    def design(unit: Any, policy: str, trial: int) -> dict[str, Any]:
        probes = len(record.probes)
        measures: dict[str, Any] = dict.fromkeys((*DESIGN, *MOMENTS), np.full(probes, 0.5))
        measures |= dict.fromkeys(DESIGN_BY_ARM, np.ones((probes, unit.arms), int))
        measures["ellipsoid"] = np.linspace(ellipsoid.get(policy, 0.5), 0.2, probes)
        return measures

    return fabricated_outcome(record, curve, design)


def of_one_setting(protocol: Protocol) -> Outcome:
    """Setting 1, where regret grows with c of gamma and falls with lambda; HyLinUCB covers from c = 0.1 on."""
    record = sensitivity.sensitivity(protocol, scale="quick")[0]
    settings = {entry.name: sensitivity.settings_of(entry) for entry in record.policies}

    def regret(name: str, environment: int) -> float:
        gamma, ridge, delta = settings[name]
        return 100 * (1 + environment) * (1 + gamma) / (1 + ridge) * (1.5 if delta == 0.1 else 1)

    return _fabricated(record, regret, {"HyLinUCB, gamma x 0.01": 1.2})


def of_combinations(world: Protocol, levels: Callable[[Combination, str], float]) -> Outcome:
    """All combinations in one world, with these regrets, which grow by a tenth from environment to environment."""
    record = sensitivity.factorial(world)[0]
    shares = {
        sensitivity.combined_name(policy, c.gamma, c.ridge): levels(c, policy)
        for c in COMBINATIONS
        for policy in paper.PAPER_POLICIES
        if c.world == world
    }
    return _fabricated(record, lambda name, environment: shares[name] * (1 + 0.1 * environment), {})
