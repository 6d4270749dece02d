"""Other bandit libraries behind one interface, so that one round of each can be timed.

A round is: choose one of K candidates whose features are given, then learn the reward of the chosen one.
Whatever a user could do before the round starts (dicts, dense block rows, parsed examples) is done in the
constructors, so `round` holds only the library's own choose and learn calls.

Four kinds of model occur, and each adapter's docstring says which one it fits:

* shared: one weight vector for (x, z), the same for all arms;
* disjoint: one weight vector per arm on one context for the whole round, here (x[t, 0], z[t, 0]);
* hybrid: x.theta + z.beta_i, by putting z into arm i's own block of a d1 + K*d2 vector;
* SGD: no covariance matrix at all, a stochastic gradient step per reward.

Run as a script, it prints microseconds per round for every library that is installed.
"""

from __future__ import annotations

import os

if __name__ == "__main__":
    for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[_variable] = "1"

import argparse
import gc
import importlib
import itertools
import random
import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

MEMORY_LIMIT = 4 * 2**30
"""Adapters whose model and prepared rounds would need more bytes than this are reported as not available."""


@dataclass(frozen=True)
class PreparedRounds:
    """T rounds of K arms: features of every arm, and the reward each arm would give."""

    d1: int
    d2: int
    arms: int
    x: np.ndarray
    """Features with shared weights, shape (T, K, d1)."""
    z: np.ndarray
    """Features with weights of the arm's own, shape (T, K, d2)."""
    rewards: np.ndarray
    """Shape (T, K)."""

    def __len__(self) -> int:
        return len(self.rewards)

    @property
    def width(self) -> int:
        """Number of weights in the hybrid model: d1 + K*d2."""
        return self.d1 + self.arms * self.d2

    def joined(self) -> np.ndarray:
        """(x, z) of every arm, shape (T, K, d1 + d2)."""
        return np.concatenate([self.x, self.z], axis=2)

    def contexts(self) -> np.ndarray:
        """One context per round for disjoint models: (x[t, 0], z[t, 0]), shape (T, d1 + d2)."""
        return np.concatenate([self.x[:, 0], self.z[:, 0]], axis=1)

    def columns(self) -> np.ndarray:
        """Positions of arm k's (x, z) in the hybrid vector, shape (K, d1 + d2), increasing along each row."""
        own = self.d1 + np.arange(self.arms * self.d2).reshape(self.arms, self.d2)
        return np.concatenate([np.broadcast_to(np.arange(self.d1), (self.arms, self.d1)), own], axis=1)

    def blocks(self, dtype: type[np.floating[Any]]) -> np.ndarray:
        """Dense hybrid vectors of every arm, shape (T, K, d1 + K*d2)."""
        rows = np.zeros((len(self), self.arms, self.width), dtype)
        rows[:, np.arange(self.arms)[:, None], self.columns()] = self.joined()
        return rows


class Peer(Protocol):
    """A library set up on prepared rounds. Make a new one for every pass over the rounds."""

    name: str
    chosen: int
    """Arm picked by the latest round, -1 before the first."""

    def round(self, t: int) -> None:
        """One choose and one learn on prepared round t."""


class _Adapter:
    """Common part of the adapters: name, required module, and estimated memory."""

    name = ""
    module = ""
    chosen = -1

    @staticmethod
    def memory(rounds: PreparedRounds) -> int:
        """Bytes of the model and the prepared rounds, where that could be too much."""
        return 0


class ContextualBanditsLinUCB(_Adapter):
    """contextualbandits' LinUCB policy, Sherman-Morrison in float32; fits disjoint models."""

    name = "contextualbandits LinUCB (disjoint)"
    module = "contextualbandits.online"

    def __init__(self, rounds: PreparedRounds) -> None:
        from contextualbandits.online import LinUCB

        contexts = rounds.contexts().astype(np.float32)
        self._contexts = list(contexts[:, None, :])
        self._rewards = rounds.rewards.astype(np.float32)
        self._policy = LinUCB(rounds.arms, fit_intercept=False, use_float=True, method="sm", random_state=1, njobs=1)
        # One reward for each arm first, so that no arm is timed in its cheaper, empty state.
        self._policy.fit(np.repeat(contexts[:1], rounds.arms, axis=0), np.arange(rounds.arms), self._rewards[0])

    def round(self, t: int) -> None:
        context = self._contexts[t]
        arm = self._policy.predict(context)
        self._policy.partial_fit(context, arm, self._rewards[t, arm])
        self.chosen = int(arm[0])


