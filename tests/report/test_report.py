"""The page, its tables and the terminal's: from fabricated results, parsed again."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from rich.console import Console

from hybandits import paper, report
from hybandits.experiments.record import ResultsError
from hybandits.experiments.results import Results
from hybandits.paper import claims
from hybandits.paper.claims import Finding, Verdict
from hybandits.report import numbers, pictures, terminal
from hybandits.report.figures import Figure
from tests.report.test_figures import fabricate, small

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Tags in balance, ids, links, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "xlink:href", "srcset", "data", "action"):
                self.references.append(value or "")

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data


SVG = """<?xml version="1.0"?><!DOCTYPE svg>
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="9pt" viewBox="0 0 9 9"><metadata>x</metadata>
<defs><style type="text/css">*{stroke-linejoin: round}</style></defs>
<g id="figure_1"><path id="glyph" d="M 1.23456 2 L 3 4.5678" transform="scale(0.015625)"/>
<use xlink:href="#glyph" x="1.999999" y="0" clip-path="url(#clip)"/><clipPath id="clip"/></g></svg>"""


@pytest.fixture
def _no_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One tiny picture in place of all of them: drawing takes seconds and is tested elsewhere."""

    def draw_all(results: Results, out: Path, *_: object, **__: object) -> list[Figure]:
        out.mkdir(parents=True, exist_ok=True)
        png, svg = out / "one.png", out / "one.svg"
        png.write_bytes(b"\x89PNG")
        svg.write_text(SVG)
        words = {"title": "A <title>", "caption": "A & caption.", "alt": 'Says "so".'}
        both = [("one", True, "panels"), ("two", False, "beyond")]
        return [
            Figure(name=name, files=(png, svg), protocol="released", section=section, wide=wide, **words)  # type: ignore[arg-type]
            for name, wide, section in both
        ]

    monkeypatch.setattr("hybandits.report.figures.draw_all", draw_all)


def fabricated(folder: Path, **about: object) -> Results:
    records = [small("setting-1"), small("setting-3"), small("diversity"), small("setting-1", "written")]
    return fabricate(folder, *records, scale="quick", seed=paper.RELEASED_SEED, **about)


@pytest.mark.usefixtures("_no_drawing")
def test_the_page_is_whole_and_needs_nothing_else(tmp_path: Path) -> None:
    results = fabricated(tmp_path, commands=["hybandits reproduce <out>"], versions={"python": "3.11", "numpy": "2"})
    written = report.write_report(tmp_path)
    assert written == tmp_path / "report" / "index.html"
    text = written.read_text(encoding="utf-8")
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids), "ids are unique"
    for reference in page.references:
        assert reference.startswith("#"), f"{reference} is not in the page"
        assert reference[1:] in page.ids, f"{reference} leads nowhere"
    assert "script" not in page.tags
    for tag in ("header", "nav", "main", "section", "figure", "figcaption", "table", "caption", "footer"):
        assert tag in page.tags
    assert "@media print" in text
    assert "prefers-color-scheme: dark" in text
    assert "url(http" not in text
    assert "This is the short version." in page.text
    assert "Setting 1: 10,000 of 80,000 rounds, 2 of 5 trials per environment, 3 of 5 environments" in page.text
    assert "hybandits reproduce <out>" in page.text
    assert "hybandits reproduce <out>" not in text, "what comes from the manifest is escaped"
    for verdict in claims.judge(results):
        assert f"claim-{verdict.claim}-{verdict.protocol}" in page.ids
        assert verdict.summary in page.text
    assert not list(tmp_path.rglob(".*.part"))


@pytest.mark.usefixtures("_no_drawing")
def test_text_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nasty = '<b a="1">&amp;'
    verdict = Verdict(
        claim=nasty, protocol="released", title=nasty, statement=nasty, test=nasty, verdict="holds", summary=nasty,
        evidence=(Finding(nasty, nasty, None),),
    )  # fmt: skip
    monkeypatch.setattr("hybandits.paper.claims.judge", lambda *_, **__: [verdict])
    record = small("setting-1", policies=("Greedy",))
    record = replace(record, policies=tuple(replace(entry, name=nasty) for entry in record.policies))
    text = report.write_report(tmp_path, results=fabricate(tmp_path, record)).read_text(encoding="utf-8")
    page = Page(text)
    assert "<b " not in text
    assert "b" not in page.tags
    assert page.text.count(nasty) >= 7
    assert "A <title>." in page.text
    assert 'aria-label="Says &quot;so&quot;."' in text


