"""Kernels without compilation: the same source, run by the interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from hybandits.kernels import arrow, batches, decisions, evidence, gram, information, memories, random, tuning


def kernels(module: ModuleType) -> dict[str, Any]:
    """Return the kernels that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__
    }


def refresh_all(count: int, d1: int, d2: int, *parts: Any) -> None:
    """Recompute L and C of every block from R and T."""
    arm_factor, arm_score, shared_factor, shared_score = parts
    for s in range(count):
        f, h = s * arrow.factor_size(d2, d1), s * arrow.score_size(d2, d1)
        arrow.refresh_block(arm_factor, f, arm_score, h, d2, d1)
    arrow.refresh_block(shared_factor, 0, shared_score, 0, d1, 0)


@contextmanager
def plain(*others: ModuleType) -> Iterator[None]:
    """Replace every kernel, and every kernel that a kernel calls, by its plain Python function in the `with` block.

    This holds for the modules of hybandits.kernels and for the others given.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in (arrow, batches, decisions, evidence, gram, information, memories, random, tuning, *others):
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield
