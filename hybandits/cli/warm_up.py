"""Compile everything ahead of time, for servers and images; without the extra `lab`, the core."""

from __future__ import annotations

import gc
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybandits.policies import Policy

LABORATORY = ("isal", "pyarrow", "scipy")
"""Packages beyond the core that functions on logs need."""


def warm_up() -> None:
    """Compile every kernel for this machine and keep the machine code on disk.

    The first call needs about a minute of one processor core, a later one a few seconds. Without it each kernel is
    compiled when it is first needed: most in the first choice and the first reward, some much later.

    Examples
    --------
    >>> import hybandits
    >>> hybandits.warm_up()  # doctest: +SKIP
    """
    usual = gc.get_threshold()
    gc.set_threshold(100_000)  # compiling makes many objects: collecting garbage would take a tenth of the time
    try:
        _use_policies()
        _play_rounds()
        if all(find_spec(name) is not None for name in LABORATORY):
            with tempfile.TemporaryDirectory() as folder:
                _use_logs(Path(folder))
    finally:
        gc.set_threshold(*usual)


def timed_warm_up() -> dict[str, list[float]]:
    """Warm up, and return the seconds for which each kernel was compiled, once for each combination of types.

    They do not include the kernels that it calls where those were compiled first.
    """
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        warm_up()
    seconds: dict[str, list[float]] = {}
    under_way: list[list[float]] = []  # of each kernel when it began, and how long others took since
    for moment, happening in recorder.buffer:
        if happening.is_start:
            under_way.append([moment, 0.0])
            continue
        start, others = under_way.pop()
        if under_way:
            under_way[-1][1] += moment - start
        function = happening.data["dispatcher"].py_func
        seconds.setdefault(f"{function.__module__}.{function.__qualname__}", []).append(moment - start - others)
    return seconds


def export_machine_code(folder: str) -> None:
    """Write the machine code of all kernels that `warm_up` calls from Python to a new folder, for a wheel.

    It must be on disk already, and HYBANDITS_COMPILE=never be set: a kernel that were compiled in this process would
    bring along the kernels that it calls.
    """
    from hybandits.foundation.machine_code import export

    warm_up()
    export(Path(folder))


def _policies(arms: int) -> list[Policy]:
    """Make every kind of policy with every kind of model: given settings, learned ones, and memories."""
    from hybandits.policies import EpsilonGreedy, Uniform
    from hybandits.policies.by_name import make_policy, policy_names, setting_names

    shape: dict[str, Any] = {"d1": 2, "d2": 1, "arms": arms, "horizon": 10}
    policies: list[Policy] = [EpsilonGreedy(Uniform(d1=2, d2=1), epsilon=1.0)]
    for name in policy_names():
        variants: list[dict[str, Any]] = [{"p": 0.99}] if name == "HyRan" else [{}]
        if "memory" in setting_names(name):
            variants += [{"noise": 1.0, "scale": 1.0}, {"memory": "auto"}]
        policies += [make_policy(name, settings, **shape) for settings in variants]
    return policies


