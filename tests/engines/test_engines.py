"""Engines give the same results whatever they are, and lose a task's try, not the run, when a worker dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import Engine, EngineError, Here, Local, Ray, Report
from hybandits.engines import ray as ray_engine


def square(task: int, report: Report) -> int:
    for _ in range(3):
        report(task)
    return task * task


def threads(task: str, report: Report) -> str | None:
    return os.environ.get(task)


def slowly(task: int, report: Report) -> int:
    for _ in range(5):
        time.sleep(0.7)
        report(1)
    return task


def die_once(task: tuple[Path, int], report: Report) -> int:
    """Kill the own process at the first try of task 1."""
    folder, i = task
    mark = folder / "died"
    if i == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / f"began-{i}").open("a").write("x")
    return i


def die(task: int, report: Report) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(task: int, report: Report) -> None:
    raise ValueError(f"no good: {task}")


ENGINES: dict[str, Callable[[], Engine]] = {
    "here": Here,
    "one process": lambda: Local(1),
    "two processes": lambda: Local(2),
    "ray": lambda: Ray(2),
}
RAY = pytest.param("ray", marks=pytest.mark.xdist_group("ray"))
ALL = ["here", "one process", "two processes", RAY]


@pytest.mark.parametrize("name", ["two processes", RAY])
def test_progress_is_told_while_a_task_runs(name: str) -> None:
    told: list[int] = []
    assert dict(ENGINES[name]().map(slowly, [7], lambda i, amount: told.append(amount))) == {0: 7}
    assert {1, 2, 3} & set(told)


@pytest.mark.parametrize("name", ALL)
def test_every_task_is_done_and_told_of(name: str) -> None:
    told: dict[int, int] = {}
    done = dict(ENGINES[name]().map(square, list(range(7)), told.__setitem__))
    assert done == {i: i * i for i in range(7)}
    if name == "here":
        assert told == {i: 3 * i for i in range(7)}


@pytest.mark.parametrize("name", ["two processes", RAY])
def test_workers_are_held_to_one_thread(name: str) -> None:
    before = dict(os.environ)
    names = ["OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"]
    assert dict(ENGINES[name]().map(threads, names, lambda i, n: None)) == {0: "1", 1: "1"}
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before.get("OPENBLAS_NUM_THREADS")


@pytest.mark.parametrize("name", ["one process", "two processes", RAY])
def test_a_worker_that_dies_costs_a_try(name: str, tmp_path: Path) -> None:
    tasks = [(tmp_path, i) for i in range(5)]
    assert dict(ENGINES[name]().map(die_once, tasks, lambda i, n: None)) == {i: i for i in range(5)}
    assert (tmp_path / "died").exists()
    again = sum(len((tmp_path / f"began-{i}").read_text()) for i in range(5)) - 5
    assert again <= 1, "no more than the task beside it was begun twice"


@pytest.mark.parametrize("name", ["two processes", RAY])
def test_workers_that_keep_dying_end_the_run_with_a_word(name: str) -> None:
    with pytest.raises(EngineError, match=r"workers? .*died 3 times at the same task.*--workers 1"):
        list(ENGINES[name]().map(die, [0], lambda i, n: None))


@pytest.mark.parametrize("name", ALL)
def test_an_error_in_the_work_comes_through(name: str) -> None:
    with pytest.raises(ValueError, match="no good: 0"):
        list(ENGINES[name]().map(fail, [0], lambda i, n: None))


def test_processes_of_others_are_left_alone() -> None:
    mine = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    mine.start()
    assert dict(Local(1).map(square, [3], lambda i, n: None)) == {0: 9}
    assert mine.is_alive()
    mine.kill()
    mine.join()


def test_a_ray_cluster_that_does_not_answer_is_named_at_once() -> None:
    with pytest.raises(EngineError, match=r"nobody answers at --address 127\.0\.0\.1:1 .*is the Ray cluster up"):
        list(Ray(address="127.0.0.1:1").map(square, [1], lambda i, n: None))


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(ray_engine.importlib, "import_module", missing)
    with pytest.raises(EngineError, match=r"pip install 'hybandits\[ray\]'"):
        list(Ray().map(square, [1], lambda i, n: None))


@pytest.mark.parametrize("kind", [Local, Ray])
def test_workers_must_be_a_number(kind: Any) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        kind(0)


def sleep(task: int, report: Report) -> None:
    time.sleep(60)


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from hybandits.engines import Local; from tests.engines.test_engines import sleep\n"
        "if __name__ == '__main__': list(Local(2).map(sleep, [1, 2], lambda i, n: None))"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = str(Path(__file__).parents[2])
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root})
    workers = _wait_for(lambda: _children(parent.pid) if len(_children(parent.pid)) >= 2 else None)
    parent.kill()
    parent.wait()
    _wait_for(lambda: not any(_alive(pid) for pid in workers))


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_for(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen within a minute")
