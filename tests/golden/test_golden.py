"""Decisions, results and estimates compared with recorded ones: a refactoring must not change a number.

`python -m tests.golden.test_golden` records them again, after a change that is meant to alter numbers. Indices of
choices and shapes must always agree, and numbers to 1e-9. Where the versions and the processor are those of the
recording, every bit must agree.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import EpsilonGreedy, Greedy, HyIDS, HyLinUCB, HyRan, HyThompson, Policy, load, paper
from hybandits.evaluation import Frozen, Learning, evaluate, fit
from hybandits.evaluation.view import View
from hybandits.experiments import runner
from hybandits.logs.formats import reader_of
from hybandits.logs.report import ReadReport
from hybandits.logs.store import convert
from hybandits.logs.synthetic import SyntheticLog
from tests.support.rounds import MAKERS, changing

RECORD = Path(__file__).with_name("golden.json")

ENVIRONMENT = " ".join(
    (platform.machine(), llvmlite.binding.get_host_cpu_name(), platform.python_version(), np.__version__,
     numba.__version__, llvmlite.__version__)
)  # fmt: skip

LARGER: dict[str, Callable[[], Policy]] = {
    "HyLinUCB, setting 1": lambda: HyLinUCB(d1=40, d2=5, noise=0.1, seed=1),
    "HyThompson, setting 1": lambda: HyThompson(d1=40, d2=5, seed=1),
    "HyIDS, setting 1": lambda: HyIDS(d1=40, d2=5, seed=1),
    "HyIDS, memory auto, setting 1": lambda: HyIDS(d1=40, d2=5, memory="auto", seed=1),
    "HyRan, setting 1": lambda: HyRan(d1=40, d2=5, seed=1),
    "HyIDS, no shared features": lambda: HyIDS(d1=0, d2=6, seed=1),
    "HyThompson, no own features": lambda: HyThompson(d1=6, d2=0, seed=1),
}
WRAPPED: dict[str, Callable[[], Policy]] = {
    **MAKERS,
    "HyThompson, propensities": lambda: HyThompson(d1=4, d2=3, propensity_draws=50, seed=2),
    "EpsilonGreedy": lambda: EpsilonGreedy(Greedy(d1=4, d2=3), epsilon=0.2, seed=2),
}
NAMES = [*(f"policy: {name}" for name in (*WRAPPED, *LARGER)), "experiments", "evaluation"]


def summary(numbers: Iterable[float]) -> dict[str, Any]:
    """A digest of the bits, and a few numbers to compare where bits may differ."""
    array = np.array([np.nan if value is None else value for value in numbers], float)
    array += 0.0  # one sign of zero
    weights = np.cos(np.arange(len(array)))
    finite = np.where(np.isfinite(array), array, 0.0)
    return {
        "count": len(array),
        "finite": int(np.isfinite(array).sum()),
        "sum": float(finite.sum()),
        "weighted": float(finite @ weights),
        "bits": hashlib.sha256(array.tobytes()).hexdigest()[:16],
    }


def contract(make: Callable[[], Policy]) -> dict[str, Any]:
    """A policy through its contract, on candidates that come and go; saved and loaded half way."""
    policy, indices, numbers = make(), [], []
    shown = changing(5, length=160, unanswered=0.2)
    for t, one in enumerate(shown):
        if t == 80:
            policy = type(policy).from_bytes(policy.to_bytes())
        choice = policy.choose(one.x, one.z, one.arms)
        indices.append(choice.index)
        numbers += [choice.mean, choice.width, choice.propensity]
        reward = float(one.rewards[choice.index])
        if np.isfinite(reward):
            policy.learn(choice.arm, one.x[choice.index], one.z[choice.index], reward, receipt=choice.receipt)
    random = np.random.default_rng(1)
    x, z, mask = random.normal(size=(30, 5, 4)), random.normal(size=(30, 5, 3)), random.random((30, 5)) < 0.7
    mask[:, 0] = True
    arms = ["old", 3, "new", "never met", "b"]
    for choices in (policy.choose_batch(x, z, arms), policy.choose_batch(x, z, arms, mask=mask, threads=2)):
        indices += choices.indices.tolist()
        numbers += [*choices.means, *choices.widths, *choices.propensities]
    for b in range(10):
        keyed = policy.choose(x[b], z[b], arms, key=("event", b), randomize=True, floor=0.1)
        ranking = policy.rank(x[b], z[b], arms, 3, key=("page", b))
        indices += [keyed.index, *ranking.indices.tolist()]
        numbers += [keyed.propensity, *ranking.means, *ranking.propensities, *policy.propensities(x[b], z[b], arms)]
    policy.refresh()
    policy.merge(type(policy).from_bytes(policy.to_bytes()))
    policy.forget("new")
    numbers += [*policy.theta, *policy.beta("old"), *policy.beta(3), *policy.predict(x[0], z[0], arms).mean]
    return {"indices": "".join(map(str, indices)), "numbers": summary(numbers)}


def longer(make: Callable[[], Policy]) -> dict[str, Any]:
    """A policy for some hundred rounds of setting 1's size, with refreshes of learned settings."""
    policy = make()
    random = np.random.default_rng(3)
    theta, beta = random.normal(size=policy.d1) / 6, random.normal(size=(25, policy.d2)) / 3
    indices, numbers = [], []
    for _ in range(300):
        x, z = random.normal(size=(25, policy.d1)), random.normal(size=(25, policy.d2))
        noise = 0.1 * random.normal(size=25)
        choice = policy.choose(x, z)
        reward = x[choice.index] @ theta + z[choice.index] @ beta[choice.index] + noise[choice.index]
        policy.learn(choice.arm, x[choice.index], z[choice.index], float(reward), receipt=choice.receipt)
        indices.append(choice.index)
        numbers += [choice.mean, choice.width, choice.propensity]
    return {"indices": " ".join(map(str, indices)), "numbers": summary([*numbers, *policy.theta, *policy.beta(3)])}


