"""Reading a click log: `YahooReader` beside a plain Python reader, from gzip to arrays on one core."""

from __future__ import annotations

import gzip
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Pair, each, interleave
from hybandits.logs.problems import Problems
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
    """(time, place shown, click, user, vectors of the candidates) of every line, as one would write it in a minute."""
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
    """Rounds that `YahooReader` makes of a log."""
    reader = YahooReader(path)
    return sum(batch.rounds for _, batch in reader.batches(Tables(), Problems(), lambda read: None))


def shuffle_pools(source: Path, target: Path, lines: int) -> None:
    """The beginning of a log with the candidates of every line in an order of their own: no list is like another."""
    random = np.random.default_rng(0)
    with gzip.open(source, "rb") as file, gzip.open(target, "wb", compresslevel=1) as out:
        for _, line in zip(range(lines), file, strict=False):
            head, user, *articles = line.rstrip(b"\n").split(b" |")
            order = random.permutation(len(articles))
            out.write(b" |".join([head, user, *(articles[i] for i in order)]) + b"\n")


def _as_plain(fast: Pair, slow: Pair) -> dict[str, Any]:
    ratio = slow.over(fast)
    return {
        "microseconds_per_line": fast.min * 1e6, "plain_microseconds_per_line": slow.min * 1e6,
        "lines_per_second": 1 / fast.min, "ratio_by_min": ratio.min, "ratio_by_median": ratio.median,
    }  # fmt: skip


def measure_reading(*, rounds: int = 400_000, plain_rounds: int = 20_000, repeats: int = 5) -> dict[str, Any]:
    """Per line and as ratios: R6A, R6B, an R6A log in which no two lists of candidates are alike; and making a log.

    The plain reader reads a shorter log of the same kind; both are read in turn in the same run.
    """
    found: dict[str, Any] = {"rounds": rounds}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, plain in (("R6A", plain_r6a), ("R6B", plain_r6b)):
            (short,) = SyntheticLog(rounds=plain_rounds, kind=kind).write(folder / f"{kind} short")
            start = time.process_time()
            (whole,) = SyntheticLog(rounds=rounds, kind=kind).write(folder / kind)
            made = time.process_time() - start
            read_all(short)  # compiles
            pairs = interleave(
                {
                    "plain": each(lambda read=plain, path=short: sum(1 for _ in read(path))),  # type: ignore[misc]
                    "hybandits": each(lambda path=whole: read_all(path)),  # type: ignore[misc]
                },
                repeats,
            )
            found[kind] = {
                **_as_plain(pairs["hybandits"], pairs["plain"]), "gzip_bytes": whole.stat().st_size,
                "lines_made_per_second": rounds / made,
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
        found["R6A, no two pools alike"] = _as_plain(pairs["hybandits"], pairs["plain"])
    return found


if __name__ == "__main__":
    import json

    print(json.dumps(measure_reading(), indent=1))
