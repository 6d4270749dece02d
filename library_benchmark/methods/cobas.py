"""coba: its learners that do not need another library."""

from __future__ import annotations

from typing import Any

from library_benchmark.methods.interface import Method
from library_benchmark.streams import Round, Stream


class Coba:
    """A learner of `coba.learners`: the context is the user, an action its features and its number as 0 and 1.

    Where arms come and go, actions have features only, because their length must stay.
    """

    def __init__(self, stream: Stream, seed: int, rounds: int, *, kind: str, **settings: Any):
        from coba import learners

        self.stream = stream
        self.learner: Any = getattr(learners, kind)(seed=seed, **settings)
        size = 0 if stream.arms_change else stream.arms
        self.numbers = [tuple(float(i == arm) for i in range(size)) for arm in range(stream.arms)]

    def choose(self, shown: Round) -> tuple[int, Any]:
        items = [()] * len(shown.arms) if shown.items is None else shown.items.tolist()
        actions = [(*item, *number) for item, number in zip(items, self.numbers, strict=True)]
        context = None if shown.user is None else shown.user[1:].tolist()  # it has a constant of its own
        action, probability = self.learner.predict(context, actions)
        return actions.index(action), (context, action, probability)

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        context, action, probability = receipt
        self.learner.learn(context, action, reward, probability)


def _method(name: str, kind: str, *grid: dict[str, Any]) -> Method:
    return Method(
        name=f"coba {name}", library="coba", make=Coba, settings={"kind": kind}, grid=grid,
        grid_in=("wine", "breast cancer", "iris"),
    )  # fmt: skip


METHODS = (
    _method("LinUCB", "LinUCBLearner", {"alpha": 0.01}, {"alpha": 0.1}),
    _method("LinTS", "LinTSLearner", {"v": 0.01}, {"v": 0.1}),
)
