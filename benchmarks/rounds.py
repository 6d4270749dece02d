"""Rounds of choose and learn: HyLinUCB beside the textbook, Thompson beside UCB, and learning among many arms."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, get_args

import numpy as np

from benchmarks.peers import PreparedRounds, make_rounds
from benchmarks.report import JUDGED, Measurement, Section, microseconds, times
from benchmarks.textbook import Textbook
from benchmarks.timing import Pair, interleave, slower
from benchmarks.workloads import WORKLOADS, Plan, Workload, teach, training_rows
from hybandits import Constant, HyLinUCB, HyThompson
from hybandits.paper import HYTHOMPSON_TOLD

PLAIN_TARGETS = {"W1": 50.0, "W2": 50.0, "W3-400": 180.0, "W4": 50.0, "W5": 30.0}
CANDIDATE_TARGETS = {"W1": 65.0, "W2": 60.0, "W3-400": 350.0, "W4": 65.0, "W5": 38.0}
THOMPSON_TARGET = 1.0
SCALE_TARGET = 1.3

CHECKED_ROUNDS = 50
"""Rounds in which the textbook and HyLinUCB must agree before anything is timed."""

Variant = Literal["same pool", "pool changes", "new strings", "candidate set"]


@cache
def prepared(workload: Workload) -> PreparedRounds:
    """Rounds to play over and over: at most 256, and at most 16 MB of features."""
    cells = workload.arms * (workload.d1 + workload.d2)
    return make_rounds(workload.d1, workload.d2, workload.arms, max(16, min(256, 2_000_000 // cells)))


@cache
def _orders(workload: Workload) -> tuple[list[list[int]], PreparedRounds]:
    """For every prepared round a permutation of the arms, and the rounds with their rows in that order."""
    draw = np.random.default_rng(3)
    rounds = prepared(workload)
    orders = np.array([draw.permutation(workload.arms) for _ in range(len(rounds))])
    pick = (np.arange(len(rounds))[:, None], orders)
    moved = PreparedRounds(
        rounds.d1, rounds.d2, rounds.arms, rounds.x[pick].copy(), rounds.z[pick].copy(), rounds.rewards[pick].copy()
    )
    return orders.tolist(), moved


class _Player(ABC):
    """Plays prepared rounds in turn, and times chunks of similar duration for every case."""

    def __init__(self, rounds: PreparedRounds) -> None:
        self._x = list(rounds.x)
        self._z = list(rounds.z)
        self._rewards = rounds.rewards.tolist()
        self._next = 0
        self._chunk = 1

    def _take(self, n: int) -> list[int]:
        total = len(self._rewards)
        taken = [(self._next + i) % total for i in range(n)]
        self._next = (self._next + n) % total
        return taken

    @abstractmethod
    def _play(self, numbers: Sequence[int]) -> float: ...

    def calibrate(self, seconds: float) -> None:
        """Make a chunk last about `seconds`."""
        self._play(self._take(2))
        self._chunk = 1
        while (elapsed := self._play(self._take(self._chunk))) < seconds / 4:
            self._chunk *= 2
        self._chunk = max(1, round(self._chunk * seconds / elapsed))

    def sample(self) -> float:
        """Seconds per round over a chunk, after one round that is not timed."""
        self._play(self._take(1))
        return self._play(self._take(self._chunk)) / self._chunk


class TextbookPlayer(_Player):
    """The textbook; its arms are integers."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(prepared(workload))
        self._book = taught_textbook(workload)

    def _play(self, numbers: Sequence[int]) -> float:
        book = self._book
        rounds = [(self._x[t], self._z[t], self._rewards[t]) for t in numbers]
        start = time.perf_counter()
        for x, z, rewards in rounds:
            arm = book.choose(x, z)
            book.learn(arm, x[arm], z[arm], rewards[arm])
        return time.perf_counter() - start