@pytest.mark.usefixtures("_no_drawing")
def test_machines_get_the_same_numbers(tmp_path: Path) -> None:
    results = fabricated(tmp_path)
    report.write_report(tmp_path, results=results)
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert summary["scale"] == "quick"
    rows = {(r["experiment"], r["protocol"], r["policy"], r["arms"]): r for r in summary["regret_at_T"]}
    linucb = rows["setting-1", "released", "LinUCB", 25]
    assert_allclose([linucb["mean"], linucb["published"], linucb["ratio"]], [243, 243, 1])
    assert_allclose([linucb["lowest"], linucb["highest"]], [243 * 0.895, 243 * 1.105])
    assert_allclose(linucb["sd"], 24.3)
    half = 4.30265 * 24.3 / 3**0.5  # Student's t, 2 degrees of freedom
    assert_allclose([linucb["low"], linucb["high"]], [243 - half, 243 + half], rtol=1e-5)
    assert linucb["within"] is True
    assert (linucb["runs"], linucb["environments"]) == (6, 3)
    assert rows["setting-1", "written", "LinUCB", 25]["within"] is None, "published under another protocol"
    assert rows["setting-3", "released", "LinUCB", 10]["published"] is None, "hidden in the figure"
    assert rows["diversity", "released", "LinUCB", 6]["low"] is not None, "one environment: over its trials"
    assert [v["claim"] for v in summary["verdicts"]] == [v.claim for v in claims.judge(results)]
    assert {(r["t"], r["published"]) for r in summary["read_outs"] if r["policy"] == "LinUCB" and r["arms"] == 25} == {
        (1000, 76), (2500, 129), (5000, 178), (10_000, 243),
    }  # fmt: skip
    lines = list(csv.DictReader(io.StringIO((tmp_path / "report" / "regret.csv").read_text())))
    assert tuple(lines[0]) == report.CSV_COLUMNS
    found = [x for x in lines if (x["experiment"], x["policy"], x["t"]) == ("setting-1", "LinUCB", "10000")]
    assert [x["protocol"] for x in found] == ["released", "written"]
    assert_allclose([float(found[0][name]) for name in ("mean", "sd_over_environments", "runs")], [243, 24.3, 6])


def test_same_results_same_page_and_missing_parts_are_said(tmp_path: Path) -> None:
    record = small("setting-3", policies=("HyRan",))
    results = fabricate(tmp_path, record, small("setting-2"), leave_out="setting-2")
    first = report.write_report(tmp_path, results=results).read_bytes()
    assert report.write_report(tmp_path).read_bytes() == first
    page = Page(first.decode())
    assert "Not finished: Setting 2, released protocol, K = 25." in page.text
    assert "diversity" not in page.ids
    assert "figure-released-setting-3" in page.ids
    assert (tmp_path / "figures" / "released-setting-3.png").exists()


def test_own_experiments_are_not_called_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybandits.report.figures.draw_all", lambda *_, **__: [])
    record = replace(small("setting-1", policies=("Greedy",)), name="mine", protocol="own")
    text = report.write_report(tmp_path, results=fabricate(tmp_path, record)).read_text(encoding="utf-8")
    page = Page(text)
    assert "Das" not in page.text
    assert "published" not in page.text.lower()
    assert "short version" not in page.text


def test_nothing_there_is_one_clear_complaint(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="run hybandits reproduce or simulate first"):
        report.write_report(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("policy", "mean", "published", "good"),
    [
        ("HyLinUCB", 207.0, 197.0, True),
        ("HyLinUCB", 207.1, 197.0, False),
        ("LinUCB", 3046.0, 3016.0, True),
        ("LinUCB", 3047.0, 3016.0, False),
        ("HyRan (released)", 4026.0, 3660.0, True),
        ("HyRan (released)", 3293.0, 3660.0, False),
    ],
)
def test_agreement_with_the_published_figure(policy: str, mean: float, published: float, good: bool) -> None:
    assert numbers.agrees(policy, mean, published) is good


