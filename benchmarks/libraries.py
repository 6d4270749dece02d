"""HyLinUCB's round beside those of other libraries, timed in turn."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.peers import Peer, PreparedRounds, available, make_rounds
from benchmarks.report import JUDGED, Measurement, Section, microseconds, times
from benchmarks.rounds import HybridPlayer
from benchmarks.timing import Pair, no_garbage_collection, slower, summary
from benchmarks.workloads import Plan, Workload

Model = Literal["hybrid", "disjoint", "shared", "sgd"]
Group = Literal["policy", "pre-parsed", "smaller problem"]

MODELS: dict[str, Model] = {
    "contextualbandits LinUCB (disjoint)": "disjoint",
    "contextualbandits LinearRegression (shared)": "shared",
    "contextualbandits LinearRegression (hybrid)": "hybrid",
    "mabwiser LinUCB (disjoint)": "disjoint",
    "river LinUCBDisjoint": "disjoint",
    "vowpalwabbit (text)": "sgd",
    "vowpalwabbit (pre-parsed)": "sgd",
    "coba LinUCB (shared)": "shared",
    "bayesianbandits ContextualAgent (disjoint)": "disjoint",
    "bayesianbandits LipschitzContextualAgent (shared)": "shared",
    "bayesianbandits LipschitzContextualAgent (hybrid)": "hybrid",
}
"""Model of each peer; sgd is the hybrid model without a covariance matrix."""

QUICK = ("contextualbandits LinearRegression (hybrid)", "vowpalwabbit (text)", "vowpalwabbit (pre-parsed)")
"""Peers fast enough for a short run."""

LEFT_OUT = "slower peers and those of the shared model are left out of the quick run"

TARGETS: dict[Group, float] = {"policy": 10.0, "pre-parsed": 1.0}

PASSES = 6
"""Passes over the rounds, each with a new peer, as long as the budget lasts."""

CHUNK = 0.004
"""Seconds of rounds in one sample, the peers' and ours: short ones alone would escape interruptions."""


def group(name: str) -> Group:
    """Category by which a peer is judged.

    policy           fits the hybrid or the disjoint model, or is a bandit policy that takes its features as they come
    pre-parsed       VW on examples parsed ahead, which leaves out most of what its user waits for
    smaller problem  no parameters of an arm's own
    """
    if name == "vowpalwabbit (pre-parsed)":
        return "pre-parsed"
    return "smaller problem" if MODELS[name] == "shared" else "policy"


@dataclass(frozen=True)
class Result:
    """A peer's seconds per round, those of HyLinUCB timed in turn with it, and the rounds timed."""

    name: str
    peer: Pair
    ours: Pair
    rounds: int

    @property
    def ratio(self) -> Pair:
        return self.peer.over(self.ours)


