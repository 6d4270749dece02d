"""Machine code on disk: that of the wheel, compiled when the wheel was built, and that compiled here, kept by numba.

A wheel has a folder `machine_code` beside the layers: object code of kernels for the types that they are called with,
in the files of numba's cache, and `key.json`, which says what it was compiled for. It is used where everything in the
key agrees. Numba reads its files with pickle, as it does with every cache. They are part of the package as the sources
are, and nothing else is read from that folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable
from functools import cache, cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache, _Cache
from numba.core.compiler import CompileResult

PACKAGE = Path(__file__).parents[1]
"""Folder of the package; several of its layers define kernels."""

FOLDER = PACKAGE / "machine_code"
"""The wheel's machine code; a checkout has none."""

KEY = "key.json"


def kernel_sources(folder: Path) -> list[Path]:
    """Return the Python files in this folder that define kernels, their operations, or how they are compiled."""
    mark = re.compile(rb"^ *(@kernel|@lower_builtin|def kernel\(|def link\()", re.MULTILINE)
    return [path for path in sorted(folder.rglob("*.py")) if mark.search(path.read_bytes())]


def digest_of_kernels(folder: Path) -> str:
    """Return a fingerprint of the files that `kernel_sources` lists."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in kernel_sources(folder))).hexdigest()


SOURCES = digest_of_kernels(PACKAGE)


# ------------------------------------------------------------------ the key


def key_here() -> dict[str, str]:
    """Return what machine code must have been compiled for to be of use in this process, besides the processor."""
    return {
        "numba": numba.__version__,
        "Python": EXTENSION_SUFFIXES[0].split(".")[1],
        "machine": platform.machine(),
        "sources": SOURCES,
    }


PROCESSORS: dict[str, list[str]] = {
    "x86-64-v3": ["avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"],
    "generic": [],
}
"""Processors to compile for, as NUMBA_CPU_NAME, with the features that such code needs."""


def target() -> dict[str, Any]:
    """Return the processor that numba compiles for in this process, and the features that its code needs."""
    name: str | None = config.CPU_NAME  # type: ignore[attr-defined]
    if name is None or config.CPU_FEATURES is None:  # type: ignore[attr-defined]
        return {"processor": name or llvmlite.binding.get_host_cpu_name(), "features": _features_here()}
    return {"processor": name, "features": PROCESSORS[name]}


def wheel_processor() -> str | None:
    """Return the processor that wheels built on this machine are compiled for, None if this machine cannot run that."""
    name = "x86-64-v3" if platform.machine() in ("x86_64", "AMD64") else "generic"
    return name if {*PROCESSORS[name]} <= {*_features_here()} else None


def _features_here() -> list[str]:
    try:
        features = llvmlite.binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this operating system's way to tell
        return []
    return [name for name, present in features.items() if present]


def mismatch(key: dict[str, Any]) -> str:
    """Return why machine code with this key does not fit this process, in words; nothing if it fits."""
    here = key_here()
    if key["sources"] != here["sources"]:
        return "the wheel's machine code is of other sources"
    for name, value in here.items():
        if key[name] != value:
            return f"the wheel's machine code is for {name} {key[name]}, this is {value}"
    wanted: str | None = config.CPU_NAME  # type: ignore[attr-defined]
    if wanted not in (None, key["processor"]):
        return f"the wheel's machine code is for {key['processor']}, NUMBA_CPU_NAME is {wanted}"
    if missing := sorted({*key["features"]} - {*_features_here()}):
        return f"the wheel's machine code is for {key['processor']}, this processor lacks {', '.join(missing)}"
    return ""


@cache
def mismatch_of_wheel() -> str | None:
    """Return why the machine code of this installation cannot be used; nothing if it can, None if there is none."""
    try:
        text = (FOLDER / KEY).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return mismatch(json.loads(text))


# ------------------------------------------------------------------ finding and keeping


def _file(folder: Path, function: Callable[..., Any]) -> IndexDataCacheFile:
    """Return the files of a kernel in a folder of a wheel's machine code."""
    return IndexDataCacheFile(str(folder), f"{function.__module__}.{function.__qualname__}", SOURCES)


