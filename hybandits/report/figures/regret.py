"""Figures of regret: the published panels, each setting, HyRan, other policies, environments, and the click log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import FRESH_NAMES, HYRAN_RELEASED
from hybandits.paper.published_numbers import READ_OUT_ERRORS, published
from hybandits.report.figures.looks import (
    Curve,
    Figure,
    Plot,
    label_axes,
    make_logarithmic,
    put_title,
)
from hybandits.report.outcomes import (
    ASIDE,
    BEST,
    REPRODUCED,
    SYNTHETIC,
    environment_means,
    has_several_runs,
    is_synthetic,
    many_arms,
    name_of,
    present_in,
    rivals,
    runs_in_words,
    shape_of,
    twins,
    under,
    under_and_log,
)

PANELS = {"setting-1": "(a)", "setting-2": "(b)", "setting-3": "(c)"}
_ROUNDS, _REGRET, _BEYOND = "rounds played, t", "cumulative regret", "regret minus HyLinUCB's"
_GOLDEN = 0.6180339887498949
"""Its multiples fill an interval evenly: dots spread over the height of a strip without any draw."""


# ------------------------------------------------------------------ numbers


def curve_of(outcome: Outcome, policy: str) -> Curve:
    """Regret against rounds or, where the experiment has several numbers of arms, regret at T against these."""
    if not many_arms(outcome):
        return Curve.of(outcome.points, outcome.regret(policy))
    last = [outcome.final(policy, arms) for arms in outcome.arms]
    return Curve(
        np.array(outcome.arms, float), *(np.array([f(runs) for runs in last]) for f in (np.mean, np.min, np.max))
    )


def read_outs(outcome: Outcome, names: Sequence[str]) -> dict[str, dict[int, float]]:
    """Published dots on the axes of `curve_of`: {policy: {rounds or arms: regret}}.

    The published figure is of the released protocol and of Yahoo's log, so there are none under another protocol or on
    a synthetic log.
    """
    e = outcome.experiment
    if e.protocol != "released" or is_synthetic(outcome):
        return {}
    if many_arms(outcome):
        at_horizon = {name: {k: published(e.name, name, k).get(e.horizon) for k in outcome.arms} for name in names}
        return {name: {k: v for k, v in of_arms.items() if v is not None} for name, of_arms in at_horizon.items()}
    known = {name: published(e.name, name, outcome.arms[0]) for name in names}
    return {name: {t: v for t, v in values.items() if t <= e.horizon} for name, values in known.items()}


# ------------------------------------------------------------------ words


def lines_and_bands(outcome: Outcome) -> str:
    """Explain the lines and bands of a chart, for captions."""
    if has_several_runs(outcome):
        return f"Lines: mean of {runs_in_words(outcome)}; bands: lowest to highest run."
    return f"{runs_in_words(outcome)}." if outcome.experiment.log else f"Lines: mean of {runs_in_words(outcome)}."


def final_values(outcome: Outcome, names: Sequence[str]) -> str:
    """The mean regret of every policy at T, for those who cannot see the chart."""
    arms = outcome.arms[-1]
    values = ", ".join(f"{name} {outcome.final(name, arms).mean():,.0f}" for name in names)
    return f"{_name_with_log(outcome)}, mean regret at T with {arms} arms: {values}"


def final_excesses(outcome: Outcome, names: Sequence[str]) -> str:
    """The mean regret beyond HyLinUCB's at T, for those who cannot see the chart."""
    excesses = {name: float((outcome.final(name) - outcome.final(BEST)).mean()) for name in names}
    values = ", ".join(f"{n} {f'{v:,.0f}' if abs(v) >= 100 else f'{v:.1f}'}" for n, v in excesses.items())
    return f"{_name_with_log(outcome)}, mean regret at T beyond HyLinUCB's: {values}"


def _name_with_log(outcome: Outcome) -> str:
    return name_of(outcome.experiment.name) + (f" ({SYNTHETIC})" if is_synthetic(outcome) else "")


# ------------------------------------------------------------------ panels


def label_regret(axes: Axes, outcome: Outcome, *, logarithmic: bool = False) -> None:
    """Label the axes of a chart of regret."""
    many = many_arms(outcome)
    label_axes(
        axes, "number of arms, K" if many else _ROUNDS, _REGRET + (" at T" if many else ""), logarithmic=logarithmic
    )
    if logarithmic and many:
        # Those of the numbers that have room for their names, the last among them.
        kept: list[int] = []
        for arms in reversed(outcome.arms):
            if not kept or kept[-1] / arms >= 1.45:
                kept.append(arms)
        axes.set_xticks(kept)
        axes.set_xticks([], minor=True)


