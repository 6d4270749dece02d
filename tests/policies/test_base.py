"""The contract's common part: loading by class, merging, receipts, notes, and streams of random numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hybandits
from hybandits import FileError, Greedy, HyLinUCB, HyRan, HyThompson, LinUCB, Policy, SupLinUCB, Uniform
from hybandits.policies.base import check_mergeable, check_receipts
from hybandits.testing import ARMS, Page, fingerprint


def test_load_finds_the_class_by_itself_and_a_class_loads_only_its_own(tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    HyLinUCB(d1=2, d2=1, noise=0.1).save(path)
    assert type(hybandits.load(path)) is HyLinUCB
    assert type(Policy.load(path)) is HyLinUCB
    with pytest.raises(FileError, match=r"holds a HyLinUCB, not a LinUCB: use hybandits\.load"):
        LinUCB.load(path)


def test_classes_draw_from_different_streams() -> None:
    class Other(Uniform):
        pass

    def draws(kind: type[Uniform]) -> list[int]:
        policy = kind(d1=1, d2=0, seed=0)
        return [policy.choose(np.ones((50, 1))).index for _ in range(10)]

    assert draws(Uniform) == draws(Uniform)
    assert draws(Uniform) != draws(Other)


def test_there_is_one_receipt_per_row() -> None:
    assert list(check_receipts(None, 3)) == [None, None, None]
    assert list(check_receipts(iter([1, None]), 2)) == [1, None]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="receipts has 1 entries but there are 2 rows: pass one per row"):
        check_receipts([None], 2)


def test_only_policies_alike_can_be_merged() -> None:
    greedy = Greedy(d1=1, d2=1)
    check_mergeable(greedy, Greedy(d1=1, d2=1, seed=5))
    with pytest.raises(ValueError, match="cannot be merged with itself"):
        check_mergeable(greedy, greedy)
    with pytest.raises(ValueError, match="different d2: 1 here, 2 there; construct both alike"):
        check_mergeable(greedy, Greedy(d1=1, d2=2))
    with pytest.raises(TypeError, match="only another Greedy can be merged, got int"):
        check_mergeable(greedy, 3)


@pytest.mark.parametrize("kind", [HyLinUCB, HyRan, partial(SupLinUCB, horizon=9)])
def test_an_id_that_is_known_as_another_type_is_pointed_out_once(kind: Callable[..., Policy]) -> None:
    policy = kind(d1=1, d2=1)
    row = [1.0], [1.0], 1.0
    policy.learn(100, *row)
    with pytest.warns(UserWarning, match=r"arm '100' \(str\) is not known, but 100 \(int\) is"):
        policy.choose([[1.0], [2.0]], [[1.0], [2.0]], ["100", "other"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.learn("100", *row)
        policy.learn("100.0", *row)
    assert {100, "100", "100.0"} <= set(policy.arms)


def test_frames_and_series_are_read_by_position() -> None:
    page = Page(3, 2)
    x, z = page.features()
    frames = pd.DataFrame(x, columns=list("abc"), index=range(9, 4, -1)), pd.DataFrame(z)
    plain, framed = (HyThompson(d1=3, d2=2, seed=0) for _ in range(2))
    rewards = np.arange(5.0)
    plain.learn_batch(ARMS, x, z, rewards)
    framed.learn_batch(pd.Series(ARMS), *frames, pd.Series(rewards, index=range(5, 0, -1)))
    choices = plain.choose(x, z, ARMS), framed.choose(*frames, pd.Series(ARMS))
    assert choices[0] == choices[1]
    i = choices[0].index
    plain.learn(ARMS[i], x[i], z[i], 1.0)
    framed.learn(ARMS[i], *(frame.iloc[i] for frame in frames), reward=pd.Series([1.0])[0])
    assert fingerprint(plain) == fingerprint(framed)
