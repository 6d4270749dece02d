"""Everything in a results folder: that it is written whole, again to the same bytes, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hybandits.experiments.record import ResultsError
from hybandits.paper.judging import judge
from hybandits.report.write import write_report
from tests.support.fabricated_results import fabricate, small_setting
from tests.support.html_page import Page


@pytest.mark.slow
def test_same_results_same_bytes(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3", policies=("HyRan",)))
    page = write_report(tmp_path, results=results)
    assert page == tmp_path / "report" / "index.html"
    first = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    names = {str(path.relative_to(tmp_path)) for path in first}
    assert names >= {"report/index.html", "report/summary.json", "report/regret.csv", "figures/released-setting-3.png"}
    links = [link for link in Page(page.read_text(encoding="utf-8")).references if link.startswith("../figures/")]
    assert {f"figures/released-setting-3.{kind}" for kind in ("png", "svg", "csv")} <= {link[3:] for link in links}
    assert {link[3:] for link in links} <= names, "links lead to files"
    assert write_report(tmp_path) == page
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == first
    assert "figure-released-setting-3" in Page(page.read_text(encoding="utf-8")).ids


def test_verdicts_that_are_given_are_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = fabricate(tmp_path, small_setting("setting-1", policies=("HyLinUCB", "LinUCB")))
    verdicts = judge(results)
    monkeypatch.setattr("hybandits.report.figures.draw_all", lambda *_, **__: [])
    first = write_report(tmp_path, results=results).read_bytes()
    monkeypatch.setattr("hybandits.report.write.judge", lambda *_, **__: pytest.fail("judged again"))
    assert write_report(tmp_path, results=results, verdicts=verdicts).read_bytes() == first


@pytest.mark.slow
def test_what_an_interrupted_report_left_behind_is_removed(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-3", policies=("HyRan",)))
    ended = subprocess.Popen(["true"])
    ended.wait()
    parts = [f"figures/.released-setting-3.svg.{ended.pid}-{ended.pid}.part", f"report/.index.html.{ended.pid}.part"]
    for part in parts:
        (tmp_path / part).parent.mkdir(exist_ok=True)
        (tmp_path / part).touch()
    write_report(tmp_path, results=results)
    assert not list(tmp_path.rglob("*.part"))


def test_nothing_there_is_one_clear_complaint(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="run hybandits reproduce or simulate first"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())
