"""The part that policies with one ridge estimator have in common: everything but the rule that chooses."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from hybandits.estimators.arms import CandidateSet, CheckedCandidates, Slots
from hybandits.estimators.constant_features import CancellingWatch
from hybandits.estimators.inputs import check_finite, id_list, not_finite
from hybandits.estimators.learned import Moments
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge, Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.policies.base import Choice, Policy, check_mergeable, check_receipts
from hybandits.policies.batch import Batch, Choices, checked_batch, look_up
from hybandits.policies.ranking import Ranking, number_of_places
from hybandits.policies.threads import holds_lock

_new = tuple.__new__
"""Make a Choice or a RandomStream in half the time that its own constructor takes."""


class RidgePolicy(Policy):
    """A policy that estimates rewards with one `HybridRidge`; a subclass adds the rule that chooses.

    A subclass implements `_pick`, which chooses among checked candidates, and `propensities`, which says how likely
    each of them is. Checks, learning, forgetting, merging and files are inherited. See docs/adding-a-policy.md.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    ridge : float
        How strongly the estimates are drawn towards zero (lambda).
    seed : int or None
        The seed of the policy's random draws.

    Attributes
    ----------
    estimator : HybridRidge
        The estimator.
    ridge : float
        The present value of lambda.
    """

    learns_from_sums = True

    _embeds: ClassVar[bool] = False
    """Whether the estimator sees other features than the caller gives (`_matrices`, `_vectors`)."""

    _draws: ClassVar[bool] = True
    """Whether the rule may draw random numbers, so that its decisions are counted."""

    _pick_batch: Callable[[Batch, Slots, int], tuple[Slots, FloatArray, FloatArray, FloatArray]]
    """_pick_batch(batch, slots, threads): indices, means, widths and propensities of many decisions."""

    def __init__(self, *, d1: int, d2: int, ridge: float, seed: int | None) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self._estimator = self._make_estimator(ridge)
        self._arms_sized = 0
        if self.d1 and not self._embeds:
            self._watch = CancellingWatch()

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=self.d1, d2=self.d2, ridge=ridge)

    @property
    def estimator(self) -> HybridRidge:
        """The estimator of the rewards."""
        return self._estimator

    @property
    def ridge(self) -> float:
        """The present value of lambda."""
        return self._estimator.ridge

    def _matrices(self, x: Any, z: Any) -> tuple[Any, Any]:
        """Turn the caller's features into the estimator's; the disjoint reduction puts x and z together."""
        return x, z

    def _vectors(self, x: Any, z: Any) -> tuple[Any, Any]:
        """Do the same as `_matrices` for the features of one arm."""
        return x, z

    def _arms_changed(self) -> None:
        """Follow a change in the number of known arms."""
        self._arms_sized = self._estimator.known

    def meet(self, arms: Sequence[Hashable]) -> tuple[Slots, Slots]:
        """Admit arms and set blocks aside for them, for a compiled loop: see `ArmTable.set_aside`."""
        self._estimator.admit(arms)
        self._arms_changed()
        return self._estimator.set_aside(arms)

    @abstractmethod
    def _pick(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream
    ) -> tuple[int, float, float, float | None]:
        """Return index, mean, width and propensity of the choice, or index -1 if a feature is not finite.

        Random numbers come from the lot, whose numbers are a function of the seed and the decision. Nothing about the
        policy may change.
        """

    @holds_lock
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
        if randomize or floor is not None:
            return self._choose_by_lot(x, z, arms, key, randomize, floor)
        with self._lock:
            estimator = self._estimator
            if self._embeds:
                x, z = self._matrices(x, z)
            ids: Any
            slots = estimator.ready_slots(x, z, arms)
            if slots is None:
                x, z, ids, slots = estimator.checked_candidates(x, z, arms, admit=key is None)
            else:
                ids = arms.arms if type(arms) is CandidateSet else arms
            if key is None:
                if estimator.known != self._arms_sized:
                    self._arms_changed()
                lot = _new(RandomStream, (self._key, self._decisions, 0))
            else:
                lot = self._lot(key)
            picked = self._pick(x, z, slots, lot)
            index = picked[0]
            if index < 0:
                raise not_finite(x, z)
            if self._watch is not None:
                self._look_at(x, z)
            if key is None and self._draws:
                self._decisions += 1
            arm = ids.item(index) if type(ids) is np.ndarray else ids[index]
            return _new(Choice, (arm, *picked, None))

    @classmethod
    def _inherits_at(cls, name: str) -> int:
        """How far up the class that defines this method is: a rule of one's own replaces kernels for another rule."""
        return next((i for i, kind in enumerate(cls.__mro__) if name in kind.__dict__), len(cls.__mro__))

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
        if randomize or self._inherits_at("_pick_batch") > min(self._inherits_at("_pick"), self._inherits_at("choose")):
            return super().choose_batch(x, z, arms, mask=mask, threads=threads, randomize=randomize, floor=floor)
        batch = checked_batch(x, z, arms, mask, threads, self.d1, self.d2)
        size, n = batch.x.shape[:2]
        if self._embeds:
            flat = self._matrices(batch.x.reshape(size * n, self.d1), batch.z.reshape(size * n, self.d2))
            batch = batch._replace(x=flat[0].reshape(size, n, -1), z=flat[1].reshape(size, n, -1))
        slots = look_up(batch, self._estimator)
        if self._estimator.known != self._arms_sized:
            self._arms_changed()
        picked = self._pick_batch(batch, slots, threads)
        for b in range(size):
            if self._watch is None:
                break
            self._look_at(*batch.features(b))
        if self._draws:
            self._decisions += size
        return Choices(batch.arms_at(picked[0]), *picked, [None] * size)

    def rank(
        self, x: Any = None, z: Any = None, arms: Any = None, m: int | None = None, *, key: Hashable | None = None
    ) -> Ranking:
        if self._inherits_at("choose") < self._inherits_at("_pick"):
            return super().rank(x, z, arms, m, key=key)
        lot = self._lot(key)
        rows = self._rows(x, z, arms)
        check_finite(rows.x, rows.z)
        places = number_of_places(m, len(rows.slots))
        if key is None:
            self._meet(rows.arms)
        indices, chances = self._of_rule("_order")(rows.x, rows.z, rows.slots, lot, places)
        if chances is None:
            matrix = self._of_rule("_place_chances")(rows.x, rows.z, rows.slots, lot, places)
            chances = matrix[indices, np.arange(places)]
        self._look_at(rows.x, rows.z)
        if key is None and self._draws:
            self._decisions += 1
        mean, width = self._score(rows.x[indices], rows.z[indices], rows.slots[indices], lot)
        chosen = [rows.arms[i] for i in indices.tolist()]
        return Ranking(chosen, indices, mean, width, chances, [None] * places)

    def decision_numbers(self, count: int) -> tuple[int, int]:
        """The key and the number of the next decision, for a compiled loop that takes `count` of them."""
        first = self._decisions
        self._decisions += count
        return self._key, first

    def _of_rule(self, name: str) -> Callable[..., Any]:
        """A method that belongs to the rule `_pick`; that of `RidgePolicy` if a subclass has another rule."""
        if self._inherits_at(name) <= self._inherits_at("_pick"):
            return getattr(self, name)  # type: ignore[no-any-return]
        return functools.partial(getattr(RidgePolicy, name), self)

    def _meet(self, arms: Sequence[Hashable]) -> None:
        if self._estimator.unmet(arms):
            self._estimator.admit(arms)
            self._arms_changed()

    def _scores(self, x: Any, z: Any, arms: Any, lot: RandomStream) -> Prediction:
        rows = self._rows(x, z, arms)
        return self._score(rows.x, rows.z, rows.slots, lot)

    def _score(self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream) -> Prediction:
        """Means and widths in the model that takes this decision."""
        return self._estimator.score(x, z, slots)

    def _order(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int
    ) -> tuple[Slots, FloatArray | None]:
        """The candidates for the first places, and the probability of each there; None: see `_place_chances`.

        By default the rule picks again and again from those that are left.
        """
        left = np.arange(len(slots))
        indices, chances = np.empty(places, np.int64), np.full(places, np.nan)
        certain = True
        for place in range(places):
            index, _, _, propensity = self._pick(x[left], z[left], slots[left], lot.at_place(place))
            if certain and propensity is not None:
                chances[place] = propensity
            certain = certain and propensity == 1.0
            indices[place] = left[index]
            left = np.delete(left, index)
        return indices, chances

    def _place_probabilities(self, x: Any, z: Any, arms: Any, places: int, key: Hashable | None) -> FloatArray:
        if self._inherits_at("choose") < self._inherits_at("_pick"):
            return super()._place_probabilities(x, z, arms, places, key)
        rows = self._rows(x, z, arms)
        check_finite(rows.x, rows.z)
        matrix: FloatArray = self._of_rule("_place_chances")(rows.x, rows.z, rows.slots, self._lot(key), places)
        return matrix

    def _place_chances(self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int) -> FloatArray:
        """The probability of each candidate (rows) in each of the first places (columns); NaN where it is not known."""
        indices, chances = self._of_rule("_order")(x, z, slots, lot, places)
        matrix = np.full((len(slots), places), np.nan)
        if chances is not None and (chances == 1.0).all():
            matrix[:] = 0.0
            matrix[indices, np.arange(places)] = 1.0
        return matrix

    @holds_lock
    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        with self._lock:
            if self._embeds:
                x, z = self._vectors(x, z)
            self._estimator.learn(arm, x, z, reward)
            if self._estimator.known != self._arms_sized:
                self._arms_changed()

    def learn_batch(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        if receipts is not None:
            arms = id_list(arms)
            check_receipts(receipts, len(arms))
        x, z = self._matrices(x, z)
        self._estimator.learn_batch(arms, x, z, rewards)
        self._arms_changed()

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
        """Learn rows that stand for a larger number of rewards (see `hybandits.evaluation.fit`).

        Parameters
        ----------
        arms, x, z, rewards
            As for `learn_batch`. The rows have the same sums of squares and products as those that they stand for.
        pulls : mapping of arm to int
            How many rewards of each arm they stand for.
        moments : Moments, optional
            What such rows cannot say. Policies that learn their settings need it.
        """
        for arm, count in pulls.items():
            checks.count(f"pulls of {arm!r}", count, least=0, why="it is a number of rounds")
        x, z = self._matrices(x, z)
        self._estimator.learn_summary(arms, x, z, rewards, pulls, moments)
        self._arms_changed()

    def _rows(self, x: Any, z: Any, arms: Any) -> CheckedCandidates:
        if type(arms) is list and (slots := self._estimator.ready_slots(x, z, arms)) is not None:
            return CheckedCandidates(x, z, arms, slots)
        x, z = self._matrices(x, z)
        return self._estimator.checked_candidates(x, z, arms, admit=False)

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        rows = self._rows(x, z, arms)
        return self._estimator.score(rows.x, rows.z, rows.slots)

    @property
    def theta(self) -> FloatArray:
        return self._estimator.theta

    def beta(self, arm: Hashable) -> FloatArray:
        return self._estimator.beta(arm)

    @property
    def arms(self) -> list[Hashable]:
        return self._estimator.arms

    @property
    def rounds(self) -> int:
        return self._estimator.rounds

    def forget(self, arm: Hashable) -> None:
        self._estimator.forget(arm)
        self._arms_changed()

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        self._estimator.merge(other._estimator)
        self._arms_changed()

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self._estimator.candidates(arms)

    def _pack_parts(self) -> dict[str, Packed]:
        return {"estimator": self._estimator.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        estimator = type(self._estimator).unpack(*parts["estimator"])
        if (estimator.d1, estimator.d2) != (self._estimator.d1, self._estimator.d2):
            raise FileError("the estimator's dimensions do not fit the policy's: the file is corrupt")
        self._estimator = estimator
        self._arms_changed()
