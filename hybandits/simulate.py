"""The round loop: policies in a world, and the regret they run up.

The loops are compiled from context to regret and call the kernels that `choose` and `learn` call, so the decisions are
the same to the bit. A policy without a loop of its own is played through the contract. Contexts come in blocks, and all
policies and trials play one block before the next is drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybandits.arrow import choose_thompson, choose_ucb, learn_row, refresh_due, walk_level
from hybandits.checks import Doubles
from hybandits.compiling import kernel
from hybandits.environments import Block, Synthetic
from hybandits.estimator import HybridRidge
from hybandits.gram import best_mean, estimate, learn_round
from hybandits.policies.base import Policy
from hybandits.policies.hyran import HyRan, unsound
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.policies.thompson import HyThompson
from hybandits.policies.ucb import UCBPolicy


class Player(NamedTuple):
    """A policy and the trial whose noise it meets."""

    policy: Policy
    trial: int = 0


def cumulative_regret(
    policy: Policy,
    world: Synthetic,
    horizon: int,
    *,
    trial: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Doubles:
    """Play `horizon` rounds; entry t is the regret (in mean reward) summed over rounds 0..t.

    >>> from hybandits import Greedy
    >>> regret = cumulative_regret(Greedy(d1=2, d2=1), Synthetic(d1=2, d2=1, arms=3), 100)
    >>> len(regret), bool(regret[-1] >= regret[0] >= 0)
    (100, True)
    """
    points = np.arange(1, horizon + 1)
    regret: Doubles = play([Player(policy, trial)], world, points, progress=progress)[0]
    return regret


def play(
    players: Sequence[Player],
    world: Synthetic,
    points: Sequence[int] | np.ndarray,
    *,
    probe: Callable[[int, int, Policy], None] | None = None,
    probes: Sequence[int] = (),
    progress: Callable[[int], None] | None = None,
) -> Doubles:
    """Regret of every player after each of the rounds in `points` (increasing); the last is the number of rounds.

    All players see the same contexts; with a world of fresh contexts they must be of one trial. `probe(player, t,
    policy)` is called after each of the rounds in `probes`; `progress` with the rounds played since the last call,
    summed over players. Memory grows with the points, not with the rounds.
    """
    marks = np.asarray(points, np.int64)
    horizon = int(marks[-1])
    trials = sorted({player.trial for player in players})
    if world.fresh_contexts and len(trials) > 1:
        raise ValueError(f"players of trials {trials} do not share contexts that are drawn anew for every trial")
    streams = {trial: world.noise_stream(trial) for trial in trials}
    regret = np.empty((len(players), len(marks)))
    total = np.zeros(len(players))
    t = 0
    for block in world.rounds(horizon, trials[0]):
        for part in _split(block, t, probes):
            n = len(part.best)
            kept = slice(*np.searchsorted(marks, [t + 1, t + n + 1]))
            noises = {trial: world.noise * stream.standard_normal(n) for trial, stream in streams.items()}
            for i, (policy, trial) in enumerate(players):
                instant = np.empty(n + 1)
                instant[0] = total[i]
                play_block(policy, part, noises[trial], instant[1:])
                so_far = np.cumsum(instant)  # one sum from the first round on, wherever blocks end
                total[i] = so_far[-1]
                regret[i, kept] = so_far[marks[kept] - t]
                if progress is not None:
                    progress(n)
            t += n
            if probe is not None and t in probes:
                for i, (policy, _) in enumerate(players):
                    probe(i, t, policy)
    return regret


def _split(block: Block, start: int, at: Sequence[int]) -> list[Block]:
    """The block in pieces that end where a probe is due."""
    n = len(block.best)
    cuts = [0, *(t - start for t in sorted(at) if 0 < t - start < n), n]
    return [Block(*(part[a:b] for part in block)) for a, b in itertools.pairwise(cuts)]


def play_block(policy: Policy, block: Block, noises: Doubles, instant: Doubles) -> None:
    """Play consecutive rounds with arms 0..K-1, writing the regret of each to `instant`."""
    for kind, loop in _LOOPS.items():
        if isinstance(policy, kind) and all(
            getattr(type(policy), name, None) is getattr(kind, name, None) for name in ("choose", "learn", "_pick")
        ):
            loop(policy, block, noises, instant)
            return
    _play_by_contract(policy, block, noises, instant)


def _play_by_contract(policy: Policy, block: Block, noises: Doubles, instant: Doubles) -> None:
    pool = policy.candidates(range(block.means.shape[1]))
    for t, (x, z, means) in enumerate(zip(block.x, block.z, block.means, strict=True)):
        choice = policy.choose(x, z, pool)
        i = choice.index
        policy.learn(choice.arm, x[i], z[i], float(means[i] + noises[t]), receipt=choice.receipt)
        instant[t] = block.best[t] - means[i]


def _settle(estimator: HybridRidge, slots: np.ndarray, played: int, wanted: int) -> None:
    estimator.settle(range(len(slots)), slots, played)
    if played < wanted:
        raise ValueError(f"the world's features in round {played} are not finite or too large: rescale them")


@kernel
def learn_played(  # type: ignore[no-untyped-def]
    i, x, z, reward, slots, known, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds
):  # fmt: skip
    """`learn_row` for arm i with its refresh. slots[i] < -1: it has not learned, and takes the block -2 - slots[i]."""
    if known[i] < 0:
        slots[i] = -2 - slots[i]
        known[i] = slots[i]
    slot = known[i]
    if learn_row(slot, x, z, reward, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds):
        refresh_due(slot, x.shape[0], z.shape[0], arm_factor, arm_score, pulls, shared_factor, shared_score, rounds)


def _play_ucb(policy: UCBPolicy, block: Block, noises: Doubles, instant: Doubles) -> None:
    x, z = block.x, block.z
    disjoint = policy.reduction == "disjoint"
    if disjoint:
        x, z = np.empty((*x.shape[:2], 0)), np.concatenate((x, z), axis=2)
    estimator = policy.estimator
    slots = policy.meet(range(block.means.shape[1]))
    played = play_ucb(
        x, z, block.means, block.best, noises, slots, estimator.arm_factor, estimator.arm_score, estimator.pulls,
        estimator.shared_factor, estimator.shared_score, estimator.ridge, policy.coefficients, disjoint,
        estimator.rounds, instant,
    )  # fmt: skip
    _settle(estimator, slots, played, len(instant))


@kernel
def play_ucb(  # type: ignore[no-untyped-def]
    x, z, means, best, noises, slots, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge, coefficients,
    by_arm, rounds, instant,
):  # fmt: skip
    """Rounds of choose (`choose_ucb`) and learn (`learn_played`); instant[t] = best mean - mean of the arm played.

    Returns the rounds played: all of them, but where a feature is beyond bounds.
    """
    n = x.shape[0]
    known = np.maximum(slots, -1)
    for t in range(n):
        i, _, _, _ = choose_ucb(
            x[t], z[t], known, arm_score, pulls, shared_score, ridge, coefficients, -1 if by_arm else rounds
        )
        if i < 0:
            return t
        learn_played(
            i, x[t, i], z[t, i], means[t, i] + noises[t], slots, known, arm_factor, arm_score, pulls, shared_factor,
            shared_score, rounds,
        )  # fmt: skip
        rounds += 1
        instant[t] = best[t] - means[t, i]
    return n


def _play_thompson(policy: HyThompson, block: Block, noises: Doubles, instant: Doubles) -> None:
    estimator = policy.estimator
    slots = policy.meet(range(block.means.shape[1]))
    normals = policy.take_normals(len(instant), len(slots))
    played = play_thompson(
        block.x, block.z, block.means, block.best, noises, slots, estimator.arm_factor, estimator.arm_score,
        estimator.pulls, estimator.shared_factor, estimator.shared_score, estimator.ridge, policy.noise, normals,
        estimator.rounds, instant,
    )  # fmt: skip
    _settle(estimator, slots, played, len(instant))


@kernel
def play_thompson(  # type: ignore[no-untyped-def]
    x, z, means, best, noises, slots, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge, noise, normals,
    rounds, instant,
):  # fmt: skip
    """`play_ucb` with the choice by `choose_thompson`; normals: d1 + K of them per round."""
    n, arms, d1 = x.shape
    known = np.maximum(slots, -1)
    for t in range(n):
        i, _, _ = choose_thompson(x[t], z[t], known, arm_score, shared_score, ridge, noise, normals, t * (d1 + arms))
        if i < 0:
            return t
        learn_played(
            i, x[t, i], z[t, i], means[t, i] + noises[t], slots, known, arm_factor, arm_score, pulls, shared_factor,
            shared_score, rounds,
        )  # fmt: skip
        rounds += 1
        instant[t] = best[t] - means[t, i]
    return n


def _play_sup(policy: SupLinUCB, block: Block, noises: Doubles, instant: Doubles) -> None:
    arms = range(block.means.shape[1])
    levels = policy.levels
    levels[0].admit(arms)
    slots = np.array([level.set_aside(arms) for level in levels])
    parts = ("arm_factor", "arm_score", "pulls", "shared_factor", "shared_score")
    stacked = [_stack([getattr(level, name) for level in levels]) for name in parts]
    rounds = np.array([level.rounds for level in levels])
    played = play_sup(
        block.x, block.z, block.means, block.best, noises, slots, *stacked, policy.ridge,
        policy.width_factor(levels[0].known), policy.least, rounds, instant,
    )  # fmt: skip
    learned = 0
    for s, level in enumerate(levels):
        for name, arrays in zip(parts, stacked, strict=True):
            own = getattr(level, name)
            own[:] = arrays[s, : len(own)]
        new = int(rounds[s]) - level.rounds
        level.settle(arms, slots[s], new)
        learned += new
    policy.count_skipped(played - learned)
    if played < len(instant):
        raise ValueError(f"the world's features in round {played} are not finite or too large: rescale them")


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays of different lengths as rows of one, 0 at their ends."""
    made = np.zeros((len(arrays), max(map(len, arrays))), arrays[0].dtype)
    for row, array in zip(made, arrays, strict=True):
        row[: len(array)] = array
    return made


