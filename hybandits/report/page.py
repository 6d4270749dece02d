"""The page: a single file that needs no network, and no scripts for reading; with scripts, figures tell their numbers.

What it says stands in the templates; here it is prepared as plain data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper.claims import CONFIDENCE, Verdict
from hybandits.paper.published_numbers import READ_OUT_ERRORS
from hybandits.paper.wording import percent
from hybandits.report import scope, score
from hybandits.report.click_log import click_log
from hybandits.report.figures.outcomes import SYNTHETIC, Figure, name_of, twins, under, under_and_log
from hybandits.report.numbers import Row, in_order, in_worlds, on_logs
from hybandits.report.pictures import Picture, colours_of, first_picture, galleries
from hybandits.report.repeat import repeats
from hybandits.report.symbols import in_symbols
from hybandits.report.tables import beyond_section, interval_text, number, ratio_text, regret_section


def page_of(
    results: Results,
    drawn: Sequence[Figure],
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    read_outs: Sequence[Row],
) -> str:
    """The whole page as one HTML document.

    Parameters
    ----------
    results : Results
        What the page is about.
    drawn : sequence of Figure
        The figures, whose files are embedded.
    verdicts : sequence of Verdict
        The paper's claims judged on the results.
    rows, read_outs : sequences of Row
        Regret at T, and at the published read-outs.
    """
    logged = on_logs(results)
    of_worlds = [row for row in rows if row.experiment not in paper.YAHOO_EXPERIMENTS.values()]
    first = first_picture(drawn)
    others = [figure for figure in drawn if first is None or figure.name != first.figure.name]
    shown = galleries(others)
    rows_shown = [row for gallery in shown.values() for _, lines in gallery for row in lines]
    pictures = [*([first] if first else []), *(picture for row in rows_shown for picture in row.pictures)]
    return (
        _templates()
        .get_template("page.html")
        .render(
            paper=paper,
            read_out_errors=READ_OUT_ERRORS,
            manifest=results.manifest,
            commands=results.manifest.get("commands", []),
            protocols=results.protocols,
            outcomes=in_order(results),
            logged=logged,
            simulated=bool(in_worlds(results)),
            of_the_paper=scope.of_the_paper(results),
            shortened=scope.shortened(results),
            unfinished=scope.unfinished(results),
            lengths=scope.lengths(results),
            policies={entry.name: entry for outcome in in_order(results) for entry in outcome.experiment.policies},
            has_twins=any(twins(outcome) for outcome in logged),
            synthetic_note=scope.synthetic_note(results),
            synthetic=SYNTHETIC,
            verdicts=verdicts,
            confidence=percent(CONFIDENCE),
            regret=regret_section(of_worlds, read_outs),
            beyond=beyond_section(of_worlds),
            click_log=click_log(results),
            galleries=shown,
            first=first,
            colours=colours_of("".join(_markup(picture) for picture in pictures)),
            counts=score.counts(verdicts),
            leaders=[] if scope.of_the_paper(results) else score.leaders(results),
            repeats=repeats(results),
            world_words=scope.world_words(results),
        )
    )


def _markup(picture: Picture) -> str:
    return picture.markup + "".join(key.markup for key in picture.keys)


def _templates() -> Environment:
    """Every text is escaped, and a name that is not there is an error."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters: dict[str, Any] = {
        "anchor": anchor,
        "name_of": name_of,
        "interval": lambda row: interval_text(row.low, row.high),
        "number": number,
        "ratio": ratio_text,
        "symbols": in_symbols,
        "thousands": lambda value: f"{value:,.0f}",
        "under": under,
        "under_and_log": under_and_log,
    }
    templates.filters.update(filters)
    return templates


def anchor(verdict: Verdict) -> str:
    """The id of a verdict's section, which links lead to."""
    words = f"claim-{verdict.claim}-{verdict.protocol}" + (f"-{verdict.basis}" if verdict.aside else "")
    return re.sub(r"[^a-z0-9-]+", "-", words.lower())
