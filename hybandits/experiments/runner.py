"""Runs experiments: unit by unit on an engine, each result saved at once, going on where an earlier run ended."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybandits.engines import Engine, Local, Report
from hybandits.experiments import design_matrix as diversity
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Experiment, ResultsError, Unit
from hybandits.experiments.results import (
    FORMAT,
    MANIFEST,
    Results,
    Run,
    read_manifest,
    read_results,
    read_unit,
    write_unit,
)
from hybandits.foundation.files import clear_parts, sha256, write_atomically
from hybandits.foundation.version import __version__
from hybandits.offline.log_world import LogWorld
from hybandits.policies.base import Policy
from hybandits.policies.by_name import make_policy
from hybandits.simulation.play import Player, play
from hybandits.simulation.worlds import World

TIMINGS = "timings.jsonl"
"""Seconds per unit, one line each; the only file that differs between two runs of the same record."""


class Watcher(Protocol):
    """Told how a run goes, to show it."""

    def plan(self, todo: Sequence[Unit], done: Sequence[Unit]) -> None:
        """Before anything runs."""

    def advance(self, unit: Unit, rounds: int) -> None:
        """So many rounds of the unit have been played."""

    def finish(self, unit: Unit) -> None:
        """The unit's results are on disk."""


class Unwatched:
    """Shows nothing."""

    def plan(self, todo: Sequence[Unit], done: Sequence[Unit]) -> None: ...

    def advance(self, unit: Unit, rounds: int) -> None: ...

    def finish(self, unit: Unit) -> None: ...


# ------------------------------------------------------------------ one unit


def policy_seed(unit: Unit, trial: int) -> int:
    """Seed of a policy's own draws: a function of the environment and the trial."""
    return int(np.random.SeedSequence((unit.seed, trial)).generate_state(1)[0])


class Job(NamedTuple):
    """A unit, and the folder of the log it plays on, if any: where that lies is nothing results depend on."""

    unit: Unit
    data: str | None = None


def run_unit(job: Job, report: Report = lambda rounds: None) -> list[Run]:
    """Play all policies and trials of a unit, on contexts drawn once."""
    unit = job.unit
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
    """Trials that share their contexts."""
    experiment = unit.experiment
    shape = {"d1": experiment.d1, "d2": experiment.d2, "arms": unit.arms, "horizon": experiment.horizon}
    cast = [(entry, trial) for entry in unit.policies for trial in trials]
    players = [
        Player(
            make_policy(entry.policy, entry.settings, **shape, seed=policy_seed(unit, trial)), trial, entry.learns_from
        )
        for entry, trial in cast
    ]
    measured: list[list[dict[str, Any] | None]] = [[] for _ in players]

    def probe(i: int, t: int, policy: Policy) -> None:
        measured[i].append(diversity.measure(policy, unit.arms))

    regret = play(players, world, experiment.points, probe=probe, probes=experiment.probes, progress=report)
    names = DESIGN + (DESIGN_BY_ARM if experiment.by_arm else ())
    runs = []
    for i, (entry, trial) in enumerate(cast):
        found = [m for m in measured[i] if m is not None]
        design = {name: np.array([m[name] for m in found]) for name in names} if found else None
        runs.append(Run(policy=entry.name, trial=trial, regret=regret[i], design=design))
    return runs


def timed_unit(job: Job, report: Report) -> tuple[list[Run], dict[str, float]]:
    """`run_unit`, the seconds it took by the clock and of the processor, and the process's peak memory so far."""
    clock, processor = time.perf_counter(), time.process_time()
    runs = run_unit(job, report)
    spent = {"seconds": time.perf_counter() - clock, "processor_seconds": time.process_time() - processor}
    return runs, {name: round(value, 3) for name, value in spent.items()} | {"peak_megabytes": _peak_memory()}


