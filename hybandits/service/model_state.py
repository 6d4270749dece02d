"""The state of the model: arms, policies and sums, as they follow from the rows of the log in their order."""

import hashlib
import itertools
import json
import logging
import platform
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import llvmlite.binding
import msgspec
import numba
import numpy as np

from hybandits.engines import cores
from hybandits.features import Features
from hybandits.foundation.checks import FloatArray, nearest
from hybandits.policies.base import Policy
from hybandits.service import log
from hybandits.service.commands import LONGEST, UNREADABLE, Decide, Ids, Refused, unreadable, unusable_features
from hybandits.service.settings import LIVE, Bandit
from hybandits.service.summary import Summary

CHUNK = 1_000
"""Rewards that are learned in one call."""

NAMED = 256
"""Lists of candidates that are cached, because requests often name the same ones."""

TOGETHER = 500_000
"""Numbers in the features of decisions that are drawn together."""

MUCH = 50_000
"""Numbers in features from which on threads are worth their start."""

THREADS = min(cores(), 4)
"""Threads that draw decisions: kernels release the interpreter lock."""

REMEMBERED = 4_096
"""Recent decisions kept in memory at least, so that their rewards need not look them up."""

logger = logging.getLogger("hybandits.service")

PARTS = (
    "foundation", "kernels", "estimators", "policies", "features", "statistics.py", "service/model_state.py",
    "service/settings.py", "service/summary.py",
)  # fmt: skip
"""Files of the package that decisions and snapshots depend on."""


@cache
def fingerprint() -> str:
    """Return twelve characters. Where they are equal, the same log gives the same decisions, to the bit."""
    digest = hashlib.sha256()
    folder = Path(__file__).parents[1]
    for part in PARTS:
        for file in sorted((folder / part).rglob("*.py")) or [folder / part]:
            digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    parts = (
        numba.__version__, llvmlite.__version__, np.__version__, platform.python_version(), platform.machine(),
        *platform.libc_ver(), llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten(),
        *(getattr(numba.config, name) for name in ("CPU_NAME", "CPU_FEATURES", "DISABLE_JIT", "OPT")),
    )  # fmt: skip
    digest.update("\0".join(map(str, parts)).encode())
    return digest.hexdigest()[:12]


@dataclass
class KnownArm:
    """An arm as its last row describes it."""

    version: int
    features: dict[str, log.Value]
    active: bool = True


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates of a decision. The same ones are the same object as long as no arm changes."""

    named: log.Candidates
    ids: list[str]
    vectors: FloatArray | int
    """The arms' vectors, one row each; their number where arms have no features."""


class Saved(msgspec.Struct):
    """The content of a snapshot."""

    bandit: dict[str, Any]
    arms: bytes
    live: str
    closed: int
    first_open: int | None
    time: int
    ended: str | None
    policies: dict[str, bytes]
    summary: Summary


_ids = msgspec.json.Decoder(Ids)


