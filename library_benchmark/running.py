"""Running the benchmark: one small file for each (stream, seed, method), so that a killed run continues."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import hybandits
from hybandits.engines import ProcessEngine, SerialEngine
from hybandits.foundation.files import clear_parts, make_writable_folder, write_atomically
from library_benchmark.methods import METHODS, CannotTakePartError, Method
from library_benchmark.streams import STREAMS, Stream

SAY_EVERY = 30.0
"""Seconds between two lines of progress."""

ABOUT = "about.json"
"""The file that says which code and versions the runs of a folder are from."""

Record = dict[str, Any]


class OtherRunsError(Exception):
    """A folder holds runs of other code or versions."""


def about() -> dict[str, str]:
    """Return the versions of the libraries and the digest of the code, on which results depend besides the tasks."""
    digest = hashlib.sha256()
    for package in (Path(__file__).parent, Path(hybandits.__file__).parent):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    versions = {"code": digest.hexdigest()}
    for library in sorted({entry.library for entry in METHODS.values()} - {"hybandits"} | {"numpy"}):
        with contextlib.suppress(PackageNotFoundError):
            versions[library] = version({"sklearn": "scikit-learn"}.get(library, library))
    return versions


def check_folder(folder: Path) -> None:
    """Record the code and versions in the folder; OtherRunsError if its runs are of others."""
    path, mine = folder / ABOUT, about()
    there = json.loads(path.read_text()) if path.exists() else mine
    if there != mine:
        names = ", ".join(name for name in {**there, **mine} if there.get(name) != mine.get(name))
        raise OtherRunsError(
            f"{folder} holds runs of another state ({names} differ): remove it, or give another folder with --runs"
        )
    write_atomically(path, lambda name: Path(name).write_text(json.dumps(mine, indent=1) + "\n"))


class Task(NamedTuple):
    """One run: a method with one of its settings in one stream, with one seed."""

    stream: str
    method: str
    variant: str
    seed: int
    rounds: int

    @property
    def file(self) -> str:
        """The name of its file, unique within a folder."""
        return "--".join(re.sub(r"[^A-Za-z0-9.]+", "-", str(part)) for part in self) + ".json"


def tasks(
    streams: Iterable[Stream],
    methods: Iterable[Method],
    seeds: Sequence[int],
    *,
    most: int | None = None,
    grids: bool = True,
) -> list[Task]:
    """All runs, seed by seed, so that an early end leaves whole seeds; `most` limits the rounds."""
    streams, methods = list(streams), list(methods)
    return [
        Task(stream.name, method.name, variant, seed, min(stream.rounds, most or stream.rounds))
        for seed in seeds
        for stream in streams
        for method in methods
        for variant in (method.variants(stream) if grids else [""])
    ]


# ------------------------------------------------------------------ one run


def _first_line(problem: Exception) -> str:
    return next(iter(str(problem).splitlines()), "")[:200]


def run_task(task: Task, report: Callable[[int], None] = lambda amount: None) -> Record:
    """Play one run; a method that cannot take part or raises is recorded with the reason."""
    stream, entry = STREAMS[task.stream], METHODS[task.method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return play(task, stream, entry)
        except CannotTakePartError as problem:
            return _record(task, reason=str(problem))
        except Exception as problem:  # whatever a library raises is its result
            return _record(task, reason=f"{type(problem).__name__}: {_first_line(problem)}")


def play(task: Task, stream: Stream, entry: Method) -> Record:
    """Choose and learn round by round; rewards come late where the stream says so."""
    entry.check(stream)
    method = entry.make(stream, task.seed, task.rounds, **entry.variants(stream)[task.variant])
    waiting: deque[tuple[Any, int, float, Any]] = deque()
    delay = stream.delay
    reward, uniform, best, seconds = [], [], [], 0.0
    for shown, rewards, means in stream.play(task.seed, task.rounds):
        start = time.process_time()
        place, receipt = method.choose(shown)
        seconds += time.process_time() - start
        reward.append(float(means[place]))
        uniform.append(float(means.mean()))
        best.append(float(means.max()))
        waiting.append((shown, place, float(rewards[place]), receipt))
        if len(waiting) > delay:
            arrived = waiting.popleft()
            start = time.process_time()
            method.learn(*arrived)
            seconds += time.process_time() - start
    return _record(
        task, reward=math.fsum(reward), uniform=math.fsum(uniform), best=math.fsum(best), seconds=round(seconds, 4)
    )


def _record(task: Task, *, reason: str = "", **numbers: float) -> Record:
    empty = dict.fromkeys(("reward", "uniform", "best", "seconds"), math.nan)
    return {**task._asdict(), **empty, **numbers, "reason": reason}


# ------------------------------------------------------------------ all runs


def run(todo: Sequence[Task], folder: Path, *, workers: int, say: Callable[[str], None] = lambda line: None) -> None:
    """Run what is not in the folder yet, in so many processes; 0 for this one."""
    make_writable_folder(folder)
    check_folder(folder)
    clear_parts([folder / task.file for task in todo])
    missing = [task for task in todo if not (folder / task.file).exists()]
    say(f"{len(todo):,} runs, of which {len(todo) - len(missing):,} are there already")
    if not missing:
        return
    # One run of every method in this process first: what is compiled is then there for all workers.
    first = {task.method: task for task in reversed(missing) if not task.variant}
    for task in first.values():
        if METHODS[task.method].library == "hybandits":
            run_task(task._replace(rounds=5))
    start = reported = time.monotonic()
    engine = ProcessEngine(workers) if workers else SerialEngine()
    work = engine.map(run_task, missing, progress=lambda task, amount: None)
    with closing(work):
        for done, (i, record) in enumerate(work, 1):
            text = json.dumps(record, allow_nan=True) + "\n"
            write_atomically(folder / missing[i].file, lambda name, text=text: Path(name).write_text(text))  # type: ignore[misc]
            now = time.monotonic()
            if now - reported >= SAY_EVERY or done == len(missing):
                reported = now
                left = (now - start) / done * (len(missing) - done)
                say(f"{done:,} of {len(missing):,} runs, {(now - start) / 60:.1f} min, about {left / 60:.0f} min left")


def read(folder: Path, wanted: Sequence[Task] | None = None) -> Iterator[Record]:
    """The records of a folder, or those of the given tasks."""
    paths = sorted(folder.glob("*--*.json")) if wanted is None else [folder / task.file for task in wanted]
    for path in paths:
        if path.exists():
            yield json.loads(path.read_text())


def say(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)
