"""The state of the model: arms, policies and sums, as they follow from the rows of the log in their order."""

import bisect
import hashlib
import itertools
import json
import logging
import platform
import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import llvmlite.binding
import msgspec
import numba
import numpy as np

from hybandits.engines import cores
from hybandits.estimators.random_stream import digest_of
from hybandits.features import Features
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, nearest
from hybandits.kernels.arrow import LIMIT
from hybandits.policies.base import Policy
from hybandits.service import log
from hybandits.service.commands import (
    LONGEST,
    UNREADABLE,
    Candidate,
    Decide,
    Named,
    Refused,
    unreadable,
    unusable_features,
)
from hybandits.service.rules import Controls, within
from hybandits.service.settings import HELD, LIVE, Bandit
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
    "service/rules.py", "service/settings.py", "service/summary.py",
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
    start: int | None = None
    end: int | None = None

    def is_due(self, now: int) -> bool:
        """Return whether its schedule lets it be a candidate."""
        return (self.start is None or self.start <= now) and (self.end is None or now < self.end)


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates of a decision. The same ones are the same object as long as no arm changes."""

    named: log.Candidates
    ids: list[str]
    versions: list[int]
    """The rows that described the arms; 0 for those that the request describes."""
    vectors: FloatArray | int
    """The arms' vectors, one row each; their number where arms have no features."""
    given: list[Candidate] | None = None
    """Their features in the request, if it has any."""
    pairs: FloatArray | None = None
    """The vectors of the user and each arm together, those of places included, if there are such features."""
    limits: tuple[FloatArray, FloatArray] | None = None
    """The limits of probabilities, if there are any."""

    def only(self, arm: str) -> Self:
        """Return the pool of one arm: this one, or the first if it is not there."""
        return replace(self._of([self.ids.index(arm) if arm in self.ids else 0]), limits=None)

    def without(self, arms: Sequence[str]) -> Self:
        """Return the pool without arms that have a place already."""
        return self._of([i for i, arm in enumerate(self.ids) if arm not in arms])

    def _of(self, kept: list[int]) -> Self:
        return replace(
            self, ids=[self.ids[i] for i in kept], versions=[self.versions[i] for i in kept],
            vectors=len(kept) if isinstance(self.vectors, int) else self.vectors[kept],
            given=None if self.given is None else [self.given[i] for i in kept],
            pairs=None if self.pairs is None else self.pairs[kept],
            limits=None if self.limits is None else (self.limits[0][kept], self.limits[1][kept]),
        )  # fmt: skip


class Drawn(NamedTuple):
    """Draws for some decisions: the places drawn, the floors and the policy's own probabilities of all candidates,
    the probabilities drawn from, and those of challengers."""

    indices: np.ndarray
    floors: FloatArray
    own: FloatArray
    probabilities: FloatArray
    shadows: dict[str, FloatArray]


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
    controls: Controls
    amended: dict[str, float | None]
    pending: bool
    erasing: list[int]


_candidates = msgspec.json.Decoder(Named)


