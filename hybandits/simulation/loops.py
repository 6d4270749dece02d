"""The compiled loop over rounds, and the table of the policies that it plays.

The loop takes the decisions that `choose` and `learn` would take, to the bit, because it calls the same kernels. For
another policy, write a named tuple of what the rule needs, its kernels for `pick` and `teach`, its caller, and a line
in `COMPILED_LOOPS`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.arms import ArmTable, Slots
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.sums import unsound
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import by_kind, kernel
from hybandits.kernels.arrow import LIMIT, learn_row, within_limit
from hybandits.kernels.decisions import LearnedRule, RidgeRule, decide, nothing, walk_level
from hybandits.kernels.features import buffers_for, lay_out
from hybandits.kernels.hyran import best_mean, estimate, learn_round
from hybandits.kernels.memories import learn_by_all
from hybandits.kernels.random import LEARN, uniform
from hybandits.policies.base import Policy
from hybandits.policies.hyran import HyRan
from hybandits.policies.posterior import HyIDS, HyThompson, PosteriorPolicy
from hybandits.policies.randomised import Uniform
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.policies.ucb import DisLinUCB, UCBPolicy
from hybandits.simulation.rounds import Rounds

Picks = NDArray[np.int64]
"""The position of the candidate played in each round."""

REFUSED, UNSOUND, LEARNED = -1, -2, 1
"""Outcomes: numbers are out of bounds; HyRan's sums are no longer definite; all is well. Larger ones: see
`learn_by_all`."""


class SupRule(NamedTuple):
    """SupLinUCB: the blocks of every level, stacked."""

    arm_factor: Any
    arm_score: Any
    pulls: Any
    shared_factor: Any
    shared_score: Any
    ridge: float
    alpha: float
    least: float
    first: bool


class HyRanRule(NamedTuple):
    """HyRan: the ridges for the rounds from `start` on, the sums, and work arrays for solving them."""

    p: float
    start: int
    choice_ridge: FloatArray
    check_ridge: FloatArray
    pulls: Slots
    shared: FloatArray
    own: FloatArray
    shared_factor: FloatArray
    factors: FloatArray
    theta: FloatArray
    beta: FloatArray


@kernel
def pick_by_estimator(rule, x, z, slots, rows, key, decision):  # type: ignore[no-untyped-def]
    """`pick` for a `RidgeRule` or a `LearnedRule`."""
    i, _, _, _ = decide(rule, x, z, slots[0, : x.shape[0]], rows[0], key, 0 * decision, decision, nothing(x))
    return i, 0


@kernel
def teach_ridge(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """`teach` for a `RidgeRule`."""
    blocks = rule.arm_factor, rule.arm_score, rule.pulls, rule.shared_factor, rule.shared_score
    learn_row(slots[0, i], x[i], z[i], reward, *blocks, rows[0])
    return LEARNED


@kernel
def teach_learned(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """`teach` for a `LearnedRule`."""
    return learn_by_all(slots[0, i], x[i], z[i], reward, rule.models, rule.weights)


@kernel
def pick_by_sup(rule, x, z, slots, rows, key, decision):  # type: ignore[no-untyped-def]
    """`pick` for a `SupRule`: `walk_level` down the levels. The level is -1 if its reward is not to be learned."""
    remaining = x.shape[0]
    left = np.arange(remaining)
    for s in range(slots.shape[0]):
        i, level, _, _, remaining = walk_level(
            s + 1, x, z, slots[s, : x.shape[0]], left, remaining, rule.alpha, rule.least, rule.arm_score[s],
            rule.shared_score[s], rule.ridge, rule.first,
        )  # fmt: skip
        if i >= 0:
            return i, level - 1
        if i < -1:
            break
    return REFUSED, REFUSED


@kernel
def teach_sup(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """`teach` for a `SupRule`, at the level where the walk has ended."""
    blocks = (
        rule.arm_factor[level], rule.arm_score[level], rule.pulls[level], rule.shared_factor[level],
        rule.shared_score[level],
    )  # fmt: skip
    learn_row(slots[level, i], x[i], z[i], reward, *blocks, rows[level])
    return LEARNED


@kernel
def pick_by_hyran(rule, x, z, slots, rows, key, decision):  # type: ignore[no-untyped-def]
    """`pick` for a `HyRanRule`: `estimate` and `best_mean`."""
    if not (within_limit(x) and within_limit(z)):
        return REFUSED, 0
    ridge = rule.choice_ridge[rows[0] - rule.start]
    if not estimate(ridge, rule.shared, rule.own, rule.shared_factor, rule.factors, rule.theta, rule.beta):
        return UNSOUND, 0
    return best_mean(x, z, slots[0], rule.theta, rule.beta)[0], 0


@kernel
def teach_hyran(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """`teach` for a `HyRanRule`: `learn_round`."""
    u = 1.0
    if x.shape[0] > 1:
        u = uniform(key, LEARN, rows[0])
    if not learn_round(
        i, rule.p, u, rule.check_ridge[rows[0] - rule.start], x, z, slots[0], reward, rule.shared, rule.own,
        rule.shared_factor, rule.factors, rule.theta, rule.beta,
    ):  # fmt: skip
        return UNSOUND
    rule.pulls[slots[0, i]] += 1
    return LEARNED


@by_kind({RidgeRule: pick_by_estimator, LearnedRule: pick_by_estimator, SupRule: pick_by_sup, HyRanRule: pick_by_hyran})
def pick(rule, x, z, slots, rows, key, decision):  # type: ignore[no-untyped-def]
    """Return the candidate that a rule chooses, and the level at which its reward is to be learned.

    slots has the candidates' slots at every level, and rows the number of rewards learned there. The candidate is
    REFUSED or UNSOUND if there is none.
    """


@by_kind({RidgeRule: teach_ridge, LearnedRule: teach_learned, SupRule: teach_sup, HyRanRule: teach_hyran})
def teach(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """Learn the reward of candidate i, whose numbers are within bounds; return an outcome."""


@kernel
def play(  # type: ignore[no-untyped-def]
    rule, disjoint, pools, shown, rewards, slots, fresh, taken, rows, key, first, begin, picks
):  # fmt: skip
    """Rounds of `pick` and, unless the reward is NaN, `teach`, from round `begin` on.

    disjoint: no feature is shared, and an arm's own are (x, z). pools: every candidate gets a slot when a reward is
    learned, not only the one played. slots, fresh, taken, rows: for every level the slots of all arms, fresh slots for
    those that have none, how many of them are taken, and how many rewards are learned. Round t takes decision number
    first + t. Returns the number of rounds played, how many of them since `begin` had a reward, and the outcome.
    """
    source, x, z, index, counts = shown
    x, z = buffers_for(source, x, z)
    n, most = index.shape
    _, _, d1 = x.shape
    here = np.empty((slots.shape[0], most), np.int64)
    none = np.empty((most, 0))
    both = np.empty((most, d1 + z.shape[2]))
    answered = 0
    for t in range(begin, n):
        count = counts[t]
        for s in range(slots.shape[0]):
            for a in range(count):
                here[s, a] = slots[s, index[t, a]]
        row = lay_out(source, t, count, x, z)
        xs, zs = x[row, :count], z[row, :count]
        if disjoint:
            both[:count, :d1], both[:count, d1:] = xs, zs
            xs, zs = none[:count], both[:count]
        i, level = pick(rule, xs, zs, here, rows, key, first + t)
        if i < 0:
            return t, answered, i
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, answered, REFUSED
        if level >= 0:
            for a in range(count):
                arm = index[t, a]
                if pools or a == i:
                    if slots[level, arm] < 0:
                        slots[level, arm] = fresh[level, taken[level]]
                        taken[level] += 1
                    here[level, a] = slots[level, arm]
            outcome = teach(rule, level, i, xs, zs, here, reward, rows, key)
            if outcome < 0:
                return t, answered, outcome
            rows[level] += 1
            if outcome > LEARNED:
                return t + 1, answered + 1, outcome
        answered += 1
    return n, answered, LEARNED


def _play(
    tables: Sequence[ArmTable], make_rule: Callable[[], Any], rounds: Rounds, rewards: FloatArray, picks: Picks,
    numbers: tuple[int, int] = (0, 0), *, disjoint: bool = False, pools: bool = False,
) -> tuple[int, int]:  # fmt: skip
    """Play rounds; return how many were played before a number was out of bounds, and how many of them had a reward.

    make_rule is called when the tables have slots for all arms. numbers: the key, and the number of the first decision.
    """
    aside = [table.set_aside(rounds.arms) for table in tables]
    slots, fresh = _stack([slots for slots, _ in aside]), _stack([fresh for _, fresh in aside])
    rows, taken = np.array([table.rounds for table in tables]), np.zeros(len(tables), np.int64)
    rule, played, answered, outcome = make_rule(), 0, 0, LEARNED + 1
    while outcome > LEARNED:
        played, more, outcome = play(
            rule, disjoint, pools, rounds.for_kernels, rewards, slots, fresh, taken, rows, *numbers, played, picks
        )
        answered += more
        if outcome > LEARNED:
            assert isinstance(tables[0], LearnedRidge)
            tables[0].continue_refreshes(outcome)
    for s, table in enumerate(tables):
        table.settle(rounds.arms, slots[s], aside[s][1], int(rows[s]) - table.rounds)
    if outcome == UNSOUND:
        raise unsound()
    return played, answered


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays of different lengths as the rows of one array, padded with 0."""
    stacked = np.zeros((len(arrays), max(map(len, arrays))), arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked


def _admit(table: ArmTable, rounds: Rounds) -> None:
    """Admit the arms that enter with these rounds, in the order in which `choose` would have met them."""
    entering = [rounds.arms[j] for j in rounds.index[0, : rounds.counts[0]].tolist()]
    new = table.unmet(entering)
    late = table.unmet(rounds.arms) - new
    if late:
        raise ValueError(
            f"{late} arm(s) that the policy has not met are not candidates in the first round: "
            "start a new block of rounds where an arm enters"
        )
    if new:
        table.check_new(entering)
        table.admit(entering)


def _check_played(rounds: Rounds, rewards: FloatArray, picks: Picks, played: int) -> None:
    """Raise an error that gives the reason, if a loop stopped before the last round."""
    if played == len(picks):
        return
    x, z = rounds.features(played)
    if within_limit(x) and within_limit(z):
        i = picks[played]
        raise ValueError(
            f"rewards[{played}, {i}] is {float(rewards[played, i])!r}: give a reward of at most {LIMIT:g} in absolute "
            "value, or NaN if there is none"
        )
    raise ValueError(
        f"the features of round {played} are not finite or exceed {LIMIT:g} in absolute value: clean or rescale them"
    )


def _play_estimator(
    policy: UCBPolicy | Uniform | PosteriorPolicy, rounds: Rounds, rewards: FloatArray, picks: Picks
) -> None:
    _admit(policy.estimator, rounds)
    policy.admit(rounds.arms)
    numbers = policy.decision_numbers(len(picks))
    disjoint = isinstance(policy, UCBPolicy) and policy.reduction == "disjoint"
    played, _ = _play([policy.estimator], policy.kernel_rule, rounds, rewards, picks, numbers, disjoint=disjoint)
    policy.decision_numbers(played - len(picks))
    _check_played(rounds, rewards, picks, played)


def _play_sup(policy: SupLinUCB, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    levels = policy.levels
    _admit(levels[0], rounds)
    parts = SupRule._fields[:5]
    stacked: dict[str, Any] = {}

    def rule() -> SupRule:
        stacked.update({name: _stack([getattr(level, name) for level in levels]) for name in parts})
        alpha = policy.width_factor(levels[0].known)
        first = policy.explore == "first"
        return SupRule(**stacked, ridge=policy.ridge, alpha=alpha, least=policy.least, first=first)

    before = sum(level.rounds for level in levels)
    played, answered = _play(levels, rule, rounds, rewards, picks)
    for s, level in enumerate(levels):
        for name, arrays in stacked.items():
            own = getattr(level, name)
            own[:] = arrays[s, : len(own)]
    policy.count_skipped(answered - (sum(level.rounds for level in levels) - before))
    _check_played(rounds, rewards, picks, played)


def _play_hyran(policy: HyRan, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    table = policy.table
    _admit(table, rounds)

    def rule() -> HyRanRule:
        ridges = policy.ridges(len(picks))
        return HyRanRule(policy.p, table.rounds, *ridges, table.pulls, table.shared, table.own, *table.workspace())

    played, _ = _play([table], rule, rounds, rewards, picks, (policy.key, 0), pools=True)
    _check_played(rounds, rewards, picks, played)


COMPILED_LOOPS: dict[type[Policy], Callable[..., None]] = {
    UCBPolicy: _play_estimator,
    DisLinUCB: _play_estimator,
    HyThompson: _play_estimator,
    HyIDS: _play_estimator,
    Uniform: _play_estimator,
    SupLinUCB: _play_sup,
    HyRan: _play_hyran,
}
"""play(policy, rounds, rewards, picks) for each kind of policy with a compiled loop (see `play_rounds`)."""


def compiled_loop(
    policy: Policy, *, standing_for: Sequence[str] = ("choose", "learn", "_pick")
) -> Callable[..., None] | None:
    """Return the loop that can stand for these methods of a policy; None if it has no loop or overrides one of them."""
    loops = (loop for kind, loop in COMPILED_LOOPS.items() if keeps_methods(policy, kind, standing_for))
    return next(loops, None)


def keeps_methods(policy: Policy, kind: type[Policy], methods: Sequence[str]) -> bool:
    """Return whether the policy is of this kind and its class overrides none of these methods, as a subclass may."""
    return isinstance(policy, kind) and all(
        getattr(type(policy), name, None) is getattr(kind, name, None) for name in methods
    )
