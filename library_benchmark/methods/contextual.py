"""contextualbandits: LinUCB, and policies around a classifier per arm, in streaming mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybandits.foundation.checks import FloatArray
from library_benchmark.methods.interface import Method, contexts, needs_clicks, one_context
from library_benchmark.streams import Round, Stream

BATCH = 50
"""Policies around classifiers learn after so many rewards, as in the library's own examples."""


class Contextual:
    """A policy of `contextualbandits.online` with named arms; candidates with features of their own by its scores."""

    def __init__(self, stream: Stream, seed: int, rounds: int, *, kind: str, scores: bool, **settings: Any):
        from contextualbandits import online

        self.stream, self.scores = stream, scores
        self.batch = 1 if kind == "LinUCB" else BATCH
        self.waiting: list[tuple[FloatArray, int, float]] = []
        if kind != "LinUCB":
            from sklearn.linear_model import SGDClassifier

            needs_clicks(stream)
            settings = {
                "base_algorithm": SGDClassifier(loss="log_loss", random_state=seed), "batch_train": True, **settings,
            }  # fmt: skip
            settings["njobs_arms" if kind == "BootstrappedTS" else "njobs"] = 1
            if kind == "BootstrappedTS":  # each row is looked at once, so that this is the same, and faster
                settings["sample_unique"] = False
        self._make = lambda arms: getattr(online, kind)(nchoices=list(arms), random_state=seed, **settings)
        self.policy: Any = None
        self.known: list[int] = []
        self.random = np.random.default_rng(seed)

    def _rows(self, shown: Round) -> FloatArray:
        return contexts(shown, self.stream) if self.scores else one_context(shown)[None, :]

    def choose(self, shown: Round) -> tuple[int, Any]:
        if self.policy is None:
            self.policy, self.known = self._make(shown.arms), list(shown.arms)
        if self.stream.arms_change and set(self.known) != set(shown.arms) and self.policy.is_fitted:
            for gone in [arm for arm in self.known if arm not in shown.arms]:
                self.policy.drop_arm(self.known.index(gone))
                self.known.remove(gone)
            for new in [arm for arm in shown.arms if arm not in self.known]:
                self.policy.add_arm(new)
                self.known.append(new)
        if not self.policy.is_fitted:
            return int(self.random.integers(len(shown.arms))), None
        if self.scores and (self.stream.items == "moving" or not self.stream.user):
            scores = self.policy.decision_function(contexts(shown, self.stream))
            order = [self.known.index(arm) for arm in shown.arms]
            own = scores[np.arange(len(shown.arms)), order]
            return int(self.random.choice(np.flatnonzero(own == own.max()))), None
        arm = self.policy.predict(one_context(shown)[None, :])[0]
        return shown.arms.index(int(arm)), None

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        rows = self._rows(shown)
        row = rows[place : place + 1] if len(rows) > 1 else rows
        self.waiting.append((row[0], shown.arms[place], reward))
        if len(self.waiting) == self.batch:
            all_rows, arms, rewards = (np.array(column) for column in zip(*self.waiting, strict=True))
            self.policy.partial_fit(all_rows, arms, rewards)
            self.waiting.clear()


def _method(kind: str, *, scores: bool, grid: tuple[dict[str, Any], ...] = ()) -> Method:
    return Method(
        name=f"contextualbandits {kind}", library="contextualbandits", make=Contextual, grid=grid,
        grid_in=("wine", "breast cancer", "iris"),
        settings={"kind": kind, "scores": scores},
    )  # fmt: skip


METHODS = (
    _method("LinUCB", scores=True, grid=({"alpha": 0.01}, {"alpha": 0.1})),
    _method("BootstrappedTS", scores=True),
    _method("SoftmaxExplorer", scores=False),
)
