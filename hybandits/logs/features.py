"""Features of a candidate from the user's vector u and the arm's vector v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybandits import checks
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

    vec(u v') has its columns one below the other: x[j * user + i] = u[i] * v[j].

    >>> make = FeatureMap("das", 3, 2)
    >>> make.d1, make.d2
    (6, 2)
    >>> x, z = make([1, 2, 3], [10, 20])
    >>> x.tolist(), z.tolist()
    ([10.0, 20.0, 30.0, 20.0, 40.0, 60.0], [10.0, 20.0])
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

    def __call__(self, u: Any, v: Any) -> tuple[Doubles, Doubles]:
        """x and z for a user u and an arm's v; for several arms, one row each in v, one row each of x and z."""
        user = checks.array("u", u, 1, self.user, f"shape ({self.user},), the user's features")
        several = np.ndim(v) != 1
        rows = checks.array(
            "v", v if several else [v], 2, self.arm, f"length {self.arm}, an arm's features, or one such row per arm"
        )
        x, z = np.empty((len(rows), self.d1)), np.empty((len(rows), self.d2))
        for i, row in enumerate(rows):
            fill(self.code, user, row, 1.0, x[i], z[i])
        return (x, z) if several else (x[0], z[0])


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
