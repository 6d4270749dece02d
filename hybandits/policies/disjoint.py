"""The disjoint reduction: one ridge regression per arm, on x and z together (paper, Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.estimators.inputs import checked_matrices, checked_vectors, not_finite
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow
from hybandits.policies.ucb import UCBPolicy


class DisLinUCB(UCBPolicy):
    """Explore by optimism with every arm on its own: what one arm learns says nothing about the others.

    Each arm has a regression of its own on x and z together, so ``beta(arm)`` has d1 + d2 entries and `theta` has none.
    Use it where the arms have nothing in common; every arm then needs rewards of its own for all features.

    Parameters
    ----------
    d1, d2 : int
        The numbers of features in x and in z; each arm learns the effect of all of them for itself.
    noise, exploration, ridge, seed
        As for `HyLinUCB`.

    Attributes
    ----------
    exploration : SelfNormalised, AsWritten or Constant
        The exploration coefficient.
    ridge : float
        The present value of lambda.
    radius : float
        The value of gamma for an arm that has not learned; it is different for every arm.

    Notes
    -----
    This is the reduction of the hybrid problem to the disjoint one, Algorithm 2 of [1]_.

    References
    ----------
    .. [1] Das & Sinha, "Linear Contextual Bandits with Hybrid Payoff: Revisited", 2024.

    Examples
    --------
    >>> policy = DisLinUCB(d1=2, d2=1, noise=0.1)
    >>> policy.learn("sports", [1.0, 0.0], [1.0], reward=1.0)
    >>> policy.beta("sports").round(2).tolist()
    [0.33, 0.0, 0.33]
    """

    reduction = "disjoint"
    _by_arm = True
    _embeds = True

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=0, d2=self.d1 + self.d2, ridge=ridge)

    def _matrices(self, x: Any, z: Any) -> tuple[Any, Any]:
        x, z = checked_matrices(x, z, self.d1, self.d2)
        self._check_finite(x, z)
        return np.empty((len(x), 0)), np.concatenate((x, z), axis=1)

    def _vectors(self, x: Any, z: Any) -> tuple[Any, Any]:
        x, z = checked_vectors(x, z, self.d1, self.d2)
        self._check_finite(x, z)
        return np.empty(0), np.concatenate((x, z))

    def _check_finite(self, x: FloatArray, z: FloatArray) -> None:
        """Check here rather than in the estimator, whose message would name columns of x and z put together."""
        if not (arrow.within_limit(x) and arrow.within_limit(z)):
            raise not_finite(x, z)
