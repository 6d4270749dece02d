"""Regret of learned settings beside the true settings, HyLinUCB, and a grid of scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.learned_worlds import World, linear, worlds
from benchmarks.report import JUDGED, Measurement, Section, number
from benchmarks.workloads import Plan
from hybandits import HyIDS, HyLinUCB, HyThompson, SelfNormalised
from hybandits.engines import ProcessEngine
from hybandits.foundation.checks import FloatArray
from hybandits.paper.settings import DELTA, RELEASED_BOUND, RELEASED_NOISE, RELEASED_RIDGE, THOMPSON_SCALE
from hybandits.policies.base import Policy
from hybandits.simulation.play import play_rounds

RUNS, QUICK_RUNS, QUICK_HORIZON = 16, 2, 2_000
WORKERS = 2

FIXED_TARGET, FIXED_LARGEST = 1.15, 2.0
UCB_TARGET, UCB_TARGET_MANY, MANY = 0.25, 0.35, 300
DIRECTED_MEAN, DIRECTED_WORST, DIRECTED_LARGEST = 0.75, 1.0, 1.15
GRID_TARGET = 1.3
GRID = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Scales of which the best in hindsight is taken, for rewards of 0 and 1."""

RESCALED_SHAPE = (12, 8, 15)
RESCALED_HORIZON = 10_000
SAME_TARGET, OFFSET_TARGET = 1.05, 1.15
"""Largest change of the mean regret where decisions differ by rounding only, and with another constant."""

LEARNED, DIRECTED, FIXED, UCB = "learned", "HyIDS", "fixed", "HyLinUCB"


def policies(world: World, seed: int) -> dict[str, Policy]:
    """Everything that plays in a world, new."""
    d1, d2 = world.d1, world.d2
    players: dict[str, Policy] = {
        LEARNED: HyThompson(d1=d1, d2=d2, seed=seed),
        DIRECTED: HyIDS(d1=d1, d2=d2, seed=seed),
    }
    if world.kind in ("paper", "size"):
        players[FIXED] = HyThompson(d1=d1, d2=d2, noise=world.noise, scale=THOMPSON_SCALE, seed=seed)
    if world.released:
        exploration = SelfNormalised(noise=RELEASED_NOISE, bound=RELEASED_BOUND, delta=DELTA)
        players[UCB] = HyLinUCB(d1=d1, d2=d2, exploration=exploration, ridge=RELEASED_RIDGE)
    if world.kind in ("clicks", "real"):
        for scale in GRID:
            players[f"fixed {scale:g}"] = HyThompson(d1=d1, d2=d2, noise=world.noise, scale=scale, seed=seed)
    return players


class Task(NamedTuple):
    """One run of one world."""

    world: str
    seed: int
    horizon: int


@cache
def by_name() -> dict[str, World]:
    return {world.name: world for world in worlds()[0]}


def regrets(task: Task, report: Callable[[int], None]) -> dict[str, float]:
    """The regret of every policy after one run, all on the same rounds."""
    world = by_name()[task.world]
    players = policies(world, task.seed)
    total = dict.fromkeys(players, 0.0)
    for rounds, rewards, means, best in world.make(task.seed, task.horizon):
        picks = np.empty(len(best), np.int64)
        for name, policy in players.items():
            play_rounds(policy, rounds, rewards, picks)
            total[name] += float((best - means[np.arange(len(best)), picks]).sum())
    return total


def run_regret(plan: Plan) -> Section:
    """Learned settings beside fixed ones, HyLinUCB or the best of a grid of scales, in every world."""
    every, remarks = worlds()
    runs = plan.runs or plan.repeats(RUNS, QUICK_RUNS)
    section = Section(
        "learned-regret",
        f"mean regret over {runs} runs, and how it compares",
        ("world", "what", "mean of first", "of second", *JUDGED),
        text_columns=2,
    )
    tasks = [
        Task(world.name, plan.seed + run, min(world.horizon, QUICK_HORIZON) if plan.quick else world.horizon)
        for world in every
        for run in range(runs)
    ]
    # The longest first, so that no process is left with one of them at the end.
    tasks.sort(key=lambda task: -task.horizon * (5 if "K = " in task.world else 1))
    regret_of_runs: dict[str, dict[int, dict[str, float]]] = {world.name: {} for world in every}
    finished = ProcessEngine(WORKERS).map(regrets, tasks, progress=lambda task, amount: None)
    for done, (i, regret_by_policy) in enumerate(finished, 1):
        regret_of_runs[tasks[i].world][tasks[i].seed] = regret_by_policy
        plan.say(f"learned-regret: {done} of {len(tasks)} runs")
    ratios = {}
    for world in every:
        in_order = [regret_of_runs[world.name][seed] for seed in sorted(regret_of_runs[world.name])]
        regret = {name: np.array([run[name] for run in in_order]) for name in in_order[0]}
        ratios[world.name] = _judge(section, world, regret)
        section.data.append({"world": world.name, "regret": {name: runs.tolist() for name, runs in regret.items()}})
    section.rule()
    mean = math.exp(float(np.mean([math.log(ratio) for ratio in ratios.values()])))
    what = f"HyIDS / learned, geometric mean of {len(ratios)} worlds"
    section.add("all", what, "", "", measurement=Measurement("all", what, "at most", DIRECTED_MEAN, mean))
    worst = max(ratios, key=lambda name: ratios[name])
    what = f"HyIDS / learned, worst world ({worst})"
    section.add("all", what, "", "", measurement=Measurement("all", what, "at most", DIRECTED_WORST, ratios[worst]))
    section.notes += remarks
    if plan.quick:
        section.notes.append(f"a quick run of at most {QUICK_HORIZON:,} rounds: the targets are for the full length")
    return section


