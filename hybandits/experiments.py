"""An experiment as a record, and its results as files: what was run, unit by unit, and how to read it back.

A record says everything that results depend on. Its units (one number of arms, one environment, some trials) are
independent of each other, so they may run anywhere and in any order; each becomes one Parquet file with one row per
policy and trial, named after the unit and carrying the record. Nothing here runs anything: see `runner`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hybandits import __version__, checks
from hybandits.checks import Doubles
from hybandits.environments import LAWS, Synthetic
from hybandits.storage import alive

FORMAT = 1
"""Version of the files' layout."""

Protocol = Literal["released", "written", "own"]

DESIGN = ("lambda_min_v", "rho_x", "rho_z", "z_norm")
"""Measures of the design matrix, one number per probe (see `diversity.measure`)."""

DESIGN_BY_ARM = ("pulls", "lambda_min_w", "sigma_max_b")
"""Measures of every arm's block, one number per probe and arm."""


class ResultsError(Exception):
    """Results that cannot be used: of another record or version, unreadable, or missing."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A policy in an experiment: the name results go by, its class, and the settings it is made with.

    `settings` are keyword arguments of the class as JSON-able values; the shape, the seed and, where the class asks for
    them, the number of arms and the horizon come from the unit. learns_from: see `simulate.Player`.
    """

    name: str
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    learns_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Everything that the results of an experiment depend on.

    arms: the numbers of arms to run, each a case of its own. seeds: one per environment; contexts and parameters are
    functions of it, the noise of it and the trial; with `fresh_contexts` every trial has contexts of its
    own and only the parameters are fixed. points: the rounds after which the regret is kept. probes: the rounds after
    which the design matrix is measured, `by_arm`: every arm's block too. trials_per_unit: 0 for all in one unit.
    log: where contexts and means come from a log instead of a law (`semisynthetic.LogWorld`), which one and how it is
    used; then `seeds` is of the noise alone, and every policy and trial is a unit of its own.
    """

    name: str
    protocol: Protocol = "own"
    d1: int
    d2: int
    arms: tuple[int, ...]
    horizon: int
    seeds: tuple[int, ...]
    trials: int
    noise: float
    law: str = "ball"
    theta_bound: float = 1.0
    beta_bound: float = 1.0
    fresh_contexts: bool = False
    policies: tuple[Entry, ...]
    points: tuple[int, ...]
    probes: tuple[int, ...] = ()
    by_arm: bool = False
    trials_per_unit: int = 0
    log: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        checks.count("horizon", self.horizon, least=1, why="it is the number of rounds T to be played")
        checks.count("trials", self.trials, least=1, why="every environment is played at least once")
        for name in ("arms", "seeds", "policies", "points"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, got (): give at least one")
        for arms in self.arms:
            checks.count("arms", arms, least=1, why="a round needs a candidate")
        for name in ("arms", "seeds"):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name} holds a number twice, got {getattr(self, name)}: give each once")
        checks.non_negative("noise", self.noise, "it is a standard deviation")
        checks.non_negative("theta_bound", self.theta_bound, "it bounds the norm of theta")
        checks.non_negative("beta_bound", self.beta_bound, "it bounds the norm of every beta_i")
        if not re.fullmatch(r"[A-Za-z0-9_-]+", self.name):
            raise ValueError(f"name must be letters, digits, - and _, got {self.name!r}: it names files")
        if self.law not in LAWS and self.log is None:
            raise ValueError(f"law must be one of {sorted(LAWS)}, got {self.law!r}")
        names = [entry.name for entry in self.policies]
        if len(set(names)) != len(names):
            raise ValueError(f"two policies have the same name, got {names}: give each its own")
        for what, rounds in (("points", self.points), ("probes", self.probes)):
            if list(rounds) != sorted(set(rounds)) or (rounds and not 1 <= rounds[0] <= rounds[-1] <= self.horizon):
                raise ValueError(f"{what} must be increasing rounds between 1 and {self.horizon}, got {rounds[:5]}..")
        if self.points[-1] != self.horizon:
            raise ValueError(f"points must end at the horizon {self.horizon}, got {self.points[-1]}: add it")

    @property
    def key(self) -> str:
        """How figures and folders call it, e.g. setting-1/released."""
        return f"{self.name}/{self.protocol}"

    def world(self, arms: int, seed: int) -> Synthetic:
        """The environment of one case and seed."""
        return Synthetic(
            d1=self.d1, d2=self.d2, arms=arms, noise=self.noise, theta_bound=self.theta_bound,
            beta_bound=self.beta_bound, seed=seed, law=self.law, fresh_contexts=self.fresh_contexts,
        )  # fmt: skip

    def units(self) -> Iterator[Unit]:
        """The pieces that can run on their own, the most expensive case first."""
        size = 1 if self.log is not None else self.trials_per_unit or self.trials
        policies = ("",) if self.log is None else tuple(entry.name for entry in self.policies)
        for arms in sorted(self.arms, reverse=True):
            for environment in range(len(self.seeds)):
                for first in range(0, self.trials, size):
                    for policy in policies:
                        yield Unit(self, arms, environment, first, min(first + size, self.trials), policy)

    def plain(self) -> dict[str, Any]:
        """The record as JSON-able values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=dict))
        # Fields younger than the format are written only where they say something.
        if self.log is None:
            del plain["log"]
        for entry in plain["policies"]:
            if entry["learns_from"] is None:
                del entry["learns_from"]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Experiment:
        """The inverse of `plain`."""
        known = {f.name for f in fields(cls)}
        if set(plain) | {"log"} != known:
            odd = sorted((set(plain) | {"log"}) ^ known)
            raise ResultsError(f"the record's fields are not those of this version (differing: {', '.join(odd)})")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()
        }
        values["policies"] = tuple(Entry(**entry) for entry in plain["policies"])
        return cls(**values)

    def only(self, policies: Sequence[str]) -> Experiment:
        """The same with some of the policies."""
        return replace(self, policies=tuple(entry for entry in self.policies if entry.name in policies))