def _draw_relative(plot: Plot, axes: Axes, outcome: Outcome, names: Sequence[str]) -> None:
    """Draw regret minus HyLinUCB's against rounds."""
    axes.axhline(0, color=plot.styles[BEST].colour, zorder=2, label="HyLinUCB")
    best = outcome.regret(BEST)
    curves = {name: Curve.of(outcome.points, outcome.regret(name) - best) for name in names}
    plot.draw_curves(axes, curves, read_outs(outcome, names), bands=has_several_runs(outcome))
    plot.record(axes, BEST, [outcome.points[0], outcome.points[-1]], {"mean": [0.0, 0.0]})
    label_axes(axes, _ROUNDS, _BEYOND, below=True)


def _draw_ratios(plot: Plot, axes: Axes, outcomes: Sequence[Outcome], names: Sequence[str]) -> None:
    """Draw our mean divided by the last published read-out, one row per case."""
    axes.set_title("(d) our regret at T divided by the published")
    rows: dict[str, list[tuple[str, float, float, float]]] = {}
    for outcome in outcomes:
        e = outcome.experiment
        for arms in outcome.arms:
            for name in present_in(outcome, names):
                known = {t: v for t, v in published(e.name, name, arms).items() if t in e.points}
                if known:
                    at = max(known)
                    mean = float(outcome.regret(name, arms)[:, e.points.index(at)].mean())
                    case = f"K = {arms}" if many_arms(outcome) else f"t = {at:,}"
                    row = rows.setdefault(f"{name_of(e.name).removeprefix('Setting ')}, {case}", [])
                    row.append((name, mean, known[at], READ_OUT_ERRORS[e.name]))
    if not rows:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no published read-out at these rounds", ha="center", transform=axes.transAxes)
        return
    for place, (case, entries) in enumerate(rows.items()):
        for name, mean, known_value, error in entries:
            style = plot.styles[name]
            y = place + 0.2 * (names.index(name) - (len(names) - 1) / 2)
            ends = [mean / (known_value + error), mean / max(known_value - error, 1.0)]
            axes.plot(ends, [y, y], color=style.colour, linewidth=3, alpha=0.35, zorder=2)
            axes.plot([mean / known_value], [y], color=style.colour, marker=style.marker)
            ratio = {"ratio": [mean / known_value], "ratio, lowest": ends[:1], "ratio, highest": ends[1:]}
            plot.record(axes, name, [case], ratio)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=9)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    axes.axvline(1, color=plot.ink, linewidth=0.9, zorder=1)
    axes.set(xlabel="ratio (1: the same)", ylabel="setting")
    ratios = [1.0, *(mean / known_value for entries in rows.values() for _, mean, known_value, _ in entries)]
    if max(ratios) / min(ratios) > 4:
        axes.set_xlim(min(ratios) / 1.6, max(ratios) * 1.6)
        make_logarithmic(axes, only_x=True)
    else:
        margin = max(0.1, 1.25 * (max(ratios) - 1), 1.25 * (1 - min(ratios)))
        axes.set_xlim(1 - margin, 1 + margin)


# ------------------------------------------------------------------ figures


