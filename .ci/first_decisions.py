"""First decisions of a process: prints the seconds that they took, and a digest of them, as JSON.

`check_wheel.py` and `python -m benchmarks start` run this, wherever hybandits is installed.
"""

import time

start = time.perf_counter()

import hashlib  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from hybandits import HyIDS, HyLinUCB  # noqa: E402

D1, D2, ARMS, ROUNDS = 6, 4, 20, 300

random = np.random.default_rng(0)
x, z = random.normal(size=(ROUNDS + 50, ARMS, D1)), random.normal(size=(ROUNDS + 50, ARMS, D2))
theta, beta = random.normal(size=D1), random.normal(size=(ARMS, D2))
rewards = x @ theta + (z * beta).sum(axis=2) + random.normal(size=x.shape[:2])
numbers = []
seconds = {}

for policy in (HyIDS(d1=D1, d2=D2, seed=0), HyLinUCB(d1=D1, d2=D2, noise=0.5)):
    for t in range(ROUNDS):  # HyIDS learns its settings again several times on the way
        choice = policy.choose(x[t], z[t])
        policy.learn(choice.arm, x[t, choice.index], z[t, choice.index], rewards[t, choice.index])
        numbers += [choice.index, choice.mean, choice.width]
        if not seconds:
            seconds = {"first": time.perf_counter() - start, "processor": time.process_time()}
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder) / "policy.npz")
        loaded = type(policy).load(Path(folder) / "policy.npz")
    choices, ranking = loaded.choose_batch(x[ROUNDS:], z[ROUNDS:]), loaded.rank(x[0], z[0], list(range(ARMS)), 3)
    numbers += [*choices.indices, *choices.means, *choices.widths, *ranking.indices, *ranking.means]

seconds["all"] = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "digest": hashlib.sha256(np.array(numbers, float).tobytes()).hexdigest()}))
