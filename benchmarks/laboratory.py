"""The laboratory: the compiled loop beside the textbook, the paper's evaluation at full length, a fresh clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import JUDGED, Measurement, Section, microseconds, number
from benchmarks.textbook import Textbook
from benchmarks.timing import interleave
from benchmarks.workloads import WORKLOADS, Plan
from hybandits import Constant, HyLinUCB, paper
from hybandits.engines import ProcessEngine
from hybandits.experiments import runner
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Outcome, Results
from hybandits.paper.published_numbers import agrees, published
from hybandits.simulation.play import play_rounds
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Synthetic

LOOP_TARGET = 100.0
UCB_MINUTES, ALL_MINUTES = 8.0, 25.0
FIRST_MINUTES, AGAIN_MINUTES = 5.0, 2.0
SETTINGS = ("setting-1", "setting-2", "setting-3")
WHOLE = (*paper.PAPER_POLICIES, *paper.BASELINES)


# ------------------------------------------------------------------ the loop


class LoopPlayer:
    """HyLinUCB in the compiled loop, over the same block of rounds again and again."""

    def __init__(self, block: Block, d1: int, d2: int) -> None:
        self.block = block
        self.policy = HyLinUCB(d1=d1, d2=d2, exploration=Constant(alpha=1.0))
        self.picks = np.empty(len(block.best), np.int64)
        self.sample()

    def sample(self) -> float:
        """Seconds per round."""
        start = time.perf_counter()
        play_rounds(self.policy, self.block.rounds, self.block.means, self.picks)
        return (time.perf_counter() - start) / len(self.picks)


class TextbookLoop:
    """The textbook, round after round from context to regret."""

    def __init__(self, block: Block, d1: int, d2: int, rounds: int) -> None:
        self.book = Textbook(d1, d2, block.means.shape[1])
        shown = block.rounds
        self.rounds = [(shown.x[t], shown.z[t], block.means[t], block.best[t]) for t in range(rounds)]
        self.regret = 0.0
        self.sample()

    def sample(self) -> float:
        """Seconds per round."""
        start = time.perf_counter()
        for x, z, means, best in self.rounds:
            arm = self.book.choose(x, z)
            self.book.learn(arm, x[arm], z[arm], means[arm])
            self.regret += best - means[arm]
        return (time.perf_counter() - start) / len(self.rounds)


def run_loop(plan: Plan) -> Section:
    """Rounds of HyLinUCB in the compiled loop beside the textbook's, setting 1's shape."""
    section = Section("loop", "The compiled round loop", ("", "us min", "us median", *JUDGED))
    shape = WORKLOADS["W1"]
    block = next(Synthetic(d1=shape.d1, d2=shape.d2, arms=shape.arms, seed=1).rounds(800))
    plan.say("loop: the compiled loop and the textbook in turn")
    players = {
        "compiled": LoopPlayer(block, shape.d1, shape.d2).sample,
        "textbook": TextbookLoop(block, shape.d1, shape.d2, 40 if plan.quick else 200).sample,
    }
    timings = interleave(players, plan.repeats(15, 3))
    ratio = timings["textbook"].over(timings["compiled"])
    section.add("textbook", *microseconds(timings["textbook"]))
    measurement = Measurement("W1", "compiled loop against the textbook loop", "at least", LOOP_TARGET, ratio)
    section.add("compiled loop", *microseconds(timings["compiled"]), measurement=measurement)
    section.data.append({name: {"min": pair.min, "median": pair.median} for name, pair in timings.items()})
    return section


# ------------------------------------------------------------------ the paper at full length


def _timed(records: list[Experiment], folder: Path, plan: Plan, what: str) -> tuple[Results, float, float]:
    """Results, minutes by the clock on two workers, minutes of processor time over all units."""
    runner.compile_loops(records)
    start = time.perf_counter()
    plan.say(f"laboratory, {what}: {sum(len(list(record.units())) for record in records)} units")
    results = runner.run(records, folder, engine=ProcessEngine(2))
    minutes = (time.perf_counter() - start) / 60
    timings = [json.loads(line) for line in (folder / runner.TIMINGS).read_text().splitlines()]
    return results, minutes, sum(line["processor_seconds"] for line in timings) / 60


def run_paper(plan: Plan) -> Section:
    """Settings 1 to 3, released protocol, two workers: minutes, and how close to the published numbers it comes."""
    title = "The paper at full length" if not plan.quick else "The paper, short version (targets are for the full one)"
    section = Section("paper", title, ("", "minutes", "processor minutes", *JUDGED))
    records = paper.experiments(SETTINGS, ("released",), scale="quick" if plan.quick else "paper")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, policies, target in (
            ("three UCB algorithms", paper.PAPER_POLICIES, UCB_MINUTES),
            ("with HyRan, both variants, and SupLinUCB", WHOLE, ALL_MINUTES),
            (paper.HYTHOMPSON_TOLD, (paper.HYTHOMPSON_TOLD,), None),
        ):
            chosen = [record.only(policies) for record in records]
            results, minutes, processor = _timed(chosen, folder / str(len(policies)), plan, what)
            measured = number(minutes), number(processor)
            section.data.append({"what": what, "minutes": minutes, "processor_minutes": processor})
            if target is not None:
                measurement = Measurement("settings 1-3", what, "at most", target, minutes, " min")
                section.add(what, *measured, measurement=measurement)
            else:
                section.add(what, *measured)
            if policies is WHOLE:
                _closeness(section, results)
            if target is None:
                _thompson(section, results)
    return section


def _closeness(section: Section, results: Results) -> None:
    """Read-outs of T >= 10,000 within 1 % or the error of the panel (UCB), within 10 % (HyRan as released)."""
    section.rule()
    for policies, what in (
        (paper.PAPER_POLICIES, "UCB read-outs within 1 % or the error of the panel"),
        ((paper.HYRAN_RELEASED,), f"{paper.HYRAN_RELEASED} read-outs within 10 %"),
    ):
        read_outs = [row for outcome in results.outcomes.values() for row in _read_outs(outcome, policies)]
        within = sum(agrees(row["experiment"], row["policy"], row["ours"], row["published"]) for row in read_outs)
        total = len(read_outs)
        section.data += read_outs
        measured = 100 * within / max(total, 1)
        measurement = Measurement("settings 1-3", f"{what} ({within} of {total})", "at least", 100.0, measured, " %")
        section.add(f"{what}: {within} of {total}", "", "", measurement=measurement)


def _read_outs(outcome: Outcome, policies: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Published numbers at T >= 10,000 and ours beside them."""
    name, points = outcome.experiment.name, outcome.experiment.points
    for arms in outcome.arms:
        for policy in policies:
            curve = dict(zip(points, outcome.regret(policy, arms).mean(axis=0).tolist(), strict=True))
            for t, value in published(name, policy, arms).items():
                if t >= 10_000 and t in curve:
                    where = {"experiment": name, "policy": policy, "arms": arms, "rounds": t}
                    yield {**where, "published": value, "ours": curve[t]}


