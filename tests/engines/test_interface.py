"""What all engines promise, whichever they are; and the parts that they share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hybandits.engines import Engine, EngineError, ProcessEngine, Ray, SerialEngine, cores
from hybandits.engines.interface import environment, uninterrupted
from tests.support.work import die, die_once, fail, ignore, slowly, square, variable

ENGINES: dict[str, Callable[[], Engine]] = {
    "here": SerialEngine,
    "one process": lambda: ProcessEngine(1),
    "two processes": lambda: ProcessEngine(2),
    "ray": lambda: Ray(2),
}
ONE = pytest.param("one process", marks=pytest.mark.slow)
TWO = pytest.param("two processes", marks=pytest.mark.slow)
RAY = pytest.param("ray", marks=pytest.mark.xdist_group("ray"))
ALL = ["here", ONE, TWO, RAY]


@pytest.mark.parametrize("name", [TWO, RAY])
def test_progress_is_told_while_a_task_runs(name: str) -> None:
    told: list[int] = []
    assert dict(ENGINES[name]().map(slowly, [7], lambda i, amount: told.append(amount))) == {0: 7}
    assert {1, 2, 3} & set(told)


@pytest.mark.parametrize("name", ALL)
def test_every_task_is_done(name: str) -> None:
    assert dict(ENGINES[name]().map(square, list(range(7)), ignore)) == {i: i * i for i in range(7)}


@pytest.mark.parametrize("name", ["here", TWO])
def test_no_tasks_are_done_at_once(name: str) -> None:
    assert list(ENGINES[name]().map(square, [], ignore)) == []


@pytest.mark.parametrize("name", [TWO, RAY])
def test_workers_are_held_to_one_thread(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    names = ["OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"]
    assert dict(ENGINES[name]().map(variable, names, ignore)) == {0: "1", 1: "1"}
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


@pytest.mark.parametrize("name", [ONE, TWO, RAY])
def test_a_worker_that_dies_costs_a_try(name: str, tmp_path: Path) -> None:
    tasks = [(tmp_path, i) for i in range(5)]
    assert dict(ENGINES[name]().map(die_once, tasks, ignore)) == {i: i for i in range(5)}
    assert (tmp_path / "died").exists()
    again = sum(len((tmp_path / f"began-{i}").read_text()) for i in range(5)) - 5
    assert again <= 1, "no more than the task beside it was begun twice"


@pytest.mark.parametrize("name", [TWO, RAY])
def test_workers_that_keep_dying_end_the_run_with_a_remedy(name: str) -> None:
    with pytest.raises(EngineError, match=r"workers? .*died 3 times at the same task.*--workers 1"):
        list(ENGINES[name]().map(die, [0], ignore))


@pytest.mark.parametrize("name", ALL)
def test_an_error_in_the_work_comes_through(name: str) -> None:
    with pytest.raises(ValueError, match="no good: 0"):
        list(ENGINES[name]().map(fail, [0], ignore))


@pytest.mark.parametrize("kind", [ProcessEngine, Ray])
def test_workers_must_be_at_least_one(kind: type[ProcessEngine] | type[Ray]) -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        kind(0)


def test_there_is_a_core() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)


def fail_within(variables: dict[str, str]) -> None:
    with environment(variables):
        assert {name: os.environ[name] for name in variables} == variables
        raise LookupError


def test_the_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBANDITS_OLD", "before")
    monkeypatch.delenv("HYBANDITS_NEW", raising=False)
    with pytest.raises(LookupError):
        fail_within({"HYBANDITS_OLD": "within", "HYBANDITS_NEW": "within"})
    assert os.environ["HYBANDITS_OLD"] == "before"
    assert "HYBANDITS_NEW" not in os.environ


def interrupt_within(steps: list[str]) -> None:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("the block has ended")
    steps.append("beyond the block")


def test_an_interruption_takes_effect_after_the_block() -> None:
    steps: list[str] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupt_within(steps)
    assert steps == ["the block has ended"]
    assert signal.getsignal(signal.SIGINT) is before


def test_without_an_interruption_the_block_changes_nothing() -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with uninterrupted():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
