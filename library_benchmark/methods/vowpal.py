"""Vowpal Wabbit: contextual bandits with features of actions (`--cb_explore_adf`), by its text format."""

from __future__ import annotations

import random
from typing import Any

from library_benchmark.methods.interface import Method
from library_benchmark.streams import Round, Stream


class Vowpal:
    """A workspace. With a user: namespaces User and Action, crossed (-q UA), as its tutorial does; without one: the
    arm's name, x and z, where the name is crossed with z (-q NZ), which is the hybrid model. Costs are -reward.
    """

    def __init__(self, stream: Stream, seed: int, rounds: int, *, explore: str, **settings: Any):
        from vowpalwabbit import Workspace

        self.stream = stream
        options = "".join(f" --{name} {value}" for name, value in settings.items())
        cross = "-q UA" if stream.user else "-q NZ"
        self.vw: Any = Workspace(f"--cb_explore_adf {explore}{options} {cross} --quiet --random_seed {seed}")
        self.random = random.Random(seed)

    def choose(self, shown: Round) -> tuple[int, Any]:
        lines = self._lines(shown)
        probabilities = self.vw.predict(lines)
        place = self.random.choices(range(len(shown.arms)), probabilities)[0]
        return place, (lines, probabilities[place])

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        lines, probability = receipt
        lines = list(lines)
        at = place + self.stream.user
        lines[at] = f"0:{-reward:.9g}:{probability:.9g} {lines[at]}"
        self.vw.learn(lines)

    def _lines(self, shown: Round) -> list[str]:
        if shown.user is None:
            return [
                f"|N a{arm} |X {_features(x)} |Z {_features(z)}"
                for arm, x, z in zip(shown.arms, shown.x.tolist(), shown.z.tolist(), strict=True)
            ]
        items = [[] for _ in shown.arms] if shown.items is None else shown.items.tolist()
        shared = f"shared |User {_features(shown.user.tolist())}"
        return [shared, *(f"|Action a{arm} {_features(item)}" for arm, item in zip(shown.arms, items, strict=True))]


def _features(values: list[float]) -> str:
    return " ".join(f"{i}:{value:.7g}" for i, value in enumerate(values))


def _method(name: str, explore: str, *grid: dict[str, Any]) -> Method:
    return Method(
        name=f"vowpalwabbit {name}", library="vowpalwabbit", make=Vowpal, settings={"explore": explore}, grid=grid,
        grid_in=("data sets",),
    )  # fmt: skip


METHODS = (
    _method("epsilon", "", {"epsilon": 0.01}, {"epsilon": 0.2}),
    _method("squarecb", "--squarecb", {"gamma_scale": 100}, {"gamma_scale": 1000}),
    _method("regcb", "--regcb"),
    _method("cover", "--cover 5"),
)
