"""Results on disk: whole units are read back, damaged ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.engines import SerialEngine
from hybandits.experiments import runner
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Experiment, ResultsError
from hybandits.experiments.results import Run, pack, read_results, read_unit, unit_table, write_unit
from hybandits.experiments.runner import run
from hybandits.foundation.files import sha256
from tests.support.experiments import EIGEN, SMALL
from tests.support.fabricated_outcomes import fabricated_outcome


def test_a_unit_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = replace(EIGEN, by_arm=False).only(["HyLinUCB", "LinUCB"])
    unit = next(record.units())
    design = {name: np.array([1.0, 2.0]) for name in DESIGN}
    runs = [Run(policy="LinUCB", trial=1, regret=np.array([3.5]), design=design)]
    runs += [Run(policy="HyLinUCB", trial=trial, regret=np.array([trial / 3])) for trial in (1, 0)]
    digest = write_unit(tmp_path, unit, runs)
    assert digest == sha256(tmp_path / unit.path)
    table = read_unit(tmp_path, unit, digest)
    assert table.equals(unit_table(unit, runs))
    order = [(entry.name, trial) for entry in record.policies for trial in (0, 1)]
    rows = list(zip(table["policy"].to_pylist(), table["trial"].to_pylist(), strict=True))
    assert rows == [row for row in order if row != ("LinUCB", 0)]
    assert_allclose(sorted(table["regret"].to_pylist()), [[0.0], [1 / 3], [3.5]], rtol=6e-8)
    assert table["rho_x"].null_count == 2
    with pytest.raises(ResultsError, match="its SHA-256 is not the one in the manifest"):
        read_unit(tmp_path, unit, "0" * 64)


def test_measures_of_arms_are_rounded_to_twelve_bits(tmp_path: Path) -> None:
    unit = next(EIGEN.units())
    exact = 10 ** np.random.default_rng(0).uniform(-3, 6, (2, unit.arms))
    design = {name: np.ones(2) for name in DESIGN} | dict.fromkeys(DESIGN_BY_ARM, exact) | {"pulls": exact.round()}
    write_unit(tmp_path, unit, [Run(policy="LinUCB", trial=0, regret=np.ones(2), design=design)])
    table = read_unit(tmp_path, unit)
    assert_array_equal(table["pulls"].to_pylist()[0], exact.round())
    assert_allclose(table["lambda_min_w"].to_pylist()[0], exact, rtol=2.5e-4)


def test_units_of_complete_cases_are_joined_and_not_run_again(tmp_path: Path) -> None:
    before = run([SMALL, EIGEN], tmp_path, engine=SerialEngine())
    (tmp_path / "units/setting-1/released/K5-environment2.parquet").unlink()
    pack(tmp_path)
    pack(tmp_path)
    files = {str(path.relative_to(tmp_path / "units")) for path in tmp_path.rglob("*.parquet")}
    assert files == {"setting-1/released/K3.parquet", "setting-1/released/K5-environment1.parquet",
                     "diversity/written/K4.parquet"}  # fmt: skip
    joined = tmp_path / "units/diversity/written/K4.parquet"
    changed = joined.stat().st_mtime_ns
    after = run([SMALL, EIGEN], tmp_path, engine=SerialEngine())
    assert joined.stat().st_mtime_ns == changed
    assert set(after.manifest["units"]) == {f"units/{file}" for file in files} | {
        "units/setting-1/released/K5-environment2.parquet"
    }
    for key, outcome in before.outcomes.items():
        for arms in outcome.arms:
            tables = (each.tables[arms].to_pylist() for each in (after.outcomes[key], outcome))
            assert repr(next(tables)) == repr(next(tables)), "NaN included"
    joined.write_bytes(joined.read_bytes()[:-1])
    with pytest.raises(ResultsError, match="damaged"):
        read_results(tmp_path)


def test_a_table_of_others_is_not_taken_for_a_result(tmp_path: Path) -> None:
    unit = next(EIGEN.units())
    table = unit_table(unit, [])
    path = tmp_path / unit.path
    path.parent.mkdir(parents=True)
    pq.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(ResultsError, match="damaged or was not written by hybandits"):
        read_unit(tmp_path, unit)
    header = json.loads(table.schema.metadata[b"hybandits"])
    pq.write_table(table.replace_schema_metadata({"hybandits": json.dumps({**header, "format": 99})}), path)
    with pytest.raises(ResultsError, match="has results format 99"):
        read_unit(tmp_path, unit)


def test_a_unit_of_another_record_is_named(whole: Path, tmp_path: Path) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine())
    unit = next(EIGEN.units())
    path = tmp_path / unit.path
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["units"][unit.path] = write_unit(tmp_path, next(replace(EIGEN, noise=0.5).units()), [])
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match=f"{path} holds results of a different record: "):
        read_results(tmp_path)


def test_damaged_files_are_not_taken_for_results(whole: Path, tmp_path: Path) -> None:
    run([EIGEN], tmp_path, engine=SerialEngine())
    path = next(tmp_path.rglob("*.parquet"))
    good = path.read_bytes()
    spoiled = []
    for at in range(0, len(good), len(good) // 20):
        spoiled.append(bytearray(good))
        spoiled[-1][at] ^= 0xFF
    for bad in (good[: len(good) // 2], b"", b"PAR1 nonsense", *map(bytes, spoiled)):
        path.write_bytes(bad)
        for attempt in (lambda: read_results(tmp_path), lambda: run([EIGEN], tmp_path, engine=SerialEngine())):
            with pytest.raises(ResultsError, match="damaged"):
                attempt()
        assert path.read_bytes() == bad
    path.write_bytes(good[: len(good) // 2])
    unit = next(unit for unit in EIGEN.units() if tmp_path / unit.path == path)
    with pytest.raises(ResultsError, match="damaged"):
        read_unit(tmp_path, unit)


def test_cases_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    run([SMALL], tmp_path, engine=SerialEngine())
    (tmp_path / "units/setting-1/released/K5-environment2.parquet").unlink()
    outcome = read_results(tmp_path).outcome("setting-1", "released")
    assert outcome is not None
    assert outcome.arms == [3]
    for path in tmp_path.rglob("*.parquet"):
        path.unlink()
    with pytest.raises(ResultsError, match="has 0 of 4 units"):
        read_results(tmp_path)


def test_a_unit_is_a_plain_parquet_table(whole: Path) -> None:
    path = whole / "units/setting-1/released/K5-environment1.parquet"
    table = pq.read_table(path)
    assert table.num_rows == len(SMALL.policies) * 2
    assert table["policy"].to_pylist()[::2] == [entry.name for entry in SMALL.policies]
    assert table["t"].to_pylist()[0] == [10, 60]
    manifest = json.loads((whole / "manifest.json").read_text())
    assert set(manifest["versions"]) == {"python", "numpy", "numba", "pyarrow"}
    assert str(path.relative_to(whole)) in manifest["units"]
    assert Experiment.from_plain(manifest["experiments"][1]) == SMALL
    timings = [json.loads(line) for line in (whole / runner.TIMINGS).read_text().splitlines()]
    assert sum(line["rounds"] for line in timings) == sum(u.rounds for e in (SMALL, EIGEN) for u in e.units())


def test_fresh_contexts_and_measures_by_arm(whole: Path) -> None:
    outcome = read_results(whole).outcome("diversity", "written")
    assert outcome is not None
    design = outcome.design("LinUCB")
    assert design is not None
    assert design.pulls is not None
    assert design.lambda_min_w is not None
    assert design.pulls.shape == design.lambda_min_w.shape == (4, 2, 4)
    assert_array_equal(design.pulls.sum(axis=2), [[20, 40]] * 4)
    assert len(set(outcome.final("LinUCB"))) == 4


def test_what_is_independent_is_an_environment_or_else_a_trial() -> None:
    """Runs are in the order environment, trial."""

    def units(experiment: Experiment) -> list[int]:
        outcome = fabricated_outcome(experiment, lambda *_: np.zeros(len(experiment.points)))
        return outcome.independent_units(experiment.policies[0].name).tolist()

    several = replace(SMALL, arms=(3,), probes=())
    assert units(several) == [0, 0, 1, 1]
    assert units(replace(several, seeds=(5,))) == [0, 0], "trials share their contexts"
    assert units(replace(several, seeds=(5,), fresh_contexts=True)) == [0, 1]
    assert units(replace(several, fresh_contexts=True)) == [0, 0, 1, 1]
    assert units(replace(several, seeds=(5,), law="log", log={})) == [0, 1], "trials differ by noise alone"
