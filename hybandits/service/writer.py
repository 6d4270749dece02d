"""The one thread that writes: it takes what has been asked, decides, and answers when everything is on disk.

Requests that come while a transaction is being written wait for the next one, which takes them all (group commit). In
every transaction the writer first folds what others have written, then closes what is due, then serves the requests
in their order against that one model, and folds its own rows when they are on disk.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from hybandits.foundation import checks
from hybandits.service.commands import Answer, Command, Decide, GiveReward, OfArm, Promote, PutArm
from hybandits.service.log.rows import (
    SCHEMA,
    Arm,
    Candidates,
    Changed,
    Closed,
    Content,
    Decision,
    Opened,
    Promoted,
    Retired,
    Reward,
    Row,
    decode_ids,
)
from hybandits.service.log.store import Found, Store, StoreError, Transaction
from hybandits.service.model_state import ModelState
from hybandits.service.problems import Refused
from hybandits.service.settings import CHANGEABLE, Bandit, in_words
from hybandits.service.wrong_features import wrong_features

MOST_TOGETHER = 1_000
"""Requests in one transaction."""

MOST_CLOSED = 1_000
"""Decisions that one row closes."""

SNAPSHOT_EVERY = 50_000
"""Rows between two snapshots."""

RETRY = 0.5
"""Seconds until the store is tried again when it could not be used."""

IDLE = 1.0
"""Seconds without a transaction, after which what others have written is folded before the next one begins."""

LONGEST_WAIT = 60.0
"""Seconds after which the writer looks at the clock again, however far the next end of a window is."""

CLOCK_BEHIND = 5.0
"""Seconds by which the clock may be behind the log's time before a warning is logged: clocks of servers differ."""

LARGEST = 1e50
"""Rewards and features beyond this are refused, as policies do."""

log = logging.getLogger("hybandits.service")

OF_EVENTS = (Decide, GiveReward)
"""Commands about an event."""

Outcome = Answer | Refused
Reply = Callable[[list[Outcome]], object]
"""Is called with one outcome for every command that was handed in together."""


Delivery = tuple[Reply, list[Outcome]]
"""Where to answer, and what."""


class Asked(msgspec.Struct, frozen=True):
    """Commands that were handed in together, and where to answer."""

    commands: Sequence[Command]
    reply: Reply


