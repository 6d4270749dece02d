"""Every figure that there are results for. Each family of figures has a file; `looks` has the look that all share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from hybandits.experiments.results import Outcome, Results
from hybandits.paper.diversity import coverages
from hybandits.paper.exponents import exponents
from hybandits.paper.sensitivity import factorials, sensitivity_outcomes
from hybandits.paper.settings import DIVERSITY_RUNS, FRESH_NAMES, SMALL_DIVERSITY
from hybandits.paper.structured import structured_worlds
from hybandits.report import cases
from hybandits.report.figures.diversity import (
    coverage_figure,
    diversity_figures,
    small_problem_figure,
    structured_figure,
)
from hybandits.report.figures.looks import Drawn, Figure, write_figure
from hybandits.report.figures.regret import (
    PANELS,
    beyond_figure,
    beyond_names,
    environments_figure,
    panels_figure,
    setting_figure,
)
from hybandits.report.figures.sensitivity import factorial_figure, sensitivity_figure
from hybandits.report.figures.theory import bounds_figure, exponents_figure, forced_regret_figure

__all__ = ["Drawn", "Figure", "draw_all", "figures_of"]


def draw_all(results: Results, out: Path, *, workers: int = 1) -> list[Drawn]:
    """Draw every figure that there are results for into a folder: SVG, and its numbers as CSV.

    `workers` is the number of processes; 1 draws in this one.
    """
    if workers == 1:
        return list(_draw_share(results, out, 0, 1))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        shares = [pool.submit(_draw_share, results, out, i, workers) for i in range(workers)]
        drawn = [share.result() for share in shares]
    return [drawn[i % workers][i // workers] for i in range(sum(map(len, drawn)))]


def _draw_share(results: Results, out: Path, first: int, step: int) -> list[Drawn]:
    """Draw every `step`-th figure."""
    policies = list(dict.fromkeys(name for outcome in cases.in_order(results) for name in outcome.policies))
    return [write_figure(figure, out, policies) for i, figure in enumerate(figures_of(results)) if i % step == first]


def figures_of(results: Results) -> Iterator[Figure]:
    """The figures that there are results for, before they are drawn, protocol by protocol."""
    for protocol in results.protocols:
        outcomes = {name: outcome for (name, p), outcome in sorted(results.outcomes.items()) if p == protocol}
        yield from _figures_of_protocol(outcomes, protocol)
        if protocol != "own" and any(name in outcomes for name in PANELS):
            yield forced_regret_figure(results, protocol)
        if sensitivity_outcomes(results, protocol):
            yield sensitivity_figure(results, protocol)
        if covered := coverages(results, [protocol]):
            yield coverage_figure(covered, protocol)
        if worlds := structured_worlds(results, protocol):
            yield structured_figure(worlds, protocol)
        if exponents(results, protocol):
            yield exponents_figure(results, protocol)
    if any(name in PANELS and protocol != "own" for name, protocol in results.outcomes):
        yield bounds_figure(results)
    if any(True for _ in factorials(results)):
        yield factorial_figure(results)


def _figures_of_protocol(outcomes: Mapping[str, Outcome], protocol: str) -> Iterator[Figure]:
    if protocol == "own":
        yield from map(setting_figure, outcomes.values())
        return
    regret = [outcomes[name] for name in PANELS if name in outcomes]
    if any(cases.present_in(outcome, cases.REPRODUCED) for outcome in regret):
        yield panels_figure(outcomes, protocol)
    yield from map(setting_figure, regret)
    for name, fresh in FRESH_NAMES.items():
        if fresh in outcomes:
            yield environments_figure(outcomes[fresh], outcomes.get(name))
    for name in (name for name in DIVERSITY_RUNS if name in outcomes):
        yield from diversity_figures(outcomes[name])
    if SMALL_DIVERSITY in outcomes:
        yield small_problem_figure(outcomes[SMALL_DIVERSITY])
    yield from (beyond_figure(outcome) for outcome in regret if beyond_names(outcome))
    yield from (setting_figure(outcome) for outcome in outcomes.values() if outcome.experiment.log is not None)
