"""A folder never mixes results of different records, versions, scales or seeds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import SerialEngine
from hybandits.experiments import runner
from hybandits.experiments.record import ResultsError, Unit
from hybandits.experiments.results import (
    FORMAT,
    joined_manifest,
    read_manifest,
    read_results,
    write_manifest,
)
from hybandits.experiments.runner import run
from hybandits.foundation import __version__
from tests.support.experiments import EIGEN, SMALL, contents


def test_a_manifest_is_written_sorted_and_read_back(tmp_path: Path) -> None:
    manifest = joined_manifest(tmp_path, [SMALL, EIGEN], {"scale": "quick"}, "hybandits reproduce")
    manifest["units"] = {"b": "2", "a": "1"}
    write_manifest(tmp_path, manifest)
    stored = read_manifest(tmp_path)
    assert list(stored["units"]) == ["a", "b"]
    assert stored == {
        "format": FORMAT,
        "version": __version__,
        "versions": manifest["versions"],
        "scale": "quick",
        "commands": ["hybandits reproduce"],
        "experiments": [EIGEN.plain(), SMALL.plain()],
        "units": {"a": "1", "b": "2"},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "manifest.json is damaged or was not written by hybandits"),
        ("[]", "damaged"),
        ("{}", "damaged"),
        (
            '{"format": 99, "version": "9.9"}',
            r"has results format 99, but this version reads \d+: use the version that wrote it \(9.9",
        ),
        (f'{{"format": {FORMAT}, "version": 3}}', "damaged .*version is not a str.: remove it"),
    ],
)
def test_a_manifest_that_cannot_be_read(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ResultsError, match=message):
        read_manifest(tmp_path)


def test_a_folder_without_a_manifest_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no results: run hybandits reproduce"):
        read_manifest(tmp_path)
    with pytest.raises(ResultsError, match="holds no results: run hybandits reproduce"):
        read_manifest(tmp_path / "missing")


def test_commands_are_listed_once_and_left_out_after_a_run_without_one(tmp_path: Path) -> None:
    def commands() -> object:
        return json.loads((tmp_path / "manifest.json").read_text()).get("commands")

    for command, listed in (("one", ["one"]), ("two", ["one", "two"]), ("one", ["one", "two"]), (None, None)):
        run([SMALL], tmp_path, engine=SerialEngine(), command=command)
        assert commands() == listed
    run([SMALL], tmp_path, engine=SerialEngine(), command="three")
    assert commands() is None, "a run without a command has filled the folder, so the list would not be complete"


def test_a_record_without_saved_units_may_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(unit: Unit, report: Any = None) -> Any:
        raise ValueError("no")

    monkeypatch.setattr(runner, "timed_unit", refuse)
    with pytest.raises(ValueError, match="no"):
        run([replace(EIGEN, noise=0.5)], tmp_path, engine=SerialEngine())
    monkeypatch.undo()
    run([EIGEN], tmp_path, engine=SerialEngine())


def test_folders_do_not_mix_scales_or_versions(tmp_path: Path) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine(), about={"scale": "quick"})
    with pytest.raises(ResultsError, match="holds results with scale quick, this run has paper"):
        run([SMALL], tmp_path, engine=SerialEngine(), about={"scale": "paper"})
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "versions": {**manifest["versions"], "numpy": "1.0"}}))
    with pytest.raises(ResultsError, match=r"holds results with numpy 1\.0, this run has .*: give another folder"):
        run([SMALL], tmp_path, engine=SerialEngine())
    for bad in ({"units": []}, {"experiments": [{"name": "x"}]}):
        path.write_text(json.dumps({**manifest, **bad}))
        with pytest.raises(ResultsError, match=r"damaged|cannot be read"):
            read_results(tmp_path)


def test_results_of_a_different_record_are_never_overwritten(tmp_path: Path) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine())
    before = contents(tmp_path)
    for other, word in (
        (replace(EIGEN, horizon=50, points=(50,)), "horizon is 40 there and 50 here"),
        (replace(EIGEN, noise=0.5), "noise is .* there and 0.5 here"),
        (EIGEN.only(["LinUCB"]), "different policies"),
        (replace(EIGEN, seeds=(1, 2)), "different seeds"),
    ):
        with pytest.raises(ResultsError, match=f"different diversity/written.*{word}.*give another folder"):
            run([other], tmp_path, engine=SerialEngine())
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ResultsError, match=r"has units but no manifest\.json: give another folder"):
        run([EIGEN], tmp_path, engine=SerialEngine())
    del before["manifest.json"]
    assert {name: data for name, data in contents(tmp_path).items() if name != "manifest.json"} == before
