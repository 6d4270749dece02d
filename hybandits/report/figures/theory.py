"""Figures on the theorems: bounds over the standard ones, the regret that is forced, and exponents of regret."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybandits.experiments.results import Results
from hybandits.paper import bounds, theorems
from hybandits.paper.beyond import compared_shapes, forced_cases
from hybandits.paper.claims import LEVEL
from hybandits.paper.exponents import BASE, BASE_ARMS, exponents
from hybandits.paper.settings import DELTA
from hybandits.report import cases
from hybandits.report.figures.looks import Figure, Plot, make_logarithmic

_EXPONENTS = np.linspace(4, 30, 53)
_FORCED = "forced by E x = 0"


def bounds_figure(results: Results) -> Figure:
    """The paper's bounds divided by the standard ones against T, one panel per shape."""
    shapes = compared_shapes(results)
    rounds = [round(10**exponent) for exponent in _EXPONENTS]

    def draw(plot: Plot) -> None:
        for axes, (name, problem) in zip(plot.axes, shapes.items(), strict=False):
            for policy in theorems.POLICIES:
                style = plot.styles[policy]
                problems = [replace(problem, horizon=t) for t in rounds]
                ratios = np.array([bounds.ratio(policy, each) for each in problems])
                known = np.array(
                    [policy == "DisLinUCB" or each.horizon > theorems.burn_in(policy, each) for each in problems]
                )
                axes.plot(
                    rounds, np.where(known, ratios, np.nan), color=style.colour, linestyle=style.dash, label=policy
                )
                axes.plot(rounds, ratios, color=style.colour, linestyle=":", linewidth=1)
                plot.record(axes, policy, np.array(rounds, dtype=float), {"ratio": ratios})
            axes.axhline(1, color=plot.ink, linewidth=0.9)
            axes.set(
                xlabel="rounds T",
                ylabel="paper's bound / standard bound",
                title=f"{name}: d₁ = {problem.d1}, d₂ = {problem.d2}",
            )
            axes.set(xscale="log", yscale="log", ylim=(0.1, 1e6))
        for axes in plot.axes[len(shapes) :]:
            axes.set_axis_off()

    return Figure(
        name="bounds", protocol="", section="beyond", draw=draw, rows=-(-len(shapes) // 2), columns=2,
        stamp="computed, nothing is run", sharing={"sharex": True, "sharey": True},
        title="The paper's bounds on regret divided by the standard ones",
        caption=f"Both with all constants, S = 1, δ = {DELTA} and the largest diversity that unit features allow. "
        "Below 1 the paper's bound is the better one. Thin and dotted: before the burn-in, where those of LinUCB and "
        "HyLinUCB say nothing.",
        alt="Line charts. " + "; ".join(
            f"{name}, at 10^12 rounds: " + ", ".join(
                f"{policy} {bounds.ratio(policy, replace(problem, horizon=10**12)):.3g}" for policy in theorems.POLICIES
            )
            for name, problem in shapes.items()
        ) + ".",
    )  # fmt: skip


def forced_regret_figure(results: Results, protocol: str) -> Figure:
    """Regret at T beside what E x = 0 of the arm played forces, one row per setting and number of arms."""
    rows = forced_cases(results, protocol)
    policies = list(dict.fromkeys(name for case in rows for name in case.regrets))

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        places = np.arange(len(rows), dtype=float)
        names = [case.name for case in rows]
        forced = np.array([case.horizon * case.forced.mean for case in rows])
        error = np.array([case.horizon * case.forced.error for case in rows])
        axes.barh(places, forced, height=0.8, color="grey", alpha=0.3, label=_FORCED)
        plot.record(axes, _FORCED, names, {"regret": forced, "standard error": error})
        for name in policies:
            style = plot.styles[name]
            regrets = np.array([case.regrets.get(name, np.nan) for case in rows])
            axes.plot(regrets, places, linestyle="none", marker=style.marker, color=style.colour, label=name)
            plot.record(axes, name, names, {"regret": regrets})
        axes.set_yticks(places, names)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        make_logarithmic(axes, only_x=True)
        axes.set(xlabel="cumulative regret at T", ylabel="setting", title="regret, and what E x = 0 forces")

    return Figure(
        name="forced-regret", protocol=protocol, section="beyond", draw=draw,
        size=(6.0, 1.4 + 0.3 * len(rows)),
        title=f"Regret that the diversity assumption forces, {cases.under(protocol)}",
        caption="Bars: T (E max (x·θ + z·β) - E max z·β), the least regret if x of the arm played had mean 0, "
        f"estimated from up to {bounds.SAMPLED:,} candidates each. A policy with less regret does not meet "
        "the assumption.",
        alt="Chart. " + "; ".join(
            f"{case.name}: forced {case.horizon * case.forced.mean:,.0f}, "
            + ", ".join(f"{name} {case.regrets[name]:,.0f}" for name in policies if name in case.regrets)
            for case in rows
        ) + ".",
    )  # fmt: skip


def exponents_figure(results: Results, protocol: str) -> Figure:
    """Exponents of regret with their intervals beside those of the theorems, one row per factor and policy."""
    rows = exponents(results, protocol)
    symbols = {"d1": "d₁", "d2": "d₂"}
    names = [f"{symbols.get(row.factor, row.factor)}: {row.policy}" for row in rows]
    gaps = np.cumsum([row.factor != before.factor for row, before in zip(rows[1:], rows, strict=False)])
    places = np.arange(len(rows)) + 0.6 * np.append(0, gaps)
    theorem = {"order stated in the theorem": ("D", "order"), "right-hand side of the proof": ("x", "bound")}

    def draw(plot: Plot) -> None:
        (axes,) = plot.axes
        for name, place, row in zip(names, places, rows, strict=True):
            if row.regret is None:
                continue
            style, (value, low, high, _) = plot.styles[row.policy], row.regret
            axes.plot([low, high], [place, place], color=style.colour)
            axes.plot(value, place, marker=style.marker, linestyle="none", color=style.colour, label=row.policy)
            plot.record(axes, row.policy, [name], {"exponent": [value], "lowest": [low], "highest": [high]})
        for label, (marker, kind) in theorem.items():
            values = np.array([getattr(row, kind) for row in rows])
            axes.plot(values, places, marker, color=plot.ink, markerfacecolor="none", label=label)
            plot.record(axes, label, names, {"exponent": values})
        axes.set_yticks(places, names)
        axes.set_ylim(places[-1] + 0.6, -0.6)
        axes.grid(axis="y", visible=False)
        axes.set(xlabel="exponent", ylabel="factor and policy", title="exponents of regret")

    base = results.outcomes[BASE, protocol].experiment
    return Figure(
        name="exponents", protocol=protocol, section="beyond", draw=draw, size=(6.0, 1.4 + 0.25 * len(rows)),
        title=f"Exponents of regret in K, d₁, d₂ and T, {cases.under(protocol)}",
        caption=f"Slopes of log mean regret at T = {base.horizon:,} against the log of one factor, the others being "
        f"d₁ = {base.d1}, d₂ = {base.d2} and K = {BASE_ARMS}; in T over the last half of the rounds. Lines: {LEVEL} "
        f"jackknife intervals over {len(base.seeds)} fresh environments. The theorems' exponents are over the same "
        f"range, with S = 1, δ = {DELTA} and the largest diversity that unit features allow.",
        alt="Chart. " + "; ".join(
            f"{name} {row.regret.mean:.2f}"
            + (f" (order {row.order:.2f}, proof {row.bound:.2f})" if np.isfinite(row.order) else "")
            for name, row in zip(names, rows, strict=True) if row.regret
        ) + ".",
    )  # fmt: skip
