"""`python -m benchmarks`: measure, print a table per section, and write everything as JSON.

Every figure is measured in this run, on one thread (the laboratory's: two processes of one), and shown from the minima
and from the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"  # read when NumPy and numba are first imported

QUICK = ("W1", "W3-400", "W4")
"""Workloads of a quick run where none are named; the peers get the first."""

SECTIONS = ("rounds", "peers", "roofline", "thompson", "scale", "memory", "start", "loop", "paper", "fresh", "reading",
            "logs", "yahoo", "coverage", "learned-regret", "learned-rescaled", "learned-cost", "learned-longest",
            "learned-memory")  # fmt: skip
GROUPS = {"learned": tuple(name for name in SECTIONS if name.startswith("learned-"))}
"""Names that stand for several sections."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"benchmarks: {message}\n")


def _names(text: str, allowed: tuple[str, ...], option: str, parser: _Parser) -> tuple[str, ...]:
    """Names separated by commas, in the order they are run; an error names those that do not exist."""
    given = [name.strip() for name in text.split(",") if name.strip()]
    names = [each for name in given for each in GROUPS.get(name, (name,))]
    wrong = [name for name in names if name not in allowed]
    if wrong or not names:
        got = ", ".join(map(repr, wrong)) or "nothing"
        parser.error(f"{option}: got {got}, choose from {', '.join(allowed)}")
    return tuple(name for name in allowed if name in names)


def _run(name: str, plan: Any, budget: float) -> Any:
    """One section."""
    from benchmarks import contest, footprint, laboratory, learned, learned_cost, logs, roofline, rounds

    if name == "peers":
        return contest.run(plan, budget)
    runs = {
        "rounds": rounds.run,
        "roofline": roofline.run,
        "thompson": rounds.run_thompson,
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
        "learned-regret": learned.run_regret,
        "learned-rescaled": learned.run_rescaled,
        "learned-cost": learned_cost.run_cost,
        "learned-longest": learned_cost.run_longest,
        "learned-memory": learned_cost.run_memory,
    }
    return runs[name](plan)


def main() -> None:
    """Parse arguments, run the sections in order, print and write what they measured."""
    parser = _Parser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument("parts", metavar="SECTION", nargs="*", help=f"all unless named: {', '.join(SECTIONS)}, learned")
    parser.add_argument("--json", metavar="PATH", help="also write everything here")
    parser.add_argument("--quick", action="store_true", help="a short run that shows it works; its figures are rough")
    parser.add_argument("--only", metavar="SECTION", help="the same, with commas between them")
    parser.add_argument("--workloads", metavar="NAMES", help="e.g. W1,W4 (default: all, with --quick a few)")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="per peer and workload (default 1.5)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs per world in learned-* (default 16, quick 2)")
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the first run's seed in learned-* (default 0)"
    )
    given = parser.parse_args()
    only = given.only if given.only is not None else ",".join(given.parts) if given.parts else None
    sections = _names(only, SECTIONS, "sections", parser) if only is not None else SECTIONS
    if given.runs is not None and given.runs < 1:
        parser.error(f"--runs: got {given.runs}, pass at least 1")
    if given.seed < 0:
        parser.error(f"--seed: got {given.seed}, pass 0 or more")
    if given.budget is not None and not 0 < given.budget < 3600:
        parser.error(f"--budget: got {given.budget:g}, pass seconds between 0 and 3600")
    if given.json is not None and (Path(given.json).is_dir() or not Path(given.json).absolute().parent.is_dir()):
        parser.error(f"--json: cannot write {given.json}: it must be a file in a folder that exists")

    from benchmarks.report import Progress, machine, show, show_summary
    from benchmarks.workloads import WORKLOADS, Plan

    names = tuple(WORKLOADS)
    if given.workloads is not None:
        names = _names(given.workloads, names, "--workloads", parser)
    elif given.quick:
        names = QUICK
    budget = given.budget or (0.3 if given.quick else 1.5)
    progress = Progress()
    started = time.perf_counter()
    about = machine()
    versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items() if version)
    print(f"{about['cpu']}, {about['cores']} cores; Python {about['python']}, {versions}; one thread", flush=True)
    done = []
    for name in sections:
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
    print(f"{seconds:.0f} seconds in all")
    if given.json is not None:
        whole = {
            "machine": about,
            "settings": {"quick": given.quick, "workloads": names, "peer_budget_seconds": budget, "threads": 1},
            "seconds": seconds,
            "sections": {section.name: section.as_json() for section in done},
        }
        Path(given.json).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
