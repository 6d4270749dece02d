"""The summary in the terminal."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from hybandits.paper.judging import judge
from hybandits.report import terminal
from tests.support.fabricated_results import fabricate, fabricate_log, fresh_setting, on_a_log, small_setting


def test_terminal_summary(tmp_path: Path) -> None:
    results = fabricate(
        tmp_path, small_setting("setting-1"), small_setting("diversity"), small_setting("setting-1", "written")
    )
    verdicts = judge(results)
    file = io.StringIO()
    terminal.print_summary(results, verdicts, Console(file=file, width=80))
    text = file.getvalue()
    assert text.isascii()
    assert text.startswith("The short version: Setting 1: 10,000 of 80,000 rounds")
    lines = text.splitlines()
    title = "Setting 1, released protocol: regret after 10,000 rounds (6 runs, interval over environments)"
    at = lines.index(title)
    assert lines[at + 1].split()[:3] == ["policy", "K", "mean"]
    row = next(line for line in lines[at:] if line.startswith("LinUCB"))
    assert row.split() == ["LinUCB", "25", "243.0", "182.6", "to", "303.4", "217.5", "268.5", "243", "1.000", "yes"]
    written = lines.index(next(line for line in lines if line.startswith("Setting 1, written protocol")))
    assert next(line for line in lines[written:] if line.startswith("LinUCB")).split()[-1] == "268.5", (
        "nothing published"
    )
    for verdict in verdicts:
        (line,) = [x for x in lines if x.startswith(f"{verdict.claim}  ") and f" {verdict.protocol} " in x]
        assert verdict.title in line
        assert verdict.verdict in line

    watched = Console(file=io.StringIO(), force_terminal=True, width=140, no_color=True)
    with watched.capture() as captured:
        terminal.print_summary(results, verdicts, watched)
    for word in ("HyLinUCB", "Claims", "published", "1.000", verdicts[0].verdict):
        assert word in captured.get()


def test_the_terminal_says_what_it_is_about(tmp_path: Path) -> None:
    results = fabricate_log(tmp_path, on_a_log(trials=1, policies=("HyLinUCB", "LinUCB")), spread=0.0)
    file = io.StringIO()
    terminal.print_summary(results, judge(results), Console(file=file, width=80))
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("The short version: Yahoo: 200,000 of 10,000,000 rounds")
    assert "on a synthetic log" in lines[1]
    title = "Yahoo, released protocol: regret after 200,000 rounds (1 run), synthetic log, not Yahoo's data"
    at = lines.index(title)
    assert lines[at + 1].endswith("beyond HyLinUCB")
    assert [line.split()[-1] for line in lines[at + 2 : at + 5]] == ["0", "+100.0", "+1,500"]
    assert lines[at + 4].startswith("uniform choice (expected)")
    (claim,) = [line for line in lines if line.startswith("8 ")]
    assert "undecided  No real data: the log is synthetic" in claim


def test_the_terminal_says_what_a_verdict_rests_on(tmp_path: Path) -> None:
    results = fabricate(tmp_path, small_setting("setting-1"), fresh_setting("setting-1"))
    file = io.StringIO()
    terminal.print_summary(results, judge(results), Console(file=file, width=80))
    lines = [line for line in file.getvalue().splitlines() if line.startswith("1  ")]
    assert ["the 3 published environments" in line for line in lines] == [True, False]
    assert ["6 fresh environments" in line for line in lines] == [False, True]
