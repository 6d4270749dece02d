"""The paper's experiments as records: that they run, and that policies get the parameters of the protocols."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import HyLinUCB, paper
from hybandits.experiments.record import Experiment, environment_seeds
from hybandits.experiments.runner import Job, run_unit
from hybandits.paper import theorems
from hybandits.policies.by_name import make_policy


@pytest.mark.slow
def test_every_declared_experiment_runs() -> None:
    for protocol in ("released", "written"):
        for name, setting in paper.SETTINGS.items():
            if protocol not in setting.protocols:
                continue
            for scale in ("quick", "paper"):
                record = paper.experiment(name, protocol, scale=scale)  # type: ignore[arg-type]
                assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record
                assert record.points[-1] == record.horizon
                assert len(record.points) <= 400
            probes = (3, 6) if record.by_arm else (6,)
            tiny = replace(record, horizon=6, points=(6,), probes=probes, arms=(2,), trials=1, trials_per_unit=0)
            for run in run_unit(Job(next(tiny.units()))):
                assert run.regret[-1] >= 0


def test_policies_are_made_as_the_protocols_say() -> None:
    entries = {
        (p, name): paper.entry(name, p)  # type: ignore[arg-type]
        for p in ("released", "written")
        for name in paper.SETTINGS["setting-1"].policies
    }
    policies: dict[tuple[str, str], Any] = {
        key: make_policy(entry.policy, entry.settings, d1=40, d2=5, arms=25, horizon=80_000)
        for key, entry in entries.items()
    }
    assert [policies["written", name].ridge for name in paper.PAPER_POLICIES] == [25.0, 1.0, 1.0]
    assert {policies["released", name].ridge for name in paper.PAPER_POLICIES} == {0.1}
    hylinucb = policies["written", "HyLinUCB"]
    assert isinstance(hylinucb, HyLinUCB)
    hylinucb.admit(range(25))
    assert_allclose(hylinucb.radius, 2 * (5 + np.sqrt(2 * 45 * np.log(80_000 / 0.01))))
    suplinucb = policies["released", "SupLinUCB"]
    assert (suplinucb.horizon, suplinucb.ridge, suplinucb.explore) == (80_000, 0.1, "first")
    assert_allclose(suplinucb.width_factor(25), np.sqrt(0.1 * (0.64 + 25 * 0.25)) + np.sqrt(2 * np.log(2e6 / 0.01)))
    assert (policies["written", "SupLinUCB"].ridge, policies["written", "SupLinUCB"].explore) == (1.0, "widest")
    assert policies["released", "HyRan"].arm_count == 25
    for protocol, noise in (("released", 0.01), ("written", 0.1)):
        given = policies[protocol, paper.HYTHOMPSON_TOLD]
        assert (type(given).__name__, given.noise, given.scale) == ("HyThompson", noise, 0.1)
        for name in ("HyThompson", "HyIDS"):
            assert type(policies[protocol, name]).__name__ == name
            assert entries[protocol, name].settings == {}, "it learns its settings"


def test_shapes_and_lengths_are_those_of_the_paper() -> None:
    shapes = {name: (s.d1, s.d2, s.arms, s.horizon, s.environments, s.trials) for name, s in paper.SETTINGS.items()}
    assert shapes == {
        "setting-1": (40, 5, (25,), 80_000, 5, 5),
        "setting-2": (5, 40, (25,), 80_000, 5, 5),
        "setting-3": (5, 5, (10, 25, 50, 100, 200, 300, 400), 30_000, 5, 5),
        "diversity": (10, 10, (25,), 5_000, 1, 100),
        "diversity-updated": (10, 10, (25,), 5_000, 1, 100),
        "diversity-small": (2, 2, (3, 6), 2_500_000, 1, 10),  # not in the paper
    }
    for name, setting in paper.SETTINGS.items():
        quick = paper.experiment(name, "released", scale="quick")
        assert (quick.horizon, quick.trials) == (setting.quick_horizon, setting.quick_trials)


def test_the_small_problem_is_as_the_proof_asks_and_reaches_the_burn_in() -> None:
    for protocol, bounds in (("released", (0.8, 0.5)), ("written", (1.0, 1.0))):
        record = paper.experiment("diversity-small", protocol)  # type: ignore[arg-type]
        assert (record.law, record.fresh_contexts, record.by_arm) == ("sphere", True, True)
        assert (record.theta_bound, record.beta_bound) == bounds
        assert record.design_ridge == paper.SMALL_RIDGE
        given = [entry.settings for entry in record.policies if entry.name != "HyIDS"]
        assert {settings["ridge"] for settings in given} == {paper.SMALL_RIDGE}
        assert {s["exploration"]["delta"] for s in given if "exploration" in s} == {paper.SMALL_DELTA}
        for arms in record.arms:
            problem = theorems.Problem(
                d1=2, d2=2, arms=arms, horizon=record.horizon, rho=1 / 2, delta=paper.SMALL_DELTA
            )
            start = theorems.burn_in("LinUCB", problem)
            assert start < record.horizon / 2
            assert record.probes[-2] > 0.85 * record.horizon, "probes are close enough to see what follows"


@pytest.mark.parametrize("name", list(paper.FRESH_NAMES))
def test_fresh_environments_are_the_same_setting_with_other_seeds(name: str) -> None:
    full, fresh = paper.experiment(name), paper.fresh_experiment(name, environments=100)
    assert fresh.name == f"{name}-fresh"
    assert (len(set(fresh.seeds)), fresh.trials, fresh.horizon) == (100, 1, full.horizon)
    assert not set(fresh.seeds) & set(full.seeds)
    assert set(fresh.arms) <= set(full.arms)
    assert replace(fresh, name=name, arms=full.arms, seeds=full.seeds, trials=full.trials, points=full.points,
                   probes=full.probes, policies=full.policies) == full  # fmt: skip
    entries = {entry.name: entry for entry in full.policies}
    assert [entry.name for entry in fresh.policies] == list(paper.FRESH_POLICIES)
    assert all(entry == entries[entry.name] for entry in fresh.policies)
    assert Experiment.from_plain(json.loads(json.dumps(fresh.plain()))) == fresh
    fewer = paper.fresh_experiment(name, environments=7)
    assert fewer.seeds == fresh.seeds[:7]
    setting = paper.setting_of(fresh.name)
    assert setting is paper.setting_of(name) is paper.SETTINGS[name]


def test_fresh_environments_are_never_the_published_ones() -> None:
    """With the seed before the released one, the seeds drawn begin with the published five, which are passed over."""
    published = set(environment_seeds(paper.RELEASED_SEED, 5))
    fresh = paper.fresh_experiment("setting-1", environments=50, seed=paper.RELEASED_SEED - 1)
    assert len(set(fresh.seeds)) == 50
    assert not set(fresh.seeds) & published