def may_compile() -> bool:
    """Return True unless the environment forbids compiling."""
    value = os.environ.get("HYBANDITS_COMPILE", "")
    if value not in ("", "never"):
        raise ValueError(f"HYBANDITS_COMPILE can be 'never' or unset, got {value!r}")
    return value == ""


@cache
def _initialise(target_context: Any) -> None:
    """Load numba's runtime, once: numba does so before every load of its own, for declarations made in between."""
    target_context.refresh()


FOUND: list[tuple[KernelCache, Any, Any]] = []
"""Kernels that this process has loaded from disk: the cache, the types, and the machine that the code is for."""


class KernelCache(_Cache):  # type: ignore[misc]
    """The cache of a kernel: the wheel's machine code, if it may be used, then what numba keeps on disk.

    Numba checks only the file that defines a kernel. Kernels call kernels of other files, so what it keeps is stamped
    with the digest of the sources of all kernels. That is beside the package, or in the user's cache folder if the
    package cannot be written to, or nowhere.
    """

    def __init__(self, function: Callable[..., Any], *, copied: bool) -> None:
        self.function = function
        self.copied = copied
        self.shipped = _file(FOLDER, function) if mismatch_of_wheel() == "" else None

    @cached_property
    def kept(self) -> Any:
        """Numba's own cache on disk; looked for only when needed, since that tries to write files."""
        try:
            kept = FunctionCache(self.function)
        except RuntimeError:  # neither the package's folder nor the user's cache folder can be written to
            return NullCache()
        kept._cache_file._source_stamp = SOURCES
        return kept

    @property
    def cache_path(self) -> Any:
        return self.kept.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for these types, None if it must be compiled; raise an error if it may not be."""
        if self.shipped is not None:
            _initialise(target_context)
            data = self.shipped.load(sig)
            if data is not None:
                return CompileResult._rebuild(target_context, *data)
        found = self.kept.load_overload(sig, target_context)
        if found is not None:
            FOUND.append((self, sig, target_context.codegen()))
        elif not may_compile():
            name = f"{self.function.__module__}.{self.function.__qualname__}"
            why = f" ({mismatch_of_wheel()})" if mismatch_of_wheel() else ""
            raise RuntimeError(
                f"{name}({', '.join(map(str, sig))}) is not compiled{why}, and HYBANDITS_COMPILE=never forbids it: "
                "unset that, or compile everything beforehand with hybandits.warm_up()"
            )
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        self.kept.save_overload(sig, data)

    def enable(self) -> None:
        self.kept.enable()

    def disable(self) -> None:
        self.kept.disable()

    def flush(self) -> None:
        self.kept.flush()


# ------------------------------------------------------------------ writing


def export(folder: Path) -> None:
    """Write the machine code that this process has found on disk to a new folder, with its key.

    Nothing may have been compiled in this process: then it is the machine code for calls from Python and what that
    calls by name, without the kernels that are copied into it.
    """
    folder.mkdir()
    for found, sig, codegen in FOUND:
        data = found.kept._cache_file.load(found.kept._index_key(sig, codegen))
        _file(folder, found.function).save(sig, data if found.copied else _without_bitcode(*data))
    (folder / KEY).write_text(json.dumps({**key_here(), **target()}, indent=1), encoding="utf-8")


def _without_bitcode(library: Any, descriptor: Any, environment: Any, signature: Any, *rest: Any) -> tuple[Any, ...]:
    """Drop from numba's data what only copying it into callers needs: LLVM's bitcode, two thirds, and the annotations.

    Numba takes from the bitcode which functions the object code has, so empty ones take their place.
    """
    name, kind, (object_code, _) = library
    objectmode, lifted, _, *others = rest
    functions = descriptor.llvm_func_name, descriptor.llvm_cpython_wrapper_name
    text = "".join(f'define void @"{each}"() {{ ret void }}\n' for each in functions)
    empty = llvmlite.binding.parse_assembly(text).as_bitcode()
    return (name, kind, (object_code, empty)), descriptor, environment, signature, objectmode, lifted, "", *others
