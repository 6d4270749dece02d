"""Rounds are checked before they are played, and say what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits.features import FeatureMap
from hybandits.simulation.play import play_rounds
from hybandits.simulation.rounds import FeatureSource, Rounds
from tests.support.rounds import MAKERS, changing, together


def test_rounds_that_do_not_fit_are_refused_before_anything_is_played() -> None:
    policy = MAKERS["as written"]()
    good, _, rewards = together(changing(0, length=10))
    picks = np.empty(10, np.int64)

    def refused(message: str, **changed: Any) -> None:
        values = {"rewards": rewards, "picks": picks, **changed}
        given = (values.pop("rewards"), values.pop("picks"))
        with pytest.raises(ValueError, match=message):
            play_rounds(policy, good._replace(**{k: v for k, v in values.items() if k in good._fields}), *given)

    refused("the policy has d1=4, d2=3 and the rounds d1=3, d2=3", x=good.x[:, :, :3])
    refused("x must be a writeable array of float64 in C order", x=np.asfortranarray(good.x))
    refused(r"x must have shape \(rounds, n, d1\), got \(3, 4\)", x=good.x[0])
    refused(r"z must be .* got float32", z=good.z.astype(np.float32))
    refused("counts must be .* of shape", counts=good.counts[:5])
    refused("index must be", index=good.index[0])
    refused("rewards must be", rewards=rewards[:5])
    refused("picks must be .*int64.* got float64", picks=np.empty(10))
    refused("more than once", arms=[*good.arms[1:], good.arms[1]])
    refused("round 0 has counts 0", counts=0 * good.counts)
    refused("give it 1 to", counts=good.counts + good.index.shape[1])
    refused("each a different one of", index=good.index - 1)
    refused("each a different one of", index=good.index + 9)
    wide = int(np.argmax(good.counts))
    assert good.counts[wide] > 1
    refused(f"round {wide} has", index=np.where(np.arange(10)[:, None] == wide, 0, good.index))
    assert policy.arms == []


def sourced(map_: FeatureMap, *, rounds: int = 5, n: int = 3) -> Rounds:
    """Rounds whose features are computed from random vectors."""
    random = np.random.default_rng(0)
    source = FeatureSource(
        map_, random.normal(size=(rounds, map_.user)), random.integers(0, 4, size=(rounds, n)),
        random.normal(size=(4, map_.arm)), random.normal(size=(rounds, n, map_.pair)) if map_.pair else None,
    )  # fmt: skip
    x, z = np.empty((0, n, map_.d1)), np.empty((0, n, map_.d2))
    return Rounds(x, z, range(n), np.tile(np.arange(n), (rounds, 1)), np.array([n, n - 1] * rounds)[:rounds], source)


@pytest.mark.parametrize("name", ["das", "li", "shared", "disjoint", "das+pair", "li+pair:z", "disjoint+pair:xz"])
def test_features_are_those_of_the_map(name: str) -> None:
    map_ = FeatureMap(name, 3, 2, 2 * ("+" in name))
    rounds = sourced(map_)
    rounds.check(map_.d1, map_.d2)
    assert rounds.source is not None
    for t, count in enumerate(rounds.counts):
        pair = None if rounds.source.pair is None else rounds.source.pair[t, :count]
        x, z = map_(rounds.source.user[t], rounds.source.vectors[rounds.source.vector[t, :count]], pair)
        assert_array_equal(rounds.features(t)[0], x)
        assert_array_equal(rounds.features(t)[1], z)


@pytest.mark.parametrize("map_", [None, FeatureMap("das", 3, 2), FeatureMap("das+pair", 3, 2, 2)])
def test_a_part_has_the_features_of_its_rounds(map_: FeatureMap | None) -> None:
    rounds = together(changing(0, length=5))[0] if map_ is None else sourced(map_)
    part = rounds.part(2, 4)
    assert len(part.counts) == 2
    for t in range(2):
        assert_array_equal(part.features(t)[0], rounds.features(t + 2)[0])
        assert_array_equal(part.features(t)[1], rounds.features(t + 2)[1])
    with pytest.raises(IndexError):
        part.features(2)
