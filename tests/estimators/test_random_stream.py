"""Random streams of decisions, named by a count or by the caller's key."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits.estimators.random_stream import RandomStream, digest_of_key, key_of_seed, stream_of
from hybandits.kernels import random


def test_a_stream_gives_the_same_numbers_at_every_call() -> None:
    stream = RandomStream(key_of_seed(1), 4)
    np.testing.assert_array_equal(stream.uniforms(3), stream.uniforms(5)[:3])
    quantiles = stream.uniforms(7)
    random.to_normals(quantiles)
    np.testing.assert_array_equal(stream.normals(7), quantiles)


def test_counted_and_keyed_decisions_never_share_numbers() -> None:
    counted, keyed = RandomStream(1, 7), RandomStream(1, 7, random.KEYED)
    assert not np.isin(counted.uniforms(100), keyed.uniforms(100)).any()


def test_seeds_and_streams_give_keys_of_their_own() -> None:
    keys = {key_of_seed(seed, stream_of(name), depth) for seed in range(20) for name in ("A", "B") for depth in (0, 1)}
    assert len(keys) == 80
    assert all(0 <= key < 2**63 for key in keys)
    assert key_of_seed(None) != key_of_seed(None)


def test_keys_are_str_int_or_tuples_of_them() -> None:
    digests = {digest_of_key(key) for key in ("event-17", "17", 17, ("event", 17), ("event", "17"))}
    assert len(digests) == 5
    assert digest_of_key("event-17") == digest_of_key("event-17")
    with pytest.raises(TypeError, match=r"key must be a str, an int or a tuple of them, got 1\.5 \(float\)"):
        digest_of_key(1.5)
