"""MemoryMixture: estimators with different memories side by side, weighted by how well they predict."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import Slots
from hybandits.estimators.inputs import not_finite
from hybandits.estimators.learned import (
    NEW_ARM,
    LearnedRidge,
    LearnedSettings,
    Moments,
    matching_slots,
    places_of,
    take_places,
)
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge, Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import empirical_bayes, evidence, memories


class MemoryMixture(HybridRidge):
    """Three `LearnedRidge` of the same rewards: one that never forgets, and memories of 16 P and 4 P rows.

    P = d1 + d2 x (arms that have learned) is the number of parameters. The models share their arms' slots. Weights say
    how well each has predicted, see `hybandits.kernels.memories`. What is read (`score`, `theta`, `beta`, settings) is
    that of the heaviest model.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    noise, scale : float, optional
        As for `LearnedRidge`.

    Attributes
    ----------
    models : tuple of LearnedRidge
        The one that never forgets first. They know no ids.
    weights : array of shape (4,)
        The weights of the models, and at how many refreshes running the first has weighed next to nothing.
    """

    def __init__(self, *, d1: int, d2: int, noise: float | None = None, scale: float | None = None) -> None:
        super().__init__(d1=d1, d2=d2, ridge=1.0)
        self.noise_held, self.scale_held = noise, scale
        self.models = tuple(
            LearnedRidge(d1=d1, d2=d2, noise=noise, scale=scale, memory=math.inf) for _ in range(memories.MODELS)
        )
        memories.set_memories(self.d1, self.d2, self.arrays)
        self.weights: FloatArray = np.array([*memories.SHARES, 0.0])
        self._grow(1)
        self._clear(NEW_ARM)
        self._used = 1

    def __repr__(self) -> str:
        shares = ", ".join(f"{weight:.2f}" for weight in self.weights[: memories.MODELS])
        return (
            f"MemoryMixture(d1={self.d1}, d2={self.d2}): {self.known} arms known, {self.rounds} rows, weights {shares}"
        )

    # -------------------------------------------------------------- the models

    @property
    def arrays(self) -> tuple[empirical_bayes.Arrays, ...]:
        """The arrays of every model."""
        return tuple(model.arrays for model in self.models)

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether the noise and the scale are held."""
        return self.models[0].held

    @property
    def heaviest(self) -> LearnedRidge:
        """The model with the largest weight."""
        return self.models[int(memories.heaviest(self.weights))]

    def drawn(self, lot: RandomStream) -> LearnedRidge:
        """The model that takes a decision."""
        return self.models[int(memories.draw_model(self.weights, lot.key, lot.keyed, lot.decision))]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, spare room included (not of the ids)."""
        return sum(model.nbytes for model in self.models)

    def _grow(self, capacity: int) -> None:
        for model in self.models:
            model._grow(capacity)
        self.pulls = self.models[0].pulls

    def _clear(self, slot: int) -> None:
        for model in self.models:
            model._clear(slot)
            model.pulls[slot] = 0

    # -------------------------------------------------------------- learning and reading

    def _learn_checked(self, slot: int, x: FloatArray, z: FloatArray, reward: float) -> None:
        if not memories.learn_mixed(slot, x, z, reward, self.arrays, self.weights, self.held):
            raise not_finite(x, z, reward)

    def _learn_rows(self, slots: Slots, x: FloatArray, z: FloatArray, rewards: FloatArray) -> None:
        memories.learn_rows_mixed(slots, x, z, rewards, self.arrays, self.weights, self.held)

    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        pulls: Mapping[Hashable, int],
        moments: Moments | None,
    ) -> None:
        """Learn rows that stand for a larger number of rewards; see `LearnedRidge.learn_summary`."""
        ids = list(arms)
        other = MemoryMixture(d1=self.d1, d2=self.d2, noise=self.noise_held, scale=self.scale_held)
        other.models = tuple(model.summary(ids, x, z, rewards, pulls, moments) for model in self.models)
        other._slots, other.rounds = other.models[0]._slots, other.models[0].rounds
        self.merge(other)

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        """Means and widths of checked candidates, by the heaviest model."""
        return self.heaviest.score(x, z, slots)

    @property
    def theta(self) -> FloatArray:
        """The shared parameter of the heaviest model."""
        return self.heaviest.theta

    def beta_at(self, slot: int) -> FloatArray:
        """The own parameter of the arm with this slot in the heaviest model; -1 for one that has not learned."""
        return self.heaviest.beta_at(slot)

    @property
    def tuned(self) -> bool:
        """Whether there are learned settings to play with."""
        return self.heaviest.tuned

    def learned_settings(self) -> LearnedSettings | None:
        """The settings of the heaviest model; None while there are none."""
        return self.heaviest.learned_settings()

    def refresh(self) -> None:
        """`LearnedRidge.refresh` of every model."""
        for model in self.models:
            model.refresh()

    # -------------------------------------------------------------- whole estimators

    def forget(self, arm: Hashable) -> None:
        """Drop an arm from every model; see `LearnedRidge.forget`."""
        slot = self.slot(arm)
        if slot >= 0:
            for model in self.models:
                model.release(slot)
        super().forget(arm)

    def sound(self) -> bool:
        """Whether all numbers of all models are those of positive definite matrices."""
        return all(model.sound() for model in self.models)

    def design(self, arms: Sequence[Hashable]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Refused: every model has a matrix of its own."""
        raise ValueError(
            "several models with different memories have no one design matrix: pass memory=None or a number"
        )

    def raise_ridge(self, ridge: float) -> None:
        """Refused: the ridges are learned."""
        self.models[0].raise_ridge(ridge)

    def merge(self, other: HybridRidge) -> None:
        """Take in all that another mixture has learned, as if it had come after what is here.

        Models are weighed by how well they predict it, all rows together.
        """
        if not isinstance(other, MemoryMixture):
            raise TypeError(f"only another MemoryMixture can be merged, got {type(other).__name__}")
        if (other.d1, other.d2) != (self.d1, self.d2):
            raise ValueError(
                f"cannot merge d1={other.d1}, d2={other.d2} into d1={self.d1}, d2={self.d2}: the features must agree"
            )
        if (other.noise_held, other.scale_held) != (self.noise_held, self.scale_held):
            raise ValueError("cannot merge estimators that hold different settings: give both the same noise and scale")
        other = other.copy() if other is self else other
        merged = self.copy()
        merged._take_in(other)
        self._become(merged)

    def _take_in(self, other: HybridRidge) -> None:
        assert isinstance(other, MemoryMixture)
        slots = matching_slots(self, other, other.models[0].in_order)
        for model in self.models:
            model.let_pass(float(other.rounds))
        if self.rounds == 0:
            self.weights = other.weights.copy()
        elif all(model.tuned for model in self.models):
            self._weigh(other, slots)
        for model, its in zip(self.models, other.models, strict=True):
            model.fold(its, slots)
            model.apply()
        memories.set_memories(self.d1, self.d2, self.arrays)
        self.admit(other.arms)
        self.rounds += other.rounds

    def _weigh(self, other: MemoryMixture, slots: list[tuple[int, int]]) -> None:
        """Weigh the models by the evidence for all that the other's first model has learned, given what they know."""
        sigma2 = float(self.heaviest.numbers[evidence.PLAYED])
        logs = np.empty(memories.MODELS)
        for k, model in enumerate(self.models):
            both = copy.deepcopy(model)
            both.fold(other.models[0], slots)
            logs[k] = both.evidence_for(sigma2) - model.evidence_for(sigma2)
        weights = self.weights[: memories.MODELS] * np.exp(logs - logs.max())
        share = other.rounds / (self.rounds + 1.0 + other.rounds)  # what so many shares of 1 / (t + 2) come to
        self.weights[: memories.MODELS] = (1.0 - share) * weights / weights.sum() + share * np.array(memories.SHARES)

    def copy(self) -> MemoryMixture:
        """An independent copy."""
        return MemoryMixture.unpack(*self.pack(ids=False), arms=self.arms)

    # -------------------------------------------------------------- saving

    def pack(self, *, ids: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything as a JSON-able header and plain arrays."""
        header: dict[str, Any] = {
            "d1": self.d1, "d2": self.d2, "rounds": self.rounds, "noise": self.noise_held, "scale": self.scale_held,
        }  # fmt: skip
        if ids:
            header["arms"] = policy_file.plain_ids(self._slots)
        arrays = {"slots": places_of(self, self.models[0].place), "weights": self.weights.copy()}
        for k, model in enumerate(self.models):
            arrays |= {f"{k}.{name}": array for name, array in model.blocks().items()}
        return header, arrays

    @classmethod
    def unpack(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], arms: list[Hashable] | None = None
    ) -> MemoryMixture:
        """The inverse of `pack`; FileError if the parts do not fit together."""
        try:
            mixture = cls(d1=header["d1"], d2=header["d2"], noise=header["noise"], scale=header["scale"])
            mixture.rounds = policy_file.counter("rounds", header["rounds"])
            if arms is None:
                arms = policy_file.arm_ids(header["arms"])
            for k, model in enumerate(mixture.models):
                start = f"{k}."
                blocks = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
                model.put_back(blocks, mixture.rounds)
                policy_file.check_slots(arms, arrays["slots"], blocks["pulls"])
            weights = arrays["weights"]
        except (KeyError, TypeError) as problem:
            raise policy_file.unfit_part(problem) from None
        if (
            weights.dtype != checks.FLOAT64
            or weights.shape != mixture.weights.shape
            or not (weights >= 0).all()
            or not abs(weights[: memories.MODELS].sum() - 1.0) < 1e-6
            or weights[memories.LOST_TIMES] > 1
        ):
            raise FileError(f"weights are {checks.short(weights.tolist())}, which no models have: the file is corrupt")
        mixture.weights = weights.copy()
        take_places(mixture, arms, arrays["slots"])
        mixture._used = mixture.models[0]._used
        mixture.pulls = mixture.models[0].pulls
        return mixture
