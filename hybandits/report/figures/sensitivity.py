"""Figures of variants of the paper's algorithms: regret against each parameter, and all combinations of protocols."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from hybandits.experiments.results import Results
from hybandits.paper.claims import LEVEL
from hybandits.paper.judging import join_names
from hybandits.paper.sensitivity import (
    IN_WORDS,
    SENSITIVITY,
    VALUES,
    Factorial,
    Variant,
    courses,
    covers_from,
    factorials,
    least,
    sensitivity_outcomes,
)
from hybandits.paper.settings import PAPER_POLICIES
from hybandits.report import cases
from hybandits.report.figures.looks import Figure, Plot, make_logarithmic
from hybandits.report.tables import regret_interval

_AXES = {"gamma": r"factor of $\gamma$", "lambda": r"$\lambda$", "delta": r"$\delta$"}
_COVERS, _DOES_NOT = "sets of all runs cover", "not all cover"


def sensitivity_figure(results: Results, protocol: str) -> Figure:
    """Regret at T against the factor of gamma, lambda and delta, one row per setting, filled where sets cover."""
    outcomes = sensitivity_outcomes(results, protocol)
    by_setting = {IN_WORDS[SENSITIVITY][outcome.experiment.name]: courses(outcome) for outcome in outcomes}
    e = outcomes[0].experiment

    def draw(plot: Plot) -> None:
        for row, (name, of_setting) in enumerate(by_setting.items()):
            for axes, parameter in zip(plot.axes[len(VALUES) * row :], VALUES, strict=False):
                for policy in PAPER_POLICIES:
                    if variants := of_setting.get((policy, parameter)):
                        _draw_course(plot, axes, policy, variants)
                axes.set(xlabel=_AXES[parameter], ylabel="cumulative regret at T", title=f"{name}: {parameter}")
                make_logarithmic(axes)
                axes.xaxis.set_major_formatter("{x:g}")
                axes.minorticks_off()
        for label, filling in ((_COVERS, plot.ink), (_DOES_NOT, "none")):
            plot.axes[0].plot([], [], "o", color=plot.ink, markerfacecolor=filling, label=label)

    return Figure(
        name="sensitivity", protocol=protocol, section="beyond", draw=draw, rows=len(outcomes), columns=len(VALUES),
        size=(3.9, 3.2), sharing={"sharey": "row"},
        title=f"Regret with other parameters, {cases.under(protocol)}",
        caption=f"{cases.runs_in_words(outcomes[0])}, {e.horizon:,} rounds. One parameter at a time differs from the "
        "protocol's. Lines: mean; bands: lowest to highest run. Filled markers: the confidence sets of all runs "
        f"contain the true parameters after {join_names([f'{t:,}' for t in e.probes])} rounds.",
        alt="Line charts. " + "; ".join(
            f"{name}, {policy}: least regret with {least(variants).value:g} times gamma, covering "
            + ("with none" if (start := covers_from(variants)) is None else f"from {start:g} times gamma on")
            for name, of_setting in by_setting.items()
            for (policy, parameter), variants in of_setting.items()
            if parameter == "gamma"
        ) + ".",
    )  # fmt: skip


def _draw_course(plot: Plot, axes: Axes, policy: str, variants: list[Variant]) -> None:
    """Draw the regret of a policy against a parameter."""
    value, mean, lowest, highest, ellipsoid, outside = np.array(variants).T
    style = plot.styles[policy]
    plot.fill(axes, value, lowest, highest, color=style.colour)
    axes.plot(value, mean, color=style.colour, linestyle=style.dash, label=policy)
    for variant in variants:
        filling = style.colour if variant.covers else axes.get_facecolor()
        axes.plot(variant.value, variant.mean, style.marker, color=style.colour, markerfacecolor=filling, zorder=4)
    numbers = {"mean": mean, "lowest": lowest, "highest": highest, "error / gamma": ellipsoid, "outside": outside}
    plot.record(axes, policy, value, numbers)


def factorial_figure(results: Results) -> Figure:
    """Regret at T with every combination of the protocols' coefficients, ridges and worlds, one panel per setting."""
    panels = list(factorials(results))

    def draw(plot: Plot) -> None:
        for axes, case in zip(plot.axes, panels, strict=False):
            _draw_combinations(plot, axes, case)
        for axes in plot.axes[len(panels) :]:
            axes.set_axis_off()

    return Figure(
        name="factorial", protocol="", section="beyond", draw=draw, rows=-(-len(panels) // 2), columns=2,
        size=(5.6, 3.6), stamp="released and written protocol",
        title="Regret with every combination of the two protocols' coefficient, ridge and world",
        caption="Rows: the parts that are as written, the others being as released. Markers: mean regret at T with its "
        f"{LEVEL} interval over environments. On the right: the order by mean regret of "
        f"{', '.join(f'{name} ({name[0]})' for name in PAPER_POLICIES)}, with < where the difference to the next is "
        f"clear at {LEVEL} and ~ where it is not.",
        alt="Charts. " + ". ".join(
            f"{case.name}: " + "; ".join(f"{combination}: {case.order(combination)}" for combination in case.regrets)
            for case in panels
        ) + ".",
    )  # fmt: skip


def _draw_combinations(plot: Plot, axes: Axes, case: Factorial) -> None:
    """Draw the regrets of one setting, a row per combination, and their order as text."""
    rows = list(case.regrets)
    names = [str(combination) for combination in rows]
    for policy in (policy for policy in PAPER_POLICIES if policy in case.regrets[rows[0]]):
        style = plot.styles[policy]
        regrets = [case.regrets[combination][policy] for combination in rows]
        intervals = [regret_interval(each, np.arange(len(each))) for each in regrets]
        mean = np.array([each.mean() for each in regrets])
        low, high = np.array([(np.nan, np.nan) if i is None else (i.low, i.high) for i in intervals]).T
        places = np.arange(len(rows)) + 0.16 * (PAPER_POLICIES.index(policy) - 1)
        axes.hlines(places, low, high, color=style.colour, linewidth=3, alpha=0.35)
        axes.plot(mean, places, style.marker, color=style.colour, label=policy)
        plot.record(axes, policy, names, {"regret": mean, "low": low, "high": high})
    for place, combination in enumerate(rows):
        order = "".join(word[0] for word in case.order(combination).split())
        axes.annotate(
            " ".join(order),
            (1.02, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            family="monospace",
        )
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="cumulative regret at T", title=f"{case.name}: T = {case.horizon:,}")
    make_logarithmic(axes, only_x=True)
