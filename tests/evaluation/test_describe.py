"""Descriptions of logs against plain sums."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest

from hybandits.evaluation.describe import describe
from hybandits.evaluation.view import View
from tests.support.evaluation import log_of
from tests.support.loglike import little_log


def test_description_of_a_log(tmp_path):
    log = little_log(tmp_path)
    description = describe(View(log))
    assert description.rounds == 600
    assert sum(s.rounds for s in description.slices) == 600
    assert [s.start for s in description.slices] == list(range(0, 600, 60))
    assert sum(s.new_arms for s in description.slices) == description.arms
    assert description.uniform
    rewards = np.concatenate([b.reward for b in log.batches()])
    np.testing.assert_allclose(description.reward, rewards.mean())
    assert description.user_rank == (5, 6)
    assert description.arm_rank[1] == 6
    x, z = (np.vstack(parts) for parts in zip(*(View(log).rows(b)[1:] for b in log.batches()), strict=True))
    assert description.size == pytest.approx(np.sqrt(((x**2).sum() + (z**2).sum()) / 600))


def test_what_most_shown_arms_and_times_are(tmp_path):
    log = little_log(tmp_path)
    calls = []
    description = describe(View(log), progress=calls.append)
    assert sum(calls) == 600
    shown: Counter = Counter()
    clicks: Counter = Counter()
    candidate: Counter = Counter()
    for batch in log.batches():
        for pool, chosen, reward in zip(batch.pool, batch.chosen, batch.reward, strict=True):
            listed = log.pools.rows[log.pools.offsets[pool] : log.pools.offsets[pool + 1]]
            candidate.update(log.names[row] for row in listed)
            shown[log.names[listed[chosen]]] += 1
            clicks[log.names[listed[chosen]]] += reward
    assert [counts.shown for counts in description.most_shown] == sorted(shown.values(), reverse=True)
    for counts in description.most_shown:
        assert (counts.shown, counts.candidate) == (shown[counts.arm], candidate[counts.arm])
        assert counts.reward == pytest.approx(clicks[counts.arm] / counts.shown)
    assert [s.time for s in description.slices] == [1_241_160_900 + start for start in range(0, 600, 60)]
    assert json.loads(json.dumps(asdict(description), allow_nan=False))["rounds"] == 600


def two_arms(path, chosen, propensity):
    return View(log_of(path, chosen, np.zeros(len(chosen)), propensity), features="disjoint")


def test_propensities_are_described(tmp_path):
    chosen = np.arange(100) % 2
    rounded = describe(two_arms(tmp_path / "rounded", chosen, np.full(100, 0.5003)))
    assert rounded.uniform
    assert (rounded.lowest_propensity, rounded.without_propensity) == (0.5003, 0)
    uneven = describe(two_arms(tmp_path / "uneven", chosen, np.where(chosen, 0.6, 0.4)))
    assert not uneven.uniform
    assert (uneven.lowest_propensity, uneven.highest_propensity) == (0.4, 0.6)
    propensities = np.full(100, 0.5)
    propensities[3] = np.nan
    missing = describe(two_arms(tmp_path / "missing", chosen, propensities))
    assert not missing.uniform
    assert missing.without_propensity == 1
    none = describe(two_arms(tmp_path / "none", chosen, np.full(100, np.nan)))
    assert (none.lowest_propensity, none.highest_propensity) == (None, None)
