"""`python -m benchmarks.coverage`: coverage of the intervals of offline evaluation, on synthetic logs.

A synthetic world has finitely many users, drawn with known probabilities, two lists of candidates, and click
probabilities of 3 to 15 % that are linear in the features. So the value of a fixed policy is a finite sum. Every
repetition draws a log of 20,000 rounds, writes it, and evaluates policies that were trained on another one.

Logging is uniform over lists of 12, or, over lists of 10 and 14, by a softmax of random scores mixed with uniform
choice. For a policy that learns, the truth is its value averaged over the rounds that it learned from in replay and,
for the other estimators, over all rounds, each as the policy was then.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hybandits import EpsilonGreedy, Greedy, HyLinUCB, Policy
from hybandits.evaluation import EvaluationPlan, Frozen, Learning, Target, UniformChoice, fit
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.view import Expander, View
from hybandits.foundation.checks import FloatArray
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, Log, LogWriter
from hybandits.simulation.play import play_rounds

ROUNDS = 20_000
REPETITIONS = 500
ARMS = 16
USERS = 40
NEEDED = 0.93

LOGGING = ("uniform", "softmax")
INTERVALS = ("bootstrap", "bernstein")


class CoverageSetting:
    """Users, arms and click probabilities, and one way of logging."""

    def __init__(self, logging: str, seed: int = 7) -> None:
        random = np.random.default_rng(seed)
        self.logging = logging
        self.users = np.column_stack([np.ones(USERS), random.dirichlet(np.ones(3), USERS)[:, :2]])
        self.share = random.dirichlet(np.full(USERS, 3.0))
        self.vectors = np.column_stack([np.ones(ARMS), random.uniform(-1, 1, (ARMS, 2))])
        theta = random.normal(size=(3, 3))
        beta = random.normal(size=(ARMS, 3))
        raw = self.users @ theta @ self.vectors.T + (self.vectors * beta).sum(axis=1)
        # Shifted and scaled to 3..15 %: still linear, both vectors having a constant.
        self.clicks = 0.03 + 0.12 * (raw - raw.min()) / (raw.max() - raw.min())
        sizes = (12, 12) if logging == "uniform" else (10, 14)
        self.pools = [np.sort(random.choice(ARMS, size, replace=False)) for size in sizes]
        self.pool_share = np.array([0.6, 0.4])
        scores = random.normal(size=(USERS, ARMS))
        self.propensities = []
        for pool in self.pools:
            p = np.full((USERS, len(pool)), 1 / len(pool))
            if logging == "softmax":
                soft = np.exp(scores[:, pool])
                p = 0.3 * p + 0.7 * soft / soft.sum(axis=1, keepdims=True)
            self.propensities.append(p)

    def log(self, folder: Path, seed: int, rounds: int = ROUNDS) -> Log:
        """A log of so many rounds, written to a folder."""
        random = np.random.default_rng((seed, LOGGING.index(self.logging)))
        user = random.choice(USERS, rounds, p=self.share)
        pool = random.choice(2, rounds, p=self.pool_share)
        chosen, propensity, arm = np.empty(rounds, np.int64), np.empty(rounds), np.empty(rounds, np.int64)
        for p in range(2):
            here = np.flatnonzero(pool == p)
            shares = self.propensities[p][user[here]]
            drawn = (np.cumsum(shares, axis=1) < random.random((len(here), 1))).sum(axis=1)
            drawn = np.minimum(drawn, shares.shape[1] - 1)
            chosen[here], propensity[here] = drawn, shares[np.arange(len(here)), drawn]
            arm[here] = self.pools[p][drawn]
        reward = (random.random(rounds) < self.clicks[user, arm]).astype(float)
        with LogWriter(folder, kind="synthetic", user=["1", "2", "3"], arm=["1", "2", "3"]) as writer:
            self.enter(writer)
            writer.source()
            time = np.arange(rounds)
            writer.write(Batch(time, pool, chosen, reward, propensity, self.users[user]))
            return writer.finish(ReadReport())

    def enter(self, writer: LogWriter) -> None:
        """Enter the arms and lists, which are the same in every log."""
        rows = [writer.tables.arm(f"a{i}", vector) for i, vector in enumerate(self.vectors)]
        for pool in self.pools:
            writer.tables.pool([rows[i] for i in pool])

    def everything(self) -> Batch:
        """Every user with every list, once."""
        n = 2 * USERS
        pool, user = np.repeat([0, 1], USERS), np.tile(np.arange(USERS), 2)
        zeros = np.zeros(n)
        return Batch(np.arange(n), pool, np.zeros(n, np.int64), zeros, zeros + 1.0, self.users[user])

    def value(self, pi: FloatArray) -> float:
        """The value of a policy with these choice probabilities for `everything`."""
        total = 0.0
        for p, pool in enumerate(self.pools):
            mine = pi[p * USERS : (p + 1) * USERS, : len(pool)]
            total += self.pool_share[p] * float(self.share @ (mine * self.clicks[:, pool]).sum(axis=1))
        return total

    def true_value(self, target: Target, view: View) -> float:
        """The value of a fixed policy."""
        probabilities = target.prepared(view)
        parts = [probabilities(piece, rounds) for piece, rounds in Expander(view)(self.everything())]
        most = max(part.shape[1] for part in parts)
        return self.value(np.vstack([np.pad(part, ((0, 0), (0, most - part.shape[1]))) for part in parts]))


def learned_values(
    setting: CoverageSetting, view: View, policy: Policy, rejection: Rejection, every: int = 240
) -> tuple[float, float]:
    """Replay by hand: the policy's value averaged over the rounds kept and over all, computed every so many rounds."""
    pieces = list(Expander(view)(setting.everything()))
    expander = Expander(view)
    total, kept, along = 0.0, 0, 0.0

    def now() -> float:
        wide = max(len(pool) for pool in setting.pools)
        pi = np.zeros((2 * USERS, wide))
        at = 0
        for piece, rounds in pieces:
            picks = np.empty(piece.rounds, np.int64)
            play_rounds(policy, rounds, np.full(rounds.index.shape, np.nan), picks)
            pi[np.arange(at, at + piece.rounds), picks] = 1.0
            at += piece.rounds
        return setting.value(pi)

    before, number = None, 0
    for batch in view.log.batches():
        for piece, rounds in expander(batch):
            rewards = np.full(rounds.index.shape, np.nan)
            drawn = rejection.drawn(number, piece.propensity)
            number += piece.rounds
            rewards[np.arange(piece.rounds), piece.chosen] = np.where(drawn > 0, piece.reward, np.nan)
            for start in range(0, piece.rounds, every):
                stop = min(start + every, piece.rounds)
                picks = np.empty(stop - start, np.int64)
                before = now() if before is None else before
                play_rounds(policy, rounds.part(start, stop), np.ascontiguousarray(rewards[start:stop]), picks)
                after = now()
                hits = int(((picks == piece.chosen[start:stop]) & (drawn[start:stop] > 0)).sum())
                total += hits * (before + after) / 2
                along += (stop - start) * (before + after) / 2
                kept += hits
                before = after
    return total / kept, along / number


