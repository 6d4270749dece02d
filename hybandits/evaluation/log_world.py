"""A linear model of a log's rewards, and a world that plays a log with such rewards and Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybandits.evaluation.view import Expander, View
from hybandits.features import FeatureMap
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.logs.store import Batch, Log, LogError
from hybandits.simulation.rounds import Block


@dataclass(frozen=True, kw_only=True)
class RewardModel:
    """Mean rewards x.theta + z.beta_arm; row i of beta is that of the arm names[i], and beta = 0 for other arms."""

    map: FeatureMap
    theta: FloatArray
    beta: FloatArray
    names: Sequence[Hashable]

    def per_group(self, view: View) -> tuple[FloatArray, FloatArray]:
        """Weights (groups, m) and constant (groups,) of a view: the mean of a group is (u, p).weights + constant.

        With Theta the matrix of which theta without its pair features is the vec,
        x.theta = u' Theta v + p.theta_p.
        """
        known, unknown = dict(zip(self.names, self.beta, strict=True)), np.zeros(self.map.d2)
        beta = np.array([known.get(name, unknown) for name in view.names])
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

    def means(self, view: View, batch: Batch, weights: FloatArray, constant: FloatArray) -> FloatArray:
        """The mean reward of every candidate by `per_group`, (rounds, most candidates), -inf beyond the last one."""
        sizes = view.sizes[batch.pool]
        out = np.full((batch.rounds, int(sizes.max())), -np.inf)
        mean_rewards(batch.user, view.pair(batch), batch.pool, view.offsets, view.group, weights, constant, out)
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


@kernel(inline=True)
def mean_reward(user, pair, t, k, weights, constant, group):  # type: ignore[no-untyped-def]
    """(u_t, p_tk) . weights_g + constant_g, for candidate k of round t, which is in group g."""
    total = constant[group]
    du = user.shape[1]
    for i in range(du):
        total += user[t, i] * weights[group, i]
    for i in range(pair.shape[2]):
        total += pair[t, k, i] * weights[group, du + i]
    return total


@kernel
def mean_rewards(user, pair, pool, offsets, group, weights, constant, out):  # type: ignore[no-untyped-def]
    """out[t, k] = `mean_reward` of candidate k of round t."""
    for t in range(user.shape[0]):
        first = offsets[pool[t]]
        for k in range(offsets[pool[t] + 1] - first):
            out[t, k] = mean_reward(user, pair, t, k, weights, constant, group[first + k])


class LogWorld:
    """A world that plays the rounds of a log from round `start` on, with rewards by a model plus Gaussian noise."""

    fresh_contexts = False

    def __init__(self, view: View, model: RewardModel, *, start: int, noise: float, seed: int = 0) -> None:
        if model.map != view.map:
            raise ValueError(f"the model is for {model.map}, but the view has {view.map}: fit it to the same features")
        self.view, self.model, self.start, self.seed = view, model, start, seed
        self.noise = checks.non_negative("noise", noise, "it is a standard deviation")
        self.d1, self.d2 = view.d1, view.d2

    @classmethod
    def of(cls, log: Mapping[str, Any], data: str | None, *, noise: float, seed: int) -> LogWorld:
        """The world of an experiment's record: `log` is `Experiment.log`, and the log itself is at `data`."""
        if data is None:
            raise LogError("The experiment plays on a log. Pass its folder as data=.")
        opened = Log(Path(data))
        if opened.about.get("content") != log["content"]:
            raise LogError(
                f"{data} is not the log of the experiment: its content differs. Convert the same files again."
            )
        view = View(opened, features=log["features"], arms=log["arms"])
        return cls(view, RewardModel.from_plain(dict(log["model"])), start=log["start"], noise=noise, seed=seed)

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial."""
        available = self.view.log.rounds - self.start
        if available < horizon:
            there = f"The log has {available:,} rounds from round {self.start:,} on"
            raise LogError(f"{there}, too few for a horizon of {horizon:,}. Lower the horizon.")
        expand = Expander(self.view)
        model = self.model.per_group(self.view)
        for batch in self.view.log.batches(self.start, self.start + horizon):
            for piece, rounds in expand(batch):
                means = self.model.means(self.view, piece, *model)
                yield Block(rounds, means, means.max(axis=1))

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """The generator of the noise of a trial."""
        return np.random.default_rng((self.seed, 3, trial))


def look_over(
    view: View, model: RewardModel, start: int, stop: int, *, progress: Callable[[int], None] = lambda rounds: None
) -> tuple[list[Hashable], float]:
    """The candidates of rounds start..stop-1, and the expected regret of uniform choice, in one pass over them."""
    pools = np.zeros(len(view.sizes), bool)
    weights, constant = model.per_group(view)
    lost = 0.0
    for batch in view.log.batches(start, stop):
        pools[batch.pool] = True
        means = model.means(view, batch, weights, constant)
        total = np.cumsum(np.where(np.isfinite(means), means, 0.0), axis=1)[:, -1]
        lost += float(np.cumsum(means.max(axis=1) - total / view.sizes[batch.pool])[-1])
        progress(batch.rounds)
    shown = np.repeat(pools, view.sizes)
    return [view.names[a] for a in np.unique(view.arm[shown])], lost
