"""Runs: known truth, late rewards, failures, and going on after a kill."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from library_benchmark import running
from library_benchmark.methods import CannotTakePartError, Method
from library_benchmark.report import read_results, write_report, write_runs
from library_benchmark.running import Task, run_task
from library_benchmark.scores import score
from library_benchmark.streams import SEEDS, STREAMS, Round

ROOT = Path(__file__).parents[2]


class Scripted:
    """Takes the same place always, and notes what it learns and when."""

    def __init__(self, stream: Any, seed: int, rounds: int, *, place: int = 0, problem: str = "") -> None:
        if problem:
            raise CannotTakePartError(problem)
        self.place, self.chosen, self.learned = place, 0, []  # type: ignore[var-annotated]
        LATEST.append(self)

    def choose(self, shown: Round) -> tuple[int, Any]:
        self.chosen += 1
        return self.place, self.chosen

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        if self.chosen > 40:
            raise ArithmeticError("beyond forty\nand more")
        self.learned.append((self.chosen, receipt))


LATEST: list[Scripted] = []


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "first": Method(name="first", library="hybandits", make=Scripted, grid=({"place": 1},)),
        "unable": Method(name="unable", library="hybandits", make=Scripted, settings={"problem": "no way"}),
    }
    monkeypatch.setattr(running, "METHODS", entries)


def test_the_reward_is_the_sum_of_means() -> None:
    record = run_task(Task("clicks, 50 %", "first", "", SEEDS[0], 30))
    means = np.array([play.means for play in STREAMS["clicks, 50 %"].play(SEEDS[0], 30)])
    assert record["reward"] == pytest.approx(means[:, 0].sum())
    assert record["uniform"] == pytest.approx(means.mean(axis=1).sum())
    assert record["best"] == pytest.approx(means.max(axis=1).sum())
    other = run_task(Task("clicks, 50 %", "first", "place=1", SEEDS[0], 30))
    assert other["reward"] == pytest.approx(means[:, 1].sum())
    assert [place for place, _ in LATEST[-1].learned] == list(range(1, 31)), "learned at once"


def test_rewards_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = STREAMS["products, late clicks"]
    late = replace(stream, make=lambda *, seed: replace(stream.make(seed=seed), delay=7))  # type: ignore[type-var]
    monkeypatch.setattr(running, "STREAMS", {"late": late})
    run_task(Task("late", "first", "", SEEDS[0], 20))
    assert LATEST[-1].learned == [(t + 7, t) for t in range(1, 14)]


def test_failures_are_results() -> None:
    assert run_task(Task("terrain", "unable", "", 1, 10))["reason"] == "no way"
    failed = run_task(Task("terrain", "first", "", 1, 50))
    assert failed["reason"] == "ArithmeticError: beyond forty"
    assert math.isnan(failed["reward"])


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Files that are there are kept as they are, also one whose content is another."""
    tasks = running.tasks([STREAMS["terrain"]], running.METHODS.values(), SEEDS[:2], most=10)
    assert len(tasks) == 6
    running.run(tasks[:2], tmp_path, workers=0)
    marked = tmp_path / tasks[0].file
    marked.write_text(json.dumps({**json.loads(marked.read_text()), "reward": 77.0}))
    said: list[str] = []
    running.run(tasks, tmp_path, workers=0, say=said.append)
    assert said[0] == "6 runs, of which 2 are there already"
    records = list(running.read(tmp_path, tasks))
    assert len(records) == 6
    assert records[0]["reward"] == 77.0
    running.run(tasks, tmp_path, workers=0, say=said.append)
    assert said[-1] == "6 runs, of which 6 are there already"


def test_runs_of_other_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = running.tasks([STREAMS["terrain"]], running.METHODS.values(), SEEDS[:1], most=5)
    running.run(tasks[:1], tmp_path, workers=0)
    monkeypatch.setattr(running, "about", lambda: {"code": "other", "numpy": "1"})
    with pytest.raises(running.OtherRunsError, match=r"runs of another state .code, .*numpy.*differ.: remove it"):
        running.run(tasks, tmp_path, workers=0)


@pytest.mark.slow
def test_runs_are_written_as_table_and_figure_and_read_back(tmp_path: Path) -> None:
    from library_benchmark import report

    records = []
    for seed in (1, 2):
        for stream in ("terrain", "clicks, 2 %"):
            for method, reward in (("HyIDS", 80.0), ("Greedy", 70.0 + seed), ("river UCB (no context)", 10.0)):
                records.append(
                    {**Task(stream, method, "", seed, 100)._asdict(), "reward": reward, "uniform": 20.0, "best": 120.0,
                     "seconds": 0.1, "reason": ""}
                )  # fmt: skip
    records.append({**records[0], "method": "LinUCB", "reward": math.nan, "reason": "it | cannot"})
    paths = [write_runs(records, tmp_path), *write_report(records, tmp_path)]
    assert [path.name for path in paths] == [
        "runs.parquet", "table.md", "summary.md", "scores.png", "scores.svg", "overview.png", "overview.svg"
    ]  # fmt: skip
    assert all(path.stat().st_size > 100 for path in paths)
    text = (tmp_path / "table.md").read_text()
    assert "| HyIDS | 60 ± 0 | 60 ± 0 |" in text
    assert "| LinUCB | terrain | it / cannot |" in text
    assert "| river UCB (no context) | -10 |" in (tmp_path / "summary.md").read_text()
    again = read_results(tmp_path)
    assert len(again) == len(records)
    assert score(again[0]["reward"], again[0]["uniform"], again[0]["best"]) == pytest.approx(0.51)
    assert report.full_table(report.results(again)) == text


def test_the_page_has_the_streams_as_they_are(tmp_path: Path) -> None:
    """Run `fill_page` of library_benchmark.report on docs/library-benchmark.md if this fails."""
    from library_benchmark import report

    page = tmp_path / "library-benchmark.md"
    page.write_text((ROOT / "docs" / "library-benchmark.md").read_text())
    report.fill_page(page)
    assert page.read_text() == (ROOT / "docs" / "library-benchmark.md").read_text()
    record = {**Task("terrain", "HyIDS", "", 1, 100)._asdict(), "reward": 80.0, "uniform": 20.0, "best": 120.0,
              "seconds": 0.1, "reason": ""}  # fmt: skip
    report.fill_page(page, report.results([record]))
    assert "| HyIDS | 60 |" in page.read_text()
    assert "## Testing the methods" in page.read_text()


@pytest.mark.slow
def test_a_killed_benchmark_goes_on(tmp_path: Path) -> None:
    """Killed without warning while two workers are busy; the same command then runs only what is missing."""
    command = [
        sys.executable, "-m", "library_benchmark", "--quick", "--methods", "EpsilonGreedy(;Uniform;LiHybrid",
        "--workers", "2", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **quiet)  # type: ignore[call-overload]
    try:
        end = time.monotonic() + 120
        while len(list((tmp_path / "runs").glob("*--*.json"))) < 3:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*--*.json")}
    assert before
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    runs = int(done.stderr.split(f" runs, of which {len(before)} are there already")[0].split()[-1])
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*--*.json")}
    assert len(before) < len(after) == runs
    assert {name: after[name] for name in before} == before
    assert not list((tmp_path / "runs").glob("*.part*"))
    assert (tmp_path / "out" / "scores.png").exists()
