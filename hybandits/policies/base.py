"""The contract that every policy keeps; docs/contract.md describes it in words."""

from __future__ import annotations

import enum
import io
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, BinaryIO, ClassVar, NamedTuple, Self

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import CandidateSet, Slots
from hybandits.estimators.constant_features import CancellingWatch
from hybandits.estimators.inputs import id_list
from hybandits.estimators.learned import LearnedSettings
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream, digest_of, digest_of_key, key_of_seed, stream_of
from hybandits.estimators.ridge import Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels.decisions import draw_places
from hybandits.kernels.random import KEYED, LOT
from hybandits.policies.batch import Batch, Choices, checked_batch
from hybandits.policies.ranking import Ranking, Rankings, number_of_places, put_together
from hybandits.policies.settings import WithSettings
from hybandits.policies.threads import Guarded

FLOOR = 0.05
"""The share of choices by lot that is spread evenly over all candidates."""


class Keep(enum.Enum):
    """Stands for the random numbers that a file has, where a seed may be given."""

    KEEP = "the saved random numbers"


KEEP = Keep.KEEP


class Drawn(NamedTuple):
    """What a choice by lot draws, as `Policy.draw_lot` returns it.

    Attributes
    ----------
    index : int
        The row of the arm that is drawn.
    chances : array of shape (n,)
        The probability of every candidate: (1 - floor) own + floor / n.
    own : array of shape (n,)
        The policy's own probabilities.
    """

    index: int  # type: ignore[assignment]  # not tuple.index
    chances: FloatArray
    own: FloatArray


class Lots(NamedTuple):
    """What several choices by lot draw, as `Policy.draw_lots` returns it; entry b is about decision b.

    Attributes
    ----------
    indices : int array of shape (B,)
        The rows of the arms that are drawn.
    chances, own : array of shape (B, n)
        The probabilities of the candidates, and the policy's own before the floor.
    """

    indices: Slots
    chances: FloatArray
    own: FloatArray


class Choice(NamedTuple):
    """One decision of a policy, as `Policy.choose` returns it.

    Attributes
    ----------
    arm : hashable
        The id of the arm to play.
    index : int
        The row of that arm among the candidates, so that its features are ``x[index]`` and ``z[index]``.
    mean : float
        The reward that the policy expects of the arm.
    width : float
        How uncertain `mean` is: its standard error in units of the noise. Multiply it by the standard deviation of the
        noise to get the units of the reward. It shrinks as the policy learns about similar features.
    propensity : float or None
        The probability with which the policy chooses this arm in this situation: 1.0 for a policy that does not draw
        random numbers, None if the probability is not estimated. Keep it if the choices are to be evaluated later.
    receipt : object
        What the policy wants back together with the reward, None for most policies. Pass it on unchanged, as
        ``policy.learn(..., receipt=choice.receipt)``.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> choice = Greedy(d1=1, d2=0).choose([[1.0], [2.0]], arms=["a", "b"])
    >>> choice.arm, choice.index, choice.mean, choice.width
    ('a', 0, 0.0, 1.0)
    """

    arm: Hashable
    index: int  # type: ignore[assignment]  # the name users expect, not tuple.index
    mean: float
    width: float
    propensity: float | None
    receipt: Any = None


