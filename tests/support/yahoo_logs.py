"""Lines of Yahoo's click logs, and reading them in two ways: with the reader, and with the plain parser alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from hybandits.logs import files, yahoo
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Tables
from hybandits.logs.yahoo import Malformed, YahooReader, parse_line, parse_pool

A_POOL = b"|100120 2:0.300000 3:0.000500 4:0.080000 5:0.230000 6:0.389500 1:1.000000 |100528 1:1.000000"

A_LINE = (
    b"1241160900 100528 1 |user 2:0.101000 3:0.202000 4:0.050000 5:0.047000 6:0.600000 1:1.000000 " + A_POOL
)  # fmt: skip

B_LINE = b"1317513291 id-560620 0 |user 1 9 11 13 136 |id-552077 |id-560620 |id-9"


@contextmanager
def in_plain_python() -> Iterator[None]:
    """Within it, the kernels of the Yahoo reader are plain Python functions."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in list(vars(yahoo).items()):
            if hasattr(value, "py_func"):
                patch.setattr(yahoo, name, value.py_func)
        yield


class Round(NamedTuple):
    """A round with everything spelled out, to compare."""

    time: int
    pool: tuple[tuple[str, tuple[float, ...]], ...]
    chosen: int
    reward: float
    propensity: float
    user: tuple[float, ...]


def read(paths: Any, *, strict: bool = False) -> tuple[list[Round], ReadReport]:
    """All rounds and the account, by the reader; checks that the totals add up."""
    reader = YahooReader(paths)
    tables, report = Tables(), ReadReport(strict=strict)
    rounds = []
    reported = 0

    def progress(read: int) -> None:
        nonlocal reported
        assert read >= 0
        reported += read

    for _, batch in reader.batches(tables, report, progress):
        for i in range(batch.rounds):
            rows = np.split(tables.pools.rows, tables.pools.offsets[1:-1])[batch.pool[i]]
            pool = tuple((str(tables.names[row]), tuple(tables.vectors[row].tolist())) for row in rows)
            rounds.append(
                Round(
                    int(batch.time[i]), pool, int(batch.chosen[i]), float(batch.reward[i]),
                    float(batch.propensity[i]), tuple(batch.user[i].tolist()),
                )
            )  # fmt: skip
    assert reported == reader.size
    assert report.lines == report.rounds + report.skipped
    assert report.rounds == len(rounds)
    return rounds, report


def expect(data: bytes, kind: str) -> tuple[list[Round], dict[int, str], int]:
    """Rounds, report by line number, and lines, by the plain parser alone."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    rounds, wrong = [], {}
    for number, text in enumerate(lines, 1):
        try:
            line = parse_line(text, kind)
            pool = tuple((name, tuple(vector)) for name, vector in parse_pool(line.pool, kind))
            ids = [name for name, _ in pool]
            if line.article not in ids:
                raise Malformed("article shown is not a candidate")
        except Malformed as problem:
            wrong[number] = problem.reason
        else:
            shown = ids.index(line.article)
            rounds.append(Round(line.time, pool, shown, line.click, 1 / len(pool), tuple(line.user)))
    return rounds, wrong, len(lines)


def check(path: Path, data: bytes, kind: str, *, block: int = 1 << 17) -> ReadReport:
    """The reader finds in a file what the plain parser finds in its text."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yahoo, "kind_of", lambda line: kind)
        patch.setattr(files, "BLOCK", block)
        rounds, report = read(path)
    good, wrong, lines = expect(data, kind)
    assert rounds == good
    assert report.lines == lines
    assert report.reasons == Counter(wrong.values())
    for reason, example in report.examples.items():
        first = next(number for number, each in wrong.items() if each == reason)
        assert example.startswith(f"{path.name}, line {first:,}: {reason}")
    return report
