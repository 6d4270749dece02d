"""Results as Parquet, tables as Markdown, and the figure."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hybandits.foundation.files import make_writable_folder, write_atomically
from library_benchmark.methods import METHODS
from library_benchmark.running import about
from library_benchmark.scores import Result, results
from library_benchmark.streams import STREAMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAIN = ("HyIDS", "HyThompson", "HyLinUCB")
"""Our policies in the overview."""

RUNS = "runs.parquet"
"""The file with one row per run."""

GROUPS = ("paper", "clicks", "units", "changing", "data sets")


def write_runs(records: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    """Write one row per run, with the code and the versions that they are from."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    make_writable_folder(folder)
    in_order = sorted(records, key=lambda run: [str(run[key]) for key in ("stream", "method", "variant", "seed")])
    table = pa.Table.from_pylist([dict(run) for run in in_order]).replace_schema_metadata(about())
    write_atomically(folder / RUNS, lambda name: pq.write_table(table, name, compression="zstd"))
    return folder / RUNS


def write_report(records: Iterable[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write the tables and the figures into a folder; return the paths."""
    make_writable_folder(folder)
    by_key = results(records)
    contents = {"table.md": full_table(by_key).encode(), "summary.md": summary(by_key).encode()}
    contents |= figures(by_key)
    for name, content in contents.items():
        write_atomically(folder / name, lambda part, content=content: Path(part).write_bytes(content))  # type: ignore[misc]
    return [folder / name for name in contents]


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The runs that `write_runs` wrote."""
    import pyarrow.parquet as pq

    runs: list[dict[str, Any]] = pq.read_table(folder / RUNS).to_pylist()
    return runs


# ------------------------------------------------------------------ who is first


def streams_of(by_key: Mapping[tuple[str, str], Result]) -> list[str]:
    """The streams that were played, in the order of the tables."""
    return [name for name in STREAMS if any(stream == name for stream, _ in by_key)]


def ranking(by_key: Mapping[tuple[str, str], Result]) -> list[str]:
    """The methods, best first: by the mean of their default scores, where a stream without a score counts as 0.

    Methods that run on a subset of the streams come last, because their mean is not one of all streams.
    """
    methods = [name for name in METHODS if any(method == name for _, method in by_key)]
    streams = streams_of(by_key)

    def place(method: str) -> tuple[bool, float]:
        only = METHODS[method].only_in
        return bool(only), -mean_score(by_key, method, [name for name in streams if METHODS[method].is_for(name)])

    return sorted(methods, key=place)


def mean_score(by_key: Mapping[tuple[str, str], Result], method: str, streams: Sequence[str]) -> float:
    """The mean of the default scores in some streams; 0, like uniform random choice, where there is none.

    NaN if the method is not meant for all of them.
    """
    if not streams or not all(METHODS[method].is_for(stream) for stream in streams):
        return math.nan
    scores = [by_key[stream, method].default if (stream, method) in by_key else None for stream in streams]
    return float(np.mean([0.0 if each is None else each.mean for each in scores]))


def _tuned_mean(by_key: Mapping[tuple[str, str], Result], method: str, streams: Sequence[str]) -> float:
    """The same with the best of the grid in hindsight, stream by stream."""
    total = 0.0
    for stream in streams:
        result = by_key.get((stream, method))
        chosen = None if result is None else result.tuned or result.default
        total += 0.0 if chosen is None else chosen.mean
    return total / len(streams)


def percent(value: float) -> str:
    """A score in percent, without decimals.

    >>> percent(0.834), percent(-0.001)
    ('83', '0')
    """
    return "-" if math.isnan(value) else f"{100 * value:.0f}".replace("-0", "0")


# ------------------------------------------------------------------ tables


def streams_table() -> str:
    """All streams: what they are and how long they are played."""
    rows = [[stream.name, f"{stream.rounds:,}", stream.about] for stream in STREAMS.values()]
    return _markdown(["stream", "rounds", "what it is"], rows).replace("| ---: | ---: |", "| ---: | --- |")


def fill_page(page: Path, by_key: Mapping[tuple[str, str], Result] | None = None) -> None:
    """Put the table of streams, and the results if they are given, between their marks in a page."""
    text = page.read_text()
    parts = {"streams": streams_table()}
    if by_key is not None:
        pictures = "![Scores of all methods in all streams](../library_benchmark/results/scores.png)\n"
        words = (
            "Scores in percent at default settings; a stream that a method cannot handle counts as 0, like uniform "
            "random choice.\n"
        )
        full = "All scores with intervals are in [table.md](../library_benchmark/results/table.md).\n"
        parts["results"] = "\n".join((words, summary(by_key), pictures, full))
    for name, content in parts.items():
        begin, end = f"<!-- {name} begin -->\n", f"<!-- {name} end -->"
        before, rest = text.split(begin)
        text = before + begin + "\n" + content + "\n" + end + rest.split(end, 1)[1]
    write_atomically(page, lambda name: Path(name).write_text(text))


def summary(by_key: Mapping[tuple[str, str], Result]) -> str:
    """One row per method: means of groups and of all streams, wins, milliseconds."""
    streams = streams_of(by_key)
    groups = {group: [name for name in streams if STREAMS[name].group == group] for group in GROUPS}
    groups = {group: names for group, names in groups.items() if names}
    head = ["method", "all", *groups, "tuned in hindsight", "streams", "best in", "ms a round"]
    best = {stream: winner(by_key, stream) for stream in streams}
    rows = []
    for method in ranking(by_key):
        played = [by_key[s, method] for s in streams if (s, method) in by_key and by_key[s, method].default]
        has_grid = any(result.tuned is not None for result in played)
        times = [result.milliseconds for result in played]
        rows.append(
            [
                method,
                percent(mean_score(by_key, method, streams)),
                *(percent(mean_score(by_key, method, names)) for names in groups.values()),
                percent(_tuned_mean(by_key, method, streams)) if has_grid else "",
                str(len(played)),
                str(sum(name == method for name in best.values())),
                f"{np.median(times):.2g}" if times else "",
            ]
        )
    return _markdown(head, rows)


def winner(by_key: Mapping[tuple[str, str], Result], stream: str) -> str:
    """The method with the highest mean by its defaults."""
    scores = {
        method: result.default.mean
        for (name, method), result in by_key.items()
        if name == stream and result.default is not None
    }
    return max(scores, key=lambda method: scores[method]) if scores else ""


def full_table(by_key: Mapping[tuple[str, str], Result]) -> str:
    """Scores of all methods in all streams with intervals, then methods that did not take part and why."""
    streams = streams_of(by_key)
    order = ranking(by_key)
    parts = []
    for start in range(0, len(streams), 5):
        names = streams[start : start + 5]
        rows = [[method, *(_cell(by_key.get((stream, method))) for stream in names)] for method in order]
        parts.append(_markdown(["method", *names], rows))
    parts.append("Milliseconds a round, by the defaults:\n")
    for start in range(0, len(streams), 10):
        names = streams[start : start + 10]
        rows = [[method, *(_time(by_key.get((stream, method))) for stream in names)] for method in order]
        parts.append(_markdown(["method", *names], rows))
    reasons: dict[tuple[str, str], list[str]] = {}
    for stream in streams:
        for method in order:
            result = by_key.get((stream, method))
            if result is not None and result.reason:
                reasons.setdefault((method, result.reason), []).append(stream)
    if reasons:
        parts.append("Did not take part:\n")
        parts.append(
            _markdown(["method", "streams", "why"], [[p, "; ".join(where), why] for (p, why), where in reasons.items()])
        )
    return "\n".join(parts)


def _cell(result: Result | None) -> str:
    """The default's score with half of its interval, then the best of the grid in brackets."""
    if result is None or result.default is None:
        return "-"
    half = "" if math.isnan(result.default.half) else f" ± {percent(result.default.half)}"
    tuned = "" if result.tuned is None else f" ({percent(result.tuned.mean)})"
    return percent(result.default.mean) + half + tuned


def _time(result: Result | None) -> str:
    return "-" if result is None or math.isnan(result.milliseconds) else f"{result.milliseconds:.2g}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


# ------------------------------------------------------------------ figures


def figures(by_key: Mapping[tuple[str, str], Result]) -> dict[str, bytes]:
    """PNG and SVG files by name: all scores, and the best method of each library."""
    import matplotlib

    look: dict[Any, Any] = {"svg.hashsalt": "hybandits", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(look):
        return {
            f"{name}.{kind}": _rendered(draw(by_key), kind)
            for name, draw in (("scores", heat_map), ("overview", overview))
            for kind in ("png", "svg")
        }


def _rendered(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=160, metadata={"Date": None} if kind == "svg" else None)
    return buffer.getvalue()


def overview(by_key: Mapping[tuple[str, str], Result]) -> Figure:
    """Draw mean score and time per round of our main policies and of each library's best method for all streams."""
    from matplotlib.figure import Figure

    streams = streams_of(by_key)
    best: dict[str, str] = {}
    for name in ranking(by_key):
        method = METHODS[name]
        if all((s, name) in by_key and by_key[s, name].default for s in streams):
            best.setdefault(name if name in MAIN else method.library, name)
    names = [name for name in best.values() if METHODS[name].library != "hybandits" or name in MAIN][::-1]
    scores = [mean_score(by_key, name, streams) for name in names]
    times = [np.nanmedian([by_key[s, name].milliseconds for s in streams if (s, name) in by_key]) for name in names]
    figure = Figure(figsize=(8.0, 0.8 + 0.33 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    ours = [METHODS[name].library == "hybandits" for name in names]
    bars = axes.barh(range(len(names)), scores, color=["#1f77b4" if mine else "#b0b0b0" for mine in ours])
    labels = [f"{percent(score)} %   {time:.2g} ms" for score, time in zip(scores, times, strict=True)]
    axes.bar_label(bars, labels, padding=4, fontsize=9)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_xlim(0, 1)
    axes.set_xticks(
        [0, 0.25, 0.5, 0.75, 1], ["0\nuniform choice", "25 %", "50 %", "75 %", "100 %\nbest arm every round"]
    )
    axes.set_title(f"Mean score on {len(streams)} streams at default settings, and time per round", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def heat_map(by_key: Mapping[tuple[str, str], Result]) -> Figure:
    """Draw methods by streams, with a colour and a number for each score at default settings."""
    import matplotlib
    from matplotlib.figure import Figure

    streams, order = streams_of(by_key), ranking(by_key)
    grid = np.full((len(order), len(streams) + 1), math.nan)
    for i, method in enumerate(order):
        grid[i, 0] = mean_score(by_key, method, streams)
        for j, stream in enumerate(streams, 1):
            result = by_key.get((stream, method))
            if result is not None and result.default is not None:
                grid[i, j] = result.default.mean
    canvas = Figure(figsize=(2.9 + 0.46 * (len(streams) + 1), 2.2 + 0.27 * len(order)), layout="constrained")
    axes = canvas.add_subplot()
    colours = matplotlib.colormaps["viridis"].with_extremes(bad="#eeeeee")
    shown = axes.imshow(grid, cmap=colours, vmin=0.0, vmax=1.0, aspect="auto")
    for i in range(len(order)):
        for j in range(len(streams) + 1):
            value = grid[i, j]
            text = percent(value)
            dark = not math.isnan(value) and value < 0.6
            axes.text(
                j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else "black",
                fontweight="bold" if j == 0 else "normal",
            )  # fmt: skip
    axes.axvline(0.5, color="white", linewidth=3)
    axes.set_xticks(range(len(streams) + 1), ["all streams", *streams], rotation=45, ha="left", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(order)), order, fontsize=8)
    for label, method in zip(axes.get_yticklabels(), order, strict=True):
        label.set_fontweight("bold" if METHODS[method].library == "hybandits" else "normal")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = canvas.colorbar(shown, ax=axes, shrink=0.5, aspect=30, pad=0.01)
    bar.set_label("share of the possible reward above uniform choice, %", fontsize=8)
    bar.set_ticks([0, 0.25, 0.5, 0.75, 1.0], labels=["0", "25", "50", "75", "100"], fontsize=8)
    return canvas