def _judge(section: Section, world: World, regret: dict[str, FloatArray]) -> float:
    """The rows of a world; returns HyIDS / learned."""

    def add(
        what: str, first: FloatArray, second: FloatArray, target: float, summary: Callable[[FloatArray], Any]
    ) -> float:
        a, b = float(summary(first)), float(summary(second))
        ratio = a / b if b > 0 else (1.0 if a == 0 else math.inf)
        measurement = Measurement(world.name, what, "at most", target, ratio)
        section.add(world.name, what, number(a), number(b), measurement=measurement)
        return ratio

    section.rule()
    learned = regret[LEARNED]
    if FIXED in regret:
        add("learned / fixed", learned, regret[FIXED], FIXED_TARGET, np.mean)
        add("largest run, learned / fixed", learned, regret[FIXED], FIXED_LARGEST, np.max)
    if UCB in regret:
        many = any(f"K = {arms}," in world.name for arms in (MANY, 400))
        add("learned / HyLinUCB", learned, regret[UCB], UCB_TARGET_MANY if many else UCB_TARGET, np.mean)
    grid = {name: runs for name, runs in regret.items() if name.startswith("fixed ")}
    if grid:
        best = min(grid, key=lambda name: float(grid[name].mean()))
        add(f"learned / {best}, the best of the grid", learned, grid[best], GRID_TARGET, np.mean)
        section.add(world.name, f"HyIDS / {best}", number(regret[DIRECTED].mean()), number(grid[best].mean()))
    ratio = add("HyIDS / learned", regret[DIRECTED], learned, DIRECTED_WORST, np.mean)
    add("largest run, HyIDS / learned", regret[DIRECTED], learned, DIRECTED_LARGEST, np.max)
    return ratio


# ------------------------------------------------------------------ rescaled


def run_rescaled(plan: Plan) -> Section:
    """Rewards or a feature in other units: the regret, in the units of before, is the same."""
    runs = plan.runs or plan.repeats(RUNS, QUICK_RUNS)
    horizon = QUICK_HORIZON if plan.quick else RESCALED_HORIZON
    d1, d2, arms = RESCALED_SHAPE
    section = Section(
        "learned-rescaled",
        f"regret in other units, {RESCALED_SHAPE}, noise 0.1, {runs} runs of {horizon:,} rounds",
        ("what", "policy", "mean regret", "as it was", *JUDGED),
        text_columns=2,
    )
    make = linear(d1, d2, arms, 0.1, "ball", constant=True)
    changes: dict[str, tuple[float, float, float, float]] = {  # factor of rewards, offset, factor of x[0], target
        "rewards x 2^20": (2.0**20, 0.0, 1.0, 1.0),
        "rewards x 2^-20": (2.0**-20, 0.0, 1.0, 1.0),
        "one feature x 2^20": (1.0, 0.0, 2.0**20, 1.0),
        "rewards x 1000": (1000.0, 0.0, 1.0, SAME_TARGET),
        "rewards / 1000": (0.001, 0.0, 1.0, SAME_TARGET),
        "one feature x 100": (1.0, 0.0, 100.0, SAME_TARGET),
        "rewards + 100": (1.0, 100.0, 1.0, OFFSET_TARGET),
    }
    kinds: dict[str, Callable[..., Policy]] = {LEARNED: HyThompson, DIRECTED: HyIDS}

    def play(kind: str, seed: int, factor: float, offset: float, of_feature: float) -> tuple[float, FloatArray]:
        policy = kinds[kind](d1=d1, d2=d2, seed=seed)
        total, every = 0.0, []
        for rounds, rewards, means, best in make(seed, horizon):
            picks = np.empty(len(best), np.int64)
            rounds.x[..., 0] *= of_feature
            play_rounds(policy, rounds, factor * rewards + offset, picks)
            total += float((best - means[np.arange(len(best)), picks]).sum())
            every.append(picks)
        return total, np.concatenate(every)

    for kind in kinds:
        section.rule()
        plan.say(f"learned-rescaled: {kind}")
        seeds = range(plan.seed, plan.seed + runs)
        plain = [play(kind, seed, 1.0, 0.0, 1.0) for seed in seeds]
        before = _mean(plain)
        for what, (factor, offset, of_feature, target) in changes.items():
            plan.say(f"learned-rescaled: {kind}, {what}")
            changed = [play(kind, seed, factor, offset, of_feature) for seed in seeds]
            after = _mean(changed)
            if target == 1.0:
                alike = min(float((a[1] == b[1]).mean()) for a, b in zip(plain, changed, strict=True))
                measurement = Measurement(what, f"{kind}, decisions alike", "at least", 100.0, 100 * alike, " %")
            else:
                measurement = Measurement(what, f"{kind}, regret over that before", "at most", target, after / before)
            section.add(what, kind, number(after), number(before), measurement=measurement)
            section.data.append({"what": what, "policy": kind, "regret": after, "before": before})
    return section


def _mean(runs: Sequence[tuple[float, FloatArray]]) -> float:
    return float(np.mean([regret for regret, _ in runs]))
