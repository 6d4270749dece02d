"""Many decisions at once are as many calls of `choose`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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
    Uniform,
)
from hybandits.testing import Page, fingerprint

SHAPE: dict[str, Any] = {"d1": 4, "d2": 3}
MAKERS: dict[str, Any] = {
    "HyLinUCB": lambda: HyLinUCB(**SHAPE, seed=0),
    "DisLinUCB": lambda: DisLinUCB(**SHAPE, seed=0),
    "HyThompson": lambda: HyThompson(**SHAPE, propensity_draws=20, seed=0),
    "HyThompson, told": lambda: HyThompson(**SHAPE, noise=0.1, scale=1.0, seed=0),
    "HyIDS": lambda: HyIDS(**SHAPE, seed=0),
    "EpsilonGreedy": lambda: EpsilonGreedy(Greedy(**SHAPE, seed=0), epsilon=0.5, seed=0),
    "SupLinUCB": lambda: SupLinUCB(**SHAPE, horizon=100, arm_count=9, seed=0),
    "HyRan": lambda: HyRan(**SHAPE, arm_count=9, seed=0),
    "Uniform": lambda: Uniform(**SHAPE, seed=0),
}
IDS = ["a", "b", "c", "d", "e"]


def one_by_one(policy: Policy, x: Any, z: Any, arms: Any, mask: Any) -> list[Any]:
    choices = []
    for b in range(len(x)):
        ids = arms[b] if isinstance(arms[0], list) else arms
        shown = np.flatnonzero(mask[b]) if mask is not None else np.arange(len(ids))
        choice = policy.choose(x[b][shown], z[b][shown], [ids[i] for i in shown])
        choices.append((choice.arm, int(shown[choice.index]), choice.mean, choice.width, choice.propensity))
    return choices


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("kind", "threads"), [("shared", 1), ("own", 3), ("masked", 3), ("masked and own", 1)])
def test_they_are_equal_to_calls_of_choose(name: str, kind: str, threads: int) -> None:
    together, alone = MAKERS[name](), MAKERS[name]()
    for policy in (together, alone):
        Page(4, 3).play(policy, 15)
    random = np.random.default_rng(1)
    x, z = random.standard_normal((12, 5, 4)), random.standard_normal((12, 5, 3))
    arms: Any = IDS
    if "own" in kind:
        arms = [random.permutation([*IDS, "new", "newer"])[:5].tolist() for _ in range(12)]
    mask = random.random((12, 5)) < 0.6 if "masked" in kind else None
    if mask is not None:
        mask[:, 0] = True
    choices = together.choose_batch(x, z, arms, mask=mask, threads=threads)
    wanted = one_by_one(alone, x, z, arms, mask)
    assert choices.arms == [each[0] for each in wanted]
    assert choices.indices.tolist() == [each[1] for each in wanted]
    assert_allclose(choices.means, [each[2] for each in wanted], rtol=1e-12)
    assert_allclose(choices.widths, [each[3] for each in wanted], rtol=1e-12)
    assert_allclose(choices.propensities, [np.nan if each[4] is None else each[4] for each in wanted])
    if kind == "shared":
        assert fingerprint(together) == fingerprint(alone)


@pytest.mark.parametrize(("d1", "d2"), [(5, 17), (0, 16)])
@pytest.mark.parametrize("kind", [HyLinUCB, DisLinUCB])
def test_long_features_are_scored_arm_by_arm_with_the_same_result_to_the_bit(
    kind: type[HyLinUCB], d1: int, d2: int
) -> None:
    policy = kind(d1=d1, d2=d2)
    random = np.random.default_rng(0)
    n, arms, learned = 61, list(range(61)), 50
    rows = random.standard_normal((4 * learned, d1)), random.standard_normal((4 * learned, d2))
    policy.learn_batch(arms[:learned] * 4, *rows, random.random(4 * learned))
    x, z = random.standard_normal((11, n, d1)) / 9, random.standard_normal((11, n, d2)) / 9
    choices = policy.choose_batch(x, z, arms)
    for b in range(11):
        choice = policy.choose(x[b], z[b], arms)
        assert (choices.arms[b], int(choices.indices[b])) == (choice.arm, choice.index)
        assert (choices.means[b], choices.widths[b]) == (choice.mean, choice.width)
    assert len(set(choices.arms)) > 1
    z[7, 3, 0] = np.nan
    with pytest.raises(ValueError, match="finite"):
        policy.choose_batch(x, z, arms)


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_batches_among_many_contenders_are_calls_of_choose_to_the_bit(kind: Any) -> None:
    """More than 64 contenders with more than 64 shared features, of which draws of theta are scored."""
    random = np.random.default_rng(0)
    together, alone, quiet = (
        kind(d1=66, d2=1, noise=0.5, scale=1.0, seed=0, propensity_draws=draws) for draws in (0, 40, 0)
    )
    for policy in (together, alone, quiet):
        policy.learn_batch([0, 1, 2], *(np.ones((3, d)) for d in (66, 1)), [1.0, 0.0, 1.0])
    x, z = random.standard_normal((6, 80, 66)), random.standard_normal((6, 80, 1))
    choices = together.choose_batch(x, z, list(range(80)), threads=2)
    for b in range(6):
        choice = alone.choose(x[b], z[b], list(range(80)))
        assert (choices.indices[b], choices.means[b], choices.widths[b]) == choice[1:4]
        assert choice.propensity is not None
        assert 0 < choice.propensity < 1
        p = alone.propensities(x[b], z[b])
        assert p.sum() == pytest.approx(1.0)
        assert (p > 0).sum() > 2
        assert alone.rank(x[b], z[b], None, 2, key=b).arms[0] == quiet.choose(x[b], z[b], key=b).arm
    assert len(set(choices.arms)) > 1


def test_a_rule_of_ones_own_is_asked_one_by_one() -> None:
    class Last(HyLinUCB):
        def _pick(self, candidates: Any, stream: Any) -> Any:
            return len(candidates.arms) - 1, 0.0, 0.0, 1.0

    choices = Last(d1=1, d2=0).choose_batch(np.ones((2, 3, 1)), arms=["a", "b", "c"])
    assert choices.arms == ["c", "c"]


@pytest.mark.parametrize("name", ["HyLinUCB", "HyIDS", "HyRan"])
def test_rows_that_the_mask_leaves_out_may_hold_anything(name: str) -> None:
    policy = MAKERS[name]()
    x, z, mask = np.ones((2, 3, 4)), np.ones((2, 3, 3)), np.ones((2, 3), bool)
    x[1, 2], mask[1, 2] = np.nan, False
    assert "c" not in policy.choose_batch(x, z, ["a", "b", "c"], mask=mask).arms[1:]
    policy.choose_batch(x, z, ["a", "b", "c"], mask=mask)
    mask[1, 2] = True
    with pytest.raises(ValueError, match="must be finite"):
        policy.choose_batch(x, z, ["a", "b", "c"], mask=mask)


@pytest.mark.parametrize("arms", [[["a", "b", "c"], ["d", "-", "-"]], np.array([[1, 2, 3], [4, -1, -1]])])
@pytest.mark.parametrize("name", ["HyLinUCB", "HyIDS", "HyRan"])
def test_ids_that_the_mask_leaves_out_may_repeat(name: str, arms: Any) -> None:
    policy = MAKERS[name]()
    mask = np.array([[True, True, True], [True, False, False]])
    for _ in range(2):
        choices = policy.choose_batch(np.ones((2, 3, 4)), np.ones((2, 3, 3)), arms, mask=mask)
        assert choices.arms[1] in ("d", 4)
    assert len(policy.arms) == 4
    mask[1, 1:] = True
    with pytest.raises(ValueError, match="more than once"):
        policy.choose_batch(np.ones((2, 3, 4)), np.ones((2, 3, 3)), arms, mask=mask)


def test_none_at_all() -> None:
    choices = HyLinUCB(d1=1, d2=0).choose_batch(np.ones((0, 3, 1)), arms=["a", "b", "c"])
    assert choices.arms == []
    assert len(choices.indices) == 0


@pytest.mark.parametrize("name", ["HyLinUCB", "HyIDS", "HyRan"])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"x": np.ones((2, 3))}, "x must have 3 dimension.*for one decision use"),
        ({"x": np.full((2, 3, 4), np.nan)}, "must be finite"),
        ({"z": np.ones((2, 2, 3))}, "z for 2 with 2"),
        ({"arms": ["a", "b"]}, "2 ids"),
        ({"arms": ["a", "b", "a"]}, "more than once"),
        ({"arms": [["a", "b", "c"]]}, "1 lists but there are 2 decisions"),
        ({"mask": np.ones((2, 2), bool)}, "mask must be a bool array"),
        ({"mask": np.array([[True, True, True], [False, False, False]])}, "no candidate in decision 1"),
        ({"threads": 0}, "threads must"),
        ({"arms": ["a", "b", 1.5]}, "arm id 1.5"),
        ({"arms": ["a", "b", ["c"]]}, "an id that is not hashable"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_used_is_refused_and_changes_nothing(name: str, changed: dict[str, Any], words: str) -> None:
    policy = MAKERS[name]()
    before = fingerprint(policy)
    good = {"x": np.ones((2, 3, 4)), "z": np.ones((2, 3, 3)), "arms": ["a", "b", "c"]}
    with pytest.raises((ValueError, TypeError), match=words):
        policy.choose_batch(**{**good, **changed})
    assert_array_equal(sorted(before), sorted(fingerprint(policy)))
    assert fingerprint(policy) == before


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "policy",
    [
        HyIDS(d1=4, d2=3, seed=1), HyIDS(d1=4, d2=3, memory="auto", seed=1), HyIDS(d1=4, d2=3, noise=0.5, scale=1.0),
        HyThompson(d1=4, d2=3, seed=1), HyLinUCB(d1=4, d2=3), EpsilonGreedy(Greedy(d1=4, d2=3), epsilon=0.2, seed=1),
    ],
    ids=["HyIDS", "auto", "told", "HyThompson", "HyLinUCB", "EpsilonGreedy"],
)  # fmt: skip
def test_randomized_batches_draw_what_single_choices_draw(policy: Policy, threads: int) -> None:
    page = Page(4, 3)
    keys = [f"event {b}" for b in range(7)]
    for _ in range(3):
        features = [page.features(5) for _ in keys]
        x, z = np.stack([each[0] for each in features]), np.stack([each[1] for each in features])
        before = policy.to_bytes()
        drawn = policy.randomize_batch(x, z, IDS, keys=keys, floor=0.1, threads=threads)
        assert policy.to_bytes() == before
        for b, key in enumerate(keys):
            choice = policy.choose(x[b], z[b], IDS, key=key, randomize=True, floor=0.1)
            assert drawn.indices[b] == choice.index
            assert drawn.probabilities[b, choice.index] == choice.propensity
            assert_array_equal(drawn.propensities[b], policy.propensities(x[b], z[b], IDS, key=key))
            assert_allclose(drawn.probabilities[b], 0.9 * drawn.propensities[b] + 0.02, rtol=1e-12)
        for t in range(15):
            row = page.features(1)
            policy.learn(IDS[t % 5], row[0][0], row[1][0], page.reward(t % 5, row[0][0], row[1][0]))


class Last(HyIDS):
    """A rule of one's own on top of another one, which is certain."""

    def _pick(self, candidates: Any, stream: Any) -> Any:
        return len(candidates.arms) - 1, 0.0, 1.0, 1.0


