"""scikit-learn: epsilon-greedy around one linear model per arm, trained by partial_fit, as people write it."""

from __future__ import annotations

from typing import Any

import numpy as np

from library_benchmark.methods.interface import Method, contexts
from library_benchmark.streams import Round, Stream


class Scikit:
    """A logistic `SGDClassifier` per arm, or an `SGDRegressor` where rewards are not 0 and 1.

    An arm that has learned nothing yet is tried first.
    """

    def __init__(self, stream: Stream, seed: int, rounds: int, *, epsilon: float = 0.1):
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        self.stream, self.epsilon = stream, epsilon
        self.random = np.random.default_rng(seed)
        self.models: dict[int, Any] = {}
        self.binary = stream.binary
        self._model = (
            (lambda: SGDClassifier(loss="log_loss", random_state=seed))
            if self.binary
            else (lambda: SGDRegressor(random_state=seed))
        )

    def choose(self, shown: Round) -> tuple[int, Any]:
        unknown = [i for i, arm in enumerate(shown.arms) if arm not in self.models]
        if unknown or self.random.random() < self.epsilon:
            return int(self.random.choice(unknown or len(shown.arms))), None
        rows = contexts(shown, self.stream)
        scores = [self._score(self.models[arm], rows[i : i + 1]) for i, arm in enumerate(shown.arms)]
        return int(np.argmax(scores)), None

    def _score(self, model: Any, row: Any) -> float:
        return float((model.decision_function(row) if self.binary else model.predict(row))[0])

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        arm = shown.arms[place]
        model = self.models.setdefault(arm, self._model())
        row = contexts(shown, self.stream)[place : place + 1]
        if self.binary:
            model.partial_fit(row, [int(reward)], classes=[0, 1])
        else:
            model.partial_fit(row, [reward])


METHODS = (Method(name="scikit-learn SGD, epsilon-greedy", library="sklearn", make=Scikit),)
