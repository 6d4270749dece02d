"""Logs that several files of these tests read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run, said


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A synthetic log, raw in `raw` and converted in `log`."""
    place = tmp_path_factory.mktemp("logs")
    assert run("make-log", place / "raw", "--rounds", 6000, "--files", 2, "--seed", 3).exit_code == 0
    converted = run("convert", place / "raw", place / "log")
    assert converted.exit_code == 0, said(converted)
    assert "6,000 lines read: 6,000 rounds, 0 skipped" in said(converted)
    return place
