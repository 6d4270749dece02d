"""Everybody who plays: our policies and those of other libraries, each by its documented defaults."""

from __future__ import annotations

from library_benchmark.players import bayesian, cobas, contextual, ours, rivers, scikit, vowpal, wiser
from library_benchmark.players.interface import CannotTakePartError, Entry, Player

PLAYERS: dict[str, Entry] = {
    entry.name: entry
    for module in (ours, bayesian, cobas, contextual, wiser, rivers, scikit, vowpal)
    for entry in module.ENTRIES
}
"""All players by name, in the order of the tables."""

__all__ = ["PLAYERS", "CannotTakePartError", "Entry", "Player"]
