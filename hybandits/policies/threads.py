"""Policies that several threads share: one lock for each policy, and what happens to it in a fork.

Kernels run without Python's own lock, so two threads could change one block at the same time. Every public method that
reads or changes what a policy has learned therefore holds the policy's lock.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_alive: weakref.WeakSet[Lockable] = weakref.WeakSet()
_held_for_fork: list[threading.RLock] = []


def synchronized(method: Function) -> Function:
    """Hold the lock of the object while the method runs."""

    @functools.wraps(method)
    def holding(self: Lockable, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *arguments, **options)

    return holding  # type: ignore[return-value]


class Lockable:
    """An object with a lock that is not copied or pickled, and is renewed in a forked process."""

    def _make_lock(self) -> None:
        """Give the object a lock; called by its constructor."""
        self._lock = threading.RLock()
        _alive.add(self)

    def _after_fork(self) -> None:
        """Change what must differ in a forked process."""

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_lock()


@contextmanager
def locked(*several: Any) -> Iterator[None]:
    """Hold the locks of several objects, taken in one order everywhere, so that no two threads wait for each other."""
    locks = _in_order(each for each in several if isinstance(each, Lockable))
    for lock in locks:
        lock.acquire()
    try:
        yield
    finally:
        for lock in reversed(locks):
            lock.release()


def _in_order(several: Any) -> list[threading.RLock]:
    """The locks of several objects, each once."""
    return sorted({id(each._lock): each._lock for each in several}.values(), key=id)


def _before_fork() -> None:
    """Wait until nobody changes anything, so that the new process gets whole models."""
    for lock in _in_order(_alive):
        lock.acquire()
        _held_for_fork.append(lock)


def _after_fork_in_parent() -> None:
    while _held_for_fork:
        _held_for_fork.pop().release()


def _after_fork_in_child() -> None:
    """Renew the locks: the threads that held or waited for them do not exist here."""
    _held_for_fork.clear()
    new: dict[int, threading.RLock] = {}
    for each in list(_alive):
        each._lock = new.setdefault(id(each._lock), threading.RLock())
    for each in list(_alive):
        each._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
