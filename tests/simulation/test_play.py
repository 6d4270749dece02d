"""Regret is what was missed, round by round, however players, blocks and probes are laid out."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import Greedy, HyLinUCB, HyRan, SupLinUCB
from hybandits.simulation import worlds
from hybandits.simulation.benchmark_worlds import Clicks
from hybandits.simulation.play import LearnsFrom, Player, cumulative_regret, play
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Relayed, Synthetic
from tests.support.rounds import MAKERS

WORLD = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)


def test_regret_adds_up_and_progress_is_reported() -> None:
    amounts: list[int] = []
    regret = cumulative_regret(Greedy(d1=4, d2=3), WORLD, 60, progress=amounts.append)
    assert (np.diff(regret) >= 0).all()
    assert sum(amounts) == 60


def test_a_policy_of_other_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="construct the policy with d1=4, d2=3"):
        cumulative_regret(Greedy(d1=4, d2=2), WORLD, 5)


def test_players_together_are_players_alone_and_probes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "BLOCK_NUMBERS", 9000)
    names = ("HyLinUCB", "HyThompson", "HyRan", "SupLinUCB")
    players = [Player(MAKERS[name](), trial) for name in names for trial in (0, 2)]
    points = [1, 7, 166, 167, 168, 400]
    seen: list[tuple[int, int, int]] = []
    stretches: list[int] = []

    def observe(i: int, t: int, block: Block, picks: np.ndarray) -> None:
        seen.append((i, t, players[i].policy.rounds))
        assert len(picks) == len(block.best)
        stretches.append(len(picks) if i == 0 else 0)

    together = play(players, WORLD, points, probes=(7, 250, 400), observe=observe)
    assert together.shape == (8, 6)
    for i, name in enumerate(names):
        for j, trial in enumerate((0, 2)):
            alone = cumulative_regret(MAKERS[name](), WORLD, 400, trial=trial)
            assert_array_equal(together[2 * i + j], alone[np.array(points) - 1])
    assert {(i, t, t) for t in (7, 250, 400) for i in range(8)} <= set(seen)
    assert sum(stretches) == 400


def test_players_of_several_trials_cannot_share_fresh_contexts() -> None:
    world = replace(WORLD, fresh_contexts=True)
    players = [Player(MAKERS["HyLinUCB"](), trial) for trial in (0, 1)]
    with pytest.raises(ValueError, match=r"players of trials \[0, 1\] do not share contexts"):
        play(players, world, [5])


def test_memory_does_not_grow_with_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "BLOCK_NUMBERS", 9000)

    def peak(rounds: int) -> int:
        tracemalloc.start()
        play([Player(MAKERS["HyLinUCB"]())], WORLD, [rounds])
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(1000)
    assert peak(20_000) < peak(1000) + 50_000  # a number for each further round would be 150 kB


@pytest.mark.parametrize("delay", [1, 70, 1000])
def test_late_rewards_are_learned_so_many_rounds_later(delay: int) -> None:
    """Across blocks and cuts for probes; rewards that are not there at the end are never learned."""
    seen: list[tuple[int, int]] = []

    def observe(player: int, t: int, block: Block, picks: np.ndarray) -> None:
        seen.append((t, policies[player].rounds))

    world = Relayed(world=Clicks(d1=2, d2=2, arms=3, rate=0.5, seed=1), delay=delay)
    policies = [HyLinUCB(d1=2, d2=2), HyRan(d1=2, d2=2), SupLinUCB(d1=2, d2=2, horizon=1200)]
    play([Player(policy) for policy in policies], world, [1200], observe=observe, probes=(5, 600, 1200))
    assert {(t, rounds) for t, rounds in seen if (t, rounds)} >= {(t, max(0, t - delay)) for t in (5, 600, 1200)}
    assert policies[0].rounds == policies[1].rounds == 1200 - delay


def test_rewards_may_be_learned_from_others_as_the_released_code_does() -> None:
    """Nobody's and everybody's, round by round against choose and learn."""
    world = replace(WORLD, law="released-diversity", fresh_contexts=True)
    block = next(world.rounds(60, trial=2))
    noise = 0.1 * world.noise_stream(2).standard_normal((60, 3))
    kinds: list[LearnsFrom] = ["everybody", "nobody", None]
    alone = [HyLinUCB(d1=4, d2=3) for _ in kinds]
    regret, picks = np.zeros(3), np.zeros(3, int)
    for t in range(60):
        x, z = block.rounds.x[t], block.rounds.z[t]
        picks[:] = [policy.choose(x, z, range(6)).index for policy in alone]
        rewards = block.means[t, picks] + noise[t]
        learned = [list(rewards), [], [rewards[2]]]
        for policy, i, values in zip(alone, picks, learned, strict=True):
            for value in values:
                policy.learn(int(i), x[i], z[i], float(value))
        regret += block.best[t] - block.means[t, picks]
    players = [Player(HyLinUCB(d1=4, d2=3), 2, kind) for kind in kinds]
    together = play(players, world, [60], probes=(7, 30))
    assert_allclose(together[:, 0], regret)
    for player, policy in zip(players, alone, strict=True):
        assert player.policy.rounds == policy.rounds
        assert_allclose(player.policy.theta, policy.theta, atol=1e-14)
    with pytest.raises(ValueError, match=r"players \[0, 1\] learn from everybody"):
        play(players[:1] * 2, world, [60])
