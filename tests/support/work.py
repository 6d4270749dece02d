"""Work for engines: functions that workers import by name, and what to do while waiting for processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hybandits.engines import Report


def ignore(task: int, amount: int) -> None:
    """Ignore progress."""


def square(task: int, report: Report) -> int:
    for _ in range(3):
        report(task)
    return task * task


def variable(task: str, report: Report) -> str | None:
    """The environment variable of that name."""
    return os.environ.get(task)


def report_and_wait(task: Path, report: Report) -> None:
    """Go on when the file is there."""
    report(1)
    wait_for(task.exists)


def sleep(task: int, report: Report) -> None:
    time.sleep(60)


def sleep_after_the_first(task: tuple[Path, int], report: Report) -> int:
    """Task 0 ends at once; the others leave their process's number behind and sleep."""
    folder, i = task
    if i > 0:
        (folder / f"process-{os.getpid()}").touch()
        time.sleep(60)
    return i


def die_once(task: tuple[Path, int], report: Report) -> int:
    """Kill the own process at the first try of task 1."""
    folder, i = task
    mark = folder / "died"
    if i == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return i


def die(task: int, report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(task: int, report: Report) -> None:
    raise ValueError(f"no good: {task}")


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    numbers = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            numbers.append(int(stat.parent.name))
    return numbers


def running(pid: int) -> bool:
    """Return True if the process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(condition: Callable[[], Any]) -> Any:
    """The condition's value as soon as it is true."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("it did not happen within a minute")
