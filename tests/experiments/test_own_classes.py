"""Runs with policies and worlds of one's own: on every engine, interrupted, resumed, and with a source that changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import ProcessEngine, Ray, SerialEngine
from hybandits.experiments.config import experiment
from hybandits.experiments.record import Experiment, ResultsError
from hybandits.experiments.results import read_results
from hybandits.experiments.runner import Job, run, run_unit
from hybandits.foundation.own_classes import OwnClassError
from tests.support.experiments import StopAfter, StopError, contents
from tests.support.own_classes import FAILING, write_drifting, write_softmax

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
@pytest.mark.parametrize("engine", [ProcessEngine(2), RAY])
def test_every_engine_gives_the_same_bytes(engine: ProcessEngine | Ray, record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "here", engine=SerialEngine())
    run([record], own_folder / "there", engine=engine)
    assert contents(own_folder / "there") == contents(own_folder / "here")


def test_an_interrupted_run_goes_on_and_a_changed_source_is_refused(record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "whole", engine=SerialEngine())
    with pytest.raises(StopError):
        run([record], own_folder / "out", engine=SerialEngine(), progress=StopAfter(500))
    before = contents(own_folder / "out")
    source = (own_folder / "softmax.py").read_text()
    change_softmax(own_folder)
    changed = experiment(SETTINGS)
    message = (
        r"a different simulation/own \(the source of softmax:Softmax has changed: softmax\.py had SHA-256 .* now\)"
    )
    with pytest.raises(ResultsError, match=message):
        run([changed], own_folder / "out", engine=SerialEngine())
    assert contents(own_folder / "out") == before
    (own_folder / "softmax.py").write_text(source)
    run([record], own_folder / "out", engine=SerialEngine())
    assert contents(own_folder / "out") == contents(own_folder / "whole")


SMALL_FAILURE = {"d1": 2, "d2": 1, "arms": 3, "rounds": 60, "environments": 1}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"policies": ["failing:Cautious"]},
            r"^failing:Cautious\.choose failed \(failing\.py, line 9: LookupError: no such thing\): correct it$",
        ),
        ({"policies": ["failing:Deaf"]}, r"failing:Deaf\.learn failed \(failing\.py, line 15: ZeroDivisionError: "),
        (
            {"policies": ['EpsilonGreedy:policy="failing:Deaf"']},
            r"failing:Deaf\.learn failed \(failing\.py, line 15: ZeroDivisionError: ",
        ),
        (
            {"policies": ["failing:Mute"]},
            r"a class of .*failing.* may not return what it should \(play\.py, line \d+: ",
        ),
        ({"world": "failing:Shut"}, r"failing:Shut\.rounds failed \(failing\.py, line \d+: IndexError: nothing left"),
        ({"world": "failing:Short"}, r"failing:Short gave 30 rounds of 60: let rounds\(60\) yield as many"),
        ({"world": "failing:Long"}, r"failing:Long gave more than 2 rounds"),
        ({"world": "failing:Holes"}, r"failing:Holes has a mean that is not a finite number in round 1, got \[nan"),
        ({"world": "failing:Holes", "factor": 2.0, "delay": 3}, r"failing:Holes has a mean that is not"),
        ({"world": "failing:Modest"}, r"failing:Modest says that the best mean of round 0 is .* let best be"),
        ({"world": "failing:Flat"}, r"failing:Flat gave means of shape \(2,\) and best of shape \(2,\)"),
        ({"world": "failing:Twice"}, r"failing:Twice, in the block of round 0: round 0 has counts 3 and index \[0, 0"),
    ],
)
def test_a_class_that_fails_while_it_plays_is_named_and_nothing_is_written(
    settings: dict[str, Any], message: str, own_folder: Path
) -> None:
    (own_folder / "failing.py").write_text(FAILING)
    record = experiment({**SMALL_FAILURE, "policies": ["Greedy"], **settings})
    with pytest.raises(OwnClassError, match=message):
        run([record], own_folder / "out", engine=SerialEngine())
    assert not list((own_folder / "out").rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", [ProcessEngine(2), RAY])
def test_a_class_that_fails_in_a_worker_is_named(engine: ProcessEngine | Ray, own_folder: Path) -> None:
    (own_folder / "failing.py").write_text(FAILING)
    record = experiment({**SMALL_FAILURE, "policies": ["failing:Cautious"]})
    with pytest.raises(OwnClassError, match=r"failing:Cautious\.choose failed \(failing\.py, line 9: LookupError"):
        run([record], own_folder / "out", engine=engine)


def test_a_source_that_changes_during_a_run_is_refused(record: Experiment, own_folder: Path) -> None:
    change_softmax(own_folder)
    with pytest.raises(ResultsError, match=r"the source of softmax:Softmax has changed.*Bring the old file back"):
        run_unit(Job(next(record.units())))


def test_results_are_read_where_the_class_cannot_be_imported(record: Experiment, own_folder: Path) -> None:
    run([record], own_folder / "out", engine=SerialEngine())
    (own_folder / "softmax.py").unlink()
    outcome = read_results(own_folder / "out").outcome("simulation", "own")
    assert outcome is not None
    assert outcome.final("Softmax:temperature=0.1").shape == (2,)