@kernel
def play_sup(  # type: ignore[no-untyped-def]
    x, z, means, best, noises, slots, arm_factor, arm_score, pulls, shared_factor, shared_score, ridge, alpha, least,
    rounds, instant,
):  # fmt: skip
    """Rounds of SupLinUCB: `walk_level` down the levels, `learn_played` at the one where the walk ends, if any.

    Row s of slots, the blocks and rounds is level s + 1.
    """
    n, arms, _ = x.shape
    known = np.maximum(slots, -1)
    left = np.empty(arms, np.int64)
    for t in range(n):
        for i in range(arms):
            left[i] = i
        count = arms
        i, level = -1, 0
        for s in range(slots.shape[0]):
            i, level, _, _, count = walk_level(
                s + 1, x[t], z[t], known[s], left, count, alpha, least, arm_score[s], shared_score[s], ridge
            )
            if i != -1:
                break
        if i < 0:
            return t
        instant[t] = best[t] - means[t, i]
        if level > 0:
            s = level - 1
            learn_played(
                i, x[t, i], z[t, i], means[t, i] + noises[t], slots[s], known[s], arm_factor[s], arm_score[s], pulls[s],
                shared_factor[s], shared_score[s], rounds[s],
            )  # fmt: skip
            rounds[s] += 1
    return n


