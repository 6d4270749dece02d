"""Reward models: means of candidates plain and compiled, arms they do not know, and their plain form."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hybandits.evaluation import reward_model
from hybandits.evaluation.reward_model import RewardModel
from hybandits.evaluation.view import View
from hybandits.features import MAPS
from tests.support.loglike import little_log, random_model


@pytest.mark.parametrize("pair", [0, 2])
def test_means_plain_and_compiled(tmp_path, pair):
    view = View(little_log(tmp_path, pair=pair))
    batch = next(view.log.batches()).part(0, 20)
    entries = random_model(view).per_entry(view)
    given = (batch.user, view.pair(batch), batch.pool, view.offsets, *entries)
    lost = reward_model.uniform_choice_regret(*given), reward_model.uniform_choice_regret.py_func(*given)
    np.testing.assert_allclose(lost[0], lost[1], rtol=1e-14)
    outputs = []
    for function in (reward_model.mean_rewards, reward_model.mean_rewards.py_func):
        out = np.full((20, 9), -np.inf)
        function(*given, out)
        outputs.append(out)
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-14)


def test_an_arm_without_a_name_has_no_part_of_its_own(tmp_path):
    view = View(little_log(tmp_path), features="li")
    known, unknown = random_model(view), random_model(view)
    unknown = replace(unknown, beta=unknown.beta[1:], names=unknown.names[1:])
    missing = known.names[0]
    weights, other = known.per_group(view)[0], unknown.per_group(view)[0]
    own = np.array([view.names[a] == missing for a in view.group_arm])
    np.testing.assert_array_equal(weights[~own], other[~own])
    np.testing.assert_allclose(weights[own] - other[own], np.tile(known.beta[0], (own.sum(), 1)), atol=1e-12)


@pytest.mark.parametrize("features", [*MAPS, "das+pair", "li+pair:z", "shared+pair:xz", "disjoint+pair"])
def test_entries_are_those_of_their_groups(tmp_path, features):
    view = View(little_log(tmp_path, pair=2), features=features)
    model = random_model(view)
    for by_group, by_entry in zip(model.per_group(view), model.per_entry(view), strict=True):
        np.testing.assert_array_equal(by_entry, by_group[view.group])
    batch = next(view.log.batches())
    entries = model.per_entry(view)
    means = model.means(view, batch)
    np.testing.assert_array_equal(means, model.means(view, batch, entries))
    beta = dict(zip(model.names, model.beta, strict=True))
    for t in range(0, batch.rounds, 50):
        for k, e in enumerate(range(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])):
            x, z = view.map(batch.user[t], view.vectors[view.vector[e]], batch.pair[t, k] if view.map.pair else None)
            own = z @ beta.get(view.names[view.arm[e]], np.zeros(view.d2))
            np.testing.assert_allclose(means[t, k], x @ model.theta + own, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("features", [*MAPS, "das+pair"])
def test_models_survive_json(tmp_path, features):
    model = random_model(View(little_log(tmp_path, pair=2), features=features))
    again = RewardModel.from_plain(json.loads(json.dumps(model.plain())))
    assert (again.map, list(again.names)) == (model.map, list(model.names))
    np.testing.assert_array_equal(again.theta, model.theta)
    np.testing.assert_array_equal(again.beta, model.beta)
