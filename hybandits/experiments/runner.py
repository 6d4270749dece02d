"""Running experiments: unit by unit on an engine, saving each as it finishes and skipping finished ones."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.engines import Engine, ProcessEngine, Progress, Report
from hybandits.evaluation.log_world import LogWorld
from hybandits.experiments.design_matrix import DesignMatrix, coverage, known_ridge, measure_estimator
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, MOMENTS, Experiment, ResultsError, Unit
from hybandits.experiments.results import (
    MANIFEST,
    Results,
    Run,
    joined_manifest,
    packed_path,
    read_results,
    read_unit,
    write_manifest,
    write_unit,
)
from hybandits.foundation.files import clear_parts, make_writable_folder, naming, sha256
from hybandits.policies.by_name import make_policy
from hybandits.policies.ucb import DisLinUCB
from hybandits.simulation.loops import Picks
from hybandits.simulation.play import Player, play
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Synthetic, World

TIMINGS = "timings.jsonl"
"""File with the seconds of every unit, one line each; the only one that differs between runs of the same record."""

Watch = Callable[[str, int, int], None]
"""Called with the key of an experiment, its rounds played since the last call, and all its rounds."""


# ------------------------------------------------------------------ one unit


def policy_seed(unit: Unit, trial: int) -> int:
    """Return the seed of a policy's own draws, a function of the environment and the trial."""
    return int(np.random.SeedSequence((unit.seed, trial)).generate_state(1)[0])


class Job(NamedTuple):
    """A unit, and the path of its log, if any."""

    unit: Unit
    data: str | None = None


def run_unit(job: Job, report: Report = lambda rounds: None) -> list[Run]:
    """Play all policies and trials of a unit; contexts that trials share are drawn once."""
    unit = job.unit
    unit.experiment.check_origins()
    world: World
    if unit.experiment.log is None:
        world = unit.experiment.world(unit.arms, unit.seed)
    else:
        world = LogWorld.of(unit.experiment.log, job.data, noise=unit.experiment.noise, seed=unit.seed)
    trials = list(range(unit.first, unit.last))
    if not world.fresh_contexts:
        return _run_trials(unit, world, trials, report)
    return [run for trial in trials for run in _run_trials(unit, world, [trial], report)]


def _run_trials(unit: Unit, world: World, trials: list[int], report: Report) -> list[Run]:
    """Play trials that share their contexts."""
    experiment = unit.experiment
    shape = {"d1": experiment.d1, "d2": experiment.d2, "arms": unit.arms, "horizon": experiment.horizon}
    cast = [(entry, trial) for entry in unit.policies for trial in trials]
    players = []
    for entry, trial in cast:
        policy = make_policy(entry.policy, entry.settings, **shape, seed=policy_seed(unit, trial))
        players.append(Player(policy, trial, entry.learns_from))
    rows_too = experiment.by_arm or experiment.moments
    designs = [DesignMatrix(experiment.d1, experiment.d2, unit.arms) for _ in players] if rows_too else []
    measured: list[list[dict[str, Any]]] = [[] for _ in players]

    def observe(i: int, t: int, block: Block, picks: Picks) -> None:
        policy, measures = players[i].policy, None
        if designs:
            designs[i].add(block.rounds, picks)
        if t not in experiment.probes:
            return
        if not designs:
            measures = measure_estimator(policy, unit.arms)
        elif (ridge := experiment.design_ridge or known_ridge(policy)) is not None:
            measures = designs[i].measures(ridge, disjoint=isinstance(policy, DisLinUCB))
            assert isinstance(world, Synthetic)
            measures |= coverage(policy, *world.parameters(), block)
        if measures is not None:
            measured[i].append(measures)

    last = max(experiment.rounds_of(entry.name) for entry in unit.policies)
    points = [t for t in experiment.points if t <= last]
    played = play(players, world, points, observe=observe, probes=experiment.probes, progress=report)
    regret = np.full((len(players), len(experiment.points)), np.nan)
    regret[:, : len(points)] = played
    names = DESIGN + (MOMENTS if rows_too else ()) + (DESIGN_BY_ARM if experiment.by_arm else ())
    runs = []
    for i, (entry, trial) in enumerate(cast):
        design = {name: np.array([each[name] for each in measured[i]]) for name in names} if measured[i] else None
        runs.append(Run(policy=entry.name, trial=trial, regret=regret[i], design=design))
    return runs


