"""What several tests of logs use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.support.yahoo_logs import in_plain_python


@pytest.fixture(params=["compiled", "plain"])
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kernels of the Yahoo reader as they are, and as plain Python."""
    with in_plain_python() if request.param == "plain" else nullcontext():
        yield request.param
