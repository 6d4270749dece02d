"""Save a policy in the middle of its work and go on from the file: no decision changes.

Run it with: python examples/save_and_restore.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from hybandits import EpsilonGreedy, HyLinUCB, Policy, load


def play(policy: Policy, random: np.random.Generator, rounds: int) -> list[object]:
    """Play some rounds of an invented problem and return the arms chosen."""
    chosen: list[object] = []
    for _ in range(rounds):
        x, z = random.normal(size=(4, 3)), random.normal(size=(4, 2))
        choice = policy.choose(x, z, arms=["north", "east", "south", "west"])
        policy.learn(choice.arm, x[choice.index], z[choice.index], reward=float(x[choice.index].sum()))
        chosen.append(choice.arm)
    return chosen


def main(folder: Path) -> bool:
    """Return True if a policy and its restored copy continue alike, random choices included."""
    policy = EpsilonGreedy(HyLinUCB(d1=3, d2=2, noise=0.1), epsilon=0.2, seed=1)
    play(policy, np.random.default_rng(0), 100)
    policy.save(folder / "policy.npz")
    restored = load(folder / "policy.npz")
    return play(policy, np.random.default_rng(2), 500) == play(restored, np.random.default_rng(2), 500)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print("The restored policy takes the same 500 decisions:", main(Path(name)))
