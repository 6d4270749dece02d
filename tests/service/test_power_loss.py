"""The power goes at any write or sync: what was acknowledged is there when it is back, and nothing counts twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from hybandits.service.commands import Answer, Command, Decide, GiveReward, Retire
from hybandits.service.log import Decision, Row, Store, StoreError
from hybandits.service.model_state import ModelState
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import CLICKS, USER, Clock, bandit, putting
from tests.support.disks import VARIANTS, Disk


@pytest.fixture(autouse=True)
def _checkpoints_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The WAL is written back after every few pages and at once, so that the power goes in the midst of that too."""

    def committed(store: SqliteStore, connection: apsw.Connection, database: str, pages: int) -> int:
        if pages >= 6:
            connection.wal_checkpoint(database, apsw.SQLITE_CHECKPOINT_PASSIVE)
        return apsw.SQLITE_OK

    monkeypatch.setattr(SqliteStore, "_committed", committed)


class Walk:
    """Random commands, and the power goes again and again."""

    def __init__(self, folder: Path, seed: int, variant: str, *, lies: bool = False) -> None:
        self.folder, self.variant, self.lies = folder, variant, lies
        self.random = random.Random(f"{seed} {variant}")
        self.clock = Clock()
        self.acknowledged: list[Row] = []
        """All rows of the log when the last command was answered."""
        self.again: list[Command] = []
        """Commands that were not answered, and are given again."""
        self.events = 0
        self.outages = 0
        self.survived = 0
        """Rows that were not acknowledged and were there all the same."""

    def run(self, lives: int) -> None:
        files: dict[str, bytes] = {}
        for life in range(lives):
            files = self._live(self.folder / str(life), files, power=self.random.randint(1, 150))
        self._live(self.folder / "last", files, power=None)

    def _live(self, folder: Path, files: dict[str, bytes], power: int | None) -> dict[str, bytes]:
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        disk = Disk(power, lies=self.lies)
        store = None
        try:
            store = SqliteStore(folder / "log.db", vfs=disk.name)
            writer = Writer(store, bandit(CLICKS), clock=self.clock)
            self._check(store)
            for _ in range(40 if power is None else 1_000):
                if not self._step(writer):
                    break
        except StoreError:
            assert disk.is_off
        assert disk.is_off == (power is not None)
        self.outages += disk.is_off
        left = disk.left(self.variant, self.random)
        disk.over = True  # from here on nobody looks at it
        if store is not None:
            if power is None:
                self._check(store)
                assert verify(store).different == 0
            store.close()
        disk.unregister()
        return left

    def _step(self, writer: Writer) -> bool:
        """Give some commands; returns whether they were answered."""
        commands = self.again or [self._command() for _ in range(self.random.choice((1, 1, 3, 30)))]
        self.clock.advance(self.random.choice((0, 0.1, 3)))
        outcomes = writer.serve(commands)
        if writer.trouble is not None:
            self.again = commands
            return False
        assert all(isinstance(each, Answer) or each.status in (404, 409, 422) for each in outcomes)
        self.again = []
        self.acknowledged += writer.store.rows(len(self.acknowledged))
        if self.random.random() < 0.1:
            try:
                writer.keep_snapshot()
            except StoreError:
                return False
        return True

    def _command(self) -> Command:
        act = self.random.random()
        if act < 0.5:
            self.events += 1
            return Decide({**USER, "age": self.random.gauss(0, 1)}, event_id=f"e{self.events}")
        if act < 0.9:
            return GiveReward(f"e{self.random.randint(1, self.events + 1)}", self.random.choice((0.0, 0.5, 1.0)))
        arm = self.random.choice("abcd")
        return putting(arm, {"price": self.random.random()}) if act < 0.97 else Retire([arm])

    def _check(self, store: Store) -> None:
        """Everything acknowledged is there, as it was; the model is what the log says."""
        rows = list(store.rows(0))
        assert rows[: len(self.acknowledged)] == self.acknowledged
        assert [row.number for row in rows] == list(range(1, len(rows) + 1))
        events = [(type(row.content), row.event) for row in rows if row.event is not None]
        assert len(set(events)) == len(events)
        self.survived += max(0, len(rows) - len(self.acknowledged)) if self.acknowledged else 0
        self.acknowledged = rows
        restored, replayed = ModelState.restored(store), ModelState.based(store)
        replayed.apply(store.rows(replayed.row), store)
        assert state(restored) == state(replayed)
        assert replayed.summary.reward.n == sum(
            isinstance(row.content, Decision) and row.number <= replayed.closed for row in rows
        )


def state(model: ModelState) -> dict[str, Any]:
    policies = {name: policy.to_bytes() for name, policy in model.policies.items()}
    return {"row": model.row, "closed": model.closed, "arms": model.arms, "summary": model.summary, **policies}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_nothing_acknowledged_is_lost(tmp_path: Path, variant: str) -> None:
    walk = Walk(tmp_path, 1, variant)
    walk.run(lives=25)
    assert walk.outages == 25
    assert len(walk.acknowledged) > 200
    if variant == "everything":
        assert walk.survived > 0


@pytest.mark.slow
def test_a_disk_that_does_not_sync_is_found_out(tmp_path: Path) -> None:
    """So the test above would notice if the store did not sync."""
    with pytest.raises(AssertionError):
        Walk(tmp_path, 1, "nothing", lies=True).run(lives=25)
