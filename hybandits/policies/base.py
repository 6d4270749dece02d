"""The contract of every policy; docs/contract.md describes it in words."""

from __future__ import annotations

import functools
import itertools
import math
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import ArmTable, Candidates, CandidateSet, Prediction, Slots, new_tuple
from hybandits.estimators.inputs import ConstantFeatures, check_finite, checked_vectors, id_list, not_finite
from hybandits.estimators.learned import LearnedSettings, Moments
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream, digest_of, digest_of_key, key_of_seed, stream_of
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, parameters_of
from hybandits.kernels.arrow import LIMIT
from hybandits.kernels.decisions import choose_batch, choose_together, draw_places
from hybandits.kernels.random import KEYED, RANDOMIZE
from hybandits.policies.choices import Batch, Choice, Choices, RandomizedChoices, checked_batch, in_threads, look_up

FLOOR = 0.05
"""The share of randomized choices that is spread evenly over all candidates."""

DRAWS = 2000
"""The number of draws that estimate the probabilities of a rule that does not compute them."""

Keep = Literal["saved"]
File = str | os.PathLike[str]

Picked = tuple[int, float, float, float | None] | tuple[int, float, float, float | None, Any]
"""Index, mean, width, propensity and perhaps the receipt of a choice."""

Function = TypeVar("Function", bound=Callable[..., Any])

_alive: weakref.WeakSet[Policy] = weakref.WeakSet()
_fork = ExitStack()


def synchronized(method: Function) -> Function:
    """Hold the lock of the policy while the method runs."""

    @functools.wraps(method)
    def holding(self: Policy, *arguments: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *arguments, **options)

    return holding  # type: ignore[return-value]


@contextmanager
def locked(*policies: Policy) -> Iterator[None]:
    """Hold the locks of several policies, taken in one order everywhere, so that no two threads wait for each other."""
    locks = {id(policy._lock): policy._lock for policy in policies}
    with ExitStack() as stack:
        for number in sorted(locks):
            stack.enter_context(locks[number])
        yield


def _after_fork_in_child() -> None:
    """Renew the locks, because the threads that waited for them do not exist here, and the random numbers."""
    _fork.close()
    new: dict[int, threading.RLock] = {}
    policies = list(_alive)
    for policy in policies:
        policy._lock = new.setdefault(id(policy._lock), threading.RLock())
    for policy in policies:
        policy.reseed(None)


if hasattr(os, "register_at_fork"):  # no thread changes a policy during the fork, so the new process gets whole models
    os.register_at_fork(
        before=lambda: _fork.enter_context(locked(*_alive)),
        after_in_parent=_fork.close,
        after_in_child=_after_fork_in_child,
    )


