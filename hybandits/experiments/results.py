"""Results as files: one Parquet table per unit, a manifest of the folder, and all of them read back as `Results`.

A unit's table has one row per policy and trial and carries the SHA-256 of its record. The manifest has the records of
the folder and the SHA-256 of every file; results of other records, versions, scales or seeds are not added. The units
of a case, an experiment with one number of arms, may be joined in one file once they are complete (`pack`).
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, MOMENTS, Experiment, ResultsError, Unit
from hybandits.foundation import __version__
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.files import sha256, write_atomically, write_text

MANIFEST = "manifest.json"

FORMAT = 3
"""Version of the layout of manifests and units."""

REMEDY = "give another folder, or remove this one"
"""Remedy for results that must not be mixed with others."""

ABOUT = ("scale", "seed")
"""Entries of a manifest that must be equal in all runs of a folder."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy in one trial of a unit: regret at the points, measures of the design matrix at the probes.

    `design` has the measures of DESIGN, MOMENTS and DESIGN_BY_ARM; None if the policy has no design matrix.
    """

    policy: str
    trial: int
    regret: FloatArray
    design: Mapping[str, Any] | None = None


# ------------------------------------------------------------------ files


def _schema(experiment: Experiment) -> pa.Schema:
    columns = [("policy", pa.string()), *((name, pa.int32()) for name in ("arms", "environment", "trial"))]
    columns += [("t", pa.list_(pa.int32())), ("regret", pa.list_(pa.float64()))]
    if experiment.probes:
        columns += [("probe", pa.list_(pa.int32())), *((name, pa.list_(pa.float64())) for name in DESIGN)]
    if experiment.probes and (experiment.by_arm or experiment.moments):
        columns += [(name, pa.list_(pa.float64())) for name in MOMENTS]
    if experiment.probes and experiment.by_arm:
        kinds = (pa.int32(), pa.float32(), pa.float32(), pa.float32())
        columns += [(n, pa.list_(pa.list_(kind))) for n, kind in zip(DESIGN_BY_ARM, kinds, strict=True)]
    return pa.schema(columns)


def unit_table(unit: Unit, runs: Sequence[Run]) -> pa.Table:
    """Return a unit's results, one row per policy and trial, with the unit in the table's metadata."""
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
            "regret": rounded(run.regret, BITS).tolist(),
        }
        if experiment.probes:
            row["probe"] = list(experiment.probes)
        for name, values in (run.design or {}).items():
            bits = ARM_BITS if name in DESIGN_BY_ARM else BITS
            row[name] = (np.asarray(values) if name == "pulls" else rounded(values, bits)).tolist()
        rows.append(row)
    return _with_header(pa.Table.from_pylist(rows, schema=_schema(experiment)), unit.plain())


def _with_header(table: pa.Table, content: Mapping[str, Any]) -> pa.Table:
    """Return the table with the format, the version and its content in the metadata."""
    header = {"format": FORMAT, "version": __version__, "unit": content}
    return table.replace_schema_metadata({"hybandits": json.dumps(header, sort_keys=True)})


def rounded(values: Any, bits: int) -> FloatArray:
    """Round to so many significant bits; the zeros behind them take no space on disk."""
    mantissa, exponent = np.frexp(np.asarray(values, dtype=float))
    rounded: FloatArray = np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent)
    return rounded


def write_table(table: pa.Table, name: str) -> None:
    """Write a compact Parquet file: floating-point numbers split by significance of bytes, the rest as dictionaries.

    Its metadata stand in the file alone, without Arrow's schema, which holds them a second time.
    """
    leaves = {column: column + ".list.element" * str(table.schema.field(column).type).count("list<") for column in
              table.column_names}  # fmt: skip
    smooth = {leaf: "BYTE_STREAM_SPLIT" for column, leaf in leaves.items() if column in FLOATS}
    repeated = [leaf for column, leaf in leaves.items() if column not in FLOATS]
    with pq.ParquetWriter(
        name, table.schema, compression="zstd", compression_level=15, use_dictionary=repeated, column_encoding=smooth,
        write_page_checksum=True, write_statistics=False, store_schema=False,
    ) as writer:  # fmt: skip
        writer.write_table(table)
        writer.add_key_value_metadata(table.schema.metadata)


FLOATS = ("regret", *DESIGN, *MOMENTS, *DESIGN_BY_ARM[1:])
"""Columns of floating-point numbers."""

BITS = 24
"""Significant bits of regrets and of measures that are one number per probe: an error of 6e-8 at most."""

ARM_BITS = 12
"""Significant bits of measures of every arm, which are only plotted and fitted: an error of 0.025 % at most."""


def write_unit(folder: Path, unit: Unit, runs: Sequence[Run]) -> str:
    """Save a finished unit and return the SHA-256 of its file."""
    table = unit_table(unit, runs)
    path = folder / unit.path
    write_atomically(path, lambda name: write_table(table, name))
    return sha256(path)


def read_unit(folder: Path, unit: Unit, digest: str | None = None) -> pa.Table:
    """Read a unit's table; ResultsError if the file is damaged, of another format, or of another record.

    `digest` is the SHA-256 in the manifest; a file that was saved just before its run was killed has none there.
    """
    return _read(folder / unit.path, unit.experiment, unit.plain(), digest)


def _read(path: Path, experiment: Experiment, expected: Mapping[str, Any], digest: str | None) -> pa.Table:
    try:
        content = path.read_bytes()
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise ValueError("its SHA-256 is not the one in the manifest")
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        header = json.loads((file.metadata.metadata or {})[b"hybandits"])
        _check_format(path, header)
        table = file.read().cast(_schema(experiment))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as problem:
        raise _damaged(path, problem) from None
    if header["unit"] != expected:
        raise ResultsError(f"{path} holds results of a different record: {REMEDY}")
    return table


# ------------------------------------------------------------------ joined units


def packed_path(experiment: Experiment, arms: int) -> str:
    """Return the path within the folder of the file that joins all units of a case."""
    return f"units/{experiment.name}/{experiment.protocol}/K{arms}.parquet"


def read_packed(folder: Path, experiment: Experiment, arms: int, digest: str | None = None) -> pa.Table | None:
    """Read the joined units of a case; None if they are not joined. ResultsError as for `read_unit`."""
    path = folder / packed_path(experiment, arms)
    return _read(path, experiment, _content_of_case(experiment, arms), digest) if path.exists() else None


def _content_of_case(experiment: Experiment, arms: int) -> dict[str, Any]:
    return {"record": experiment.digest, "arms": arms}


def pack(folder: Path) -> None:
    """Join the units of every complete case in one file, a fraction of the size of many, and remove them.

    Interrupted at any moment, it can be called again.
    """
    results = read_results(folder)
    manifest = dict(results.manifest)
    joined: list[Path] = []
    for outcome in results.outcomes.values():
        for arms, table in outcome.tables.items():
            path = packed_path(outcome.experiment, arms)
            if not (folder / path).exists():
                whole = _with_header(table, _content_of_case(outcome.experiment, arms))
                write_atomically(folder / path, lambda name, whole=whole: write_table(whole, name))
            units = [unit.path for unit in outcome.experiment.units() if unit.arms == arms]
            manifest["units"] = {p: digest for p, digest in manifest["units"].items() if p not in units}
            manifest["units"][path] = sha256(folder / path)
            joined += [folder / unit for unit in units]
    write_manifest(folder, manifest)
    for unit_file in joined:
        unit_file.unlink(missing_ok=True)


def _check_format(path: Path, content: Mapping[str, Any]) -> None:
    if content["format"] != FORMAT:
        wrong = f"{path} has results format {content['format']}, but this version reads {FORMAT}"
        raise ResultsError(f"{wrong}: use the version that wrote it ({content.get('version')}), or run it again")


def _damaged(path: Path, problem: Exception) -> ResultsError:
    reason = str(problem).partition("\n")[0] or type(problem).__name__
    return ResultsError(f"{path} is damaged or was not written by hybandits ({reason}): remove it")


# ------------------------------------------------------------------ the manifest


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a folder's manifest; ResultsError if there is none of this format."""
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        _check_format(path, manifest)
        for name, kind in {"version": str, "versions": dict, "experiments": list, "units": dict}.items():
            if not isinstance(manifest[name], kind):
                raise ValueError(f"{name} is not a {kind.__name__}")
    except (FileNotFoundError, NotADirectoryError):
        raise ResultsError(f"{folder} holds no results: run hybandits reproduce or simulate first") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise _damaged(path, problem) from None
    return manifest


