"""River: its one contextual policy, and two that look at no context."""

from __future__ import annotations

from typing import Any

from library_benchmark.methods.interface import Method, needs_one_context, one_context
from library_benchmark.streams import Round, Stream


class River:
    """`LinUCBDisjoint` on dicts, one context for all arms."""

    def __init__(self, stream: Stream, seed: int, rounds: int, **settings: Any):
        from river.bandit import LinUCBDisjoint

        needs_one_context(stream)
        self.policy: Any = LinUCBDisjoint(seed=seed, **settings)

    def choose(self, shown: Round) -> tuple[int, Any]:
        context = dict(enumerate(one_context(shown).tolist()))
        return shown.arms.index(self.policy.pull(list(shown.arms), context=context)), context

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        self.policy.update(shown.arms[place], receipt, reward)


class WithoutContext:
    """A policy of `river.bandit` that only knows the ids of the arms."""

    def __init__(self, stream: Stream, seed: int, rounds: int, *, kind: str, **settings: Any):
        from river import bandit

        self.policy: Any = getattr(bandit, kind)(seed=seed, **settings)

    def choose(self, shown: Round) -> tuple[int, Any]:
        return shown.arms.index(self.policy.pull(list(shown.arms))), None

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        self.policy.update(shown.arms[place], reward)


METHODS = (
    Method(name="river LinUCBDisjoint", library="river", make=River, grid=({"beta": 10.0}, {"beta": 100.0})),
    Method(
        name="river EpsilonGreedy (no context)", library="river", make=WithoutContext,
        settings={"kind": "EpsilonGreedy", "epsilon": 0.1}, grid=({"epsilon": 0.01}, {"epsilon": 0.03}),
    ),
    Method(name="river UCB (no context)", library="river", make=WithoutContext, settings={"kind": "UCB", "delta": 1.0}),
)  # fmt: skip
