"""Figures on the assumption: coverage of confidence sets, and worlds in which diversity fails by construction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybandits.paper.diversity import Coverage
from hybandits.paper.without_diversity import COMPARED, Structured
from hybandits.report import cases
from hybandits.report.figures.looks import Figure, Plot, make_logarithmic


def coverage_figure(rows: Sequence[Coverage], protocol: str) -> Figure:
    """|phi - phi*|_M / gamma of every policy with such a set, in every diversity experiment."""
    names = [
        f"{e.name}{f', K = {case.arms}' if len(e.arms) > 1 else ''}: {case.policy}"
        for case, e in ((case, case.judged.experiment) for case in rows)
    ]
    levels = np.array([np.quantile(case.ratio, (0, 0.5, 1)) for case in rows])

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        for place, (case, (low, middle, high)) in enumerate(zip(rows, levels, strict=True)):
            style = plot.styles[case.policy]
            axes.plot((low, high), (place, place), color=style.colour, linewidth=3, alpha=0.5)
            axes.plot(middle, place, marker=style.marker, color=style.colour, linestyle="none")
            shares = {"share of runs and probes": [case.share], "share of single arms": [case.outside.mean()]}
            values = {"lowest": [low], "median": [middle], "highest": [high]}
            plot.record(axes, case.policy, [names[place]], values | shares)
        axes.axvline(1, color=plot.ink, linewidth=1.1)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        make_logarithmic(axes, only_x=True)
        axes.set(xlabel=r"$|\hat\varphi - \varphi|_M\,/\,\gamma$", title="size of the error over that of the set")

    return Figure(
        name="coverage", protocol=protocol, section="beyond", draw=draw, size=(6.6, 1.4 + 0.28 * len(rows)),
        title=f"Coverage of the confidence sets, {cases.under(protocol)}",
        caption="Lines from the lowest to the highest of all runs and probes, marks at the median. Right of 1 the true "
        "parameters are outside the set. HyLinUCB's coefficient is not derived for all parameters at once.",
        alt="Chart. Medians: " + "; ".join(f"{n} {level[1]:.2g}" for n, level in zip(names, levels, strict=True)) + ".",
    )  # fmt: skip


def structured_figure(worlds: Sequence[Structured], protocol: str) -> Figure:
    """Regret at T over that of uniform choice, and the diversity of an arm's own rows, world by world."""
    names = [world.words for world in worlds]
    policies = [name for name in COMPARED if any(name in world.of_uniform for world in worlds)]

    def draw(plot: Plot) -> None:
        places = np.arange(len(worlds), dtype=float)
        shares = [{name: share.mean() for name, share in w.of_uniform.items()} for w in worlds]
        columns = (shares, [w.own_rho for w in worlds], [w.own_cross for w in worlds])
        heads = ("regret / that of uniform choice", "own rows: smallest eigenvalue", "own rows: mean of $xz'$")
        labels = ("regret at T", r"$\lambda_{\min}$ of the mean $zz'$", r"$\sigma_{\max}$ of the mean $xz'$")
        for axes, values, head, label in zip(plot.axes, columns, heads, labels, strict=True):
            for name in policies:
                style = plot.styles[name]
                x = np.array([of_world.get(name, np.nan) for of_world in values])
                axes.plot(x, places, linestyle="none", marker=style.marker, color=style.colour, label=name)
                plot.record(axes, name, names, {"value": x})
            axes.set_ylim(len(worlds) - 0.5, -0.5)
            axes.set_xlim(left=0)
            axes.grid(axis="y", visible=False)
            axes.set(xlabel=label, title=head)
        plot.axes[0].set_yticks(places, names)

    return Figure(
        name="structured", protocol=protocol, section="beyond", draw=draw, columns=3, size=(4.2, 2.6),
        sharing={"sharey": True},
        title=f"Worlds in which diversity fails by construction, {cases.under(protocol)}",
        caption="Left: mean regret at T. Middle and right: the median arm over its own rounds; an eigenvalue of 0 or a "
        "mean of xz' far from 0 is no diversity. DisLinUCB's eigenvalue is that of its matrices of (x, z).",
        alt="Charts. Regret over that of uniform choice: " + "; ".join(
            f"{world.words}: " + ", ".join(f"{name} {share.mean():.2g}" for name, share in world.of_uniform.items())
            for world in worlds
        ) + ".",
    )  # fmt: skip