def time_peer(
    name: str,
    factory: Callable[[PreparedRounds], Peer],
    rounds: PreparedRounds,
    ours: Mapping[str, HybridPlayer],
    budget: float,
) -> Result:
    """Chunks of the peer's rounds and of ours in turn, for about `budget` seconds, and four times that with set-up.

    Every prepared round is played once per peer made; the first tenth is not timed.
    """
    seconds: list[float] = []
    beside: dict[str, list[float]] = {variant: [] for variant in ours}
    timed = 0
    played = 0.0
    end = time.perf_counter() + 4 * budget
    for _ in range(PASSES):
        peer = factory(rounds)
        if seconds and time.perf_counter() > end:
            break
        begun = time.perf_counter()
        with no_garbage_collection():
            t, pace = _warm_up(peer, len(rounds), budget / 3)
            chunk = max(1, min(round(CHUNK / pace), (len(rounds) - t) // 3))
            stop = begun + budget - played
            while t + chunk <= len(rounds) and (time.perf_counter() < stop or len(seconds) < 3):
                start = time.perf_counter()
                for u in range(t, t + chunk):
                    peer.round(u)
                seconds.append((time.perf_counter() - start) / chunk)
                t += chunk
                timed += chunk
                for variant, method in ours.items():
                    beside[variant].append(method.sample())
        if not 0 <= peer.chosen < rounds.arms:
            raise RuntimeError(f"chose arm {peer.chosen} of {rounds.arms}")
        del peer
        played += time.perf_counter() - begun
        if played > budget:
            break
    return Result(name, summary(seconds), slower(*map(summary, beside.values())), timed)


def _warm_up(peer: Peer, rounds: int, limit: float) -> tuple[int, float]:
    """Play the first tenth of the rounds, but at most `limit` seconds; how many were played, and the fastest's time."""
    stamps = [time.perf_counter()]
    for t in range(max(1, rounds // 10)):
        peer.round(t)
        stamps.append(time.perf_counter())
        if stamps[-1] - stamps[0] > limit:
            break
    return len(stamps) - 1, min(b - a for a, b in itertools.pairwise(stamps))


def _measure(plan: Plan, workload: Workload, budget: float) -> tuple[list[Result], list[tuple[str, str]]]:
    """The peers' results, and the names of those without one with the reason."""
    rounds = make_rounds(workload.d1, workload.d2, workload.arms, max(20, min(300, 20_000 // workload.arms)))
    ours = {
        "same pool": HybridPlayer(workload, "same pool"),
        "pool changes": HybridPlayer(workload, "pool changes"),
    }
    for method in ours.values():
        method.calibrate(CHUNK)
    results: list[Result] = []
    missing: list[tuple[str, str]] = []
    for name, factory in available(rounds):
        plan.say(f"peers: {workload.name}, {name}")
        if plan.quick and name not in QUICK:
            missing.append((name, LEFT_OUT))
        elif isinstance(factory, str):
            missing.append((name, factory))
        else:
            try:
                results.append(time_peer(name, factory, rounds, ours, budget))
            except Exception as problem:  # whatever another library raises, the others are still timed
                missing.append((name, f"{type(problem).__name__}: {problem}"))
    return results, missing


def run(plan: Plan, budget: float) -> Section:
    """Every peer on every workload."""
    section = Section(
        "peers",
        "microseconds per choose + learn of other libraries, beside HyLinUCB with plain ids timed in turn with each",
        ("workload", "library", "model", "min us", "median us", "HyLinUCB", "theirs / HyLinUCB", *JUDGED),
        text_columns=3,
    )
    reasons: dict[str, list[str]] = {}
    for workload in plan.workloads:
        results, missing = _measure(plan, workload, budget)
        _tell(section, workload, results, missing)
        for name, why in missing:
            reasons.setdefault(why if why == LEFT_OUT else f"{name}: {why}", []).append(workload.name)
    for why, where in reasons.items():
        section.notes.append(f"not measured on {', '.join(dict.fromkeys(where))}: {why}")
    section.notes.append(
        "the target of 10x is for the fastest that fits the hybrid or the disjoint model or is a bandit policy on "
        "features as they come; 'shared' has no parameters of an arm's own, a strictly smaller problem, and no target"
    )
    return section


def _tell(section: Section, workload: Workload, results: list[Result], missing: list[tuple[str, str]]) -> None:
    """The rows of one workload, group by group, the fastest of a group first and judged."""
    labels = {"policy": "", "pre-parsed": ", pre-parsed", "smaller problem": ", smaller problem"}
    what: dict[Group, str] = {"policy": "fastest peer", "pre-parsed": "vowpalwabbit pre-parsed"}
    groups: tuple[Group, ...] = ("policy", "pre-parsed", "smaller problem")
    section.rule()
    entries: list[dict[str, Any]] = []
    for each in groups:
        members = sorted((result for result in results if group(result.name) == each), key=lambda r: r.ratio.min)
        for place, result in enumerate(members):
            measurement = None
            if place == 0 and each in TARGETS:
                # The fastest by minima need not be the fastest by medians: each is judged by its own.
                least = Pair(result.ratio.min, min(other.ratio.median for other in members))
                sense: Literal["at least", "above"] = "at least" if each == "policy" else "above"
                measurement = Measurement(workload.name, f"{what[each]} / HyLinUCB", sense, TARGETS[each], least)
            section.add(
                workload.name,
                result.name,
                f"{MODELS[result.name]}{labels[each]}",
                *microseconds(result.peer),
                " / ".join(microseconds(result.ours)),
                times(result.ratio),
                measurement=measurement,
            )
            entries.append(
                {
                    "peer": result.name,
                    "model": MODELS[result.name],
                    "group": each,
                    "seconds_per_round": result.peer._asdict(),
                    "hylinucb_seconds_per_round": result.ours._asdict(),
                    "ratio": result.ratio._asdict(),
                    "rounds_timed": result.rounds,
                }
            )
    entries += [
        {"peer": name, "model": MODELS[name], "group": group(name), "not_measured": why} for name, why in missing
    ]
    section.data.append({"workload": workload.name, "peers": entries})
