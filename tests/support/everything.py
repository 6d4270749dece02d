"""Use everything that compiles, after `warm_up`: `python -m tests.support.everything FOLDER` prints what was missed.

A kernel is compiled once for every combination of argument types. `warm_up` must have met all of them, so that no
kernel gets another one afterwards, whether by compiling it or from machine code that is on disk already.
"""

from __future__ import annotations

import json
import pkgutil
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import hybandits
from hybandits import evaluation, paper
from hybandits.engines import SerialEngine
from hybandits.estimators.exploration import Constant
from hybandits.evaluation import describe, fit
from hybandits.evaluation.view import ARMS, View
from hybandits.experiments import runner
from hybandits.features import FeatureMap
from hybandits.logs.formats import reader_of
from hybandits.logs.report import ReadReport
from hybandits.logs.store import convert
from hybandits.logs.synthetic import SyntheticLog
from hybandits.paper import yahoo
from hybandits.policies.by_name import make_policy, policy_names
from hybandits.simulation.play import cumulative_regret
from hybandits.simulation.worlds import LAWS, Synthetic
from tests.support.loglike import learn_log

ARM_IDS = [f"article-{i}" for i in range(30)]


def kernels() -> dict[str, Any]:
    """Every kernel of the package, by the module and the name it is defined under."""
    modules = [info.name for info in pkgutil.walk_packages(hybandits.__path__, "hybandits.")]
    return {
        f"{name}.{value.py_func.__name__}": value
        for name in modules
        if not name.endswith("__main__")
        for value in vars(import_module(name)).values()
        if hasattr(value, "py_func") and value.py_func.__module__ == name
    }


def reached(known: dict[str, Any]) -> set[str]:
    """The kernels that are compiled, and those that the code of these calls, however deep."""
    names = {id(kernel): name for name, kernel in known.items()}
    todo = [name for name, kernel in known.items() if kernel.signatures]
    seen = set(todo)
    while todo:
        function = known[todo.pop()].py_func
        for called in map(function.__globals__.get, function.__code__.co_names):
            name = names.get(id(called))
            if name is not None and name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def use_policies(folder: Path) -> None:
    """Every policy through its whole contract, with many candidates, few, and none of its own or shared features."""
    for d1, d2 in ((4, 3), (0, 2), (3, 0)):
        random = np.random.default_rng(0)
        x, z = random.random((30, d1)), random.random((30, d2))
        policies = [make_policy(name, {}, d1=d1, d2=d2, arms=30, horizon=1000, seed=1) for name in policy_names()]
        given = {"noise": 0.5, "scale": 0.5}
        policies += [hybandits.HyThompson(d1=d1, d2=d2, **given), hybandits.HyIDS(d1=d1, d2=d2, **given)]
        policies += [hybandits.HyIDS(d1=d1, d2=d2, noise=0.5)]
        policies.append(hybandits.EpsilonGreedy(hybandits.HyThompson(d1=d1, d2=d2), epsilon=0.2, seed=1))
        policies.append(hybandits.LinUCB(d1=d1, d2=d2, exploration=Constant(alpha=1.0)))
        for policy in policies:
            for n in (2, 30):
                pool = policy.candidates(ARM_IDS[:n])
                for arms in (ARM_IDS[:n], pool):
                    choice = policy.choose(x[:n], z[:n], arms)
                    policy.learn(choice.arm, x[choice.index], z[choice.index], 1.0, receipt=choice.receipt)
                policy.choose(x[:n], z[:n], ARM_IDS[:n], key=("event", n))
                policy.predict(x[:n], z[:n], ARM_IDS[:n])
                policy.choose_batch(np.stack([x[:n]] * 3), np.stack([z[:n]] * 3), pool, threads=2)
                policy.randomize_batch(x[None, :n], z[None, :n], pool, keys=["a"], threads=2)
                policy.choose_batch(x[None, :n], z[None, :n], [ARM_IDS[:n]], mask=np.ones((1, n), bool))
                policy.propensities(x[:n], z[:n], ARM_IDS[:n])
            policy.beta(choice.arm)
            _ = policy.theta
            policy.save(folder / "policy.npz")
            policy.merge(hybandits.load(folder / "policy.npz"))
            policy.refresh()
            policy.forget(choice.arm)
            _ = repr(policy), policy.learned
        estimator = hybandits.HybridRidge(d1=d1, d2=d2)
        estimator.learn_batch([*ARM_IDS, *ARM_IDS[:5]], np.vstack([x, x[:5]]), np.vstack([z, z[:5]]), np.ones(35))
        for _ in range(600):
            estimator.learn(ARM_IDS[0], x[0], z[0], 1.0)
        estimator.raise_ridge(3.0)
        estimator.merge(estimator.copy())
        estimator.design(ARM_IDS)
        assert estimator.sound()


