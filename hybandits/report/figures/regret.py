"""Figures of regret: the published panels, each setting, HyRan, other policies, environments, and the click log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import YAHOO_NAMES
from hybandits.paper.published_numbers import published
from hybandits.report import cases
from hybandits.report.cases import ASIDE, BEST, REPRODUCED, SYNTHETIC
from hybandits.report.figures.looks import Curve, Figure, Plot, label_axes, make_logarithmic, put_title

PANELS = {"setting-1": "(a)", "setting-2": "(b)", "setting-3": "(c)"}
_ROUNDS, _REGRET, _BEYOND = "rounds played, t", "cumulative regret", "regret minus HyLinUCB's"
_GOLDEN = 0.6180339887498949
"""Its multiples fill an interval evenly: dots spread over the height of a strip without any draw."""


# ------------------------------------------------------------------ numbers and words


def curve_of(outcome: Outcome, policy: str) -> Curve:
    """Regret against rounds or, where the experiment has several numbers of arms, regret at T against these."""
    if not cases.many_arms(outcome):
        return Curve.of(outcome.points, outcome.regret(policy))
    last = [outcome.final(policy, arms) for arms in outcome.arms]
    return Curve(
        np.array(outcome.arms, float), *(np.array([f(runs) for runs in last]) for f in (np.mean, np.min, np.max))
    )


def read_outs(outcome: Outcome, names: Sequence[str]) -> dict[str, dict[int, float]]:
    """Published dots on the axes of `curve_of`: {policy: {rounds or arms: regret}}.

    The published figure is of the released protocol and of Yahoo's log, so there are none for another protocol or a
    synthetic log.
    """
    e = outcome.experiment
    if e.protocol != "released" or cases.is_synthetic(outcome):
        return {}
    known = {(name, k): published(e.name, name, k) for name in names for k in outcome.arms}
    if cases.many_arms(outcome):
        return {n: {k: known[n, k][e.horizon] for k in outcome.arms if e.horizon in known[n, k]} for n in names}
    return {n: {t: v for t, v in known[n, outcome.arms[0]].items() if t <= e.horizon} for n in names}


def lines_and_bands(outcome: Outcome) -> str:
    """Explain the lines and bands of a chart, for captions."""
    bands = "; bands: lowest to highest run" if cases.has_several_runs(outcome) else ""
    return f"Lines: mean of {cases.runs_in_words(outcome)}{bands}."


def final_values(outcome: Outcome, names: Sequence[str], *, beyond: bool = False) -> str:
    """The mean regret of every policy at T, or its part beyond HyLinUCB's, for those who cannot see the chart."""
    arms = outcome.arms[-1]
    e, listed = outcome.experiment, []
    for name in names:
        t = e.rounds_of(name)
        regret = outcome.final(name, arms, t=t) - (outcome.final(BEST, arms, t=t) if beyond else 0.0)
        listed.append(f"{name} {regret.mean():,.0f}" + (f" after {t:,} rounds" if t < e.horizon else ""))
    values = ", ".join(listed)
    log = f" ({SYNTHETIC})" if cases.is_synthetic(outcome) else ""
    what = "mean regret at T beyond HyLinUCB's" if beyond else f"mean regret at T with {arms} arms"
    return f"{cases.name_of(outcome.experiment.name)}{log}, {what}: {values}"


# ------------------------------------------------------------------ panels


def label_regret(axes: Axes, outcome: Outcome, *, logarithmic: bool = False) -> None:
    """Label the axes of a chart of regret."""
    many = cases.many_arms(outcome)
    across, upwards = ("number of arms, K", f"{_REGRET} at T") if many else (_ROUNDS, _REGRET)
    label_axes(axes, across, upwards, logarithmic=logarithmic)


def _draw_relative(plot: Plot, axes: Axes, outcome: Outcome, names: Sequence[str]) -> None:
    """Draw regret minus HyLinUCB's against rounds."""
    axes.axhline(0, color=plot.styles[BEST].colour, zorder=2, label=BEST)
    best = outcome.regret(BEST)
    curves = {name: Curve.of(outcome.points, outcome.regret(name) - best) for name in names}
    plot.draw_curves(axes, curves, read_outs(outcome, names), bands=cases.has_several_runs(outcome))
    plot.record(axes, BEST, [outcome.points[0], outcome.points[-1]], {"mean": [0.0, 0.0]})
    label_axes(axes, _ROUNDS, _BEYOND, below=True)


# ------------------------------------------------------------------ figures


