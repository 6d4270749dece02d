"""A world made of a log: contexts and pools as logged, mean rewards by a linear model, Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation import checks
from hybandits.logs.store import Log, LogError
from hybandits.offline.reward_model import RewardModel, uniform_choice_regret
from hybandits.offline.view import Expander, View
from hybandits.simulation.rounds import Block


class LogWorld:
    """Rounds `start`, `start` + 1, .. of a log; the reward of a candidate is the model's mean plus noise.

    An arm the model does not name has beta = 0: x.theta is all that is known of it.
    """

    fresh_contexts = False

    def __init__(self, view: View, model: RewardModel, *, start: int, noise: float, seed: int = 0) -> None:
        if model.map != view.map:
            raise ValueError(f"the model is for {model.map}, the view gives {view.map}: fit it to the same features")
        self.view, self.model, self.start, self.seed = view, model, start, seed
        self.noise = checks.non_negative("noise", noise, "it is a standard deviation")
        self.d1, self.d2 = view.d1, view.d2

    @classmethod
    def of(cls, log: Mapping[str, Any], data: str | None, *, noise: float, seed: int) -> LogWorld:
        """The world of an experiment's record (`Experiment.log`), its log lying at `data`."""
        if data is None:
            raise LogError("the experiment plays on a log: say where it is")
        found = Log(Path(data))
        if found.about.get("content") != log["content"]:
            raise LogError(f"{data} is not the log of the record: its content differs; convert the same files again")
        view = View(found, features=log["features"], arms=log["arms"])
        return cls(view, RewardModel.from_plain(dict(log["model"])), start=log["start"], noise=noise, seed=seed)

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial."""
        there = self.view.log.rounds - self.start
        if there < horizon:
            raise LogError(f"the log has {there:,} rounds from round {self.start:,} on, {horizon:,} are asked for")
        expand = Expander(self.view)
        entries = self.model.per_entry(self.view)
        for batch in self.view.log.batches(self.start, self.start + horizon):
            for piece, rounds in expand(batch):
                means = self.model.means(self.view, piece, entries)
                yield Block(rounds, means, means.max(axis=1))

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """Where the noise of a trial comes from."""
        return np.random.default_rng((self.seed, 3, trial))


class Overview(NamedTuple):
    """What there is to lose in some rounds of a log."""

    arms: list[Hashable]
    """That are candidates in any of them."""
    uniform_choice_regret: float
    """Of choosing evenly among the candidates of every round, in expectation."""


def look_over(
    view: View, model: RewardModel, start: int, stop: int, *, progress: Callable[[int], None] = lambda rounds: None
) -> Overview:
    """Rounds start..stop-1, in one pass; progress is told of rounds as they are done."""
    pools = np.zeros(len(view.sizes), bool)
    entries = model.per_entry(view)
    lost = 0.0
    for batch in view.log.batches(start, stop):
        pools[batch.pool] = True
        lost += uniform_choice_regret(batch.user, batch.pool, view.offsets, *entries)
        progress(batch.rounds)
    shown = np.repeat(pools, view.sizes)
    return Overview([view.names[a] for a in np.unique(view.arm[shown])], lost)
