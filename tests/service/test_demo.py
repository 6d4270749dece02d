"""The demonstration: its bandit can be served, its readers come, click late and are counted."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from examples.service_demo import BANDIT, Newsroom, demonstrate, visit
from hybandits.service import demo
from hybandits.service.settings import read_bandit
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import served


def test_its_bandit_is_one() -> None:
    bandit = read_bandit(tomllib.loads(BANDIT))
    assert list(bandit.policies) == ["live", "bold"]
    assert bandit.window == 15


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rate": 0.0}, "--rate must be positive, got 0.0"),
        ({"rate": -3.0}, "--rate must be positive, got -3.0"),
        ({"rate": float("nan")}, "--rate must be finite, got nan"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"port": 99999}, "--port must lie between 0 and 65535, got 99999"),
    ],
)
def test_what_cannot_be_shown_is_said_before_anything_is_served(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        demonstrate(**settings)


@pytest.mark.slow
def test_readers_come_to_any_port_that_is_free() -> None:
    command = [sys.executable, "-m", "examples.service_demo", "--port", "0", "--rate", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[4]
        try:
            for _ in range(300):
                if httpx.get(f"{url}/v1/view").json()["decisions"]:
                    break
                time.sleep(0.1)
            else:
                pytest.fail("no reader came")
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


def test_everything_follows_from_the_seed() -> None:
    one, same, other = (Newsroom(seed) for seed in (3, 3, 4))
    articles = [[room.write() for _ in range(8)] for room in (one, same, other)]
    assert articles[0] == articles[1] != articles[2]
    assert one.reader() == same.reader()


def test_clicks_come_as_often_as_the_model_says() -> None:
    """Seeded; 4 standard errors: a right one fails once in 16,000 seeds."""
    newsroom = Newsroom(1)
    article, reader = newsroom.write(), newsroom.reader()
    chance = newsroom.chance(reader, article)
    clicks = np.mean([newsroom.click(reader, article) is not None for _ in range(4_000)])
    assert abs(clicks - chance) < 4 * np.sqrt(chance * (1 - chance) / 4_000)


def test_uniform_choice_leaves_much_to_gain() -> None:
    newsroom = Newsroom(2)
    page = [newsroom.write() for _ in range(demo.PAGE)]
    chances = np.array([[newsroom.chance(newsroom.reader(), article) for article in page] for _ in range(500)])
    assert chances.max(axis=1).mean() > 1.5 * chances.mean()


@pytest.mark.slow
def test_readers_drive_a_real_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "ARTICLE_SECONDS", 0.0)
    monkeypatch.setattr(demo, "PATIENCE", 0.05)
    service = Writer(SqliteStore(tmp_path / "log.db"), read_bandit(tomllib.loads(BANDIT)))
    with served(service) as web:
        shown = asyncio.run(visit(str(web.base_url), rate=60, seed=5, seconds=1.5))
        view = web.get("/v1/view").json()
        assert view["decisions"] == shown > 0
        assert view["known_arms"] > view["active_arms"] == demo.PAGE
    result = verify(service.store, lambda row: None)
    assert result.different == 0
