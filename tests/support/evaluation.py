"""Small logs with known propensities, targets of a user's own, and the plain formulas of offline evaluation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybandits.evaluation import ChoiceProbabilities, Evaluation
from hybandits.evaluation.view import View
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, Log, LogWriter
from hybandits.simulation.rounds import Rounds

D = 3
ARMS = 6
POOLS = [[0, 1, 2, 3], [1, 3, 5], [4, 0, 2, 5, 1]]
SAME = [[0, 1, 2, 3], [1, 3, 5, 4], [4, 0, 2, 5]]


def write_log(
    path: Path,
    rounds: int = 400,
    *,
    seed: int = 0,
    pools: list[list[int]] = POOLS,
    uniform: bool = False,
    clicks: bool = False,
    order: list[int] | None = None,
    parts: int = 1,
    pair: int = 0,
    change: Callable[[dict[str, Any]], None] = lambda columns: None,
) -> Log:
    """A small log with vectors (1, ..) and a reward that is linear but for noise.

    `order` renumbers the arms' rows and turns the lists round: the same log in other words. `change` may spoil it.
    """
    random = np.random.default_rng(seed)
    vectors = np.column_stack([np.ones(ARMS), random.normal(size=(ARMS, D - 1))])
    theta, beta = random.normal(size=(D, D)), random.normal(size=(ARMS, D))
    user = np.column_stack([np.ones(rounds), random.normal(size=(rounds, D - 1))])
    pool = random.integers(0, len(pools), rounds)
    sizes = np.array([len(p) for p in pools])[pool]
    shares = random.dirichlet(np.ones(max(sizes)), rounds) + 0.2
    shares[np.arange(max(sizes)) >= sizes[:, None]] = 0.0
    shares /= shares.sum(axis=1, keepdims=True)
    if uniform:
        shares = np.where(shares > 0, 1 / sizes[:, None], 0.0)
    chosen = np.array([random.choice(len(p), p=p) for p in shares])
    shown = np.array([pools[p][c] for p, c in zip(pool, chosen, strict=True)])
    mean = np.einsum("ti,ij,tj->t", user, theta, vectors[shown]) + (vectors[shown] * beta[shown]).sum(axis=1)
    pairs = np.random.default_rng((seed, 1)).normal(size=(rounds, int(sizes.max()), pair))
    mean = mean + 0.5 * pairs[np.arange(rounds), chosen].sum(axis=1)
    reward = mean + random.normal(size=rounds)
    if clicks:
        reward = (random.random(rounds) < 0.1 + 0.3 / (1 + np.exp(-mean))).astype(float)
    columns: dict[str, Any] = {
        "pool": pool, "chosen": chosen, "reward": reward, "user": user, "pair": pairs,
        "propensity": shares[np.arange(rounds), chosen],
    }  # fmt: skip
    change(columns)
    with LogWriter(path, kind="test", user=list("abc"), arm=list("abc"), pair=list("pqr"[:pair])) as writer:
        rows: dict[int, int] = {}
        for i in order or range(ARMS):
            rows[i] = writer.tables.arm(f"a{i}", vectors[i])
        for members in pools:
            listed = [rows[i] for i in members]
            writer.tables.pool(listed[::-1] if order else listed)
        if order:
            columns["chosen"] = sizes - 1 - columns["chosen"]
        entire = Batch(np.arange(rounds), **columns)
        for i in range(parts):
            writer.source()
            writer.write(entire.part(i * rounds // parts, (i + 1) * rounds // parts))
        return writer.finish(ReadReport())


def log_of(path: Path, chosen: np.ndarray, reward: np.ndarray, propensity: np.ndarray, *, arms: str = "ab") -> Log:
    """A log of arms that nothing but their names tells apart, with the constant as the only feature."""
    n = len(chosen)
    with LogWriter(path, kind="test", user=["1"], arm=["1"]) as writer:
        pool = writer.tables.pool([writer.tables.arm(name, np.ones(1)) for name in arms])
        writer.source()
        user = np.ones((n, 1))
        writer.write(Batch(np.arange(n), np.full(n, pool), chosen, reward, propensity, user))
        return writer.finish(ReadReport())


class Plain:
    """Everything the plain formulas need, round by round."""

    def __init__(self, view: View, propensities: Callable[[np.ndarray, np.ndarray, list[Any]], np.ndarray]) -> None:
        (batch,) = view.log.batches()
        self.n, self.reward, self.propensity = batch.rounds, batch.reward.copy(), batch.propensity
        self.pi, self.features, self.shown = [], [], batch.chosen
        size = view.d1 + len(view.names) * view.d2
        for t in range(self.n):
            entries = range(view.offsets[batch.pool[t]], view.offsets[batch.pool[t] + 1])
            pairs = [
                view.map(batch.user[t], view.vectors[view.vector[e]], batch.pair[t, k] if view.map.pair else None)
                for k, e in enumerate(entries)
            ]
            x, z = np.array([x for x, _ in pairs]), np.array([z for _, z in pairs])
            self.pi.append(propensities(x, z, [view.names[view.arm[e]] for e in entries]))
            wide = np.zeros((len(x), size))
            wide[:, : view.d1] = x
            for k, e in enumerate(entries):
                start = view.d1 + view.arm[e] * view.d2
                wide[k, start : start + view.d2] = z[k]
            self.features.append(wide)
        self.match = np.array([pi[c] for pi, c in zip(self.pi, self.shown, strict=True)])
        self.weight = self.match / self.propensity
        self.rows = np.array([f[c] for f, c in zip(self.features, self.shown, strict=True)])
        self.mixed = np.array([pi @ f for pi, f in zip(self.pi, self.features, strict=True)])

    def models(self, fold: np.ndarray, ridge: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """(M^-1, parameters) without each of the folds."""
        fits = []
        for f in range(fold.max() + 1):
            x, r = self.rows[fold != f], self.reward[fold != f]
            inverse = np.linalg.inv(x.T @ x + ridge * np.eye(x.shape[1]))
            fits.append((inverse, inverse @ x.T @ r))
        return fits


def ranked(first: float, n: int) -> np.ndarray:
    return np.array([first] + [(1 - first) / (n - 1)] * (n - 1))


def tilted(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    score = np.exp(np.hstack([x, z]).sum(axis=1))
    return np.asarray(score / score.sum())


@dataclass(frozen=True)
class Ranked:
    """A target of a user's own: the first of the list with some probability."""

    first: float

    def prepared(self, view: View) -> ChoiceProbabilities:
        def choice_probabilities(batch: Batch, rounds: Rounds) -> np.ndarray:
            sizes = view.sizes[batch.pool]
            probability = np.zeros((batch.rounds, sizes.max()))
            for t, n in enumerate(sizes):
                probability[t, :n] = ranked(self.first, n)
            return probability

        return choice_probabilities


@dataclass(frozen=True)
class Tilted:
    """A target of a user's own that looks at features."""

    def prepared(self, view: View) -> ChoiceProbabilities:
        def choice_probabilities(batch: Batch, rounds: Rounds) -> np.ndarray:
            probability = np.zeros(rounds.index.shape)
            for t, n in enumerate(rounds.counts):
                probability[t, :n] = tilted(*rounds.features(t))
            return probability

        return choice_probabilities


def numbers(evaluation: Evaluation) -> np.ndarray:
    return np.array([[e.value, e.low, e.high] for e in evaluation.estimates], float)


def spoil(name: str, value: float, where: slice = slice(7, 9)) -> Callable[[dict[str, Any]], None]:
    def change(columns: dict[str, Any]) -> None:
        columns[name][where] = value

    return change
