"""The one thread that writes: it serves what waits in the queue in one transaction, and answers when it is on disk."""

import asyncio
import contextlib
import dataclasses
import functools
import itertools
import logging
import math
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from hybandits.foundation import checks
from hybandits.kernels.arrow import LIMIT
from hybandits.service import log
from hybandits.service.commands import (
    Answer,
    ArmState,
    Command,
    Control,
    Correct,
    Corrections,
    Decide,
    Decided,
    Erase,
    ErasedUser,
    GiveReward,
    Outcome,
    Placed,
    Promote,
    Promoted,
    PutArm,
    PutArms,
    Refused,
    Retire,
    Rewarded,
    unusable_features,
)
from hybandits.service.model_state import KnownArm, ModelState
from hybandits.service.settings import CHANGEABLE, Bandit

MOST_TOGETHER = 1_000
"""Requests in one transaction."""

MOST_CLOSED = 1_000
"""Decisions that one row closes."""

SNAPSHOT_EVERY = 50_000
"""Rows between two snapshots."""

RETRY = 0.5
"""Seconds until the store is tried again when it could not be used."""

IDLE = 1.0
"""Seconds without a transaction after which rows of others are applied before the next one begins."""

BATCHING = 0.001
"""Seconds that a transaction waits for as many requests as the last one answered: their clients often ask again."""

HANGING = 12.0
"""Seconds without an answer after which a request is refused: a lock, a disk or a database hangs."""

LONGEST_WAIT = 60.0
"""Seconds after which the writer checks the clock again, however far the next end of a window is."""

RELEARNING = 10.0
"""So many times as long as learning the log again takes, the present model serves before the next time."""

AGAIN = "Send the request again: with the same event_id nothing counts twice."
"""The remedy after a transaction that failed."""

logger = logging.getLogger("hybandits.service")


class Waiting(NamedTuple):
    """Commands that were requested together, and the future of their outcomes."""

    commands: Sequence[Command]
    future: asyncio.Future[list[Outcome]]


