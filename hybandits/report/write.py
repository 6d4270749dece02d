"""Everything that is written into a results folder beside the results: figures, page, tables for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from hybandits.experiments.results import Results
from hybandits.foundation.files import clear_parts, write_atomically
from hybandits.paper.claims import Verdict
from hybandits.report.figures import draw_all
from hybandits.report.page import page_of
from hybandits.report.tables import read_out_rows, regret_csv, regret_rows, summary_of


def write_report(results: Results, verdicts: Sequence[Verdict], *, workers: int = 1) -> Path:
    """Write figures/, report/index.html, report/summary.json and report/regret.csv into the folder of the results.

    Beside the page is the record of every experiment of one's own, report/NAME.record.json, which runs it again.

    Parameters
    ----------
    results : Results
        The results, as `hybandits.experiments.results.read_results` returns them.
    verdicts : sequence of Verdict
        The paper's claims judged on these results, see `hybandits.paper.judging.judge`.
    workers : int, default 1
        Processes to draw the figures in; 1 draws them in this one.

    Returns
    -------
    Path
        The page.
    """
    drawn = draw_all(results, results.folder / "figures", workers=workers)
    rows, read_outs = regret_rows(results), read_out_rows(results)
    out = results.folder / "report"
    page = out / "index.html"
    summary = summary_of(results, verdicts, rows, read_outs)
    texts = {
        out / "regret.csv": regret_csv(results),
        out / "summary.json": json.dumps(summary, indent=1, allow_nan=False) + "\n",
        page: page_of(results, drawn, verdicts, rows, read_outs),
    }
    for outcome in results.outcomes.values():
        if outcome.experiment.protocol == "own":
            record = json.dumps(outcome.experiment.plain(), indent=1, ensure_ascii=False) + "\n"
            texts[out / f"{outcome.experiment.name}.record.json"] = record
    for path, text in texts.items():
        _write_text(path, text)
    clear_parts([*texts, *(file for figure in drawn for file in figure.files)])
    return page


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda name: Path(name).write_text(text, encoding="utf-8", newline="\n"))
