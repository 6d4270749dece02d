"""Engines: the same results everywhere, workers that die, interruption, and processes that are left alone."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybandits import engines
from hybandits.engines import Engine, EngineError, ProcessEngine, Ray, SerialEngine
from tests.support.work import (
    children,
    die,
    die_once,
    fail,
    ignore,
    report_and_wait,
    running,
    sleep_after_the_first,
    square,
    variable,
    wait_for,
)

ENGINES = [SerialEngine(), pytest.param(ProcessEngine(2), marks=pytest.mark.slow)]


def test_the_serial_engine_reports_every_step_of_every_task() -> None:
    calls: list[tuple[int, int]] = []
    assert dict(SerialEngine().map(square, [1, 5], lambda i, amount: calls.append((i, amount)))) == {0: 1, 1: 25}
    assert calls == [(0, 1), (0, 1), (0, 1), (1, 5), (1, 5), (1, 5)]


@pytest.mark.slow
def test_processes_report_progress_while_a_task_runs(tmp_path: Path) -> None:
    """The task ends when its progress has been seen."""
    seen = tmp_path / "seen"

    def progress(task: int, amount: int) -> None:
        if amount:
            seen.touch()

    assert dict(ProcessEngine(2).map(report_and_wait, [seen], progress)) == {0: None}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_task_is_done(engine: Engine) -> None:
    assert dict(engine.map(square, list(range(7)), ignore)) == {i: i * i for i in range(7)}
    assert dict(engine.map(square, [], ignore)) == {}


@pytest.mark.slow
def test_workers_are_held_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    names = ["OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"]
    assert dict(ProcessEngine(2).map(variable, names, ignore)) == {0: "1", 1: "1"}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


@pytest.mark.slow
def test_workers_that_die_end_the_run_with_a_remedy() -> None:
    with pytest.raises(EngineError, match=r"a worker process died.*--workers 1"):
        list(ProcessEngine(1).map(die, [0], ignore))


@pytest.mark.xdist_group("ray")
@pytest.mark.slow
def test_tasks_on_a_cluster_of_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster that runs already is used and left running; a worker that dies costs a try, until none is left."""
    import ray

    assert dict(Ray().map(variable, ["OPENBLAS_NUM_THREADS"], ignore)) == {0: "1"}, "the cluster itself has 2"
    tasks = [(tmp_path, i) for i in range(5)]
    assert dict(Ray(2).map(die_once, tasks, ignore)) == {i: i for i in range(5)}
    assert (tmp_path / "died").exists()
    with pytest.raises(ValueError, match="no good: 0"):
        list(Ray(2).map(fail, [0], ignore))
    monkeypatch.setattr(engines, "TRIES", 1)
    with pytest.raises(EngineError, match=r"Ray workers died 1 times.*--workers 1"):
        list(Ray(2).map(die, [0], ignore))
    assert ray.is_initialized()


@pytest.mark.parametrize("engine", ENGINES)
def test_an_error_in_the_work_comes_through(engine: Engine) -> None:
    with pytest.raises(ValueError, match="no good: 0"):
        list(engine.map(fail, [0], ignore))


@pytest.mark.parametrize("kind", [ProcessEngine, Ray])
def test_workers_must_be_at_least_one(kind: type[ProcessEngine] | type[Ray]) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        kind(0)


@pytest.mark.slow
def test_workers_end_when_the_caller_stops_early_and_other_processes_do_not(tmp_path: Path) -> None:
    mine = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    mine.start()
    work = ProcessEngine(2).map(sleep_after_the_first, [(tmp_path, i) for i in range(3)], ignore)
    assert next(work) == (0, 0)
    workers = wait_for(lambda: [int(path.name.rpartition("-")[2]) for path in tmp_path.glob("process-*")])
    work.close()
    wait_for(lambda: not any(running(pid) for pid in workers))
    assert mine.is_alive()
    mine.kill()
    mine.join()


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from hybandits.engines import ProcessEngine; from tests.support.work import sleep\n"
        "if __name__ == '__main__': list(ProcessEngine(2).map(sleep, [1, 2], lambda i, n: None))"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = str(Path(__file__).parents[1])
    parent = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": root})
    workers = wait_for(lambda: children(parent.pid) if len(children(parent.pid)) >= 2 else None)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(running(pid) for pid in workers))


def test_a_cluster_that_does_not_answer_is_named_at_once() -> None:
    pytest.importorskip("ray")
    with pytest.raises(EngineError, match=r"no Ray cluster at 127\.0\.0\.1:1 \(.*refused\): check the address"):
        Ray(address="127.0.0.1:1")._start(None)


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it raises ImportError
    with pytest.raises(EngineError, match=r"run pip install '\.\[ray\]' in a checkout"):
        list(Ray().map(square, [1], ignore))
