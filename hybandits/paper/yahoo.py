"""The paper's experiment on Yahoo's front page: a reward model fitted to the first rounds of a click log, then bandits
simulated on the contexts of the rounds that follow, with the pools as they change.

The log is the user's own copy of R6A (it may not be passed on), or, without one, a log made from a known model in the
same format, which shows how everything runs and says nothing about Yahoo.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits import paper
from hybandits.engines import Engine
from hybandits.experiments.record import Entry, Experiment, Protocol
from hybandits.logs.problems import Problems
from hybandits.logs.store import HEADER, Log, LogError, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import YahooReader
from hybandits.offline import fit
from hybandits.offline.log_world import look_over
from hybandits.offline.view import View

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done since the last call, and how much there is in all."""


class Prepared(NamedTuple):
    """A log in the one form, and what reading it brought up (None: it was there already)."""

    log: Log
    problems: Problems | None


def prepare(
    out: Path,
    data: Path | None,
    *,
    train: int,
    rounds: int,
    seed: int = 0,
    strict: bool = False,
    progress: Progress = lambda what, done, total: None,
) -> Prepared:
    """The log to play on: `data` if that is a log of hybandits, else converted to `out`/log, where it is found again.

    Without data one is made, of as many rounds as are needed.
    """
    if data is not None and (data / HEADER).exists():
        return Prepared(Log(data), None)
    if data is None:
        data = out / "made"
        _make(
            SyntheticLog(rounds=train + rounds, seed=seed),
            data,
            days=max(1, (train + rounds) // train),
            progress=progress,
        )
    if not data.exists():
        raise LogError(f"{data} is not there: give the folder with the click log's files, or leave --data out")
    place = out / "log"
    reader = YahooReader([data])
    source = [[file.name, file.stat().st_size] for file in reader.files]
    if place.exists():
        log = Log(place)
        if log.about.get("source") != source:
            raise LogError(f"{place} was converted from other files than {data} holds now: give another --out")
        return Prepared(log, None)
    problems = Problems(strict=strict)
    reader.about["source"] = source
    log = convert(reader, place, problems, lambda read: progress("reading the log", read, reader.size))
    return Prepared(log, problems)


def _make(made: SyntheticLog, folder: Path, *, days: int, progress: Progress) -> None:
    """Write a made log unless it is there; a folder half written is begun anew."""
    note = folder.with_name("made.json")
    described = json.loads(json.dumps({**asdict(made), "days": days}))
    if folder.exists():
        if _read(note) == described:
            return
        if note.exists():
            raise LogError(f"{folder} holds a made log of other settings: give another --out, or remove it")
        shutil.rmtree(folder)
    made.write(folder, files=days, progress=lambda done: progress("making a log", done, made.rounds))
    note.write_text(json.dumps(described, indent=1) + "\n")


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text())
    except (OSError, ValueError):
        return None


# ------------------------------------------------------------------ records


class Plan(NamedTuple):
    """Which rounds are for what."""

    train: int
    start: int
    rounds: int


def plan(log: Log, *, train: int, rounds: int) -> Plan:
    """Fit on the first `train` rounds; simulate from the next file of the log on, as the paper does (the next day), or,
    if there are too few rounds from there on, from the next round on."""
    if log.about["kind"] != "R6A":
        raise LogError(
            f"the experiment is on R6A click logs, {log.path} is of the kind {log.about['kind']}: give --data"
        )
    if train + 1 > log.rounds:
        raise LogError(f"the log has {log.rounds:,} rounds, too few to fit on {train:,} and play: lower --train")
    later = [first for first in log.source_starts if first >= train]
    start = next((first for first in later if first + rounds <= log.rounds), train)
    if start + rounds > log.rounds:
        raise LogError(
            f"the log has {log.rounds:,} rounds, {train:,} to fit and {rounds:,} to play are asked for: lower --rounds "
            f"to {log.rounds - train:,} or less"
        )
    return Plan(train, start, rounds)


def records(
    prepared: Prepared,
    planned: Plan,
    protocols: Sequence[Protocol],
    *,
    arms: str = "articles",
    features: str = "das",
    trials: int = 1,
    seed: int = 0,
    defect: bool = False,
    policies: Sequence[str] = paper.YAHOO_POLICIES,
    engine: Engine | None = None,
    progress: Progress = lambda what, done, total: None,
) -> list[Experiment]:
    """The experiment as records, one per protocol, with the reward model fitted."""
    view = View(prepared.log, features=features, arms=arms)
    statistics = fit.collect(
        view, 0, planned.train, engine=engine, progress=lambda n: progress("fitting", n, planned.train)
    )
    fitted = fit.least_squares(statistics)
    played, chance_regret = look_over(
        view, fitted.model, planned.start, planned.start + planned.rounds,
        progress=lambda n: progress("looking over the rounds to play", n, planned.rounds),
    )  # fmt: skip
    trained = set(statistics.pulls())
    log = {
        "content": prepared.log.about["content"],
        "kind": prepared.log.about["kind"],
        "made": prepared.log.about.get("made"),
        "features": features,
        "arms": arms,
        **planned._asdict(),
        "trained_arms": len(trained),
        "unfitted_arms": len(set(played) - trained),
        "rank": fitted.rank,
        "parameters": fitted.parameters,
        "residual": fitted.residual,
        "left_out": statistics.left_out,
        "chance_regret": chance_regret,
        "model": _trained(fitted.model.plain()),
    }
    points = np.unique(np.linspace(0, planned.rounds, 101)[1:].round().astype(int).clip(1))
    made = []
    for protocol in protocols:
        entries = [paper.yahoo_entry(name, protocol) for name in policies]
        if defect:
            entries += [_defective(entry) for entry in entries if entry.name in paper.YAHOO_ORDER]
        made.append(
            Experiment(
                name="yahoo" if arms == "articles" else "yahoo-positions",
                protocol=protocol,
                d1=view.d1,
                d2=view.d2,
                arms=(len(played),),
                horizon=planned.rounds,
                seeds=(seed,),
                trials=trials,
                noise=paper.YAHOO_NOISE[protocol],
                law="log",
                policies=tuple(entries),
                points=tuple(points.tolist()),
                log=log,
            )
        )
    return made


def _trained(model: dict[str, Any]) -> dict[str, Any]:
    """Arms that were not in the fit, whose beta is 0, need no row."""
    kept = [i for i, row in enumerate(model["beta"]) if any(row)]
    return model | {"beta": [model["beta"][i] for i in kept], "names": [model["names"][i] for i in kept]}


def _defective(entry: Entry) -> Entry:
    """The policy as the released code feeds it: with the reward of the candidate in the policy's own place."""
    place = paper.YAHOO_ORDER.index(entry.name)
    return Entry(name=f"{entry.name}, defect", policy=entry.policy, settings=entry.settings, learns_from=place)
