"""The page: a single file that needs no network and no scripts. Its sentences stand in the templates."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.foundation.files import clear_parts, write_text
from hybandits.paper.beyond import topics_of
from hybandits.paper.claims import LEVEL, Verdict
from hybandits.paper.published_numbers import HYRAN_TOLERANCE, READ_OUT_ERRORS, TOLERANCE
from hybandits.report import cases, tables
from hybandits.report.diversity import diversity_findings
from hybandits.report.figures import Drawn, draw_all
from hybandits.report.figures.looks import Section
from hybandits.report.opening import opening
from hybandits.report.tables import Row


def write_report(results: Results, verdicts: Sequence[Verdict], *, workers: int = 1) -> Path:
    """Write figures/, report/index.html, and report/summary.json into the folder of the results.

    Beside the page is the record of every experiment of one's own, report/NAME.record.json, which runs it again.
    `workers` processes draw the figures; 1 draws them in this one. Returns the path of the page.
    """
    drawn = draw_all(results, results.folder / "figures", workers=workers)
    rows, read_outs = tables.regret_rows(results), tables.read_out_rows(results)
    out = results.folder / "report"
    summary = tables.summary_of(results, verdicts, rows, read_outs)
    texts = {
        out / "summary.json": json.dumps(summary, allow_nan=False) + "\n",
        out / "index.html": page_of(results, drawn, verdicts, rows, read_outs),
    }
    for e in (outcome.experiment for outcome in results.outcomes.values()):
        if e.protocol == "own":
            texts[out / f"{e.name}.record.json"] = json.dumps(e.plain(), indent=1, ensure_ascii=False) + "\n"
    for path, text in texts.items():
        write_text(path, text)
    clear_parts([*texts, *(file for figure in drawn for file in figure.files)])
    return out / "index.html"


def page_of(
    results: Results,
    drawn: Sequence[Drawn],
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    read_outs: Sequence[Row],
) -> str:
    """Return the whole page as one HTML document, with the pictures of the figures embedded.

    `rows` and `read_outs` are regrets at T and at the published read-outs.
    """
    logged, outcomes = cases.on_logs(results), cases.in_order(results)
    names = [outcome.experiment.name for outcome in logged]
    of_worlds = [row for row in rows if row.experiment not in names]
    place = {"panels": 0, "regret": 1, "yahoo": 2, "diversity": 3}
    topics = topics_of(results)
    by_topic = {topic.key: [each for each in drawn if each.figure.name.startswith(topic.figure)] for topic in topics}
    drawn = [each for each in drawn if not any(each in figures for figures in by_topic.values())]
    ordered = sorted((d for d in drawn if d.figure.section in place), key=lambda d: place[d.figure.section])
    return (
        _templates()
        .get_template("page.html")
        .render(
            paper=paper,
            results=results,
            topics=topics,
            topic_figures=by_topic,
            manifest=results.manifest,
            commands=results.manifest.get("commands", []),
            protocols=results.protocols,
            outcomes=outcomes,
            logged=logged,
            simulated=len(logged) < len(outcomes),
            of_the_paper=cases.of_the_paper(results),
            shortened=cases.shortened(results),
            unfinished=cases.unfinished(results),
            policies={entry.name: entry for outcome in outcomes for entry in outcome.experiment.policies},
            synthetic_note=cases.synthetic_note(results),
            synthetic=cases.SYNTHETIC,
            verdicts=verdicts,
            diversity=diversity_findings(results),
            hyran=tables.describe_hyran(results),
            stopped=cases.stopped(results),
            opening=opening(results, verdicts, read_outs),
            confidence=LEVEL,
            errors=READ_OUT_ERRORS,
            tolerance=TOLERANCE,
            hyran_tolerance=HYRAN_TOLERANCE,
            has_published=tables.has_published(of_worlds),
            cut_off=any(row.low == 0 for row in of_worlds),
            regret_tables=tables.regret_tables(of_worlds),
            agreement=tables.agreement(read_outs),
            read_outs=tables.read_out_table(read_outs) if read_outs else None,
            click_logs=[tables.click_log_table(outcome, rows) for outcome in logged],
            first=ordered[0] if ordered else None,
            galleries=galleries([figure for figure in drawn if figure not in ordered[:1]]),
        )
    )


def _templates() -> Environment:
    """The templates; every text is escaped, and a name that is not there is an error."""
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
        "base64": lambda picture: base64.b64encode(picture).decode(),
        "count": cases.count,
        "name_of": cases.name_of,
        "number": tables.number,
        "symbols": in_symbols,
        "thousands": lambda value: f"{value:,.0f}",
        "under": cases.under,
    }
    templates.filters.update(filters)
    return templates


def galleries(drawn: Sequence[Drawn]) -> dict[str, list[tuple[str, list[Drawn]]]]:
    """The figures of every section of the page, by protocol."""
    sections = {name: [each for each in drawn if each.figure.section == name] for name in get_args(Section)}
    return {
        name: [(protocol, list(group)) for protocol, group in groupby(content, key=lambda each: each.figure.protocol)]
        for name, content in sections.items()
    }


def anchor(verdict: Verdict) -> str:
    """The id of a verdict's section, which links lead to."""
    words = f"claim-{verdict.claim}-{verdict.protocol}" + (f"-{verdict.basis}" if verdict.aside else "")
    return re.sub(r"[^a-z0-9-]+", "-", words.lower())


_LETTERS = ("alpha", "beta", "gamma", "delta", "theta", "lambda", "phi", "rho", "sigma", "sqrt")
_SYMBOLS = dict(zip(_LETTERS, "αβγδθλφρσ√", strict=True))
_NAMES = re.compile(rf"\b({'|'.join(_SYMBOLS)})(?=_|\b)")


def in_symbols(text: str) -> str:
    """Write the names of Greek letters and roots in a text as symbols.

    >>> in_symbols("sigma_max(B_i,t) <= sqrt(T)")
    'σ_max(B_i,t) ≤ √(T)'
    """
    return _NAMES.sub(lambda name: _SYMBOLS[name[0]], text).replace("<=", "≤").replace(">=", "≥").replace("+-", "±")
