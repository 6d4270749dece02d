"""What policies that choose from a posterior have in common: settings that are told or learned, and the lot."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import batches, decisions
from hybandits.model.arms import Slots
from hybandits.model.learned import LearnedRidge, LearnedSettings
from hybandits.model.lots import Lot
from hybandits.model.policy_file import FileError, Packed
from hybandits.model.ridge import HybridRidge
from hybandits.policies.many import Batch, in_threads
from hybandits.policies.ridge_policy import RidgePolicy

NOTHING: Doubles = np.empty(0)
"""No variance beyond that of the estimates."""


class PosteriorPolicy(RidgePolicy):
    """A policy that chooses from the posterior of the hybrid model, at settings that it learns or is told.

    Subclasses name the rule. With both `noise` and `scale` given the policy is told everything and has a `HybridRidge`;
    otherwise what is missing is learned by a `LearnedRidge`.
    """

    rule: ClassVar[int]
    """`decisions.SAMPLING` or `decisions.INFORMATION`."""

    propensity_draws: int = 0
    """How many further draws estimate the propensity of a choice, where the rule does not know it; 0: it is None."""

    _estimated: Callable[[int, Doubles, Doubles, Slots, Lot], float]
    """_estimated(index, x, z, slots, lot): that estimate, of policies that have `propensity_draws`."""

    def __init__(self, *, d1: int, d2: int, noise: float | None, scale: float | None, seed: int | None) -> None:
        why = "it is the standard deviation of the reward around its mean; leave it out to have it learned"
        self.noise = None if noise is None else checks.positive("noise", noise, why)
        why = "it is the prior standard deviation of each parameter; leave it out to have it learned"
        self.scale = None if scale is None else checks.positive("scale", scale, why)
        for name, value in (("noise", self.noise), ("scale", self.scale)):
            if value is not None and not 1e-50 <= value <= 1e50:
                raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value!r}: rescale the rewards")
        ridge = 1.0
        if self.noise is not None and self.scale is not None:
            if not 1e-10 <= self.noise / self.scale <= 1e10:
                raise ValueError(
                    f"noise={noise!r} and scale={scale!r} are too far apart: noise / scale must lie between 1e-10 and "
                    "1e10; rescale the rewards"
                )
            ridge = (self.noise / self.scale) ** 2
        self._learns = self.noise is None or self.scale is None  # asked in every choice, and faster than the type
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)

    def _make_estimator(self, ridge: float) -> HybridRidge:
        if self._learns:
            return LearnedRidge(d1=self.d1, d2=self.d2, noise=self.noise, scale=self.scale)
        return super()._make_estimator(ridge)

    @property
    def learned(self) -> LearnedSettings | None:
        """What has been learned about noise and scales.

        None if both were given, or while there is nothing to learn them from: until the first reward that is not 0 has
        been worked into all arms.
        """
        estimator = self._estimator
        return estimator.learned_settings() if isinstance(estimator, LearnedRidge) else None

    def refresh(self) -> None:
        """Estimate the settings afresh from all rewards learned, to 1e-10, whatever order they came in.

        It happens by itself now and then. Call it where two policies that have learned the same rewards in different
        orders should agree, or after a large batch. It changes nothing if noise and scale were given.
        """
        if isinstance(self._estimator, LearnedRidge):
            self._estimator.refresh()

    def _pick(
        self, x: Doubles, z: Doubles, slots: Slots, lot: Lot, forced: float = -1.0
    ) -> tuple[int, float, float, float | None]:
        """Pick by the rule; forced: see `decisions.choose_posterior`."""
        estimator = self._estimator
        key, decision, keyed = lot
        if self._learns:
            assert isinstance(estimator, LearnedRidge)
            index, mean, width, propensity = decisions.choose_tuned(
                self.rule, x, z, slots, estimator.arm_score, estimator.shared_score, estimator.numbers,
                estimator.unknown, estimator.state, key, keyed, decision, forced,
            )  # fmt: skip
        else:
            index, mean, width, propensity = decisions.choose_posterior(
                self.rule, x, z, slots, estimator.arm_score, estimator.shared_score, estimator.ridge, self.noise,
                NOTHING, key, keyed, decision, forced,
            )  # fmt: skip
        if propensity == propensity:  # not NaN
            return index, mean, width, propensity
        if self.propensity_draws == 0 or index < 0:
            return index, mean, width, None
        return index, mean, width, self._estimated(index, x, z, slots, lot)

    @property
    def _undecided(self) -> bool:
        """Whether nothing has been learned that one could choose by, so that the lot decides."""
        return isinstance(self._estimator, LearnedRidge) and not self._estimator.tuned

    def _place_chances(self, x: Doubles, z: Doubles, slots: Slots, lot: Lot, places: int) -> Doubles:
        return np.full((len(slots), places), 1.0 / len(slots) if self._undecided else np.nan)

    def _pick_many(self, batch: Batch, slots: Slots, threads: int) -> tuple[Slots, Doubles, Doubles, Doubles]:
        estimator, size = self._estimator, batch.size
        index = np.empty(size, np.int64)
        mean, width, propensity = np.empty(size), np.empty(size), np.empty(size)
        key, decision = self._key, self._decisions

        def work(first: int, last: int) -> int:
            refused: int
            if isinstance(estimator, LearnedRidge):
                refused = batches.choose_many_tuned(
                    self.rule, batch.x, batch.z, slots, batch.mask, estimator.arm_score, estimator.shared_score,
                    estimator.numbers, estimator.unknown, estimator.state, key, decision, first, last, index, mean,
                    width, propensity,
                )  # fmt: skip
            else:
                refused = batches.choose_many_posterior(
                    self.rule, batch.x, batch.z, slots, batch.mask, estimator.arm_score, estimator.shared_score,
                    estimator.ridge, self.noise, key, decision, first, last, index, mean, width, propensity,
                )  # fmt: skip
            return refused

        in_threads(work, batch, threads)
        return index, mean, width, propensity

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        super()._unpack_parts(parts)
        estimator = self._estimator
        if isinstance(estimator, LearnedRidge) and (estimator.noise_held, estimator.scale_held) != (
            self.noise,
            self.scale,
        ):
            raise FileError("the estimator's noise or scale is not that of the policy: the file is corrupt")

    def decision_numbers(self, count: int) -> tuple[int, int]:
        """The key and the number of the next decision, for a compiled loop that takes `count` of them."""
        first = self._decisions
        self._decisions += count
        return self._key, first

    def __repr__(self) -> str:
        settings = self.learned
        if settings is None:
            return super().__repr__()
        words = [f"noise {settings.noise:.3g}"]
        for name, scale in (("shared", settings.shared_scale), ("own", settings.own_scale)):
            if len(scale):
                words.append(f"{name} scale {_middle(scale)}")
        words.append(f"{settings.effective_parameters:.1f} effective parameters")
        return f"{super().__repr__()}; learned: {', '.join(words)}"


def _middle(values: Doubles) -> str:
    """The root mean square of the scales that are known."""
    known = values[~(values != values)]
    return f"{math.sqrt(float((known**2).mean())):.3g}" if len(known) else "unknown"
