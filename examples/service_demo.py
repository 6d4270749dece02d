"""A demonstration: simulated readers of a news page, who ask a running service over HTTP what to show them.

Whether a reader clicks follows a known hybrid model: log odds = BASE + fit of topic and interest + the article's own
appeal, which differs by age. Clicks come late, some after the window, and most readers never click. Articles come and
go.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import signal
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

from hybandits.foundation import checks
from hybandits.service.client import AsyncClient, ServiceError
from hybandits.service.serving import Serving, serve

BANDIT = """\
name = "News page (a demonstration)"
rewards = "clicks"
window = "15s"
range = [0.0, 1.0]

[user]
numeric = ["age"]
categorical = { interest = ["politics", "sport", "culture"] }

[arm]
categorical = { topic = ["politics", "sport", "culture", "weather"] }

[[challengers]]
name = "bold"
policy = "HyThompson:scale=1,noise=0.5"
"""
"""The bandit.toml that the demonstration needs."""

TOPICS = ("politics", "sport", "culture", "weather")
INTERESTS = ("politics", "sport", "culture")

BASE = -2.6
"""Log odds of a click on an ordinary article that fits nobody in particular."""

PAGE = 12
"""Articles on the page."""

ARTICLE_SECONDS = 30.0
"""After how many seconds the oldest article gives way to a new one."""

PATIENCE = 4.0
"""Mean seconds until a click."""


class Article(NamedTuple):
    """An article: its id, its topic, and its appeal to readers of middle age and per unit of age."""

    id: str
    topic: str
    appeal: float
    slope: float


class Newsroom:
    """Readers, articles and clicks, all drawn from the seed."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._fit = self._random.normal(0.0, 0.4, (len(INTERESTS), len(TOPICS)))
        for i, topic in enumerate(INTERESTS):
            self._fit[i, TOPICS.index(topic)] += 1.0
        self._written = 0

    def write(self) -> Article:
        """A new article."""
        self._written += 1
        topic = TOPICS[self._written % len(TOPICS)]
        return Article(f"{topic} {self._written}", topic, *self._random.normal(0, 0.5, 2).tolist())

    def reader(self) -> dict[str, str | float]:
        """A reader; age is in standard deviations from the mean."""
        return {"age": round(float(self._random.normal()), 2), "interest": str(self._random.choice(INTERESTS))}

    def chance(self, reader: dict[str, str | float], article: Article) -> float:
        """The probability of a click."""
        fit = self._fit[INTERESTS.index(str(reader["interest"])), TOPICS.index(article.topic)]
        odds = BASE + fit + article.appeal + article.slope * float(reader["age"])
        return 1 / (1 + math.exp(-odds))

    def click(self, reader: dict[str, str | float], article: Article) -> float | None:
        """Seconds until the reader clicks; None if that never happens."""
        if self._random.random() >= self.chance(reader, article):
            return None
        return float(self._random.exponential(PATIENCE))


async def visit(url: str, *, rate: float = 30.0, seed: int = 0, seconds: float = math.inf) -> int:
    """Send readers to a service whose bandit is `BANDIT`; returns how many were shown an article.

    Parameters
    ----------
    url : str
        The address of the service.
    rate : float
        Readers per second.
    seed : int
        The seed of readers, articles and clicks.
    seconds : float
        How long they come.
    """
    newsroom = Newsroom(seed)
    pauses = np.random.default_rng(seed)
    page: dict[str, Article] = {}
    shown = 0
    async with AsyncClient(url) as client, asyncio.TaskGroup() as readers:

        async def read() -> None:
            nonlocal shown
            reader = newsroom.reader()
            with contextlib.suppress(ServiceError, httpx.HTTPError):  # this reader sees nothing; others come
                decided = await client.decide(reader)
                shown += 1
                after = newsroom.click(reader, page[decided.arm]) if decided.arm in page else None
                if after is not None and after < seconds:
                    await asyncio.sleep(after)
                    await client.reward(decided.event_id, 1.0)

        async def add() -> None:
            article = newsroom.write()
            await client.put_arm(article.id, {"topic": article.topic})
            page[article.id] = article

        for _ in range(PAGE):
            await add()
        start = renewed = time.monotonic()
        while (now := time.monotonic()) - start < seconds:
            readers.create_task(read())
            if now - renewed >= ARTICLE_SECONDS:
                renewed = now
                with contextlib.suppress(ServiceError, httpx.HTTPError):  # the page stays as it is until the next time
                    await add()
                    oldest = next(iter(page))
                    await client.retire_arm(oldest)
                    del page[oldest]
            await asyncio.sleep(pauses.exponential(1 / rate))
    return shown


def demonstrate(*, port: int = 8000, rate: float = 30.0, seed: int = 0) -> None:
    """Serve `BANDIT` at a port of this machine and send readers to it, until Ctrl-C. The log is thrown away."""
    checks.positive("--rate", rate, "it is the number of readers per second")
    checks.seed(seed)
    readers: list[BaseProcess] = []

    def begin(url: str) -> None:
        print(f"The page is at {url} (Ctrl-C ends it). Simulated readers visit it now.", flush=True)
        readers.append(get_context("spawn").Process(target=_come, args=(url, rate, seed), daemon=True))
        readers[0].start()

    with tempfile.TemporaryDirectory() as folder:
        bandit = Path(folder) / "bandit.toml"
        bandit.write_text(BANDIT)
        try:
            serve(Serving(bandits=[str(bandit)], port=port), begin)
        except KeyboardInterrupt:
            pass
        finally:
            for process in readers:
                process.terminate()
                process.join()


def _come(url: str, rate: float, seed: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that serves ends this one
    asyncio.run(visit(url, rate=rate, seed=seed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Show a service with simulated readers of a news page, until Ctrl-C.")
    parser.add_argument("--port", type=int, default=8000, help="port to serve at; 0 takes one that is free (8000)")
    parser.add_argument("--rate", type=float, default=30.0, help="readers per second (30)")
    parser.add_argument("--seed", type=int, default=0, help="what readers, articles and clicks are drawn from (0)")
    try:
        demonstrate(**vars(parser.parse_args()))
    except ValueError as problem:
        raise SystemExit(f"hybandits: {problem}") from None
