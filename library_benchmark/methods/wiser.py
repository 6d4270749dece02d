"""MABWiser: its linear policies, one ridge regression per arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from library_benchmark.methods.interface import Method, contexts, one_context
from library_benchmark.streams import Round, Stream


class Wiser:
    """A linear policy of `mabwiser.mab`; candidates with features of their own by its expectations, arm by arm.

    MABWiser must be fitted before it predicts: the first choice is uniform. Its LinGreedy explores context by
    context, so where every candidate has its own context, epsilon-greedy is applied here.
    """

    def __init__(self, stream: Stream, seed: int, rounds: int, *, kind: str, epsilon: float = 0.1, **settings: Any):
        from mabwiser.mab import MAB, LearningPolicy

        self.stream = stream
        self.own = stream.items == "moving" or not stream.user
        self.random = np.random.default_rng(seed)
        self.epsilon = epsilon if kind == "LinGreedy" and self.own else 0.0
        if kind == "LinGreedy":
            settings["epsilon"] = 0.0 if self.own else epsilon
        self._make = lambda arms: MAB(list(arms), getattr(LearningPolicy, kind)(**settings), seed=seed)
        self.mab: Any = None
        self.fitted = False
        self.known: set[int] = set()

    def choose(self, shown: Round) -> tuple[int, Any]:
        if self.mab is None:
            self.mab, self.known = self._make(shown.arms), set(shown.arms)
        if self.stream.arms_change:
            for arm in set(shown.arms) - self.known:
                self.mab.add_arm(arm)
            for arm in self.known - set(shown.arms):
                self.mab.remove_arm(arm)
            self.known = set(shown.arms)
        if not self.fitted or (self.epsilon and self.random.random() < self.epsilon):
            return int(self.random.integers(len(shown.arms))), None
        if not self.own:
            return shown.arms.index(self.mab.predict(one_context(shown)[None, :])), None
        expected = self.mab.predict_expectations(contexts(shown, self.stream))
        return int(np.argmax([expected[i][arm] for i, arm in enumerate(shown.arms)])), None

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        row = contexts(shown, self.stream)[place : place + 1]
        fit = self.mab.partial_fit if self.fitted else self.mab.fit
        fit([shown.arms[place]], [reward], np.ascontiguousarray(row))
        self.fitted = True


def _method(kind: str, *grid: dict[str, Any]) -> Method:
    return Method(
        name=f"mabwiser {kind}", library="mabwiser", make=Wiser, settings={"kind": kind}, grid=grid,
        grid_in=("wine", "breast cancer", "iris"),
    )  # fmt: skip


METHODS = (
    _method("LinUCB", {"alpha": 0.01}, {"alpha": 0.1}),
    _method("LinTS", {"alpha": 0.01}, {"alpha": 0.1}),
    _method("LinGreedy", {"epsilon": 0.01}, {"epsilon": 0.03}),
)
