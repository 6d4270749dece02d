"""The engine on a Ray cluster. Ray is imported when work starts, so that it need not be installed otherwise."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Sequence
from typing import Any

from hybandits.engines.interface import (
    ONE_THREAD,
    TRIES,
    EngineError,
    Progress,
    Work,
    cores,
    environment,
    uninterrupted,
)
from hybandits.foundation import checks, interrupts, own_classes


class Ray:
    """Runs tasks on a Ray cluster.

    When a worker dies, Ray starts its task again, at most three times in all.

    Parameters
    ----------
    workers : int, optional
        Number of tasks that run at a time; by default, the number of CPUs of the cluster.
    address : str, optional
        Where the cluster is, e.g. "10.0.0.1:6379" or "auto". By default, a cluster that this process is connected to
        already is used; if there is none, one is started on this machine for as long as the work lasts.

    Attributes
    ----------
    workers : int or None
        As given.
    address : str or None
        As given.
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
        if self.address is not None:
            _must_answer(self.address)
        interrupts.note_workers()
        own = not ray.is_initialized()
        running: dict[Any, int] = {}
        try:
            if own:
                with uninterrupted():  # a cluster that is interrupted as it starts leaves processes behind
                    self._start(ray)
            # Workers import classes of one's own from where this process does.
            path = {"PYTHONPATH": os.pathsep.join(folders)} if (folders := own_classes.places()) else {}
            options: dict[str, Any] = {"runtime_env": {"env_vars": {**ONE_THREAD, **path}}}
            remote = ray.remote(num_cpus=1, max_retries=TRIES - 1, **options)(_call_counted)
            counters: Any = ray.remote(num_cpus=0, **options)(Counters).remote()
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
                            "if memory is short, try --workers 1"
                        ) from None
                    yield running.pop(reference), result
        finally:
            with uninterrupted():
                for reference in running:  # the caller has stopped early
                    ray.cancel(reference, force=True)
                if own:
                    ray.shutdown()

    def _start(self, ray: Any) -> None:
        options: dict[str, Any] = {"address": self.address}
        if self.address is None:  # "local" starts a new cluster even if the environment names another
            options = {"address": "local", "num_cpus": self.workers or cores(), "include_dashboard": False}
        try:
            with environment({"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "RAY_USAGE_STATS_ENABLED": "0"}):
                ray.init(log_to_driver=False, logging_level="error", configure_logging=False, **options)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            reason = str(problem).splitlines()[0]
            if self.address is None:
                raise EngineError(
                    f"Ray could not start on this machine ({reason}): try --engine local, or give --address"
                ) from None
            raise EngineError(f"there is no Ray cluster at {self.address} ({reason}): check --address") from None


def _must_answer(address: str) -> None:
    """Raise EngineError if nothing listens at host:port; Ray itself would keep trying for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise EngineError(
            f"nothing answers at --address {address} ({reason}): check the address, and whether the Ray cluster is up"
        ) from None


class Counters:
    """A Ray actor that knows how much of each task is done."""

    def __init__(self) -> None:
        self._amounts: dict[int, int] = {}

    def write(self, i: int, amount: int) -> None:
        self._amounts[i] = amount

    def read(self) -> dict[int, int]:
        return self._amounts


def _call_counted(work: Work, i: int, task: Any, counters: Any) -> Any:
    """Run the work in a Ray worker, telling the counters at most twice a second how much is done."""
    so_far, told = 0, time.monotonic()
    counters.write.remote(i, 0)

    def report(amount: int) -> None:
        nonlocal so_far, told
        so_far += amount
        if time.monotonic() - told > 0.5:
            counters.write.remote(i, so_far)
            told = time.monotonic()

    return work(task, report)
