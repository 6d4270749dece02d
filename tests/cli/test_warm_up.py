"""Warming up reaches everything that compiles, and needs nothing beyond the core."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hybandits.cli.warm_up import LABORATORY

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_warm_up_leaves_nothing_to_compile(tmp_path: Path) -> None:
    """After it, using everything calls no kernel with arguments of types that warm_up has not called it with.

    So nothing is compiled later, even though some of it may be on disk from other tests. A kernel that warm_up does not
    call is called by kernels that it calls.
    """
    command = [sys.executable, "-m", "tests.support.everything", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    missed = json.loads(done.stdout)
    assert missed["kernels"] > 80
    assert missed["unreached"] == []
    assert missed["late"] == {}


@pytest.mark.slow
def test_the_core_install_warms_up_what_it_has() -> None:
    code = f"""
import sys
missing = {[*LABORATORY, "jinja2", "matplotlib", "ray", "rich", "typer"]}
sys.modules.update(dict.fromkeys(missing))
import hybandits
hybandits.warm_up()
loaded = [name for name in sys.modules if name.startswith(("hybandits.logs", "hybandits.evaluation"))]
print(loaded, "hybandits.simulation.loops" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[] True\n"
