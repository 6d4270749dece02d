"""Results of variants: what lies along each parameter, where the order is reversed, and what the sentences say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import AsWritten, SelfNormalised, paper
from hybandits.experiments.runner import Job, run_unit
from hybandits.paper import sensitivity
from hybandits.paper.beyond import topics_of
from hybandits.paper.sensitivity import COMBINATIONS, Combination, Factorial, courses, covers_from, least
from hybandits.policies.by_name import make_policy
from tests.support.fabricated_outcomes import as_results
from tests.support.fabricated_variants import of_combinations, of_one_setting


@pytest.mark.parametrize("protocol", ["released", "written"])
def test_one_value_differs_in_every_variant(protocol: paper.Protocol) -> None:
    full, short = (sensitivity.sensitivity(protocol, scale=scale) for scale in ("paper", "quick"))  # type: ignore[arg-type]
    ridge = {"HyLinUCB": 25.0} if protocol == "written" else {}
    for record in (*full, *short):
        usual = {e.name: e for e in record.policies if e.name in paper.PAPER_POLICIES}
        assert list(usual) == list(paper.PAPER_POLICIES)
        for entry in record.policies:
            known = sensitivity.settings_of(usual[entry.policy])
            own = 0.1 if protocol == "released" else ridge.get(entry.policy, 1.0)
            assert known == (1.0, own, paper.DELTA)
            changed = [
                value for value, other in zip(sensitivity.settings_of(entry), known, strict=True) if value != other
            ]
            assert len(changed) == (entry.name not in usual)
            assert all(entry.name.endswith(f" {value:g}") for value in changed)
    for policy in paper.PAPER_POLICIES:
        seen = [sensitivity.settings_of(entry) for entry in full[0].policies if entry.policy == policy]
        for values, name in zip(zip(*seen, strict=True), sensitivity.VALUES, strict=True):
            assert set(values) >= set(sensitivity.VALUES[name]), "with the usual value"


@pytest.mark.parametrize(("setting", "name"), [("setting-1", "sensitivity-1"), ("setting-3", "factorial-3-K10")])
@pytest.mark.parametrize("protocol", ["released", "written"])
def test_the_usual_variant_repeats_the_published_run(setting: str, name: str, protocol: Any) -> None:
    short: dict[str, Any] = {"horizon": 60, "points": (60,), "probes": (6, 60), "trials": 1}
    (record,) = (each for each in paper.records_of([name.partition("-")[0]], [protocol]) if each.name == name)
    assert record.seeds[:5] == paper.experiment(setting).seeds
    names = paper.PAPER_POLICIES
    if name.startswith("factorial"):
        names = tuple(sensitivity.combined_name(policy, protocol, protocol) for policy in names)
    published = replace(paper.experiment(setting, protocol), arms=record.arms, **short).only(paper.PAPER_POLICIES)
    runs = [run_unit(Job(next(each.units()))) for each in (published, replace(record, **short).only(names))]
    for run, variant in zip(*runs, strict=True):
        assert_allclose(variant.regret, run.regret, rtol=1e-9)
        assert variant.design is not None
        assert np.isfinite(variant.design["ellipsoid"]).all(), "coverage is measured in worlds that trials share"


def test_combinations_tell_the_coefficient_the_truth_about_the_world() -> None:
    worlds = {protocol: sensitivity.factorial(protocol)[3] for protocol in ("released", "written")}  # type: ignore[arg-type]
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
            known: dict[str, Any] = {"noise": record.noise, "bound": bounds}
            expected = (
                SelfNormalised(**known)
                if gamma == "released"
                else AsWritten(horizon=30_000, arms=100, bound=max(bounds))
            )
            assert policy.exploration == expected


def test_courses_have_the_variants_in_which_one_parameter_differs() -> None:
    outcome = of_one_setting("written")
    along = courses(outcome)
    assert set(along) == {(policy, parameter) for policy in paper.PAPER_POLICIES for parameter in sensitivity.VALUES}
    values = {parameter: [v.value for v in along["HyLinUCB", parameter]] for parameter in sensitivity.VALUES}
    assert values == {"gamma": [0.01, 0.1, 1.0], "lambda": [0.1, 1.0, 10.0, 25.0], "delta": [0.01, 0.1]}
    assert [v.value for v in along["LinUCB", "lambda"]] == [0.1, 1.0, 10.0]
    best = least(along["HyLinUCB", "gamma"])
    runs = outcome.final("HyLinUCB, gamma x 0.01")
    assert_allclose(best[:6], (0.01, runs.mean(), runs.min(), runs.max(), 1.2, 0.5))
    assert not best.covers
    assert covers_from(along["HyLinUCB", "gamma"]) == 0.1
    assert covers_from(along["LinUCB", "gamma"]) == 0.01
    assert covers_from([best]) is None


def test_the_sentences_on_sensitivity_carry_the_numbers() -> None:
    results = as_results(of_one_setting("written"), of_one_setting("released"))
    (topic,) = (topic for topic in topics_of(results) if topic.key == "sensitivity")
    text = topic.sentences(results)
    assert (
        "by a factor of 1.98 with 0.01 to 1 times gamma, 10 to 23.6 with lambda = 0.1 to 25 and 1.5 with delta" in text
    )
    assert (
        "under the written protocol regret is least with 0.01 times gamma, and the confidence sets contain the truth "
        "in all runs from 0.01 to 0.1 times gamma on; the former is the smaller in 1 of 3 cases." in text
    )


@pytest.mark.slow
def test_combinations_are_ordered_and_single_differences_reverse_pairs() -> None:
    """The ridge as written costs HyLinUCB 200 everywhere; LinUCB and DisLinUCB differ in the written world alone."""

    def levels(c: Combination, policy: str) -> float:
        regret = 200.0 if policy == "LinUCB" else 200.0 + 100.0 * (c.world == "written")
        return 100.0 + 200.0 * (c.ridge == "written") if policy == "HyLinUCB" else regret

    results = as_results(*(of_combinations(world, levels) for world in sensitivity.PROTOCOLS))
    case = Factorial(results, "factorial-1")
    assert [str(c) for c in case.regrets][:5] == [
        "released", "gamma written", "lambda written", "world written", "gamma, lambda written"
    ]  # fmt: skip
    start, last = COMBINATIONS[0], COMBINATIONS[-1]
    assert (str(last), last) == ("written", ("written",) * 3)
    assert case.order(start).startswith("HyLinUCB < ")
    assert case.order(start).partition(" < ")[2] in ("LinUCB ~ DisLinUCB", "DisLinUCB ~ LinUCB")
    assert case.order(Combination("released", "released", "written")) == "HyLinUCB < LinUCB < DisLinUCB"
    assert sorted(case.reversed_pairs(start, "lambda")) == ["DisLinUCB before HyLinUCB", "LinUCB before HyLinUCB"]
    assert case.reversed_pairs(start, "gamma") == case.reversed_pairs(start, "world") == []
    (topic,) = (topic for topic in topics_of(results) if topic.key == "factorial")
    text = topic.sentences(results)
    assert "in setting 1 in 4 of 8 (released; gamma written; world written; gamma, world written)" in text
    assert (
        "from the released protocol: lambda in setting 1. And from the written protocol: lambda in setting 1." in text
    )


def test_one_world_alone_has_four_combinations() -> None:
    results = as_results(of_combinations("written", lambda c, policy: 100.0 + len(policy)))
    (case,) = sensitivity.factorials(results)
    assert {c.world for c in case.regrets} == {"written"}
    assert case.reversed_pairs(COMBINATIONS[0], "gamma") == []
    assert case.reversed_pairs(COMBINATIONS[-1], "world") == []
    assert "in setting 1 in 0 of 4 (none)" in sensitivity.describe_factorial(results)