def _peak_memory() -> float:
    """Megabytes, 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)


def compile_loops(experiments: Iterable[Experiment], data: str | None = None) -> None:
    """Play two rounds of everything, so that workers find the machine code on disk instead of all making it."""
    seen: set[tuple[str, str]] = set()
    for experiment in experiments:
        kinds = {entry.policy: entry for entry in experiment.policies}
        law = experiment.law if experiment.log is None else "log"
        new = {kind: entry for kind, entry in kinds.items() if (law, kind) not in seen}
        if new:
            seen |= {(law, kind) for kind in new}
            short = replace(
                experiment, arms=(2,), horizon=2, seeds=experiment.seeds[:1], trials=1, trials_per_unit=0, points=(2,),
                probes=(), policies=tuple(new.values()),
            )  # fmt: skip
            for unit in short.units():
                run_unit(Job(unit, data))


# ------------------------------------------------------------------ many


def run(
    experiments: Iterable[Experiment],
    folder: Path | str,
    *,
    engine: Engine | None = None,
    watcher: Watcher | None = None,
    about: Mapping[str, Any] | None = None,
    command: str | None = None,
    data: Path | str | None = None,
) -> Results:
    """Run what is not in the folder yet and read everything back.

    Units that are there are kept if they are of the same record and version; otherwise ResultsError, and nothing is
    changed. `about` goes into the manifest. `command`: what a user types for these results; it joins the manifest's
    list. `data`: the log of records that play on one.
    """
    folder = Path(folder)
    watcher = watcher or Unwatched()
    records = list(experiments)
    prepare(folder)
    manifest = _manifest(folder, records, about or {}, command)
    todo: list[Unit] = []
    done: list[Unit] = []
    units = manifest["units"]
    for record in records:
        for unit in record.units():
            if _is_there(folder, unit, units.get(unit.path)):
                done.append(unit)
                # A run killed after it saved the unit has not noted it.
                units.setdefault(unit.path, sha256(folder / unit.path))
            else:
                todo.append(unit)
    todo.sort(key=cost, reverse=True)
    clear_parts([folder / MANIFEST, *(folder / unit.path for unit in (*todo, *done))])
    watcher.plan(todo, done)
    _write_manifest(folder, manifest)
    if todo:
        place = None if data is None else str(Path(data).resolve())
        compile_loops(records, place)
        jobs = [Job(unit, place if unit.experiment.log is not None else None) for unit in todo]
        work = (engine or Local()).map(timed_unit, jobs, lambda i, rounds: watcher.advance(todo[i], rounds))
        with closing(work):  # whatever happens here, workers end
            for i, (runs, spent) in work:
                unit = todo[i]
                manifest["units"][unit.path] = write_unit(folder, unit, runs)
                _write_manifest(folder, manifest)
                with (folder / TIMINGS).open("a") as file:
                    file.write(json.dumps({"unit": unit.path, "rounds": unit.rounds, **spent}) + "\n")
                watcher.finish(unit)
    return read_results(folder)


COSTS = {"HyRan": 12.0, "HyRanWithoutCrossBlocks": 8.0}


def cost(unit: Unit) -> float:
    """Rough cost of a unit, to begin with the longest: flops of scoring, times what a policy needs beyond it."""
    e = unit.experiment
    per_round = 2000 + unit.arms * (e.d2 * (e.d1 + e.d2) + e.d1**2)
    weight = sum(COSTS.get(entry.policy, 1.0) for entry in unit.policies)
    return float(e.horizon * (unit.last - unit.first) * weight * per_round)


def prepare(folder: Path) -> None:
    """Make the folder if it is missing; ResultsError if it is a file or cannot be written to."""
    probe = folder / ".hybandits-probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except (FileExistsError, NotADirectoryError):
        raise ResultsError(f"{folder} is a file: give a folder") from None
    except OSError as problem:
        raise ResultsError(f"{folder} cannot be written ({problem.strerror}): give another folder") from None


def _is_there(folder: Path, unit: Unit, digest: str | None) -> bool:
    path = folder / unit.path
    if not path.exists():
        return False
    _, header = read_unit(path, digest)
    if header["version"] != __version__:
        raise ResultsError(
            f"{path} was made by hybandits {header['version']}, this is {__version__}: give another folder"
        )
    if header["unit"] != unit.plain():
        raise ResultsError(f"{path} holds results of a different record{_difference(header['unit'], unit)}: {REMEDY}")
    return True


REMEDY = "give another folder, or remove this one"


def _difference(record: Mapping[str, Any], unit: Unit) -> str:
    """Which fields of the record differ, in words."""
    wanted, there = unit.plain()["experiment"], record.get("experiment", {})
    said = []
    for name in (name for name in wanted if wanted[name] != there.get(name)):
        if name == "seeds":
            counts = len(there.get(name, [])), len(wanted[name])
            said.append(
                "other seeds" if counts[0] == counts[1] else f"environments {counts[0]} there, {counts[1]} asked"
            )
        elif isinstance(wanted[name], str | int | float) or name == "arms":
            said.append(f"{WORDS.get(name, name)} {there.get(name)!r} there, {wanted[name]!r} asked")
        elif name == "policies":
            said.append("other policies or settings of them")
        elif name == "log":
            before, now = there.get(name) or {}, wanted[name] or {}
            said.append(f"log: {', '.join(key for key in {**before, **now} if before.get(key) != now.get(key))}")
    return f" ({', '.join(said) or 'in what is recorded'})"


WORDS = {"horizon": "rounds"}
"""Fields of a record that go by another name outside."""


def _manifest(folder: Path, records: list[Experiment], about: Mapping[str, Any], command: str | None) -> dict[str, Any]:
    """The folder's manifest with these records added."""
    path = folder / MANIFEST
    known: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    versions = {"python": platform.python_version(), **{n: version(n) for n in ("numpy", "numba", "pyarrow")}}
    if path.exists():
        known = read_manifest(path)
        if known["version"] != __version__:
            raise ResultsError(
                f"{folder} holds results of hybandits {known['version']}, this is {__version__}: {REMEDY}"
            )
        # A record that nothing was saved of binds nobody.
        kept = {
            f"{e['name']}/{e['protocol']}": e
            for e in known["experiments"]
            if any((folder / "units" / e["name"] / e["protocol"]).glob("*.parquet"))
        }
    commands = _commands(known if kept else None, command)
    if kept:
        for name in ("numpy", "numba"):  # they decide the last digits
            if known["versions"].get(name) != versions[name]:
                found = known["versions"].get(name)
                raise ResultsError(
                    f"{folder} holds results made with {name} {found}, this is {versions[name]}: {REMEDY}"
                )
        for name, value in about.items():
            if known.get(name, value) != value:
                raise ResultsError(f"{folder} holds results with {name} {known[name]}, asked for {value}: {REMEDY}")
    for record in records:
        there = kept.setdefault(record.key, record.plain())
        if there != record.plain():
            words = _difference({"experiment": there}, next(record.units()))
            raise ResultsError(f"{folder} holds results of a different {record.key}{words}: {REMEDY}")
    return {
        "format": FORMAT,
        "version": __version__,
        "versions": known["versions"] if kept and known else versions,
        **{name: value for name, value in known.items() if name in ABOUT},
        **about,
        **commands,
        "experiments": [kept[key] for key in sorted(kept)],
        "units": {path: digest for path, digest in known.get("units", {}).items() if (folder / path).exists()},
    }


ABOUT = ("scale", "seed")


def _commands(known: Mapping[str, Any] | None, command: str | None) -> dict[str, list[str]]:
    """The commands that filled the folder, each once, under their key of the manifest.

    Left out if results are there (`known` is their manifest) without the command that gave them: a list of the later
    ones alone would mislead.
    """
    if known is not None and "commands" not in known:
        return {}
    before = [] if known is None else known["commands"]
    commands = list(dict.fromkeys([*before, *([] if command is None else [command])]))
    return {"commands": commands} if commands else {}


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    manifest["units"] = dict(sorted(manifest["units"].items()))
    text = json.dumps(manifest, indent=1) + "\n"
    write_atomically(folder / MANIFEST, lambda name: Path(name).write_text(text))
