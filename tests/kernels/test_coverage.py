"""No kernel is without a test."""

from __future__ import annotations

from pathlib import Path

from hybandits.kernels import arrow, batches, decisions, evidence, gram, information, memories, random, tuning
from tests.support.plain import kernels

KERNELS = (arrow, batches, decisions, evidence, gram, information, memories, random, tuning)


def test_every_kernel_is_called_in_these_tests_or_by_one_that_is() -> None:
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    every = {name: k for module in KERNELS for name, k in kernels(module).items()}
    reached = {name for name in every if f".{name}" in source}
    while more := {
        name
        for name in every
        if name not in reached and any(name in every[user].py_func.__code__.co_names for user in reached)
    }:
        reached |= more
    assert reached == set(every)
