"""The rules, compiled and plain, against their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import arrow, decisions, random
from tests.support.blocks import RIDGE, SHAPES, Blocks


class Candidates:
    """Six candidates for blocks that have learned: two of arms 0 and 1 each, one of arm 2, one of a new arm."""

    def __init__(self, d1: int, d2: int) -> None:
        random = np.random.default_rng(1)
        self.blocks = Blocks(d1, d2).learn()
        self.x, self.z = random.normal(size=(6, d1)), random.normal(size=(6, d2))
        self.slots = np.array([0, 1, 2, -1, 1, 0])
        self.coefficients = np.array([0.5, 0.1, 2.0, d1 + d2, 1.0])
        self.normals = random.normal(size=d1 + 6)

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        return self.x, self.z, self.slots

    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        mean, width = np.empty(6), np.empty(6)
        assert arrow.score_rows(*self.rows, self.blocks.arm_score, self.blocks.shared_score, RIDGE, mean, width)
        return mean, width


def test_uniform_choice_is_that_of_its_random_number(mode: str) -> None:
    x, z = np.ones((5, 2)), np.ones((5, 1))
    chosen = [decisions.choose_uniform(x, z, 7, 0, t) for t in range(200)]
    assert chosen == [int(5 * random.uniform(7, random.DECIDE, t)) for t in range(200)]
    assert set(chosen) == set(range(5))
    keyed = [decisions.choose_uniform(x, z, 7, random.KEYED, t) for t in range(200)]
    assert keyed == [int(5 * random.uniform(7, random.DECIDE + random.KEYED, t)) for t in range(200)]
    assert decisions.choose_uniform(np.full((5, 2), np.nan), z, 7, 0, 1) == -1
    assert random.place_among(1.0, 5) == 4, "a number that was rounded up still is a place"


def test_the_radius_is_its_formula(mode: str) -> None:
    coefficients = np.array([0.5, 0.1, 2.0, 7.0, 0.25])
    assert_allclose(decisions.radius(coefficients, 10), 0.5 + 0.1 * np.sqrt(2 + 7 * np.log(1 + 10 * 0.25)))
    assert decisions.radius(np.array([0.5, 0.0, np.nan, 0.0, 0.0]), 10) == 0.5


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
@pytest.mark.parametrize("by_arm", [False, True])
def test_the_highest_bound_is_chosen(mode: str, d1: int, d2: int, by_arm: bool) -> None:
    candidates = Candidates(d1, d2)
    blocks, slots = candidates.blocks, candidates.slots
    mean, width = candidates.scores()
    pulls = np.where(slots >= 0, blocks.pulls[slots], 0)
    gamma = [decisions.radius(candidates.coefficients, t) for t in (pulls if by_arm else [10] * 6)]
    state = blocks.arm_score, blocks.pulls, blocks.shared_score, RIDGE, candidates.coefficients
    index, *rest = decisions.choose_ucb(*candidates.rows, *state, -1 if by_arm else 10)
    assert index == (mean + np.array(gamma) * width).argmax()
    assert_allclose(rest, [mean[index], width[index], 1.0], rtol=1e-12)
    candidates.x[:] = np.nan
    candidates.z[:] = np.nan
    with np.errstate(all="ignore"):
        assert decisions.choose_ucb(*candidates.rows, *state, 10)[0] == -1


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_a_posterior_sample_is_its_formula(mode: str, d1: int, d2: int) -> None:
    """theta~ = R_0^-1 (q_0 + sigma xi_0), then score_i = y.theta~ + w.q_i + sigma |w| xi_i."""
    candidates = Candidates(d1, d2)
    blocks, sigma, xi = candidates.blocks, 0.3, np.empty(d1 + 6)
    random.fill_normals(5, 0, 9, xi)
    y, square, product = arrow.eliminated(*candidates.rows, blocks.arm_score, RIDGE, np.empty(0))
    theta = np.linalg.solve(blocks.shared(), blocks.shared_score[:d1] + sigma * xi[:d1])
    sample = y[:, :d1] @ theta + product + sigma * np.sqrt(square) * xi[d1:]
    expected = sample.argmax()
    values = decisions.sample_values(y, d1, square, product, blocks.shared_score, sigma, 5, 0, 9)
    assert_allclose(values, sample, rtol=1e-12)
    state = blocks.arm_score, blocks.shared_score, RIDGE, sigma, np.empty(0)
    assert_array_equal(decisions.sample_candidates(*candidates.rows, *state, 5, 0, 9), values)
    again = decisions.sample_candidates(*candidates.rows, *state[:-1], np.full(6, 1e6), 5, 0, 9)
    assert_allclose(again, sample, atol=4 * sigma * 1e3)
    assert (again != values).all()
    sampled = decisions.SAMPLING, *candidates.rows, *state, 5, 0, 9
    best, mean, width, _ = decisions.choose_posterior(*sampled)
    means, widths = candidates.scores()
    assert best == expected
    assert_allclose((mean, width), (means[best], widths[best]), rtol=1e-12)
    candidates.x[:] = np.inf
    candidates.z[:] = np.inf
    with np.errstate(all="ignore"):
        assert decisions.choose_posterior(*sampled)[0] == -1


def test_the_walk_through_levels(mode: str) -> None:
    """Means 0: only widths decide. Level 0 for all narrow, the widest where one is wide, else on with those close."""
    shared = np.zeros(arrow.score_size(1, 0))
    arrow.reset_block(np.zeros(1), 0, shared, 0, 1, 0, 1.0)
    x, z = np.array([[0.1], [0.4], [0.2]]), np.zeros((3, 0))
    common = np.full(3, -1), np.arange(3), 3
    last = np.zeros(0), shared, 1.0, False
    index, level, _, width, _ = decisions.walk_level(1, x, z, *common, 1.0, 0.4, *last)
    assert (index, level) == (1, 0)
    assert width == pytest.approx(0.4)
    assert decisions.walk_level(2, x, z, *common, 1.0, 0.01, *last)[:2] == (1, 2)
    assert decisions.walk_level(4, x, z, *common, 1.0, 0.01, *last[:-1], True)[:2] == (0, 4)
    assert decisions.walk_level(3, x, z, *common, 1.0, 0.01, *last[:-1], True)[:2] == (1, 3)
    left = np.arange(3)
    index, _, _, _, count = decisions.walk_level(
        1, x, z, common[0], left, 3, 1.0, 0.01, np.zeros(0), shared, 1.0, False
    )
    assert (index, count) == (-1, 3)
    left = np.array([2, 0])
    index, level, _, _, _ = decisions.walk_level(
        4, x, z, common[0], left, 2, 1.0, 0.01, np.zeros(0), shared, 1.0, False
    )
    assert (index, level) == (2, 4)


def test_the_walk_goes_on_with_those_close_to_the_highest_bound(mode: str) -> None:
    """Widths 0.1 each and means 0, 1 and 0.8: at level 2 those within 0.5 of the highest bound stay."""
    shared = np.zeros(arrow.score_size(1, 0))
    arrow.reset_block(np.zeros(1), 0, shared, 0, 1, 0, 1.0)
    d2 = 1
    score = np.zeros(3 * arrow.score_size(d2, 1))
    factor = np.zeros(3 * arrow.factor_size(d2, 1))
    for slot, q in enumerate((0.0, 10.0, 8.0)):
        start = slot * arrow.score_size(d2, 1)
        arrow.reset_block(factor, slot * arrow.factor_size(d2, 1), score, start, d2, 1, 1.0)
        score[start] = q
    x, z, left = np.zeros((3, 1)), np.full((3, 1), 0.1), np.arange(3)
    last = score, shared, 1.0, False
    step = decisions.walk_level(2, x, z, np.arange(3), left, 3, 1.0, 0.01, *last)
    assert (step[0], step[4]) == (-1, 2)
    assert left[:2].tolist() == [1, 2]
    x[0] = np.nan
    with np.errstate(all="ignore"):
        assert decisions.walk_level(2, x, z, np.arange(3), left, 2, 1.0, 0.01, *last)[0] == -1
        assert decisions.walk_level(2, x, z, np.arange(3), np.arange(3), 3, 1.0, 0.01, *last)[0] == -2


def taught_estimator() -> LearnedRidge:
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=3, d2=2)
    for i in range(12):
        estimator.learn(i % 3, random.standard_normal(3), random.standard_normal(2), float(random.standard_normal()))
    return estimator


def test_learned_settings_are_used_once_there_are_any(mode: str) -> None:
    random = np.random.default_rng(3)
    x, z, slots = random.standard_normal((4, 3)), random.standard_normal((4, 2)), np.full(4, -1)
    blank = LearnedRidge(d1=3, d2=2).models[0].scoring
    uniform = [decisions.choose_learned(decisions.SAMPLING, x, z, slots, *blank, 5, 0, t) for t in range(40)]
    assert {choice[0] for choice in uniform} == {0, 1, 2, 3}
    assert {choice[3] for choice in uniform} == {0.25}
    estimator = taught_estimator()
    model, slots = estimator.models[0], np.array([*(estimator.slot(i) for i in range(3)), 0])
    arm_score, shared_score, _, _ = model.scoring
    sigma, parameters = model.noise, 3 + 2 * 3
    for rule, noise in (
        (decisions.SAMPLING, sigma * (1 - 0.3 * np.exp(-12 / parameters))),
        (decisions.INFORMATION, sigma),
    ):
        for t in range(5):
            wanted = decisions.choose_posterior(
                rule, x, z, slots, arm_score, shared_score, 1.0, noise, np.empty(0), 5, 0, t
            )
            got = decisions.choose_learned(rule, x, z, slots, *model.scoring, 5, 0, t)
            assert_allclose(got, wanted, rtol=1e-14)
    x[0, 0] = np.nan
    with np.errstate(all="ignore"):
        for rule in (decisions.SAMPLING, decisions.INFORMATION):
            assert decisions.choose_learned(rule, x, z, slots, *model.scoring, 5, 0, 0)[0] == -1


class Many:
    """Five decisions among four candidates, one of a new arm, some of them left out by a mask."""

    def __init__(self, rule: int, kind: str, masked: bool) -> None:
        random = np.random.default_rng(3)
        self.x, self.z = random.standard_normal((5, 4, 3)), random.standard_normal((5, 4, 2))
        self.mask = random.random((5, 4)) < 0.5
        self.mask[:, 1] = True
        self.shown = self.mask if masked else np.zeros((0, 0), bool)
        if kind == "learned":
            estimator = taught_estimator()
            self.slots = np.array([[*(estimator.slot(i) for i in range(3)), -1]])
            self.rule = decisions.Rule(rule + decisions.LEARNED, estimator.addresses, np.ones(1))
        else:
            self.slots = np.array([[0, 1, 2, -1]])
            self.rule = decisions.Rule(rule, Blocks(3, 2).learn().table, np.array([0.5, 0.1, 2.0, 5.0, 1.0]))

    def decide(self, candidates: tuple[np.ndarray, ...], decision: int) -> Any:
        return decisions.decide(*self.rule, *candidates, 10, 7, 0, decision)

    def rows(self, b: int) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        rows = np.flatnonzero(self.mask[b]) if len(self.shown) else np.arange(4)
        return rows, (self.x[b][rows], self.z[b][rows], self.slots[0][rows])


KINDS = [
    (decisions.BOUNDS, "ridge"), (decisions.OWN_BOUNDS, "ridge"), (decisions.UNIFORM, "ridge"),
    (decisions.SAMPLING, "ridge"), (decisions.INFORMATION, "ridge"), (decisions.SAMPLING, "learned"),
    (decisions.INFORMATION, "learned"),
]  # fmt: skip


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("rule", "kind"), KINDS)
def test_batches_are_single_decisions(mode: str, rule: int, kind: str, masked: bool) -> None:
    many = Many(rule, kind, masked)
    outcome = np.full(5, -1), np.empty(5), np.empty(5), np.empty(5)
    batch = many.x, many.z, many.slots, many.shown, 10, 7, 100
    assert decisions.choose_batch(many.rule, *batch, 1, 4, *outcome) == -1
    for b in range(1, 4):
        rows, candidates = many.rows(b)
        i, *wanted = many.decide(candidates, 100 + b)
        assert outcome[0][b] == rows[i]
        assert_allclose([part[b] for part in outcome[1:]], wanted, rtol=1e-12)
    assert outcome[0][0] == outcome[0][4] == -1
    if rule in (decisions.BOUNDS, decisions.OWN_BOUNDS) and not masked:
        together = np.empty(5, np.int64), np.empty(5), np.empty(5)
        assert decisions.choose_together(many.rule, many.x, many.z, many.slots[0], 10, 1, 4, *together) == -1
        for mine, theirs in zip(together, outcome, strict=False):
            assert_allclose(mine[1:4], theirs[1:4], rtol=1e-12)
    many.x[3] = np.nan
    with np.errstate(all="ignore"):
        assert decisions.choose_batch(many.rule, *batch, 0, 5, *outcome) == 3


@pytest.mark.parametrize("function", [decisions.place_drawn, decisions.place_drawn.py_func])
def test_a_place_is_drawn_where_the_sum_of_the_chances_exceeds_the_number(function: Any) -> None:
    numbers = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        chances = numbers.dirichlet(np.ones(n)) * (numbers.random(n) < 0.7) + 1e-3
        edges = np.cumsum(chances)
        for uniform in [*numbers.random(50), 1e-12, 1 - 1e-16]:
            expected = min(int(np.searchsorted(edges, uniform * edges[-1], side="right")), n - 1)
            assert function(chances, uniform) == expected


@pytest.mark.parametrize("function", [decisions.draw_places, decisions.draw_places.py_func])
def test_places_are_drawn_from_own_chances_and_the_floor(function: Any) -> None:
    numbers = np.random.default_rng(0)
    own = numbers.dirichlet(np.ones(6), size=8)
    chances, places, decision = np.empty((8, 6)), np.empty(8, np.int64), np.arange(40, 48)
    function(own, 0.1, 5, 3, decision, chances, places)
    assert_allclose(chances, 0.9 * own + 0.1 / 6, rtol=1e-15)
    drawn = [decisions.place_drawn(chances[b], random.uniform(5, 3, 40 + b)) for b in range(8)]
    assert places.tolist() == drawn