def experiments() -> dict[str, Any]:
    """Units of every experiment of the paper, cut short."""
    outcome = {}
    for record in paper.experiments(list(paper.SETTINGS), ("released", "written")):
        short = replace(
            record,
            arms=record.arms[:1],
            horizon=150,
            seeds=record.seeds[:1],
            trials=2,
            points=(50, 150),
            probes=(40, 150),
        )
        for unit in short.units():
            for run in runner.run_unit(runner.Job(unit)):
                name = f"{record.protocol} {record.name} {unit.arms} {run.policy} {run.trial}"
                design = [np.ravel(np.asarray(v, float)) for v in (run.design or {}).values()]
                outcome[name] = summary(np.concatenate([run.regret, *design]))
    return outcome


def evaluation() -> dict[str, Any]:
    """Estimates of fixed and learning policies on a synthetic click log, with both kinds of intervals."""
    outcome = {}
    with tempfile.TemporaryDirectory() as folder:
        SyntheticLog(rounds=3000, kind="R6A", features="das", seed=2).write(Path(folder, "raw"), files=2)
        view = View(convert(reader_of(Path(folder, "raw")), Path(folder, "log"), ReadReport()))
        warm = HyLinUCB(d1=view.d1, d2=view.d2, noise=0.5, seed=1)
        learned = HyIDS(d1=view.d1, d2=view.d2, seed=1)
        for policy in (warm, learned):
            fit.warm_start(policy, fit.collect(view, stop=1500))
        targets: dict[str, Any] = {
            "uniform": "uniform", "warm": Frozen(warm), "learned": Frozen(learned),
            "soft": EpsilonGreedy(warm, epsilon=0.1),
            "learning": Learning(HyThompson(d1=view.d1, d2=view.d2, noise=0.3, scale=0.3, seed=1)),
        }  # fmt: skip
        for interval in ("bootstrap", "bernstein"):
            results = evaluate(
                view, targets, estimators=("ips", "snips", "dm", "dr"), start=1500, interval=interval, clip=20.0,
                reward_range=(0.0, 1.0),
            )  # fmt: skip
            for each in results.estimates:
                outcome[f"{interval} {each.policy} {each.estimator}"] = summary([each.value, each.low, each.high])
        again = Path(folder, "policy.npz")
        learned.save(again)
        outcome["policy file"] = summary([*load(again).theta, *learned.theta])
    return outcome


def measure(name: str) -> dict[str, Any]:
    """Everything that is recorded under a name."""
    kind, _, policy = name.partition(": ")
    if kind == "policy":
        return contract(WRAPPED[policy]) if policy in WRAPPED else longer(LARGER[policy])
    return experiments() if kind == "experiments" else evaluation()


def compare(got: Any, recorded: Any, bits: bool) -> None:
    """Fail where something differs from what is recorded."""
    if isinstance(recorded, dict):
        assert got.keys() == recorded.keys()
        for key in recorded:
            if key != "bits" or bits:
                compare(got[key], recorded[key], bits)
    elif isinstance(recorded, float):
        assert_allclose(got, recorded, rtol=1e-9, atol=1e-9)
    else:
        assert got == recorded


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_the_recorded_ones(name: str) -> None:
    recorded = json.loads(RECORD.read_text())
    compare(measure(name), recorded["numbers"][name], bits=recorded["environment"] == ENVIRONMENT)


if __name__ == "__main__":
    everything = {name: measure(name) for name in NAMES}
    RECORD.write_text(json.dumps({"environment": ENVIRONMENT, "numbers": everything}, indent=1) + "\n")
