"""Fixtures of the kernels' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.support.plain import plain


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test twice: with compiled kernels and with the same source run by the interpreter."""
    with plain() if request.param == "plain" else nullcontext():
        yield request.param
