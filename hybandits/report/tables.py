"""Regrets at T and at the published read-outs as numbers, as tables for reading, and as a file for programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits import paper, statistics
from hybandits.experiments.record import environment_seeds
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import CONFIDENCE, LEVEL, Verdict
from hybandits.paper.published_numbers import agrees, published, tolerance
from hybandits.report import cases

INTERVAL = f"{LEVEL} interval"
"""Head of a column of intervals."""
NUMBERS = ("mean", INTERVAL, "lowest", "highest", "published", "ratio", "within")
"""Heads of the numbers of a row."""

# ------------------------------------------------------------------ numbers


@dataclass(frozen=True, kw_only=True)
class Row:
    """Regret of one policy in one case after t rounds, over all runs, and the published number."""

    experiment: str
    protocol: str
    arms: int
    policy: str
    t: int
    runs: int
    environments: int
    mean: float
    sd: float | None
    """Standard deviation of the environments' means; None with one environment."""
    low: float | None
    high: float | None
    """Interval of the mean at the level `CONFIDENCE`, not below 0; None where there is only one unit."""
    lowest: float
    highest: float
    published: float | None = None
    ratio: float | None = None
    """Ours over published."""
    within: bool | None = None
    """Agreement of the two; None where they are not of the same environments."""

    def numbers(self) -> list[str]:
        """The numbers for reading, as `NUMBERS` has them."""
        known = "-" if self.published is None else f"{self.published:,.0f}"
        ratio = "-" if self.ratio is None else f"{self.ratio:.3f}"
        agreement = {True: "yes", False: "no", None: "-"}[self.within]
        regrets = [number(self.mean), interval_text(self.low, self.high), number(self.lowest), number(self.highest)]
        return [*regrets, known, ratio, agreement]

    def runs_in_words(self) -> str:
        """The number of runs, and the units of the interval."""
        over = "trials" if self.environments == 1 else "environments"
        return cases.count(self.runs, "run") + ("" if self.low is None else f", interval over {over}")


def _rows(outcome: Outcome, arms: int, policy: str, rounds: Iterable[int]) -> Iterator[Row]:
    """Regret of one policy in one case after each of the rounds."""
    e, units = outcome.experiment, outcome.independent_units(policy, arms)
    regret = outcome.regret(policy, arms)
    of_environments = cases.environment_means(outcome, policy, arms, regret)
    absolute = e.protocol != "own" and e.log is None  # of a log, regret beyond HyLinUCB's is published
    read_outs = published(e.name, policy, arms) if absolute else {}
    for t in rounds:
        values, means = (regrets[:, e.points.index(t)] for regrets in (regret, of_environments))
        interval, mean, known = regret_interval(values, units), float(values.mean()), read_outs.get(t)
        yield Row(
            experiment=e.name, protocol=e.protocol, arms=arms, policy=policy, t=t, runs=len(values),
            environments=len(means), mean=mean, sd=float(means.std(ddof=1)) if len(means) > 1 else None,
            low=interval.low if interval else None, high=interval.high if interval else None,
            lowest=float(values.min()), highest=float(values.max()),
            published=known, ratio=None if known is None else mean / known,
            within=None if known is None or not _comparable(outcome) else agrees(e.name, policy, mean, known),
        )  # fmt: skip


def regret_interval(regrets: FloatArray, units: NDArray[Any]) -> statistics.Interval | None:
    """Student's interval of a mean regret, cut off at 0: no regret is negative, so neither is their mean."""
    interval = statistics.interval(regrets, units, CONFIDENCE)
    if interval is None or regrets.min() < 0:
        return interval
    return interval._replace(low=max(0.0, interval.low))


def _comparable(outcome: Outcome) -> bool:
    """True if the published figure is of the same environments."""
    e = outcome.experiment
    known = e.protocol == "released" and e.log is None
    return known and e.seeds == environment_seeds(paper.RELEASED_SEED, len(e.seeds))


def _all_cases(results: Results) -> Iterator[tuple[Outcome, int, str]]:
    for outcome in cases.in_order(results):
        for arms in outcome.arms:
            for policy in outcome.policies:
                yield outcome, arms, policy


def regret_rows(results: Results) -> list[Row]:
    """Regret of every policy in every case after the last round that it played."""
    return [row for case in _all_cases(results) for row in _rows(*case, [case[0].experiment.rounds_of(case[2])])]


def read_out_rows(results: Results) -> list[Row]:
    """Regret at every published read-out of the same environments."""
    rows: list[Row] = []
    for outcome, arms, policy in _all_cases(results):
        if _comparable(outcome):
            e = outcome.experiment
            rows += _rows(outcome, arms, policy, [t for t in published(e.name, policy, arms) if t in e.points])
    return rows


