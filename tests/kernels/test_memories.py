"""The mixture of memories: it is its models, whatever is done to it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge, Moments
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.random_stream import RandomStream
from hybandits.kernels import decisions, memories
from hybandits.kernels.addresses import table_of
from tests.support.learned_oracle import Rows, fading, make_rows
from tests.support.learned_rows import saved, settings, taught


def mixed(rows: Rows) -> LearnedRidge:
    estimator = LearnedRidge(d1=rows.x.shape[1], d2=rows.z.shape[1], memory="auto")
    estimator.learn_batch(rows.arm.tolist(), rows.x, rows.z, rows.reward)
    return estimator


def jumping(n: int = 400) -> Rows:
    """Rows of a world whose parameters are resampled in the middle."""
    halves = [make_rows(seed, n=n, d1=3, d2=2, arms=3, noise=0.1) for seed in (1, 2)]
    return Rows(*(np.concatenate(parts) for parts in zip(*halves, strict=True)))


def test_the_first_model_is_one_that_never_forgets() -> None:
    rows = make_rows(0)
    mixture, alone = mixed(rows), taught(rows)
    assert mixture.models[0].state == alone.models[0].state
    assert_array_equal(mixture.models[0].theta, alone.theta)
    assert mixture.pulls_of(0) == alone.pulls_of(0)
    assert mixture.weights[:3].sum() == pytest.approx(1)


def test_where_nothing_changes_the_first_model_keeps_its_weight_and_where_all_does_it_loses_it() -> None:
    still = mixed(make_rows(3, n=800, d1=3, d2=2, arms=3, noise=0.1))
    assert still.weights[0] > 0.9
    rows = jumping()
    estimator = LearnedRidge(d1=3, d2=2, memory="auto")
    weights = []
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        estimator.learn(arm, x, z, reward)
        weights.append(estimator.weights[0])
    assert weights[399] > 0.5
    assert min(weights[400:430]) < 0.01
    # it was restarted and does not know what was before
    assert_allclose(estimator.models[0].theta, taught(Rows(*(part[400:] for part in rows))).theta, atol=0.05)
    assert estimator.models[0].state.weight < 500
    assert "weight 0." in repr(estimator)


def test_what_is_read_is_the_heaviest_models() -> None:
    mixture = mixed(jumping())
    mixture.weights[:3] = 0.1, 0.2, 0.7
    model = mixture.models[2]
    assert mixture.heaviest is model
    assert_array_equal(mixture.theta, model.theta)
    assert_array_equal(mixture.beta(1), model.beta_at(mixture.slot(1)))
    x, z = np.ones((2, 3)), np.ones((2, 2))
    assert_array_equal(mixture.predict(x, z, [1, "new"]), model.score(x, z, np.array([mixture.slot(1), -1])))
    mine, expected = mixture.heaviest.settings(), model.settings()
    assert mine is not None
    assert expected is not None
    assert mine.evidence == expected.evidence
    drawn = {mixture.models.index(mixture.drawn(RandomStream(3, t))) for t in range(100)}
    assert drawn == {0, 1, 2}


def test_an_arm_is_forgotten_by_all_models() -> None:
    rows = jumping(60)
    mixture, alone = mixed(rows), taught(rows)
    for estimator in (mixture, alone):
        estimator.forget(1)
        estimator.refresh()
    assert_allclose(settings(mixture), settings(alone), rtol=1e-9)
    for model in mixture.models:
        assert len(model.in_order) == 2
        assert model.arrays.data.dropped.any()
    mixture.learn(1, rows.x[0], rows.z[0], 1.0)
    assert mixture.pulls_of(1) == 1
    assert all(model.arrays.arms.pulls[mixture.slot(1)] == 1 for model in mixture.models)


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
    assert_allclose(settings(one), settings(whole), rtol=1e-7)
    assert one.weights[:3].sum() == pytest.approx(1)
    assert one.weights[0] < 0.9 * 200 / 401 + 1e-3  # nothing but its share
    kept = one.models[2].state.weight
    assert kept < 80
    empty = LearnedRidge(d1=3, d2=2, memory="auto")
    empty.merge(two)
    assert_array_equal(empty.weights, two.weights)
    nothing = one.pack()[1]["weights"]
    one.merge(LearnedRidge(d1=3, d2=2, memory="auto"))
    assert_allclose(one.weights, nothing)


def test_rows_that_stand_for_many_weigh_what_rows_in_random_order_do_on_average() -> None:
    """In every model; with several, weights are reset."""
    rows = make_rows(11, n=60)
    mixture, alone = LearnedRidge(d1=4, d2=3, memory="auto"), LearnedRidge(d1=4, d2=3)
    fading_model = LearnedRidge(d1=4, d2=3, memory=20.0)
    features = np.hstack((rows.x, rows.z))
    moments = Moments(
        np.full(7, 60), features.sum(axis=0), float(rows.reward.mean()), float(60 * rows.reward.var())
    )  # fmt: skip
    pulls = {arm: int((rows.arm == arm).sum()) for arm in range(6)}
    for estimator in (mixture, alone, fading_model):
        with pytest.raises(ValueError, match="moments is None"):
            estimator.learn_summary(rows.arm.tolist(), rows.x, rows.z, rows.reward, pulls, None)
        estimator.learn_summary(rows.arm.tolist(), rows.x, rows.z, rows.reward, pulls, moments)
        assert estimator.rounds == 60
    assert mixture.arms == alone.arms
    assert_allclose(settings(mixture), settings(alone), rtol=1e-9)
    assert mixture.models[2].state.weight < 60
    assert_allclose(mixture.weights[:3], memories.SHARES)
    state = fading_model.models[0].state
    assert state.weight == pytest.approx(fading(rows, 20.0).sum(), rel=0.03)  # a sum beside an integral
    assert state.squares == pytest.approx(state.weight / 60 * rows.reward @ rows.reward)


def test_files_hold_everything_and_damage_is_noticed() -> None:
    mixture = mixed(jumping(60))
    mixture.forget(0)
    header, arrays = mixture.pack()
    loaded = LearnedRidge.unpack(header, arrays)
    for name, array in loaded.pack()[1].items():
        assert_array_equal(array, arrays[name])
    assert loaded.nbytes <= mixture.nbytes
    for wrong in ({"weights": np.ones(4)}, {"weights": np.ones(3)}, {"1.state": arrays["1.state"][1:]}):
        with pytest.raises(FileError, match="corrupt"):
            LearnedRidge.unpack(header, {**arrays, **wrong})
    del arrays["2.data_arm"]
    with pytest.raises(KeyError, match="data_arm"):
        LearnedRidge.unpack(header, arrays)


def test_models_are_drawn_by_weight(mode: str) -> None:
    """The shares of 2,000 draws lie within four standard deviations: a false alarm in 5,000 seeds."""
    weights = np.array([0.2, 0.5, 0.3, 0.0])
    drawn = np.bincount([memories.draw_model(weights, 7, 0, t) for t in range(2000)], minlength=3) / 2000
    assert_allclose(drawn, weights[:3], atol=4 * np.sqrt(0.25 / 2000))
    assert memories.draw_model(np.array([0.0, 0.0, 1.0, 1.0]), 7, 16, 5) == 2
    assert memories.heaviest(weights) == 1
    assert memories.heaviest(np.zeros(0)) == memories.draw_model(np.zeros(0), 7, 0, 0) == 0


@pytest.mark.parametrize("rule", [decisions.SAMPLING, decisions.INFORMATION])
def test_the_model_drawn_decides(mode: str, rule: int) -> None:
    estimator = mixed(make_rows(0, n=40, d1=2, d2=2, arms=3))
    estimator.weights[:3] = 0.3, 0.3, 0.4
    random = np.random.default_rng(2)
    x, z = random.standard_normal((3, 2)), random.standard_normal((3, 2))
    slots = np.array([estimator.slot(0), estimator.slot(1), -1])
    for t in range(6):
        model = estimator.models[memories.draw_model(estimator.weights, 9, 16, t)]
        wanted = decisions.choose_learned(rule, x, z, slots, *model.scoring, 9, 16, t)
        for models, weights in ((estimator.models, estimator.weights), ((model,), np.empty(0))):
            table = table_of([[*each.listed, weights] for each in models])
            code, settings = rule + decisions.LEARNED, np.ones(1)
            assert_array_equal(decisions.decide(code, table, settings, x, z, slots, 40, 9, 16, t), wanted)


def test_weights_follow_predictions(mode: str) -> None:
    estimator = mixed(make_rows(0, n=40, d1=2, d2=2, arms=3))
    x, z, reward = np.array([0.5, -1.0]), np.array([1.0, 0.3]), 0.7
    before, t = estimator.weights[:3].copy(), estimator.rounds
    sigma2 = estimator.heaviest.state.sigma2_in_use
    for slot, arm in ((estimator.slot(1), 1), (estimator._new_slot("new"), "nobody")):
        weights = np.append(before, 0.0)
        density = []
        for model in estimator.models:
            mean, width = model.score(x[None], z[None], np.array([slot if arm == 1 else -1]))
            variance = sigma2 * (1 + width[0] ** 2)
            density.append(np.exp(-((reward - mean[0]) ** 2) / (2 * variance)) / np.sqrt(variance))
        memories.update_weights(slot, x, z, reward, estimator.addresses, weights)
        wanted = before * density / (before @ density)
        share = 1 / (t + 2)
        assert_allclose(weights[:3], (1 - share) * wanted + share * np.array([0.9, 0.05, 0.05]), rtol=1e-9)
        assert weights[:3].sum() == pytest.approx(1)


def test_memories_are_multiples_of_the_number_of_parameters(mode: str) -> None:
    estimator = mixed(make_rows(0, n=40, d1=2, d2=2, arms=3))
    memories.set_memories(2, 2, estimator.addresses)
    rates = [model.state.rate for model in estimator.models]
    assert_allclose(rates, [0.0, 1 / (16 * 8), 1 / (4 * 8)])
    empty = LearnedRidge(d1=0, d2=3, memory="auto")
    memories.set_memories(0, 3, empty.addresses)
    assert empty.models[2].state.rate == pytest.approx(1 / 12)


@pytest.mark.slow
def test_all_models_learn_a_row_and_bad_ones_are_refused(mode: str) -> None:
    """The first model, if it weighs nothing at two refreshes of the last one running, continues from the heaviest."""
    estimator = mixed(make_rows(0, n=120, d1=2, d2=2, arms=3))
    weight = estimator.models[0].state.weight
    slot, x, z = estimator.slot(0), np.array([0.5, 1.0]), np.array([1.0, -0.4])
    before = saved(estimator)
    with np.errstate(all="ignore"):
        assert not memories.learn_by_all(slot, x, z, np.nan, estimator.addresses)
    for name, array in estimator.pack()[1].items():
        assert_array_equal(array, before[name])
    random = np.random.default_rng(1)
    for _ in range(24):
        estimator.weights[:3] = 0.0, 0.1, 0.9
        x, z = random.standard_normal(2), random.standard_normal(2)
        estimator.learn_batch([0], x[None], z[None], random.standard_normal(1))
        first, last = (estimator.models[i].state for i in (0, 2))
        if first.weight < weight:
            break
    assert first.weight == last.weight
    assert (first.rate, last.rate > 0) == (0.0, True)
    assert first.next > first.rows
    assert estimator.weights[0] == estimator.weights[2] > 0.4
    assert estimator.weights[memories.LOST_TIMES] == 0.0
    assert_array_equal(estimator.models[0].theta, estimator.models[2].theta)
