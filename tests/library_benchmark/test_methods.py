"""Methods: everybody plays twenty rounds of every stream, or says why not.

Other libraries are tested where they are installed: pip install ".[libraries,dev]", then this folder's tests.
"""

from __future__ import annotations

import importlib.util
import math

import pytest

from library_benchmark.methods import METHODS, Method
from library_benchmark.running import Task, run_task
from library_benchmark.streams import STREAMS, Stream

OURS = [name for name, entry in METHODS.items() if entry.library == "hybandits"]
OTHERS = [name for name in METHODS if name not in OURS]
SHIPPED = ("digits", "wine", "breast cancer", "iris")
STREAMS_HERE = [name for name in STREAMS if name not in SHIPPED or importlib.util.find_spec("sklearn") is not None]
"""Streams whose data is here."""


def played(method: str, stream: str, variant: str = "", rounds: int = 20) -> str:
    """The reason why there is no score; empty if there is one."""
    record = run_task(Task(stream, method, variant, 101, rounds))
    if not record["reason"]:
        assert record["uniform"] < record["best"]
        assert record["reward"] <= record["best"] + 1e-9
        assert record["seconds"] >= 0
    else:
        assert math.isnan(record["reward"])
    return str(record["reason"])


def test_all_policies_of_ours_take_part() -> None:
    assert set(OURS) == {
        "HyIDS", "HyThompson", "HyIDS(memory=auto)", "HyThompson(memory=auto)", "HyLinUCB", "LinUCB", "DisLinUCB",
        "LiHybrid", "HyRan", "SupLinUCB", "Greedy", "EpsilonGreedy(Greedy)", "Uniform",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", OURS)
def test_ours_play_twenty_rounds_of_every_stream(method: str) -> None:
    for stream in STREAMS_HERE:
        assert played(method, stream) == ""


@pytest.mark.parametrize("method", OURS)
def test_grids_of_ours_can_be_played(method: str) -> None:
    stream = STREAMS["terrain"]
    for variant in METHODS[method].variants(stream):
        assert played(method, stream.name, variant, rounds=5) == ""


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_others_play_every_stream_that_they_can_take(method: str) -> None:
    """A method that cannot take part says so; no method fails in any other way."""
    entry = METHODS[method]
    if not entry.installed:
        pytest.skip(f"{entry.library} is not installed: pip install '.[libraries]'")
    part = 0
    for stream in STREAMS_HERE:
        reason = played(method, stream)
        assert ":" not in reason or reason.startswith("it is run only"), f"{method} failed in {stream}: {reason}"
        part += not reason
    assert part >= 1


@pytest.mark.parametrize("method", OTHERS)
def test_grids_of_others_can_be_played(method: str) -> None:
    entry = METHODS[method]
    if not entry.installed:
        pytest.skip(f"{entry.library} is not installed: pip install '.[libraries]'")
    stream = STREAMS["iris" if "iris" in STREAMS_HERE else "terrain"]
    for variant in entry.variants(stream):
        assert played(method, stream.name, variant) in ("", "it is run only in streams of the kind: changing")


def test_late_rewards_reach_every_method_of_ours() -> None:
    for method in OURS:
        assert played(method, "products, late clicks", rounds=320) == ""


def test_grids_are_run_where_the_entry_says() -> None:
    def variants(stream: Stream, *grid_in: str) -> list[str]:
        grid = ({"a": 1}, {"a": 2, "b": 3})
        return list(
            Method(name="x", library="y", make=lambda *a, **k: None, grid=grid, grid_in=grid_in).variants(stream)  # type: ignore[arg-type,return-value]
        )

    assert variants(STREAMS["terrain"]) == ["", "a=1", "a=2, b=3"]
    assert variants(STREAMS["terrain"], "data sets") == ["", "a=1", "a=2, b=3"]
    assert variants(STREAMS["terrain"], "clicks", "iris") == [""]
