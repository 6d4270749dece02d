"""The page's verdicts on the claims, in short and in detail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from hybandits.paper.claims import Verdict
from hybandits.report.tables import Cell, html_table

_SHORT = {"holds": "holds", "does not hold": "fails", "undecided": "open"}
_SIGNS = {"holds": "✓", "does not hold": "✗", "undecided": "?"}


def _badge(verdict: str, link: str = "") -> str:
    kind, text = _SHORT.get(verdict, "open"), f"{_SIGNS.get(verdict, '?')} {escape(verdict)}"
    if link:
        return f'<a class="verdict {kind}" href="#{link}">{text}</a>'
    return f'<span class="verdict {kind}">{text}</span>'


def _anchor(verdict: Verdict) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", f"claim-{verdict.claim}-{verdict.protocol}".lower())


def by_claim(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    grouped: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        grouped.setdefault(verdict.claim, []).append(verdict)
    return dict(sorted(grouped.items()))


def overview(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    protocols = list(dict.fromkeys(verdict.protocol for verdict in verdicts))
    top = "".join(f'<th scope="col">{escape(protocol)} protocol</th>' for protocol in protocols)
    lines = []
    for claim, found in by_claim(verdicts).items():
        cells = ""
        for protocol in protocols:
            one = next((v for v in found if v.protocol == protocol), None)
            inside = f"{_badge(one.verdict, _anchor(one))}<p>{escape(one.summary)}</p>" if one else "not run"
            cells += f'<td data-protocol="{escape(protocol)}">{inside}</td>'
        lines.append(f'<tr><th scope="row">{escape(claim)}. {escape(found[0].title)}</th>{cells}</tr>')
    return (
        "<p>A claim holds if the data support each of its parts at 95 % confidence; it does not hold if they "
        "contradict one; else it is undecided. Follow a verdict for its test and evidence.</p>\n"
        f'<div class="scroll"><table class="verdicts"><thead><tr><th scope="col">claim</th>{top}</tr></thead>\n<tbody>'
        + "\n".join(lines)
        + "</tbody></table></div>"
    )


def claims_in_detail(verdicts: Sequence[Verdict]) -> str:
    parts = []
    for claim, found in by_claim(verdicts).items():
        heading = f"<h3>{escape(claim)}. {escape(found[0].title)}</h3>"
        badges = " ".join(
            f'<span class="pair"><small>{escape(v.protocol)}</small> {_badge(v.verdict)}</span>' for v in found
        )
        same = len({verdict.test for verdict in found}) == 1
        parts += [
            f'<details class="claim" open><summary>{heading} {badges}</summary>',
            f"<p><strong>The paper says:</strong> {escape(found[0].statement)}</p>",
            _test(found[0]) if same else "",
            *(_claim(verdict, test="" if same else _test(verdict)) for verdict in found),
            "</details>",
        ]
    return "\n".join(parts)


_MANY_ROWS = 12


def _test(verdict: Verdict) -> str:
    return f'<p class="soft"><strong>Test:</strong> {escape(verdict.test)}</p>'


def _claim(verdict: Verdict, *, test: str) -> str:
    kinds = {"holds": "yes", "does not hold": "no", "undecided": "maybe"}
    body: list[list[str | Cell]] = [
        [e.what, e.value, Cell(e.verdict or "for information", kinds.get(e.verdict or "", ""))]
        for e in verdict.evidence
    ]
    table = html_table(("part", "found", "verdict"), [body]) if body else ""
    if len(body) > _MANY_ROWS:
        table = f"<details><summary>Evidence, {len(body)} rows</summary>{table}</details>"
    protocol = escape(verdict.protocol.capitalize())
    return (
        f'<section id="{_anchor(verdict)}"><h4>{protocol} protocol: {_badge(verdict.verdict)}</h4>\n'
        f"<p>{escape(verdict.summary)}</p>\n{test}{table}</section>"
    )
