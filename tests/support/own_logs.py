"""Logs of one's own for tests: CSV text, mappings, and reading them with the totals checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Batch, Log, convert

LOG = """time,item,click,p,slot,shown,age,country
100,a,1,0.5,1,a|b,31,de
101.9,b,0,0.5,2,a|b,22.5,fr
2020-01-01T00:00:00Z,c,0,0.25,,"a|b|c",1e1,de
,a,1,1,3,c|a,-4,it
"""

FULL = {
    "arm": "item", "reward": "click", "time": "time", "propensity": "p", "candidates": "shown",
    "user": ["age", "country"], "categorical": ["country"],
}  # fmt: skip

SIMPLE = {"arm": "item", "reward": "click"}


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(given: Any, tmp_path: Path, *, strict: bool = False, **mapping: Any) -> tuple[Log, Batch, ReadReport]:
    """Convert files with a mapping, or what a reader reads; check that the totals add up."""
    report = ReadReport(strict=strict)
    seen: list[int] = []
    reader = ColumnsReader(given, mapping=Mapping(**mapping)) if mapping else given
    out = tmp_path / f"log{len(list(tmp_path.glob('log*')))}"
    log = convert(reader, out, report, seen.append)
    assert report.lines == report.rounds + report.skipped
    assert report.rounds == log.rounds
    assert sum(seen) == reader.size
    parts = list(log.batches())
    return log, Batch(*(np.concatenate(part) for part in zip(*parts, strict=True))), report


def pools(log: Log) -> list[list[str]]:
    return [[log.names[i] for i in log.pools.rows[a:b]] for a, b in zip(*_bounds(log), strict=True)]


def _bounds(log: Log) -> tuple[np.ndarray, np.ndarray]:
    return log.pools.offsets[:-1], log.pools.offsets[1:]
