"""The summary of results for the terminal: regret at T, and the verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper.claims import Verdict
from hybandits.report.click_log import BEYOND_BEST, UNIFORM_CHOICE, excess_text, uniform_choice_excess
from hybandits.report.figures.outcomes import SYNTHETIC, is_synthetic, name_of, under, uniform_choice_regret
from hybandits.report.listings import Listing, show
from hybandits.report.numbers import excess_rows, regret_rows
from hybandits.report.scope import shortened, synthetic_note, unfinished
from hybandits.report.tables import NUMBERS, columns_used, number, row_numbers, runs_of


def _listings(results: Results, verdicts: Sequence[Verdict]) -> list[Listing]:
    listings = []
    excesses = excess_rows(results)
    for (protocol, experiment), group in groupby(regret_rows(results), key=lambda row: (row.protocol, row.experiment)):
        rows = list(group)
        first = rows[0]
        title = f"{name_of(experiment)}, {under(protocol)}: regret after {first.t:,} rounds ({runs_of(first)})"
        shown = columns_used(rows)
        body = [[row.policy, str(row.arms), *row_numbers(row)[:shown]] for row in rows]
        head = ["policy", "K", *NUMBERS[:shown]]
        if experiment in paper.YAHOO_EXPERIMENTS.values():
            head.append(BEYOND_BEST)
            beyond = {x.policy: x for x in excesses if (x.experiment, x.protocol) == (experiment, protocol)}
            body = [[*line, excess_text(line[0], beyond.get(line[0]))] for line in body]
            outcome = results.outcome(experiment, protocol)
            if outcome is not None and (uniform := uniform_choice_regret(outcome)) is not None:
                blank = ["-"] * (shown - 1)
                body.append([UNIFORM_CHOICE, str(first.arms), number(uniform), *blank, uniform_choice_excess(outcome)])
            title += f", {SYNTHETIC}" if outcome is not None and is_synthetic(outcome) else ""
        listings.append(Listing(title, head, body, range(1, 8), _UNWRAPPED))
    if verdicts:
        ordered = sorted(verdicts, key=lambda verdict: verdict.claim)
        body = [[v.claim, v.title, v.protocol, v.basis, v.verdict, first_sentence(v.summary)] for v in ordered]
        head = ["claim", "title", "protocol", "on", "verdict", "summary"]
        listings.append(Listing("Claims", head, body, (), _UNWRAPPED))
    return listings


def first_sentence(text: str) -> str:
    """The first sentence of a summary, for one line.

    >>> first_sentence("Contradicted: A < B at K = 10. T = 5,000 is before the burn-in.")
    'Contradicted: A < B at K = 10.'
    """
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


_UNWRAPPED = ("claim", "protocol", "verdict", "policy", "K", *NUMBERS, BEYOND_BEST)


def _notes(results: Results) -> list[str]:
    notes = []
    if short := shortened(results):
        notes.append(f"The short version: {'; '.join(short)}.")
    if lacking := unfinished(results):
        notes.append(f"Not finished: {'; '.join(lacking)}.")
    if note := synthetic_note(results):
        notes.append(note)
    return notes


def print_summary(results: Results, verdicts: Sequence[Verdict], console: Console | None = None) -> None:
    """Print the summary: tables in a terminal, plain lines elsewhere."""
    show(_notes(results), _listings(results, verdicts), console)
