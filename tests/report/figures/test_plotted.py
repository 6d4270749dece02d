"""What a picture shows, as data."""

from __future__ import annotations

import csv
import io

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from hybandits.report.figures.plotted import distinct, numbers_csv, plotted_in, remember


def canvas_of_two() -> Canvas:
    canvas = Canvas(figsize=(8, 3), layout="constrained")
    left, right = canvas.subplots(1, 2)
    x = np.array([1.0, 10.0])
    for axes in (left, right):
        line = axes.plot(x, 2 * x)
        remember(axes, "double", x, {"mean": 2 * x, "lowest": x, "highest": 3 * x}, line, band="runs")
    remember(right, "double", ["case"], {"published": [5.0]}, readable=False)
    left.set(title="plain: d₁ = 5", xlabel="rounds")
    right.set(title="logarithmic", xscale="log", xlim=(1, 100))
    canvas.legend(handles=[Line2D([], [], label="double")], loc="outside lower center")
    canvas.draw_without_rendering()
    return canvas


def test_panels_curves_and_keys() -> None:
    canvas = canvas_of_two()
    plotted = plotted_in(canvas)
    left, right = plotted.panels
    assert (left.title, left.across) == ("plain: d₁ = 5", "rounds")
    assert right.x == (True, 1.0, 100.0)
    assert not left.x[0]
    for panel in plotted.panels:
        inner, outer = panel.plot, panel.box
        assert 0 <= outer[0] <= inner[0] < inner[2] <= outer[2] <= 8 * 72 + 1
        assert 0 <= outer[1] <= inner[1] < inner[3] <= outer[3] <= 3 * 72 + 1
    assert [key.label for key in plotted.keys] == ["double"]
    assert plotted.names == ("double",)
    assert [axes.get_gid() for axes in canvas.axes] == ["panel-0", "panel-1"]
    assert [line.get_gid() for axes in canvas.axes for line in axes.get_lines()] == ["curve-0-1", "curve-0-2"]


def test_the_numbers_are_those_that_are_drawn_once_each() -> None:
    plotted = plotted_in(canvas_of_two())
    assert len(plotted.series) == 3
    assert len(distinct(plotted.series)) == 2
    lines = list(csv.DictReader(io.StringIO(numbers_csv(plotted))))
    assert lines == [
        {"panel": "plain", "curve": "double", "x": "1", "mean": "2", "lowest": "1", "highest": "3", "published": ""},
        {
            "panel": "plain",
            "curve": "double",
            "x": "10",
            "mean": "20",
            "lowest": "10",
            "highest": "30",
            "published": "",
        },
        {
            "panel": "logarithmic",
            "curve": "double",
            "x": "case",
            "mean": "",
            "lowest": "",
            "highest": "",
            "published": "5",
        },
    ]


def test_lines_with_names_are_data_whoever_drew_them() -> None:
    canvas = Canvas()
    axes = canvas.subplots()
    axes.plot([1, 2], [3, 4], label="named")
    axes.plot([1, 2], [5, 6])
    axes.axhline(3, label="a mark")
    canvas.draw_without_rendering()
    plotted = plotted_in(canvas)
    assert plotted.names == ("named",)
    assert plotted.series[0].columns == {"value": [3.0, 4.0]}
    assert plotted_in(Canvas()).series == ()
