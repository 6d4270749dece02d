"""Everything that is written into a results folder beside the results: figures, page, tables for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hybandits.engines import Engine
from hybandits.experiments.results import Results, read_results
from hybandits.foundation.files import clear_parts, write_atomically
from hybandits.paper.claims import Verdict
from hybandits.paper.judging import judge
from hybandits.paper.published_numbers import READ_OUT_ERRORS, published
from hybandits.report import figures
from hybandits.report.exports import regret_csv, summary_of
from hybandits.report.numbers import read_out_rows, regret_rows
from hybandits.report.page import page_of
from hybandits.report.repeat import repeats


def write_report(
    folder: Path,
    *,
    results: Results | None = None,
    verdicts: Sequence[Verdict] | None = None,
    engine: Engine | None = None,
) -> Path:
    """Write figures/, report/index.html, report/summary.json and report/regret.csv into a results folder.

    Beside the page is the record of every experiment of one's own, report/NAME.record.json, which runs it again.

    Parameters
    ----------
    folder : Path
        The results folder.
    results : Results, optional
        What the folder holds, if it has been read already.
    verdicts : sequence of Verdict, optional
        The paper's claims judged on these results, if they have been judged already.
    engine : Engine, optional
        Where to draw the figures; in this process if left out.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ResultsError
        If the folder holds no results.
    """
    results = read_results(folder) if results is None else results
    drawn = figures.draw_all(
        results, folder / "figures", published, read_out_error=READ_OUT_ERRORS.__getitem__, engine=engine
    )
    verdicts = judge(results) if verdicts is None else verdicts
    rows, read_outs = regret_rows(results), read_out_rows(results)
    summary = summary_of(results, verdicts, rows, read_outs)
    out = folder / "report"
    page = out / "index.html"
    texts = {
        out / "regret.csv": regret_csv(results),
        out / "summary.json": json.dumps(summary, indent=1, allow_nan=False) + "\n",
        page: page_of(results, drawn, verdicts, rows, read_outs),
    }
    texts |= {out / repeat.file: repeat.text for repeat in repeats(results)}
    for path, text in texts.items():
        _write_text(path, text)
    clear_parts([*texts, *(file for figure in drawn for file in figure.files)])
    return page


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda name: Path(name).write_text(text, encoding="utf-8", newline="\n"))
