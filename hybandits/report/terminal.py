"""Tables in the terminal: regrets and verdicts, the description of a log, and an evaluation on a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hybandits.evaluation import Estimate, Evaluation
from hybandits.evaluation.describe import Description
from hybandits.evaluation.results import Difference
from hybandits.experiments.results import Results
from hybandits.paper.claims import Verdict
from hybandits.report import cases
from hybandits.report.tables import Table, click_log_table, regret_rows, regret_tables

_STYLES = {
    "holds": "green",
    "does not hold": "red",
    "undecided": "yellow",
    "assumption not met": "yellow",
    "yes": "green",
    "no": "red",
}


def show(notes: Sequence[str], tables: Sequence[Table], console: Console | None = None) -> None:
    """Print notes and tables: fitted to a terminal, in lines that are not wrapped elsewhere."""
    console = console or Console()
    fitted = console.is_terminal
    if not fitted:
        console = Console(file=console.file, width=10_000)
    for note in notes:
        console.print(Text(note, style="yellow"))
    for table in tables:
        drawn = RichTable(box=box.SIMPLE_HEAD if fitted else None, pad_edge=fitted)
        for i, head in enumerate(table.head):
            drawn.add_column(head, justify="right" if i in table.right else "left")
        for row in (row for group in table.groups for row in group):
            drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
        console.print("", Text(table.caption, style="bold"), drawn, sep="\n")


# ------------------------------------------------------------------ experiments


def print_summary(results: Results, verdicts: Sequence[Verdict], console: Console | None = None) -> None:
    """Print regrets at T and the verdicts."""
    notes = []
    if short := cases.shortened(results):
        notes.append(f"The short version: {'; '.join(short)}.")
    if lacking := cases.unfinished(results):
        notes.append(f"Not finished: {'; '.join(lacking)}.")
    if note := cases.synthetic_note(results):
        notes.append(note)
    rows, logged = regret_rows(results), cases.on_logs(results)
    names = [outcome.experiment.name for outcome in logged]
    worlds = [row for row in rows if row.experiment not in names]
    tables = regret_tables(worlds) + [click_log_table(outcome, rows) for outcome in logged]
    if verdicts:
        body = [[v.claim, v.title, v.protocol, v.basis, v.verdict] for v in verdicts]
        tables.append(Table("Claims", ["claim", "title", "protocol", "on", "verdict"], [body]))
    show(notes, tables, console)


# ------------------------------------------------------------------ logs


def print_description(description: Description, console: Console | None = None) -> None:
    """Print the summary of a log, warnings first."""
    d = description
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in d.skipped.items())
    skipped = f"{sum(d.skipped.values()):,} skipped{f' ({kinds})' if kinds else ''}"
    facts = [
        ("rounds", f"{d.rounds:,} from {cases.count(d.sources, 'file')}"),
        ("lines read", f"{d.lines:,}, {skipped}"),
        ("arms", f"{d.arms:,}, with {d.vectors:,} feature vectors"),
        ("pools", f"{d.pools:,}"),
        ("reward", f"{d.reward:.5g} +- {d.reward_error:.2g}, from {d.lowest_reward:g} to {d.highest_reward:g}"),
        ("propensities", _propensities(d)),
        ("rank of user features", "{} of {}".format(*d.user_rank)),
        ("rank of arm features", "{} of {}".format(*d.arm_rank)),
        (f"size of (x, z) ({d.features})", f"{d.size:.3g}"),
    ]
    time = [
        (
            f"{s.start:,}", f"{s.rounds:,}", "" if s.time is None else str(np.datetime64(s.time, "s")),
            f"{s.reward:.5g}", str(s.arms), str(s.new_arms),
        )
        for s in d.slices
    ]  # fmt: skip
    arms = [
        (str(s.arm), f"{s.candidate:,}", f"{s.shown:,}", "" if s.reward is None else f"{s.reward:.5g}")
        for s in d.most_shown
    ]
    tables = [Table(f"{d.path} ({d.kind})", ("property", "value"), [facts])]
    columns = ["from round", "rounds", "from (UTC)", "reward", "arms", "new"]
    tables.append(Table("Over time", columns, [time], (0, 1, 3, 4, 5)))
    tables.append(Table("Arms shown most", ("arm", "candidate", "shown", "reward"), [arms], (1, 2, 3)))
    show(_warnings(d), tables, console)


def _warnings(d: Description) -> list[str]:
    notes = []
    if d.without_propensity:
        notes.append(f"{d.without_propensity:,} rounds have no propensity: only the direct method can use them.")
    if d.size > 3.0:
        notes.append(
            f"Features are large: |(x, z)| is {d.size:.3g} in the root mean square. Policies take it to be "
            "about 1: rescale the features, or tell the policies (feature_bound)."
        )
    return notes


def _propensities(d: Description) -> str:
    if d.lowest_propensity is None or d.highest_propensity is None:
        return "none"
    uniform = ", uniform: replay and inverse propensities apply" if d.uniform else ""
    return " to ".join(dict.fromkeys(f"{value:.4g}" for value in (d.lowest_propensity, d.highest_propensity))) + uniform


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"


# ------------------------------------------------------------------ evaluations


def print_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print estimates with their intervals, differences to the first policy, and how well the log supports them."""
    first = next(iter(evaluation.diagnostics))
    within = f"{float(f'{100 * evaluation.level:.6g}'):g} % interval"
    kind = "bootstrap" if evaluation.interval == "bootstrap" else "empirical Bernstein, at any time"
    values, differences, refused, notes = [], [], [], []
    for estimate in evaluation.estimates:
        key = (estimate.policy, estimate.estimator)
        notes += [(*key, note) for note in estimate.notes]
        if estimate.value is None or (estimate.low is None and estimate.refusal):
            refused.append((*key, estimate.refusal or ""))
        if estimate.value is not None:
            values.append((*key, f"{estimate.value:.5f}", _interval(estimate, ".5f")))
            if (other := estimate.difference) is not None and estimate.policy != first:
                clear = "" if other.low is None else "yes" if other.low > 0 or (other.high or 0) < 0 else "no"
                differences.append((*key, f"{other.value:+.5f}", _interval(other, "+.5f"), clear))
    title = f"Value per round, {evaluation.rounds:,} rounds ({kind})"
    tables = [Table(title, ("policy", "by", "value", within), [values], (2,))]
    if differences:
        head = ("policy", "by", "difference", within, "clear")
        tables.append(Table(f"Difference to {first}, on the same rounds", head, [differences], (2,)))
    tables.append(_support(evaluation))
    for caption, column, rows in (("Notes", "note", notes), ("Refused", "because", refused)):
        if rows:
            tables.append(Table(caption, ("policy", "by", column), [rows]))
    warnings = [f"{name}: {warning}" for name, d in evaluation.diagnostics.items() for warning in d.warnings]
    show(warnings, tables, console)


def _support(evaluation: Evaluation) -> Table:
    """The table of how well the log supports each policy."""
    rejected = any(d.kept is not None for d in evaluation.diagnostics.values())
    kept = ["kept"] if rejected else []
    body = [
        (
            name, f"{d.rounds:,}", f"{d.matched:.2%}", *(_or_dash(d.kept, ",.0f") for _ in kept),
            _or_dash(d.effective, ",.0f"), _or_dash(d.largest_weight, ".4g"), _or_dash(d.mean_weight, ".4g"),
        )
        for name, d in evaluation.diagnostics.items()
    ]  # fmt: skip
    head = ("policy", "rounds", "matched", *kept, "effective rounds", "largest weight", "mean weight")
    return Table("Support", head, [body], range(1, len(head)))


def _interval(estimate: Estimate | Difference, form: str) -> str:
    if estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:{form}} to {estimate.high:{form}}"