class Policy(ABC):
    """A rule for choosing among candidates and learning from their rewards; the base class of all policies.

    The policy remembers nothing between `choose` and `learn`. Feedback may arrive late, in batches, out of order, or
    for an arm that another system chose. A call that raises an error has changed nothing.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared features x, whose effect is the same for all arms, and of arm-specific features z.
    seed : int or None
        The seed of the random draws; None draws fresh entropy.

    Attributes
    ----------
    notes : dict
        Anything that JSON can hold and that should be saved with the policy, such as how its features are computed.

    Examples
    --------
    Code that works with every policy passes the receipt of the choice on to `learn`:

    >>> from hybandits import Policy, Uniform
    >>> policy: Policy = Uniform(d1=1, d2=1, seed=0)
    >>> x, z = [[1.0], [1.0]], [[1.0], [0.5]]
    >>> choice = policy.choose(x, z, ["a", "b"])
    >>> policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0, receipt=choice.receipt)
    """

    _registry: ClassVar[dict[str, type[Policy]]] = {}
    """All policies that have been imported, by their names in files."""

    d1: int
    d2: int
    notes: dict[str, Any]

    receipt_is_of_the_round: ClassVar[bool] = False
    """True if a receipt is valid for every candidate of its round (HyRan) instead of only for the one chosen."""
    learns_from_sums: ClassVar[bool] = False
    """True if the policy can learn rows that stand for many rewards, as `fit.warm_start` teaches them."""
    _draws: ClassVar[bool] = True
    """True if the rule may draw random numbers, so that its decisions are counted."""
    _counts_arms: ClassVar[bool] = False
    """True if a decision may depend on how many arms have been met."""
    _needs_finite: ClassVar[bool] = False
    """True if features must be checked before `_pick`."""
    _not_settings: ClassVar[tuple[str, ...]] = ("seed",)
    """Arguments of the constructor that the policy does not keep: the random state stands for the seed."""
    _table: ArmTable
    _lock: threading.RLock
    _watch: ConstantFeatures | None
    """Examines the features of the first calls; None when that is over."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[cls._name_in_files()] = cls
        if "_pick" in cls.__dict__:  # the hooks of the rule that it replaces do not fit any more
            for hook in ("_pick_batch", "_propensities", "_propensities_batch", "_rank"):
                if hook not in cls.__dict__:
                    setattr(cls, hook, getattr(Policy, hook))

    def __init__(self, *, d1: int, d2: int, seed: int | None) -> None:
        self.d1, self.d2 = checks.dimensions(d1, d2)
        self.notes = {}
        self._start_stream(seed)
        self._known = 0
        self._watch = ConstantFeatures() if self.d1 else None
        self._make_lock()

    def _make_lock(self) -> None:
        self._lock = threading.RLock()
        _alive.add(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_lock()

    def _start_stream(self, seed: int | None) -> None:
        # Every class draws from a stream of its own, so that the same seed in a world or in a wrapped policy does not
        # tie their draws together.
        self._key = key_of_seed(seed, stream_of(type(self).__name__), self._depth())
        self._decisions = 0

    def _depth(self) -> int:
        return 0  # the number of policies inside this one

    @abstractmethod
    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        """Return index, mean, width and propensity of the choice, or index -1 if a feature is not finite.

        Random numbers come from the stream. Nothing about the policy may change. A fifth value is the receipt.
        """

    _pick_batch: Any = None
    """_pick_batch(batch, slots, threads): indices, means, widths and propensities of a batch; None: one by one."""

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        """Return the probability of each candidate; by default estimated by draws unless the choice is certain."""
        n = len(candidates.arms)
        choice = self._choice(candidates, stream)
        if choice.propensity == 1.0:
            return np.bincount([choice.index], minlength=n).astype(np.float64)
        numbers = [digest_of([stream.decision, stream.keyed, draw]) for draw in range(DRAWS)]
        picks = [self._pick(candidates, RandomStream(stream.key, number, KEYED))[0] for number in numbers]
        return np.bincount(picks, minlength=n) / DRAWS

    def _propensities_batch(self, batch: Batch, threads: int) -> FloatArray:
        """Return the probabilities of the candidates of many decisions, which have the same arms; none is admitted."""
        candidates = (self._candidates(x, z, batch.ids[0], False) for x, z in zip(batch.x, batch.z, strict=True))
        return np.stack([self._propensities(each, self._estimates()) for each in candidates])

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        """Fill m positions. By default the rule picks again and again from the candidates that are left."""
        left = np.arange(len(candidates.arms))
        choices: list[Choice] = []
        certain = True
        for position in range(m):
            choice = self._choice(candidates.take(left), stream.at_place(position))
            propensity = choice.propensity if certain and choice.propensity is not None else math.nan
            certain = certain and choice.propensity == 1.0
            index = int(left[choice.index])
            receipt = choices[0].receipt if choices and self.receipt_is_of_the_round else choice.receipt
            choices.append(choice._replace(index=index, propensity=propensity, receipt=receipt))
            left = left[left != index]
        return _columns(choices)

    def _ranking(
        self, candidates: Candidates, stream: RandomStream, indices: Slots, propensities: FloatArray
    ) -> Choices:
        """Return a ranking with means and widths in the model that takes this decision."""
        ranked = candidates.take(indices)
        mean, width = self._score(ranked, stream)
        return Choices(list(ranked.arms), indices, mean, width, propensities, [None] * len(indices))

    def _candidates(self, x: Any, z: Any, arms: Any, admit: bool) -> Candidates:
        """Check candidates; with `admit`, arms that are new become known."""
        table = self._table
        candidates = table.checked_candidates(x, z, arms, admit)
        if self._needs_finite:
            check_finite(candidates.x, candidates.z)
        if table.known != self._known:
            self._arms_changed()
        return candidates

    def _arms_changed(self) -> None:
        self._known = self._table.known

    def _stream(self, key: Hashable | None) -> RandomStream:
        if key is None:
            return RandomStream(self._key, self._decisions)
        return RandomStream(self._key, digest_of_key(key), KEYED)

    def _estimates(self) -> RandomStream:
        """The stream of estimated probabilities: the same for all decisions until the next reward is learned."""
        return RandomStream(self._key, self._table.rounds, KEYED)

    def _choice(self, candidates: Candidates, stream: RandomStream) -> Choice:
        picked = self._pick(candidates, stream)
        if picked[0] < 0:
            raise not_finite(candidates.x, candidates.z)
        return Choice(candidates.arms[picked[0]], *picked)

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        """Means and widths in the model that takes this decision."""
        return self.predict(candidates.x, candidates.z, candidates.arms)

    def _count(self, randomized: bool = False) -> None:
        if self._draws or randomized:
            self._decisions += 1

    def _examine(self, x: FloatArray, z: FloatArray) -> None:
        if self._watch is not None and self._watch.is_over(x, z):
            self._watch = None

    def _randomize(self, propensities: FloatArray, streams: Sequence[RandomStream], floor: float) -> RandomizedChoices:
        """Draw from the policy's own probabilities and the floor."""
        indices, probabilities = np.empty(len(propensities), np.int64), np.empty(propensities.shape)
        key, _, keyed = streams[0]
        numbers = np.array([stream.decision for stream in streams])
        draw_places(propensities, floor, key, RANDOMIZE + keyed, numbers, probabilities, indices)
        return RandomizedChoices(indices, probabilities, propensities)

    def _replaced(self, choice: Choice, index: int, candidates: Candidates, stream: RandomStream) -> Choice:
        if index == choice.index:
            return choice
        (mean,), (width,) = self._score(candidates.take(np.array([index])), stream)
        receipt = choice.receipt if self.receipt_is_of_the_round else None
        return Choice(candidates.arms[index], index, float(mean), float(width), None, receipt)

    def choose(
        self,
        x: Any = None,
        z: Any = None,
        arms: Iterable[Hashable] | CandidateSet | None = None,
        *,
        key: Hashable | None = None,
        randomize: bool = False,
        floor: float | None = None,
    ) -> Choice:
        """Choose one of n candidates.

        Parameters
        ----------
        x, z : arrays of shape (n, d1) and (n, d2)
            The features, one row per candidate. One of them may be left out if it has no columns.
        arms : list of ids, array of integers or CandidateSet, optional
            The id of each candidate; 0 to n-1 if left out. An id that the policy has not met is admitted.
        key : str, int or tuple of them, optional
            Names the decision, for example by the id of an event. The random numbers are then a function of the seed
            and the key, and the call changes nothing: the same model takes the same decision again, and admits no arms.
        randomize : bool, default=False
            Draw the arm from (1 - floor) p + floor / n, where p are the `propensities`, which do not depend on the key.
            Then every candidate may be chosen, and ``choice.propensity`` is exact, also where p itself is an estimate.
        floor : float, optional
            The share of randomized choices that is spread evenly over all candidates, 0.05 by default. With 0 a
            candidate whose p is 0 is never chosen.
        """
        if randomize or floor is not None:
            floor = checked_floor(floor, randomize)
        with self._lock:
            candidates = self._candidates(x, z, arms, key is None)
            stream = self._stream(key) if key is not None else new_tuple(RandomStream, (self._key, self._decisions, 0))
            choice = self._choice(candidates, stream)
            if floor is not None:
                own = self._propensities(candidates, self._estimates())
                drawn = self._randomize(own[None], [stream], floor)
                index = int(drawn.indices[0])
                choice = self._replaced(choice, index, candidates, stream)
                choice = choice._replace(propensity=float(drawn.probabilities[0, index]))
            if self._watch is not None:  # every call passes here: no call that does nothing
                self._examine(candidates.x, candidates.z)
            if key is None and (self._draws or randomize):
                self._count(randomize)
            return choice

    @synchronized
    def choose_batch(
        self,
        x: Any = None,
        z: Any = None,
        arms: Any = None,
        *,
        mask: Any = None,
        threads: int = 1,
        randomize: bool = False,
        floor: float | None = None,
    ) -> Choices:
        """Take many decisions against the model as it is: the same as so many calls of `choose`.

        Parameters
        ----------
        x, z : arrays of shape (B, n, d1) and (B, n, d2)
            The features of n candidates for each of B decisions.
        arms : list of ids, array of integers, CandidateSet or list of such lists, optional
            The ids of the candidates, the same for all decisions, or one list (or row of an array) for each.
        mask : bool array of shape (B, n), optional
            True for rows that are candidates, where decisions have different numbers of them. By default all are.
        threads : int, default=1
            The number of threads that share the work. It makes no difference to the decisions.
        randomize, floor
            As for `choose`.
        """
        batch = checked_batch(x, z, arms, mask, threads, self.d1, self.d2)
        if randomize or floor is not None or self._pick_batch is None:
            batch.check_finite()
            choices = []
            for b in range(batch.size):
                x_b, z_b, ids, rows = batch.candidates(b)
                choice = self.choose(x_b, z_b, ids, randomize=randomize, floor=floor)
                choices.append(choice._replace(index=int(rows[choice.index])))
            return _columns(choices)
        slots = look_up(batch, self._table)
        self._arms_changed()
        indices, means, widths, propensities = self._pick_batch(batch, slots, threads)
        for b in range(batch.size if self._watch is not None else 0):
            self._examine(*batch.candidates(b)[:2])
        if self._draws:
            self._decisions += batch.size
        chosen = [ids[i] for ids, i in zip(itertools.cycle(batch.ids), indices.tolist(), strict=False)]
        return Choices(chosen, indices, means, widths, propensities, [None] * batch.size)

    @synchronized
    def randomize_batch(
        self,
        x: Any = None,
        z: Any = None,
        arms: Any = None,
        *,
        keys: Sequence[Hashable],
        floor: float | None = None,
        threads: int = 1,
    ) -> RandomizedChoices:
        """Compute what ``choose(.., key=key, randomize=True)`` draws among the same arms for many keys.

        Nothing changes. `x` and `z` have shape (B, n, d1) and (B, n, d2), `arms` is one list for all decisions, and
        `keys` has one key for each.
        """
        floor = checked_floor(floor)
        batch = checked_batch(x, z, arms, None, threads, self.d1, self.d2)
        if len(keys) != batch.size or len(batch.ids) != 1:
            raise ValueError(
                f"got {len(keys)} keys for {batch.size} decisions with {len(batch.ids)} list(s) of arms: pass one key "
                "for each decision, and one list of arms"
            )
        if not keys:
            return RandomizedChoices(np.empty(0, np.int64), *np.empty((2, 0, batch.x.shape[1])))
        streams = [RandomStream(self._key, digest_of_key(key), KEYED) for key in keys]
        return self._randomize(self._propensities_batch(batch, threads), streams, floor)

    @synchronized
    def rank(
        self, x: Any = None, z: Any = None, arms: Any = None, m: int | None = None, *, key: Hashable | None = None
    ) -> Choices:
        """Choose arms for several positions, for pages that show more than one: the best first.

        Parameters
        ----------
        x, z, arms, key
            As for `choose`. The first position gets the arm that `choose` would choose.
        m : int, optional
            The number of positions. By default, and if there are fewer candidates, all candidates get one.

        Notes
        -----
        Policies with upper confidence bounds rank by these, and `HyRan` by means. `HyThompson` ranks by one draw,
        `HyIDS` chooses the first arm as usual and ranks the others by their means, `Uniform` draws an order, and
        `EpsilonGreedy` draws one with probability epsilon. `SupLinUCB`, and a rule of your own, choose the first arm,
        then the best of those that are left, and so on.
        """
        if m is not None:
            m = checks.count("m", m, least=1, why="it is the number of positions; leave it out to rank all")
        candidates = self._candidates(x, z, arms, key is None)
        check_finite(candidates.x, candidates.z)
        n = len(candidates.arms)
        ranking = self._rank(candidates, self._stream(key), n if m is None else min(m, n))
        self._examine(candidates.x, candidates.z)
        if key is None:
            self._count()
        return ranking

    @synchronized
    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return the probability with which `choose` would pick each candidate now.

        It is over everything that is random in a decision, and so the same for every key; with a key, arms that have
        not been met are not admitted first. Rules that draw without knowing their probabilities estimate them by draws.
        """
        candidates = self._candidates(x, z, arms, False)
        if key is None and self._counts_arms and self._table.unmet(candidates.arms):
            later = self.copy()  # `choose` would admit the arms first, which may change what it chooses
            later.admit(candidates.arms)
            return later.propensities(x, z, candidates.arms)
        return self._propensities(candidates, self._estimates())

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        """Learn one reward.

        Parameters
        ----------
        arm : hashable
            The id of the arm that was played.
        x, z : arrays of shape (d1,) and (d2,)
            Its features when it was played.
        reward : float
            The reward it brought.
        receipt : object, optional
            ``choice.receipt``, unchanged. Without it the row counts as a round in which the arm was the only
            candidate, which makes a difference for `HyRan` and `SupLinUCB` alone.
        """
        x, z = checked_vectors(x, z, self.d1, self.d2)
        value = np.array(checks.reward(reward))
        check_finite(x, z)
        checks.finite("reward", value, LIMIT)
        self.learn_batch([arm], x[None], z[None], value[None], receipts=[receipt])

    @synchronized
    def learn_batch(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        """Learn many rewards: one id, one row of x and z, one reward and perhaps one receipt each.

        The result is that of calling `learn` row by row. If any row is refused, none is learned.
        """
        ids = id_list(arms)
        self._learn_batch(ids, x, z, rewards, receipts)
        self._arms_changed()

    @abstractmethod
    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None: ...

    @abstractmethod
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        """Estimate the mean rewards of candidates and their widths without choosing; the policy does not change."""

    @property
    @abstractmethod
    def theta(self) -> FloatArray:
        """The estimated effect of the shared features."""

    @abstractmethod
    def beta(self, arm: Hashable) -> FloatArray:
        """Return the estimated effect of an arm's own features; the prior mean until the arm has learned."""

    @property
    def rounds(self) -> int:
        """The number of rewards learned."""
        return self._table.rounds

    def merge(self, other: Self) -> None:
        """Add what another policy with the same class and settings has learned on other data; it does not change."""
        check_mergeable(self, other)
        with locked(self, other):
            self._merge(other)
            self._arms_changed()

    def _merge(self, other: Self) -> None:
        table: Any = self._table
        table.merge(other._table)

    @property
    def arms(self) -> list[Hashable]:
        """The ids of all arms met and not forgotten, in the order in which they were met."""
        with self._lock:
            return self._table.arms

    @synchronized
    def admit(self, arms: Iterable[Hashable]) -> None:
        """Make arms known before they are candidates, as `choose` without a key and `learn` do by themselves."""
        ids = list(arms)
        for arm in ids:
            checks.plain_id(arm)
        self._table.admit(ids)
        self._arms_changed()

    @synchronized
    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        """Check and look up a list of ids once; pass the result as `arms` as long as the candidates stay the same."""
        return self._table.candidates(arms)

    @synchronized
    def forget(self, arm: Hashable) -> None:
        """Drop an arm and free its memory; what it has taught about the shared features stays."""
        self._table.forget(arm)
        self._arms_changed()

    def refresh(self) -> None:  # noqa: B027 - optional
        """Re-estimate learned settings from all rewards, so that their order no longer matters."""

    @property
    def learned(self) -> LearnedSettings | None:
        """The learned noise and scales; None for policies that do not learn their settings."""
        return None

    @synchronized
    def reseed(self, seed: int | None) -> None:
        """Begin another stream of random numbers, as if the policy had been constructed with this seed."""
        self._start_stream(seed)

    @synchronized
    def number_decisions(self, first: int) -> None:
        """Let the next decision have this number: its random numbers are a function of the seed and the number."""
        self._decisions = checks.count("first", first, least=0, why="it is the number of a decision")

    @synchronized
    def decision_numbers(self, count: int) -> tuple[int, int]:
        """Return the key and the number of the next decision, for a compiled loop that takes `count` of them."""
        first = self._decisions
        self._decisions += count if self._draws else 0
        return self._key, first

    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments with their present values, read from the attributes of the same names."""
        names = [name for name in parameters_of(type(self)) if name not in self._not_settings]
        for name in names:
            if not hasattr(self, name):
                raise AttributeError(
                    f"{type(self).__name__} has no attribute {name!r}: keep each argument of the constructor in an "
                    f"attribute of the same name, as in self.{name} = ..., so that it can be saved"
                )
        return {name: getattr(self, name) for name in names}

    def _config(self) -> dict[str, Any]:
        """The settings as a saved file holds them, without a wrapped policy, which is a part of the file."""
        return {name: value for name, value in self._settings().items() if not isinstance(value, Policy)}

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        """Make a policy from the settings of a saved file, the inverse of `_config`."""
        return cls(**config)

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={checks.short(value, 200)}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings}): {len(self.arms)} arms known, {self.rounds} rewards learned"

    @abstractmethod
    def _pack_parts(self) -> dict[str, Packed]:
        """Return what the policy has learned, as named parts of a file."""

    def save(self, file: File) -> None:
        """Write the policy, with its random state, to one .npz file, which is put in place when it is complete."""
        policy_file.write(file, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        return policy_file.packed(*self._pack())

    @classmethod
    def load(cls, file: File, *, seed: int | Keep | None = "saved") -> Self:
        """Read a policy of this class from a file written by `save`; see `hybandits.load`."""
        return cls._load(policy_file.read(file), str(file), seed)

    @classmethod
    def _load(cls, content: bytes, source: str, seed: int | Keep | None) -> Self:
        policy = Policy._unpack(*policy_file.unpacked(content, source), cls)
        if not isinstance(policy, cls):
            name, expected = type(policy)._name_in_files(), cls._name_in_files()
            raise FileError(f"{source} holds a {name}, not a {expected}: use hybandits.load")
        if seed != "saved":
            policy.reseed(seed)
        return policy

    @classmethod
    def from_bytes(cls, content: bytes, *, seed: int | Keep | None = "saved") -> Self:
        """Read a policy from what `to_bytes` returned; see `load`."""
        if not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(f"content must be bytes, got {type(content).__name__}: pass what to_bytes() returned")
        return cls._load(bytes(content), "the content", seed)

    def copy(self) -> Self:
        """Return an independent copy, random state included."""
        return self._unpack(*self._pack(), type(self))  # type: ignore[return-value]

    def start_delta(self) -> Self:
        """Return a policy with the same settings that has learned nothing, to learn into and to `merge` later."""
        return self._from_config(self._config())

    @classmethod
    def _name_in_files(cls) -> str:
        return cls.__name__ if cls.__module__.startswith("hybandits.") else f"{cls.__module__}:{cls.__name__}"

    @synchronized
    def _pack(self) -> Packed:
        parts = self._pack_parts()
        header = {
            "class": self._name_in_files(),
            "config": self._config(),
            "random": {"key": self._key, "decisions": self._decisions},
            "parts": {name: part for name, (part, _) in parts.items()},
        }
        if self.notes:
            header["notes"] = self.notes
        arrays = {f"{name}.{key}": value for name, (_, part) in parts.items() for key, value in part.items()}
        return header, arrays

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        policy = cls._from_config(config)
        policy._unpack_parts(parts)
        return policy

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        """Put the parts of a file into a policy that has just been made."""
        raise NotImplementedError

    @staticmethod
    def _unpack(header: dict[str, Any], arrays: dict[str, np.ndarray], expected: type[Policy] | None = None) -> Policy:
        name = str(header.get("class"))
        kind = Policy._registry.get(name)
        if expected is not None and name in (expected._name_in_files(), f"__main__:{expected.__name__}"):
            kind = expected  # not another class of that name, such as one that was defined again
        if name == "Bandit":
            raise FileError("the file holds a Bandit, which is no policy by itself: use hybandits.load")
        if kind is None:  # a file must not cause an import
            module = name.rpartition(":")[0] or "of the class"
            raise FileError(
                f"the file holds a policy of class {name!r}, which has not been imported: if you trust the file, "
                f"import the module {module!r} first (on the command line: evaluate --import {module})"
            )
        try:
            parts: dict[str, Packed] = {}
            for name, part in header["parts"].items():
                start = name + "."
                parts[name] = part, {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
            policy = kind._restore(header["config"], parts)
            policy._key = policy_file.counter("key", header["random"]["key"], 2**63)
            policy._decisions = policy_file.counter("decisions", header["random"]["decisions"])
            policy.notes = dict(header.get("notes", {}))
        except FileError:
            raise
        except Exception as problem:  # constructors and NumPy refuse wrong values in many ways
            raise FileError(f"a part of the file is missing or wrong ({problem}): the file is corrupt") from None
        return policy


class RidgePolicy(Policy):
    """A policy that estimates rewards with one `HybridRidge`; a subclass adds the rule, see docs/adding-a-policy.md.

    Parameters
    ----------
    d1, d2, seed
        As for `Policy`.
    ridge : float, default=1.0
        The strength with which estimates are shrunk towards zero (lambda).
    """

    learns_from_sums = True

    _table: HybridRidge

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self._table = self._make_estimator(ridge)
        if not self._table.d1:
            self._watch = None

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=self.d1, d2=self.d2, ridge=ridge)

    @property
    def estimator(self) -> HybridRidge:
        """The estimator of the rewards."""
        return self._table

    @property
    def ridge(self) -> float:
        """The present value of lambda."""
        return self._table.ridge

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        return self._table.score(candidates.x, candidates.z, candidates.slots)

    def _pick_compiled(
        self, rule: Any, batch: Batch, slots: Slots, threads: int, together: bool = False
    ) -> tuple[Any, ...]:
        """Choices of a batch by the kernels of a rule; with `together`, by those for bounds with large blocks."""
        size, rounds = batch.size, self._table.rounds
        index, mean, width, propensity = np.empty(size, np.int64), np.empty(size), np.empty(size), np.ones(size)

        def work(first: int, last: int) -> int:
            if together:
                return int(choose_together(rule, batch.x, batch.z, slots[0], rounds, first, last, index, mean, width))
            refused: int = choose_batch(
                rule, batch.x, batch.z, slots, batch.mask, rounds, self._key, self._decisions, first, last, index, mean,
                width, propensity,
            )  # fmt: skip
            return refused

        in_threads(work, batch, threads)
        return index, mean, width, propensity

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        with self._lock:
            self._table.learn(arm, x, z, reward)
            if self._table.known != self._known:
                self._arms_changed()

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        check_receipts(receipts, len(arms))
        self._table.learn_batch(arms, x, z, rewards)

    @synchronized
    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        *,
        pulls: Mapping[Hashable, int],
        moments: Moments | None = None,
    ) -> None:
        """Learn rows with the sums of squares and products of more rewards (see `hybandits.evaluation.fit`).

        `pulls` is the number of rewards of each arm, and policies that learn their settings need `moments`.
        """
        for arm, count in pulls.items():
            checks.count(f"pulls of {arm!r}", count, least=0, why="it is a number of rounds")
        self._table.learn_summary(arms, x, z, rewards, pulls, moments)
        self._arms_changed()

    @synchronized
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        candidates = self._candidates(x, z, arms, False)
        return self._table.score(candidates.x, candidates.z, candidates.slots)

    @property
    def theta(self) -> FloatArray:
        with self._lock:
            return self._table.theta

    @synchronized
    def beta(self, arm: Hashable) -> FloatArray:
        return self._table.beta(arm)

    def _pack_parts(self) -> dict[str, Packed]:
        return {"estimator": self._table.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        estimator = type(self._table).unpack(*parts["estimator"])
        if (estimator.d1, estimator.d2) != (self._table.d1, self._table.d2):
            raise FileError("the estimator's dimensions do not fit the policy's: the file is corrupt")
        self._table = estimator
        self._arms_changed()


def load(file: File, *, seed: int | Keep | None = "saved") -> Policy:
    """Read a policy of any class from a file written by `Policy.save`.

    Parameters
    ----------
    file : str or path
        A file can name any settings, so load only files that you trust to be yours.
    seed : int or None, optional
        Begin another stream of random numbers. By default the policy takes the decisions that the saved one would take.
    """
    return Policy.load(file, seed=seed)


def check_receipts(receipts: Sequence[Any] | None, n: int) -> Sequence[Any]:
    """One receipt per row, None where there is none."""
    if receipts is None:
        return [None] * n
    receipts = list(receipts)
    if len(receipts) != n:
        raise ValueError(f"receipts has {len(receipts)} entries but there are {n} rows: pass one per row or none")
    return receipts


def check_mergeable(policy: Policy, other: object) -> None:
    """Raise an error that names the difference unless both policies have the same class and settings."""
    if type(other) is not type(policy):
        raise TypeError(f"only another {type(policy).__name__} can be merged, got {type(other).__name__}")
    if other is policy:
        raise ValueError("a policy cannot be merged with itself: that would count everything twice")
    config, other_config = policy._config(), other._config()
    for name in config:
        if config[name] != other_config[name]:
            values = f"{checks.short(config[name], 200)} here, {checks.short(other_config[name], 200)} there"
            raise ValueError(f"cannot merge policies with different {name}: {values}; construct both alike")


def checked_floor(floor: float | None, randomize: bool = True) -> float:
    if not randomize:
        raise ValueError(f"floor={floor!r} makes no difference without randomize=True: pass both, or leave out floor")
    return FLOOR if floor is None else checks.share("floor", floor, "it is the share that is spread evenly")


def _columns(choices: Sequence[Choice]) -> Choices:
    propensities = [math.nan if choice.propensity is None else choice.propensity for choice in choices]
    return Choices(
        [choice.arm for choice in choices],
        np.array([choice.index for choice in choices], np.int64),
        np.array([choice.mean for choice in choices], float),
        np.array([choice.width for choice in choices], float),
        np.array(propensities, float),
        [choice.receipt for choice in choices],
    )
