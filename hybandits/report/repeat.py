"""How to run experiments of one's own again: their TOML files, seeds, data sets, and where classes come from."""

from __future__ import annotations

from typing import NamedTuple

from hybandits.experiments.config import to_toml
from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Results
from hybandits.foundation.own_classes import origin_in_words
from hybandits.report.numbers import in_order
from hybandits.simulation.kinds import split_settings


class Repeat(NamedTuple):
    """What is needed to run one experiment again."""

    experiment: Experiment
    file: str
    """The name of its TOML file beside the page."""
    toml: str
    """The text of that file; empty if the experiment cannot be written as one."""
    why: str
    """Why there is no such file, if there is none."""
    facts: list[tuple[str, str]]
    """What else it depends on, in words."""


def repeats(results: Results) -> list[Repeat]:
    """The experiments of one's own, with what is needed to run each again."""
    return [_repeat(outcome.experiment) for outcome in in_order(results) if outcome.experiment.protocol == "own"]


def _repeat(experiment: Experiment) -> Repeat:
    try:
        toml, why = to_toml(experiment), ""
    except ValueError as problem:
        toml, why = "", str(problem)
    return Repeat(experiment, f"{experiment.name}.toml", toml, why, _facts(experiment))


def _facts(experiment: Experiment) -> list[tuple[str, str]]:
    kind, own, _ = split_settings(experiment.world_settings)
    facts = [("seeds of the environments", ", ".join(map(str, experiment.seeds)))]
    if kind == "linear":
        facts.append(("largest norms", f"θ {experiment.theta_bound:g}, β {experiment.beta_bound:g}"))
    if "sha256" in own:
        label = f", class in the column {own['label']}" if "label" in own else ""
        facts.append(("data set", f"{own['data']}{label}, SHA-256 {own['sha256']}"))
    for name, origin in experiment.origins.items():
        words = origin_in_words(origin) if "distribution" in origin else f"{origin['file']}, SHA-256 {origin['sha256']}"
        facts.append((name, words))
    return facts
