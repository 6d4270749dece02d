"""The command line as a whole: version and help, starting fast, and Ctrl-C."""

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

from hybandits.__main__ import app
from hybandits.cli import experiments, logs
from hybandits.evaluation import INTERVALS
from hybandits.evaluation.view import ARMS
from tests.support.command_line import complaints, run


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("hybandits 0.")
    for arguments in (["--help"], ["reproduce", "--help"]):
        helped = run(*arguments)
        assert helped.exit_code == 0
        assert "reproduce" in helped.stdout


def test_the_list_of_commands_has_whole_sentences() -> None:
    listed = run("--help").stdout.partition("Commands:")[2].strip().splitlines()
    assert len(listed) == len(app.registered_commands) + len(app.registered_groups)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert "[OPTIONS] [NAME]...\n" in run("reproduce", "--help").stdout


@pytest.mark.parametrize(
    ("offered", "known"),
    [
        (logs.IntervalName, INTERVALS),
        (experiments.ArmsName, ARMS),
    ],
)
def test_options_offer_what_the_library_knows(offered: type[StrEnum], known: Collection[str]) -> None:
    assert [choice.value for choice in offered] == list(known)


@pytest.mark.slow
def test_without_the_laboratory_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; import hybandits.__main__"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert process.returncode == 1
    hint = "run pip install '.[lab]' in a checkout of hybandits"
    assert process.stderr == f"hybandits: the command line needs typer: {hint}\n"


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import hybandits", "import hybandits.__main__"])
def test_importing_and_helping_does_not_load_the_compiler(code: str) -> None:
    process = subprocess.run(
        [sys.executable, "-c", f"{code}; import sys; print('numba' in sys.modules, 'numpy' in sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_interruption_of_a_run_ends_with_one_line_and_leaves_no_worker(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hybandits", "simulate", "--arms", "3", "--rounds", "2000", "--policy", "HyLinUCB"]
    command += ["--environments", "2000", "--workers", "2", "--out", str(tmp_path)]
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
    assert process.returncode == 130
    line = "hybandits: interrupted; finished work is kept: give the same command again to continue"
    assert complaints(errors) == [line]
    for _ in range(100):  # what watches over shared memory ends a moment after the rest
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    raise AssertionError("a worker is still there")
