"""Exponents of regret: one factor varies at a time, and slopes are those of direct computation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper import bounds, theorems
from hybandits.paper.beyond import topics_of
from hybandits.paper.bounds import uniform_regret
from hybandits.paper.exponents import BASE, BASE_ARMS, Growth, added_per_arm, exponents, local_exponents, records
from tests.support.fabricated_outcomes import ORDER_1, as_results, fabricated_outcome, power_curves, short_setting

POWERS = {"K": 0.8, "d1": 0.1, "d2": 0.4, "T": 0.3}


def powers(protocol: paper.Protocol = "released", *, spread: float = 0.05, leave_out: str = "none") -> Results:
    """Short results in which regret is a product of powers, times a factor of every environment and case."""

    def outcome_of(e: Experiment) -> Outcome:
        scale = e.d1 ** POWERS["d1"] * e.d2 ** POWERS["d2"] * (np.array(e.points) / e.horizon) ** POWERS["T"]

        def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
            random = np.random.default_rng([environment, arms, e.d1, e.d2, len(policy)])
            level: FloatArray = scale * arms ** POWERS["K"] * math.exp(random.normal(0, spread))
            return level

        return fabricated_outcome(e, curve)

    return as_results(*(outcome_of(e) for e in records(protocol, scale="quick") if leave_out not in e.name))


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("protocol", ["released", "written"])
def test_one_factor_varies_at_a_time(protocol: paper.Protocol, scale: paper.Scale) -> None:
    base, *others = records(protocol, scale=scale)
    assert (base.name, base.d1, base.d2) == (BASE, 5, 5)
    assert BASE_ARMS in base.arms
    for record in others:
        assert replace(record, name=base.name, d1=5, d2=5, arms=base.arms) == base
        assert (record.d1 == 5) != (record.d2 == 5)
        assert record.arms == (BASE_ARMS,)
    assert not {*paper.experiment("setting-3").seeds} & {*base.seeds}
    assert base.policies == tuple(paper.entry(name, protocol) for name in (*paper.PAPER_POLICIES, "HyIDS"))


def test_powers_are_recovered_with_intervals() -> None:
    exact = exponents(powers(spread=0.0), "released")
    assert [row.factor for row in exact] == [factor for factor in POWERS for _ in range(4)]
    for row in exact:
        assert row.regret is not None
        assert row.regret[:3] == pytest.approx([POWERS[row.factor]] * 3)
    noisy = [row for row in exponents(powers(), "released") if row.factor != "T"]
    assert all(row.regret and row.regret.low < row.regret.mean < row.regret.high for row in noisy)
    assert sum(row.regret is not None and row.regret.low < POWERS[row.factor] < row.regret.high for row in noisy) >= 9
    assert exponents(powers(), "written") == []


def test_exponents_of_the_theorems_are_slopes_over_the_same_range() -> None:
    rows = {(row.factor, row.policy): row for row in exponents(powers(), "released")}
    problem = bounds.most_diverse(records("released", scale="quick")[0], BASE_ARMS, delta=paper.DELTA)
    shapes = [replace(problem, d2=d, rho=1 / d) for d in (5, 10, 20, 40)]
    for policy in theorems.POLICIES:
        for kind, of in (("order", theorems.stated_order), ("bound", bounds.proved_bound)):
            values = [of(policy, shape) for shape in shapes]
            slope = np.polyfit(np.log([5, 10, 20, 40]), np.log(values), 1)[0]
            assert getattr(rows["d2", policy], kind) == pytest.approx(slope)
    # sqrt(T log(K T/delta)) from T/2 to T has the exponent 1/2 + 1/(2 log(K T/delta)) somewhere in between.
    low, high = (0.5 + 0.5 / math.log(BASE_ARMS * t / 0.01) for t in (3000, 1500))
    assert low < rows["T", "DisLinUCB"].order < high
    assert math.isnan(rows["K", "HyIDS"].order)
    assert math.isnan(rows["K", "HyIDS"].bound)


def test_factors_with_one_value_are_left_out() -> None:
    factors = {row.factor for row in exponents(powers(leave_out="-d1-"), "released")}
    assert factors == {"K", "d2", "T"}
    assert exponents(powers(leave_out=BASE), "released") == []


def test_sentences_count_exponents_beside_the_orders() -> None:
    """All policies have the same powers: 0.8 in K, 0.1 in d1, 0.4 in d2 and 0.3 in T."""
    results = powers(spread=0.0)
    (topic,) = (topic for topic in topics_of(results) if topic.key == "exponents")
    sentences = topic.sentences(results)
    for factor, orders, sides in (
        ("0.8 (released) in K", "0.532 to 1.33", "1.05 to 2.07"),
        ("0.1 (released) in d1", "0.05 to 0.362", "1.2 to 2.03"),
        ("0.4 (released) in d2", "0.273 to 0.492", "1.79 to 2.06"),
        ("0.3 (released) in T", "0.511 to 0.541", "0.0506 to 0.118"),
    ):
        assert f"{factor}, against {orders} and {sides}" in sentences
    # Above: DisLinUCB in K, LinUCB and HyLinUCB in d1, HyLinUCB and DisLinUCB in d2; the other seven are below.
    assert "Of 12 exponents 7 are below" in sentences
    assert "and 5 above it (1 in K, 2 in d1 and 2 in d2), which contradicts nothing at T = 3,000" in sentences
    only_hyids = as_results(*(replace(o, experiment=o.experiment.only(["HyIDS"])) for o in results.outcomes.values()))
    assert topic.sentences(only_hyids).startswith("None of the paper's algorithms")


def test_powers_and_lines_are_recovered() -> None:
    arms = np.array([10.0, 25.0, 400.0])
    np.testing.assert_allclose(local_exponents(arms, 3 * arms**0.7), [0.7, 0.7])
    np.testing.assert_allclose(added_per_arm(arms, 3 * arms + 100), [3, 3])


def test_regret_is_divided_by_that_of_uniform_choice() -> None:
    """The expected regret of uniform choice is what it loses on average when it is played."""
    e = short_setting("setting-3", arms=(10, 50), seeds=(5, 6))
    growth = Growth(fabricated_outcome(e, power_curves(e, ORDER_1)), ["HyLinUCB", "LinUCB"])
    random = np.random.default_rng(0)
    for i, arms in enumerate((10, 50)):
        lost = []
        for seed in e.seeds:
            for _, means, best in e.world(arms, seed).rounds(e.horizon):
                lost.append(best - means[np.arange(len(means)), random.integers(arms, size=len(means))])
        per_round = np.concatenate(lost)
        error = np.hypot(per_round.std() / np.sqrt(len(per_round)), uniform_regret(e, arms).error)
        assert growth.uniform[i] == pytest.approx(e.horizon * per_round.mean(), abs=4 * e.horizon * error)
    runs = growth.regret["LinUCB"]
    assert runs.shape == (6, 2)
    np.testing.assert_allclose(growth.share["LinUCB"], runs.mean(axis=0) / growth.uniform)
    assert sorted(set(growth.units)) == [0, 1]


def test_all_sampled_rounds_count_alike_whatever_the_number_of_environments() -> None:
    e = short_setting("setting-3", seeds=(5, 6), horizon=100_000, points=(100_000,))
    errors = [uniform_regret(replace(e, seeds=tuple(range(count))), 50).error for count in (2, 20)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
