"""Reading a click log, from gzip to arrays on one core: `YahooReader` beside plain Python readers."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Pair, each, interleave
from hybandits.logs.problems import Problems
from hybandits.logs.store import Batch, Tables, no_places
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.unpacking import Stream
from hybandits.logs.yahoo import YahooReader
from hybandits.logs.yahoo.lines import Article, find_shown, parse_head, parse_pool

WITH_MEMORY = "plain reader that remembers lists"
"""What decides whether a compiled reader is worth its code."""

Plain = tuple[int, int, int, np.ndarray, np.ndarray]


def _six(features: list[str]) -> list[float]:
    vector = [0.0] * 6
    for feature in features:
        key, value = feature.split(":")
        vector[int(key) - 1] = float(value)
    return vector


def plain_r6a(path: Path) -> Iterator[Plain]:
    """(time, place shown, click, user, vectors of the candidates) of every line, with as little code as possible."""
    with gzip.open(path, "rt") as file:
        for line in file:
            head, user, *articles = line.split("|")
            when, shown, click = head.split()
            ids, vectors = [], []
            for text in articles:
                name, *features = text.split()
                ids.append(name)
                vectors.append(_six(features))
            of_user = np.array(_six(user.split()[1:]))
            yield int(when), ids.index(shown), int(click), of_user, np.array(vectors)


def plain_r6b(path: Path) -> Iterator[Plain]:
    """The same of an R6B log, whose candidates have no features."""
    with gzip.open(path, "rt") as file:
        for line in file:
            head, user, *articles = line.split("|")
            when, shown, click = head.split()
            ids = [text.strip() for text in articles]
            of_user = np.zeros(136)
            for key in user.split()[1:]:
                of_user[int(key) - 1] = 1.0
            yield int(when), ids.index(shown), int(click), of_user, np.ones((len(ids), 1))


def plain_with_memory(path: Path, kind: str) -> Iterator[Batch]:
    """What `YahooReader` would be in plain Python: every line is checked, a list of candidates is parsed once.

    It has the package's fast unpacking, so that only parsing is compared.
    """
    tables = Tables()
    pools: dict[str, tuple[int, list[str]]] = {}
    rows: list[tuple[int, int, int, int, float, list[float]]] = []

    def batch() -> Batch:
        when, pool, chosen, click, propensity, user = (np.array(column) for column in zip(*rows, strict=True))
        rows.clear()
        return Batch(when, pool, chosen, click.astype(float), propensity, no_places(len(pool)), user)

    def enter(articles: list[Article]) -> tuple[int, list[str]]:
        row = tables.pool([tables.arm(article.id, np.array(article.vector)) for article in articles])
        return row, [article.id for article in articles]

    for line in _lines(path):
        head = parse_head(line, kind)
        if head.pool not in pools:
            pools[head.pool] = enter(parse_pool(head.pool, kind))
        pool, ids = pools[head.pool]
        rows.append((head.time, pool, find_shown(head.article, ids), head.click, 1.0 / len(ids), head.user))
        if len(rows) == 4096:
            yield batch()
    if rows:
        yield batch()


def _lines(path: Path) -> Iterator[bytes]:
    room, rest = bytearray(1 << 18), b""
    with contextlib.closing(Stream(path)) as stream:
        while n := stream.readinto(memoryview(room)):
            *lines, rest = (rest + bytes(room[:n])).split(b"\n")
            yield from lines


def read_all(path: Path) -> int:
    """How many rounds `YahooReader` reads from a log."""
    reader = YahooReader(path)
    return sum(batch.rounds for _, batch in reader.batches(Tables(), Problems(), lambda read: None))


def shuffle_pools(source: Path, target: Path, lines: int) -> None:
    """Write the beginning of a log with the candidates of every line shuffled, so that no two lists are alike."""
    random = np.random.default_rng(0)
    with gzip.open(source, "rb") as file, gzip.open(target, "wb", compresslevel=1) as out:
        for _, line in zip(range(lines), file, strict=False):
            head, user, *articles = line.rstrip(b"\n").split(b" |")
            order = random.permutation(len(articles))
            out.write(b" |".join([head, user, *(articles[i] for i in order)]) + b"\n")


def _comparison(fast: Pair, slow: Pair) -> dict[str, Any]:
    ratio = slow.over(fast)
    return {
        "microseconds_per_line": fast.min * 1e6, "plain_microseconds_per_line": slow.min * 1e6,
        "lines_per_second": 1 / fast.min, "ratio_by_min": ratio.min, "ratio_by_median": ratio.median,
    }  # fmt: skip


def measure_reading(*, rounds: int = 400_000, plain_rounds: int = 20_000, repeats: int = 5) -> dict[str, Any]:
    """Time per line and ratios for R6A, for R6B and for an R6A log in which no two lists of candidates are alike.

    The plain readers read a shorter log of the same kind; all take turns in the same run. Writing a synthetic log is
    timed too.
    """
    results: dict[str, Any] = {"rounds": rounds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, plain in (("R6A", plain_r6a), ("R6B", plain_r6b)):
            (short,) = SyntheticLog(rounds=plain_rounds, kind=kind).write(folder / f"{kind} short")
            start = time.process_time()
            (whole,) = SyntheticLog(rounds=rounds, kind=kind).write(folder / kind)
            writing = time.process_time() - start
            read_all(short)  # compiles
            pairs = interleave(
                {
                    "plain": each(lambda read=plain, path=short: sum(1 for _ in read(path))),  # type: ignore[misc]
                    "with memory": each(
                        lambda path=short, kind=kind: sum(batch.rounds for batch in plain_with_memory(path, kind))  # type: ignore[misc]
                    ),
                    "hybandits": each(lambda path=whole: read_all(path)),  # type: ignore[misc]
                },
                repeats,
            )
            results[kind] = {
                **_comparison(pairs["hybandits"], pairs["plain"]), "gzip_bytes": whole.stat().st_size,
                "lines_made_per_second": rounds / writing,
            }  # fmt: skip
            results[f"{kind}, {WITH_MEMORY}"] = _comparison(pairs["hybandits"], pairs["with memory"])
        shuffled = folder / "shuffled.gz"
        shuffle_pools(folder / "R6A" / "ydata-fp-td-clicks-v1_0.20090501.gz", shuffled, plain_rounds)
        pairs = interleave(
            {
                "plain": each(lambda: sum(1 for _ in plain_r6a(shuffled))),
                "hybandits": each(lambda: read_all(shuffled)),
            },
            repeats,
        )
        results["R6A, no two pools alike"] = _comparison(pairs["hybandits"], pairs["plain"])
    return results


if __name__ == "__main__":
    import json

    print(json.dumps(measure_reading(), indent=1))
