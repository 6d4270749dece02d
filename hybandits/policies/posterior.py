"""Policies that choose from the posterior of the hybrid model: Thompson and information-directed sampling."""

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np

from hybandits.estimators.arms import Candidates, Prediction, Slots
from hybandits.estimators.inputs import check_finite
from hybandits.estimators.learned import AUTO, LearnedModel, LearnedRidge, LearnedSettings, checked_groups
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions, empirical_bayes, posterior_sampling, random
from hybandits.policies.base import DRAWS, Picked, RidgePolicy, synchronized
from hybandits.policies.choices import Batch, Choices, in_threads

NOTHING: FloatArray = np.empty(0)
SETS = 16
"""The number of sets of 64 draws that estimate the probabilities of `HyIDS` if nothing else is asked for."""
Memory = float | Literal["auto"] | None

APART = 5.0
"""Standard deviations of a difference beyond which a candidate is taken never to be the best in a draw."""


class PosteriorPolicy(RidgePolicy):
    """A policy that chooses from the posterior of the hybrid model; subclasses name the rule.

    With `scale` given, the estimator is a `HybridRidge`, otherwise a `LearnedRidge`.
    """

    rule: ClassVar[int]
    """`decisions.SAMPLING` or `decisions.INFORMATION`."""
    _usual_draws: ClassVar[int]
    """The number of draws, or sets of draws, that estimate probabilities if `propensity_draws` is 0."""

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        scale: float | None = None,
        memory: Memory = None,
        groups: Any = None,
        propensity_draws: int = 0,
        seed: int | None = None,
    ) -> None:
        why = "it is the number of simulated decisions that estimate a propensity, or 0 for no estimate"
        self.propensity_draws = checks.count("propensity_draws", propensity_draws, least=0, why=why)
        why = "it is a standard deviation; leave it out to have it learned"
        self.noise = None if noise is None else checks.positive("noise", noise, why)
        self.scale = None if scale is None else checks.positive("scale", scale, why)
        for name, value in (("noise", self.noise), ("scale", self.scale)):
            if value is not None and not 1e-50 <= value <= 1e50:
                raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value!r}: rescale the rewards")
        self.memory: Memory = memory
        if memory is not None and memory != AUTO:
            remedy = 'pass a number of rounds, "auto" to choose among memories, or None to never forget'
            if isinstance(memory, str):
                raise ValueError(f"memory must be a number, 'auto' or None, got {memory!r}: {remedy}")
            if not 1.0 <= checks.real("memory", memory) <= 1e15:
                raise ValueError(f"memory must lie between 1 and 1e15 rounds, got {memory!r}: {remedy}")
            self.memory = float(memory)
        self.groups = checked_groups(groups, *checks.dimensions(d1, d2))
        ridge = 1.0
        if self.scale is not None:
            if self.groups is not None:
                raise ValueError(
                    f"scale={scale!r} is given with groups: they are for scales that are learned; leave one out"
                )
            if self.noise is None or self.memory is not None:
                raise ValueError(
                    f"scale={scale!r} is given with noise={noise!r} and memory={memory!r}: it needs a noise and no "
                    "memory; leave scale out to have it learned"
                )
            if not 1e-10 <= self.noise / self.scale <= 1e10:
                raise ValueError(
                    f"noise / scale must lie between 1e-10 and 1e10, got {noise!r} / {scale!r}: rescale the rewards"
                )
            ridge = (self.noise / self.scale) ** 2
        self._learns = self.scale is None
        self._code = self.rule + (decisions.LEARNED if self._learns else 0)
        self._given: FloatArray = np.array([self.noise or 1.0])
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)
        if self.propensity_draws:
            self._pick_batch = None  # type: ignore[assignment, method-assign]  # one by one

    def _make_estimator(self, ridge: float) -> Any:
        if self._learns:
            return LearnedRidge(d1=self.d1, d2=self.d2, noise=self.noise, memory=self.memory, groups=self.groups)
        return super()._make_estimator(ridge)

    @property
    def learned(self) -> LearnedSettings | None:
        """The learned noise and scales; None if both were given, or before the first reward that is not 0."""
        with self._lock:
            return self._table.heaviest.settings() if isinstance(self._table, LearnedRidge) else None

    @synchronized
    def refresh(self) -> None:
        """Re-estimate the settings from all rewards learned, to 1e-10 and whatever their order."""
        if isinstance(self._table, LearnedRidge):
            self._table.refresh()

    def _model(self, stream: RandomStream) -> Any:
        """The model that takes a decision: the only one, or one drawn by weight."""
        estimator: Any = self._table
        return estimator.drawn(stream) if self._learns else estimator

    def kernel_rule(self) -> decisions.Rule:
        """The rule and its estimator, as kernels take them."""
        return decisions.Rule(self._code, self._table.addresses, self._given)

    def _undecided(self, stream: RandomStream) -> bool:
        """Return whether the choice is uniform, because nothing has been learned yet."""
        return self._learns and not self._model(stream).ready

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        scored: Prediction = self._model(stream).score(candidates.x, candidates.z, candidates.slots)
        return scored

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        x, z, _, slots = candidates
        key, decision, keyed = stream
        index, mean, width, propensity = decisions.decide(
            self._code, self._table.addresses, self._given, x, z, slots, 0, key, keyed, decision
        )
        if propensity != propensity:  # NaN: not known
            propensity = None
            if self.propensity_draws and index >= 0:
                (propensity,) = self._estimated(candidates, stream, np.array([index])).tolist()
        return index, mean, width, propensity

    @property
    def _draws_of_estimates(self) -> int:
        return self.propensity_draws or self._usual_draws

    def _posterior(self, model: HybridRidge | LearnedModel, candidates: Candidates) -> tuple[Any, ...]:
        """x, z, slots, a model's factors, ridge, noise and what is not known, as the kernels that draw take them."""
        x, z, _, slots = candidates
        if isinstance(model, HybridRidge):
            return x, z, slots, model.arm_score, model.shared_score, model.ridge, self.noise, NOTHING
        arm_score, shared_score, _, features = model.scoring
        noise, extra = decisions.noise_of_samples(self.rule, model.state, self.d1, self.d2), NOTHING
        if model.state.constant:
            x, z, extra = empirical_bayes.as_known(x, z, model.state, features)
        return x, z, np.maximum(slots, 0), arm_score, shared_score, 1.0, noise, extra

    @abstractmethod
    def _shares_of(
        self, model: HybridRidge | LearnedModel, candidates: Candidates, stream: RandomStream, m: int
    ) -> FloatArray:
        """The share of simulated decisions by a model in which candidates (rows) take the first m positions (columns).

        The decisions are independent of the one that belongs to the stream.
        """

    @abstractmethod
    def _own(self, candidates: Candidates, stream: RandomStream, indices: Slots) -> FloatArray:
        """The probability of each position's arm given the posterior draws and the model of the decision itself."""

    def _shares(self, candidates: Candidates, stream: RandomStream, m: int = 1) -> FloatArray:
        """`_shares_of`, averaged over the models by weight."""
        estimator: Any = self._table
        n, shares = len(candidates.arms), []
        for model in estimator.models if self._learns else (estimator,):
            if self._learns and not model.ready:
                shares.append(np.full((n, m), 1.0 / n))
            else:
                shares.append(self._shares_of(model, candidates, stream, m))
        average: FloatArray = np.tensordot(estimator.weights[:-1], shares, 1) if len(shares) > 1 else shares[0]
        return average

    def _estimated(self, candidates: Candidates, stream: RandomStream, indices: Slots) -> FloatArray:
        """Estimate the probability of each position's arm: the average of the decision's own and of further ones."""
        m, draws = len(indices), self._draws_of_estimates
        further = self._shares(candidates, stream, m)[indices, np.arange(m)]
        estimated: FloatArray = (self._own(candidates, stream, indices) + draws * further) / (1 + draws)
        return estimated

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        check_finite(candidates.x, candidates.z)
        return self._shares(candidates, stream)[:, 0]

    def _propensities_batch(self, batch: Batch, threads: int) -> FloatArray:
        slots = self._table.lookup(batch.ids[0])
        chances = np.empty(batch.x.shape[:2])

        def work(first: int, last: int) -> int:
            for b in range(first, last):
                candidates = Candidates(batch.x[b], batch.z[b], batch.ids[0], slots)
                chances[b] = self._propensities(candidates, self._estimates())
            return -1

        in_threads(work, batch, threads)
        return chances

    @abstractmethod
    def _order(self, candidates: Candidates, stream: RandomStream) -> Slots:
        """The candidates in the order of a ranking, once something has been learned."""

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        if self._undecided(stream):
            even = np.full(m, 1.0 / len(candidates.arms))
            return super()._rank(candidates, stream, m)._replace(propensities=even)
        indices = self._order(candidates, stream)[:m]
        propensities = np.full(m, np.nan)
        if self.propensity_draws:
            propensities = self._estimated(candidates, stream, indices)
        return self._ranking(candidates, stream, indices, propensities)

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Any, ...]:
        return self._pick_compiled(self.kernel_rule(), batch, slots, threads)

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        super()._unpack_parts(parts)
        estimator = self._table
        given = [self.noise, self.memory, self.groups]
        if isinstance(estimator, LearnedRidge) and [*estimator.settings.values()] != given:
            raise FileError("the estimator's noise, memory or groups are not the policy's: the file is corrupt")


