"""Compilation: the notice, machine code from disk the second time, and never that of other sources."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hybandits
from hybandits.foundation.machine_code import PACKAGE, SOURCES, digest_of_kernels, kernel_sources
from tests.support.plain import kernels

CODE = "from hybandits.kernels.random import uniform; uniform(0, 0, 0)"


def run(cache: Path, **more: str) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **more}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=environment)
    return done.stderr


@pytest.mark.slow
def test_the_first_process_says_what_it_waits_for_and_the_next_need_not(tmp_path: Path) -> None:
    assert run(tmp_path / "quiet", HYBANDITS_QUIET="1") == ""
    said = run(tmp_path / "cache", HYBANDITS_QUIET="")
    assert said.count("hybandits: compiling for this machine (ten seconds to two minutes), kept on disk\n") == 1
    assert run(tmp_path / "cache", HYBANDITS_QUIET="") == ""


def kernels_by_module() -> dict[ModuleType, list[Any]]:
    """The modules of the package that define kernels."""
    modules = [
        importlib.import_module(entry.name)
        for entry in pkgutil.walk_packages(hybandits.__path__, "hybandits.")
        if entry.name != "hybandits.__main__"
    ]
    return {module: list(defined.values()) for module in modules if (defined := kernels(module))}


@pytest.mark.slow
def test_the_digest_covers_every_module_that_defines_kernels() -> None:
    covered = set(kernel_sources(PACKAGE))
    modules = kernels_by_module()
    assert {Path(str(module.__file__)) for module in modules} <= covered
    assert {module.__name__.split(".")[1] for module in modules} >= {"kernels", "simulation"}
    assert PACKAGE / "kernels" / "simd.py" in covered


@pytest.mark.slow
def test_machine_code_on_disk_is_stamped_with_all_sources() -> None:
    """Should Numba move these internals, `KernelCache` must follow, or an edit could leave stale code in use."""
    for module, defined in kernels_by_module().items():
        for kernel in defined:
            assert kernel._cache.kept._cache_file._source_stamp == SOURCES, (module.__name__, kernel.__name__)


def test_a_change_of_any_kernel_changes_the_digest(tmp_path: Path) -> None:
    package = tmp_path / "hybandits"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert digest_of_kernels(package) == SOURCES
    sources = kernel_sources(package)
    assert {path.relative_to(package).parts[0] for path in sources} >= {"kernels", "simulation"}
    seen = {SOURCES}
    for path in sources:
        path.write_text(path.read_text() + "\n# changed\n")
        seen.add(digest_of_kernels(package))
    assert len(seen) == 1 + len(sources)
    before = digest_of_kernels(package)
    other = package / "cli" / "logs.py"
    other.write_text(other.read_text() + "\n# changed\n")
    assert digest_of_kernels(package) == before