def test_other_seeds_are_other_environments(tmp_path: Path) -> None:
    results = fabricate(tmp_path, replace(small("setting-1"), seeds=(1, 2)))
    assert {row.within for row in numbers.regret_rows(results)} == {None}
    assert numbers.read_out_rows(results) == []


def test_pictures_are_embedded_lean_and_with_ids_of_their_own() -> None:
    inline = pictures.inline_svg(SVG, "f7", "what it shows")
    assert inline.startswith('<svg viewBox="0 0 9 9" role="img" aria-label="what it shows"')
    assert 'id="f7-glyph" d="M 1.23 2 L 3 4.57" transform="scale(0.015625)"' in inline
    assert 'href="#f7-glyph" x="2"' in inline
    assert "url(#f7-clip)" in inline
    assert 'id="f7-clip"' in inline
    assert "figure_1" not in inline, "ids that nobody refers to are dropped"
    for gone in ("metadata", "xlink", "<style", "<?xml"):
        assert gone not in inline


def test_long_lines_lose_points_that_fall_together() -> None:
    points = " ".join(f"L {1 + i / 100:.6f} 2.000000" for i in range(100))
    assert pictures._coarse(f"M 1.000000 2.000000 \n{points} \nz") == (
        "M1.0 2.0 L1.1 2.0 1.2 2.0 1.3 2.0 1.4 2.0 1.5 2.0 1.6 2.0 1.7 2.0 1.8 2.0 1.9 2.0 2.0 2.0 z"
    )


@pytest.mark.usefixtures("_no_drawing")
def test_a_large_picture_is_embedded_as_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "LARGEST_SVG", 10)
    results = fabricate(tmp_path, small("setting-1", policies=("Greedy",)))
    page = Page(report.write_report(tmp_path, results=results).read_text(encoding="utf-8"))
    embedded = [reference for reference in page.references if not reference.startswith("#")]
    assert embedded == ["data:image/png;base64,iVBORw=="] * 2
    assert "svg" not in page.tags


def test_commands_are_said_where_they_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybandits.report.figures.draw_all", lambda *_, **__: [])
    record = small("setting-1", policies=("Greedy",))
    for commands, said in (
        ([], []),
        (["a --b"], ["The command is", "made by a --b."]),
        (["a --b", "c"], ["The commands are", "made by a --b and c."]),
    ):
        results = fabricate(tmp_path, record, **({"commands": commands} if commands else {}))
        page = Page(report.write_report(tmp_path, results=results).read_text(encoding="utf-8"))
        assert [words for words in ("The command is", "The commands are") if words in page.text] == said[:1]
        assert all(words in page.text for words in said)


def test_terminal_summary(tmp_path: Path) -> None:
    results = fabricated(tmp_path)
    verdicts = claims.judge(results)
    file = io.StringIO()
    terminal.print_summary(results, verdicts, Console(file=file, width=80))
    text = file.getvalue()
    assert text.isascii()
    assert text.startswith("The short version: Setting 1: 10,000 of 80,000 rounds")
    lines = text.splitlines()
    title = "Setting 1, released protocol: regret after 10,000 rounds (6 runs, interval over environments)"
    at = lines.index(title)
    assert lines[at + 1].split()[:3] == ["policy", "K", "mean"]
    row = next(line for line in lines[at:] if line.startswith("LinUCB"))
    assert row.split() == ["LinUCB", "25", "243.0", "182.6", "to", "303.4", "217.5", "268.5", "243", "1.000", "yes"]
    written = lines.index(next(line for line in lines if line.startswith("Setting 1, written protocol")))
    assert next(line for line in lines[written:] if line.startswith("LinUCB")).split()[-1] == "-"
    for verdict in verdicts:
        (line,) = [x for x in lines if x.startswith(f"{verdict.claim}  ") and f" {verdict.protocol} " in x]
        assert verdict.title in line
        assert verdict.verdict in line

    watched = Console(file=io.StringIO(), force_terminal=True, width=140, no_color=True)
    with watched.capture() as captured:
        terminal.print_summary(results, verdicts, watched)
    for word in ("HyLinUCB", "Claims", "published", "1.000", verdicts[0].verdict):
        assert word in captured.get()
