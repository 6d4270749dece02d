"""Kernels that call kernels: what a caller holds, and what it loads when its machine code comes from disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hybandits import HybridRidge
from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import arrow, empirical_bayes

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
from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import arrow
if {alone}:
    import numba
    numba.typeof(np.zeros(1, [("number", float)]))  # types of records are counted
    arrow.rotate_inverse(np.zeros(4), 0, 1, np.ones(1), np.zeros(1), np.zeros(1))
estimator = LearnedRidge(d1=1, d2=1)
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
    assert {"learn_by_all", "count_row", "fade", "rotate_row", "rotate_inverse"} <= set(compiled)
    assert run(tmp_path) == ([], mean)
    for name in ("arrow.rotate_row", "arrow.rotate_inverse", "empirical_bayes.fade"):
        for path in tmp_path.rglob(f"{name}-*"):
            path.unlink()
    compiled, again = run(tmp_path, alone=True)  # compiled in another order, and before their callers are loaded
    assert (
        {"rotate_inverse", "rotate_row", "fade"}
        <= {*compiled}
        <= {"rotate_inverse", "rotate_row", "fade", "factor_size"}
    )
    assert again == mean
    assert run(tmp_path) == ([], mean)
    for path in tmp_path.rglob("memories.learn_by_all-*"):
        path.unlink()
    compiled, again = run(tmp_path)  # a caller compiled beside callees from disk
    assert "learn_by_all" in compiled
    assert "count_row" not in compiled
    assert again == mean
    assert run(tmp_path) == ([], mean)


def test_callers_hold_small_kernels_alone() -> None:
    estimator = HybridRidge(d1=1, d2=1)
    estimator.learn("a", np.ones(1), np.ones(1), 1.0)
    (compiled,) = arrow.learn_row.overloads.values()
    loads = {load.args[1] for load in compiled.reload_init}
    assert loads == {"rotate_row", "rotate_inverse", "update_cross", "refresh_block"}


def test_names_of_kernels_are_the_same_in_every_process() -> None:
    """Whatever else has been compiled: without the numbers that Numba gives to functions and to types of records."""
    estimator = LearnedRidge(d1=1, d2=1)
    estimator.learn("a", np.ones(1), np.ones(1), 1.0)
    (compiled,) = empirical_bayes.count_row.overloads.values()
    types = repr([str(each) for each in compiled.signature.args])
    assert "Record(sigma2[type=float64;offset=0]" in types
    assert hashlib.sha256(types.encode()).hexdigest()[:16] in compiled.fndesc.mangled_name
    assert len(compiled.fndesc.mangled_name) < 200
