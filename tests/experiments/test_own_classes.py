"""Runs with policies and worlds of one's own: on every engine, interrupted, resumed, and with a source that changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybandits.engines import Here, Local, Ray
from hybandits.experiments.config import experiment
from hybandits.experiments.record import Experiment, ResultsError
from hybandits.experiments.results import read_results
from hybandits.experiments.runner import Job, run, run_unit
from tests.support.experiments import StopAfter, StopError, contents
from tests.support.own_classes import write_drifting, write_softmax

SETTINGS = {
    "d1": 2, "d2": 1, "arms": [3, 4], "rounds": 120, "environments": 2, "world": "drifting:Drifting:speed=0.5",
    "policies": ["softmax:Softmax:temperature=0.1", 'EpsilonGreedy:policy="softmax:Softmax"', "HyIDS"],
}  # fmt: skip


@pytest.fixture
def record(own_folder: Path) -> Experiment:
    write_softmax(own_folder)
    write_drifting(own_folder)
    return experiment(SETTINGS)


def change_softmax(folder: Path) -> None:
    (folder / "softmax.py").write_text((folder / "softmax.py").read_text() + "\nX = 1\n")


RAY = pytest.param(Ray(2), marks=pytest.mark.xdist_group("ray"), id="ray")


@pytest.mark.slow
@pytest.mark.parametrize("engine", [Local(2), RAY])
def test_every_engine_gives_the_same_bytes(engine: Local | Ray, record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "here", engine=Here())
    run([record], own_folder / "there", engine=engine)
    assert contents(own_folder / "there") == contents(own_folder / "here")


def test_an_interrupted_run_goes_on_and_a_changed_source_is_refused(record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "whole", engine=Here())
    with pytest.raises(StopError):
        run([record], own_folder / "out", engine=Here(), watcher=StopAfter(1))
    before = contents(own_folder / "out")
    source = (own_folder / "softmax.py").read_text()
    change_softmax(own_folder)
    changed = experiment(SETTINGS)
    message = (
        r"a different simulation/own \(the source of softmax:Softmax has changed: softmax\.py had SHA-256 .* now\)"
    )
    with pytest.raises(ResultsError, match=message):
        run([changed], own_folder / "out", engine=Here())
    assert contents(own_folder / "out") == before
    (own_folder / "softmax.py").write_text(source)
    run([record], own_folder / "out", engine=Here())
    assert contents(own_folder / "out") == contents(own_folder / "whole")


def test_a_source_that_changes_during_a_run_is_refused(record: Experiment, own_folder: Path) -> None:
    change_softmax(own_folder)
    with pytest.raises(ResultsError, match=r"the source of softmax:Softmax has changed.*Bring the old file back"):
        run_unit(Job(next(record.units())))


def test_results_are_read_where_the_class_cannot_be_imported(record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "out", engine=Here())
    (own_folder / "softmax.py").unlink()
    outcome = read_results(own_folder / "out").outcome("simulation", "own")
    assert outcome is not None
    assert outcome.final("Softmax:temperature=0.1").shape == (2,)
