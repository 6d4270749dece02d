"""Results as files for programs: all curves as CSV, tables and verdicts as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hybandits.experiments.results import Results
from hybandits.paper.claims import Verdict
from hybandits.report.numbers import Row, all_series, excess_rows, on_logs

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
            {name: getattr(verdict, name) for name in ("claim", "protocol", "basis", "title", "verdict", "summary")}
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
