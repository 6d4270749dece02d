"""Both stores, a SQLite file and a PostgreSQL server that all tests of a run share; and a dashboard without delay."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybandits.service import view
from hybandits.service.log import Store, open_store
from soak.servers import Postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server, for tests of the xdist group "postgres"."""
    server = Postgres()
    yield server
    server.end()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=[pytest.mark.slow, pytest.mark.xdist_group("postgres")]),
    ]
)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a new log, in either store."""
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    server: Postgres = request.getfixturevalue("postgres")
    return server.address(f"test-{secrets.token_hex(8)}")


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """A new log, in either store."""
    opened = open_store(address)
    yield opened
    opened.close()


@pytest.fixture
def always_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dashboard's values are never older than the request."""
    monkeypatch.setattr(view, "OFTEN", 0.0)
