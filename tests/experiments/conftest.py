"""Fixtures of the tests of experiments."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybandits.engines import SerialEngine
from hybandits.experiments.runner import run
from tests.support.experiments import EIGEN, SMALL


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of both experiments, run in this process; not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    run([SMALL, EIGEN], folder, engine=SerialEngine())
    return folder