class Writer:
    """Decides, writes and answers.

    Parameters
    ----------
    store : Store
        The log.
    bandit : Bandit, optional
        What `bandit.toml` says. If the log is empty it begins with it; otherwise what may change is changed by a row,
        and what may not is refused. None: the log must have begun.
    clock : callable
        Microseconds since 1970.
    """

    def __init__(
        self, store: Store, bandit: Bandit | None = None, *, clock: Callable[[], int] = lambda: time.time_ns() // 1_000
    ) -> None:
        self.store = store
        self._clock = clock
        self._asked: deque[Asked] = deque()
        self._wake = threading.Condition(threading.RLock())
        self._stopping = self._woken = False
        self._thread: threading.Thread | None = None
        self._snapshot_row = 0
        self._torn = self._warned_of_clock = False
        self._served = -math.inf
        self.trouble: str | None = None
        """Why the service cannot write at the moment; None if it can."""
        self.failures = 0
        """How often it could not."""
        self.shared = False
        """Whether others wrote to the log since the transaction before the last: then transactions wait for turns."""
        self.wrote = -math.inf
        """When the disk last took something, by `time.monotonic`."""
        self.committed: Callable[[float], None] = lambda seconds: None
        """Is told how long every transaction took."""
        self.fold = self._opened(bandit)

    # -------------------------------------------------------------- beginning

    def _opened(self, bandit: Bandit | None) -> ModelState:
        fold = ModelState.restored(self.store)
        if fold is None:
            if bandit is None:
                raise ValueError("the log is empty: start it with a bandit.toml")
            with self.store.writing() as transaction:
                if transaction.last()[0] == 0:  # no other server has been faster
                    transaction.append([Row(1, self._clock(), Opened(SCHEMA, bandit.with_seed().plain()))])
            fold = ModelState.restored(self.store)
            assert fold is not None
        if bandit is not None:
            fold = self._changed(fold, bandit)
        self._snapshot_row = fold.resumed
        return fold

    def _changed(self, fold: ModelState, bandit: Bandit) -> ModelState:
        """The fold after a row was written where the file says something else than the log, unless that is refused."""
        with self.store.writing() as transaction:
            fold.apply(transaction.rows(fold.row), transaction)
            refuse_ended(fold, self.store)
            rows = self._changes(fold, bandit)
            transaction.append(rows)
        fold.apply(rows, self.store)
        return fold

    def _changes(self, fold: ModelState, bandit: Bandit) -> list[Row]:
        """The row that makes the bandit of the log that of the file; none if they are the same."""
        wanted, known = bandit.plain(), fold.bandit.plain()
        different = bandit.contradiction(fold.bandit)
        if different is not None:
            raise ValueError(
                f"{different}: a log keeps what its rows mean. Change it back, or start another bandit with another "
                "store."
            )
        values = {name: wanted[name] for name in CHANGEABLE}
        if all(values[name] == known[name] for name in CHANGEABLE):
            return []
        if (fold.bandit.window is None) != (bandit.window is None):
            raise ValueError(
                "a log whose rewards are learned at once cannot get a window later, nor lose it: start another "
                "bandit with another store."
            )
        live = fold.bandit.policies[fold.live]
        if bandit.policies.get(fold.live) != live:
            raise ValueError(
                f"the policy {fold.live!r} ({live}) is live in the log: keep it among the challengers as it is"
            )
        row = Row(fold.row + 1, max(self._clock(), fold.time), Changed(values))
        changes = [f"{name} was {in_words(name, known[name])} and is {in_words(name, values[name])}"
                   for name in CHANGEABLE if values[name] != known[name]]  # fmt: skip
        log.warning("the bandit has changed, from row %d on: %s", row.number, "; ".join(changes))
        return [row]

    # -------------------------------------------------------------- the thread

    def start(self, deliver: Callable[[Sequence[Delivery]], object] | None = None) -> None:
        """Begin to serve. The answers of a transaction are handed to `deliver`; without it, the thread gives them."""
        self._deliver = deliver or _deliver
        self._thread = threading.Thread(target=self._run, name="hybandits writer", daemon=True)
        self._thread.start()

    def ask(self, asked: Asked, *, wake: bool = True) -> None:
        """Hand in commands; those that cannot be served any more are refused at once.

        Without `wake` they are served with those that come later, or with what is about to be served.
        """
        with self._wake:
            if not self._stopping:
                self._asked.append(asked)
                if wake:
                    self.wake()
                return
        stopping = Refused(503, "The service is stopping. Ask again in a moment.")
        self._deliver([(asked.reply, [stopping for _ in asked.commands])])

    def wake(self) -> None:
        """Let what has been handed in be served."""
        with self._wake:
            self._woken = True
            self._wake.notify()

    def drop(self) -> None:
        """Drop what waits, because its clients have been answered otherwise."""
        with self._wake:
            self._asked.clear()

    @property
    def waiting(self) -> int:
        """Requests that wait for their transaction."""
        return len(self._asked)

    def stop(self) -> None:
        """Serve what has been handed in, keep a snapshot, and end."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()
        self._try_to_keep_snapshot()

    def _run(self) -> None:
        while True:
            with self._wake:
                if not self._woken and not self._stopping:
                    self._wake.wait(self._until_due() if self.trouble is None else RETRY)
                woken, self._woken = self._woken, False
                if self._stopping and not self._asked:
                    return
            if woken and not self._asked:  # the transaction before has taken everything
                self._deliver([])
                continue
            asked: list[Asked] = []
            self._serve(functools.partial(self._take, asked), functools.partial(self._answer, asked))
            if self.fold.row - self._snapshot_row >= SNAPSHOT_EVERY:
                self._try_to_keep_snapshot()

    def _try_to_keep_snapshot(self) -> None:
        try:
            self.keep_snapshot()
        except StoreError as problem:
            log.warning("no snapshot was kept: %s", problem)
        except Exception:  # it is only a cache, and all clients wait for this thread
            log.exception("no snapshot was kept")

    def _answer(self, asked: Sequence[Asked], outcomes: Sequence[Outcome]) -> None:
        rest = iter(outcomes)
        self._deliver([(each.reply, list(itertools.islice(rest, len(each.commands)))) for each in asked])

    def _take(self, asked: list[Asked]) -> list[Command]:
        """Take what has been handed in by now, as much as one transaction should serve."""
        count = 0
        with self._wake:
            while self._asked and (not asked or count + len(self._asked[0].commands) <= MOST_TOGETHER):
                asked.append(self._asked.popleft())
                count += len(asked[-1].commands)
            self._woken = self._woken or bool(self._asked)
        return [command for each in asked for command in each.commands]

    def keep_snapshot(self) -> None:
        """Keep the model as it is, so that the next start need not fold the whole log."""
        if self._torn:  # what was learned in part must not be kept
            return
        if self.fold.row > self._snapshot_row:
            self.store.keep_snapshot(self.fold.snapshot())
            self._snapshot_row = self.fold.row

    def _until_due(self) -> float | None:
        """Seconds until the first open decision must close; None if there is none."""
        window, first = self.fold.bandit.window, self.fold.first_open
        if window is None or first is None:
            return None
        return min(max(0.0, (first + window * 1e6 - self._clock()) / 1e6), LONGEST_WAIT)

    @property
    def clock_behind(self) -> float:
        """Seconds by which this machine's clock is behind the time of the log's last row; 0 if it is not."""
        return max(0.0, (self.fold.time - self._clock()) / 1e6)

    def _now(self) -> int:
        """The time of rows that are written now, which never goes back; says so once if it stands still."""
        behind = self.clock_behind
        if behind > CLOCK_BEHIND and not self._warned_of_clock:
            log.warning(
                "the clock is %.0f seconds behind the log's last row, so that time stands still and no window ends "
                "until it has caught up: check the clocks of all servers",
                behind,
            )
            self._warned_of_clock = True
        elif not behind and self._warned_of_clock:
            log.warning("the clock has caught up with the log")
            self._warned_of_clock = False
        return max(self._clock(), self.fold.time)

    # -------------------------------------------------------------- serving

    def serve(self, commands: Sequence[Command]) -> list[Outcome]:
        """Serve commands in one transaction; returns when what they wrote is on disk."""
        outcomes: list[Outcome] = []
        self._serve(lambda: commands, outcomes.extend)
        return outcomes

    def _serve(self, take: Callable[[], Sequence[Command]], answer: Callable[[list[Outcome]], object]) -> None:
        """Serve what can be taken when the transaction has begun: while it waits for its turn, more may come.

        Clients are answered as soon as the rows are on disk, and the rows are folded while they read.
        """
        take = functools.cache(take)
        began = time.perf_counter()
        try:
            self._catch_up(began)
            outcomes, rows = self._transact(take)
        except StoreError as problem:
            answer(self._refused(str(problem), take()))
            return
        except Exception as problem:  # a fault of the service: it must not end the thread that all clients wait for
            self._torn = True
            log.exception("cannot serve")
            answer(self._refused(f"The service has failed ({type(problem).__name__}: {problem}).", take()))
            return
        if self.trouble is not None:
            log.warning("writing again")
        self.trouble = None
        if rows or not take():
            self.wrote = time.monotonic()
        self.committed(time.perf_counter() - began)
        answer(outcomes)
        try:
            self.fold.apply(rows, self.store)
        except StoreError as problem:  # the rows are on disk, and the next transaction goes on folding them
            log.warning("cannot read: %s", problem)
        except Exception:
            self._torn = True
            log.exception("cannot fold")

    def _catch_up(self, now: float) -> None:
        """Fold what others have written, where it may be much: they should not wait for it in a transaction."""
        if self._torn:
            self._begin_again()
        elif now - self._served > IDLE:
            with contextlib.suppress(StoreError):  # the transaction will notice
                self.fold.apply(self.store.rows(self.fold.row), self.store)
        self._served = now

    def _transact(self, take: Callable[[], Sequence[Command]]) -> tuple[list[Outcome], list[Row]]:
        """Serve commands in a transaction; returns the outcomes, and the rows that are on disk now."""
        with self.store.writing() as transaction:
            before = self.fold.row
            self.fold.apply(transaction.rows(self.fold.row), transaction)
            refuse_ended(self.fold, self.store)
            self.shared = self.fold.row > before
            turn = Turn(self.fold, transaction, self._now())
            turn.close_what_is_due()
            commands = take()
            outcomes = turn.serve(commands)
            transaction.append(turn.rows)
            probed = not commands or self.trouble is not None
            if probed and not turn.rows:
                transaction.touch()
        return outcomes, turn.rows

    def _refused(self, why: str, commands: Sequence[Command]) -> list[Outcome]:
        self.note_trouble(why)
        return refusals(why, commands)

    def note_trouble(self, why: str) -> None:
        """Take note that the log cannot be written at the moment."""
        if self.trouble is None:
            log.error("cannot write: %s", why)
        self.trouble = why
        self.failures += 1

    def _begin_again(self) -> None:
        """Restore the model from the log, because it may be half changed."""
        fold = ModelState.restored(self.store)
        assert fold is not None
        self.fold, self._torn = fold, False


def refuse_ended(fold: ModelState, store: Store) -> None:
    """Raise `StoreError` if the log was rotated."""
    if fold.ended is not None:
        raise StoreError(
            f"The log {store.name} was rotated at row {fold.row:,} and goes on in {fold.ended}: start servers with "
            "that --store."
        )


def _deliver(answers: Sequence[Delivery]) -> None:
    for reply, outcomes in answers:
        reply(outcomes)


class Turn:
    """One transaction: the rows that it writes, in the making."""

    def __init__(self, fold: ModelState, transaction: Transaction, now: int) -> None:
        self.fold, self.transaction, self.now = fold, transaction, now
        self.rows: list[Row] = []
        self.closed = fold.closed
        self._arms: dict[str, Arm | Retired] = {}
        self._live = fold.live
        self.found: dict[str, Found] = {}

    def _write(self, content: Content) -> Row:
        row = Row(self.fold.row + len(self.rows) + 1, self.now, content)
        self.rows.append(row)
        return row

    def close_what_is_due(self) -> None:
        """Close the decisions whose window has passed, at most so many at a time."""
        first = self.fold.first_open
        if first is None or not self._is_over(first):
            return
        open_ = self.transaction.first_decisions(self.fold.closed, MOST_CLOSED)
        self.closed = max(number for number, time in open_ if self._is_over(time))
        self._write(Closed(self.closed))

    def _is_over(self, decided: int) -> bool:
        """Whether the window of a decision of this time has passed."""
        window = self.fold.bandit.window
        return window is not None and decided + window * 1e6 <= self.now

    def serve(self, commands: Sequence[Command]) -> list[Outcome]:
        """Serve commands in their order."""
        named = {c.event_id for c in commands if isinstance(c, OF_EVENTS) and c.event_id is not None}
        self.found = {event: known for event in named if (known := self.fold.known(event)) is not None}
        if unknown := sorted(named - self.found.keys()):
            self.found |= self.transaction.find(unknown)
        commands = [_named(command) if isinstance(command, Decide) else command for command in commands]
        self._decided = self._decide_together(commands)
        outcomes: list[Outcome] = []
        for command in commands:
            try:
                outcomes.append(self._serve(command))
            except Refused as refused:
                outcomes.append(refused)
        return outcomes

    def _serve(self, command: Command) -> Answer:
        if isinstance(command, Decide):
            return self._decide(command)
        if isinstance(command, GiveReward):
            return self._reward(command)
        if isinstance(command, Promote):
            return self._promote(command)
        return self._change_arm(command)

    def _decide_together(self, commands: Sequence[Command]) -> dict[str, Decision | Refused]:
        """The decisions of all events that are new, by their ids, made for the first command of each."""
        events: dict[str, Decide] = {}
        for command in commands:
            if isinstance(command, Decide):
                event = command.event_id
                assert event is not None
                known = self.found.get(event)
                if event not in events and (known is None or known.decision is None):
                    events[event] = command
        return dict(zip(events, self.fold.decide_batch(list(events.values())), strict=True))

    def _decide(self, command: Decide) -> Answer:
        event = command.event_id
        assert event is not None
        known = self.found.get(event)
        if known is not None and known.decision is not None:
            decision = known.decision.content
            assert isinstance(decision, Decision)
            if decision.user != command.user or not _same_candidates(decision.candidates, command.candidates):
                raise Refused(
                    409,
                    f"The event {event!r} was decided for another user or other candidates. Use an id of its own for "
                    "every event.",
                    field="event_id",
                    value=event,
                )
            return Answer(200, answer_of(decision))
        outcome = self._decided.pop(event, None)
        if outcome is None:  # the first command with this id was refused
            outcome = self.fold.decide_batch([command])[0]
        if isinstance(outcome, Refused):
            raise outcome
        decision = outcome
        self.found[event] = Found(self._write(decision))
        return Answer(201, answer_of(decision))

    def _reward(self, command: GiveReward) -> Answer:
        event, reward = command.event_id, command.reward
        self._check_reward(reward)
        decision, known = self.found.get(event, Found())
        if decision is None:
            raise Refused(
                404,
                f"This log has no decision with the event id {event!r}. Give the reward after the decision was "
                "answered, and before the log with it is rotated.",
                field="event_id",
                value=event,
            )
        if known is not None:
            before = known.content
            assert isinstance(before, Reward)
            if before.reward != reward:
                raise Refused(
                    409,
                    f"The event {event!r} has the reward {before.reward:g} already. A reward cannot be changed.",
                    field="reward",
                    value=reward,
                )
            return Answer(200, self._reward_answer(before))
        late = self._is_over(decision.time) or decision.number <= self.closed
        content = Reward(event, decision.number, reward, late)
        if decision.number <= self.fold.row:  # it is in the log, whatever becomes of this transaction
            self.fold.remember(decision)
        self.found[event] = Found(decision, self._write(content))
        return Answer(202 if late else 201, self._reward_answer(content))

    def _reward_answer(self, content: Reward) -> dict[str, Any]:
        answer: dict[str, Any] = {"event_id": content.event, "reward": content.reward, "learned": not content.late}
        if content.late:
            answer["why"] = "The reward came after the window. It is kept in the log, and not learned."
        return answer

    def _check_reward(self, reward: float) -> None:
        low, high = self.fold.bandit.rewards or (-LARGEST, LARGEST)
        if not math.isfinite(reward) or not low <= reward <= high:
            raise Refused(
                422, f"The reward must lie between {low:g} and {high:g}, got {reward!r}.", field="reward", value=reward
            )

    def _change_arm(self, command: OfArm) -> Answer:
        arm = command.arm
        known = self.fold.arms.get(arm)
        pending = self._arms.get(arm)
        active = (known is not None and known.active) if pending is None else isinstance(pending, Arm)
        if isinstance(command.command, PutArm):
            return self._put(arm, command.command, active, known is None and pending is None)
        if known is None and pending is None:
            detail = f"There is no arm {arm!r}{checks.nearest(arm, self.fold.arms)}. GET /v1/arms lists them."
            raise Refused(404, detail, field="id", value=arm)
        if active:
            self._arms[arm] = Retired(arm)
            self._write(self._arms[arm])
        return Answer(200, {"arm": arm, "active": False})

    def _put(self, arm: str, command: PutArm, active: bool, new: bool) -> Answer:
        fold = self.fold
        fold.check_names("arm", command.features)
        try:
            checks.finite("features", fold.arm_vector(command.features), LARGEST)
        except (TypeError, ValueError):
            raise wrong_features("arm", fold.bandit.arm, command.features) from None
        pending = self._arms.get(arm)
        before = pending.features if isinstance(pending, Arm) else fold.arms[arm].features if arm in fold.arms else None
        if active and before == command.features:
            its = [row.number for row in self.rows if row.content is pending]
            version = its[0] if its else fold.arms[arm].version
            return Answer(200, {"arm": arm, "active": True, "features": command.features, "version": version})
        self._arms[arm] = Arm(arm, command.features)
        version = self._write(self._arms[arm]).number
        body = {"arm": arm, "active": True, "features": command.features, "version": version}
        return Answer(201 if new else 200, body)

    def _promote(self, command: Promote) -> Answer:
        name = command.policy
        if name not in self.fold.policies:
            names = ", ".join(self.fold.policies)
            raise Refused(404, f"There is no policy {name!r}. There are {names}.", field="policy", value=name)
        if name != self._live:
            self._live = name
            self._write(Promoted(name))
        return Answer(200, {"live": name})


def _same_candidates(one: Candidates, other: Candidates) -> bool:
    """Whether the same candidates are named, in the same order; their JSON may have other spaces and escapes."""
    if one == other:
        return True
    try:
        return decode_ids(one) == decode_ids(other)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def refusals(why: str, commands: Sequence[Command]) -> list[Outcome]:
    """What is answered while the log cannot be written."""
    return [Refused(503, f"{why} {_again(command)}") for command in commands]


def _again(command: Command) -> str:
    """What to do after a transaction that failed, of which it may not be known whether it was written."""
    if not isinstance(command, Decide | GiveReward):
        return "Ask again."
    if command.event_id is None:
        return "Ask again, best with an event_id of your own: then nothing counts twice."
    return "Ask again with the same event_id: nothing counts twice."


def _named(command: Decide) -> Decide:
    """The command with an id for its event."""
    return command if command.event_id is not None else replace(command, event_id=secrets.token_hex(12))


def answer_of(decision: Decision) -> dict[str, Any]:
    """What the client is told about its decision."""
    return {
        "event_id": decision.event,
        "arm": decision.arm,
        "propensity": decision.chance,
        "version": decision.version,
    }
