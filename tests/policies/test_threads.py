"""Policies that several threads share, that are copied into other processes, and that draw numbers of their own."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits import (
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyThompson,
    Policy,
    SupLinUCB,
    load,
)
from hybandits.policies.base import RidgePolicy, locked
from hybandits.testing import ARMS, Page, fingerprint

ROOT = Path(__file__).parents[2]


def test_every_method_that_touches_what_was_learned_holds_the_lock() -> None:
    """Another thread that calls it waits until the lock is free."""
    x, z = np.ones((2, 4)), np.ones((2, 3))
    for policy in (HyIDS(d1=4, d2=3), SupLinUCB(d1=4, d2=3, horizon=50), HyRan(d1=4, d2=3),
                   EpsilonGreedy(HyLinUCB(d1=4, d2=3)), DisLinUCB(d1=4, d2=3)):  # fmt: skip
        policy.learn("a", x[0], z[0], 1.0)
        calls: list[Callable[[Policy], Any]] = [
            lambda policy: policy.choose(x, z), lambda policy: policy.choose_batch(x[None], z[None]),
            lambda policy: policy.rank(x, z), lambda policy: policy.randomize_batch(x[None], z[None], keys=[1]),
            lambda policy: policy.propensities(x, z), lambda policy: policy.predict(x, z),
            lambda policy: policy.learn("a", x[0], z[0], 1.0), lambda policy: policy.learn_batch([1, 2], x, z, x[:, 0]),
            lambda policy: policy.theta, lambda policy: policy.beta("a"), lambda policy: policy.arms,
            lambda policy: policy.candidates(["a"]), lambda policy: policy.admit(["b"]), Policy.to_bytes, Policy.copy,
            lambda policy: policy.reseed(1), lambda policy: policy.number_decisions(1),
            lambda policy: policy.merge(policy.start_delta()), lambda policy: policy.forget("b"),
        ]  # fmt: skip
        with policy._lock:
            workers = [threading.Thread(target=call, args=[policy]) for call in calls]
            for worker in workers:
                worker.start()
            time.sleep(0.02)
            assert all(worker.is_alive() for worker in workers)
        for worker in workers:
            worker.join(30)
            assert not worker.is_alive()


def test_two_policies_merge_into_each_other_without_waiting_for_ever() -> None:
    first, second = Greedy(d1=1, d2=0), Greedy(d1=1, d2=0)
    for policy in (first, second):
        policy.learn("a", [1.0], None, 1.0)

    def merge(first: Policy, second: Policy) -> None:
        for _ in range(50):
            first.merge(second.copy())
            with locked(first, second):
                pass

    workers = [threading.Thread(target=merge, args=pair, daemon=True) for pair in ((first, second), (second, first))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()


@pytest.mark.slow
def test_threads_leave_the_model_that_one_would_have_left() -> None:
    """In a process of its own, because a mistake here may end the process: arms come and go, threads take turns."""
    command = [sys.executable, "-m", "soak.threads", "--threads", "4", "--rows", "150"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------ seeds


@pytest.mark.parametrize("kind", [HyIDS, HyThompson, EpsilonGreedy])
def test_a_loaded_policy_goes_on_or_draws_numbers_of_its_own(kind: type[Policy], tmp_path: Path) -> None:
    page = Page(4, 3)
    policy = (
        EpsilonGreedy(Greedy(d1=4, d2=3), epsilon=0.5, seed=1) if kind is EpsilonGreedy else kind(d1=4, d2=3, seed=1)
    )  # type: ignore[call-arg]
    page.play(policy, 3)
    policy.save(tmp_path / "policy.npz")
    x, z = np.ones((5, 4)), np.ones((5, 3))

    def choices(of: Policy) -> list[Any]:
        return [of.choose(x, z, ARMS).arm for _ in range(30)]

    same = load(tmp_path / "policy.npz")
    others = [type(policy).load(tmp_path / "policy.npz", seed=seed) for seed in (5, 6, None, None)]
    again = load(tmp_path / "policy.npz", seed=5)
    expected = choices(policy)
    assert choices(same) == expected
    drawn = [choices(other) for other in others]
    assert choices(again) == drawn[0]
    assert len({tuple(each) for each in [expected, *drawn]}) == 5
    policy.reseed(5)
    assert choices(policy) == drawn[0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_locks_and_random_numbers_of_its_own() -> None:
    code = """
