"""Results, figures and verdicts to one page, to tables for machines, and to a summary for the terminal.

Runs nothing but the pictures. The page is a single file that needs no network and no scripts; the same results give the
same bytes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from hybandits import paper
from hybandits.engines import Engine
from hybandits.experiments.results import Results, read_results
from hybandits.foundation.files import write_atomically
from hybandits.paper import claims
from hybandits.paper.claims import Verdict
from hybandits.report import figures
from hybandits.report.numbers import (
    CONFIDENCE,
    Row,
    all_series,
    excess_rows,
    on_logs,
    read_out_rows,
    regret_rows,
)
from hybandits.report.page import page_of


def write_report(
    folder: Path,
    *,
    results: Results | None = None,
    verdicts: Sequence[Verdict] | None = None,
    engine: Engine | None = None,
) -> Path:
    """Write figures/, report/index.html, report/summary.json and report/regret.csv into a results folder.

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
        results, folder / "figures", paper.published, read_out_error=paper.READ_OUT_ERROR, engine=engine
    )
    verdicts = claims.judge(results, confidence=CONFIDENCE) if verdicts is None else verdicts
    rows, read_outs = regret_rows(results), read_out_rows(results)
    out = folder / "report"
    _write_text(out / "regret.csv", regret_csv(results))
    summary = summary_of(results, verdicts, rows, read_outs)
    _write_text(out / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
    _write_text(out / "index.html", page_of(results, drawn, verdicts, rows, read_outs))
    return out / "index.html"


def _write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda name: Path(name).write_text(text, encoding="utf-8", newline="\n"))


CSV_COLUMNS = (
    "experiment", "protocol", "arms", "policy", "t", "mean", "sd_over_environments", "lowest", "highest", "runs",
)  # fmt: skip


def regret_csv(results: Results) -> str:
    """All curves, one line per policy, case and round."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    for series in all_series(results):
        e, means = series.outcome.experiment, series.means()
        several = len(means) > 1
        spread = means.std(axis=0, ddof=1) if several else np.zeros(means.shape[1])
        middle, low, high = series.regret.mean(axis=0), series.regret.min(axis=0), series.regret.max(axis=0)
        for i, t in enumerate(e.points):
            values = f"{middle[i]:.8g}", f"{spread[i]:.6g}" if several else "", f"{low[i]:.8g}", f"{high[i]:.8g}"
            lines.writerow((e.name, e.protocol, series.arms, series.policy, t, *values, len(series.regret)))
    return text.getvalue()


def summary_of(
    results: Results, verdicts: Sequence[Verdict], rows: Sequence[Row], read_outs: Sequence[Row]
) -> dict[str, Any]:
    """What the page says, as JSON-able values."""
    known = ("version", "scale", "seed", "versions")
    return {
        "format": 1,
        **{key: results.manifest[key] for key in known if key in results.manifest},
        "verdicts": [
            {name: getattr(verdict, name) for name in ("claim", "protocol", "title", "verdict", "summary")}
            | {"statement": verdict.statement, "test": verdict.test}
            | {"evidence": [{"what": e.what, "value": e.value, "verdict": e.verdict} for e in verdict.evidence]}
            for verdict in verdicts
        ],
        "regret_at_T": [asdict(row) for row in rows],
        "read_outs": [asdict(row) for row in read_outs],
        **_logs_for_machines(results),
    }


def _logs_for_machines(results: Results) -> dict[str, Any]:
    """What there is to say about click logs, if any; of the model, its size is enough."""
    logged = on_logs(results)
    if not logged:
        return {}
    kept = [
        {"experiment": o.experiment.name, "protocol": o.experiment.protocol}
        | {name: value for name, value in (o.experiment.log or {}).items() if name != "model"}
        for o in logged
    ]
    return {"logs": kept, "regret_beyond_HyLinUCB_at_T": [asdict(row) for row in excess_rows(results)]}
