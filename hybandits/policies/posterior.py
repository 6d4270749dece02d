"""What policies that choose from a posterior share: settings that are given or learned, and memories."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np

from hybandits.estimators.arms import Candidates, Slots
from hybandits.estimators.interface import Prediction
from hybandits.estimators.learned import AUTO, LearnedRidge, LearnedSettings
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions
from hybandits.policies.base import Picked
from hybandits.policies.choices import Batch, Choices, in_threads
from hybandits.policies.ridge_policy import RidgePolicy
from hybandits.policies.threads import synchronized

NOTHING: FloatArray = np.empty(0)
"""No variance beyond that of the estimates, and no weights where there is one model."""

Memory = float | Literal["auto"] | None
"""How many rounds a policy remembers: None for all, or "auto" to find out."""


def checked_memory(memory: Memory) -> Memory:
    """Return the memory if it is None, "auto" or a number of rounds; else raise."""
    if memory is None or memory == AUTO:
        return memory
    why = "it is the number of rounds after which a reward counts exp(-1) as much"
    remedy = 'pass a number of rounds, "auto" to choose among memories, or None to never forget'
    if isinstance(memory, str):
        raise ValueError(f"memory must be a number, 'auto' or None, got {memory!r}: {remedy}")
    rounds = checks.positive("memory", memory, f"{why}; {remedy}")
    if not 1.0 <= rounds <= 1e15:
        raise ValueError(f"memory must lie between 1 and 1e15 rounds, got {memory!r}: {remedy}")
    return rounds


class PosteriorPolicy(RidgePolicy):
    """A policy that chooses from the posterior of the hybrid model, at settings that are given or learned.

    Subclasses name the rule. With both `noise` and `scale` given, the estimator is a `HybridRidge`; otherwise a
    `LearnedRidge` learns what is missing. A policy that forgets has a `LearnedRidge` in any case.
    """

    rule: ClassVar[int]
    """`decisions.SAMPLING` or `decisions.INFORMATION`."""

    def __init__(
        self, *, d1: int, d2: int, noise: float | None, scale: float | None, memory: Memory, seed: int | None
    ) -> None:
        why = "it is the standard deviation of the reward around its mean; leave it out to have it learned"
        self.noise = None if noise is None else checks.positive("noise", noise, why)
        why = "it is the prior standard deviation of each parameter; leave it out to have it learned"
        self.scale = None if scale is None else checks.positive("scale", scale, why)
        for name, value in (("noise", self.noise), ("scale", self.scale)):
            if value is not None and not 1e-50 <= value <= 1e50:
                raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value!r}: rescale the rewards")
        self.memory = checked_memory(memory)
        ridge = 1.0
        if self.noise is not None and self.scale is not None:
            if not 1e-10 <= self.noise / self.scale <= 1e10:
                raise ValueError(
                    f"noise={noise!r} and scale={scale!r} are too far apart: noise / scale must lie between 1e-10 and "
                    "1e10; rescale the rewards"
                )
            ridge = (self.noise / self.scale) ** 2
        # Asked in every choice, because it is faster than to ask for the type of the estimator
        self._learns = self.noise is None or self.scale is None or self.memory is not None
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)

    def _make_estimator(self, ridge: float) -> Any:
        if self._learns:
            return LearnedRidge(d1=self.d1, d2=self.d2, noise=self.noise, scale=self.scale, memory=self.memory)
        return super()._make_estimator(ridge)

    @property
    def learned(self) -> LearnedSettings | None:
        """What has been learned about noise and scales.

        None if both were given, or while there is nothing to learn them from: until the first reward that is not 0 has
        been worked into all arms.
        """
        with self._lock:
            estimator = self._table
            if not isinstance(estimator, LearnedRidge) or all(estimator.fixed):
                return None
            return estimator.learned_settings()

    @synchronized
    def refresh(self) -> None:
        """Estimate the settings afresh from all rewards learned, to 1e-10, whatever order they came in.

        It happens by itself now and then. Call it where two policies that have learned the same rewards in different
        orders should agree, or after a large batch. It changes nothing if noise and scale were given.
        """
        if isinstance(self._table, LearnedRidge):
            self._table.refresh()

    def _model(self, stream: RandomStream) -> Any:
        """The model that takes a decision: the only one, or one drawn by weight."""
        estimator: Any = self._table
        return estimator.drawn(stream) if self._learns else estimator

    def kernel_rule(self) -> decisions.RidgeRule | decisions.LearnedRule:
        """Return the rule and its estimator, as kernels for batches and loops take them."""
        if isinstance(self._table, LearnedRidge):
            return decisions.LearnedRule(self.rule, self._table.arrays, self._table.weights)
        return self._table.rule(self.rule, self.noise or 1.0)

    def _undecided(self, stream: RandomStream) -> bool:
        """Whether nothing has been learned yet that a decision could be based on, so that the choice is uniform."""
        return self._learns and not self._model(stream).ready

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        scored: Prediction = self._model(stream).score(candidates.x, candidates.z, candidates.slots)
        return scored

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        x, z, _, slots = candidates
        model = self._model(stream)
        key, decision, keyed = stream
        if self._learns:
            index, mean, width, propensity = decisions.choose_learned(
                self.rule, x, z, slots, *model.scoring, key, keyed, decision
            )
        else:
            index, mean, width, propensity = decisions.choose_posterior(
                self.rule, x, z, slots, model.arm_score, model.shared_score, model.ridge, self.noise, NOTHING, key,
                keyed, decision,
            )  # fmt: skip
        return index, mean, width, propensity if propensity == propensity else None  # NaN: not known

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        """Draw an order uniformly, as long as the choice is uniform."""
        return super()._rank(candidates, stream, m)._replace(propensities=np.full(m, 1.0 / len(candidates.arms)))

    def _rank_propensities(self, candidates: Candidates, stream: RandomStream, m: int) -> FloatArray:
        n = len(candidates.arms)
        return np.full((n, m), 1.0 / n if self._undecided(stream) else np.nan)

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Slots, FloatArray, FloatArray, FloatArray]:
        estimator, size = self._table, batch.size
        index = np.empty(size, np.int64)
        mean, width, propensity = np.empty(size), np.empty(size), np.empty(size)
        rule = self.kernel_rule()

        def work(first: int, last: int) -> int:
            refused: int = decisions.choose_batch(
                rule, batch.x, batch.z, slots, batch.mask, estimator.rounds, self._key, self._decisions, first, last,
                index, mean, width, propensity,
            )  # fmt: skip
            return refused

        in_threads(work, batch, threads)
        return index, mean, width, propensity

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        super()._unpack_parts(parts)
        estimator = self._table
        given = [self.noise, self.scale, self.memory]
        if isinstance(estimator, LearnedRidge) and [*estimator.settings.values()] != given:
            raise FileError("the estimator's noise, scale or memory is not the policy's: the file is corrupt")

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


def _middle(values: FloatArray) -> str:
    """The root mean square of the scales that are known."""
    known = values[~(values != values)]
    return f"{math.sqrt(float((known**2).mean())):.3g}" if len(known) else "unknown"
