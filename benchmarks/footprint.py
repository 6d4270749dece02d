"""Memory and start-up, measured in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import hybandits
from benchmarks.report import JUDGED, Measurement, Section, number
from benchmarks.timing import Pair, summary
from benchmarks.workloads import WORKLOADS, Plan

KNOWN_TARGET_MB = 300.0
HELP_TARGET = 0.5
DECISION_TARGET = 2.0
COMPILING_TARGET = 34.0
"""Seconds to the first decision where the wheel's machine code does not fit: what it took when wheels had none."""

FIRST_DECISIONS = Path(__file__).parents[1] / ".ci" / "first_decisions.py"

FIRST_ARMS, LAST_ARMS = 1_000, 3_000
"""Memory per arm is the growth between these numbers of arms that have learned."""

GROWTH = 50_000_000
"""Bytes of arms over which the growth of the whole process is taken: less would drown in what it keeps to itself."""


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This environment, in which the packages measured here are found from anywhere."""
    roots = [Path(hybandits.__file__).parents[1], Path(__file__).parents[1]]
    paths = [*dict.fromkeys(map(str, roots)), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **extra}


def _python(*arguments: str, **extra: str) -> str:
    """Standard output of a new interpreter; raises with the end of its standard error if it fails."""
    done = subprocess.run(
        [sys.executable, *arguments], env=_environment(extra), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"python {' '.join(arguments)} ended with {done.returncode}: {last}")
    return done.stdout


def _child(*task: object) -> dict[str, Any]:
    measured: dict[str, Any] = json.loads(_python("-m", "benchmarks.child", *map(str, task)))
    return measured


# ------------------------------------------------------------------ memory


def allowed(d1: int, d2: int) -> int:
    """Bytes an arm may take: 8 (2 d2^2 + 2 d1 d2 + 4 d2) + 64."""
    return 8 * (2 * d2**2 + 2 * d1 * d2 + 4 * d2) + 64


def run_memory(plan: Plan) -> Section:
    """Bytes per arm that has learned, and of a process that knows a million arms."""
    section = Section("memory", "memory per arm that has learned, and of a million known arms", ("what", *JUDGED))
    shapes = list(dict.fromkeys((each.d1, each.d2) for each in plan.workloads))
    for d1, d2 in shapes[:1] if plan.quick else shapes:
        names = "/".join(each.name for each in plan.workloads if (each.d1, each.d2) == (d1, d2))
        plan.say(f"memory: {names}")
        limit = float(allowed(d1, d2))
        far = max(LAST_ARMS, FIRST_ARMS + 100 * round(GROWTH / limit / 100))
        measured = _child("arms", d1, d2, FIRST_ARMS, LAST_ARMS, far)
        arrays = (measured["nbytes"][1] - measured["nbytes"][0]) / (LAST_ARMS - FIRST_ARMS)
        process = (measured["resident"][-1] - measured["resident"][0]) / (far - FIRST_ARMS)
        measurement = Measurement(names, "bytes per arm, arrays", "at most", limit, arrays, " B")
        section.add(f"{names} d1={d1} d2={d2}: bytes per arm, arrays", measurement=measurement)
        section.add(f"{names} d1={d1} d2={d2}: bytes per arm, process, with its id", "", f"{number(process)} B")
        section.data.append(
            {"workload": names, "d1": d1, "d2": d2, "allowed": limit, "arrays": arrays, "process": process, **measured}
        )
    plan.say("memory: a million arms")
    shape = WORKLOADS["W4"]
    if not plan.quick:
        _child("one-round", shape.d1, shape.d2)  # compiles, if it has not been done: that would count
    baseline = _child("one-round", shape.d1, shape.d2)["peak"]
    measured = _child("known", shape.d1, shape.d2)
    whole, own = measured["peak"] / 1e6, (measured["peak"] - baseline) / 1e6
    what = f"peak of a process with {measured['known']:,} known arms, {measured['learned']:,} of them taught"
    measurement = Measurement("", what, "below", KNOWN_TARGET_MB, whole, " MB")
    section.add(f"{what}, d1={shape.d1} d2={shape.d2}", measurement=measurement)
    section.add("  of that beyond a process that played one round", "", f"{number(own)} MB")
    section.data.append({"baseline_peak": baseline, **measured})
    section.notes.append(
        f"arrays: growth of nbytes from {FIRST_ARMS:,} to {LAST_ARMS:,} arms, with spare capacity; process: growth of "
        f"resident memory over about {GROWTH // 10**6} MB, with the dict from ids to blocks but not the id strings, "
        "which are made before"
    )
    return section


# ------------------------------------------------------------------ start-up


def _seconds(call: Callable[[], object], times: int) -> Pair:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return summary(taken)


def _install(folder: Path) -> None:
    """Build the wheel of this checkout and install it, without what it needs, in a folder."""
    with tempfile.TemporaryDirectory(prefix="hybandits-bench-") as dist:
        _python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, str(FIRST_DECISIONS.parents[1]))
        wheel = next(Path(dist).glob("*.whl"))
        _python("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(wheel))


def _decide(times: int, installed: Path, **settings: str) -> tuple[Pair, Pair]:
    """Seconds of new processes to the first decision and reward of HyIDS, importing included, and the processor's."""
    settings |= {"PYTHONPATH": str(installed), "HYBANDITS_QUIET": "1"}
    taken = [json.loads(_python(str(FIRST_DECISIONS), **settings))["seconds"] for _ in range(times)]
    return summary([each["first"] for each in taken]), summary([each["processor"] for each in taken])


