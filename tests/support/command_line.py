"""Commands as a user gives them, in this process or in another."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner, Result

from hybandits.__main__ import app


def run(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def run_process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "hybandits", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def said(result: Result) -> str:
    """Return the output of a command in one line."""
    return " ".join((result.stdout + result.stderr).split())


def complaints(errors: str) -> list[str]:
    """Return the lines of stderr without the notice of compilation."""
    return [line for line in errors.splitlines() if not line.startswith("hybandits: compiling")]
