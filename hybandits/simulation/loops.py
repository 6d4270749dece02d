"""Compiled loops over rounds, and the one table that says which policy is played by which.

Each loop takes the decisions that `choose` and `learn` would take, to the bit, because it calls the same kernels on
blocks laid out the same way. To give a policy a loop of its own, write the kernel and its caller here and add a line to
`COMPILED_LOOPS`: simulation, replay and the evaluation of frozen policies all look it up there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.arms import ArmTable
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.memories import MemoryMixture
from hybandits.estimators.sums import unsound
from hybandits.foundation.checks import FloatArray
from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import LIMIT, learn_row, refresh_due, usable
from hybandits.kernels.decisions import (
    best_mean,
    choose_posterior,
    choose_tuned,
    choose_ucb,
    choose_uniform,
    walk_level,
)
from hybandits.kernels.empirical_bayes import Arrays, learn_row_tuned
from hybandits.kernels.features import lay_out, lay_side_by_side, room_for
from hybandits.kernels.gram import estimate, learn_round
from hybandits.kernels.memories import choose_mixed, go_on, learn_row_mixed
from hybandits.kernels.random import LEARN, uniform
from hybandits.policies.base import Policy
from hybandits.policies.hyran import HyRan
from hybandits.policies.information import HyIDS
from hybandits.policies.posterior import PosteriorPolicy
from hybandits.policies.randomised import Uniform
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.policies.thompson import HyThompson
from hybandits.policies.ucb import DisLinUCB, UCBPolicy
from hybandits.simulation.rounds import Rounds

Picks = NDArray[np.int64]
"""The place of the candidate played in each round."""


# ------------------------------------------------------------------ before and after a loop


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
    """Raise an error that says why, if a loop stopped before the last round."""
    if played == len(picks):
        return
    if usable(*rounds.features(played)):
        i = picks[played]
        raise ValueError(
            f"rewards[{played}, {i}] is {float(rewards[played, i])!r}: give a reward of at most {LIMIT:g} in absolute "
            "value, or NaN if there is none"
        )
    raise ValueError(
        f"the features of round {played} are not finite or exceed {LIMIT:g} in absolute value: clean or rescale them"
    )


@kernel
def look_up(candidates, count, slots, here):  # type: ignore[no-untyped-def]
    """here[i] = the slot of candidate i, for each of the `count` candidates of a round."""
    for i in range(count):
        here[i] = slots[candidates[i]]


@kernel
def take_slot(arm, slots, fresh, taken):  # type: ignore[no-untyped-def]
    """Give an arm without a slot the next fresh one; returns how many fresh slots are taken."""
    if slots[arm] < 0:
        slots[arm] = fresh[taken]
        taken += 1
    return taken


@kernel
def learn_played(  # type: ignore[no-untyped-def]
    slot, x, z, reward, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds
):  # fmt: skip
    """`learn_row`, and the refresh of the blocks when it is due."""
    if learn_row(slot, x, z, reward, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds):
        refresh_due(slot, x.shape[0], z.shape[0], arm_factor, arm_score, pulls, shared_factor, shared_score, rounds)


# ------------------------------------------------------------------ the loops


def _play_ucb(policy: UCBPolicy, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    disjoint = policy.reduction == "disjoint"
    estimator = policy.estimator
    _admit(estimator, rounds)
    slots, fresh = policy.meet(rounds.arms)
    played, learned = play_ucb(
        rounds.for_kernels, rewards, slots, fresh, estimator.arm_factor, estimator.arm_score, estimator.pulls,
        estimator.shared_factor, estimator.shared_score, estimator.ridge, policy.coefficients, disjoint,
        estimator.rounds, picks,
    )  # fmt: skip
    estimator.settle(rounds.arms, slots, fresh, learned)
    _check_played(rounds, rewards, picks, played)


@kernel
def play_ucb(  # type: ignore[no-untyped-def]
    shown, rewards, slots, fresh, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge,
    coefficients, by_arm, rounds, picks,
):  # fmt: skip
    """Rounds of choose (`choose_ucb`) and, unless the reward is NaN, learn (`learn_played`).

    by_arm: the disjoint reduction, in which no feature is shared and an arm's own are (x, z). Returns the number of
    rounds played, which is short of all only if a number is out of bounds, and the number of rewards learned.
    """
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n = counts.shape[0]
    _, most, d1 = x.shape
    d2 = z.shape[2]
    here = np.empty(most, np.int64)
    none = np.empty((most, 0))
    both = np.empty((most, d1 + d2))
    learned = 0
    taken = 0
    for t in range(n):
        count = counts[t]
        look_up(index[t], count, slots, here)
        if by_arm:
            lay_side_by_side(source, t, count, x, z, both)
            shared, own = none[:count], both[:count]
        else:
            row = lay_out(source, t, count, x, z)
            shared, own = x[row, :count], z[row, :count]
        i, _, _, _ = choose_ucb(
            shared, own, here[:count], arm_score, pulls, shared_score, ridge, coefficients,
            -1 if by_arm else rounds + learned,
        )  # fmt: skip
        if i < 0:
            return t, learned
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, learned
        taken = take_slot(index[t, i], slots, fresh, taken)
        learn_played(
            slots[index[t, i]], shared[i], own[i], reward, arm_factor, arm_score, pulls, shared_factor, shared_score,
            rounds + learned,
        )  # fmt: skip
        learned += 1
    return n, learned


def _play_uniform(policy: Uniform, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    estimator = policy.estimator
    _admit(estimator, rounds)
    slots, fresh = policy.meet(rounds.arms)
    key, first = policy.decision_numbers(len(picks))
    played, learned = play_uniform(
        rounds.for_kernels, rewards, slots, fresh, estimator.arm_factor, estimator.arm_score, estimator.pulls,
        estimator.shared_factor, estimator.shared_score, key, first, estimator.rounds, picks,
    )  # fmt: skip
    estimator.settle(rounds.arms, slots, fresh, learned)
    policy.decision_numbers(played - len(picks))
    _check_played(rounds, rewards, picks, played)


@kernel
def play_uniform(  # type: ignore[no-untyped-def]
    shown, rewards, slots, fresh, arm_factor, arm_score, pulls, shared_factor, shared_score, key, first, rounds, picks
):  # fmt: skip
    """`play_ucb` with the choice by `choose_uniform`; round t takes decision number first + t."""
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n = counts.shape[0]
    unkeyed = 0 * n
    learned = 0
    taken = 0
    for t in range(n):
        count = counts[t]
        row = lay_out(source, t, count, x, z)
        i = choose_uniform(x[row, :count], z[row, :count], key, unkeyed, first + t)
        if i < 0:
            return t, learned
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, learned
        taken = take_slot(index[t, i], slots, fresh, taken)
        learn_played(
            slots[index[t, i]], x[row, i], z[row, i], reward, arm_factor, arm_score, pulls, shared_factor, shared_score,
            rounds + learned,
        )  # fmt: skip
        learned += 1
    return n, learned


def _play_posterior(policy: PosteriorPolicy, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    estimator = policy.estimator
    _admit(estimator, rounds)
    slots, fresh = policy.meet(rounds.arms)
    key, first = policy.decision_numbers(len(picks))
    shown = rounds.for_kernels
    if isinstance(estimator, LearnedRidge | MemoryMixture):
        models: tuple[Arrays, ...]
        if isinstance(estimator, MemoryMixture):
            models, weights = estimator.arrays, estimator.weights
        else:
            models, weights = (estimator.arrays,), np.empty(0)
        played = learned = taken = 0
        outcome = 2
        while outcome > 1:
            played, learned, taken, outcome = play_tuned(
                policy.rule, shown, rewards, slots, fresh, key, first, models, weights, played, learned, taken, picks
            )
            if outcome > 1:
                go_on(outcome, estimator.d1, estimator.d2, models, weights, estimator.held)
    else:
        played, learned = play_posterior(
            policy.rule, shown, rewards, slots, fresh, estimator.arm_factor, estimator.arm_score, estimator.pulls,
            estimator.shared_factor, estimator.shared_score, estimator.ridge, policy.noise, key, first,
            estimator.rounds, picks,
        )  # fmt: skip
    estimator.settle(rounds.arms, slots, fresh, learned)
    policy.decision_numbers(played - len(picks))
    _check_played(rounds, rewards, picks, played)


@kernel
def play_posterior(  # type: ignore[no-untyped-def]
    rule, shown, rewards, slots, fresh, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge,
    noise, key, first, rounds, picks,
):  # fmt: skip
    """`play_ucb` with the choice by `choose_posterior`; round t takes decision number first + t."""
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n = counts.shape[0]
    here = np.empty(index.shape[1], np.int64)
    nothing = np.empty(0)
    unkeyed = 0 * n
    learned = 0
    taken = 0
    for t in range(n):
        count = counts[t]
        look_up(index[t], count, slots, here)
        row = lay_out(source, t, count, x, z)
        i, _, _, _ = choose_posterior(
            rule, x[row, :count], z[row, :count], here[:count], arm_score, shared_score, ridge, noise, nothing, key,
            unkeyed, first + t,
        )  # fmt: skip
        if i < 0:
            return t, learned
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, learned
        taken = take_slot(index[t, i], slots, fresh, taken)
        learn_played(
            slots[index[t, i]], x[row, i], z[row, i], reward, arm_factor, arm_score, pulls, shared_factor, shared_score,
            rounds + learned,
        )  # fmt: skip
        learned += 1
    return n, learned


@kernel
def play_tuned(  # type: ignore[no-untyped-def]
    rule, shown, rewards, slots, fresh, key, first, models, weights, begin, learned, taken, picks
):  # fmt: skip
    """`play_posterior` at settings that are learned on the way: `choose_tuned` and `learn_row_tuned`.

    With several models the one that decides is drawn (`choose_mixed`), and all learn (`learn_row_mixed`). Plays from
    round `begin` on, with so many rewards learned and fresh slots taken before. Returns the number of rounds played, of
    rewards learned and of slots taken, and what `learn_row_mixed` returned if that has stopped it, otherwise 1.
    """
    only = models[0]
    alone = len(models) == 1  # handing all models on takes a quarter of a microsecond
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n = counts.shape[0]
    here = np.empty(index.shape[1], np.int64)
    unkeyed = 0 * n
    for t in range(begin, n):
        count = counts[t]
        look_up(index[t], count, slots, here)
        row = lay_out(source, t, count, x, z)
        xs, zs, its = x[row, :count], z[row, :count], here[:count]
        if alone:
            i, _, _, _ = choose_tuned(
                rule, xs, zs, its, only.arm_score, only.shared_score, only.numbers, only.unknown, only.state, key,
                unkeyed, first + t,
            )  # fmt: skip
        else:
            i, _, _, _ = choose_mixed(rule, xs, zs, its, models, weights, key, unkeyed, first + t)
        if i < 0:
            return t, learned, taken, 1
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, learned, taken, 1
        taken = take_slot(index[t, i], slots, fresh, taken)
        if alone:
            outcome = learn_row_tuned(slots[index[t, i]], xs[i], zs[i], reward, only)
        else:
            outcome = learn_row_mixed(slots[index[t, i]], xs[i], zs[i], reward, models, weights)
        learned += 1
        if outcome > 1:
            return t + 1, learned, taken, outcome
    return n, learned, taken, 1


def _play_sup(policy: SupLinUCB, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    levels = policy.levels
    _admit(levels[0], rounds)
    aside = [level.set_aside(rounds.arms) for level in levels]
    slots, fresh = _stack([slots for slots, _ in aside]), _stack([fresh for _, fresh in aside])
    parts = ("arm_factor", "arm_score", "pulls", "shared_factor", "shared_score")
    stacked = [_stack([getattr(level, name) for level in levels]) for name in parts]
    rows = np.array([level.rounds for level in levels])
    played, answered = play_sup(
        rounds.for_kernels, rewards, slots, fresh, *stacked, policy.ridge, policy.width_factor(levels[0].known),
        policy.least, rows, picks,
    )  # fmt: skip
    learned = 0
    for s, level in enumerate(levels):
        for name, arrays in zip(parts, stacked, strict=True):
            own = getattr(level, name)
            own[:] = arrays[s, : len(own)]
        new = int(rows[s]) - level.rounds
        level.settle(rounds.arms, slots[s], aside[s][1], new)
        learned += new
    policy.count_skipped(answered - learned)
    _check_played(rounds, rewards, picks, played)


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays of different lengths as the rows of one array, padded with 0."""
    stacked = np.zeros((len(arrays), max(map(len, arrays))), arrays[0].dtype)
    for row, array in zip(stacked, arrays, strict=True):
        row[: len(array)] = array
    return stacked


