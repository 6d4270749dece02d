"""A news page: articles come and go, and clicks arrive minutes after an article was shown.

Every visit shows one article of today's pool. The products of the reader's and the article's features are the shared
features x: what they say about taste holds for all articles. A constant and the article's own features are z: they say
how much each article appeals by itself. Run it with: python examples/news_page.py
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from hybandits import Choice, HyIDS

READER, ARTICLE = 4, 3
POOL, VISITS, DELAY = 12, 6_000, 50


class Shown(NamedTuple):
    """A choice and its features, kept until the click; the policy itself remembers nothing."""

    choice: Choice
    x: np.ndarray
    z: np.ndarray
    chance: float


def main(seed: int = 0) -> dict[str, float]:
    """Return the click rates of the first and the last third of the visits, and of showing articles at random."""
    random = np.random.default_rng(seed)
    taste = random.normal(size=(READER, ARTICLE)) * 0.06
    policy = HyIDS(d1=READER * ARTICLE, d2=1 + ARTICLE, seed=seed)
    articles = {f"story-{i}": random.normal(size=ARTICLE) for i in range(POOL)}
    appeal = {name: random.normal(size=ARTICLE) * 0.06 for name in articles}
    waiting: deque[Shown] = deque()
    chances, at_random = [], []
    for visit in range(VISITS):
        if visit % 400 == 399:  # the oldest story leaves the page, and a new one takes its place
            oldest, newest = next(iter(articles)), f"story-{POOL + visit // 400}"
            del articles[oldest]
            articles[newest] = random.normal(size=ARTICLE)
            appeal[newest] = random.normal(size=ARTICLE) * 0.06
        reader = random.normal(size=READER)
        names = list(articles)
        x = np.array([np.outer(reader, articles[name]).ravel() for name in names])
        z = np.array([[1.0, *articles[name]] for name in names])
        chance = np.clip(0.25 + x @ taste.ravel() + [articles[name] @ appeal[name] for name in names], 0, 1)

        choice = policy.choose(x, z, names)
        waiting.append(Shown(choice, x[choice.index], z[choice.index], chance[choice.index]))
        chances.append(chance[choice.index])
        at_random.append(chance.mean())

        if len(waiting) > DELAY:  # feedback on an article shown fifty visits ago, which may have left the page
            late = waiting.popleft()
            policy.learn(late.choice.arm, late.x, late.z, reward=float(random.random() < late.chance))
        if visit % 1_000 == 999:  # drop stories that are off the page and wait for no feedback
            expected = {shown.choice.arm for shown in waiting}
            for arm in policy.arms:
                if arm not in articles and arm not in expected:
                    policy.forget(arm)
    third = VISITS // 3
    return {
        "first third": float(np.mean(chances[:third])),
        "last third": float(np.mean(chances[-third:])),
        "at random": float(np.mean(at_random)),
    }


if __name__ == "__main__":
    for name, rate in main().items():
        print(f"click rate, {name}: {rate:.3f}")