class HyThompson(PosteriorPolicy):
    """Explore by chance, each arm as often as it is likely to be the best: Thompson sampling.

    The policy draws one plausible set of parameters from what it knows and chooses the arm that is best for them. The
    less it knows, the more the draws differ, and the more it explores. Nothing needs tuning: the noise of rewards, the
    size of parameters and what arms have in common are learned from the rewards.

    Parameters
    ----------
    d1, d2, seed
        As for `Policy`.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward. By default it is learned.
    scale : float, optional
        The standard deviation of the entries of theta and of every beta before any reward has been seen. By default it
        is learned, for theta and for each of the arms' own features apart, with the mean that arms have in common. It
        needs the noise too, and no memory.
    memory : float or "auto", optional
        The number of rounds that the policy remembers, for worlds that change: a reward that came t rewards ago counts
        exp(-t / memory) as much as the latest. With "auto" the policy keeps three memories, one of them infinite, and
        prefers the one that predicts best. By default it never forgets.
    groups : pair of sequences of int, optional
        ``(x_groups, z_groups)``, one whole number for every column. The scale is learned for each group by itself: give
        columns that belong together, such as the levels of a category or its products with another, one number. By
        default all columns of x are one group, and so are those of z.
    propensity_draws : int, optional
        The number of simulated decisions that estimate the probability of each choice. With 0, the default,
        ``choice.propensity`` is None.

    Notes
    -----
    The draw is from the exact joint posterior [1]_. docs/learned-settings.md describes how settings are learned and
    the effect of a memory. Until the first reward that is not 0 the choice is uniformly random. Where settings are
    learned, the standard deviation of the first draws is multiplied by 1 - 0.3 exp(-n / P) after n rewards, with P the
    number of parameters of all arms that have learned.

    The probability of a choice has no closed form. With m = `propensity_draws` > 0 it is estimated as (1 + times the
    chosen arm won) / (1 + m), with m rounded up to an even number; `propensities` uses m draws, or 2,000 if m is 0.
    These draws are others than those of the decision and do not change it. The standard error of a probability p is
    about sqrt(p (1 - p) / m) or less.

    References
    ----------
    .. [1] Agrawal & Goyal, "Thompson Sampling for Contextual Bandits with Linear Payoffs", 2013.

    Examples
    --------
    >>> policy = HyThompson(d1=1, d2=1, propensity_draws=100, seed=0)
    >>> policy.learn("a", [1.0], [1.0], reward=1.0)
    >>> choice = policy.choose([[1.0], [1.0]], [[1.0], [1.0]], arms=["a", "b"])
    >>> 0 < choice.propensity <= 1
    True
    """

    rule = decisions.SAMPLING
    _usual_draws = DRAWS

    @property
    def _draws_of_estimates(self) -> int:
        """An even number, because draws come in pairs."""
        draws = super()._draws_of_estimates
        return draws + draws % 2

    def _shares_of(
        self, model: HybridRidge | LearnedModel, candidates: Candidates, stream: RandomStream, m: int
    ) -> FloatArray:
        counts = np.empty((len(candidates.arms), m))
        draws = self._draws_of_estimates
        posterior_sampling.count_places(
            *self._posterior(model, candidates), APART if m == 1 else math.inf, stream.key,
            random.ESTIMATE + stream.keyed, stream.decision, draws // 2, counts,
        )  # fmt: skip
        return counts / draws

    def _own(self, candidates: Candidates, stream: RandomStream, indices: Slots) -> FloatArray:
        return np.ones(len(indices))

    def _order(self, candidates: Candidates, stream: RandomStream) -> Slots:
        """Order by one draw."""
        values = decisions.sample_candidates(
            *self._posterior(self._model(stream), candidates), stream.key, random.DECIDE + stream.keyed,
            stream.decision,
        )  # fmt: skip
        return np.argsort(-values, kind="stable")


