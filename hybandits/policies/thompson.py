"""Thompson sampling: draw all parameters from their joint posterior and play the arm that is best in the draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hybandits.estimators.arms import Candidates, Slots
from hybandits.estimators.inputs import not_finite
from hybandits.estimators.learned import LearnedModel
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow, decisions, empirical_bayes, posterior_sampling, random
from hybandits.policies.base import DRAWS, Picked
from hybandits.policies.choices import Batch, Choices
from hybandits.policies.posterior import NOTHING, Memory, PosteriorPolicy

APART = 5.0
"""Standard deviations of a difference beyond which a candidate is taken never to be the best in a draw."""


class HyThompson(PosteriorPolicy):
    """Explore by chance, each arm as often as it is likely to be the best: Thompson sampling.

    The policy draws one plausible set of parameters from what it knows and chooses the arm that is best for them. The
    less it knows, the more the draws differ, and the more it explores. There is nothing to tune: how noisy rewards are,
    how large parameters are and what arms have in common is learned from the rewards.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward. By default it is learned.
    scale : float, optional
        How large you expect the entries of theta and of every beta to be: their standard deviation before any reward
        has been seen. By default it is learned, for theta and for each of the arms' own features apart, together with
        the mean that arms have in common.
    memory : float or "auto", optional
        How many rounds the policy remembers, for worlds that change: a reward that came t rewards ago counts
        exp(-t / memory) as much as the latest. With "auto" the policy keeps three memories, one of them infinite, and
        trusts the one that predicts best. By default it never forgets.
    propensity_draws : int, optional
        How many further draws estimate the probability of each choice. With 0, the default, ``choice.propensity`` is
        None.
    seed : int, optional
        The seed of the random draws. The default draws fresh entropy.

    Attributes
    ----------
    noise, scale, memory : float, "auto" or None
        As given.
    propensity_draws : int
        As given.
    learned : LearnedSettings or None
        What the policy has learned about noise and scales.

    Notes
    -----
    The prior of theta is N(0, s1 / w) and that of every beta N(m, s2 / w), where w is the mean square of the feature.
    So rewards or features may be multiplied by a power of two without changing a decision. s1, s2, m and the noise
    maximise the marginal likelihood, and are estimated anew whenever the number of rewards has grown by a quarter (by
    a half after the first thousand). Until the first reward that is not 0 the choice is uniformly random. A feature
    that never changed is not learned by itself: a candidate that differs in it is expected where the others are, with a
    larger width.

    The draw is from the exact joint posterior. Where settings are learned, the first draws are narrower: their standard
    deviation is multiplied by 1 - 0.3 exp(-n / P) after n rewards, with P the number of parameters of all arms that
    have learned. Given a draw of theta the arms are independent, so a decision costs one
    triangular solve of size d1, whatever the number of candidates. For linear rewards the rule is analysed in [1]_.

    With a memory, sums and factors of the data fade by multiplication; see docs/learned-settings.md. With "auto" the
    model that decides is drawn by weight, and propensities are averages of the models' by weight.

    The probability of a choice has no closed form. With m = `propensity_draws` > 0 it is estimated as (1 + times the
    chosen arm won) / (1 + m), with m rounded up to an even number; `propensities` uses m draws, or 2,000 if m is 0.
    These draws are others than those of the decision and do not change it. They are antithetic pairs at the points of a
    lattice that is shifted at random, which brings 2,000 of them as close as some 4,500 independent ones.

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

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        scale: float | None = None,
        memory: Memory = None,
        propensity_draws: int = 0,
        seed: int | None = None,
    ) -> None:
        why = "it is the number of posterior draws that estimate a propensity, or 0 for no estimate"
        self.propensity_draws = checks.count("propensity_draws", propensity_draws, least=0, why=why)
        super().__init__(d1=d1, d2=d2, noise=noise, scale=scale, memory=memory, seed=seed)

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        picked = super()._pick(candidates, stream)
        if picked[3] is not None or not self.propensity_draws or picked[0] < 0:
            return picked
        return *picked[:3], self._estimated(picked[0], candidates, stream)

    def _estimated(self, index: int, candidates: Candidates, stream: RandomStream) -> float:
        """The share of draws that a chosen candidate wins, its own decision included."""
        draws = self._draws_of_estimates
        return float((1 + draws * self._shares(candidates, stream)[index, 0]) / (1 + draws))

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Slots, FloatArray, FloatArray, FloatArray]:
        index, mean, width, propensity = super()._pick_batch(batch, slots, threads)
        if self.propensity_draws:
            for b in np.flatnonzero(np.isnan(propensity)).tolist():
                x, z, ids, rows = batch.candidates(b)
                candidates = Candidates(x, z, ids, slots[b if len(slots) > 1 else 0][rows])
                place = int(np.searchsorted(rows, index[b]))
                propensity[b] = self._estimated(place, candidates, RandomStream(self._key, self._decisions + b))
        return index, mean, width, propensity

    @property
    def _draws_of_estimates(self) -> int:
        """How many draws estimate probabilities: an even number, because they come in pairs."""
        draws = self.propensity_draws or DRAWS
        return draws + draws % 2

    def _posterior(self, model: HybridRidge | LearnedModel, candidates: Candidates) -> tuple[Any, ...]:
        """x, z, slots, a model's factors, ridge, noise and what is not known, as the kernels that draw take them."""
        x, z, _, slots = candidates
        if isinstance(model, HybridRidge):
            return x, z, slots, model.arm_score, model.shared_score, model.ridge, self.noise, NOTHING
        arm_score, shared_score, _, features = model.scoring
        noise, extra = decisions.noise_of_samples(self.rule, model.state, self.d1, self.d2), NOTHING
        if model.state.constant:
            x, z, extra = empirical_bayes.as_known(x, z, model.state, features)
        return x, z, empirical_bayes.with_new_arms(slots), arm_score, shared_score, 1.0, noise, extra

    def _shares(self, candidates: Candidates, stream: RandomStream, m: int = 1) -> FloatArray:
        """The share of further draws in which each candidate (rows) takes each of the first m positions (columns).

        Among several models it is the average by their weights.
        """
        estimator: Any = self._table
        models = estimator.models if self._learns else (estimator,)
        shares = [self._shares_of(model, candidates, stream, m) for model in models]
        if len(shares) == 1:
            return shares[0]
        average: FloatArray = np.tensordot(estimator.weights[: len(shares)], shares, 1)
        return average

    def _shares_of(
        self, model: HybridRidge | LearnedModel, candidates: Candidates, stream: RandomStream, m: int
    ) -> FloatArray:
        n = len(candidates.arms)
        if isinstance(model, LearnedModel) and not model.ready:
            return np.full((n, m), 1.0 / n)
        counts = np.empty((n, m))
        draws = self._draws_of_estimates
        posterior_sampling.count_places(
            *self._posterior(model, candidates), APART if m == 1 else math.inf, stream.key,
            random.ESTIMATE + stream.keyed, stream.decision, draws // 2, counts,
        )  # fmt: skip
        return counts / draws

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        """Order by one draw."""
        if self._undecided(stream):
            return super()._rank(candidates, stream, m)
        values = np.empty(len(candidates.arms))
        decisions.sample_candidates(
            *self._posterior(self._model(stream), candidates), stream.key, random.DECIDE + stream.keyed,
            stream.decision, values,
        )  # fmt: skip
        indices = np.argsort(-values, kind="stable")[:m]
        propensities = np.full(m, np.nan)
        if self.propensity_draws:
            shares, draws = self._shares(candidates, stream, m), self._draws_of_estimates
            propensities = (1 + draws * shares[indices, np.arange(m)]) / (1 + draws)
        return self._ranking(candidates, stream, indices, propensities)

    def _rank_propensities(self, candidates: Candidates, stream: RandomStream, m: int) -> FloatArray:
        if self.propensity_draws:
            return self._shares(candidates, stream, m)
        return super()._rank_propensities(candidates, stream, m)

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        """Return the share of posterior draws that each candidate wins (of `propensity_draws`, or of 2,000)."""
        if not (arrow.within_limit(candidates.x) and arrow.within_limit(candidates.z)):
            raise not_finite(candidates.x, candidates.z)
        return self._shares(candidates, stream)[:, 0]