def panels_figure(outcomes: Mapping[str, Outcome], protocol: str) -> Figure:
    """The published figure reproduced: settings 1 to 3, and Yahoo's click log if it was played."""
    settings = [outcomes[name] for name in PANELS if name in outcomes]
    logs = (outcomes[name] for name in YAHOO_NAMES if name in outcomes)
    clicks = next((outcome for outcome in logs if cases.rivals(outcome) and not cases.is_synthetic(outcome)), None)
    plotted = [name for name in cases.rivals(clicks) if name in REPRODUCED] if clicks else []
    final = [final_values(outcome, cases.present_in(outcome, REPRODUCED)) for outcome in settings]
    if clicks is not None:
        final.append(final_values(clicks, plotted, beyond=True))
        fourth = f"(d): regret minus HyLinUCB's, {cases.runs_in_words(clicks)}."
    else:
        fourth = (
            "The published fourth panel shows a Yahoo! click log that may not be passed on (hybandits reproduce yahoo "
            "runs that experiment)."
        )
    markers = "Edged markers: the published figure, read off its pixels."
    if protocol != "released":
        markers = "The published figure belongs to the released protocol."

    def draw(plot: Plot) -> None:
        for axes, (name, letter) in zip(plot.axes, PANELS.items(), strict=False):
            if (outcome := outcomes.get(name)) is None:
                axes.set_axis_off()
                axes.set_title(f"{letter} {cases.name_of(name)}: not in these results")
                continue
            policies = cases.present_in(outcome, REPRODUCED)
            plot.draw_curves(axes, {n: curve_of(outcome, n) for n in policies}, read_outs(outcome, policies))
            label_regret(axes, outcome)
            put_title(axes, f"{letter} {cases.shape_of(outcome)}")
        if clicks is not None:
            _draw_relative(plot, plot.axes[3], clicks, plotted)
            put_title(plot.axes[3], f"(d) {cases.shape_of(clicks)}")

    return Figure(
        name="panels", protocol=protocol, section="panels", draw=draw, rows=2 if clicks else 1,
        columns=2 if clicks else 3, title=f"The published figure reproduced, {cases.under(protocol)}",
        caption=f"{lines_and_bands(settings[0])} {markers} {fourth}",
        alt=f"{'Four' if clicks else 'Three'} panels. {'; '.join(final)}.",
    )  # fmt: skip


def _lines_and_log(outcome: Outcome) -> list[str]:
    """The first sentences of a caption."""
    return [lines_and_bands(outcome), *([f"This is a {SYNTHETIC}."] if cases.is_synthetic(outcome) else [])]


def setting_figure(outcome: Outcome) -> Figure:
    """One panel by itself; beside it regret minus HyLinUCB's on a click log, else the same on logarithmic axes."""
    e = outcome.experiment
    clicks = e.log is not None
    names = cases.present_in(outcome, (*REPRODUCED, *ASIDE)) if e.protocol != "own" and not clicks else []
    names = names or outcome.policies
    curves = {name: curve_of(outcome, name) for name in names}
    rivals = cases.rivals(outcome) if clicks else []
    dots = read_outs(outcome, rivals if clicks else names)
    power, slope = (1.0, "slope of K") if cases.many_arms(outcome) else (0.5, "slope of √t")
    caption = _lines_and_log(outcome)
    if any(dots.values()):
        caption.append("Edged markers: the published figure.")
        caption.append("It is of another fit, with positions as arms." if clicks else "")
    if any(name in ASIDE for name in names) and not clicks:
        caption.append("Thin lines: baselines that the published figure does not show.")
    if not rivals:
        caption.append(f"In the second panel the thin line below the others has the {slope}.")
    alt = f"Line chart. {final_values(outcome, names)}."
    if rivals:
        alt += f" {final_values(outcome, rivals, beyond=True)}."

    def draw(plot: Plot) -> None:
        left, right = plot.axes
        bands = cases.has_several_runs(outcome)
        plot.draw_curves(left, curves, {} if clicks else dots, bands=bands)
        label_regret(left, outcome)
        put_title(left, cases.shape_of(outcome))
        if rivals:
            _draw_relative(plot, right, outcome, rivals)
            right.set_title("beyond HyLinUCB's in the same trial")
        else:
            plot.draw_curves(right, curves, {} if clicks else dots, bands=bands, logarithmic=True)
            plot.slope_under(right, curves, power, slope)
            label_regret(right, outcome, logarithmic=True)
            right.set_title("the same, both axes logarithmic")

    return Figure(
        name=e.name, protocol=e.protocol, section="yahoo" if clicks else "regret", draw=draw, columns=2,
        stamp=cases.under_and_log(outcome),
        title=f"{cases.shape_of(outcome)}, {cases.under_and_log(outcome)}",
        caption=" ".join(filter(None, caption)), alt=alt,
    )  # fmt: skip


def beyond_names(outcome: Outcome) -> list[str]:
    """The policies that are not in the paper."""
    return [name for name in outcome.policies if name not in (*REPRODUCED, *ASIDE)]


