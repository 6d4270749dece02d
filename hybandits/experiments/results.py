"""Results as files: one Parquet table per unit, and a folder of them read back as `Results`.

A unit's table has one row per policy and trial and carries its record. Which units a folder holds is in its `manifest`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hybandits.experiments.manifest import FORMAT, MANIFEST, read_manifest
from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Experiment, ResultsError, Unit
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import sha256, write_atomically
from hybandits.foundation.version import __version__


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one policy did in one trial of a unit.

    Attributes
    ----------
    policy : str
        Its name in the experiment.
    trial : int
        The number of the trial.
    regret : array of shape (points,)
        Its cumulative regret at the points of the experiment.
    design : mapping of str to array, optional
        The measures named in DESIGN and DESIGN_BY_ARM, probe by probe; None if the policy has no design matrix.
    """

    policy: str
    trial: int
    regret: FloatArray
    design: Mapping[str, Any] | None = None


# ------------------------------------------------------------------ files


def _schema(experiment: Experiment) -> pa.Schema:
    columns = [
        ("policy", pa.string()),
        ("arms", pa.int32()),
        ("environment", pa.int32()),
        ("trial", pa.int32()),
        ("t", pa.list_(pa.int32())),
        ("regret", pa.list_(pa.float64())),
    ]
    if experiment.probes:
        columns += [("probe", pa.list_(pa.int32())), *((name, pa.list_(pa.float64())) for name in DESIGN)]
    if experiment.probes and experiment.by_arm:
        # Single precision: these are plotted and fitted, and there is one for every arm, probe and run.
        kinds = (pa.int32(), pa.float32(), pa.float32())
        columns += [(n, pa.list_(pa.list_(kind))) for n, kind in zip(DESIGN_BY_ARM, kinds, strict=True)]
    return pa.schema(columns)


def unit_table(unit: Unit, runs: Sequence[Run]) -> pa.Table:
    """A unit's results, one row per policy and trial, with the record in the table's metadata."""
    experiment = unit.experiment
    order = {entry.name: i for i, entry in enumerate(experiment.policies)}
    rows = []
    for run in sorted(runs, key=lambda run: (order[run.policy], run.trial)):
        row: dict[str, Any] = {
            "policy": run.policy,
            "arms": unit.arms,
            "environment": unit.environment,
            "trial": run.trial,
            "t": list(experiment.points),
            "regret": run.regret.tolist(),
        }
        if experiment.probes:
            row["probe"] = list(experiment.probes)
        rows.append(row | {name: np.asarray(v).tolist() for name, v in (run.design or {}).items()})
    header = {"format": FORMAT, "version": __version__, "unit": unit.plain()}
    table = pa.Table.from_pylist(rows, schema=_schema(experiment))
    return table.replace_schema_metadata({"hybandits": json.dumps(header, sort_keys=True)})


def write_table(table: pa.Table, name: str) -> None:
    """Write a compact Parquet file: floating-point numbers split by significance of bytes, the rest as dictionaries."""
    leaves = {column: column + ".list.element" * str(table.schema.field(column).type).count("list<") for column in
              table.column_names}  # fmt: skip
    smooth = {leaf: "BYTE_STREAM_SPLIT" for column, leaf in leaves.items() if column in FLOATS}
    repeated = [leaf for column, leaf in leaves.items() if column not in FLOATS]
    pq.write_table(
        table, name, compression="zstd", compression_level=15, use_dictionary=repeated, column_encoding=smooth,
        write_page_checksum=True,
    )  # fmt: skip


FLOATS = ("regret", *DESIGN, *DESIGN_BY_ARM[1:])
"""Columns of floating-point numbers."""


def write_unit(folder: Path, unit: Unit, runs: Sequence[Run]) -> str:
    """Save a finished unit and return the SHA-256 of its file."""
    table = unit_table(unit, runs)
    path = folder / unit.path
    write_atomically(path, lambda name: write_table(table, name))
    return sha256(path)


