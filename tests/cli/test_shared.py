"""What commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from hybandits.cli.shared import EngineName, EngineOption, Workers, command_line

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
    defect: Annotated[bool, typer.Option("--released-defect")] = False,
    trials: int = 1,
    engine: EngineOption = EngineName.local,
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
        (["--released-defect", "--data", "/home/me/logs", "--config", "/home/me/own.toml"],
         ["--data DIR --config own.toml --released-defect"]),
    ],
)  # fmt: skip
def test_the_command_keeps_what_changes_results(typed: list[str], kept: list[str]) -> None:
    said = CliRunner().invoke(app, ["play", *typed]).output.strip()
    assert said.startswith("hybandits play ")
    for words in kept:
        assert words in said
    for words in ("workers", "engine", "out", "home", "trials"):
        assert words not in said