@dataclass
class ModelState:
    """The state after some rows of a log; `row` and `time` are of the last one.

    Decisions up to `closed` are closed, and `first_open` is the time of the next. `known` has recent events. `base` is
    the row with which the log continues another one, `resumed` the row of the snapshot that was read, and `ended` the
    log that continues this one. `amended` has the corrected rewards by their keys, `pending` says that corrections or
    erasures wait for the next row `Relearned`, and `erasing` are the decisions of the latter. A model that was learned
    again has all corrections up to the row `upto` and without the rows in `skipped`; it lies in `prepared` until its
    row is applied. `lock` is held while rows are applied, and by other threads while they read.
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
    base_closed: int = 0
    ended: str | None = None
    resumed: int = 0
    controls: Controls = field(default_factory=Controls)
    amended: dict[str, float | None] = field(default_factory=dict)
    pending: bool = False
    erasing: set[int] = field(default_factory=set)
    upto: int = 0
    skipped: frozenset[int] = frozenset()
    prepared: "ModelState | None" = None
    summary: Summary = field(init=False)

    def __post_init__(self) -> None:
        self.features: Features = self.bandit.features
        self.summary = Summary(range=self.bandit.range)
        self.summary.divide(self.bandit.segments)
        self.lock = threading.Lock()
        self._names = {side: getattr(self.bandit, side).features().keys() for side in ("user", "arm", "pair")}
        self._values = {side: getattr(self.bandit, side).values() for side in ("user", "arm", "pair")}
        self._vectors: dict[str, FloatArray] = {}
        self._pools: dict[tuple[bytes, int], Pool] = {}  # cleared when an arm or a guard rail changes
        self._moments: list[int] = []  # at which arms begin or cease to be candidates
        self._due: list[
            tuple[log.Decision, int, float]
        ] = []  # decisions, places and rewards that are yet to be learned
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
        if row.number in self.skipped:
            return
        if isinstance(content, log.Decision):
            self.remember(row)
            if self.first_open is None and self.bandit.window is not None:
                self.first_open = row.time
            self.summary.decided(row.time, content, self._labels(content))
            self._count_fallbacks("user", content.user)
            self._count_fallbacks("arm", content.features or {})
            self._count_fallbacks("pair", content.pair or {})
        elif isinstance(content, log.Reward):
            self.summary.late += content.late
            self.summary.last_reward = row.time
            known = self.known.get(content.event)
            if known is not None and known.decision is not None:
                key = log.place_key(content.event, content.place)
                self.known[key] = log.EventRows(known.decision, row)
                reward = self.amended.get(key, content.reward)
                if self.bandit.window is None and reward is not None:
                    if content.place == 1:
                        self.summary.rewarded(row.time, known.decision.time, reward)
                    self._count_reward(row.time, known.decision.decision, content.place, reward)
            elif self.bandit.window is None and not self._is_erased(row.number):
                raise log.StoreError(f"Row {row.number} rewards an unknown decision: the log is damaged.")
        elif isinstance(content, log.Closed):
            self._close(row.time, content.last)
        elif isinstance(content, log.Corrected):
            if row.number > self.upto:  # earlier ones are in `amended` already
                self.amended[log.place_key(content.of, content.place)] = content.reward
                self.pending |= self.bandit.window is None or content.decision <= self.closed
        elif isinstance(content, log.Erasing):
            if row.number > self.upto:
                self.erasing |= set(content.decisions)
                self.pending = True
        elif isinstance(content, log.Relearned):
            if row.number > self.upto:
                self._learn()
                self._take_over(row.number, content.upto)
        else:
            self._learn()
            self.describe(row)

    def _is_erased(self, number: int) -> bool:
        """Return whether a row was erased since it was read; then the model will be learned again at a later row."""
        (now,) = self._reading.by_number([number])
        return isinstance(now.content, log.Erased)

    def _take_over(self, row: int, upto: int) -> None:
        """Become the model that was learned again."""
        again, self.prepared = self.prepared, None
        if again is None or (again.row, again.upto) != (row - 1, upto):
            snapshot = self._reading.snapshot(fingerprint(), row)
            if snapshot is not None and snapshot.row == row:
                again = self._resumed(snapshot)
            else:
                again = self.relearned(self._reading, upto, row - 1)
        erased = self.erasing - again.erasing
        self.known = {
            key: rows for key, rows in self.known.items() if rows.decision is None or rows.decision.number not in erased
        }
        self.policies, self.summary = again.policies, again.summary
        self.amended, self.pending, self.erasing = again.amended, again.pending, again.erasing
        following = self._reading.first_decisions(self.closed, 1)
        self.first_open = following[0][1] if following and self.bandit.window is not None else None

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
        elif isinstance(content, log.Controlled):
            self.controls = msgspec.convert(content.controls, Controls)
            self._pools.clear()
        elif isinstance(content, log.Changed):
            before, held = self.bandit.policies, self.bandit.held
            self.bandit = Bandit.from_plain({**self.bandit.plain(), **content.values})
            self.summary.divide(self.bandit.segments)
            if self.bandit.held != held:
                self.summary.hold_out(row.number)
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
        self.arms[content.arm] = KnownArm(version, content.features, start=content.start, end=content.end)
        if content.start is not None or content.end is not None:
            moments = {time for each in self.arms.values() for time in (each.start, each.end) if time is not None}
            self._moments = sorted(moments)
        self._vectors[content.arm] = self.arm_vector(content.features)
        self._pools.clear()

    def arm_vector(self, features: dict[str, log.Value]) -> FloatArray:
        """Return the vector of an arm; raise if the features are not those of the bandit."""
        return np.asarray(self.features.arm_vectors([features] if self.features.arm else 1)[0])

    def remember(self, row: log.Row, reward: log.Row | None = None) -> None:
        """Keep a decision in memory for a while, because its reward may come soon, or that of another place."""
        event = row.decision.event
        before = self.known.pop(event, log.EventRows())  # so that it becomes the newest
        self.known[event] = log.EventRows(row, reward or before.reward)
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
                    self.remember(rows_of.decision, rows_of.reward)

    def _close(self, time: int, last: int) -> None:
        outcomes = list(places_of(self._reading, self.closed, last))  # reading may fail, so it comes before all changes
        following = self._reading.first_decisions(last, 1)
        for row, place, given in outcomes:
            if row.number in self.skipped:
                continue
            reward = self.learned_reward(given, log.place_key(row.decision.event, place))
            assert reward is not None
            self._count_reward(time, row.decision, place, reward)
        self.closed = last
        self.first_open = following[0][1] if following else None

    def _count_reward(self, time: int, decision: log.Decision, place: int, reward: float) -> None:
        """Count a reward in the order of the rows; policies learn it in a batch."""
        if self.bandit.places > 1:
            self.summary.placed(place, reward)
        if place == 1:
            self.summary.learned(time, decision, reward, self._labels(decision))
        if not self.controls.frozen:
            self._due.append((decision.at(place), place, reward))

    def learned_reward(self, given: log.Row | None, key: str) -> float | None:
        """Return the reward that is learned of a decision that is closed, or never closes."""
        if key in self.amended:
            corrected = self.amended[key]
            return self.bandit.no_reward if corrected is None else corrected
        if given is not None and isinstance(given.content, log.Reward) and not given.content.late:
            return given.content.reward
        return self.bandit.no_reward

    def _learn(self) -> None:
        if not self._due:
            return
        decisions = [decision for decision, _, _ in self._due]
        rewards = np.array([reward for _, _, reward in self._due])
        arms = [decision.arm for decision in decisions]
        zeros = dict.fromkeys(self.bandit.place_names, 0.0)
        pairs = [{**zeros, **(each.pair or {}), **self._place(place)} for each, place, _ in self._due]
        x, z = self.features.rows(
            [decision.user for decision in decisions],
            self._vectors_of(decisions),
            pairs if self.features.pair else None,
        )
        for policy in self.policies.values():
            policy.learn_batch(arms, x, z, rewards)
        self._due = []

    def _vectors_of(self, decisions: Sequence[log.Decision]) -> FloatArray | int:
        """Return the vectors of the chosen arms, in the versions that the decisions name."""
        if not self.features.arm:
            return len(decisions)
        stored = [each for each in decisions if each.features is None]
        older = {each.arm_version for each in stored if self.arms[each.arm].version != each.arm_version}
        described = {
            row.number: self.arm_vector(row.content.features)  # type: ignore[arg-type, union-attr]
            for row in self._reading.by_number(sorted(older))
        }
        return np.array([
            described.get(each.arm_version, self._vectors[each.arm])
            if each.features is None
            else self.arm_vector(each.features)
            for each in decisions
        ])  # fmt: skip

    def pool(self, candidates: log.Candidates, now: int) -> Pool:
        """Return the candidates that are named, or all active arms, as far as schedules and guard rails let them be."""
        key = bytes(candidates), bisect.bisect(self._moments, now)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._new_pool(candidates, now)
            if pool.given is None:  # what is said about candidates differs from request to request
                if len(self._pools) >= NAMED:
                    self._pools.clear()
                self._pools[key] = pool
        return pool

    def _new_pool(self, candidates: log.Candidates, now: int) -> Pool:
        force = self.controls.force
        if candidates == log.ALL:
            given = [Candidate(arm) for arm, each in self.arms.items() if each.active or force(arm) == "in"]
        else:
            named = self._checked_candidates(bytes(candidates))
            candidates = log.encode_ids(named)
            given = [each if isinstance(each, Candidate) else Candidate(each) for each in named]
            there = {each.arm for each in given}
            if not self._names["pair"]:
                given += [Candidate(arm) for arm in self.arms if arm not in there and force(arm) == "in"]
        given = [
            each
            for each in given
            if force(each.arm) == "in"
            or (force(each.arm) is None and (each.arm not in self.arms or self.arms[each.arm].is_due(now)))
        ]
        if not given:
            detail = "There are no candidates. PUT arms first, name at least one, and look at GET /v1/controls."
            raise Refused(422, detail, field="candidates", value=[])
        for each in given:
            self.check_features("pair", each.pair or {}, "candidates.pair")
        ids = [each.arm for each in given]
        is_said = any(each.features is not None or each.pair is not None or each.arm not in self.arms for each in given)
        pool = Pool(
            named=candidates,
            ids=ids,
            versions=[
                self.arms[each.arm].version if each.features is None and each.arm in self.arms else 0 for each in given
            ],
            vectors=np.array([self._vector(each) for each in given]) if self.features.arm else len(ids),
            given=given if is_said else None,
            pairs=self._pairs(given) if self.features.pair else None,
            limits=self.controls.limits(ids),
        )
        return pool if self.controls.pause is None else pool.only(self.controls.pause)

    def _checked_candidates(self, named: bytes) -> list[str | Candidate]:
        try:
            candidates: list[str | Candidate] = _candidates.decode(named)
        except UNREADABLE as problem:
            refused = unreadable(named, problem)
            raise Refused(refused.status, refused.detail, field="candidates", value=refused.value) from None
        ids = [each.arm if isinstance(each, Candidate) else each for each in candidates]
        described = {
            each.arm
            for each in candidates
            if isinstance(each, Candidate) and (each.features is not None or not self.features.arm)
        }
        for wrong, words in (
            (
                (arm for arm in ids if arm not in self.arms and arm not in described),
                "is unknown. PUT /v1/arms/{id} first, or send its features as {arm, features}.",
            ),
            (
                (arm for arm in ids if arm not in described and not self.arms[arm].active),
                "is retired. Leave it out, or PUT it again.",
            ),
            ((arm for arm, count in Counter(ids).items() if count > 1), "is named twice. Name it once."),
        ):
            for arm in wrong:
                raise Refused(422, f"The arm {arm!r} {words}", field="candidates", value=arm)
        return candidates

    def _vector(self, candidate: Candidate) -> FloatArray:
        if candidate.features is None:
            return self._vectors[candidate.arm]
        self.check_features("arm", candidate.features, "candidates.features")
        try:
            vector = self.arm_vector(candidate.features)
            checks.finite("features", vector, LIMIT)
        except (TypeError, ValueError) as problem:
            raise unusable_features("candidates.features", candidate.features, problem) from None
        return vector

    def _pairs(self, given: Sequence[Candidate]) -> FloatArray:
        zeros = dict.fromkeys(self.bandit.place_names, 0.0)
        pairs = [{**zeros, **(each.pair or {})} for each in given]
        try:
            vectors = self.features.pair_vectors(pairs)
            checks.finite("pair", vectors, LIMIT)
        except (TypeError, ValueError) as problem:
            raise unusable_features("candidates.pair", pairs[0], problem) from None
        return vectors

    def _place(self, place: int) -> dict[str, float]:
        return {} if place == 1 else {self.bandit.place_names[place - 2]: 1.0}

    def pairs_at(self, pool: Pool, place: int) -> FloatArray | None:
        """Return the pair features of a pool's arms in this place of a ranking."""
        if place == 1 or pool.pairs is None:
            return pool.pairs
        pairs = pool.pairs.copy()
        pairs[:, place - 1 - self.bandit.places] = 1.0
        return pairs

    def crossed(
        self, users: Sequence[dict[str, log.Value]], pool: Pool, place: int = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return x and z of decisions among one pool."""
        u, v = self.features.user_vectors(users), self.features.arm_vectors(pool.vectors)
        p = self.pairs_at(pool, place)
        if p is None:
            return self.features.computed(u, v, None)
        parts = [self.features.computed(u[b : b + 1], v, p) for b in range(len(u))]
        return np.concatenate([x for x, _ in parts]), np.concatenate([z for _, z in parts])

    def decide_batch(self, events: Sequence[Decide], now: int) -> list[log.Decision | Refused]:
        """Decide, without changing the model; all events have ids, which with the seed determine all draws."""
        outcomes: list[log.Decision | Refused | None] = [None] * len(events)
        pools: dict[tuple[int, bool], tuple[Pool, list[int]]] = {}
        for i, event in enumerate(events):
            try:
                self.check_features("user", event.user)
                if event.places > self.bandit.places:
                    detail = (
                        f"The bandit has {self.bandit.places} places, got {event.places}. Set places in bandit.toml."
                    )
                    raise Refused(422, detail, field="places", value=event.places)
                pool, is_held = self.pool(event.candidates, now), self._is_held(event)
            except Refused as refused:
                outcomes[i] = refused
            else:
                pools.setdefault((id(pool), is_held), (pool, []))[1].append(i)
        for (_, is_held), (pool, places) in pools.items():
            together = max(1, TOGETHER // (len(pool.ids) * (self.features.d1 + self.features.d2)))
            for chunk in (places[start : start + together] for start in range(0, len(places), together)):
                decided = self._decide_among(pool, [events[i] for i in chunk], is_held)
                for i, outcome in zip(chunk, decided, strict=True):
                    outcomes[i] = outcome
        return outcomes  # type: ignore[return-value]

    def pool_of(self, decision: log.Decision, time: int, before: Sequence[str] = ()) -> Pool:
        """Return the candidates of a decision in the log, without the arms in the places `before`."""
        pool = self.pool(decision.candidates, time)
        return self._held_pool(pool.without(before) if before else pool, decision.policy == HELD)

    def _held_pool(self, pool: Pool, is_held: bool) -> Pool:
        held = self.bandit.held
        if is_held and held is not None and held.arm in pool.ids:
            return pool.only(held.arm)
        return pool

    def _is_held(self, event: Decide) -> bool:
        held = self.bandit.held
        if held is None:
            return False
        if event.user_key is None:
            detail = "A share of users is held out, by their keys. Send user_key, the same for all events of a user."
            raise Refused(422, detail, field="user_key", value=None)
        return held.holds(self.bandit.seed, event.user_key)

    def draw(
        self, pool: Pool, x: FloatArray, z: FloatArray, keys: Sequence[Hashable], is_held: bool, threads: int = 1
    ) -> Drawn:
        """Draw arms for the keys of events, by what the policies say, guard rails and the holdout."""
        floor, n = 1.0 if is_held else self.bandit.floor, len(pool.ids)
        drawn = {
            name: policy.randomize_batch(x, z, pool.ids, keys=keys, floor=floor, threads=threads)
            for name, policy in self.policies.items()
            if name == self.live or not is_held
        }
        live = drawn.pop(self.live)
        shadows = {name: each.probabilities for name, each in drawn.items()}
        if pool.limits is None or is_held:
            own = live.propensities if not is_held else np.zeros_like(live.propensities)
            return Drawn(live.indices, np.full(len(keys), floor), own, live.probabilities, shadows)
        probabilities = within(live.probabilities, *pool.limits)
        numbers = np.array([digest_of(["share", self.bandit.seed, key]) / 2**63 for key in keys])
        reached = probabilities.cumsum(axis=1)
        indices = np.minimum((reached <= numbers[:, None] * reached[:, -1:]).sum(axis=1), n - 1)
        floors = np.minimum(n * probabilities.min(axis=1), 1.0)
        own = (probabilities - floors[:, None] / n) / np.maximum(1 - floors, 1e-300)[:, None]
        shadows = {name: within(each, *pool.limits) for name, each in shadows.items()}
        return Drawn(indices, floors, np.maximum(own, 0.0), probabilities, shadows)

    def _decide_among(
        self, among: Pool, events: Sequence[Decide], is_held: bool, place: int = 1
    ) -> list[log.Decision | Refused]:
        pool = self._held_pool(among, is_held)
        try:
            x, z = self.crossed([event.user for event in events], pool, place)
            threads = THREADS if x.size + z.size >= MUCH else 1
            drawn = self.draw(pool, x, z, [key_at(event.event_id or "", place) for event in events], is_held, threads)
        except (TypeError, ValueError) as problem:
            if len(events) == 1:
                return [unusable_features("user", events[0].user, problem)]
            return [self._decide_among(among, [event], is_held)[0] for event in events]
        at = np.arange(len(events)), drawn.indices
        shadows = {name: each[at].tolist() for name, each in drawn.shadows.items()}
        own: list[list[tuple[int, float]]] = [[] for _ in events]
        rows, places = drawn.own.nonzero()
        positive = drawn.own[rows, places].tolist()
        for b, i, probability in zip(rows.tolist(), places.tolist(), positive, strict=True):
            own[b].append((i, probability))
        decisions: list[log.Decision | Refused] = []
        version, n, machine, name = self.row, len(pool.ids), fingerprint(), HELD if is_held else self.live
        propensities, floors = drawn.probabilities[at].tolist(), drawn.floors.tolist()
        for b, (event, index) in enumerate(zip(events, drawn.indices.tolist(), strict=True)):
            given = None if pool.given is None else pool.given[index]
            decisions.append(
                log.Decision(  # by position, which is faster
                    event.event_id or "", event.user, pool.named, version, n, pool.ids[index], pool.versions[index],
                    propensities[b], floors[b], own[b], name, machine,
                    {name: each[b] for name, each in shadows.items()}, event.user_key,
                    None if given is None else given.features, None if given is None else given.pair,
                )
            )  # fmt: skip
            if place == 1 and event.places > 1:
                decisions[-1] = self._rank(among, event, decisions[-1], is_held)
        return decisions

    def _rank(self, among: Pool, event: Decide, first: log.Decision | Refused, is_held: bool) -> log.Decision | Refused:
        """Fill the further places of a ranking, each by a decision among the candidates that are left."""
        assert isinstance(first, log.Decision)
        more: list[log.Place] = []
        for place in range(2, min(event.places, len(among.ids)) + 1):
            rest = among.without([first.arm, *(each.arm for each in more)])
            (each,) = self._decide_among(rest, [event], is_held, place)
            assert isinstance(each, log.Decision)
            more.append(log.Place(**{name: getattr(each, name) for name in log.Place.__struct_fields__}))
        return msgspec.structs.replace(first, places=event.places, more=more)

    def _labels(self, decision: log.Decision) -> dict[str, str]:
        """Return the segments of a decision's user, by feature."""
        user, values = decision.user, self._values["user"]
        return {
            name: str(user[name]) if user[name] in values[name] else "other"
            for name in self.summary.segments
            if name in user
        }

    def _count_fallbacks(self, side: str, given: dict[str, log.Value]) -> None:
        for name, value in self._fallbacks(side, given):
            self.summary.fell_back(f"{side}.{name}", json.dumps(value, ensure_ascii=False))

    def _fallbacks(self, side: str, given: dict[str, log.Value]) -> Iterator[tuple[str, log.Value]]:
        """Yield features whose value has no column: they count as other values or as missing."""
        for name, values in self._values[side].items():
            if name in given and given[name] not in values:
                yield name, given[name]

    def check_features(self, side: str, given: dict[str, log.Value], field: str = "user") -> None:
        """Refuse features that the bandit does not have, and in strict bandits unknown values.

        Features that are missing are refused when they are used. `field` of the request has them.
        """
        known = self._names[side]
        if given.keys() <= known:
            if self.bandit.strict:
                self._refuse_fallbacks(side, given, field)
            return
        name = next(name for name in given if name not in known)
        near, there = nearest(name[:LONGEST], known), ", ".join(known) or "none"
        detail = f"The bandit has no {side} feature {name!r}{near}. It has {there}."
        raise Refused(422, detail, field=f"{field}.{name}", value=given[name])

    def _refuse_fallbacks(self, side: str, given: dict[str, log.Value], field: str) -> None:
        for name, value in self._fallbacks(side, given):
            if value is not None:  # there is a rule for missing values
                values = self._values[side][name]
                there, near = ", ".join(sorted(map(str, values))), nearest(str(value)[:LONGEST], map(str, values))
                detail = f"The {side} feature {name!r} is {value!r}, which is none of its values{near}: {there}. "
                detail += "Send one of them; bandit.toml says strict = true."
                raise Refused(422, detail, field=f"{field}.{name}", value=value)

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
            controls=self.controls,
            amended=self.amended,
            pending=self.pending,
            erasing=sorted(self.erasing),
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
        state.base, state.base_closed, state.time = row.number, state.closed, row.time
        return state

    @classmethod
    def restored(cls, store: log.Store, upto: int | None = None) -> Self:
        """Return the state after a log, from its newest usable snapshot or its beginning."""
        state = cls.based(store)
        snapshot = store.snapshot(fingerprint(), upto)
        if snapshot is not None and snapshot.row > state.row:
            try:
                before = state
                state = cls._resumed(snapshot, base=state.base)
                state.base_closed = before.base_closed
                state.resumed = snapshot.row
            except Exception as problem:  # damaged bytes can raise anything
                logger.warning("the snapshot of row %d cannot be used, so the log is read: %r", snapshot.row, problem)
        state.apply(store.rows(state.row, upto), store)
        return state

    @classmethod
    def relearned(cls, store: log.Store, upto: int, through: int | None = None) -> Self:
        """Return the state that the log gives with all corrections up to a row, and without what is to be erased."""
        state, skipped = cls.based(store), set()
        for row in store.rows(state.row, upto, [log.CORRECTED, log.ERASING]):
            content = row.content
            if isinstance(content, log.Corrected):
                state.amended[log.place_key(content.of, content.place)] = content.reward
            elif isinstance(content, log.Erasing):
                skipped |= set(content.rows)
        state.upto, state.skipped, state.pending = upto, frozenset(skipped), False
        state.apply(store.rows(state.row, through), store)
        return state

    @classmethod
    def _resumed(cls, snapshot: log.Snapshot, *, base: int = 0) -> Self:
        saved = msgspec.msgpack.decode(snapshot.content, type=Saved)
        state = cls(Bandit.from_plain(saved.bandit), snapshot.row, saved.time, saved.live, base=base)
        for arm, known in msgspec.json.decode(saved.arms, type=dict[str, KnownArm]).items():
            state._put(known.version, log.Arm(arm, known.features, known.start, known.end))
            state.arms[arm].active = known.active
        state.closed, state.first_open, state.ended = saved.closed, saved.first_open, saved.ended
        state.policies = {name: Policy.from_bytes(content) for name, content in saved.policies.items()}
        state.summary, state.controls = saved.summary, saved.controls
        state.amended, state.pending, state.erasing = saved.amended, saved.pending, set(saved.erasing)
        return state


def key_at(event: str, place: int) -> Hashable:
    """Return what the draws for a place of a ranking depend on, beside the seed."""
    return event if place == 1 else (event, place)


def places_of(reading: log.Store, after: int, upto: int) -> Iterator[tuple[log.Row, int, log.Row | None]]:
    """Yield the places of the decisions among the rows after..upto, each with its reward, or None."""
    outcomes = reading.outcomes(after, upto)
    while chunk := list(itertools.islice(outcomes, CHUNK)):
        further = reading.find([key for row, _ in chunk for key in log.keys_of(row.decision)[1:]])
        for row, given in chunk:
            yield row, 1, given
            for place, key in enumerate(log.keys_of(row.decision)[1:], 2):
                yield row, place, further.get(key, log.EventRows()).reward


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