class ContextualBanditsShared(_Adapter):
    """contextualbandits' LinearRegression with its UCB scores, Sherman-Morrison in float32; fits a shared model."""

    name = "contextualbandits LinearRegression (shared)"
    module = "contextualbandits.linreg"

    def __init__(self, rounds: PreparedRounds) -> None:
        from contextualbandits.linreg import LinearRegression

        self._rewards = rounds.rewards.astype(np.float32)
        self._candidates, self._rows = self._prepare(rounds)
        self._model = LinearRegression(lambda_=1.0, fit_intercept=False, method="sm", use_float=True)
        self._model.fit(self._rows[0][0], self._rewards[0, :1])

    @staticmethod
    def _prepare(rounds: PreparedRounds) -> tuple[Sequence[Any], Sequence[Sequence[Any]]]:
        """All candidates of each round as one matrix, and each candidate as a matrix of one row."""
        joined = rounds.joined().astype(np.float32)
        return list(joined), [list(each[:, None, :]) for each in joined]

    def round(self, t: int) -> None:
        arm = int(self._model.predict_ucb(self._candidates[t], 1.0).argmax())
        self._model.partial_fit(self._rows[t][arm], self._rewards[t, arm : arm + 1])
        self.chosen = arm


class ContextualBanditsHybrid(ContextualBanditsShared):
    """contextualbandits' LinearRegression on block rows, dense or CSR as is faster; fits the full hybrid model."""

    name = "contextualbandits LinearRegression (hybrid)"

    @staticmethod
    def _dense(rounds: PreparedRounds) -> bool:
        """True if dense rows beat sparse ones (measured: up to about 20,000 cells per round)."""
        return rounds.arms * rounds.width <= 20_000

    @staticmethod
    def memory(rounds: PreparedRounds) -> int:
        rows = 4 * rounds.width if ContextualBanditsHybrid._dense(rounds) else 2_000
        return 2 * 4 * rounds.width**2 + len(rounds) * rounds.arms * rows

    @staticmethod
    def _prepare(rounds: PreparedRounds) -> tuple[Sequence[Any], Sequence[Sequence[Any]]]:
        if ContextualBanditsHybrid._dense(rounds):
            blocks = rounds.blocks(np.float32)
            return list(blocks), [list(each[:, None, :]) for each in blocks]
        from scipy.sparse import csr_matrix

        joined, columns = rounds.joined().astype(np.float32), rounds.columns()
        starts = np.arange(rounds.arms + 1) * columns.shape[1]
        shape = (rounds.arms, rounds.width)
        candidates = [csr_matrix((each.ravel(), columns.ravel(), starts), shape=shape) for each in joined]
        return candidates, [[each[arm] for arm in range(rounds.arms)] for each in candidates]


class MABWiserLinUCB(_Adapter):
    """MABWiser's LinUCB policy, which inverts the chosen arm's matrix at each reward; fits disjoint models."""

    name = "mabwiser LinUCB (disjoint)"
    module = "mabwiser.mab"

    def __init__(self, rounds: PreparedRounds) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        contexts = rounds.contexts()
        self._contexts = list(contexts[:, None, :])
        self._rewards = rounds.rewards
        self._arms = np.arange(rounds.arms)
        self._mab = MAB(list(range(rounds.arms)), LearningPolicy.LinUCB(alpha=1.0), seed=1, n_jobs=1)
        self._mab.fit(self._arms, self._rewards[0], np.repeat(contexts[:1], rounds.arms, axis=0))

    def round(self, t: int) -> None:
        context = self._contexts[t]
        arm = self._mab.predict(context)
        self._mab.partial_fit(self._arms[arm : arm + 1], self._rewards[t, arm : arm + 1], context)
        self.chosen = arm


class RiverLinUCB(_Adapter):
    """river's LinUCBDisjoint policy on feature dicts made ahead; fits disjoint models."""

    name = "river LinUCBDisjoint"
    module = "river.bandit"

    def __init__(self, rounds: PreparedRounds) -> None:
        from river.bandit import LinUCBDisjoint

        self._contexts = [dict(enumerate(each)) for each in rounds.contexts().tolist()]
        self._rewards = rounds.rewards.tolist()
        self._arms = list(range(rounds.arms))
        self._policy: Any = LinUCBDisjoint(seed=1)
        for arm in self._arms:
            self._policy.update(arm, self._contexts[0], self._rewards[0][arm])

    def round(self, t: int) -> None:
        context = self._contexts[t]
        arm = self._policy.pull(self._arms, context=context)
        self._policy.update(arm, context, self._rewards[t][arm])
        self.chosen = arm