def run(repetitions: int, rounds: int, show: bool = False) -> dict[str, Any]:
    """Coverage and mean width by logging, policy, estimator and interval."""
    covered: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    wide: dict[tuple[str, ...], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        for logging in LOGGING:
            setting = CoverageSetting(logging)
            view = View(setting.log(Path(folder) / f"{logging}-training", 10**6))
            trained = Greedy(d1=view.d1, d2=view.d2, seed=0)
            fit.warm_start(trained, fit.collect(view))
            targets: dict[str, Any] = {
                "uniform": UniformChoice(),
                "trained": Frozen(trained),
                "epsilon": Frozen(EpsilonGreedy(trained, epsilon=0.2, seed=0)),
            }
            truth = {name: setting.true_value(target, view) for name, target in targets.items()}
            fresh = HyLinUCB(d1=view.d1, d2=view.d2, noise=0.1, ridge=1.0, seed=0)
            estimators = ["ips", "snips", "dm", "dr", "replay"]
            targets["learning"] = Learning(fresh)
            for i in range(repetitions):
                path = Path(folder) / f"{logging}-{i}"
                view = View(setting.log(path, i, rounds))
                plan = EvaluationPlan(view, targets, estimators=estimators, reward_range=(0.0, 1.0), seed=i)
                gathered = plan.gather()
                learned = learned_values(setting, view, Learning(fresh).policy(), gathered.policies[-1].rejection)
                for kind in INTERVALS:
                    for e in gathered.evaluation(interval=kind, seed=i).estimates:
                        truth["learning"] = learned[e.estimator != "replay"]
                        if e.low is not None and e.high is not None:
                            key = (logging, e.policy, e.estimator, kind)
                            covered[key].append(e.low <= truth[e.policy] <= e.high)
                            wide[key].append(e.high - e.low)
                        gap = e.difference
                        if gap is not None and gap.low is not None and gap.high is not None:
                            key = (logging, f"{e.policy} - {gap.to}", e.estimator, kind)
                            covered[key].append(gap.low <= truth[e.policy] - truth[gap.to] <= gap.high)
                            wide[key].append(gap.high - gap.low)
                for file in sorted(path.rglob("*"), reverse=True):
                    file.rmdir() if file.is_dir() else file.unlink()
                path.rmdir()
                if show and sys.stderr.isatty():
                    print(f"\r{logging} {i + 1}/{repetitions}", end="", file=sys.stderr)
    rows = [
        {
            "logging": key[0], "policy": key[1], "estimator": key[2], "interval": key[3], "repetitions": len(hits),
            "coverage": float(np.mean(hits)), "width": float(np.mean(wide[key])),
        }
        for key, hits in covered.items()
    ]  # fmt: skip
    return {"rounds": rounds, "repetitions": repetitions, "rows": rows}


def table(result: dict[str, Any]) -> str:
    """One line per logging, policy and estimator; coverage in %, mean width in brackets."""
    cells: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for row in result["rows"]:
        cell = f"{100 * row['coverage']:5.1f} ({row['width']:.4f})"
        cells[row["logging"], row["policy"], row["estimator"]][row["interval"]] = cell
    lines = [f"{'logging':8} {'policy':20} {'by':7}" + "".join(f"{kind:>16}" for kind in INTERVALS)]
    for (logging, policy, estimator), row in cells.items():
        lines.append(
            f"{logging:8} {policy:20} {estimator:7}" + "".join(f"{row.get(kind, '-'):>16}" for kind in INTERVALS)
        )
    return "\n".join(lines)


def main() -> int:
    """Run, print, and return 1 if the coverage of an interval is too low."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    start = time.monotonic()
    result = run(arguments.repetitions, arguments.rounds, show=True)
    result["seconds"] = round(time.monotonic() - start, 1)
    print(table(result))
    # Two standard errors of a share of 95 % in so many repetitions are 2 points for 500.
    low = [row for row in result["rows"] if row["coverage"] < NEEDED]
    n = result["repetitions"]
    print(f"{n} repetitions of {result['rounds']:,} rounds in {result['seconds']} s; ", end="")
    print(f"a coverage of 95 % shows as 95 +- {200 * math.sqrt(0.95 * 0.05 / n):.1f} %")
    without = sum(n - row["repetitions"] for row in result["rows"])
    print(
        f"{without} intervals of {n * len(result['rows']):,} were refused: too few clicks, or weights on arms not shown"
    )
    for row in low:
        print(f"below {100 * NEEDED:.0f} %: {row}")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    return 1 if low else 0


if __name__ == "__main__":
    raise SystemExit(main())
