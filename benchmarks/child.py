"""Measurements of footprint.py in separate processes: `python -m benchmarks.child TASK ..` prints one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hybandits import HybridRidge, HyLinUCB

KNOWN, LEARNED, POOL = 1_000_000, 1_000, 1_000
"""Arms to make known, arms of them to teach, and candidates per round (KNOWN = LEARNED * POOL)."""


def _status(field: str) -> int | None:
    """A field of /proc/self/status in bytes, where there is one."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":")), None)


def resident() -> int:
    """Bytes of this process in memory now."""
    size = _status("VmRSS")
    if size is None:
        import psutil

        size = int(psutil.Process().memory_info().rss)
    return size


def peak() -> int:
    """Most bytes of this process in memory so far.

    VmHWM comes first: ru_maxrss of a new process starts at what its parent had when it was started.
    """
    size = _status("VmHWM")
    if size is None:
        import resource

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return size


def arms(d1: int, d2: int, *counts: int) -> dict[str, Any]:
    """Bytes of arrays and of the process when so many arms have learned (hundreds); the ids are made before."""
    ids = [f"article-{arm}" for arm in range(max(counts))]
    draw = np.random.default_rng(0)
    estimator = HybridRidge(d1=d1, d2=d2)
    sizes: dict[str, Any] = {"arms": [], "nbytes": [], "resident": []}
    for start in range(0, len(ids), 100):
        batch = ids[start : start + 100]
        estimator.learn_batch(batch, draw.random((100, d1)), draw.random((100, d2)), draw.random(100))
        if start + 100 in counts:
            sizes["arms"].append(start + 100)
            sizes["nbytes"].append(estimator.nbytes)
            sizes["resident"].append(resident())
    return sizes


def one_round(d1: int, d2: int) -> dict[str, Any]:
    """One choose and one learn: all that is compiled is loaded."""
    policy = HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=0)
    draw = np.random.default_rng(0)
    x, z = draw.random((3, d1)), draw.random((3, d2))
    choice = policy.choose(x, z, arms=["a", "b", "c"])
    policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0)
    return {"peak": peak()}


def known(d1: int, d2: int) -> dict[str, Any]:
    """Rounds of new candidates, one of each learned, until a million arms are known."""
    policy = HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=0)
    draw = np.random.default_rng(0)
    for start in range(0, KNOWN, POOL):
        x, z = draw.random((POOL, d1)), draw.random((POOL, d2))
        choice = policy.choose(x, z, arms=[f"article-{arm}" for arm in range(start, start + POOL)])
        policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0)
    if len(policy.arms) != KNOWN or policy.rounds != LEARNED:
        raise RuntimeError(f"{len(policy.arms)} arms known and {policy.rounds} rewards learned")
    return {"peak": peak(), "known": KNOWN, "learned": LEARNED}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"arms": arms, "one-round": one_round, "known": known}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*map(int, sys.argv[2:]))))