class Policy(Guarded, WithSettings, ABC):
    """A rule for choosing among candidates and learning from their rewards; the base class of all policies.

    The policy remembers nothing between `choose` and `learn`. Feedback may arrive late, in batches, out of order, or
    for an arm that somebody else chose. A call that raises an error has changed nothing.

    To write a policy of your own, subclass `RidgePolicy` (see docs/adding-a-policy.md).

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    seed : int or None
        The seed of the policy's random draws. None draws fresh entropy.

    Attributes
    ----------
    d1, d2 : int
        The numbers of features, as given.
    theta : ndarray
        The estimated effect of the shared features.
    arms : list
        The ids of all arms met and not forgotten, in the order in which they were met.
    rounds : int
        The number of rewards learned.
    notes : dict
        Anything that should be kept with the policy, for example how its features are computed. It must consist of
        values that JSON can hold, and is saved and loaded with the policy.

    Examples
    --------
    Code that works with every policy passes the receipt of the choice on to `learn`:

    >>> from hybandits import Policy, Uniform
    >>> def play_once(policy: Policy, x, z, arms, reward_of):
    ...     choice = policy.choose(x, z, arms)
    ...     row = x[choice.index], z[choice.index]
    ...     policy.learn(choice.arm, *row, reward=reward_of(choice.arm), receipt=choice.receipt)
    >>> policy = Uniform(d1=1, d2=1, seed=0)
    >>> play_once(policy, [[1.0], [1.0]], [[1.0], [1.0]], ["a", "b"], {"a": 1.0, "b": 0.0}.get)
    >>> policy.rounds
    1
    """

    _registry: ClassVar[dict[str, type[Policy]]] = {}
    """All policies that have been imported, by module:Class."""

    d1: int
    d2: int

    notes: dict[str, Any]

    receipt_is_of_the_round: ClassVar[bool] = False
    """Whether a receipt is valid for every candidate of its round (HyRan) instead of only for the one chosen."""

    learns_from_sums: ClassVar[bool] = False
    """Whether the policy can learn rows that stand for many rewards, as `fit.warm_start` teaches them."""

    _watch: CancellingWatch | None = None
    """Looks at the candidates of the first calls; None if nothing is left to look for, or another policy looks."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[f"{cls.__module__}:{cls.__name__}"] = cls

    def __init__(self, *, d1: int, d2: int, seed: int | None) -> None:
        self.d1, self.d2 = checks.dimensions(d1, d2)
        self.notes = {}
        # Every class draws from a stream of its own, so that the same seed in a world or in a wrapped policy does not
        # tie their draws together.
        self._key = key_of_seed(seed, stream_of(type(self).__name__), self._depth())
        self._decisions = 0
        self._make_lock()

    def _depth(self) -> int:
        """How many policies this one wraps."""
        return 0

    def _lot(self, key: Hashable | None) -> RandomStream:
        """The random numbers of the next decision, or of the decision that the caller names by a key."""
        if key is None:
            return RandomStream(self._key, self._decisions)
        return RandomStream(self._key, digest_of_key(key), KEYED)

    def _look_at(self, x: FloatArray, z: FloatArray) -> None:
        """Let the watch see the candidates of a call that succeeds."""
        if self._watch is not None and self._watch.is_over(x, z):
            self._watch = None

    def reseed(self, seed: int | None) -> None:
        """Begin another stream of random numbers, as if the policy had been constructed with this seed.

        Workers that start from the same file or the same process should draw different numbers: give each a seed of
        its own, or None for fresh entropy. What has been learned stays.
        """
        key = key_of_seed(seed, stream_of(type(self).__name__), self._depth())
        with self._lock:
            self._key, self._decisions = key, 0

    def _after_fork(self) -> None:
        """Draw other numbers than the process that this one was forked from."""
        self.reseed(None)

    def number_decisions(self, first: int) -> None:
        """Let the next decision have this number.

        The random numbers of a decision are a function of the seed and its number, so a policy that does not learn
        takes the same decision whenever it comes to the same number.
        """
        number = checks.count("first", first, least=0, why="it is the number of a decision")
        with self._lock:
            self._decisions = number

    # -------------------------------------------------------------- the contract

    @abstractmethod
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
        x : array of shape (n, d1)
            The shared features, one row per candidate. It may be left out if d1 = 0.
        z : array of shape (n, d2)
            The arm-specific features, one row per candidate. It may be left out if d2 = 0.
        arms : list of ids, array of integers or CandidateSet, optional
            The id of each candidate; 0 to n-1 if left out. An id that the policy has not met is admitted.
        key : str, int or tuple of them, optional
            Names the decision, for example by the id of an event. The random numbers are then a function of the seed
            and the key, and the call changes nothing: asked again, the same model takes the same decision. Arms that
            the policy has not met are not admitted.
        randomize : bool, default=False
            Draw the arm from (1 - floor) p + floor / n, where p are the `propensities` of this decision. Then every
            candidate may be chosen, and ``choice.propensity`` is exact, also where p itself is an estimate.
        floor : float, optional
            The share of choices by lot that is spread evenly over all candidates, 0.05 by default. With 0 a candidate
            whose p is 0 is never chosen.

        Returns
        -------
        Choice
            The arm to play, with its estimate and its probability.
        """

    def draw_lot(
        self,
        x: Any = None,
        z: Any = None,
        arms: Any = None,
        *,
        key: Hashable | None = None,
        floor: float | None = None,
    ) -> Drawn:
        """Say what the next ``choose(.., key=key, randomize=True)`` draws, and from which chances; nothing changes.

        Returns
        -------
        Drawn
            The index of the candidate, its lot's chances, and the policy's own probabilities before the floor.
        """
        floor = checked_floor(floor)
        with self._lock:
            own = self.propensities(x, z, arms, key=key)
            lots = self._drawn(own[None], [self._lot(key)], floor)
        return Drawn(int(lots.indices[0]), lots.chances[0], own)

    def draw_lots(
        self,
        x: Any = None,
        z: Any = None,
        arms: Any = None,
        *,
        keys: Sequence[Hashable],
        floor: float | None = None,
        threads: int = 1,
    ) -> Lots:
        """Say what so many calls of ``choose(.., key=key, randomize=True)`` among the same arms draw; nothing changes.

        Parameters
        ----------
        x, z : arrays of shape (B, n, d1) and (B, n, d2)
            The features of the candidates of each decision.
        arms : list of ids, optional
            The candidates, the same for all decisions; 0 to n-1 if left out.
        keys : list of B keys
            One for each decision, as `choose` takes them.
        floor : float, optional
            As for `choose`.
        threads : int, default=1
            Threads that share the work, where the policy can.

        Returns
        -------
        Lots
            What `draw_lot` returns for each decision.
        """
        floor = checked_floor(floor)
        batch = checked_batch(x, z, arms, None, threads, self.d1, self.d2)
        if len(keys) != batch.size or len(batch.ids) != 1:
            raise ValueError(
                f"there are {len(keys)} keys for {batch.size} decisions with {len(batch.ids)} list(s) of arms: pass "
                "one key for each decision, and one list of arms for all"
            )
        if not keys:
            nothing = np.empty((0, batch.x.shape[1]))
            return Lots(np.empty(0, np.int64), nothing, nothing)
        with self._lock:
            lots = [RandomStream(self._key, digest_of_key(key), KEYED) for key in keys]
            return self._drawn(self._own_lots(batch, keys, lots, threads), lots, floor)

    def _own_lots(
        self, batch: Batch, keys: Sequence[Hashable], lots: Sequence[RandomStream], threads: int
    ) -> FloatArray:
        """`propensities` of each decision, whose key and lot are given."""
        arms = batch.ids[0]
        return np.stack([self.propensities(batch.x[b], batch.z[b], arms, key=key) for b, key in enumerate(keys)])

    def _drawn(self, own: FloatArray, lots: Sequence[RandomStream], floor: float) -> Lots:
        """Draw from the policy's own probabilities and the floor."""
        indices, chances = np.empty(len(own), np.int64), np.empty(own.shape)
        key, _, keyed = lots[0]
        draw_places(own, floor, key, LOT + keyed, np.array([lot.decision for lot in lots]), chances, indices)
        return Lots(indices, chances, own)

    def _choose_by_lot(
        self, x: Any, z: Any, arms: Any, key: Hashable | None, randomize: bool, floor: float | None
    ) -> Choice:
        if not randomize:
            raise ValueError(
                f"floor={floor!r} makes no difference without randomize=True: pass both, or leave out floor"
            )
        arms = kept(arms)
        with self._lock:
            lot, before = self._lot(key), self._decisions
            # Asked before the policy chooses: they are the probabilities of its next decision.
            index, chances, _ = self.draw_lot(x, z, arms, key=key, floor=floor)
            choice = self.choose(x, z, arms, key=key)
            if key is None:
                self._decisions = before + 1  # rules that do not draw by themselves have not counted it
            return self._instead(choice, index, x, z, arms, lot)._replace(propensity=float(chances[index]))

    def _instead(self, choice: Choice, index: int, x: Any, z: Any, arms: Any, lot: RandomStream) -> Choice:
        """The choice of another candidate than the policy's own; its propensity is left open."""
        if index == choice.index:
            return choice
        mean, width = self._scores(x, z, arms, lot)
        receipt = choice.receipt if self.receipt_is_of_the_round else None
        return Choice(ids_of(arms, len(mean))[index], index, float(mean[index]), float(width[index]), None, receipt)

    def _scores(self, x: Any, z: Any, arms: Any, lot: RandomStream) -> Prediction:
        """`predict` by the model that takes the decision with this lot, where there are several."""
        return self.predict(x, z, arms)

    def rank(
        self, x: Any = None, z: Any = None, arms: Any = None, m: int | None = None, *, key: Hashable | None = None
    ) -> Ranking:
        """Choose arms for several places, for pages that show more than one: the best first.

        Parameters
        ----------
        x, z, arms, key
            As for `choose`. The first place gets the arm that `choose` would choose.
        m : int, optional
            The number of places. By default, and if there are fewer candidates, all candidates get one.

        Returns
        -------
        Ranking
            Arms, indices, means, widths and propensities, one of each for every place.

        Notes
        -----
        Policies with upper confidence bounds rank by these, and `HyRan` by means. `HyThompson` ranks by one draw,
        `HyIDS` chooses the first arm as usual and ranks the others by their means, `Uniform` draws an order, and
        `EpsilonGreedy` draws one with probability epsilon. `SupLinUCB`, and a rule of your own, choose the first arm,
        then the best of those that are left, and so on.
        """
        arms = kept(arms)
        with self._lock:
            n = len(self.predict(x, z, arms).mean)  # which checks everything, before anything changes
            ids = ids_of(arms, n)
            left = np.arange(n)
            choices: list[Choice] = []
            certain = True
            for place in range(number_of_places(m, n)):
                its_key = key if key is None or place == 0 else (key, place)
                its_arms = arms if place == 0 else [ids[i] for i in left.tolist()]
                choice = self.choose(_rows_of(x, left), _rows_of(z, left), its_arms, key=its_key)
                propensity = choice.propensity if certain and choice.propensity is not None else math.nan
                certain = certain and choice.propensity == 1.0
                index = int(left[choice.index])
                receipt = choices[0].receipt if choices and self.receipt_is_of_the_round else choice.receipt
                choices.append(choice._replace(index=index, propensity=propensity, receipt=receipt))
                left = left[left != index]
        return Ranking(
            [choice.arm for choice in choices],
            np.array([choice.index for choice in choices], np.int64),
            np.array([choice.mean for choice in choices], float),
            np.array([choice.width for choice in choices], float),
            np.array([choice.propensity for choice in choices], float),
            [choice.receipt for choice in choices],
        )

    def _place_probabilities(self, x: Any, z: Any, arms: Any, places: int, key: Hashable | None) -> FloatArray:
        """The probability of each candidate (rows) in each of the first places (columns) of the next `rank`.

        NaN where it is not known. This is that of a rule that is certain; such a ranking changes nothing with a key.
        Arms that the next `rank` will meet must have been met (`_meet`).
        """
        ranking = self.rank(x, z, arms, places, key=0 if key is None else key)
        matrix = np.full((len(self.predict(x, z, arms).mean), places), np.nan)
        if (ranking.propensities == 1.0).all():
            matrix[:] = 0.0
            matrix[ranking.indices, np.arange(places)] = 1.0
        return matrix

    def admit(self, arms: Iterable[Hashable]) -> None:
        """Let the policy know arms before they are candidates.

        `choose` and `learn` do so by themselves. It makes a difference where a policy counts the arms it has met, and
        where choices have keys, which admit no arms.
        """
        ids = list(arms)
        for arm in ids:
            checks.plain_id(arm)
        with self._lock:
            self._meet(ids)

    def _meet(self, arms: Sequence[Hashable]) -> None:
        """Admit arms as `choose` would; everything has been checked."""

    def rank_batch(
        self, x: Any = None, z: Any = None, arms: Any = None, m: int | None = None, *, mask: Any = None
    ) -> Rankings:
        """Rank the candidates of many decisions against the model as it is: the same as so many calls of `rank`.

        Parameters
        ----------
        x, z, arms, mask
            As for `choose_batch`.
        m : int, optional
            The number of places, by default that of the candidates.

        Returns
        -------
        Rankings
            Arms, indices, means, widths and propensities, one row for every decision.
        """
        batch = checked_batch(x, z, arms, mask, 1, self.d1, self.d2)
        places = number_of_places(m, batch.x.shape[1])
        with self._lock:
            batch.check_distinct()
            batch.check_finite()
            rows = [batch.rows(b) for b in range(batch.size)]
            rankings = [self.rank(x_b, z_b, ids, places) for x_b, z_b, ids, _ in rows]
        return put_together(rankings, [candidates for _, _, _, candidates in rows], places)

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
        x : array of shape (B, n, d1)
            The shared features of n candidates for each of B decisions. It may be left out if d1 = 0.
        z : array of shape (B, n, d2)
            The arm-specific features. It may be left out if d2 = 0.
        arms : list of ids, array of integers, CandidateSet or list of such lists, optional
            The ids of the candidates, the same for all decisions, or one list for each; 0 to n-1 if left out. An array
            of shape (B, n) has one row of ids for each decision.
        mask : bool array of shape (B, n), optional
            Which rows are candidates, where decisions have different numbers of them. By default all are.
        threads : int, default=1
            How many threads share the work. It makes no difference to the decisions.
        randomize, floor
            As for `choose`.

        Returns
        -------
        Choices
            Arms, indices, means, widths and propensities.
        """
        batch = checked_batch(x, z, arms, mask, threads, self.d1, self.d2)
        with self._lock:
            batch.check_distinct()
            batch.check_finite()
            choices, indices = [], np.empty(batch.size, np.int64)
            for b in range(batch.size):
                x_b, z_b, ids, places = batch.rows(b)
                choice = self.choose(x_b, z_b, ids, randomize=randomize, floor=floor)
                choices.append(choice)
                indices[b] = places[choice.index]
        return Choices(
            [choice.arm for choice in choices],
            indices,
            np.array([choice.mean for choice in choices], float),
            np.array([choice.width for choice in choices], float),
            np.array([np.nan if choice.propensity is None else choice.propensity for choice in choices], float),
            [choice.receipt for choice in choices],
        )

    @abstractmethod
    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        """Learn one reward.

        Parameters
        ----------
        arm : hashable
            The id of the arm that was played.
        x : array of shape (d1,)
            The shared features of that arm when it was played.
        z : array of shape (d2,)
            Its arm-specific features.
        reward : float
            The reward it brought.
        receipt : object, optional
            ``choice.receipt``, unchanged. Without it the row counts as a round in which the arm was the only
            candidate, which makes a difference for `HyRan` and `SupLinUCB` alone.
        """

    @abstractmethod
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

        The result is the same as that of calling `learn` row by row, to the bit; only where the ridge grows with the
        arms met (`AsWritten` without `arms`) it may differ by rounding. If any row is refused, none is learned.
        """

    @abstractmethod
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        """Estimate the mean rewards of candidates and their widths without choosing; the policy does not change."""

    @abstractmethod
    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Compute the probability with which `choose` would pick each candidate now; the policy does not change.

        With a key, the probabilities are those of the `choose` with that key.
        """

    @property
    @abstractmethod
    def theta(self) -> FloatArray:
        """The estimated effect of the shared features."""

    @abstractmethod
    def beta(self, arm: Hashable) -> FloatArray:
        """Return the estimated effect of an arm's own features.

        Until the arm has learned it is the prior mean: zero, or what arms have in common where that is learned.
        """

    @property
    @abstractmethod
    def arms(self) -> list[Hashable]:
        """The ids of all arms met and not forgotten, in the order in which they were met."""

    @abstractmethod
    def forget(self, arm: Hashable) -> None:
        """Drop an arm and free its memory; if it is met again, it starts from nothing.

        What the arm has taught about the shared features stays.
        """

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add what another policy with the same class and settings has learned on other data.

        The other policy does not change.
        """

    def refresh(self) -> None:
        """Estimate learned settings afresh from all rewards, so that their order no longer matters.

        Policies that do not learn their settings have nothing to refresh.
        """

    @property
    def learned(self) -> LearnedSettings | None:
        """What has been learned about noise and scales; None for policies that do not learn their settings."""
        return None

    @abstractmethod
    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        """Check and look up a list of ids once; pass the result as `arms` as long as the candidates stay the same."""

    @property
    @abstractmethod
    def rounds(self) -> int:
        """The number of rewards learned."""

    @abstractmethod
    def _pack_parts(self) -> dict[str, Packed]:
        """Everything that the policy has learned, as named parts of a file."""

    @abstractmethod
    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        """Put the parts of a file into a policy that has just been made by `_from_config`."""

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings}): {len(self.arms)} arms known, {self.rounds} rewards learned"

    # -------------------------------------------------------------- files

    def save(self, file: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the policy, with its random state, to one .npz file, or to a file object that is open for writing.

        A file is put in place in one step, so that an old one stays until the new one is complete. Ids of arms must be
        str, int or tuples of them.
        """
        policy_file.write(file, *self._pack())

    def to_bytes(self) -> bytes:
        """Return what `save` would write."""
        buffer = io.BytesIO()
        self.save(buffer)
        return buffer.getvalue()

    @classmethod
    def load(cls, file: str | os.PathLike[str] | BinaryIO, *, seed: int | Keep | None = KEEP) -> Self:
        """Read a policy of this class from a file written by `save`, or from a file object.

        The loaded policy takes the same decisions that the saved one would have taken, and so does every other policy
        loaded from the same file. With a seed it draws other numbers: see `reseed`.
        """
        policy = Policy._unpack(*policy_file.read(file), cls)
        if not isinstance(policy, cls):
            kind, wanted = type(policy).__name__, cls.__name__
            if kind == wanted:  # two classes of one name
                kind, wanted = f"{type(policy).__module__}.{kind}", f"{cls.__module__}.{wanted}"
            name = policy_file.name_of(file)
            raise FileError(f"{name} holds a {kind}, not a {wanted}: load it with {kind}.load()")
        if not isinstance(seed, Keep):
            policy.reseed(seed)
        return policy

    @classmethod
    def from_bytes(cls, content: bytes, *, seed: int | Keep | None = KEEP) -> Self:
        """Read a policy from what `to_bytes` returned; see `load`."""
        if not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(f"content must be bytes, got {type(content).__name__}: pass what to_bytes() returned")
        return cls.load(io.BytesIO(content), seed=seed)

    def copy(self) -> Self:
        """Return an independent copy, random state included."""
        return self._unpack(*self._pack(), type(self))  # type: ignore[return-value]

    def start_delta(self) -> Self:
        """Return a policy with the same settings that has learned nothing, to learn what this one is to be told.

        A worker decides with a copy of the model and learns rewards into a delta. `merge(delta)` then adds exactly
        these rewards to the model, wherever it is, as if it had learned them itself.
        """
        return self._from_config(self._config())

    def _pack(self) -> Packed:
        with self._lock:
            return self._packed()

    def _packed(self) -> Packed:
        parts = self._pack_parts()
        header = {
            "class": type(self).__name__,
            "config": self._config(),
            "random": {"key": self._key, "decisions": self._decisions},
            "parts": {name: part for name, (part, _) in parts.items()},
        }
        if not _is_built_in(type(self)):
            header["module"] = type(self).__module__  # nothing is imported because a file says so
        if self.notes:
            header["notes"] = self.notes
        arrays = {f"{name}.{key}": value for name, (_, part) in parts.items() for key, value in part.items()}
        return header, arrays

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        policy = cls._from_config(config)
        policy._unpack_parts(parts)
        return policy

    def _restore_random(self, saved: dict[str, Any]) -> None:
        if "bit_generator" in saved:  # files of version 1 have the state of a generator that is no longer used
            saved = {"key": digest_of(saved), "decisions": 0}
        self._key = policy_file.number_below("key", saved["key"], 2**63)
        self._decisions = policy_file.counter("decisions", saved["decisions"])

    @staticmethod
    def _unpack(header: dict[str, Any], arrays: dict[str, np.ndarray], expected: type[Policy] | None = None) -> Policy:
        name, module = header.get("class"), header.get("module")
        kind = _class_of_file(name, module, expected)
        if kind is None:
            raise FileError(_unknown_class(name, module))
        try:
            parts: dict[str, Packed] = {}
            for name, part in header["parts"].items():
                start = name + "."
                parts[name] = part, {k[len(start) :]: v for k, v in arrays.items() if k.startswith(start)}
            policy = kind._restore(header["config"], parts)
            policy._restore_random(header["random"])
            policy.notes = dict(header.get("notes", {}))
        except FileError:
            raise
        except Exception as problem:  # constructors and NumPy refuse wrong values in many ways
            raise policy_file.unfit_part(problem) from None
        return policy


def _is_built_in(kind: type[Policy]) -> bool:
    return kind.__module__.startswith("hybandits.")


def _class_of_file(name: Any, module: Any, expected: type[Policy] | None) -> type[Policy] | None:
    """The class that a file names; None if it has not been imported.

    Files of policies of hybandits have no module, and a class of one's own never stands in for them. Nor does it for a
    class of the same name in another module, unless the file cannot say which that was (it was a script's, or the file
    is of an old version), and there is only one.
    """
    if expected is not None and expected.__name__ != name:
        expected = None
    if expected is not None and module == (None if _is_built_in(expected) else expected.__module__):
        return expected
    named = [kind for kind in Policy._registry.values() if kind.__name__ == name]
    if module is None:
        built_in = [kind for kind in named if _is_built_in(kind)]
        if built_in:
            return built_in[0]
    elif (exact := Policy._registry.get(f"{module}:{name}")) is not None or module != "__main__":
        return exact
    if expected is not None:
        return expected
    own = [kind for kind in named if not _is_built_in(kind)]
    return own[0] if len(own) == 1 else None


def _unknown_class(name: Any, module: Any) -> str:
    """What to say of a file whose class has not been imported. Nothing is imported because a file says so."""
    if not isinstance(module, str) or module == "__main__":
        remedy = "import the module that defines it first"
    else:
        remedy = (
            f"if you trust the file, import the module {module!r} first (on the command line: evaluate --import "
            f"{module})"
        )
    return f"the file holds a policy of class {name!r}, which is not known here: {remedy}"


def load(file: str | os.PathLike[str] | BinaryIO, *, seed: int | Keep | None = KEEP) -> Policy:
    """Read a policy of any class from a file written by `Policy.save`.

    Parameters
    ----------
    file : str, path or file object
        The file. A file can name any settings, so load only files that you trust to be yours.
    seed : int or None, optional
        Begin another stream of random numbers, None for fresh entropy. By default the saved one goes on, in every
        policy that is loaded from the file.

    Returns
    -------
    Policy
        The policy, ready to go on: it takes the same decisions that the saved one would have taken.

    Raises
    ------
    FileError
        If the file is truncated, corrupt, written by something else, or holds a class that has not been imported.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hybandits import Greedy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Greedy(d1=2, d2=1).save(Path(folder) / "policy.npz")
    ...     load(Path(folder) / "policy.npz")
    Greedy(d1=2, d2=1, ridge=1.0): 0 arms known, 0 rewards learned
    """
    return Policy.load(file, seed=seed)


def check_receipts(receipts: Sequence[Any] | None, n: int) -> Sequence[Any]:
    """Return one receipt per row, None where there is none."""
    if receipts is None:
        return [None] * n
    receipts = list(receipts)
    if len(receipts) != n:
        raise ValueError(
            f"receipts has {len(receipts)} entries but there are {n} rows: pass one per row or none at all"
        )
    return receipts


def check_mergeable(policy: Policy, other: object) -> None:
    """Raise an error that says what differs unless both policies have the same class and settings."""
    if type(other) is not type(policy):
        raise TypeError(
            f"only another {type(policy).__name__} can be merged, got {type(other).__name__}: "
            "construct both policies from the same class"
        )
    if other is policy:
        raise ValueError("a policy cannot be merged with itself: that would count everything twice")
    assert isinstance(other, Policy)
    mine, its = policy._config(), other._config()
    for name in mine:
        if mine[name] != its[name]:
            raise ValueError(
                f"cannot merge policies with different {name}: {mine[name]!r} here, {its[name]!r} there; "
                "construct both policies with the same settings"
            )


def kept(arms: Any) -> Any:
    """Ids that can be passed on more than once: they may come from an iterator."""
    return arms if arms is None or isinstance(arms, CandidateSet | np.ndarray) else id_list(arms)


def ids_of(arms: Any, n: int) -> Sequence[Hashable]:
    return arms.arms if isinstance(arms, CandidateSet) else range(n) if arms is None else id_list(arms)


def _rows_of(part: Any, rows: Any) -> Any:
    if part is None:
        return None
    return part.iloc[rows] if hasattr(part, "iloc") else np.asarray(part)[rows]


def checked_floor(floor: float | None) -> float:
    """The share of choices by lot that is spread evenly."""
    return FLOOR if floor is None else checks.share("floor", floor, "it is the share that is spread evenly")


def one_hot(n: int, index: int) -> FloatArray:
    """Return the propensities of a rule that is certain to choose one of n candidates."""
    propensities = np.zeros(n)
    propensities[index] = 1.0
    return propensities
