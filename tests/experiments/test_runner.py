"""Experiments run to the same bytes on every engine, go on where they were, and never overwrite another's results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_array_equal

from hybandits.engines import ProcessEngine, Ray, SerialEngine
from hybandits.experiments import results, runner
from hybandits.experiments.record import ResultsError, Unit
from hybandits.experiments.results import BITS, read_results, rounded
from hybandits.experiments.runner import run
from hybandits.paper import HYTHOMPSON_TOLD
from hybandits.policies.by_name import make_policy
from hybandits.simulation.play import cumulative_regret
from tests.support.experiments import EIGEN, SMALL, StopAfter, StopError, contents


def test_results_are_what_each_policy_does_alone(whole: Path) -> None:
    outcome = read_results(whole).outcome("setting-1", "released")
    assert outcome is not None
    assert outcome.arms == [3, 5]
    for arms in outcome.arms:
        regret = outcome.regret("HyLinUCB", arms)
        assert regret.shape == (4, 2)
        for i, (seed, trial) in enumerate([(5, 0), (5, 1), (6, 0), (6, 1)]):
            policy = make_policy(
                SMALL.policies[0].policy, SMALL.policies[0].settings, d1=4, d2=3, arms=arms, horizon=60
            )
            alone = cumulative_regret(policy, SMALL.world(arms, seed), 60, trial=trial)
            assert_array_equal(regret[i], rounded(alone[[9, 59]], BITS))
        assert outcome.environments("LinUCB", arms).tolist() == [0, 0, 1, 1]
    for name in ("HyRan", "HyThompson", "HyIDS"):
        assert outcome.design(name, 3) is None, "it has no matrix with one ridge"
    design = outcome.design("Greedy", 3)
    assert design is not None
    assert design.z_norm.shape == (4, 1)


def test_policies_that_draw_have_a_seed_of_their_own_per_trial(whole: Path) -> None:
    outcome = read_results(whole).outcome("setting-1", "released")
    assert outcome is not None
    unit = next(SMALL.units())
    assert len({runner.policy_seed(unit, trial) for trial in range(5)}) == 5
    for name in (HYTHOMPSON_TOLD, "HyThompson", "HyIDS"):
        assert len({tuple(row) for row in outcome.regret(name, 5)}) == 4


RAY = pytest.param(Ray(2), marks=pytest.mark.xdist_group("ray"), id="ray")


@pytest.mark.slow
@pytest.mark.parametrize("engine", [ProcessEngine(2), RAY])
def test_every_engine_gives_the_same_bytes(engine: ProcessEngine | Ray, whole: Path, tmp_path: Path) -> None:
    run([SMALL, EIGEN], tmp_path, engine=engine)
    assert contents(tmp_path) == contents(whole)


def test_a_run_that_was_interrupted_goes_on_and_ends_in_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(StopError):
        run([SMALL, EIGEN], tmp_path, engine=SerialEngine(), progress=StopAfter(3700))
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.parquet")}
    run([SMALL, EIGEN], tmp_path, engine=SerialEngine())
    assert contents(tmp_path) == contents(whole)
    assert {path: path.stat().st_mtime_ns for path in times} == times, "finished units were not run again"
    before = contents(tmp_path)
    manifest = json.loads(before["manifest.json"])
    manifest["units"].popitem()  # killed after the unit was saved, before it was noted
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    run([SMALL, EIGEN], tmp_path, engine=SerialEngine())
    assert contents(tmp_path) == before


def test_every_result_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine())
    (tmp_path / next(EIGEN.units()).path).unlink()
    read: list[str] = []

    def read_unit(folder: Path, unit: Unit, digest: str | None = None) -> Any:
        read.append(unit.path)
        return results_read_unit(folder, unit, digest)

    results_read_unit = results.read_unit
    for module in (results, runner):
        monkeypatch.setattr(module, "read_unit", read_unit)
    run([EIGEN], tmp_path, engine=SerialEngine())
    assert sorted(read) == sorted(unit.path for unit in EIGEN.units())


SCRIPT = """
from pathlib import Path
from typing import Any
from hybandits.engines import ProcessEngine
from hybandits.experiments.runner import run
from tests.support.experiments import EIGEN, SMALL
if __name__ == "__main__":
    run([SMALL, EIGEN], Path({folder!r}), engine=ProcessEngine(2))
"""


@pytest.mark.slow
@pytest.mark.parametrize("units", [1, 4])
def test_a_run_killed_at_any_moment_goes_on(units: int, whole: Path, tmp_path: Path) -> None:
    """Killed with its workers as soon as so many units are on disk."""
    folder, script = tmp_path / "out", tmp_path / "script.py"
    script.write_text(SCRIPT.format(folder=str(folder)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, str(script)], env=environment, start_new_session=True)
    end = time.monotonic() + 120
    while not folder.exists() or len(list(folder.rglob("*.parquet"))) < units:
        assert time.monotonic() < end
        assert process.poll() in (None, 0)
        time.sleep(0.001)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(folder.rglob("*.parquet"))) >= units
    run([SMALL, EIGEN], folder, engine=SerialEngine())
    assert contents(folder) == contents(whole)


def test_results_of_another_version_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine())
    monkeypatch.setattr("hybandits.experiments.results.__version__", "9.9")
    with pytest.raises(ResultsError, match=r"results of hybandits .*, but this is hybandits 9\.9"):
        run([EIGEN], tmp_path, engine=SerialEngine())
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "format": 99, "experiments": [{}]}))
    with pytest.raises(ResultsError, match="format 99"):
        read_results(tmp_path)


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for folder in (file, file / "deeper"):
        with pytest.raises(ResultsError, match="is a file: give a folder"):
            run([EIGEN], folder, engine=SerialEngine())
    with pytest.raises(ResultsError, match="cannot be written"):
        run([EIGEN], Path("/proc/hybandits"), engine=SerialEngine())
    with pytest.raises(ResultsError, match="no results"):
        read_results(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ResultsError, match="damaged"):
        read_results(tmp_path)
    with pytest.raises(ResultsError, match="damaged"):
        run([EIGEN], tmp_path, engine=SerialEngine())


def test_progress_counts_the_rounds_that_are_there_too(tmp_path: Path) -> None:
    total = sum(unit.rounds for unit in EIGEN.units())
    for _ in range(2):
        calls: list[tuple[str, int, int]] = []
        run([EIGEN], tmp_path, engine=SerialEngine(), progress=lambda *call, calls=calls: calls.append(call))
        assert {(key, whole) for key, _, whole in calls} == {("diversity/written", total)}
        assert sum(rounds for _, rounds, _ in calls) == total
        (tmp_path / next(EIGEN.units()).path).unlink()


def test_the_longest_units_start_first() -> None:
    units = list(SMALL.units())
    assert runner.cost(units[0]) > runner.cost(units[-1]), "more arms"
    with_hyran, without = (next(SMALL.only([name]).units()) for name in ("HyRan", "LinUCB"))
    assert runner.cost(with_hyran) > runner.cost(without)
