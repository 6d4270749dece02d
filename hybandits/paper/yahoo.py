"""The paper's experiment on Yahoo's front page: a reward model fitted to the first rounds of a click log, then bandits
simulated on the contexts of the rounds that follow, with the pools as they change.

The reward model may also come from a file (`paper.reward_model`). The log is the user's own copy of R6A, which may not
be passed on. Without one, a synthetic log in the same format is written from a known model; it shows how everything
runs and says nothing about Yahoo. The parameters are in `paper.settings`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.engines import Engine
from hybandits.evaluation import fit
from hybandits.evaluation.log_world import look_over
from hybandits.evaluation.view import View
from hybandits.experiments.record import Experiment, Protocol
from hybandits.logs.report import ReadReport
from hybandits.logs.store import HEADER, Log, LogError, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.logs.yahoo import YahooReader
from hybandits.paper.reward_model import read_model
from hybandits.paper.settings import (
    HYRAN_RELEASED,
    YAHOO_EXPERIMENTS,
    YAHOO_HYRAN_ROUNDS,
    YAHOO_NOISE,
    YAHOO_POLICIES,
    yahoo_entry,
)

StageProgress = Callable[[str, int, int], None]
"""Called with the name of a stage, the work done since the last call, and all the work of the stage."""


def prepare_log(
    out: Path,
    data: Path | None,
    *,
    train: int,
    rounds: int,
    seed: int = 0,
    progress: StageProgress = lambda what, done, total: None,
) -> tuple[Log, ReadReport | None]:
    """Prepare the log that the experiment is played on; LogError if there is none, or `out` has another one.

    The log is converted to `out`/log, and reused from there the next time. `data` is a folder with the files of R6A, or
    a log that was converted before; None for a synthetic log of `train` + `rounds` rounds. Returns the log, and the
    account of reading it; None if it had been read before.
    """
    if data is not None and (data / HEADER).exists():
        return Log(data), None
    converted = out / "log"
    if data is None:
        synthetic, days = SyntheticLog(rounds=train + rounds, seed=seed), max(1, (train + rounds) // train)
        if converted.exists():
            log = Log(converted)
            if log.about.get("synthetic") != asdict(synthetic) or len(log.source_starts) != days:
                raise LogError(f"{converted} is not this synthetic log: give another --out, or remove it")
            return log, None
        data = out / "synthetic"
        shutil.rmtree(data, ignore_errors=True)  # a log that was left half written
        synthetic.write(data, files=days, progress=lambda n: progress("writing a synthetic log", n, synthetic.rounds))
    if not data.exists():
        raise LogError(f"{data} does not exist: give the folder with the click log's files, or leave --data out")
    reader = YahooReader([data])
    source = [[file.name, file.stat().st_size] for file in reader.files]
    if converted.exists():
        log = Log(converted)
        if log.about.get("source") != source:
            raise LogError(f"{converted} was converted from other files than {data} holds now: give another --out")
        return log, None
    report = ReadReport()
    reader.about["source"] = source
    log = convert(reader, converted, report, lambda read: progress("reading the log", read, reader.size))
    return log, report


# ------------------------------------------------------------------ records


class SplitOfLog(NamedTuple):
    """The split of a log: the first `train` rounds to fit on, and `rounds` from `start` on to play."""

    train: int
    start: int
    rounds: int


def split_log(log: Log, *, train: int, rounds: int) -> SplitOfLog:
    """Split a log; LogError if it is not of the kind R6A or has too few rounds.

    The first `train` rounds are fitted. Play starts with the next file of the log, as in the paper (the next day), or
    with the next round if there are too few rounds from that file on.
    """
    if log.about["kind"] != "R6A":
        raise LogError(
            f"the experiment is on R6A click logs, {log.path} is of the kind {log.about['kind']}: give --data"
        )
    later = [first for first in log.source_starts if first >= train]
    start = next((first for first in later if first + rounds <= log.rounds), train)
    if start + rounds > log.rounds:
        remedy = f"lower --rounds to {log.rounds - train:,} or less" if log.rounds > train else "lower --train"
        raise LogError(f"the log has {log.rounds:,} rounds, too few to fit {train:,} and play {rounds:,}: {remedy}")
    return SplitOfLog(train, start, rounds)


def experiments(
    log: Log,
    split: SplitOfLog,
    protocols: Sequence[Protocol],
    *,
    arms: str = "articles",
    trials: int = 1,
    seed: int = 0,
    policies: Sequence[str] = YAHOO_POLICIES,
    model: Path | None = None,
    engine: Engine | None = None,
    progress: StageProgress = lambda what, done, total: None,
) -> list[Experiment]:
    """The experiment as records, one per protocol, each with its reward model.

    The model is fitted to the log, or read from the file `model`.

    `arms` are "articles", as in the paper's text, or "positions" in a line's list, as in its code. `trials` differ by
    noise. `engine` fits; by default this process does.
    """
    view = View(log, features="das", arms=arms)
    origin: dict[str, Any]
    if model is not None:
        rewards, name, digest = read_model(model, view)
        trained, origin = set(rewards.names), {"model_file": [name, digest]}
    else:
        statistics = fit.collect(
            view, 0, split.train, engine=engine, progress=lambda n: progress("fitting", n, split.train)
        )
        fitted = fit.least_squares(statistics)
        rewards, trained = fitted.model, set(statistics.pulls())
        origin = {
            "rank": fitted.rank,
            "parameters": fitted.parameters,
            "residual": fitted.residual,
            "left_out": statistics.left_out,
        }
    played, uniform_choice_regret = look_over(
        view, rewards, split.start, split.start + split.rounds,
        progress=lambda n: progress("measuring the rounds to play", n, split.rounds),
    )  # fmt: skip
    about = {
        "content": log.about["content"],
        "kind": log.about["kind"],
        "synthetic": log.about.get("synthetic"),
        "features": "das",
        "arms": arms,
        **split._asdict(),
        "trained_arms": len(trained),
        "unfitted_arms": len(set(played) - trained),
        **origin,
        "uniform_choice_regret": uniform_choice_regret,
        "model": _without_zero_rows(rewards.plain()),
    }
    points = np.unique(np.linspace(0, split.rounds, 101)[1:].round().astype(int).clip(1)).tolist()
    stops = {}
    if log.about.get("synthetic") is not None and split.rounds > YAHOO_HYRAN_ROUNDS:
        last = max([points[0], *(t for t in points if t <= YAHOO_HYRAN_ROUNDS)])
        stops = dict.fromkeys(("HyRan", HYRAN_RELEASED), last)
    return [
        Experiment(
            name=YAHOO_EXPERIMENTS[arms],
            protocol=protocol,
            d1=view.d1,
            d2=view.d2,
            arms=(len(played),),
            horizon=split.rounds,
            seeds=(seed,),
            trials=trials,
            noise=YAHOO_NOISE[protocol],
            law="log",
            policies=tuple(replace(yahoo_entry(name, protocol), rounds=stops.get(name)) for name in policies),
            points=tuple(points),
            log=about,
        )
        for protocol in protocols
    ]


def _without_zero_rows(model: dict[str, Any]) -> dict[str, Any]:
    """A model without the rows of arms that were not in the fit, whose beta is 0."""
    kept = [i for i, row in enumerate(model["beta"]) if any(row)]
    return model | {"beta": [model["beta"][i] for i in kept], "names": [model["names"][i] for i in kept]}