class _VowpalWabbit(_Adapter):
    """--cb_explore_adf with its default epsilon-greedy and mtr, on features numbered as in the hybrid vector.

    These numbers give the same model as crossing z with the arm's name by -q, faster and without hash collisions.
    """

    module = "vowpalwabbit"

    def __init__(self, rounds: PreparedRounds) -> None:
        from vowpalwabbit import Workspace

        bits = max(18, rounds.width.bit_length())
        self._vw = Workspace(f"--cb_explore_adf --epsilon 0.05 --noconstant --quiet -b {bits} --random_seed 1")
        self._costs = (-rounds.rewards).tolist()
        self._arms = range(rounds.arms)
        self._draw = random.Random(1)

    @staticmethod
    def _texts(rounds: PreparedRounds) -> Iterator[str]:
        """Each round in VW's text format: one line per arm and no shared line, as x and z are each arm's own."""
        columns = rounds.columns().tolist()
        for rows in rounds.joined().tolist():
            pairs = (zip(*each, strict=True) for each in zip(columns, rows, strict=True))
            yield "\n".join("| " + " ".join(f"{column}:{value:.7g}" for column, value in each) for each in pairs)

    def _play(self, examples: list[Any], costs: list[float]) -> None:
        probabilities = self._vw.predict(examples)
        arm = self._draw.choices(self._arms, probabilities)[0]
        examples[arm].set_label_string(f"0:{costs[arm]}:{probabilities[arm]}")
        self._vw.learn(examples)
        self.chosen = arm


class VowpalWabbitText(_VowpalWabbit):
    """VW, parsing the round's text once within the round and releasing it there; hybrid model by SGD."""

    name = "vowpalwabbit (text)"

    def __init__(self, rounds: PreparedRounds) -> None:
        super().__init__(rounds)
        self._lines = list(self._texts(rounds))

    def round(self, t: int) -> None:
        examples = self._vw.parse(self._lines[t])
        self._play(examples, self._costs[t])
        self._vw.finish_example(examples)


class VowpalWabbitParsed(_VowpalWabbit):
    """VW, on examples parsed before the first round and released after the last; hybrid model by SGD.

    Each round can be played once: VW's Python interface adds labels to an example but cannot take one back.
    """

    name = "vowpalwabbit (pre-parsed)"

    def __init__(self, rounds: PreparedRounds) -> None:
        super().__init__(rounds)
        self._examples = [self._vw.parse(text) for text in self._texts(rounds)]
        self._spent = [False] * len(rounds)
        self._release = weakref.finalize(self, self._finish, self._vw, self._examples)

    @staticmethod
    def memory(rounds: PreparedRounds) -> int:
        return len(rounds) * rounds.arms * 32_000

    @staticmethod
    def _finish(vw: Any, examples: list[list[Any]]) -> None:
        """Give the examples back to VW; it never frees examples that were not given back."""
        for each in examples:
            vw.finish_example(each)
        vw.finish()

    def round(self, t: int) -> None:
        if self._spent[t]:
            raise RuntimeError(f"round {t} was played before, and its examples keep their label: make a new peer")
        self._spent[t] = True
        self._play(self._examples[t], self._costs[t])


class CobaLinUCB(_Adapter):
    """coba's LinUCBLearner on action features alone, by Sherman-Morrison; fits a shared model."""

    name = "coba LinUCB (shared)"
    module = "coba.learners"

    def __init__(self, rounds: PreparedRounds) -> None:
        from coba.learners import LinUCBLearner

        self._actions = rounds.joined().tolist()
        self._numbers = [{id(action): arm for arm, action in enumerate(actions)} for actions in self._actions]
        self._rewards = rounds.rewards.tolist()
        self._learner = LinUCBLearner(alpha=1.0, features=["a"], seed=1)

    def round(self, t: int) -> None:
        action, probability = self._learner.predict(None, self._actions[t])
        arm = self._numbers[t][id(action)]
        self._learner.learn(None, action, self._rewards[t][arm], probability)
        self.chosen = arm


