"""The random stream of a decision: numbers by a key, a purpose and the number of the decision."""

import hashlib
import json
import zlib
from collections.abc import Hashable
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import random

_BITS = 63
"""Keys and numbers of decisions are kept below 2^63, so that compiled code always gets the same kind of integer."""


class RandomStream(NamedTuple):
    """The random numbers of one decision, without state: the same call returns the same numbers."""

    key: int
    """Made from the policy's seed."""
    decision: int
    """The number of earlier decisions, or a digest of the caller's key."""
    keyed: int = 0
    """`random.KEYED` where the caller gave a key."""

    def at_place(self, place: int) -> Self:
        """Return the stream of another position of the same ranking."""
        return self._replace(keyed=self.keyed + random.PLACE * place)

    def uniforms(self, n: int, purpose: int = random.DECIDE) -> FloatArray:
        """Return n numbers uniform in (0, 1)."""
        numbers = np.empty(n)
        random.fill_uniforms(self.key, purpose + self.keyed, self.decision, numbers)
        return numbers

    def normals(self, n: int, purpose: int = random.DECIDE) -> FloatArray:
        """Return n standard normals."""
        numbers = np.empty(n)
        random.fill_normals(self.key, purpose + self.keyed, self.decision, numbers)
        return numbers


def key_of_seed(seed: int | None, *stream: int) -> int:
    """The key that belongs to a seed and a stream (a class, say); fresh entropy if the seed is None."""
    words = np.random.SeedSequence(checks.seed(seed), spawn_key=stream).generate_state(1, np.uint64)
    return int(words[0]) >> (64 - _BITS)


def stream_of(name: str) -> int:
    """The number of a stream that goes by a name."""
    return zlib.crc32(name.encode())


def digest_of_key(key: Hashable) -> int:
    """The number of the decision that a caller names by a key: a str, an int or a tuple of them."""
    try:
        plain = checks.plain_id(key)
    except TypeError:
        raise TypeError(
            f"key must be a str, an int or a tuple of them, got {checks.short(key)} ({type(key).__name__}): "
            "pass the id of the event"
        ) from None
    return digest_of(plain)


def digest_of(plain: Any) -> int:
    """A number below 2^63 from a value that JSON can hold."""
    text = encode_basestring_ascii(plain) if type(plain) is str else json.dumps(plain)  # the same, but faster
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - _BITS)
