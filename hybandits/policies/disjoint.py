"""The disjoint reduction: one ridge regression per arm on (x, z) together (paper, Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow
from hybandits.model.inputs import checked_matrices, checked_vectors, not_finite
from hybandits.model.ridge import HybridRidge
from hybandits.policies.ucb import UCBPolicy


class DisLinUCB(UCBPolicy):
    """One estimator per arm on (x, z) together; nothing is shared: `beta(arm)` has d1 + d2 entries, `theta` none."""

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

    def _check_finite(self, x: Doubles, z: Doubles) -> None:
        """Here rather than in the estimator, which would speak of columns of (x, z)."""
        if not (arrow.within_limit(x) and arrow.within_limit(z)):
            raise not_finite(x, z)