@kernel
def play_sup(  # type: ignore[no-untyped-def]
    shown, rewards, slots, fresh, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge, alpha,
    least, rows, picks,
):  # fmt: skip
    """Rounds of SupLinUCB: `walk_level` down the levels, then `learn_played` at the level where the walk ends, if any.

    Level s + 1 is row s of slots, fresh, the blocks, and rows (how many rewards it has learned). Returns the number of
    rounds played and the number of those that had a reward, learned or not.
    """
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n, most = index.shape
    here = np.empty(most, np.int64)
    left = np.empty(most, np.int64)
    taken = np.zeros(slots.shape[0], np.int64)
    answered = 0
    for t in range(n):
        count = counts[t]
        for i in range(count):
            left[i] = i
        row = lay_out(source, t, count, x, z)
        i, level, remaining = -1, 0, count
        for s in range(slots.shape[0]):
            look_up(index[t], count, slots[s], here)
            i, level, _, _, remaining = walk_level(
                s + 1, x[row, :count], z[row, :count], here, left, remaining, alpha, least, arm_score[s],
                shared_score[s], ridge,
            )  # fmt: skip
            if i != -1:
                break
        if i < 0:
            return t, answered
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, answered
        answered += 1
        if level > 0:
            s = level - 1
            arm = index[t, i]
            taken[s] = take_slot(arm, slots[s], fresh[s], taken[s])
            learn_played(
                slots[s, arm], x[row, i], z[row, i], reward, arm_factor[s], arm_score[s], pulls[s], shared_factor[s],
                shared_score[s], rows[s],
            )  # fmt: skip
            rows[s] += 1
    return n, answered