def panels_figure(outcomes: Mapping[str, Outcome], protocol: str) -> Figure:
    """The published figure reproduced: settings 1 to 3, and the click log or else the ratios to the read-outs."""
    settings = [outcomes[name] for name in PANELS if name in outcomes]
    clicks = next((o for name in ("yahoo", "yahoo-positions") if (o := outcomes.get(name)) and rivals(o)), None)
    plotted = [name for name in rivals(clicks) if name in REPRODUCED] if clicks else []
    names = [name for name in REPRODUCED if any(name in outcome.policies for outcome in settings)]
    final = [final_values(o, present_in(o, REPRODUCED)) for o in settings]
    markers = "Edged markers: the published figure, read off its pixels."
    if protocol != "released":
        markers = "The published figure belongs to the released protocol"
        markers += "." if clicks else " and appears here in panel (d) only."
    if clicks is not None:
        final.append(final_excesses(clicks, plotted))
        fourth = f"(d): regret minus HyLinUCB's, {runs_in_words(clicks)}."
        fourth += f" This is a {SYNTHETIC}." if is_synthetic(clicks) else ""
    else:
        errors = {name_of(o.experiment.name).lower(): READ_OUT_ERRORS[o.experiment.name] for o in settings}
        fourth = (
            "The published fourth panel shows a Yahoo! click log that may not be passed on (hybandits reproduce yahoo "
            "runs that experiment). In its place, panel (d) divides our mean regret at T by the published one; its "
            f"bars show the ratio if the read-out is off by {_errors_in_words(errors)}."
        )

    def draw(plot: Plot) -> None:
        for axes, (name, letter) in zip(plot.axes, PANELS.items(), strict=False):
            if (outcome := outcomes.get(name)) is None:
                axes.set_axis_off()
                axes.set_title(f"{letter} {name_of(name)}: not in these results")
                continue
            policies = present_in(outcome, REPRODUCED)
            plot.draw_curves(axes, {n: curve_of(outcome, n) for n in policies}, read_outs(outcome, policies))
            label_regret(axes, outcome)
            put_title(axes, f"{letter} {shape_of(outcome)}")
        if clicks is None:
            _draw_ratios(plot, plot.axes[3], settings, names)
        else:
            _draw_relative(plot, plot.axes[3], clicks, plotted)
            put_title(plot.axes[3], f"(d) {shape_of(clicks)}")

    return Figure(
        name="panels", protocol=protocol, section="panels", draw=draw, rows=2, columns=2,
        stamp=f"{SYNTHETIC}; panel (d); {under(protocol)}" if clicks and is_synthetic(clicks) else "",
        title=f"The published figure reproduced, {under(protocol)}",
        caption=f"{lines_and_bands(settings[0])} {markers} {fourth}",
        alt=f"Four panels. {'; '.join(final)}.",
    )  # fmt: skip


def _errors_in_words(errors: Mapping[str, float]) -> str:
    """Describe how far read-outs may be off, panel by panel where they differ."""
    sizes = dict.fromkeys(errors.values())
    if len(sizes) == 1:
        return f"{next(iter(sizes)):g}"
    return ", ".join(f"{size:g} ({' and '.join(n for n, e in errors.items() if e == size)})" for size in sizes)


def setting_figure(outcome: Outcome) -> Figure:
    """One panel by itself, beside it the same on logarithmic axes, with the baselines that were not plotted."""
    e = outcome.experiment
    clicks = e.log is not None
    names = present_in(outcome, (*REPRODUCED, *ASIDE)) if e.protocol != "own" and not clicks else []
    names = names or [name for name in outcome.policies if name not in twins(outcome).values()]
    curves = {name: curve_of(outcome, name) for name in names}
    dots = {} if clicks else read_outs(outcome, names)
    power, slope = (1.0, "slope of K") if many_arms(outcome) else (0.5, "slope of √t")
    caption = [
        lines_and_bands(outcome),
        f"This is a {SYNTHETIC}." if is_synthetic(outcome) else "",
        "Edged markers: the published figure." if any(dots.values()) else "",
        "Thin lines: baselines that the published figure does not show." if any(n in ASIDE for n in names) else "",
        f"In the second panel the thin line below the others has the {slope}.",
    ]

    def draw(plot: Plot) -> None:
        left, right = plot.axes
        plot.draw_curves(left, curves, dots, bands=has_several_runs(outcome))
        label_regret(left, outcome)
        put_title(left, shape_of(outcome))
        plot.draw_curves(right, curves, dots, bands=has_several_runs(outcome), logarithmic=True)
        plot.slope_under(right, curves, power, slope)
        label_regret(right, outcome, logarithmic=True)
        right.set_title("the same, both axes logarithmic")

    return Figure(
        name=e.name, protocol=e.protocol, section="yahoo" if clicks else "regret", draw=draw, columns=2,
        stamp=under_and_log(outcome),
        title=f"{shape_of(outcome)}, {under_and_log(outcome)}",
        caption=" ".join(filter(None, caption)),
        alt=f"Line chart. {final_values(outcome, names)}.",
    )  # fmt: skip


def _few_policies(outcome: Outcome, names: Sequence[str], *, logarithmic: bool = False, **about: Any) -> Figure:
    """Some policies on one pair of axes."""
    e = outcome.experiment

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        plot.draw_curves(axes, {name: curve_of(outcome, name) for name in names}, logarithmic=logarithmic)
        label_regret(axes, outcome, logarithmic=logarithmic)
        put_title(axes, shape_of(outcome))

    alt = f"Line chart. {final_values(outcome, names)}."
    return Figure(name=f"{e.name}-{about['section']}", protocol=e.protocol, draw=draw, alt=alt, **about)


