"""Feature maps: x = vec(u v') and z, compiled and plain, for one arm, several arms and whole rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.features import MAPS, PAIR_PLACES, FeatureMap
from hybandits.kernels import features
from hybandits.kernels.features import GIVEN
from tests.support.plain import plain


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    with plain(features) if request.param == "plain" else nullcontext():
        yield request.param


NO_PAIRS = np.empty((0, 0, 0))
WITH_PAIRS = [name + suffix for name in MAPS for suffix in PAIR_PLACES if suffix]


def by_hand(name: str, u: np.ndarray, v: np.ndarray, p: np.ndarray = NO_PAIRS) -> tuple[np.ndarray, np.ndarray]:
    base, _, _ = name.partition("+")
    x = np.outer(u, v).ravel(order="F") if base != "disjoint" else np.zeros(0)
    z = {"das": v, "li": u, "shared": np.zeros(0), "disjoint": u}[base]
    in_x, in_z = name.endswith(("+pair", "+pair:xz")), name.endswith(("+pair:z", "+pair:xz"))
    return np.append(x, p if in_x else ()), np.append(z, p if in_z else ())


@pytest.mark.parametrize("name", [*MAPS, *WITH_PAIRS])
@pytest.mark.parametrize(("du", "dv", "dp"), [(1, 1, 1), (3, 2, 4), (6, 6, 2), (7, 3, 3), (9, 1, 5)])
def test_one_arm_and_several(mode: str, name: str, du: int, dv: int, dp: int) -> None:
    random = np.random.default_rng(0)
    u, vs, ps = random.normal(size=du), random.normal(size=(3, dv)), random.normal(size=(3, dp))
    paired = name in WITH_PAIRS
    feature_map = FeatureMap(name, du, dv, dp * paired)
    x, z = feature_map(u, vs, *[ps] * paired)
    assert x.shape == (3, feature_map.d1)
    assert z.shape == (3, feature_map.d2)
    for i, (v, p) in enumerate(zip(vs, ps, strict=True)):
        wanted = by_hand(name, u, v, p)
        for one, all_rows, expected in zip(feature_map(u, v, *[p] * paired), (x, z), wanted, strict=True):
            assert_array_equal(one, expected)
            assert_array_equal(all_rows[i], expected)


def test_arrays_that_kernels_cannot_take_give_the_same_features() -> None:
    random = np.random.default_rng(3)
    u, vs = random.integers(0, 9, size=4), random.integers(0, 9, size=(5, 3))
    feature_map = FeatureMap("das", 4, 3)
    expected = feature_map(u.astype(float), vs.astype(float))
    frozen = vs.astype(float)
    frozen.setflags(write=False)
    for user, rows in (
        (u, vs),
        (u.tolist(), vs.tolist()),
        (u.astype(np.float32), np.asfortranarray(vs, float)),
        (np.repeat(u, 2)[::2], frozen),
    ):
        for array, same in zip(feature_map(user, rows), expected, strict=True):
            assert_array_equal(array, same)
            assert array.flags.carray
    assert [each.shape for each in feature_map(u, np.empty((0, 3)))] == [(0, 12), (0, 3)]


def test_pair_features_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'das\+pairs' is not known: .* das\+pair, :z and :xz"):
        FeatureMap("das+pairs", 1, 1, 1)
    with pytest.raises(ValueError, match=r"the map das has no place for 2 pair features: use das\+pair"):
        FeatureMap("das", 1, 1, 2)
    with pytest.raises(ValueError, match=r"the map li\+pair:z needs pair features, got pair = 0: .*or use li"):
        FeatureMap("li+pair:z", 1, 1)
    feature_map = FeatureMap("das+pair", 1, 1, 2)
    with pytest.raises(ValueError, match=r"p is missing: the map das\+pair needs the 2 pair features of every arm"):
        feature_map([1.0], [[1.0]])
    with pytest.raises(ValueError, match="p has 1 columns, expected 2"):
        feature_map([1.0], [[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="p has 1 rows, but v has 2"):
        feature_map([1.0], [[1.0], [2.0]], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="p is given, but the map das has no pair features"):
        FeatureMap("das", 1, 1)([1.0], [[1.0]], [[1.0]])


@pytest.mark.parametrize("name", [*MAPS, *WITH_PAIRS])
@pytest.mark.parametrize(("du", "dv"), [(1, 1), (3, 2), (4, 4), (6, 5), (11, 3)])
def test_nothing_is_written_beyond_the_last_candidate(mode: str, name: str, du: int, dv: int) -> None:
    random = np.random.default_rng(4)
    feature_map = FeatureMap(name, du, dv, 3 * (name in WITH_PAIRS))
    user, vectors = random.normal(size=(3, du)), random.normal(size=(7, dv))
    vector = random.integers(7, size=(3, 4))
    pair = random.normal(size=(3, 4, feature_map.pair))
    source = feature_map.code, user, vector, vectors, pair
    buffers = features.buffers_for(source, np.empty((0, 4, feature_map.d1)), np.empty((0, 4, feature_map.d2)))
    assert [each.shape for each in buffers] == [(1, 4, feature_map.d1), (1, 4, feature_map.d2)]
    given = GIVEN, np.empty((0, 0)), np.empty((0, 0), np.int64), np.empty((0, 0)), NO_PAIRS
    for t in range(3):
        pairs = pair[t, :3] if feature_map.pair else None
        expected_x, expected_z = feature_map(user[t], vectors[vector[t, :3]], pairs)
        x, z = np.full((1, 4, feature_map.d1), 7.0), np.full((1, 4, feature_map.d2), 7.0)
        assert features.lay_out(source, t, 3, x, z) == 0
        assert_array_equal(x[0, :3], expected_x)
        assert_array_equal(z[0, :3], expected_z)
        assert (x[0, 3] == 7.0).all()
        assert (z[0, 3] == 7.0).all()
        assert features.lay_out(given, t, 3, x, z) == t


def test_rounds_whose_features_are_given_stay_where_they_are(mode: str) -> None:
    random = np.random.default_rng(2)
    x, z = random.normal(size=(3, 4, 2)), random.normal(size=(3, 4, 1))
    source = GIVEN, np.empty((0, 0)), np.empty((0, 0), np.int64), np.empty((0, 0)), NO_PAIRS
    buffers = features.buffers_for(source, x, z)
    assert np.shares_memory(buffers[0], x)
    assert np.shares_memory(buffers[1], z)
    assert features.lay_out(source, 2, 3, x, z) == 2


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="features must be one of das, li, shared, disjoint, got 'dsa'"):
        FeatureMap("dsa", 1, 1)
    feature_map = FeatureMap("das", 3, 2)
    with pytest.raises(ValueError, match=r"u has 2 entries, expected 3.*the user's features"):
        feature_map([1, 2], [1, 2])
    with pytest.raises(ValueError, match="v has 3 columns, expected 2"):
        feature_map([1, 2, 3], [1, 2, 3])
    for v in (np.ones((4, 3)), np.ones(3)):
        with pytest.raises(ValueError, match="v has 3 columns, expected 2"):
            feature_map(np.ones(3), v)
    with pytest.raises(ValueError, match=r"v must have 2 dimension\(s\), got shape \(\)"):
        feature_map(np.ones(3), np.array(1.0))
    with pytest.raises(TypeError, match=r"user must be a whole number, got 2\.5"):
        FeatureMap("das", 2.5, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="arm must be at least 0, got -1: it is the length of an arm's vector"):
        FeatureMap("das", 2, -1)
