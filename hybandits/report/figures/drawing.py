"""All figures at once: every figure that there are results for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib

from hybandits import paper
from hybandits.engines import Engine, Report, SerialEngine
from hybandits.experiments.results import Results
from hybandits.paper.published_numbers import READ_OUT_ERRORS
from hybandits.paper.settings import SMALL_DIVERSITY
from hybandits.report.figures.click_log import draw_click_log
from hybandits.report.figures.eigenvalues import draw_eigenvalues
from hybandits.report.figures.environments import draw_environments
from hybandits.report.figures.looks import LOOK, styles_for
from hybandits.report.figures.outcomes import (
    DEFECT,
    REPRODUCED,
    Figure,
    Published,
    ReadOutError,
    many_arms,
    present_in,
)
from hybandits.report.figures.regret import (
    PANELS,
    beyond_names,
    draw_beyond,
    draw_hyran,
    draw_panels,
    draw_rounds,
    draw_setting,
)
from hybandits.report.figures.small_diversity import draw_small_diversity


def draw_all(
    results: Results,
    out: Path,
    published: Published,
    *,
    read_out_error: ReadOutError = READ_OUT_ERRORS.__getitem__,
    engine: Engine | None = None,
) -> list[Figure]:
    """Draw every figure that there are results for.

    Parameters
    ----------
    results : Results
        What to draw.
    out : Path
        The folder for the figures, each a PNG and an SVG, with its numbers as CSV.
    published : Published
        Read-outs of the published figure.
    read_out_error : ReadOutError
        How far an experiment's published numbers may be off; drawn beside the ratios to them.
    engine : Engine, optional
        Where to draw the protocols' figures; in this process if left out.

    Returns
    -------
    list of Figure
        Protocol by protocol, with the words that go with each.
    """
    tasks = [(results, protocol, out, published, read_out_error) for protocol in results.protocols]
    drawn = dict((engine or SerialEngine()).map(_draw, tasks, lambda i, amount: None))
    return [figure for i in range(len(tasks)) for figure in drawn[i]]


def _draw(task: tuple[Results, str, Path, Published, ReadOutError], report: Report) -> list[Figure]:
    policies = [name for _, outcome in sorted(task[0].outcomes.items()) for name in outcome.policies]
    with matplotlib.rc_context(LOOK), styles_for(policies):
        return list(_of_protocol(*task))


def _of_protocol(
    results: Results, protocol: str, out: Path, published: Published, read_out_error: ReadOutError
) -> Iterator[Figure]:
    outcomes = {name: outcome for (name, p), outcome in sorted(results.outcomes.items()) if p == protocol}
    if protocol == "own":
        for outcome in outcomes.values():
            yield draw_setting(outcome, out, published)
            if many_arms(outcome):
                yield draw_rounds(outcome, out)
        return
    logged = [outcome for outcome in outcomes.values() if outcome.experiment.log is not None]
    aside = ("diversity", SMALL_DIVERSITY, *paper.FRESH_NAMES.values())  # they have figures of their own
    regret = [outcome for name, outcome in outcomes.items() if name not in aside and outcome not in logged]
    if any(name in outcomes and present_in(outcomes[name], REPRODUCED) for name in PANELS):
        yield draw_panels(outcomes, protocol, out, published, read_out_error)
    for outcome in regret:
        yield draw_setting(outcome, out, published)
    for name, fresh in paper.FRESH_NAMES.items():
        if fresh in outcomes:
            yield draw_environments(outcomes[fresh], outcomes.get(name), out)
    if "diversity" in outcomes:
        yield from draw_eigenvalues(outcomes["diversity"], out)
    if SMALL_DIVERSITY in outcomes:
        yield draw_small_diversity(outcomes[SMALL_DIVERSITY], out)
    for outcome in regret:
        if set(DEFECT) <= set(outcome.policies):
            yield draw_hyran(outcome, out)
    for outcome in regret:
        if beyond_names(outcome):
            yield draw_beyond(outcome, out)
    for outcome in logged:
        yield from draw_click_log(outcome, out, published)
