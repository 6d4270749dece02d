"""Policies that several threads share: one lock for each policy, and what happens to it in a fork.

Kernels run without Python's own lock, so two threads could change one block at the same time. Every method that reads
or changes what a policy has learned therefore holds the policy's lock. `Guarded` sees to that for every class that
defines such a method, classes of users included.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

GUARDED = (
    "choose", "choose_batch", "rank", "rank_batch", "learn", "learn_batch", "learn_summary", "predict", "propensities",
    "candidates", "_place_probabilities", "_scores",
    "theta", "beta", "arms",
    "rounds", "forget", "refresh", "learned", "_pack", "number_decisions", "reseed", "meet", "decision_numbers",
)  # fmt: skip
"""Methods and properties that hold the lock. `merge` holds those of both policies."""

Function = TypeVar("Function", bound=Callable[..., Any])

_alive: weakref.WeakSet[Guarded] = weakref.WeakSet()
_held_for_fork: list[threading.RLock] = []


def holds_lock(method: Function) -> Function:
    """Mark a method that takes the lock itself, which is faster than being wrapped."""
    method.holds_lock = True  # type: ignore[attr-defined]
    return method


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(function, "holds_lock", False):
        return function

    @functools.wraps(function)
    def method(self: Guarded, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return function(self, *arguments, **options)

    return holds_lock(method)


def _guarded_merge(function: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(function, "holds_lock", False):
        return function

    @functools.wraps(function)
    def merge(self: Guarded, other: Any) -> Any:
        with locked(self, other):
            return function(self, other)

    return holds_lock(merge)


class Guarded:
    """An object whose methods named in `GUARDED`, wherever they are defined, hold its lock."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in GUARDED:
            member = cls.__dict__.get(name)
            if isinstance(member, property) and member.fget is not None:
                setattr(cls, name, property(_guarded(member.fget), member.fset, member.fdel, member.__doc__))
            elif callable(member):
                setattr(cls, name, _guarded(member))
        if callable(cls.__dict__.get("merge")):
            cls.merge = _guarded_merge(cls.__dict__["merge"])  # type: ignore[attr-defined]

    def _make_lock(self) -> None:
        """Give the object a lock of its own; called by its constructor."""
        self._lock = threading.RLock()
        _alive.add(self)

    def _after_fork(self) -> None:
        """Make what must differ in a forked process."""

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_lock()


@contextmanager
def locked(*several: Any) -> Iterator[None]:
    """Hold the locks of several objects, taken in one order everywhere, so that no two threads wait for each other."""
    locks = {id(each): each._lock for each in several if isinstance(each, Guarded)}
    taken = []
    try:
        for _, lock in sorted(locks.items()):
            lock.acquire()
            taken.append(lock)
        yield
    finally:
        for lock in reversed(taken):
            lock.release()


def _before_fork() -> None:
    """Wait until nobody changes anything, so that the new process gets whole models."""
    for each in sorted(_alive, key=id):
        each._lock.acquire()
        _held_for_fork.append(each._lock)


def _after_fork_in_parent() -> None:
    while _held_for_fork:
        _held_for_fork.pop().release()


def _after_fork_in_child() -> None:
    """The threads that held or waited for locks do not exist here: make the locks anew."""
    _held_for_fork.clear()
    for each in list(_alive):
        each._lock = threading.RLock()
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