def hyran_figure(outcome: Outcome) -> Figure:
    """HyRan with and without the blocks that the released code leaves out."""
    e, arms = outcome.experiment, outcome.arms[-1]
    ratio = outcome.final(HYRAN_RELEASED, arms).mean() / max(outcome.final("HyRan", arms).mean(), 1e-12)
    return _few_policies(
        outcome, (HYRAN_RELEASED, "HyRan"), section="hyran",
        title=f"HyRan with and without its cross blocks, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{HYRAN_RELEASED} leaves out the blocks that couple shared and own parameters. "
        f"At T with {arms} arms its regret is {ratio:.2f} times that of HyRan. {lines_and_bands(outcome)}",
    )  # fmt: skip


def beyond_names(outcome: Outcome) -> list[str]:
    """The policies that are not in the paper."""
    return [name for name in outcome.policies if name not in (*REPRODUCED, *ASIDE)]


def beyond_figure(outcome: Outcome) -> Figure:
    """Policies that are not in the paper, beside the best of those that are."""
    e, arms = outcome.experiment, outcome.arms[-1]
    known = present_in(outcome, (*REPRODUCED, *ASIDE))
    best = sorted(known, key=lambda name: float(outcome.final(name, arms).mean()))[:1]
    beside = f"Of the published algorithms {best[0]} has the lowest regret at T with {arms} arms. " if best else ""
    return _few_policies(
        outcome, [*best, *beyond_names(outcome)], section="beyond", logarithmic=True,
        title=f"Beyond the paper, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{beside}{lines_and_bands(outcome)} Both axes are logarithmic.",
    )  # fmt: skip


# ------------------------------------------------------------------ environments


def environments_figure(fresh: Outcome, others: Outcome | None) -> Figure:
    """Regret at T of every fresh environment, one strip per policy and one chart per number of arms.

    `others` are the results in the paper's own environments, which are marked; None if there are none.
    """
    e = fresh.experiment
    if others is not None and not set(fresh.arms) & set(others.arms):
        others = None
    own = "" if others is None else f"the {len(others.experiment.seeds)} environments of {FRESH_NAMES_OF[e.name]}"
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
                    known = environment_means(others, policy, k)
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
            title = f"{name_of(e.name)}: d₁ = {e.d1}, d₂ = {e.d2}, K = {k}"
            axes.set_title(f"K = {k}" if several else title)

    return Figure(
        name=f"{e.name}-environments", protocol=e.protocol, section="regret", draw=draw, columns=len(fresh.arms),
        size=(3.7 if several else 6.6, 1.9 + 0.42 * len(fresh.policies)), sharing={"sharex": True, "sharey": True},
        title=f"Regret at T from environment to environment, {name_of(e.name)}, {under(e.protocol)}",
        caption=f"{runs_in_words(fresh)}, {e.horizon:,} rounds. A dot is an environment, the box holds the middle half "
        f"of them, its line is the median.{f' Diamonds: {own}, mean over trials.' if own else ''} The axis is "
        "logarithmic.",
        alt=f"Strip chart. {name_of(e.name)}, median regret at T with {arms} arms, lowest to highest: {values}.",
    )  # fmt: skip


FRESH_NAMES_OF = {fresh: name_of(name).lower() for name, fresh in FRESH_NAMES.items()}
"""The setting in words, by the name of the experiment in fresh environments."""


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


# ------------------------------------------------------------------ the click log


def click_log_figures(outcome: Outcome) -> Iterator[Figure]:
    """The figures of an experiment on a click log."""
    if rivals(outcome):
        yield _relative_figure(outcome)
    yield setting_figure(outcome)


def _relative_figure(outcome: Outcome) -> Figure:
    """The published panel reproduced: regret beyond HyLinUCB's."""
    e, names = outcome.experiment, rivals(outcome)
    caption = [
        "Above the line at 0 an algorithm has lost more than HyLinUCB in the same trial.",
        lines_and_bands(outcome),
    ]
    if is_synthetic(outcome):
        caption.append(f"This is a {SYNTHETIC}: the published curves say nothing about it and are not shown.")
    if any(read_outs(outcome, names).values()):
        caption.append(
            "Edged markers: the published figure, read off its pixels. Its arms are positions, its reward model was "
            "fitted otherwise and its algorithms learn from another arm's reward, so the curves need not meet it."
        )

    def draw(plot: Plot) -> None:
        _draw_relative(plot, plot.axes[0], outcome, names)
        put_title(plot.axes[0], shape_of(outcome))

    return Figure(
        name=f"{e.name}-relative", protocol=e.protocol, section="yahoo", draw=draw, caption=" ".join(caption),
        stamp=under_and_log(outcome),
        title=f"{name_of(e.name)}: regret relative to HyLinUCB, {under_and_log(outcome)}",
        alt=f"Line chart. {final_excesses(outcome, names)}.",
    )  # fmt: skip
