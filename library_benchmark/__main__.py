"""`python -m library_benchmark`: run what is missing, then write results, table and figure."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "library-benchmark.md"


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(
        prog="python -m library_benchmark",
        description="Compare bandit libraries at default settings on the same streams. A run that was killed continues "
        "where it stopped when the same command is given again.",
    )
    parser.add_argument("--quick", action="store_true", help="80 rounds, two seeds, no grids: at most three minutes")
    parser.add_argument("--workers", type=int, default=2, help="number of processes  [2]")
    parser.add_argument(
        "--runs",
        type=Path,
        default=None,
        help="folder for the runs  [out-library-benchmark/full, or out-library-benchmark/quick]",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=None,
        help="folder for table and figure  [library_benchmark/results; quick: that of the runs]",
    )
    parser.add_argument("--streams", default="", help="only these streams, separated by semicolons")
    parser.add_argument("--methods", default="", help="only methods with one of these in their name, by semicolons")
    parser.add_argument("--report", action="store_true", help="run nothing, only write table and figure again")
    options = parser.parse_args(arguments)

    from library_benchmark import running
    from library_benchmark.methods import METHODS
    from library_benchmark.report import fill_page, read_results, write_report, write_runs
    from library_benchmark.scores import results
    from library_benchmark.streams import QUICK_ROUNDS, QUICK_SEEDS, SEEDS, STREAMS

    def report(records: list[dict[str, Any]], folder: Path) -> int:
        for path in write_report(records, folder):
            print(f"wrote {path}")
        if folder == RESULTS:
            fill_page(PAGE, results(records))
            print(f"wrote {PAGE}")
        return 0

    if options.report:
        return report(read_results(options.out or RESULTS), options.out or RESULTS)
    runs = options.runs or Path("out-library-benchmark") / ("quick" if options.quick else "full")
    out = options.out or (runs / "report" if options.quick or options.streams or options.methods else RESULTS)
    wanted = [name for name in options.streams.split(";") if name] or list(STREAMS)
    if unknown := [name for name in wanted if name not in STREAMS]:
        print(f"there is no stream {unknown[0]!r}: choose from {'; '.join(STREAMS)}", file=sys.stderr)
        return 2
    parts = options.methods.split(";")
    methods = [entry for entry in METHODS.values() if any(part in entry.name for part in parts)]
    missing = sorted({entry.library for entry in methods if not entry.installed})
    if missing:
        running.say(f"not installed, and so left out: {', '.join(missing)} (make benchmark-libraries installs them)")
    tasks = running.tasks(
        [STREAMS[name] for name in wanted],
        [entry for entry in methods if entry.installed],
        QUICK_SEEDS if options.quick else SEEDS,
        most=QUICK_ROUNDS if options.quick else None,
        grids=not options.quick,
    )
    try:
        running.run(tasks, runs, workers=options.workers, say=running.say)
    except running.OtherRunsError as problem:
        print(problem, file=sys.stderr)
        return 2
    records = list(running.read(runs, tasks))
    print(f"wrote {write_runs(records, out)}")
    return report(records, out)


if __name__ == "__main__":
    sys.exit(main())