def _thompson(section: Section, results: Results) -> None:
    """Regret at T of HyThompson with fixed settings over that of the best published algorithm."""
    fixed = paper.HYTHOMPSON_TOLD
    for (name, _), outcome in results.outcomes.items():
        best = 0.0
        for arms in outcome.arms:
            read_outs = [published(name, policy, arms) for policy in (*paper.PAPER_POLICIES, paper.HYRAN_RELEASED)]
            ends = [values[outcome.experiment.horizon] for values in read_outs if outcome.experiment.horizon in values]
            if ends:
                best = max(best, outcome.final(fixed, arms).mean() / min(ends))
        if best:
            target = 0.5 if name == "setting-3" else 0.25
            measurement = Measurement(name, f"{fixed} over the best published", "at most", target, best)
            section.add(f"{name}: {fixed} over the best published", "", "", measurement=measurement)


# ------------------------------------------------------------------ a fresh clone


def run_fresh(plan: Plan) -> Section:
    """`make reproduce` in a fresh clone, then once more with the results removed."""
    section = Section("fresh", "make reproduce in a fresh clone", ("", "minutes", *JUDGED))
    root = Path(__file__).parent.parent
    if shutil.which("git") is None or not (root / ".git").exists() or plan.quick:
        section.notes.append("left out: a quick run, or no git checkout to clone")
        return section
    with tempfile.TemporaryDirectory() as name:
        clone = Path(name) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(root), str(clone)], check=True)
        hidden = ("VIRTUAL_ENV", "PYTHONPATH", "NUMBA_CACHE_DIR", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
        environment = {key: value for key, value in os.environ.items() if key not in hidden}
        for what, target in (("install, compile, run", FIRST_MINUTES), ("run again, results removed", AGAIN_MINUTES)):
            shutil.rmtree(clone / "out", ignore_errors=True)
            plan.say(f"fresh clone: {what}")
            start = time.perf_counter()
            done: Any = subprocess.run(
                ["make", "reproduce"], cwd=clone, env=environment, capture_output=True, text=True
            )
            minutes = (time.perf_counter() - start) / 60
            if done.returncode:
                section.notes.append(f"make reproduce failed: {done.stderr.strip().splitlines()[-1:]}")
                return section
            section.data.append({"what": what, "minutes": minutes})
            section.add(what, number(minutes), measurement=Measurement("all", what, "at most", target, minutes, " min"))
    return section
