"""How to run an experiment again: what the page says and the file beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hybandits.experiments.config import experiment
from hybandits.experiments.record import Experiment
from hybandits.foundation.files import sha256
from hybandits.report import scope
from hybandits.report.repeat import repeats
from hybandits.report.write import write_report
from tests.support.fabricated_results import fabricate, small_setting
from tests.support.own_classes import write_drifting, write_softmax

SMALL: dict[str, Any] = {"rounds": 30, "environments": 2, "policies": ["Greedy", "Uniform"]}


@pytest.fixture
def own(own_folder: Path) -> Experiment:
    write_softmax(own_folder)
    write_drifting(own_folder)
    return experiment({**SMALL, "world": "drifting:Drifting", "policies": ["softmax:Softmax", "Greedy"], "name": "lab"})


def test_experiments_of_ones_own_can_be_repeated(own: Experiment, own_folder: Path) -> None:
    flowers = own_folder / "flowers.csv"
    flowers.write_text("kind,length\nrose,1\nlily,2\n")
    data = experiment({**SMALL, "world": "classification:data=flowers.csv,label=kind", "name": "flowers"})
    results = fabricate(own_folder / "out", own, data, small_setting("setting-1"))
    both = {repeat.file: repeat for repeat in repeats(results)}
    assert both.keys() == {"lab.record.json", "flowers.record.json"}, "the paper's are repeated by the command"
    assert Experiment.from_plain(json.loads(both["lab.record.json"].text)) == own
    assert dict(both["lab.record.json"].facts) == {
        "seeds of the environments": "914358357, 549434048",
        "drifting:Drifting": f"SHA-256 {sha256(own_folder / 'drifting.py')}",
        "softmax:Softmax": f"SHA-256 {sha256(own_folder / 'softmax.py')}",
    }
    assert dict(both["flowers.record.json"].facts)["data set"] == (
        f"flowers.csv, class in the column kind, SHA-256 {sha256(flowers)}"
    )


def test_the_page_shows_the_file_and_it_lies_beside_it(
    own: Experiment, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = fabricate(own_folder / "out", own)
    monkeypatch.setattr("hybandits.report.figures.draw_all", lambda *_, **__: [])
    for module in ("softmax", "drifting"):
        (own_folder / f"{module}.py").unlink()  # a page is written without the classes
    page = write_report(own_folder / "out", results=results)
    text = (page.parent / "lab.record.json").read_text()
    assert json.loads(text)["world_settings"] == {"kind": "drifting:Drifting"}
    html = page.read_text()
    assert "hybandits simulate lab.record.json" in html
    assert "where the classes that it names can be imported" in html
    assert own.origins["softmax:Softmax"] in html
    assert "θ" not in html, "this world has none"


@pytest.mark.parametrize(
    ("settings", "rewards", "run"),
    [
        ({}, r"a part x·θ, .*, and noise$", "its parameters"),
        (
            {"world": "linear:jumps=3,delay=1000"},
            r"anew after every 25% of the rounds\. A reward is learned 1,000 rounds after",
            "its",
        ),
        ({"world": "linear:walk=2000"}, "where they were after about 2,000 rounds$", "its parameters"),
        (
            {"world": "churn:every=20"},
            r"noise\. A tenth of the arms is replaced after every 20 rounds$",
            "its parameters",
        ),
        ({"world": "clicks:factor=2.5"}, r"1 for a click and 0 for none\..* Rewards are multiplied by 2\.5", "its"),
        ({"world": "products:offset=5", "d1": 10}, "1 for a click.*All rewards have 5 added", "its parameters"),
        ({"world": "classification"}, "the class of the row", "the rows in an order of their own"),
    ],
)
def test_words_are_those_of_the_world(settings: dict[str, Any], rewards: str, run: str, tmp_path: Path) -> None:
    words = scope.world_words(fabricate(tmp_path, experiment({**SMALL, **settings})))
    assert re.search(rewards, words.rewards)
    assert run in words.run


def test_several_kinds_of_worlds_are_not_described_as_one(tmp_path: Path) -> None:
    clicks = experiment({**SMALL, "world": "clicks", "name": "clicks"})
    words = scope.world_words(fabricate(tmp_path, experiment(SMALL), clicks))
    assert words.where == "in worlds of several kinds"
