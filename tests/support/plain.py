"""Kernels without compilation: the same source, run by the interpreter."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import hybandits.kernels

MODULES = [
    importlib.import_module(f"hybandits.kernels.{module.name}")
    for module in pkgutil.iter_modules(hybandits.kernels.__path__)
]
"""Every module that holds kernels."""


def kernels(module: ModuleType) -> dict[str, Any]:
    """Return the kernels that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__
    }


@contextmanager
def plain(*others: ModuleType) -> Iterator[None]:
    """Replace every kernel, and every kernel that a kernel calls, by its plain Python function in the `with` block.

    This holds for the modules of hybandits.kernels and for the others given.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (*MODULES, *others):
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield
