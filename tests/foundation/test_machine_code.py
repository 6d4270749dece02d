"""Machine code of a wheel: used where its key fits, left alone where it does not, and never linked with."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybandits.foundation import machine_code
from hybandits.foundation.compiling import kernel
from hybandits.foundation.machine_code import KEY, PACKAGE, key_here, may_compile, mismatch, target, wheel_processor

ROOT = Path(__file__).parents[2]
FITTING = {**key_here(), **target()}


def test_machine_code_made_here_fits() -> None:
    assert mismatch(FITTING) == ""
    processor = wheel_processor()
    if processor is not None:
        assert mismatch({**FITTING, "processor": processor, "features": machine_code.PROCESSORS[processor]}) == ""


@pytest.mark.parametrize(
    ("part", "value", "reason"),
    [
        ("numba", "0.1.0", "is for numba 0.1.0, this is"),
        ("Python", "cpython-399", "is for Python cpython-399, this is"),
        ("machine", "vax", "is for machine vax, this is"),
        ("sources", "0" * 64, "is of other sources"),
        ("features", ["timetravel"], "this processor lacks timetravel"),
    ],
)
def test_anything_that_differs_is_named(part: str, value: Any, reason: str) -> None:
    assert reason in mismatch({**FITTING, part: value})


def test_machine_code_for_another_processor_than_numba_is_told_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code.config, "CPU_NAME", "generic")
    assert "NUMBA_CPU_NAME is generic" in mismatch({**FITTING, "processor": "another"})
    assert mismatch({**FITTING, "processor": "generic"}) == ""


def test_a_kernel_that_may_not_be_compiled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def never_compiled(a, b):  # type: ignore[no-untyped-def]
        return a + b

    monkeypatch.setenv("HYBANDITS_COMPILE", "never")
    with pytest.raises(RuntimeError, match=r"never_compiled\(int64, float64\) is not compiled, and HYBANDITS_COMPILE="):
        never_compiled(1, 2.0)
    monkeypatch.setenv("HYBANDITS_COMPILE", "sometimes")
    with pytest.raises(ValueError, match="HYBANDITS_COMPILE can be 'never' or unset, got 'sometimes'"):
        may_compile()


def test_a_kernel_works_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(function: object) -> None:
        raise RuntimeError("cannot cache function: no locator available")

    @kernel
    def one_more(a):  # type: ignore[no-untyped-def]
        return a + 1

    monkeypatch.setattr(machine_code, "FunctionCache", refuse)
    monkeypatch.setenv("HYBANDITS_QUIET", "1")
    assert one_more(1) == 2


FROM_DISK = """
import sys
from pathlib import Path
from hybandits.foundation.machine_code import export
exec(Path(sys.argv[1]).read_text())
export(Path(sys.argv[2]))
"""

CALLER = """
import numpy as np
from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import factor_size
from hybandits.kernels.random import to_normals

@kernel
def around(p):  # the first is called by its name, the second is copied
    to_normals(p)
    return factor_size(3, 2) * p[0]

p = np.array([0.9])
print(around(p), p, factor_size(3, 2))
"""


def python(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run Python where hybandits is what lies in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HYBANDITS_")}
    environment = {**kept, "PYTHONPATH": str(folder), **settings}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


@pytest.mark.slow
def test_an_installation_with_machine_code_decides_without_compiling(tmp_path: Path) -> None:
    """Its decisions are those of this checkout, and so is what is compiled around its kernels."""
    decisions = ROOT / ".ci" / "first_decisions.py"
    here = python(ROOT, str(decisions), HYBANDITS_QUIET="1")  # what is not compiled yet is compiled in this process
    installed = tmp_path / "hybandits"
    shutil.copytree(PACKAGE, installed, ignore=shutil.ignore_patterns("__pycache__"))
    folder = installed / "machine_code"
    made = python(ROOT, "-c", FROM_DISK, str(decisions), str(folder), HYBANDITS_COMPILE="never")
    assert made.returncode == 0, made.stderr

    there = python(tmp_path, str(decisions), HYBANDITS_COMPILE="never")
    assert there.stderr == ""
    assert json.loads(there.stdout)["digest"] == json.loads(here.stdout)["digest"]
    assert {*tmp_path.rglob("*.nbc")} == {*folder.glob("*.nbc")}

    caller = tmp_path / "caller.py"
    caller.write_text(CALLER)
    printed = python(ROOT, str(caller)).stdout
    assert printed
    shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
    assert python(tmp_path, str(caller)).stdout == printed

    key = json.loads((folder / KEY).read_text())
    (folder / KEY).write_text(json.dumps({**key, "numba": "0.1.0"}))
    elsewhere = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    refused = python(tmp_path, str(caller), **elsewhere, HYBANDITS_COMPILE="never")
    assert f"is not compiled (the wheel's machine code is for numba 0.1.0, this is {key['numba']})" in refused.stderr
    compiled = python(tmp_path, str(caller), **elsewhere)
    assert compiled.stdout == printed
    assert compiled.stderr.startswith("hybandits: the wheel's machine code is for numba 0.1.0, this is")
    assert compiled.stderr.count("\n") == 1
