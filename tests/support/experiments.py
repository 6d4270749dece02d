"""Small experiments, and the contents of a folder of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hybandits import paper
from hybandits.experiments.runner import TIMINGS

SMALL = replace(
    paper.experiment("setting-1", "released"), d1=4, d2=3, arms=(3, 5), horizon=60, trials=2, seeds=(5, 6),
    points=(10, 60), probes=(60,),
)  # fmt: skip
"""Several policies, two numbers of arms, two environments, two trials: four units."""

EIGEN = replace(
    paper.experiment("diversity", "written"), d1=3, d2=2, arms=(4,), horizon=40, trials=4, trials_per_unit=2,
    points=(40,), probes=(20, 40),
)  # fmt: skip
"""Fresh contexts and a design matrix measured twice, by arm: two units."""


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the timings."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != TIMINGS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class StopError(Exception):
    """Raised by `StopAfter`."""


class StopAfter:
    """Ends a run once so many rounds have been played, as Ctrl-C would."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def __call__(self, key: str, rounds: int, total: int) -> None:
        self.left -= rounds
        if self.left < 0:
            raise StopError