def joined_manifest(
    folder: Path, records: Sequence[Experiment], about: Mapping[str, Any], command: str | None
) -> dict[str, Any]:
    """Return the folder's manifest with these records added.

    ResultsError if the folder has results of the same experiments with other records, or of another version, scale or
    seed: those are never mixed. A record without saved units may be replaced.
    """
    known: dict[str, Any] = {}
    if (folder / MANIFEST).exists():
        known = read_manifest(folder)
    elif any((folder / "units").rglob("*.parquet")):
        raise ResultsError(f"{folder} has units but no {MANIFEST}: {REMEDY}")
    if known.get("version", __version__) != __version__:
        raise ResultsError(
            f"{folder} holds results of hybandits {known['version']}, but this is hybandits {__version__}: {REMEDY}"
        )
    kept: dict[str, Any] = {
        f"{e['name']}/{e['protocol']}": e
        for e in known.get("experiments", [])
        if any((folder / "units" / e["name"] / e["protocol"]).glob("*.parquet"))
    }
    if not kept:
        known = {}
    versions = {"python": platform.python_version(), **{n: version(n) for n in ("numpy", "numba", "pyarrow")}}
    earlier = {**known.get("versions", {}), **known}
    for name, value in {"numpy": versions["numpy"], "numba": versions["numba"], **about}.items():
        if earlier.get(name, value) != value:
            raise ResultsError(f"{folder} holds results with {name} {earlier[name]}, this run has {value}: {REMEDY}")
    for record in records:
        there = kept.setdefault(record.key, record.plain())
        if there != record.plain():
            words = difference(there, record.plain())
            raise ResultsError(f"{folder} holds results of a different {record.key}{words}: {REMEDY}")
    # A list of commands that does not give all results would mislead.
    complete = command is not None and ("commands" in known or not known)
    return {
        "format": FORMAT,
        "version": __version__,
        "versions": known.get("versions", versions),
        **{name: value for name, value in known.items() if name in ABOUT},
        **about,
        **({"commands": list(dict.fromkeys([*known.get("commands", []), command]))} if complete else {}),
        "experiments": [kept[key] for key in sorted(kept)],
        "units": {path: digest for path, digest in known.get("units", {}).items() if (folder / path).exists()},
    }


def difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return the fields in which a plain record in a folder differs from another, in parentheses."""
    words = []
    for name in dict.fromkeys([*here, *there]):
        before, now = there.get(name), here.get(name)
        if before != now:
            long = isinstance(before, list | dict) or isinstance(now, list | dict)
            words.append(f"different {name}" if long else f"{name} is {before} there and {now} here")
    return f" ({', '.join(words)})"


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Put the manifest in its place, with its units sorted."""
    manifest["units"] = dict(sorted(manifest["units"].items()))
    text = json.dumps(manifest, indent=1) + "\n"
    write_text(folder / MANIFEST, text)


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, kw_only=True)
class Design:
    """Measures of the design matrix of one policy at the rounds `t`: arrays (runs, probes) or (runs, probes, arms).

    See `hybandits.experiments.design_matrix`. All but the first five are None unless the experiment is `by_arm`.
    """

    t: FloatArray
    lambda_min_v: FloatArray
    rho_x: FloatArray
    rho_z: FloatArray
    z_norm: FloatArray
    mean_x: FloatArray | None = None
    mean_z: FloatArray | None = None
    mean_xz: FloatArray | None = None
    ellipsoid: FloatArray | None = None
    outside: FloatArray | None = None
    pulls: FloatArray | None = None
    lambda_min_w: FloatArray | None = None
    sigma_max_b: FloatArray | None = None
    frobenius_b: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of one experiment.

    Runs are sorted by environment and trial for every policy: row i of two policies has seen the same contexts and
    noise, so their difference is a paired comparison. `tables` has the runs by number of arms, complete cases only.
    """

    experiment: Experiment
    tables: Mapping[int, pa.Table]

    @property
    def points(self) -> FloatArray:
        """Rounds after which the regret was kept."""
        return np.array(self.experiment.points, dtype=float)

    @property
    def arms(self) -> list[int]:
        """Numbers of arms whose results are complete, in increasing order."""
        return sorted(self.tables)

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order of the record."""
        return [entry.name for entry in self.experiment.policies]

    def _rows(self, policy: str, arms: int | None) -> pa.Table:
        table = self.tables[self.arms[0] if arms is None else arms]
        rows = table.filter(pc.equal(table["policy"], policy))
        return rows.sort_by([("environment", "ascending"), ("trial", "ascending")])

    def regret(self, policy: str, arms: int | None = None) -> FloatArray:
        """Return cumulative regret, of shape (runs, points); by default of the smallest complete case."""
        return np.array(self._rows(policy, arms)["regret"].to_pylist())

    def final(self, policy: str, arms: int | None = None, *, t: int | None = None) -> FloatArray:
        """Return the regret of every run after `t` rounds, by default the last; NaN if the policy plays fewer."""
        e = self.experiment
        return np.asarray(self.regret(policy, arms)[:, e.points.index(t or e.horizon)])

    def environments(self, policy: str, arms: int | None = None) -> FloatArray:
        """Return the number of every run's environment."""
        return np.array(self._rows(policy, arms)["environment"].to_pylist())

    @property
    def has_independent_trials(self) -> bool:
        """True if each trial draws contexts of its own, or if all play one log."""
        return self.experiment.fresh_contexts or self.experiment.log is not None

    def independent_units(self, policy: str, arms: int | None = None) -> NDArray[Any]:
        """Return the independent unit of every run: its environment, or its trial if there is only one."""
        environments = self.environments(policy, arms)
        by_trial = self.has_independent_trials and len(np.unique(environments)) == 1
        return np.arange(len(environments)) if by_trial else environments

    def design(self, policy: str, arms: int | None = None) -> Design | None:
        """Return measures of the policy's design matrix; None if there are none."""
        if not self.experiment.probes:
            return None
        rows = self._rows(policy, arms)
        if rows["lambda_min_v"].null_count:
            return None
        names = [name for name in (*DESIGN, *MOMENTS, *DESIGN_BY_ARM) if name in rows.column_names]
        arrays = {name: np.array(rows[name].to_pylist(), dtype=float) for name in names}
        return Design(t=np.array(self.experiment.probes, dtype=float), **arrays)


