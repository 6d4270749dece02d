"""Arms, decisions, rewards, closes, restarts, promotes and rotations in any order, against a plain model."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hybandits.service.commands import Answer, Correct, Decide, GiveReward, Promote, Retire
from hybandits.service.log import encode_ids
from hybandits.service.model_state import ModelState
from hybandits.service.rotate import contradiction, rotate
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import verify
from hybandits.service.writer import Writer
from tests.support.bandits import FILE, USER, Clock, bandit, models, outcome_of, putting

WINDOW = 10

ARMS = st.sampled_from(["a", "b", "c", "d"])
EVENTS = st.integers(0, 7).map("event {}".format)


@dataclass
class Known:
    """A decision in the plain model."""

    time: int
    candidates: list[str] | None
    answer: dict[str, object]
    reward: float | None = None
    rewarded: int = 0
    late: bool = False
    closed: int | None = None
    corrections: list[float | None] = field(default_factory=list)
    is_final: bool = False
    """It was learned in a log that has ended."""

    @property
    def value(self) -> float:
        """The reward that is learned when the decision closes."""
        if self.corrections:
            return self.corrections[-1] or 0.0
        return 0.0 if self.late or self.reward is None else self.reward


@dataclass
class Plain:
    """The service in a few dictionaries."""

    arms: dict[str, bool] = field(default_factory=dict)
    events: dict[str, Known] = field(default_factory=dict)
    live: str = "live"
    left_behind: list[Known] = field(default_factory=list)
    copied: int = 0
    """Decisions of an earlier log among the events."""


class Service(RuleBasedStateMachine):
    """The service does what the plain model says, whatever happens in between."""

    windowed = False

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock, self.plain, self.logs = Clock(), Plain(), 0
        content = {**FILE, "challengers": [{"name": "even", "policy": "Uniform"}]}
        if self.windowed:
            content |= {"rewards": "clicks", "window": WINDOW}
        self.bandit = bandit(content)
        self.open()

    @property
    def path(self) -> Path:
        return self.folder / f"log {self.logs}.db"

    def open(self) -> None:
        self.service = Writer(SqliteStore(self.path), self.bandit, clock=self.clock)

    def teardown(self) -> None:
        if hasattr(self, "service"):
            self.verify()
            self.service.store.close()
            shutil.rmtree(self.folder)

    def verify(self) -> None:
        result = verify(self.service.store)
        assert (result.different, result.near_ties) == (0, 0), result.examples
        assert (result.decisions, result.copied) == (len(self.plain.events) - self.plain.copied, self.plain.copied)

    # -------------------------------------------------------------- what is asked

    @rule(arm=ARMS, price=st.sampled_from([0.0, 0.5, 1.0]))
    def put(self, arm: str, price: float) -> None:
        expected = 200 if arm in self.plain.arms else 201
        assert outcome_of(self.service, putting(arm, {"price": price})).status == expected
        self.plain.arms[arm] = True

    @rule(arm=ARMS)
    def retire(self, arm: str) -> None:
        expected = 200 if arm in self.plain.arms else 404
        assert outcome_of(self.service, Retire([arm])).status == expected
        if arm in self.plain.arms:
            self.plain.arms[arm] = False

    @rule(event=EVENTS, candidates=st.none() | st.lists(ARMS, min_size=1, max_size=4))
    def decide(self, event: str, candidates: list[str] | None) -> None:
        outcome = outcome_of(self.service, Decide(USER, encode_ids(candidates), event))
        known = self.plain.events.get(event)
        if known is not None:
            assert outcome.status == (200 if known.candidates == candidates else 409)
            if outcome.status == 200:
                assert isinstance(outcome, Answer)
                assert outcome.body == known.answer
            return
        active = [arm for arm, there in self.plain.arms.items() if there]
        pool = active if candidates is None else candidates
        if not pool or len(set(pool)) < len(pool) or not set(pool) <= set(active):
            assert outcome.status == 422
            return
        assert outcome.status == 201
        assert isinstance(outcome, Answer)
        assert outcome.body.arm in pool
        if self.plain.live == "even":
            assert outcome.body.propensity == pytest.approx(1 / len(pool))
        self.plain.events[event] = Known(self.clock.now, candidates, outcome.body)

    @rule(event=EVENTS, value=st.sampled_from([0.0, 1.0]))
    def reward(self, event: str, value: float) -> None:
        outcome = outcome_of(self.service, GiveReward(event, value))
        known = self.plain.events.get(event)
        if known is None:
            assert outcome.status == 404
        elif known.reward is not None:
            assert outcome.status == (200 if known.reward == value else 409)
        else:
            known.late = self.windowed and self.clock.now >= known.time + WINDOW * 1e6
            assert outcome.status == (202 if known.late else 201)
            known.reward, known.rewarded = value, self.clock.now

    @rule(event=EVENTS, value=st.sampled_from([0.0, 1.0]), candidates=st.none())
    def together(self, event: str, value: float, candidates: None) -> None:
        """Ask for a decision and give its reward in one transaction."""
        known = self.plain.events.get(event)
        if known is not None or not any(self.plain.arms.values()):
            return
        decided, rewarded = self.service.serve([Decide(USER, event_id=event), GiveReward(event, value)])
        assert (decided.status, rewarded.status) == (201, 201)
        assert isinstance(decided, Answer)
        self.plain.events[event] = Known(self.clock.now, None, decided.body, value, self.clock.now)

    @rule(event=EVENTS, value=st.sampled_from([0.0, 1.0, None]))
    def correct(self, event: str, value: float | None) -> None:
        self.corrected = getattr(self, "corrected", 0) + 1
        command = Correct(event, value, correction_id=f"correction {self.corrected}")
        outcome, known = outcome_of(self.service, command), self.plain.events.get(event)
        if known is None:
            assert outcome.status == 404
        elif known.is_final or (known.reward is None and not self.windowed):
            assert outcome.status == 409
        else:
            assert outcome.status == 201
            assert outcome_of(self.service, command).status == 200
            known.corrections.append(value)
            if self.service.state.pending:
                self.service.relearn()
                self.service.serve([])

    @rule(name=st.sampled_from(["live", "even", "nobody"]))
    def promote(self, name: str) -> None:
        assert outcome_of(self.service, Promote(name)).status == (404 if name == "nobody" else 200)
        self.plain.live = name if name != "nobody" else self.plain.live

    # -------------------------------------------------------------- what happens

    @rule(seconds=st.sampled_from([1, 9, 11]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(snapshot=st.booleans())
    def restart(self, snapshot: bool) -> None:
        if snapshot:
            self.service.keep_snapshot()
        before, summary = models(self.service), self.service.state.summary
        self.service.store.close()
        self.open()
        assert models(self.service) == before
        assert self.service.state.summary == summary

    @precondition(lambda self: self.service.state.row > 1)
    @rule()
    def restore_again(self) -> None:
        again = ModelState.restored(self.service.store)
        assert {name: policy.to_bytes() for name, policy in again.policies.items()} == models(self.service)

    @rule(ago=st.sampled_from([0, 2, 12]))
    def rotate(self, ago: int) -> None:
        since = self.clock.now - round(ago * 1e6)
        before, summary, old = models(self.service), self.service.state.summary, self.service.store
        copied = {
            event: known
            for event, known in self.plain.events.items()
            if known.time >= since or (self.windowed and known.closed is None)
        }
        self.verify()
        self.logs += 1
        new = SqliteStore(self.path)
        assert rotate(old, new, since=since).copied == len(copied)
        assert contradiction(new, old) is None
        assert verify(old).different == 0
        assert outcome_of(self.service, Decide(USER)).status == 503
        for store in (old, new):
            store.close()
        self.open()
        assert models(self.service) == before
        assert self.service.state.summary == summary
        self.plain.left_behind += [known for event, known in self.plain.events.items() if event not in copied]
        self.plain.events, self.plain.copied = copied, len(copied)
        for known in copied.values():
            known.is_final |= known.closed is not None if self.windowed else known.reward is not None

    # -------------------------------------------------------------- what must hold

    @invariant()
    def rewards_are_learned_once_and_in_time(self) -> None:
        if not hasattr(self, "service"):
            return
        self.service.serve([])  # closes what is due
        events = [*self.plain.events.values(), *self.plain.left_behind]
        if self.windowed:
            closed = [known for known in events if self.clock.now >= known.time + WINDOW * 1e6]
            for known in closed:
                known.closed = known.closed or self.clock.now
            expected = len(closed), sum(known.value for known in closed)
        else:
            rewarded = [known for known in events if known.reward is not None]
            values = [known.corrections[-1] if known.corrections else known.reward for known in rewarded]
            given = [value for value in values if value is not None]
            expected = len(given), sum(given)
        assert (self.service.state.summary.reward.n, self.service.state.summary.reward.total) == expected
        assert self.service.state.policies["live"].rounds == expected[0]


class WithWindow(Service):
    """The same where nothing counts as 0 after a while."""

    windowed = True


FEW = settings(max_examples=3, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=12, stateful_step_count=40)


class TestFewStepsWithWindow(WithWindow.TestCase):
    settings = FEW


@pytest.mark.slow
class TestManyStepsAtOnce(Service.TestCase):
    settings = MANY


@pytest.mark.slow
class TestManyStepsWithWindow(WithWindow.TestCase):
    settings = MANY
