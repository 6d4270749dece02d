"""The policies of hybandits, with their defaults."""

from __future__ import annotations

from typing import Any

from hybandits import EpsilonGreedy
from hybandits.policies.by_name import make_policy
from library_benchmark.methods.interface import Method
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


def _method(name: str, *, grid: tuple[dict[str, Any], ...] = (), label: str = "", **settings: Any) -> Method:
    return Method(
        name=label or name, library="hybandits", make=Ours, settings={"policy": name, **settings}, grid=grid
    )  # fmt: skip


METHODS = (
    _method("HyIDS"),
    _method("HyThompson", grid=tuple({"noise": noise, "scale": 0.1} for noise in (0.01, 0.1, 1.0))),
    _method("HyIDS", label="HyIDS(memory=auto)", memory="auto"),
    _method("HyThompson", label="HyThompson(memory=auto)", memory="auto"),
    _method("HyLinUCB", grid=ALPHAS),
    _method("LinUCB", grid=ALPHAS),
    _method("DisLinUCB", grid=ALPHAS),
    _method("LiHybrid", grid=({"alpha": 0.01}, {"alpha": 0.1})),
    _method("HyRan"),
    _method("SupLinUCB", grid=({"alpha": 0.01}, {"alpha": 0.1})),
    _method("Greedy", grid=({"ridge": 0.01}, {"ridge": 0.1})),
    _method("Greedy", label="EpsilonGreedy(Greedy)", epsilon=0.1, grid=({"epsilon": 0.01}, {"epsilon": 0.03})),
    _method("Uniform"),
)
