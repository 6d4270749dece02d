"""`make soak`: the long runs, their errors and targets; exit code 1 if one is missed."""

from __future__ import annotations

import sys
import time

from soak import SCALED, TURNED, UNIT, run


def main() -> int:
    """Run everything; print what was asked and what was seen."""
    missed = 0
    for soak in (SCALED, TURNED, UNIT):
        start = time.perf_counter()
        outcome = run(soak, say=lambda line: print(line, file=sys.stderr, flush=True))
        reached = outcome.width_error <= soak.target and outcome.positive_definite
        missed += not reached
        print(
            f"{soak.name}: {outcome.rows:,} updates, width error {outcome.width_error:.1e} (target {soak.target:.0e}), "
            f"positive definite {'throughout' if outcome.positive_definite else 'NO'}, "
            f"{time.perf_counter() - start:.0f} s: {'reached' if reached else 'MISSED'}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
