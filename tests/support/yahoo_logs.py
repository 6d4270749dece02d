"""Lines of Yahoo's click logs, and reading them in two ways: with the reader, and with the plain parser alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hybandits.logs.yahoo.lines import Malformed, parse_line

from hybandits.logs.report import ReadReport
from hybandits.logs.store import Tables
from hybandits.logs.yahoo import YahooReader, compiled, known_pools, reader

A_POOL = b"|100120 2:0.300000 3:0.000500 4:0.080000 5:0.230000 6:0.389500 1:1.000000 |100528 1:1.000000"

A_LINE = (
    b"1241160900 100528 1 |user 2:0.101000 3:0.202000 4:0.050000 5:0.047000 6:0.600000 1:1.000000 " + A_POOL
)  # fmt: skip

B_LINE = b"1317513291 id-560620 0 |user 1 9 11 13 136 |id-552077 |id-560620 |id-9"


@contextmanager
def in_plain_python() -> Iterator[None]:
    """Within it, the kernels of the Yahoo reader are plain Python functions."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (reader, known_pools, compiled):
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    patch.setattr(module, name, value.py_func)
        yield


class Round(NamedTuple):
    """A round with everything spelled out, to compare."""

    time: int
    pool: tuple[tuple[str, tuple[float, ...]], ...]
    chosen: int
    reward: float
    propensity: float
    user: tuple[float, ...]


def read(paths: Any, *, strict: bool = False, **options: Any) -> tuple[list[Round], ReadReport]:
    """All rounds and the account, by the reader; checks that the totals add up."""
    yahoo = YahooReader(paths, **options)
    tables, problems = Tables(), ReadReport(strict=strict, shown=10**9)
    rounds = []
    told = 0

    def progress(read: int) -> None:
        nonlocal told
        assert read >= 0
        told += read

    for _, batch in yahoo.batches(tables, problems, progress):
        assert 0 < batch.rounds <= options.get("batch_rows", 65536)
        assert np.all(batch.place == -1)
        for i in range(batch.rounds):
            rows = np.split(tables.pools.rows, tables.pools.offsets[1:-1])[batch.pool[i]]
            pool = tuple((str(tables.names[row]), tuple(tables.vectors[row].tolist())) for row in rows)
            rounds.append(
                Round(
                    int(batch.time[i]), pool, int(batch.chosen[i]), float(batch.reward[i]),
                    float(batch.propensity[i]), tuple(batch.user[i].tolist()),
                )
            )  # fmt: skip
    assert told == yahoo.size
    assert problems.lines == problems.rounds + problems.skipped
    assert problems.rounds == len(rounds)
    return rounds, problems


def expect(data: bytes, kind: str) -> tuple[list[Round], dict[int, str], int]:
    """Rounds, problems by line number, and lines, by the plain parser alone."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    rounds, wrong = [], {}
    for number, text in enumerate(lines, 1):
        try:
            line = parse_line(text, kind)
        except Malformed as problem:
            wrong[number] = problem.kind
        else:
            pool = tuple((article.id, tuple(article.vector)) for article in line.pool)
            rounds.append(Round(line.time, pool, line.shown, line.click, 1 / len(pool), tuple(line.user)))
    return rounds, wrong, len(lines)


def check(path: Path, data: bytes, kind: str, **options: Any) -> ReadReport:
    """The reader finds in a file what the plain parser finds in its text."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(YahooReader, "_detect", lambda self, path: kind)
        rounds, problems = read(path, **options)
    good, wrong, lines = expect(data, kind)
    assert rounds == good
    assert problems.lines == lines
    assert problems.reasons == Counter(wrong.values())
    for example in problems.examples:
        if example.line:
            assert wrong[example.line] == example.kind
    return problems