def run_start(plan: Plan) -> Section:
    """New processes: importing, help, and the first decision after installing the wheel."""
    section = Section(
        "start", "a new process: importing, help, and the first decision with its reward", ("what", *JUDGED)
    )
    times = plan.repeats(3, 1)

    def add(what: str, target: float, taken: Pair) -> None:
        section.add(what, measurement=Measurement("", what, "below", target, taken, " s"))
        section.data.append({"what": what, "seconds": taken._asdict()})

    plan.say("start: import")
    bare = _seconds(lambda: _python("-c", "pass"), times)
    section.add("bare interpreter", "", f"{number(bare.min)} s / {number(bare.median)} s")
    section.data.append({"what": "bare interpreter", "seconds": bare._asdict()})
    _python("-c", "import hybandits")
    add("import hybandits", HELP_TARGET, _seconds(lambda: _python("-c", "import hybandits"), times))
    # What the installed script `hybandits` runs.
    command = ("-c", "from hybandits.__main__ import app; app()", "--help")
    add("hybandits --help", HELP_TARGET, _seconds(lambda: _python(*command), times))
    with tempfile.TemporaryDirectory(prefix="hybandits-bench-", ignore_cleanup_errors=True) as folder:
        plan.say("start: building the wheel")
        installed = Path(folder, "installed")
        _install(installed)
        imports = "import hybandits.policies"
        modules = _seconds(lambda: _python("-c", imports, PYTHONPATH=str(installed)), times)
        add("importing the policies", DECISION_TARGET, modules)
        key = installed / "hybandits" / "machine_code" / "key.json"
        cache = str(Path(folder, "cache"))
        for what, target, repeats, settings in (
            ("installed wheel, compiling forbidden", DECISION_TARGET, times, {"HYBANDITS_COMPILE": "never"}),
            ("wheel for another numba: compiles", COMPILING_TARGET, 1, {"NUMBA_CACHE_DIR": cache}),
            ("compiled here before", DECISION_TARGET, times, {"NUMBA_CACHE_DIR": cache}),
        ):
            plan.say(f"start: {what}")
            taken, processor = _decide(repeats, installed, **settings)
            add(f"first decision, {what}", target, taken)
            section.add("  processor time", "", f"{number(processor.min)} s / {number(processor.median)} s")
            section.data.append({"what": f"{what}, processor", "seconds": processor._asdict()})
            # From here on the wheel is for another numba.
            key.write_text(json.dumps({**json.loads(key.read_text(encoding="utf-8")), "numba": "0"}), encoding="utf-8")
    return section
