"""Build the wheel, install it in an empty environment, and take first decisions there with compiling forbidden.

Decisions must be equal, bit by bit, to those of this checkout, whose kernels are compiled for this machine's processor.
`python .ci/check_wheel.py dist` writes the wheel to the folder dist; without an argument it is not kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LARGEST = 10_000_000
"""Bytes that the machine code may take in a wheel."""


def decide(python: Path | str, folder: str, **settings: str) -> dict[str, Any]:
    """Return what first_decisions.py prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "PYTHONPATH"))}
    command = [str(python), str(ROOT / ".ci" / "first_decisions.py")]
    done = subprocess.run(command, env={**environment, **settings}, cwd=folder, stdout=subprocess.PIPE, check=True)
    decided: dict[str, Any] = json.loads(done.stdout)
    return decided


def main(folder: str, dist: str) -> None:
    """Check the wheel of this checkout, in an environment made in the folder."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", dist, str(ROOT)], check=True)
    wheel = max(Path(dist).glob("*.whl"), key=os.path.getmtime)
    with zipfile.ZipFile(wheel) as archive:
        size = sum(each.compress_size for each in archive.infolist() if "/machine_code/" in each.filename)
    print(f"{wheel.name}: built in {time.perf_counter() - start:.0f} s, {size / 1e6:.1f} MB of machine code")
    if not 0 < size <= LARGEST:
        sys.exit(f"the wheel has {size:,} bytes of machine code: expected some, and at most {LARGEST:,}")
    environment = Path(folder, "environment")
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
    shipped = decide(python, folder, HYBANDITS_COMPILE="never")
    print("first decision and reward in {first:.2f} s, everything in {all:.2f} s".format(**shipped["seconds"]))
    here = decide(sys.executable, folder, PYTHONPATH=str(ROOT), HYBANDITS_QUIET="1")
    if shipped["digest"] != here["digest"]:
        sys.exit("the wheel's decisions are not those of the kernels compiled on this machine")
    print("every bit is that of kernels compiled on this machine")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="hybandits-", ignore_cleanup_errors=True) as made:
        main(made, *(sys.argv[1:] or [made]))
