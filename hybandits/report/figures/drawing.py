"""All figures at once: every figure that there are results for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib

from hybandits.engines import Engine, Here, Report
from hybandits.experiments.results import Results
from hybandits.report.figures.click_log import draw_click_log
from hybandits.report.figures.eigenvalues import draw_eigenvalues
from hybandits.report.figures.looks import LOOK, styles_for
from hybandits.report.figures.outcomes import DEFECT, REPRODUCED, Figure, Published, many_arms, present_in
from hybandits.report.figures.regret import (
    PANELS,
    beyond_names,
    draw_beyond,
    draw_hyran,
    draw_panels,
    draw_rounds,
    draw_setting,
)


def draw_all(
    results: Results, out: Path, published: Published, *, read_out_error: float = 10.0, engine: Engine | None = None
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
    read_out_error : float
        How far a published number may be off; drawn beside the ratios to it.
    engine : Engine, optional
        Where to draw the protocols' figures; in this process if left out.

    Returns
    -------
    list of Figure
        Protocol by protocol, with the words that go with each.
    """
    tasks = [(results, protocol, out, published, read_out_error) for protocol in results.protocols]
    drawn = dict((engine or Here()).map(_draw, tasks, lambda i, amount: None))
    return [figure for i in range(len(tasks)) for figure in drawn[i]]


def _draw(task: tuple[Results, str, Path, Published, float], report: Report) -> list[Figure]:
    policies = [name for _, outcome in sorted(task[0].outcomes.items()) for name in outcome.policies]
    with matplotlib.rc_context(LOOK), styles_for(policies):
        return list(_of_protocol(*task))


def _of_protocol(
    results: Results, protocol: str, out: Path, published: Published, read_out_error: float
) -> Iterator[Figure]:
    outcomes = {name: outcome for (name, p), outcome in sorted(results.outcomes.items()) if p == protocol}
    if protocol == "own":
        for outcome in outcomes.values():
            yield draw_setting(outcome, out, published)
            if many_arms(outcome):
                yield draw_rounds(outcome, out)
        return
    logged = [outcome for outcome in outcomes.values() if outcome.experiment.log is not None]
    regret = [outcome for name, outcome in outcomes.items() if name != "diversity" and outcome not in logged]
    if any(name in outcomes and present_in(outcomes[name], REPRODUCED) for name in PANELS):
        yield draw_panels(outcomes, protocol, out, published, read_out_error)
    for outcome in regret:
        yield draw_setting(outcome, out, published)
    if "diversity" in outcomes:
        yield from draw_eigenvalues(outcomes["diversity"], out)
    for outcome in regret:
        if set(DEFECT) <= set(outcome.policies):
            yield draw_hyran(outcome, out)
    for outcome in regret:
        if beyond_names(outcome):
            yield draw_beyond(outcome, out)
    for outcome in logged:
        yield from draw_click_log(outcome, out, published)
