"""Descriptions of logs against plain sums."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from hybandits.evaluation.describe import add_moments, add_pair_moments, describe
from hybandits.evaluation.view import Expander, View
from hybandits.features import MAPS
from hybandits.logs.problems import Problems
from hybandits.logs.store import Batch, LogWriter, no_places
from tests.support.loglike import little_log


def test_description_of_a_log(tmp_path):
    log = little_log(tmp_path)
    description = describe(View(log))
    assert description.rounds == 600
    assert sum(s.rounds for s in description.slices) == 600
    assert [s.start for s in description.slices] == list(range(0, 600, 60))
    assert sum(s.new_arms for s in description.slices) == description.arms
    assert description.uniform
    assert description.display_bias < description.display_limit
    rewards = np.concatenate([b.reward for b in log.batches()])
    np.testing.assert_allclose(description.reward, rewards.mean())
    assert description.user_rank == (5, 6)
    assert description.x_rank[0] < 36
    assert description.smallest_z_rank == (1, 6)
    assert not description.diverse
    assert "says nothing about this log" in description.guarantee


def uniform_cube(random, n):
    return random.uniform(-1, 1, size=(n, 3))


@pytest.mark.parametrize("features", [*MAPS, "das+pair", "li+pair:z", "disjoint+pair:xz"])
def test_moments_against_dense_ones(tmp_path, features):
    log = little_log(tmp_path, user=uniform_cube, pair=2)
    view = View(log, features=features)
    description = describe(view)
    x, z, arm = [], [], []
    for batch in log.batches():
        for _, rounds in Expander(view)(batch):
            for t, n in enumerate(rounds.counts):
                some_x, some_z = rounds.features(t)
                x.append(some_x)
                z.append(some_z)
                arm += [rounds.arms[k] for k in rounds.index[t, :n]]
    x, z, arm = np.vstack(x), np.vstack(z), np.array(arm)
    if view.d1:
        smallest = np.linalg.eigvalsh(x.T @ x / len(x))[0]
        assert description.x_rank[0] == np.linalg.matrix_rank(x, tol=1e-5 * np.linalg.norm(x, 2))
        if description.x_rank[0] == view.d1:
            np.testing.assert_allclose(description.rho_x, smallest, rtol=1e-9)
    if view.d2 and not features.startswith("das"):
        rho = min(np.linalg.eigvalsh(z[arm == a].T @ z[arm == a] / (arm == a).sum())[0] for a in set(arm))
        np.testing.assert_allclose(description.rho_z, rho, rtol=1e-9)
    both = np.column_stack([x, z])
    relative = np.linalg.norm(both.mean(axis=0)) / np.sqrt((both**2).sum(axis=1).mean())
    np.testing.assert_allclose(description.mean_norm, relative, rtol=1e-9)
    if view.d1 and view.d2:
        largest = 0.0
        for a in set(arm):
            qx, qz = np.linalg.qr(_span(x[arm == a]))[0], np.linalg.qr(_span(z[arm == a]))[0]
            largest = max(largest, np.linalg.norm(qx.T @ qz, 2))
        np.testing.assert_allclose(description.correlation, largest, atol=1e-6)


def test_pair_features_are_described(tmp_path):
    log = little_log(tmp_path, pair=2)
    description = describe(View(log))
    sizes = log.pools.sizes
    pairs = [rows[: sizes[p]] for b in log.batches() for p, rows in zip(b.pool, b.pair, strict=True)]
    every = np.vstack(pairs)
    for i, pair in enumerate(description.pair):
        assert pair.name == f"p{i + 1}"
        values = every[:, i]
        numbers = [pair.mean, pair.deviation, pair.lowest, pair.highest, pair.size]
        expected = [values.mean(), values.std(), values.min(), values.max(), np.sqrt((values**2).mean())]
        np.testing.assert_allclose(numbers, expected, rtol=1e-9)
        assert pair.differs == 1.0
    assert len(description.pair) == 2
    assert json.loads(json.dumps(description.plain()))["pair"][0]["name"] == "p1"
    assert describe(View(log, features="das")).pair == []


def test_a_pair_feature_that_is_the_same_for_all_candidates(tmp_path):
    with LogWriter(tmp_path / "log", kind="test", user=["1"], arm=["1"], pair=["hour", "near"]) as writer:
        pool = writer.tables.pool([writer.tables.arm(name, np.ones(1)) for name in "abc"])
        writer.source("f")
        n, zeros = 8, np.zeros(8, int)
        pair = np.ones((n, 3, 2)) * np.arange(n)[:, None, None]
        pair[:2, 0, 1] += 1.0
        writer.write(Batch(zeros, zeros + pool, zeros, zeros + 0.0, zeros + 0.5, no_places(n), np.ones((n, 1)), pair))
        hour, near = describe(View(writer.finish(Problems()))).pair
    assert (hour.differs, near.differs) == (0.0, 0.25)
    assert (hour.lowest, hour.highest, hour.mean) == (0.0, 7.0, 3.5)


def test_pair_moments_plain_and_compiled(tmp_path):
    view = View(little_log(tmp_path, pair=2))
    batch = next(view.log.batches()).part(0, 30)
    outputs = []
    for function in (add_pair_moments, add_pair_moments.py_func):
        size = view.map.user + 3
        moments, extremes = np.zeros((len(view.group_arm), size, size)), np.zeros((2, 2))
        differs = np.zeros(2, np.int64)
        function(batch.user, view.pair(batch), batch.pool, view.offsets, view.group, moments, extremes, differs)
        outputs.append((moments, extremes, differs))
    for a, b in zip(*outputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def _span(rows):
    u, s, _ = np.linalg.svd(rows, full_matrices=False)
    return u[:, s > 1e-5 * s[0]]


def test_units_of_features_do_not_matter_to_ranks(tmp_path):
    random = np.random.default_rng(0)
    n = 500
    user = np.column_stack([np.ones(n), random.normal(40, 12, n), random.normal(50_000, 10_000, n)])
    with LogWriter(tmp_path / "units", kind="test", user=["1", "age", "income"], arm=["1"]) as writer:
        pool = writer.tables.pool([writer.tables.arm(name, np.ones(1)) for name in "ab"])
        writer.source("f")
        zeros = np.zeros(n)
        whole = zeros.astype(int)
        writer.write(Batch(whole, whole + pool, whole, zeros, zeros + 0.5, no_places(n), user))
        log = writer.finish(Problems())
    description = describe(View(log, features="li"))
    assert description.user_rank == description.x_rank == description.smallest_z_rank == (3, 3)
    np.testing.assert_allclose(description.rho_x, np.linalg.eigvalsh(user.T @ user / n)[0], rtol=1e-3)
    assert description.correlation == pytest.approx(1.0)  # with one vector for all, x is z


def test_what_most_shown_arms_and_times_are(tmp_path):
    log = little_log(tmp_path)
    told = []
    description = describe(View(log), progress=told.append)
    assert sum(told) == 600
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
    assert description.slices[0].first_time == 1_241_160_900
    assert description.slices[-1].last_time == 1_241_160_900 + 599
    assert json.loads(json.dumps(description.plain(), allow_nan=False))["rounds"] == 600


def two_arms(path, chosen, propensity):
    """A log of two arms, with the constant as the only feature."""
    n = len(chosen)
    with LogWriter(path, kind="test", user=["1"], arm=["1"]) as writer:
        pool = writer.tables.pool([writer.tables.arm(name, np.ones(1)) for name in "ab"])
        writer.source("f")
        user = np.ones((n, 1))
        writer.write(Batch(np.arange(n), np.full(n, pool), chosen, np.zeros(n), propensity, no_places(n), user))
        return View(writer.finish(Problems()), features="disjoint")


def test_propensities_are_told(tmp_path):
    chosen = np.arange(100) % 2
    rounded = describe(two_arms(tmp_path / "rounded", chosen, np.full(100, 0.5003)))
    assert rounded.uniform
    assert (rounded.lowest_propensity, rounded.without_propensity) == (0.5003, 0)
    uneven = describe(two_arms(tmp_path / "uneven", chosen, np.where(chosen, 0.6, 0.4)))
    assert not uneven.uniform
    assert (uneven.lowest_propensity, uneven.highest_propensity, uneven.display_bias) == (0.4, 0.6, None)
    some = np.full(100, 0.5)
    some[3] = np.nan
    missing = describe(two_arms(tmp_path / "missing", chosen, some))
    assert not missing.uniform
    assert missing.without_propensity == 1
    none = describe(two_arms(tmp_path / "none", chosen, np.full(100, np.nan)))
    assert (none.lowest_propensity, none.highest_propensity) == (None, None)


def test_an_unfair_display_shows(tmp_path):
    n = 400
    fair = describe(two_arms(tmp_path / "fair", np.arange(n) % 2, np.full(n, 0.5)))
    assert fair.display_bias == 0.0
    unfair = describe(two_arms(tmp_path / "unfair", (np.arange(n) % 4 > 0).astype(int), np.full(n, 0.5)))
    assert unfair.display_bias == pytest.approx((300 - 200) / np.sqrt(n / 4))
    # Two arms and a false alarm in 1 of 1,000 logs: the quantile of 1 - 0.001 / 4.
    assert unfair.display_limit == pytest.approx(3.4808, abs=1e-4)


def test_moments_plain_and_compiled(tmp_path):
    view = View(little_log(tmp_path))
    batch = next(view.log.batches()).part(0, 50)
    size = view.map.user + 1
    sums = []
    for function in (add_moments, add_moments.py_func):
        users, moments = np.zeros((size, size)), np.zeros((len(view.group_arm), size, size))
        counts = np.zeros(len(view.group_arm), np.int64)
        function(batch.user, batch.pool, view.offsets, view.group, users, moments, counts)
        sums.append((users, moments, counts))
    for a, b in zip(*sums, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
    row = np.column_stack([batch.user, np.ones(50)])
    np.testing.assert_allclose(sums[0][0], row.T @ row, atol=1e-12)


def test_diversity_is_found_where_it_is(tmp_path):
    """Users and arms around 0, arms with many vectors: nothing speaks against the assumption."""
    random = np.random.default_rng(0)
    n, vectors = 4000, 400
    with LogWriter(tmp_path / "log", kind="test", user=["a", "b"], arm=["a", "b"]) as writer:
        # One arm whose vector changes, so that x = vec(u v') and z = v are uncorrelated.
        listed = [writer.tables.arm("arm", random.normal(size=2)) for _ in range(vectors)]
        pools = np.array([writer.tables.pool([row]) for row in listed])
        writer.source("f")
        zeros = np.zeros(n)
        user = random.normal(size=(n, 2))
        writer.write(
            Batch(np.arange(n), pools[np.arange(n) % vectors], zeros.astype(int), zeros, zeros + 1, no_places(n), user)
        )
        view = View(writer.finish(Problems()))
    description = describe(view)
    assert description.correlation < 0.1
    assert description.mean_norm < 0.1
    assert description.diverse
    assert "plausible here, but not proven" in description.guarantee
    assert description.rho_x > 0.5
    assert description.rho_z > 0.5
