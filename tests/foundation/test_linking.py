"""Kernels that call kernels: what a caller holds, and what it loads when its machine code comes from disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hybandits import HybridRidge
from hybandits.kernels import arrow

CODE = """
import json
from numba.core import event
class Listener(event.Listener):
    compiled = []
    def on_start(self, happening):
        function = happening.data["dispatcher"].py_func
        if function.__module__.startswith("hybandits."):
            self.compiled.append(function.__name__)
    def on_end(self, happening):
        pass
event.register("numba:compile", Listener())
import numpy as np
from hybandits import HybridRidge
from hybandits.kernels import arrow
if {alone}:
    arrow.rotate_inverse(np.zeros(4), 0, 1, np.ones(1), np.zeros(1), np.zeros(1))
estimator = HybridRidge(d1=1, d2=1)
estimator.learn("a", np.ones(1), np.ones(1), 1.0)
print(json.dumps([Listener.compiled, [*estimator.predict(np.ones((1, 1)), np.ones((1, 1)), ["a"])[0]]]))
"""


def run(cache: Path, *, alone: bool = False) -> tuple[list[str], list[float]]:
    """Learn and predict in a new process; return the kernels that it compiled, and the mean."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "HYBANDITS_QUIET": "1"}
    code = CODE.format(alone=alone)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    compiled, mean = json.loads(done.stdout)
    return compiled, mean


@pytest.mark.slow
def test_a_kernel_from_disk_finds_those_it_calls_wherever_they_come_from(tmp_path: Path) -> None:
    compiled, mean = run(tmp_path)
    assert {"learn_one", "learn_row", "rotate_row", "rotate_inverse"} <= set(compiled)
    assert run(tmp_path) == ([], mean)
    for name in ("rotate_row", "rotate_inverse"):
        for path in tmp_path.rglob(f"arrow.{name}-*"):
            path.unlink()
    compiled, again = run(tmp_path, alone=True)  # compiled in another order, and before their callers are loaded
    assert sorted(compiled) == ["rotate_inverse", "rotate_row"]
    assert again == mean
    assert run(tmp_path) == ([], mean)
    for path in tmp_path.rglob("arrow.learn_row-*"):
        path.unlink()
    assert run(tmp_path) == (["learn_row"], mean)  # and a caller is compiled beside callees from disk


def test_callers_hold_small_kernels_alone() -> None:
    estimator = HybridRidge(d1=1, d2=1)
    estimator.learn("a", np.ones(1), np.ones(1), 1.0)
    (compiled,) = arrow.learn_row.overloads.values()
    loads = {load.args[1] for load in compiled.reload_init}
    assert loads == {"rotate_row", "rotate_inverse", "update_cross", "refresh_block"}


def test_names_of_kernels_are_the_same_in_every_process() -> None:
    arrow.transpose_times(np.zeros(0), 0, 0, np.zeros(0), np.zeros(0))
    (compiled,) = arrow.transpose_times.overloads.values()
    assert "B2v0" in compiled.fndesc.mangled_name  # Numba's counter
