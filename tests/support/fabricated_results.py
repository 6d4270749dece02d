"""Results folders with regrets and measures that are made up: the paper's settings, and a click log."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hybandits import __version__, paper
from hybandits.experiments.record import MOMENTS, Experiment, Unit
from hybandits.experiments.results import FORMAT, Results, Run, read_results, write_unit
from hybandits.paper import HYRAN_RELEASED, HYTHOMPSON_TOLD
from hybandits.paper.published_numbers import published

SMALL = {"setting-1": (25,), "setting-2": (25,), "setting-3": (10, 50), "diversity": (6,)}


def small_setting(
    name: str, protocol: Any = "released", *, policies: tuple[str, ...] = (), **changes: Any
) -> Experiment:
    """One of the paper's experiments with few environments and points."""
    record = paper.experiment(name, protocol, scale="paper" if name == "setting-3" else "quick")
    diversity = name == "diversity"
    record = replace(
        record,
        arms=SMALL[name],
        seeds=record.seeds[: 1 if diversity else 3],
        trials=4 if diversity else 2,
        trials_per_unit=0,
        points=tuple(t for t in record.points if t in (1000, 2500, 5000, 10_000, 30_000)),
        probes=(10, 100, 1000, 2500, 5000) if diversity else (record.horizon,),
        **changes,
    )
    return record.only(policies) if policies else record


def fresh_setting(name: str, protocol: Any = "released") -> Experiment:
    """One of the paper's settings in six fresh environments, with few points."""
    record = paper.fresh_experiment(name, protocol, environments=6, scale="quick")
    return replace(record, points=(1000, 2500, 5000, 10_000))


def level_of(experiment: Experiment, policy: str, arms: int) -> float:
    """The mean regret at T that is fabricated: the published one where it is known."""
    known = published(experiment.name, policy, arms).get(experiment.horizon)
    return 100.0 + 10 * len(policy) + arms if known is None else known


def _runs_of(unit: Unit) -> list[Run]:
    """Regret like a square root, environments 10 % apart around the level; a plausible design."""
    e = unit.experiment
    t, runs = np.array(e.points) / e.horizon, []
    probes = np.array(e.probes, dtype=float)
    for entry in e.policies:
        for trial in range(unit.first, unit.last):
            factor = 1 + 0.1 * (unit.environment - (len(e.seeds) - 1) / 2) + 0.01 * (trial - (e.trials - 1) / 2)
            pulls = np.outer(probes, np.arange(1, unit.arms + 1)) // (unit.arms + 1)
            design = dict.fromkeys(("lambda_min_v", "rho_x", "rho_z"), 1 + 0.01 * probes)
            design["z_norm"] = 1 / np.sqrt(1 + probes / 100)
            if e.by_arm:
                design |= {"pulls": pulls, "lambda_min_w": 1 + pulls / 20, "sigma_max_b": np.sqrt(pulls)}
                design |= {"frobenius_b": 2 * np.sqrt(pulls), **dict.fromkeys(MOMENTS, 0.1 + 0 * probes)}
            if entry.name == "DisLinUCB":
                design["lambda_min_v"] = np.full(len(probes), np.nan)
            kept = entry.name in (*paper.PAPER_POLICIES, paper.HYLINUCB_K)
            regret = level_of(e, entry.name, unit.arms) * factor * np.sqrt(t)
            runs.append(Run(policy=entry.name, trial=trial, regret=regret, design=design if kept else None))
    return runs


def fabricate(folder: Path, *records: Experiment, leave_out: str = "", **about: Any) -> Results:
    """A results folder with these experiments; units whose path contains `leave_out` are missing."""
    for unit in (unit for record in records for unit in record.units()):
        if not leave_out or leave_out not in unit.path:
            write_unit(folder, unit, _runs_of(unit))
    return _with_manifest(folder, records, about)


# ------------------------------------------------------------------ a click log

LEVELS = {
    "HyLinUCB": 1000.0, "LinUCB": 1100.0, "DisLinUCB": 1400.0, HYRAN_RELEASED: 2000.0, "HyRan": 1700.0,
    HYTHOMPSON_TOLD: 50.0, "HyThompson": 45.0, "HyIDS": 40.0,
}  # fmt: skip
"""Regret at T: LinUCB is 100 beyond HyLinUCB, DisLinUCB 400, HyRan as plotted 1,000."""


def on_a_log(
    protocol: Any = "released", *, synthetic: bool = True, arms: str = "articles", trials: int = 2,
    rounds: int = 200_000, policies: tuple[str, ...] = paper.YAHOO_POLICIES, **changes: Any,
) -> Experiment:  # fmt: skip
    """The record of the experiment on a click log, without a log to read."""
    synthetic_log = {"rounds": 300_000, "seed": 0, "pool": 20, "rate": 0.06} if synthetic else None
    log = {
        "content": "0", "kind": "R6A", "synthetic": synthetic_log, "features": "das", "arms": arms, "train": 100_000,
        "start": 120_000, "rounds": rounds, "trained_arms": 20, "rank": 45, "parameters": 162, "residual": 0.2491,
        "left_out": 3, "uniform_choice_regret": 2500.0, "model": {},
    }  # fmt: skip
    return Experiment(
        name="yahoo" if arms == "articles" else "yahoo-positions", protocol=protocol, d1=36, d2=6, arms=(22,),
        horizon=rounds, seeds=(0,), trials=trials, noise=paper.YAHOO_NOISE[protocol], law="log",
        policies=tuple(paper.yahoo_entry(name, protocol) for name in policies),
        points=tuple(range(rounds // 100, rounds + 1, rounds // 100)), log={**log, **changes},
    )  # fmt: skip


def fabricate_log(
    folder: Path, *records: Experiment, levels: Mapping[str, float] = LEVELS, spread: float = 1.0, **about: Any
) -> Results:
    """A results folder: regret like a square root, trials `spread` apart at T, and a little by the policy's name."""
    for e in records:
        for unit in e.units():
            own = 0.1 * len(unit.policy) * (-1) ** unit.first
            last = levels[unit.policy] + spread * (unit.first + own)
            t = np.array(e.points)
            regret = np.where(t <= e.rounds_of(unit.policy), last * np.sqrt(t / e.horizon), np.nan)
            write_unit(folder, unit, [Run(policy=unit.policy, trial=unit.first, regret=regret)])
    return _with_manifest(folder, records, about)


def fabricate_both(folder: Path, setting: Experiment, clicks: Experiment, **about: Any) -> Results:
    """Results of one of the settings and of a click log in one folder."""
    folder.mkdir()
    fabricate(folder, setting)
    fabricate_log(folder, clicks)
    return _with_manifest(folder, [setting, clicks], about)


def _with_manifest(folder: Path, records: Sequence[Experiment], about: Mapping[str, Any]) -> Results:
    plain = [record.plain() for record in records]
    manifest = {"format": FORMAT, "version": __version__, "versions": {}, "experiments": plain, "units": {}, **about}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return read_results(folder)
