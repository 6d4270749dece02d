"""The scoring kernel beside what the machine allows: the larger of its arithmetic at peak and its reading at peak.

Both peaks are measured here, in turn with the kernel: multiply-adds on registers alone, and a sum over a buffer as
large as what the kernel must read, so from the same level of cache. What is counted is what the formulas need, without
padding: L_i, C_i, q_i, x and z are read once per candidate, and L_i z, C_i z and L_0 y take one multiply-add per entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from benchmarks.report import JUDGED, Measurement, Section, microseconds, number
from benchmarks.timing import Pair, interleave
from benchmarks.workloads import Plan, Workload, teach, training_rows
from hybandits import HybridRidge
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow
from hybandits.kernels.simd import add4, load4, muladd4, splat4, sum4

TARGETS = {"W1": 8.0, "W2": 8.0, "W3-400": 8.0, "W4": 8.0, "W5": 1.5}

MAIN_MEMORY = 256 * 2**20
"""Bytes of a buffer that no cache holds."""

CHAINS = 12
LANES = 4
STRIDE = 8 * LANES
"""Numbers per step of `stream`."""


def compiled(function: Callable[..., Any]) -> Any:
    """Compile, and keep nothing on disk: numba would not notice when a kernel called from here has changed."""
    return njit(nogil=True, error_model="numpy")(function)


@compiled
def multiply_adds(steps: int, factor: float, addend: float) -> Any:
    """CHAINS independent chains of v * factor + addend, in registers."""
    f = splat4(factor)
    g = splat4(addend)
    a0, a1, a2, a3, a4, a5 = g, g, g, g, g, g
    b0, b1, b2, b3, b4, b5 = f, f, f, f, f, f
    for _ in range(steps):
        a0 = muladd4(a0, f, g)
        a1 = muladd4(a1, f, g)
        a2 = muladd4(a2, f, g)
        a3 = muladd4(a3, f, g)
        a4 = muladd4(a4, f, g)
        a5 = muladd4(a5, f, g)
        b0 = muladd4(b0, f, g)
        b1 = muladd4(b1, f, g)
        b2 = muladd4(b2, f, g)
        b3 = muladd4(b3, f, g)
        b4 = muladd4(b4, f, g)
        b5 = muladd4(b5, f, g)
    left = add4(add4(add4(a0, a1), add4(a2, a3)), add4(a4, a5))
    right = add4(add4(add4(b0, b1), add4(b2, b3)), add4(b4, b5))
    return sum4(add4(left, right))


@compiled
def stream(buffer: FloatArray, repeats: int) -> Any:
    """Sum of the buffer, over and over: eight registers a step, nothing written."""
    a0 = splat4(0.0)
    a1, a2, a3, a4, a5, a6, a7 = a0, a0, a0, a0, a0, a0, a0
    n = buffer.shape[0]
    for _ in range(repeats):
        i = 0
        while i < n:
            a0 = add4(a0, load4(buffer, i))
            a1 = add4(a1, load4(buffer, i + 4))
            a2 = add4(a2, load4(buffer, i + 8))
            a3 = add4(a3, load4(buffer, i + 12))
            a4 = add4(a4, load4(buffer, i + 16))
            a5 = add4(a5, load4(buffer, i + 20))
            a6 = add4(a6, load4(buffer, i + 24))
            a7 = add4(a7, load4(buffer, i + 28))
            i += 32
    return sum4(add4(add4(add4(a0, a1), add4(a2, a3)), add4(add4(a4, a5), add4(a6, a7))))


@compiled
def score_often(
    x: FloatArray,
    z: FloatArray,
    slots: Any,
    arm_score: FloatArray,
    shared_score: FloatArray,
    ridge: float,
    mean: FloatArray,
    width: FloatArray,
    repeats: int,
) -> Any:
    """`arrow.score_rows` in a compiled loop, so that no call from Python is counted."""
    finite = True
    for _ in range(repeats):
        finite &= arrow.score_rows(x, z, slots, arm_score, shared_score, ridge, mean, width)
    return finite


def multiply_adds_needed(workload: Workload) -> int:
    """Entries of L_i, C_i and L_0, for all candidates."""
    d1, d2 = workload.d1, workload.d2
    return workload.arms * (d2 * (d2 + 1) // 2 + d1 * d2 + d1 * (d1 + 1) // 2)


def bytes_needed(workload: Workload) -> int:
    """Bytes of L_i, C_i, q_i, x and z, for all candidates."""
    d1, d2 = workload.d1, workload.d2
    return workload.arms * 8 * (d2 * (d2 + 1) // 2 + d1 * d2 + d2 + d1 + d2)


def _aligned(numbers: int) -> FloatArray:
    """Ones, rounded up to whole steps of `stream`, starting on a cache line."""
    n = -(-numbers // STRIDE) * STRIDE
    padded = np.ones(n + 8)
    skip = (-padded.ctypes.data % 64) // 8
    return padded[skip : skip + n]


def _sampler(call: Callable[[int], Any], seconds: float) -> Callable[[], float]:
    """A sample is seconds per repeat of `call(repeats)`, with as many repeats as last about `seconds`.

    Two repeats that are not timed come first: the case before has filled the caches with its own.
    """
    call(1)
    repeats = 1
    while True:
        start = time.perf_counter()
        call(repeats)
        elapsed = time.perf_counter() - start
        if elapsed > seconds / 4:
            break
        repeats *= 2
    repeats = max(1, round(repeats * seconds / elapsed))

    def sample() -> float:
        call(2)
        start = time.perf_counter()
        call(repeats)
        return (time.perf_counter() - start) / repeats

    return sample


def _samplers(workload: Workload, seconds: float) -> dict[str, Callable[[], float]]:
    """Samples of one scoring pass, one pass over as many bytes, and as many multiply-adds."""
    estimator = HybridRidge(d1=workload.d1, d2=workload.d2)
    teach(estimator, workload)
    x, z, _ = training_rows(workload.d1, workload.d2, workload.arms, seed=11)
    slots = estimator.lookup(workload.ids)
    mean, width = np.empty(workload.arms), np.empty(workload.arms)
    buffer = _aligned(bytes_needed(workload) // 8)
    per_pass = bytes_needed(workload) / buffer.nbytes
    steps = 1000
    needed = multiply_adds_needed(workload) / (steps * CHAINS * LANES)

    def score(repeats: int) -> None:
        parts = (estimator.arm_score, estimator.shared_score, estimator.ridge, mean, width)
        if not score_often(x, z, slots, *parts, repeats):
            raise RuntimeError("a width is not finite")

    read = _sampler(lambda repeats: stream(buffer, repeats), seconds)
    compute = _sampler(lambda repeats: multiply_adds(repeats * steps, 0.5, 0.25), seconds)
    return {
        "arithmetic": lambda: compute() * needed,
        "reading": lambda: read() * per_pass,
        "kernel": _sampler(score, seconds),
    }


def run(plan: Plan) -> Section:
    """`score_rows` on every workload."""
    section = Section(
        "roofline",
        "microseconds of one scoring pass, and of its arithmetic and its reading alone at the machine's peak",
        ("workload", "min us", "median us", "arithmetic", "reading", "GFMA/s", "GB/s", "bound by", *JUDGED),
    )
    plan.say("roofline: compiling")
    memory = _main_memory(plan.repeats(12, 4))
    main_speed = MAIN_MEMORY / memory.min
    for workload in plan.workloads:
        plan.say(f"roofline: {workload.name}")
        samplers = _samplers(workload, plan.pick(0.004, 0.002))
        timings = interleave(samplers, plan.repeats(120, 25))
        arithmetic, reading, kernel = timings["arithmetic"], timings["reading"], timings["kernel"]
        bound = Pair(max(arithmetic.min, reading.min), max(arithmetic.median, reading.median))
        ratio = kernel.over(bound)
        peak = multiply_adds_needed(workload) / arithmetic.min
        speed = bytes_needed(workload) / reading.min
        target = TARGETS.get(workload.name)
        section.add(
            workload.name,
            *microseconds(kernel),
            number(1e6 * arithmetic.min),
            number(1e6 * reading.min),
            number(peak / 1e9),
            number(speed / 1e9),
            "arithmetic" if arithmetic.min > reading.min else "reading",
            *(() if target else ("", f"{number(ratio.min)}x / {number(ratio.median)}x")),
            measurement=Measurement(workload.name, "scoring / roofline", "at most", target, ratio) if target else None,
        )
        from_memory = max(arithmetic.min, bytes_needed(workload) / main_speed)
        section.data.append(
            {
                "workload": workload.name,
                "multiply_adds": multiply_adds_needed(workload),
                "bytes": bytes_needed(workload),
                "kernel_seconds": kernel._asdict(),
                "arithmetic_seconds": arithmetic._asdict(),
                "reading_seconds": reading._asdict(),
                "multiply_adds_per_second": peak,
                "bytes_per_second": speed,
                "ratio": ratio._asdict(),
                "ratio_if_read_from_main_memory": kernel.min / from_memory,
            }
        )
    section.data.append({"main_memory_bytes_per_second": {"best": main_speed, "median": MAIN_MEMORY / memory.median}})
    section.notes.append(
        f"main memory, for information: {number(main_speed / 1e9)} GB/s over a buffer of {MAIN_MEMORY // 2**20} MB; "
        "the targets are judged by reading from the cache that holds the workload"
    )
    return section


def _main_memory(repeats: int) -> Pair:
    """Seconds to read a buffer that no cache holds."""
    buffer = _aligned(MAIN_MEMORY // 8)
    stream(buffer, 1)

    def sample() -> float:
        start = time.perf_counter()
        stream(buffer, 1)
        return time.perf_counter() - start

    return interleave({"main": sample}, repeats)["main"]