def use_experiments() -> None:
    """Units of the paper's experiments, cut short, and every policy in a world of every law."""
    for record in paper.experiments(list(paper.SETTINGS), ("released", "written")):
        short = replace(record, arms=(3,), horizon=20, seeds=record.seeds[:1], trials=1, points=(20,), probes=(10,))
        for unit in short.units():
            runner.run_unit(runner.Job(unit))
    for law in LAWS:
        for name in policy_names():
            policy = make_policy(name, {}, d1=3, d2=2, arms=4, horizon=20, seed=1)
            cumulative_regret(policy, Synthetic(d1=3, d2=2, arms=4, law=law, fresh_contexts=True), 20)


def use_logs(folder: Path) -> None:
    """Logs of every kind, described, fitted, played on and evaluated."""
    FeatureMap("das", 3, 2)([1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]])
    FeatureMap("das+pair:xz", 1, 1, 2)([1.0], [[1.0], [3.0]], [[1.0, 2.0], [3.0, 4.0]])
    for kind in ("R6A", "R6B"):
        raw = folder / kind
        SyntheticLog(rounds=600, kind=kind, seed=2).write(raw / "raw", files=2)
        log = convert(reader_of(raw / "raw"), raw / "log", ReadReport())
        for arms in ARMS:
            use_view(View(log, arms=arms))
        if kind == "R6A":
            log, _ = yahoo.prepare_log(folder, raw / "log", train=200, rounds=50)
            split = yahoo.split_log(log, train=200, rounds=50)
            records = yahoo.experiments(log, split, ("released", "written"))
            for record in records:
                for unit in record.units():
                    runner.run_unit(runner.Job(unit, str(log.path)))


def use_view(view: View) -> None:
    """A log seen in one way."""
    if view.arms_are == "articles":
        describe.describe(view)
    sums = fit.collect(view, engine=SerialEngine())
    fit.least_squares(sums)
    fit.ridge_model(sums)
    shape = {"d1": view.d1, "d2": view.d2, "arms": len(view.names), "horizon": 100, "seed": 1}
    warm = make_policy("HyLinUCB", {"noise": 0.5}, **shape)
    tuned = [make_policy(name, {}, **shape) for name in ("HyThompson", "HyIDS")]
    for policy in (warm, *tuned):
        fit.warm_start(policy, sums)
    if view.arms_are == "articles":
        targets: dict[str, Any] = {"uniform": "uniform", "logged": "logged", "warm": evaluation.Frozen(warm)}
        targets |= {type(policy).__name__: evaluation.Frozen(policy) for policy in tuned}
        targets["greedy"] = hybandits.EpsilonGreedy(warm, epsilon=0.1)
        evaluation.evaluate(view, targets, interval="bernstein", clip=20.0, stop=300)
        for name in policy_names():
            policy = make_policy(name, {}, **shape)
            learning = {"it": evaluation.Learning(policy)}
            evaluation.evaluate(view, learning, estimators=("replay",), interval="bernstein", stop=100)
            learn_log(policy, view, 0, 20)


def main(folder: Path) -> None:
    """Warm up, use everything, and print which kernels were missed."""
    hybandits.warm_up()
    known = kernels()
    before = {name: set(kernel.signatures) for name, kernel in known.items()}
    unreached = sorted(known.keys() - reached(known))
    use_policies(folder)
    use_experiments()
    use_logs(folder)
    late = {
        name: [str(signature) for signature in kernel.signatures if signature not in before[name]]
        for name, kernel in known.items()
    }
    print(json.dumps({"kernels": len(known), "unreached": unreached, "late": {k: v for k, v in late.items() if v}}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
