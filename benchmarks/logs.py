"""Logs: reading, fitting, simulating and replaying on them, the Yahoo experiment at full length, and coverage."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import child, coverage
from benchmarks.reading import measure_reading
from benchmarks.report import JUDGED, Measurement, Section, number
from benchmarks.timing import Pair, each, interleave
from benchmarks.workloads import Plan
from hybandits import paper
from hybandits.engines import ProcessEngine, Progress, Report, SerialEngine, Work
from hybandits.evaluation import EvaluationPlan, Learning, fit
from hybandits.evaluation.log_world import LogWorld
from hybandits.evaluation.view import View
from hybandits.experiments import runner
from hybandits.logs.formats import reader_of
from hybandits.logs.report import ReadReport
from hybandits.logs.store import Log, convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.paper import yahoo
from hybandits.policies.by_name import make_policy
from hybandits.simulation.play import Player, play

READING_TARGET = 15.0
FITTING_TARGET = 1_500_000.0
PLAYING_TARGET = 100_000.0
REPLAY_TARGET = 100_000.0
YAHOO_MINUTES = 10.0
MEGABYTES = 1_000.0


def run_reading(plan: Plan) -> Section:
    """From gzip to arrays, beside plain Python readers."""
    section = Section("reading", "Reading a click log", ("", "us a line", "plain reader", *JUDGED))
    plan.say("reading: synthetic logs, the plain readers in turn")
    rounds, repeats = (40_000, 2) if plan.quick else (400_000, 5)
    readings = measure_reading(rounds=rounds, plain_rounds=5_000 if plan.quick else 20_000, repeats=repeats)
    section.data.append(readings)
    rows = {"R6A": READING_TARGET, "R6B": None, "R6A, no two pools alike": None}
    for kind, target in rows.items():
        one = readings[kind]
        cells = kind, number(one["microseconds_per_line"]), number(one["plain_microseconds_per_line"])
        ratio = Pair(one["ratio_by_min"], one["ratio_by_median"])
        if target is None:
            section.add(*cells, "", f"{number(ratio.min)}x / {number(ratio.median)}x")
        else:
            section.add(
                *cells, measurement=Measurement(kind, "gzip to arrays, against plain Python", "at least", target, ratio)
            )
    return section


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="hybandits-bench-")


@cache
def _log(rounds: int) -> Log:
    """A synthetic log in the one form."""
    folder = Path(_folder().name) / str(rounds)
    SyntheticLog(rounds=rounds).write(folder / "raw")
    return convert(reader_of(folder / "raw"), folder / "log", ReadReport())


def _rate(seconds: Pair) -> Pair:
    return Pair(1 / seconds.min, 1 / seconds.median)


def run_fitting(plan: Plan) -> Section:
    """The hybrid model from Parquet, and rounds played and replayed, on one core."""
    section = Section("logs", "Rounds of a log per second, one core, d1 = 36, d2 = 6", ("", "us a round", *JUDGED))
    plan.say("logs: making one")
    log = _log(100_000 if plan.quick else 2_000_000)
    view = View(log)
    fitted = fit.least_squares(fit.collect(view, 0, 50_000))
    start, rounds = log.rounds // 4, log.rounds // (4 if plan.quick else 10)
    world = LogWorld(view, fitted.model, start=start, noise=1e-5)
    shape = {"d1": 36, "d2": 6, "arms": len(view.names), "horizon": rounds, "seed": 0}

    def simulate(name: str) -> int:
        entry = paper.yahoo_entry(name, "released")
        play([Player(make_policy(entry.policy, entry.settings, **shape))], world, [rounds])
        return rounds

    def replay() -> int:
        entry = paper.yahoo_entry("HyLinUCB", "released")
        policy = make_policy(entry.policy, entry.settings, **shape)
        EvaluationPlan(view, {"it": Learning(policy)}, estimators=("replay",), stop=rounds).gather(SerialEngine())
        return rounds

    def collect() -> int:
        return fit.collect(view, engine=SerialEngine()).rounds

    works: dict[str, tuple[Callable[[], int], str, float | None]] = {
        "fitting": (collect, "fitting from Parquet", FITTING_TARGET),
        "replay": (replay, "replay of HyLinUCB from Parquet", REPLAY_TARGET),
        **{
            name: (partial(simulate, name), f"simulation, {name}", target)
            for name, target in (*((p, PLAYING_TARGET) for p in paper.PAPER_POLICIES), (paper.HYTHOMPSON_TOLD, None))
        },
    }
    plan.say("logs: fitting, replaying and simulating in turn")
    for work, _, _ in works.values():
        work()
    timings = interleave({name: each(work) for name, (work, _, _) in works.items()}, plan.repeats(5, 2))
    for name, (_, what, target) in works.items():
        rate = _rate(timings[name])
        section.data.append({"what": what, "rounds_per_second": {"min": rate.min, "median": rate.median}})
        if target is None:
            section.add(what, number(1e6 * timings[name].min), "", f"{number(rate.min)} / {number(rate.median)}/s")
        else:
            section.add(
                what,
                number(1e6 * timings[name].min),
                measurement=Measurement("R6A", what, "at least", target, rate, "/s"),
            )
    return section


def _with_peak(work: Work, task: Any, report: Report) -> tuple[Any, float]:
    return work(task, report), child.peak() / 1e6


class PeakEngine:
    """Two processes; `megabytes` is the most memory that one of them has used."""

    megabytes = 0.0

    def map(self, work: Work, tasks: Sequence[Any], progress: Progress) -> Generator[tuple[int, Any], None, None]:
        for i, (result, megabytes) in ProcessEngine(2).map(partial(_with_peak, work), tasks, progress):
            self.megabytes = max(self.megabytes, megabytes)
            yield i, result


def run_yahoo(plan: Plan) -> Section:
    """The Yahoo experiment on a synthetic log, released protocol, two workers: minutes and memory."""
    train, rounds = paper.QUICK_YAHOO if plan.quick else (paper.YAHOO_TRAIN, paper.YAHOO_ROUNDS)
    section = Section("yahoo", f"The Yahoo experiment, {rounds:,} rounds of a synthetic log", ("", "minutes", *JUDGED))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan.say("yahoo: making and reading the log")
        start = time.perf_counter()
        log, _ = yahoo.prepare_log(folder, None, train=train, rounds=rounds)
        section.add(f"making and reading {train + rounds:,} lines", number((time.perf_counter() - start) / 60))
        split = yahoo.split_log(log, train=train, rounds=rounds)
        engine = PeakEngine()
        for what, policies, target in (
            ("three UCB algorithms", paper.PAPER_POLICIES, YAHOO_MINUTES),
            ("HyRan", ("HyRan",), None),
        ):
            length = split if target or plan.quick else split._replace(rounds=rounds // 20)
            records = yahoo.experiments(log, length, ("released",), policies=policies)
            runner.compile_loops(records, str(log.path))
            plan.say(f"yahoo: {what}")
            start = time.perf_counter()
            out = folder / what
            runner.run(records, out, engine=engine, data=log.path)
            minutes = (time.perf_counter() - start) / 60
            timings: list[dict[str, Any]] = [json.loads(x) for x in (out / runner.TIMINGS).read_text().splitlines()]
            section.data.append({"what": what, "rounds": length.rounds, "minutes": minutes, "timings": timings})
            if target is None:
                section.add(f"{what}, {length.rounds:,} rounds", number(minutes))
            else:
                section.add(
                    what, number(minutes), measurement=Measurement("yahoo", what, "at most", target, minutes, " min")
                )
        section.add(
            "memory of a worker",
            "",
            measurement=Measurement("yahoo", "memory", "below", MEGABYTES, engine.megabytes, " MB"),
        )
    return section


def run_coverage(plan: Plan) -> Section:
    """Share of 95 % intervals that cover the true value, per estimator."""
    section = Section("coverage", "Coverage of 95 % intervals on synthetic logs", ("", *JUDGED))
    repetitions = 20 if plan.quick else coverage.REPETITIONS
    plan.say(f"coverage: {repetitions} synthetic logs of each kind")
    result = coverage.run(repetitions, coverage.ROUNDS)
    section.data.append(result)
    lowest: dict[str, float] = {}
    for row in result["rows"]:
        name = f"{row['estimator']}, {row['interval']}"
        lowest[name] = min(lowest.get(name, 1.0), row["coverage"])
    for name, share in lowest.items():
        measurement = Measurement("synthetic logs", name, "at least", 100 * coverage.NEEDED, 100 * share, " %")
        section.add(f"{name}: least over policies, differences and logging", measurement=measurement)
    return section