class BayesianBanditsDisjoint(_Adapter):
    """bayesianbandits' ContextualAgent, Thompson sampling (its fastest policy here); fits disjoint models."""

    name = "bayesianbandits ContextualAgent (disjoint)"
    module = "bayesianbandits"

    def __init__(self, rounds: PreparedRounds) -> None:
        from bayesianbandits import Arm, ContextualAgent, NormalRegressor, ThompsonSampling

        self._contexts = list(rounds.contexts()[:, None, :])
        self._rewards = rounds.rewards
        arms = [Arm(arm, learner=NormalRegressor(alpha=1.0, beta=1.0)) for arm in range(rounds.arms)]
        self._agent = ContextualAgent(arms, ThompsonSampling(), random_seed=1)
        for arm in range(rounds.arms):
            self._agent.select_for_update(arm).update(self._contexts[0], self._rewards[0, arm : arm + 1])

    def round(self, t: int) -> None:
        context = self._contexts[t]
        (arm,) = self._agent.pull(context)
        self._agent.update(context, self._rewards[t, arm : arm + 1])
        self.chosen = arm


class BayesianBanditsShared(_Adapter):
    """bayesianbandits' LipschitzContextualAgent, Thompson sampling; fits a shared model."""

    name = "bayesianbandits LipschitzContextualAgent (shared)"
    module = "bayesianbandits"

    def __init__(self, rounds: PreparedRounds) -> None:
        from bayesianbandits import Arm, ArmFeaturizer, LipschitzContextualAgent, NormalRegressor, ThompsonSampling

        candidates, row, sparse = self._prepare(rounds)

        class Prepared(ArmFeaturizer):  # type: ignore[misc]
            """Looks up what was prepared: the context is the number of the round."""

            def transform(self, numbers: Sequence[int], *, action_tokens: Sequence[int]) -> Any:
                (t,) = numbers
                return candidates[t] if len(action_tokens) > 1 else row(t, action_tokens[0])

        self._rewards = rounds.rewards
        learner = NormalRegressor(alpha=1.0, beta=1.0, sparse=sparse)
        arms = [Arm(arm) for arm in range(rounds.arms)]
        self._agent = LipschitzContextualAgent(arms, ThompsonSampling(), Prepared(), learner, random_seed=1)
        self._agent.learner.partial_fit(candidates[0], self._rewards[0])

    @staticmethod
    def _prepare(rounds: PreparedRounds) -> tuple[Sequence[Any], Callable[[int, int], Any], bool]:
        """All candidates of each round, a function for the row of one candidate, and whether they are sparse."""
        joined = rounds.joined()
        return list(joined), lambda t, arm: joined[t, arm : arm + 1], False

    def round(self, t: int) -> None:
        (arm,) = self._agent.pull([t])
        self._agent.update([t], self._rewards[t, arm : arm + 1])
        self.chosen = arm