class HybridPlayer(_Player):
    """HyLinUCB called as a user would, with ids in one of the ways users have them.

    same pool      a new list of the same ids every round
    pool changes   the ids, and the rows with them, in a new random order every round
    new strings    as same pool, but each id is a new str, as when it has just been parsed: its hash is not known yet
    candidate set  made once by policy.candidates(ids)
    """

    def __init__(self, workload: Workload, variant: Variant) -> None:
        orders, moved = _orders(workload)
        super().__init__(moved if variant == "pool changes" else prepared(workload))
        self._policy = HyLinUCB(d1=workload.d1, d2=workload.d2, noise=0.1, seed=0)
        ids = workload.ids
        teach(self._policy, workload)
        self._pool: Callable[[int], Any]
        if variant == "candidate set":
            candidates = self._policy.candidates(ids)
            self._pool = lambda t: candidates
        elif variant == "pool changes":
            self._pool = lambda t: [ids[arm] for arm in orders[t]]
        elif variant == "new strings":
            self._pool = lambda t: workload.ids
        else:
            self._pool = lambda t: ids[:]

    def _play(self, numbers: Sequence[int]) -> float:
        policy = self._policy
        rounds = [(self._x[t], self._z[t], self._rewards[t], self._pool(t)) for t in numbers]
        start = time.perf_counter()
        for x, z, rewards, pool in rounds:
            choice = policy.choose(x, z, arms=pool)
            index = choice.index
            policy.learn(choice.arm, x[index], z[index], reward=rewards[index])
        return time.perf_counter() - start


def taught_textbook(workload: Workload) -> Textbook:
    """A textbook whose arms have learned the rows of `teach`."""
    book = Textbook(workload.d1, workload.d2, workload.arms)
    arms = list(range(workload.arms)) * 2
    for arm, x, z, reward in zip(arms, *training_rows(workload.d1, workload.d2, len(arms)), strict=True):
        book.learn(arm, x, z, float(reward))
    return book


def check_agreement(workload: Workload, *, taught: bool) -> None:
    """Raise unless the textbook and HyLinUCB with the same gamma and ridge choose the same arms."""
    policy = HyLinUCB(d1=workload.d1, d2=workload.d2, exploration=Constant(alpha=1.0), ridge=1.0, seed=0)
    book = Textbook(workload.d1, workload.d2, workload.arms)
    if taught:
        teach(policy, workload)
        book = taught_textbook(workload)
    rounds = prepared(workload)
    ids = workload.ids
    for t in range(CHECKED_ROUNDS):
        x, z, rewards = (each[t % len(rounds)] for each in (rounds.x, rounds.z, rounds.rewards))
        theirs = book.choose(x, z)
        ours = policy.choose(x, z, arms=ids)
        if ours.index != theirs or ours.arm != ids[theirs]:
            raise RuntimeError(f"{workload.name}, round {t}: the textbook chooses {ids[theirs]}, HyLinUCB {ours.arm}")
        book.learn(theirs, x[theirs], z[theirs], rewards[theirs])
        policy.learn(ours.arm, x[theirs], z[theirs], reward=rewards[theirs])


def run(plan: Plan) -> Section:
    """HyLinUCB's rounds beside the textbook's."""
    section = Section(
        "rounds",
        "microseconds per choose + learn from Python, all checks on, beside the textbook",
        ("workload", "case", "min us", "median us", "textbook / this", *JUDGED),
        text_columns=2,
    )
    for workload in plan.workloads:
        plan.say(f"rounds: {workload.name}, comparing decisions")
        check_agreement(workload, taught=False)
        if not plan.quick:
            check_agreement(workload, taught=True)
        plan.say(f"rounds: {workload.name}, timing")
        players: dict[str, _Player] = {"textbook": TextbookPlayer(workload)}
        for variant in get_args(Variant):
            players[variant] = HybridPlayer(workload, variant)
        for player in players.values():
            player.calibrate(plan.pick(0.015, 0.004))
        timings = interleave({name: player.sample for name, player in players.items()}, plan.repeats(40, 8))
        _tell(section, workload, timings)
    section.notes.append(
        "plain ids are judged by the slower of 'same pool' and 'pool changes'; 'new strings' has no target"
    )
    return section


def _tell(section: Section, workload: Workload, timings: dict[str, Pair]) -> None:
    """The rows of one workload."""
    name = workload.name
    textbook = timings["textbook"]
    plain = slower(timings["same pool"], timings["pool changes"])
    section.rule()
    section.add(name, f"textbook ({workload.shape})", *microseconds(textbook))
    rows = (
        ("plain ids, same pool", timings["same pool"], None),
        ("plain ids, pool changes", timings["pool changes"], None),
        ("plain ids, new strings", timings["new strings"], None),
        ("plain ids, slower of the two", plain, PLAIN_TARGETS.get(name)),
        ("candidate set", timings["candidate set"], CANDIDATE_TARGETS.get(name)),
    )
    for what, pair, target in rows:
        ratio = textbook.over(pair)
        measurement = (
            None if target is None else Measurement(name, f"{what}: textbook / HyLinUCB", "at least", target, ratio)
        )
        section.add(name, what, *microseconds(pair), times(ratio), measurement=measurement)
    section.data.append(
        {
            "workload": name,
            "d1": workload.d1,
            "d2": workload.d2,
            "arms": workload.arms,
            "seconds_per_round": {case: pair._asdict() for case, pair in timings.items()},
            "textbook_over": {case: textbook.over(pair)._asdict() for case, pair in timings.items()},
        }
    )


