"""The interface of an engine, and the small parts that engines share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

Report = Callable[[int], None]
"""report(amount): called by the work to say how much more of its task is done."""

Work = Callable[[Any, Report], Any]
"""work(task, report): what is done with every task."""

Progress = Callable[[int, int], None]
"""progress(number of the task, amount): called by the engine to say how much of a task is done so far."""

TRIES = 3
"""How often a task is started, if its workers keep dying, before the engine gives up."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = {**dict.fromkeys(_THREADS, "1"), "HYBANDITS_QUIET": "1"}
"""Environment variables that hold BLAS and numba to one thread in every worker: the workers are the parallelism."""


class EngineError(Exception):
    """The engine could not do the work: it is not available, or its workers keep dying."""


class Engine(Protocol):
    """Runs a function on many tasks, wherever it is.

    The function must be importable by name, and its result must depend on its task alone. Then neither the engine nor
    the number of workers shows in the results.
    """

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        """Run `work(task, report)` on every task.

        Parameters
        ----------
        work : callable
            A function that can be imported by name; it may call `report(amount)` to say how much more is done.
        tasks : sequence
            What to run it on; tasks and results are pickled, except by `SerialEngine`.
        progress : callable
            Called with the number of a task and the amount of it done so far, while it runs.

        Yields
        ------
        (int, result)
            The number of a task and its result, in the order in which tasks finish. Closing the generator early ends
            the workers.
        """
        ...


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the block, unless it comes twice; processes started within never see it."""
    received: list[int] = []
    before: Any = signal.getsignal(signal.SIGINT)
    masks = hasattr(signal, "pthread_sigmask")
    handles = threading.current_thread() is threading.main_thread() and callable(before)

    def note(number: int, frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            before(number, frame)

    if handles:
        signal.signal(signal.SIGINT, note)
    # A new process inherits the mask. Ctrl-C at a terminal goes to workers too, and these cannot ignore it yet.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if masks else set()
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handles:
            signal.signal(signal.SIGINT, before)
        if received:
            signal.raise_signal(signal.SIGINT)


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables during the block, for the processes that are started within it."""
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