def _use_policies() -> None:
    """Let every kind of policy choose, learn, merge, forget, and be saved and loaded."""
    import numpy as np

    from hybandits.features import FeatureMap
    from hybandits.kernels.arrow import REFRESH, SHORT
    from hybandits.kernels.evidence import LARGE
    from hybandits.policies import HyIDS, HyLinUCB, HyThompson, load

    wide = HyLinUCB(d1=1, d2=SHORT)  # batches of long rows have a kernel of their own
    wide.choose_batch(np.ones((1, 2, 1)), np.ones((1, 2, SHORT)), ["a", "b"])
    large = HyIDS(d1=LARGE, d2=1)  # so many features are learned by kernels of their own
    for arm in ("a", "b"):
        large.learn(arm, np.ones(LARGE), np.ones(1), 1.0)
    large.refresh()
    many = 2 * REFRESH
    x, z = np.ones((many, 2)), np.ones((many, 1))
    with tempfile.TemporaryDirectory() as folder:
        for policy in _policies(arms=20):
            for arms in (["a", "b"], [f"arm-{i}" for i in range(20)]):
                n = len(arms)
                choice = policy.choose(x[:n], z[:n], arms)
                policy.learn(choice.arm, x[choice.index], z[choice.index], 1.0, receipt=choice.receipt)
                policy.choose(x[:n], z[:n], arms)
                policy.choose(x[:n], z[:n], arms, key="event", randomize=True)
                policy.rank(x[:n], z[:n], arms, 2)
                policy.predict(x[:n], z[:n], arms)
                policy.choose_batch(x[None, :n], z[None, :n], arms, mask=np.ones((1, n), bool))
            if isinstance(policy, HyLinUCB | HyThompson):
                policy.learn_batch(["a"] * many, x, z, np.ones(many))
                for _ in range(REFRESH):
                    policy.learn("b", x[0], z[0], 1.0)
            policy.propensities(x[:2], z[:2], ["a", "b"])
            numbers = np.arange(2)
            for _ in range(2):  # the arms are new, then known
                choice = policy.choose(x[:2], z[:2], numbers)
                policy.choose_batch(x[None, :2], z[None, :2], numbers[None])
                policy.learn(choice.arm, x[choice.index], z[choice.index], 1.0, receipt=choice.receipt)
            policy.beta(choice.arm)
            policy.save(Path(folder) / "policy.npz")
            policy.merge(load(Path(folder) / "policy.npz"))
            policy.refresh()
            repr(policy)
            policy.forget(choice.arm)
    FeatureMap("das", 2, 1)([1.0, 2.0], [3.0])
    FeatureMap("das+pair", 2, 1, 1)([1.0, 2.0], [3.0], [4.0])


def _play_rounds() -> None:
    """Play two rounds with every policy, and so in every compiled loop, and two in worlds of every law."""
    from hybandits.policies import HyLinUCB
    from hybandits.simulation.play import cumulative_regret
    from hybandits.simulation.worlds import LAWS, Synthetic

    shape: dict[str, Any] = {"d1": 2, "d2": 1}
    for policy in _policies(arms=2):
        cumulative_regret(policy, Synthetic(**shape, arms=2), 2)
    for law in LAWS:
        cumulative_regret(HyLinUCB(**shape), Synthetic(**shape, arms=2, law=law), 2)


def _use_logs(folder: Path) -> None:
    """Write small click logs, read them, and describe, fit, simulate and evaluate on one."""
    from hybandits.evaluation import Frozen, Learning, evaluate
    from hybandits.evaluation.describe import describe
    from hybandits.evaluation.fit import collect, least_squares, warm_start
    from hybandits.evaluation.log_world import LogWorld, look_over
    from hybandits.evaluation.view import View
    from hybandits.logs.formats import reader_of
    from hybandits.logs.report import ReadReport
    from hybandits.logs.store import convert
    from hybandits.logs.synthetic import SyntheticLog
    from hybandits.policies import HyIDS, HyLinUCB, Uniform
    from hybandits.simulation.play import cumulative_regret

    for kind in ("R6B", "R6A"):
        SyntheticLog(rounds=400, kind=kind).write(folder / kind / "raw")
        log = convert(reader_of(folder / kind / "raw"), folder / kind / "log", ReadReport())
    view = View(log)
    describe(view)
    sums = collect(view)
    model = least_squares(sums).model
    shape: dict[str, Any] = {"d1": view.d1, "d2": view.d2}
    policy = HyLinUCB(**shape, noise=0.5)
    batch = next(view.log.batches(0, 10))
    policy.learn_batch(*view.rows(batch), batch.reward)
    for taught in (policy, HyIDS(**shape)):
        warm_start(taught, sums)
    look_over(view, model, 0, 10)
    world = LogWorld(view, model, start=0, noise=0.1)
    for player in (HyLinUCB(**shape), Uniform(**shape)):
        cumulative_regret(player, world, 2)
    evaluate(view, {"frozen": Frozen(policy), "uniform": "uniform"})
    evaluate(view, {"learning": Learning(policy)}, estimators=("replay",))
    evaluate(view, {"learning": Learning(policy)}, estimators=("replay",), keep=0.01)
