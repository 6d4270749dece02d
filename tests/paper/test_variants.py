"""Variants of the paper's algorithms: what each differs in, and that the usual ones are those of the protocols."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import AsWritten, SelfNormalised, paper
from hybandits.experiments.runner import Job, run_unit
from hybandits.paper import variants
from hybandits.policies.by_name import make_policy


@pytest.mark.parametrize("protocol", ["released", "written"])
def test_one_value_differs_in_every_variant(protocol: paper.Protocol) -> None:
    full, short = (variants.sensitivity(protocol, scale=scale) for scale in ("paper", "quick"))  # type: ignore[arg-type]
    ridge = {"HyLinUCB": 25.0} if protocol == "written" else {}
    for record in (*full, *short):
        usual = {e.name: e for e in record.policies if e.name in paper.PAPER_POLICIES}
        assert list(usual) == list(paper.PAPER_POLICIES)
        for entry in record.policies:
            known = variants.settings_of(usual[entry.policy])
            own = 0.1 if protocol == "released" else ridge.get(entry.policy, 1.0)
            assert known == (1.0, own, paper.DELTA)
            changed = [value for value, other in zip(variants.settings_of(entry), known, strict=True) if value != other]
            assert len(changed) == (entry.name not in usual)
            assert all(entry.name.endswith(f" {value:g}") for value in changed)
    for policy in paper.PAPER_POLICIES:
        seen = [variants.settings_of(entry) for entry in full[0].policies if entry.policy == policy]
        for values, name in zip(zip(*seen, strict=True), variants.VALUES, strict=True):
            assert set(values) >= set(variants.VALUES[name]), "with the usual value"


@pytest.mark.parametrize(("setting", "name"), [("setting-1", "sensitivity-1"), ("setting-3", "factorial-3-K10")])
@pytest.mark.parametrize("protocol", ["released", "written"])
def test_the_usual_variant_repeats_the_published_run(setting: str, name: str, protocol: Any) -> None:
    short: dict[str, Any] = {"horizon": 60, "points": (60,), "probes": (6, 60), "trials": 1}
    (record,) = (each for each in paper.records_of([name.partition("-")[0]], [protocol]) if each.name == name)
    assert record.seeds[:5] == paper.experiment(setting).seeds
    names = paper.PAPER_POLICIES
    if name.startswith("factorial"):
        names = tuple(variants.combined_name(policy, protocol, protocol) for policy in names)
    published = replace(paper.experiment(setting, protocol), arms=record.arms, **short).only(paper.PAPER_POLICIES)
    runs = [run_unit(Job(next(each.units()))) for each in (published, replace(record, **short).only(names))]
    for run, variant in zip(*runs, strict=True):
        assert_allclose(variant.regret, run.regret, rtol=1e-9)
        assert variant.design is not None
        assert np.isfinite(variant.design["ellipsoid"]).all(), "coverage is measured in worlds that trials share"


def test_combinations_tell_the_coefficient_the_truth_about_the_world() -> None:
    worlds = {protocol: variants.factorial(protocol)[3] for protocol in ("released", "written")}  # type: ignore[arg-type]
    assert (worlds["released"].noise, worlds["written"].noise) == (0.01, 0.1)
    for world, bounds in (("released", (0.8, 0.5)), ("written", (1.0, 1.0))):
        record = worlds[world]
        assert (record.theta_bound, record.beta_bound) == bounds
        assert len(record.policies) == 12
        for entry in record.policies:
            policy: Any = make_policy(entry.policy, entry.settings, d1=5, d2=5, arms=100, horizon=30_000)
            _, gamma, ridge = (part.split()[0] for part in entry.name.split(", "))
            ridges = {"released": 0.1, "written": 100.0 if entry.policy == "HyLinUCB" else 1.0}
            assert policy.ridge == ridges[ridge]
            told: dict[str, Any] = {"noise": record.noise, "bound": bounds}
            expected = (
                SelfNormalised(**told)
                if gamma == "released"
                else AsWritten(horizon=30_000, arms=100, bound=max(bounds))
            )
            assert policy.exploration == expected
