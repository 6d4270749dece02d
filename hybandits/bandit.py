"""Bandit: a policy that takes named columns of users and arms, and learns from the first rows how to use them."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import Prediction
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.random_stream import key_of_seed, stream_of
from hybandits.features import Features
from hybandits.features.columns import columns_of, is_missing, is_record, is_table
from hybandits.features.named import LIMIT, Notes, declarations
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, parameters_of
from hybandits.kernels.arrow import LIMIT as LARGEST
from hybandits.policies.base import File, Keep, Policy, _alive, synchronized
from hybandits.policies.by_name import CLASS, make_policy, nested_policies, parse_policy, policy_class
from hybandits.policies.choices import Choice, Choices
from hybandits.policies.hyran import HyRan
from hybandits.policies.suplinucb import SupLinUCB

FIRST_ROWS = 2000
"""Rewarded rows that the map from columns to features is learned from."""

GROWTH = 4
"""The map is learned again whenever there are so many times as many rows, until all first rows are there."""

LATER = 5
"""If arms have too few rewards by then, the map is learned once more when there are so many times as many rows."""

WIDE_LATER = 300
"""With more columns of x it is not, because learning all these rows again would take too long."""

FEW = 5
"""Arms are few if their own parameters, times this, are at most the first rows; times 1 if arms have no columns."""

WIDE = 500
"""With more columns of x, the number of arms alone decides whether the columns of users stand in z."""

PER_ARM = 6.0
"""The rewards per arm, as `is_known_by_arm` counts them, from which the user's columns may stand in z."""

KIND = "Bandit"
"""The class in the header of a file."""

NAMES = ("user", "arm", "pair")

Raw = dict[str, dict[str, list[Any]]]
"""Columns by side and name, before they are encoded."""


class _Candidates(NamedTuple):
    """Arms to choose from, with their columns and vectors."""

    ids: list[Hashable]
    raw: dict[str, list[Any]]
    vectors: FloatArray


class _Rows(NamedTuple):
    """Rewarded rows: arms, columns and rewards."""

    ids: list[Hashable]
    raw: Raw
    rewards: list[float]

    def part(self, start: int, stop: int | None = None) -> _Rows:
        """Rows start..stop-1."""
        rows = slice(start, stop)
        raw = {what: {name: column[rows] for name, column in side.items()} for what, side in self.raw.items()}
        return _Rows(self.ids[rows], raw, self.rewards[rows])

    def extend(self, other: _Rows) -> None:
        """Add rows as plain values."""
        self.ids.extend(other.ids)
        self.rewards.extend(other.rewards)
        for what, side in other.raw.items():
            for name, column in side.items():
                self.raw[what][name].extend(map(plain_value, column))

    def teach(self, policy: Policy, features: Features, noted: Notes) -> None:
        """Let a policy learn the rows; add to `noted` what falls back."""
        policy.learn_batch(self.ids, *features.of_rows(*self.vectors(features, noted)), self.rewards)

    def vectors(self, features: Features, noted: Notes) -> list[FloatArray]:
        """The vectors of users, arms and pairs."""
        return [features.encoded(what, self.raw[what], len(self.ids), noted) for what in NAMES]


