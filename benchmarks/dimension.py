"""Many shared features: choices, and the longest single call beside the median, because averages hide pauses.

Times are of the processor, since other programs may run.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import JUDGED, Measurement, Section, number
from benchmarks.timing import Pair, no_garbage_collection, summary
from benchmarks.workloads import Plan, training_rows
from hybandits import HyIDS, HyThompson

SHAPES = {(100, 1, 1000): 0.42, (500, 1, 1000): 1.4, (2000, 1, 1000): 10.4, (2000, 1, 30): None}
"""d1, d2 and arms, with the largest milliseconds of a choice of HyIDS."""
RATIO_TARGET = 4.0
"""The largest ratio of a choice of HyIDS to one of HyThompson, among 1,000 arms."""
LONGEST_TARGET = 50.0
"""Milliseconds of the longest learn."""
ROWS = 200


def time_choices(d1: int, d2: int, arms: int, repeats: int) -> dict[str, list[float]]:
    """Seconds of every choice of policies with given settings, which score the same posterior and take turns."""
    ids = list(range(arms))
    x, z, _ = training_rows(d1, d2, arms, seed=8)
    policies = {kind.__name__: kind(d1=d1, d2=d2, noise=0.5, scale=1.0, seed=0) for kind in (HyThompson, HyIDS)}
    for policy in policies.values():
        policy.learn_batch(np.random.default_rng(0).integers(0, arms, ROWS).tolist(), *training_rows(d1, d2, ROWS))
        policy.choose(x, z, ids)
    taken: dict[str, list[float]] = {name: [] for name in policies}
    with no_garbage_collection():
        for _ in range(repeats):
            for name, policy in policies.items():
                start = time.process_time()
                policy.choose(x, z, ids)
                taken[name].append(time.process_time() - start)
    return taken


def time_learns(d1: int, d2: int, arms: int, rows: int) -> list[float]:
    """Seconds of every learn of HyIDS with learned settings: the lesser of two identical runs, row by row."""
    order = np.random.default_rng(0).integers(0, arms, rows).tolist()
    x, z, rewards = training_rows(d1, d2, rows)
    runs = []
    with no_garbage_collection():
        for _ in range(2):
            policy, taken = HyIDS(d1=d1, d2=d2, seed=0), []
            for t in range(rows):
                start = time.process_time()
                policy.learn(order[t], x[t], z[t], rewards[t])
                taken.append(time.process_time() - start)
            runs.append(taken)
    return [min(pair) for pair in zip(*runs, strict=True)]


def run(plan: Plan) -> Section:
    """Choices of HyIDS beside HyThompson, and every learn of HyIDS."""
    section = Section(
        "dimension",
        "milliseconds of choose and learn with many shared features, with the longest of all calls",
        ("d1, d2, arms", "what", "calls", "min", "median", "longest", *JUDGED),
        text_columns=2,
    )
    for (d1, d2, arms), target in SHAPES.items():
        shape = f"{d1}, {d2}, {arms}"
        plan.say(f"dimension: {shape}")
        section.rule()
        choices = time_choices(d1, d2, arms, plan.repeats(400 if d1 < 2000 else 100, 10))
        learns = time_learns(d1, d2, arms, plan.repeats(ROWS, 40))
        sampling, directed = summary(choices["HyThompson"]), summary(choices["HyIDS"])
        measured: dict[str, Measurement] = {
            "learn, HyIDS": Measurement(shape, "longest learn", "at most", LONGEST_TARGET, 1e3 * max(learns), " ms")
        }
        if target is not None:
            in_ms = Pair(1e3 * directed.min, 1e3 * directed.median)
            measured["choose, HyIDS"] = Measurement(shape, "choose, HyIDS", "at most", target, in_ms, " ms")
        taken = {**{f"choose, {name}": each for name, each in choices.items()}, "learn, HyIDS": learns}
        for what, each in taken.items():
            figures = (number(1e3 * value) for value in (*summary(each), max(each)))
            section.add(shape, what, f"{len(each):,}", *figures, measurement=measured.get(what))
            section.data.append({"shape": shape, "what": what, "seconds": each})
        if target is not None:
            ratio = Measurement(shape, "choose, HyIDS / HyThompson", "at most", RATIO_TARGET, directed.over(sampling))
            section.add(shape, ratio.what, "", "", "", "", measurement=ratio)
    section.notes.append("settings are given where choices are timed and learned where learn is")
    return section
