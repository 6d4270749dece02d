"""The interface between policies and their estimators: a reward model implements `Estimator`."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from hybandits.estimators.arms import Candidates, CandidateSet, Slots
from hybandits.foundation.checks import FloatArray


class Prediction(NamedTuple):
    """The estimated reward of every candidate and its uncertainty, as returned by `predict`.

    Attributes
    ----------
    mean : array of shape (n,)
        The estimated rewards x.theta + z.beta_arm.
    width : array of shape (n,)
        sqrt(x~' M^-1 x~): the standard error of each mean, in units of the noise. It is large for candidates unlike
        anything learned so far, and shrinks as similar rows are learned.

    Examples
    --------
    >>> from hybandits import HybridRidge
    >>> estimator = HybridRidge(d1=1, d2=1)
    >>> estimator.learn("a", [1.0], [1.0], reward=1.0)
    >>> mean, width = estimator.predict([[1.0], [1.0]], [[1.0], [1.0]], ["a", "b"])
    >>> mean.round(2).tolist(), width.round(2).tolist()
    ([0.67, 0.33], [0.82, 1.29])
    """

    mean: FloatArray
    width: FloatArray


class Estimator(Protocol):
    """A model of rewards that learns row by row and scores candidates.

    `ArmTable` has the part about arms and candidates, so an implementation begins as a subclass of it or of
    `OnlineEstimator`.
    """

    d1: int
    d2: int
    rounds: int
    known: int
    pulls: Slots

    @property
    def arms(self) -> list[Hashable]: ...

    @property
    def theta(self) -> FloatArray: ...

    def beta(self, arm: Hashable) -> FloatArray: ...

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet: ...

    def checked_candidates(self, x: Any, z: Any, arms: Any, admit: bool) -> Candidates: ...

    def lookup(self, arms: Sequence[Hashable]) -> Slots: ...

    def admit(self, arms: Iterable[Hashable]) -> None: ...

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction: ...

    def learn(self, arm: Hashable, x: Any, z: Any, reward: Any) -> None: ...

    def learn_batch(self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any) -> None: ...

    def learn_summary(
        self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any, pulls: Mapping[Hashable, int], moments: Any
    ) -> None: ...

    def forget(self, arm: Hashable) -> None: ...

    def merge(self, other: Self) -> None: ...

    def copy(self) -> Self: ...

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]: ...

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self: ...