class BayesianBanditsHybrid(BayesianBanditsShared):
    """bayesianbandits' LipschitzContextualAgent on block rows, Thompson sampling; fits the full hybrid model."""

    name = "bayesianbandits LipschitzContextualAgent (hybrid)"

    @staticmethod
    def _dense(rounds: PreparedRounds) -> bool:
        """True if dense matrices beat sparse ones (measured: up to about 500 weights)."""
        return rounds.width <= 500

    @staticmethod
    def memory(rounds: PreparedRounds) -> int:
        if BayesianBanditsHybrid._dense(rounds):
            return 8 * (len(rounds) * rounds.arms * rounds.width + 3 * rounds.width**2)
        return 4 * rounds.arms * rounds.width + 16 * len(rounds) * rounds.arms * (rounds.d1 + rounds.d2)

    @staticmethod
    def _prepare(rounds: PreparedRounds) -> tuple[Sequence[Any], Callable[[int, int], Any], bool]:
        if BayesianBanditsHybrid._dense(rounds):
            blocks = rounds.blocks(np.float64)
            return list(blocks), lambda t, arm: blocks[t, arm : arm + 1], False
        from scipy.sparse import csc_array

        joined, columns = rounds.joined(), rounds.columns()
        arms, width = rounds.arms, rounds.width
        # The places of the non-zeros are the same in every round, so only the values differ.
        order = np.argsort(columns.ravel(), kind="stable")
        places = (order // columns.shape[1]).astype(np.int32)
        starts = np.searchsorted(columns.ravel()[order], np.arange(width + 1)).astype(np.int32)
        candidates = [csc_array((each.ravel()[order], places, starts), shape=(arms, width)) for each in joined]
        row_starts = [np.searchsorted(each, np.arange(width + 1)).astype(np.int32) for each in columns]
        row_places = np.zeros(columns.shape[1], np.int32)
        return (
            candidates,
            lambda t, arm: csc_array((joined[t, arm], row_places, row_starts[arm]), shape=(1, width)),
            True,
        )


ADAPTERS = (
    ContextualBanditsLinUCB,
    ContextualBanditsShared,
    ContextualBanditsHybrid,
    MABWiserLinUCB,
    RiverLinUCB,
    VowpalWabbitText,
    VowpalWabbitParsed,
    CobaLinUCB,
    BayesianBanditsDisjoint,
    BayesianBanditsShared,
    BayesianBanditsHybrid,
)


def available(workload_rounds: PreparedRounds) -> Iterator[tuple[str, Callable[[PreparedRounds], Peer] | str]]:
    """For each adapter its name, with a factory or the reason why it cannot run on these rounds."""
    for adapter in ADAPTERS:
        try:
            importlib.import_module(adapter.module)
        except (ImportError, AttributeError, ValueError) as error:
            yield adapter.name, f"{type(error).__name__}: {error}"
            continue
        memory = adapter.memory(workload_rounds)
        if memory > MEMORY_LIMIT:
            yield adapter.name, f"would need about {memory / 2**30:.1f} GiB"
        else:
            yield adapter.name, adapter


def make_rounds(d1: int, d2: int, arms: int, rounds: int, seed: int = 0) -> PreparedRounds:
    """Random rounds from a hybrid model with unit-scale rewards and a little noise."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rounds, arms, d1)) / np.sqrt(d1)
    z = generator.standard_normal((rounds, arms, d2)) / np.sqrt(d2)
    theta, beta = generator.standard_normal(d1), generator.standard_normal((arms, d2))
    noise = 0.1 * generator.standard_normal((rounds, arms))
    return PreparedRounds(d1, d2, arms, x, z, x @ theta + np.einsum("tkd,kd->tk", z, beta) + noise)


def microseconds(peer: Peer, rounds: int, budget: float, chunks: int = 10) -> tuple[float, int]:
    """Median over chunks of the mean time of a round, and the rounds timed within `budget` seconds.

    The first tenth of the rounds is not timed.
    """
    warm = max(1, rounds // 10)
    stop = time.perf_counter() + budget
    for t in range(warm):
        peer.round(t)
        if time.perf_counter() > stop:
            warm = t + 1
            break
    stop = time.perf_counter() + budget
    stamps = [time.perf_counter()]
    for t in range(warm, rounds):
        peer.round(t)
        stamps.append(time.perf_counter())
        if stamps[-1] > stop:
            break
    edges = np.unique(np.linspace(0, len(stamps) - 1, chunks + 1).astype(int)).tolist()
    means = [(stamps[b] - stamps[a]) / (b - a) for a, b in itertools.pairwise(edges)]
    return 1e6 * statistics.median(means), len(stamps) - 1


def main() -> None:
    """Time every available peer on one workload."""
    parser = argparse.ArgumentParser(description="Microseconds per bandit round of other libraries.")
    parser.add_argument("--d1", type=int, default=40, help="number of features with shared weights")
    parser.add_argument("--d2", type=int, default=5, help="number of features with weights per arm")
    parser.add_argument("--arms", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds after which a slow peer is stopped")
    parser.add_argument("--only", default="", help="only peers with this in their name")
    arguments = parser.parse_args()
    rounds = make_rounds(arguments.d1, arguments.d2, arguments.arms, arguments.rounds)
    print(f"d1={rounds.d1} d2={rounds.d2} K={rounds.arms}: microseconds per round (rounds timed)")
    for name, factory in available(rounds):
        if arguments.only not in name:
            continue
        if isinstance(factory, str):
            print(f"{name:52s} not available: {factory}", flush=True)
            continue
        peer = factory(rounds)
        gc.collect()
        gc.disable()
        try:
            time_, timed = microseconds(peer, len(rounds), arguments.budget)
        finally:
            gc.enable()
        print(f"{name:52s} {time_:12.1f} ({timed})", flush=True)
        del peer


if __name__ == "__main__":
    main()
