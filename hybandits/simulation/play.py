"""Playing policies in a world, which gives their regret, or on given rounds, as replay does."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation.checks import FloatArray
from hybandits.policies.base import Policy, locked
from hybandits.simulation.loops import Picks, compiled_loop
from hybandits.simulation.rounds import Block, Rounds, check_array
from hybandits.simulation.worlds import World, delay_of, draw_rewards

Observe = Callable[[int, int, Block, Picks], None]
"""Called with the number of a player, the rounds so far, the rounds just played and the positions it played in them."""

LearnsFrom = Literal["nobody", "everybody"] | None
"""The rewards that a player learns: see `Player`."""


class Player(NamedTuple):
    """A policy that plays in a world, with the trial whose noise it gets."""

    policy: Policy
    trial: int = 0
    """Players of the same trial get the same noise."""
    learns_from: LearnsFrom = None
    """None for the rewards of the candidates that it plays. The other values repeat a defect of the paper's released
    code: it learns no reward, or those of all players, each as that of the candidate it played."""


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
    observe: Observe | None = None,
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
    observe : callable, optional
        See `Observe`; called for every player after every stretch of rounds.
    probes : sequence of int
        Rounds after which a stretch ends.
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
    for player in players:
        _check_dimensions(player.policy, world.d1, world.d2)
    order = _order_of_play(players)
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
            drawn = _draw_for_players(world, part.means, players, streams)
            picks = np.empty((len(players), n), np.int64)
            so_far = np.empty(n + 1)
            for i in order:
                policy, learns_from = players[i].policy, players[i].learns_from
                if learns_from == "everybody":
                    _play_with_all_rewards(i, policy, part.rounds, drawn, picks)
                else:
                    rewards = np.full_like(drawn[i], np.nan) if learns_from == "nobody" else drawn[i]
                    if delay:
                        play_by_contract(policy, part.rounds, rewards, picks[i], late[i], delay)
                    else:
                        _play_checked(policy, part.rounds, rewards, picks[i])
                so_far[0] = total[i]
                np.subtract(part.best, part.means[np.arange(n), picks[i]], out=so_far[1:])
                np.cumsum(so_far, out=so_far)  # one sum from the first round on, wherever blocks end
                total[i] = so_far[-1]
                regret[i, kept] = so_far[marks[kept] - t]
                if progress is not None:
                    progress(n)
                if observe is not None:
                    observe(i, t + n, part, picks[i])
            t += n
    if t < horizon:
        raise ValueError(f"{_named(world)} gave {t} rounds of {horizon}: let rounds({horizon}) yield as many")
    return regret


def _order_of_play(players: Sequence[Player]) -> list[int]:
    """The numbers of the players; one that learns from everybody plays last."""
    last = [i for i, player in enumerate(players) if player.learns_from == "everybody"]
    if len(last) > 1:
        raise ValueError(f"players {last} learn from everybody, before the other has played: let one of them do so")
    return [i for i in range(len(players)) if i not in last] + last


def _draw_for_players(
    world: World, means: FloatArray, players: Sequence[Player], streams: Mapping[int, np.random.Generator]
) -> list[FloatArray]:
    """The rewards of all candidates for every player: one draw for all players of a trial, unless the world has more.

    Where noise is not shared, every round takes one draw for each player, in the order of players.
    """
    if getattr(world, "shares_noise", True):
        drawn = {trial: draw_rewards(world, means, stream) for trial, stream in streams.items()}
        return [drawn[player.trial] for player in players]
    (stream,) = streams.values()
    count = len(players)
    rewards = draw_rewards(world, np.repeat(means, count, axis=0), stream)
    return [np.ascontiguousarray(rewards[i::count]) for i in range(count)]


def _play_with_all_rewards(
    number: int, policy: Policy, rounds: Rounds, drawn: Sequence[FloatArray], picks: NDArray[np.int64]
) -> None:
    """Play a policy that learns the rewards of all players in every round, each as that of the candidate it played."""
    for t, count in enumerate(rounds.counts.tolist()):
        x, z = rounds.features(t)
        choice = policy.choose(x, z, [rounds.arms[j] for j in rounds.index[t, :count].tolist()])
        i = picks[number, t] = choice.index
        for rewards, played in zip(drawn, picks, strict=True):
            policy.learn(choice.arm, x[i], z[i], float(rewards[t, played[t]]))


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
