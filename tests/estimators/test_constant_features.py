"""An x that cancels between candidates is noticed; one that does not, or that z makes up for, is left in peace."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from hybandits import EpsilonGreedy, HyLinUCB, HyRan, HyThompson, Policy, SupLinUCB
from hybandits.estimators.inputs import CALLS, WATCHED, ConstantFeatures
from hybandits.foundation.checks import FloatArray

Call = Callable[[np.random.Generator, FloatArray], tuple[FloatArray, FloatArray]]

ARMS = np.random.default_rng(1).normal(size=(4, 2))
N = len(ARMS)


def user_in_x(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), ARMS.copy()


def user_in_x_and_a_constant(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), np.ones((N, 1))


def user_in_x_and_no_z(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), np.empty((N, 0))


def user_in_x_and_arms_that_change(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), random.normal(size=(N, 2))


def products(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.einsum("kj,i->kji", ARMS, u).reshape(N, -1), ARMS.copy()


def li(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), np.tile(u, (N, 1))


def user_beside_the_arm_in_z(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.tile(u, (N, 1)), np.hstack([ARMS, np.tile(u, (N, 1))])


def constant(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.ones((N, 1)), ARMS.copy()


def one_candidate(random: np.random.Generator, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    return u[None, :].copy(), ARMS[:1].copy()


def watched(call: Call) -> int:
    """Return the number of calls that are examined."""
    random = np.random.default_rng(0)
    watch = ConstantFeatures()
    for n in range(1, 200):
        if watch.is_over(*call(random, random.normal(size=3))):
            return n
    raise AssertionError("the watch never ends")


@pytest.mark.parametrize(
    "call", [user_in_x, user_in_x_and_a_constant, user_in_x_and_no_z, user_in_x_and_arms_that_change]
)
def test_the_user_alone_in_x_is_noticed(call: Call) -> None:
    with pytest.warns(UserWarning, match=rf"x was the same for all candidates in each of {CALLS} calls") as said:
        assert watched(call) == CALLS
    assert len(said) == 1


@pytest.mark.parametrize(
    ("call", "calls"),
    [(products, 1), (li, CALLS), (user_beside_the_arm_in_z, CALLS), (constant, CALLS), (one_candidate, WATCHED)],
)
def test_nothing_is_said_where_nothing_is_wrong(call: Call, calls: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert watched(call) == calls


SHAPE: dict[str, int] = {"d1": 3, "d2": 2}
POLICIES: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": lambda: HyLinUCB(**SHAPE),
    "HyThompson": lambda: HyThompson(**SHAPE, seed=0),
    "HyRan": lambda: HyRan(**SHAPE, seed=0),
    "SupLinUCB": lambda: SupLinUCB(**SHAPE, horizon=100),
    "EpsilonGreedy": lambda: EpsilonGreedy(HyLinUCB(**SHAPE), seed=0),
}


def play(policy: Policy, call: Call, rounds: int = 60) -> None:
    random = np.random.default_rng(0)
    for _ in range(rounds):
        policy.choose(*call(random, random.normal(size=3)), arms=["a", "b", "c", "d"])


def play_many(policy: Policy, call: Call, rounds: int = 60) -> None:
    """The same rounds in batches of seven decisions, one of four candidates masked and its features another's."""
    random = np.random.default_rng(0)
    mask = np.ones((7, N), bool)
    mask[:, -1] = False
    for _ in range(rounds // 7):
        rows = [call(random, random.normal(size=3)) for _ in range(7)]
        x, z = np.stack([x for x, _ in rows]), np.stack([z for _, z in rows])
        x[:, -1] = random.normal(size=(7, x.shape[2]))
        policy.choose_batch(x, z, ["a", "b", "c", "d"], mask=mask)


@pytest.mark.parametrize("playing", [play, play_many])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_says_it_once(name: str, playing: Callable[[Policy, Call], None]) -> None:
    policy = POLICIES[name]()
    with pytest.warns(UserWarning, match="cancels between them and cannot change a choice: put products") as said:
        playing(policy, user_in_x)
    assert len(said) == 1
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(policy, user_in_x)
        play_many(policy, user_in_x)


def test_a_warning_that_is_an_error_is_raised_once() -> None:
    policy = HyLinUCB(d1=3, d2=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="x was the same"):
            play(policy, user_in_x)
        play(policy, user_in_x)
