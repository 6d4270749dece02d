"""Results to pictures; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from hybandits.checks import Doubles

COLOURS = {
    "HyLinUCB": "#0072B2",
    "LinUCB": "#D55E00",
    "DisLinUCB": "#009E73",
    "HyThompson": "#CC79A7",
    "Greedy": "#777777",
    "HyRan": "#E69F00",
}
"""One colour per policy in every figure, told apart also by readers who do not see all colours."""


def regret_curves(
    curves: Mapping[str, Doubles],
    published: Mapping[str, Mapping[int, float]],
    *,
    title: str,
    path: Path,
) -> list[Path]:
    """Mean regret over environments with its range as a band, published read-outs as dots; PNG and SVG beside."""
    figure, axes = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    for name, runs in curves.items():
        rounds = np.arange(1, runs.shape[1] + 1)
        keep = np.unique(np.linspace(0, runs.shape[1] - 1, 400).astype(int))
        colour = COLOURS.get(name)
        mean = runs.mean(axis=0)
        axes.plot(rounds[keep], mean[keep], color=colour, label=name, linewidth=1.8)
        axes.fill_between(
            rounds[keep], runs.min(axis=0)[keep], runs.max(axis=0)[keep], color=colour, alpha=0.15, linewidth=0
        )
        dots = {t: value for t, value in published.get(name, {}).items() if t <= runs.shape[1]}
        axes.plot(list(dots), list(dots.values()), "o", color=colour, markeredgecolor="black", markersize=6)
    if any(t <= runs.shape[1] for name, runs in curves.items() for t in published.get(name, {})):
        axes.plot([], [], "o", color="white", markeredgecolor="black", markersize=6, label="published figure")
    axes.fill_between([], [], [], color="grey", alpha=0.3, label="lowest to highest environment")
    axes.set_xlabel("rounds played")
    axes.set_ylabel("cumulative regret (sum of lost mean reward)")
    axes.set_title(title)
    axes.grid(alpha=0.25)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    written = [path.with_suffix(".png"), path.with_suffix(".svg")]
    figure.savefig(written[0], dpi=160)
    figure.savefig(written[1], metadata={"Date": None})
    plt.close(figure)
    return written
