"""Regret on a click log: beside HyLinUCB's, beside that of uniform choice, with and without the released defect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybandits.experiments.results import Outcome, Results
from hybandits.report.figures.outcomes import (
    BEST,
    SYNTHETIC,
    change,
    is_synthetic,
    name_of,
    twins,
    under,
    uniform_choice_regret,
)
from hybandits.report.numbers import Excess, Row, excess_rows, on_logs, regret_rows
from hybandits.report.tables import INTERVAL, Table, interval_text, number, row_numbers, runs_of

BEYOND_BEST = f"beyond {BEST}"
UNIFORM_CHOICE = "uniform choice (expected)"
"""The policy that chooses uniformly among candidates; it is not run, as its expected regret is known."""


def click_log(results: Results) -> dict[str, Any]:
    """What the page's section on a click log needs beside the outcomes themselves."""
    logged, rows, excesses = on_logs(results), regret_rows(results), excess_rows(results)
    return {
        "positions": any((outcome.experiment.log or {})["arms"] != "articles" for outcome in logged),
        "defect": [
            (outcome, [change(outcome, name, twin, number) for name, twin in twins(outcome).items()])
            for outcome in logged
            if twins(outcome)
        ],
        "uniform_choice": [
            (outcome, loss, {name: float(outcome.final(name).mean()) / loss for name in outcome.policies})
            for outcome in logged
            if (loss := uniform_choice_regret(outcome))
        ],
        "tables": [regret_table(outcome, rows, excesses) for outcome in logged],
    }


def regret_table(outcome: Outcome, rows: Sequence[Row], excesses: Sequence[Excess]) -> Table:
    """Regret at T, and beyond HyLinUCB's; intervals where there are several trials."""
    e = outcome.experiment
    own_rows = [row for row in rows if (row.experiment, row.protocol) == (e.name, e.protocol)]
    beyond = {x.policy: x for x in excesses if (x.experiment, x.protocol) == (e.name, e.protocol)}
    several, known = own_rows[0].runs > 1, any(x.published is not None for x in beyond.values())
    head = ["policy", "mean", *([INTERVAL] if several else []), BEYOND_BEST]
    head += [*([f"its {INTERVAL}"] if several else []), *(["published beyond it"] if known else [])]
    body = []
    for row in own_rows:
        excess = beyond.get(row.policy)
        cells = [row.policy, *row_numbers(row)[: 2 if several else 1], excess_text(row.policy, excess)]
        cells += [interval_text(excess.low, excess.high) if excess else "-"] if several else []
        cells += [number(excess.published) if excess else "-"] if known else []
        body.append(cells)
    if (regret := uniform_choice_regret(outcome)) is not None:
        lost = [UNIFORM_CHOICE, number(regret), *(["-"] if several else []), uniform_choice_excess(outcome)]
        body.append([*lost, *["-"] * (len(head) - len(lost))])
    kind = f"; {SYNTHETIC}" if is_synthetic(outcome) else ""
    caption = f"{name_of(e.name)}, {under(e.protocol)}: regret after {e.horizon:,} rounds; {runs_of(own_rows[0])}{kind}"
    return Table(head, [body], range(1, len(head)), caption)


def excess_text(policy: str, excess: Excess | None) -> str:
    """What a policy lost beyond HyLinUCB, with its sign."""
    if excess is None:
        return "0" if policy == BEST else "-"
    return _signed(excess.mean)


def uniform_choice_excess(outcome: Outcome) -> str:
    """What uniform choice loses beyond HyLinUCB, as `excess_text` has it."""
    regret = uniform_choice_regret(outcome)
    if regret is None or BEST not in outcome.policies:
        return "-"
    return _signed(regret - float(outcome.final(BEST).mean()))


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"
