"""How to run experiments of one's own again: their records as files, seeds, data sets, and digests of classes."""

from __future__ import annotations

import json
from typing import NamedTuple

from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Results
from hybandits.experiments.worlds import split_settings
from hybandits.report.numbers import in_order


class Repeat(NamedTuple):
    """What is needed to run one experiment again."""

    experiment: Experiment
    file: str
    """The name of the record's file beside the page."""
    text: str
    """The text of that file, which ``hybandits simulate`` takes."""
    facts: list[tuple[str, str]]
    """What else it depends on, in words."""


def repeats(results: Results) -> list[Repeat]:
    """The experiments of one's own, with what is needed to run each again."""
    return [_repeat(outcome.experiment) for outcome in in_order(results) if outcome.experiment.protocol == "own"]


def _repeat(experiment: Experiment) -> Repeat:
    text = json.dumps(experiment.plain(), indent=1, ensure_ascii=False) + "\n"
    return Repeat(experiment, f"{experiment.name}.record.json", text, _facts(experiment))


def _facts(experiment: Experiment) -> list[tuple[str, str]]:
    kind, own, _ = split_settings(experiment.world_settings)
    facts = [("seeds of the environments", ", ".join(map(str, experiment.seeds)))]
    if kind == "linear":
        facts.append(("largest norms", f"θ {experiment.theta_bound:g}, β {experiment.beta_bound:g}"))
    if "sha256" in own:
        label = f", class in the column {own['label']}" if "label" in own else ""
        facts.append(("data set", f"{own['data']}{label}, SHA-256 {own['sha256']}"))
    return [*facts, *((name, f"SHA-256 {digest}") for name, digest in experiment.origins.items())]