class Often(Last):
    """One that draws and does not say how likely its choices are."""

    def _pick(self, candidates: Any, stream: Any) -> Any:
        return int(stream.uniforms(1)[0] < 0.75), 0.0, 1.0, None


class Even(Last):
    """One that does."""

    def _propensities(self, candidates: Any, stream: Any) -> Any:
        return np.full(len(candidates.arms), 1 / len(candidates.arms))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "wanted"), [(Last, [0, 0, 1]), (Often, [0.25, 0.75, 0]), (Even, [1 / 3] * 3)])
def test_propensities_of_a_rule_of_ones_own_replace_those_of_the_rule_before(kind: Any, wanted: list[float]) -> None:
    """Estimates by 2,000 draws within 5 standard errors."""
    policy = kind(d1=1, d2=0, seed=0)
    x = np.ones((3, 1))
    assert_allclose(policy.propensities(x), wanted, atol=0.05)
    assert_array_equal(policy.propensities(x, key="a"), policy.propensities(x, key="a"))
    drawn = policy.randomize_batch(np.stack([x] * 3), keys=["a", "b", "c"], floor=0.3)
    assert_allclose(drawn.propensities, [wanted] * 3, atol=0.05)
    assert len({policy.choose(x, key=key, randomize=True, floor=0.3).index for key in range(60)}) == 3


def test_randomized_batches_that_cannot_be_drawn() -> None:
    policy = HyIDS(d1=1, d2=0, seed=0)
    x = np.ones((2, 3, 1))
    with pytest.raises(ValueError, match="1 keys for 2 decisions"):
        policy.randomize_batch(x, keys=["a"])
    with pytest.raises(TypeError, match="key must be"):
        policy.randomize_batch(x, keys=["a", None])
    x[1, 2] = np.nan
    with pytest.raises(ValueError, match="nan"):
        policy.randomize_batch(x, keys=["a", "b"])
    assert policy.randomize_batch(np.ones((0, 3, 1)), keys=[]).probabilities.shape == (0, 3)
    assert policy.arms == []