class Unit(NamedTuple):
    """One case, one environment, trials first..last-1 of an experiment, all policies ("") or one."""

    experiment: Experiment
    arms: int
    environment: int
    first: int
    last: int
    policy: str = ""

    @property
    def policies(self) -> tuple[Entry, ...]:
        """Those that play."""
        return tuple(entry for entry in self.experiment.policies if self.policy in ("", entry.name))

    @property
    def name(self) -> str:
        """Unique within its experiment."""
        part = f"-trials{self.first}-{self.last - 1}" if self.experiment.trials_per_unit else ""
        if self.policy:
            part = f"-trial{self.first}-" + re.sub(r"[^A-Za-z0-9]+", "-", self.policy).strip("-")
        return f"K{self.arms}-environment{self.environment + 1}{part}"

    @property
    def path(self) -> str:
        """Where its results lie within the folder."""
        return f"units/{self.experiment.name}/{self.experiment.protocol}/{self.name}.parquet"

    @property
    def rounds(self) -> int:
        """Rounds to be played, over all policies and trials."""
        return self.experiment.horizon * (self.last - self.first) * len(self.policies)

    @property
    def seed(self) -> int:
        """Of the environment."""
        return self.experiment.seeds[self.environment]

    def plain(self) -> dict[str, Any]:
        """Everything the unit's numbers depend on, as JSON-able values."""
        named = {"arms": self.arms, "environment": self.environment, "first": self.first, "last": self.last}
        if self.policy:
            named["policy"] = self.policy  # type: ignore[assignment]
        return {"experiment": self.experiment.plain(), **named}


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one policy did in one trial of a unit."""

    policy: str
    trial: int
    regret: Doubles
    design: Mapping[str, Any] | None = None
    """Arrays by the names in DESIGN and DESIGN_BY_ARM, the first axis being the probes; None: no design matrix."""


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
    """The unit's results, one row per policy and trial, with the record in the table's metadata."""
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


def write_atomically(path: Path, write: Any) -> None:
    """Have `write(file name)` fill a temporary file, and put that in the place of `path` once it is on disk whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(str(temporary))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def clear_parts(paths: Iterable[Path]) -> None:
    """Remove temporary files that runs left which were killed while they wrote one of these files."""
    names = {(path.parent, path.name) for path in paths}
    for folder in {parent for parent, _ in names}:
        for part in folder.glob(".*.part"):
            name, _, process = part.name[1 : -len(".part")].rpartition(".")
            if (folder, name) in names and process.isdigit() and not alive(int(process)):
                part.unlink(missing_ok=True)


def write_table(table: pa.Table, name: str) -> None:
    """Compact: the bytes of floating-point numbers apart by significance, repeated values by reference."""
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
    """Save a finished unit; returns the SHA-256 of the file."""
    table = unit_table(unit, runs)
    path = folder / unit.path
    write_atomically(path, lambda name: write_table(table, name))
    return sha256(path)


