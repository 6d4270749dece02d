"""A linear model of a log's rewards: the means of candidates, and the regret of uniform choice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybandits.evaluation.view import View
from hybandits.features import FeatureMap
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.logs.store import Batch


@dataclass(frozen=True, kw_only=True)
class RewardModel:
    """Mean rewards x.theta + z.beta_arm.

    Parameters
    ----------
    map : FeatureMap
        Makes x and z from the vectors of a user, an arm and their pair.
    theta : array of shape (d1,)
        The shared part.
    beta : array of shape (names, d2)
        The arms' own parts. An arm without a name here has beta = 0.
    names : sequence
        The arms of the rows of beta.
    """

    map: FeatureMap
    theta: FloatArray
    beta: FloatArray
    names: Sequence[Hashable]

    def per_group(self, view: View) -> tuple[FloatArray, FloatArray]:
        """Weights (groups, m) and constant (groups,) of a view: the mean of a group is (u, p).weights + constant.

        Here m is the length of (u, p). With Theta the matrix of which theta without its pair features is the vec,
        x.theta = u' Theta v + p.theta_p.
        """
        row = {name: i for i, name in enumerate(self.names)}
        beta = np.zeros((len(view.names), self.map.d2))
        for i, name in enumerate(view.names):
            if name in row:
                beta[i] = self.beta[row[name]]
        # No BLAS here, so that the bits are the same on any number of threads.
        v, own = view.vectors[view.group_vector], beta[view.group_arm]
        du, arm = self.map.user, self.map.arm
        weights, constant = np.zeros((len(v), self.map.user_and_pair)), np.zeros(len(v))
        if self.map.base != "disjoint":
            weights[:, :du] = np.einsum("gj,ji->gi", v, self.theta[: du * arm].reshape(arm, du))
        if self.map.base == "das":
            constant = np.einsum("gj,gj->g", v, own[:, :arm])
        elif self.map.base != "shared":
            weights[:, :du] += own[:, :du]
        if "x" in self.map.pair_in:
            weights[:, du:] += self.theta[-self.map.pair :]
        if "z" in self.map.pair_in:
            weights[:, du:] += own[:, -self.map.pair :]
        return weights, constant

    def per_entry(self, view: View) -> tuple[FloatArray, FloatArray]:
        """Weights (entries, m) and constant (entries,) of a view: `per_group` for every entry."""
        weights, constant = self.per_group(view)
        return np.ascontiguousarray(weights[view.group]), constant[view.group]

    def means(self, view: View, batch: Batch, entries: tuple[FloatArray, FloatArray] | None = None) -> FloatArray:
        """The mean reward of every candidate (rounds, most candidates), -inf beyond a round's last one.

        For many batches, compute `entries` once with `per_entry`.
        """
        weights, constant = self.per_entry(view) if entries is None else entries
        sizes = view.sizes[batch.pool]
        out = np.full((batch.rounds, int(sizes.max())), -np.inf)
        mean_rewards(batch.user, view.pair(batch), batch.pool, view.offsets, weights, constant, out)
        return out

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return {
            "features": self.map.name, "user": self.map.user, "arm": self.map.arm, "theta": self.theta.tolist(),
            "beta": self.beta.tolist(), "names": list(self.names),
            **({"pair": self.map.pair} if self.map.pair else {}),
        }  # fmt: skip

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> RewardModel:
        """The inverse of `plain`."""
        feature_map = FeatureMap(plain["features"], plain["user"], plain["arm"], plain.get("pair", 0))
        beta = np.array(plain["beta"], float).reshape(len(plain["names"]), feature_map.d2)
        return cls(map=feature_map, theta=np.array(plain["theta"], float), beta=beta, names=plain["names"])


@kernel
def mean_reward(user, pair, t, k, weights, constant, entry):  # type: ignore[no-untyped-def]
    """(u_t, p_tk) . weights_e + constant_e, for candidate k of round t, which is entry e."""
    total = constant[entry]
    du = user.shape[1]
    for i in range(du):
        total += user[t, i] * weights[entry, i]
    for i in range(pair.shape[2]):
        total += pair[t, k, i] * weights[entry, du + i]
    return total


@kernel
def mean_rewards(user, pair, pool, offsets, weights, constant, out):  # type: ignore[no-untyped-def]
    """out[t, k] = `mean_reward` of candidate k of round t."""
    for t in range(user.shape[0]):
        first = offsets[pool[t]]
        for k in range(offsets[pool[t] + 1] - first):
            out[t, k] = mean_reward(user, pair, t, k, weights, constant, first + k)


@kernel
def uniform_choice_regret(user, pair, pool, offsets, weights, constant):  # type: ignore[no-untyped-def]
    """The regret of uniform choice: the best candidate's mean reward minus that of all candidates, over all rounds."""
    lost = 0.0
    for t in range(user.shape[0]):
        first = offsets[pool[t]]
        count = offsets[pool[t] + 1] - first
        best = -np.inf
        total = 0.0
        for k in range(count):
            mean = mean_reward(user, pair, t, k, weights, constant, first + k)
            best = max(best, mean)
            total += mean
        lost += best - total / count
    return lost
