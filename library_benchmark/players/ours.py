"""The policies of hybandits, with their defaults."""

from __future__ import annotations

from typing import Any

from hybandits import EpsilonGreedy
from hybandits.policies.by_name import make_policy
from library_benchmark.players.interface import Entry
from library_benchmark.streams import Round, Stream

ALPHAS = tuple({"exploration": {"kind": "Constant", "alpha": alpha}} for alpha in (0.01, 0.1, 1.0))


class Ours:
    """A policy by the contract: choose, and learn with the receipt."""

    def __init__(self, stream: Stream, seed: int, rounds: int, *, policy: str, epsilon: float = 0.0, **settings: Any):
        shape = {"d1": stream.d1, "d2": stream.d2, "arms": stream.arms, "horizon": rounds}
        self.policy = make_policy(policy, settings, **shape, seed=seed)
        if epsilon:
            self.policy = EpsilonGreedy(self.policy, epsilon=epsilon, seed=seed)

    def choose(self, shown: Round) -> tuple[int, Any]:
        choice = self.policy.choose(shown.x, shown.z, shown.arms)
        return choice.index, choice

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        self.policy.learn(receipt.arm, shown.x[place], shown.z[place], reward, receipt=receipt.receipt)


def _entry(name: str, *, grid: tuple[dict[str, Any], ...] = (), label: str = "", **settings: Any) -> Entry:
    return Entry(
        name=label or name, library="hybandits", make=Ours, settings={"policy": name, **settings}, grid=grid
    )  # fmt: skip


ENTRIES = (
    _entry("HyIDS"),
    _entry("HyThompson", grid=tuple({"noise": noise, "scale": 0.1} for noise in (0.01, 0.1, 1.0))),
    _entry("HyIDS", label="HyIDS(memory=auto)", memory="auto"),
    _entry("HyThompson", label="HyThompson(memory=auto)", memory="auto"),
    _entry("HyLinUCB", grid=ALPHAS),
    _entry("LinUCB", grid=ALPHAS),
    _entry("DisLinUCB", grid=ALPHAS),
    _entry("LiHybrid", grid=({"alpha": 0.01}, {"alpha": 0.1})),
    _entry("HyRan"),
    _entry("SupLinUCB", grid=({"alpha": 0.01}, {"alpha": 0.1})),
    _entry("Greedy", grid=({"ridge": 0.01}, {"ridge": 0.1})),
    _entry("Greedy", label="EpsilonGreedy(Greedy)", epsilon=0.1, grid=({"epsilon": 0.01}, {"epsilon": 0.03})),
    _entry("Uniform"),
)
