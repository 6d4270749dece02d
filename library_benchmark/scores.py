"""Scores from rewards: (reward - uniform) / (best possible - uniform), with intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Score(NamedTuple):
    """The mean of the scores of several runs, and half of its 95 % Student interval (NaN for a single run)."""

    mean: float
    half: float
    runs: int


def score(reward: float, uniform: float, best: float) -> float:
    """1 for the best arm in every round, 0 for uniform random choice, negative below it; NaN if all choices are equal.

    >>> score(reward=75.0, uniform=50.0, best=100.0)
    0.5
    """
    return (reward - uniform) / (best - uniform) if best > uniform else math.nan


def summarise(scores: Sequence[float]) -> Score:
    """The mean with its interval.

    >>> summarise([0.5, 0.7]).mean, round(summarise([0.5, 0.7]).half, 3)
    (0.6, 1.271)
    """
    from scipy.stats import t

    values = np.asarray(scores)
    n = len(values)
    half = math.nan if n < 2 else float(t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Score(float(values.mean()), half, n)


class Result(NamedTuple):
    """A method in a stream: by its defaults, and by the best of its grid in hindsight."""

    default: Score | None
    """None if it did not play to the end with every seed."""
    tuned: Score | None
    """None if it has no grid; the defaults are one of the settings to choose from."""
    tuned_settings: str
    milliseconds: float
    """A round, by the defaults; NaN if it did not play."""
    reason: str
    """The reason for a missing score."""


def results(runs: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Result]:
    """Results by (stream, method) from the records of runs."""
    gathered: dict[tuple[str, str], dict[str, list[Mapping[str, Any]]]] = {}
    for run in runs:
        gathered.setdefault((run["stream"], run["method"]), {}).setdefault(run["variant"], []).append(run)
    return {key: _result(variants) for key, variants in gathered.items()}


def _result(variants: Mapping[str, Sequence[Mapping[str, Any]]]) -> Result:
    default = variants.get("", [])
    reasons = [run["reason"] for run in default if run["reason"]]
    if reasons or not default:
        return Result(None, None, "", math.nan, reasons[0] if reasons else "not run")
    scored = {
        name: summarise([score(run["reward"], run["uniform"], run["best"]) for run in sorted(runs, key=_seed)])
        for name, runs in variants.items()
        if not any(run["reason"] for run in runs) and len(runs) == len(default)
    }
    best = max(scored, key=lambda name: scored[name].mean)
    milliseconds = 1000 * float(np.mean([run["seconds"] / run["rounds"] for run in default]))
    tuned = scored[best] if len(variants) > 1 else None
    return Result(scored[""], tuned, best or "as by default", milliseconds, "")


def _seed(run: Mapping[str, Any]) -> int:
    return int(run["seed"])
