"""Everything in a results folder: written whole, and again to the same bytes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from hybandits.experiments.config import experiment
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import read_results
from hybandits.paper.judging import judge
from hybandits.report.page import write_report
from tests.support.fabricated_results import fabricate, small_setting
from tests.support.html_page import Page
from tests.support.own_classes import write_softmax


@pytest.mark.slow
def test_same_results_same_bytes(tmp_path: Path) -> None:
    """With two processes too; parts of files that an interrupted report left behind are removed."""
    results = fabricate(tmp_path, small_setting("setting-3", policies=("HyLinUCB", "HyRan")))
    page = write_report(results, judge(results))
    assert page == tmp_path / "report" / "index.html"
    first = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    names = {str(path.relative_to(tmp_path)) for path in first}
    assert names >= {"report/index.html", "report/summary.json", "figures/released-setting-3.svg"}
    links = [link for link in Page(page.read_text(encoding="utf-8")).references if link.startswith("../figures/")]
    assert {f"figures/released-setting-3.{kind}" for kind in ("svg", "csv")} <= {link[3:] for link in links}
    assert {link[3:] for link in links} <= names, "links lead to files"
    ended = subprocess.Popen(["true"])
    ended.wait()
    for part in (
        f"figures/.released-setting-3.svg.{ended.pid}-{ended.pid}.part",
        f"report/.index.html.{ended.pid}.part",
    ):
        (tmp_path / part).touch()
    again = read_results(tmp_path)
    assert write_report(again, judge(again), workers=2) == page
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == first


def test_own_experiments_have_their_record_beside_the_page(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the record is needed for the page: classes of one's own are not imported."""
    write_softmax(own_folder)
    settings = {"rounds": 30, "environments": 2, "policies": ["softmax:Softmax", "Greedy"], "name": "lab"}
    record = experiment(settings)
    results = fabricate(own_folder / "out", record, small_setting("setting-1", policies=("Greedy",)))
    (own_folder / "softmax.py").unlink()
    monkeypatch.setattr("hybandits.report.page.draw_all", lambda *_, **__: [])
    page = write_report(results, judge(results))
    (file,) = page.parent.glob("*.record.json")
    assert Experiment.from_plain(json.loads(file.read_text())) == record
    assert "hybandits simulate lab.record.json" in page.read_text()
