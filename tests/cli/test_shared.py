"""Options, errors and progress shared by commands."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Annotated

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from hybandits.cli.shared import (
    EngineOption,
    Workers,
    bars,
    command_line,
    make_engine,
    plain_errors,
    print_account,
)
from hybandits.engines import EngineError, ProcessEngine, Ray
from hybandits.experiments.record import ResultsError
from hybandits.logs.report import Fault, ReadError, ReadReport
from hybandits.logs.store import LogError

app = typer.Typer()


@app.callback()
def several_commands() -> None:
    pass


@app.command()
def play(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument()] = None,
    scale: str = "quick",
    policy: Annotated[list[str] | None, typer.Option()] = None,
    data: Path | None = None,
    config: Path | None = None,
    replay: Annotated[bool, typer.Option("--replay")] = False,
    trials: int = 1,
    engine: EngineOption = "local",
    workers: Workers = None,
    out: Path = Path("out"),
) -> None:
    typer.echo(command_line(context))


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ([], ["--scale quick"]),
        (["--workers", "3", "--engine", "ray", "--out", "elsewhere"], ["--scale quick"]),
        (["--trials=1", "b", "a", "--scale=paper"], ["b a --scale paper"]),
        (["--policy", "HyRan (released),LinUCB", "--policy", "C"], ["--policy 'HyRan (released),LinUCB' --policy C"]),
        (["--replay", "--data", "/home/me/logs", "--config", "/home/me/own.toml"],
         ["--data DIR --config own.toml --replay"]),
    ],
)  # fmt: skip
def test_the_command_keeps_what_changes_results(typed: list[str], kept: list[str]) -> None:
    said = CliRunner().invoke(app, ["play", *typed]).output.strip()
    assert said.startswith("hybandits play ")
    for words in kept:
        assert words in said
    for words in ("workers", "engine", "out", "home", "trials"):
        assert words not in said


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ValueError("give a folder"), "hybandits: give a folder"),
        (TypeError("give a number"), "hybandits: give a number"),
        (LogError("the log is empty"), "hybandits: the log is empty"),
        (ReadError("line 3"), "hybandits: line 3"),
        (ResultsError("give another folder"), "hybandits: give another folder"),
        (EngineError("is the cluster up?"), "hybandits: is the cluster up?"),
        (FileNotFoundError(2, "No such file", "x.csv"), "hybandits: x.csv: No such file"),
        (OSError(errno.ENOSPC, "the disk is full", "x.npz"), "hybandits: x.npz: the disk is full"),
        (OSError("disk on fire"), "hybandits: disk on fire"),
        (MemoryError("9 GB"), "hybandits: not enough memory (9 GB): make the problem smaller"),
    ],
)
def test_errors_that_a_user_can_fix_are_one_line(
    problem: Exception, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, plain_errors():
        raise problem
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == words + "\n"


@pytest.mark.parametrize("problem", [BrokenPipeError(), RuntimeError("a mistake of ours"), KeyError("so is this")])
def test_other_errors_keep_their_trace(problem: Exception) -> None:
    with pytest.raises(type(problem)), plain_errors():
        raise problem


def test_an_interruption_has_a_line_and_a_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, plain_errors("; finished work is kept"):
        raise KeyboardInterrupt
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "hybandits: interrupted; finished work is kept\n"


def test_progress_is_bars_at_a_terminal_and_nothing_elsewhere() -> None:
    for terminal in (True, False):
        written = io.StringIO()
        with bars(Console(file=written, force_terminal=terminal, width=120)) as advance:
            for name, amount, total in (("reading", 0, None), ("fitting", 2, 8), ("reading", 1500, None)):
                advance(name, amount, total)
        assert ("fitting" in written.getvalue()) == terminal


def test_engines_by_name() -> None:
    local, ray, running = make_engine("local", 3), make_engine("ray", 2), make_engine("ray://lab:10001", 2)
    assert isinstance(local, ProcessEngine)
    assert local.workers == 3
    assert isinstance(ray, Ray)
    assert isinstance(running, Ray)
    assert (ray.workers, ray.address, running.address) == (2, None, "ray://lab:10001")
    with pytest.raises(ValueError, match="--engine must be local, ray, or the address"):
        make_engine("slurm", None)


def test_every_line_is_accounted_for(capsys: pytest.CaptureFixture[str]) -> None:
    report = ReadReport()
    report.begin("day1")
    report.count(2, [Fault(2, "unparsable number", "got 'x1.0'")])
    report.ignore_files({f"dir/{i}.txt": "not a log" for i in range(7)})
    print_account(report)
    assert capsys.readouterr().err.splitlines() == [
        "3 lines read: 2 rounds, 1 skipped",
        "  not read: 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 2 more",
        "  1 unparsable number, first: day1, line 2: unparsable number (got 'x1.0')",
    ]
