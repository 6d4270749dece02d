"""Tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple

from hybandits import paper
from hybandits.report.figures.outcomes import name_of, under
from hybandits.report.numbers import HYRAN_TOLERANCE, TOLERANCE, Row, tolerance


def html_section(anchor: str, title: str, body: str) -> str:
    heading = f'<h2 id="{anchor}-title">{escape(title)}</h2>'
    return f'<section id="{anchor}" aria-labelledby="{anchor}-title">\n{heading}\n{body}\n</section>'


def with_words(words: str, body: str) -> str:
    return f"<p>{escape(words)}</p>\n{body}" if body else ""


class Cell(NamedTuple):
    """Text for a cell, and a class that colours it."""

    text: str
    kind: str = ""


def html_table(
    head: Sequence[str],
    groups: Iterable[Iterable[Sequence[str | Cell]]],
    *,
    numeric: Iterable[int] = (),
    caption: str = "",
) -> str:
    """A table whose rows' first cells head them; texts are escaped here."""
    right = set(numeric)
    top = "".join(f'<th scope="col"{_kind("n" if i in right else "")}>{escape(h)}</th>' for i, h in enumerate(head))
    bodies = []
    for group in groups:
        lines = []
        for row in group:
            cells = [cell if isinstance(cell, Cell) else Cell(cell) for cell in row]
            kinds = [" ".join(filter(None, ("n" if i in right else "", cell.kind))) for i, cell in enumerate(cells)]
            first = f'<th scope="row"{_kind(kinds[0])}>{escape(cells[0].text)}</th>'
            rest = (f"<td{_kind(k)}>{escape(c.text)}</td>" for c, k in zip(cells[1:], kinds[1:], strict=True))
            lines.append(f"<tr>{first}{''.join(rest)}</tr>")
        bodies.append("<tbody>" + "\n".join(lines) + "</tbody>")
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="scroll"><table>{said}<thead><tr>{top}</tr></thead>\n{"".join(bodies)}</table></div>'


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def number(value: float | None) -> str:
    """A regret for reading: thousands separated, a decimal where it is small.

    >>> number(3013.72), number(45.04), number(None)
    ('3,014', '45.0', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.1f}"


def runs_of(row: Row) -> str:
    """How many runs there are and what the interval is over."""
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    over = "trials" if row.environments == 1 else "environments"
    return runs if row.low is None else f"{runs}, interval over {over}"


def row_numbers(row: Row) -> list[str]:
    """mean, interval, lowest, highest, published, ratio, agreement."""
    interval = interval_text(row.low, row.high)
    known = "-" if row.published is None else f"{row.published:,.0f}"
    agreement = {True: "yes", False: "no", None: "-"}[row.within]
    return [number(row.mean), interval, number(row.lowest), number(row.highest), known, _ratio(row.ratio), agreement]


def interval_text(low: float | None, high: float | None) -> str:
    return "-" if low is None else f"{number(low)} to {number(high)}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.3f}" if ratio < 2 else f"{ratio:.1f}"


NUMBERS = ("mean", "95 % interval", "lowest", "highest", "published", "ratio", "within")


def _number_cells(row: Row) -> list[str | Cell]:
    return [Cell(text, text if text in ("yes", "no") else "") for text in row_numbers(row)]


def columns_used(rows: Sequence[Row]) -> int:
    """How many of the numbers to show: of one run the regret alone, those about the published figure where there are
    any."""
    if any(row.published is not None for row in rows):
        return len(NUMBERS)
    return 1 if all(row.runs == 1 for row in rows) else 4


def regret_tables(rows: Sequence[Row], read_outs: Sequence[Row]) -> str:
    known = any(row.published is not None for row in rows)
    parts = [f"<p>{escape(_TABLE_WORDS)}</p>" if known else "", _agreement_words(read_outs)]
    for protocol, found in groupby(rows, key=lambda row: row.protocol):
        parts.append(f"<details open><summary><h3>{escape(under(protocol).capitalize())}</h3></summary>")
        parts += [_regret_table(list(group)) for _, group in groupby(found, key=lambda row: row.experiment)]
        parts.append("</details>")
    if read_outs:
        parts.append(_read_out_table(read_outs))
    return "\n".join(filter(None, parts))


def _read_out_table(rows: Sequence[Row]) -> str:
    groups = [
        [[f"{name_of(row.experiment)}, K = {row.arms}", row.policy, f"{row.t:,}", *_number_cells(row)] for row in case]
        for _, case in groupby(rows, key=lambda row: (row.experiment, row.arms, row.policy))
    ]
    table = html_table(("case", "policy", "rounds t", *NUMBERS), groups, numeric=range(2, 9))
    return f"<details><summary>All {len(rows)} read-outs of the published figure</summary>{table}</details>"


_TABLE_WORDS = f"""“Published” is read off the figure's pixels, give or take {paper.READ_OUT_ERROR:g}; a dash where it
is hidden behind another curve or not plotted. “Ratio” is our mean over it. “Within” says whether the two agree: to
{100 * TOLERANCE:g} % or {paper.READ_OUT_ERROR:g} units; for HyRan, whose randomness was not seeded, to
{100 * HYRAN_TOLERANCE:g} %.
At small regrets the units decide, not the ratio. It is left open where the published number is of another protocol or
other environments."""


def _agreement_words(read_outs: Sequence[Row]) -> str:
    judged = [(row, row.published) for row in read_outs if row.published is not None and row.within is not None]
    if not judged:
        return ""
    good = sum(bool(row.within) for row, _ in judged)
    worst, known = max(judged, key=lambda pair: abs(pair[0].mean - pair[1]) / tolerance(pair[0].policy, pair[1]))
    return (
        f"<p><strong>{good} of {len(judged)}</strong> published read-outs are matched. Furthest off, for what is "
        f"allowed, is {escape(worst.policy)} in {escape(name_of(worst.experiment).lower())} with {worst.arms} arms "
        f"after {worst.t:,} rounds: {number(worst.mean)} against {known:,.0f} published.</p>"
    )


def _regret_table(rows: Sequence[Row]) -> str:
    first = rows[0]
    many = len({row.arms for row in rows}) > 1
    groups = [list(found) for _, found in groupby(rows, key=lambda row: row.arms)]
    shown = columns_used(rows)
    head = ("policy", *(("K",) if many else ()), *NUMBERS[:shown])
    body = [
        [[row.policy, *((str(row.arms),) if many else ()), *_number_cells(row)[:shown]] for row in group]
        for group in groups
    ]
    arms = "" if many else f", K = {first.arms}"
    caption = f"{name_of(first.experiment)}: regret after {first.t:,} rounds{arms}; {runs_of(first)}"
    return html_table(head, body, numeric=range(1, min(len(head), 7 + many)), caption=caption)
