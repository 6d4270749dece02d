"""What the page says first: how many claims hold, how many read-outs are matched, or which policy lost least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from hybandits import statistics
from hybandits.experiments.results import Outcome, Results
from hybandits.paper.claims import CONFIDENCE, Verdict
from hybandits.report.figures.outcomes import name_of
from hybandits.report.numbers import Row, in_order, regret_rows


class Count(NamedTuple):
    """How many claims hold, do not hold and are undecided, by the verdicts that rest on the same runs."""

    basis: str
    """What the verdicts rest on; empty for the runs that the protocol itself names."""
    holds: int
    fails: int
    open: int


def counts(verdicts: Sequence[Verdict]) -> list[tuple[str, list[Count]]]:
    """The score of every protocol: its first verdict on each claim, then further ones by what they rest on."""
    tallies: dict[str, dict[str, Counter[str]]] = {}
    seen: set[tuple[str, str]] = set()
    for verdict in verdicts:
        case = (verdict.claim, verdict.protocol)
        basis = verdict.basis if case in seen else ""
        seen.add(case)
        tallies.setdefault(verdict.protocol, {}).setdefault(basis, Counter())[verdict.verdict] += 1
    return [
        (protocol, [Count(basis, n["holds"], n["does not hold"], n["undecided"]) for basis, n in of_protocol.items()])
        for protocol, of_protocol in tallies.items()
    ]


class Leader(NamedTuple):
    """The policy that lost least in one case, and how far the next one is behind it."""

    case: str
    best: Row
    second: Row | None
    behind: statistics.Interval | None
    """What the next one lost beyond it, run by run; None with a single environment or policy."""

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return self.behind is not None and self.behind.low > 0


def leaders(results: Results) -> list[Leader]:
    """Who lost least in every case."""
    rows = regret_rows(results)
    return [
        _leader(outcome, arms, [row for row in rows if _is_of(row, outcome, arms)])
        for outcome in in_order(results)
        for arms in outcome.arms
    ]


def _is_of(row: Row, outcome: Outcome, arms: int) -> bool:
    e = outcome.experiment
    return (row.experiment, row.protocol, row.arms) == (e.name, e.protocol, arms)


def _leader(outcome: Outcome, arms: int, rows: Sequence[Row]) -> Leader:
    best, *others = sorted(rows, key=lambda row: row.mean)
    second = others[0] if others else None
    behind: Any = None
    if second is not None:
        more = outcome.final(second.policy, arms) - outcome.final(best.policy, arms)
        behind = statistics.interval(more, outcome.independent_units(best.policy, arms), CONFIDENCE)
    return Leader(f"{name_of(outcome.experiment.name)}, K = {arms}", best, second, behind)