@dataclass(frozen=True, kw_only=True)
class Results:
    """A results folder: its manifest, and outcomes by name and protocol of the experiment."""

    folder: Path
    manifest: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str], Outcome]

    def outcome(self, name: str, protocol: str) -> Outcome | None:
        """Return the results of one experiment; None if no case of it is complete."""
        return self.outcomes.get((name, protocol))

    @property
    def protocols(self) -> list[str]:
        """Protocols with results."""
        return [p for p in ("released", "written", "own") if any(q == p for _, q in self.outcomes)]


def read_results(folder: Path, known: Mapping[str, pa.Table] | None = None) -> Results:
    """Read the folder that `runner.run` has filled; numbers of arms of which units are missing are left out.

    Tables in `known`, by the paths of their units, are not read again. ResultsError if a file is damaged or does not
    belong there, or no number of arms is complete.
    """
    manifest = read_manifest(folder)
    try:
        records = [Experiment.from_plain(plain) for plain in manifest["experiments"]]
    except (ResultsError, ValueError, KeyError, TypeError) as problem:
        path = folder / MANIFEST
        raise ResultsError(f"{path} holds a record that cannot be read ({problem}): remove it") from None
    tables = dict(known or {})
    outcomes: dict[tuple[str, str], Outcome] = {}
    units = [unit for record in records for unit in record.units()]
    saved = {unit.path for unit in units if (folder / unit.path).exists()}
    for record in records:
        cases = {}
        for arms in record.arms:
            case = [unit for unit in record.units() if unit.arms == arms]
            packed = packed_path(record, arms)
            if (table := read_packed(folder, record, arms, manifest["units"].get(packed))) is not None:
                cases[arms] = table
            elif all(unit.path in saved for unit in case):
                for unit in case:
                    if unit.path not in tables:
                        tables[unit.path] = read_unit(folder, unit, manifest["units"].get(unit.path))
                cases[arms] = pa.concat_tables([tables[unit.path] for unit in case])
        if cases:
            outcomes[record.name, record.protocol] = Outcome(experiment=record, tables=cases)
    if not outcomes:
        raise ResultsError(
            f"{folder} has {len(saved)} of {len(units)} units, too few for any number of arms: run the command that "
            "filled it again"
        )
    return Results(folder=folder, manifest=manifest, outcomes=outcomes)
