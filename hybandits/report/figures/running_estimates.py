"""The picture of an evaluation on a log: estimates as rounds come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from hybandits.evaluation import Estimate, Evaluation
from hybandits.foundation.files import write_atomically

DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1.5, 1, 1.5)), (0, (9, 2)))
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LOOK: dict[Any, Any] = {"svg.hashsalt": "hybandits", "axes.spines.top": False, "axes.spines.right": False}


def draw_running(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Draw the running estimates into running.png and running.svg, a panel per estimator.

    Returns the files; none if no estimate was followed.
    """
    followed = [estimate for estimate in evaluation.estimates if estimate.running is not None]
    if not followed:
        return []
    with rc_context(LOOK):
        canvas = _canvas(followed, bands_in_words(evaluation))
        png, svg = folder / "running.png", folder / "running.svg"
        write_atomically(png, lambda file: canvas.savefig(file, format="png", dpi=150))
        write_atomically(svg, lambda file: canvas.savefig(file, format="svg", metadata={"Date": None, "Creator": None}))
    return [png, svg]


def bands_in_words(evaluation: Evaluation) -> str:
    """What the bands of the figure are."""
    level = f"{float(f'{100 * evaluation.level:.6g}'):g} %"
    if evaluation.interval == "bernstein":
        return f"bands: {level}, at all rounds at once"
    direct = any(estimate.estimator == "dm" for estimate in evaluation.estimates)
    none = "; none for dm, whose model has seen all rounds" if direct else ""
    return f"bands: {level} at each round by itself, normal approximation{none}"


def _canvas(estimates: Sequence[Estimate], bands: str) -> Canvas:
    names = list(dict.fromkeys(estimate.estimator for estimate in estimates))
    policies = list(dict.fromkeys(estimate.policy for estimate in estimates))
    looks = {name: (COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]) for i, name in enumerate(policies)}
    columns = min(2, len(names))
    rows = -(-len(names) // columns)
    canvas = Canvas(figsize=(5.6 * columns, 3.4 * rows + 0.3), layout="constrained")
    panels = canvas.subplots(rows, columns, squeeze=False, sharex=True).flat
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        _panel(axes, [estimate for estimate in estimates if estimate.estimator == name], looks)
        axes.set_title(name, loc="left")
    for axes in panels[max(0, len(names) - columns) : len(names)]:  # the lowest of every column
        axes.set_xlabel("rounds evaluated")
        axes.tick_params(axis="x", labelbottom=True)
    keys = [Line2D([], [], color=colour, lw=2, ls=dash, label=name) for name, (colour, dash) in looks.items()]
    canvas.legend(
        handles=keys, loc="outside lower center", ncols=min(4, len(keys)), frameon=False, title=bands,
        title_fontsize="small",
    )  # fmt: skip
    return canvas


def _panel(axes: Axes, estimates: Sequence[Estimate], looks: Mapping[str, tuple[str, Any]]) -> None:
    """One estimator's estimates for every policy."""
    edges: list[float] = []
    for estimate in estimates:
        running, (colour, dash) = estimate.running, looks[estimate.policy]
        assert running is not None
        axes.plot(running.rounds, running.value, color=colour, lw=1.4, ls=dash)
        axes.fill_between(running.rounds, running.low, running.high, color=colour, alpha=0.15, lw=0)
        late = len(running.rounds) // 10  # the first estimates swing too far to set the scale
        edges += [*running.value[late:], *running.low[late:], *running.high[late:]]
    edges = [edge for edge in edges if -1e12 < edge < 1e12]
    if edges:
        room = 0.05 * (max(edges) - min(edges)) or 0.01
        axes.set_ylim(min(edges) - room, max(edges) + room)
    axes.set_ylabel("value per round")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(axis="x", labelrotation=20)
    axes.grid(alpha=0.25)
