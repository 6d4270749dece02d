"""Worlds that change, and worlds that do not: policies that choose their memory beside the same that never forget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from benchmarks.learned_cost import SHAPES, prepared, time_loops
from benchmarks.learned_worlds import Played, World, worlds
from benchmarks.report import JUDGED, Measurement, Section, microseconds, number
from benchmarks.workloads import WORKLOADS, Plan, training_rows
from hybandits import HyIDS, HyThompson
from hybandits.engines import ProcessEngine
from hybandits.estimators.learned import LearnedRidge
from hybandits.paper.settings import RELEASED_BOUND, SETTINGS
from hybandits.policies.posterior import Memory
from hybandits.simulation.play import play_rounds
from hybandits.simulation.worlds import Synthetic

RUNS, QUICK_RUNS, QUICK_HORIZON = 16, 2, 2_000
WORKERS = 2

NOISE, HORIZON, WALK = 0.1, 20_000, 20_000.0
CHANGES = {"one jump": (1, 0.0), "three jumps": (3, 0.0), "a slow walk": (0, WALK)}
"""Jumps, and rounds in which walking parameters forget where they were."""
CHANGED_TARGETS = {"one jump": 0.4, "three jumps": 0.45, "a slow walk": 0.75}
STILL_TARGET = 1.1
COST_TARGET, MEMORY_TARGET = 4.5, 4.6
MEMORIES: tuple[Memory, ...] = (None, 5000.0, "auto")

KINDS: dict[str, type[HyThompson] | type[HyIDS]] = {"HyThompson": HyThompson, "HyIDS": HyIDS}


# ------------------------------------------------------------------ regret


def changing(jumps: int, walk: float) -> Callable[[int, int], Iterator[Played]]:
    """The paper's setting 1, with parameters that jump or walk."""
    setting = SETTINGS["setting-1"]

    def make(seed: int, horizon: int) -> Iterator[Played]:
        world = Synthetic(
            d1=setting.d1, d2=setting.d2, arms=setting.arms[0], noise=NOISE, theta_bound=RELEASED_BOUND[0],
            beta_bound=RELEASED_BOUND[1], seed=seed, jumps=jumps, walk=walk,
        )  # fmt: skip
        stream = world.noise_stream()
        for rounds, means, best in world.rounds(horizon):
            yield Played(rounds, means + NOISE * stream.standard_normal((len(best), 1)), means, best)

    return make


@cache
def by_name() -> dict[str, World]:
    """The paper's worlds, which never change, and those that do."""
    setting = SETTINGS["setting-1"]
    every = {world.name: world for world in worlds()[0] if world.kind == "paper"}
    for name, (jumps, walk) in CHANGES.items():
        every[name] = World(name, setting.d1, setting.d2, HORIZON, NOISE, "other", changing(jumps, walk))
    return every


class Task(NamedTuple):
    """One run of one world."""

    world: str
    seed: int
    horizon: int


def regrets(task: Task, report: Callable[[int], None]) -> dict[str, float]:
    """The regret of both policies with and without memories, all on the same rounds."""
    world = by_name()[task.world]
    players = {
        (name, memory): kind(d1=world.d1, d2=world.d2, memory=memory, seed=task.seed)
        for name, kind in KINDS.items()
        for memory in (None, "auto")
    }
    total = {f"{name} {memory}": 0.0 for name, memory in players}
    for rounds, rewards, means, best in world.make(task.seed, task.horizon):
        picks = np.empty(len(best), np.int64)
        for (name, memory), policy in players.items():
            play_rounds(policy, rounds, rewards, picks)
            total[f"{name} {memory}"] += float((best - means[np.arange(len(best)), picks]).sum())
    return total