def sha256(path: Path) -> str:
    """Digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_unit(path: Path, digest: str | None = None) -> tuple[pa.Table, dict[str, Any]]:
    """A unit's table and its header; ResultsError if the file is not a whole result of this format.

    digest: the SHA-256 that the manifest has for it. A file saved just before its run was killed has none there; then
    the checksums within the file, which do not cover every byte, must do.
    """
    try:
        if digest is not None and sha256(path) != digest:
            raise ValueError("its SHA-256 is not the manifest's")
        table = pq.read_table(path, page_checksum_verification=True)
        header = json.loads((table.schema.metadata or {})[b"hybandits"])
        version = header["format"]
    except (OSError, pa.ArrowException, KeyError, ValueError) as problem:
        first = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise ResultsError(f"{path} is not a result of hybandits or is damaged ({first}): remove it") from None
    if version != FORMAT:
        raise ResultsError(
            f"{path} has results format {version}, this version reads {FORMAT}: use hybandits {header.get('version')}"
        )
    return table, header


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, kw_only=True)
class Design:
    """Measures of the design matrix of one policy: arrays (runs, probes), by arm (runs, probes, arms)."""

    t: Doubles
    lambda_min_v: Doubles
    rho_x: Doubles
    rho_z: Doubles
    z_norm: Doubles
    pulls: Doubles | None = None
    lambda_min_w: Doubles | None = None
    sigma_max_b: Doubles | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of one experiment, as far as they are there.

    Runs are in the order environment, trial, the same for every policy, so that row i of one policy and row i of
    another have seen the same contexts and noise.
    """

    experiment: Experiment
    tables: Mapping[int, pa.Table]
    """By number of arms; only cases whose units are all there."""

    @property
    def points(self) -> Doubles:
        """The rounds at which the regret was kept."""
        return np.array(self.experiment.points, dtype=float)

    @property
    def arms(self) -> list[int]:
        """The cases that are complete, in increasing order."""
        return sorted(self.tables)

    @property
    def policies(self) -> list[str]:
        """The policies' names."""
        return [entry.name for entry in self.experiment.policies]

    def _rows(self, policy: str, arms: int) -> pa.Table:
        table = self.tables[arms]
        rows = table.filter(pc.equal(table["policy"], policy))
        return rows.sort_by([("environment", "ascending"), ("trial", "ascending")])

    def regret(self, policy: str, arms: int | None = None) -> Doubles:
        """Cumulative regret (runs, points); arms may be left out where there is one case."""
        rows = self._rows(policy, self.arms[0] if arms is None else arms)
        return np.array(rows["regret"].to_pylist())

    def final(self, policy: str, arms: int | None = None) -> Doubles:
        """Regret at T of every run."""
        last: Doubles = self.regret(policy, arms)[:, -1]
        return last

    def environments(self, policy: str, arms: int | None = None) -> Doubles:
        """The environment of every run."""
        return np.array(self._rows(policy, self.arms[0] if arms is None else arms)["environment"].to_pylist())

    def design(self, policy: str, arms: int | None = None) -> Design | None:
        """Measures of the design matrix; None if there are none for this policy."""
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
    """Everything in a results folder."""

    folder: Path
    manifest: Mapping[str, Any]
    outcomes: Mapping[tuple[str, str], Outcome]
    """By (name, protocol)."""

    def outcome(self, name: str, protocol: str) -> Outcome | None:
        """One experiment's results, None if it was not run or no case of it is complete."""
        return self.outcomes.get((name, protocol))

    @property
    def protocols(self) -> list[str]:
        """The protocols that have results."""
        return [p for p in ("released", "written", "own") if any(q == p for _, q in self.outcomes)]


MANIFEST = "manifest.json"


def read_manifest(path: Path) -> dict[str, Any]:
    """A folder's manifest; ResultsError if it is not one of this format."""
    if not path.parent.is_dir():
        raise ResultsError(f"{path.parent} is not a folder with results: run hybandits reproduce or simulate first")
    try:
        manifest = json.loads(path.read_text())
        version = manifest["format"]
    except FileNotFoundError:
        remedy = "run hybandits reproduce or simulate first"
        raise ResultsError(f"{path.parent} holds no results (no {MANIFEST}): {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ResultsError(f"{path} is damaged or not of hybandits ({problem}): remove it") from None
    if version != FORMAT:
        made = manifest.get("version")
        raise ResultsError(f"{path} has results format {version}, this version reads {FORMAT}: use hybandits {made}")
    parts = {"version": str, "versions": dict, "experiments": list, "units": dict}
    for name, kind in parts.items():
        if not isinstance(manifest.get(name), kind):
            raise ResultsError(f"{path} is damaged ({name} is not a {kind.__name__}): remove it")
    return manifest  # type: ignore[no-any-return]


def read_results(folder: Path) -> Results:
    """Read a results folder; cases with missing units are left out. ResultsError if there is nothing to read."""
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
                    raise ResultsError(f"{file} is of another record than {path} says: remove it and run again")
                tables.append(table)
        cases = {arms: pa.concat_tables(tables) for arms, tables in whole.items() if tables}
        if cases:
            outcomes[experiment.name, experiment.protocol] = Outcome(experiment=experiment, tables=cases)
    if not outcomes:
        units = [unit for experiment in records for unit in experiment.units()]
        there = sum((folder / unit.path).exists() for unit in units)
        raise ResultsError(
            f"{folder} has {there} of {len(units)} units, and of no number of arms all of them: give the command that "
            "started it again"
        )
    return Results(folder=folder, manifest=manifest, outcomes=outcomes)
