"""Streams of the benchmark: fixed, the same for everybody, and described as a library's user would see them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from library_benchmark.streams import SEEDS, STREAMS, Stream

WITHOUT_SKLEARN = "scikit-learn, which ships the data, is not installed: pip install '.[libraries]'"
SHIPPED = ("digits", "wine", "breast cancer", "iris")
HAS_SKLEARN = importlib.util.find_spec("sklearn") is not None


@pytest.fixture(params=STREAMS)
def stream(request: pytest.FixtureRequest) -> Stream:
    if request.param in SHIPPED and not HAS_SKLEARN:
        pytest.skip(WITHOUT_SKLEARN)
    return STREAMS[request.param]


def test_there_are_enough_of_them() -> None:
    assert len(STREAMS) >= 16
    assert len(set(SEEDS)) >= 5
    assert all(stream.rounds >= 2_000 for stream in STREAMS.values())
    assert sum(stream.arms_change for stream in STREAMS.values()) == 1
    assert STREAMS["products, late clicks"].delay == 300


def test_everybody_sees_the_same(stream: Stream) -> None:
    for first, second in zip(stream.play(SEEDS[0], 30), stream.play(SEEDS[0], 30), strict=True):
        assert first.round.arms == second.round.arms
        assert_array_equal(first.round.x, second.round.x)
        assert_array_equal(first.round.z, second.round.z)
        assert_array_equal(first.rewards, second.rewards)
    other = next(stream.play(SEEDS[1], 30))
    mine = next(stream.play(SEEDS[0], 30))
    assert not np.array_equal(np.append(other.round.x, other.round.z), np.append(mine.round.x, mine.round.z))


def test_rounds_are_described_as_the_stream_says(stream: Stream) -> None:
    for shown, rewards, means in stream.play(SEEDS[0], 30):
        n = len(shown.arms)
        assert n == stream.arms
        assert shown.x.shape == (n, stream.d1)
        assert shown.z.shape == (n, stream.d2)
        assert rewards.shape == means.shape == (n,)
        if stream.binary:
            assert set(rewards.tolist()) <= {0.0, 1.0}
        assert (shown.user is not None) == stream.user
        if shown.user is not None:
            assert shown.user[0] == 1
            assert_array_equal(shown.z, np.broadcast_to(shown.user, shown.z.shape))
        if stream.items == "fixed":
            assert shown.items is not None
            assert shown.user is not None
            outer = shown.items[:, :, None] * shown.user
            assert_allclose(outer.reshape(n, -1), shown.x)
        elif stream.items == "none":
            assert shown.items is None
        elif not stream.user:
            assert_array_equal(shown.items, np.concatenate((shown.x, shown.z), axis=1))


def test_arms_come_and_go_in_one_stream() -> None:
    plays = list(STREAMS["arms come and go"].play(SEEDS[0], 300))
    assert plays[0].round.arms == list(range(20))
    assert len(set(plays[-1].round.arms) - set(range(20))) == 2
