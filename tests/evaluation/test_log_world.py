"""The world of a log: what it plays, what can be lost on it, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hybandits import HyLinUCB
from hybandits.evaluation.log_world import LogWorld, RewardModel, look_over
from hybandits.evaluation.view import View
from hybandits.logs.store import LogError
from hybandits.simulation.play import Player, play
from hybandits.simulation.worlds import World
from hybandits.testing import WorldConformance
from tests.support.loglike import little_log, random_model


def test_the_world_of_a_log(tmp_path):
    log = little_log(tmp_path)
    view = View(log)
    world = LogWorld(view, random_model(view), start=100, noise=0.1, seed=3)
    policy = HyLinUCB(d1=36, d2=6, noise=0.1, seed=0)
    regret = play([Player(policy)], world, [100, 500])[0]
    assert 0 < regret[0] < regret[1]
    assert policy.rounds == 500
    with pytest.raises(LogError, match="500 rounds from round 100 on, too few for a horizon of 501"):
        play([Player(policy)], world, [501])
    reported = []
    arms, lost = look_over(view, world.model, 0, 600, progress=reported.append)
    assert set(arms) == {log.names[r] for r in log.pools.rows}
    assert sum(reported) == 600
    means = [world.model.means(view, batch, *world.model.per_group(view)) for batch in log.batches(0, 600)]
    expected = sum((m.max(axis=1) - m.mean(axis=1, where=np.isfinite(m))).sum() for m in means)
    np.testing.assert_allclose(lost, expected)
    few, less = look_over(view, world.model, 0, 1)
    assert len(few) == view.sizes[next(log.batches()).pool[0]]
    assert 0 < less < lost


def test_a_world_must_be_of_its_log(tmp_path):
    log = little_log(tmp_path)
    view = View(log)
    model = random_model(view)
    record = {"content": "other", "features": "das", "arms": "articles", "start": 0, "model": model.plain()}
    with pytest.raises(LogError, match="content differs"):
        LogWorld.of(record, str(log.path), noise=0.1, seed=0)
    good = LogWorld.of(record | {"content": log.about["content"]}, str(log.path), noise=0.1, seed=0)
    np.testing.assert_array_equal(good.model.beta, model.beta)
    with pytest.raises(ValueError, match="same features"):
        LogWorld(View(log, features="li"), model, start=0, noise=0.1)


class TestConformance(WorldConformance):
    """The world of a log promises what all worlds do."""

    horizon = 150

    @pytest.fixture(autouse=True)
    def _log(self, tmp_path: Path) -> None:
        self.view = View(little_log(tmp_path))

    def make(self, seed: int) -> World:
        return LogWorld(self.view, random_model(self.view), start=100, noise=0.1, seed=seed)


@pytest.mark.parametrize("features", ["das", "das+pair", "li+pair:z", "shared+pair:xz", "disjoint+pair"])
def test_means_are_those_of_the_features(tmp_path, features):
    view = View(little_log(tmp_path, pair=2), features=features)
    model = random_model(view)
    batch = next(view.log.batches())
    means = model.means(view, batch, *model.per_group(view))
    beta = dict(zip(model.names, model.beta, strict=True))
    for t in range(0, batch.rounds, 50):
        for k, e in enumerate(range(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])):
            x, z = view.map(batch.user[t], view.vectors[view.vector[e]], batch.pair[t, k] if view.map.pair else None)
            own = z @ beta.get(view.names[view.arm[e]], np.zeros(view.d2))
            np.testing.assert_allclose(means[t, k], x @ model.theta + own, rtol=1e-9, atol=1e-12)


def test_models_survive_json(tmp_path):
    model = random_model(View(little_log(tmp_path, pair=2)))
    again = RewardModel.from_plain(json.loads(json.dumps(model.plain())))
    assert (again.map, list(again.names)) == (model.map, list(model.names))
    np.testing.assert_array_equal(again.theta, model.theta)
    np.testing.assert_array_equal(again.beta, model.beta)