def _play_hyran(policy: HyRan, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    table = policy.table
    _admit(table, rounds)
    slots, fresh = table.set_aside(rounds.arms)
    choice, check = policy.ridges(len(picks))
    played, learned, sound = play_hyran(
        rounds.for_kernels, rewards, slots, fresh, policy.p, policy.key, table.rounds, choice, check, table.cross,
        table.groups, table.pulls, table.shared, table.own, *table.workspace(), picks,
    )  # fmt: skip
    table.settle(rounds.arms, slots, fresh, learned)
    if not sound:
        raise unsound()
    _check_played(rounds, rewards, picks, played)


@kernel
def play_hyran(  # type: ignore[no-untyped-def]
    shown, rewards, slots, fresh, p, key, rounds, choice_ridge, check_ridge, cross, groups, pulls, shared, own,
    factor, shared_factor, theta, beta, picks,
):  # fmt: skip
    """Rounds of HyRan: `estimate` and `best_mean`, then, unless the reward is NaN, `learn_round`.

    There is one ridge per reward learned. Returns the number of rounds played and of rewards learned, and whether the
    sums are still sound.
    """
    source, x, z, index, counts = shown
    x, z = room_for(source, x, z)
    n = counts.shape[0]
    _, most, d1 = x.shape
    d2 = z.shape[2]
    here = np.empty(most, np.int64)
    learned = 0
    taken = 0
    for t in range(n):
        count = counts[t]
        row = lay_out(source, t, count, x, z)
        xs, zs = x[row, :count], z[row, :count]
        if not usable(xs, zs):
            return t, learned, True
        if not estimate(groups, choice_ridge[learned], cross, d1, d2, shared, own, factor, shared_factor, theta, beta):
            return t, learned, False
        look_up(index[t], count, slots, here)
        i, _ = best_mean(xs, zs, here, theta, beta)
        picks[t] = i
        reward = rewards[t, i]
        if math.isnan(reward):
            continue
        if abs(reward) > LIMIT:
            return t, learned, True
        for a in range(count):
            taken = take_slot(index[t, a], slots, fresh, taken)
        look_up(index[t], count, slots, here)
        u = 1.0
        if count > 1:
            u = uniform(key, LEARN, rounds + learned)
        if not learn_round(
            i, p, u, check_ridge[learned], xs, zs, here, reward, cross, groups, shared, own, factor, shared_factor,
            theta, beta,
        ):  # fmt: skip
            return t, learned, False
        pulls[here[i]] += 1
        learned += 1
    return n, learned, True


# ------------------------------------------------------------------ which policy has which loop


class CompiledLoop(NamedTuple):
    """The loop that plays all policies of one kind."""

    kind: type[Policy]
    """The class that the loop is for; its subclasses share it as long as they keep the methods that it stands for."""

    play: Callable[..., None]
    """play(policy, rounds, rewards, picks): see `hybandits.simulation.play.play_rounds`."""

    samples: bool = False
    """Whether a choice draws random numbers, so that its probabilities are known only as shares of many draws."""


COMPILED_LOOPS: tuple[CompiledLoop, ...] = (
    CompiledLoop(UCBPolicy, _play_ucb),
    CompiledLoop(DisLinUCB, _play_ucb),
    CompiledLoop(HyThompson, _play_posterior, samples=True),
    CompiledLoop(HyIDS, _play_posterior, samples=True),
    CompiledLoop(Uniform, _play_uniform, samples=True),
    CompiledLoop(SupLinUCB, _play_sup),
    CompiledLoop(HyRan, _play_hyran),
)
"""Every policy with a compiled loop: the one place to register a new one."""


def compiled_loop(policy: Policy, *, standing_for: Sequence[str] = ("choose", "learn", "_pick")) -> CompiledLoop | None:
    """The loop that can stand for these methods of a policy; None if it has no loop or overrides one of them."""
    for loop in COMPILED_LOOPS:
        if keeps_methods(policy, loop.kind, standing_for):
            return loop
    return None


def keeps_methods(policy: Policy, kind: type[Policy], methods: Sequence[str]) -> bool:
    """Whether the policy is of this kind and its class overrides none of these methods, as a user's subclass may."""
    return isinstance(policy, kind) and all(
        getattr(type(policy), name, None) is getattr(kind, name, None) for name in methods
    )
