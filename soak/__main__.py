"""`make soak`: the long runs with their errors and targets. The exit code is 1 if a target is missed."""

from __future__ import annotations

import sys
import time

from soak import ROTATED, SCALED, UNIT, kills, learned, run
from soak import threads as in_threads

SECONDS_OF_THREADS = 30.0
"""Seconds that threads use each policy."""

KILLS = 100
"""Number of kills of a decision server, for each kind of log."""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Run everything; print every error beside its target."""
    missed = 0
    for soak in (SCALED, ROTATED, UNIT):
        start = time.perf_counter()
        outcome = run(soak, say=_say)
        reached = outcome.width_error <= soak.target and outcome.positive_definite
        missed += not reached
        print(
            f"{soak.name}: {outcome.rows:,} updates, width error {outcome.width_error:.1e} (target {soak.target:.0e}), "
            f"positive definite {'throughout' if outcome.positive_definite else 'NO'}, "
            f"{time.perf_counter() - start:.0f} s: {'reached' if reached else 'MISSED'}"
        )
    for case in (learned.LEARNED, learned.LEARNED_OVERLAP):
        start = time.perf_counter()
        result = learned.run(case, say=_say)
        reached = result.worst <= case.target
        missed += not reached
        named = zip(result._fields[1:], result[1:], strict=True)
        errors = ", ".join(f"{name.replace('_', ' ')} {error:.1e}" for name, error in named)
        print(
            f"{case.name}: {result.rows:,} updates, errors: {errors} (target {case.target:.0e}), "
            f"{time.perf_counter() - start:.0f} s: {'reached' if reached else 'MISSED'}"
        )
    for threads in (2, 8):
        for name in in_threads.policies():
            outcome_of_threads = in_threads.run(name, threads, seconds=SECONDS_OF_THREADS)
            line, reached = in_threads.describe(name, threads, outcome_of_threads)
            missed += not reached
            print(line)
    for store, window in (("sqlite", True), ("sqlite", False), ("postgresql", True)):
        outcome_of_kills = kills.run(store, KILLS, window=window, say=_say)
        line, reached = kills.describe(store if window else f"{store} without a window", outcome_of_kills)
        missed += not reached
        print(line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
