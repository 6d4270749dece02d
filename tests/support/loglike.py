"""Small logs for tests, written directly in the form that logs have on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from hybandits import Policy
from hybandits.evaluation.log_world import RewardModel
from hybandits.evaluation.view import View
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, Log, Tables, convert


def memberships(random: np.random.Generator, n: int) -> np.ndarray:
    """Constant and five memberships that sum to 1, to six decimals, as in the click logs."""
    return np.column_stack([np.ones(n), np.round(random.dirichlet(np.ones(5) * 0.5, n), 6)])


class LittleLog:
    """A reader of nothing: rounds with changing pools from a linear model with noise."""

    kind = "test"
    binary_user = False
    size = 0
    about: dict[str, object] = {}  # noqa: RUF012

    def __init__(
        self,
        rounds: int = 600,
        *,
        arms: int = 8,
        pool: int = 5,
        every: int = 97,
        sources: int = 2,
        seed: int = 0,
        user: Callable[[np.random.Generator, int], np.ndarray] = memberships,
        clicks: bool = False,
        batch: int = 211,
        ids: Callable[[int], str | int] = "a{}".format,
        pair: int = 0,
    ) -> None:
        self.rounds, self.arms, self.pool, self.every, self.sources = rounds, arms, pool, every, sources
        self.seed, self.clicks, self.batch = seed, clicks, batch
        self._user, self._ids = user, ids
        random = np.random.default_rng(seed)
        du = user(random, 1).shape[1]
        self.user = [str(i + 1) for i in range(du)]
        self.arm = [str(i + 1) for i in range(6)]
        self.vectors = memberships(random, arms)
        self.vectors[-1, 1:] = 0.0
        self.theta = random.normal(size=(6, du)) * 0.05
        self.beta = random.normal(size=(arms, 6)) * 0.05
        self.pair = [f"p{i + 1}" for i in range(pair)]
        self.gamma = random.normal(size=pair) * 0.2
        """The effects of the pair features, which all arms share."""

    def batches(
        self, tables: Tables, problems: ReadReport, progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Batch]]:
        random = np.random.default_rng((self.seed, 1))
        rows = [tables.arm(self._ids(i), vector) for i, vector in enumerate(self.vectors)]
        t = 0
        members = np.arange(self.pool)
        for s in range(self.sources):
            left = self.rounds // self.sources
            problems.begin(f"day{s}")
            problems.count(left)
            while left:
                n = min(left, self.batch, self.every - t % self.every)
                if t % self.every == 0:
                    size = int(random.integers(max(1, self.pool - 1), self.pool + 2))
                    members = random.choice(self.arms, size, replace=False)
                pool = tables.pool([rows[i] for i in members])
                user = self._user(random, n)
                chosen = random.integers(0, len(members), n)
                arm = members[chosen]
                mean = np.einsum("ti,tj,ji->t", user, self.vectors[arm], self.theta)
                mean += (self.vectors[arm] * self.beta[arm]).sum(axis=1)
                pairs = random.normal(size=(n, len(members), len(self.pair)))
                mean += pairs[np.arange(n), chosen] @ self.gamma
                if self.clicks:
                    reward = (random.random(n) < np.clip(mean + 0.3, 0, 1)).astype(float)
                else:
                    reward = mean + 0.1 * random.normal(size=n)
                yield (
                    f"day{s}",
                    Batch(
                        time=1_241_160_900 + np.arange(t, t + n),
                        pool=np.full(n, pool),
                        chosen=chosen,
                        reward=reward,
                        propensity=np.full(n, 1 / len(members)),
                        user=user,
                        pair=pairs if self.pair else np.empty((n, 0, 0)),
                    ),
                )
                t += n
                left -= n


def little_log(folder: Path, name: str = "log", **settings: object) -> Log:
    """Such a log on disk."""
    return convert(LittleLog(**settings), folder / name, ReadReport())  # type: ignore[arg-type]


def random_model(view: View, seed: int = 0) -> RewardModel:
    """A reward model of random numbers that does not know the first arm."""
    random = np.random.default_rng(seed)
    names = view.names[1:]
    return RewardModel(
        map=view.map,
        theta=random.normal(size=view.d1),
        beta=random.normal(size=(len(names), view.d2)),
        names=names,
    )


def learn_log(policy: Policy, view: View, start: int = 0, stop: int | None = None) -> None:
    """Teach a policy the rounds start..stop-1 of a log one by one."""
    for batch in view.log.batches(start, stop):
        inside = view.shown(batch) >= 0
        policy.learn_batch(*view.rows(Batch(*(column[inside] for column in batch))), batch.reward[inside])
