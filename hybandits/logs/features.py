"""Features of a candidate from the user's vector u and the arm's vector v."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybandits.checks import Doubles
from hybandits.compiling import kernel

MAPS = {
    "das": "x = vec(u v'), z = v (Das & Sinha 2024)",
    "li": "x = vec(u v'), z = u (Li et al. 2010)",
    "shared": "x = vec(u v'), no z",
    "disjoint": "no x, z = u",
}
"""Every map is linear in (u, 1) once v is given, which is what makes fitting cheap (see `fit`)."""

DAS, LI, SHARED, DISJOINT = range(len(MAPS))


@dataclass(frozen=True)
class FeatureMap:
    """How x and z are made, for user vectors of length `user` and arm vectors of length `arm`.

    >>> FeatureMap("das", 6, 6).d1, FeatureMap("das", 6, 6).d2
    (36, 6)
    """

    name: str
    user: int
    arm: int

    def __post_init__(self) -> None:
        if self.name not in MAPS:
            raise ValueError(f"features must be one of {', '.join(MAPS)}, got {self.name!r}")

    @property
    def code(self) -> int:
        """The map as kernels know it."""
        return list(MAPS).index(self.name)

    @property
    def d1(self) -> int:
        """Length of x."""
        return 0 if self.name == "disjoint" else self.user * self.arm

    @property
    def d2(self) -> int:
        """Length of z."""
        return {"das": self.arm, "li": self.user, "shared": 0, "disjoint": self.user}[self.name]

    def __call__(self, u: Doubles, v: Doubles, one: float = 1.0) -> tuple[Doubles, Doubles]:
        """x and z of one candidate; `one` is the constant of an ordinary row (see `fit` for others)."""
        x, z = np.empty(self.d1), np.empty(self.d2)
        fill(self.code, np.asarray(u, float), np.asarray(v, float), one, x, z)
        return x, z


@kernel
def fill(code, u, v, one, x, z):  # type: ignore[no-untyped-def]
    """x = vec(u v'), columns one below the other: x[j du + i] = u_i v_j; z = v (times one) or u, see MAPS."""
    du = u.shape[0]
    if code != DISJOINT:
        for j in range(v.shape[0]):
            for i in range(du):
                x[j * du + i] = u[i] * v[j]
    if code == DAS:
        for j in range(v.shape[0]):
            z[j] = one * v[j]
    elif code != SHARED:
        for i in range(du):
            z[i] = u[i]