def read_unit(path: Path, digest: str | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """Read a unit's table and its header; ResultsError if the file is not a complete result of this format.

    `digest` is the SHA-256 in the manifest. A file that was saved just before its run was killed has none there; then
    the checksums within the file are relied on, although they do not cover every byte.
    """
    try:
        if digest is not None and sha256(path) != digest:
            raise ValueError("its SHA-256 is not the one in the manifest")
        table = pq.read_table(path, page_checksum_verification=True)
        header = json.loads((table.schema.metadata or {})[b"hybandits"])
        version = header["format"]
    except (OSError, pa.ArrowException, KeyError, ValueError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise ResultsError(f"{path} is damaged or was not written by hybandits ({reason}): remove it") from None
    if version != FORMAT:
        raise ResultsError(
            f"{path} has results format {version}, but this version reads {FORMAT}: use hybandits "
            f"{header.get('version')}"
        )
    return table, header


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, kw_only=True)
class Design:
    """Measures of the design matrix of one policy (see `hybandits.experiments.design_matrix.measure`).

    Attributes
    ----------
    t : array of shape (probes,)
        The rounds after which it was measured.
    lambda_min_v, rho_x, rho_z, z_norm : array of shape (runs, probes)
        Measures of the shared block, and of how much it is coupled with the arms'.
    pulls, lambda_min_w, sigma_max_b : array of shape (runs, probes, arms), optional
        Measures of every arm's block; None if the experiment does not ask for them.
    """

    t: FloatArray
    lambda_min_v: FloatArray
    rho_x: FloatArray
    rho_z: FloatArray
    z_norm: FloatArray
    pulls: FloatArray | None = None
    lambda_min_w: FloatArray | None = None
    sigma_max_b: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of one experiment, as far as they are there.

    Runs are sorted by environment and trial, for every policy alike: row i of one policy and row i of another have seen
    the same contexts and noise, so their difference is a paired comparison.

    Attributes
    ----------
    experiment : Experiment
        The record that was run.
    tables : mapping of int to pyarrow.Table
        By number of arms, the table of all its runs; only cases whose units are all there.
    """

    experiment: Experiment
    tables: Mapping[int, pa.Table]

    @property
    def points(self) -> FloatArray:
        """The rounds after which the regret was kept."""
        return np.array(self.experiment.points, dtype=float)

    @property
    def arms(self) -> list[int]:
        """The numbers of arms whose results are complete, in increasing order."""
        return sorted(self.tables)

    @property
    def policies(self) -> list[str]:
        """The names of the policies, in the order of the record."""
        return [entry.name for entry in self.experiment.policies]

    def _rows(self, policy: str, arms: int) -> pa.Table:
        table = self.tables[arms]
        rows = table.filter(pc.equal(table["policy"], policy))
        return rows.sort_by([("environment", "ascending"), ("trial", "ascending")])

    def regret(self, policy: str, arms: int | None = None) -> FloatArray:
        """Cumulative regret, of shape (runs, points); without `arms`, of the smallest complete case."""
        rows = self._rows(policy, self.arms[0] if arms is None else arms)
        return np.array(rows["regret"].to_pylist())

    def final(self, policy: str, arms: int | None = None) -> FloatArray:
        """The regret of every run after the last round."""
        last: FloatArray = self.regret(policy, arms)[:, -1]
        return last

    def environments(self, policy: str, arms: int | None = None) -> FloatArray:
        """The number of every run's environment."""
        return np.array(self._rows(policy, self.arms[0] if arms is None else arms)["environment"].to_pylist())

    @property
    def has_independent_trials(self) -> bool:
        """Whether trials are independent of each other: each draws contexts of its own, or all play one log."""
        return self.experiment.fresh_contexts or self.experiment.log is not None

    def independent_units(self, policy: str, arms: int | None = None) -> NDArray[Any]:
        """The independent unit of every run, which intervals are built on.

        Runs of one environment share its parameters, so environments are the units. With a single environment the
        trials are, provided they are independent of each other (`has_independent_trials`).
        """
        environments = self.environments(policy, arms)
        by_trial = self.has_independent_trials and len(np.unique(environments)) == 1
        return np.arange(len(environments)) if by_trial else environments

    def design(self, policy: str, arms: int | None = None) -> Design | None:
        """Measures of the policy's design matrix; None if it was not measured or the policy has none."""
        if not self.experiment.probes:
            return None
        rows = self._rows(policy, self.arms[0] if arms is None else arms)
        if rows["lambda_min_v"].null_count:
            return None
        names = [*DESIGN, *(DESIGN_BY_ARM if self.experiment.by_arm else ())]
        arrays = {name: np.array(rows[name].to_pylist(), dtype=float) for name in names}
        return Design(t=np.array(self.experiment.probes, dtype=float), **arrays)


@dataclass(frozen=True, kw_only=True)
class Results:
    """Everything in a results folder.

    Attributes
    ----------
    folder : Path
        Where it was read from.
    manifest : mapping
        The folder's manifest: records, versions, and the digest of every unit.
    outcomes : mapping of (str, str) to Outcome
        The results by name and protocol of the experiment.
    """

    folder: Path
    manifest: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str], Outcome]

    def outcome(self, name: str, protocol: str) -> Outcome | None:
        """The results of one experiment; None if it was not run or no case of it is complete."""
        return self.outcomes.get((name, protocol))

    @property
    def protocols(self) -> list[str]:
        """The protocols for which there are results."""
        return [p for p in ("released", "written", "own") if any(q == p for _, q in self.outcomes)]


def read_results(folder: Path) -> Results:
    """Read a results folder.

    Parameters
    ----------
    folder : Path
        A folder that `hybandits.experiments.runner.run` has filled, perhaps not to the end.

    Returns
    -------
    Results
        Numbers of arms of which units are missing are left out.

    Raises
    ------
    ResultsError
        If a file is damaged or does not belong there, or no number of arms is complete.
    """
    path = folder / MANIFEST
    manifest = read_manifest(path)
    try:
        records = [Experiment.from_plain(plain) for plain in manifest["experiments"]]
    except (ResultsError, ValueError, KeyError, TypeError) as problem:
        raise ResultsError(f"{path} holds a record that cannot be read ({problem}): remove it") from None
    outcomes: dict[tuple[str, str], Outcome] = {}
    for experiment in records:
        whole: dict[int, list[pa.Table] | None] = {}
        for unit in experiment.units():
            file = folder / unit.path
            tables = whole.setdefault(unit.arms, [])
            if not file.exists():
                whole[unit.arms] = None
            elif tables is not None:
                table, header = read_unit(file, manifest["units"].get(unit.path))
                if header["unit"] != unit.plain():
                    raise ResultsError(f"{file} belongs to another record than {path} lists: remove it and run again")
                tables.append(table)
        cases = {arms: pa.concat_tables(tables) for arms, tables in whole.items() if tables}
        if cases:
            outcomes[experiment.name, experiment.protocol] = Outcome(experiment=experiment, tables=cases)
    if not outcomes:
        units = [unit for experiment in records for unit in experiment.units()]
        there = sum((folder / unit.path).exists() for unit in units)
        raise ResultsError(
            f"{folder} has {there} of {len(units)} units, too few for any number of arms: run the command that filled "
            "it again"
        )
    return Results(folder=folder, manifest=manifest, outcomes=outcomes)
