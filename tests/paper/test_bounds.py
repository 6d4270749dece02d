"""The standard bounds and the forced regret against direct computation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hybandits import paper
from hybandits.paper.bounds import LONGEST, crossing, forced_regret, most_diverse, ratio, standard_bound
from hybandits.paper.theorems import Policy, Problem


def problem(horizon: int, d1: int = 40, d2: int = 5, arms: int = 25) -> Problem:
    return Problem(d1=d1, d2=d2, arms=arms, horizon=horizon, rho=1 / max(d1, d2), delta=0.01)


def test_the_standard_bounds_by_hand() -> None:
    # d = 40 + 5 * 25 = 165, log(1 + 2e8/165) = 14.007883, log(100) = 4.605170
    radius = math.sqrt(26) + math.sqrt(2 * 4.605170 + 165 * 14.007883)
    expected = 4 * math.sqrt(1e8 * 165 * 14.007883) * radius
    assert standard_bound("LinUCB", problem(10**8)) == pytest.approx(expected, rel=1e-6)
    assert standard_bound("HyLinUCB", problem(10**8)) == standard_bound("LinUCB", problem(10**8))
    # Per arm 4e6 rounds and 45 parameters: log(1 + 8e6/45) = 12.088295
    radius = math.sqrt(2) + math.sqrt(2 * 4.605170 + 45 * 12.088295)
    expected = 25 * 4 * math.sqrt(4e6 * 45 * 12.088295) * radius
    assert standard_bound("DisLinUCB", problem(10**8)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("policy", "shape", "ratios"),
    [
        ("LinUCB", (40, 5, 25), (41.9, 3.75, 2.59)),
        ("LinUCB", (5, 5, 10), (3.03, 1.28, 0.97)),
        ("DisLinUCB", (40, 5, 25), (2.78, 1.05, 0.75)),
        ("DisLinUCB", (5, 5, 10), (0.99, 0.68, 0.51)),
        ("HyLinUCB", (5, 5, 10), (246, 200, 172)),
    ],
)
def test_ratios_of_the_bounds(policy: Policy, shape: tuple[int, int, int], ratios: tuple[float, ...]) -> None:
    computed = [ratio(policy, problem(rounds, *shape)) for rounds in (10**8, 10**12, 10**18)]
    assert computed == pytest.approx(ratios, rel=0.01)


def test_bounds_cross_where_the_ratio_is_one() -> None:
    for policy in ("LinUCB", "DisLinUCB"):
        at = crossing(policy, problem(1, 5, 5, 10))
        assert at is not None
        assert ratio(policy, problem(round(at), 5, 5, 10)) == pytest.approx(1, abs=1e-3)
        assert ratio(policy, problem(round(2 * at), 5, 5, 10)) < 1 < ratio(policy, problem(round(at / 2), 5, 5, 10))
    assert crossing("HyLinUCB", problem(1)) is None
    # In the limit both grow like sqrt(T) log T: 4 alpha over the standard bound tends to this.
    limit = 64 * math.sqrt(2) * math.sqrt(math.log(45 * 25 / 0.01)) * 40**1.5 / 4 / math.sqrt(165)
    assert limit < ratio("HyLinUCB", problem(LONGEST)) < 1.2 * limit


def test_the_problem_is_as_diverse_as_unit_features_allow() -> None:
    record = paper.experiment("setting-2")
    assert most_diverse(record, 25, delta=0.1) == replace(problem(80_000, 5, 40), delta=0.1)
    assert most_diverse(record, 25, delta=0.1).rho == 1 / 40


@pytest.mark.parametrize("protocol", ["released", "written"])
def test_the_forced_regret_by_a_loop(protocol: paper.Protocol) -> None:
    record = replace(paper.experiment("setting-3", protocol), horizon=300, points=(300,), probes=(), seeds=(5, 6))
    gaps = []
    for seed in record.seeds:
        world = record.world(10, seed)
        theta, beta = world.parameters()  # type: ignore[attr-defined]
        (block,) = world.rounds(300)
        x, z = np.array(block.rounds.x), np.array(block.rounds.z)
        own = [[z[t, j] @ beta[j] for j in range(10)] for t in range(300)]
        both = [[x[t, j] @ theta + own[t][j] for j in range(10)] for t in range(300)]
        gaps.append(np.max(both, axis=1) - np.max(own, axis=1))
    forced = forced_regret(record, 10)
    assert forced.mean == pytest.approx(np.mean(gaps))
    assert forced.error == pytest.approx(np.sqrt(np.var(gaps[0], ddof=1) + np.var(gaps[1], ddof=1)) / 2 / np.sqrt(300))


def test_a_policy_that_ignores_x_has_at_least_the_forced_regret() -> None:
    """The best choice by z.beta alone has E x = 0 where x is symmetric and independent of z."""
    record = replace(paper.experiment("setting-3", "written"), seeds=(5,))
    world = record.world(10, 5)
    theta, _ = world.parameters()  # type: ignore[attr-defined]
    blocks = [next(world.rounds(20_000))]
    lost = [
        best - means[np.arange(len(means)), (means - rounds.x @ theta).argmax(axis=1)] for rounds, means, best in blocks
    ]
    forced, actual = forced_regret(record, 10), np.concatenate(lost)
    assert actual.mean() == pytest.approx(forced.mean, abs=4 * (forced.error + actual.std() / math.sqrt(len(actual))))


def test_the_world_must_be_linear() -> None:
    record = replace(paper.experiment("setting-3"), world_settings={"kind": "clicks"})
    with pytest.raises(ValueError, match="the experiment's world must be linear, got Clicks"):
        forced_regret(record, 10)
