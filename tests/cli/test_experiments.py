"""The commands on experiments: results and pages, resuming, and mistakes that get one line."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hybandits import paper
from hybandits.experiments.results import read_results
from tests.support.command_line import complaints, run, said
from tests.support.own_classes import write_drifting, write_softmax

QUICK = ["reproduce", "diversity", "--protocol", "released", "--policies", "HyLinUCB"]


@pytest.mark.slow
@pytest.mark.usefixtures("page")
def test_reproduce_prints_tables_writes_a_page_and_does_nothing_twice(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    first = run(*QUICK, "--out", out)
    assert first.exit_code == 0, first.stderr
    assert "Diversity, released protocol" in first.stdout
    assert f"wrote {out / 'report' / 'index.html'}" in first.stdout
    assert (out / "report" / "index.html").read_text().startswith("<!DOCTYPE html>")
    assert list((out / "figures").glob("*.svg"))
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["scale"] == "quick"
    assert manifest["commands"] == [
        "hybandits reproduce diversity --protocol released --scale quick --policies HyLinUCB"
    ]
    assert "\x1b" not in first.stdout + first.stderr, "no bars and no colours when nobody watches"
    times = {path: path.stat().st_mtime_ns for path in out.rglob("units/**/*.parquet")}
    assert run(*QUICK, "--out", out).stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in times} == times
    other = run(*QUICK, "--out", out, "--seed", "3")
    assert other.exit_code == 2
    assert "holds results with seed 194821263, this run has 3" in other.stderr
    assert len(complaints(other.stderr)) == 1


@pytest.mark.slow
def test_fresh_environments_join_the_published_ones_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = replace(paper.SETTINGS["setting-3"], quick_horizon=1000)
    monkeypatch.setitem(paper.SETTINGS, "setting-3", setting)
    small = ["reproduce", "setting-3", "--protocol", "released", "--policies", "HyLinUCB,DisLinUCB", "--out", tmp_path]
    published = run(*small)
    assert published.exit_code == 0, said(published)
    both = run(*small, "--environments", "2")
    assert both.exit_code == 0, said(both)
    assert "Setting 3, fresh environments" in both.stdout
    results = read_results(tmp_path)
    assert {name for name, _ in results.outcomes} == {"setting-3", "setting-3-fresh"}
    assert run(*small).stdout == both.stdout, "neither resuming without them nor a report loses them"
    more = run(*small, "--environments", "3")
    assert more.exit_code == 2
    assert "different seeds" in more.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("page")
def test_simulate_from_a_file_and_flags(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text('d1 = 2\nd2 = 2\narms = 3\nrounds = 400\nenvironments = 2\npolicies = ["Greedy", "Uniform"]\n')
    result = run("simulate", config, "--rounds", "40", "--out", tmp_path / "out", "--workers", "1")
    assert result.exit_code == 0, result.stderr
    assert "40 rounds" in result.stdout
    assert {"Greedy", "Uniform"} <= {line.split()[0] for line in result.stdout.splitlines() if line}
    assert (tmp_path / "out" / "report" / "index.html").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("size", [["--arms", "1", "--rounds", "1"], ["--arms", "2", "--rounds", "3", "--d1", "0"]])
def test_the_smallest_experiments_have_a_page_too(size: list[str], tmp_path: Path) -> None:
    small = ["--environments", "1", "--policy", "Uniform", "--policy", "HyLinUCB", "--name", "setting-1"]
    result = run("simulate", *size, *small, "--out", tmp_path, "--workers", "1")
    assert result.exit_code == 0, result.stderr
    assert "published" not in result.stdout, "an experiment of one's own is not the paper's, whatever its name"


def test_list_names_what_there_is() -> None:
    result = run("list")
    assert result.exit_code == 0
    own = ('EpsilonGreedy:policy="HyLinUCB:noise=0.1"', "package.module:Class:setting=value", "churn")
    for name in (*paper.SETTINGS, *paper.FAMILIES, *paper.BEYOND, "released", "written", *own):
        assert name in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "seting-1"], "unknown experiment 'seting-1' (did you mean setting-1?)"),
        (["reproduce", "--policies", "HyLinUBC"], "unknown policy 'HyLinUBC' (did you mean HyLinUCB?)"),
        (["reproduce", "--protocol", "published"], "--protocol"),
        (["reproduce", "diversity", "--environments", "9"], "--environments is for setting-1, setting-2, setting-3"),
        (["reproduce", "--engine", "slurm"], "--engine"),
        (["nonsense"], "nonsense"),
        (["reproduce", "--out", str(Path(__file__))], "is a file: give a folder"),
        (["reproduce", "--out", "/proc/hybandits"], "cannot be written"),
        (["report", "/nowhere/to/be/seen"], "holds no results"),
        (["reproduce", "--policies", ","], "leaves nothing to run"),
        (["reproduce", "setting-3", "--policies", "SupLinUCB"], "leaves nothing to run in setting-3"),
        (["simulate", "--arms", "many"], "arms must be a whole number, got 'many'"),
        (["simulate", "--policy", "hylin"], "did you mean HyLinUCB"),
        (["simulate", "missing.toml"], "missing.toml cannot be read"),
    ],
)
def test_bad_input_is_one_clear_complaint(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    errors = complaints(result.stderr)
    if errors[0].startswith("hybandits:"):
        assert len(errors) == 1


SMALL = ["reproduce", "yahoo", "--train", "1000", "--rounds", "500", "--policies", "hylinucb,DisLinUCB"]


@pytest.mark.slow
def test_the_yahoo_experiment_resumes_where_out_lies_beside_the_data(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    shutil.copytree(folder / "raw", data)
    monkeypatch.chdir(data)
    command = [*SMALL, "--protocol", "released", "--data", ".", "--out", "out"]
    for _ in range(2):
        result = run(*command)
        assert result.exit_code == 0, said(result)


@pytest.mark.slow
def test_the_yahoo_experiment_on_a_synthetic_log_resumes(tmp_path: Path) -> None:
    command = [*SMALL, "--out", tmp_path / "out"]
    result = run(*command)
    assert result.exit_code == 0, said(result)
    assert "synthetic log" in said(result)
    results = read_results(tmp_path / "out")
    outcome = results.outcome("yahoo", "released")
    assert outcome is not None
    assert outcome.policies == ["HyLinUCB", "DisLinUCB"]
    assert outcome.experiment.log is not None
    assert outcome.experiment.log["synthetic"] is not None
    before = {file: file.read_bytes() for file in (tmp_path / "out" / "units").rglob("*.parquet")}
    lost = sorted(before)[0]
    lost.unlink()
    again = run(*command)
    assert again.exit_code == 0, said(again)
    assert {file: file.read_bytes() for file in (tmp_path / "out" / "units").rglob("*.parquet")} == before
    other = run(*SMALL, "--rounds", "400", "--out", tmp_path / "out")
    assert other.exit_code == 2


@pytest.mark.slow
def test_the_yahoo_experiment_on_files_and_positions(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for file in (folder / "raw").glob("*.gz"):  # without the file that says that it is synthetic
        shutil.copy(file, data)
    command = [*SMALL, "--train", "2000", "--data", data, "--arms", "positions", "--out", tmp_path / "out"]
    result = run(*command)
    assert result.exit_code == 0, said(result)
    outcome = read_results(tmp_path / "out").outcome("yahoo-positions", "written")
    assert outcome is not None
    log = outcome.experiment.log
    assert log is not None
    assert log["synthetic"] is None
    assert (log["train"], log["start"]) == (2000, 3000)  # from the next file on
    assert outcome.arms == [20]
    model = tmp_path / "model.json"
    model.write_text(json.dumps(log["model"]))
    given = run(*command[:-1], tmp_path / "given", "--model", model)
    assert given.exit_code == 0, said(given)
    again = read_results(tmp_path / "given").outcome("yahoo-positions", "written")
    assert again is not None
    assert again.experiment.log is not None
    assert again.experiment.log["model_file"][0] == "model.json"
    assert (again.final("HyLinUCB") == outcome.final("HyLinUCB")).all()
    converted = run(*SMALL, "--protocol", "written", "--data", folder / "log", "--out", tmp_path / "converted")
    assert "synthetic log" in said(converted)  # however it gets here
    short = run(*SMALL, "--train", "2000", "--rounds", "5000", "--data", folder / "log", "--out", tmp_path / "short")
    assert short.exit_code == 2
    assert "--rounds to 4,000 or less" in said(short)


SMALL_WORLD = ["--d1", "2", "--d2", "1", "--arms", "3", "--rounds", "60", "--environments", "2"]


@pytest.mark.slow
@pytest.mark.usefixtures("page")
def test_policies_and_worlds_of_ones_own_play_and_can_be_repeated_from_the_page(own_folder: Path) -> None:
    write_softmax(own_folder)
    write_drifting(own_folder)
    own = ["--policy", "softmax:Softmax:temperature=0.1", "--policy", 'EpsilonGreedy:policy="softmax:Softmax"']
    own += ["--world", "drifting:Drifting:speed=0.5", *SMALL_WORLD, "--name", "lab"]
    first = run("simulate", *own, "--out", "out")
    assert first.exit_code == 0, first.stderr
    assert "Softmax:temperature=0.1" in first.stdout
    again = run("simulate", "out/report/lab.record.json", "--out", "again", "--workers", "1")
    assert again.exit_code == 0, again.stderr
    assert again.stdout.splitlines()[:-1] == first.stdout.splitlines()[:-1]
    units = [path.relative_to("out") for path in Path("out").rglob("*.parquet")]
    assert len(units) == 2
    for unit in units:
        assert ("again" / unit).read_bytes() == ("out" / unit).read_bytes()
    (own_folder / "softmax.py").write_text((own_folder / "softmax.py").read_text() + "\n")
    changed = run("simulate", *own, "--out", "out")
    assert changed.exit_code == 2
    assert "different lab/own" in changed.stderr
    assert len(complaints(changed.stderr)) == 1
    assert run("report", "out").stdout == first.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "softmx:Softmax"], "softmx:Softmax cannot be imported (ModuleNotFoundError"),
        (["--policy", "broken:Broken"], "broken:Broken cannot be imported (SyntaxError"),
        (["--policy", "EpsilonGreedy"], "EpsilonGreedy needs the setting 'policy'"),
        (["--world", "softmax:Softmax"], "softmax:Softmax is not a world"),
        (["lab.json", "--d1", "3"], "lab.json is a whole record: leave out --d1"),
        (["--world", "clickz"], "world must be one of linear, clicks, products, churn, or a class of"),
    ],
)
def test_bad_classes_of_ones_own_are_one_clear_complaint(arguments: list[str], message: str, own_folder: Path) -> None:
    write_softmax(own_folder)
    (own_folder / "broken.py").write_text("class Broken(:\n")
    result = run("simulate", *arguments, *SMALL_WORLD)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(complaints(result.stderr)) == 1