def run_regret(plan: Plan) -> Section:
    """Regret with memory="auto" over that without, where the world changes and where it does not."""
    runs = plan.runs or plan.repeats(RUNS, QUICK_RUNS)
    section = Section(
        "learned-drift",
        f'mean regret over {runs} runs, memory="auto" beside memory=None',
        ("world", "policy", "auto", "None", *JUDGED),
        text_columns=2,
    )
    every = by_name()
    tasks = [
        Task(world.name, plan.seed + run, min(world.horizon, QUICK_HORIZON) if plan.quick else world.horizon)
        for world in every.values()
        for run in range(runs)
    ]
    tasks.sort(key=lambda task: -task.horizon * (5 if "K = " in task.world else 1))
    results: dict[str, dict[int, dict[str, float]]] = {name: {} for name in every}
    finished = ProcessEngine(WORKERS).map(regrets, tasks, progress=lambda task, amount: None)
    for done, (i, regret) in enumerate(finished, 1):
        results[tasks[i].world][tasks[i].seed] = regret
        plan.say(f"learned-drift: {done} of {len(tasks)} runs")
    for name, regret_of_runs in results.items():
        section.rule()
        in_order = [regret_of_runs[seed] for seed in sorted(regret_of_runs)]
        for policy in KINDS:
            auto, without = (
                float(np.mean([run[f"{policy} {memory}"] for run in in_order])) for memory in ("auto", None)
            )
            target = CHANGED_TARGETS.get(name, STILL_TARGET)
            measurement = Measurement(name, f"{policy}, auto / None", "at most", target, auto / without)
            section.add(name, policy, number(auto), number(without), measurement=measurement)
        section.data.append({"world": name, "regret": in_order})
    if plan.quick:
        section.notes.append(f"a quick run of at most {QUICK_HORIZON:,} rounds: the targets are for the full length")
    return section


# ------------------------------------------------------------------ cost


def run_cost(plan: Plan) -> Section:
    """A round in the compiled loop, and bytes per learned arm: memory="auto" beside memory=None."""
    horizon = 4_000 if plan.quick else HORIZON
    section = Section(
        "learned-drift-cost",
        f"microseconds per round in the loop, contexts not counted, {horizon:,} rounds; bytes per learned arm",
        ("what", "policy", "min", "median", *JUDGED),
        text_columns=2,
    )
    for name, (d1, d2, make) in SHAPES.items():
        plan.say(f"learned-drift-cost: {name}")
        makers: dict[str, Callable[[], HyThompson | HyIDS]] = {
            f"{policy} {memory}": partial(kind, d1=d1, d2=d2, memory=memory, seed=1)
            for policy, kind in KINDS.items()
            for memory in MEMORIES
        }
        pool = prepared(d1, d2, make)
        time_loops(makers, pool, 200, 1)  # whatever is compiled or loaded is not counted
        loops, _ = time_loops(makers, pool, horizon, plan.repeats(3, 2))
        section.rule()
        for which, pair in loops.items():
            measurement = None
            policy, memory = which.split()
            if memory == "auto":
                ratio = pair.over(loops[f"{policy} None"])
                measurement = Measurement(name, f"loop, {policy}, auto / None", "at most", COST_TARGET, ratio)
            section.add(name, which, *microseconds(pair), measurement=measurement)
        section.data.append({"world": name, "seconds_per_round": {key: pair._asdict() for key, pair in loops.items()}})
    section.rule()
    for name in ("W3-400", "W5"):
        workload = WORKLOADS[name]
        d1, d2 = workload.d1, workload.d2
        grown = []
        for estimator in (LearnedRidge(d1=d1, d2=d2), LearnedRidge(d1=d1, d2=d2, memory="auto")):
            sizes = []
            for first, last in ((0, 1_000), (1_000, 3_000)):
                estimator.learn_batch(range(first, last), *training_rows(d1, d2, last - first))
                sizes.append(estimator.nbytes)
            grown.append((sizes[1] - sizes[0]) / 2_000)
        measurement = Measurement(name, "bytes per arm, auto / None", "at most", MEMORY_TARGET, grown[1] / grown[0])
        section.add(f"{name}, bytes", "None, auto", *map(number, grown), measurement=measurement)
        section.data.append({"workload": name, "bytes_without": grown[0], "bytes_with": grown[1]})
    return section