class Writer:
    """The queue of requests and the thread that decides, writes and answers.

    A log begins with `bandit`, the content of `bandit.toml`, or gets a row if that has changed. `clock` returns
    microseconds since 1970. `trouble` says why nothing can be written at the moment, and `committed` is called with the
    seconds that each transaction took.
    """

    def __init__(
        self, store: log.Store, bandit: Bandit, *, clock: Callable[[], int] = lambda: time.time_ns() // 1_000
    ) -> None:
        self.store = store
        self.clock = clock
        self._queue: deque[Waiting] = deque()
        self._ready = threading.Condition()
        self._wanted = self._expected = 1
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._snapshot_row = 0
        self._torn = False
        self._replacement: ModelState | None = None
        self._relearner: threading.Thread | None = None
        self._relearn_after = -math.inf
        self._served = -math.inf
        self.trouble: str | None = None
        self.failures = 0
        self.committed: Callable[[float], None] = lambda seconds: None
        self.state = self._opened(bandit)

    def _opened(self, bandit: Bandit) -> ModelState:
        with self.store.writing():
            if self.store.last()[0] == 0:
                opened = log.Opened(log.SCHEMA, bandit.with_seed().plain())
                self.store.append([log.Row(1, self.clock(), opened)])
        state = ModelState.restored(self.store)
        with self.store.writing():
            state.apply(self.store.rows(state.row), self.store)
            refuse_ended(state, self.store)
            rows = self._changes(state, bandit)
            self.store.append(rows)
        state.apply(rows, self.store)
        self._snapshot_row = state.resumed
        return state

    def _changes(self, state: ModelState, bandit: Bandit) -> list[log.Row]:
        known, different = state.bandit.plain(), bandit.contradiction(state.bandit)
        if different is not None:
            raise ValueError(f"{different}: change it back, or start another bandit with another store")
        values = {name: value for name, value in bandit.plain().items() if name in CHANGEABLE and value != known[name]}
        if not values:
            return []
        live = state.bandit.policies[state.live]
        if bandit.policies.get(state.live) != live:
            raise ValueError(f"the policy {state.live!r} ({live}) is live: keep it among the challengers as it is")
        row = log.Row(state.row + 1, max(self.clock(), state.time), log.Changed(values))
        changes = [f"{name} was {known[name]!r} and is {value!r}" for name, value in values.items()]
        logger.warning("the bandit has changed, from row %d on: %s", row.number, "; ".join(changes))
        return [row]

    async def request(self, commands: Sequence[Command]) -> list[Outcome]:
        """Queue commands for the next transaction; return their outcomes when everything is on disk."""
        waiting = Waiting(commands, asyncio.get_running_loop().create_future())
        with self._ready:
            if self._stopping:
                return [Refused(503, "The service is stopping. Ask again in a moment.") for _ in commands]
            self._queue.append(waiting)
            if len(self._queue) >= self._wanted:
                self._ready.notify()
        try:
            async with asyncio.timeout(HANGING):
                return await waiting.future
        except TimeoutError:
            with self._ready, contextlib.suppress(ValueError):  # it may have been taken
                self._queue.remove(waiting)
            return self._failed(f"The log has not answered for {HANGING:g} seconds.", commands)

    @property
    def waiting(self) -> int:
        """Requests that wait for their transaction."""
        return len(self._queue)

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="hybandits writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Serve what waits, keep a snapshot, and end the thread."""
        with self._ready:
            self._stopping = True
            self._ready.notify()
        if self._thread is not None:
            self._thread.join()
        self.keep_snapshot()

    def _run(self) -> None:
        while self._wait():
            self._take_over()
            taken: list[Waiting] = []
            self._serve(functools.partial(self._take, taken), functools.partial(_deliver, taken))
            self._expected = min(len(taken) + len(self._queue), MOST_TOGETHER)
            if self.state.row - self._snapshot_row >= SNAPSHOT_EVERY:
                self.keep_snapshot()
            self._relearn_when_due()

    def _wait(self) -> bool:
        """Wait for requests or the next end of a window; return False to stop."""
        with self._ready:
            if not self._queue and not self._stopping and self._replacement is None:
                self._wanted = 1
                self._ready.wait(self._until_due() if self.trouble is None else RETRY)
            if self._queue and len(self._queue) < self._expected and not self._stopping:
                self._wanted = self._expected
                self._ready.wait(BATCHING)
            return bool(self._queue) or not self._stopping

    def _take(self, taken: list[Waiting]) -> list[Command]:
        """Take what waits, as much as one transaction should serve."""
        count = 0
        with self._ready:
            while self._queue and (not taken or count + len(self._queue[0].commands) <= MOST_TOGETHER):
                taken.append(self._queue.popleft())
                count += len(taken[-1].commands)
        return [command for each in taken for command in each.commands]

    def _relearn_when_due(self) -> None:
        """Begin to learn the log again if something waits for it, so that it takes a tenth of the time at most."""
        is_due = self.state.pending and time.monotonic() >= self._relearn_after
        if is_due and self._replacement is None and (self._relearner is None or not self._relearner.is_alive()):
            self._relearner = threading.Thread(target=self.relearn, name="hybandits relearning", daemon=True)
            self._relearner.start()

    def relearn(self) -> None:
        """Learn the log again with all corrections, and without what is to be erased; then the result takes over."""
        began = time.monotonic()
        try:
            replacement = ModelState.relearned(self.store, self.state.row)
        except Exception as problem:  # whatever it is, it is tried again
            logger.warning("cannot learn the log again (%s: %s)", type(problem).__name__, problem)
            self._relearn_after = time.monotonic() + LONGEST_WAIT
            return
        self._relearn_after = time.monotonic() + RELEARNING * (time.monotonic() - began)
        with self._ready:
            self._replacement = replacement
            self._ready.notify()

    def _take_over(self) -> None:
        """Let the model that was learned again take the place of the present one, from a row of the log on."""
        replacement, self._replacement = self._replacement, None
        if replacement is None:
            return
        try:
            with self.store.writing() as store:
                self.state.apply(store.rows(self.state.row), store)
                refuse_ended(self.state, store)
                if not self.state.pending:  # another server was faster
                    return
                replacement.apply(store.rows(replacement.row), store)
                row = log.Row(self.state.row + 1, max(self.clock(), self.state.time), log.Relearned(replacement.upto))
                store.append([row])
                store.erase(sorted(replacement.skipped))
            self.state.prepared = replacement
            self.state.apply([row], self.store)
            self._snapshot_row = 0  # it may have been erased
            self.keep_snapshot()
        except log.StoreError as problem:
            logger.warning("cannot write what was learned again: %s", problem)
        except Exception:
            self._torn = True
            logger.exception("cannot learn again")

    def _until_due(self) -> float | None:
        window, first = self.state.bandit.window, self.state.first_open
        if self.state.pending:
            return min(LONGEST_WAIT, max(0.01, self._relearn_after - time.monotonic()))
        if window is None or first is None:
            return None
        return min(max(0.0, (first + window * 1e6 - self.clock()) / 1e6), LONGEST_WAIT)

    def keep_snapshot(self) -> None:
        """Keep a snapshot of the model, so that the next start need not read the whole log; failures are logged."""
        if self.state.row <= self._snapshot_row or self._torn:  # a model that has learned in part must not be kept
            return
        try:
            self.store.keep_snapshot(self.state.snapshot())
            self._snapshot_row = self.state.row
        except Exception as problem:  # it is only a cache, and all clients wait for this thread
            logger.warning("no snapshot was kept (%s: %s)", type(problem).__name__, problem)

    @property
    def clock_behind(self) -> float:
        """Seconds by which this machine's clock is behind the time of the log's last row; 0 if it is not."""
        return max(0.0, (self.state.time - self.clock()) / 1e6)

    def serve(self, commands: Sequence[Command]) -> list[Outcome]:
        """Serve commands in one transaction; return when what they wrote is on disk."""
        outcomes: list[Outcome] = []
        self._take_over()
        self._serve(lambda: commands, outcomes.extend)
        return outcomes

    def _serve(self, take: Callable[[], Sequence[Command]], answer: Callable[[list[Outcome]], object]) -> None:
        """Serve what can be taken when the transaction has begun; the model learns after clients were answered."""
        take = functools.cache(take)
        began = time.perf_counter()
        try:
            self._catch_up(began)
            outcomes, rows = self._transact(take)
        except log.StoreError as problem:
            answer(self._failed(str(problem), take()))
            return
        except Exception as problem:  # a fault of the service: it must not end the thread that all clients wait for
            self._torn = True
            logger.exception("cannot serve")
            answer(self._failed(f"The service has failed ({type(problem).__name__}: {problem}).", take()))
            return
        if self.trouble is not None:
            logger.warning("writing again")
        self.trouble = None
        self.committed(time.perf_counter() - began)
        answer(outcomes)
        try:
            self.state.apply(rows, self.store)
        except log.StoreError as problem:  # the rows are on disk, and the next transaction goes on applying them
            logger.warning("cannot read: %s", problem)
        except Exception:
            self._torn = True
            logger.exception("cannot learn")

    def _catch_up(self, now: float) -> None:
        """Apply rows of others, where they may be many, before the transaction, so that others can write meanwhile."""
        if self._torn:  # the model may be half changed
            self.state, self._torn = ModelState.restored(self.store), False
        elif now - self._served > IDLE:
            with contextlib.suppress(log.StoreError):  # the transaction will notice
                self.state.apply(self.store.rows(self.state.row), self.store)
        self._served = now

    def _transact(self, take: Callable[[], Sequence[Command]]) -> tuple[list[Outcome], list[log.Row]]:
        """Serve commands in a transaction; return the outcomes, and the rows that are on disk now."""
        store = self.store
        with store.writing():
            self.state.apply(store.rows(self.state.row), store)
            refuse_ended(self.state, store)
            pending = Pending(self.state, store, max(self.clock(), self.state.time))
            pending.close_what_is_due()
            commands = take()
            outcomes = pending.serve(commands)
            store.append(pending.rows)
            if not pending.rows and (not commands or self.trouble is not None):
                store.touch()
        return outcomes, pending.rows

    def _failed(self, why: str, commands: Sequence[Command]) -> list[Outcome]:
        if self.trouble is None:
            logger.error("cannot write: %s", why)
        self.trouble = why
        self.failures += 1
        return [Refused(503, f"{why} {AGAIN}") for _ in commands]


