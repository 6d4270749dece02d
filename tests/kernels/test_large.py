"""Steps and rebuilding in slices, compiled and plain, against dense algebra and against the same at once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import arrow, empirical_bayes, evidence, large
from tests.support.learned_oracle import make_rows, solve, step
from tests.support.learned_rows import scales_of, taught


@pytest.mark.parametrize("budget", [0.0, np.inf])
@pytest.mark.parametrize(
    ("d1", "d2", "n"), [(4, 3, 60), (30, 1, 12), (13, 9, 40), (0, 3, 20), (5, 0, 20), (17, 2, 3), (40, 2, 120)]
)
def test_a_step_in_slices_is_that_of_dense_algebra(mode: str, d1: int, d2: int, n: int, budget: float) -> None:
    """With fewer rows than features and with more."""
    if mode == "plain" and n * d1 > 100:
        pytest.skip("takes long")
    rows = make_rows(1, n=n, d1=d1, d2=d2, arms=4)
    estimator = taught(rows)
    before = scales_of(estimator)
    wanted, m = step(rows, before, 4)
    solved = solve(rows, before, 4)
    model = estimator.models[0]
    arrays = model._with_own_settings()
    part, slices = large.with_buffers(large.begin_step(model.in_order, d1, d2, arrays), d1), 0
    while part.at[0] < large.DONE:
        large.advance(part, d1, d2, budget or 1e-9)
        slices += 1
    assert slices == 1 or (budget == 0.0 and slices > 3)
    large.finish_step(part, d1, d2, arrays, 0.0, False)
    state, features = arrays.state[0], arrays.features
    assert_allclose(state.evidence, solved.evidence, rtol=1e-10)
    assert_allclose(state.parameters, solved.known.sum(), rtol=1e-8)
    assert_allclose(state.sigma2, wanted.sigma2, rtol=1e-9)
    assert_allclose(features["scale"], np.concatenate((wanted.s1, wanted.sm)), rtol=1e-8)
    assert_allclose(features["s2"][d1:], wanted.s2, rtol=1e-8)
    assert_allclose(features["m"][d1:], m, rtol=1e-8, atol=1e-10)
    assert_allclose(arrays.mean_spread, solved.inverse[d1 : d1 + d2, d1 : d1 + d2], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("memory", [None, 40.0])
def test_a_step_in_slices_is_the_one_at_once(memory: float | None) -> None:
    """With arms that were dropped, features that never change, and some of the arms left out."""
    rows = make_rows(2, n=70, d1=19, d2=3, arms=9, constant="xz")
    estimator = taught(rows, memory=memory, groups=([0] * 10 + [1] * 9, [0, 1, 1]))
    for arm in (2, 5):
        estimator.forget(arm)
    model = estimator.models[0]
    model.fade_all()
    slots = model.in_order[::2].copy()
    one, other = model._with_own_settings(), model._with_own_settings()
    part = large.with_buffers(large.begin_step(slots, 19, 3, other), 19)
    large.advance(part, 19, 3, np.inf)
    for ours, theirs in zip(
        large.finish_step(part, 19, 3, other, 4.0, False), evidence.step(slots, 19, 3, one, 4.0, False), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
    for name in evidence.STATE.names or ():
        assert_allclose(other.state[name], one.state[name], rtol=1e-9)
    for name in evidence.FEATURE.names or ():
        assert_allclose(other.features[name], one.features[name], rtol=1e-8, atol=1e-12)
    assert_allclose(other.mean_spread, one.mean_spread, rtol=1e-8)


def test_an_inverse_in_slices_is_the_one_at_once(mode: str) -> None:
    random = np.random.default_rng(0)
    for d in (1, 4, 7, 18):
        dense = np.triu(random.standard_normal((d, d))) + 3 * np.eye(d)
        size = arrow.factor_size(d, 0)
        both = np.append(dense[np.triu_indices(d)], random.standard_normal(arrow.triangle_size(d)))
        for b in range((d + 3) // 4):
            large.invert_panel(b, d, both, size)
        score = np.zeros(arrow.score_size(d, 0))
        arrow.refresh_block(both, 0, score, 0, d, 0)
        assert_allclose(both[size:], score[d:], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [1, 3, 25, 60])
def test_factors_rebuilt_in_slices_are_those_of_one_call(n: int) -> None:
    """One row at a time or together, with rows learned in the meantime and an arm dropped."""
    rows = make_rows(3, n=n + 30, d1=96, d2=2, arms=5)
    estimator = taught(type(rows)(*(part[:n] for part in rows)))
    if n > 3:
        estimator.forget(int(rows.arm[0]))
    model = estimator.models[0]
    size = arrow.factor_size(96, 0)
    model.arrays = model.arrays._replace(
        posterior=model.arrays.posterior._replace(next_factor=np.zeros(size + arrow.triangle_size(96)))
    )
    part = empirical_bayes.begin_rebuilding_large(96, 2, model.arrays)
    state = model.state
    state.phase = 1
    late = iter(zip(rows.arm[n:].tolist(), rows.x[n:], rows.z[n:], rows.reward[n:].tolist(), strict=True))

    def learn() -> None:
        arm, x, z, reward = next(late)
        empirical_bayes.learn_with_settings(estimator.slot_for(arm), x, z, reward, model.arrays)

    while part.at[0] < part.at[1]:
        large.add_copied_rows(part, 96, model.arrays, 1.0)
        if part.at[0] % 5 == 0:
            learn()
    while state.cursor < state.end:
        slot = model.arrays.arms.order[state.cursor]
        empirical_bayes.rebuild_arm(slot, 96, 2, model.arrays)
        state.cursor += 1
        learn()
    while state.inverted < 96:
        large.invert_next(96, model.arrays, 1.0)
        if state.inverted % 20 == 0:
            learn()
    factor, right = model.arrays.posterior.next_factor[:size].copy(), model.arrays.posterior.next_rhs.copy()
    inverse = model.arrays.posterior.next_factor[size:].copy()
    score = np.zeros(arrow.score_size(96, 0))
    arrow.refresh_block(factor, 0, score, 0, 96, 0)
    assert_allclose(inverse, score[96:], rtol=1e-8, atol=1e-11)
    state.phase = 0
    empirical_bayes.begin_rebuilding(96, 2, model.arrays)
    for slot in model.in_order:
        empirical_bayes.rebuild_arm(slot, 96, 2, model.arrays)
    assert_allclose(np.abs(model.arrays.posterior.next_factor[:size]), np.abs(factor), rtol=1e-7, atol=1e-10)
    assert_allclose(np.abs(model.arrays.posterior.next_rhs), np.abs(right), rtol=1e-7, atol=1e-10)
