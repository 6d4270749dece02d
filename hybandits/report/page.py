"""The page: a single file that needs no network and no scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from hybandits import paper
from hybandits.experiments.results import Results
from hybandits.paper.claims import Verdict
from hybandits.report.clicks import click_log, click_log_title
from hybandits.report.figures.outcomes import Figure
from hybandits.report.numbers import Row, any_synthetic, on_logs
from hybandits.report.pictures import gallery_of
from hybandits.report.tables import html_section, regret_tables, with_words
from hybandits.report.verdicts import claims_in_detail, overview
from hybandits.report.words import (
    BEYOND,
    DIVERSITY,
    HYRAN,
    OWN_TITLE,
    TITLE,
    introduction,
    made_by,
    made_note,
    of_the_paper,
)


def page_of(
    results: Results,
    drawn: Sequence[Figure],
    verdicts: Sequence[Verdict],
    rows: Sequence[Row],
    read_outs: Sequence[Row],
) -> str:
    """The whole page as one HTML document."""
    rows = [row for row in rows if row.experiment not in paper.YAHOO_EXPERIMENTS.values()]
    known, again = any(row.published is not None for row in rows), of_the_paper(results)
    sections = [
        ("verdicts", "Verdicts", overview(verdicts)),
        ("panels", "The published figure again", gallery_of(drawn, "panels")),
        ("regret", "Regret at T" + (" against the published figure" if known else ""), regret_tables(rows, read_outs)),
        (
            "settings",
            "Each setting by itself" if again else "Regret against rounds or arms",
            gallery_of(drawn, "regret"),
        ),
        ("yahoo", click_log_title(results), click_log(results, drawn)),
        ("claims", "Claims in detail", claims_in_detail(verdicts)),
        ("diversity", "The diversity assumption", with_words(DIVERSITY, gallery_of(drawn, "diversity"))),
        ("hyran", "What the defect in HyRan changes", with_words(HYRAN, gallery_of(drawn, "hyran"))),
        ("beyond", "Beyond the paper", with_words(BEYOND, gallery_of(drawn, "beyond"))),
        ("reproduce", "How to reproduce" + (", and limits" if again else ""), _reproduce(results)),
    ]
    sections = [(anchor, title, body) for anchor, title, body in sections if body]
    links = "".join(f'<li><a href="#{anchor}">{escape(title)}</a></li>' for anchor, title, _ in sections)
    title = TITLE if again else OWN_TITLE
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            f"<header>\n<h1>{title}</h1>\n{introduction(results)}\n</header>",
            f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>',
            *(html_section(anchor, title, body) for anchor, title, body in sections),
            f"</main>\n<footer>Written by hybandits {escape(str(results.manifest.get('version', '')))}.</footer>",
            "</body>\n</html>\n",
        ]
    )


_PIXELS = (
    "Published numbers are read off the pixels of a figure. Some points are hidden behind others and are left out."
)
_NO_LOG = "The fourth published panel, on Yahoo! click data, is not reproduced here: the log may not be passed on."
_LIMITS = (
    "HyRan drew random numbers of its own without a seed when the figure was made: it can be matched in distribution, "
    "not number by number.",
    "Five environments are few: an interval over them has four degrees of freedom and is wide.",
    f"What the paper leaves open is chosen once for both protocols: failure probability δ = {paper.DELTA:g}, HyRan's "
    f"p = {paper.HYRAN_P:g}. HyThompson's prior has the scale {paper.THOMPSON_SCALE:g} everywhere.",
    "In the paper's code for the diversity experiment LinUCB and DisLinUCB never learn, and Frobenius norms stand in "
    "for singular values. That is not imitated.",
    "The theorems speak of numbers of rounds far beyond these; a regret below their bounds says little here.",
)
_LOG_LIMITS = (
    "There is one log: trials differ by their noise, and no interval says anything about another log.",
    "Rewards are simulated from a model fitted to clicks, and regret is measured against it. How well it describes "
    "clicks is not tested here.",
    "The published panel was made with another fit (gradient steps on 4,096 lines), positions as arms and algorithms "
    "that learn from another arm's reward: its numbers can be held beside these, not matched.",
)
_MADE_LIMIT = "Yahoo's log may not be passed on. A made log shows that everything runs; its regrets are not Yahoo's."


def _reproduce(results: Results) -> str:
    return "\n".join(
        [
            made_by(results),
            "<p>Run again with the same seed, the same command gives the same numbers. Every unit of work is a Parquet "
            "file in <code>units/</code>, its SHA-256 in <code>manifest.json</code>. <code>hybandits "
            "report</code> writes this page again, beside it all curves as <code>regret.csv</code>, tables and "
            "verdicts as <code>summary.json</code>, and in <code>figures/</code> every figure as PNG and SVG under the "
            "name below it.</p>",
            _limits(results) if of_the_paper(results) else "",
        ]
    )


def _limits(results: Results) -> str:
    logged = on_logs(results)
    said = [_PIXELS, *([] if logged else [_NO_LOG]), *(_LIMITS if any_synthetic(results) else ())]
    said += _LOG_LIMITS if logged else ()
    said += [_MADE_LIMIT] if made_note(results) else []
    return "<h3>Limits</h3>\n<ul>" + "".join(f"<li>{escape(limit)}</li>" for limit in said) + "</ul>"
