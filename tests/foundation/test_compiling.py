"""Compilation: the word to the user, and machine code from disk the second time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_the_first_process_says_what_it_waits_for_and_the_next_need_not(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", HYBANDITS_QUIET="1") == ""
    said = run(tmp_path / "cache", HYBANDITS_QUIET="")
    assert said.count("hybandits: compiling for this machine") == 1
    assert run(tmp_path / "cache", HYBANDITS_QUIET="") == ""
