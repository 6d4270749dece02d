"""Thompson sampling: draw all parameters from their joint posterior and play the arm that is best in the draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow, decisions
from hybandits.model.arms import Slots
from hybandits.model.inputs import not_finite
from hybandits.model.policy_file import FileError, Packed
from hybandits.policies.ridge_policy import RidgePolicy

NORMALS = 4096
"""How many standard normals are drawn at a time."""


class HyThompson(RidgePolicy):
    """Explore by chance, each arm as often as it is likely to be the best: Thompson sampling.

    The policy draws one plausible set of parameters from what it knows and chooses the arm that is best for them. The
    less it knows, the more the draws differ, and the more it explores.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward; for rewards of 0 and 1 it is
        at most 0.5.
    scale : float, optional
        How large you expect the entries of theta and of every beta to be: their standard deviation before any reward
        has been seen.
    propensity_draws : int, optional
        How many further draws estimate the probability of each choice. With 0, the default, ``choice.propensity`` is
        None.
    seed : int, optional
        The seed of the random draws. The default draws fresh entropy.

    Attributes
    ----------
    noise, scale : float
        As given.
    propensity_draws : int
        As given.
    ridge : float
        (noise / scale)^2, the ridge of the estimate.

    Notes
    -----
    The prior of every parameter is N(0, scale^2) and the noise is N(0, noise^2), so the posterior is
    N((theta, beta), noise^2 M^-1) with ridge = noise^2 / scale^2. The draw is from the exact joint posterior. Given a
    draw of theta the arms are independent, so a decision costs one triangular solve of size d1, whatever the number of
    candidates. For linear rewards the rule is analysed in [1]_.

    The probability of a choice has no closed form. With m = `propensity_draws` > 0 it is estimated as
    (1 + times the chosen arm won) / (1 + m); `propensities` uses m draws, or 1,000 if m is 0. These draws come from a
    stream of their own and do not change the decisions.

    References
    ----------
    .. [1] Agrawal & Goyal, "Thompson Sampling for Contextual Bandits with Linear Payoffs", 2013.

    Examples
    --------
    >>> policy = HyThompson(d1=1, d2=1, noise=0.1, propensity_draws=100, seed=0)
    >>> policy.learn("a", [1.0], [1.0], reward=1.0)
    >>> choice = policy.choose([[1.0], [1.0]], [[1.0], [1.0]], arms=["a", "b"])
    >>> 0 < choice.propensity <= 1
    True
    """

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float = 1.0,
        scale: float = 1.0,
        propensity_draws: int = 0,
        seed: int | None = None,
    ) -> None:
        self.noise = checks.positive("noise", noise, "it is the standard deviation of the reward's noise")
        self.scale = checks.positive("scale", scale, "it is the prior standard deviation of each parameter")
        why = "it is the number of posterior draws that estimate a propensity, or 0 for no estimate"
        self.propensity_draws = checks.count("propensity_draws", propensity_draws, least=0, why=why)
        if not 1e-10 <= self.noise / self.scale <= 1e10 or not 1e-50 <= self.noise <= 1e50:
            raise ValueError(
                f"noise={noise!r} and scale={scale!r} are too far apart or too extreme: noise / scale must lie between "
                "1e-10 and 1e10; rescale the rewards"
            )
        self._normals: Doubles = np.empty(0)
        self._used = 0
        super().__init__(d1=d1, d2=d2, ridge=(self.noise / self.scale) ** 2, seed=seed)

    def _eliminate(self, x: Doubles, z: Doubles, slots: Slots) -> tuple[Doubles, Doubles, Doubles]:
        """The part of each score that does not depend on the draw (see `arrow.eliminate_rows`)."""
        n = len(slots)
        y = np.empty((n, 4 * ((self.d1 + 3) // 4)))
        square = np.empty(n)
        product = np.empty(n)
        arrow.eliminate_rows(x, z, slots, self._estimator.arm_score, self.ridge, y, square, product)
        return y, square, product

    def _pick(self, x: Doubles, z: Doubles, slots: Slots) -> tuple[int, float, float, float | None]:
        n = slots.shape[0]
        need = self.d1 + n
        used = self._used
        if used + need > len(self._normals):
            if not arrow.usable(x, z):  # a refused call must not draw
                return -1, 0.0, 0.0, None
            self._draw(need)
            used = 0
        estimator = self._estimator
        index, mean, width = decisions.choose_thompson(
            x, z, slots, estimator.arm_score, estimator.shared_score, estimator.ridge, self.noise, self._normals, used
        )
        if index < 0:
            return -1, 0.0, 0.0, None
        propensity = None
        if self.propensity_draws:
            wins = self._wins(self._eliminate(x, z, slots), n, self.propensity_draws)
            propensity = float((1 + wins[index]) / (1 + self.propensity_draws))
        self._used = used + need
        return index, mean, width, propensity

    def take_normals(self, need: int) -> Doubles:
        """Return the next normals of the stream for a compiled loop: d1 + n for a decision among n candidates."""
        if self._used + need > len(self._normals):
            self._draw(need)
        start = self._used
        self._used += need
        return self._normals[start : self._used]

    def _draw(self, need: int) -> None:
        """Draw normals for this decision and many more; drawn one decision at a time they would cost twice as much."""
        left = self._normals[self._used :]
        self._normals = np.concatenate((left, self._random.standard_normal(max(need, NORMALS))))
        self._used = 0

    def _wins(self, parts: tuple[Doubles, Doubles, Doubles], n: int, draws: int) -> Doubles:
        """Count how often each candidate wins in further draws, from a stream seeded by the present random state."""
        state = self._random.bit_generator.state["state"]
        left = len(self._normals) - self._used
        stream = np.random.Generator(np.random.PCG64([int(state["state"]), int(state["inc"]), left]))
        wins = np.zeros(n)
        y, square, product = parts
        shared = self._estimator.shared_score
        for _ in range(draws):
            xi = stream.standard_normal(self.d1 + n)
            wins[decisions.sample_best(y, self.d1, square, product, shared, self.noise, xi, 0)] += 1
        return wins

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """Return the share of posterior draws that each candidate wins, of `propensity_draws` draws or of 1,000."""
        rows = self._rows(x, z, arms)
        if not arrow.usable(rows.x, rows.z):
            raise not_finite(rows.x, rows.z)
        parts = self._eliminate(rows.x, rows.z, rows.slots)
        draws = self.propensity_draws or 1000
        return self._wins(parts, len(rows.slots), draws) / draws

    def _pack_parts(self) -> dict[str, Packed]:
        return {**super()._pack_parts(), "normals": ({}, {"left": self._normals[self._used :].copy()})}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        super()._unpack_parts(parts)
        left = parts["normals"][1]["left"]
        if left.dtype != np.float64 or left.ndim != 1 or not np.isfinite(left).all():
            raise FileError("the normals left to use are not finite numbers: the file is corrupt")
        self._normals, self._used = left.copy(), 0