def _deliver(taken: Sequence[Waiting], outcomes: Sequence[Outcome]) -> None:
    if taken:
        rest = iter(outcomes)
        results = [(each.future, list(itertools.islice(rest, len(each.commands)))) for each in taken]
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            taken[0].future.get_loop().call_soon_threadsafe(_resolve, results)


def _resolve(results: Sequence[tuple[asyncio.Future[list[Outcome]], list[Outcome]]]) -> None:
    for future, outcomes in results:
        if not future.done():
            future.set_result(outcomes)


def refuse_ended(state: ModelState, store: log.Store) -> None:
    """Raise `StoreError` if the log was rotated."""
    if state.ended is not None:
        ended = f"The log {store.name} was rotated at row {state.row:,} and goes on in {state.ended}"
        raise log.StoreError(f"{ended}: start servers with that --store, once rotate has ended.")


class Pending:
    """The rows that a transaction is about to write."""

    def __init__(self, state: ModelState, store: log.Store, now: int) -> None:
        self.state, self.store, self.now = state, store, now
        self.rows: list[log.Row] = []
        self.closed = state.closed
        self._arms: dict[str, KnownArm] = {}
        self._live, self._controls = state.live, state.controls
        self.events: defaultdict[str, log.EventRows] = defaultdict(log.EventRows)

    def _write(self, content: log.Content) -> log.Row:
        row = log.Row(self.state.row + len(self.rows) + 1, self.now, content)
        self.rows.append(row)
        return row

    def close_what_is_due(self) -> None:
        """Close the decisions whose window has passed, at most so many at a time."""
        first = self.state.first_open
        if first is None or not self._is_over(first):
            return
        open_ = self.store.first_decisions(self.state.closed, MOST_CLOSED)
        self.closed = max(number for number, time in open_ if self._is_over(time))
        self._write(log.Closed(self.closed))

    def _is_over(self, decided: int) -> bool:
        window = self.state.bandit.window
        return window is not None and decided + window * 1e6 <= self.now

    def serve(self, commands: Sequence[Command]) -> list[Outcome]:
        """Serve commands in their order."""
        commands = [_with_event(command) if isinstance(command, Decide) else command for command in commands]
        events = {command.event_id or "" for command in commands if isinstance(command, Decide | GiveReward)}
        rewarded = [each for each in commands if isinstance(each, GiveReward | Correct)]
        events |= {key for each in rewarded for key in (each.event_id, log.place_key(each.event_id, each.place))}
        corrections = [each.correction_id for each in commands if isinstance(each, Correct) and each.correction_id]
        found = self.store.find(corrections) if corrections else {}
        self._corrections = {id: rows.correction for id, rows in found.items() if rows.correction is not None}
        self.events.update((event, self.state.known[event]) for event in events & self.state.known.keys())
        if unknown := sorted(events - self.events.keys()):
            self.events.update(self.store.find(unknown))
        self._decided = self._decide_together(commands)
        serving: dict[type, Callable[[Any], Answer]] = {
            Decide: self._decide, GiveReward: self._reward, Promote: self._promote, PutArms: self._put,
            Retire: self._retire, Control: self._control, Correct: self._correct, Erase: self._erase,
        }  # fmt: skip
        outcomes: list[Outcome] = []
        for command in commands:
            try:
                outcomes.append(serving[type(command)](command))
            except Refused as refused:
                outcomes.append(refused)
        return outcomes

    def _decide_together(self, commands: Sequence[Command]) -> dict[str, log.Decision | Refused]:
        """Return the decisions of all events that are new, by their ids, made for the first command of each."""
        events: dict[str, Decide] = {}
        for command in commands:
            if isinstance(command, Decide) and self.events[command.event_id or ""].decision is None:
                events.setdefault(command.event_id or "", command)
        return dict(zip(events, self.state.decide_batch(list(events.values()), self.now), strict=True))

    def _decide(self, command: Decide) -> Answer:
        event = command.event_id or ""
        known = self.events[event].decision
        if known is not None:
            decision = known.decision
            asked = command.user, command.user_key, command.places
            is_other = (decision.user, decision.key, decision.places) != asked
            if is_other or not _same_candidates(decision.candidates, command.candidates):
                detail = f"The event {event!r} was decided for another user or other candidates. Use another id."
                raise Refused(409, detail, field="event_id", value=event)
            return Answer(200, decided_of(decision))
        outcome = self._decided.pop(event, None)
        if outcome is None:  # the first command with this id was refused
            outcome = self.state.decide_batch([command], self.now)[0]
        if isinstance(outcome, Refused):
            raise outcome
        self.events[event] = log.EventRows(self._write(outcome))
        return Answer(201, decided_of(outcome))

    def _reward(self, command: GiveReward) -> Answer:
        event, reward = command.event_id, command.reward
        self._check_reward(reward)
        key = log.place_key(event, command.place)
        decision, known = self.events[event].decision, self.events[key].reward
        if decision is None:
            detail = f"This log has no decision with the event id {event!r}. Decide first, or use the id of a decision."
            raise Refused(404, detail, field="event_id", value=event)
        self._check_place(decision, command.place)
        if known is not None:
            before = known.content
            assert isinstance(before, log.Reward)
            if before.reward != reward:
                detail = (
                    f"The event {event!r} has the reward {before.reward:g} already. POST /v1/corrections changes it."
                )
                raise Refused(409, detail, field="reward", value=reward)
            return Answer(200, Rewarded(event, reward, not before.late))
        late = self._is_over(decision.time) or decision.number <= self.closed
        content = log.Reward(event, decision.number, reward, late, command.place)
        if decision.number <= self.state.row:  # it is in the log, whatever becomes of this transaction
            first = self.events[event].reward
            self.state.remember(decision, first if first is not None and first.number <= self.state.row else None)
        self.events[key] = log.EventRows(decision, self._write(content))
        return Answer(202 if late else 201, Rewarded(event, reward, not late))

    def _check_reward(self, reward: float | None) -> None:
        low, high = self.state.bandit.range or (-LIMIT, LIMIT)
        if reward is not None and (not math.isfinite(reward) or not low <= reward <= high):
            detail = f"The reward must lie between {low:g} and {high:g}, got {reward!r}."
            raise Refused(422, detail, field="reward", value=reward)

    def _check_place(self, decision: log.Row, place: int) -> None:
        event, places = decision.decision.event, len(decision.decision.more) + 1
        if place > places:
            detail = f"The event {event!r} has {places} places, got {place}. Send the number of one of them."
            raise Refused(422, detail, field="place", value=place)
        if decision.number in self.state.erasing:
            raise Refused(404, f"The event {event!r} is being erased.", field="event_id", value=event)

    def _correct(self, command: Correct) -> Answer:
        id, event, reward = command.correction_id or secrets.token_hex(12), command.event_id, command.reward
        self._check_reward(reward)
        decision, given = self.events[event].decision, self.events[log.place_key(event, command.place)].reward
        if decision is None:
            detail = f"This log has no decision with the event id {event!r}. Use the id of a decision."
            raise Refused(404, detail, field="event_id", value=event)
        self._check_place(decision, command.place)
        is_clicks = self.state.bandit.window is not None
        learned = not is_clicks or decision.number <= self.closed
        answer = Corrections(id, event, reward, learned)
        known = self._corrections.get(id)
        if known is not None:
            before = known.content
            assert isinstance(before, log.Corrected)
            if (before.of, before.place, before.reward) != (event, command.place, reward):
                detail = f"The correction {id!r} was sent for another event or reward. Use another id."
                raise Refused(409, detail, field="correction_id", value=id)
            return Answer(200, answer)
        if not is_clicks and given is None:
            detail = f"The event {event!r} has no reward that could be corrected. Send it to /v1/rewards."
            raise Refused(409, detail, field="event_id", value=event)
        is_before = (
            decision.number <= self.state.base_closed if is_clicks else (given or decision).number < self.state.base
        )
        if is_before:
            detail = f"The reward of {event!r} was learned in the log before this one, which has ended."
            raise Refused(409, f"{detail} It cannot be corrected any more.", field="event_id", value=event)
        self._corrections[id] = self._write(log.Corrected(id, event, decision.number, reward, command.place))
        return Answer(201, answer)

    def _erase(self, command: Erase) -> Answer:
        later = [*self.store.rows(command.upto, None, [log.DECISION]), *self.rows]
        later = [row for row in later if isinstance(row.content, log.Decision) and row.content.key == command.user_key]
        every = {*command.decisions, *(row.number for row in later)}
        numbers = every - self.state.erasing
        stored = self.store.by_number(sorted(number for number in numbers if number <= self.state.row))
        decisions = {row.number: row for row in (*stored, *later) if isinstance(row.content, log.Decision)}
        if decisions:
            keys = [key for row in decisions.values() for key in log.keys_of(row.decision)]
            events = {row.decision.event for row in decisions.values()}
            rewards = [rows.reward for rows in self.store.find(keys).values() if rows.reward is not None]
            new = [row for row in self.rows if isinstance(row.content, log.Reward) and row.content.event in events]
            corrections = [
                row
                for row in (*self.store.rows(min(decisions), None, [log.CORRECTED]), *self.rows)
                if isinstance(row.content, log.Corrected) and row.content.of in events
            ]
            others = sorted({row.number for row in (*rewards, *new, *corrections)})
            since = min(decisions) if self.state.bandit.window is not None else min(others, default=2**62)
            self._write(log.Erasing(sorted([*decisions, *others]), sorted(decisions), since))
            for event in events:
                self.events.pop(event, None)
        waiting = len(decisions) + len(every & self.state.erasing)
        return Answer(202 if waiting else 200, ErasedUser(waiting))

    def _retire(self, command: Retire) -> Answer:
        known = {arm: self._arms.get(arm, self.state.arms.get(arm)) for arm in command.arms}
        for arm, each in known.items():
            if each is None:
                detail = f"There is no arm {arm!r}{checks.nearest(arm, self.state.arms)}. GET /v1/arms lists them."
                raise Refused(404, detail, field="id", value=arm)
        for arm, each in known.items():
            if each is not None and each.active:
                self._write(log.Retired(arm))
                self._arms[arm] = dataclasses.replace(each, active=False)
        return Answer(200, [ArmState(arm, active=False) for arm in command.arms])

    def _put(self, command: PutArms) -> Answer:
        contents = [self._checked_arm(each) for each in command.arms]
        if len({each.arm for each in contents}) < len(contents):
            raise Refused(422, "An arm is named twice. Name it once.", field="arms", value=None)
        states, is_new = [], False
        for content in contents:
            arm, known = content.arm, self._arms.get(content.arm, self.state.arms.get(content.arm))
            is_new |= known is None
            described = content.features, content.start, content.end
            if known is None or not known.active or (known.features, known.start, known.end) != described:
                version = self._write(content).number
                known = self._arms[arm] = KnownArm(version, content.features, True, content.start, content.end)
            states.append(arm_state(arm, known))
        return Answer(201 if is_new else 200, states)

    def _checked_arm(self, put: PutArm) -> log.Arm:
        self.state.check_features("arm", put.features, "features")
        try:
            checks.finite("features", self.state.arm_vector(put.features), LIMIT)
        except (TypeError, ValueError) as problem:
            raise unusable_features("features", put.features, problem) from None
        start, end = (None if each is None else round(each.timestamp() * 1e6) for each in (put.start, put.end))
        if start is not None and end is not None and start >= end:
            raise Refused(422, f"The arm {put.arm!r} ends before it starts. Swap from and until.", field="until")
        return log.Arm(put.arm, put.features, start, end)

    def _control(self, command: Control) -> Answer:
        controls = command.controls
        known = self.state.arms.keys() | self._arms.keys()
        for arm in [*controls.arms, *([] if controls.pause is None else [controls.pause])]:
            if arm not in known:
                detail = f"There is no arm {arm!r}{checks.nearest(arm, known)}. PUT it first."
                raise Refused(422, detail, field="arms" if arm in controls.arms else "pause", value=arm)
        if controls != self._controls:
            self._controls = controls
            self._write(log.Controlled(msgspec.to_builtins(controls)))
        return Answer(200, controls)

    def _promote(self, command: Promote) -> Answer:
        name = command.policy
        if name not in self.state.policies:
            names = ", ".join(self.state.policies)
            raise Refused(404, f"There is no policy {name!r}. Choose from {names}.", field="policy", value=name)
        if name != self._live:
            self._live = name
            self._write(log.Promoted(name))
        return Answer(200, Promoted(name))


