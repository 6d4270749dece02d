"""The model as a fold: the same bytes however a log is folded, and from snapshots."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hybandits.service.commands import GiveReward, Promote
from hybandits.service.fold import Fold
from hybandits.service.sqlite import SqliteStore
from hybandits.service.summary import FIRST_BIN
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, FILE, Clock, bandit, decide, outcome_of, put, retire, writer

MODES = pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])
CHALLENGERS = [{"name": "bold", "policy": "HyThompson:scale=1"}]


def play(service: Writer, clock: Clock, first: int, last: int) -> None:
    """Decisions over some minutes, whose rewards come some rows later, some of them never."""
    chance = random.Random(first)
    for i in range(first, last):
        decide(service, f"e{i}", user={"age": chance.gauss(0, 1), "country": chance.choice(["de", "fr"])})
        clock.advance(chance.choice([0.1, 1, 15]))
        if i >= first + 3 and chance.random() < 0.8:
            outcome_of(service, GiveReward(f"e{i - 3}", chance.random()))


def played(path: Path, content: dict[str, Any]) -> Writer:
    """A service whose log has rows of all kinds."""
    clock = Clock()
    service = writer(path, content, challengers=CHALLENGERS, clock=clock)
    put(service, "a", "b", "c")
    play(service, clock, 0, 80)
    outcome_of(service, Promote("bold"))
    retire(service, "a")
    put(service, "d", "b")
    play(service, clock, 100, 180)
    changed = bandit(content, challengers=CHALLENGERS, floor=0.1)
    service = Writer(SqliteStore(path / "log.db"), changed, clock=clock)
    play(service, clock, 200, 240)
    return service


@MODES
def test_a_log_gives_the_same_bytes_however_it_is_folded(tmp_path: Path, content: dict[str, Any]) -> None:
    """Servers fold what has come since they last looked, which is another piece of the log for each."""
    service, chance = played(tmp_path, content), random.Random(1)
    store, rows = service.store, list(service.store.rows(0))

    def folded(size: Callable[[], int]) -> bytes:
        fold, start = Fold(bandit(content, challengers=CHALLENGERS)), 0
        while start < len(rows):
            some = size()
            fold.apply(rows[start : start + some], store)
            start += some
        return fold.snapshot().content

    whole = folded(lambda: len(rows))
    assert service.fold.summary.width >= 4 * FIRST_BIN, "stretches of time have become longer on the way"
    assert folded(lambda: 1) == whole
    assert folded(lambda: chance.randint(1, 90)) == whole
    assert service.fold.snapshot().content == whole
