"""The command line: results, bad input, interruption, and that it starts fast by importing little."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numpy.testing import assert_allclose

from hybandits import DisLinUCB, HyLinUCB, LinUCB, SelfNormalised, paper
from hybandits.experiments.record import environment_seeds
from hybandits.simulation.play import cumulative_regret
from hybandits.simulation.worlds import Synthetic


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hybandits", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]


QUICK = ["reproduce", "diversity", "--protocol", "released", "--policies", "HyLinUCB"]


def test_reproduce_prints_tables_writes_a_page_and_does_nothing_twice(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    got = run(*QUICK, "--out", str(out), "--workers", "1")
    assert got.returncode == 0, got.stderr
    assert "Diversity, released protocol" in got.stdout
    assert f"wrote {out / 'report' / 'index.html'}" in got.stdout
    assert (out / "report" / "index.html").read_text().startswith("<!DOCTYPE html>")
    assert list((out / "figures").glob("*.png"))
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["scale"] == "quick"
    assert manifest["commands"] == [
        "hybandits reproduce diversity --protocol released --scale quick --policies HyLinUCB"
    ]
    assert "\x1b" not in got.stdout + got.stderr, "no bars and no colours when nobody watches"
    times = {path: path.stat().st_mtime_ns for path in out.rglob("units/**/*.parquet")}
    assert run(*QUICK, "--out", str(out)).stdout == got.stdout
    assert run("report", str(out)).stdout == got.stdout
    assert {path: path.stat().st_mtime_ns for path in times} == times
    other = run(*QUICK, "--out", str(out), "--seed", "3")
    assert other.returncode == 2
    assert "holds results with seed 194821263, this run has 3" in other.stderr
    assert len(other.stderr.splitlines()) == 1


def test_simulate_from_a_file_and_flags(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text('d1 = 2\nd2 = 2\narms = 3\nrounds = 400\nenvironments = 2\npolicies = ["Greedy", "Uniform"]\n')
    got = run("simulate", str(config), "--rounds", "40", "--out", str(tmp_path / "out"), "--workers", "1")
    assert got.returncode == 0, got.stderr
    assert "40 rounds" in got.stdout
    assert {"Greedy", "Uniform"} <= {line.split()[0] for line in got.stdout.splitlines() if line}
    assert (tmp_path / "out" / "report" / "index.html").exists()


@pytest.mark.parametrize("size", [["--arms", "1", "--rounds", "1"], ["--arms", "2", "--rounds", "3", "--d1", "0"]])
def test_the_smallest_experiments_have_a_page_too(size: list[str], tmp_path: Path) -> None:
    small = ["--environments", "1", "--policy", "Uniform", "--policy", "HyLinUCB", "--name", "setting-1"]
    got = run("simulate", *size, *small, "--out", str(tmp_path), "--workers", "1")
    assert got.returncode == 0, got.stderr
    assert "published" not in got.stdout, "an experiment of one's own is not the paper's, whatever its name"


@pytest.mark.xdist_group("ray")
def test_ray_from_the_command_line_gives_the_same_files(tmp_path: Path) -> None:
    small = ["simulate", "--arms", "3", "--rounds", "50", "--environments", "2"]
    for engine in ("local", "ray"):
        got = run(*small, "--engine", engine, "--workers", "2", "--out", str(tmp_path / engine))
        assert got.returncode == 0, got.stderr
    files = [path.relative_to(tmp_path / "ray") for path in (tmp_path / "ray").rglob("*") if path.is_file()]
    assert len(files) > 5
    for path in files:
        if path.name != "timings.jsonl":
            assert (tmp_path / "ray" / path).read_bytes() == (tmp_path / "local" / path).read_bytes()


def test_a_file_in_the_way_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "units").touch()
    got = run("simulate", "--arms", "2", "--rounds", "5", "--environments", "1", "--out", str(tmp_path))
    assert got.returncode == 2
    assert "Traceback" not in got.stderr
    assert "units" in got.stderr


def test_list_names_what_there_is() -> None:
    got = run("list")
    assert got.returncode == 0
    for name in (*paper.SETTINGS, *paper.BEYOND, "released", "written"):
        assert name in got.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "seting-1"], "there is no experiment 'seting-1' (did you mean setting-1?)"),
        (["reproduce", "--policies", "HyLinUBC"], "there is no policy 'HyLinUBC' (did you mean HyLinUCB?)"),
        (["reproduce", "--protocol", "published"], "--protocol"),
        (["reproduce", "--scale", "huge"], "--scale"),
        (["reproduce", "--engine", "slurm"], "--engine"),
        (["reproduce", "--workers", "0"], "--workers"),
        (["reproduce", "--seed", "-1"], "--seed"),
        (["reproduce", "--address", "auto"], "--address is for a Ray cluster"),
        (["nonsense"], "nonsense"),
        (["reproduc"], "reproduc"),
        (["reproduce", "--out", str(Path(__file__))], "is a file: give a folder"),
        (["reproduce", "--out", str(Path(__file__) / "deeper")], "is a file: give a folder"),
        (["reproduce", "--out", "/proc/hybandits"], "cannot be written"),
        (["report", "/nowhere/to/be/seen"], "is not a folder with results"),
        (["report", str(Path(__file__))], "is not a folder with results"),
        (["reproduce", "--policies", ","], "leaves nothing to run"),
        (["reproduce", "setting-3", "--policies", "SupLinUCB"], "leaves nothing to run in setting-3"),
        (["simulate", "--rounds", "0"], "rounds must be at least 1, got 0"),
        (["simulate", "--arms", "0"], "arms must be at least 1, got 0"),
        (["simulate", "--arms", "many"], "--arms must be whole numbers separated by commas, got 'many'"),
        (["simulate", "--policy", "hylin"], "did you mean HyLinUCB"),
        (["simulate", "missing.toml"], "missing.toml cannot be read"),
    ],
)
def test_bad_input_is_one_clear_complaint(arguments: list[str], message: str) -> None:
    got = run(*arguments)
    assert got.returncode == 2
    assert message in got.stderr
    assert "Traceback" not in got.stderr
    if got.stderr.startswith("hybandits:"):
        assert len(got.stderr.splitlines()) == 1


def test_an_unknown_key_in_a_file(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("horizn = 5\n")
    got = run("simulate", str(config))
    assert got.returncode == 2
    assert "unknown setting 'horizn'" in got.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("hybandits 0.")
    for arguments in (["--help"], ["reproduce", "--help"]):
        got = run(*arguments)
        assert got.returncode == 0
        assert "reproduce" in got.stdout


def test_importing_and_helping_does_not_load_the_compiler() -> None:
    for code in ("import hybandits", "import hybandits.cli.main"):
        got = subprocess.run(
            [sys.executable, "-c", f"{code}; import sys; print('numba' in sys.modules, 'numpy' in sys.modules)"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert got.stdout.split() == ["False", "False"]


LONG = ["simulate", "--arms", "3", "--rounds", "2000", "--environments", "2000", "--policy", "HyLinUCB"]


def test_interruption_of_a_run_ends_with_one_line_and_leaves_no_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hybandits", *LONG, "--workers", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ, start_new_session=True
    )
    try:
        end = time.monotonic() + 120
        while not list(tmp_path.glob("units/**/*.parquet")):  # then workers are at work
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    _must_be_interrupted(process.returncode, errors)
    for _ in range(100):  # what watches over shared memory ends a moment after the rest
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a worker is still there")


KEPT = "; finished work is kept: run the same command again to continue"


def _must_be_interrupted(code: int, errors: str, word: str = KEPT) -> None:
    assert code == 130, errors
    said = [line for line in errors.splitlines() if not line.startswith("hybandits: compiling")]
    assert said == [f"hybandits: interrupted{word}"]


PROGRAM = """
import os, signal, sys, time
def interrupt(): os.kill(os.getpid(), signal.SIGINT)
{code}
from hybandits.cli.main import main
main()
"""


def run_with(code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process that runs code first, which says when to `interrupt()`; no machine code on disk.

    A module, since Python deals with interruptions in its own way there.
    """
    (folder / "program.py").write_text(PROGRAM.format(code=code))
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "program", *arguments], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip


