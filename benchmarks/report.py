"""Sections of measurements: tables with targets on the terminal, and everything as JSON."""

from __future__ import annotations

import datetime
import operator
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from benchmarks.timing import Pair

Sense = Literal["at least", "at most", "above", "below"]

_HOLDS = {"at least": operator.ge, "at most": operator.le, "above": operator.gt, "below": operator.lt}
_SIGN = {"at least": ">=", "at most": "<=", "above": ">", "below": "<"}


@dataclass(frozen=True)
class Measurement:
    """A measured value with a target. It is judged by the minima and by the medians; memory has one value only."""

    workload: str
    what: str
    sense: Sense
    target: float
    measured: Pair | float
    unit: str = "x"

    @property
    def values(self) -> tuple[float, ...]:
        """The minimum and the median, or the single value."""
        return tuple(self.measured) if isinstance(self.measured, Pair) else (self.measured,)

    @property
    def verdict(self) -> str:
        """reached, missed, or by which of the two it is reached."""
        reached = [bool(_HOLDS[self.sense](value, self.target)) for value in self.values]
        if all(reached):
            return "reached"
        if not any(reached):
            return "missed"
        return "reached by min only" if reached[0] else "reached by median only"

    @property
    def target_text(self) -> str:
        return f"{_SIGN[self.sense]} {self.target:,g}{self.unit}"

    @property
    def measured_text(self) -> str:
        return " / ".join(f"{number(value)}{self.unit}" for value in self.values)

    def as_json(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "what": self.what,
            "sense": self.sense,
            "target": self.target,
            "unit": self.unit,
            "measured_by_min": self.values[0],
            "measured_by_median": self.values[1] if len(self.values) > 1 else None,
            "verdict": self.verdict,
        }


@dataclass
class Section:
    """One section's table, its measurements with targets, remarks, and the numbers behind them."""

    name: str
    title: str
    columns: tuple[str, ...]
    text_columns: int = 1
    """The number of columns from the left hold words; the others are aligned to the right."""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    """Seconds that the section took."""

    def add(self, *cells: str, measurement: Measurement | None = None) -> None:
        """Add a row; a measurement fills the last three columns with target, measured and verdict."""
        if measurement is not None:
            self.measurements.append(measurement)
            cells = (*cells, measurement.target_text, measurement.measured_text, measurement.verdict)
        self.rows.append((*cells, *[""] * (len(self.columns) - len(cells))))

    def rule(self) -> None:
        """A line between groups of rows."""
        if self.rows and self.rows[-1]:
            self.rows.append(())

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "seconds": round(self.seconds, 1),
            "figures": [each.as_json() for each in self.measurements],
            "notes": self.notes,
            "data": self.data,
        }


JUDGED = ("target", "measured by min / median", "verdict")
"""The last columns of every section's table."""


def number(value: float) -> str:
    """Three digits that matter, thousands separated, never in powers of ten."""
    size = abs(value)
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3g}"


def microseconds(pair: Pair) -> tuple[str, str]:
    """Minimum and median, given in seconds, as two cells."""
    return number(1e6 * pair.min), number(1e6 * pair.median)


def times(pair: Pair) -> str:
    """A ratio by minima and by medians as one cell."""
    return f"{number(pair.min)}x / {number(pair.median)}x"


# ------------------------------------------------------------------ printing


def show(section: Section) -> None:
    """Print a section: with rich on a terminal where it is installed, else as plain text."""
    if sys.stdout.isatty():
        try:
            _show_rich(section)
            return
        except ImportError:
            pass
    print("\n".join(_plain(section)), flush=True)


def _plain(section: Section) -> list[str]:
    rows = [section.columns, *(row for row in section.rows if row)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(section.columns))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if i < section.text_columns or i == len(row) - 1 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    rule = "-" * len("  ".join("-" * width for width in widths))
    body = [line(row) if row else rule for row in section.rows]
    return ["", f"{section.name}: {section.title}", rule, line(section.columns), rule, *body, *section.notes]


def _show_rich(section: Section) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"{section.name}: {section.title}", title_justify="left")
    for i, column in enumerate(section.columns):
        words = i < section.text_columns or i == len(section.columns) - 1
        table.add_column(column, justify="left" if words else "right")
    colours = {"reached": "green", "missed": "red"}
    for row in section.rows:
        if not row:
            table.add_section()
            continue
        verdict = row[-1]
        colour = colours.get(verdict, "yellow")
        table.add_row(*map(escape, row[:-1]), f"[{colour}]{escape(verdict)}[/]" if verdict else "")
    console = Console(highlight=False)
    console.print(table)
    for note in section.notes:
        console.print(note, markup=False)


def show_summary(sections: Sequence[Section]) -> None:
    """Count the targets that were reached, and list the missed ones."""
    judged = [(section.name, each) for section in sections for each in section.measurements]
    short = [(name, each) for name, each in judged if each.verdict != "reached"]
    print(f"\n{len(judged) - len(short)} of {len(judged)} targets reached")
    for name, each in short:
        print(
            f"  {name}, {each.workload or 'any workload'}, {each.what}: target {each.target_text}, "
            f"measured {each.measured_text}: {each.verdict}"
        )


class Progress:
    """One line on standard error that is written over; silent when that is not a terminal."""

    def __init__(self) -> None:
        self.on = sys.stderr.isatty()

    def say(self, text: str) -> None:
        """Show what is under way."""
        if self.on:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        self.say("")


# ------------------------------------------------------------------ the machine


def machine() -> dict[str, Any]:
    """Describe the machine and the versions."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("hybandits", "numpy", "numba", "llvmlite", "scipy")},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _version(name: str) -> str | None:
    if name == "hybandits":
        import hybandits

        return hybandits.__version__
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
