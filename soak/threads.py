"""Threads that use one policy at once, against the same rows learned by one: `python -m soak.threads`.

Every thread chooses (one arm, at random, a ranking, or for several decisions), learns one row or several, predicts,
merges deltas, saves and copies, in an order of its own, with ids in lists and in arrays.
Some arms belong to all threads; others come and go with one thread, which forgets them again. Afterwards every reward
must have been counted once, and the estimates must be what one thread would have learned. An arm that was forgotten
and came back is another arm to the reference. Policies that learn their settings estimate them when an arm leaves,
which depends on the moment, and SupLinUCB integrates an arm out of each level by itself, which is not the same for all
levels together. So nothing is forgotten there.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from hybandits import DisLinUCB, EpsilonGreedy, Greedy, HyIDS, HyLinUCB, HyThompson, Policy, SupLinUCB

D1, D2, SHARED, OWN, SHOWN = 5, 3, 12, 4, 6
INTERVAL = 1e-6
"""Seconds after which Python lets another thread go on: as short as it gets."""
TARGET = 1e-9


def policies() -> dict[str, Policy]:
    """New policies, by name."""
    shape: dict[str, Any] = {"d1": D1, "d2": D2}
    return {
        "HyLinUCB": HyLinUCB(**shape),
        "DisLinUCB": DisLinUCB(**shape),
        "HyThompson": HyThompson(**shape, seed=0),
        "HyIDS": HyIDS(**shape, seed=0),
        "EpsilonGreedy": EpsilonGreedy(Greedy(**shape), epsilon=0.3, seed=0),
        "SupLinUCB": SupLinUCB(**shape, horizon=1000, arm_count=100),
    }


class Learned(NamedTuple):
    """A row that a thread has taught, with the name that the arm has in the reference."""

    arm: str
    x: Any
    z: Any
    reward: float
    receipt: Any


class Outcome(NamedTuple):
    """Outcome of a run."""

    rewards: int
    counted: int
    error: float
    """The largest difference of an entry of theta or of an expected reward, relative to the largest of them."""
    problems: list[str]


class Worker(threading.Thread):
    """One thread and the rows that it has taught."""

    def __init__(self, number: int, policy: Policy, rows: int, seconds: float) -> None:
        super().__init__(daemon=True)
        self.number, self.policy, self.rows, self.seconds = number, policy, rows, seconds
        self.learned: list[Learned] = []
        self.problems: list[str] = []
        self.life = 0
        self.forgets = not isinstance(policy, HyThompson | HyIDS | SupLinUCB)

    def run(self) -> None:
        random = np.random.default_rng(self.number)
        end = time.monotonic() + self.seconds
        try:
            while len(self.learned) < self.rows or time.monotonic() < end:
                self.step(random)
        except Exception as problem:  # whatever it is, the run has failed, and the others go on
            self.problems.append(f"thread {self.number}: {problem!r}")

    def step(self, random: np.random.Generator) -> None:
        policy, act = self.policy, random.integers(13)
        mine = [1000 * (self.number + 1) + i for i in range(OWN)]
        arms = random.choice([*range(SHARED), *mine], SHOWN, replace=False)
        if random.random() < 0.5:
            arms = arms.tolist()
        x, z = random.standard_normal((SHOWN, D1)), random.standard_normal((SHOWN, D2))
        if act < 6:
            choice = policy.choose(x, z, arms, randomize=bool(act == 0))
            row = self.row(choice.arm, x[choice.index], z[choice.index], random, choice.receipt)
            policy.learn(choice.arm, row.x, row.z, row.reward, receipt=row.receipt)
            self.learned.append(row)
        elif act < 8:
            rows = [self.row(arm, x[i], z[i], random, 1) for i, arm in enumerate(arms)]
            receipts = [1] * SHOWN if isinstance(policy, SupLinUCB) else None
            policy.learn_batch(arms, x, z, [row.reward for row in rows], receipts=receipts)
            self.learned += rows
        elif act == 8:
            policy.predict(x, z, arms)
            policy.propensities(x, z, arms)
            assert np.isfinite(policy.theta).all()
        elif act == 9:
            delta = policy.start_delta()
            rows = [self.row(arm, x[i], z[i], random, 1) for i, arm in enumerate(arms[:2])]
            for row, arm in zip(rows, arms, strict=False):
                delta.learn(int(arm), row.x, row.z, row.reward, receipt=1 if isinstance(policy, SupLinUCB) else None)
            policy.merge(delta)
            self.learned += rows
        elif act == 10:
            type(policy).from_bytes(policy.to_bytes()) if random.random() < 0.2 else policy.copy()
        elif act == 11:
            policy.rank(x, z, arms, 3)
            policy.choose_batch(np.stack([x, x]), np.stack([z, z]), arms, threads=2)
        elif self.forgets:
            known = [arm for arm in mine if arm in policy.arms]
            for arm in known:
                policy.forget(arm)
            self.life += 1

    def row(self, arm: Any, x: Any, z: Any, random: np.random.Generator, receipt: Any) -> Learned:
        name = f"{arm}, life {self.life}" if arm >= 1000 else str(arm)
        return Learned(name, x, z, float(random.standard_normal()), receipt)


def run(name: str, threads: int, *, rows: int = 0, seconds: float = 0.0) -> Outcome:
    """Let so many threads use one policy until each has taught so many rows and the time is up; compare."""
    policy = policies()[name]
    workers = [Worker(number, policy, rows, seconds) for number in range(threads)]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(usual)
    problems = [problem for worker in workers for problem in worker.problems]
    reference = policies()[name]
    taught = [row for worker in workers for row in worker.learned]
    for row in taught:
        reference.learn(row.arm, row.x, row.z, row.reward, receipt=row.receipt)
    for each in (policy, reference):
        each.refresh()
    probes = np.random.default_rng(0)
    shown = probes.standard_normal((SHARED, D1)), probes.standard_normal((SHARED, D2))
    arms: dict[int, Any] = {id(policy): list(range(SHARED)), id(reference): [str(i) for i in range(SHARED)]}
    ours, exact = (
        np.concatenate((each.theta, each.predict(*shown, arms[id(each)]).mean)) for each in (policy, reference)
    )
    error = float(np.abs(ours - exact).max() / np.abs(exact).max())
    return Outcome(len(taught), policy.rounds, error, problems)


def describe(name: str, threads: int, outcome: Outcome) -> tuple[str, bool]:
    """Summarise the outcome in a line, and return True if it is right."""
    right = not outcome.problems and outcome.rewards == outcome.counted and outcome.error <= TARGET
    line = (
        f"{name}, {threads} threads: {outcome.counted:,} of {outcome.rewards:,} rewards counted, "
        f"estimates differ by {outcome.error:.1e} (target {TARGET:.0e}): {'reached' if right else 'MISSED'}"
    )
    return "\n  ".join([line, *outcome.problems]), right


def main() -> int:
    """Run one policy, or all of them one after another; the exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m soak.threads", description=__doc__, allow_abbrev=False)
    parser.add_argument("--policy", choices=sorted(policies()), help="the policy that threads share (default: all)")
    parser.add_argument("--threads", type=int, default=4, help="how many threads (default: 4)")
    parser.add_argument("--rows", type=int, default=100, help="rows that each thread teaches at least (default: 100)")
    parser.add_argument("--seconds", type=float, default=0.0, help="how long each policy is used at least")
    given = parser.parse_args()
    failed = 0
    for name in [given.policy] if given.policy else sorted(policies()):
        line, right = describe(name, given.threads, run(name, given.threads, rows=given.rows, seconds=given.seconds))
        failed += not right
        print(line, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
