"""`make soak`: the long runs with their errors and targets. The exit code is 1 if a target is missed."""

from __future__ import annotations

import sys
import time

from soak import ROTATED, SCALED, UNIT, run


def main() -> int:
    """Run everything; print every error beside its target."""
    missed = 0
    for soak in (SCALED, ROTATED, UNIT):
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
