"""The commands on logs, as a user gives them: what they print, write and refuse."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import hybandits
from hybandits.cli.main import app
from hybandits.engines import Local
from hybandits.experiments.results import read_results
from hybandits.logs.store import Log

pytestmark = pytest.mark.xdist_group("cli_logs")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def said(result: Result) -> str:
    return " ".join((result.stdout + result.stderr).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made log, raw and converted."""
    place = tmp_path_factory.mktemp("logs")
    assert run("make-log", place / "raw", "--rounds", 6000, "--files", 2, "--seed", 3).exit_code == 0
    got = run("convert", place / "raw", place / "log")
    assert got.exit_code == 0, said(got)
    assert "6,000 lines read: 6,000 rounds, 0 skipped" in said(got)
    return place


def test_what_convert_writes_is_a_log(folder: Path) -> None:
    log = Log(folder / "log")
    assert log.rounds == 6000
    assert log.source_starts == [0, 3000]
    assert log.about["kind"] == "R6A"


def test_convert_does_not_overwrite(folder: Path) -> None:
    got = run("convert", folder / "raw", folder / "log")
    assert got.exit_code == 2
    assert "exists already" in said(got)


def test_convert_counts_what_it_skips_and_strict_stops(folder: Path, tmp_path: Path) -> None:
    (first, *_) = sorted((folder / "raw").glob("*.gz"))
    lines = gzip.decompress(first.read_bytes()).splitlines(keepends=True)[:10]
    lines[3] = b"1241160900 999 0 |user 1:1 |100 1:1\n"
    lines[7] = b"nonsense\n"
    (tmp_path / "bad").write_bytes(b"".join(lines))
    got = run("convert", tmp_path / "bad", tmp_path / "log")
    assert got.exit_code == 0
    assert "10 lines read: 8 rounds, 2 skipped" in said(got)
    assert "line 4:" in said(got)
    assert "line 8:" in said(got)
    strict = run("convert", tmp_path / "bad", tmp_path / "strict", "--strict")
    assert strict.exit_code == 2
    assert "line 4" in said(strict)
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convert", "nowhere", "out"], "nowhere does not exist"),
        (["convert", "nowhere"], "and then the folder to create"),
        (["describe", "nowhere"], "nowhere does not exist"),
        (["fit", "LOG", "--policy", "HyLinUBC"], "did you mean HyLinUCB"),
        (["fit", "LOG", "--policy", "HyLinUCB:nose=1"], "no setting 'nose'"),
        (["fit", "LOG", "--out", "missing/policy.npz"], "a folder that exists"),
        (["evaluate", "LOG", "--policy", "always:nobody"], "the log has no arm 'nobody'"),
        (["evaluate", "LOG", "--policy", "nowhere.npz"], "nowhere.npz"),
        (["evaluate", "LOG", "--policy", "random"], "or uniform, logged, always:ARM, or a saved policy"),
        (["evaluate", "LOG", "--policy", "uniform", "--policy", "uniform"], "uniform is given twice"),
        (["reproduce", "setting-1", "--train", "20", "--out", "OUT"], "--train: only for the yahoo experiment"),
        (["evaluate", "LOG", "--policy", "uniform", "--estimators", "isp"], "isp"),
        (["evaluate", "LOG", "--policy", "uniform", "--level", "95"], "level"),
        (["evaluate", "LOG", "--policy", "uniform", "--reward-range", "1"], "two numbers"),
        (["evaluate", "LOG", "--policy", "uniform", "--from", "6000"], "none from round 6,000 on"),
        (["evaluate", "LOG", "--policy", "uniform", "--address", "x"], "--engine ray"),
        (["reproduce", "yahoo", "--data", "nowhere", "--out", "OUT"], "nowhere is not there"),
        (["make-log", "OUT", "--kind", "R6C"], "R6A"),
        (["describe", "LOG", "--json", "."], "cannot be written"),
    ],
)
def test_mistakes_get_one_line(folder: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    named = {"LOG": folder / "log", "OUT": tmp_path / "out"}
    got = run(*(named.get(argument, argument) for argument in arguments))
    assert got.exit_code == 2
    assert words in said(got)
    errors = [line for line in got.stderr.splitlines() if not line.startswith("hybandits: compiling")]
    assert len(errors) == 1
    assert errors[0].startswith("hybandits: ")
    assert not (tmp_path / "out").exists(), "nothing is left behind"


def test_describe_takes_raw_and_converted_logs(folder: Path, tmp_path: Path) -> None:
    raw, converted = run("describe", folder / "raw"), run("describe", folder / "log", "--json", tmp_path / "d.json")
    assert raw.exit_code == converted.exit_code == 0
    assert "6,000 from 2 files" in said(raw)
    assert "does not hold" in said(converted)
    assert json.loads((tmp_path / "d.json").read_text())["user_rank"] == [5, 6]


def test_fit_then_use_online_and_evaluate(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.npz"
    got = run(
        "fit", folder / "log", "--policy", "hylinucb:noise=0.3", "--rounds", 3000, "--features", "li", "--out", out
    )
    assert got.exit_code == 0, said(got)
    policy: Any = hybandits.load(out)
    assert policy.rounds == 3000
    found = tmp_path / "found"
    arguments = ["--policy", "uniform", "--policy", out, "--policy", "always:" + Log(folder / "log").names[0]]
    got = run("evaluate", folder / "log", "--from", 3000, *arguments, "--out", found)
    assert got.exit_code == 0, said(got)
    assert "Difference to uniform, on the same rounds" in said(got)
    plain = json.loads((found / "evaluation.json").read_text())
    assert {e["estimator"] for e in plain["estimates"]} == {"ips", "snips", "dm", "dr"}
    assert (found / "running.png").stat().st_size > 5000
    assert (found / "running.svg").read_text().startswith("<?xml")
    # Features are those noted in the policy; asking for others is a mistake, and so is forgetting what it has seen.
    assert "--features li, not das" in said(run("evaluate", folder / "log", "--policy", out, "--features", "das"))
    assert "looks better" in said(run("evaluate", folder / "log", "--policy", out))


@pytest.mark.parametrize("name", ["HyThompson", "HyIDS"])
def test_fit_needs_no_settings_and_says_what_was_learned(folder: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "policy.npz"
    got = run("fit", folder / "log", "--policy", name, "--rounds", 3000, "--out", out)
    assert got.exit_code == 0, said(got)
    policy = hybandits.load(out)
    assert policy.rounds == 3000
    assert policy.learned is not None
    assert f"noise {policy.learned.noise:.4g}" in said(got)
    assert "where new arms start" in said(got)
    assert f"effective parameters {policy.learned.effective_parameters:,.1f}" in said(got)
    arguments = ["--from", 3000, "--rounds", 500, "--policy", "uniform", "--policy", out]
    got = run("evaluate", folder / "log", *arguments)
    assert got.exit_code == 0, said(got)


def test_policies_that_learn_are_replayed(folder: Path) -> None:
    specs = ["HyIDS", "hythompson", "hylinucb:noise=0.3"]
    options = [word for spec in specs for word in ("--policy", spec)]
    got = run("evaluate", folder / "log", *options, "--policy", "uniform")
    assert got.exit_code == 0, said(got)
    rows = [line.split()[:2] for line in got.stdout.splitlines()]
    for spec in specs:
        assert [spec, "replay"] in rows
        assert [spec, "ips"] not in rows
    assert ["uniform", "dr"] in rows


def test_a_policy_without_sums_is_fitted_round_by_round(folder: Path, tmp_path: Path) -> None:
    got = run("fit", folder / "log", "--policy", "SupLinUCB", "--rounds", 200, "--out", tmp_path / "p.npz")
    assert got.exit_code == 0, said(got)


def test_hyran_is_told_of_the_arm_shown_alone(folder: Path, tmp_path: Path) -> None:
    got = run("fit", folder / "log", "--policy", "hyran", "--rounds", 50, "--out", tmp_path / "p.npz")
    assert got.exit_code == 0, said(got)
    assert "HyRan did not choose the arms that the log shows" in said(got)


def test_output_that_nobody_reads_is_no_error_of_the_command(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "hybandits",
        "evaluate",
        str(folder / "log"),
        "--policy",
        "uniform",
        "--out",
        str(out),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = [line for line in process.stderr if not line.startswith("hybandits: compiling")]
    assert said == []
    assert {file.name for file in out.iterdir()} >= {"evaluation.json", "running.png", "running.svg"}


def test_own_columns(tmp_path: Path) -> None:
    rows = ["item,click,age,p"] + [f"{'abc'[i % 3]},{i % 2},{i},0.5" for i in range(60)]
    (tmp_path / "own.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "map.toml").write_text('arm = "item"\nreward = "click"\nuser = ["age"]\npropensity = "p"\n')
    got = run("convert", tmp_path / "own.csv", tmp_path / "log", "--mapping", tmp_path / "map.toml")
    assert got.exit_code == 0, said(got)
    assert Log(tmp_path / "log").rounds == 60
    (tmp_path / "wrong.toml").write_text('arm = "item"\nreward = "click"\nusr = ["age"]\n')
    wrong = run("convert", tmp_path / "own.csv", tmp_path / "log2", "--mapping", tmp_path / "wrong.toml")
    assert wrong.exit_code == 2
    assert "did you mean user" in said(wrong)
    lacking = run("convert", tmp_path / "own.csv", tmp_path / "log2")
    assert lacking.exit_code == 2
    assert "item, click, age, p" in said(lacking)


def test_a_policy_fitted_to_other_columns_is_refused(tmp_path: Path) -> None:
    for name, country in (("one", "bb"), ("two", "zz")):
        rows = ["item,click,country"] + [f"{'abc'[i % 3]},{i % 2},{('aa', country)[i % 5 > 2]}" for i in range(60)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
        (tmp_path / "map.toml").write_text(
            'arm = "item"\nreward = "click"\ncategorical = ["country"]\nuniform = true\n'
        )
        got = run("convert", tmp_path / f"{name}.csv", tmp_path / name, "--mapping", tmp_path / "map.toml")
        assert got.exit_code == 0, said(got)
    out = tmp_path / "p.npz"
    assert run("fit", tmp_path / "one", "--features", "disjoint", "--out", out).exit_code == 0
    got = run("evaluate", tmp_path / "two", "--policy", out)
    assert got.exit_code == 2
    assert "country=bb" in said(got)


def test_what_lies_beside_a_log_and_is_not_read_is_named(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "raw", tmp_path / "raw")
    (tmp_path / "raw" / "README.txt").write_text("of the data")
    got = run("convert", tmp_path / "raw", tmp_path / "log")
    assert got.exit_code == 0
    assert "not read: README.txt, truth.json" in said(got)


def test_the_yahoo_experiment_resumes_where_out_lies_beside_the_data(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    shutil.copytree(folder / "raw", data)
    monkeypatch.chdir(data)
    command = [*SMALL, "--protocol", "released", "--data", ".", "--out", "out"]
    for _ in range(2):
        got = run(*command)
        assert got.exit_code == 0, said(got)


SMALL = ["reproduce", "yahoo", "--train", "2000", "--rounds", "2000", "--policies", "HyLinUCB,DisLinUCB"]


def test_the_yahoo_experiment_takes_policies_that_learn_their_settings(folder: Path, tmp_path: Path) -> None:
    command = [*SMALL[:-1], "HyThompson,HyIDS", "--rounds", 200, "--data", folder / "log", "--out", tmp_path / "out"]
    got = run(*command, "--protocol", "released")
    assert got.exit_code == 0, said(got)
    outcome = read_results(tmp_path / "out").outcome("yahoo", "released")
    assert outcome is not None
    assert outcome.policies == ["HyThompson", "HyIDS"]
    assert [entry.settings for entry in outcome.experiment.policies] == [{}, {}]


def test_the_yahoo_experiment_on_a_made_log_resumes(tmp_path: Path) -> None:
    command = [*SMALL, "--released-defect", "--workers", "1", "--out", tmp_path / "out"]
    got = run(*command)
    assert got.exit_code == 0, said(got)
    assert "synthetic log" in said(got)
    results = read_results(tmp_path / "out")
    outcome = results.outcome("yahoo", "released")
    assert outcome is not None
    assert outcome.policies == ["HyLinUCB", "DisLinUCB", "HyLinUCB, defect", "DisLinUCB, defect"]
    assert outcome.experiment.log is not None
    assert outcome.experiment.log["made"] is not None
    before = {file: file.read_bytes() for file in (tmp_path / "out" / "units").rglob("*.parquet")}
    lost = sorted(before)[0]
    lost.unlink()
    again = run(*command)
    assert again.exit_code == 0, said(again)
    assert {file: file.read_bytes() for file in (tmp_path / "out" / "units").rglob("*.parquet")} == before
    other = run(*SMALL, "--rounds", "1000", "--out", tmp_path / "out")
    assert other.exit_code == 2


def test_a_yahoo_experiment_of_a_few_rounds(tmp_path: Path) -> None:
    got = run(
        "reproduce", "yahoo", "--train", "50", "--rounds", "5", "--protocol", "released", "--policies", "HyLinUCB",
        "--workers", "1", "--out", tmp_path,
    )  # fmt: skip
    assert got.exit_code == 0, said(got)
    outcome = read_results(tmp_path).outcome("yahoo", "released")
    assert outcome is not None
    assert outcome.experiment.points == (1, 2, 3, 4, 5)


def test_the_yahoo_experiment_on_files_and_positions(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for file in (folder / "raw").glob("*.gz"):  # without what tells that it is made
        shutil.copy(file, data)
    command = [*SMALL, "--rounds", "3000", "--data", data, "--arms", "positions", "--out", tmp_path / "out"]
    got = run(*command)
    assert got.exit_code == 0, said(got)
    outcome = read_results(tmp_path / "out").outcome("yahoo-positions", "written")
    assert outcome is not None
    log = outcome.experiment.log
    assert log is not None
    assert log["made"] is None
    assert (log["train"], log["start"]) == (2000, 3000)  # from the next file on
    assert outcome.arms == [20]
    made = run(*SMALL, "--protocol", "written", "--data", folder / "log", "--out", tmp_path / "made")
    assert "synthetic log" in said(made)  # however it gets here
    short = run(*SMALL, "--rounds", "5000", "--data", folder / "log", "--out", tmp_path / "short")
    assert short.exit_code == 2
    assert "--rounds to 4,000 or less" in said(short)


def test_interrupted_convert_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from hybandits.logs import store\n"
        "write = store.LogWriter.write\n"
        "def interrupted(self, batch):\n"
        "    write(self, batch)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "store.LogWriter.write = interrupted\n"
        "from hybandits.cli.main import main\n"
        "main()\n"
    )
    got = subprocess.run(
        [sys.executable, "-c", code, "convert", str(folder / "raw"), str(tmp_path / "log")],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert got.returncode == 130
    assert "interrupted" in got.stderr
    assert "Traceback" not in got.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_costs_its_part_only(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """A worker that kills itself once: its part is done again, and the result is the same to the bit."""
    from hybandits.offline import fit, tasks
    from hybandits.offline.view import View

    view = View(Log(folder / "log"))
    monkeypatch.setattr(tasks, "TASK_ROUNDS", 1000)
    whole = fit.collect(view)
    todo = [(task, str(tmp_path / f"killed-{workers}")) for task in tasks.tasks_of(view, 0, 6000)]
    merged = fit.Statistics(view)
    for part in tasks.in_order(Local(workers), killing, todo):
        merged.merge(part)
    assert (tmp_path / f"killed-{workers}").exists()
    assert (merged.triangles == whole.triangles).all()


def killing(task: Any, report: Any) -> Any:
    """`fit.part_of`, killed the first time it comes to the second part."""
    import os

    from hybandits.offline import fit

    part, mark = task
    if part.start > 0 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)
    return fit.part_of(part, report)
