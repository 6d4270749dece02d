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
from hybandits.estimators.eigenvalues import coupling, largest_ratio, smallest
from hybandits.estimators.learned import LearnedRidge
from hybandits.evaluation.log_world import LogWorld
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Experiment, ResultsError, Unit
from hybandits.experiments.results import (
    MANIFEST,
    Results,
    Run,
    joined_manifest,
    read_results,
    read_unit,
    write_manifest,
    write_unit,
)
from hybandits.foundation.files import clear_parts, make_writable_folder, naming, sha256
from hybandits.policies.base import Policy, RidgePolicy
from hybandits.policies.by_name import make_policy
from hybandits.policies.ucb import DisLinUCB
from hybandits.simulation.play import Player, play
from hybandits.simulation.worlds import World

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
        players.append(Player(policy, trial))
    measured: list[list[dict[str, Any]]] = [[] for _ in players]

    def probe(i: int, t: int, policy: Policy) -> None:
        if (measures := measure(policy, unit.arms, experiment.design_ridge)) is not None:
            measured[i].append(measures)

    regret = play(players, world, experiment.points, probe=probe, probes=experiment.probes, progress=report)
    names = DESIGN + (DESIGN_BY_ARM if experiment.by_arm else ())
    runs = []
    for i, (entry, trial) in enumerate(cast):
        design = {name: np.array([each[name] for each in measured[i]]) for name in names} if measured[i] else None
        runs.append(Run(policy=entry.name, trial=trial, regret=regret[i], design=design))
    return runs


def measure(policy: Policy, arms: int, ridge: float | None = None) -> dict[str, Any] | None:
    """Measure the eigenvalues behind the diversity assumption on a policy that has played arms 0, 1, ..

    The paper's guarantees need that M_t is close to its block diagonal U_t: U_t^-1/2 M_t U_t^-1/2 = I + A_t, where A_t
    has the blocks Z_t = [V_t^-1/2 B_1,t W_1,t^-1/2 ..] off its diagonal and the eigenvalues +-sigma(Z_t). `ridge`
    replaces the policy's own; policies that learn their ridges need it.

    Returns
    -------
    dict or None
        None without a design matrix, with unknown ridges, or with a memory. Otherwise:

        - lambda_min_v: lambda_min(V_t), ridge included; NaN for `DisLinUCB`, which has one matrix M_i,t per arm;
        - rho_x, rho_z: lambda_min of the mean of x x' and of z z' over all rows learned, the rho of the assumption;
        - z_norm: sigma_max(Z_t); for `DisLinUCB` the largest over arms;
        - for every arm: pulls, lambda_min_w = lambda_min(W_i,t), or of M_i,t, and sigma_max_b = sigma_max(B_i,t).
    """
    if not isinstance(policy, RidgePolicy):
        return None
    estimator = policy.estimator
    if isinstance(estimator, LearnedRidge) and (ridge is None or estimator.settings["memory"] is not None):
        return None
    ids = range(arms)
    t = max(estimator.rounds, 1)
    if ridge is None:
        ridge = estimator.ridge
        v, b, w, eliminated = estimator.design(ids)
    else:
        v, b, w = estimator.second_moments(ids)
        v, w = v + ridge * np.eye(len(v)), w + ridge * np.eye(w.shape[1])
        eliminated = (b @ np.linalg.solve(w, b.swapaxes(1, 2))).sum(axis=0)
    pulls = np.array([estimator.pulls_of(i) if estimator.knows(i) else 0 for i in ids])
    if isinstance(policy, DisLinUCB):
        d1 = policy.d1
        full = w
        v, b, w = full[:, :d1, :d1], full[:, :d1, d1:], full[:, d1:, d1:]
        rows = (full - ridge * np.eye(full.shape[1])).sum(axis=0)
        shared, own = rows[:d1, :d1], rows[d1:, d1:]
        lambda_min_v, lambda_min_w = np.nan, smallest(full)
        z_norm = max(coupling(v[i], b[i], w[i]) for i in ids)
    else:
        shared = v - ridge * np.eye(len(v))
        own = (w - ridge * np.eye(w.shape[1])).sum(axis=0)
        lambda_min_v, lambda_min_w = float(smallest(v)), smallest(w)
        z_norm = np.sqrt(largest_ratio(eliminated, v))
    return {
        "lambda_min_v": lambda_min_v,
        "rho_x": float(smallest(shared)) / t,
        "rho_z": float(smallest(own)) / t,
        "z_norm": float(z_norm),
        "pulls": pulls,
        "lambda_min_w": lambda_min_w,
        "sigma_max_b": np.linalg.norm(b, 2, axis=(1, 2)) if b.shape[1] and b.shape[2] else np.zeros(arms),
    }


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
            points=(2,), probes=(),
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
    for unit in units:
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
    so_far = [0] * len(todo)

    def advance(i: int, rounds: int) -> None:
        key = todo[i].experiment.key
        progress(key, rounds - so_far[i], totals[key])
        so_far[i] = rounds

    return advance


COSTS = {"HyRan": 12.0, "HyRanWithoutCrossBlocks": 8.0}
"""Rough duration of these policies relative to others."""


def cost(unit: Unit) -> float:
    """Return a rough cost of a unit, so that the longest start first."""
    e = unit.experiment
    per_round = 2000 + unit.arms * (e.d2 * (e.d1 + e.d2) + e.d1**2)
    weight = sum(COSTS.get(entry.policy, 1.0) for entry in unit.policies)
    return float(e.horizon * (unit.last - unit.first) * weight * per_round)