def timed_unit(job: Job, report: Report) -> tuple[list[Run], dict[str, float]]:
    """Run a unit and measure the seconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    runs = run_unit(job, report)
    spent = {"seconds": time.perf_counter() - clock, "processor_seconds": time.process_time() - processor}
    return runs, {name: round(value, 3) for name, value in spent.items()}


def compile_loops(experiments: Iterable[Experiment], data: str | None = None) -> None:
    """Play two rounds of everything, so that workers find the machine code on disk instead of each compiling it."""
    for experiment in experiments:
        short = replace(
            experiment, arms=experiment.arms[:1], horizon=2, seeds=experiment.seeds[:1], trials=1, trials_per_unit=0,
            points=(2,), probes=(), policies=tuple(replace(entry, rounds=None) for entry in experiment.policies),
        )  # fmt: skip
        for unit in short.units():
            run_unit(Job(unit, data))


# ------------------------------------------------------------------ all units


def run(
    experiments: Iterable[Experiment],
    folder: Path | str,
    *,
    engine: Engine | None = None,
    progress: Watch = lambda key, rounds, total: None,
    about: Mapping[str, Any] | None = None,
    command: str | None = None,
    data: Path | str | None = None,
) -> Results:
    """Run experiments, save every unit as it finishes, and read all results of the folder back.

    Units that are in the folder already are kept, so an interrupted run continues where it ended. ResultsError if the
    folder cannot be written to, or holds results of a different record, version, scale or seed.

    Parameters
    ----------
    experiments, folder, engine
        Records to run, the folder of the results, and the engine; by default one process per core.
    progress : callable
        See `Watch`; it begins with the rounds of units that are in the folder already.
    about, command
        Entries of the manifest, such as scale and seed, and the command of this run.
    data : path, optional
        The folder of the log, for experiments on one.

    Examples
    --------
    >>> import tempfile
    >>> from hybandits.engines import SerialEngine
    >>> from hybandits.experiments.config import experiment
    >>> record = experiment({"d1": 2, "d2": 1, "arms": 3, "rounds": 50, "environments": 2, "policies": ["Greedy"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run([record], folder, engine=SerialEngine())
    >>> results.outcome("simulation", "own").final("Greedy").shape
    (2,)
    """
    folder = Path(folder)
    records = list(experiments)
    try:
        make_writable_folder(folder)
    except ValueError as problem:
        raise ResultsError(str(problem)) from None
    manifest = joined_manifest(folder, records, about or {}, command)
    units = [unit for record in records for unit in record.units()]
    todo, tables = [], {}
    packed = {(e.key, arms) for e in records for arms in e.arms if (folder / packed_path(e, arms)).exists()}
    for unit in units:
        if (unit.experiment.key, unit.arms) in packed:
            continue
        if (folder / unit.path).exists():
            tables[unit.path] = read_unit(folder, unit, manifest["units"].get(unit.path))
            # A run that was killed just after saving the unit has not entered it.
            manifest["units"].setdefault(unit.path, sha256(folder / unit.path))
        else:
            todo.append(unit)
    todo.sort(key=cost, reverse=True)
    clear_parts([folder / MANIFEST, *(folder / unit.path for unit in units)])
    write_manifest(folder, manifest)
    if todo:
        place = None if data is None else str(Path(data).resolve())
        compile_loops(records, place)
        jobs = [Job(unit, place) for unit in todo]
        work = (engine or ProcessEngine()).map(timed_unit, jobs, _watched(units, todo, progress))
        with closing(work):  # workers end, whatever happens here
            for i, (runs, spent) in work:
                unit = todo[i]
                manifest["units"][unit.path] = write_unit(folder, unit, runs)
                write_manifest(folder, manifest)
                with naming(folder / TIMINGS), (folder / TIMINGS).open("a") as file:
                    file.write(json.dumps({"unit": unit.path, "rounds": unit.rounds, **spent}) + "\n")
    return read_results(folder, tables)


def _watched(units: list[Unit], todo: list[Unit], progress: Watch) -> Progress:
    """The progress of an engine as that of the experiments, beginning with the units that are done."""
    totals = Counter[str]()
    for unit in units:
        totals[unit.experiment.key] += unit.rounds
    done = totals.copy()
    for unit in todo:
        done[unit.experiment.key] -= unit.rounds
    for key, total in totals.items():
        progress(key, done[key], total)

    def advance(i: int, rounds: int) -> None:
        key = todo[i].experiment.key
        progress(key, rounds, totals[key])

    return advance


COSTS = {"HyRan": 12.0, "HyRanWithoutCrossBlocks": 8.0}
"""Rough duration of these policies relative to others."""


def cost(unit: Unit) -> float:
    """Return a rough cost of a unit, so that the longest start first."""
    e = unit.experiment
    per_round = 2000 + unit.arms * (e.d2 * (e.d1 + e.d2) + e.d1**2)
    rounds = sum(COSTS.get(entry.policy, 1.0) * e.rounds_of(entry.name) for entry in unit.policies)
    return float((unit.last - unit.first) * rounds * per_round)
