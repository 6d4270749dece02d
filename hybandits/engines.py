"""Engines run work in this process, in processes of this machine, or on a Ray cluster."""

import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from hybandits.foundation import checks

Report = Callable[[int], None]
"""report(amount): called by the work with the amount of its task done since the last call."""

Work = Callable[[Any, Report], Any]
"""work(task, report): the function that is called with every task."""

Progress = Callable[[int, int], None]
"""progress(number of the task, amount): called by the engine with the amount of a task done since the last call."""

TRIES = 3
"""The number of times that Ray starts a task whose workers keep dying."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = {**dict.fromkeys(_THREADS, "1"), "HYBANDITS_QUIET": "1"}
"""Environment variables that limit BLAS and numba to one thread in every worker."""


class EngineError(Exception):
    """The engine could not do the work: it is not available, or a worker died."""


class Engine(Protocol):
    """Runs a function on many tasks.

    The function must be importable by name, and its result must depend on its task alone. Then neither the engine nor
    the number of workers changes the results.
    """

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        """Run `work(task, report)` on every task; yield the number and the result of each, in the order they finish.

        Tasks and results are pickled, except by `SerialEngine`. Closing the generator early ends the workers.
        """


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class SerialEngine:
    """Runs tasks in this process, one after the other.

    Unlike workers of other engines, this process is not limited to one thread of BLAS, which can change last digits.

    Examples
    --------
    >>> def square(task, report):
    ...     return task * task
    >>> dict(SerialEngine().map(square, [2, 3], progress=lambda task, amount: None))
    {0: 4, 1: 9}
    """

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        for i, task in enumerate(tasks):
            yield i, work(task, partial(progress, i))


class ProcessEngine:
    """Runs tasks in processes of this machine, by default one per core.

    When a process dies, the work ends with an `EngineError`. Scripts must start their work under
    ``if __name__ == "__main__":``, because the processes import the script.
    """

    def __init__(self, workers: int | None = None) -> None:
        why = "it is the number of processes; leave it out for one per core"
        self.workers = cores() if workers is None else checks.count("workers", workers, least=1, why=why)

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        context = multiprocessing.get_context("spawn")
        # Without a lock, which a killed worker might never release: every counter has one writer.
        counters: Any = context.Array("q", len(tasks), lock=False)
        reported = [0] * len(tasks)
        others = set(multiprocessing.active_children())
        size = max(1, min(self.workers, len(tasks)))
        with _environment(ONE_THREAD):
            pool = ProcessPoolExecutor(size, mp_context=context, initializer=_begin, initargs=(counters,))
            try:
                with _without_interrupts():  # submitting starts the workers
                    futures = {pool.submit(_call, work, i, task): i for i, task in enumerate(tasks)}
                while futures:
                    done, _ = wait(futures, timeout=0.2, return_when=FIRST_COMPLETED)
                    for i in futures.values():
                        amount = counters[i] - reported[i]
                        reported[i] += amount
                        progress(i, amount)
                    for future in done:
                        yield futures.pop(future), future.result()
            except BrokenProcessPool:
                raise EngineError(
                    "a worker process died: run the same command again to continue, with --workers 1 if memory is "
                    "short; if this is a script, start its work under `if __name__ == '__main__':`"
                ) from None
            finally:
                for process in set(multiprocessing.active_children()) - others:
                    process.terminate()
                pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started within the block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that never see Ctrl-C, which a terminal sends to them too; here it takes effect afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


_counters: Any = None


def _begin(counters: Any) -> None:
    """Start of a worker: leave Ctrl-C to the parent, and end when the parent ends."""
    global _counters
    _counters = counters
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _call(work: Work, i: int, task: Any) -> Any:
    def report(amount: int) -> None:
        _counters[i] += amount

    return work(task, report)


class Ray:
    """Runs tasks on a Ray cluster.

    When a worker dies, Ray starts its task again, at most three times in all. Progress is reported task by task.
    `workers` tasks run at a time, by default as many as the cluster has CPUs. `address` is e.g. "10.0.0.1:6379" or
    "auto"; by default it is a cluster that this process is connected to, or one that is started for the work.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        why = "it is the number of tasks at a time; leave it out for what the cluster offers"
        self.workers = None if workers is None else checks.count("workers", workers, least=1, why=why)
        self.address = address

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        try:
            import ray
        except ImportError:
            raise EngineError("the Ray engine needs ray: run pip install '.[ray]' in a checkout of hybandits") from None
        own = not ray.is_initialized()
        running: dict[Any, int] = {}
        try:
            if own:
                with _without_interrupts():  # a cluster that is interrupted as it starts leaves processes behind
                    self._start(ray)
            variables = {**ONE_THREAD, "PYTHONPATH": os.pathsep.join(_folders_of_modules())}
            options: dict[str, Any] = {"num_cpus": 1, "max_retries": TRIES - 1, "runtime_env": {"env_vars": variables}}
            remote = ray.remote(**options)(_call_and_count)
            size = self.workers or int(ray.cluster_resources().get("CPU", 1))
            waiting = list(range(len(tasks)))
            while waiting or running:
                while waiting and len(running) < size:
                    i = waiting.pop(0)
                    # As bytes, because Ray itself would hand over arrays that are read-only.
                    running[remote.remote(work, ray.cloudpickle.dumps(tasks[i]))] = i
                (reference, *_), _ = ray.wait(list(running))
                try:
                    result, amount = ray.get(reference)
                except ray.exceptions.RayTaskError as problem:
                    raise problem.cause from None
                except ray.exceptions.RayError as problem:
                    wrong = f"Ray workers died {TRIES} times at the same task ({type(problem).__name__})"
                    raise EngineError(f"{wrong}: if memory is short, try --workers 1") from None
                i = running.pop(reference)
                progress(i, amount)
                yield i, result
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
            if own:
                ray.shutdown()

    def _start(self, ray: Any) -> None:
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:  # "local" starts a new cluster even if the environment names another
            options = {"address": "local", "num_cpus": self.workers or cores(), "include_dashboard": False}
        host, _, port = (self.address or "").rpartition("://")[2].rpartition(":")
        try:
            if port.isdigit():  # Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=5).close()
            with _environment({"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}):
                ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **options)
        except (OSError, ValueError, RuntimeError) as problem:
            reason = str(problem).splitlines()[0]
            where = "on this machine" if self.address is None else f"at {self.address}"
            raise EngineError(f"no Ray cluster {where} ({reason}): check the address, or use --engine local") from None


def _folders_of_modules() -> list[str]:
    """The folders outside Python's own from which this process imports modules, so that workers find the same."""
    own = tuple(os.path.join(prefix, "") for prefix in (sys.prefix, sys.base_prefix))
    folders = [os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder or ".")]
    return [folder for folder in dict.fromkeys(folders) if not f"{folder}/".startswith(own)]


def _call_and_count(work: Work, task: bytes) -> tuple[Any, int]:
    from ray import cloudpickle

    amounts: list[int] = []
    return work(cloudpickle.loads(task), amounts.append), sum(amounts)
