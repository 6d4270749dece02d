"""Engines on this machine: `SerialEngine`, this very process, and `ProcessEngine`, a pool of processes.

The pool is our own around `concurrent.futures`: that gives up when a worker dies and cannot tell how far a task is.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for_end
from typing import Any

from hybandits.engines.interface import (
    ONE_THREAD,
    TRIES,
    EngineError,
    Progress,
    Report,
    Work,
    cores,
    environment,
    uninterrupted,
)
from hybandits.foundation import checks, interrupts


class SerialEngine:
    """Runs tasks in this process, one after the other.

    Notes
    -----
    Unlike the workers of other engines, this process is not held to one thread of BLAS, which can change last digits.

    Examples
    --------
    >>> def square(task, report):
    ...     return task * task
    >>> dict(SerialEngine().map(square, [2, 3], progress=lambda task, amount: None))
    {0: 4, 1: 9}
    """

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        for i, task in enumerate(tasks):
            yield i, work(task, _report_to(progress, i))


class ProcessEngine:
    """Runs tasks in processes of this machine.

    When a process dies, its task is started again, at most three times in all. Scripts must start their work under
    ``if __name__ == "__main__":``, because the processes import the script.

    Parameters
    ----------
    workers : int, optional
        Number of processes; by default, one per core.

    Attributes
    ----------
    workers : int
        Number of processes.
    """

    def __init__(self, workers: int | None = None) -> None:
        why = "it is the number of processes; leave it out for one per core"
        self.workers = cores() if workers is None else checks.count("workers", workers, least=1, why=why)

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        tries = dict.fromkeys(range(len(tasks)), 0)
        while tries:
            for i, result in self._one_pool(work, tasks, tries, progress):
                del tries[i]
                yield i, result

    def _one_pool(
        self, work: Work, tasks: Sequence[Any], tries: dict[int, int], progress: Progress
    ) -> Iterator[tuple[int, Any]]:
        """Run the tasks that are left in one pool; ends early when a worker dies, because that breaks the pool."""
        interrupts.note_workers()
        context = multiprocessing.get_context("spawn")
        # Without a lock, which a killed worker might never release: every counter has one writer.
        counters: Any = context.Array("q", len(tasks), lock=False)
        others = set(multiprocessing.active_children())
        with environment(ONE_THREAD):
            size = min(self.workers, len(tries))
            with uninterrupted():
                pool = ProcessPoolExecutor(size, mp_context=context, initializer=_begin, initargs=(counters,))
            waiting = list(tries)
            futures: dict[Future[Any], int] = {}
            try:
                while waiting or futures:
                    while waiting and len(futures) < size:  # a broken pool costs a try only of what was running
                        i = waiting.pop(0)
                        tries[i] += 1
                        with uninterrupted():  # submitting may start a worker
                            futures[pool.submit(_call, work, i, tasks[i])] = i
                    done, _ = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
                    for i in futures.values():
                        progress(i, counters[i])
                    for future in done:
                        yield futures.pop(future), future.result()
            except BrokenProcessPool:
                for i in futures.values():
                    progress(i, 0)
                if any(count >= TRIES for count in tries.values()):
                    raise EngineError(
                        f"worker processes died {TRIES} times at the same task: if memory is short, try --workers 1; "
                        "if this is a script, start its work under `if __name__ == '__main__':`, as workers import it"
                    ) from None
            finally:
                with uninterrupted():
                    for process in set(multiprocessing.active_children()) - others:
                        process.terminate()
                    pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------ in the workers

_counters: Any = None


def _begin(counters: Any) -> None:
    """Start of a worker: leave Ctrl-C to the parent, end when it ends, and keep the counters at hand."""
    global _counters
    _counters = counters
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            wait_for_end([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _call(work: Work, i: int, task: Any) -> Any:
    _counters[i] = 0

    def report(amount: int) -> None:
        _counters[i] += amount

    return work(task, report)


def _report_to(progress: Progress, i: int) -> Report:
    so_far = 0

    def report(amount: int) -> None:
        nonlocal so_far
        so_far += amount
        progress(i, so_far)

    return report