class Bandit:
    """Chooses among arms from what is known about a user and about each arm, by name, and learns from rewards.

    `Features` turns columns into the numbers that a policy takes. What they need to know, such as the mean of a number
    and the values of a category, is learned from the first rewarded rows, which are kept. At 1, 4, 16, .. rows the map
    is learned again, and a new policy learns all kept rows through it. After `first_rows` the map is fixed and the rows
    are dropped. At any time the bandit is what it would be if it had had its present map from the start.

    Parameters
    ----------
    user, arm, pair, interactions, own, curves, limit, strict
        As for `Features`.
    policy : str
        The policy and its settings, such as "HyThompson:propensity_draws=100".
    first_rows : int
        The number of rewarded rows that the map is learned from.
    arm_id : str
        The column that holds the ids of arms, where arms are a table or a list of dicts.
    seed : int or None
        The seed of the random draws; None draws fresh entropy.

    Attributes
    ----------
    features : Features
        The present map; `features.summary()` says what it does, `features.fallbacks` what it could not place.
    policy : Policy
        The present policy.
    rounds : int
        The number of rewards learned.
    fixed : bool
        True once the map does not change any more.

    Examples
    --------
    >>> from hybandits import Bandit
    >>> articles = {"a17": {"price": 2.5, "topic": "news"}, "b4": {"price": 1.0, "topic": "sport"}}
    >>> bandit = Bandit(user={"age": "number", "country": "category"}, arm=articles, seed=0)
    >>> choice = bandit.choose({"age": 31, "country": "de"}, articles)
    >>> bandit.learn(choice.receipt, reward=1.0)

    The receipt holds the arm, its columns and the user's as plain values. Without it, pass them:

    >>> bandit.learn("b4", {"age": 52, "country": "fr"}, 0.0, columns=articles["b4"])
    >>> bandit.put_arms(articles)
    >>> bandit.learn("b4", {"age": 24, "country": "it"}, 0.0)
    >>> bandit.rounds, bandit.fixed
    (3, False)
    """

    def __init__(
        self,
        *,
        user: Any = None,
        arm: Any = None,
        pair: Any = None,
        interactions: Sequence[Sequence[str]] | None = None,
        own: Sequence[str] | None = None,
        curves: bool = True,
        limit: int = LIMIT,
        strict: bool = False,
        policy: str = "HyIDS",
        first_rows: int = FIRST_ROWS,
        arm_id: str = "id",
        seed: int | None = None,
    ) -> None:
        declared = Features(
            user=user, arm=declarations("arm", arm, beside=arm_id), pair=pair, interactions=interactions, own=own,
            curves=curves, limit=limit, strict=strict,
        )  # fmt: skip
        first_rows = checks.count("first_rows", first_rows, least=1, why="the map is learned from them")
        self._start(declared, policy, first_rows, arm_id, key_of_seed(seed, stream_of(KIND)) >> 1)

    def _start(self, declared: Features, policy: str, first_rows: int, arm_id: str, seed: int) -> None:
        self._lock = threading.RLock()
        self._declared, self._spec, self._seed = declared, policy, seed
        self.first_rows, self.arm_id = first_rows, arm_id
        for inner, _ in nested_policies(*parse_policy(policy)):
            if issubclass(policy_class(inner), HyRan | SupLinUCB):
                raise ValueError(f"{inner} needs all candidates of a round to learn from one: use HyIDS or HyLinUCB")
        self.fixed = declared.complete
        self.features = declared if self.fixed else declared.learn()
        if self.fixed:
            self._say(0)
        else:
            self.features.strict = False
        self.policy = self._policy_for(self.features)
        self._kept = _Rows([], {what: {name: [] for name in getattr(declared, what)} for what in NAMES}, [])
        self._map_rows = 0
        self._pool: dict[Hashable, dict[str, Any]] = {}
        self._vectors: tuple[Any, dict[Hashable, FloatArray]] = None, {}
        _alive.add(self)  # type: ignore[arg-type]  # renews the lock in a forked process

    def _policy_for(self, features: Features) -> Policy:
        """A policy that has learned nothing, for the columns of these features."""
        kind, settings = parse_policy(self._spec)
        settings = _with_groups(kind, settings, [each.tolist() for each in features.groups])
        policy = make_policy(kind, settings, d1=features.d1, d2=features.d2, arms=1, horizon=2, seed=self._seed)
        return self._with_lock(policy)

    def _with_lock(self, policy: Policy) -> Policy:
        """Let the policy, and those that it wraps, use the bandit's lock: with several, a forked process could hang."""
        inner: Any = policy
        while isinstance(inner, Policy):
            inner._lock = self._lock
            inner = getattr(inner, "policy", None)
        return policy

    def __repr__(self) -> str:
        sides = ", ".join(f"{what}={list(each)}" for what in NAMES if (each := getattr(self._declared, what)))
        state = "map fixed" if self.fixed else f"map of {self._map_rows} row(s)"
        size = f"d1={self.features.d1}, d2={self.features.d2}"
        return f"Bandit({sides}{sides and ', '}policy={self._spec!r}): {self.rounds} rewards learned, {state}, {size}"

    def reseed(self, seed: int | None) -> None:
        """Begin another stream of random numbers, as if the bandit had been constructed with this seed."""
        with self._lock:
            self._seed = key_of_seed(seed, stream_of(KIND)) >> 1
            self.policy.reseed(self._seed)

    @property
    def rounds(self) -> int:
        """The number of rewards learned."""
        return self.policy.rounds

    @property
    def arms(self) -> dict[Hashable, dict[str, Any]]:
        """The columns of the arms that were put, by id."""
        with self._lock:
            return {arm: dict(each) for arm, each in self._pool.items()}

    # ------------------------------------------------------------------ arms

    @synchronized
    def put_arms(self, arms: Any) -> None:
        """Add arms, or replace their columns: a mapping of ids to dicts, or a table or dicts with a column of ids.

        They are the candidates of calls that pass none, and their columns are those that `learn` takes for an id.
        """
        noted: Notes = []
        ids, raw, _ = self._given(arms, noted)
        for row, arm in enumerate(ids):
            self._pool[arm] = {name: plain_value(values[row]) for name, values in raw.items()}
        self.features.count(noted)
        self._vectors = None, {}

    @synchronized
    def forget(self, arm: Hashable) -> None:
        """Drop an arm and what is known about it alone; what it has taught about others stays."""
        if arm not in self._pool and arm not in self.policy.arms:
            raise KeyError(f"arm {arm!r} is not known: it was neither put, chosen nor learned")
        if arm in self.policy.arms:
            self.policy.forget(arm)
        self._pool.pop(arm, None)
        number = len({each for each in self._kept.ids if is_forgotten(each)})
        self._kept.ids[:] = [(FORGOTTEN, number, arm) if each == arm else each for each in self._kept.ids]

    def _given(self, arms: Any, noted: Notes) -> _Candidates:
        """Check candidates and encode their columns; None for the arms that were put."""
        rows: Any = None
        if arms is None:
            if not self._pool:
                raise ValueError("there are no arms: pass them, or put_arms(..) first")
            return self._put(list(self._pool))
        if isinstance(arms, Mapping):
            ids, rows = list(arms), list(arms.values())
        elif is_table(arms):
            ids, rows = self._ids(arms), arms
        elif isinstance(arms, str | bytes) or not isinstance(arms, Iterable):
            raise TypeError(f"arms is {checks.short(arms)}: pass a mapping of ids to dicts, a table, or a list of ids")
        else:
            ids = list(arms)
            if ids and all(is_record(each) for each in ids):
                ids, rows = self._ids(ids), ids
            elif self.features.arm:
                return self._put(ids)
        if not ids:
            raise ValueError("there are no arms: pass at least one candidate")
        for arm in ids:
            checks.new_arm(arm)
        if len(set(ids)) < len(ids):
            raise ValueError(f"arms holds an id more than once: {checks.short(ids)}; each candidate may appear once")
        raw = self.features.raw("arm", rows, noted, beside=self.arm_id)
        return _Candidates(ids, raw, self.features.encoded("arm", raw, len(ids), noted))

    def _ids(self, rows: Any) -> list[Hashable]:
        remedy = "ids are read from this column: add it, name another with Bandit(arm_id=..), or pass rows by id"
        return columns_of("arm", rows, [self.arm_id], remedy)[self.arm_id]

    def _put(self, ids: list[Hashable]) -> _Candidates:
        """Candidates among the arms that were put, whose vectors are kept."""
        columns = [self._columns_put(arm) for arm in ids]
        if self._vectors[0] is not self.features:
            pool = {name: [each[name] for each in self._pool.values()] for name in self.features.arm}
            encoded = self.features.encoded("arm", pool, len(self._pool), [])
            self._vectors = self.features, dict(zip(self._pool, encoded, strict=True))
        raw = {name: [each[name] for each in columns] for name in self.features.arm}
        return _Candidates(ids, raw, np.array([self._vectors[1][arm] for arm in ids]))

    # ------------------------------------------------------------------ choosing

    def _round(self, user: Any, arms: Any, pairs: Any) -> tuple[Any, ...]:
        """Check one round; return the candidates, the user's and the pairs' columns, x, z and what fell back."""
        noted: Notes = []
        candidates = self._given(arms, noted)
        features, n = self.features, len(candidates.ids)
        users = self._columns("user", [user] if is_record(user) else user, 1, noted)
        given = self._columns("pair", pairs, n, noted)
        u, p = features.encoded("user", users, 1, noted), features.encoded("pair", given, n, noted)
        x, z = features.computed(u, candidates.vectors, p)
        return candidates, users, given, x[0], z[0], noted

    def _columns(self, what: str, data: Any, n: int, noted: Notes) -> dict[str, list[Any]]:
        """The columns of a side in n rows."""
        if not self.features.needs(what, data):
            return {}
        raw = self.features.raw(what, data, noted)
        if (rows := len(next(iter(raw.values())))) != n:
            raise ValueError(f"there are {rows} {what} rows, expected {n}: pass one for each")
        return raw

    def _receipt(
        self, arm: Hashable, index: int, users: Any, candidates: _Candidates, pairs: Any, counted: bool = True
    ) -> dict[str, Any]:
        """The parts of a round that `learn` needs, as values that JSON can hold, up to an id that is a tuple.

        `counted` says that values that fell back were counted in the round, and need not be when it is learned.
        """
        return {
            "arm": arm,
            "user": {name: plain_value(values[0]) for name, values in users.items()},
            "columns": {name: plain_value(values[index]) for name, values in candidates.raw.items()},
            "pair": {name: plain_value(values[index]) for name, values in pairs.items()},
            "counted": counted,
        }

    @synchronized
    def choose(
        self,
        user: Any = None,
        arms: Any = None,
        pairs: Any = None,
        *,
        key: Hashable | None = None,
        randomize: bool = False,
        floor: float | None = None,
    ) -> Choice:
        """Choose an arm for a user.

        Parameters
        ----------
        user : dict or row of a table
            The user's columns; None if there are none.
        arms : optional
            The candidates: a mapping of ids to dicts, a table or a list of dicts with a column of ids, or ids of arms
            that were put. By default all of these.
        pairs : table or list of dicts, optional
            Columns of the user and each arm together, in the order of the candidates.
        key, randomize, floor
            As for `Policy.choose`.

        Returns
        -------
        Choice
            ``choice.receipt`` holds the arm and all columns as plain values. Keep it and pass it to `learn`.
        """
        candidates, users, given, x, z, noted = self._round(user, arms, pairs)
        choice = self.policy.choose(x, z, candidates.ids, key=key, randomize=randomize, floor=floor)
        if key is None:
            self.features.count(noted)
        return choice._replace(receipt=self._receipt(choice.arm, choice.index, users, candidates, given, key is None))

    @synchronized
    def choose_batch(
        self, users: Any, arms: Any = None, *, threads: int = 1, randomize: bool = False, floor: float | None = None
    ) -> Choices:
        """Choose among the same arms for many users, the rows of a table: the same as so many calls of `choose`."""
        noted: Notes = []
        if self.features.pair:
            raise ValueError("pair features belong to one user and one arm: call choose for each user")
        candidates = self._given(arms, noted)
        raw = self.features.raw("user", users, noted)
        u = self.features.encoded("user", raw, len(next(iter(raw.values()))) if raw else len(users), noted)
        x, z = self.features.computed(u, candidates.vectors, None)
        choices = self.policy.choose_batch(x, z, candidates.ids, threads=threads, randomize=randomize, floor=floor)
        self.features.count(noted)
        receipts = [
            self._receipt(arm, index, {name: values[b : b + 1] for name, values in raw.items()}, candidates, {})
            for b, (arm, index) in enumerate(zip(choices.arms, choices.indices.tolist(), strict=True))
        ]
        return choices._replace(receipts=receipts)

    @synchronized
    def rank(
        self,
        user: Any = None,
        arms: Any = None,
        m: int | None = None,
        *,
        pairs: Any = None,
        key: Hashable | None = None,
    ) -> Choices:
        """Choose arms for m positions, the best first; see `Policy.rank`."""
        candidates, users, given, x, z, noted = self._round(user, arms, pairs)
        ranking = self.policy.rank(x, z, candidates.ids, m, key=key)
        if key is None:
            self.features.count(noted)
        each = zip(ranking.arms, ranking.indices.tolist(), strict=True)
        return ranking._replace(
            receipts=[self._receipt(arm, index, users, candidates, given, key is None) for arm, index in each]
        )

    @synchronized
    def predict(self, user: Any = None, arms: Any = None, pairs: Any = None) -> Prediction:
        """Estimate the mean rewards of candidates and their widths without choosing; nothing changes."""
        candidates, _, _, x, z, _ = self._round(user, arms, pairs)
        return self.policy.predict(x, z, candidates.ids)

    @synchronized
    def propensities(
        self, user: Any = None, arms: Any = None, pairs: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return the probability with which `choose`, with this key, would choose each candidate now."""
        candidates, _, _, x, z, _ = self._round(user, arms, pairs)
        return self.policy.propensities(x, z, candidates.ids, key=key)

    # ------------------------------------------------------------------ learning

    def learn(self, arm: Any, user: Any = None, reward: Any = None, *, columns: Any = None, pair: Any = None) -> None:
        """Learn one reward.

        Parameters
        ----------
        arm : receipt or id
            ``choice.receipt``, which holds all columns, or the id of the arm that was played.
        user, columns, pair : dict, optional
            With an id: the columns of the user, of the arm, and of both together, when the arm was played. `columns` of
            an arm that was put may be left out.
        reward : float
            The reward it brought.
        """
        values = [checks.reward(reward)]
        checks.finite("reward", np.array(values[0]), LARGEST)
        users, arms, pairs = ([each] if each is not None else None for each in (user, columns, pair))
        self.learn_batch([arm], users, values, columns=arms, pairs=pairs)

    @synchronized
    def learn_batch(
        self, arms: Any, users: Any = None, rewards: Any = None, *, columns: Any = None, pairs: Any = None
    ) -> None:
        """Learn many rewards: receipts and rewards, or ids with as many rows of users, columns and pairs.

        The result is that of calling `learn` row by row. If any row is refused, none is learned.
        """
        noted: Notes = []
        ids, raw, counted = self._feedback(arms, users, columns, pairs, noted)
        n = len(ids)
        values = checks.array("rewards", rewards, 1, n, f"shape ({n},), one reward per row")
        checks.finite("rewards", values, LARGEST)
        rows = _Rows(ids, raw, values.tolist())
        kept = len(self._kept.ids) + n
        stage = 0 if self.fixed else self._stage(kept)
        if stage > self._map_rows:
            self._learn_again(stage, rows)
            if not self.fixed and (stage := self._stage(kept)) > self._map_rows:
                self._learn_again(stage, rows.part(n))
            return
        rows.teach(self.policy, self.features, [])
        if uncounted := [row for row in range(n) if not counted[row]]:
            for what in NAMES:
                part = {name: [column[row] for row in uncounted] for name, column in raw[what].items()}
                self.features.encoded(what, part, len(uncounted), noted)
        self.features.count(noted)
        if not self.fixed:
            self._kept.extend(rows)

    def _learn_again(self, stage: int, new: _Rows) -> None:
        """Learn the map from the first `stage` rows, and all rows through it."""
        new.vectors(self.features, [])  # refuses wrong values by their rows in the batch
        rows = self._kept.part(0)
        rows.extend(new)
        noted: Notes = []
        features, policy, undecided = self._best_map(rows.part(0, stage), noted)
        if len(rows.ids) > stage:
            new.vectors(features, [])
            rows.part(stage).teach(policy, features, noted)
        for arm in dict.fromkeys(rows.ids):
            if is_forgotten(arm):
                policy.forget(arm)
        policy.notes = self.policy.notes
        policy.number_decisions(self.policy.decision_numbers(0)[1])
        policy.admit(self.policy.arms)
        features.count(noted)
        self.features, self.policy, self._map_rows = features, policy, stage
        later = undecided and features.d1 <= WIDE_LATER
        self.fixed = stage == self.first_rows * LATER or (stage == self.first_rows and not later)
        features.strict = self._declared.strict and stage >= self.first_rows
        self._kept = rows.part(0, 0) if self.fixed else rows
        if self.fixed:
            self._say(stage)

    def _say(self, rows: int) -> None:
        """Warn once of what the map, which is now fixed, leaves out, hashes or has noticed."""
        if remarks := "; ".join(self.features.remarks):
            checks.warn(f"the map from columns is fixed after {rows} rows, with d1={self.features.d1}; {remarks}")

    def _best_map(self, rows: _Rows, noted: Notes) -> tuple[Features, Policy, bool]:
        """The map from some rows, a policy that has learned them, and whether arms have too few rewards to be sure.

        Unless `own` is given, the user's columns stand in z if the evidence is for it. Where arms are few, this is
        decided when the first rows are complete, and until then they do; otherwise, once arms have rewards enough. In
        wide maps the number of arms decides, because learning all rows through two maps would take too long.
        """
        features, undecided = self._declared.learn_raw(rows.raw), False
        features.strict = False
        options = [features]
        if features.own is None and features.user:
            small = features.with_own(["1"])
            own_parameters = len({*rows.ids, *self.policy.arms}) * features.d2
            wide = features.d1 > WIDE
            if own_parameters * (FEW if features.arm else 1) > self.first_rows:
                undecided = not is_known_by_arm(rows.ids, np.array(rows.rewards))
                options = [small] if undecided or wide else [small, features]
            elif len(rows.ids) >= self.first_rows and not wide:
                options = [small, features]
        best: tuple[float, Features, Policy] | None = None
        for option in options:
            policy = self._policy_for(option)
            noted.clear()
            rows.teach(policy, option, noted)
            value = criterion(policy, option) if len(options) > 1 else 0.0
            if best is None or value >= best[0]:  # without evidence, the last
                best = value, option, policy
        assert best is not None
        return best[1], best[2], undecided

    def _stage(self, rows: int) -> int:
        """The next number of rows, at most so many, at which the map is learned."""
        if rows >= self.first_rows:
            last = self._map_rows >= self.first_rows and rows >= self.first_rows * LATER
            return self.first_rows * (LATER if last else 1)
        stage = 1
        while stage * GROWTH <= rows:
            stage *= GROWTH
        return stage if rows else 0

    def _feedback(
        self, arms: Any, users: Any, columns: Any, pairs: Any, noted: Notes
    ) -> tuple[list[Hashable], Raw, list[bool]]:
        """The ids and the columns of rows to learn, and whether values that fell back have been counted."""
        if isinstance(arms, np.ndarray):
            arms = arms.tolist()
        if isinstance(arms, str | bytes | Mapping) or not isinstance(arms, Iterable):
            raise TypeError(f"arms must be a list of ids or receipts, got {checks.short(arms)}")
        ids = [each.receipt if isinstance(each, Choice) else each for each in arms]
        counted = [False] * len(ids)
        if ids and all(isinstance(each, Mapping) for each in ids):
            counted = [bool(each.get("counted")) for each in ids]
            for each in ids:
                if missing := [key for key in ("arm", "user", "columns", "pair") if key not in each]:
                    wrong = f"the receipt has no {missing[0]!r}, got {checks.short(each)}"
                    raise ValueError(f"{wrong}: pass choice.receipt")
            if users is not None or columns is not None or pairs is not None:
                raise TypeError(
                    "a receipt holds all columns: pass it and the reward alone, as in learn(receipt, reward=1)"
                )
            users, columns, pairs = ([each[key] for each in ids] for key in ("user", "columns", "pair"))
            ids = [each["arm"] for each in ids]
            columns = columns if self.features.arm else None
            pairs = pairs if self.features.pair else None
        ids = [policy_file.arm_id(each) if isinstance(each, list) else each for each in ids]
        for arm in ids:
            checks.new_arm(arm)
        n = len(ids)
        given = {"user": users, "arm": columns, "pair": pairs}
        if columns is None and self.features.arm:
            given["arm"] = [self._columns_put(arm) for arm in ids]
        return ids, {what: self._columns(what, data, n, noted) for what, data in given.items()}, counted

    def _columns_put(self, arm: Hashable) -> dict[str, Any]:
        if arm not in self._pool:
            near = checks.nearest(arm, map(str, self._pool))
            raise ValueError(f"arm {checks.short(arm)} was not put{near}: pass its columns, or put_arms(..) first")
        return self._pool[arm]

    def refresh(self) -> None:
        """Re-estimate learned settings from all rewards, so that their order no longer matters."""
        with self._lock:
            self.policy.refresh()

    # ------------------------------------------------------------------ files

    def save(self, file: File) -> None:
        """Write the bandit, with its map, kept rows and random state, to one .npz file."""
        policy_file.write(file, self.to_bytes())

    @synchronized
    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        policy, arrays = self.policy._pack()
        header = {
            "class": KIND,
            "policy": policy,
            "spec": self._spec,
            "seed": self._seed,
            "first_rows": self.first_rows,
            "arm_id": self.arm_id,
            "fixed": self.fixed,
            "map_rows": self._map_rows,
            "declared": self._declared.to_dict(),
            "features": self.features.to_dict(),
            "rows": self._kept.raw,
            "arms": [checks.plain_id(arm) for arm in self._kept.ids],
            "pool": [[checks.plain_id(arm), each] for arm, each in self._pool.items()],
        }
        return policy_file.packed(header, {"rewards": np.array(self._kept.rewards, float), **arrays})

    @classmethod
    def load(cls, file: File) -> Self:
        """Read a bandit from a file written by `save`; it takes the decisions that the saved one would have taken."""
        return cls.from_bytes(policy_file.read(file), source=str(file))

    @classmethod
    def from_bytes(cls, content: bytes, *, source: str = "the content") -> Self:
        """Read a bandit from what `to_bytes` returned."""
        header, arrays = policy_file.unpacked(content, source)
        if header.get("class") != KIND:
            raise FileError(f"{source} holds a {header.get('class')}, not a Bandit: use hybandits.load")
        bandit = cls.__new__(cls)
        try:
            declared = Features.from_dict(header["declared"])
            number = policy_file.counter
            bandit._start(declared, header["spec"], number("first_rows", header["first_rows"]), header["arm_id"], 0)
            bandit._seed = number("seed", header["seed"], 2**63)
            rewards = arrays.pop("rewards").tolist()
            bandit.policy = bandit._with_lock(Policy._unpack(header["policy"], arrays))
            bandit.features = Features.from_dict(header["features"])
            bandit.features._check_size(bandit.policy)
            bandit.fixed, bandit._map_rows = bool(header["fixed"]), number("map_rows", header["map_rows"])
            raw = {
                what: {name: list(header["rows"][what][name]) for name in side}
                for what, side in bandit._kept.raw.items()
            }
            bandit._kept = _Rows(policy_file.arm_ids(header["arms"]), raw, rewards)
            bandit._pool = {policy_file.arm_id(arm): dict(each) for arm, each in header["pool"]}
            columns = [column for side in raw.values() for column in side.values()]
            if {len(each) for each in [*columns, rewards]} != {len(bandit._kept.ids)}:
                raise ValueError("the kept rows differ in length")
        except FileError:
            raise
        except Exception as problem:  # constructors and NumPy refuse wrong values in many ways
            raise FileError(f"a part of the file is missing or wrong ({problem}): the file is corrupt") from None
        return bandit

    def copy(self) -> Self:
        """Return an independent copy, random state included."""
        return self.from_bytes(self.to_bytes())

    def __reduce__(self) -> Any:
        return type(self).from_bytes, (self.to_bytes(),)


def load(file: File, *, seed: int | Keep | None = "saved") -> Any:
    """Read a policy of any class, or a `Bandit`, from a file written by `save`.

    Parameters
    ----------
    file : str or path
        A file can name any settings, so load only files that you trust to be yours.
    seed : int or None, optional
        Begin another stream of random numbers. By default what is read takes the decisions that the saved one would.
    """
    content = policy_file.read(file)
    if policy_file.unpacked(content, str(file))[0].get("class") != KIND:
        return Policy._load(content, str(file), seed)
    bandit = Bandit.from_bytes(content, source=str(file))
    if seed != "saved":
        bandit.reseed(seed)
    return bandit


FORGOTTEN = "forgotten arm"
"""Marks the kept rows of an arm that was forgotten: (FORGOTTEN, number, id)."""


def plain_value(value: Any) -> Any:
    """Return a value of a column as JSON can hold it."""
    if is_missing(value):
        return None
    if isinstance(value, np.ndarray | list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain_value, value), key=str)
    if isinstance(value, np.generic):
        return value.item()
    return value


def _with_groups(kind: str, settings: Mapping[str, Any], groups: list[list[int]]) -> dict[str, Any]:
    """The settings of a policy, with groups where it and those that it wraps learn scales."""
    inner = {
        key: {CLASS: each[CLASS], **_with_groups(each[CLASS], {k: v for k, v in each.items() if k != CLASS}, groups)}
        for key, each in settings.items()
        if isinstance(each, Mapping) and CLASS in each
    }
    learns = "groups" in parameters_of(policy_class(kind)) and settings.get("scale") is None
    return {**settings, **inner, **({"groups": groups} if learns else {})}


def is_known_by_arm(arms: Sequence[Hashable], rewards: FloatArray) -> bool:
    """Return whether arms have rewards enough to tell how each suits different users.

    Rewards count as 3 n (second moment)^2 / (fourth moment) around their mean: all of them if they are normally
    distributed, and about three times the number of clicks where these are rare.
    """
    squares = (rewards - rewards.mean()) ** 2
    if not squares.any():
        return False
    return bool(3.0 * squares.sum() ** 2 / (squares**2).sum() >= PER_ARM * len(set(arms)))


def criterion(policy: Policy, features: Features) -> float:
    """The evidence for a map, less the penalty of the Bayesian information criterion for its scales in z."""
    learned = policy.learned
    scales = len(np.unique(features.groups[1]))
    return 0.0 if learned is None else learned.evidence - 0.5 * scales * math.log(policy.rounds)


def is_forgotten(arm: Hashable) -> bool:
    """Return whether this stands for an arm that was forgotten."""
    return isinstance(arm, tuple) and arm[:1] == (FORGOTTEN,)
