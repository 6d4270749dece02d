"""The compiled loop over rounds, and the table of the policies that it plays.

The loop takes the decisions that `choose` and `learn` would take, to the bit, because it calls the same kernels. For
another policy, write a code, its branches in `pick` and `teach`, its caller, and a line in `COMPILED_LOOPS`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.arms import ArmTable
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.sums import unsound
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.addresses import array_at, table_of
from hybandits.kernels.arrow import ARM_SCORE, LIMIT, RIDGE, SHARED_SCORE, learn_by_table, within_limit
from hybandits.kernels.decisions import LEARNED as BY_LEARNED
from hybandits.kernels.decisions import Rule, decide, walk_level
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


BY_LEVELS, BY_SUMS = 16, 17
"""Codes of the rules of SupLinUCB and HyRan.

- SupLinUCB: the table has one row for each level, and the settings are alpha, 1/sqrt(T), and 1 if the first arm is
  explored instead of the widest.
- HyRan: the table has the ridges for choosing and for filling in from round `start` on, the sums, and work arrays for
  solving them, in the order of `_play_hyran`. The settings are p, start, and the columns of an arm's sums.
"""


@kernel
def pick_by_levels(rule, x, z, slots):  # type: ignore[no-untyped-def]
    """`pick` for SupLinUCB: `walk_level` down the levels. The level is -1 if its reward is not to be learned."""
    remaining = x.shape[0]
    left = np.arange(remaining)
    alpha, least, first = rule.settings
    for s in range(slots.shape[0]):
        row = rule.table[s]
        i, level, _, _, remaining = walk_level(
            s + 1, x, z, slots[s, : x.shape[0]], left, remaining, alpha, least, array_at(row, ARM_SCORE, np.float64),
            array_at(row, SHARED_SCORE, np.float64), array_at(row, RIDGE, np.float64)[0], first == 1.0,
        )  # fmt: skip
        if i >= 0:
            return i, level - 1
        if i < -1:
            break
    return REFUSED, REFUSED


@kernel(inline=True)
def sums_of(rule, d1, d2):  # type: ignore[no-untyped-def]
    """The arguments of `hyran.estimate` from the sums on."""
    row = rule.table[0]
    arms, width = array_at(row, 0, np.int64).shape[0], int(rule.settings[2])
    return (
        array_at(row, 3, np.float64).reshape((d1, d1 + 1)), array_at(row, 4, np.float64).reshape((arms, d2, width)),
        array_at(row, 5, np.float64).reshape((d1, d1 + 1)), array_at(row, 6, np.float64).reshape((arms, d2, width)),
        array_at(row, 7, np.float64), array_at(row, 8, np.float64).reshape((arms, d2)),
    )  # fmt: skip


@kernel
def pick_by_sums(rule, x, z, slots, rows):  # type: ignore[no-untyped-def]
    """`pick` for HyRan: `estimate` and `best_mean`."""
    if not (within_limit(x) and within_limit(z)):
        return REFUSED, 0
    ridges = array_at(rule.table[0], 1, np.float64)
    shared, own, shared_factor, factors, theta, beta = sums_of(rule, x.shape[1], z.shape[1])
    if not estimate(ridges[rows - int(rule.settings[1])], shared, own, shared_factor, factors, theta, beta):
        return UNSOUND, 0
    return best_mean(x, z, slots, theta, beta)[0], 0


@kernel
def teach_sums(rule, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """`teach` for HyRan: `learn_round`."""
    u = 1.0
    if x.shape[0] > 1:
        u = uniform(key, LEARN, rows)
    ridges = array_at(rule.table[0], 2, np.float64)
    shared, own, shared_factor, factors, theta, beta = sums_of(rule, x.shape[1], z.shape[1])
    if not learn_round(
        i, rule.settings[0], u, ridges[rows - int(rule.settings[1])], x, z, slots, reward, shared, own, shared_factor,
        factors, theta, beta,
    ):  # fmt: skip
        return UNSOUND
    array_at(rule.table[0], 0, np.int64)[slots[i]] += 1
    return LEARNED


@kernel
def pick(rule, x, z, slots, rows, key, decision):  # type: ignore[no-untyped-def]
    """Return the candidate that a rule chooses, and the level at which its reward is to be learned.

    slots has the candidates' slots at every level, and rows the number of rewards learned there. The candidate is
    REFUSED or UNSOUND if there is none.
    """
    if rule.code == BY_LEVELS:
        return pick_by_levels(rule, x, z, slots)
    if rule.code == BY_SUMS:
        return pick_by_sums(rule, x, z, slots[0], rows[0])
    code, table, settings = rule
    own = slots[0, : x.shape[0]]
    i, _, _, _ = decide(code, table, settings, x, z, own, rows[0], key, 0 * decision, decision)
    return i, 0


@kernel
def teach(rule, level, i, x, z, slots, reward, rows, key):  # type: ignore[no-untyped-def]
    """Learn the reward of candidate i, whose numbers are within bounds; return an outcome."""
    if rule.code == BY_SUMS:
        return teach_sums(rule, i, x, z, slots[0], reward, rows[0], key)
    if BY_LEARNED <= rule.code < BY_LEVELS:
        return learn_by_all(slots[0, i], x[i], z[i], reward, rule.table)
    learn_by_table(slots[level, i], x[i], z[i], reward, rule.table[level], rows[level])
    return LEARNED


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

    def rule() -> Rule:
        settings = policy.width_factor(levels[0].known), policy.least, policy.explore == "first"
        return Rule(BY_LEVELS, np.concatenate([level.addresses for level in levels]), np.array(settings, float))

    before = sum(level.rounds for level in levels)
    played, answered = _play(levels, rule, rounds, rewards, picks)
    policy.count_skipped(answered - (sum(level.rounds for level in levels) - before))
    _check_played(rounds, rewards, picks, played)


def _play_hyran(policy: HyRan, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    table = policy.table
    _admit(table, rounds)

    def rule() -> Rule:
        arrays = table.pulls, *policy.ridges(len(picks)), table.shared, table.own, *table.workspace()
        return Rule(BY_SUMS, table_of([arrays]), np.array([policy.p, table.rounds, table.block[1]]))

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
