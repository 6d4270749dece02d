"""Several workers, one model: four processes decide, one learns, rewards come late, and a worker may die at any moment.

Every worker decides with a copy of the model and writes the rewards of its decisions, when they come, to a queue on
disk, numbered. It learns a range of them into a delta and hands that over. The learner merges the delta and saves the
model together with the number up to which it has learned this worker's rewards: one file, so both are saved or neither
is. Only then does the worker go on behind that range. A worker that dies is started again and begins at the first
reward that has not been acknowledged, so nothing is lost and nothing is counted twice.

Run it with: python examples/workers.py
"""

from __future__ import annotations

import json
import multiprocessing
import random
import sqlite3
import tempfile
from collections import deque
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from hybandits import HyIDS, Policy, load

WORKERS, VISITS, DELAY, RANGE, KILL_EVERY = 4, 300, 20, 50, 4
"""Workers; decisions of each; visits until a reward comes; rewards handed over at once; merges between two kills."""
D1, D2, ARMS = 4, 2, [f"item-{i}" for i in range(6)]


def queue_of(folder: Path, worker: int) -> sqlite3.Connection:
    """The queue of a worker's rewards, on disk."""
    queue = sqlite3.connect(folder / f"rewards-{worker}.db", isolation_level=None)
    queue.execute("CREATE TABLE IF NOT EXISTS rewards (number INTEGER PRIMARY KEY, arm TEXT, row TEXT, reward REAL)")
    return queue


def rows_of(queue: sqlite3.Connection, after: int, most: int) -> tuple[list[Any], ...]:
    """Numbers, arms, features and rewards of the next ones in a queue."""
    rows = queue.execute("SELECT * FROM rewards WHERE number > ? ORDER BY number LIMIT ?", (after, most)).fetchall()
    features = [np.array(json.loads(row[2])) for row in rows]
    return (
        [r[0] for r in rows],
        [r[1] for r in rows],
        [f[:D1] for f in features],
        [f[D1:] for f in features],
        [r[3] for r in rows],
    )


def decide(worker: int, folder: Path, learner: Connection) -> None:
    """A worker: decide, put rewards into the queue when they come, and hand them over as deltas."""
    queue = queue_of(folder, worker)
    model = load(folder / "model.npz", seed=None)  # every process draws numbers of its own
    acknowledged = int(model.notes["acknowledged"][str(worker)])
    (count,) = queue.execute("SELECT count(*) FROM rewards").fetchone()
    world = np.random.default_rng(worker + 1000 * count)
    theta, beta = truth()
    late: deque[tuple[str, list[float], float]] = deque()
    while count < VISITS or acknowledged < VISITS:
        if count + len(late) < VISITS:
            x, z = world.standard_normal((len(ARMS), D1)), world.standard_normal((len(ARMS), D2))
            choice = model.choose(x, z, ARMS)
            i = choice.index
            reward = float(x[i] @ theta + z[i] @ beta[i] + 0.1 * world.standard_normal())
            late.append((ARMS[i], [*x[i], *z[i]], reward))
        if late and (len(late) > DELAY or count + len(late) >= VISITS):  # a reward comes
            arm, row, reward = late.popleft()
            count += 1
            queue.execute("INSERT INTO rewards VALUES (?, ?, ?, ?)", (count, arm, json.dumps(row), reward))
        if count >= min(acknowledged + RANGE, VISITS):
            numbers, arms, x_rows, z_rows, rewards = rows_of(queue, acknowledged, RANGE)
            delta = model.start_delta()
            delta.learn_batch(arms, np.array(x_rows), np.array(z_rows), rewards)
            learner.send_bytes(json.dumps([numbers[0], numbers[-1]]).encode())
            learner.send_bytes(delta.to_bytes())
            acknowledged = json.loads(learner.recv_bytes())
            model = Policy.from_bytes(learner.recv_bytes(), seed=None)


def truth() -> tuple[np.ndarray, np.ndarray]:
    """True parameters of the rewards."""
    world = np.random.default_rng(7)
    return world.standard_normal(D1), world.standard_normal((len(ARMS), D2))


def learn(folder: Path, *, kills: int, seed: int = 0) -> tuple[Policy, int]:
    """The learner: start the workers, merge what they send, save, acknowledge, and restart dead workers.

    Returns the model and how many workers had to be started again.
    """
    model: Policy = HyIDS(d1=D1, d2=D2, seed=seed)
    model.notes["acknowledged"] = {str(worker): 0 for worker in range(WORKERS)}
    model.save(folder / "model.npz")
    processes = multiprocessing.get_context("spawn")
    chance = random.Random(seed)
    running: dict[Connection, tuple[int, Any]] = {}

    def start(worker: int) -> None:
        ours, theirs = processes.Pipe()
        process = processes.Process(target=decide, args=(worker, folder, theirs), daemon=True)
        process.start()
        theirs.close()
        running[ours] = worker, process

    for worker in range(WORKERS):
        start(worker)
    merges = restarts = kills_done = 0
    while running:
        for connection in wait(list(running), timeout=0.1):
            assert isinstance(connection, Connection)
            worker, _ = running[connection]
            try:
                first, last = json.loads(connection.recv_bytes())
                delta = type(model).from_bytes(connection.recv_bytes())
                acknowledged = model.notes["acknowledged"]
                if first == acknowledged[str(worker)] + 1:  # otherwise it has been learned before
                    model.merge(delta)
                    merges += 1
                    acknowledged[str(worker)] = last
                    model.save(folder / "model.npz")
                connection.send_bytes(json.dumps(acknowledged[str(worker)]).encode())
                connection.send_bytes(model.to_bytes())
            except (EOFError, ConnectionError):  # the worker has ended, or died
                running.pop(connection)[1].join()
                if model.notes["acknowledged"][str(worker)] < VISITS:
                    restarts += 1
                    start(worker)
        if running and kills_done < min(kills, merges // KILL_EVERY):
            chance.choice(list(running.values()))[1].kill()
            kills_done += 1
    return model, restarts


def main(kills: int = 3) -> dict[str, float]:
    """Return restarts of workers, rewards in the queues, rewards that the model has counted, and its error."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, restarts = learn(folder, kills=kills)
        exact, queued = model.start_delta(), 0
        for worker in range(WORKERS):
            numbers, *rows = rows_of(queue_of(folder, worker), 0, 10**9)
            exact.learn_batch(rows[0], np.array(rows[1]), np.array(rows[2]), rows[3])
            queued += len(numbers)
        for each in (exact, model):
            each.refresh()
        return {
            "restarts": restarts, "queued": queued, "counted": model.rounds,
            "difference": float(np.abs(model.theta - exact.theta).max()),
        }  # fmt: skip


if __name__ == "__main__":
    for what, value in main().items():
        print(f"{what}: {value:g}")
