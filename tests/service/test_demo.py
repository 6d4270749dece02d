"""The demonstration of examples/service_demo.py: its visitors come, click late and are counted."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import pytest

from examples import service_demo
from hybandits.service.settings import read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import served


def test_visitors_follow_from_the_seed() -> None:
    one, same, other = (service_demo.Newsroom(seed) for seed in (3, 3, 4))
    articles = [[newsroom.write() for _ in range(8)] for newsroom in (one, same, other)]
    assert articles[0] == articles[1] != articles[2]
    assert one.reader() == same.reader()


@pytest.mark.slow
def test_visitors_use_a_real_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_demo, "ARTICLE_SECONDS", 0.0)
    monkeypatch.setattr(service_demo, "PATIENCE", 0.05)
    service = Writer(SqliteStore(tmp_path / "log.db"), read_bandit(tomllib.loads(service_demo.BANDIT)))
    with served(service) as web:
        shown = asyncio.run(service_demo.visit(str(web.base_url), rate=60, seed=5, seconds=1.5))
        view = web.get("/v1/view").json()
        assert view["decisions"] == shown > 0
        assert view["known_arms"] > view["active_arms"] == service_demo.PAGE
    assert verify(service.store).different == 0
