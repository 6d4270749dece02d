"""Interface of the methods compared, and their registration."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from hybandits.foundation.checks import FloatArray
from library_benchmark.streams import STREAMS, Round, Stream


class CannotTakePartError(Exception):
    """The library has no way to take what the stream shows; the message says what is missing."""


class Agent(Protocol):
    """A method of a library, set up for one stream and seed."""

    def choose(self, shown: Round) -> tuple[int, Any]:
        """Return the row of the chosen candidate and a receipt that is passed to `learn`."""

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        """Learn the reward of a round, at once or many rounds later."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method of a library at its default settings.

    Attributes
    ----------
    name : str
        Its name in the tables.
    library : str
        The library that it is from, by the name it is imported by.
    make : callable
        make(stream, seed, rounds, **settings) sets it up.
    settings : mapping
        What is passed to `make`: nothing that a user would have to tune.
    grid : tuple of mappings
        Settings of which the best in hindsight is shown beside the defaults.
    grid_in : tuple of str
        The streams, or groups of streams, in which the grid is run: those where a round takes about half a millisecond
        or less. Empty for all.
    only_in : tuple of str
        The streams, or groups of streams, that the method is for. Empty for all.
    """

    name: str
    library: str
    make: Callable[..., Agent]
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: tuple[Mapping[str, Any], ...] = ()
    grid_in: tuple[str, ...] = ()
    only_in: tuple[str, ...] = ()

    def is_for(self, name: str) -> bool:
        """Return True if the method is meant for the stream of this name."""
        return _is_in(STREAMS[name], self.only_in)

    def check(self, stream: Stream) -> None:
        """Raise if the method is not meant for the stream."""
        if not _is_in(stream, self.only_in):
            raise CannotTakePartError(f"it is run only in streams of the kind: {', '.join(self.only_in)}")

    @property
    def installed(self) -> bool:
        """True if its library can be imported."""
        return importlib.util.find_spec(self.library) is not None

    def variants(self, stream: Stream) -> dict[str, Mapping[str, Any]]:
        """The settings to run in a stream by name: "" for the defaults, then the grid."""
        named = {"": self.settings}
        for changes in self.grid if _is_in(stream, self.grid_in) else ():
            named[", ".join(f"{key}={value}" for key, value in changes.items())] = {**self.settings, **changes}
        return named


def _is_in(stream: Stream, names: tuple[str, ...]) -> bool:
    """Return True if the stream or its group is named, or no name is given."""
    return not names or stream.name in names or stream.group in names


def contexts(shown: Round, stream: Stream) -> FloatArray:
    """For libraries with a model per arm that predict arm by arm: a row for each candidate's own model.

    It is the candidate's features and the user's. Features that never change are left out: the arm's model needs none.
    """
    if shown.user is None:
        assert shown.items is not None
        return shown.items
    user = np.broadcast_to(shown.user, (len(shown.arms), len(shown.user)))
    return np.concatenate((shown.items, user), axis=1) if stream.items == "moving" and shown.items is not None else user


def one_context(shown: Round) -> FloatArray:
    """For libraries with one context for all arms: what the candidates share."""
    assert shown.user is not None
    return shown.user


def needs_one_context(stream: Stream) -> None:
    """Raise unless candidates share a context."""
    if not stream.user:
        raise CannotTakePartError("it takes one context for all arms, and here every candidate has features of its own")


def needs_clicks(stream: Stream) -> None:
    """Raise unless rewards are 0 and 1."""
    if not stream.binary:
        raise CannotTakePartError("rewards must be 0 or 1")