@dataclass
class ModelState:
    """The state after some rows of a log; `row` and `time` are of the last one.

    Decisions up to `closed` are closed, and `first_open` is the time of the next. `known` has recent events. `base` is
    the row with which the log continues another one, `resumed` the row of the snapshot that was read, and `ended` the
    log that continues this one. `lock` is held while rows are applied, and by other threads while they read.
    """

    bandit: Bandit
    row: int = 0
    time: int = 0
    live: str = LIVE
    policies: dict[str, Policy] = field(default_factory=dict)
    arms: dict[str, KnownArm] = field(default_factory=dict)
    closed: int = 0
    first_open: int | None = None
    base: int = 0
    ended: str | None = None
    resumed: int = 0
    summary: Summary = field(init=False)

    def __post_init__(self) -> None:
        self.features: Features = self.bandit.features
        self.summary = Summary(range=self.bandit.range)
        self.lock = threading.Lock()
        self._names = {"user": self.features.user.keys(), "arm": self.features.arm.keys()}
        self._values = {"user": self.bandit.user.values(), "arm": self.bandit.arm.values()}
        self._vectors: dict[str, FloatArray] = {}
        self._pools: dict[bytes, Pool] = {}  # cleared when an arm changes
        self._due: list[tuple[log.Decision, float]] = []  # decisions and rewards that policies have yet to learn
        self.known: dict[str, log.EventRows] = {}
        self._reading: log.Store

    def apply(self, rows: Iterable[log.Row], reading: log.Store) -> None:
        """Apply rows of the log `reading` that follow on the last one; after an error call it again."""
        with self.lock:
            self._reading = reading
            following = iter(rows)
            while chunk := list(itertools.islice(following, CHUNK)):
                self._recall(chunk)
                for row in chunk:
                    if row.number != self.row + 1:
                        raise log.StoreError(f"Row {row.number} does not follow on row {self.row}: the log is damaged.")
                    self._apply(row)
                    self.row, self.time = row.number, row.time
                    if len(self._due) >= CHUNK:
                        self._learn()
            self._learn()

    def _apply(self, row: log.Row) -> None:
        content = row.content
        if isinstance(content, log.Decision):
            self.remember(row)
            if self.first_open is None and self.bandit.window is not None:
                self.first_open = row.time
            self.summary.decided(row.time, content)
            self._count_fallbacks("user", content.user)
        elif isinstance(content, log.Reward):
            self.summary.late += content.late
            known = self.known.get(content.event)
            if known is not None and known.decision is not None:
                self.known[content.event] = log.EventRows(known.decision, row)
                if self.bandit.window is None:
                    self.summary.rewarded(row.time, known.decision.time, content.reward)
                    self._count_reward(row.time, known.decision.decision, content.reward)
            elif self.bandit.window is None:
                raise log.StoreError(f"Row {row.number} rewards an unknown decision: the log is damaged.")
        elif isinstance(content, log.Closed):
            self._close(row.time, content.last)
        else:
            self._learn()
            self.describe(row)

    def describe(self, row: log.Row) -> None:
        content = row.content
        if isinstance(content, log.Arm):
            self._put(row.number, content)
            self._count_fallbacks("arm", content.features)
        elif isinstance(content, log.Retired):
            self.arms[content.arm].active = False
            self._pools.clear()
        elif isinstance(content, log.Promoted):
            self.live = content.policy
            self.summary.compare(self.live, self.policies, row=row.number, unchanged=self.policies)
        elif isinstance(content, log.Changed):
            before = self.bandit.policies
            self.bandit = Bandit.from_plain({**self.bandit.plain(), **content.values})
            self._make_policies(row.number, before)
        elif isinstance(content, log.Opened):
            self._make_policies(row.number)
        elif isinstance(content, log.Ended):
            self.ended = content.next

    def _make_policies(self, row: int, before: Mapping[str, str] = MappingProxyType({})) -> None:
        """Construct the policies that are new, or that had other settings in `before`."""
        unchanged = {name for name, spec in self.bandit.policies.items() if before.get(name) == spec}
        self.policies = {
            name: self.policies[name] if name in unchanged else self.bandit.make(name) for name in self.bandit.policies
        }
        for policy in self.policies.values():
            policy.admit(self.arms)  # arms are counted from their rows
        self.summary.compare(self.live, self.policies, row=row, unchanged=unchanged)

    def _put(self, version: int, content: log.Arm) -> None:
        if content.arm not in self.arms:
            for policy in self.policies.values():
                policy.admit([content.arm])
        self.arms[content.arm] = KnownArm(version, content.features)
        self._vectors[content.arm] = self.arm_vector(content.features)
        self._pools.clear()

    def arm_vector(self, features: dict[str, log.Value]) -> FloatArray:
        """Return the vector of an arm; raise if the features are not those of the bandit."""
        return np.asarray(self.features.arm_vectors([features] if self.features.arm else 1)[0])

    def remember(self, row: log.Row) -> None:
        """Keep a decision in memory for a while, because its reward may come soon."""
        event = row.decision.event
        self.known.pop(event, None)  # so that it becomes the newest
        self.known[event] = log.EventRows(row)
        if len(self.known) > 2 * REMEMBERED:
            for old in list(itertools.islice(self.known, REMEMBERED)):
                del self.known[old]

    def _recall(self, rows: Sequence[log.Row]) -> None:
        """Remember earlier decisions whose rewards are learned at once, until these rows have been applied."""
        if self.bandit.window is None:
            events = {row.content.event for row in rows if isinstance(row.content, log.Reward)}
            events -= {row.content.event for row in rows if isinstance(row.content, log.Decision)}
            known = {event: self.known[event] for event in events & self.known.keys()}
            for rows_of in (known | self._reading.find(sorted(events - known.keys()))).values():
                if rows_of.decision is not None:
                    self.remember(rows_of.decision)

    def _close(self, time: int, last: int) -> None:
        outcomes = list(self._reading.outcomes(self.closed, last))  # reading may fail, so it comes before all changes
        following = self._reading.first_decisions(last, 1)
        for row, given in outcomes:
            reward = self.learned_reward(given)
            assert reward is not None
            self._count_reward(time, row.decision, reward)
        self.closed = last
        self.first_open = following[0][1] if following else None

    def _count_reward(self, time: int, decision: log.Decision, reward: float) -> None:
        """Count a reward in the order of the rows; policies learn it in a batch."""
        self.summary.learned(time, decision, reward)
        self._due.append((decision, reward))

    def learned_reward(self, given: log.Row | None) -> float | None:
        """Return the reward that is learned of a decision that is closed, or never closes."""
        if given is not None and isinstance(given.content, log.Reward) and not given.content.late:
            return given.content.reward
        return self.bandit.no_reward

    def _learn(self) -> None:
        if not self._due:
            return
        decisions = [decision for decision, _ in self._due]
        rewards = np.array([reward for _, reward in self._due])
        arms = [decision.arm for decision in decisions]
        x, z = self.features.rows([decision.user for decision in decisions], self._vectors_of(decisions))
        for policy in self.policies.values():
            policy.learn_batch(arms, x, z, rewards)
        self._due = []

    def _vectors_of(self, decisions: Sequence[log.Decision]) -> FloatArray | int:
        """Return the vectors of the chosen arms, in the versions that the decisions name."""
        if not self.features.arm:
            return len(decisions)
        older = {each.arm_version for each in decisions if self.arms[each.arm].version != each.arm_version}
        described = {
            row.number: self.arm_vector(row.content.features)  # type: ignore[union-attr]
            for row in self._reading.by_number(sorted(older))
        }
        return np.array([described.get(each.arm_version, self._vectors[each.arm]) for each in decisions])

    def pool(self, candidates: log.Candidates) -> Pool:
        """Return the candidates that are named, or all active arms."""
        named = bytes(candidates)
        if named not in self._pools:
            if candidates == log.ALL:
                ids = [arm for arm, known in self.arms.items() if known.active]
            else:
                ids = self._checked_ids(named)
                candidates = log.encode_ids(ids)
            if not ids:
                detail = "There are no candidates. PUT arms first, and name at least one."
                raise Refused(422, detail, field="candidates", value=[])
            vectors = np.array([self._vectors[arm] for arm in ids]) if self.features.arm else len(ids)
            if len(self._pools) >= NAMED:
                self._pools.clear()
            self._pools[named] = Pool(candidates, ids, vectors)
        return self._pools[named]

    def _checked_ids(self, named: bytes) -> list[str]:
        try:
            candidates: list[str] = _ids.decode(named)
        except UNREADABLE as problem:
            refused = unreadable(named, problem)
            raise Refused(refused.status, refused.detail, field="candidates", value=refused.value) from None
        for wrong, words in (
            ((arm for arm in candidates if arm not in self.arms), "is unknown. PUT /v1/arms/{id} first."),
            ((arm for arm in candidates if not self.arms[arm].active), "is retired. Leave it out, or PUT it again."),
            ((arm for arm, count in Counter(candidates).items() if count > 1), "is named twice. Name it once."),
        ):
            for arm in wrong:
                raise Refused(422, f"The arm {arm!r} {words}", field="candidates", value=arm)
        return candidates

    def decide_batch(self, events: Sequence[Decide]) -> list[log.Decision | Refused]:
        """Decide, without changing the model; all events have ids, which with the seed determine all draws."""
        outcomes: list[log.Decision | Refused | None] = [None] * len(events)
        pools: dict[int, tuple[Pool, list[int]]] = {}
        for i, event in enumerate(events):
            try:
                self.check_features("user", event.user)
                pool = self.pool(event.candidates)
            except Refused as refused:
                outcomes[i] = refused
            else:
                pools.setdefault(id(pool), (pool, []))[1].append(i)
        for pool, places in pools.values():
            together = max(1, TOGETHER // (len(pool.ids) * (self.features.d1 + self.features.d2)))
            for chunk in (places[start : start + together] for start in range(0, len(places), together)):
                for i, outcome in zip(chunk, self._decide_among(pool, [events[i] for i in chunk]), strict=True):
                    outcomes[i] = outcome
        return outcomes  # type: ignore[return-value]

    def _decide_among(self, pool: Pool, events: Sequence[Decide]) -> list[log.Decision | Refused]:
        try:
            x, z = self.features.crossed([event.user for event in events], pool.vectors)
            keys, floor = [event.event_id for event in events], self.bandit.floor
            threads = THREADS if x.size + z.size >= MUCH else 1
            drawn = {
                name: policy.randomize_batch(x, z, pool.ids, keys=keys, floor=floor, threads=threads)
                for name, policy in self.policies.items()
            }
        except (TypeError, ValueError) as problem:
            if len(events) == 1:
                return [unusable_features("user", events[0].user, problem)]
            return [self._decide_among(pool, [event])[0] for event in events]
        live = drawn.pop(self.live)
        at = np.arange(len(events)), live.indices
        shadows = {name: each.probabilities[at].tolist() for name, each in drawn.items()}
        own: list[list[tuple[int, float]]] = [[] for _ in events]
        rows, places = live.propensities.nonzero()
        positive = live.propensities[rows, places].tolist()
        for b, place, probability in zip(rows.tolist(), places.tolist(), positive, strict=True):
            own[b].append((place, probability))
        decisions: list[log.Decision | Refused] = []
        version, n, machine = self.row, len(pool.ids), fingerprint()
        propensities = live.probabilities[at].tolist()
        for b, (event, index) in enumerate(zip(events, live.indices.tolist(), strict=True)):
            arm = pool.ids[index]
            arm_version = self.arms[arm].version
            decisions.append(
                log.Decision(  # by position, which is faster
                    event.event_id or "", event.user, pool.named, version, n, arm, arm_version, propensities[b], floor,
                    own[b], self.live, machine, {name: each[b] for name, each in shadows.items()},
                )
            )  # fmt: skip
        return decisions

    def _count_fallbacks(self, side: str, given: dict[str, log.Value]) -> None:
        for name, value in self._fallbacks(side, given):
            self.summary.fell_back(f"{side}.{name}", json.dumps(value, ensure_ascii=False))

    def _fallbacks(self, side: str, given: dict[str, log.Value]) -> Iterator[tuple[str, log.Value]]:
        """Yield features whose value has no column: they count as other values or as missing."""
        for name, values in self._values[side].items():
            if name in given and given[name] not in values:
                yield name, given[name]

    def check_features(self, side: str, given: dict[str, log.Value]) -> None:
        """Refuse features that the bandit does not have, and in strict bandits unknown values.

        Features that are missing are refused when they are used.
        """
        known = self._names[side]
        if given.keys() <= known:
            if self.bandit.strict:
                self._refuse_fallbacks(side, given)
            return
        name = next(name for name in given if name not in known)
        near, there = nearest(name[:LONGEST], known), ", ".join(known) or "none"
        detail = f"The bandit has no {side} feature {name!r}{near}. It has {there}."
        raise Refused(422, detail, field=f"{'user' if side == 'user' else 'features'}.{name}", value=given[name])

    def _refuse_fallbacks(self, side: str, given: dict[str, log.Value]) -> None:
        for name, value in self._fallbacks(side, given):
            if value is not None:  # there is a rule for missing values
                values = self._values[side][name]
                there, near = ", ".join(sorted(map(str, values))), nearest(str(value)[:LONGEST], map(str, values))
                detail = f"The {side} feature {name!r} is {value!r}, which is none of its values{near}: {there}. "
                detail += "Send one of them; bandit.toml says strict = true."
                raise Refused(422, detail, field=f"{'user' if side == 'user' else 'features'}.{name}", value=value)

    def snapshot(self) -> log.Snapshot:
        """Return the model as bytes."""
        self._learn()  # there is something to learn if applying rows was interrupted
        saved = Saved(
            bandit=self.bandit.plain(),
            arms=msgspec.json.encode(self.arms),  # MessagePack has no integers of more than 64 bits
            live=self.live,
            closed=self.closed,
            first_open=self.first_open,
            time=self.time,
            ended=self.ended,
            policies={name: policy.to_bytes() for name, policy in self.policies.items()},
            summary=self.summary,
        )
        return log.Snapshot(self.row, fingerprint(), msgspec.msgpack.encode(saved))

    @classmethod
    def opened(cls, store: log.Store) -> Self:
        """Return the state at the first row."""
        (first,) = store.rows(0, 1)
        assert isinstance(first.content, log.Opened)
        state = cls(Bandit.from_plain(first.content.bandit))
        state.apply([first], store)
        return state

    @classmethod
    def based(cls, store: log.Store) -> Self:
        """Return the state at the first row, or at the row with which the log continues another one."""
        row = continued(store)
        if row is None:
            return cls.opened(store)
        content = row.content
        assert isinstance(content, log.Continued)
        snapshot = log.Snapshot(row.number, content.fingerprint, content.model)
        if snapshot.digest != content.digest:
            wrong = f"the model with which it begins has the SHA-256 {snapshot.digest}, not {content.digest}"
            raise log.StoreError(f"The log {store.name} is damaged: {wrong}. Restore it from a copy.")
        state = cls._resumed(snapshot)
        state.base, state.time = row.number, row.time
        return state

    @classmethod
    def restored(cls, store: log.Store, upto: int | None = None) -> Self:
        """Return the state after a log, from its newest usable snapshot or its beginning."""
        state = cls.based(store)
        snapshot = store.snapshot(fingerprint(), upto)
        if snapshot is not None and snapshot.row > state.row:
            try:
                state = cls._resumed(snapshot, base=state.base)
                state.resumed = snapshot.row
            except Exception as problem:  # damaged bytes can raise anything
                logger.warning("the snapshot of row %d cannot be used, so the log is read: %r", snapshot.row, problem)
        state.apply(store.rows(state.row, upto), store)
        return state

    @classmethod
    def _resumed(cls, snapshot: log.Snapshot, *, base: int = 0) -> Self:
        saved = msgspec.msgpack.decode(snapshot.content, type=Saved)
        state = cls(Bandit.from_plain(saved.bandit), snapshot.row, saved.time, saved.live, base=base)
        for arm, known in msgspec.json.decode(saved.arms, type=dict[str, KnownArm]).items():
            state._put(known.version, log.Arm(arm, known.features))
            state.arms[arm].active = known.active
        state.closed, state.first_open, state.ended = saved.closed, saved.first_open, saved.ended
        state.policies = {name: Policy.from_bytes(content) for name, content in saved.policies.items()}
        state.summary = saved.summary
        return state


def continued(reading: log.Store) -> log.Row | None:
    """Return the row with which a log continues another one; None if it does not."""
    return next(reading.rows(0, None, [log.CONTINUED]), None)


def walk(store: log.Store, *, learning: bool = True) -> Iterator[tuple[ModelState, list[log.Row]]]:
    """Yield decisions of a log by version, with the state at that version, which is one object that advances.

    Without `learning` it has arms and settings alone; with it, decisions copied from the log before are left out.
    """
    state = ModelState.based(store) if learning else ModelState.opened(store)
    upto = store.last()[0]
    # The log is read twice at the same time, so that no rows are kept in memory between a version and its decisions.
    following = store.rows(state.row, upto, None if learning else log.FEW)
    row = next(following, None)

    def until(version: int) -> Iterator[log.Row]:
        nonlocal row
        while row is not None and row.number <= version:
            yield row
            row = next(following, None)

    for version, same in itertools.groupby(
        store.rows(state.row, upto, [log.DECISION]), key=lambda row: row.decision.version
    ):
        if learning:
            state.apply(until(version), store)
        else:
            for described in until(version):
                state.describe(described)
        while together := list(itertools.islice(same, CHUNK)):
            yield state, together
