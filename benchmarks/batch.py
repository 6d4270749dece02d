"""Many decisions at once, beside the scoring kernel alone and beside `choose`, and what propensities cost."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np
from numba import njit

from benchmarks.report import JUDGED, Measurement, Section, microseconds
from benchmarks.timing import Pair, interleave
from benchmarks.workloads import WORKLOADS, Plan, Workload, teach
from hybandits import HyLinUCB, HyThompson, Policy
from hybandits.foundation.checks import FloatArray
from hybandits.kernels.arrow import score_rows

KERNEL_TARGETS = {"W1": 1.25, "W2": 1.25, "W3-400": 1.25, "W4": 1.25}
"""Largest ratio of a decision of `choose_batch` to the scoring kernel."""
CHOOSE_TARGETS = {"W5": 0.6}
"""Largest ratio to `choose`."""
THREADS_TARGET = 1.7
THOMPSON_TARGET = 1.0
"""Microseconds by which a decision of HyThompson may exceed one of HyLinUCB."""

CLOSE, CLOSE_TARGET, LOGGING_TARGET = 0.02, 99.0, 250.0
"""Targets of estimated propensities: largest error, percentage of decisions, microseconds."""
TRUTH_DRAWS = 1_000_000


@njit(nogil=True)  # type: ignore[untyped-decorator]
def score_all(x, z, slots, arm_score, shared_score, ridge, mean, width):  # type: ignore[no-untyped-def]
    """The scoring kernel for every decision, and nothing else."""
    for b in range(x.shape[0]):
        score_rows(x[b], z[b], slots, arm_score, shared_score, ridge, mean, width)


def _features(workload: Workload, decisions: int) -> tuple[FloatArray, FloatArray]:
    draw = np.random.default_rng(5)
    shape = decisions, workload.arms
    return draw.standard_normal((*shape, workload.d1)) / 6, draw.standard_normal((*shape, workload.d2)) / 2


def _one_by_one(policy: Policy, x: FloatArray, z: FloatArray, ids: list[str]) -> Callable[[], None]:
    def work() -> None:
        for b in range(len(x)):
            policy.choose(x[b], z[b], ids)

    return work


def _per(decisions: int, work: Callable[[], object]) -> Callable[[], float]:
    def sample() -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) / decisions

    return sample


def run(plan: Plan) -> Section:
    """`choose_batch` on every workload."""
    section = Section(
        "batch",
        "microseconds per decision of choose_batch, ids shared by all, HyLinUCB unless another is named",
        ("workload", "what", "min us", "median us", *JUDGED),
        text_columns=2,
    )
    for workload in plan.workloads:
        plan.say(f"batch: {workload.name}")
        size = max(16, min(1000, 4_000_000 // (workload.arms * (workload.d1 + workload.d2))))
        x, z = _features(workload, size)
        policy = HyLinUCB(d1=workload.d1, d2=workload.d2, noise=0.1, seed=0)
        thompson = HyThompson(d1=workload.d1, d2=workload.d2, noise=0.1, scale=1.0, seed=0)
        for each in (policy, thompson):
            teach(each, workload, 20)
        ids, estimator = workload.ids, policy.estimator
        slots, mean, width = estimator.lookup(ids), np.empty(workload.arms), np.empty(workload.arms)

        kernel = functools.partial(
            score_all, x, z, slots, estimator.arm_score, estimator.shared_score, estimator.ridge, mean, width
        )
        cases: dict[str, Callable[[], object]] = {
            "kernel": kernel,
            "choose": _one_by_one(policy, x, z, ids),
            "choose_batch": functools.partial(policy.choose_batch, x, z, ids),
            "two threads": functools.partial(policy.choose_batch, x, z, ids, threads=2),
            "HyThompson": functools.partial(thompson.choose_batch, x, z, ids),
        }
        samples = {name: _per(size, work) for name, work in cases.items()}
        interleave(samples, 2)
        timings = interleave(samples, plan.repeats(60, 10))
        batch = timings["choose_batch"]
        section.rule()
        section.add(workload.name, "scoring kernel alone", *microseconds(timings["kernel"]))
        judged: dict[str, Measurement | None] = {"choose": None}
        target = CHOOSE_TARGETS.get(workload.name)
        if target is not None:
            ratio = batch.over(timings["choose"])
            judged["choose_batch"] = Measurement(workload.name, "choose_batch / choose", "at most", target, ratio)
        target = KERNEL_TARGETS.get(workload.name)
        if target is not None:
            ratio = batch.over(timings["kernel"])
            judged["choose_batch"] = Measurement(workload.name, "choose_batch / kernel", "at most", target, ratio)
        ratio = batch.over(timings["two threads"])
        judged["two threads"] = Measurement(workload.name, "two threads / one", "at least", THREADS_TARGET, ratio)
        for name in ("choose", "choose_batch", "two threads"):
            section.add(workload.name, name, *microseconds(timings[name]), measurement=judged.get(name))
        more = Pair(*(1e6 * (a - b) for a, b in zip(timings["HyThompson"], batch, strict=True)))
        measurement = None
        if workload.name == "W1":
            measurement = Measurement("W1", "HyThompson above HyLinUCB", "at most", THOMPSON_TARGET, more, unit=" us")
        section.add(workload.name, "HyThompson", *microseconds(timings["HyThompson"]), measurement=measurement)
        section.data.append(
            {"workload": workload.name, "decisions": size, "seconds": {k: v._asdict() for k, v in timings.items()}}
        )
    return section


def run_propensities(plan: Plan) -> Section:
    """Error of the propensities that HyThompson estimates, against a million draws, and the time of a choice.

    The policy has learned so many rows, of a linear model, as to be quite unsure, unsure, and nearly sure.
    """
    section = Section(
        "propensities",
        f"choices of HyThompson with propensities by 2,000 draws, beside {TRUTH_DRAWS:,} draws; W1",
        ("rows learned", "choose us", "without us", "largest error", *JUDGED),
    )
    workload = WORKLOADS["W1"]
    decisions = plan.repeats(100, 10)
    within, slowest, errors = 0, Pair(0.0, 0.0), []
    for rows in (50, 200, 1000, 5000):
        plan.say(f"propensities: {rows} rows")
        policies = {
            draws: HyThompson(d1=workload.d1, d2=workload.d2, propensity_draws=draws, seed=0)
            for draws in (0, 2000, TRUTH_DRAWS)
        }
        draw = np.random.default_rng(rows)
        theta, beta = draw.standard_normal(workload.d1) / 5, draw.standard_normal((workload.arms, workload.d2)) / 5
        arms = draw.integers(workload.arms, size=rows)
        x = draw.standard_normal((rows, workload.d1)) / 6
        z = draw.standard_normal((rows, workload.d2)) / 2
        rewards = x @ theta + (z * beta[arms]).sum(axis=1) + 0.1 * draw.standard_normal(rows)
        ids = workload.ids
        for policy in policies.values():
            policy.learn_batch([ids[arm] for arm in arms.tolist()], x, z, rewards)
        shown_x, shown_z = _features(workload, decisions)
        worst = 0.0
        for b in range(decisions):
            estimate, truth = (
                policies[draws].choose(shown_x[b], shown_z[b], ids, key=b) for draws in (2000, TRUTH_DRAWS)
            )
            assert estimate.propensity is not None
            assert truth.propensity is not None
            errors.append(abs(estimate.propensity - truth.propensity))
            worst = max(worst, errors[-1])
            within += errors[-1] <= CLOSE

        cases = {
            str(draws): _per(decisions, _one_by_one(policies[draws], shown_x, shown_z, ids)) for draws in (0, 2000)
        }
        timings = interleave(cases, plan.repeats(20, 4))
        slowest = Pair(*(max(a, b) for a, b in zip(slowest, timings["2000"], strict=True)))
        section.add(
            f"{rows:,}",
            " / ".join(microseconds(timings["2000"])),
            " / ".join(microseconds(timings["0"])),
            f"{worst:.4f}",
        )
    share = 100 * within / len(errors)
    what = f"decisions within {CLOSE} of the truth"
    section.add("all", "", "", "", measurement=Measurement("W1", what, "at least", CLOSE_TARGET, share, unit=" %"))
    cost = Pair(*(1e6 * each for each in slowest))
    section.add(
        "slowest",
        "",
        "",
        "",
        measurement=Measurement("W1", "choose with propensity", "at most", LOGGING_TARGET, cost, unit=" us"),
    )
    return section
