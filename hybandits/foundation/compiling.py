"""How kernels are compiled, and a word to the user while they are."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event


def _digest() -> str:
    """A fingerprint of all sources that kernels are made of."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py"))]
    made_of = [text for text in texts if b"@kernel" in text or b"lower_builtin" in text]
    return hashlib.sha256(b"".join(made_of)).hexdigest()


SOURCES = _digest()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile on first use, keep the machine code on disk, release the interpreter; IEEE division, no fastmath.

    Numba takes machine code from disk if the file the kernel is in has not changed. A kernel here calls kernels of
    other files, so the code on disk is stamped with all sources of kernels instead.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        made: Any = njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write: neither beside the package nor in the user's cache folder
        return njit(**options)(function)
    with contextlib.suppress(AttributeError):
        made._cache._cache_file._source_stamp = SOURCES
    return made


class _Notice(event.Listener):  # type: ignore[misc]
    """Says once per process that compilation has begun; machine code found on disk raises no such event."""

    announced = False

    def on_start(self, happening: Any) -> None:
        module = happening.data["dispatcher"].py_func.__module__ or ""
        if _Notice.announced or not module.startswith("hybandits.") or os.environ.get("HYBANDITS_QUIET"):
            return
        _Notice.announced = True
        print("hybandits: compiling for this machine, about ten seconds; kept on disk for next time", file=sys.stderr)

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _Notice())
