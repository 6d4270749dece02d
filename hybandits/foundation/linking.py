"""Calls between kernels: by the address of the other's machine code, or with a copy of it.

Numba copies what a kernel calls into its machine code, with all that this calls in turn, and optimises the whole again.
Kernels that are several levels deep would be compiled many times over. Here a kernel is compiled once, and its callers
hold its name, which LLVM resolves when they are loaded. Machine code from disk loads what it calls first (`_load`).
"""

import hashlib
from functools import partial
from importlib import import_module
from typing import Any

import llvmlite.binding
from numba.core import itanium_mangler
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
            load = partial(_load, function.__module__, function.__name__, args, compiled.fndesc.mangled_name)
            compiled.target_context.insert_user_function(keys[args], compiled.fndesc, [_Callee(load)])
        return keys[args]

    def copied(args: tuple[Any, ...]) -> Any:
        compiled = dispatcher.overloads[args]
        compiled.library._reload_init.update(compiled.reload_init)  # its callers call what it calls
        return compiled.entry_point

    if function.__qualname__ != function.__name__:  # a function within another could not be found again
        dispatcher.get_overload = copied
        return dispatcher
    dispatcher.get_overload = copied if inline else called
    dispatcher._compiler.pipeline_class = _Pipeline
    return dispatcher


def _load(module: str, function: str, args: tuple[Any, ...], name: str) -> None:
    """Load a kernel that machine code calls by this name, or compile it."""
    kernel = getattr(import_module(module), function)
    kernel.compile(args)
    if kernel.overloads[args].fndesc.mangled_name != name:
        raise RuntimeError(f"machine code on disk calls {function} by another name: delete the files *.nbi and *.nbc")


class _Callee:
    """Stands for a kernel's library in the list of what a caller is linked with: nothing but what to load first."""

    def __init__(self, load: partial[None]) -> None:
        self._reload_init = {load}

    def _ensure_finalized(self) -> None:
        pass

    def _get_module_for_linking(self) -> Any:
        return llvmlite.binding.parse_assembly("")


def _name(name: str, types: Any, *, abi_tags: Any = (), uid: Any = None) -> Any:
    """Name a function after its arguments' types, without numbers that differ from process to process.

    Numba counts functions and record types. LLVM resolves no name of a file if one is missing, and does not say so.
    """
    digest = hashlib.sha256(repr([str(each) for each in types]).encode()).hexdigest()[:16]
    return itanium_mangler.mangle(name, (), abi_tags=abi_tags, uid=digest)


@register_pass(mutates_CFG=False, analysis_only=False)
class _Rename(FunctionPass):  # type: ignore[misc]
    """Let functions have the names of `_name`."""

    _name = "rename"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state.targetctx = state.targetctx.subtarget(mangler=_name)
        return True


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with that pass."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_Rename, TranslateByteCode)
        passes.finalize()
        return [passes]