def excess_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Regret of every other policy beyond HyLinUCB's in the same trial on click logs; none where that was not run."""
    rows = []
    for outcome in (outcome for outcome in outcomes if cases.BEST in outcome.policies):
        e = outcome.experiment
        # The published figure has another fit, positions as arms and a defect.
        real = e.protocol == "released" and not cases.is_synthetic(outcome)
        for policy in (policy for policy in outcome.policies if policy != cases.BEST):
            t = e.rounds_of(policy)
            values = outcome.final(policy, t=t) - outcome.final(cases.BEST, t=t)
            interval = statistics.interval(values, np.arange(len(values)), CONFIDENCE)
            rows.append(
                {
                    "experiment": e.name, "protocol": e.protocol, "policy": policy, "t": t,
                    "runs": len(values), "mean": float(values.mean()), "low": interval and interval.low,
                    "high": interval and interval.high, "lowest": float(values.min()), "highest": float(values.max()),
                    "published": published(e.name, policy).get(t) if real else None,
                }
            )  # fmt: skip
    return rows


# ------------------------------------------------------------------ numbers for reading


def number(value: float | None) -> str:
    """Format a regret for reading: thousands separated, a decimal where it is small.

    >>> number(3013.72), number(45.04), number(None)
    ('3,014', '45.0', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.1f}"


def interval_text(low: float | None, high: float | None) -> str:
    """Format an interval of regrets.

    >>> interval_text(196.4, 1012.0), interval_text(0.0, 9.5), interval_text(None, None)
    ('196.4 to 1,012', '0 to 9.5', '-')
    """
    return "-" if low is None else f"{number(low) if low else 0} to {number(high)}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"


# ------------------------------------------------------------------ tables


class Table(NamedTuple):
    """A table of texts; the first cell of a row heads it."""

    caption: str
    head: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    """Rows, in groups that are set apart."""
    right: Collection[int] = ()
    """Columns of numbers."""


def has_published(rows: Sequence[Row]) -> bool:
    """True if there are published numbers to compare with; they are all of the released protocol."""
    return any(row.published is not None and row.protocol == "released" for row in rows)


def regret_table(rows: Sequence[Row]) -> Table:
    """Regret at T in one experiment, a row per policy and number of arms."""
    first, shown = rows[0], len(NUMBERS) if has_published(rows) else NUMBERS.index("published")
    several = len({row.arms for row in rows}) > 1
    head = ["policy", *(["K"] if several else []), *NUMBERS[:shown]]
    groups = [
        [[row.policy, *([str(arms)] if several else []), *row.numbers()[:shown]] for row in case]
        for arms, case in groupby(rows, key=lambda row: row.arms)
    ]
    arms = "" if several else f", K = {first.arms}"
    caption = f"{cases.name_of(first.experiment)}, {cases.under(first.protocol)}: regret after {first.t:,} rounds{arms}"
    return Table(f"{caption}; {first.runs_in_words()}", head, groups, range(1, min(len(head), 7 + several)))


def family_table(family: str, rows: Sequence[Row]) -> Table:
    """Mean regret at T in the experiments of a family: a row for each, and a column for every policy."""
    first, policies = rows[0], list(dict.fromkeys(row.policy for row in rows))
    means = {(row.experiment, row.arms, row.policy): number(row.mean) for row in rows}
    body = [
        [paper.FAMILIES[family].members[name], str(arms), f"{t:,}"]
        + [means.get((name, arms, policy), "-") for policy in policies]
        for name, arms, t in dict.fromkeys((row.experiment, row.arms, row.t) for row in rows)
    ]
    caption = f"{family.capitalize()}, {cases.under(first.protocol)}: mean regret at T"
    head = ("experiment", "K", "T", *policies)
    return Table(f"{caption}; {cases.count(first.runs, 'run')}", head, [body], range(1, len(head)))


def regret_tables(rows: Sequence[Row]) -> list[Table]:
    """Tables of regret at T, one per protocol and experiment or family of experiments, unless it has none."""

    def place(row: Row) -> tuple[str, str | None, str]:
        family = None if row.protocol == "own" else paper.family_of(row.experiment)
        return row.protocol, family, "" if family else row.experiment

    return [
        regret_table(list(case)) if family is None else family_table(family, list(case))
        for (_, family, _), case in groupby(rows, key=place)
        if family is None or paper.FAMILIES[family].has_table
    ]


def read_out_table(rows: Sequence[Row]) -> Table:
    """Regret at every published read-out, by case and policy."""
    groups = [
        [[f"{cases.name_of(row.experiment)}, K = {row.arms}", row.policy, f"{row.t:,}", *row.numbers()] for row in case]
        for _, case in groupby(rows, key=lambda row: (row.experiment, row.arms, row.policy))
    ]
    return Table("", ("case", "policy", "rounds t", *NUMBERS), groups, range(2, 9))


def agreement(read_outs: Sequence[Row]) -> dict[str, Any] | None:
    """Count the published read-outs that are compared and matched, and find the one furthest off for its tolerance."""
    judged = [(row, row.published) for row in read_outs if row.published is not None and row.within is not None]
    if not judged:
        return None
    furthest, _ = max(
        judged, key=lambda pair: abs(pair[0].mean - pair[1]) / tolerance(pair[0].experiment, pair[0].policy, pair[1])
    )
    return {"matched": sum(bool(row.within) for row, _ in judged), "compared": len(judged), "furthest": furthest}


def describe_hyran(results: Results) -> str:
    """Compare the regrets of HyRan without its cross blocks and with them; empty if not both were run."""
    clauses = []
    for protocol in results.protocols:
        ratios = [
            float(outcome.final(paper.HYRAN_RELEASED, arms).mean() / outcome.final("HyRan", arms).mean())
            for outcome in cases.in_order(results)
            if outcome.experiment.protocol == protocol and outcome.experiment.log is None
            if len(cases.present_in(outcome, ("HyRan", paper.HYRAN_RELEASED))) == 2
            for arms in outcome.arms
        ]
        if ratios:
            clauses.append(f"{min(ratios):.2f} to {max(ratios):.2f} times ({protocol}, {len(ratios)} cases)")
    return f"At T the regret of the former is {' and '.join(clauses)} that of the latter." if clauses else ""


def click_log_table(outcome: Outcome, rows: Sequence[Row]) -> Table:
    """Regret at T on a click log, and beyond HyLinUCB's."""
    e = outcome.experiment
    own_rows = [row for row in rows if (row.experiment, row.protocol) == (e.name, e.protocol)]
    beyond = {excess["policy"]: excess for excess in excess_rows([outcome])}
    body = []
    for row in own_rows:
        cells = ["0" if row.policy == cases.BEST else "-", "-", "-"]
        if more := beyond.get(row.policy):
            cells = [_signed(more["mean"]), interval_text(more["low"], more["high"]), number(more["published"])]
        stop = "" if row.t == e.horizon else f" after {row.t:,} rounds"
        body.append([row.policy + stop, *row.numbers()[:2], *cells])
    if (uniform := paper.uniform_choice_regret(e)) is not None:
        excess = _signed(uniform - outcome.final(cases.BEST).mean()) if cases.BEST in outcome.policies else "-"
        body.append(["uniform choice (expected)", number(uniform), "-", excess, "-", "-"])
    head = ["policy", "mean", INTERVAL, f"beyond {cases.BEST}", f"its {INTERVAL}", "published beyond it"]
    kind = f"; {cases.SYNTHETIC}" if cases.is_synthetic(outcome) else ""
    caption = f"{cases.name_of(e.name)}, {cases.under(e.protocol)}: regret after {e.horizon:,} rounds"
    return Table(f"{caption}; {own_rows[0].runs_in_words()}{kind}", head, [body], range(1, len(head)))


# ------------------------------------------------------------------ the file for programs


def summary_of(
    results: Results, verdicts: Sequence[Verdict], rows: Sequence[Row], read_outs: Sequence[Row]
) -> dict[str, Any]:
    """The numbers and verdicts of the page as JSON-able values."""
    known = ("version", "scale", "seed", "versions")
    fields = ("claim", "protocol", "basis", "title", "verdict", "summary", "statement", "test")
    summary = {
        "format": 1,
        **{key: results.manifest[key] for key in known if key in results.manifest},
        "verdicts": [
            {name: getattr(verdict, name) for name in fields} | {"evidence": [e._asdict() for e in verdict.evidence]}
            for verdict in verdicts
        ],
        "regret_at_T": [asdict(row) for row in rows],
        "read_outs": [asdict(row) for row in read_outs],
    }
    if logged := cases.on_logs(results):
        summary["logs"] = [
            {"experiment": o.experiment.name, "protocol": o.experiment.protocol}
            | {name: value for name, value in (o.experiment.log or {}).items() if name != "model"}
            for o in logged
        ]
        summary["regret_beyond_HyLinUCB_at_T"] = excess_rows(logged)
    return summary
