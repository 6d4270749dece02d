"""Compilation of kernels, and the notice printed when it begins."""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core import config, event

from hybandits.foundation.linking import link
from hybandits.foundation.machine_code import KernelCache, mismatch_of_wheel


def kernel(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Compile a function on its first call, with IEEE arithmetic (no fastmath) and without holding Python's lock.

    Kernels call its machine code; with `inline`, for a few lines that are called often, they hold a copy of it.
    """
    if function is None:
        return partial(kernel, inline=inline)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    dispatcher: Any = njit(**options)(function)
    dispatcher._cache = KernelCache(function, copied=inline)
    return link(dispatcher, inline=inline)


class _Notice(event.Listener):  # type: ignore[misc]
    """Prints a notice once per process when compilation begins. Loading machine code from disk raises no event."""

    printed = False

    def on_start(self, happening: Any) -> None:
        module = happening.data["dispatcher"].py_func.__module__ or ""
        if module.startswith("hybandits.") and not self.printed and not os.environ.get("HYBANDITS_QUIET"):
            self.printed = True
            why = f"{mismatch_of_wheel()}: " if mismatch_of_wheel() else ""
            print(
                f"hybandits: {why}compiling for this machine (ten seconds to two minutes), kept on disk",
                file=sys.stderr,
            )

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _Notice())