def beyond_figure(outcome: Outcome) -> Figure:
    """Policies that are not in the paper, beside the best of those that are."""
    e, arms = outcome.experiment, outcome.arms[-1]
    known = cases.present_in(outcome, (*REPRODUCED, *ASIDE))
    best = sorted(known, key=lambda name: float(outcome.final(name, arms).mean()))[:1]
    names = [*best, *beyond_names(outcome)]
    beside = f"Of the published algorithms {best[0]} has the lowest regret at T with {arms} arms. " if best else ""

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        plot.draw_curves(axes, {name: curve_of(outcome, name) for name in names}, logarithmic=True)
        label_regret(axes, outcome, logarithmic=True)
        put_title(axes, cases.shape_of(outcome))

    return Figure(
        name=f"{e.name}-beyond", protocol=e.protocol, section="beyond", draw=draw,
        title=f"Beyond the paper, {cases.name_of(e.name)}, {cases.under(e.protocol)}",
        caption=f"{beside}{lines_and_bands(outcome)} Both axes are logarithmic.",
        alt=f"Line chart. {final_values(outcome, names)}.",
    )  # fmt: skip


# ------------------------------------------------------------------ environments


def environments_figure(fresh: Outcome, others: Outcome | None) -> Figure:
    """Regret at T of every fresh environment, one strip per policy and one chart per number of arms.

    `others` are the results in the paper's own environments, which are marked; None if there are none.
    """
    e, name = fresh.experiment, cases.name_of(fresh.experiment.name)
    if others is not None and not set(fresh.arms) & set(others.arms):
        others = None
    own = ""
    if others is not None:
        own = f"the {len(others.experiment.seeds)} environments of {cases.name_of(others.experiment.name).lower()}"
    arms, several = fresh.arms[-1], len(fresh.arms) > 1
    finals = {policy: fresh.final(policy, arms) for policy in fresh.policies}
    values = ", ".join(f"{n} {np.median(f):,.0f} ({f.min():,.0f} to {f.max():,.0f})" for n, f in finals.items())

    def draw(plot: Plot) -> None:
        for axes, k in zip(plot.axes, fresh.arms, strict=True):
            for place, policy in enumerate(fresh.policies):
                _draw_strip(plot, axes, place, policy, fresh.final(policy, k))
                seeds = [str(e.seeds[int(i)]) for i in fresh.environments(policy, k)]
                plot.record(axes, policy, seeds, {"regret": fresh.final(policy, k)})
                if others is not None and k in others.arms and policy in others.policies:
                    known = cases.environment_means(others, policy, k)
                    seeds = [str(seed) for seed in others.experiment.seeds]
                    plot.record(axes, f"{policy}, {own}", seeds, {"regret": known})
                    axes.plot(
                        known, np.full(len(known), float(place)), "D", color="white", markeredgecolor=plot.ink,
                        markersize=4.5, zorder=4, label=own,
                    )  # fmt: skip
            axes.set_yticks(range(len(fresh.policies)), fresh.policies)
            axes.set_ylim(len(fresh.policies) - 0.5, -0.5)
            axes.grid(axis="y", visible=False)
            axes.set_xlabel("cumulative regret at T")
            if all((fresh.final(policy, k) > 0).all() for policy in fresh.policies):
                make_logarithmic(axes, only_x=True)
            axes.set_title(f"K = {k}" if several else f"{name}: d₁ = {e.d1}, d₂ = {e.d2}, K = {k}")

    return Figure(
        name=f"{e.name}-environments", protocol=e.protocol, section="regret", draw=draw, columns=len(fresh.arms),
        size=(3.7 if several else 6.6, 1.9 + 0.42 * len(fresh.policies)), sharing={"sharex": True, "sharey": True},
        title=f"Regret at T from environment to environment, {name}, {cases.under(e.protocol)}",
        caption=f"{cases.runs_in_words(fresh)}, {e.horizon:,} rounds. A dot is an environment, the box holds the "
        f"middle half of them, its line is the median.{f' Diamonds: {own}, mean over trials.' if own else ''} The "
        "axis is logarithmic.",
        alt=f"Strip chart. {name}, median regret at T with {arms} arms, lowest to highest: {values}.",
    )  # fmt: skip


def _draw_strip(plot: Plot, axes: Axes, place: int, policy: str, final: FloatArray) -> None:
    regrets, colour = np.sort(final), plot.styles[policy].colour
    scatter = place + 0.5 * ((np.arange(len(regrets)) * _GOLDEN) % 1 - 0.5)
    axes.plot(regrets, scatter, ".", color=colour, alpha=0.45, markersize=3.5, markeredgewidth=0, zorder=2)
    axes.boxplot(
        [regrets], positions=[place], orientation="horizontal", widths=0.62, showfliers=False, showcaps=False,
        manage_ticks=False, whis=(0, 100), whiskerprops={"linewidth": 0}, boxprops={"color": colour},
        medianprops={"color": colour, "linewidth": 2}, zorder=3,
    )  # fmt: skip
    if place == 0:
        axes.plot([], [], ".", color=plot.ink, label="a fresh environment")
        axes.plot([], [], color=plot.ink, linewidth=2, label="median and middle half")