class HyIDS(PosteriorPolicy):
    """Explore where it pays: weigh the expected cost of a choice against its information about the best arm.

    Most choices are the arm with the highest expected reward. Another arm is played, with a probability that the policy
    works out, only where its reward would help to find the best arm. Nothing needs tuning, as for `HyThompson`.

    Parameters
    ----------
    d1, d2, noise, scale, memory, groups, propensity_draws, seed
        As for `HyThompson`.

    Notes
    -----
    Let D be the expected regret of a choice and v the variance of its mean reward that knowing the best arm would
    explain. The rule mixes the greedy arm and one other so that D^1.5 / v is smallest; [1]_ has D^2 and all mixtures of
    two arms. D and v are averages over 64 joint draws of the posterior means.

    Each decision makes its own 64 draws, so the probability of a choice is that in the mixture, averaged over sets of
    draws. With m = `propensity_draws` > 0 it is estimated as the average over the decision's own set and m others;
    `propensities` averages m sets, or 16 if m is 0. The standard error of a probability p is at most
    sqrt(p (1 - p) / m).

    References
    ----------
    .. [1] Russo & Van Roy, "Learning to Optimize via Information-Directed Sampling", 2018.
    """

    rule = decisions.INFORMATION
    _usual_draws = SETS

    def _order(self, candidates: Candidates, stream: RandomStream) -> Slots:
        """The arm that the rule picks, then the others in the order of their means."""
        return led_by(self._choice(candidates, stream).index, self._by_mean(self._model(stream), candidates))

    def _by_mean(self, model: HybridRidge | LearnedModel, candidates: Candidates) -> Slots:
        return np.argsort(-model.score(candidates.x, candidates.z, candidates.slots).mean, kind="stable")

    def _mixtures(
        self, model: HybridRidge | LearnedModel, candidates: Candidates, stream: RandomStream, m: int, purpose: int,
        sets: int,
    ) -> FloatArray:  # fmt: skip
        """The average probability with which candidates (rows) take the first m positions (columns)."""
        chances = np.empty(len(candidates.arms))
        posterior_sampling.average_mixture(
            *self._posterior(model, candidates), stream.key, purpose + stream.keyed, stream.decision, sets, chances
        )
        if m == 1:
            return chances[:, None]
        shares, order = np.zeros((len(chances), m)), self._by_mean(model, candidates)
        for first in np.flatnonzero(chances).tolist():
            shares[led_by(first, order)[:m], np.arange(m)] += chances[first]
        return shares

    def _shares_of(
        self, model: HybridRidge | LearnedModel, candidates: Candidates, stream: RandomStream, m: int
    ) -> FloatArray:
        return self._mixtures(model, candidates, stream, m, random.ESTIMATE, self._draws_of_estimates)

    def _own(self, candidates: Candidates, stream: RandomStream, indices: Slots) -> FloatArray:
        m = len(indices)
        mixture = self._mixtures(self._model(stream), candidates, stream, m, random.DECIDE, 1)
        return mixture[indices, np.arange(m)]


def led_by(first: int, order: Slots) -> Slots:
    """The order with one candidate moved to the front."""
    return np.concatenate(([first], order[order != first]))
