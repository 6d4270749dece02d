"""Every kernel, compiled and plain, against a dense oracle or the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from hybandits.foundation import compiling
from hybandits.kernels import arrow, decisions, gram, simd
from tests.support.plain import kernels, plain, refresh_all

SHAPES = [(3, 2), (4, 4), (5, 6), (9, 1), (0, 5), (6, 0), (1, 8)]
RIDGE = 0.7


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with plain() if request.param == "plain" else nullcontext():
        yield request.param


class Blocks:
    """Blocks of a few arms with some rows learned, and the dense matrices they stand for."""

    def __init__(self, d1: int, d2: int, arms: int = 3, rows: int = 12, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.d1, self.d2, self.arms = d1, d2, arms
        self.f, self.h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
        self.arm_factor, self.arm_score = np.zeros(arms * self.f), np.zeros(arms * self.h)
        self.shared_factor, self.shared_score = np.zeros(arrow.factor_size(d1, 0)), np.zeros(arrow.score_size(d1, 0))
        self.pulls = np.zeros(arms, np.int64)
        for i in range(arms):
            arrow.reset_block(self.arm_factor, i * self.f, self.arm_score, i * self.h, d2, d1, RIDGE)
        arrow.reset_block(self.shared_factor, 0, self.shared_score, 0, d1, 0, RIDGE)
        self.slots = random.integers(0, arms, rows)
        self.x, self.z = random.normal(size=(rows, d1)), random.normal(size=(rows, d2))
        self.rewards = random.normal(size=rows)

    @property
    def state(self) -> tuple[np.ndarray, ...]:
        return self.arm_factor, self.arm_score, self.pulls, self.shared_factor, self.shared_score

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.arm_factor, self.arm_score, self.shared_factor, self.shared_score

    def learn(self) -> Blocks:
        assert arrow.learn_rows(self.slots, self.x, self.z, self.rewards, *self.state, 0)
        return self

    def factor(self, i: int) -> np.ndarray:
        """[R | T] of arm i as a matrix."""
        full = np.zeros((self.d2, self.d2 + self.d1))
        full[np.arange(self.d2)[:, None] <= np.arange(self.d2 + self.d1)] = self.arm_factor[
            i * self.f : (i + 1) * self.f
        ]
        return full

    def shared(self) -> np.ndarray:
        full = np.zeros((self.d1, self.d1))
        full[np.triu_indices(self.d1)] = self.shared_factor
        return full

    def triangle(self, score: np.ndarray, d: int) -> np.ndarray:
        """L of a score block as a matrix."""
        full, o = np.zeros((4 * ((d + 3) // 4), d)), d
        for b in range((d + 3) // 4):
            for k in range(min(4 * b + 4, d)):
                full[4 * b : 4 * b + 4, k] = score[o : o + 4]
                o += 4
        return full[:d]

    def own(self, i: int) -> np.ndarray:
        return self.slots == i


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_learned_factors_are_those_of_the_dense_matrix(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    schur = RIDGE * np.eye(d1) + blocks.x.T @ blocks.x
    for i in range(blocks.arms):
        x, z = blocks.x[blocks.own(i)], blocks.z[blocks.own(i)]
        r, t = blocks.factor(i)[:, :d2], blocks.factor(i)[:, d2:]
        w, cross = RIDGE * np.eye(d2) + z.T @ z, x.T @ z
        assert_allclose(r.T @ r, w, rtol=1e-12, atol=1e-12)
        assert_allclose(r.T @ t, cross.T, rtol=1e-12, atol=1e-12)
        score = blocks.arm_score[i * blocks.h : (i + 1) * blocks.h]
        assert_allclose(blocks.triangle(score, d2) @ r.T, np.eye(d2), atol=1e-12)
        assert_allclose(r.T @ score[:d2], z.T @ blocks.rewards[blocks.own(i)], rtol=1e-11, atol=1e-12)
        schur -= cross @ np.linalg.solve(w, cross.T)
    r = blocks.shared()
    assert_allclose(r.T @ r, schur, rtol=1e-12, atol=1e-12)
    assert_allclose(blocks.triangle(blocks.shared_score, d1) @ r.T, np.eye(d1), atol=1e-12)
    assert blocks.pulls.sum() == len(blocks.slots)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_refresh_makes_what_the_rotations_kept(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    kept = blocks.arm_score.copy(), blocks.shared_score.copy()
    refresh_all(blocks.arms, d1, d2, *blocks.parts)
    assert_allclose(blocks.arm_score, kept[0], rtol=1e-11, atol=1e-13)
    assert_allclose(blocks.shared_score, kept[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_scores_choices_and_parameters_agree_compiled_and_plain(d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    random = np.random.default_rng(1)
    n = 6
    x, z = random.normal(size=(n, d1)), random.normal(size=(n, d2))
    slots = np.array([0, 1, 2, -1, 1, 0])
    coefficients = np.array([0.5, 0.1, 2.0, d1 + d2, 1.0])
    xi = random.normal(size=d1 + n)

    def everything() -> dict[str, object]:
        mean, width = np.empty(n), np.empty(n)
        assert arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, mean, width)
        y, square, product = np.zeros((n, 4 * ((d1 + 3) // 4))), np.empty(n), np.empty(n)
        arrow.eliminate_rows(x, z, slots, blocks.arm_score, RIDGE, y, square, product)
        theta, beta = np.empty(d1), np.empty(d2)
        arrow.transpose_times(blocks.shared_score, 0, d1, blocks.shared_score[:d1], theta)
        arrow.arm_parameters(blocks.arm_score, blocks.h, d1, d2, theta, beta)
        state = blocks.arm_score, blocks.pulls, blocks.shared_score, RIDGE, coefficients
        return {
            "mean": mean,
            "width": width,
            "y": y[:, :d1],
            "square": square,
            "product": product,
            "theta": theta,
            "beta": beta,
            "ucb": decisions.choose_ucb(x, z, slots, *state, 10),
            "ucb by arm": decisions.choose_ucb(x, z, slots, *state, -1),
            "thompson": decisions.choose_thompson(
                x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, 0.3, xi, 0
            ),
            "usable": arrow.usable(x, z),
            "sample": decisions.sample_best(y, d1, square, product, blocks.shared_score, 0.3, xi, 0),
            "radius": decisions.radius(coefficients, 10),
        }

    compiled = everything()
    with plain():
        interpreted = everything()
    best, mean, width = compiled["thompson"]  # type: ignore[misc]
    assert best == compiled["sample"]
    assert_allclose((mean, width), (compiled["mean"][best], compiled["width"][best]), rtol=1e-12)  # type: ignore[index]
    for name, value in compiled.items():
        assert_allclose(value, interpreted[name], rtol=1e-12, atol=1e-13, err_msg=name)
    assert_allclose(compiled["radius"], 0.5 + 0.1 * np.sqrt(2 + (d1 + d2) * np.log(11)))


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_a_removed_row_leaves_no_trace(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    before = [array.copy() for array in blocks.parts]
    arrow.learn_row(1, blocks.x[0], blocks.z[0], 0.5, *blocks.state, 0)
    row = np.concatenate([blocks.z[0], blocks.x[0]])
    rest = arrow.remove_row(blocks.arm_factor, blocks.f, blocks.arm_score, blocks.h, d2, d1, row, 0.5)
    arrow.remove_row(blocks.shared_factor, 0, blocks.shared_score, 0, d1, 0, row[d2:], rest)
    refresh_all(blocks.arms, d1, d2, *blocks.parts)
    for got, expected in zip(blocks.parts, before, strict=True):
        assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_raising_the_ridge_equals_starting_with_it(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    arrow.raise_ridge(np.arange(3), 1.3, d1, d2, blocks.arm_factor, blocks.arm_score, *blocks.state[3:])
    other = Blocks(d1, d2)
    for i in range(3):
        arrow.reset_block(other.arm_factor, i * other.f, other.arm_score, i * other.h, d2, d1, RIDGE + 1.3)
    arrow.reset_block(other.shared_factor, 0, other.shared_score, 0, d1, 0, RIDGE + 1.3)
    other.learn()
    for got, expected in zip(blocks.state, other.state, strict=True):
        assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_folding_two_halves_together_equals_learning_all(mode: str, d1: int, d2: int) -> None:
    first, second, both = Blocks(d1, d2), Blocks(d1, d2), Blocks(d1, d2).learn()
    for part, rows in ((first, slice(0, 5)), (second, slice(5, None))):
        arrow.learn_rows(part.slots[rows], part.x[rows], part.z[rows], part.rewards[rows], *part.state, 0)
    mine = first.parts
    for i in range(3):
        arrow.fold_arm(i, i, d1, d2, *mine, second.arm_factor, second.arm_score)
    arrow.fold_shared(d1, first.shared_factor, first.shared_score, second.shared_factor, second.shared_score)
    arrow.remove_second_ridge(np.arange(3), RIDGE, d1, d2, *mine)
    for got, expected in zip(mine, both.parts, strict=True):
        assert_allclose(got, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_sums_factor_into_the_same_arrow(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    shared, own = np.zeros(d1 * gram.padded(d1)), np.zeros(4 * gram.block_size(d2, d1))
    for i, slot in enumerate(blocks.slots):
        gram.add_row(slot, blocks.x[i], blocks.z[i], blocks.rewards[i], True, shared, own)
    factor, shared_factor, theta, beta = np.zeros_like(own), np.zeros_like(shared), np.zeros(d1), np.zeros((4, d2))
    assert gram.estimate(1, RIDGE, True, d1, d2, shared, own, factor, shared_factor, theta, beta)
    expected = np.empty(d1)
    arrow.transpose_times(blocks.shared_score, 0, d1, blocks.shared_score[:d1], expected)
    assert_allclose(theta, expected, rtol=1e-9, atol=1e-11)
    for i in range(3):
        parameters = np.empty(d2)
        arrow.arm_parameters(blocks.arm_score, i * blocks.h, d1, d2, expected, parameters)
        assert_allclose(beta[i], parameters, rtol=1e-9, atol=1e-11)
    assert (beta[3] == 0).all()
    mean, width = np.empty(4), np.empty(4)
    x, z, slots = blocks.x[:4], blocks.z[:4], np.array([2, 0, -1, 1])
    arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, mean, width)
    best, highest = gram.best_mean(x, z, slots, theta, beta)
    assert best == mean.argmax()
    assert_allclose(highest, mean.max(), rtol=1e-9, atol=1e-11)
    for i, slot in enumerate(slots):
        assert_allclose(gram.width_of(x[i], z[i], slot, RIDGE, True, factor, shared_factor), width[i], rtol=1e-9)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("draw", [0.1, 0.9])
def test_a_round_of_sums_is_its_rows_one_by_one(mode: str, d1: int, d2: int, cross: bool, draw: float) -> None:
    """draw < p = 0.5: every candidate with its pseudo-reward; else the arm played alone."""
    random = np.random.default_rng(4)
    n, m = 6, d1 if cross else 0
    x, z, slots = random.normal(size=(n, d1)), random.normal(size=(n, d2)), np.array([4, 0, -1, 2, 5, 1])
    shared, own = np.zeros(d1 * gram.padded(d1)), np.zeros(2 * 4 * gram.block_size(d2, m))
    for i in (0, 3, 5):
        gram.add_row(slots[i], x[i] + 1, z[i] - 1, 0.5, cross, shared, own)
    one_by_one = shared.copy(), own.copy()
    room = np.zeros_like(own), np.zeros_like(shared), np.zeros(d1), np.zeros((8, d2))
    assert gram.learn_round(3, 0.5, draw, 2.0, x, z, slots, 1.5, cross, 2, shared, own, *room)
    if draw > 0.5:
        gram.add_row(slots[3], x[3], z[3], 1.5, cross, *one_by_one)
    else:
        gram.estimate(2, 2.0, cross, d1, d2, *one_by_one, *room)
        check = [gram.mean_of(x[i], z[i], slots[i], room[2], room[3]) for i in range(n)]
        check[3] = (1 - 1 / 0.5) * check[3] + 1.5 / 0.5
        for i in np.flatnonzero(slots >= 0):
            gram.add_row(slots[i], x[i], z[i], check[i], cross, *one_by_one)
    assert_allclose(shared, one_by_one[0], rtol=1e-12, atol=1e-14)
    assert_allclose(own, one_by_one[1], rtol=1e-12, atol=1e-14)


def test_the_walk_through_levels(mode: str) -> None:
    """Means 0: only widths decide. Level 0 for all narrow, the widest where one is wide, else on with those close."""
    shared = np.zeros(arrow.score_size(1, 0))
    arrow.reset_block(np.zeros(1), 0, shared, 0, 1, 0, 1.0)
    x, z = np.array([[0.1], [0.4], [0.2]]), np.zeros((3, 0))
    common = np.full(3, -1), np.arange(3), 3
    index, level, _, width, _ = decisions.walk_level(1, x, z, *common, 1.0, 0.4, np.zeros(0), shared, 1.0)
    assert (index, level) == (1, 0)
    assert width == pytest.approx(0.4)
    assert decisions.walk_level(2, x, z, *common, 1.0, 0.01, np.zeros(0), shared, 1.0)[:2] == (1, 2)
    left = np.arange(3)
    index, _, _, _, count = decisions.walk_level(1, x, z, common[0], left, 3, 1.0, 0.01, np.zeros(0), shared, 1.0)
    assert (index, count) == (-1, 3)
    left = np.array([2, 0])
    index, level, _, _, _ = decisions.walk_level(4, x, z, common[0], left, 2, 1.0, 0.01, np.zeros(0), shared, 1.0)
    assert (index, level) == (2, 4)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 17])
def test_within_limit(mode: str, n: int) -> None:
    values = np.full(n, -1e50)
    assert arrow.within_limit(values)
    for i in range(n):
        for bad in (np.nan, np.inf, -1.1e50):
            spoiled = values.copy()
            spoiled[i] = bad
            with np.errstate(all="ignore"):
                assert not arrow.within_limit(spoiled)


@pytest.mark.parametrize(
    ("slots", "expected"), [([0], True), ([3, 1, 200], True), ([1, 64, 1], False), ([2, -1], False), ([65, 1], True)]
)
def test_distinct_slots(mode: str, slots: list[int], expected: bool) -> None:
    assert arrow.distinct(np.array(slots)) == expected


def test_rows_that_are_not_finite_are_refused_and_change_nothing(mode: str) -> None:
    blocks = Blocks(3, 2).learn()
    before = [array.copy() for array in blocks.state]
    for bad in (np.nan, np.inf, -np.inf, 1e51):
        for where in ("x", "z", "reward"):
            x, z, reward = np.ones(3), np.ones(2), 1.0
            if where == "reward":
                reward = bad
            else:
                (x if where == "x" else z)[1] = bad
            assert not arrow.learn_one(0, x, z, reward, *blocks.state, 0)
            assert not arrow.learn_rows(np.zeros(1, int), x[None], z[None], np.array([reward]), *blocks.state, 0)
            if where != "reward":
                mean, width = np.empty(1), np.empty(1)
                with np.errstate(all="ignore"):
                    scored = arrow.score_rows(
                        x[None], z[None], np.zeros(1, int), blocks.arm_score, blocks.shared_score, RIDGE, mean, width
                    )
                assert not scored
    for got, expected in zip(blocks.state, before, strict=True):
        assert (got == expected).all()


def test_scoring_far_more_candidates_than_a_block_and_the_cache_hold() -> None:
    blocks = Blocks(33, 31, arms=70).learn()
    random = np.random.default_rng(2)
    x, z, slots = random.normal(size=(70, 33)), random.normal(size=(70, 31)), np.arange(70)
    assert 70 * blocks.h > arrow.FAR
    together = np.empty(70), np.empty(70)
    arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, *together)
    for i in range(70):
        mean, width = np.empty(1), np.empty(1)
        arrow.score_rows(x[i : i + 1], z[i : i + 1], slots[i : i + 1], *blocks.state[1::3], RIDGE, mean, width)
        assert mean[0] == together[0][i]
        assert width[0] == together[1][i]


def test_every_kernel_is_used_in_this_file_or_by_one_that_is() -> None:
    source = Path(__file__).read_text()
    every = {**kernels(arrow), **kernels(decisions), **kernels(gram)}
    reached = {name for name in every if f".{name}(" in source}
    while more := {
        name
        for name in every
        if name not in reached and any(name in every[user].py_func.__code__.co_names for user in reached)
    }:
        reached |= more
    assert reached == set(every)


def test_machine_code_on_disk_is_stamped_with_all_sources() -> None:
    """Should numba move these internals, `compiling.kernel` must follow, or an edit could leave stale code in use."""
    for kernel in kernels(arrow).values():
        assert kernel._cache._cache_file._source_stamp == compiling.SOURCES


@pytest.mark.parametrize("operation", ["add4", "sub4", "mul4", "muladd4"])
def test_vector_operations_do_compiled_what_they_say(operation: str) -> None:
    function = getattr(simd, operation)
    a, b, c = np.random.default_rng(3).normal(size=(3, 4))
    three = operation == "muladd4"

    @njit
    def run(a, b, c, out):  # type: ignore[no-untyped-def]
        if three:
            simd.store4(out, 1, simd.muladd4(simd.load4(a, 0), simd.load4(b, 0), simd.load4(c, 0)))
        else:
            simd.store4(out, 1, function(simd.load4(a, 0), simd.load4(b, 0)))

    out = np.zeros(6)
    run(a, b, c, out)
    expected = function(a, b, c) if three else function(a, b)
    assert_allclose(out, [0, *expected, 0], rtol=1e-15)


def test_vector_loads_stores_and_sums() -> None:
    @njit
    def run(a, out):  # type: ignore[no-untyped-def]
        simd.prefetch(a, 10_000_000)
        simd.store1(out, 0, simd.sum4(simd.load4(a, 1)))
        simd.store1(out, 1, simd.sum4(simd.spread4(a, 2)))
        simd.store1(out, 2, simd.sum4(simd.splat4(simd.load1(a, 3))))

        b = simd.load4(a, 0)
        simd.store4(out, 3, simd.sums4(b, simd.load4(a, 1), simd.splat4(1.0), simd.mul4(b, b)))

    out, again = np.zeros(7), np.zeros(7)
    a = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    run(a, out)
    run.py_func(a, again)
    assert out.tolist() == again.tolist() == [30.0, 16.0, 32.0, 15.0, 30.0, 4.0, 85.0]
