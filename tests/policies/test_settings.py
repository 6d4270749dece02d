"""Settings: wrong ones are refused by name, and all of them survive saving."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybandits
import hybandits.policies
from hybandits import (
    AsWritten,
    Constant,
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyRanWithoutCrossBlocks,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SelfNormalised,
    SupLinUCB,
    Uniform,
    load,
)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HyLinUCB(d1=0, d2=0), ValueError, "d1 and d2 are both 0"),
        (lambda: HyLinUCB(d1=-1, d2=2), ValueError, "d1 must be at least 0, got -1"),
        (lambda: HyLinUCB(d1=1.5, d2=2), TypeError, "d1 must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=True, d2=2), TypeError, "d1 must be a whole number, got True"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=0.0), ValueError, "ridge must be positive, got 0.0"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=math.nan), ValueError, "ridge must be finite, got nan"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge="1"), TypeError, "ridge must be a number, got '1'"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=1, d2=1, noise=-0.1), ValueError, "noise must be positive, got -0.1"),
        (lambda: HyLinUCB(d1=1, d2=1, seed=-3), ValueError, "seed must be at least 0, got -3"),
        (lambda: HyLinUCB(d1=1, d2=1, seed=0.5), TypeError, "seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=1, d2=1, exploration=0.5), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (
            lambda: HyLinUCB(d1=1, d2=1, noise=0.1, exploration=Constant(alpha=1.0)),
            ValueError,
            "noise=0.1 and exploration=.* were both given",
        ),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=1e-30), ValueError, "ridge must lie between 1e-20 and 1e20, got 1e-30"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=10**400), ValueError, "ridge must be finite"),
        (lambda: HyLinUCB(d1=1, d2=1, exploration=SelfNormalised), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (
            lambda: HyThompson(d1=1, d2=1, noise=1e200),
            ValueError,
            r"noise must lie between 1e-50 and 1e50, got 1e\+200",
        ),
        (lambda: HyIDS(d1=1, d2=1, noise=1e20, scale=1.0), ValueError, r"noise=1e\+20 and scale=1.0 are too far apart"),
        (lambda: HyThompson(d1=1, d2=1, noise=0.0), ValueError, "noise must be positive, got 0.0"),
        (lambda: HyThompson(d1=1, d2=1, scale=-1.0), ValueError, "scale must be positive, got -1.0"),
        (lambda: HyThompson(d1=1, d2=1, propensity_draws=-1), ValueError, "propensity_draws must be at least 0"),
        (lambda: HyRan(d1=1, d2=1, p=1.0), ValueError, r"p must lie in \(0, 1\), got 1.0"),
        (lambda: HyRan(d1=1, d2=1, arm_count=0), ValueError, "arm_count must be at least 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=1), ValueError, "horizon must be at least 2, got 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=9, alpha=0.0), ValueError, "alpha must be positive, got 0.0"),
        (lambda: LiHybrid(d1=1, d2=1, alpha=-1.0), ValueError, "alpha must not be negative, got -1.0"),
    ],
)
def test_bad_settings_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# ------------------------------------------------------------------ what a file holds

SAVED: list[tuple[Policy, dict[str, Any]]] = [
    (
        HyLinUCB(d1=2, d2=1, noise=0.1),
        {
            "d1": 2,
            "d2": 1,
            "exploration": {
                "kind": "SelfNormalised",
                "noise": 0.1,
                "bound": 1.0,
                "feature_bound": 1.0,
                "delta": 0.01,
            },
            "ridge": None,
        },
    ),
    (
        LinUCB(d1=2, d2=1, exploration=AsWritten(horizon=9, arms=3), ridge=2),
        {
            "d1": 2,
            "d2": 1,
            "exploration": {"kind": "AsWritten", "horizon": 9, "delta": 0.01, "bound": 1.0, "arms": 3},
            "ridge": 2.0,
        },
    ),
    (
        DisLinUCB(d1=2, d2=1, exploration=Constant(alpha=1)),
        {"d1": 2, "d2": 1, "exploration": {"kind": "Constant", "alpha": 1.0}, "ridge": None},
    ),
    (LiHybrid(d1=2, d2=1, alpha=0.5), {"d1": 2, "d2": 1, "alpha": 0.5, "ridge": 1.0}),
    (Greedy(d1=2, d2=1, ridge=3), {"d1": 2, "d2": 1, "ridge": 3.0}),
    (Uniform(d1=2, d2=1, ridge=3), {"d1": 2, "d2": 1, "ridge": 3.0}),
    (
        HyThompson(d1=2, d2=1, noise=0.2, scale=1.0, propensity_draws=5),
        {"d1": 2, "d2": 1, "noise": 0.2, "scale": 1.0, "memory": None, "propensity_draws": 5},
    ),
    (HyIDS(d1=2, d2=1), {"d1": 2, "d2": 1, "noise": None, "scale": None, "memory": None}),
    (HyIDS(d1=2, d2=1, memory="auto"), {"d1": 2, "d2": 1, "noise": None, "scale": None, "memory": "auto"}),
    (
        HyRan(d1=2, d2=1, p=0.7, ridge_schedule="theory"),
        {"d1": 2, "d2": 1, "p": 0.7, "ridge_schedule": "theory", "delta": 0.01, "arm_count": None},
    ),
    (
        HyRanWithoutCrossBlocks(d1=2, d2=1, arm_count=4),
        {"d1": 2, "d2": 1, "p": 0.5, "ridge_schedule": "experiments", "delta": 0.01, "arm_count": 4},
    ),
    (
        SupLinUCB(d1=2, d2=1, horizon=50),
        {"d1": 2, "d2": 1, "horizon": 50, "delta": 0.01, "alpha": None, "arm_count": None, "ridge": 1.0},
    ),
    (EpsilonGreedy(Greedy(d1=2, d2=1), epsilon=0.25), {"epsilon": 0.25}),
]
"""A policy of every class, and the settings that its saved file must hold, in this order."""


@pytest.mark.parametrize(("policy", "expected"), SAVED, ids=lambda value: type(value).__name__)
def test_a_file_holds_the_settings_and_load_restores_them(
    policy: Policy, expected: dict[str, Any], tmp_path: Path
) -> None:
    policy.save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz") as content:
        header = json.loads(content["header"].tobytes())
    assert list(header) == ["format", "version", "class", "config", "random", "parts"]
    assert header["class"] == type(policy).__name__
    assert json.dumps(header["config"]) == json.dumps(expected)
    restored = load(tmp_path / "policy.npz")
    assert restored._config() == policy._config()
    assert repr(restored) == repr(policy)


def test_every_public_policy_is_tried() -> None:
    public = {name for name in hybandits.__all__ if name != "Policy" and name in hybandits.policies.__all__}
    kinds = {name: getattr(hybandits, name) for name in public}
    classes = {name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Policy)}
    assert {type(policy).__name__ for policy, _ in SAVED} == classes


def test_repr_shows_the_settings_as_they_are_now() -> None:
    policy = HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10))
    policy.learn_batch(range(3), np.ones((3, 1)), np.ones((3, 1)), np.ones(3))
    assert repr(policy) == (
        "HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10, delta=0.01, bound=1.0, arms=None), ridge=3.0): "
        "3 arms known, 3 rewards learned"
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
