"""Fixtures of the tests of commands: logs, and light engines and pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybandits.cli import experiments, logs, shared
from hybandits.engines import ProcessEngine, SerialEngine
from hybandits.report import page as pages
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


@pytest.fixture
def page() -> None:
    """Asked for by tests that need the whole report."""


@pytest.fixture(autouse=True)
def _light(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process work in it alone and, unless a test asks for `page`, draw no figures."""

    def make_engine(*options: Any) -> Any:
        engine = shared.make_engine(*options)
        return SerialEngine() if isinstance(engine, ProcessEngine) else engine

    for module in (experiments, logs):
        monkeypatch.setattr(module, "make_engine", make_engine)
    if "page" not in request.fixturenames:
        monkeypatch.setattr(pages, "write_report", lambda results, *_, **options: results.folder)
