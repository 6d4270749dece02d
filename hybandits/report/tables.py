"""Tables of regret as texts, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from hybandits import paper
from hybandits.paper.claims import CONFIDENCE
from hybandits.paper.published_numbers import HYRAN_TOLERANCE, TOLERANCE, tolerance
from hybandits.paper.wording import percent
from hybandits.report.figures.outcomes import ASIDE, REPRODUCED, name_of, under
from hybandits.report.numbers import Row

INTERVAL = f"{percent(CONFIDENCE)} interval"
"""Head of a column of intervals."""

NUMBERS = ("mean", INTERVAL, "lowest", "highest", "published", "ratio", "within")
"""Heads of what `row_numbers` gives."""


class Table(NamedTuple):
    """A table of the page before it is marked up; the first cell of a row heads it."""

    head: Sequence[str]
    groups: Sequence[Sequence[Sequence[str]]]
    """Rows, in groups that are set apart."""
    right: Collection[int] = ()
    """Columns of numbers."""
    caption: str = ""


def number(value: float | None) -> str:
    """A regret for reading: thousands separated, a decimal where it is small.

    >>> number(3013.72), number(45.04), number(None)
    ('3,014', '45.0', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.1f}"


def interval_text(low: float | None, high: float | None) -> str:
    """An interval of regrets.

    >>> interval_text(196.4, 1012.0), interval_text(0.0, 9.5), interval_text(None, None)
    ('196.4 to 1,012', '0 to 9.5', '-')
    """
    return "-" if low is None else f"{number(low) if low else 0} to {number(high)}"


def ratio_text(ratio: float | None) -> str:
    """A ratio of two regrets, to more digits where they are close.

    >>> ratio_text(0.98765), ratio_text(31.4159), ratio_text(None)
    ('0.988', '31.4', '-')
    """
    if ratio is None:
        return "-"
    return f"{ratio:.3f}" if ratio < 2 else f"{ratio:.1f}"


def runs_of(row: Row) -> str:
    """How many runs there are, and what the interval is over."""
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    over = "trials" if row.environments == 1 else "environments"
    return runs if row.low is None else f"{runs}, interval over {over}"


def row_numbers(row: Row) -> list[str]:
    """Mean, interval, lowest, highest, published, ratio, and whether the two agree."""
    interval = interval_text(row.low, row.high)
    known = "-" if row.published is None else f"{row.published:,.0f}"
    agreement = {True: "yes", False: "no", None: "-"}[row.within]
    return [
        number(row.mean),
        interval,
        number(row.lowest),
        number(row.highest),
        known,
        ratio_text(row.ratio),
        agreement,
    ]


def has_published(rows: Sequence[Row]) -> bool:
    """Whether there are published numbers to hold these against; they are all of the released protocol."""
    return any(row.published is not None and row.protocol == "released" for row in rows)


def columns_used(rows: Sequence[Row]) -> int:
    """How many of the numbers to show: only the regret of a single run, and nothing published where nothing is."""
    if has_published(rows):
        return len(NUMBERS)
    return 1 if all(row.runs == 1 for row in rows) else 4


def regret_section(rows: Sequence[Row], read_outs: Sequence[Row]) -> dict[str, Any]:
    """What the page's section on regret at T needs."""
    return {
        "has_published": has_published(rows),
        "tolerance": TOLERANCE,
        "hyran_tolerance": HYRAN_TOLERANCE,
        "agreement": agreement(read_outs),
        "tables": [
            (experiment, [_regret_by_case(list(group)) for _, group in groupby(of_it, key=lambda row: row.protocol)])
            for experiment in dict.fromkeys(row.experiment for row in rows)
            if (of_it := [row for row in rows if row.experiment == experiment])
        ],
        "cut_off": any(row.low == 0 for row in rows),
        "read_outs": read_out_table(read_outs) if read_outs else None,
        "read_out_count": len(read_outs),
    }


def agreement(read_outs: Sequence[Row]) -> dict[str, Any] | None:
    """How many published read-outs are compared and matched, and which is furthest off for its tolerance."""
    judged = [(row, row.published) for row in read_outs if row.published is not None and row.within is not None]
    if not judged:
        return None
    furthest, _ = max(
        judged, key=lambda pair: abs(pair[0].mean - pair[1]) / tolerance(pair[0].experiment, pair[0].policy, pair[1])
    )
    return {"matched": sum(bool(row.within) for row, _ in judged), "compared": len(judged), "furthest": furthest}


def _regret_by_case(rows: Sequence[Row]) -> Table | Matrix:
    return regret_table(rows) if len({row.arms for row in rows}) == 1 else regret_matrix(rows)


