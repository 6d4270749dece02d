"""This process, or processes of this machine."""

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


class Here:
    """This very process, one task after the other; its BLAS may use several threads, which can show in a last digit."""

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        for i, task in enumerate(tasks):
            yield i, work(task, _report_to(progress, i))


class Local:
    """Processes of this machine, one per core unless told otherwise; a process that dies costs its task a new try."""

    def __init__(self, workers: int | None = None) -> None:
        why = "it is the number of processes; leave it out for one per core"
        self.workers = cores() if workers is None else checks.count("workers", workers, least=1, why=why)

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        tries = dict.fromkeys(range(len(tasks)), 0)
        while tries:
            for i, result in self._round(work, tasks, tries, progress):
                del tries[i]
                yield i, result

    def _round(
        self, work: Work, tasks: Sequence[Any], tries: dict[int, int], progress: Progress
    ) -> Iterator[tuple[int, Any]]:
        """Run what is left in one pool; ends early when a worker has died, which spoils a pool."""
        interrupts.note_workers()
        context = multiprocessing.get_context("spawn")
        # A plain array of counters: no lock that a killed worker could take with it.
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
                    while waiting and len(futures) < size:  # no more than can run: a dead pool costs those tasks only
                        i = waiting.pop(0)
                        tries[i] += 1
                        with uninterrupted():  # it starts a worker
                            futures[pool.submit(_call, work, i, tasks[i])] = i
                    done, _ = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
                    for i in futures.values():
                        progress(i, counters[i])
                    for future in done:
                        yield futures.pop(future), future.result()
            except BrokenProcessPool:
                for i in futures.values():
                    progress(i, 0)
                worn = [i for i in tries if tries[i] >= TRIES]
                if worn:
                    raise EngineError(
                        f"worker processes died {TRIES} times at the same task: memory may be short, try --workers 1; "
                        "or a script starts work outside of `if __name__ == '__main__':`, which workers import"
                    ) from None
            finally:
                with uninterrupted():
                    for process in set(multiprocessing.active_children()) - others:
                        process.terminate()
                    pool.shutdown(wait=True, cancel_futures=True)


# ------------------------------------------------------------------ in the workers

_counters: Any = None


def _begin(counters: Any) -> None:
    """In a new local worker: leave Ctrl-C to the parent, end with it, and know where to count."""
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
