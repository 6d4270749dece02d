"""Where work runs: this process, local processes, or a Ray cluster. Knows nothing of what the work is.

An engine maps a function over tasks and yields results as they finish. `function(task, report)` must be importable by
name and depend on its task alone, so that neither the number of workers nor the engine shows in the results;
`report(amount)` says how far it has come.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_end
from typing import Any, Protocol

from hybandits import checks

Report = Callable[[int], None]
Work = Callable[[Any, Report], Any]
Progress = Callable[[int, int], None]
"""Called with a task's number and how far it has come."""

TRIES = 3
"""How often a task is begun, should its worker die."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMBA_NUM_THREADS")
ONE_THREAD = {**dict.fromkeys(_THREADS, "1"), "HYBANDITS_QUIET": "1"}
"""What holds BLAS and numba to one thread each: the parallelism is in the workers."""


started = False
"""Whether any engine but `Here` has begun in this process: from then on there are processes to see to at its end."""


class EngineError(Exception):
    """Work that could not be done: no engine, or workers that keep dying."""


class Engine(Protocol):
    """Maps work over tasks."""

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        """(number of the task, its result), in the order they finish."""
        ...


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
        _note_start()
        context = multiprocessing.get_context("spawn")
        # A plain array of counters: no lock that a killed worker could take with it.
        counters: Any = context.Array("q", len(tasks), lock=False)
        others = set(multiprocessing.active_children())
        with environment(ONE_THREAD):
            size = min(self.workers, len(tries))
            with _uninterrupted():
                pool = ProcessPoolExecutor(size, mp_context=context, initializer=_begin, initargs=(counters,))
            waiting = list(tries)
            futures: dict[Future[Any], int] = {}
            try:
                while waiting or futures:
                    while waiting and len(futures) < size:  # no more than can run: a dead pool costs those tasks only
                        i = waiting.pop(0)
                        tries[i] += 1
                        with _uninterrupted():  # it starts a worker
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
                with _uninterrupted():
                    for process in set(multiprocessing.active_children()) - others:
                        process.terminate()
                    pool.shutdown(wait=True, cancel_futures=True)


class Ray:
    """A Ray cluster: one at `address`, or one of this machine's own for as long as the work lasts.

    A worker that dies costs its task a new try; Ray sees to that.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        why = "it is the number of tasks at a time; leave it out for what the cluster offers"
        self.workers = None if workers is None else checks.count("workers", workers, least=1, why=why)
        self.address = address

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise EngineError("the Ray engine needs ray: pip install 'hybandits[ray]'") from None
        if self.address is not None:
            _must_answer(self.address)
        _note_start()
        own = not ray.is_initialized()
        running: dict[Any, int] = {}
        try:
            if own:
                with _uninterrupted():  # a cluster half started leaves processes for a minute
                    self._start(ray)
            options: dict[str, Any] = {"runtime_env": {"env_vars": ONE_THREAD}}
            remote = ray.remote(num_cpus=1, max_retries=TRIES - 1, **options)(_call_counted)
            counters = ray.remote(num_cpus=0, **options)(Counters).remote()
            size = self.workers or int(ray.cluster_resources().get("CPU", 1))
            waiting = list(range(len(tasks)))
            while waiting or running:
                while waiting and len(running) < size:
                    i = waiting.pop(0)
                    running[remote.remote(work, i, tasks[i], counters)] = i
                done, _ = ray.wait(list(running), timeout=1.0)
                for i, amount in ray.get(counters.read.remote()).items():
                    if i in running.values():
                        progress(i, amount)
                for reference in done:
                    try:
                        result = ray.get(reference)
                    except ray.exceptions.RayTaskError as problem:
                        raise problem.cause from None
                    except ray.exceptions.RayError as problem:
                        raise EngineError(
                            f"Ray workers died {TRIES} times at the same task ({type(problem).__name__}): "
                            "memory may be short; try --workers 1"
                        ) from None
                    yield running.pop(reference), result
        finally:
            with _uninterrupted():
                for reference in running:  # left over when the work ended early
                    ray.cancel(reference, force=True)
                if own:
                    ray.shutdown()

    def _start(self, ray: Any) -> None:
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:  # "local": a new one, whatever the environment says of others
            options = {"address": "local", "num_cpus": self.workers or cores(), "include_dashboard": False}
        try:
            with environment({"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}):
                ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **options)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            first = str(problem).splitlines()[0]
            raise EngineError(
                f"no Ray cluster at {self.address or 'this machine'} ({first}): check --address"
            ) from None


def _must_answer(address: str) -> None:
    """EngineError if nobody listens at host:port; Ray itself would go on trying for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise EngineError(f"nobody answers at --address {address} ({reason}): is the Ray cluster up?") from None


def _note_start() -> None:
    global started
    started = True


@contextmanager
def _uninterrupted() -> Iterator[None]:
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


class Counters:
    """How far each task has come, kept by a Ray actor."""

    def __init__(self) -> None:
        self._amounts: dict[int, int] = {}

    def write(self, i: int, amount: int) -> None:
        self._amounts[i] = amount

    def read(self) -> dict[int, int]:
        return self._amounts


def _call_counted(work: Work, i: int, task: Any, counters: Any) -> Any:
    """In a Ray worker: tell the counters at most twice a second."""
    so_far, told = 0, time.monotonic()
    counters.write.remote(i, 0)

    def report(amount: int) -> None:
        nonlocal so_far, told
        so_far += amount
        if time.monotonic() - told > 0.5:
            counters.write.remote(i, so_far)
            told = time.monotonic()

    return work(task, report)


def _report_to(progress: Progress, i: int) -> Report:
    so_far = 0

    def report(amount: int) -> None:
        nonlocal so_far
        so_far += amount
        progress(i, so_far)

    return report
