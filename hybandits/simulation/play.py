"""The round loop: policies in a world, and the regret they run up.

The loops are compiled from context to decision and call the kernels that `choose` and `learn` call, so the decisions
are the same to the bit. A policy without a loop of its own is played through the contract. Rounds come in blocks, and
all policies and trials play one block before the next is drawn. Candidates may change from round to round, and a round
may go unanswered: `play_rounds` is also what replays a log.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.policies.base import Policy
from hybandits.simulation.loops import _LOOPS, Picks
from hybandits.simulation.rounds import Block, Rounds, check_array
from hybandits.simulation.worlds import World


class Player(NamedTuple):
    """A policy and the trial whose noise it meets.

    learns_from = j gives it the reward of candidate j (of the last one, where there are fewer) whatever it has played:
    a slip of research code, kept to show what it does. The features it learns with are still those of the arm played.
    """

    policy: Policy
    trial: int = 0
    learns_from: int | None = None


def cumulative_regret(
    policy: Policy,
    world: World,
    horizon: int,
    *,
    trial: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Doubles:
    """Play `horizon` rounds; entry t is the regret (in mean reward) summed over rounds 0..t.

    >>> from hybandits import Greedy
    >>> from hybandits.simulation.worlds import Synthetic
    >>> regret = cumulative_regret(Greedy(d1=2, d2=1), Synthetic(d1=2, d2=1, arms=3), 100)
    >>> len(regret), bool(regret[-1] >= regret[0] >= 0)
    (100, True)
    """
    points = np.arange(1, horizon + 1)
    regret: Doubles = play([Player(policy, trial)], world, points, progress=progress)[0]
    return regret


def play(
    players: Sequence[Player],
    world: World,
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
    for policy, _, learns_from in players:
        _check_dimensions(policy, world.d1, world.d2)
        if learns_from is not None:
            checks.count(
                "learns_from", learns_from, least=0, why="it is the place of a candidate; None for the one played"
            )
    streams = {trial: world.noise_stream(trial) for trial in trials}
    regret = np.empty((len(players), len(marks)))
    total = np.zeros(len(players))
    t = 0
    for block in world.rounds(horizon, trials[0]):
        block.rounds.check(world.d1, world.d2)
        for part in _split(block, t, probes):
            n = len(part.best)
            kept = slice(*np.searchsorted(marks, [t + 1, t + n + 1]))
            noises = {trial: world.noise * stream.standard_normal(n) for trial, stream in streams.items()}
            rewards = np.empty(part.rounds.index.shape)
            picks = np.empty(n, np.int64)
            so_far = np.empty(n + 1)
            for i, (policy, trial, learns_from) in enumerate(players):
                np.add(part.means, noises[trial][:, None], out=rewards)
                if learns_from is not None:
                    rewards[:] = rewards[np.arange(n), np.minimum(learns_from, part.rounds.counts - 1)][:, None]
                _play_checked(policy, part.rounds, rewards, picks)
                so_far[0] = total[i]
                np.subtract(part.best, part.means[np.arange(n), picks], out=so_far[1:])
                np.cumsum(so_far, out=so_far)  # one sum from the first round on, wherever blocks end
                total[i] = so_far[-1]
                regret[i, kept] = so_far[marks[kept] - t]
                if progress is not None:
                    progress(n)
            t += n
            if probe is not None and t in probes:
                for i, player in enumerate(players):
                    probe(i, t, player.policy)
    return regret


def _split(block: Block, start: int, at: Sequence[int]) -> list[Block]:
    """The block in pieces that end where a probe is due."""
    n = len(block.best)
    cuts = [0, *(t - start for t in sorted(at) if 0 < t - start < n), n]
    return [Block(block.rounds.part(a, b), block.means[a:b], block.best[a:b]) for a, b in itertools.pairwise(cuts)]


def play_rounds(policy: Policy, rounds: Rounds, rewards: Doubles, picks: Picks) -> None:
    """Play consecutive rounds: write the candidate played to picks[t] and learn its reward, rewards[t, picks[t]].

    rewards is (rounds, n); where it is NaN there is no answer, and nothing is learned. Equal to the bit to `choose`
    and, with the receipt, `learn`, round by round. An arm that the policy has not met must be a candidate in the first
    round. If a number is refused, the rounds before it have been played.
    """
    _check_dimensions(policy, rounds.x.shape[-1], rounds.z.shape[-1])
    rounds.check(policy.d1, policy.d2)
    check_array("rewards", rewards, np.float64, rounds.index.shape)
    check_array("picks", picks, np.int64, rounds.counts.shape)
    _play_checked(policy, rounds, rewards, picks)


def _check_dimensions(policy: Policy, d1: int, d2: int) -> None:
    if (policy.d1, policy.d2) != (d1, d2):
        raise ValueError(
            f"the policy has d1={policy.d1}, d2={policy.d2} and the rounds d1={d1}, d2={d2}: make them of one shape"
        )


def _play_checked(policy: Policy, rounds: Rounds, rewards: Doubles, picks: Picks) -> None:
    if len(picks) == 0:
        return
    for kind, loop in _LOOPS.items():
        if isinstance(policy, kind) and all(
            getattr(type(policy), name, None) is getattr(kind, name, None) for name in ("choose", "learn", "_pick")
        ):
            loop(policy, rounds, rewards, picks)
            return
    _play_by_contract(policy, rounds, rewards, picks)


def _play_by_contract(policy: Policy, rounds: Rounds, rewards: Doubles, picks: Picks) -> None:
    shown, pool = b"", None
    for t, count in enumerate(rounds.counts.tolist()):
        candidates = rounds.index[t, :count]
        if pool is None or candidates.tobytes() != shown:
            shown, pool = candidates.tobytes(), policy.candidates([rounds.arms[j] for j in candidates.tolist()])
        x, z = rounds.features(t)
        choice = policy.choose(x, z, pool)
        i = picks[t] = choice.index
        reward = float(rewards[t, i])
        if not math.isnan(reward):
            policy.learn(choice.arm, x[i], z[i], reward, receipt=choice.receipt)
