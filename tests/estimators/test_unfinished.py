"""Refreshes of models with many features, which are spread over rows: batches, files, arms that go, memories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import HyIDS
from hybandits.estimators import learned
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.policy_file import FileError
from hybandits.kernels import arrow, evidence
from hybandits.simulation.play import cumulative_regret, play_by_contract
from hybandits.simulation.worlds import Synthetic
from tests.support.learned_oracle import Rows, make_rows, step
from tests.support.learned_rows import rebuild, saved, scales_of, settings, state, taught

D1, D2 = evidence.LARGE - 1, 2
MEMORIES = [None, 25.0, "auto"]


@pytest.fixture(autouse=True)
def little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row advances by a few slices, so that nearly every row is in the middle of a refresh."""
    monkeypatch.setattr(learned, "BUDGET", 6e4)


def assert_same(one: LearnedRidge, other: LearnedRidge) -> None:
    ours, theirs = saved(one), saved(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert_array_equal(array, theirs[name])


def learn(estimator: LearnedRidge, rows: Rows, part: slice) -> None:
    for arm, x, z, reward in zip(*(each[part] for each in rows), strict=True):
        estimator.learn(int(arm), x, z, float(reward))


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_file_continues_and_a_batch_ends_as_rows_one_by_one(memory: float | str | None) -> None:
    n = 60 if memory is None else 20
    rows = make_rows(1, n=n, d1=D1, d2=D2)
    one, batch = (LearnedRidge(d1=D1, d2=D2, memory=memory) for _ in range(2))
    seen: set[tuple[int, bool, bool]] = set()
    for first in range(0, n, 2):
        loaded = LearnedRidge.unpack(*one.pack())
        part = slice(first, first + 2)
        for estimator in (one, loaded):
            learn(estimator, rows, part)
        batch.learn_batch(rows.arm[part].tolist(), rows.x[part], rows.z[part], rows.reward[part])
        for estimator in (loaded, batch):
            assert_same(one, estimator)
        work = one.models[0].unfinished
        seen.add((int(state(one).phase), work is not None, work is not None and work.step is not None))
    assert memory is not None or {(2, True, True), (1, True, False)} <= seen


def test_learning_ends_at_the_posterior_of_all_rows() -> None:
    rows = make_rows(2, n=260, d1=D1, d2=D2)
    estimator = taught(rows)
    model = estimator.models[0]
    while state(estimator).phase:
        model.continue_refresh(1.0)
    theta, (mean, width) = estimator.theta, estimator.predict(rows.x[:6], rows.z[:6], range(6))
    rebuild_large(estimator)
    assert_allclose(estimator.theta, theta, rtol=1e-7, atol=1e-9)
    again = estimator.predict(rows.x[:6], rows.z[:6], range(6))
    assert_allclose(mean, again.mean, rtol=1e-7)
    assert_allclose(width, again.width, rtol=1e-7)
    estimator.refresh()
    after, m = step(rows, scales_of(estimator), 6)
    assert_allclose(np.concatenate([np.ravel(part) for part in after] + [m]), settings(estimator), rtol=1e-6)


def rebuild_large(estimator: LearnedRidge) -> None:
    model = estimator.models[0]
    model.unfinished = None
    rebuild(estimator)  # by the kernels for small models
    posterior, size = model.arrays.posterior, len(model.arrays.posterior.shared_factor)
    posterior.shared_factor[:] = posterior.next_factor[:size]


@pytest.mark.parametrize("memory", MEMORIES)
def test_arms_are_forgotten_and_models_merged_in_the_middle(memory: float | str | None) -> None:
    rows = make_rows(3, n=100, d1=D1, d2=D2)
    estimator, middle = LearnedRidge(d1=D1, d2=D2, memory=memory), 0
    for t in range(60):
        learn(estimator, rows, slice(t, t + 1))
        if t % 7 == 6:
            middle += estimator.models[0].unfinished is not None
            estimator.forget(int(rows.arm[t]))
            assert estimator.sound()
    assert middle > 3
    other = taught(Rows(*(part[:40] for part in rows)), memory=memory)
    while all(model.unfinished is None for model in other.models):
        learn(other, rows, slice(other.rounds, other.rounds + 1))
    estimator.merge(other)
    assert all(model.unfinished is None for model in estimator.models)
    assert estimator.rounds == 60 + other.rounds
    learn(estimator, rows, slice(0, 20))
    assert np.isfinite(estimator.theta).all()
    assert np.isfinite(estimator.predict(rows.x[:6], rows.z[:6], range(6))).all()


def test_damaged_parts_are_refused() -> None:
    rows = make_rows(4, n=90, d1=D1, d2=D2)
    estimator = LearnedRidge(d1=D1, d2=D2)
    kinds: set[Any] = set()
    for t in range(90):
        learn(estimator, rows, slice(t, t + 1))
        work = estimator.models[0].unfinished
        kind = None if work is None else work.step is None
        if t < 60 or kind in kinds or kind is None:
            continue
        kinds.add(kind)
        header, arrays = estimator.pack()
        names = [name for name in arrays if "unfinished" in name]
        for name in names:
            for broken in (arrays[name][:-1], np.full_like(arrays[name], -5)):
                if arrays[name].dtype.names or (broken.shape == arrays[name].shape and arrays[name].dtype.kind == "f"):
                    continue
                with pytest.raises(FileError):
                    LearnedRidge.unpack(header, {**arrays, name: broken})
            with pytest.raises(FileError):
                LearnedRidge.unpack(header, {other: arrays[other] for other in arrays if other != name})
    assert kinds == {True, False}


def test_compiled_rounds_are_those_of_the_contract() -> None:
    world = Synthetic(d1=D1, d2=D2, arms=4, noise=0.1, seed=5)
    compiled, contract = (HyIDS(d1=D1, d2=D2, seed=1) for _ in range(2))
    cumulative_regret(compiled, world, 40)
    noises = iter(world.noise * world.noise_stream().standard_normal(40))
    for rounds, means, best in world.rounds(40):
        rewards = np.array([row + next(noises) for row in means])
        play_by_contract(contract, rounds, rewards, np.empty(len(best), np.int64))
    assert_same(compiled.estimator, contract.estimator)


def test_units_do_not_matter_to_the_bit() -> None:
    rows = make_rows(6, n=60, d1=D1, d2=D2)
    sizes = 2.0 ** np.random.default_rng(0).integers(-20, 20, D1)
    plain = taught(rows)
    scaled = taught(rows._replace(x=rows.x * sizes, z=rows.z * 2.0**-9, reward=rows.reward * 2.0**20))
    assert (scaled.theta * sizes == plain.theta * 2.0**20).all()
    assert (scaled.beta(1) * 2.0**-9 == plain.beta(1) * 2.0**20).all()


def test_the_shared_inverse_is_computed_again_after_many_rows() -> None:
    rows = make_rows(5, n=530, d1=D1, d2=D2)
    estimator = taught(Rows(*(part[:510] for part in rows)))
    model = estimator.models[0]
    while state(estimator).phase:
        model.continue_refresh(1.0)
    state(estimator).next = 10**6
    learn(estimator, rows, slice(510, 512))
    assert state(estimator).phase == 1
    score = model.arrays.posterior.shared_score
    score[D1:] *= 1 + 1e-6  # an error that grew
    learn(estimator, rows, slice(512, 530))
    while state(estimator).phase:
        model.continue_refresh(1.0)
    wanted = np.zeros_like(score)
    arrow.refresh_block(model.arrays.posterior.shared_factor, 0, wanted, 0, D1, 0)
    assert_allclose(score[D1:], wanted[D1:], rtol=1e-8, atol=1e-10)