def regret_table(rows: Sequence[Row]) -> Table:
    """Regret at T in one experiment with one number of arms, a row per policy."""
    first, shown = rows[0], columns_used(rows)
    head = ["policy", *NUMBERS[:shown]]
    body = [[row.policy, *row_numbers(row)[:shown]] for row in rows]
    caption = f"{_case(first)}: regret after {first.t:,} rounds, K = {first.arms}; {runs_of(first)}"
    return Table(head, [body], range(1, min(len(head), 7)), caption)


def _case(row: Row) -> str:
    return f"{name_of(row.experiment)}, {under(row.protocol)}"


class Matrix(NamedTuple):
    """Regret at T by policy, a row each, and number of arms."""

    arms: Sequence[int]
    rows: Sequence[tuple[str, Sequence[Row | None]]]
    caption: str
    has_published: bool


def regret_matrix(rows: Sequence[Row]) -> Matrix:
    """Regret at T in one experiment with several numbers of arms."""
    first, arms = rows[0], list(dict.fromkeys(row.arms for row in rows))
    cells = {(row.policy, row.arms): row for row in rows}
    policies = dict.fromkeys(row.policy for row in rows)
    body = [(policy, [cells.get((policy, k)) for k in arms]) for policy in policies]
    caption = f"{_case(first)}: regret after {first.t:,} rounds by number of arms K; {runs_of(first)}"
    return Matrix(arms, body, caption, has_published(rows))


def read_out_table(rows: Sequence[Row]) -> Table:
    """Regret at every published read-out, by case and policy."""
    groups = [
        [[f"{name_of(row.experiment)}, K = {row.arms}", row.policy, f"{row.t:,}", *row_numbers(row)] for row in case]
        for _, case in groupby(rows, key=lambda row: (row.experiment, row.arms, row.policy))
    ]
    return Table(("case", "policy", "rounds t", *NUMBERS), groups, range(2, 9))


# ------------------------------------------------------------------ policies that are not in the paper


class Beyond(NamedTuple):
    """How policies that are not in the paper do beside the best of those that are."""

    table: Table
    spans: Sequence[tuple[str, str]]
    """Every policy, and its lowest and highest ratio in words."""


def beyond_section(rows: Sequence[Row]) -> Beyond | None:
    """Regret at T as a share of the best of the paper's algorithms in the same case; None if there is none to show.

    Fresh environments are left out: they repeat the same cases.
    """
    ratios = _ratios_to_the_best([row for row in rows if row.experiment not in paper.FRESH_NAMES.values()])
    if not ratios:
        return None
    policies = list(dict.fromkeys(policy for policy, _ in ratios))
    columns = list(dict.fromkeys(column for _, column in ratios))
    body = [[policy, *(_span(ratios.get((policy, column), [])) for column in columns)] for policy in policies]
    head = ["policy", *(f"{name_of(experiment)}, {protocol}" for protocol, experiment in columns)]
    caption = "Regret at T divided by that of the best of the paper's algorithms and baselines with as many arms"
    if len({(row.experiment, row.arms) for row in rows}) > len({row.experiment for row in rows}):
        caption += "; where there are several numbers of arms, from the lowest ratio to the highest"
    spans = [
        (policy, _span([r for (p, _), many in ratios.items() if p == policy for r in many])) for policy in policies
    ]
    return Beyond(Table(head, [body], range(1, len(head)), caption), spans)


def _ratios_to_the_best(rows: Sequence[Row]) -> dict[tuple[str, tuple[str, str]], list[float]]:
    """(policy, (protocol, experiment)) to its ratios, one for every number of arms."""
    published: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        if row.policy in (*REPRODUCED, *ASIDE):
            published.setdefault((row.protocol, row.experiment, row.arms), []).append(row.mean)
    ratios: dict[tuple[str, tuple[str, str]], list[float]] = {}
    for row in rows:
        if row.experiment == paper.SMALL_DIVERSITY:
            continue  # it is about the design matrix, and one of its policies is not meant to earn anything
        best = min(published.get((row.protocol, row.experiment, row.arms), [0.0]))
        if row.protocol != "own" and row.policy not in (*REPRODUCED, *ASIDE) and best > 0:
            ratios.setdefault((row.policy, (row.protocol, row.experiment)), []).append(row.mean / best)
    return ratios


def _span(ratios: Sequence[float]) -> str:
    """The lowest and the highest of some ratios.

    >>> _span([0.214, 0.118]), _span([1.5]), _span([])
    ('0.12 to 0.21', '1.50', '-')
    """
    low, high = (f"{f(ratios):.2f}" if ratios else "-" for f in (min, max))
    return low if low == high else f"{low} to {high}"
