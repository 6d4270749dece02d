"""Settings: wrong ones are refused by name, and all of them survive saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import (
    AsWritten,
    Constant,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyThompson,
    LiHybrid,
    SelfNormalised,
    SupLinUCB,
)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HyLinUCB(d1=0, d2=0), ValueError, "d1 and d2 are both 0"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=0.0), ValueError, "ridge must be positive, got 0.0"),
        (lambda: HyLinUCB(d1=1, d2=1, noise=-0.1), ValueError, "noise must be positive, got -0.1"),
        (lambda: HyLinUCB(d1=1, d2=1, seed=-3), ValueError, "seed must be at least 0, got -3"),
        (lambda: HyLinUCB(d1=1, d2=1, exploration=0.5), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (
            lambda: HyLinUCB(d1=1, d2=1, noise=0.1, exploration=Constant(alpha=1.0)),
            ValueError,
            "noise=0.1 and exploration=.* were both given",
        ),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=1e-30), ValueError, "ridge must lie between 1e-20 and 1e20, got 1e-30"),
        (lambda: HyLinUCB(d1=1, d2=1, exploration=SelfNormalised), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (
            lambda: HyThompson(d1=1, d2=1, noise=1e200),
            ValueError,
            r"noise must lie between 1e-50 and 1e50, got 1e\+200",
        ),
        (
            lambda: HyIDS(d1=1, d2=1, noise=1e20, scale=1.0),
            ValueError,
            r"noise / scale must lie between 1e-10 and 1e10, got 1e\+20 / 1.0",
        ),
        (lambda: HyThompson(d1=1, d2=1, noise=0.0), ValueError, "noise must be positive, got 0.0"),
        (lambda: HyThompson(d1=1, d2=1, scale=-1.0), ValueError, "scale must be positive, got -1.0"),
        (lambda: HyIDS(d1=1, d2=1, scale=1.0), ValueError, "scale=1.0 is given with noise=None .* leave scale out"),
        (lambda: HyIDS(d1=1, d2=1, noise=1, scale=1, memory=9), ValueError, "memory=9: it needs a noise and no memory"),
        (lambda: HyThompson(d1=1, d2=1, propensity_draws=-1), ValueError, "propensity_draws must be at least 0"),
        (lambda: HyRan(d1=1, d2=1, ridge_schedule="other"), ValueError, "ridge_schedule must be"),  # type: ignore[arg-type]
        (lambda: HyRan(d1=1, d2=1, p=1.0), ValueError, r"p must lie in \(0, 1\), got 1.0"),
        (lambda: HyRan(d1=1, d2=1, arm_count=0), ValueError, "arm_count must be at least 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=1), ValueError, "horizon must be at least 2, got 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=9, alpha=0.0), ValueError, "alpha must be positive, got 0.0"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=9, alpha=1.0, bound=1.0), ValueError, "leaves no use for bound=1.0"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=9, explore="all"), ValueError, "explore must be 'widest' or 'first'"),
        (lambda: LiHybrid(d1=1, d2=1, alpha=-1.0), ValueError, "alpha must not be negative, got -1.0"),
    ],
)
def test_bad_settings_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_repr_shows_the_settings_as_they_are_now() -> None:
    policy = HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10))
    policy.learn_batch(range(3), np.ones((3, 1)), np.ones((3, 1)), np.ones(3))
    assert repr(policy) == (
        "HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10, delta=0.01, bound=1.0, arms=None, factor=1.0), "
        "ridge=3.0): 3 arms known, 3 rewards learned"
    )
    wrapped = EpsilonGreedy(Greedy(d1=1, d2=1), epsilon=0.5)
    assert repr(wrapped) == (
        "EpsilonGreedy(policy=Greedy(d1=1, d2=1, ridge=1.0): 0 arms known, 0 rewards learned, epsilon=0.5): "
        "0 arms known, 0 rewards learned"
    )


class Bold(LiHybrid):
    """A policy of a user's own that passes on what it does not know."""

    def __init__(self, *, boldness: float = 2.0, **settings: Any) -> None:
        super().__init__(alpha=boldness, **settings)
        self.boldness = boldness

    _not_settings = ("seed", "alpha")


class Forgetful(Greedy):
    """A policy that does not keep one of its arguments."""

    def __init__(self, *, d1: int, d2: int, mood: str, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)


def test_arguments_passed_on_are_settings_too(tmp_path: Path) -> None:
    policy = Bold(d1=1, d2=1, boldness=3.0, ridge=0.5)
    assert policy._config() == {"boldness": 3.0, "d1": 1, "d2": 1, "ridge": 0.5}
    policy.save(tmp_path / "bold.npz")
    assert repr(Bold.load(tmp_path / "bold.npz")) == repr(policy)


def test_an_argument_that_is_not_kept_is_named(tmp_path: Path) -> None:
    policy = Forgetful(d1=1, d2=1, mood="fine")
    with pytest.raises(AttributeError, match=r"Forgetful has no attribute 'mood'.*self\.mood = "):
        policy.save(tmp_path / "policy.npz")


def test_settings_are_passed_by_name() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        HyLinUCB(3, 2)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional argument"):
        EpsilonGreedy(Greedy(d1=1, d2=1), 0.2)  # type: ignore[misc]
