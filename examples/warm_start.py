"""Warm start: fit a policy to a log that somebody else collected, then use it live.

The arms in the log were chosen at random in two data centres. Each centre fits a policy to its own part of the log, and
the two policies are merged. Run it with: python examples/warm_start.py
"""

from __future__ import annotations

import numpy as np

from hybandits import HyThompson

D1, D2, ARMS, NOISE = 6, 4, 10, 0.3


def main(seed: int = 0) -> dict[str, float]:
    """Return the mean regret of the first 200 live rounds, of a policy from scratch and of one from the log."""
    random = np.random.default_rng(seed)
    theta, beta = random.normal(size=D1), random.normal(size=(ARMS, D2))

    def log(rounds: int) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
        x, z = random.normal(size=(rounds, D1)) / 2, random.normal(size=(rounds, D2)) / 2
        shown = random.integers(0, ARMS, rounds)
        rewards = x @ theta + np.einsum("ij,ij->i", z, beta[shown]) + NOISE * random.normal(size=rounds)
        return [f"item-{i}" for i in shown], x, z, rewards

    def new() -> HyThompson:
        return HyThompson(d1=D1, d2=D2, seed=seed)

    east, west, fresh = new(), new(), new()
    east.learn_batch(*log(1_500))
    west.learn_batch(*log(1_500))
    east.merge(west)  # now east knows what one policy would have learned from both logs

    names = [f"item-{i}" for i in range(ARMS)]
    lost = {"from scratch": 0.0, "from the log": 0.0}
    for _ in range(200):
        x, z = random.normal(size=(ARMS, D1)) / 2, random.normal(size=(ARMS, D2)) / 2
        means = x @ theta + np.einsum("ij,ij->i", z, beta)
        for label, policy in (("from scratch", fresh), ("from the log", east)):
            choice = policy.choose(x, z, names)
            reward = means[choice.index] + NOISE * random.normal()
            policy.learn(choice.arm, x[choice.index], z[choice.index], reward)
            lost[label] += (means.max() - means[choice.index]) / 200
    return lost


if __name__ == "__main__":
    for label, regret in main().items():
        print(f"regret per round, {label}: {regret:.3f}")