AT_IMPORT = """
class Finder:
    def find_spec(name, *rest):
        if name == {module!r}:
            interrupt()
sys.meta_path.insert(0, Finder)
"""


@pytest.mark.parametrize("module", ["typer", "numba", "hybandits.policies.hyran"])
def test_interruption_while_modules_are_imported(module: str, tmp_path: Path) -> None:
    got = run_with(AT_IMPORT.format(module=module), tmp_path, "list")
    _must_be_interrupted(got.returncode, got.stderr, word="")


@pytest.mark.parametrize(
    ("command", "word"), [("describe nowhere", ""), ("reproduce setting-1", KEPT), ("simulate", KEPT)]
)
def test_an_interruption_promises_no_more_than_the_command_keeps(command: str, word: str, tmp_path: Path) -> None:
    got = run_with(AT_IMPORT.format(module="numba"), tmp_path, *command.split())
    _must_be_interrupted(got.returncode, got.stderr, word)


def test_interruption_while_machine_code_is_made(tmp_path: Path) -> None:
    """In a callback of the compiler, where an exception is lost, and what the callback was to keep is missed later."""
    code = """
from numba.core.codegen import CPUCodeLibrary as Library
from hybandits.foundation.compiling import _Notice
keep = Library._object_compiled_hook
Library._object_compiled_hook = lambda *arguments: (_Notice.announced and interrupt(), keep(*arguments))
"""
    got = run_with(code, tmp_path, *LONG, "--out", str(tmp_path / "out"))
    assert "hybandits: compiling" in got.stderr
    _must_be_interrupted(got.returncode, got.stderr)


