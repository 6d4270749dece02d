"""Families of experiments: their records run, and their names lead back to them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hybandits import paper
from hybandits.experiments.record import Experiment
from hybandits.experiments.runner import Job, run_unit


@pytest.mark.parametrize("name", list(paper.FAMILIES))
@pytest.mark.parametrize("protocol", ["released", "written"])
def test_every_member_is_named_and_runs(name: str, protocol: paper.Protocol) -> None:
    family = paper.FAMILIES[name]
    whole, short = (paper.records_of([name], [protocol], scale=scale) for scale in ("paper", "quick"))  # type: ignore[arg-type]
    assert [record.name for record in whole] == [record.name for record in short]
    assert {paper.family_of(record.name) for record in whole} == {name}
    assert {record.name for record in whole} <= set(family.members)
    for full, record in zip(whole, short, strict=True):
        assert record.horizon <= full.horizon
        assert Experiment.from_plain(json.loads(json.dumps(record.plain()))) == record
        tiny = replace(record, horizon=6, points=(6,), probes=(6,), seeds=record.seeds[:1], trials=1)
        for run in run_unit(Job(next(tiny.units()))):
            assert run.regret[-1] >= 0


def test_settings_and_families_are_named_together() -> None:
    records = paper.records_of(["structured", "setting-1"], ["released", "written"], scale="quick")
    assert len(records) == 2 + 2 * len(paper.FAMILIES["structured"].members)
    assert not set(paper.FAMILIES) & set(paper.SETTINGS)
    assert paper.family_of("setting-1") is None
