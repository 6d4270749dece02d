"""What a log says about a policy: sums of parts, ratios and diagnostics."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits import Greedy
from hybandits.evaluation.parts import BlockLayout, BlockSums, Survey
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.support import LogSupport, diagnose
from hybandits.evaluation.targets import Learning, Logged, Target, UniformChoice
from hybandits.evaluation.terms import CLIPPED, COLUMNS, COUNTS, KR, LARGEST, SQUARES, WW, D, K, N, P, W, X, Y

LAYOUT = BlockLayout(first=0, rounds=40, size=10, deal=5, folds=2)
ARMS = 3


def block_sums(seed: int, block: int, blocks: int) -> BlockSums:
    random = np.random.default_rng(seed)
    return BlockSums(
        block, random.random((blocks, 2, COLUMNS)), random.random(ARMS), random.integers(0, 9, ARMS),
        random.random(COUNTS), np.zeros(0, np.int64), np.zeros((2, 0, 1)),
    )  # fmt: skip


def support(target: Target | Learning | None = None, rejection: Rejection = Rejection()) -> LogSupport:  # noqa: B008
    policy = LogSupport.empty("policy", target or UniformChoice(), LAYOUT, ARMS)
    policy.rejection = rejection
    policy.add(block_sums(0, 0, 3))
    policy.add(block_sums(1, 2, 2))
    return policy


def test_parts_add_up_where_they_belong() -> None:
    policy, one, other = support(), block_sums(0, 0, 3), block_sums(1, 2, 2)
    np.testing.assert_allclose(policy.sums[2], one.sums[2] + other.sums[0])
    np.testing.assert_allclose(policy.sums[3], other.sums[1])
    np.testing.assert_allclose(policy.mass, one.mass + other.mass)
    np.testing.assert_array_equal(policy.eligible, one.eligible + other.eligible)
    assert policy.tally[LARGEST] == max(one.tally[LARGEST], other.tally[LARGEST])
    assert policy.tally[CLIPPED] == pytest.approx(one.tally[CLIPPED] + other.tally[CLIPPED])
    assert policy.total(W) == pytest.approx(policy.blocks(W).sum())


def test_ratios_by_estimator() -> None:
    policy = support()
    for name, upper, lower in (("ips", X, N), ("snips", X, W), ("dr", Y, N), ("replay", KR, K), ("dm", D, N)):
        a, b = policy.ratio(name)
        np.testing.assert_allclose(a, policy.blocks(upper))
        np.testing.assert_allclose(b, policy.blocks(lower))


def test_the_influence_of_the_fit_moves_blocks_but_not_dm() -> None:
    policy = support()
    before, n = policy.ratio("dm")
    policy.influence[:] = [1.0, -2.0, 5.0, 0.5]
    after, _ = policy.ratio("dm")
    assert after.sum() == pytest.approx(before.sum())
    np.testing.assert_allclose(after - before, policy.influence - n * policy.influence.sum() / n.sum())


def test_effective_rounds() -> None:
    policy = support()
    assert policy.effective_rounds == pytest.approx(policy.total(W) ** 2 / policy.total(WW))
    assert LogSupport.empty("policy", UniformChoice(), LAYOUT, ARMS).effective_rounds == 0.0


def test_diagnostics_of_weights_only_where_there_are_any() -> None:
    survey = Survey(np.zeros(ARMS, np.int64), rounds=40, smallest=0.1)
    policy = support()
    diagnostics = diagnose(policy, survey, LAYOUT, weighted=True)
    assert (diagnostics.kept, diagnostics.keep) == (None, None)
    assert diagnostics.matched == policy.total(P) / 40
    assert diagnostics.mean_weight == policy.total(W) / 40
    assert diagnostics.smallest_propensity == 0.1
    assert diagnose(policy, survey, LAYOUT, weighted=False).mean_weight is None
    survey.missing = 1
    assert diagnose(policy, survey, LAYOUT, weighted=True).mean_weight is None
    logged = diagnose(support(Logged(), Rejection(0.1)), survey, LAYOUT, weighted=True)
    assert logged.mean_weight is not None
    assert logged.smallest_propensity is None
    assert logged.kept is None


def test_diagnostics_say_how_many_rounds_are_kept() -> None:
    survey = Survey(np.zeros(ARMS, np.int64))
    policy = support(Learning(Greedy(d1=1, d2=1)), Rejection(0.1))
    diagnostics = diagnose(policy, survey, LAYOUT, weighted=False)
    assert (diagnostics.kept, diagnostics.keep) == (policy.total(K), 0.1)
    worth = policy.total(K) ** 2 / policy.tally[SQUARES]
    assert diagnostics.effective == policy.replayed_rounds == pytest.approx(worth)
    assert diagnose(policy, survey, LAYOUT, weighted=True).effective == policy.effective_rounds
    fixed = diagnose(support(None, Rejection(0.1)), survey, LAYOUT, weighted=False)
    assert (fixed.kept, fixed.keep, fixed.effective) == (None, 0.1, pytest.approx(worth)), "nothing is drawn"


def test_kinds_of_policies() -> None:
    assert support(Logged()).logged
    learning = support(Learning(Greedy(d1=1, d2=1)))
    assert learning.learns
    assert not learning.logged
