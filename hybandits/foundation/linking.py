"""Calls between kernels: by the address of the other's machine code, or with a copy of it.

Numba copies what a kernel calls into its machine code, with all that this calls in turn, and optimises the whole again.
Kernels that are several levels deep would be compiled many times over. Here a kernel is compiled once, and its callers
hold its name, which LLVM resolves when they are loaded. Machine code from disk loads what it calls first (`_load`).
"""

from functools import partial
from importlib import import_module
from typing import Any

import llvmlite.binding
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.untyped_passes import TranslateByteCode


def link(dispatcher: Any, *, inline: bool) -> Any:
    """Let a kernel be called by other kernels or, if `inline`, be copied into them; return it."""
    function = dispatcher.py_func
    keys: dict[tuple[Any, ...], object] = {}

    def called(args: tuple[Any, ...]) -> Any:
        """Numba's key of the code that callers are given."""
        compiled = dispatcher.overloads[args]
        if args not in keys:
            keys[args] = object()
            load = partial(_load, function.__module__, function.__name__, args)
            compiled.target_context.insert_user_function(keys[args], compiled.fndesc, [_Callee(load)])
        return keys[args]

    def copied(args: tuple[Any, ...]) -> Any:
        compiled = dispatcher.overloads[args]
        compiled.library._reload_init.update(compiled.reload_init)  # its callers call what it calls
        return compiled.entry_point

    if inline or function.__qualname__ != function.__name__:  # a function within another could not be found again
        dispatcher.get_overload = copied
    else:
        dispatcher.get_overload = called
        dispatcher._compiler.pipeline_class = _Pipeline
    return dispatcher


def _load(module: str, name: str, args: tuple[Any, ...]) -> None:
    """Load a kernel that machine code calls, or compile it."""
    getattr(import_module(module), name).compile(args)


class _Callee:
    """Stands for a kernel's library in the list of what a caller is linked with: nothing but what to load first."""

    def __init__(self, load: partial[None]) -> None:
        self._reload_init = {load}

    def _ensure_finalized(self) -> None:
        pass

    def _get_module_for_linking(self) -> Any:
        return llvmlite.binding.parse_assembly("")


@register_pass(mutates_CFG=False, analysis_only=False)
class _Rename(FunctionPass):  # type: ignore[misc]
    """Leave Numba's counter out of the names of functions, so that every process gives a kernel the same name."""

    _name = "rename"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.func_id.unique_id = 0
        return True


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with that pass."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Rename, TranslateByteCode)
        passes.finalize()
        return [passes]
