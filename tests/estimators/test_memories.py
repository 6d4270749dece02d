"""The mixture of memories: it is its models, whatever is done to it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge, Moments
from hybandits.estimators.memories import MemoryMixture
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.random_stream import RandomStream
from hybandits.kernels import evidence, memories
from tests.support.learned_oracle import Rows, make_rows
from tests.support.learned_rows import settings, taught


def mixed(rows: Rows, **held: float) -> MemoryMixture:
    estimator = MemoryMixture(d1=rows.x.shape[1], d2=rows.z.shape[1], **held)
    estimator.learn_batch(rows.arm.tolist(), rows.x, rows.z, rows.reward)
    return estimator


def jumping(n: int = 400) -> Rows:
    """Rows of a world that is drawn anew in the middle."""
    halves = [make_rows(seed, n=n, d1=3, d2=2, arms=3, noise=0.1) for seed in (1, 2)]
    return Rows(*(np.concatenate(parts) for parts in zip(*halves, strict=True)))


def test_the_first_model_is_one_that_never_forgets() -> None:
    rows = make_rows(0)
    mixture, alone = mixed(rows), taught(rows)
    assert_array_equal(mixture.models[0].numbers, alone.numbers)
    assert_array_equal(mixture.models[0].theta, alone.theta)
    assert mixture.pulls_of(0) == alone.pulls_of(0)
    assert mixture.weights[:3].sum() == pytest.approx(1)


def test_where_nothing_changes_the_first_model_keeps_its_weight_and_where_all_does_it_loses_it() -> None:
    still = mixed(make_rows(3, n=800, d1=3, d2=2, arms=3, noise=0.1))
    assert still.weights[0] > 0.9
    rows = jumping()
    estimator = MemoryMixture(d1=3, d2=2)
    weights = []
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        estimator.learn(arm, x, z, reward)
        weights.append(estimator.weights[0])
    assert weights[399] > 0.5
    assert min(weights[400:430]) < 0.01
    # it has begun anew and does not know what was before
    assert_allclose(estimator.models[0].theta, taught(Rows(*(part[400:] for part in rows))).theta, atol=0.05)
    assert estimator.models[0].numbers[evidence.KEPT] < 500
    assert "weights" in repr(estimator)


def test_what_is_read_is_the_heaviest_models() -> None:
    mixture = mixed(jumping())
    mixture.weights[:3] = 0.1, 0.2, 0.7
    model = mixture.models[2]
    assert mixture.heaviest is model
    assert_array_equal(mixture.theta, model.theta)
    assert_array_equal(mixture.beta(1), model.beta_at(mixture.slot(1)))
    x, z = np.ones((2, 3)), np.ones((2, 2))
    assert_array_equal(mixture.predict(x, z, [1, "new"]), model.score(x, z, np.array([mixture.slot(1), -1])))
    mine, its = mixture.learned_settings(), model.learned_settings()
    assert mine is not None
    assert its is not None
    assert mine.evidence == its.evidence
    drawn = {mixture.models.index(mixture.drawn(RandomStream(3, t))) for t in range(100)}
    assert drawn == {0, 1, 2}


def test_reading_changes_nothing() -> None:
    mixture = mixed(jumping(60))
    before = mixture.pack()[1]
    mixture.learned_settings()
    mixture.copy()
    for name, array in mixture.pack()[1].items():
        assert_array_equal(array, before[name])


def test_an_arm_is_forgotten_by_all_models() -> None:
    rows = jumping(60)
    mixture, alone = mixed(rows), taught(rows)
    for estimator in (mixture, alone):
        estimator.forget(1)
        estimator.refresh()
    assert_allclose(settings(mixture.models[0]), settings(alone), rtol=1e-9)
    for model in mixture.models:
        assert len(model.in_order) == 2
        assert model.released_data.any()
    mixture.learn(1, rows.x[0], rows.z[0], 1.0)
    assert mixture.pulls_of(1) == 1
    assert all(model.pulls[mixture.slot(1)] == 1 for model in mixture.models)


def test_merging_adds_the_data_of_every_model_and_weighs_them() -> None:
    rows = jumping(200)
    before, after = (Rows(*(part[k] for part in rows)) for k in (slice(200), slice(200, 400)))
    one, two = mixed(before), mixed(after)
    one.weights[:3] = 0.5, 0.25, 0.25  # what is merged says which memory is right
    two_before = two.pack()[1]
    one.merge(two)
    assert one.rounds == 400
    for name, array in two.pack()[1].items():
        assert_array_equal(array, two_before[name])
    whole = taught(rows)
    whole.refresh()
    assert_allclose(settings(one.models[0]), settings(whole), rtol=1e-7)
    assert one.weights[:3].sum() == pytest.approx(1)
    assert one.weights[0] < 0.9 * 200 / 401 + 1e-3  # nothing but its share
    kept = one.models[2].numbers[evidence.KEPT]
    assert kept < 80
    empty = MemoryMixture(d1=3, d2=2)
    empty.merge(two)
    assert_array_equal(empty.weights, two.weights)
    nothing = one.pack()[1]["weights"]
    one.merge(MemoryMixture(d1=3, d2=2))
    assert_allclose(one.weights, nothing)


def test_what_cannot_be_merged_is_refused() -> None:
    mixture = MemoryMixture(d1=3, d2=2)
    with pytest.raises(TypeError, match="only another MemoryMixture can be merged, got LearnedRidge"):
        mixture.merge(LearnedRidge(d1=3, d2=2))
    with pytest.raises(ValueError, match="the features must agree"):
        mixture.merge(MemoryMixture(d1=3, d2=3))
    with pytest.raises(ValueError, match="hold different settings"):
        mixture.merge(MemoryMixture(d1=3, d2=2, noise=1.0))
    with pytest.raises(ValueError, match="no ridge to raise"):
        mixture.raise_ridge(2.0)
    mixture.merge(mixture)


def test_rows_that_stand_for_many_are_learned_by_all_models() -> None:
    rows = make_rows(11, n=60)
    mixture, alone = MemoryMixture(d1=4, d2=3), LearnedRidge(d1=4, d2=3)
    features = np.hstack((rows.x, rows.z))
    moments = Moments(
        np.full(7, 60), features.sum(axis=0), float(rows.reward.mean()), float(60 * rows.reward.var())
    )  # fmt: skip
    pulls = {arm: int((rows.arm == arm).sum()) for arm in range(6)}
    for estimator in (mixture, alone):
        estimator.learn_summary(rows.arm.tolist(), rows.x, rows.z, rows.reward, pulls, moments)
    assert mixture.rounds == 60
    assert mixture.arms == alone.arms
    assert_allclose(settings(mixture.models[0]), settings(alone), rtol=1e-9)
    assert mixture.models[2].numbers[evidence.KEPT] < 60
    assert_allclose(mixture.weights[:3], memories.SHARES)


def test_files_hold_everything_and_damage_is_noticed() -> None:
    mixture = mixed(jumping(60))
    mixture.forget(0)
    header, arrays = mixture.pack()
    loaded = MemoryMixture.unpack(header, arrays)
    for name, array in loaded.pack()[1].items():
        assert_array_equal(array, arrays[name])
    assert loaded.nbytes <= mixture.nbytes
    for wrong in ({"weights": np.ones(4)}, {"weights": np.ones(3)}, {"1.numbers": arrays["1.numbers"][1:]}):
        with pytest.raises(FileError, match="corrupt"):
            MemoryMixture.unpack(header, {**arrays, **wrong})
    del arrays["2.arm_data"]
    with pytest.raises(FileError, match="missing"):
        MemoryMixture.unpack(header, arrays)
