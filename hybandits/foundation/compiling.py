"""Compilation of kernels, and the notice printed when it begins."""

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core import config, event
from numba.core.types import Dispatcher, Function
from numba.core.typing.templates import AbstractTemplate, infer_global

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


def by_kind(kernels: dict[type, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function be the kernel that belongs to the class of its first argument, a named tuple.

    Kernels may call it, and are compiled once for each class.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*args: Any) -> Any:
            return kernels[type(args[0])].py_func(*args)

        class Compiled(AbstractTemplate):  # type: ignore[misc]
            """The kernel itself. A function compiled around it, as by `overload`, would hold its machine code again."""

            key = chosen

            def generic(self, args: Any, kws: Any) -> Any:
                return self._kernel(args).get_call_type(self.context, args, kws)

            def get_impl_key(self, signature: Any) -> Any:
                return self._kernel(signature.args).get_impl_key(signature)

            def _kernel(self, args: Any) -> Any:
                return Dispatcher(kernels[args[0].instance_class])

        infer_global(chosen, Function(Compiled))
        chosen.__name__, chosen.__doc__ = function.__name__, function.__doc__
        return chosen

    return decorate


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
