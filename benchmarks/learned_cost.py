"""Costs of learned settings: a round in the compiled loop, a choice from Python, the longest learn, memory.

Times are of the processor, since other programs may run.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.learned_worlds import CLICK_SHARED, CLICK_USER, Make, Played, clicks, linear
from benchmarks.report import JUDGED, Measurement, Section, microseconds, number
from benchmarks.timing import Pair, interleave, no_garbage_collection
from benchmarks.workloads import WORKLOADS, Plan, training_rows
from hybandits import HybridRidge, HyIDS, HyThompson
from hybandits.estimators.learned import LearnedRidge
from hybandits.paper.settings import RELEASED_NOISE, THOMPSON_SCALE
from hybandits.simulation.loops import compiled_loop

HORIZON = 80_000
POOL_NUMBERS = 4_000_000
"""Features that are prepared; they are played over and over, with new noise each time."""

SHAPES: dict[str, tuple[int, int, Make]] = {
    "setting 1": (40, 5, linear(40, 5, 25, RELEASED_NOISE, "cube-direction")),
    "setting 2": (5, 40, linear(5, 40, 25, RELEASED_NOISE, "cube-direction")),
    "setting 3, K = 100": (5, 5, linear(5, 5, 100, RELEASED_NOISE, "cube-direction")),
    "setting 3, K = 400": (5, 5, linear(5, 5, 400, RELEASED_NOISE, "cube-direction")),
    "20 arms, 3.5 % clicks": (CLICK_SHARED, 1 + CLICK_USER, clicks(0.035)),
    "20 arms, 50 % clicks": (CLICK_SHARED, 1 + CLICK_USER, clicks(0.5)),
}
LEARNED_TARGETS = {"setting 1": 1.2, "setting 2": 1.4, "setting 3, K = 400": 1.15}
DIRECTED_TARGETS = {
    "setting 1": 1.4,
    "setting 2": 1.4,
    "setting 3, K = 100": 1.6,
    "setting 3, K = 400": 1.6,
    "20 arms, 3.5 % clicks": 2.5,
    "20 arms, 50 % clicks": 2.5,
}
CHOOSE_TARGET = 2.0
LONGEST_TARGETS = {"W5": 20.0, "100,000 arms": 50.0, "2,000 features": 50.0}
MEMORY_TARGET = 1.6

Policy = HyThompson | HyIDS


# ------------------------------------------------------------------ rounds in the loop


def cases(d1: int, d2: int) -> dict[str, Callable[[], Policy]]:
    """Policies to time; each call makes a new one with the same seed."""
    return {
        "fixed": lambda: HyThompson(d1=d1, d2=d2, noise=RELEASED_NOISE, scale=THOMPSON_SCALE, seed=1),
        "learned": lambda: HyThompson(d1=d1, d2=d2, seed=1),
        "HyIDS": lambda: HyIDS(d1=d1, d2=d2, seed=1),
    }


def prepared(d1: int, d2: int, make: Make) -> list[Played]:
    """Rounds with so many features in all, in blocks of at most a million."""
    first = next(make(5, 100_000))
    arms = first.rounds.index.shape[1]
    return list(make(5, max(len(first.best), POOL_NUMBERS // (arms * (d1 + d2)))))


def stream(pool: list[Played], horizon: int) -> Iterator[tuple[Any, Any]]:
    """Rounds and rewards up to the horizon; the noise of linear worlds is resampled every time."""
    random = np.random.default_rng(6)
    left = horizon
    for block in itertools.cycle(pool):
        n = min(left, len(block.best))
        rewards = block.rewards[:n]
        if not np.isin(rewards[:5], (0.0, 1.0)).all():
            rewards = block.means[:n] + RELEASED_NOISE * random.standard_normal((n, 1))
        yield block.rounds.part(0, n), rewards
        left -= n
        if left == 0:
            return


def time_loops(
    makers: dict[str, Callable[[], Policy]], pool: list[Played], horizon: int, repeats: int
) -> tuple[dict[str, Pair], dict[str, Policy]]:
    """Seconds per round, and the policies after the last run.

    The policies take turns block by block. A run repeats exactly, refreshes included, so each block's least (or
    middle) time over the repeats is taken and these are summed.
    """
    times: dict[str, list[list[float]]] = {name: [] for name in makers}
    policies: dict[str, Policy] = {}
    for repeat in range(repeats):
        policies = {name: make() for name, make in makers.items()}
        loops = {}
        for name, policy in policies.items():
            loop = compiled_loop(policy)
            assert loop is not None
            loops[name] = loop
            times[name].append([])
        names = list(makers)
        names = names[repeat % len(names) :] + names[: repeat % len(names)]
        with no_garbage_collection():
            for rounds, rewards in stream(pool, horizon):
                picks = np.empty(len(rewards), np.int64)
                for name in names:
                    start = time.process_time()
                    loops[name](policies[name], rounds, rewards, picks)
                    times[name][-1].append(time.process_time() - start)
    per_round = {}
    for name, runs in times.items():
        blocks = list(zip(*runs, strict=True))
        least, middle = sum(map(min, blocks)), sum(map(statistics.median, blocks))
        per_round[name] = Pair(least / horizon, middle / horizon)
    return per_round, policies


def time_choices(policies: dict[str, Policy], pool: list[Played], repeats: int, calls: int = 200) -> dict[str, Pair]:
    """Seconds per `choose` from Python, the same candidates in every call."""

    def sampler(policy: Policy) -> Callable[[], float]:
        rounds = pool[0].rounds
        arms = policy.candidates(rounds.arms)
        taken = [rounds.features(t) for t in range(min(calls, len(pool[0].best)))]

        def sample() -> float:
            start = time.process_time()
            for x, z in taken:
                policy.choose(x, z, arms)
            return (time.process_time() - start) / len(taken)

        return sample

    samplers = {name: sampler(policy) for name, policy in policies.items()}
    interleave(samplers, 2)
    return interleave(samplers, repeats)


def run_cost(plan: Plan) -> Section:
    """A round in the compiled loop and a choice from Python: learned beside fixed settings, HyIDS beside HyThompson."""
    horizon = 8_000 if plan.quick else HORIZON
    section = Section(
        "learned-cost",
        f"microseconds per round in the loop, contexts not counted, {horizon:,} rounds; and per choose from Python",
        ("world", "what", "min us", "median us", *JUDGED),
        text_columns=2,
    )
    for name, (d1, d2, make) in SHAPES.items():
        plan.say(f"learned-cost: {name}")
        pool = prepared(d1, d2, make)
        makers = cases(d1, d2)
        if name not in LEARNED_TARGETS:
            del makers["fixed"]
        time_loops(makers, pool, 200, 1)  # whatever is compiled or loaded is not counted
        loops, policies = time_loops(makers, pool, horizon, plan.repeats(5, 2))
        section.rule()
        for policy, pair in loops.items():
            measurement = None
            if policy == "learned" and name in LEARNED_TARGETS:
                ratio = pair.over(loops["fixed"])
                measurement = Measurement(name, "loop, learned / fixed", "at most", LEARNED_TARGETS[name], ratio)
            if policy == "HyIDS":
                ratio = pair.over(loops["learned"])
                measurement = Measurement(name, "loop, HyIDS / learned", "at most", DIRECTED_TARGETS[name], ratio)
            section.add(name, f"loop, {policy}", *microseconds(pair), measurement=measurement)
        policies = {policy: policies[policy] for policy in ("learned", "HyIDS")}
        choices = time_choices(policies, pool, plan.repeats(50, 10))
        section.add(name, "choose, learned", *microseconds(choices["learned"]))
        ratio = choices["HyIDS"].over(choices["learned"])
        measurement = Measurement(name, "choose, HyIDS / learned", "at most", CHOOSE_TARGET, ratio)
        section.add(name, "choose, HyIDS", *microseconds(choices["HyIDS"]), measurement=measurement)
        section.data.append(
            {
                "world": name,
                "rounds": horizon,
                "seconds_per_round": {policy: pair._asdict() for policy, pair in loops.items()},
                "seconds_per_choose": {policy: pair._asdict() for policy, pair in choices.items()},
            }
        )
    return section


# ------------------------------------------------------------------ the longest learn


def time_rows(d1: int, d2: int, arms: int, rows: int, repeats: int) -> tuple[Any, Any, Any]:
    """Per row: the least seconds of its `learn` over the repeats, flags for a refresh under way and for growth."""
    x, z, rewards = training_rows(d1, d2, min(rows, 20_000))
    random = np.random.default_rng(8)
    order = np.concatenate((np.arange(arms), random.integers(0, arms, max(0, rows - arms))))[:rows].tolist()
    least = np.full(rows, np.inf)
    refreshing, grew = np.zeros(rows, bool), np.zeros(rows, bool)
    xs, zs, rs = list(x), list(z), rewards.tolist()
    cycle = len(xs)
    for _ in range(repeats):
        estimator = LearnedRidge(d1=d1, d2=d2)
        capacity = len(estimator.pulls)
        with no_garbage_collection():
            for t, arm in enumerate(order):
                k = t % cycle
                state = estimator.models[0].state
                before = state.phase
                steps = state.refreshes
                start = time.process_time()
                estimator.learn(arm, xs[k], zs[k], rs[k])
                taken = time.process_time() - start
                least[t] = min(least[t], taken)
                refreshing[t] = before > 0 or state.refreshes != steps
                if len(estimator.pulls) != capacity:
                    grew[t], capacity = True, len(estimator.pulls)
    return least, refreshing, grew


def run_longest(plan: Plan) -> Section:
    """The longest single learn: every row is timed, and the least of a few identical runs is taken row by row."""
    section = Section(
        "learned-longest",
        "milliseconds of the longest single learn",
        ("arms", "what", "rows", "ms", *JUDGED),
        text_columns=2,
    )
    workload = WORKLOADS["W5"]
    cases = {
        "W5": (workload.d1, workload.d2, workload.arms, 20_000 if plan.quick else 100_000),
        "100,000 arms": (5, 5, 100_000, 240_000),
        "2,000 features": (2000, 1, 30, 1_000 if plan.quick else 5_000),
    }
    for name, (d1, d2, arms, rows) in cases.items():
        plan.say(f"learned-longest: {name}")
        least, refreshing, grew = time_rows(d1, d2, arms, rows, plan.repeats(3, 2))
        plain = 1e3 * float(np.median(least[~refreshing & ~grew]))
        section.rule()
        section.add(name, "a usual row", f"{rows:,}", number(plain))
        longest = 1e3 * float(least[~grew].max())
        measurement = Measurement(name, "longest learn", "at most", LONGEST_TARGETS[name], longest, " ms")
        section.add(
            name, "longest, with a refresh", f"{int(refreshing.sum()):,}", number(longest), measurement=measurement
        )
        growth = 1e3 * float(least[grew].max())
        measurement = Measurement(
            name, "longest learn, growing for more arms", "at most", LONGEST_TARGETS[name], growth, " ms"
        )
        section.add(
            name, "longest, growing for more arms", f"{int(grew.sum()):,}", number(growth), measurement=measurement
        )
        worst = np.argsort(least)[::-1][:10]
        section.data.append(
            {
                "what": name, "d1": d1, "d2": d2, "arms": arms, "rows": rows, "usual_ms": plain,
                "longest_ms": longest, "longest_growing_ms": growth,
                "slowest": [
                    {"row": int(t), "ms": 1e3 * float(least[t]), "refresh": bool(refreshing[t]), "grew": bool(grew[t])}
                    for t in worst
                ],
            }
        )  # fmt: skip
    return section


# ------------------------------------------------------------------ memory


def run_memory(plan: Plan) -> Section:
    """Bytes per learned arm, beside an estimator with fixed settings."""
    section = Section("learned-memory", "bytes per learned arm", ("workload", "fixed", "learned", *JUDGED))
    for name in ("W3-400", "W5"):
        workload = WORKLOADS[name]
        plan.say(f"learned-memory: {name}")
        grown = []
        for kind in (HybridRidge, LearnedRidge):
            estimator = kind(d1=workload.d1, d2=workload.d2)
            sizes = []
            for first in (0, 1_000):
                arms = range(first, 1_000 if first == 0 else 3_000)
                estimator.learn_batch(arms, *training_rows(workload.d1, workload.d2, len(arms)))
                sizes.append(estimator.nbytes)
            grown.append((sizes[1] - sizes[0]) / 2_000)
        fixed, learned = grown
        measurement = Measurement(name, "learned / fixed", "at most", MEMORY_TARGET, learned / fixed)
        section.add(f"{name} {workload.shape}", number(fixed), number(learned), measurement=measurement)
        section.data.append({"workload": name, "fixed": fixed, "learned": learned})
    section.notes.append("growth of nbytes from 1,000 to 3,000 arms, spare capacity included")
    return section
