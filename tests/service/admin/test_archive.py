"""Moving rows out of the log: nothing is lost, whatever else happens at the same time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybandits.evaluation import evaluate
from hybandits.evaluation.view import View
from hybandits.logs.store import Log, LogError
from hybandits.service.access import Tokens
from hybandits.service.admin.archive import Archived, archive
from hybandits.service.admin.export import export
from hybandits.service.admin.verify import verify
from hybandits.service.api import Api
from hybandits.service.commands import GiveReward, OfArm, PutArm
from hybandits.service.log.rows import ARMS, DECISION, KINDS, Arm, Decision, Retired, Row, decode
from hybandits.service.log.sqlite import SqliteStore
from hybandits.service.log.store import ATTEMPTS, StoreError
from hybandits.service.model_state import ModelState, walk
from hybandits.service.writer import Writer
from tests.support.bandits import (
    CLICKS,
    FILE,
    Clock,
    ask,
    bandit,
    decide,
    models,
    outcome_of,
    put,
    retire,
    reward,
    writer,
)

MODES = pytest.mark.parametrize("content", [FILE, CLICKS], ids=["at once", "with a window"])


def play(service: Writer, first: int, last: int, clock: Clock) -> None:
    """Decisions, of which three in four get a reward; a second passes after each."""
    for i in range(first, last):
        decide(service, f"e{i}", user={"age": (i % 7) / 7, "country": "fr" if i % 2 else "de"})
        if i % 4:
            reward(service, f"e{i}", float(i % 3 == 0))
        clock.advance(1)


def played(path: Path, content: dict[str, Any]) -> tuple[Writer, Clock]:
    """A service with 40 decisions, all closed."""
    clock = Clock()
    service = writer(path, content, clock=clock)
    put(service, "a", "b", "c")
    play(service, 0, 40, clock)
    clock.advance(100)
    service.serve([])
    clock.advance(1)
    return service, clock


def archived_rows(folder: Path) -> list[Row]:
    rows = []
    for row in pq.read_table(folder / "rows.parquet").to_pylist():
        content = decode(row["content"])
        assert (row["kind"], row["event"]) == (KINDS[type(content)], getattr(content, "event", None))
        rows.append(Row(row["row"], row["time"], content))
    return rows


def rows_of(store: SqliteStore, *folders: Path) -> list[Row]:
    """All rows of a log and of what was archived of it, none of them twice."""
    rows = [*store.rows(0), *(row for folder in folders for row in archived_rows(folder))]
    assert len({row.number for row in rows}) == len(rows)
    return sorted(rows, key=lambda row: row.number)


def interrupting(store: SqliteStore, method: str, happens: Callable[[], object], times: int = 1) -> None:
    """Let something happen just before a method of the store is called, the first times."""
    call, left = getattr(store, method), [happens] * times

    def interrupted(*given: Any, **named: Any) -> Any:
        if left:
            left.pop()()
        return call(*given, **named)

    setattr(store, method, interrupted)


def other(service: Writer) -> SqliteStore:
    """The log of a service, as another process opens it."""
    assert isinstance(service.store, SqliteStore)
    return SqliteStore(service.store.path)


@MODES
def test_rows_are_moved_and_none_is_lost(tmp_path: Path, content: dict[str, Any]) -> None:
    service, clock = played(tmp_path, content)
    store = other(service)
    before = list(store.rows(0))
    done = archive(store, tmp_path / "old", before=clock.now)
    assert done.warning is None
    assert (done.decisions, done.rewarded) == (40, 30)
    assert done.rounds == (40 if content is CLICKS else 30)
    assert rows_of(store, tmp_path / "old") == before
    assert store.first_decisions(0, 1) == []
    log = Log(tmp_path / "old")
    assert log.rounds == done.rounds
    assert sum(batch.reward.sum() for batch in log.batches()) == service.fold.summary.reward.total
    assert evaluate(View(log), {"uniform": "uniform"}, estimators=("ips",)).of("uniform", "ips").value > 0
    base = store.base()
    assert base is not None
    assert base.digest == done.digest


def test_decisions_without_any_reward_are_not_archived_alone(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, clock=clock)
    put(service, "a", "b")
    for i in range(5):
        decide(service, f"e{i}")
    clock.advance(1)
    with pytest.raises(LogError, match="None of the 5 decisions that are as old as that has a reward"):
        archive(other(service), tmp_path / "old", before=clock.now)
    assert not (tmp_path / "old").exists()
    assert len(service.store.first_decisions(0, 9)) == 5


@pytest.mark.parametrize("changes", [{}, {"floor": 0.1}], ids=["same file", "another floor"])
def test_a_log_that_is_archived_while_a_server_starts(tmp_path: Path, changes: dict[str, Any]) -> None:
    """It has folded the log, and rows are archived that were written after that."""
    service, clock = played(tmp_path, CLICKS)
    store = other(service)

    def archived() -> None:
        play(service, 40, 50, clock)
        clock.advance(100)
        service.serve([])
        clock.advance(1)
        archive(other(service), tmp_path / "old", before=clock.now)

    interrupting(store, "writing", archived)
    started = Writer(store, bandit(CLICKS, **changes), clock=clock)
    assert started.fold.bandit.floor == changes.get("floor", 0.05)
    assert started.fold.row == store.last()[0]
    decide(started, "new")
    service.serve([])
    assert models(started) == models(service)


def test_everything_is_on_disk_before_rows_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, clock = played(tmp_path, FILE)
    store, synced, fsync = other(service), set(), os.fsync

    def noted(file: int) -> None:
        synced.add(Path(os.readlink(f"/proc/self/fd/{file}")))
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    out = tmp_path / "new" / "old"
    interrupting(store, "rebase", lambda: on_disk.update(synced))
    on_disk: set[Path] = set()
    archive(store, out, before=clock.now)
    assert {out / name for name in ("rows.parquet", "arms.parquet", "log.json", "rounds/00001.parquet")} <= on_disk
    assert {out, out / "rounds", out.parent, tmp_path} <= on_disk


@MODES
@pytest.mark.parametrize("method", ["rebase", "outcomes", "find", "last", "snapshot"])
def test_two_archives_at_once_lose_nothing(tmp_path: Path, content: dict[str, Any], method: str) -> None:
    service, clock = played(tmp_path, content)
    slow, before = other(service), list(service.store.rows(0))
    early, late = clock.now - 125_000_000, clock.now - 110_000_000
    if content is CLICKS:
        early, late = late, clock.now
    fast: list[Archived] = []
    interrupting(slow, method, lambda: fast.append(archive(other(service), tmp_path / "fast", before=early)))
    done = archive(slow, tmp_path / "slow", before=late)
    assert 0 < fast[0].row < done.row
    assert rows_of(slow, tmp_path / "fast", tmp_path / "slow") == before
    again = Writer(other(service), clock=clock)
    service.serve([])
    assert models(again) == models(service)
    assert verify(slow).different == 0


def test_an_archive_that_another_has_overtaken_removes_nothing(tmp_path: Path) -> None:
    service, clock = played(tmp_path, FILE)
    slow, before = other(service), list(service.store.rows(0))
    interrupting(slow, "rebase", lambda: archive(other(service), tmp_path / "fast", before=clock.now))
    with pytest.raises(LogError, match="nothing to archive"):
        archive(slow, tmp_path / "slow", before=clock.now - 125_000_000)
    assert not (tmp_path / "slow").exists()
    assert rows_of(slow, tmp_path / "fast") == before
    decide(service, "next")
    assert verify(slow).different == 0


@MODES
def test_a_reward_that_comes_before_rows_are_removed_keeps_its_decision(
    tmp_path: Path, content: dict[str, Any]
) -> None:
    service, clock = played(tmp_path, content)
    store = other(service)
    interrupting(store, "rebase", lambda: outcome_of(service, GiveReward("e0", 1.0)))
    done = archive(store, tmp_path / "one", before=clock.now)
    before = rows_of(store, tmp_path / "one")
    assert [row.number for row in before] == list(range(1, len(before) + 1))
    assert done.decisions == 39
    assert list(store.find(["e0", "e1", "e4"])) == ["e0"]
    clock.advance(1)
    decide(service, "next")
    clock.advance(100)
    service.serve([])
    clock.advance(1)
    reward(service, "next", 1.0)
    clock.advance(1)
    again = archive(store, tmp_path / "two", before=clock.now)
    assert again.decisions == 2
    assert len(rows_of(store, tmp_path / "one", tmp_path / "two")) == store.last()[0]
    rounds = done.rounds + again.rounds
    assert rounds == (41 if content is CLICKS else 32)


def test_rewards_that_come_all_the_time_are_said_in_words(tmp_path: Path) -> None:
    service, clock = played(tmp_path, FILE)
    store, rewarded = other(service), iter(range(0, 40, 4))
    interrupting(store, "rebase", lambda: reward(service, f"e{next(rewarded)}", 1.0), ATTEMPTS)
    with pytest.raises(StoreError, match=r"A reward has come .* 5 times in a row"):
        archive(store, tmp_path / "old", before=clock.now)
    assert not (tmp_path / "old").exists()
    assert len(list(store.rows(0))) == store.last()[0]


@pytest.mark.parametrize("committed", [False, True], ids=["not committed", "committed"])
def test_an_error_at_the_commit(tmp_path: Path, committed: bool) -> None:
    """The connection to a database can be lost before or after it has committed."""
    service, clock = played(tmp_path, FILE)
    store, before = other(service), list(service.store.rows(0))
    rebase = store.rebase

    def lost(*given: Any, **named: Any) -> None:
        if committed:
            rebase(*given, **named)
        raise StoreError("The connection is lost.")

    store.rebase = lost  # type: ignore[method-assign]
    if committed:
        assert archive(store, tmp_path / "old", before=clock.now).decisions == 40
        assert rows_of(store, tmp_path / "old") == before
        return
    with pytest.raises(StoreError, match="is lost"):
        archive(store, tmp_path / "old", before=clock.now)
    assert list(store.rows(0)) == before
    assert not (tmp_path / "old").exists()


def test_a_folder_stays_if_it_is_not_known_whether_rows_were_removed(tmp_path: Path) -> None:
    service, clock = played(tmp_path, FILE)
    store = other(service)

    def gone(*given: Any, **named: Any) -> Any:
        raise StoreError("The connection is lost.")

    store.rebase = store.writing = gone  # type: ignore[method-assign]
    with pytest.raises(StoreError, match=r"is lost\. It is not known whether the rows were removed .* so keep .*old"):
        archive(store, tmp_path / "old", before=clock.now)
    assert Log(tmp_path / "old").rounds == 30


def test_a_killed_archive_does_no_harm(tmp_path: Path) -> None:
    service, clock = played(tmp_path, FILE)
    store, before = other(service), list(service.store.rows(0))

    def killed() -> None:
        raise KeyboardInterrupt

    interrupting(store, "rebase", killed)
    with pytest.raises(KeyboardInterrupt):
        archive(store, tmp_path / "old", before=clock.now)
    assert list(store.rows(0)) == before
    assert archive(store, tmp_path / "again", before=clock.now).decisions == 40


@MODES
@pytest.mark.parametrize("method", ["outcomes", "by_number", "rows", "base"])
def test_folding_exporting_and_verifying_go_on_beside_an_archive(
    tmp_path: Path, content: dict[str, Any], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybandits.service.model_state.REMEMBERED", 4)
    service, clock = played(tmp_path, content)
    for i in range(4, 40, 8):
        outcome_of(service, GiveReward(f"e{i}", 1.0))
    decide(service, "later")
    clock.advance(200)
    service.serve([])
    step = 0

    def disturbed() -> SqliteStore:
        """A store whose log is archived while it is read, once more each time."""
        nonlocal step
        step += 1
        out, before = tmp_path / f"old {step}", clock.now - (330 - 10 * step) * 1_000_000

        def archived() -> None:
            try:
                archive(other(service), out, before=before)
            except LogError:  # the rows of this time were archived before
                assert step > 1

        store = other(service)
        interrupting(store, method, archived)
        return store

    fold = ModelState.restored(disturbed())
    assert fold is not None
    service.serve([])
    assert {name: policy.to_bytes() for name, policy in fold.policies.items()} == models(service)
    result = verify(disturbed())
    assert result.different == 0, result.examples
    log, _ = export(disturbed(), tmp_path / "log")
    assert log.rounds == export(other(service), tmp_path / "log again")[0].rounds


def candidates_of(store: SqliteStore) -> dict[int, Any]:
    """Who the decisions of a log were made among, with which features, by the numbers of their rows."""
    found = {}
    for fold, rows in walk(store, learning=False):
        for row in rows:
            assert isinstance(row.content, Decision)
            pool = fold.pool(row.content.candidates)
            assert not isinstance(pool.vectors, int)
            found[row.number] = pool.ids, pool.vectors.tolist(), fold.arms[row.content.arm].version
    return found


@MODES
def test_rows_of_arms_go_unless_a_decision_that_stays_means_them(tmp_path: Path, content: dict[str, Any]) -> None:
    """An arm that is described anew all the time must not make the log grow for ever."""
    clock = Clock()
    service = writer(tmp_path, content, clock=clock)

    def describe_and_decide(first: int, last: int) -> None:
        for i in range(first, last):
            for arm in ("b", "a", "c"):
                ask(service, OfArm(arm, PutArm({"price": i / 7})))
            retire(service, "c")
            decide(service, f"e{i}")
            if i % 5:
                reward(service, f"e{i}", i / 50)
            clock.advance(1)

    describe_and_decide(0, 30)
    retire(service, "b")
    put(service, "last")
    clock.advance(1)
    before = clock.now
    describe_and_decide(30, 35)
    outcome_of(service, GiveReward("e25", 1.0))  # which was decided long before the archive's last row
    rows, model, candidates = list(service.store.rows(0)), service.fold.snapshot(), candidates_of(other(service))
    store = other(service)
    done = archive(store, tmp_path / "old", before=before)
    assert rows_of(store, tmp_path / "old") == rows
    stay = candidates_of(store)
    oldest = "e21" if content is CLICKS else "e25"  # with a window it is the first that is still open
    assert min(stay) == service.store.find([oldest])[oldest].decision.number  # type: ignore[union-attr]
    assert stay == {number: candidates[number] for number in stay}
    looking = Api(service, Tokens())
    for row in store.rows(0, None, [DECISION]):
        assert looking._active_at(row.content.version) == stay[row.number][0]  # type: ignore[union-attr]
    first = next(store.rows(0, None, [DECISION])).content.version  # type: ignore[union-attr]
    assert len(list(store.rows(0, first, ARMS))) == 2 * 3, "the first and the last row of each arm"
    after = [row for row in rows if first < row.number <= done.row and isinstance(row.content, Arm | Retired)]
    assert list(store.rows(first, done.row, ARMS)) == after
    assert len(after) > 10
    again = Writer(store, clock=clock)
    assert again.fold.snapshot() == model
    assert again.fold.arms == service.fold.arms
    assert verify(store).different == 0
    clock.advance(100)
    again.serve([])
    clock.advance(1)
    archive(store, tmp_path / "rest", before=clock.now)
    assert rows_of(store, tmp_path / "old", tmp_path / "rest")[: len(rows)] == rows
    assert len(list(store.rows(0, None, ARMS))) == 2 * 3 + 1
    assert ModelState.based(store).arms == service.fold.arms
