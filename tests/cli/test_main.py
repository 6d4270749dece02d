"""The command line as a whole: version and help, starting fast, and Ctrl-C at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

import pytest

from hybandits.cli import experiments, logs
from hybandits.cli.main import app
from hybandits.evaluation import INTERVALS
from hybandits.evaluation.view import ARMS
from hybandits.features import MAPS, PAIR_PLACES
from hybandits.logs.formats import FORMATS
from hybandits.logs.synthetic import KINDS, SyntheticLog
from hybandits.simulation import kinds
from hybandits.simulation.worlds import LAWS
from tests.support.command_line import complaints, run


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("hybandits 0.")
    for arguments in (["--help"], ["reproduce", "--help"]):
        helped = run(*arguments)
        assert helped.exit_code == 0
        assert "reproduce" in helped.stdout


@pytest.mark.slow
def test_without_the_laboratory_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; import hybandits.cli.main"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 1
    hint = "run pip install '.[lab]' in a checkout of hybandits"
    assert process.stderr == f"hybandits: the command line needs typer: {hint}\n"


def test_the_list_of_commands_has_whole_sentences() -> None:
    listed = run("--help").stdout.partition("Commands:")[2].strip().splitlines()
    assert len(listed) == len(app.registered_commands) + len(app.registered_groups)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert "[OPTIONS] [NAME]...\n" in run("reproduce", "--help").stdout


@pytest.mark.parametrize(
    ("offered", "known"),
    [
        (logs.Format, FORMATS),
        (logs.FeaturesName, [name + suffix for name in MAPS for suffix in PAIR_PLACES]),
        (logs.IntervalName, INTERVALS),
        (logs.Kind, KINDS),
        (experiments.ArmsName, ARMS),
    ],
)
def test_options_offer_what_the_library_knows(offered: type[StrEnum], known: Collection[str]) -> None:
    assert [choice.value for choice in offered] == list(known)


def test_help_names_every_law_and_kind_of_world() -> None:
    text = "".join(run("simulate", "--help").stdout.split())
    assert all(law in text for law in LAWS)
    assert all(kind in text for kind in kinds.KINDS)


def test_synthetic_logs_can_have_all_features_on_offer() -> None:
    assert list(logs.SyntheticFeaturesName) == [name for name in MAPS if _makes_a_log(name)]


def _makes_a_log(features: str) -> bool:
    try:
        SyntheticLog(rounds=10, features=features)
    except ValueError:
        return False
    return True


@pytest.mark.slow
def test_importing_and_helping_does_not_load_the_compiler() -> None:
    for code in ("import hybandits", "import hybandits.cli.main"):
        process = subprocess.run(
            [sys.executable, "-c", f"{code}; import sys; print('numba' in sys.modules, 'numpy' in sys.modules)"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert process.stdout.split() == ["False", "False"]


LONG = ["simulate", "--arms", "3", "--rounds", "2000", "--environments", "2000", "--policy", "HyLinUCB"]


@pytest.mark.slow
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
    assert complaints(errors) == [f"hybandits: interrupted{word}"]


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


@pytest.mark.slow
@pytest.mark.parametrize("module", ["typer", "numba", "hybandits.policies.hyran"])
def test_interruption_while_modules_are_imported(module: str, tmp_path: Path) -> None:
    process = run_with(AT_IMPORT.format(module=module), tmp_path, "list")
    _must_be_interrupted(process.returncode, process.stderr, word="")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "word"), [("describe nowhere", ""), ("reproduce setting-1", KEPT), ("simulate", KEPT)]
)
def test_an_interruption_promises_no_more_than_the_command_keeps(command: str, word: str, tmp_path: Path) -> None:
    process = run_with(AT_IMPORT.format(module="numba"), tmp_path, *command.split())
    _must_be_interrupted(process.returncode, process.stderr, word)


@pytest.mark.slow
def test_interruption_while_machine_code_is_made(tmp_path: Path) -> None:
    """In a callback of the compiler, where an exception is lost, and what the callback was to keep is missed later."""
    code = """
from numba.core.codegen import CPUCodeLibrary as Library
from hybandits.foundation.compiling import _Notice
keep = Library._object_compiled_hook
Library._object_compiled_hook = lambda *arguments: (_Notice.compiled and interrupt(), keep(*arguments))
"""
    process = run_with(code, tmp_path, *LONG, "--out", str(tmp_path / "out"))
    assert "hybandits: compiling" in process.stderr
    _must_be_interrupted(process.returncode, process.stderr)


AFTER_WORK = """
from hybandits.cli import experiments
from hybandits import engines
from hybandits.foundation import interrupts
def after_work(*arguments):
    interrupts.note_workers()
    {what}
experiments._report = after_work
"""


@pytest.mark.slow
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
    process = run_with(AFTER_WORK.format(what=what), tmp_path, "report", "nowhere")
    _must_be_interrupted(process.returncode, process.stderr, word="")


@pytest.mark.slow
def test_an_error_that_is_no_interruption_keeps_its_trace(tmp_path: Path) -> None:
    process = run_with(AFTER_WORK.format(what="raise RuntimeError('of our own')"), tmp_path, "report", "nowhere")
    assert process.returncode == 1
    assert "Traceback" in process.stderr
    assert "RuntimeError: of our own" in process.stderr
    assert "interrupted" not in process.stderr


@pytest.mark.slow
def test_a_process_told_to_ignore_interruptions_does(tmp_path: Path) -> None:
    ignore = "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    process = run_with(ignore + AT_IMPORT.format(module="numba"), tmp_path, "list")
    assert process.returncode == 0, process.stderr
    assert "setting-1" in process.stdout


def test_importing_the_command_line_leaves_interruptions_alone() -> None:
    import hybandits.cli.main  # noqa: F401

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
