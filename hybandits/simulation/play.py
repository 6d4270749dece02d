"""Playing policies in a world, which gives their regret, or on given rounds, as replay does."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.policies.base import Policy, locked
from hybandits.simulation.loops import Picks, compiled_loop
from hybandits.simulation.rounds import Block, Rounds, check_array
from hybandits.simulation.worlds import World, delay_of, draw_rewards


class Player(NamedTuple):
    """A policy that plays in a world, with the trial whose noise it gets.

    Attributes
    ----------
    policy : Policy
        It learns as it plays.
    trial : int
        The trial. Players of the same trial get the same noise.
    """

    policy: Policy
    trial: int = 0


def cumulative_regret(
    policy: Policy,
    world: World,
    horizon: int,
    *,
    trial: int = 0,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Play a policy for `horizon` rounds and return the regret after each of them.

    Regret is what the policy missed: the largest mean reward among the candidates minus the mean reward of the one it
    played, summed over the rounds so far. `trial` selects the noise, and `progress` is called with the number
    of rounds played since the last call.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> from hybandits.simulation.worlds import Synthetic
    >>> regret = cumulative_regret(Greedy(d1=2, d2=1), Synthetic(d1=2, d2=1, arms=3), 100)
    >>> len(regret), bool(regret[-1] >= regret[0] >= 0)
    (100, True)
    """
    points = np.arange(1, horizon + 1)
    regret: FloatArray = play([Player(policy, trial)], world, points, progress=progress)[0]
    return regret


def play(
    players: Sequence[Player],
    world: World,
    points: Sequence[int] | np.ndarray,
    *,
    probe: Callable[[int, int, Policy], None] | None = None,
    probes: Sequence[int] = (),
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Play several policies on the same contexts and return their regret (players, points) after some of the rounds.

    Parameters
    ----------
    players : sequence of Player
        In a world with fresh contexts they must all be of one trial.
    world : World
        Where they play.
    points : sequence of int
        The rounds after which the regret is kept, in increasing order; the last is the number of rounds played. Memory
        grows with the number of points, not with the number of rounds.
    probe : callable, optional
        probe(number of the player, t, policy) is called after each of the rounds t in `probes`.
    probes : sequence of int
        The rounds after which `probe` is called.
    progress : callable, optional
        Called with the number of rounds played since the last call, summed over players.
    """
    marks = np.asarray(points, np.int64)
    horizon = int(marks[-1])
    trials = sorted({player.trial for player in players})
    if world.fresh_contexts and len(trials) > 1:
        raise ValueError(
            f"players of trials {trials} do not share contexts in a world with fresh contexts: play one trial at a time"
        )
    for policy, _ in players:
        _check_dimensions(policy, world.d1, world.d2)
    streams = {trial: world.noise_stream(trial) for trial in trials}
    delay = delay_of(world)
    late: list[deque[Any]] = [deque() for _ in players]
    regret = np.empty((len(players), len(marks)))
    total = np.zeros(len(players))
    t = 0
    for block in world.rounds(horizon, trials[0]):
        n = len(block.rounds.counts)
        try:
            if t + n > horizon:
                raise ValueError(f"it gave more than {horizon} rounds: let rounds({horizon}) yield no more")
            block.check(world.d1, world.d2)
        except ValueError as problem:
            raise ValueError(f"{_named(world)}, in the block of round {t}: {problem}") from None
        for part in _split(block, t, probes):
            n = len(part.best)
            kept = slice(*np.searchsorted(marks, [t + 1, t + n + 1]))
            drawn = {trial: draw_rewards(world, part.means, stream) for trial, stream in streams.items()}
            picks = np.empty(n, np.int64)
            so_far = np.empty(n + 1)
            for i, (policy, trial) in enumerate(players):
                if delay:
                    play_by_contract(policy, part.rounds, drawn[trial], picks, late[i], delay)
                else:
                    _play_checked(policy, part.rounds, drawn[trial], picks)
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
    if t < horizon:
        raise ValueError(f"{_named(world)} gave {t} rounds of {horizon}: let rounds({horizon}) yield as many")
    return regret


def _named(world: Any) -> str:
    """The class of a world, or of the world that it relays, as a user names it."""
    inner = getattr(world, "world", None)
    return _named(inner) if inner is not None else f"{type(world).__module__}:{type(world).__qualname__}"


def _split(block: Block, start: int, at: Sequence[int]) -> list[Block]:
    """Cut a block after the rounds at which a probe is due."""
    n = len(block.best)
    cuts = [0, *(t - start for t in sorted(at) if 0 < t - start < n), n]
    return [Block(block.rounds.part(a, b), block.means[a:b], block.best[a:b]) for a, b in itertools.pairwise(cuts)]


def play_rounds(policy: Policy, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    """Play a policy on consecutive rounds; it learns the rewards of the candidates that it plays.

    The decisions are those of `choose` and, with the receipt, `learn`, round by round, to the bit. If a number is
    refused, the rounds before it have been played.

    Parameters
    ----------
    policy, rounds
        An arm that the policy has not met must be a candidate in the first round.
    rewards : array of shape (rounds, n)
        The reward of every candidate, as doubles in C order. Where it is NaN nothing is learned.
    picks : int array of shape (rounds,)
        Filled with the place of the candidate played in each round.

    """
    _check_dimensions(policy, rounds.x.shape[-1], rounds.z.shape[-1])
    rounds.check(policy.d1, policy.d2)
    check_array("rewards", rewards, np.float64, rounds.index.shape)
    check_array("picks", picks, np.int64, rounds.counts.shape)
    with locked(policy):
        _play_checked(policy, rounds, rewards, picks)


def _check_dimensions(policy: Policy, d1: int, d2: int) -> None:
    if (policy.d1, policy.d2) != (d1, d2):
        raise ValueError(
            f"the policy has d1={policy.d1}, d2={policy.d2} and the rounds d1={d1}, d2={d2}: "
            f"construct the policy with d1={d1}, d2={d2}"
        )


def _play_checked(policy: Policy, rounds: Rounds, rewards: FloatArray, picks: Picks) -> None:
    if len(picks):
        (compiled_loop(policy) or play_by_contract)(policy, rounds, rewards, picks)


def play_by_contract(
    policy: Policy, rounds: Rounds, rewards: FloatArray, picks: Picks, late: deque[Any] | None = None, delay: int = 0
) -> None:
    """`play_rounds` by calls to `choose` and `learn`, without checks, for every policy; `late` holds late rewards."""
    waiting = deque() if late is None else late
    shown, pool = b"", None
    for t, count in enumerate(rounds.counts.tolist()):
        candidates = rounds.index[t, :count]
        if pool is None or candidates.tobytes() != shown:
            shown, pool = candidates.tobytes(), policy.candidates([rounds.arms[j] for j in candidates.tolist()])
        x, z = rounds.features(t)
        choice = policy.choose(x, z, pool)
        i = picks[t] = choice.index
        waiting.append((choice.arm, x[i], z[i], float(rewards[t, i]), choice.receipt))
        if len(waiting) > delay:
            *row, receipt = waiting.popleft()
            if not math.isnan(row[-1]):
                policy.learn(*row, receipt=receipt)
