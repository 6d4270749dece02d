"""The figure of an evaluation on a log: estimates as rounds come in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from hybandits.evaluation import Estimate, Evaluation
from hybandits.foundation.files import write_atomically
from hybandits.report.figures.looks import LOOK, SPARE_COLOURS, thousands

_DASHES = ("solid", "dashed", "dotted", "dashdot")


def draw_running(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Draw the running estimates into running.png and running.svg, a panel per estimator, and return the files."""
    followed = [estimate for estimate in evaluation.estimates if estimate.running is not None]
    if not followed:
        return []
    with style.context(LOOK):
        canvas = _draw(followed, bands_in_words(evaluation))
        png, svg = folder / "running.png", folder / "running.svg"
        write_atomically(png, lambda file: canvas.savefig(file, format="png"))
        write_atomically(svg, lambda file: canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None}))
    return [png, svg]


def bands_in_words(evaluation: Evaluation) -> str:
    """The meaning of the bands of the figure."""
    level = f"{float(f'{100 * evaluation.level:.6g}'):g} %"
    if evaluation.interval == "bernstein":
        return f"bands: {level}, at all rounds at once"
    direct = any(estimate.estimator == "dm" for estimate in evaluation.estimates)
    none = "; none for dm, whose model has seen all rounds" if direct else ""
    return f"bands: {level} at each round by itself, normal approximation{none}"


def _draw(estimates: Sequence[Estimate], bands: str) -> Canvas:
    names = list(dict.fromkeys(estimate.estimator for estimate in estimates))
    policies = list(dict.fromkeys(estimate.policy for estimate in estimates))
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    canvas = Canvas(figsize=(5.6 * columns, 3.4 * rows + 0.3), layout="constrained")
    panels = list(canvas.subplots(rows, columns, squeeze=False, sharex=True).ravel())
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        for estimate in (estimate for estimate in estimates if estimate.estimator == name):
            _draw_estimate(axes, estimate, policies.index(estimate.policy))
        axes.set(title=name, xlabel="rounds evaluated", ylabel="value per round")
        axes.tick_params(axis="x", labelrotation=20, labelbottom=True)
        axes.xaxis.set_major_formatter(thousands)
    keys: dict[str, Any] = {}
    for axes in panels[: len(names)]:
        handles, labels = axes.get_legend_handles_labels()
        keys |= dict(zip(labels, handles, strict=True))
    canvas.legend(
        keys.values(), keys, loc="outside lower center", ncols=min(4, len(keys)), title=bands, title_fontsize="small"
    )
    return canvas


def _draw_estimate(axes: Axes, estimate: Estimate, place: int) -> None:
    """Draw one policy's estimates; the first tenth swings too far to set the scale."""
    running = estimate.running
    assert running is not None
    look: dict[str, Any] = {
        "color": SPARE_COLOURS[place % len(SPARE_COLOURS)][0],
        "linestyle": _DASHES[place % len(_DASHES)],
    }
    axes.plot(running.rounds, running.value, linewidth=1.4, label=estimate.policy, **look)
    axes.fill_between(running.rounds, running.low, running.high, color=look["color"], alpha=0.15, linewidth=0)
    late = len(running.rounds) // 10
    edges = np.concatenate([running.value[late:], running.low[late:], running.high[late:]])
    edges = edges[np.abs(edges) < 1e12]
    if len(edges):
        margin = 0.05 * float(edges.max() - edges.min()) or 0.01
        before = axes.get_ylim() if len(axes.get_lines()) > 1 else (np.inf, -np.inf)
        axes.set_ylim(min(before[0], edges.min() - margin), max(before[1], edges.max() + margin))
