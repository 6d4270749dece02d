"""Tables and sentences on the diversity experiments: growth of the cross blocks, and moments of the arm played."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from hybandits.experiments.results import Results
from hybandits.paper.claims import FAILS, HOLDS
from hybandits.paper.diversity import (
    CrossGrowth,
    Moments,
    Root,
    cross_growths,
    describe_moments,
    describe_ridges,
    judge_the_root,
    moments,
)
from hybandits.paper.judging import JudgedMean, number
from hybandits.report import cases
from hybandits.report.tables import INTERVAL, Table


class DiversityFindings(NamedTuple):
    """Sentences and tables of the section on diversity beside its figures; empty where nothing was run."""

    root: Root | None
    growth: Table | None
    ridges: str
    assumption: str
    moments: list[Table]


def diversity_findings(results: Results) -> DiversityFindings:
    """The findings that these results allow."""
    growths, rows = cross_growths(results), moments(results)
    return DiversityFindings(
        judge_the_root(growths),
        growth_table(growths) if growths else None,
        describe_ridges(results),
        describe_moments(rows) if rows else "",
        moments_tables(rows),
    )


def growth_table(growths: Sequence[CrossGrowth]) -> Table:
    """Exponents of |B_i|, experiment by experiment."""
    head = ("algorithm", "experiment", "Frobenius norm", INTERVAL, "largest singular value", INTERVAL, "square root")
    answers = {HOLDS: "yes", FAILS: "no"}
    groups = [
        [
            [each.policy, run, *_exponent(each.frobenius), *_exponent(each.largest), answers.get(each.answer, "-")]
            for each in of_run
        ]
        for run, of_run in groupby(growths, key=lambda each: each.run)
    ]
    return Table("Growth of the cross blocks as a power of the pulls of the arm", head, groups, range(2, 6))


def _exponent(judged: JudgedMean) -> tuple[str, str]:
    if judged.interval is None:
        return "-", "-"
    mean, low, high = (f"{value:.2f}" for value in judged.interval[:3])
    return mean, f"{low} to {high}"


def moments_tables(rows: Sequence[Moments]) -> list[Table]:
    """Moments of the arm played and of every arm, one table per experiment and protocol."""
    head = ("policy", "K", "|E x|", "|E z|", "sigma_max(E x z')", "met", "an arm's", "largest", "met", "rho_x", "rho_z")
    tables = []
    for _, of_experiment in groupby(rows, key=lambda row: row.judged.experiment.key):
        experiment = list(of_experiment)
        groups = [[_cells(row) for row in group] for _, group in groupby(experiment, key=lambda row: row.arms)]
        e = experiment[0].judged.experiment
        caption = f"{cases.name_of(e.name)}, {cases.under(e.protocol)}: moments after {e.horizon:,} rounds"
        tables.append(Table(f"{caption}, {experiment[0].judged.basis}", head, groups, (1, 2, 3, 4, 6, 7, 9, 10)))
    return tables


def _cells(row: Moments) -> list[str]:
    """Every moment with what independence of directions would show in parentheses."""
    answers = {True: "yes", False: "no", None: "-"}
    played = [f"{number(value)} ({number(chance)})" for value, chance in zip(row.played, row.chance, strict=True)]
    own = [f"{number(row.own[0])} ({number(row.own_chance)})", number(row.own[1])]
    rho = [number(value) for value in row.rho]
    return [row.policy, str(row.arms), *played, answers[row.met], *own, answers[row.met_by_arms], *rho]