import os, sys, threading
import numpy as np
from hybandits import HyThompson
policy = HyThompson(d1=2, d2=1, noise=1.0, scale=1.0, seed=0)
x, z, arms = np.ones((4, 2)), np.ones((4, 1)), ["a", "b", "c", "d"]
policy.learn("a", x[0], z[0], 1.0)
stop = threading.Event()
def learn():
    while not stop.is_set():
        policy.learn("a", x[0], z[0], 1.0)
worker = threading.Thread(target=learn)
worker.start()
drawn = set()
for _ in range(5):
    read, write = os.pipe()
    if os.fork() == 0:
        rounds = policy.rounds
        policy.learn("b", x[0], z[0], 1.0)
        text = "".join(policy.choose(x, z, arms).arm for _ in range(40))
        os.write(write, text.encode() if policy.rounds == rounds + 1 else b"lost")
        os._exit(0)
    os.close(write)
    drawn.add(os.read(read, 100))
    os.wait()
stop.set()
worker.join()
drawn.add("".join(policy.choose(x, z, arms).arm for _ in range(40)).encode())
assert len(drawn) == 6 and b"lost" not in drawn, drawn
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=60, cwd=ROOT)


# ------------------------------------------------------------------ bytes, copies, deltas


def test_bytes_are_as_good_as_files(tmp_path: Path) -> None:
    policy, page = HyLinUCB(d1=4, d2=3), Page(4, 3)
    page.play(policy, 20)
    content = policy.to_bytes()
    policy.save(tmp_path / "policy.npz")
    for other in (
        HyLinUCB.from_bytes(content), load(tmp_path / "policy.npz"), policy.copy(),
        pickle.loads(pickle.dumps(policy)),
    ):  # fmt: skip
        assert fingerprint(other) == fingerprint(policy)
        other.learn("new", np.ones(4), np.ones(3), 1.0)
    assert policy.rounds == 20
    with pytest.raises(TypeError, match="content must be bytes, got str"):
        HyLinUCB.from_bytes("text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: HyLinUCB(d1=4, d2=3, ridge=2.0),
        lambda: HyIDS(d1=4, d2=3, seed=0),
        lambda: HyIDS(d1=4, d2=3, memory=30, seed=0),
        lambda: EpsilonGreedy(HyThompson(d1=4, d2=3, noise=0.1, scale=1.0, seed=0), epsilon=0.2, seed=0),
    ],
    ids=["HyLinUCB", "HyIDS", "HyIDS with a memory", "EpsilonGreedy"],
)
def test_deltas_are_counted_once(make: Any) -> None:
    """Two workers learn into deltas of the model; merged, the model is what it would be if it had learned all rows."""
    model, complete, page = make(), make(), Page(4, 3)
    x, z = page.features(60)
    arms = [ARMS[i % len(ARMS)] for i in range(60)]
    rewards = np.random.default_rng(0).standard_normal(60)
    complete.learn_batch(arms, x, z, rewards)
    model.learn_batch(arms[:20], x[:20], z[:20], rewards[:20])
    for part in (slice(20, 35), slice(35, 60)):
        delta = model.start_delta()
        assert delta.rounds == 0
        delta.learn_batch(arms[part], x[part], z[part], rewards[part])
        model.merge(type(model).from_bytes(delta.to_bytes()))
    complete.refresh()
    model.refresh()
    assert model.rounds == complete.rounds == 60
    np.testing.assert_allclose(model.theta, complete.theta, rtol=1e-7, atol=1e-10)
    for arm in set(arms):
        np.testing.assert_allclose(model.beta(arm), complete.beta(arm), rtol=1e-6, atol=1e-9)


def test_a_candidate_set_may_be_shared_by_policies() -> None:
    first, second = Greedy(d1=1, d2=1), Greedy(d1=1, d2=1)
    first.learn("b", [1.0], [1.0], 5.0)
    second.learn("a", [1.0], [1.0], 5.0)
    pool = first.candidates(["a", "b"])
    ones = np.ones((2, 1))
    for _ in range(3):
        assert first.choose(ones, ones, pool).arm == "b"
        assert second.choose(ones, ones, pool).arm == "a"
    assert isinstance(first, RidgePolicy)
    assert_array_equal(pool.looked_up[2], second.estimator.lookup(["a", "b"]))
