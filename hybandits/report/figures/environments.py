"""Pictures of environments: how the regrets at T of fresh environments are spread, beside those of the paper's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.report.figures.looks import COLOURS, put_legend, save_figure, stamp_protocol, thousands
from hybandits.report.figures.outcomes import Figure, name_of, runs_in_words, under
from hybandits.report.figures.plotted import remember

_GOLDEN = 0.6180339887498949
"""Its multiples fill an interval evenly: dots spread over the height of a strip without any draw."""


def draw_environments(fresh: Outcome, others: Outcome | None, out: Path) -> Figure:
    """Regret at T of every fresh environment, one strip per policy and one chart per number of arms.

    `others` are the results in the paper's own environments, which are marked; None if there are none.
    """
    e = fresh.experiment
    height = 1.9 + 0.42 * len(fresh.policies)
    canvas = Canvas(figsize=(6.6 if len(fresh.arms) == 1 else 11.0, height), layout="constrained")
    charts = canvas.subplots(1, len(fresh.arms), squeeze=False, sharex=True, sharey=True)[0]
    for axes, arms in zip(charts, fresh.arms, strict=True):
        _draw_strips(axes, fresh, others, arms)
        axes.set_title(
            f"K = {arms}" if len(fresh.arms) > 1 else f"{name_of(e.name)}: d₁ = {e.d1}, d₂ = {e.d2}, K = {arms}"
        )
    stamp_protocol(charts[-1], e.protocol)
    marked = others is not None and any(arms in others.arms for arms in fresh.arms)
    put_legend(canvas, _keys(others if marked else None), 3 if len(fresh.arms) > 1 else 2)
    own = _name_of_others(others) if marked and others is not None else ""
    return save_figure(
        canvas, out, e.protocol, f"{e.name}-environments",
        section="regret", wide=len(fresh.arms) > 1,
        title=f"Regret at T from environment to environment, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{runs_in_words(fresh)}, {e.horizon:,} rounds. A dot is an environment, the box holds the middle half "
        f"of them, its line is the median.{f' Diamonds: {own}, mean over trials.' if own else ''} The axis is "
        "logarithmic.",
        alt=f"Strip chart. {_in_words(fresh)}.",
    )  # fmt: skip


def _draw_strips(axes: Axes, fresh: Outcome, others: Outcome | None, arms: int) -> None:
    for place, policy in enumerate(fresh.policies):
        regrets = np.sort(fresh.final(policy, arms))
        colour = COLOURS[policy]
        scatter = 0.5 * ((np.arange(len(regrets)) * _GOLDEN) % 1 - 0.5)
        dots = axes.plot(
            regrets, place + scatter, ".", color=colour, alpha=0.45, markersize=3.5, markeredgewidth=0, zorder=2
        )
        seeds = [str(seed) for seed in _by_environment(fresh, policy, arms)]
        remember(axes, policy, seeds, {"regret": fresh.final(policy, arms)}, dots, readable=False)
        axes.boxplot(
            [regrets], positions=[place], orientation="horizontal", widths=0.62, showfliers=False, showcaps=False,
            manage_ticks=False, whis=(0, 100), whiskerprops={"linewidth": 0}, boxprops={"color": colour},
            medianprops={"color": colour, "linewidth": 2}, zorder=3,
        )  # fmt: skip
        if others is not None and arms in others.arms and policy in others.policies:
            known = environment_means(others, policy, arms)
            own = [str(seed) for seed in others.experiment.seeds]
            remember(axes, f"{policy}, {_name_of_others(others)}", own, {"regret": known}, readable=False)
            axes.plot(
                known, np.full(len(known), float(place)), "D", color="white", markeredgecolor="black", markersize=4.5,
                zorder=4,
            )  # fmt: skip
    axes.set_yticks(range(len(fresh.policies)), fresh.policies)
    axes.set_ylim(len(fresh.policies) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("cumulative regret at T")
    if all((fresh.final(policy, arms) > 0).all() for policy in fresh.policies):
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))


def environment_means(outcome: Outcome, policy: str, arms: int) -> FloatArray:
    """The mean regret at T of every environment over its trials."""
    final, environments = outcome.final(policy, arms), outcome.environments(policy, arms)
    return np.array([final[environments == one].mean() for one in np.unique(environments)])


def _by_environment(outcome: Outcome, policy: str, arms: int) -> list[int]:
    """The seed of the environment of every run."""
    seeds = outcome.experiment.seeds
    return [seeds[int(place)] for place in outcome.environments(policy, arms)]


def _name_of_others(others: Outcome) -> str:
    return f"the {len(others.experiment.seeds)} environments of {name_of(others.experiment.name).lower()}"


def _keys(others: Outcome | None) -> list[Line2D]:
    dot = Line2D([], [], linestyle="none", marker=".", color="#444444", label="a fresh environment")
    box = Line2D([], [], color="#444444", linewidth=2, label="median and middle half")
    if others is None:
        return [dot, box]
    look = {"linestyle": "none", "marker": "D", "markersize": 4.5, "color": "white", "markeredgecolor": "black"}
    return [dot, box, Line2D([], [], label=_name_of_others(others), **look)]  # type: ignore[arg-type]


def _in_words(fresh: Outcome) -> str:
    """Median and range of every policy, for those who cannot see the chart."""
    arms = fresh.arms[-1]
    finals = {policy: fresh.final(policy, arms) for policy in fresh.policies}
    values = ", ".join(
        f"{policy} {np.median(final):,.0f} ({final.min():,.0f} to {final.max():,.0f})"
        for policy, final in finals.items()
    )
    return f"{name_of(fresh.experiment.name)}, median regret at T with {arms} arms, lowest to highest: {values}"
