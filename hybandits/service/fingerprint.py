"""The fingerprint of everything but the log that the bits of decisions depend on."""

import hashlib
import platform
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding
import numba
import numpy as np

PARTS = (
    "foundation", "kernels", "estimators", "policies", "features.py", "statistics.py", "service/model_state.py",
    "service/settings.py", "service/summary.py",
)  # fmt: skip
"""Files of the package that decisions and snapshots depend on."""


@cache
def fingerprint() -> str:
    """Return twelve characters. Where they are equal, the same log gives the same decisions, to the bit."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for part in PARTS:
        for file in sorted((folder / part).rglob("*.py")) or [folder / part]:
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    binding = llvmlite.binding
    parts = (
        numba.__version__, llvmlite.__version__, np.__version__, platform.python_version(), platform.machine(),
        *platform.libc_ver(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(),
        *(getattr(numba.config, name) for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT", "OPT")),
    )  # fmt: skip
    digest.update("\0".join(map(str, parts)).encode())
    return digest.hexdigest()[:12]
