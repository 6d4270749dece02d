"""A world built on a log: users and candidates as logged, mean rewards by a linear model, Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hybandits.evaluation.reward_model import RewardModel, uniform_choice_regret
from hybandits.evaluation.view import Expander, View
from hybandits.foundation import checks
from hybandits.logs.store import Log, LogError
from hybandits.simulation.rounds import Block


class LogWorld:
    """A world that plays the rounds of a log, with rewards by a model: the model's mean plus Gaussian noise.

    Parameters
    ----------
    view : View
        The log with its features.
    model : RewardModel
        The mean rewards. For an arm that it does not name, the mean is x.theta.
    start : int
        The first round to play.
    noise : float
        Standard deviation of the noise.
    seed : int
        Seed of the noise.

    Examples
    --------
    >>> from hybandits import HyThompson
    >>> from hybandits.logs.formats import opened
    >>> from hybandits.logs.synthetic import SyntheticLog
    >>> from hybandits.evaluation.fit import collect, least_squares
    >>> from hybandits.simulation.play import cumulative_regret
    >>> files = SyntheticLog(rounds=500, seed=1).write("clicks")
    >>> with opened("clicks") as (log, _):
    ...     view = View(log)
    ...     world = LogWorld(view, least_squares(collect(view, stop=400)).model, start=400, noise=0.1)
    ...     regret = cumulative_regret(HyThompson(d1=view.d1, d2=view.d2, seed=0), world, 100)
    >>> bool(regret[-1] >= regret[0] >= 0)
    True
    """

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
                f"{data} is not the log that the experiment was recorded with: its content differs. Convert the same "
                "files again."
            )
        view = View(opened, features=log["features"], arms=log["arms"])
        return cls(view, RewardModel.from_plain(dict(log["model"])), start=log["start"], noise=noise, seed=seed)

    def rounds(self, horizon: int, trial: int = 0) -> Iterator[Block]:
        """The first `horizon` rounds in blocks, the same for every trial."""
        available = self.view.log.rounds - self.start
        if available < horizon:
            raise LogError(
                f"The log has {available:,} rounds from round {self.start:,} on, too few for a horizon of {horizon:,}. "
                "Lower the horizon."
            )
        expand = Expander(self.view)
        entries = self.model.per_entry(self.view)
        for batch in self.view.log.batches(self.start, self.start + horizon):
            for piece, rounds in expand(batch):
                means = self.model.means(self.view, piece, entries)
                yield Block(rounds, means, means.max(axis=1))

    def noise_stream(self, trial: int = 0) -> np.random.Generator:
        """The generator of the noise of a trial."""
        return np.random.default_rng((self.seed, 3, trial))


class Overview(NamedTuple):
    """What can be lost in some rounds of a log."""

    arms: list[Hashable]
    """The arms that are candidates in any of them."""
    uniform_choice_regret: float
    """The expected regret of choosing uniformly among the candidates of every round."""


def look_over(
    view: View, model: RewardModel, start: int, stop: int, *, progress: Callable[[int], None] = lambda rounds: None
) -> Overview:
    """What can be lost in rounds start..stop-1, in one pass over them."""
    pools = np.zeros(len(view.sizes), bool)
    entries = model.per_entry(view)
    lost = 0.0
    for batch in view.log.batches(start, stop):
        pools[batch.pool] = True
        lost += uniform_choice_regret(batch.user, view.pair(batch), batch.pool, view.offsets, *entries)
        progress(batch.rounds)
    shown = np.repeat(pools, view.sizes)
    return Overview([view.names[a] for a in np.unique(view.arm[shown])], lost)
