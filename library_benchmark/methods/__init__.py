"""The methods compared: our policies and those of other libraries, at their documented defaults."""

from __future__ import annotations

from library_benchmark.methods import bayesian, cobas, contextual, ours, rivers, scikit, vowpal, wiser
from library_benchmark.methods.interface import Agent, CannotTakePartError, Method

METHODS: dict[str, Method] = {
    entry.name: entry
    for module in (ours, bayesian, cobas, contextual, wiser, rivers, scikit, vowpal)
    for entry in module.METHODS
}
"""All methods by name, in the order of the tables."""

__all__ = ["METHODS", "Agent", "CannotTakePartError", "Method"]
