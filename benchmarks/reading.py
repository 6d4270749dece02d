"""Reading a click log, from gzip to arrays on one core: `YahooReader` beside plain Python readers."""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Pair, each, interleave
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Tables
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import YahooReader

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


def read_all(path: Path) -> int:
    """The number of rounds `YahooReader` reads from a log."""
    reader = YahooReader(path)
    return sum(batch.rounds for _, batch in reader.batches(Tables(), ReadReport(), lambda read: None))


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
                    "hybandits": each(lambda path=whole: read_all(path)),  # type: ignore[misc]
                },
                repeats,
            )
            results[kind] = {
                **_comparison(pairs["hybandits"], pairs["plain"]), "gzip_bytes": whole.stat().st_size,
                "lines_made_per_second": rounds / writing,
            }  # fmt: skip
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