AFTER_WORK = """
from hybandits.cli import experiments
from hybandits import engines
from hybandits.foundation import interrupts
def after_work(*arguments):
    interrupts.note_workers()
    {what}
experiments._report = after_work
"""


@pytest.mark.parametrize(
    "what",
    [
        "interrupt()",
        "exec('interrupt()')",  # Python remembers a KeyboardInterrupt that left this, and ends by the signal
        "try: interrupt()\n    except KeyboardInterrupt: raise ValueError('of the interruption')",
        "try: interrupt()\n    except KeyboardInterrupt: raise RuntimeError('of the interruption')",
        "try: interrupt()\n    except KeyboardInterrupt: pass",
        "interrupts.PATIENCE = 0.1\n    try: interrupt()\n    except KeyboardInterrupt: time.sleep(60)",
    ],
)
def test_whatever_becomes_of_an_interruption_it_is_one(what: str, tmp_path: Path) -> None:
    got = run_with(AFTER_WORK.format(what=what), tmp_path, "report", "nowhere")
    _must_be_interrupted(got.returncode, got.stderr, word="")


def test_an_error_that_is_no_interruption_keeps_its_trace(tmp_path: Path) -> None:
    got = run_with(AFTER_WORK.format(what="raise RuntimeError('of our own')"), tmp_path, "report", "nowhere")
    assert got.returncode == 1
    assert "Traceback" in got.stderr
    assert "RuntimeError: of our own" in got.stderr
    assert "interrupted" not in got.stderr


def test_a_process_told_to_ignore_interruptions_does(tmp_path: Path) -> None:
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    got = run_with(ignore + AT_IMPORT.format(module="numba"), tmp_path, "list")
    assert got.returncode == 0, got.stderr
    assert "setting-1" in got.stdout


def test_importing_the_command_line_leaves_interruptions_alone() -> None:
    import hybandits.cli.main  # noqa: F401

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_setting_1_lands_on_the_published_read_outs() -> None:
    """Five environments, 2,500 rounds: mean regret within 3 % (or the read-out's own error, about 3 units)."""
    coefficient = SelfNormalised(noise=0.01, bound=(0.8, 0.5), delta=0.01)
    for kind in (HyLinUCB, LinUCB, DisLinUCB):
        total = 0.0
        for seed in environment_seeds(paper.RELEASED_SEED, 5):
            policy = kind(d1=40, d2=5, exploration=coefficient, ridge=0.1)
            total += cumulative_regret(policy, Synthetic(d1=40, d2=5, arms=25, seed=seed), 2500)[-1] / 5
        published = paper.published("setting-1", kind.__name__)[2500]
        assert_allclose(total, published, rtol=0.03, atol=3)
