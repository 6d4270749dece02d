"""What an engine is, and what engines share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

Report = Callable[[int], None]
Work = Callable[[Any, Report], Any]
Progress = Callable[[int, int], None]
"""Called with a task's number and how far it has come."""

TRIES = 3
"""How often a task is begun, should its worker die."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = {**dict.fromkeys(_THREADS, "1"), "HYBANDITS_QUIET": "1"}
"""What holds BLAS and numba to one thread each: the parallelism is in the workers."""


class EngineError(Exception):
    """Work that could not be done: no engine, or workers that keep dying."""


class Engine(Protocol):
    """Maps work over tasks."""

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        """(number of the task, its result), in the order they finish."""
        ...


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C takes effect after the block, unless given twice, and none on processes started within it."""
    came: list[int] = []
    before: Any = signal.getsignal(signal.SIGINT)
    masks = hasattr(signal, "pthread_sigmask")
    handles = threading.current_thread() is threading.main_thread() and callable(before)

    def note(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) > 1:
            before(number, frame)

    if handles:
        signal.signal(signal.SIGINT, note)
    # A process starts with what is blocked here: Ctrl-C at a terminal goes to workers too, who cannot ignore it yet.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handles:
            signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the time of the block, for processes started within it."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
