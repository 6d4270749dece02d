"""bayesianbandits: an agent with a model per arm, and one with a model for all arms on hybrid features."""

from __future__ import annotations

from typing import Any

import numpy as np

from library_benchmark.methods.interface import Method, contexts, one_context
from library_benchmark.streams import Round, Stream

FORGETTING = 0.999
"""Rate of the forgetting rule; the library has no default for it."""

DENSE = 700
"""The most weights of a dense model on hybrid features; larger ones are sparse."""


def _learner(kind: str, seed: int, *, forgetting: bool = False, **settings: Any) -> Any:
    import bayesianbandits

    if forgetting:
        settings["forgetting"] = bayesianbandits.StabilizedForgetting(rate=FORGETTING)
    return getattr(bayesianbandits, kind)(random_state=seed, **settings)


def _policy(name: str) -> Any:
    import bayesianbandits

    return getattr(bayesianbandits, name)()


class PerArm:
    """`ContextualAgent`. Where candidates have features of their own, each arm draws for its own features."""

    def __init__(
        self, stream: Stream, seed: int, rounds: int, *, kind: str, policy: str = "ThompsonSampling", **settings: Any
    ):
        from bayesianbandits import Arm, ContextualAgent

        self.stream, self.seed, self.count = stream, seed, 0
        self.kind, self.settings = kind, settings
        self._arm = Arm
        self.agent: Any = None
        self._agent = lambda arms: ContextualAgent(arms, _policy(policy), random_seed=seed)
        self.known: set[int] = set()

    def _admit(self, arms: Any) -> None:
        """Add arms that came, remove arms that went."""
        new = [arm for arm in arms if arm not in self.known]
        if not new:
            return
        arms_added = []
        for arm in new:
            arms_added.append(self._arm(arm, learner=_learner(self.kind, self.seed + self.count, **self.settings)))
            self.count += 1
        if self.agent is None:
            self.agent = self._agent(arms_added)
        else:
            for arm in arms_added:
                self.agent.add_arm(arm)
            for gone in self.known - set(arms):
                self.agent.remove_arm(gone)
        self.known = set(arms)

    def choose(self, shown: Round) -> tuple[int, Any]:
        if len(self.known) != len(shown.arms) or not self.known.issuperset(shown.arms):
            self._admit(shown.arms)
        if self.stream.user and self.stream.items != "moving":
            (arm,) = self.agent.pull(one_context(shown)[None, :])
            return shown.arms.index(arm), None
        rows = contexts(shown, self.stream)
        draws = [float(np.ravel(self.agent.arm(arm).sample(rows[i : i + 1]))[0]) for i, arm in enumerate(shown.arms)]
        return int(np.argmax(draws)), None

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        row = contexts(shown, self.stream)[place : place + 1]
        self.agent.select_for_update(shown.arms[place]).update(row, np.array([reward]))


class Hybrid:
    """`LipschitzContextualAgent`: one model for all arms, on (x, z in the arm's own block).

    Where arms come and go there are no blocks, because the number of columns must stay: the model is on (x, z).
    """

    def __init__(
        self, stream: Stream, seed: int, rounds: int, *, kind: str, policy: str = "ThompsonSampling", **settings: Any
    ):
        from bayesianbandits import Arm, ArmFeaturizer, LipschitzContextualAgent

        self.stream = stream
        self.width = stream.d1 + (1 if stream.arms_change else stream.arms) * stream.d2
        self.sparse = self.width > DENSE
        method = self

        class Prepared(ArmFeaturizer):  # type: ignore[misc]
            """The rows of the round at hand."""

            def transform(self, numbers: Any, *, action_tokens: Any) -> Any:
                return method.rows(list(action_tokens))

        self.shown: Round | None = None
        self._arm = Arm
        learner = _learner(kind, seed, sparse=self.sparse, **settings)
        self._agent = lambda arms: LipschitzContextualAgent(
            arms, _policy(policy), Prepared(), learner, random_seed=seed
        )
        self.agent: Any = None
        self.known: set[int] = set()

    def rows(self, arms: list[int]) -> Any:
        shown, d1, d2 = self.shown, self.stream.d1, self.stream.d2
        assert shown is not None
        places = [shown.arms.index(arm) for arm in arms]
        rows = np.zeros((len(arms), self.width))
        rows[:, :d1] = shown.x[places]
        for i, place in enumerate(places):
            start = d1 if self.stream.arms_change else d1 + arms[i] * d2
            rows[i, start : start + d2] = shown.z[place]
        if not self.sparse:
            return rows
        from scipy.sparse import csc_array

        return csc_array(rows)

    def choose(self, shown: Round) -> tuple[int, Any]:
        self.shown = shown
        if self.agent is None:
            self.agent, self.known = self._agent([self._arm(arm) for arm in shown.arms]), set(shown.arms)
        if self.stream.arms_change:
            for arm in set(shown.arms) - self.known:
                self.agent.add_arm(self._arm(arm))
            for arm in self.known - set(shown.arms):
                self.agent.remove_arm(arm)
            self.known = set(shown.arms)
        (arm,) = self.agent.pull([0])
        return shown.arms.index(arm), None

    def learn(self, shown: Round, place: int, reward: float, receipt: Any) -> None:
        self.shown = shown
        self.agent.select_for_update(shown.arms[place]).update([0], np.array([reward]))


def _method(name: str, make: Any, kind: str, *, only: str = "", **settings: Any) -> Method:
    return Method(
        name=f"bayesianbandits {name}", library="bayesianbandits", make=make, settings={"kind": kind, **settings},
        only_in=(only,) if only else (),
    )  # fmt: skip


METHODS = (
    _method("inverse gamma, Thompson", PerArm, "NormalInverseGammaRegressor"),
    _method("empirical Bayes, Thompson", PerArm, "EmpiricalBayesNormalRegressor"),
    _method("empirical Bayes, forgetting", PerArm, "EmpiricalBayesNormalRegressor", forgetting=True, only="changing"),
    _method(
        "hybrid, empirical Bayes, IDS", Hybrid, "EmpiricalBayesNormalRegressor", policy="InformationDirectedSampling"
    ),
)