def _play_hyran(policy: HyRan, block: Block, noises: Doubles, instant: Doubles) -> None:
    table = policy.table
    n, arms = block.means.shape
    table.admit(range(arms))
    slots = table.slots_of(range(arms))
    choice, check = policy.ridges(n)
    draws = policy.draws(n) if arms > 1 else np.ones(n)
    played = play_hyran(
        block.x, block.z, block.means, block.best, noises, slots, policy.p, draws, choice, check, table.cross,
        table.groups, table.pulls, table.shared, table.own, *table.workspace(), instant,
    )  # fmt: skip
    table.rounds += played
    if played < n:
        raise unsound()


@kernel
def play_hyran(  # type: ignore[no-untyped-def]
    x, z, means, best, noises, slots, p, draws, choice_ridge, check_ridge, cross, groups, pulls, shared, own, factor,
    shared_factor, theta, beta, instant,
):  # fmt: skip
    """Rounds of HyRan: `estimate` and `best_mean`, then `learn_round`. Returns the rounds played before sums fail."""
    n, _, d1 = x.shape
    d2 = z.shape[2]
    for t in range(n):
        if not estimate(groups, choice_ridge[t], cross, d1, d2, shared, own, factor, shared_factor, theta, beta):
            return t
        i, _ = best_mean(x[t], z[t], slots, theta, beta)
        reward = means[t, i] + noises[t]
        if not learn_round(
            i, p, draws[t], check_ridge[t], x[t], z[t], slots, reward, cross, groups, shared, own, factor,
            shared_factor, theta, beta,
        ):  # fmt: skip
            return t
        pulls[slots[i]] += 1
        instant[t] = best[t] - means[t, i]
    return n


_LOOPS: dict[type[Policy], Callable[..., None]] = {
    UCBPolicy: _play_ucb,
    HyThompson: _play_thompson,
    SupLinUCB: _play_sup,
    HyRan: _play_hyran,
}
