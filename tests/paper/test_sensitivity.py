"""Results of variants: what lies along each parameter, where the order is reversed, and what the sentences say."""

from __future__ import annotations

from numpy.testing import assert_allclose

from hybandits import paper
from hybandits.paper import sensitivity, variants
from hybandits.paper.beyond import topics_of
from hybandits.paper.sensitivity import COMBINATIONS, Combination, Factorial, courses, covers_from, least
from tests.support.fabricated_outcomes import as_results
from tests.support.fabricated_variants import of_combinations, of_one_setting


def test_courses_have_the_variants_in_which_one_parameter_differs() -> None:
    outcome = of_one_setting("written")
    found = courses(outcome)
    assert set(found) == {(policy, parameter) for policy in paper.PAPER_POLICIES for parameter in variants.VALUES}
    values = {parameter: [v.value for v in found["HyLinUCB", parameter]] for parameter in variants.VALUES}
    assert values == {"gamma": [0.01, 0.1, 1.0], "lambda": [0.1, 1.0, 10.0, 25.0], "delta": [0.01, 0.1]}
    assert [v.value for v in found["LinUCB", "lambda"]] == [0.1, 1.0, 10.0]
    best = least(found["HyLinUCB", "gamma"])
    runs = outcome.final("HyLinUCB, gamma x 0.01")
    assert_allclose(best[:6], (0.01, runs.mean(), runs.min(), runs.max(), 1.2, 0.5))
    assert not best.covers
    assert covers_from(found["HyLinUCB", "gamma"]) == 0.1
    assert covers_from(found["LinUCB", "gamma"]) == 0.01
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