def _same_candidates(one: log.Candidates, other: log.Candidates) -> bool:
    """Return whether the same candidates are named in the same order; their JSON may have other spaces and escapes."""
    try:
        return one == other or _plain(one) == _plain(other)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _plain(candidates: log.Candidates) -> list[Any] | None:
    """Return candidates as plain values; those without features are their ids."""
    named: list[Any] | None = msgspec.json.decode(candidates)
    return named and [each["arm"] if isinstance(each, dict) and len(each) == 1 else each for each in named]


def arm_state(arm: str, known: KnownArm) -> ArmState:
    """Return an arm as answers show it."""
    start, end = (
        None if each is None else datetime.fromtimestamp(each / 1e6, UTC) for each in (known.start, known.end)
    )
    return ArmState(arm, known.active, known.features, known.version, start, end)


def _with_event(command: Decide) -> Decide:
    return command if command.event_id is not None else replace(command, event_id=secrets.token_hex(12))


def decided_of(decision: log.Decision) -> Decided:
    """Return a decision as answers show it."""
    places: list[Placed] | None = None
    if decision.places > 1:
        more = (Placed(each.arm, each.chance) for each in decision.more)
        places = [Placed(decision.arm, decision.chance), *more]
    return Decided(decision.event, decision.arm, decision.chance, decision.version, places)