# ------------------------------------------------------------------ Thompson


def _choosing(policy: HyLinUCB | HyThompson, workload: Workload, calls: int) -> Callable[[], float]:
    """Seconds per `choose`, plain ids, a new list of the same ids every time."""
    teach(policy, workload)
    rounds = prepared(workload)
    numbers = itertools.cycle(range(len(rounds)))
    ids = workload.ids
    x, z = list(rounds.x), list(rounds.z)

    def sample() -> float:
        taken = [(x[t], z[t], ids[:]) for t in itertools.islice(numbers, calls)]
        start = time.perf_counter()
        for each, own, pool in taken:
            policy.choose(each, own, arms=pool)
        return (time.perf_counter() - start) / calls

    return sample


def run_thompson(plan: Plan) -> Section:
    """HyThompson.choose with given settings beside HyLinUCB.choose on W1."""
    section = Section(
        "thompson",
        "microseconds per choose, plain ids, same pool",
        ("workload", "policy", "min us", "median us", *JUDGED),
        text_columns=2,
    )
    workload = WORKLOADS["W1"]
    if workload not in plan.workloads:
        section.notes.append("left out: it is measured on W1 only, which --workloads does not name")
        return section
    plan.say("thompson: W1")
    ucb = HyLinUCB(d1=workload.d1, d2=workload.d2, noise=0.1, seed=0)
    thompson = HyThompson(d1=workload.d1, d2=workload.d2, noise=0.1, scale=1.0, seed=0)
    cases = {
        "HyLinUCB": _choosing(ucb, workload, 500),
        HYTHOMPSON_TOLD: _choosing(thompson, workload, 500),
    }
    interleave(cases, 2)
    timings = interleave(cases, plan.repeats(100, 20))
    ratio = timings[HYTHOMPSON_TOLD].over(timings["HyLinUCB"])
    section.add(workload.name, "HyLinUCB", *microseconds(timings["HyLinUCB"]))
    measurement = Measurement(workload.name, f"{HYTHOMPSON_TOLD} / HyLinUCB", "at most", THOMPSON_TARGET, ratio)
    section.add(workload.name, HYTHOMPSON_TOLD, *microseconds(timings[HYTHOMPSON_TOLD]), measurement=measurement)
    section.data.append(
        {"workload": workload.name, "seconds_per_choose": {name: pair._asdict() for name, pair in timings.items()}}
    )
    return section


# ------------------------------------------------------------------ scale


def _learning(arms: Sequence[str], cycled: Sequence[str], calls: int) -> Callable[[], float]:
    """Seconds per `learn` of the cycled arms in turn, where all `arms` have learned."""
    d1 = d2 = 5
    policy = HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=0)
    policy.learn_batch(arms, *training_rows(d1, d2, len(arms)))
    x, z, rewards = training_rows(d1, d2, calls)
    rows = list(zip(itertools.cycle(cycled), list(x), list(z), rewards.tolist(), strict=False))

    def sample() -> float:
        start = time.perf_counter()
        for arm, each, own, reward in rows:
            policy.learn(arm, each, own, reward=reward)
        return (time.perf_counter() - start) / calls

    return sample


def run_scale(plan: Plan) -> Section:
    """`learn` among 100,000 arms that have learned beside `learn` among 10."""
    many, few = 100_000, 10
    section = Section(
        "scale",
        "microseconds per learn, d1=d2=5, the same ten arms in turn",
        ("arms that have learned", "min us", "median us", *JUDGED),
    )
    plan.say(f"scale: teaching {many:,} arms")
    arms = [f"article-{arm}" for arm in range(many)]
    cycled = arms[:: many // few]
    cases = {f"{len(each):,}": _learning(each, cycled, 2000) for each in (cycled, arms)}
    plan.say("scale: timing")
    interleave(cases, 2)
    timings = interleave(cases, plan.repeats(100, 20))
    ratio = timings[f"{many:,}"].over(timings[f"{few:,}"])
    section.add(f"{few:,}", *microseconds(timings[f"{few:,}"]))
    measurement = Measurement("", f"learn among {many:,} arms / among {few}", "at most", SCALE_TARGET, ratio)
    section.add(f"{many:,}", *microseconds(timings[f"{many:,}"]), measurement=measurement)
    section.data.append(
        {"d1": 5, "d2": 5, "seconds_per_learn": {name: pair._asdict() for name, pair in timings.items()}}
    )
    return section
