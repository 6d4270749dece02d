"""This process and processes of this machine: what is theirs alone."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybandits.engines import ProcessEngine, SerialEngine, cores
from tests.support.work import children, ignore, running, sleep_after_the_first, square, wait_for


def test_here_tells_every_step_of_every_task() -> None:
    told: list[tuple[int, int]] = []
    assert dict(SerialEngine().map(square, [1, 5], lambda i, amount: told.append((i, amount)))) == {0: 1, 1: 25}
    assert told == [(0, 1), (0, 2), (0, 3), (1, 5), (1, 10), (1, 15)]


def test_there_is_a_process_per_core_by_default() -> None:
    assert ProcessEngine().workers == cores()
    assert ProcessEngine(3).workers == 3


@pytest.mark.slow
def test_processes_of_others_are_left_alone() -> None:
    mine = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    mine.start()
    assert dict(ProcessEngine(1).map(square, [3], ignore)) == {0: 9}
    assert mine.is_alive()
    mine.kill()
    mine.join()


@pytest.mark.slow
def test_workers_end_when_the_caller_stops_early(tmp_path: Path) -> None:
    work = ProcessEngine(2).map(sleep_after_the_first, [(tmp_path, i) for i in range(3)], ignore)
    assert next(work) == (0, 0)
    workers = wait_for(lambda: [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("process-*")])
    work.close()
    wait_for(lambda: not any(running(pid) for pid in workers))


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from hybandits.engines import ProcessEngine; from tests.support.work import sleep\n"
        "if __name__ == '__main__': list(ProcessEngine(2).map(sleep, [1, 2], lambda i, n: None))"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root})
    workers = wait_for(lambda: children(parent.pid) if len(children(parent.pid)) >= 2 else None)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(running(pid) for pid in workers))
