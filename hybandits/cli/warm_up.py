"""Compile everything ahead of time, for servers and images that should not wait later."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any


def warm_up() -> None:
    """Use every kernel once, so that its machine code is on disk: about half a minute the first time, then a second.

    Without it kernels are compiled when first needed: most in the first choice and reward, some later (the refresh in
    an arm's 512th reward, merging, HyThompson, HyRan).
    """
    import numpy as np

    from hybandits.kernels import arrow
    from hybandits.model.exploration import AsWritten
    from hybandits.policies import (
        DisLinUCB,
        EpsilonGreedy,
        HyLinUCB,
        HyRan,
        HyThompson,
        Policy,
        SupLinUCB,
        Uniform,
        load,
    )

    shape: dict[str, Any] = {"d1": 2, "d2": 1}
    policies: list[Policy] = [
        HyLinUCB(**shape),
        HyLinUCB(**shape, exploration=AsWritten(horizon=10)),
        DisLinUCB(**shape),
        HyThompson(**shape, propensity_draws=1),
        EpsilonGreedy(Uniform(**shape)),
        SupLinUCB(**shape, horizon=10),
        HyRan(**shape, p=0.99),
    ]
    many = 2 * arrow.REFRESH
    x, z = np.ones((many, 2)), np.ones((many, 1))
    with tempfile.TemporaryDirectory() as folder:
        for policy in policies:
            for arms in (["a", "b"], [f"arm-{i}" for i in range(20)]):
                n = len(arms)
                choice = policy.choose(x[:n], z[:n], arms)
                policy.learn(choice.arm, x[choice.index], z[choice.index], 1.0, receipt=choice.receipt)
                policy.choose(x[:n], z[:n], arms)
                policy.propensities(x[:n], z[:n], arms)
            if isinstance(policy, HyLinUCB):
                policy.learn_many(["a"] * many, x, z, np.ones(many))
                for _ in range(arrow.REFRESH):
                    policy.learn("b", x[0], z[0], 1.0)
            policy.beta(choice.arm)
            policy.save(Path(folder) / "policy.npz")
            policy.merge(load(Path(folder) / "policy.npz"))
            policy.forget(choice.arm)


def warmup() -> None:
    """Compile everything now, so that nothing has to wait for it later."""
    from hybandits import paper
    from hybandits.experiments import runner

    warm_up()
    runner.compile_loops(paper.experiments(list(paper.SETTINGS), ("released", "written")))
    print("compiled; the machine code is on disk")
