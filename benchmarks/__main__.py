"""`python -m benchmarks [PART ...]`: measure, print a table for each part, and write everything as JSON.

Every figure is measured in this run on one thread (those of the laboratory in two processes of one thread each) and is
given by the minima and by the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"  # read when NumPy and numba are first imported

QUICK = ("W1", "W3-400", "W4")
"""Workloads of a quick run unless others are named; the peers get only the first."""

PARTS = {
    "rounds": (2, "choose + learn from Python, beside a textbook implementation"),
    "peers": (4, "the same round in other libraries"),
    "roofline": (1, "the scoring kernel beside what the machine can do"),
    "thompson": (1, "a decision of HyThompson with fixed settings, beside one of HyLinUCB"),
    "batch": (2, "many decisions at once, beside the scoring kernel and choose"),
    "propensities": (2, "propensities of HyThompson, how close and how fast"),
    "dimension": (1, "choices and the longest learn with many shared features"),
    "scale": (1, "learning among 100,000 arms beside learning among 10"),
    "memory": (1, "bytes per arm and of a process that knows a million arms"),
    "start": (4, "importing, --help, and the first decision after installing the wheel"),
    "loop": (1, "the compiled round loop beside the textbook"),
    "paper": (22, "the paper's settings at full length on two workers"),
    "fresh": (5, "make reproduce in a fresh clone"),
    "reading": (1, "reading click logs beside a plain reader"),
    "logs": (2, "fitting, replaying and simulating on a log"),
    "yahoo": (5, "the Yahoo experiment at full length on two workers"),
    "coverage": (15, "how often intervals of offline evaluation cover the truth"),
    "service-load": (3, "the decision service under load, beside an echo and another stack"),
    "service-restart": (12, "the decision service: a million rewards, restarting and verifying"),
    "service-several": (3, "the decision service: two servers beside one, and memory"),
    "learned-regret": (60, "regret of policies that learn their settings, beside fixed settings"),
    "learned-rescaled": (5, "the same with rewards and features rescaled"),
    "learned-cost": (6, "what learning the settings costs in a round"),
    "learned-longest": (4, "the longest single learn"),
    "learned-memory": (1, "bytes per arm of an estimator that learns its settings"),
    "learned-drift": (40, "regret where worlds change, and where they do not, with and without memories"),
    "learned-drift-cost": (3, "what memories cost in a round, and in bytes per arm"),
}
"""Every part with the minutes that it takes, roughly, and what it measures; in the order in which they run."""

GROUPS = {stem: tuple(name for name in PARTS if name.startswith(f"{stem}-")) for stem in ("learned", "service")}
"""Names that stand for several parts."""


class _Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"benchmarks: {message}\n")


def _chosen(names: list[str], known: Collection[str], option: str, parser: _Parser) -> tuple[str, ...]:
    """The chosen names in the order in which they run; an error lists those that do not exist."""
    names = [each for name in names for each in GROUPS.get(name, (name,))]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = ", ".join(map(repr, unknown)) or "nothing"
        parser.error(f"{option}: got {wrong}, choose from {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _overview() -> str:
    """The parts and their minutes, for --help."""
    lines = [f"  {name:<18} {minutes:>3} min  {what}" for name, (minutes, what) in PARTS.items()]
    total = sum(minutes for minutes, _ in PARTS.values())
    return "\n".join(
        ["parts, with about how many minutes they take on two quiet cores:", *lines, f"  {'in all':<18} {total:>3} min"]
    )


def _run(name: str, plan: Any, budget: float) -> Any:
    """Measure one part."""
    from benchmarks import (
        batch,
        dimension,
        footprint,
        laboratory,
        learned,
        learned_cost,
        learned_drift,
        libraries,
        logs,
        roofline,
        rounds,
        service,
    )

    if name == "peers":
        return libraries.run(plan, budget)
    runs = {
        "rounds": rounds.run,
        "roofline": roofline.run,
        "thompson": rounds.run_thompson,
        "batch": batch.run,
        "propensities": batch.run_propensities,
        "dimension": dimension.run,
        "scale": rounds.run_scale,
        "memory": footprint.run_memory,
        "start": footprint.run_start,
        "loop": laboratory.run_loop,
        "paper": laboratory.run_paper,
        "fresh": laboratory.run_fresh,
        "reading": logs.run_reading,
        "logs": logs.run_fitting,
        "yahoo": logs.run_yahoo,
        "coverage": logs.run_coverage,
        "service-load": service.run_load,
        "service-restart": service.run_restart,
        "service-several": service.run_several,
        "learned-regret": learned.run_regret,
        "learned-rescaled": learned.run_rescaled,
        "learned-cost": learned_cost.run_cost,
        "learned-longest": learned_cost.run_longest,
        "learned-memory": learned_cost.run_memory,
        "learned-drift": learned_drift.run_regret,
        "learned-drift-cost": learned_drift.run_cost,
    }
    return runs[name](plan)


def main() -> None:
    """Parse arguments, run the parts in order, print and write what they measured."""
    parser = _Parser(
        prog="python -m benchmarks", description=__doc__, epilog=_overview(), allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to run (default: all), see below")
    parser.add_argument("--json", metavar="PATH", help="also write everything to this file")
    parser.add_argument("--quick", action="store_true", help="a short run that shows that it works; figures are rough")
    parser.add_argument("--workloads", metavar="NAMES", help="for example W1,W4 (default: all, with --quick a few)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="per peer and workload (default: 1.5)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs per world in learned-* (default: 16, quick 2)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed in learned-* (default: 0)")
    given = parser.parse_args()
    if given.runs is not None and given.runs < 1:
        parser.error(f"--runs: got {given.runs}, pass at least 1")
    if given.seed < 0:
        parser.error(f"--seed: got {given.seed}, pass 0 or more")
    parts = _chosen(given.parts, PARTS, "PART", parser) if given.parts else tuple(PARTS)
    if given.budget is not None and not 0 < given.budget < 3600:
        parser.error(f"--budget: got {given.budget:g}, pass seconds between 0 and 3600")
    if given.json is not None and (Path(given.json).is_dir() or not Path(given.json).absolute().parent.is_dir()):
        parser.error(f"--json: cannot write {given.json}: give a file in a folder that exists")

    from benchmarks.report import Progress, machine, show, show_summary
    from benchmarks.workloads import WORKLOADS, Plan

    names = tuple(WORKLOADS)
    if given.workloads is not None:
        wanted = [name.strip() for name in given.workloads.split(",") if name.strip()]
        names = _chosen(wanted, names, "--workloads", parser)
    elif given.quick:
        names = QUICK
    budget = given.budget or (0.3 if given.quick else 1.5)
    progress = Progress()
    started = time.perf_counter()
    about = machine()
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items() if version)
    print(f"{about['cpu']}, {about['cores']} cores; Python {about['python']}, {versions}; one thread", flush=True)
    done = []
    for name in parts:
        chosen = QUICK[:1] if names is QUICK and name == "peers" else names
        plan = Plan(tuple(WORKLOADS[each] for each in chosen), given.quick, progress.say, given.runs, given.seed)
        begun = time.perf_counter()
        section = _run(name, plan, budget)
        section.seconds = time.perf_counter() - begun
        progress.clear()
        show(section)
        done.append(section)
    show_summary(done)
    seconds = time.perf_counter() - started
    print(f"{seconds / 60:.1f} minutes in all")
    if given.json is not None:
        record = {
            "machine": about,
            "settings": {"quick": given.quick, "workloads": names, "peer_budget_seconds": budget, "threads": 1},
            "seconds": seconds,
            "sections": {section.name: section.as_json() for section in done},
        }
        Path(given.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
