"""Timing on a machine that is not quiet: cases take turns, and the least and the middle of many times are kept."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Pair(NamedTuple):
    """The same figure from the minima and from the medians of one run."""

    min: float
    median: float

    def over(self, other: Pair) -> Pair:
        """Ratio of minima and ratio of medians."""
        return Pair(self.min / other.min, self.median / other.median)


def summary(seconds: Sequence[float]) -> Pair:
    """Minimum and median of samples."""
    return Pair(min(seconds), statistics.median(seconds))


def slower(first: Pair, *others: Pair) -> Pair:
    """The largest minimum and the largest median."""
    pairs = (first, *others)
    return Pair(max(each.min for each in pairs), max(each.median for each in pairs))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect once, then leave the collector off inside the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interleave(cases: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, Pair]:
    """Call the cases in turn, A, B, C, A, B, C, ..; each call returns one sample in seconds per operation."""
    samples: dict[str, list[float]] = {name: [] for name in cases}
    with no_garbage_collection():
        for _ in range(repeats):
            for name, sample in cases.items():
                samples[name].append(sample())
    return {name: summary(each) for name, each in samples.items()}


def each(work: Callable[[], int]) -> Callable[[], float]:
    """A sample of work that returns how many items it did: processor seconds per item, since other programs may run."""

    def sample() -> float:
        start = time.process_time()
        items = work()
        return (time.process_time() - start) / items

    return sample
