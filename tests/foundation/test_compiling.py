"""Compilation: the word to the user, and machine code from disk the second time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
import numpy as np
from hybandits import HybridRidge
e = HybridRidge(d1=0, d2=1)
e.learn("a", np.zeros(0), np.ones(1), 1.0)
"""


def run(cache: Path, **more: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **more}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment)
    return done.stderr


def test_the_first_process_says_what_it_waits_for_and_the_next_need_not(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", HYBANDITS_QUIET="1") == ""
    said = run(tmp_path / "cache", HYBANDITS_QUIET="")
    assert said.count("hybandits: compiling for this machine") == 1
    assert run(tmp_path / "cache", HYBANDITS_QUIET="") == ""


def test_warm_up_leaves_nothing_to_compile(tmp_path: Path) -> None:
    """After it, whole runs of every policy find their machine code on disk."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "HYBANDITS_QUIET": ""}
    warm = [sys.executable, "-c", "import hybandits; hybandits.warm_up()"]
    assert "compiling" in subprocess.run(warm, capture_output=True, text=True, check=True, env=environment).stderr
    use = """
import numpy as np, hybandits
x, z = np.ones((3, 4)), np.ones((3, 2))
for policy in (hybandits.LinUCB(d1=4, d2=2), hybandits.DisLinUCB(d1=4, d2=2), hybandits.HyThompson(d1=4, d2=2),
               hybandits.HyRan(d1=4, d2=2), hybandits.SupLinUCB(d1=4, d2=2, horizon=2000)):
    for _ in range(600 if policy.__class__.__name__ == "LinUCB" else 5):
        choice = policy.choose(x, z, ["a", "b", "c"])
        policy.learn(choice.arm, x[0], z[0], 1.0, receipt=choice.receipt)
    policy.predict(x, z, ["a", "b", "c"])
"""
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == ""
